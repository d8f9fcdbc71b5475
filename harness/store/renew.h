/* renew.h - records of the schema before this program's, written anew as it writes them. */
#ifndef LRNN_HARNESS_STORE_RENEW_H
#define LRNN_HARNESS_STORE_RENEW_H

#include <stddef.h>

#include "core/status.h"

struct renew_count {
    int records, renewed;
    size_t bytes_before, bytes; /* of all records */
};

/* Every record of a folder that is of the schema before this one's gets this one's form. A text that does not say the
 * same as the record's is not written, and a record is replaced whole or not at all, so that whoever reads the folder
 * meanwhile, or is cut off, loses nothing. Those of still earlier schemas mean something else by a column and stay.
 * ST_DATA: no records, or one that is damaged, of a later schema or cannot be read; before that those in front of it
 * have been written. ST_FAIL with path and reason. */
enum status store_renew(const char *folder, struct renew_count *count, struct error *e);

#endif

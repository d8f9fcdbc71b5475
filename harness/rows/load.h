/* load.h - the records of a folder as reports take them. */
#ifndef LRNN_HARNESS_ROWS_LOAD_H
#define LRNN_HARNESS_ROWS_LOAD_H

#include "harness/store/record_files.h"

/* records_load; and each run's profile is the one that it is of (harness/study/profile.h), whatever it
 * was called when it was made. Errors as records_load; ST_DATA: an identity that cannot be read. */
enum status report_load(struct record_set *set, const char *out, struct error *e);

#endif

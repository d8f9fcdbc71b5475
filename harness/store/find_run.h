/* find_run.h - the run that somebody means: by its id, its first digits, or the path of its record. */
#ifndef LRNN_HARNESS_STORE_FIND_RUN_H
#define LRNN_HARNESS_STORE_FIND_RUN_H

#include "harness/store/files.h"
#include "harness/store/record_files.h"

/* `out` comes in as the folder to look in and goes out as the folder that holds the run; `command` begins messages.
 * ST_USAGE: several runs begin so, or it is neither id nor path; ST_DATA: there is none, or it is not finished. */
enum status run_find(const char *command, const char *text, char out[PATH_BYTES], char id[RUN_ID_HEX], struct error *e);

/* Opens the record of a run of OUT, which the caller closes. Errors as record_read. */
enum status run_record_open(const char *command, const char *out, const char *id, struct open_record **open,
                            struct error *e);

#endif

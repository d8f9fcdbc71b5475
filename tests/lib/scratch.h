/* scratch.h - a temporary folder of a test's own. */
#ifndef LRNN_TESTS_LIB_SCRATCH_H
#define LRNN_TESTS_LIB_SCRATCH_H

#include <stddef.h>

#define SCRATCH_BYTES 64

/* Makes a new folder under /tmp and writes its path; ends the test on an error. */
void scratch_make(char path[SCRATCH_BYTES]);

/* Removes a folder and all it holds; follows no links. */
void scratch_remove(const char *path);

/* Counts the files below `folder` whose name contains `part` ("" = all). A file that is being written ("ID.json.*.tmp")
 * counts only if `part` is "" or contains ".tmp". */
int scratch_count(const char *folder, const char *part);

/* Reads a whole file, with a terminator after it, which the caller frees; and writes one. Both end the test on an
 * error. */
char *slurp(const char *path, size_t *size);
void spill(const char *path, const void *bytes, size_t size);

#endif

/* trace_file.h - the rows of tests/golden/traces.tsv (harness/gate/trace.h). */
#ifndef LRNN_TESTS_GOLDEN_TRACE_FILE_H
#define LRNN_TESTS_GOLDEN_TRACE_FILE_H

#include <stdio.h>

#include "harness/gate/trace.h"

/* trace_run, which ends the test where it fails. */
void golden_run(const struct trace *t, const char *kernel, struct trace_row *row);

/* The file's row of that place; false: it has none. */
bool trace_find_row(const char *path, const char *name, const char *precision, const char *arithmetic,
                    struct trace_row *row);

/* Makes the rows of this build anew and writes them beside those of other builds, which are kept. Ends the test, and
 * leaves the file as it is, where a trace has other bits under the numerics version that it had. */
void trace_update(const char *path);

#endif

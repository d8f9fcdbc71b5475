/* trace_file.h - the rows of tests/golden/traces.tsv (harness/gate/trace.h). */
#ifndef LRNN_TESTS_GOLDEN_TRACE_FILE_H
#define LRNN_TESTS_GOLDEN_TRACE_FILE_H

#include "harness/gate/trace.h"

#define TRACE_FILE "tests/golden/traces.tsv"

/* Finds the row of a trace in a build, named by precision and arithmetic. ST_DATA: there is no such row, or a line
 * before it is not a row. */
enum status trace_find_row(const char *name, const char *precision, const char *arithmetic, struct trace_row *row,
                           struct error *e);

#endif

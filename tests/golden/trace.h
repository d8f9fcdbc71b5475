/* trace.h - golden traces: small trainings whose bits are kept in tests/golden/traces.tsv.
 *
 * Every mixer in every small variant, and each backbone, read-out, schedule and flag of the optimiser once, 50 steps
 * with reference kernels (plain loops, plain products). Bits depend on the precision and on whether the build has fused
 * multiply-adds (core/real.h), on nothing else: compiler, thread count and vector width do not matter. The file holds a
 * row for each; those of plain arithmetic (PORTABLE=1) are the exact traces, to which all other runs stay near. */
#ifndef LRNN_TESTS_GOLDEN_TRACE_H
#define LRNN_TESTS_GOLDEN_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/plan/setup.h"

#define TRACE_STEPS  50
#define TRACE_POINTS 3   /* losses that are kept: of the first step, the tenth and the last */
#define TRACE_TEXT   400 /* bytes of a name, terminator included */

/* What is trained: task and model as on the command line, and flags "key=value key=value" over trace_flags. */
struct trace {
    char task[TRACE_TEXT / 4], model[TRACE_TEXT / 4], flags[TRACE_TEXT / 4];
};

struct trace_row {
    char name[TRACE_TEXT];        /* "task model flags" */
    char real[8], arithmetic[8];  /* "fp32" or "fp64"; "fma" or "plain" */
    char numerics[NUMERICS_TEXT]; /* the version of the run's numbers (harness/plan/numerics.h) */
    double loss[TRACE_POINTS];
    char weights[RUN_ID_HEX]; /* XXH3-128 of all trained values, in contract order */
};

/* Trace number `index`, or false behind the last. */
bool trace_at(int index, struct trace *t);

/* "task model flags" */
void trace_name(const struct trace *t, char name[TRACE_TEXT]);

/* The arithmetic of this build: "fma" or "plain". */
const char *trace_arithmetic(void);

/* Trains it; kernel "reference", or "" for those that a run would take. Ends the test when it cannot. */
void trace_run(const struct trace *t, const char *kernel, struct trace_row *row);

/* Rows of a file; false at its end. A line that is not a row ends the test. */
bool trace_read(FILE *f, struct trace_row *row);
void trace_write(FILE *f, const struct trace_row *row);

/* Makes the rows of this build anew and writes them beside those of other builds, which are kept. Ends the test, and
 * leaves the file as it is, where a trace has other bits under the numerics version that it had. */
void trace_update(const char *path);

#endif

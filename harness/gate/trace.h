/* trace.h - golden traces: small trainings whose bits are kept.
 *
 * Every mixer in every small variant, and each backbone, read-out, schedule and flag of the optimiser once, 50 steps of
 * short sequences; and every mixer once, three steps of sequences of 1 024 positions.
 * With reference kernels (plain loops, plain products) the bits depend on the precision and on whether the build has
 * fused multiply-adds (core/real.h), on nothing else: compiler, thread count and vector width do not matter.
 * tests/golden/traces.tsv holds a row for each. Traces of plain arithmetic (PORTABLE=1) are exact, and all other runs
 * stay near them. The gate compares the traces of two builds (baseline.h). */
#ifndef LRNN_HARNESS_GATE_TRACE_H
#define LRNN_HARNESS_GATE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/study/setup.h"

#define TRACE_POINTS 3   /* losses that are kept: of the first step, the tenth (if there are so many) and the last */
#define TRACE_TEXT   400 /* bytes of a name, terminator included */

/* Task and model as on the command line, and flags "key=value key=value" over the flags that all traces have. */
struct trace {
    char task[TRACE_TEXT / 4], model[TRACE_TEXT / 4], flags[TRACE_TEXT / 4];
};

struct trace_row {
    char name[TRACE_TEXT];        /* Writes "task model flags". */
    char real[8], arithmetic[8];  /* "fp32" or "fp64"; "fma" or "plain" */
    char numerics[NUMERICS_TEXT]; /* the version of the run's numbers (harness/study/numerics.h) */
    double loss[TRACE_POINTS];
    char weights[RUN_ID_HEX]; /* XXH3-128 of all trained values, in contract order */
};

/* Largest relative distance between the losses of two orders of summing, in float and in double. Tuned kernels sum in
 * other orders, which moves a loss by its rounding; then Adam divides gradients by their size, so that a weight whose
 * gradient is rounding noise (1e-9 in float, a tenth of its eps) moves by what the order made of it. Measured over all
 * traces, from reference kernels: 1.2e-7 1.7e-6 1.4e-2 in float (2.3e-6 but for deltaproduct with a forget gate), 8e-16
 * 3e-15 8e-9 in double, but 1.1e-14 1.1e-14 where attention sums over 1 024 positions. */
extern const double trace_tuned_bounds[2][TRACE_POINTS];

/* Sets flags of a run from "key=value key=value". ST_USAGE: as label_parse_pairs and config_set. */
enum status flags_set(struct config *c, const char *flags, struct error *e);

/* Gives trace number `index`; false: it is past the last. */
bool trace_at(int index, struct trace *t);

/* Finds the trace of that name; false: none is listed. */
bool trace_find(const char *name, struct trace *t);

/* Writes "task model flags". */
void trace_name(const struct trace *t, char name[TRACE_TEXT]);

/* Arithmetic of this build: "fma" or "plain". */
const char *trace_arithmetic(void);

/* Trains the trace; kernel "reference", or "" for the kernels that a run would take. ST_FAIL: an update was frozen, at
 * a loss that is not finite; else as setup_make and trainer_create. */
enum status trace_run(const struct trace *t, const char *kernel, struct trace_row *row, struct error *e);

/* Gives the numerics version of the trace with that kernel. */
enum status trace_numerics(const struct trace *t, const char *kernel, char text[NUMERICS_TEXT], struct error *e);

/* True if two rows have the same bits; if the losses of one are within the bounds, relative, of the other's. */
bool trace_same_bits(const struct trace_row *a, const struct trace_row *b);
bool trace_is_near(const struct trace_row *got, const struct trace_row *want, const double bounds[2][TRACE_POINTS]);

/* Writes a row as a line without its end, columns separated by tabs, and reads it back; false: the line is no row. */
#define TRACE_LINE (2 * TRACE_TEXT)
void trace_format(const struct trace_row *row, char line[TRACE_LINE]);
bool trace_parse(const char *line, struct trace_row *row);

/* --- seeds: whether a task is still learned, in small cells that every seed solves -------------------------------- */

int seeds_count(void);
void seeds_name(int cell, char name[TRACE_TEXT]);

/* Finds the cell of that name; -1: there is none. */
int seeds_find(const char *name);

/* Gives the numerics version of the cell of that name; "" where there is none. */
enum status seeds_numerics(const char *name, char text[NUMERICS_TEXT], struct error *e);

/* Trains the cell with seeds first..first+n-1; nothing is written. metric[i] and *solved (which is added to) are of
 * the test split with the last weights; a run whose loss is not finite has a metric of 0. Errors: as
 * trainer_create. */
enum status seeds_run(int cell, int first, int n, double *metric, int *solved, struct error *e);

#endif

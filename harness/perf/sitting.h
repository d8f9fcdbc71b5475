/* sitting.h - a measurement of speed that says whether it was alone: warm-up until windows agree, samples, and what
 * other processes did meanwhile (docs/performance.md). */
#ifndef LRNN_HARNESS_PERF_SITTING_H
#define LRNN_HARNESS_PERF_SITTING_H

#include "harness/perf/samples.h"
#include "harness/store/machine.h"
#include "harness/store/perf_row.h"

#define SITTING_WINDOW  10   /* samples of a warm-up window */
#define SITTING_AGREE   0.01 /* three windows in a row differ by no more: warm */
#define SITTING_FOREIGN 0.03 /* share of all cores' time that others may use */
#define SITTING_SPREAD  1.3  /* 95th percentile over median */

struct sitting {
    int samples, warm_up;    /* windows until three agreed; -1: they did not before the time was over */
    double median, mad, p95; /* seconds of a sample */
    double foreign;          /* share of the cores' time that other processes used; NAN: the system does not say */
};

/* Calls `one` (its seconds are a sample) until warm, for at most 5 times `seconds` and a window, and then for `seconds`
 * and 30 times; or 5 times or more that take 5 times `seconds`; or PERF_SAMPLES times, which may take less than
 * `seconds`. Errors: those of `one`. */
enum status sitting_run(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                        double seconds, struct error *e);

/* Warm, others idle, samples together. What the system does not say is not known to be quiet. */
bool sitting_is_quiet(const struct sitting *s);

/* Whether it is to be kept rather than another one of the same thing: the quiet one, else the less disturbed. */
bool sitting_is_better(const struct sitting *s, const struct sitting *other);

/* sitting_run, and once more if that was disturbed: the better one. */
enum status sitting_run_quiet(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                              double seconds, struct error *e);

/* About how long that takes, of samples of `one` second each: on a quiet machine, and where both never get warm. */
void sitting_expect(double one, double seconds, double *least, double *most);

/* The sitting's columns of a row of perf.csv; `tokens` of a sample. */
void sitting_fill(const struct sitting *s, double tokens, struct perf_row *row);

/* The columns that say when, by which build and on which machine a sitting was that begins now, and on how many
 * threads; the precision is the program's own. */
void sitting_describe(struct perf_row *row, const struct machine *m, int threads);

/* Appends what one thread's samples of data that is made or read say to OUT/perf.csv, and the machine to machines.csv:
 * `row` has bench, pass and shape. `tokens` of a sample, NAN: they are not counted. ST_FAIL: it cannot be written. */
enum status sitting_keep(struct perf_row *row, const struct samples *all, double foreign, double tokens,
                         const char *out, struct error *e);

#endif

/* speed.h - training throughput, measured apart from training. */
#ifndef LRNN_HARNESS_PERF_SPEED_H
#define LRNN_HARNESS_PERF_SPEED_H

#include <stdbool.h>

#include "harness/study/plan.h"
#include "harness/store/logs.h"

/* Measures the training throughput of one run with `threads` threads, in a process of its own: a sitting (measure.h) of
 * so many seconds, and another one if that was disturbed; 0 seconds: the mean of a few steps. ST_FAIL: it cannot be
 * measured. */
enum status speed_measure(const struct setup *s, int threads, double seconds, struct perf_row *row, struct error *e);

/* Measures each cell of the plan alone by speed_measure, with batches made ahead, and appends a row each to
 * OUT/perf.csv. A cell that has a row of the same build and machine (logs.h) keeps it, disturbed or not, unless
 * --force asks for another. Cells that differ in their learning rate alone are measured once: their rows have one
 * sitting. */
enum status speed_measure_plan(const struct plan *plan, int threads, double seconds, bool quiet, struct error *e);

/* Counts the cells that speed_measure_plan would measure, and estimates how long that takes at so many FLOPs a second:
 * on a quiet machine, and beside other work. */
int speed_expect(const struct plan *plan, int threads, double seconds, double flops_per_s, double *least, double *most);

#endif

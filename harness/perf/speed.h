/* speed.h - training throughput, measured apart from training. */
#ifndef LRNN_HARNESS_PERF_SPEED_H
#define LRNN_HARNESS_PERF_SPEED_H

#include <stdbool.h>

#include "harness/study/plan.h"
#include "harness/store/perf_row.h"

/* Training throughput of one run with `threads` threads, in a process of its own: a sitting (measure.h) of so many
 * seconds, and another one if that was disturbed; 0: the mean of a few steps. ST_FAIL: why there is none. */
enum status speed_measure(const struct setup *s, int threads, double seconds, struct perf_row *row, struct error *e);

/* Training throughput of each cell of the plan with batches made ahead, measured alone by speed_measure; one row each
 * into OUT/perf.csv. A cell that has a row that is alike (perf_log.h) keeps it, noisy or not, unless --force asks for
 * another. Cells that differ in their learning rate alone are measured once: their rows have the sitting of one. */
enum status speed_measure_plan(const struct plan *plan, int threads, double seconds, bool quiet, struct error *e);

/* Counts the cells that speed_measure_plan would measure, and estimates how long that takes at so many FLOPs a second:
 * on a quiet machine, and beside other work. */
int speed_expect(const struct plan *plan, int threads, double seconds, double flops_per_s, double *least, double *most);

#endif

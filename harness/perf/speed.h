/* speed.h - training throughput, measured apart from training. */
#ifndef LRNN_HARNESS_SPEED_H
#define LRNN_HARNESS_SPEED_H

#include <stdbool.h>

#include "harness/plan/plan.h"
#include "harness/store/perf_row.h"

/* Training throughput of one run with `threads` threads, in a process of its own. `quiet`: a sitting (sitting.h) of a
 * second, and another one if that was disturbed; else the mean of a few steps. ST_FAIL: why there is none. */
enum status speed_measure(const struct setup *s, int threads, bool quiet, struct perf_row *row, struct error *e);

/* Training throughput of each cell of the plan, measured alone by speed_measure; one row each into OUT/perf.csv. */
enum status bench_measure_speed(const struct plan *plan, int threads, bool quiet, struct error *e);

#endif

/* speed.h - training throughput, measured apart from training. */
#ifndef LRNN_HARNESS_SPEED_H
#define LRNN_HARNESS_SPEED_H

#include <stdbool.h>

#include "harness/plan/plan.h"

/* Training throughput of each cell of the plan, measured alone with `threads` threads: at least 30 steps after a
 * warm-up; one row each into OUT/perf.csv. */
enum status bench_measure_speed(const struct plan *plan, int threads, bool quiet, struct error *e);

#endif

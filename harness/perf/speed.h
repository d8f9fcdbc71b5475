/* speed.h - training throughput, measured apart from training; and a time for training as a number of steps, which is
 * decided before the run starts. So the length of a run is a part of its identity, depends on nothing that runs beside
 * it, and can be repeated bit for bit. */
#ifndef LRNN_HARNESS_PERF_SPEED_H
#define LRNN_HARNESS_PERF_SPEED_H

#include <stdbool.h>

#include "harness/study/plan.h"
#include "harness/store/logs.h"

/* Measures the training throughput of one run with `threads` threads, in a process of its own: a sitting (measure.h) of
 * so many seconds, and another one if that was disturbed; 0 seconds: the mean of a few steps. ST_FAIL: it cannot be
 * measured. */
enum status speed_measure(struct setup *s, int threads, double seconds, struct perf_row *row, struct error *e);

/* Measures each cell of the plan alone by speed_measure and appends a row each to
 * OUT/perf.csv. A cell that has a row of the same build and machine (logs.h) keeps it, disturbed or not, unless
 * --force asks for another. Cells that differ in their learning rate alone are measured once: their rows have one
 * sitting. */
enum status speed_measure_plan(const struct plan *plan, int threads, double seconds, bool quiet, struct error *e);

/* Counts the cells that speed_measure_plan would measure, and estimates how long that takes at so many FLOPs per
 * second: on a quiet machine, and beside other work. */
int speed_expect(const struct plan *plan, int threads, double seconds, double flops_per_s, double *least, double *most);

/* --- a time as steps ---------------------------------------------------------------------------------------------- */

/* Seconds of training that a run of the plan has by its --budget and its equal share of `limit_s`, as limits_apply
 * gives them; 0: no limit. */
double limit_seconds(const struct plan *plan, const struct setup *s, double limit_s, int jobs);

/* Sets --stop-after of each run that has a time (its --budget, or its equal share of `limit_s` seconds on `jobs`
 * processes; 0: no limit) to the steps that fit; a run that is no longer than that stays as it is. The number of steps
 * stands in OUT/limits.csv for the run and the time. Otherwise the run goes as far as another run of its row of a table
 * (row_key.h), so that seeds and rates go equally far; for a row's first run a few steps are timed with `threads`
 * threads. The answer is written there, so that the same command goes on with the same runs. Only steps are counted,
 * not validation. ST_USAGE: the time is over before the first step; ST_FAIL: a run cannot be timed, or limits.csv not
 * written; 130 or 143 after a signal. */
enum status limits_apply(struct plan *plan, double limit_s, int jobs, int threads, bool quiet, struct error *e);

#endif

/* speed.h - measures training throughput separately from training; and converts a time limit to a number of steps
 * before a run starts. So the run's length is a part of its identity, does not depend on other processes, and the run
 * can be repeated bit for bit. */
#ifndef LRNN_HARNESS_PERF_SPEED_H
#define LRNN_HARNESS_PERF_SPEED_H

#include <stdbool.h>

#include "harness/study/plan.h"
#include "harness/store/logs.h"

/* Measures the training throughput of one run with `threads` threads in its own process: a sitting (measure.h) of
 * `seconds`, and a second one if the first was disturbed; seconds 0: the mean of a few steps. ST_FAIL: it cannot be
 * measured. */
enum status speed_measure(struct setup *s, int threads, double seconds, struct perf_row *row, struct error *e);

/* Measures each cell of the plan (all runs that differ only in the seed), one at a time, by speed_measure, and appends
 * a row for each to OUT/perf.csv. A cell with a row of the same build and machine (logs.h) keeps it, disturbed or not,
 * unless --force is given. Cells that differ only in their learning rate are measured once and get copies of the
 * row. */
enum status speed_measure_plan(const struct plan *plan, int threads, double seconds, bool quiet, struct error *e);

/* Counts the cells that speed_measure_plan would measure, and estimates how long that takes at that many FLOPs per
 * second: least on a quiet machine, most on a busy one. */
int speed_expect(const struct plan *plan, int threads, double seconds, double flops_per_s, double *least, double *most);

/* --- a time limit as a number of steps ---------------------------------------------------------------------------- */

/* Returns the seconds of training of a run from its --budget and its equal share of `limit_s`, as limits_apply uses
 * them; 0: no limit. */
double limit_seconds(const struct plan *plan, const struct spec *s, double limit_s, int jobs);

/* Sets --stop-after of each run with a time limit (its --budget, or its equal share of `limit_s` seconds on `jobs`
 * processes; 0: no limit) to the steps that fit into it. Shorter runs are unchanged. The number of steps is read from
 * OUT/limits.csv if the run and the time are there. Otherwise it is that of another run of the same row of a table
 * (row_key.h), so that seeds and rates get equal numbers of steps; for a row's first run a few steps are timed with
 * `threads` threads. The number is written to limits.csv, so that the same command continues the same runs. Only the
 * time of steps counts, not validation. ST_USAGE: no step fits; ST_FAIL: a run cannot be timed, or limits.csv not
 * written; 130 or 143 after a signal. */
enum status limits_apply(struct plan *plan, double limit_s, int jobs, int threads, bool quiet, struct error *e);

#endif

/* limit.h - turns a time for training into a number of steps before the run starts. So the length of a run is a part of
 * its identity, depends on nothing that runs beside it, and can be repeated bit for bit. */
#ifndef LRNN_HARNESS_PERF_LIMIT_H
#define LRNN_HARNESS_PERF_LIMIT_H

#include <stdbool.h>

#include "harness/study/plan.h"

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

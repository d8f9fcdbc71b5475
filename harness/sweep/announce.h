/* announce.h - what a sweep says before it begins: how much there is to do, and how long that takes on this machine. */
#ifndef LRNN_HARNESS_SWEEP_ANNOUNCE_H
#define LRNN_HARNESS_SWEEP_ANNOUNCE_H

#include "harness/plan/request.h"

/* Of the runs that are to be done, so many at a time at most; those on record cost nothing. */
void announce_runs(const struct plan *plan, const struct resolved *resolved, int most_at_a_time);

/* Of the speeds that bench_measure_speed would measure. */
void announce_speeds(const struct plan *plan, const char *name, const char *profile, int threads, double seconds);

#endif

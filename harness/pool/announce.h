/* announce.h - what a sweep says before it begins: how much there is to do, and how long that takes on this machine;
 * and when it has ended: where everything lies, and how to see it again. */
#ifndef LRNN_HARNESS_POOL_ANNOUNCE_H
#define LRNN_HARNESS_POOL_ANNOUNCE_H

#include "harness/study/request.h"

/* Runs that are to be done, so many at a time at most; one on record costs nothing, unless it failed and
 * `retry` does it again. No run takes longer than its time (speed.h). */
struct announced {
    const struct plan *plan;
    const struct resolved *resolved;
    const char *name; /* of the plan that they are the runs of; NULL: they are called by their task */
    bool retry;
    int most_at_a_time;
    double limit_s; /* and how many processes share it */
    int shares;
};
void announce_runs(const struct announced *a);

/* Says of runs that end within their --warmup that their rate never reaches its peak. */
void announce_warmup(const struct plan *plan);

/* Says how long the speeds take that speed_measure_plan would measure. */
void announce_speeds(const struct plan *plan, const char *name, const char *profile, int threads, double seconds);

/* Behind the last table. */
struct ended {
    const struct request *request;
    const struct resolved *resolved;
    const char *out;
    const char *protocol; /* that its table was asked for by; NULL: none */
    int64_t confirm;      /* seeds that its table is of alone; 0: all */
    const char *task;     /* of those seeds: other tasks may have too few; NULL: of several, or all seeds count */
    bool plan_table;      /* what it printed is the table of a plan, as `lrnn report --paper` prints it */
    bool plots, no_plots; /* they were drawn; nobody wants them */
};
void announce_end(const struct ended *s);

#endif

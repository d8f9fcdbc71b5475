/* announce.h - messages of a sweep. At the beginning: the number of runs, and the estimated time on this machine. At
 * the end: where the results are, and how to see them again. */
#ifndef LRNN_HARNESS_POOL_ANNOUNCE_H
#define LRNN_HARNESS_POOL_ANNOUNCE_H

#include "harness/study/request.h"

/* The runs to announce. Runs that have a record cost nothing, except failed ones with `retry`. No run takes longer than
 * its time limit (speed.h). */
struct announced {
    const struct plan *plan;
    const struct resolved *resolved;
    const char *name; /* name of their plan; NULL: the task names them */
    bool retry;
    int most_at_a_time;
    double limit_s; /* limit_s: time for all runs, 0: none; shares: processes that share it */
    int shares;
};
void announce_runs(const struct announced *a);

/* Warns of runs that end within their --warmup, whose learning rate never reaches its peak. */
void announce_warmup(const struct plan *plan);

/* Says how long speed_measure_plan will take. */
void announce_speeds(const struct plan *plan, const char *name, const char *profile, int threads, double seconds);

/* Facts for the message after the last table. */
struct ended {
    const struct request *request;
    const struct resolved *resolved;
    const char *out;
    const char *protocol; /* protocol that the user chose for the table; NULL: none */
    int64_t confirm;      /* the table reports only this number of confirming seeds; 0: all seeds */
    const char *task;     /* task of these seeds, as others may have too few; NULL: several, or confirm is 0 */
    bool plan_table;      /* the printed table is a plan's, as from `lrnn report --paper` */
    bool plots, no_plots; /* figures were drawn; figures are not wanted */
};
void announce_end(const struct ended *s);

#endif

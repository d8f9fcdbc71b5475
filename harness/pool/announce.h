/* announce.h - messages of a sweep. At the beginning: the number of runs, and the estimated time on this machine. At
 * the end: where the results are, and how to see them again. */
#ifndef LRNN_HARNESS_POOL_ANNOUNCE_H
#define LRNN_HARNESS_POOL_ANNOUNCE_H

#include "harness/study/request.h"

/* The runs to announce. Runs that have a record cost nothing, except failed ones if `retry` is set. No run takes longer
 * than its time limit (speed.h). */
struct announced {
    const struct plan *plan;
    const struct resolved *resolved;
    const char *name; /* name of their plan; NULL: the task names them */
    bool retry;
    int most_at_a_time;
    /* limit_s: time for all runs together, 0: no limit; shares: number of processes that share this time */
    double limit_s;
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
    const char *protocol; /* the protocol that the user chose for the table; NULL: none */
    int64_t confirm;      /* number of seeds that the table reports, all of which confirm; 0: it reports all seeds */
    const char *task;     /* the only task that has these seeds; NULL: several have them, or confirm is 0 */
    bool plan_table;      /* the printed table is that of a plan, as from `lrnn report --paper` */
    bool plots, no_plots; /* figures were drawn; the user does not want figures */
};
void announce_end(const struct ended *s);

#endif

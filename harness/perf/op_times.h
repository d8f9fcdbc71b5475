/* op_times.h - where the time of a training step goes: by op, beside the op's floor. */
#ifndef LRNN_HARNESS_PERF_OP_TIMES_H
#define LRNN_HARNESS_PERF_OP_TIMES_H

#include <stdbool.h>

#include "core/graph_plan.h"
#include "harness/perf/rates.h"

/* A call's best time over the steps, forward and backward. */
struct call_time {
    const struct call *call; /* NULL: never met */
    double best[2];          /* seconds, by enum pass */
};

/* Calls are met in the order of the walk. */
struct op_times {
    struct call_time *calls;
    struct op_time *ops; /* made of them when they are printed */
    int room;
    const struct call *current;
    enum pass pass;
    double since;
};

/* Looks on at the walks of both graphs from now on. p starts zeroed and outlives the walks. ST_MEMORY. */
enum status op_times_begin(struct op_times *p, struct graph *train, struct graph *update, struct error *e);
void op_times_free(struct op_times *p);

/* The ops, most time above their floor first; what a step took beyond all calls last. step: best seconds of one. */
void op_times_print(const struct op_times *p, const struct floor_rates *rates, double step, bool json);

#endif

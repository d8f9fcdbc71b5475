/* graph_plan.h - choice of kernels and the memory plan of a built graph. */
#ifndef LRNN_CORE_GRAPH_PLAN_H
#define LRNN_CORE_GRAPH_PLAN_H

#include "core/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of planned memory: bytes at offset, live from moment `first` to moment `last`. Moments count through the
 * forward walk, 0 to n - 1, then back through the n calls (graph_backward_time); -1 is before, 2n after the walks. */
struct plan_buffer {
    size_t used, bytes, offset; /* asked for; rounded up to whole units */
    int first, last;
};

/* Is called before each call of a walk, and with NULL at the walk's end: a measurement takes the time between two. */
typedef void graph_watch(void *watcher, const struct call *c, enum pass pass);

/* How a graph runs. Owned by the graph's host arena. */
struct graph_plan {
    struct plan_buffer *buffers; /* every activation, gradient, workspace and table */
    int n_buffers;
    size_t bytes;            /* memory of all buffers */
    size_t sum_bytes;        /* memory that they would take without reuse */
    char *base;              /* where they lie: in the graph's memory, or in the memory of the graph beside; NULL: the
                                graph is measured alone, and no memory is reserved */
    int first_guard_failure; /* index of the call after which a guard was found broken; -1 = none */
    graph_watch *watch;      /* NULL: none */
    void *watcher;           /* its first argument */
};

/* Returns the error of the calls if there is one. Chooses kernels, plans memory by lifetimes, reserves, binds. The
 * params must have been reserved. Errors: no kernel applies, or the forced one does not apply to a call of its op
 * (ST_USAGE, naming op and reason), out of memory. A forced kernel whose op the graph lacks is no error of the
 * graph. */
enum status graph_plan(struct graph *g, struct error *e);

/* Bytes that graph_plan would reserve; once all calls are made, before planning. */
enum status graph_measure(struct graph *g, size_t *bytes, struct error *e);

/* Most bytes that are live at one moment of a measured graph: no plan of this order of calls can take fewer. */
size_t graph_live_bytes(const struct graph *g);

/* The kernel that a call gets where none is forced: the first of the list that applies and is worth taking. NULL: none,
 * and *why says why the last one does not apply. */
const struct kernel *graph_kernel_unasked(const struct graph *g, const struct call *c, const char **why);

/* Whether the gradient of a scalar root is 1 whenever no walk runs: on a device, where graphs have memory of their own,
 * and writing it would be one launch more in each step. */
bool graph_keeps_root(const struct graph *g);

/* Tests: what a walk of a graph with guards does around each moment. Before it, poisons the buffers whose life begins
 * then (-1: before the walk, done by graph_plan); after it, checks all guards in use and notes the call `index` in
 * plan->first_guard_failure if one was broken. */
void guard_before(struct graph *g, int time);
void guard_after(struct graph *g, int time, int index);

/* The moment at which the gradient of a call is computed. */
LRNN_INLINE int graph_backward_time(const struct graph *g, int call) {
    return 2 * g->n_calls - 1 - call;
}

#ifdef __cplusplus
}
#endif
#endif

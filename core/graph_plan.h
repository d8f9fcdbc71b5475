/* graph_plan.h - choice of kernels and the memory plan of a built graph. */
#ifndef LRNN_CORE_GRAPH_PLAN_H
#define LRNN_CORE_GRAPH_PLAN_H

#include "core/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of planned memory: bytes at offset, live from moment `first` to moment `last`. Moments 0 to n - 1 are the
 * calls of the forward walk, n to 2n - 1 the calls of the backward walk (graph_backward_time). -1 is before the walks,
 * 2n after them. */
struct plan_buffer {
    size_t used, bytes, offset; /* bytes asked for; the same rounded up to whole units; place in the memory */
    int first, last;
};

/* Called before each call of a walk, and with NULL at the walk's end, so that it can time each call. */
typedef void graph_watch(void *watcher, const struct call *c, enum pass pass);

/* How a graph runs. Owned by the graph's host arena. */
struct graph_plan {
    struct plan_buffer *buffers; /* every activation, gradient, workspace and table */
    int n_buffers;
    int rounded_params;      /* index of the buffer of parameters rounded for products; -1 = none */
    size_t bytes;            /* memory of all buffers */
    size_t sum_bytes;        /* memory that they would take without reuse */
    char *base;              /* address of the buffers, in the memory of the graph or of options.beside; NULL: the graph
                                is only measured, and no memory is reserved */
    int first_guard_failure; /* index of the call after which a guard was found broken; -1 = none */
    graph_watch *watch;      /* NULL: none */
    void *watcher;           /* its first argument */
};

/* Returns the error of the calls if there is one. Else chooses kernels, plans memory by lifetimes, reserves it and
 * binds pointers. The params must have been reserved. Errors: no kernel applies, or the forced kernel does not apply to
 * a call of its op (ST_USAGE, naming op and reason); out of memory. Forcing a kernel of an op that the graph does not
 * use is no error. */
enum status graph_plan(struct graph *g, struct error *e);

/* Stores the bytes that graph_plan would reserve. Call it when all calls are made, before graph_plan. */
enum status graph_measure(struct graph *g, size_t *bytes, struct error *e);

/* The most bytes that are live at one moment of a measured graph. No plan for this order of calls can take fewer. */
size_t graph_live_bytes(const struct graph *g);

/* The kernel that a call gets if none is forced: the first of the list that is applicable and preferred. NULL if there
 * is none; then *why says why the last kernel does not apply. */
const struct kernel *graph_kernel_unasked(const struct graph *g, const struct call *c, const char **why);

/* Whether graph_plan sets the gradient of a scalar root to 1 once and no walk changes it. True on a device, where each
 * graph has its own memory and writing it again would cost one more launch in each step. */
bool graph_keeps_root(const struct graph *g);

/* For tests: a walk of a graph with guards calls these around each moment. guard_before poisons the buffers whose life
 * begins then (graph_plan calls it with -1). guard_after checks all guards in use; if one is broken for the first time,
 * it stores the call's `index` in plan->first_guard_failure. */
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

/* graph_plan.h - the plan of a built graph: which kernels compute its calls, and where its memory is. */
#ifndef LRNN_CORE_GRAPH_PLAN_H
#define LRNN_CORE_GRAPH_PLAN_H

#include "core/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of planned memory: bytes at offset, live from moment `first` to moment `last`. Moments 0 to n - 1 are the
 * calls of the forward walk, n to 2n - 1 the calls of the backward walk (graph_backward_time). -1 is before the walks,
 * 2n after them, when kernel->finish runs. */
struct plan_buffer {
    size_t used, bytes, offset; /* bytes asked for; the same, rounded up to whole units; the place in memory */
    int first, last;
};

/* A function that is called before each call of a walk, and with NULL at the walk's end, so that it can time each
 * call. */
typedef void graph_watch(void *watcher, const struct call *c, enum pass pass);

/* The plan by which a graph runs. The graph's host arena owns it. */
struct graph_plan {
    struct plan_buffer *buffers; /* every activation, gradient, workspace and table */
    int n_buffers;
    struct deferred deferred; /* the calls whose parameters get their gradients at moment 2n */
    int finish_buffer;        /* index of the buffer of their scratch; -1: none */
    int rounded_params;       /* index of the buffer of parameters that are rounded for products; -1: none */
    size_t bytes;             /* bytes of memory for all buffers */
    size_t sum_bytes;         /* bytes that they would need without reuse */
    /* address of the buffers, in the memory of the graph or of options.beside; NULL: the graph is only measured, and no
     * memory is reserved */
    char *base;
    int first_guard_failure; /* index of the call after which a broken guard was found first; -1: none */
    graph_watch *watch;      /* NULL: none */
    void *watcher;           /* its first argument */
};

/* Returns the error of the calls, if there is one. Else it chooses kernels, plans memory by lifetimes, reserves it and
 * sets pointers. params_reserve must have been called. Errors: no kernel applies; the forced kernel does not apply to a
 * call of its op (ST_USAGE, with op and reason); out of memory. It is no error to force a kernel of an op that the
 * graph does not use. */
enum status graph_plan(struct graph *g, struct error *e);

/* Computes how many bytes graph_plan would reserve. Call it after all calls are made, before graph_plan. */
enum status graph_measure(struct graph *g, size_t *bytes, struct error *e);

/* Returns the most bytes that are live at one moment of a measured graph. No plan for this order of calls needs
 * fewer. */
size_t graph_live_bytes(const struct graph *g);

/* Returns the kernel that a call gets if none is forced: the first of the list that is applicable and preferred. NULL:
 * there is none, and *why says why the last kernel does not apply. */
const struct kernel *graph_kernel_unasked(const struct graph *g, const struct call *c, const char **why);

/* Whether graph_plan sets the gradient of a scalar root to 1 once, and no walk changes it. This is so on a device,
 * where each graph has its own memory, and where writing the 1 again would cost one more launch in each step. */
bool graph_keeps_root(const struct graph *g);

/* Check guards in tests, around each moment of a walk. guard_before fills the buffers whose life begins then with a
 * pattern (graph_plan calls it with -1). guard_after checks all guards in use. If one is broken for the first time, it
 * stores the index of the call in plan->first_guard_failure. */
void guard_before(struct graph *g, int time);
void guard_after(struct graph *g, int time, int index);

/* Returns the moment at which the gradient of a call is computed. */
LRNN_INLINE int graph_backward_time(const struct graph *g, int call) {
    return 2 * g->n_calls - 1 - call;
}

#ifdef __cplusplus
}
#endif
#endif

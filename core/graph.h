/* graph.h - a graph of calls. It is built once (core/builder.h), planned once (core/graph_plan.h), and run many times
 * (core/graph_walk.h).
 *
 * graph_plan chooses a kernel for each call, places all memory by the lifetimes of values, and sets pointers. Then
 * graph_forward runs the calls in order, and graph_backward in reverse order; this is called a walk. A walk allocates
 * nothing. */
#ifndef LRNN_CORE_GRAPH_H
#define LRNN_CORE_GRAPH_H

#include "core/arena.h"
#include "core/builder.h"
#include "core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct graph_options {
    enum precision precision;  /* of the factors of products, in calls that round them */
    bool training;             /* plan a backward walk, and let dropout act */
    bool guards;               /* for tests: a guard zone after each planned buffer */
    const struct place *place; /* where it runs; NULL: the CPU. It must exist as long as the graph */
    /* force this kernel for its op, or "reference" for all ops; NULL or "": the first kernel that applies */
    const char *kernel;
    const struct kernel *const *kernels; /* list in order of preference, ended by NULL: kernel_list() */
    /* A planned graph on the CPU whose memory this graph also uses, if its own plan fits there. This is possible
     * because a walk of one graph needs nothing that a walk of the other has left. It must exist as long as this graph.
     * NULL: no sharing. */
    const struct graph *beside;
};

struct graph_plan; /* core/graph_plan.h */

struct graph {
    struct graph_options options;
    struct params *params; /* shared, not owned */
    struct error error;    /* of the first call that failed */
    struct call *calls;
    int n_calls, calls_capacity;
    struct tensor **tensors;
    int n_tensors, tensors_capacity;
    struct tensor **shown; /* by index in the list of params: the tensor of the parameter, or NULL */
    struct tensor *root;   /* where the backward walk starts */
    struct graph_builder building;
    struct graph_plan *plan; /* NULL until graph_measure or graph_plan makes it */
    struct arena host;       /* owns calls, tensors, attributes, names and the plan */
    struct arena memory;     /* one piece of memory for activations, gradients and workspace */
};

/* Creates an empty graph. params is shared and must exist as long as the graph; NULL for graphs without parameters. */
enum status graph_create(struct graph *g, const struct graph_options *options, struct params *params, struct error *e);
void graph_free(struct graph *g);

/* Appends a call of an op: copies attr and runs op->infer. Two inputs that need gradients must not be the same tensor.
 * Returns the call, with its outputs in ->out. Returns NULL after an error, or if a required input is NULL because of
 * an earlier error. Only the op's own function (scan_block(), linear(), ...) calls it, because that function's
 * parameters have types. */
struct call *graph_call(struct graph *g, const struct op *op, const void *attr, size_t attr_bytes,
                        struct tensor *const *in, int n_in);

/* For op->infer: creates the next output of the call. */
struct tensor *graph_output(struct graph *g, struct call *c, enum dtype dtype, int rank, const int64_t *dims);

LRNN_INLINE enum device graph_device(const struct graph *g) {
    return g->options.place ? g->options.place->device : DEVICE_CPU;
}

/* Returns the op's cost, corrected for what a planned call stores rounded instead of its reals, or beside them. */
struct cost call_cost(const struct call *c, enum pass pass);

/* Returns the sum of the calls' costs for one pass. */
struct cost graph_cost(const struct graph *g, enum pass pass);

#ifdef __cplusplus
}
#endif
#endif

/* graph.h - a graph of calls: built once (core/builder.h), planned once (core/graph_plan.h), walked many times
 * (core/graph_walk.h).
 *
 * graph_plan chooses a kernel for each call, lays out all memory from the lifetimes of values and binds pointers. Then
 * graph_forward walks the list of calls and graph_backward walks it in reverse. Nothing allocates while walking. */
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
    bool training;             /* plan a backward walk; dropout acts */
    bool guards;               /* tests: a guard zone after each planned buffer */
    const struct place *place; /* where it runs; NULL: the CPU. Outlives the graph */
    const char *kernel;        /* force this kernel for its op, or "reference" for all; NULL or "" = first applicable */
    const struct kernel *const *kernels; /* NULL-terminated list in order of preference: kernel_list() */
    /* A planned graph on the CPU with which this graph shares memory if its own plan fits there. They can share because
     * a walk of one needs nothing that a walk of the other left. It must outlive this graph. NULL: no sharing. */
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
    struct tensor **shown; /* by index in the list of params: the tensor that shows the parameter, or NULL */
    struct tensor *root;   /* where the backward walk starts */
    struct graph_builder building;
    struct graph_plan *plan; /* NULL until graph_measure or graph_plan makes it */
    struct arena host;       /* owns calls, tensors, attributes, names and the plan */
    struct arena memory;     /* in one piece: activations, gradients, workspace */
};

/* params may be NULL for graphs without parameters; it is shared, and outlives the graph. */
enum status graph_create(struct graph *g, const struct graph_options *options, struct params *params, struct error *e);
void graph_free(struct graph *g);

/* Calls an op: copies attr, runs op->infer. Two inputs that want gradients must not be the same tensor. Returns the
 * call (its outputs in ->out), or NULL after an error or when a required input is NULL because of an earlier error.
 * Only the op's recorder (scan_block(), linear(), ...) calls it, because the recorder's parameters are typed. */
struct call *graph_call(struct graph *g, const struct op *op, const void *attr, size_t attr_bytes,
                        struct tensor *const *in, int n_in);

/* For op->infer: creates the next output of the call. */
struct tensor *graph_output(struct graph *g, struct call *c, enum dtype dtype, int rank, const int64_t *dims);

LRNN_INLINE enum device graph_device(const struct graph *g) {
    return g->options.place ? g->options.place->device : DEVICE_CPU;
}

/* Sum of the ops' costs for one pass. */
struct cost graph_cost(const struct graph *g, enum pass pass);

#ifdef __cplusplus
}
#endif
#endif

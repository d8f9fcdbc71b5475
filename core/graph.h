/* graph.h - built once, walked many times.
 *
 * A model is built for fixed shapes: op functions (kernels/dense/dense.h, ...) append calls and return tensors; nothing
 * is computed. graph_plan chooses a kernel for each call, lays out all memory from the lifetimes and binds pointers.
 * Then graph_forward walks the list and graph_backward walks it in reverse. Nothing allocates while walking.
 *
 * Errors of calls are sticky: the first one is kept, later calls do nothing and return NULL, NULL tensors are
 * accepted and passed on; graph_plan returns the error. So mixers read like their equations. */
#ifndef LRNN_CORE_GRAPH_H
#define LRNN_CORE_GRAPH_H

#include "core/arena.h"
#include "core/links.h"
#include "core/op.h"
#include "core/params.h"

#ifdef __cplusplus
extern "C" {
#endif

struct graph_options {
    enum precision precision;  /* of products, where a call rounds their factors */
    bool training;             /* plan a backward walk; dropout acts */
    bool guards;               /* tests: a guard zone behind each planned buffer */
    const struct place *place; /* where it runs; NULL: the CPU. Outlives the graph */
    const char *kernel;        /* force this kernel for its op, or "reference" for all; NULL or "" = first applicable */
    const struct kernel *const *kernels; /* NULL-terminated list in order of preference: kernel_list() */
    /* A graph on the CPU, planned before, whose memory this one takes where its own plan fits in: a walk of either
     * leaves nothing that a later walk of the other needs. It outlives this one. NULL: memory of its own. */
    const struct graph *beside;
};

/* A piece of planned memory: bytes at offset, live from moment `first` to moment `last`. */
struct plan_buffer {
    size_t used, bytes, offset; /* asked for; rounded up to whole units */
    int first, last;
};

/* A term of the training loss beside the task's, such as a penalty on parameters. Its calls stand behind the net's:
 * until then what it is of waits here. */
struct graph_term {
    struct tensor *(*build)(struct graph *g, const struct graph_term *term); /* -> [1] */
    struct tensor *of[2];
    double weight;
    struct graph_term *next;
};

/* Told before each call of a walk, and with NULL at the walk's end: who measures takes the time between two. */
typedef void graph_watch(void *watcher, const struct call *c, enum pass pass);

struct graph {
    struct graph_options options;
    struct params *params; /* shared, not owned */
    struct error error;    /* of the first call that failed */
    struct arena host;     /* owns calls, tensors, attributes, names */
    struct arena memory;   /* in one piece: activations, gradients, workspace */
    char *base;            /* where the plan lies: in `memory`, or in that of the graph beside */
    struct call *calls;
    int n_calls, calls_capacity;
    struct tensor **tensors;
    int n_tensors, tensors_capacity;
    struct tensor **shown;    /* by place in the list of params: the tensor that shows it, or NULL */
    struct tensor *root;      /* where the backward walk starts */
    struct tensor *lengths;   /* ids (B), tokens in use of each sequence, for the calls to come; NULL: all are */
    const int32_t *row_first; /* row r is in use if row_first[r] < lengths[b]; NULL: row r is token r */
    struct links links;       /* between the positions of each sequence, for the calls to come; no words: none yet */
    int layer, layers;        /* of the net that is being built: the one at hand, from 0, and how many; 0: no net */
    double linear_sd;         /* of the normal draws that linear maps start from; 0: the framework's uniform default */
    struct graph_term *terms; /* kept while a net is built; training graphs only */
    char scope[128];          /* prefix of parameter names being declared */
    size_t scope_ends[16];    /* its length before each push */
    int scope_depth;
    struct plan_buffer *buffers;
    int n_buffers;
    size_t planned_bytes;    /* of that memory */
    size_t sum_bytes;        /* what it would be without reuse */
    bool adds;               /* gradients of parameters: graph_add_gradients */
    int first_guard_failure; /* index of the call after which a guard was found broken; -1 = none */
    graph_watch *watch;      /* NULL: nobody looks on */
    void *watcher;           /* for it */
};

/* params may be NULL for graphs without parameters; it is shared, and outlives the graph. */
enum status graph_create(struct graph *g, const struct graph_options *options, struct params *params, struct error *e);
void graph_free(struct graph *g);

/* --- building ------------------------------------------------------------------------------------------------ */

/* An input the caller fills after planning through ->data. With needs_grad its gradient stays readable in ->grad.
 * dims are copied. */
struct tensor *graph_input(struct graph *g, const char *name, int rank, const int64_t *dims, bool needs_grad);

/* An int32 input whose values lie in [0, limit), or also equal -100 ("ignored") if `ignorable`. */
struct tensor *graph_input_ids(struct graph *g, const char *name, int rank, const int64_t *dims, int32_t limit,
                               bool ignorable);

/* The parameter scope + spec->name: declared in the graph's params, shown as a tensor of the contract's dims. */
struct tensor *graph_param(struct graph *g, const struct param_spec *spec);

/* Appends "name." to the scope; graph_scope_pop undoes the last push, dots within the name or not. */
void graph_scope_push(struct graph *g, const char *name);
void graph_scope_pop(struct graph *g);

/* Calls an op: copies attr, runs op->infer. Two inputs that want gradients must not be the same tensor. Returns the
 * call (its outputs in ->out), or NULL after an error or when a required input is NULL because of an earlier error. */
struct call *graph_call(struct graph *g, const struct op *op, const void *attr, size_t attr_bytes,
                        struct tensor *const *in, int n_in);

/* For op->infer: creates the next output of the call. */
struct tensor *graph_output(struct graph *g, struct call *c, enum dtype dtype, int rank, const int64_t *dims);

/* Another shape on the same memory and gradient; the counts must agree. */
struct tensor *graph_reshape(struct graph *g, struct tensor *t, int rank, const int64_t *dims);

/* Keeps a copy of a term behind those kept before; does nothing in an evaluation graph. */
void graph_keep_term(struct graph *g, const struct graph_term *term);

/* The backward walk starts at t: its gradient is what the caller puts into t->grad (graph_backward), or 1 when t has
 * one element (a loss). Keeps t. */
void graph_set_root(struct graph *g, struct tensor *t);

/* Keeps the first error; later ones are ignored. */
void graph_fail(struct graph *g, enum status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* --- looking at it ------------------------------------------------------------------------------------------------ */

/* When the gradient of a call is computed: moments count through the forward walk, then back through the calls. */
LRNN_INLINE int graph_backward_time(const struct graph *g, int call) {
    return 2 * g->n_calls - 1 - call;
}

LRNN_INLINE enum device graph_device(const struct graph *g) {
    return g->options.place ? g->options.place->device : DEVICE_CPU;
}

/* Sum of the ops' costs for one pass. */
struct cost graph_cost(const struct graph *g, enum pass pass);

#ifdef __cplusplus
}
#endif
#endif

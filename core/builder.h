/* builder.h - building a graph: what models, and the recorders of ops, call.
 *
 * A model is built for fixed shapes. Recorders (kernels/dense/dense.h, ...) append calls of ops and return tensors;
 * nothing is computed. The graph that comes out is core/graph.h's business: here it is opaque.
 *
 * Errors are sticky: the first one is kept, later calls do nothing and return NULL, NULL tensors are accepted and
 * passed on, and graph_plan returns the error. So mixers read like their equations. */
#ifndef LRNN_CORE_BUILDER_H
#define LRNN_CORE_BUILDER_H

#include "core/links.h"
#include "core/params.h"

#ifdef __cplusplus
extern "C" {
#endif

struct graph;

/* --- tensors and parameters --------------------------------------------------------------------------------------- */

/* An input that the caller fills through ->data after planning. With needs_grad its gradient stays readable in ->grad.
 * dims are copied. */
struct tensor *graph_input(struct graph *g, const char *name, int rank, const int64_t *dims, bool needs_grad);

/* An int32 input whose values lie in [0, limit), or also equal IGNORED if `ignorable`. */
struct tensor *graph_input_ids(struct graph *g, const char *name, int rank, const int64_t *dims, int32_t limit,
                               bool ignorable);

/* The parameter scope + spec->name: declared in the graph's params, shown as a tensor of the contract's dims. */
struct tensor *graph_param(struct graph *g, const struct param_spec *spec);

/* Appends "name." to the scope; graph_scope_pop undoes the last push, also of a name that contains dots. */
void graph_scope_push(struct graph *g, const char *name);
void graph_scope_pop(struct graph *g);

/* Another shape on the same memory and gradient; the counts must agree. */
struct tensor *graph_reshape(struct graph *g, struct tensor *t, int rank, const int64_t *dims);

/* The backward walk starts at t: its gradient is what the caller puts into t->grad (graph_backward), or 1 when t has
 * one element (a loss). Keeps t. */
void graph_set_root(struct graph *g, struct tensor *t);

/* Memory that lives as long as the graph, for numbers that a call reads when it runs. NULL after an error, and when
 * there is no room, which is an error. */
void *graph_alloc(struct graph *g, size_t bytes);

/* Keeps the first error; later ones are ignored. */
void graph_fail(struct graph *g, enum status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The error that is kept; ST_OK: none. */
enum status graph_status(const struct graph *g, struct error *e);

/* --- the net at hand ---------------------------------------------------------------------------------------------- */

/* A term of the training loss beside the task's, such as a penalty on parameters. Its calls follow all calls of the
 * net, so its operands wait here. */
struct graph_term {
    struct tensor *(*build)(struct graph *g, const struct graph_term *term); /* -> [1] */
    struct tensor *of[2];
    double weight;
    struct graph_term *next;
};

/* x (B,T,D) = the rows `ids` (B,T) of `table` (V,D). */
struct lookup {
    struct tensor *x, *ids, *table;
};

/* The facts about the net that is being declared now. The net and its layers write them (models/net.c,
 * models/backbone.c); a mixer reads what concerns it. Everything is zero in a graph without a net. */
struct graph_builder {
    char scope[128];       /* prefix of parameter names */
    size_t scope_ends[16]; /* its length before each push */
    int scope_depth;

    int layer, layers; /* the layer at hand, from 0, and how many the net has; layers 0: no net */
    bool backwards;    /* the mixer at hand reads the reversed sequence, beside another that reads it forwards */
    double linear_sd;  /* linear maps start from N(0, linear_sd^2); 0: from the framework's uniform default */

    struct tensor *lengths;   /* ids (B): tokens in use of each sequence; NULL: all are */
    const int32_t *row_first; /* row r is in use if row_first[r] < lengths[b]; NULL: row r is token r */
    struct links links;       /* between the positions of each sequence; no words: none are made yet */
    struct lookup embedded;   /* the vectors of the tokens, which some nets hand to the first layer as they are; x NULL:
                                 the input has no tokens */

    struct tensor
        *first_values[2]; /* (B,T,D) of the first layer, which later layers mix in: read forwards, backwards */

    struct graph_term *terms; /* in the order kept; training graphs only */
};
struct graph_builder *graph_builder(struct graph *g);

/* Keeps a copy of a term after those kept before; does nothing in an evaluation graph. */
void graph_keep_term(struct graph *g, const struct graph_term *term);

#ifdef __cplusplus
}
#endif
#endif

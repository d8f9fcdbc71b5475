/* builder.h - the functions with which models and the recorders of ops build a graph.
 *
 * A model is built for fixed shapes. Recorders (kernels/dense/dense.h, ...) append calls of ops and return tensors;
 * nothing is computed. struct graph is opaque here; core/graph.h defines it.
 *
 * Errors are sticky. The graph keeps the first one; later calls do nothing and return NULL, NULL tensors are accepted
 * and passed on, and graph_plan returns the error. So mixers read like their equations. */
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

/* Declares the parameter named scope + spec->name in the graph's params, and returns a tensor of the contract's dims
 * that shows it. */
struct tensor *graph_param(struct graph *g, const struct param_spec *spec);

/* Appends "name." to the scope. graph_scope_pop undoes the last push, even if its name contains dots. */
void graph_scope_push(struct graph *g, const char *name);
void graph_scope_pop(struct graph *g);

/* A view of t in another shape, with the same memory and gradient. The number of elements must be equal. */
struct tensor *graph_reshape(struct graph *g, struct tensor *t, int rank, const int64_t *dims);

/* Makes t the tensor where the backward walk starts. Its gradient is 1 if t has one element (a loss); else the caller
 * writes it into t->grad before graph_backward. Keeps t readable. */
void graph_set_root(struct graph *g, struct tensor *t);

/* Memory that lives as long as the graph, for numbers that a call reads when it runs. NULL after an error; lack of room
 * is an error. */
void *graph_alloc(struct graph *g, size_t bytes);

/* Keeps the first error; later ones are ignored. */
void graph_fail(struct graph *g, enum status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The first error; ST_OK if there is none. */
enum status graph_status(const struct graph *g, struct error *e);

/* --- the current net ---------------------------------------------------------------------------------------------- */

/* A term that is added to the task's training loss, such as a penalty on parameters. Its calls come after all calls of
 * the net, so this struct keeps its operands until then. */
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

/* Facts about the net that is being built, for its mixers. The net and its layers write them (models/net.c,
 * models/backbone.c). Everything is zero in a graph without a net. */
struct graph_builder {
    char scope[128];       /* prefix of parameter names */
    size_t scope_ends[16]; /* its length before each push */
    int scope_depth;

    int layer, layers; /* the current layer, from 0, and the number of layers of the net; layers 0: no net */
    bool backwards;    /* the current mixer reads the reversed sequence; its layer has another that reads forwards */
    double linear_sd;  /* linear maps start from N(0, linear_sd^2); 0: from the framework's uniform default */

    struct tensor *lengths;   /* ids (B): tokens in use of each sequence; NULL: all are */
    const int32_t *row_first; /* row r is in use if row_first[r] < lengths[b]; NULL: row r is token r */
    struct links links;       /* between the positions of each sequence; words NULL: not made yet */
    struct lookup embedded;   /* the vectors of the tokens, which some nets give to the first layer unchanged; x NULL:
                                 the input has no tokens */

    struct tensor
        *first_values[2]; /* (B,T,D) of the first layer, which later layers mix in: read forwards, backwards */

    struct graph_term *terms; /* in the order kept; training graphs only */
};
struct graph_builder *graph_builder(struct graph *g);

/* Appends a copy of the term to the list of terms; does nothing in an evaluation graph. */
void graph_keep_term(struct graph *g, const struct graph_term *term);

#ifdef __cplusplus
}
#endif
#endif

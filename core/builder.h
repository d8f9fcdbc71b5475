/* builder.h - the functions with which models build a graph, and also the functions that record calls of ops.
 *
 * A model is built for fixed shapes. Functions such as linear() (kernels/dense/dense.h) append a call of an op and
 * return its output; nothing is computed. struct graph is opaque here; core/graph.h defines it.
 *
 * A graph keeps its first error. After it, all calls do nothing and return NULL; NULL tensors are accepted and passed
 * on; graph_plan returns the error. So mixers need no checks and read like their equations. */
#ifndef LRNN_CORE_BUILDER_H
#define LRNN_CORE_BUILDER_H

#include "core/links.h"
#include "core/params.h"

#ifdef __cplusplus
extern "C" {
#endif

struct graph;

/* --- tensors and parameters --------------------------------------------------------------------------------------- */

/* Creates an input that the caller fills through ->data after planning. With needs_grad, its gradient can be read in
 * ->grad after a backward pass. dims are copied. */
struct tensor *graph_input(struct graph *g, const char *name, int rank, const int64_t *dims, bool needs_grad);

/* Creates an int32 input whose values are in [0, limit), or IGNORED if `ignorable`. */
struct tensor *graph_input_ids(struct graph *g, const char *name, int rank, const int64_t *dims, int32_t limit,
                               bool ignorable);

/* Declares the parameter with the name scope + spec->name in the graph's params. Returns a tensor for it, with the dims
 * of its contract (core/params.h). */
struct tensor *graph_param(struct graph *g, const struct param_spec *spec);

/* Appends "name." to the scope. graph_scope_pop undoes the last push, even if that name contains dots. */
void graph_scope_push(struct graph *g, const char *name);
void graph_scope_pop(struct graph *g);

/* Returns a view of t in another shape, with the same memory and gradient. The number of elements must be the same. */
struct tensor *graph_reshape(struct graph *g, struct tensor *t, int rank, const int64_t *dims);

/* Makes t the tensor where the backward pass starts, and keeps t readable. If t has one element (a loss), its gradient
 * is 1; else the caller writes it into t->grad before graph_backward. */
void graph_set_root(struct graph *g, struct tensor *t);

/* Returns memory that exists as long as the graph, for numbers that a call reads when it runs. NULL after an error;
 * lack of room is an error. */
void *graph_alloc(struct graph *g, size_t bytes);

/* Stores the error if it is the graph's first one. */
void graph_fail(struct graph *g, enum status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Returns the first error; ST_OK if there is none. */
enum status graph_status(const struct graph *g, struct error *e);

/* --- the current net ---------------------------------------------------------------------------------------------- */

/* A term that is added to the task's training loss, such as a penalty on parameters. Its calls come after all calls of
 * the net. Until then, this struct keeps its operands. */
struct graph_term {
    struct tensor *(*build)(struct graph *g, const struct graph_term *term); /* returns a tensor [1] */
    struct tensor *of[2];
    double weight;
    struct graph_term *next;
};

/* x (B,T,D) = the rows `ids` (B,T) of `table` (V,D). */
struct lookup {
    struct tensor *x, *ids, *table;
};

/* Facts about the net that is being built. The net and its layers write them (models/net.c, models/backbone.c), and
 * mixers read them. All are zero in a graph without a net. */
struct graph_builder {
    char scope[128];       /* prefix of parameter names */
    size_t scope_ends[16]; /* length of `scope` before each push */
    int scope_depth;

    /* layer: index of the current layer, from 0; layers: number of layers of the net, 0 if there is no net */
    int layer, layers;
    /* the current mixer reads the sequence reversed; its layer has another mixer that reads it forwards */
    bool backwards;
    /* linear maps start from N(0, linear_sd^2); 0: from the uniform distribution that is the framework's default */
    double linear_sd;

    struct tensor *lengths;   /* ids (B): number of tokens in use in each sequence; NULL: all are in use */
    int64_t rows_before;      /* rows before the first token, which are all in use: a class token */
    const int32_t *row_first; /* row r is in use if row_first[r] < lengths[b]; NULL: row r is token r */
    struct links links;       /* links between the positions of each sequence; words NULL: not made yet */
    /* the vectors of the tokens, which some nets give to the first layer unchanged; x NULL: the input has no tokens */
    struct lookup embedded;

    struct tensor
        *first_values[2]; /* (B,T,D) of the first layer, which later layers mix in: read forwards, backwards */

    struct graph_term *terms; /* in the order in which they were kept; only in training graphs */
};
struct graph_builder *graph_builder(struct graph *g);

/* Appends a copy of the term to the list of terms; does nothing in an evaluation graph. */
void graph_keep_term(struct graph *g, const struct graph_term *term);

#ifdef __cplusplus
}
#endif
#endif

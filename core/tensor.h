/* tensor.h - shapes and borrowed memory. A tensor never owns its memory; arenas do. Elements are row-major: the last
 * index varies fastest. */
#ifndef LRNN_CORE_TENSOR_H
#define LRNN_CORE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/real.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TENSOR_MAX_RANK 5

enum dtype { DT_REAL, DT_I32 };

struct param;

/* The planner's notes on a tensor (core/graph_plan.h). */
struct tensor_plan {
    bool has_grad, written; /* a gradient is wanted here; a call has written it */
    /* the moment at which the value is read last; at which the gradient is written first */
    int value_last, grad_first;
    int factor_last;               /* the moment at which its rounded copy is read last */
    int value_buffer, grad_buffer; /* index of the buffer; -1: none */
    int factor_buffer, grad_factor_buffer;
    int grad_writers; /* number of active calls that write the gradient */
    int readers;      /* number of inputs of calls that it is */
};

struct tensor {
    const char *name; /* for messages: "tokens", "layers.0.mixer.gates.weight", "scan_block.h" */
    enum dtype dtype;
    int rank; /* 1..TENSOR_MAX_RANK */
    int64_t dims[TENSOR_MAX_RANK];
    bool needs_grad;     /* it depends on a parameter, or on an input that needs a gradient */
    bool keep;           /* value and gradient can be read after the walk (inputs, outputs) */
    void *data;          /* real * or int32_t *; graph_plan sets it */
    real *grad;          /* NULL if no gradient is wanted; graph_plan sets it */
    struct tensor *base; /* for a view, the tensor whose memory and gradient it shares; else NULL */
    struct param *param; /* the parameter whose values it has, or NULL */
    int producer;        /* index of the call that writes it; -1 for inputs and parameters */
    int id;              /* index in the graph's list of tensors */
    int32_t limit;       /* ids are in [0, limit) */
    bool ignorable;      /* ids may also be -100 */
    /* True if only products read the value (or the gradient), and as a factor. Then its producer (or the one call that
     * writes the gradient) stores it rounded to the precision of these products (graph_plan.c). A parameter keeps its
     * value; `factor` is then a copy that the first product of a forward walk rounds. What is stored rounded has
     * precision_bytes (op.h) per number: `data` and `grad` may point to numbers of 16 bits. */
    bool rounded, grad_rounded;
    /* True if products read the value (or the gradient) as a factor, and other calls read it unrounded. Then its
     * producer (or the one call that writes the gradient) also stores it rounded in `factor` (or `grad_factor`). */
    bool copied, grad_copied;
    void *factor, *grad_factor; /* NULL: there is no rounded copy */
    /* Elements from one row to the next, in value and gradient, if the rows of another tensor follow its rows (struct
     * call, joined). 0: rows have no gaps. */
    int64_t pitch;
    struct tensor_plan plan;
};

LRNN_INLINE int64_t tensor_count(const struct tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->dims[i];
    return n;
}

/* These see a tensor as a matrix: the last axis is the columns, all other axes together are the rows. */
LRNN_INLINE int64_t tensor_cols(const struct tensor *t) {
    return t->dims[t->rank - 1];
}

LRNN_INLINE int64_t tensor_rows(const struct tensor *t) {
    return tensor_count(t) / tensor_cols(t);
}

/* Returns the number of elements from one row to the next in memory. */
LRNN_INLINE int64_t tensor_pitch(const struct tensor *t) {
    return t->pitch ? t->pitch : tensor_cols(t);
}

LRNN_INLINE struct tensor *tensor_base(struct tensor *t) {
    while (t->base) t = t->base;
    return t;
}

/* Lets the value (and gradient) be read after a walk of its graph. t may be NULL, after an error of the graph. */
LRNN_INLINE void tensor_keep(struct tensor *t) {
    if (t) tensor_base(t)->keep = true;
}

LRNN_INLINE size_t tensor_bytes(const struct tensor *t) {
    return (size_t)tensor_count(t) * (t->dtype == DT_I32 ? sizeof(int32_t) : sizeof(real));
}

LRNN_INLINE real *tensor_real(const struct tensor *t) {
    return (real *)t->data;
}

LRNN_INLINE int32_t *tensor_i32(const struct tensor *t) {
    return (int32_t *)t->data;
}

#ifdef __cplusplus
}
#endif
#endif

/* norm.h - normalisations over a row, a head, a batch, shares of a row, and the norm of whole tensors. Shapes as in
 * kernels/kernel.h. */
#ifndef LRNN_KERNELS_NORM_NORM_H
#define LRNN_KERNELS_NORM_NORM_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/norm/list.def"

/* RMSNorm over the last axis: y = x * rsqrt(mean(x^2) + eps) * w, w [D]. */
struct tensor *rmsnorm(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* LayerNorm over the last axis, biased variance: y = (x - mean) * rsqrt(var + eps) * w + b, w [D], b [D]. */
struct tensor *layernorm(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b, double eps);

/* RMSNorm (b NULL) or LayerNorm of a residual sum: y = norm(x + branch); *sum = x + branch. x and branch of one shape,
 * w [D], b [D]. */
struct tensor *add_norm(struct graph *g, struct tensor *x, struct tensor *branch, struct tensor *w, struct tensor *b,
                        double eps, struct tensor **sum);

/* y = x * rsqrt(sum x^2 + eps) over the last axis; a head is a row of x (...,H,dk). */
struct tensor *l2norm(struct graph *g, struct tensor *x, double eps);

/* RMSNorm of each head: x (rows,H*width), w [H][width] -> y as x. */
struct tensor *rmsnorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* LayerNorm of each head, biased variance, the weight stored as its difference from 1: y = (x - mean) * rsqrt(var +
 * eps) * (1 + w); shapes as rmsnorm_heads. */
struct tensor *layernorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* Batch normalisation of x (B,T,D) over the rows in use: row t of sequence b is in use if first[t] < lengths[b]
 * (first NULL: t < lengths[b]; lengths NULL: all are). Training graphs use the batch's mean and biased variance and
 * move the running ones, running <- momentum running + (1 - momentum) batch; evaluation graphs use the running ones.
 * All vectors [D]; mean and variance are parameters of the group PARAM_CONST that forward writes. `first` [T] lives
 * as long as the graph. */
struct batch_norm {
    struct tensor *weight, *bias, *mean, *variance, *lengths;
    const int32_t *first;
    double eps, momentum;
};
struct tensor *batch_norm(struct graph *g, struct tensor *x, const struct batch_norm *p);

/* y_i = exp(x_i) / sum_j exp(x_j) over the last axis: rows of shares that add up to 1. */
struct tensor *softmax(struct graph *g, struct tensor *x);

/* y [1] = sqrt(sum x^2 + sum z^2) of whole tensors; z may be NULL. The gradient is 0 where y is 0. */
struct tensor *frobenius(struct graph *g, struct tensor *x, struct tensor *z);

/* --- attributes of a call, for its twins -------------------------------------------------------------------------- */

struct norm_attr {
    double eps;
};

LRNN_INLINE const struct norm_attr *norm_attr(const struct call *c) {
    return (const struct norm_attr *)c->attr;
}

/* The rows that are normed. Inputs of rmsnorm, layernorm and add_norm: x, w, b or NULL, branch or NULL. Outputs: y and,
 * if there is a branch, the sum. */
LRNN_INLINE const real *normed_rows(const struct call *c) {
    return tensor_real(c->in[3] ? c->out[1] : c->in[0]);
}

/* Gradient of the sum from its other readers; NULL: it has none. */
LRNN_INLINE const real *sum_dout(const struct call *c) {
    return c->in[3] ? call_dout(c, 1) : NULL;
}

struct batch_norm_attr {
    double eps, momentum;
    const int32_t *first;
};

LRNN_INLINE const struct batch_norm_attr *batch_norm_attr(const struct call *c) {
    return (const struct batch_norm_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif

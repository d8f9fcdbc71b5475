/* norm.h - normalisations over a row, a head or a batch, softmax, and the norm of whole tensors. Shapes as in
 * kernels/kernel.h. */
#ifndef LRNN_KERNELS_NORM_NORM_H
#define LRNN_KERNELS_NORM_NORM_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/norm/list.def"

/* RMSNorm over the last axis: y = x * rsqrt(mean(x^2) + eps) * w, with w [D]. */
struct tensor *rmsnorm(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* LayerNorm over the last axis, with the biased variance: y = (x - mean) * rsqrt(var + eps) * w + b; w [D], b [D]. */
struct tensor *layernorm(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b, double eps);

/* RMSNorm (b NULL) or LayerNorm of a residual sum: y = norm(x + branch), *sum = x + branch. x and branch have the same
 * shape; w [D], b [D]. */
struct tensor *add_norm(struct graph *g, struct tensor *x, struct tensor *branch, struct tensor *w, struct tensor *b,
                        double eps, struct tensor **sum);

/* y = x * rsqrt(sum x^2 + eps) over the last axis; a head is a row of x (...,H,dk). */
struct tensor *l2norm(struct graph *g, struct tensor *x, double eps);

/* RMSNorm of each head: x (rows,H*width), w [H][width] -> y as x. */
struct tensor *rmsnorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* LayerNorm of each head, with the biased variance. The weight is stored as its difference from 1: y = (x - mean) *
 * rsqrt(var + eps) * (1 + w). Shapes as in rmsnorm_heads. */
struct tensor *layernorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps);

/* Batch normalisation of x (B,T,D) over the rows in use. Row t of sequence b is in use if first[t] < lengths[b]; first
 * NULL: if t < lengths[b]; lengths NULL: all are. Training graphs use the batch's mean and biased variance, and update
 * running <- momentum running + (1 - momentum) batch. Evaluation graphs use the running values. All vectors are [D];
 * mean and variance are parameters of the group PARAM_CONST, which forward writes. `first` [T] must exist as long as
 * the graph. */
struct batch_norm {
    struct tensor *weight, *bias, *mean, *variance, *lengths;
    const int32_t *first;
    double eps, momentum;
};
struct tensor *batch_norm(struct graph *g, struct tensor *x, const struct batch_norm *p);

/* y_i = exp(x_i) / sum_j exp(x_j) over the last axis, so that each row sums to 1. */
struct tensor *softmax(struct graph *g, struct tensor *x);

/* y [1] = sqrt(sum x^2 + sum z^2) of whole tensors; z may be NULL. The gradient is 0 where y is 0. */
struct tensor *frobenius(struct graph *g, struct tensor *x, struct tensor *z);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

struct norm_attr {
    double eps;
};

LRNN_INLINE const struct norm_attr *norm_attr(const struct call *c) {
    return (const struct norm_attr *)c->attr;
}

/* Returns the rows to be normalised. The inputs of rmsnorm, layernorm and add_norm are x, w, b or NULL, branch or NULL;
 * the outputs are y and, if there is a branch, the sum. */
LRNN_INLINE const real *normed_rows(const struct call *c) {
    return tensor_real(c->in[3] ? c->out[1] : c->in[0]);
}

/* Returns the gradient that the sum gets from its other readers; NULL: it has none. */
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

/* dense.h - linear maps, elementwise ops, dropout and embedding. Shapes as in kernels/kernel.h. */
#ifndef LRNN_KERNELS_DENSE_DENSE_H
#define LRNN_KERNELS_DENSE_DENSE_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/dense/list.def"

/* y = x W^T + b: x (rows,I), w [O][I], b [O] or NULL -> y (rows,O), with the leading axes of x. */
struct tensor *linear(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

/* Block-diagonal linear map with N blocks of size m: y[k*m+i] = sum_j w[k*m+i][j] x[k*m+j]. x (rows,N*m) -> y as x. w
 * [N*m][m] is stored with the input j before the output i: element (k*m+j)*m + i (struct layout {3, {N, m, m}, {0, 2,
 * 1}}). */
struct tensor *linear_blocks(struct graph *g, struct tensor *x, struct tensor *w);

/* Each output reads its own slice of x: y[r][j] = sum_c w[j][c] x[r][j*m+c]. x (rows,J*m), w [J][m] -> y (rows,J), with
 * the leading axes of x. */
struct tensor *linear_slices(struct graph *g, struct tensor *x, struct tensor *w);

/* y[r][c] = x[r][c] + b[c]: x (rows,C), b [C]. */
struct tensor *bias(struct graph *g, struct tensor *x, struct tensor *b);

/* y[r][c] = x[r][c] * s[c]: x (rows,C), s [C]. */
struct tensor *scale(struct graph *g, struct tensor *x, struct tensor *s);

/* y[b][t][c] = p[c]: repeats p [C] over B x T rows. For gates that do not depend on the input. */
struct tensor *repeat_rows(struct graph *g, struct tensor *p, int64_t B, int64_t T);

/* y = a + b, same shape. */
struct tensor *add(struct graph *g, struct tensor *a, struct tensor *b);

/* y = a - b, same shape. */
struct tensor *sub(struct graph *g, struct tensor *a, struct tensor *b);

/* y = a * b elementwise, same shape. */
struct tensor *mul(struct graph *g, struct tensor *a, struct tensor *b);

/* y = factor * x. */
struct tensor *scale_by(struct graph *g, struct tensor *x, double factor);

/* y = factor * x + offset: the op of scale_by. */
struct tensor *scale_shift(struct graph *g, struct tensor *x, double factor, double offset);

enum activation {
    ACT_RELU,
    ACT_SIGMOID,
    ACT_TANH,
    ACT_SILU,
    ACT_GELU_TANH,
    ACT_GELU_ERF,
    ACT_SOFTPLUS,
    ACT_EXP,
    ACT_NEG,
    ACT_SIN,
    ACT_COS,
    ACT_POSITIVE, /* x + 1/2 for x >= 0, else sigmoid(x): always positive (minGRU, arXiv 2410.01201, App. B) */
    ACT_HEAVY,    /* 1 + x for x >= 0, else 1 / (1 - x): always positive, with a heavy tail (Mamba-3) */
    ACT_REST,     /* sqrt(1 - e^-|x|), where the slope of the root is limited to 1000 (RG-LRU, arXiv 2402.19427) */
    ACT_COUNT
};
extern const char *const activation_names[ACT_COUNT]; /* "relu", "sigmoid", ... */

/* y = f(x) elementwise. */
struct tensor *activate(struct graph *g, struct tensor *x, enum activation f);

/* y = silu(a) * b elementwise, same shape: the product of SwiGLU in one pass over memory. */
struct tensor *silu_mul(struct graph *g, struct tensor *a, struct tensor *b);

/* Inverted dropout: y = x * keep/(1-p). keep is drawn again in each pass, from (seed, step, call->stream, element). In
 * evaluation graphs and for p == 0 it returns x itself. */
struct tensor *dropout(struct graph *g, struct tensor *x, double p);

/* y[r] = table[ids[r]]: ids (B,T) in [0,V), table [V][D] -> (B,T,D). */
struct tensor *embedding(struct graph *g, struct tensor *ids, struct tensor *table);

/* Turns the continuous complex system h' = lambda h + u into time steps h_t = a h_{t-1} + b u_t: re, im, step [N] ->
 * out = (a.re, a.im, b.re, b.im), each [N]. With z = lambda step, zero-order hold gives a = e^z, b = step (e^z - 1) /
 * z; bilinear gives a = (1 + z/2) / (1 - z/2), b = step / (1 - z/2). lambda may be 0. With `clip`, a real part above
 * DISCRETISE_MOST is replaced by it and has no gradient. S5 (Smith et al. 2022, arXiv 2208.04933). */
enum discretisation { DISCRETISE_ZOH, DISCRETISE_BILINEAR };
enum { DISCRETISE_OUTPUTS = 4 };
#define DISCRETISE_MOST (-1e-4)

struct discretise_attr {
    enum discretisation form;
    bool clip;
};

LRNN_INLINE const struct discretise_attr *discretise_attr(const struct call *c) {
    return (const struct discretise_attr *)c->attr;
}
void discretise(struct graph *g, struct tensor *re, struct tensor *im, struct tensor *step,
                const struct discretise_attr *attr, struct tensor *out[DISCRETISE_OUTPUTS]);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

struct repeat_rows_attr {
    int64_t B, T;
};

LRNN_INLINE const struct repeat_rows_attr *repeat_rows_attr(const struct call *c) {
    return (const struct repeat_rows_attr *)c->attr;
}

struct scale_by_attr {
    double factor, offset;
};

LRNN_INLINE const struct scale_by_attr *scale_by_attr(const struct call *c) {
    return (const struct scale_by_attr *)c->attr;
}

struct activate_attr {
    enum activation f;
};

LRNN_INLINE const struct activate_attr *activate_attr(const struct call *c) {
    return (const struct activate_attr *)c->attr;
}

struct dropout_attr {
    double p; /* chance that an element is dropped, 0 < p < 1 */
};

LRNN_INLINE const struct dropout_attr *dropout_attr(const struct call *c) {
    return (const struct dropout_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif

/* token.h - ops between the tokens of a sequence: convolution, attention and its positions. Shapes as in
 * kernels/kernel.h. */
#ifndef LRNN_KERNELS_TOKEN_TOKEN_H
#define LRNN_KERNELS_TOKEN_TOKEN_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/token/list.def"

/* Causal depthwise convolution: y_t[c] = b[c] + sum_{j<m} w[c][j] x_{t-m+1+j}[c], zeros before the start.
 * x (B,T,C), w [C][m] stored tap-major (element j*C + c: struct layout {2, {C, m}, {1, 0}}), b [C] or NULL ->
 * (B,T,C). */
struct tensor *conv_depthwise(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

/* Rotary positions (Su et al. 2021): x (B,T,C) holds `heads` heads of dk columns first, dk even; of each, the pair
 * (i, i + dk/2) turns by t * base^(-2i/dk). Columns from heads * dk on are copied. */
struct tensor *rope(struct graph *g, struct tensor *x, int64_t heads, int64_t dk, double base);

/* Causal softmax attention: qkv (B,T,3D), columns (q, k, v), each of `heads` heads of dk = D / heads columns ->
 * y (B,T,D): y_t = sum_{s<=t} softmax_s(q_t . k_s / sqrt(dk)) v_s per head. */
struct tensor *softmax_attention(struct graph *g, struct tensor *qkv, int64_t heads);

/* Attention over all keys of a sequence, s < n: every query sees what lies before and after it. `lengths`: ids (B), the
 * tokens n in use of each sequence, or NULL: all; y = 0 where there is none. */
struct tensor *softmax_attention_all(struct graph *g, struct tensor *qkv, struct tensor *lengths, int64_t heads);

/* --- attributes: what a call keeps for its twins ------------------------------------------------------------------ */

struct rope_attr {
    int64_t heads, dk;
    double base;
};

LRNN_INLINE const struct rope_attr *rope_attr(const struct call *c) {
    return (const struct rope_attr *)c->attr;
}

struct attention_attr {
    int64_t heads;
    bool causal;
};

LRNN_INLINE const struct attention_attr *attention_attr(const struct call *c) {
    return (const struct attention_attr *)c->attr;
}

/* Keys that query t of sequence b sees: the first so many. */
LRNN_INLINE int64_t attention_keys(const struct call *c, int64_t b, int64_t t) {
    if (attention_attr(c)->causal) return t + 1;
    return c->in[1] ? tensor_i32(c->in[1])[b] : c->in[0]->dims[1];
}

#ifdef __cplusplus
}
#endif
#endif

/* token.h - ops between the tokens of a sequence: convolution, attention, rotary positions. Shapes as in
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

/* Rotary positions (Su et al. 2021). The first columns of x (B,T,C) are `heads` heads of dk columns, dk even. The pair
 * (i, i + dk/2) of each head turns by t * base^(-2i/dk). Columns from heads * dk on are copied. */
struct tensor *rope(struct graph *g, struct tensor *x, int64_t heads, int64_t dk, double base);

/* Rotary positions that depend on the input (Mamba-3, arXiv 2603.15569): angles of H heads of R pairs, in half turns,
 *   s_t[h][r] = s_{t-1}[h][r] + delta_t[h] rate_t[r] modulo 2, s_{-1} = 0
 * delta (B,T,H), rate (B,T,R) -> cos(pi s) (B,T,H*R), element h*R + r, and *sine likewise. The sum stays small, so that
 * an error does not grow with the angle. */
struct tensor *running_turn(struct graph *g, struct tensor *delta, struct tensor *rate, struct tensor **sine);

/* x + b of each head, turned: x (B,T,S), b [H][S], cosine and sine (B,T,H*R), 2R <= S -> y (B,T,H*S). The pairs (2i, 2i
 * + 1), i < R, become (x_0 cos - x_1 sin, x_0 sin + x_1 cos); channels from 2R on are not turned. */
struct tensor *turn_heads(struct graph *g, struct tensor *x, struct tensor *b, struct tensor *cosine,
                          struct tensor *sine);

/* Sums over states that only turn (AUSSM, arXiv 2507.05238): N states a channel, h_{-1} = 0, complex,
 *   theta_t = W u_t + b   h_t[j][i] = e^(i theta_t[j][i]) h_{t-1}[j][i] + x_t[i]   y_t[i] = Re sum_j K_j h_t[j][i]
 * x (B,T,D), u (B,T,I), w [N*D][I] and b [N*D] with row j*D + i, K = k_re + i k_im [N] -> y (B,T,D). The N*D angles of
 * a token, and its states, are in no tensor: backward computes them again (scan_turned.c). */
struct tensor *scan_turned(struct graph *g, struct tensor *x, struct tensor *u, struct tensor *w, struct tensor *b,
                           struct tensor *k_re, struct tensor *k_im);

/* Causal softmax attention: qkv (B,T,3D), columns (q, k, v), each of `heads` heads of dk = D / heads columns ->
 * y (B,T,D): y_t = sum_{s<=t} softmax_s(q_t . k_s / sqrt(dk)) v_s per head. */
struct tensor *softmax_attention(struct graph *g, struct tensor *qkv, int64_t heads);

/* Attention over all keys s < n of a sequence, before and after the query. n is `before` rows and the tokens in use
 * after them, whose number is in `lengths`, ids (B); NULL: all rows are in use. y = 0 if n = 0. */
struct tensor *softmax_attention_all(struct graph *g, struct tensor *qkv, struct tensor *lengths, int64_t before,
                                     int64_t heads);

/* --- attributes of a call, for its twins -------------------------------------------------------------------------- */

struct rope_attr {
    int64_t heads, dk;
    double base;
};

LRNN_INLINE const struct rope_attr *rope_attr(const struct call *c) {
    return (const struct rope_attr *)c->attr;
}

struct attention_attr {
    int64_t heads, before;
    bool causal;
};

LRNN_INLINE const struct attention_attr *attention_attr(const struct call *c) {
    return (const struct attention_attr *)c->attr;
}

/* The number of keys, from the first on, that query t of sequence b sees. */
LRNN_INLINE int64_t attention_keys(const struct call *c, int64_t b, int64_t t) {
    if (attention_attr(c)->causal) return t + 1;
    return c->in[1] ? attention_attr(c)->before + tensor_i32(c->in[1])[b] : c->in[0]->dims[1];
}

#ifdef __cplusplus
}
#endif
#endif

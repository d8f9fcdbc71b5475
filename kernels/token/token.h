/* token.h - ops that combine tokens of a sequence or depend on their positions: convolution, attention, rotary
 * positions. kernels/kernel.h explains the shapes. */
#ifndef LRNN_KERNELS_TOKEN_TOKEN_H
#define LRNN_KERNELS_TOKEN_TOKEN_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/token/list.def"

/* Causal depthwise convolution: y_t[c] = b[c] + sum_{j<m} w[c][j] x_{t-m+1+j}[c], where x is 0 before the start. x
 * (B,T,C); w [C][m] is stored tap by tap (element j*C + c: struct layout {2, {C, m}, {1, 0}}); b [C] or NULL. Returns
 * y (B,T,C). */
struct tensor *conv_depthwise(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

/* Rotary positions (Su et al. 2021). The first columns of x (B,T,C) are `heads` heads of dk columns, dk even. The pair
 * (i, i + dk/2) of each head turns by t * base^(-2i/dk). Columns from heads * dk on are copied. */
struct tensor *rope(struct graph *g, struct tensor *x, int64_t heads, int64_t dk, double base);

/* Rotary positions that depend on the input (Mamba-3, arXiv 2603.15569). Each of H heads has R pairs. The angle s of a
 * pair, in half turns, is
 *   s_t[h][r] = s_{t-1}[h][r] + delta_t[h] rate_t[r] modulo 2, s_{-1} = 0
 * The modulo keeps s small, so that rounding errors do not grow with the angle. delta (B,T,H), rate (B,T,R). Returns
 * cos(pi s) (B,T,H*R), with element h*R + r; *sine receives sin(pi s) in the same form. */
struct tensor *running_turn(struct graph *g, struct tensor *delta, struct tensor *rate, struct tensor **sine);

/* Rotates u = x + b of each head. x (B,T,S), b [H][S], cosine and sine (B,T,H*R), 2R <= S -> y (B,T,H*S). For i < R
 * the pair (p, q) of channels 2i and 2i + 1 becomes (p cos - q sin, p sin + q cos). Channels from 2R on stay. */
struct tensor *turn_heads(struct graph *g, struct tensor *x, struct tensor *b, struct tensor *cosine,
                          struct tensor *sine);

/* Sums over complex states that turn and never decay (AUSSM, arXiv 2507.05238). Channel i has N states h[j][i]; the
 * input u sets the angles theta, and h_{-1} = 0:
 *   theta_t = W u_t + b   h_t[j][i] = e^(i theta_t[j][i]) h_{t-1}[j][i] + x_t[i]   y_t[i] = Re sum_j K_j h_t[j][i]
 * x (B,T,D), u (B,T,I), w [N*D][I] and b [N*D] with row j*D + i, K = k_re + i k_im [N] -> y (B,T,D). No tensor has all
 * angles and states of the tokens; backward computes them again (scan_turned.c). */
struct tensor *scan_turned(struct graph *g, struct tensor *x, struct tensor *u, struct tensor *w, struct tensor *b,
                           struct tensor *k_re, struct tensor *k_im);

/* Causal softmax attention of each head: y_t = sum_{s<=t} softmax_s(q_t . k_s / sqrt(dk)) v_s. qkv (B,T,3D) has the
 * columns of q, then k, then v; each has `heads` heads of dk = D / heads columns. Returns y (B,T,D). */
struct tensor *softmax_attention(struct graph *g, struct tensor *qkv, int64_t heads);

/* Attention over all keys s < n of a sequence, before and after the query. n is `before` rows and the tokens in use
 * after them, whose number is in `lengths`, ids (B); NULL: all rows are in use. y = 0 if n = 0. */
struct tensor *softmax_attention_all(struct graph *g, struct tensor *qkv, struct tensor *lengths, int64_t before,
                                     int64_t heads);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

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

/* Returns the number of keys that query t of sequence b reads: it reads the first keys of the sequence. */
LRNN_INLINE int64_t attention_keys(const struct call *c, int64_t b, int64_t t) {
    if (attention_attr(c)->causal) return t + 1;
    return c->in[1] ? attention_attr(c)->before + tensor_i32(c->in[1])[b] : c->in[0]->dims[1];
}

#ifdef __cplusplus
}
#endif
#endif

/* matrix.h - recurrences with one dk x dv matrix per head, which outer products update and q reads. Inputs are
 * (B,T,...): all axes after B and T count as one width. The values of a head are contiguous: element h*dk + i of q,
 * h*dv + j of v. */
#ifndef LRNN_KERNELS_MATRIX_MATRIX_H
#define LRNN_KERNELS_MATRIX_MATRIX_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/matrix/list.def"

/* Scalar gates of scan_outer, each (B,T,H). source NULL means 1. mark and direct are both given or both NULL. */
struct outer_gates {
    struct tensor *decay, *source, *mark, *direct;
};

/* Outer-product state with a scalar decay; C is dk x dv, C_{-1} = 0:
 *   o_t = scale (mark_t C_{t-1}^T q_t + direct_t (q_t . k_t) v_t);   C_t = decay_t C_{t-1} + source_t k_t v_t^T
 * Without mark and direct the state is read after its update, o_t = scale C_t^T q_t; this is the case mark = decay,
 * direct = source. pLSTM gives all four gates; Mamba2 gives decay exp(Delta A) and source Delta. q, k (B,T, groups*dk):
 * heads/groups neighbouring heads share the q and k of a group. v (B,T, heads*dv) -> o (B,T, heads*dv). */
struct tensor *scan_outer(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v,
                          const struct outer_gates *gates, int64_t heads, int64_t groups, double scale);

/* Delta rules; S is dk x dv, S_{-1} = 0. Each token first computes S <- Diag(decay_t) S, then in each step j = 0, 1,
 * ...
 *   with beta:            S <- S + k_j (rate beta_j (v_j - S^T k_j))^T
 *   with read:            S <- S + k_j (v_j - rate S^T read_j)^T
 *   with read and erase:  S <- S + k_j v_j^T - erase_j (rate S^T read_j)^T
 *   with none of them:    S <- S + k_j v_j^T
 * and at last o_t = scale S^T q_t. q (B,T, heads*dk); k, read and erase (B,T, steps*heads*dk); v (B,T, steps*heads*dv);
 * beta (B,T, steps*heads), with the step outermost; decay (B,T, heads), or (B,T, heads*dk) for one decay per key
 * channel, or NULL for 1 -> o (B,T, heads*dv). Decays may be 0 or have either sign. Models: beta is DeltaNet; with
 * decay, Gated DeltaNet; with a decay per channel, KDA; with steps, DeltaProduct. read = b o k, a vector erase, is
 * GDN-2. read and erase are RWKV-7. None of them is GLA or HGRN2. */
struct delta_gates {
    struct tensor *beta, *decay, *read, *erase;
};

struct delta_attr {
    int64_t heads, steps;
    double scale, rate;
};

LRNN_INLINE const struct delta_attr *delta_attr(const struct call *c) {
    return (const struct delta_attr *)c->attr;
}
struct tensor *scan_delta(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v,
                          const struct delta_gates *gates, const struct delta_attr *attr);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

struct outer_attr {
    int64_t heads, groups;
    double scale;
};

LRNN_INLINE const struct outer_attr *outer_attr(const struct call *c) {
    return (const struct outer_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif

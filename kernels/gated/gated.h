/* gated.h - gated recurrences (BD-LRU, H-LRU, LRU, LSTM). Shapes as in kernels/kernel.h. */
#ifndef LRNN_KERNELS_GATED_GATED_H
#define LRNN_KERNELS_GATED_GATED_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/gated/list.def"

/* --- recurrences -------------------------------------------------------------------------------------------------- */

/* Normalisation of the m + 1 raw gates z of a row (gate.h): p = f(z), a = p / sum p. */
enum gate { GATE_SOFTMAX, GATE_SIGMOID, GATE_RELU, GATE_NONE, GATE_COUNT };

/* BD-LRU: h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i] per block, gates normalised per row i; h_{-1} = 0.
 * z (B,T, m*(m+1)*N) raw gates, element ((i*(m+1)+j)*N + k) of block k: gate-major, block index fastest.
 * v (B,T, m*N) element i*N + k -> h (B,T, m*N) likewise. */
struct tensor *scan_block(struct graph *g, struct tensor *z, struct tensor *v, int64_t N, int64_t m, enum gate gate);

/* H-LRU. State s has m values per channel; s_{-1} = 0. Gates z (B,T,(m+1)*N), element j*N + k: for j < m the gate of
 * lag j+1, for j = m the input gate. v (B,T,N) -> s (B,T, m*N), element i*N + k.
 *   companion (Eq. 3):          s_t[0] = sum_i a_t[i] s_{t-1}[i] + a_t[m] v_t,  s_t[i] = s_{t-1}[i-1]
 *   observer (App. G listing):  the transpose, s_t[i] = a_t[i] s_{t-1}[0] + s_{t-1}[i+1] (+ a_t[m] v_t for i=0) */
enum companion_layout { LAYOUT_COMPANION, LAYOUT_OBSERVER };
struct tensor *scan_companion(struct graph *g, struct tensor *z, struct tensor *v, int64_t N, int64_t m, enum gate gate,
                              enum companion_layout layout);

/* Diagonal recurrence h_t = a_t * h_{t-1} + x_t, h_{-1} = 0, elementwise over N channels.
 * x (B,T,N); a (B,T,N), or [N] for a transition that is constant over time and batch -> h (B,T,N). */
struct tensor *scan_diag(struct graph *g, struct tensor *a, struct tensor *x);

/* Diagonal recurrence over complex numbers, each stored as two real tensors (re, im planes); *h_im receives the
 * imaginary plane. */
struct tensor *scan_diag_complex(struct graph *g, struct tensor *a_re, struct tensor *a_im, struct tensor *x_re,
                                 struct tensor *x_im, struct tensor **h_im);

/* LSTM recurrence with PyTorch's gate order i,f,g,o: p_t = u_t + wh h_{t-1} + bh; c_t = sig(f) c_{t-1} + sig(i)
 * tanh(g); h_t = sig(o) tanh(c_t); h_{-1} = c_{-1} = 0. u (B,T,4H) = wx x_t + bx, wh [4H][H], bh [4H] -> h (B,T,H). */
struct tensor *scan_lstm(struct graph *g, struct tensor *u, struct tensor *wh, struct tensor *bh);

/* scan_lstm from h_{-1} = h0 and c_{-1} = c0, both (B,H), or both NULL: zeros; *cell receives c (B,T,H). */
struct tensor *scan_lstm_from(struct graph *g, struct tensor *u, struct tensor *wh, struct tensor *bh,
                              struct tensor *h0, struct tensor *c0, struct tensor **cell);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

struct scan_attr {
    int64_t N, m;
    enum gate gate;
    enum companion_layout layout; /* only for scan_companion */
};

LRNN_INLINE const struct scan_attr *scan_attr(const struct call *c) {
    return (const struct scan_attr *)c->attr;
}

/* The first state of a call of scan_lstm, h0 (0) or c0 (1), and its row of sequence b; NULL: zeros. */
LRNN_INLINE const struct tensor *lstm_first(const struct call *c, int which) {
    return c->n_in > 3 ? c->in[3 + which] : NULL;
}

LRNN_INLINE const real *lstm_row(const struct call *c, int which, int64_t b) {
    const struct tensor *first = lstm_first(c, which);
    return first ? (const real *)first->data + b * first->dims[1] : NULL;
}

#ifdef __cplusplus
}
#endif
#endif

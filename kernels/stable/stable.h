/* stable.h - the gates of mLSTM, the readout of a matrix state with these gates, and the recurrence of sLSTM. */
#ifndef LRNN_KERNELS_STABLE_STABLE_H
#define LRNN_KERNELS_STABLE_STABLE_H

#include <math.h>

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/stable/list.def"

/* Exponential input gates and logistic forget gates from raw gates i and f (B,T,H). A running maximum m keeps them in
 * range (xLSTM); logsig is the logarithm of the logistic function sig:
 *   m_t = max(logsig(f_t) + m_{t-1}, i_t), m_{-1} = start
 *   decay_t = exp(logsig(f_t) + m_{t-1} - m_t);  source_t = exp(i_t - m_t)
 * No gate exceeds 1. A state with these gates is exp(-m_t) times the state with decay sig(f_t) and source exp(i_t).
 * Returns decay; *source and *m receive the other outputs. All have the shape of i. */
struct tensor *stable_gates(struct graph *g, struct tensor *i, struct tensor *f, double start, struct tensor **source,
                            struct tensor **m);

/* Readout of a state with such gates. o (B,T, H*(1+dv)) has for each head a denominator den and dv values num; m is
 * (B,T,H). Returns h = num / (max(|den|, exp(-m)) + eps) (B,T, H*dv). */
struct tensor *stable_readout(struct graph *g, struct tensor *o, struct tensor *m, double eps);

/* sLSTM recurrence of each channel; a head has dh channels. g is one of the four gates i, f, z, o:
 *   p_g = raw_g[t] + R_g h_{t-1} + b_g;   m_t = max(p_i, logsig(p_f) + m_{t-1}), m_{-1} = -infinity
 *   F = exp(logsig(p_f) + m_{t-1} - m_t);   I = exp(p_i - m_t)
 *   c_t = F c_{t-1} + I tanh(p_z);   n_t = F n_{t-1} + I;   h_t = sig(p_o) c_t / n_t;   h_{-1} = c_{-1} = n_{-1} = 0
 * R_g is block-diagonal, with a dh x dh block per head. raw: i, f, z, o, each (B,T,D). recurrent [4D][dh] has row
 * g*D + head*dh + j and is stored head by head (struct layout {4, {4, D/dh, dh, dh}, {1, 0, 2, 3}}). b [4D] is stored
 * head by head too. Returns h (B,T,D). */
struct tensor *scan_slstm(struct graph *g, struct tensor *const raw[4], struct tensor *recurrent, struct tensor *b);

/* --- attributes, inputs and outputs of a call, for its kernels ---------------------------------------------------- */

enum stable_input { STABLE_I, STABLE_F };
enum stable_output { STABLE_DECAY, STABLE_SOURCE, STABLE_M, STABLE_OUTPUTS };

struct stable_gates_attr {
    double start; /* m before the first token */
};

LRNN_INLINE const struct stable_gates_attr *stable_gates_attr(const struct call *c) {
    return (const struct stable_gates_attr *)c->attr;
}

struct stable_readout_attr {
    double eps;
};

LRNN_INLINE const struct stable_readout_attr *stable_readout_attr(const struct call *c) {
    return (const struct stable_readout_attr *)c->attr;
}

/* Returns log sig(x); the references call it. */
LRNN_INLINE double stable_log_sigmoid(double x) {
    return (x < 0 ? x : 0) - log1p(exp(-fabs(x)));
}

/* Inputs of scan_slstm: the raw gates, the recurrent weights, the biases. Output h is followed by two outputs that
 * backward reads and that have no gradient: SLSTM_KEPT (B,T,5,D) and SLSTM_CELLS (B,T,2,D), where D numbers of a token
 * are a part. */
enum slstm_gate { SLSTM_I, SLSTM_F, SLSTM_Z, SLSTM_O, SLSTM_GATES };
enum { SLSTM_RECURRENT = SLSTM_GATES, SLSTM_BIAS };
enum { SLSTM_H, SLSTM_KEPT, SLSTM_CELLS };
enum { SLSTM_REST = SLSTM_GATES, SLSTM_KEPT_PARTS }; /* the parts are I, F, tanh(p_z), sig(p_o), and 1 - sig(p_f) */
enum { SLSTM_C, SLSTM_N, SLSTM_CELL_PARTS };

#ifdef __cplusplus
}
#endif
#endif

/* stable.h - the gates of mLSTM, and what a matrix state with such gates is read as. */
#ifndef LRNN_KERNELS_STABLE_STABLE_H
#define LRNN_KERNELS_STABLE_STABLE_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/stable/list.def"

/* Exponential input gates and logistic forget gates of raw i, f (B,T,H), kept in range by their running maximum
 * (xLSTM):
 *   m_t = max(logsig(f_t) + m_{t-1}, i_t), m_{-1} = start
 *   decay_t = exp(logsig(f_t) + m_{t-1} - m_t);  source_t = exp(i_t - m_t)
 * A state with these gates is exp(-m_t) times that with decay sig(f_t) and source exp(i_t), and no gate exceeds 1.
 * Returns decay; *source and *m receive the others, all as i. */
struct tensor *stable_gates(struct graph *g, struct tensor *i, struct tensor *f, double start, struct tensor **source,
                            struct tensor **m);

/* Readout of a state with such gates: o (B,T, H*(1+dv)) holds (den, num) of each head, m (B,T,H) ->
 * h = num / (max(|den|, exp(-m)) + eps) (B,T, H*dv). */
struct tensor *stable_readout(struct graph *g, struct tensor *o, struct tensor *m, double eps);

/* --- what a call has and keeps for its twins ---------------------------------------------------------------------- */

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

#ifdef __cplusplus
}
#endif
#endif

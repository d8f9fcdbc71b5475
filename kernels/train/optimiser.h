/* optimiser.h - the scalars of an update, shared by the twins of step_begin and adamw: always in double. */
#ifndef LRNN_KERNELS_OPTIMISER_H
#define LRNN_KERNELS_OPTIMISER_H

#include <math.h>

#include "kernels/train/train.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NORM_CHUNK   16384 /* floats of one partial sum of squares */
#define CLIP_EPS     1e-6  /* beside the norm, as torch.nn.utils.clip_grad_norm_ has it, with which the papers train */
#define UPDATE_CHUNK 16384 /* floats one thread updates at a time: 7 streams of 64 KB */

/* Writes what step_begin writes into the state, from the loss and the gradient's sum of squares. Behind the step that
 * froze the updates nothing is written: a device has queued more when the host looks, and the record tells of that
 * one. */
LRNN_INLINE void begin_step(struct step_state *state, const struct step_attr *attr, double loss,
                            double sum_of_squares) {
    if (state->frozen) return;
    state->loss = loss;
    if (isfinite(loss)) { /* the mean of a diverged run is that of its finite losses */
        state->loss_sum += loss;
        state->loss_steps++;
    }
    state->grad_norm = sqrt(sum_of_squares);
    state->lr = schedule_rate(&attr->schedule, state->step);
    if (isfinite(loss) && isfinite(sum_of_squares)) return;
    state->frozen = 1;
    state->frozen_step = state->step;
}

struct adamw_scalars {
    double gradient; /* min(1, clip / (grad_norm + CLIP_EPS)) */
    double rate;     /* lr / (1 - b1^t) */
    double root;     /* 1 / sqrt(1 - b2^t) */
};

LRNN_INLINE struct adamw_scalars adamw_scalars(const struct adamw_attr *attr, const struct step_state *state) {
    double t = (double)state->step + 1, norm = state->grad_norm;
    struct adamw_scalars k;
    double shrink = attr->clip / (norm + CLIP_EPS);
    k.gradient = attr->clip > 0 && shrink < 1 ? shrink : 1;
    k.rate = state->lr / (1 - pow(attr->beta1, t));
    k.root = 1 / sqrt(1 - pow(attr->beta2, t));
    return k;
}

#ifdef __cplusplus
}
#endif
#endif

/* optimiser.h - the scalars of an update, shared by the twins of step_begin and adamw: always in double. */
#ifndef LRNN_KERNELS_TRAIN_OPTIMISER_H
#define LRNN_KERNELS_TRAIN_OPTIMISER_H

#include <float.h>
#include <math.h>

#include "kernels/train/train.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NORM_CHUNK   16384 /* floats of one partial sum of squares */
#define CLIP_EPS     1e-6  /* added to the norm, as in torch.nn.utils.clip_grad_norm_, which the papers' code uses */
#define UPDATE_CHUNK 16384 /* floats that one thread updates at a time: 7 streams of 64 KB */

/* The factor of the gradient: min(1, clip / (norm + CLIP_EPS)); clip 0: 1. */
LRNN_INLINE double clip_factor(double clip, double norm) {
    double shrink = clip / (norm + CLIP_EPS);
    return clip > 0 && shrink < 1 ? shrink : 1;
}

/* True if no second moment can overflow in an update by a gradient of this norm: no element is larger than the norm,
 * and the moment is a mean of squares. Half the range leaves room for rounding. False for NaN and infinity. */
LRNN_INLINE bool has_square(double norm) {
    return norm * norm <= (REAL_IS_DOUBLE ? DBL_MAX : (double)FLT_MAX) / 2;
}

/* Updates the state for step_begin, from the loss and the gradient's sum of squares. After the step that froze the
 * updates nothing is written, because a device may have queued more steps when the host looks, and the record reports
 * the step that froze. */
LRNN_INLINE void begin_step(struct step_state *state, const struct step_attr *attr, double loss,
                            double sum_of_squares) {
    if (state->frozen) return;
    state->loss = loss;
    if (isfinite(loss)) { /* the mean of a diverged run is the mean of its finite losses */
        state->loss_sum += loss;
        state->loss_steps++;
    }
    state->grad_norm = sqrt(sum_of_squares);
    state->lr = schedule_rate(&attr->schedule, state->step);
    bool fits = has_square(state->grad_norm * clip_factor(attr->clip, state->grad_norm));
    if (isfinite(loss) && fits) return;
    state->frozen = 1;
    state->frozen_step = state->step;
}

struct adamw_scalars {
    double gradient; /* clip_factor */
    double rate;     /* lr / (1 - b1^t) */
    double root;     /* 1 / sqrt(1 - b2^t) */
};

LRNN_INLINE struct adamw_scalars adamw_scalars(const struct adamw_attr *attr, const struct step_state *state) {
    double t = (double)state->step + 1;
    struct adamw_scalars k;
    k.gradient = clip_factor(attr->clip, state->grad_norm);
    k.rate = state->lr / (1 - pow(attr->beta1, t));
    k.root = 1 / sqrt(1 - pow(attr->beta2, t));
    return k;
}

#ifdef __cplusplus
}
#endif
#endif

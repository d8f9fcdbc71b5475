/* clip.h - the bound on each step of a homogeneous recurrence, as in SLiCE's token nets (Walker et al. 2025;
 * Benjamin-Walker/structured-linear-cdes, models/slcde.py):
 *
 *   y_t = y_{t-1} + c tanh(s_t / c),   s_t = A_t y_{t-1},   c = 1e11
 *
 * Learnt generators can let a mode grow at each step, so that a long string would overflow. For small |x|, tanh(x)
 * rounds to x. So steps of a net that does not overflow keep their bits. c = 0 means that there is no bound. */
#ifndef LRNN_KERNELS_FLOW_CLIP_H
#define LRNN_KERNELS_FLOW_CLIP_H

#include <math.h>

#include "kernels/flow/flow.h"

/* The largest |s / c| at which tanh(x) rounds to x: there x - tanh(x), about x^3 / 3, is less than half a unit in the
 * last place of x. */
#define CLIP_LINEAR (REAL_IS_DOUBLE ? 0x1p-27 : 0x1p-12)

/* Bounds one element: turns after = before + s into before + c tanh(s / c). NaN stays NaN. */
LRNN_INLINE double clipped(double after, double before, double clip) {
    double s = after - before;
    return clip == 0 || fabs(s) <= CLIP_LINEAR * clip ? after : before + clip * tanh(s / clip);
}

/* Returns the derivative of y_t by s_t of such an element: 1 - tanh(s / c)^2, where c tanh(s / c) = after - before. It
 * is 1 if the bound did not change the step. */
LRNN_INLINE double clip_slope(double after, double before, double clip) {
    double q = clip == 0 ? 0 : (after - before) / clip, slope = (1 - q) * (1 + q);
    return fabs(q) <= CLIP_LINEAR ? 1 : slope < 0 ? 0 : slope; /* rounding may make |q| just above 1 */
}

/* Whether one of n steps exceeds the bound. A row without such a step keeps its bits and only costs two reads. */
static inline bool clip_meets(int64_t n, double clip, const real *before, const real *after) {
    real linear = (real)(CLIP_LINEAR * clip);
    bool large = false;
    for (int64_t i = 0; i < n && clip != 0; i++) large |= !(fabs(after[i] - before[i]) <= linear);
    return large;
}

/* Bounds n elements of a step from `before` to `after`. */
static inline void clip_moves(int64_t n, double clip, const real *before, real *after) {
    if (!clip_meets(n, clip, before, after)) return;
    for (int64_t i = 0; i < n; i++) after[i] = (real)clipped(after[i], before[i], clip);
}

/* Turns G, the gradient of n elements of y_t, into the gradient of s_t. */
static inline void clip_gradient(int64_t n, double clip, const real *before, const real *after, real *G) {
    if (!clip_meets(n, clip, before, after)) return;
    for (int64_t i = 0; i < n; i++) G[i] *= (real)clip_slope(after[i], before[i], clip);
}

#endif

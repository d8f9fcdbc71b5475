/* clip.h - the bound on a step of a homogeneous recurrence that SLiCE's token nets have:
 *
 *   y_t = y_{t-1} + c tanh(s_t / c),   s_t = A_t y_{t-1},   c = 1e11
 *
 * (Walker et al. 2025; spec/lru-slice-baselines.md section 6).
 *
 * Generators that were learnt can let a mode grow at each step, and a long string would then overflow. tanh(x) is x to
 * the last digit while |x| is small, so that steps in that range, which are all of a net that does not overflow, are
 * left as they are, bit for bit. c = 0: no bound. */
#ifndef LRNN_KERNELS_FLOW_CLIP_H
#define LRNN_KERNELS_FLOW_CLIP_H

#include <math.h>

#include "kernels/flow/flow.h"

/* The largest |s / c| at which x - tanh(x), x^3 / 3, is below half a unit in the last place of x. */
#define CLIP_LINEAR ((real)(REAL_IS_DOUBLE ? 0x1p-27 : 0x1p-12))

/* after = before + s becomes before + c tanh(s / c), n elements. What is no number stays none. */
static inline void clip_moves(int64_t n, double clip, const real *before, real *after) {
    real c = (real)clip, linear = CLIP_LINEAR * c;
    bool large = false;
    if (clip == 0) return;
    for (int64_t i = 0; i < n; i++) large |= !(fabs(after[i] - before[i]) <= linear);
    for (int64_t i = 0; i < n && large; i++) {
        real s = after[i] - before[i];
        if (!(fabs(s) <= linear)) after[i] = before[i] + c * (real)tanh(s / c);
    }
}

/* The gradient G of y_t becomes that of s_t: times 1 - tanh(s / c)^2, where c tanh(s / c) = after - before. */
static inline void clip_gradient(int64_t n, double clip, const real *before, const real *after, real *G) {
    real c = (real)clip, linear = CLIP_LINEAR * c;
    bool large = false;
    if (clip == 0) return;
    for (int64_t i = 0; i < n; i++) large |= !(fabs(after[i] - before[i]) <= linear);
    for (int64_t i = 0; i < n && large; i++) {
        real moved = after[i] - before[i], q = moved / c, slope = (1 - q) * (1 + q);
        if (!(fabs(moved) <= linear)) G[i] *= slope < 0 ? 0 : slope; /* |q| may round to just above 1 */
    }
}

/* For the references: one element in double, with the same range of untouched steps. */
static inline double clipped(double after, double before, double clip) {
    double s = after - before;
    return clip == 0 || fabs(s) <= CLIP_LINEAR * clip ? after : before + clip * tanh(s / clip);
}

/* ds_t to dy_t of such an element: 1 where its step was left alone. */
static inline double clip_slope(double after, double before, double clip) {
    double q = clip == 0 ? 0 : (after - before) / clip, slope = (1 - q) * (1 + q);
    return fabs(q) <= CLIP_LINEAR ? 1 : slope < 0 ? 0 : slope;
}

#endif

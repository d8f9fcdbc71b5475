/* gate.h - normalises a row of n = m + 1 raw gates z, and computes the gradient.
 *
 *   p_j = f(z_j),  S = sum_j p_j,  a_j = p_j / S        (H-LRU/BD-LRU, arXiv 2602.12021, Eq. 6)
 *   softmax: f = exp, after the row's maximum is subtracted
 *   sigmoid: f = 1 / (1 + e^-z). If the row's maximum is below -40, where f rounds to e^z, the row is first shifted so
 *            that its maximum is -40. So S is never 0
 *   relu:    f = max(0, z). If S < 1e-12, all a_j and all gradients are 0
 *   none:    a = z
 *
 * The gradient is dz_j = w_j (da_j - sum_l a_l da_l); for `none` it has no sum:
 *   softmax w = a;  sigmoid w = p (1 - p) / S;  relu w = [z > 0] / S;  none w = 1. */
#ifndef LRNN_KERNELS_GATED_GATE_H
#define LRNN_KERNELS_GATED_GATE_H

#include "core/real_math.h"
#include "kernels/gated/gated.h"
#include "kernels/lib/unroll.h"

#define GATE_MIN_SUM ((real)1e-12) /* least S of a relu row with a gradient */
/* least maximum of a sigmoid row; e^-40 is less than half a unit of 1, even in double */
#define GATE_LOW ((real)-40)

/* True if the row is divided by its sum; then the gradient subtracts sum_l a_l da_l. */
FORCE_INLINE bool gate_divides(enum gate gate) {
    return gate != GATE_NONE;
}

/* The two functions that softmax needs on a device: e^x for x <= 0 or NaN, and 1 / x for x in [1, 9]. Devices have
 * instructions for 2^x and 1 / x. gate_exp also corrects the rounding error of x / ln 2 to first order, and
 * gate_reciprocal adds one Newton step. Relative errors are below 4e-7, of which the instruction causes 2.4e-7. These
 * functions need half of the operations of real_exp and of a division, and no branch. */
#if defined(__CUDA_ARCH__) && !defined(LRNN_DOUBLE)
FORCE_INLINE real gate_exp(real x) {
    const real log2_e = 1.44269504f, log2_e_rest = 1.92596303e-8f, ln_2 = 0.693147181f;
    real y = x < -104.0f ? -104.0f : x, power; /* 2^-150 is 0 here */
    real t = y * log2_e, rest = real_fma(y, log2_e_rest, real_fma(y, log2_e, -t));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(t));
    return real_fma(power, rest * ln_2, power);
}

FORCE_INLINE real gate_reciprocal(real x) {
    real r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return real_fma(r, real_fma(-x, r, 1.0f), r);
}
#else
FORCE_INLINE real gate_exp(real x) {
    return real_exp(x);
}

FORCE_INLINE real gate_reciprocal(real x) {
    return 1 / x;
}
#endif

FORCE_INLINE real gate_value(enum gate gate, real z, real top) {
    if (gate == GATE_SOFTMAX) return gate_exp(z - top);
    if (gate == GATE_SIGMOID) return real_sigmoid(top < GATE_LOW ? z - top + GATE_LOW : z);
    if (gate == GATE_RELU) return z < 0 ? 0 : z; /* NaN stays NaN */
    return z;
}

/* Returns 1 / S. Returns 1 if the gate does not divide, and 0 for a relu row with S < 1e-12. */
FORCE_INLINE real gate_scale(enum gate gate, real sum) {
    if (!gate_divides(gate)) return 1;
    if (gate == GATE_SOFTMAX) return gate_reciprocal(sum);
    real scale = 1 / sum;
    return gate == GATE_RELU && sum < GATE_MIN_SUM ? 0 : scale;
}

FORCE_INLINE real gate_slope(enum gate gate, real p, real scale) {
    if (gate == GATE_SOFTMAX) return p * scale;
    if (gate == GATE_SIGMOID) return p * (1 - p) * scale;
    if (gate == GATE_RELU) return p > 0 ? scale : 0;
    return 1;
}

/* Computes a[n] and w[n] of the row z[j * stride], for any n. Used by references. */
LRNN_INLINE void gate_row(enum gate gate, int64_t n, const real *z, int64_t stride, real *a, real *w) {
    real top = z[0], sum = 0;
    for (int64_t j = 1; j < n; j++) top = z[j * stride] > top ? z[j * stride] : top;
    for (int64_t j = 0; j < n; j++) sum += a[j] = gate_value(gate, z[j * stride], top);
    real scale = gate_scale(gate, sum);
    for (int64_t j = 0; j < n; j++) {
        w[j] = gate_slope(gate, a[j], scale);
        a[j] *= scale;
    }
}

/* For CPU kernels, which have a row in registers (kernels/lib/unroll.h): gate and n are constants. */
#define GATE_MAX UNROLLED_MAX

/* Computes p[n] of the row z[j * stride], and returns 1 / S. */
FORCE_INLINE real gate_lane(enum gate gate, int n, const real *z, int64_t stride, real *p) {
    real top = z[0], sum = 0;
    UNROLLED(n, p[j] = z[j * stride]);
    if (gate == GATE_SOFTMAX || gate == GATE_SIGMOID) UNROLLED(n, top = p[j] > top ? p[j] : top);
    UNROLLED(n, p[j] = gate_value(gate, p[j], top));
    UNROLLED(n, sum += p[j]);
    return gate_scale(gate, sum);
}

#endif

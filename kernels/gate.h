/* gate.h - gate normalisers, forward and gradient, for one row of n = m + 1 raw gates z held in registers.
 *
 *   p_j = f(z_j),  S = sum_j p_j,  a_j = p_j / S        (P1 Eq. 6; spec/lru-slice-baselines.md section 4)
 *   softmax: f = exp, the row's maximum subtracted first     sigmoid: f = 1 / (1 + e^-z)
 *   relu: f = max(0, z), and a = 0 with zero gradient where S < 1e-12     none: a = z
 *
 * The gradient of all of them has the form dz_j = w_j (da_j - sum_l a_l da_l), the sum absent for `none`:
 *   softmax w = a;  sigmoid w = p (1 - p) / S;  relu w = [z > 0] / S;  none w = 1.
 *
 * The functions are always inlined and their loops unrolled, so that with constant gate and n a loop over blocks around
 * them vectorises. */
#ifndef LRNN_KERNELS_GATE_H
#define LRNN_KERNELS_GATE_H

#include "core/real_math.h"
#include "kernels/kernel.h"

#define GATE_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define GATE_UNROLL /* clang unrolls by itself before it vectorises; the pragma would defer it */
#else
#define GATE_UNROLL _Pragma("GCC unroll 16")
#endif
#define GATE_RELU_MIN_SUM ((real)1e-12)

/* Whether the gradient subtracts the weighted mean of da: whether the row is divided by its sum. */
GATE_INLINE bool gate_divides(enum gate gate) {
    return gate != GATE_NONE;
}

GATE_INLINE real gate_sum(int n, const real *p) {
    real sum = p[0];
    GATE_UNROLL
    for (int j = 1; j < n; j++) sum += p[j];
    return sum;
}

/* p_j = f(z_j). The sigmoid takes a loop of its own to keep each within what compilers unroll. */
GATE_INLINE void gate_apply(enum gate gate, int n, const real *z, real *p) {
    real top = 0;
    if (gate == GATE_SOFTMAX) {
        top = z[0];
        GATE_UNROLL
        for (int j = 0; j < n; j++) top = z[j] > top ? z[j] : top;
    }
    GATE_UNROLL
    for (int j = 0; j < n; j++) {
        if (gate == GATE_SOFTMAX) p[j] = real_exp(z[j] - top);
        if (gate == GATE_SIGMOID) p[j] = real_exp(-z[j]);
        if (gate == GATE_RELU) p[j] = z[j] < 0 ? 0 : z[j]; /* NaN comes through */
        if (gate == GATE_NONE) p[j] = z[j];
    }
    if (gate != GATE_SIGMOID) return;
    GATE_UNROLL
    for (int j = 0; j < n; j++) p[j] = 1 / (1 + p[j]);
}

/* 1 / S; 1 where nothing is divided, 0 where a relu row is dead. */
GATE_INLINE real gate_scale(enum gate gate, int n, const real *p) {
    if (!gate_divides(gate)) return 1;
    real sum = gate_sum(n, p);
    real scale = 1 / sum;
    if (gate == GATE_RELU) scale = sum < GATE_RELU_MIN_SUM ? 0 : scale;
    return scale;
}

/* a[n] from z[n]. */
GATE_INLINE void gate_row(enum gate gate, int n, const real *z, real *a) {
    gate_apply(gate, n, z, a);
    real scale = gate_scale(gate, n, a);
    GATE_UNROLL
    for (int j = 0; j < n; j++) a[j] *= scale;
}

/* a[n] and w[n] from z[n]. */
GATE_INLINE void gate_row_slope(enum gate gate, int n, const real *z, real *a, real *w) {
    gate_apply(gate, n, z, a);
    real scale = gate_scale(gate, n, a);
    GATE_UNROLL
    for (int j = 0; j < n; j++) {
        real p = a[j];
        a[j] = p * scale;
        if (gate == GATE_SOFTMAX) w[j] = a[j];
        if (gate == GATE_SIGMOID) w[j] = p * (1 - p) * scale;
        if (gate == GATE_RELU) w[j] = z[j] > 0 ? scale : 0;
        if (gate == GATE_NONE) w[j] = 1;
    }
}

#endif

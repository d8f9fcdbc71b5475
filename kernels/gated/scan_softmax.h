/* scan_softmax.h - what makes the CPU twins of the gated scans fast: strips as wide as the threads allow, and softmax
 * of one row of gates inside loops over channels (kernels/gated/gate.h says how such code is written).
 *
 * The scans are bound by the arithmetic of their exponentials. Arguments here are at most 0, and a factor common to a
 * row cancels, so a shorter one serves than real_exp: no clamp above, log2(e) in one part, 2^f by five terms. */
#ifndef LRNN_KERNELS_GATED_SCAN_SOFTMAX_H
#define LRNN_KERNELS_GATED_SCAN_SOFTMAX_H

#include <omp.h>

#include "kernels/gated/scan.h"

/* scan_strips, but no narrower than this many threads can use: the narrower, the larger the share of what is done once
 * a row. Lanes do not depend on each other, so the cut does not change a bit of the result. */
LRNN_INLINE struct scan_strips scan_strips_shared(int64_t B, int64_t N) {
    int threads = omp_get_max_threads();
    int64_t fewer = threads == 1 ? 16 : threads < 8 ? 8 / threads : 1;
    struct scan_strips strips = scan_strips(B * fewer, N);
    strips.parts = B * strips.count;
    return strips;
}

#ifdef LRNN_DOUBLE

FORCE_INLINE real softmax_exp(real d) {
    return real_exp(d);
}

#else

/* e^d for d <= 0 = 2^n 2^f, n = round(d log2 e), |f| <= 1/2. `magic`, 1.5 * 2^23 + 126, rounds and leaves n + 126, the
 * exponent field of 2^(n-1), in the low bits; the other factor 2 is in the coefficients. Below -87.3 that field is 0
 * and so is the result. 2^f is minimax of relative error 9.1e-8 with 1 at f = 0; all together errs by 1.4 units at d >
 * -1, and by |d| / 5 units more below, where the share of the row is as much smaller. */
FORCE_INLINE real softmax_exp(real d) {
    const real magic = 12582912.0f + 126.0f, log2_e = 1.44269504088896341f;
    d = -87.3f > d ? -87.3f : d; /* NaN comes through */
    real t = real_fma(d, log2_e, magic);
    real f = real_fma(d, log2_e, magic - t);
    real p = real_fma(2 * 0.0013264728477224708f, f, 2 * 0.009671513922512531f);
    p = real_fma(p, f, 2 * 0.05550733581185341f);
    p = real_fma(p, f, 2 * 0.24022242426872253f);
    p = real_fma(p, f, 2 * 0.6931470036506653f);
    p = real_fma(p, f, 2.0f);
    return p * real_of_bits(real_bits(t) << 23);
}

#endif

/* p[n] = e^(z[n] - top) of the row z[j * stride]; returns 1 / sum p. */
FORCE_INLINE real softmax_lane(int n, const real *z, int64_t stride, real *p) {
    real top = z[0], sum = 0;
    UNROLLED(n, p[j] = z[j * stride]);
    UNROLLED(n, top = p[j] > top ? p[j] : top);
    UNROLLED(n, p[j] = softmax_exp(p[j] - top));
    UNROLLED(n, sum += p[j]);
    return 1 / sum;
}

/* gate_lane, with softmax as above. */
FORCE_INLINE real scan_gates(enum gate gate, int n, const real *z, int64_t stride, real *p) {
    return gate == GATE_SOFTMAX ? softmax_lane(n, z, stride, p) : gate_lane(gate, n, z, stride, p);
}

/* The same of any n, for `width` channels at once: p[j * SCAN_STRIDE + k] of z[j * stride + k], scale[k] = 1 / S. */
FORCE_INLINE void scan_gates_in_memory(enum gate gate, int n, int64_t width, const real *z, int64_t stride, real *p,
                                       real *scale) {
    real top[SCAN_WIDTH], sum[SCAN_WIDTH];
    for (int64_t k = 0; k < width; k++) top[k] = z[k], sum[k] = 0;
    for (int j = 1; j < n && (gate == GATE_SOFTMAX || gate == GATE_SIGMOID); j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++) top[k] = z[j * stride + k] > top[k] ? z[j * stride + k] : top[k];
    for (int j = 0; j < n; j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++) {
            real x = z[j * stride + k];
            p[j * SCAN_STRIDE + k] = gate == GATE_SOFTMAX ? softmax_exp(x - top[k]) : gate_value(gate, x, top[k]);
            sum[k] += p[j * SCAN_STRIDE + k];
        }
#pragma omp simd
    for (int64_t k = 0; k < width; k++) scale[k] = gate == GATE_SOFTMAX ? 1 / sum[k] : gate_scale(gate, sum[k]);
}

#endif

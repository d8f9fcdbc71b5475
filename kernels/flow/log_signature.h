/* log_signature.h - parts that log_signature, brackets and their kernels share: intervals, the order of the pairs, and
 * products with antisymmetric matrices. */
#ifndef LRNN_KERNELS_FLOW_LOG_SIGNATURE_H
#define LRNN_KERNELS_FLOW_LOG_SIGNATURE_H

#include "kernels/flow/flow.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pairs i < j of C letters are in lexicographic order. Returns the number of pairs before (i, i+1). */
LRNN_INLINE int64_t pairs_before(int64_t C, int64_t i) {
    return i * (2 * C - i - 1) / 2;
}

LRNN_INLINE int64_t pair_at(int64_t C, int64_t i, int64_t j) {
    return pairs_before(C, i) + j - i - 1;
}

/* Returns Q[i][j] of the antisymmetric matrix Q whose elements above the diagonal are q. */
LRNN_INLINE real antisymmetric_at(int64_t C, const real *q, int64_t i, int64_t j) {
    return i == j ? 0 : i < j ? q[pair_at(C, i, j)] : -q[pair_at(C, j, i)];
}

/* Returns the rows of interval k >= 1 of T rows. Row 0 belongs to no interval. */
LRNN_INLINE struct range interval_at(int64_t T, int64_t interval, int64_t k) {
    struct range r = {1 + (k - 1) * interval, 1 + k * interval < T ? 1 + k * interval : T};
    return r;
}

/* Computes y += factor * Q z. Each row of q is read once, for its own sum and for the sums of the columns. */
LRNN_INLINE void add_antisymmetric(int64_t C, real factor, const real *q, const real *z, real *y) {
    for (int64_t i = 0; i + 1 < C; i++) {
        const real *row = q + pairs_before(C, i), *later = z + i + 1;
        real *under = y + i + 1, sum = 0, x = factor * z[i];
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < C - 1 - i; j++) {
            sum += row[j] * later[j];
            under[j] = real_fma(-row[j], x, under[j]);
        }
        y[i] = real_fma(factor, sum, y[i]);
    }
}

#ifdef __cplusplus
}
#endif
#endif

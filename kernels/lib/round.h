/* round.h - rounds factors of products to fewer bits (enum precision, core/op.h): to the nearest number, ties to even.
 * Values that are too large become infinite, and NaN stays NaN. The double build first converts numbers to float. */
#ifndef LRNN_KERNELS_LIB_ROUND_H
#define LRNN_KERNELS_LIB_ROUND_H

#include <string.h>

#include "core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the bits of x, rounded so that the last `dropped` bits are 0. */
LRNN_INLINE uint32_t rounded_bits(float x, int dropped) {
    uint32_t bits, one = (uint32_t)1 << dropped;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + (one / 2 - 1) + (bits >> dropped & 1)) & ~(one - 1);
    return (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded;
}

LRNN_INLINE real rounded(enum precision p, real x) {
    if (p == PRECISION_FULL) return x;
    uint32_t bits = rounded_bits((float)x, p == PRECISION_TF32 ? 13 : 16);
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Returns the 16 bits of x, rounded to bf16. */
LRNN_INLINE uint16_t bf16_bits(real x) {
    return (uint16_t)(rounded_bits((float)x, 16) >> 16);
}

/* These return the precision in which a kernel stores output j, or the gradient of input i (op.h, rounds_out and
 * rounds_din). */
LRNN_INLINE enum precision out_precision(const struct call *c, int j) {
    return c->out[j]->rounded ? c->precision : PRECISION_FULL;
}

LRNN_INLINE enum precision din_precision(const struct call *c, int i) {
    return c->in[i] && c->in[i]->grad_rounded ? c->precision : PRECISION_FULL;
}

/* Computes to[i] = from[i] rounded for i < n, on OpenMP's threads. `to` must not be `from`. */
void round_reals(enum precision p, int64_t n, const real *from, real *to);

/* Rounds to bf16, 16 bits each. */
void round_to_bf16(int64_t n, const real *from, uint16_t *to);

#ifdef __cplusplus
}
#endif
#endif

/* half_turns.h - sines and cosines for CPU kernels, in a form from which compilers make SIMD loops. */
#ifndef LRNN_KERNELS_TOKEN_HALF_TURNS_H
#define LRNN_KERNELS_TOKEN_HALF_TURNS_H

#include "core/real_math.h"
#include "kernels/token/turn.h"

/* Rounds x to the nearest whole number, for |x| < 2^22: the sum of x and `most` has no bits for a fraction. */
FORCE_INLINE real whole(real x) {
    const real most = REAL_IS_DOUBLE ? (real)6755399441055744.0 : (real)12582912.0; /* 1.5 times 2^52 or 2^23 */
    return (x + most) - most;
}

/* Computes sin and cos of pi s, for |s| <= 1. In float it first subtracts q quarter turns, and then uses Cephes'
 * polynomials (sinf, cosf). */
FORCE_INLINE void half_turns(real s, real *sine, real *cosine) {
#ifdef LRNN_DOUBLE
    *sine = sin(TURN_PI * s);
    *cosine = cos(TURN_PI * s);
#else
    real q = whole(2 * s), x = (real)TURN_PI * real_fma(q, -0.5f, s), z = x * x;
    real a = real_fma(real_fma(real_fma(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f) * z, x, x);
    real b = real_fma(real_fma(real_fma(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f),
                      z * z, real_fma(-0.5f, z, 1.0f));
    bool odd = q == 1 || q == -1, turned = q < -1 || q > 1;
    real up = turned ? -a : a, along = turned ? -b : b;
    *sine = odd ? q * b : up;
    *cosine = odd ? -q * a : along;
#endif
}

/* Computes sin and cos of an angle in radians, in float for up to 2^23 turns. */
FORCE_INLINE void sine_cosine(real angle, real *sine, real *cosine) {
#ifdef LRNN_DOUBLE
    *sine = sin(angle);
    *cosine = cos(angle);
#else
    real s = angle * (real)(1 / TURN_PI);
    half_turns(real_fma(whole(s * 0.5f), -2, s), sine, cosine);
#endif
}

#endif

/* real_math.h - exp, log, tanh, sigmoid, softplus and sqrt in `real`.
 *
 * In double they call libm. In float they are polynomials without branches, which compilers vectorise inside `#pragma
 * omp simd` loops. Every lane does the same arithmetic, so the bits of an element do not depend on its place in a
 * vector. Nothing here reads or sets errno. NaN stays NaN everywhere. tests/core/check_real_math.c measures the errors
 * over all of float. Coefficients of exp, log and tanh: S. Moshier, Cephes single precision (expf, logf, tanhf). */
#ifndef LRNN_CORE_REAL_MATH_H
#define LRNN_CORE_REAL_MATH_H

#include <math.h>
#include <string.h>

#include "core/real.h"

FORCE_INLINE real real_sqrt(real x) {
#ifdef LRNN_DOUBLE
    return sqrt(x);
#else
    return sqrtf(x);
#endif
}

FORCE_INLINE real real_abs(real x) {
#ifdef LRNN_DOUBLE
    return fabs(x);
#else
    return fabsf(x);
#endif
}

#ifdef LRNN_DOUBLE

FORCE_INLINE real real_exp(real x) {
    return exp(x);
}

FORCE_INLINE real real_log(real x) {
    return log(x);
}

FORCE_INLINE real real_tanh(real x) {
    return tanh(x);
}

FORCE_INLINE real real_softplus(real x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

#else

FORCE_INLINE uint32_t real_bits(real x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

FORCE_INLINE real real_of_bits(uint32_t u) {
    real x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Computes e^x = 2^k e^r with k = round(x / ln 2), |r| <= ln(2)/2. `magic` is 1.5 * 2^23 + 126. Adding it to x / ln 2
 * rounds, and leaves k + 126 in the low bits, which is the exponent field of 2^(k-1). The missing factor 2 is in the
 * last step of the polynomial. The lower clamp makes this field 0, so results below 1.66e-38 (1.4 times the smallest
 * normal number) are 0. The upper clamp, k <= 128, is beyond overflow. It compares bits, because gcc compiles two float
 * clamps to branches and four comparisons. */
FORCE_INLINE real real_exp(real x) {
    const real magic = 12582912.0f + 126.0f;
    const uint32_t top = 0x4b4000feu; /* bits of magic + 128 */
    real y = x < -87.3f ? -87.3f : x;
    uint32_t field = real_bits(real_fma(y, 1.44269504088896341f, magic));
    field = field < top ? field : top;
    real k = real_of_bits(field) - magic;
    real r = real_fma(k, -0.693359375f, y); /* ln 2 is in two parts; k times the first part is exact */
    r = real_fma(k, 2.12194440e-4f, r);
    real p = real_fma(1.9875691500e-4f, r, 1.3981999507e-3f);
    p = real_fma(p, r, 8.3334519073e-3f);
    p = real_fma(p, r, 4.1665795894e-2f);
    p = real_fma(p, r, 1.6666665459e-1f);
    p = real_fma(p, r, 5.0000001201e-1f);
    p = real_fma(p, r * r, r);
    return real_fma(p, 2.0f, 2.0f) * real_of_bits(field << 23);
}

/* Returns log(f + 1) + e ln 2, for f in [sqrt(1/2) - 1, sqrt(2) - 1]. */
FORCE_INLINE real real_log_reduced(real f, real e) {
    real z = f * f;
    real p = real_fma(7.0376836292e-2f, f, -1.1514610310e-1f);
    p = real_fma(p, f, 1.1676998740e-1f);
    p = real_fma(p, f, -1.2420140846e-1f);
    p = real_fma(p, f, 1.4249322787e-1f);
    p = real_fma(p, f, -1.6668057665e-1f);
    p = real_fma(p, f, 2.0000714765e-1f);
    p = real_fma(p, f, -2.4999993993e-1f);
    p = real_fma(p, f, 3.3333331174e-1f);
    p = p * f * z;
    p = real_fma(e, -2.12194440e-4f, p);
    p = real_fma(z, -0.5f, p);
    return real_fma(e, 0.693359375f, f + p);
}

/* Returns log x; -inf for 0, NaN for negative x. x = m 2^e with m in [sqrt(1/2), sqrt(2)); denormal numbers are first
 * scaled up. */
FORCE_INLINE real real_log(real x) {
    const uint32_t sqrt_half = 0x3f3504f3u; /* bits of sqrt(1/2) */
    real tiny = x < 1.17549435e-38f ? 1.0f : 0.0f;
    real scaled = x * (tiny > 0 ? 8388608.0f : 1.0f);
    uint32_t above = real_bits(scaled) - sqrt_half;
    int32_t exponent = (int32_t)above >> 23;
    real m = real_of_bits((above & 0x007fffffu) + sqrt_half);
    real y = real_log_reduced(m - 1.0f, real_fma(tiny, -23.0f, (real)exponent));
    y = x == 0 ? -INFINITY : y;
    y = x < 0 ? NAN : y;
    y = x > 3.40282347e38f ? x : y;
    return x != x ? x : y;
}

/* For |x| < 5/8 it uses an odd polynomial, else 1 - 2 / (e^(2|x|) + 1) with the sign of x. */
FORCE_INLINE real real_tanh(real x) {
    real a = real_abs(x), z = x * x;
    real p = real_fma(-5.70498872745e-3f, z, 2.06390887954e-2f);
    p = real_fma(p, z, -5.37397155531e-2f);
    p = real_fma(p, z, 1.33314422036e-1f);
    p = real_fma(p, z, -3.33332819422e-1f);
    real small = real_fma(p * z, x, x);
    real large = 1.0f - 2.0f / (real_exp(a + a) + 1.0f);
    large = x < 0 ? -large : large;
    return a < 0.625f ? small : large;
}

/* Returns log(1 + e^x) = max(x, 0) + log(1 + u), with u = e^-|x| in [0,1]. The last term restores what is lost by
 * rounding 1 + u. */
FORCE_INLINE real real_softplus(real x) {
    real u = real_exp(-real_abs(x)), w = 1.0f + u;
    real tail = real_log(w) + (u - (w - 1.0f)) / w;
    return (x > 0 ? x : 0.0f) + tail;
}

#endif

/* Returns 1 / (1 + e^-x). */
FORCE_INLINE real real_sigmoid(real x) {
    return 1 / (1 + real_exp(-x));
}

#endif

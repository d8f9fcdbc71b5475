/* simd.h - vectors of LANES numbers, which is as many as fit into a register of this processor. CPU kernels use them to
 * place rows of matrices in lanes by hand. Rows are padded with zeros to whole vectors. LANES, and so the bits of sums
 * over lanes, depend on the processor for which the program was built. Loops that compilers vectorise do not need this
 * file. */
#ifndef LRNN_KERNELS_LIB_SIMD_H
#define LRNN_KERNELS_LIB_SIMD_H

#include <string.h>
#if defined(__FMA__) && defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/real.h"

#if defined(__AVX512F__)
#define LANE_BYTES 64
#elif defined(__AVX__)
#define LANE_BYTES 32
#else
#define LANE_BYTES 16
#endif
#if REAL_IS_DOUBLE
#define LANES (LANE_BYTES / 8)
#else
#define LANES (LANE_BYTES / 4)
#endif

typedef real lanes __attribute__((vector_size(LANE_BYTES)));
#if REAL_IS_DOUBLE
typedef int64_t lane_bits __attribute__((vector_size(LANE_BYTES)));
#else
typedef int32_t lane_bits __attribute__((vector_size(LANE_BYTES)));
#endif

FORCE_INLINE lanes lanes_at(const real *x) {
    lanes v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Returns the first n numbers, then zeros; n is at most LANES. */
FORCE_INLINE lanes some_lanes_at(const real *x, int64_t n) {
    lanes v = {0};
    memcpy(&v, x, (size_t)n * sizeof *x);
    return v;
}

FORCE_INLINE void lanes_to(real *x, lanes v) {
    memcpy(x, &v, sizeof v);
}

/* Returns a b + c, by real_fma in each lane. It uses intrinsics where possible, because compilers do not always turn a
 * loop over lanes into one instruction. */
FORCE_INLINE lanes lanes_fma(lanes a, lanes b, lanes c) {
#if defined(__AVX512F__) && REAL_IS_DOUBLE
    return (lanes)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX512F__)
    return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX__) && defined(__FMA__) && REAL_IS_DOUBLE
    return (lanes)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__AVX__) && defined(__FMA__)
    return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    lanes r = a;
    for (int i = 0; i < LANES; i++) r[i] = real_fma(a[i], b[i], c[i]);
    return r;
#endif
}

/* Returns the number x in all lanes. */
FORCE_INLINE lanes all_lanes(real x) {
    return x - (lanes){0};
}

/* Returns a b + c, where a is a single number. */
FORCE_INLINE lanes lanes_axpy(real a, lanes b, lanes c) {
    return lanes_fma(all_lanes(a), b, c);
}

FORCE_INLINE void add_lanes(real *to, lanes x) {
    lanes_to(to, lanes_at(to) + x);
}

LRNN_INLINE int64_t whole_lanes(int64_t n) {
    return (n + LANES - 1) / LANES * LANES;
}

/* Returns v with zeros in all lanes except `lane`; all zeros if there is no such lane. */
FORCE_INLINE lanes lane_alone(lanes v, int lane) {
    lane_bits keep = {0};
    if (lane >= 0 && lane < LANES) keep[lane] = -1;
    return (lanes)((lane_bits)v & keep);
}

/* Copies scale * from[n] to to[width], and fills up with zeros. */
LRNN_INLINE void padded_row(int64_t n, int64_t width, real scale, const real *from, real *to) {
    for (int64_t i = 0; i < n; i++) to[i] = scale * from[i];
    for (int64_t i = n; i < width; i++) to[i] = 0;
}

FORCE_INLINE real sum_of(lanes x) {
    real sum = 0;
    for (int i = 0; i < LANES; i++) sum += x[i];
    return sum;
}

/* --- sums over lanes ---------------------------------------------------------------------------------------------- */

/* Step s of a butterfly: lane j of the result adds lanes j and j ^ s; they are lanes of b if j has bit s, else of a. */
#define LANE_OF(j, s)    ((j) & (s) ? LANES + (j) : (j))
#define PARTNER_OF(j, s) ((j) & (s) ? LANES + ((j) ^ (s)) : ((j) ^ (s)))
#define TWO(f, j, s)     f(j, s), f((j) + 1, s)
#define FOUR(f, j, s)    TWO(f, j, s), TWO(f, (j) + 2, s)
#define EIGHT(f, j, s)   FOUR(f, j, s), FOUR(f, (j) + 4, s)
#if LANES == 16
#define EACH_LANE(f, s) EIGHT(f, 0, s), EIGHT(f, 8, s)
#elif LANES == 8
#define EACH_LANE(f, s) EIGHT(f, 0, s)
#elif LANES == 4
#define EACH_LANE(f, s) FOUR(f, 0, s)
#else
#define EACH_LANE(f, s) TWO(f, 0, s)
#endif
#define FOLD(p, s)                                                                                                     \
    for (int i = 0; i < (s); i++)                                                                                      \
    (p)[i] = __builtin_shufflevector((p)[i], (p)[i + (s)], EACH_LANE(LANE_OF, s)) +                                    \
             __builtin_shufflevector((p)[i], (p)[i + (s)], EACH_LANE(PARTNER_OF, s))

/* Returns a vector whose lane j is the sum over the lanes of p[j]. Overwrites p. Neighbouring lanes are added first. */
FORCE_INLINE lanes sums_of_rows(lanes *p) {
#if LANES > 8
    FOLD(p, 8);
#endif
#if LANES > 4
    FOLD(p, 4);
#endif
#if LANES > 2
    FOLD(p, 2);
#endif
    FOLD(p, 1);
    return p[0];
}

#endif

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

/* Stores v at x, a multiple of LANE_BYTES. Writes past the caches where the processor can: it then need not
 * read the line from memory first. Other threads see these numbers after past_caches_done. */
FORCE_INLINE void lanes_past_caches(real *x, lanes v) {
#if defined(__AVX512F__) && REAL_IS_DOUBLE
    _mm512_stream_pd(x, (__m512d)v);
#elif defined(__AVX512F__)
    _mm512_stream_ps(x, (__m512)v);
#elif defined(__AVX__) && defined(__FMA__) && REAL_IS_DOUBLE
    _mm256_stream_pd(x, (__m256d)v);
#elif defined(__AVX__) && defined(__FMA__)
    _mm256_stream_ps(x, (__m256)v);
#else
    lanes_to(x, v);
#endif
}

FORCE_INLINE void past_caches_done(void) {
#if defined(__AVX__) && defined(__FMA__)
    _mm_sfence();
#endif
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

/* Returns in each lane the larger number; a[j] if one is NaN. */
FORCE_INLINE lanes larger_lanes(lanes a, lanes b) {
    lane_bits larger = b > a;
    return (lanes)(((lane_bits)b & larger) | ((lane_bits)a & ~larger));
}

/* Returns a number whose bit j is set if a[j] == b[j]. */
FORCE_INLINE unsigned equal_lanes(lanes a, lanes b) {
#if defined(__AVX512F__) && REAL_IS_DOUBLE
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_EQ_OQ);
#elif defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
#else
    lane_bits equal = a == b;
    unsigned bits = 0;
    for (int i = 0; i < LANES; i++) bits |= (unsigned)(equal[i] & 1) << i;
    return bits;
#endif
}

/* Returns v with zeros in all lanes except `lane`; all zeros if there is no such lane. */
FORCE_INLINE lanes lane_alone(lanes v, int lane) {
    lane_bits keep = {0};
    if (lane >= 0 && lane < LANES) keep[lane] = -1;
    return (lanes)((lane_bits)v & keep);
}

/* Returns v with zeros in all lanes before `first`. */
FORCE_INLINE lanes lanes_from(lanes v, int first) {
    lane_bits number;
    for (int i = 0; i < LANES; i++) number[i] = i;
    return (lanes)((lane_bits)v & (number >= first));
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

/* --- transposed tiles --------------------------------------------------------------------------------------------- */

/* Interleave elements of a and b: of the first half of each (low), or of the second half (high). */
#if defined(__has_builtin) && LANE_BYTES >= 32
#if __has_builtin(__builtin_shufflevector)
#if LANE_BYTES / (REAL_IS_DOUBLE ? 8 : 4) == 16
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(a, b)                                                                                          \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif LANE_BYTES / (REAL_IS_DOUBLE ? 8 : 4) == 8
#define INTERLEAVE_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define INTERLEAVE_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif
#endif
#endif

/* Computes to[j][r] = from[r][j] for one tile of LANES x LANES. Interleaving rows i and i + half rotates the bits of an
 * element's index (row, column) by one. After as many rounds as the row number has bits, row and column are
 * exchanged. */
FORCE_INLINE void transpose_tile(const real *from, int64_t ld, real *to, int64_t ldt) {
#ifdef INTERLEAVE_LOW
    lanes v[LANES], w[LANES];
#pragma GCC unroll 16
    for (int r = 0; r < LANES; r++) v[r] = lanes_at(from + r * ld);
#pragma GCC unroll 4
    for (int bit = 1; bit < LANES; bit *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES / 2; i++) {
            w[2 * i] = INTERLEAVE_LOW(v[i], v[i + LANES / 2]);
            w[2 * i + 1] = INTERLEAVE_HIGH(v[i], v[i + LANES / 2]);
        }
#pragma GCC unroll 16
        for (int r = 0; r < LANES; r++) v[r] = w[r];
    }
#pragma GCC unroll 16
    for (int r = 0; r < LANES; r++) lanes_to(to + r * ldt, v[r]);
#else
    for (int j = 0; j < LANES; j++)
        for (int r = 0; r < LANES; r++) to[j * ldt + r] = from[r * ld + j];
#endif
}

/* Returns the products of n elements of two rows, added up lane by lane. n is a multiple of LANES. */
FORCE_INLINE lanes lane_products(int64_t n, const real *a, const real *b) {
    lanes sum = {0};
    for (int64_t i = 0; i < n; i += LANES) sum += lanes_at(a + i) * lanes_at(b + i);
    return sum;
}

/* Returns a vector whose lane r is the sum over the lanes of v[r], from the first lane to the last. */
FORCE_INLINE lanes ordered_sums(const lanes *v) {
    lanes t[LANES], sum = {0};
    transpose_tile((const real *)v, LANES, (real *)t, LANES);
    for (int i = 0; i < LANES; i++) sum += t[i];
    return sum;
}

#endif

/* matrix_state_chunk.h - what the chunkwise kernels of the matrix-state recurrences share: products of small matrices
 * in registers, and products of gates over ranges of tokens.
 *
 * A chunk is STATE_CHUNK rows (tokens, or steps of tokens; missing ones are zero), so that a row of scores is a
 * vector. Scores stand [writer][reader]: what row m wrote into the state and row n reads is in element [m][n]. Widths
 * are multiples of STATE_VECTOR. At these sizes the products are as fast as OpenBLAS's, faster where one side is 16,
 * slower (by a fifth) in the updates of 16 terms. */
#ifndef LRNN_KERNELS_MATRIX_STATE_CHUNK_H
#define LRNN_KERNELS_MATRIX_STATE_CHUNK_H

#include "kernels/matrix_state_cpu.h"

#if defined(__AVX512F__)
#define STATE_VECTOR_BYTES 64
#define TILE_ROWS          8 /* times 2 vectors of sums, 2 of B and one of A: of 32 registers */
#elif defined(__AVX__)
#define STATE_VECTOR_BYTES 32
#define TILE_ROWS          4 /* of 16 registers */
#else
#define STATE_VECTOR_BYTES 16
#define TILE_ROWS          4
#endif
enum { STATE_LANES = STATE_VECTOR_BYTES / sizeof(real), SCORES = STATE_CHUNK * STATE_CHUNK };
typedef real state_vector __attribute__((vector_size(STATE_VECTOR_BYTES)));

STATE_INLINE state_vector load_vector(const real *x) {
    state_vector v;
    memcpy(&v, x, sizeof v);
    return v;
}

STATE_INLINE void store_vector(real *x, state_vector v) {
    memcpy(x, &v, sizeof v);
}

/* a b + c */
STATE_INLINE state_vector fma_vector(real a, state_vector b, state_vector c) {
#ifdef __FMA__
    state_vector r = b;
    for (int i = 0; i < STATE_LANES; i++) r[i] = real_fma(a, b[i], c[i]);
    return r;
#else
    return a * b + c;
#endif
}

/* One tile of chunk_product: TILE_ROWS x `vectors`. */
STATE_INLINE void product_tile(int vectors, int64_t depth, const real *A, int64_t row, int64_t step, const real *B,
                               int64_t ldb, real keep, real *out, int64_t ldo) {
    state_vector sum[TILE_ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[r][v] = keep != 0 ? keep * load_vector(out + r * ldo + v * STATE_LANES) : (state_vector){0};
    for (int64_t k = 0; k < depth; k++) {
        state_vector b[2];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) b[v] = load_vector(B + k * ldb + v * STATE_LANES);
#pragma GCC unroll 8
        for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) sum[r][v] = fma_vector(A[r * row + k * step], b[v], sum[r][v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) store_vector(out + r * ldo + v * STATE_LANES, sum[r][v]);
}

/* A matrix whose element (r,k) is at[r * row + k * step]: either way round. */
struct factor {
    const real *at;
    int64_t row, step;
};

/* out = keep out + A B; out rows x columns, B depth x columns with rows ldb apart. rows and columns are multiples of
 * STATE_VECTOR; keep = 0 does not read out. */
static __attribute__((noinline, unused)) void chunk_product(int64_t rows, int64_t columns, int64_t depth,
                                                            struct factor A, const real *B, int64_t ldb, real keep,
                                                            real *out, int64_t ldo) {
    for (int64_t j = 0; j < columns;) {
        int64_t wide = columns - j >= 2 * STATE_LANES;
        for (int64_t r = 0; r < rows; r += TILE_ROWS) {
            const real *a = A.at + r * A.row;
            real *to = out + r * ldo + j;
            if (wide)
                product_tile(2, depth, a, A.row, A.step, B + j, ldb, keep, to, ldo);
            else
                product_tile(1, depth, a, A.row, A.step, B + j, ldb, keep, to, ldo);
        }
        j += (wide + 1) * STATE_LANES;
    }
}

/* Elements of a and b in turn, from the first half of each (low) or the second (high). */
#if defined(__has_builtin) && STATE_VECTOR_BYTES >= 32
#if __has_builtin(__builtin_shufflevector)
#if STATE_VECTOR_BYTES / (REAL_IS_DOUBLE ? 8 : 4) == 16
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(a, b)                                                                                          \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif STATE_VECTOR_BYTES / (REAL_IS_DOUBLE ? 8 : 4) == 8
#define INTERLEAVE_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define INTERLEAVE_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif
#endif
#endif

/* to[j][r] = from[r][j] for one tile of STATE_LANES x STATE_LANES. Interleaving rows i and i + half turns the index of
 * an element (row, column) by one bit; after as many rounds as it has bits for the row, the two have changed places. */
STATE_INLINE void transpose_tile(const real *from, int64_t ld, real *to, int64_t ldt) {
#ifdef INTERLEAVE_LOW
    state_vector v[STATE_LANES], w[STATE_LANES];
#pragma GCC unroll 16
    for (int r = 0; r < STATE_LANES; r++) v[r] = load_vector(from + r * ld);
#pragma GCC unroll 4
    for (int bit = 1; bit < STATE_LANES; bit *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < STATE_LANES / 2; i++) {
            w[2 * i] = INTERLEAVE_LOW(v[i], v[i + STATE_LANES / 2]);
            w[2 * i + 1] = INTERLEAVE_HIGH(v[i], v[i + STATE_LANES / 2]);
        }
#pragma GCC unroll 16
        for (int r = 0; r < STATE_LANES; r++) v[r] = w[r];
    }
#pragma GCC unroll 16
    for (int r = 0; r < STATE_LANES; r++) store_vector(to + r * ldt, v[r]);
#else
    for (int j = 0; j < STATE_LANES; j++)
        for (int r = 0; r < STATE_LANES; r++) to[j * ldt + r] = from[r * ld + j];
#endif
}

/* to[j][r] = from[r][j], r < rows, j < columns, both multiples of STATE_VECTOR. */
static __attribute__((noinline, unused)) void transpose(int64_t rows, int64_t columns, const real *from, int64_t ld,
                                                        real *to, int64_t ldt) {
    for (int64_t r = 0; r < rows; r += STATE_LANES)
        for (int64_t j = 0; j < columns; j += STATE_LANES) transpose_tile(from + r * ld + j, ld, to + j * ldt + r, ldt);
}

/* Rows of n reals, a multiple of STATE_VECTOR: whole vectors, no remainder to look for. */
STATE_INLINE void scale_row(int64_t n, real factor, const real *from, real *to) {
    for (int64_t i = 0; i < n; i += STATE_LANES) store_vector(to + i, factor * load_vector(from + i));
}

STATE_INLINE void clear_row(int64_t n, real *to) {
    for (int64_t i = 0; i < n; i += STATE_LANES) store_vector(to + i, (state_vector){0});
}

/* to += factor from */
STATE_INLINE void add_row(int64_t n, real factor, const real *from, real *to) {
    for (int64_t i = 0; i < n; i += STATE_LANES)
        store_vector(to + i, fma_vector(factor, load_vector(from + i), load_vector(to + i)));
}

/* Lane r of the result is the sum over the lanes of v[r]; v is lost. Each round adds the two halves of two vectors. */
STATE_INLINE state_vector sums_of_lanes(state_vector *v) {
#ifdef INTERLEAVE_LOW
#pragma GCC unroll 4
    for (int half = STATE_LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int r = 0; r < half; r++) v[r] = INTERLEAVE_LOW(v[r], v[r + half]) + INTERLEAVE_HIGH(v[r], v[r + half]);
    return v[0];
#else
    state_vector sums = {0};
    for (int r = 0; r < STATE_LANES; r++)
        for (int i = 0; i < STATE_LANES; i++) sums[r] += v[r][i];
    return sums;
#endif
}

/* dots[r] = sum over i < n of a[r][i] b[r][i] for the rows of a chunk, lda and ldb apart; n a multiple of
 * STATE_VECTOR. */
STATE_INLINE void row_dots(int64_t n, const real *a, int64_t lda, const real *b, int64_t ldb, real *dots) {
    for (int r = 0; r < STATE_CHUNK; r += STATE_LANES) {
        state_vector sum[STATE_LANES];
#pragma GCC unroll 16
        for (int x = 0; x < STATE_LANES; x++) {
            const real *p = a + (r + x) * lda, *q = b + (r + x) * ldb;
            sum[x] = load_vector(p) * load_vector(q);
            for (int64_t i = STATE_LANES; i < n; i += STATE_LANES) sum[x] += load_vector(p + i) * load_vector(q + i);
        }
        store_vector(dots + r, sums_of_lanes(sum));
    }
}

/* Sum of a o b over a state, n a multiple of 4: four sums at once, or each step waits for the one before. */
STATE_INLINE real state_dot(int64_t n, const real *a, const real *b) {
    real sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    int64_t part = n / 4;
#pragma omp simd reduction(+ : sum0, sum1, sum2, sum3)
    for (int64_t i = 0; i < part; i++) {
        sum0 += a[i] * b[i];
        sum1 += a[part + i] * b[part + i];
        sum2 += a[2 * part + i] * b[2 * part + i];
        sum3 += a[3 * part + i] * b[3 * part + i];
    }
    return (sum0 + sum1) + (sum2 + sum3);
}

/* ranges[m][n] = product of f over m < x <= n; 0 where n < m. Products, not logarithms: f may be negative or 0. */
STATE_INLINE void range_products(const real *f, real *restrict ranges) {
    for (int n = 0; n < STATE_CHUNK; n++) ranges[SCORES - STATE_CHUNK + n] = n == STATE_CHUNK - 1;
    for (int m = STATE_CHUNK - 2; m >= 0; m--) {
        const real *from = ranges + (m + 1) * STATE_CHUNK;
        real *to = ranges + m * STATE_CHUNK;
#pragma omp simd
        for (int n = 0; n < STATE_CHUNK; n++) to[n] = n == m ? 1 : f[m + 1] * from[n];
    }
}

/* before[n] = f[0] ... f[n-1], after[n] = f[n+1] ... f[last]; returns the product of all. */
STATE_INLINE real border_products(const real *f, real *before, real *after) {
    real left = 1, right = 1;
    for (int n = 0; n < STATE_CHUNK; n++) {
        before[n] = left;
        left *= f[n];
        after[STATE_CHUNK - 1 - n] = right;
        right *= f[STATE_CHUNK - 1 - n];
    }
    return left;
}

#endif

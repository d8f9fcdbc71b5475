/* chunk.h - parts that the chunkwise CPU kernels of the matrix-state recurrences share: products of small matrices in
 * registers, and products of gates over ranges of tokens.
 *
 * A chunk has STATE_CHUNK rows (tokens, or steps of tokens; missing rows are zero), so that a row of scores is a
 * vector. Scores are stored [writer][reader]: element [m][n] is for what row m writes into the state and row n reads
 * from it. Widths are multiples of STATE_VECTOR. At these sizes the products are as fast as OpenBLAS's, faster if one
 * side is 16, and slower by a fifth in updates of 16 terms. */
#ifndef LRNN_KERNELS_MATRIX_CHUNK_H
#define LRNN_KERNELS_MATRIX_CHUNK_H

#include "kernels/lib/simd.h"
#include "kernels/matrix/state_cpu.h"

#if defined(__AVX512F__)
#define TILE_ROWS    8 /* 8 x 2 sums, 2 vectors of B and one of A fit into 32 registers */
#define TILE_VECTORS 2
#else
#define TILE_ROWS    4 /* for 16 registers; by a sixth faster than 4 x 2 */
#define TILE_VECTORS 3
#endif
enum { SCORES = STATE_CHUNK * STATE_CHUNK };

/* A matrix whose element (r,k) is at[r * row + k * step]. So it may be stored normally or transposed. */
struct factor {
    const real *at;
    int64_t row, step;
};

/* A matrix whose element (k,j) is at[k * ld + j]. */
struct right {
    const real *at;
    int64_t ld;
};

struct extent {
    int64_t rows, columns, depth;
};

/* The product out = keep * out + A B. */
struct product {
    struct extent n;
    struct factor A; /* rows x depth */
    struct right B;  /* depth x columns */
    real keep;       /* 0: out is not read */
    real *out;       /* rows x columns, rows ldo apart */
    int64_t ldo;
};

/* Computes one tile of a product, whose first element is (r, j). It has at most TILE_ROWS x TILE_VECTORS vectors, or
 * one vector and 2 TILE_ROWS rows. `rows` and `vectors` are constants. */
FORCE_INLINE void product_tile(int rows, int vectors, const struct product *p, int64_t r, int64_t j) {
    const real *A = p->A.at + r * p->A.row, *B = p->B.at + j, keep = p->keep;
    int64_t row = p->A.row, step = p->A.step, ldb = p->B.ld, ldo = p->ldo, depth = p->n.depth;
    real *out = p->out + r * ldo + j;
    lanes sum[TILE_ROWS * TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < rows * vectors; i++) sum[i] = (lanes){0};
    if (keep != 0)
#pragma GCC unroll 16
        for (int i = 0; i < rows * vectors; i++)
            sum[i] = keep * lanes_at(out + i / vectors * ldo + i % vectors * LANES);
    for (int64_t k = 0; k < depth; k++) {
        const real *b = B + k * ldb;
        lanes b0 = lanes_at(b), b1 = vectors > 1 ? lanes_at(b + LANES) : b0;
        lanes b2 = vectors > 2 ? lanes_at(b + 2 * LANES) : b0;
#pragma GCC unroll 24
        for (int i = 0; i < rows * vectors; i++) {
            int v = i % vectors;
            sum[i] = lanes_axpy(A[i / vectors * row + k * step], v == 0 ? b0 : v == 1 ? b1 : b2, sum[i]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows * vectors; i++) lanes_to(out + i / vectors * ldo + i % vectors * LANES, sum[i]);
}

/* The largest tile is not inlined. Otherwise gcc 12, tuned for Zen, would keep the counters of the loops over tiles in
 * vector registers, would have none left for the vectors of B, and would read these again for every sum. */
static __attribute__((noinline, unused)) void whole_tile(const struct product *p, int64_t r, int64_t j) {
    product_tile(TILE_ROWS, TILE_VECTORS, p, r, j);
}

/* Computes tiles of `tall` rows and `vectors` vectors from column j on, up to `end`. Returns the first column left. */
FORCE_INLINE int64_t product_columns(int tall, int vectors, const struct product *p, int64_t j, int64_t end) {
    for (; j + vectors * LANES <= end; j += vectors * LANES)
        for (int64_t r = 0; r < p->n.rows; r += tall) {
            if (tall == TILE_ROWS && vectors == TILE_VECTORS)
                whole_tile(p, r, j);
            else
                product_tile(tall, vectors, p, r, j);
        }
    return j;
}

/* Computes all tiles. `tall` is the number of rows of a tile with one vector. Four vectors make two tiles of two. */
FORCE_INLINE void product_tiles(int tall, const struct product *p) {
    int64_t columns = p->n.columns, last = columns, j = 0;
    if (columns % (TILE_VECTORS * LANES) == LANES && columns > LANES) last = columns - 4 * LANES;
    if (TILE_VECTORS > 2) j = product_columns(TILE_ROWS, TILE_VECTORS, p, j, last);
    j = product_columns(TILE_ROWS, 2, p, j, columns);
    product_columns(tall, 1, p, j, columns);
}

/* Computes a product of any sizes. Each row of A needs a register for its address, so tiles have TILE_ROWS rows. */
static __attribute__((noinline, unused)) void product_of_any_size(const struct product *p) {
    product_tiles(TILE_ROWS, p);
}

/* Computes out = keep * out + A B. The number of rows is a multiple of STATE_CHUNK / 2, the number of columns a
 * multiple of STATE_VECTOR. Rows of `out` lie ldo apart. If keep is 0, `out` is not read. A product of constant sizes
 * is small, so it is compiled in place. */
FORCE_INLINE void chunk_product(struct extent n, struct factor A, struct right B, real keep, real *out, int64_t ldo) {
    const struct product p = {n, A, B, keep, out, ldo};
    if (__builtin_constant_p(n.rows) && __builtin_constant_p(n.columns) && __builtin_constant_p(n.depth))
        product_tiles(n.rows % (2 * TILE_ROWS) ? TILE_ROWS : 2 * TILE_ROWS, &p);
    else
        product_of_any_size(&p);
}

/* Like chunk_product, for rows = depth = STATE_CHUNK and a triangular A. LOWER: in row r, elements after element r are
 * 0; UPPER: elements before it. A quarter of the work on A is left out. */
enum triangle { LOWER, UPPER };

FORCE_INLINE void triangle_product(enum triangle side, int64_t columns, struct factor A, struct right B, real keep,
                                   real *out, int64_t ldo) {
    const int64_t half = STATE_CHUNK / 2, from = side == UPPER ? half : 0;
    struct factor last = {A.at + half * A.row + from * A.step, A.row, A.step};
    struct right below = {B.at + from * B.ld, B.ld};
    chunk_product((struct extent){half, columns, side == UPPER ? STATE_CHUNK : half}, A, B, keep, out, ldo);
    chunk_product((struct extent){half, columns, side == UPPER ? half : STATE_CHUNK}, last, below, keep,
                  out + half * ldo, ldo);
}

/* Computes to[j][r] = from[r][j] for r < rows, j < columns, both multiples of STATE_VECTOR. */
static __attribute__((noinline, unused)) void transpose(int64_t rows, int64_t columns, const real *from, int64_t ld,
                                                        real *to, int64_t ldt) {
    for (int64_t r = 0; r < rows; r += LANES)
        for (int64_t j = 0; j < columns; j += LANES) transpose_tile(from + r * ld + j, ld, to + j * ldt + r, ldt);
}

/* Scales a row of n reals. n is a multiple of STATE_VECTOR, so that no remainder is left. */
FORCE_INLINE void scale_row(int64_t n, real factor, const real *from, real *to) {
    for (int64_t i = 0; i < n; i += LANES) lanes_to(to + i, factor * lanes_at(from + i));
}

FORCE_INLINE void clear_row(int64_t n, real *to) {
    for (int64_t i = 0; i < n; i += LANES) lanes_to(to + i, (lanes){0});
}

/* Computes to += factor * from. */
FORCE_INLINE void add_row(int64_t n, real factor, const real *from, real *to) {
    for (int64_t i = 0; i < n; i += LANES) lanes_to(to + i, lanes_axpy(factor, lanes_at(from + i), lanes_at(to + i)));
}

/* Returns a vector whose lane r is the sum over the lanes of v[r]. Overwrites v. Each round adds the two halves of two
 * vectors. The order of the sums differs from that of sums_of_rows, which the pLSTM kernels use, so the bits differ. */
FORCE_INLINE lanes sums_of_lanes(lanes *v) {
#ifdef INTERLEAVE_LOW
#pragma GCC unroll 4
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int r = 0; r < half; r++) v[r] = INTERLEAVE_LOW(v[r], v[r + half]) + INTERLEAVE_HIGH(v[r], v[r + half]);
    return v[0];
#else
    lanes sums = {0};
    for (int r = 0; r < LANES; r++)
        for (int i = 0; i < LANES; i++) sums[r] += v[r][i];
    return sums;
#endif
}

/* Computes dots[r] = a[r] . b[r] for the rows of a chunk, lda and ldb apart. n is a multiple of STATE_VECTOR. */
FORCE_INLINE void row_dots(int64_t n, const real *a, int64_t lda, const real *b, int64_t ldb, real *dots) {
    for (int r = 0; r < STATE_CHUNK; r += LANES) {
        lanes sum[LANES];
#pragma GCC unroll 16
        for (int x = 0; x < LANES; x++) {
            const real *p = a + (r + x) * lda, *q = b + (r + x) * ldb;
            sum[x] = lanes_at(p) * lanes_at(q);
            for (int64_t i = LANES; i < n; i += LANES) sum[x] += lanes_at(p + i) * lanes_at(q + i);
        }
        lanes_to(dots + r, sums_of_lanes(sum));
    }
}

/* Returns the sum of a o b over a state; n is a multiple of 4. It adds four sums in parallel, because in a single sum
 * each addition would wait for the one before it. */
FORCE_INLINE real state_dot(int64_t n, const real *a, const real *b) {
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

/* Computes ranges[m][n] = f[m+1] ... f[n], or 0 where n < m, by products only: f may be negative or 0. */
FORCE_INLINE void range_products(const real *f, real *restrict ranges) {
    const lanes ones = (lanes){0} + 1;
    for (int n = 0; n < STATE_CHUNK; n += LANES) {
        lanes row = {0};
#pragma GCC unroll 16
        for (int m = STATE_CHUNK - 1; m >= 0; m--) {
            row = lanes_axpy(m + 1 < STATE_CHUNK ? f[m + 1] : 0, row, lane_alone(ones, m - n));
            lanes_to(ranges + m * STATE_CHUNK + n, row);
        }
    }
}

/* Computes after[n] = f[n+1] ... f[last]. */
FORCE_INLINE void products_behind(const real *f, real *after) {
    real product = 1;
#pragma GCC unroll 16
    for (int n = STATE_CHUNK - 1; n >= 0; n--) {
        after[n] = product;
        product *= f[n];
    }
}

#endif

/* split_product.cuh - products of matrices whose sizes the compiler knows, by the warps of a thread block on tensor
 * cores. As in tile_product.cuh, each number is split into two tf32 numbers, and three products are summed.
 *
 * A factor in shared memory is stored already split, so a number is split once and not by each warp that reads it.
 * A warp computes 16 rows of the result. Of each tile of 16 x 8, lane 4 g + t has elements (g, 2t), (g, 2t + 1),
 * (g + 8, 2t), (g + 8, 2t + 1). A step multiplies a depth of 8. mma.sync expects a lane to have elements t and t + 4
 * of the depth; here it has 2t and 2t + 1 of both factors, which changes only the order of the sum. So two neighbouring
 * elements are one load of 16 bytes, and a result is the left factor of the next product without leaving its registers.
 *
 * Only code for tensor cores (TILE_TENSOR_CORES) sees more of this header than the size of a pair. */
#ifndef LRNN_KERNELS_LIB_SPLIT_PRODUCT_CUH
#define LRNN_KERNELS_LIB_SPLIT_PRODUCT_CUH

#include "kernels/lib/tile_product.cuh"

/* Two split numbers; both high parts come first, as mma.sync takes them. */
struct alignas(16) split_pair {
    uint32_t high[2], low[2];
};

#ifdef TILE_TENSOR_CORES

static __device__ __forceinline__ uint32_t split_bits(real x) {
#ifdef LRNN_CUDA_HOST
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#else
    return __float_as_uint(x);
#endif
}

/* Splits like tile_split_of, in four instructions instead of seven. The high part is rounded, so at most 12 bits
 * remain. The low part has the first 11 of them: it is cut off, which keeps NaN as it is, and the rest is at most 2^-23
 * |x|. */
static __device__ __forceinline__ struct tile_split split_of(real x) {
    uint32_t high = (split_bits(x) + 0x1000u) & 0xffffe000u;
    return {high, split_bits(x - tile_value(high)) & 0xffffe000u};
}

/* A lane's place in a tile. */
static __device__ __forceinline__ int tile_g(void) {
    return (int)(threadIdx.x % WARP / 4);
}
static __device__ __forceinline__ int tile_t(void) {
    return (int)(threadIdx.x % 4);
}

/* Returns x in a way that hides its value from the compiler. What is computed from it inside a loop is then not
 * computed before the loop, where it would occupy registers all the time. */
static __device__ __forceinline__ int hidden(int x) {
#ifndef LRNN_CUDA_HOST
    asm volatile("" : "+r"(x));
#endif
    return x;
}

/* A split matrix in shared memory, rows of COLUMNS numbers. The pairs of a row are permuted within each eight, so that
 * lanes use different banks for neighbouring pairs of 8 rows, and few share one for 8 columns of every second row. */
template <int COLUMNS> struct split_matrix {
    static_assert(COLUMNS % 16 == 0, "whole groups of eight pairs");
    struct split_pair *at;

    __device__ __forceinline__ static int swap(int row) {
        return (row & 6) ^ (row & 1) << 2;
    }
    /* Returns the pair that has a number; it is number column % 2 of the pair. */
    __device__ __forceinline__ struct split_pair &around(int row, int column) const {
        return at[row * (COLUMNS / 2) + (column / 2 ^ swap(row))];
    }
    /* Returns the lane's pair of rows 8 n + g: pair 4 step + t. The last bits of the place do not depend on n. */
    __device__ __forceinline__ struct split_pair &pair(int n, int step) const {
        int place = tile_g() * (COLUMNS / 2) + (tile_t() ^ swap(tile_g()) ^ step % 2 * 4);
        return at[place + n * 8 * (COLUMNS / 2) + step / 2 * 8];
    }
    /* Returns the place of the high part of the lane's number of row 8 step + 2 t + odd: column 8 n + g. */
    __device__ __forceinline__ uint32_t *place(int step, int odd, int n) const {
        int pair = tile_t() * COLUMNS + (tile_g() / 2 ^ tile_t() * 2 ^ (n + odd) % 2 * 4);
        return at[pair + (8 * step + odd) * (COLUMNS / 2) + n / 2 * 8].high + tile_g() % 2;
    }
    /* Returns the number there. */
    __device__ __forceinline__ struct tile_split across(int step, int odd, int n) const {
        const uint32_t *high = place(step, odd, n);
        return {high[0], high[2]};
    }
};

static __device__ __forceinline__ real split_value(struct tile_split x) {
    return tile_value(x.high) + tile_value(x.low);
}

/* A lane's part of the left factor of a step. */
struct split_left {
    uint32_t high[4], low[4];
    __device__ __forceinline__ void set(int e, struct tile_split x) {
        high[e] = x.high;
        low[e] = x.low;
    }
};

/* Splits a lane's elements of a tile: 16 rows and the depth of a step. */
static __device__ __forceinline__ struct split_left left_of(const real (&x)[4]) {
    struct split_left a;
    a.set(0, split_of(x[0]));
    a.set(1, split_of(x[2]));
    a.set(2, split_of(x[1]));
    a.set(3, split_of(x[3]));
    return a;
}

/* Left factors: rows 8 n to 8 n + 15 of a matrix, or these columns as rows. */
template <int COLUMNS>
__device__ __forceinline__ struct split_left rows_left(struct split_matrix<COLUMNS> m, int n, int step) {
    struct split_left a;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        struct split_pair x = m.pair(n + half, step);
        a.set(half, {x.high[0], x.low[0]});
        a.set(2 + half, {x.high[1], x.low[1]});
    }
    return a;
}

template <int COLUMNS>
__device__ __forceinline__ struct split_left columns_left(struct split_matrix<COLUMNS> m, int n, int step) {
    struct split_left a;
#pragma unroll
    for (int e = 0; e < 4; e++) a.set(e, m.across(step, e / 2, n + e % 2));
    return a;
}

/* Returns what columns_left would, if each row of the matrix were multiplied by its weight. */
template <int COLUMNS>
__device__ __forceinline__ struct split_left weighted_left(struct split_matrix<COLUMNS> m, const real *weight, int n,
                                                           int step) {
    struct split_left a;
#pragma unroll
    for (int e = 0; e < 4; e++)
        a.set(e, split_of(weight[8 * step + 2 * tile_t() + e / 2] * split_value(m.across(step, e / 2, n + e % 2))));
    return a;
}

/* Right factors of a tile: rows 8 n to 8 n + 7 of a matrix as columns, or these columns. */
template <int COLUMNS>
__device__ __forceinline__ struct split_pair rows_right(struct split_matrix<COLUMNS> m, int step, int n) {
    return m.pair(n, step);
}

template <int COLUMNS>
__device__ __forceinline__ struct split_pair columns_right(struct split_matrix<COLUMNS> m, int step, int n) {
    struct tile_split even = m.across(step, 0, n), odd = m.across(step, 1, n);
    return {{even.high, odd.high}, {even.low, odd.low}};
}

/* A warp's sums: 16 rows, TILES tiles of 8 columns. `rest` sums the small products. */
template <int TILES> struct split_sums {
    real of[TILES][4], rest[TILES][4];

    /* Adds left(step) right(step, n) for all steps and tiles for which needed(step, n), which the compiler decides. */
    template <int STEPS, class Left, class Right, class Needed>
    __device__ __forceinline__ void add(Left left, Right right, Needed needed) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            struct split_left a = left(step);
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                if (!needed(step, n)) continue;
                struct split_pair b = right(step, n);
                tile_mma(of[n], a.high, b.high);
                tile_mma(rest[n], a.low, b.high);
                tile_mma(rest[n], a.high, b.low);
            }
        }
    }
    template <int STEPS, class Left, class Right> __device__ __forceinline__ void add(Left left, Right right) {
        add<STEPS>(left, right, [](int, int) { return true; });
    }

    __device__ __forceinline__ real sum(int n, int e) const {
        return of[n][e] + rest[n][e];
    }
    /* Multiplies each column by its weight. */
    __device__ __forceinline__ void weigh(const real *weight) {
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                real w = weight[8 * n + 2 * tile_t() + e % 2];
                of[n][e] *= w;
                rest[n][e] *= w;
            }
    }
    /* Calls f(row, column, n, e) for each element of the lane: element e of tile n. */
    template <class F> __device__ __forceinline__ static void each(F f) {
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) f(tile_g() + e / 2 * 8, 8 * n + 2 * tile_t() + e % 2, n, e);
    }
};

#endif
#endif

/* tile_product.cuh - products of small matrices, whose factors are in shared memory, by the warps of a thread block.
 *
 * The result is divided into tiles of 16 x 8. A warp computes up to four neighbouring tiles at once, for which it reads
 * and splits the left factor only once. Of each tile, a lane has four elements in registers, placed like the
 * accumulators of mma.sync.m16n8k8 (PTX ISA, "Matrix fragments for mma.m16n8k8"): lane 4 g + t has elements (g, 2t),
 * (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). Sums go over the depth in ascending order, so that bits depend only on
 * sizes. The number of rows is a multiple of 16; columns and depth are multiples of 8.
 *
 * Tensor cores multiply in tf32 (compute capability 8.0 or more, float build), but the sums have the accuracy of fp32:
 * scans are in fp32 in every --precision (docs/design.md, "Numbers"). Each factor is split into x = high + low + rest,
 * where high and low are rounded to tf32's 11 significant bits, and three products are summed:
 *   a b ~ high_a high_b + (low_a high_b + high_a low_b)
 * |low| <= 2^-11 |x| and |rest| <= 2^-22 |x|. So the parts that are left out, low_a low_b and the two rests, are at
 * most 3 * 2^-22 |a b|, about the size of fp32's rounding, which is 2^-24 of each partial sum. The products themselves
 * are exact. The small products are summed separately, where the large sum does not round them. The ISA does not say
 * how tensor cores round within a sum of eight. Some devices cut off instead of rounding; then a sum is too small by up
 * to 2^-23 of its parts every eight terms, which the bounds of the tests allow. With an infinite factor the result is
 * NaN where plain fp32 gives infinity. On other devices, and in double, the lanes compute the same elements by fused
 * multiply-adds of `real`. */
#ifndef LRNN_KERNELS_LIB_TILE_PRODUCT_CUH
#define LRNN_KERNELS_LIB_TILE_PRODUCT_CUH

#include "kernels/lib/cuda.cuh"

#define TILE_ROWS    16
#define TILE_COLUMNS 8
#define TILE_DEPTH   8
#ifndef TILES_MOST
#define TILES_MOST 4 /* tiles that a warp computes at once; a source whose kernels need more registers sets fewer */
#endif

/* `count` tiles side by side; the first element of the first one. */
struct tile {
    int row, column, count;
};

/* A lane's four sums of each tile; `rest` sums the small products. */
struct tile_sums {
    real of[TILES_MOST][4], rest[TILES_MOST][4];
};

/* Calls f(tile) for all tiles of rows x columns, divided among the warps of the thread block: as many tiles at once as
 * leave work for each warp. All lanes of a warp call it together. */
template <class F> __device__ __forceinline__ void each_tile(int rows, int columns, F f) {
    int across = columns / TILE_COLUMNS, down = rows / TILE_ROWS, warps = (int)blockDim.x / WARP, most = TILES_MOST;
    while (most > 1 && down * ((across + most - 1) / most) < warps) most /= 2;
    int groups = (across + most - 1) / most;
    for (int i = (int)threadIdx.x / WARP; i < down * groups; i += warps) {
        int first = i % groups * most;
        f(tile{i / groups * TILE_ROWS, first * TILE_COLUMNS, across - first < most ? across - first : most});
    }
}

/* --- tensor cores ------------------------------------------------------------------------------------------------- */

#if !REAL_IS_DOUBLE && (defined(LRNN_CUDA_HOST) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800))
#define TILE_TENSOR_CORES 1

/* x as the sum of two tf32 numbers, given by their bits. */
struct tile_split {
    uint32_t high, low;
};

#ifdef LRNN_CUDA_HOST
#define tile_tf32 cuda_host_tf32
#define tile_mma  cuda_host_mma_tf32

static inline bool tile_has_tensor_cores(void) {
    return cuda_host_tensor_cores();
}

static inline float tile_value(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
#else
static __device__ __forceinline__ bool tile_has_tensor_cores(void) {
    return true;
}

/* Rounds to the nearest tf32 number, ties away from zero. The low bits may be other than 0. */
static __device__ __forceinline__ uint32_t tile_tf32(float x) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits & 0xffffe000u;
}

static __device__ __forceinline__ float tile_value(uint32_t bits) {
    return __uint_as_float(bits);
}

/* Computes d += a b for 16 x 8 and 8 x 8 matrices. Lane 4 g + t has of a (g, t), (g + 8, t), (g, t + 4), (g + 8, t +
 * 4), and of b (t, g), (t + 4, g). */
static __device__ __forceinline__ void tile_mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

static __device__ __forceinline__ struct tile_split tile_split_of(float x) {
    struct tile_split s;
    s.high = tile_tf32(x);
    s.low = tile_tf32(x - tile_value(s.high));
    return s;
}

template <class A, class B>
__device__ __forceinline__ void tile_add_split(struct tile at, int depth, A a, B b, struct tile_sums *d) {
    int lane = (int)threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    for (int k = 0; k < depth; k += TILE_DEPTH) {
        uint32_t high_a[4], low_a[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            struct tile_split s = tile_split_of(a(at.row + g + e % 2 * 8, k + t + e / 2 * 4));
            high_a[e] = s.high;
            low_a[e] = s.low;
        }
#pragma unroll
        for (int n = 0; n < TILES_MOST; n++) {
            if (n >= at.count) break;
            uint32_t high_b[2], low_b[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                struct tile_split s = tile_split_of(b(k + t + e * 4, at.column + n * TILE_COLUMNS + g));
                high_b[e] = s.high;
                low_b[e] = s.low;
            }
            tile_mma(d->of[n], high_a, high_b);
            tile_mma(d->rest[n], low_a, high_b);
            tile_mma(d->rest[n], high_a, low_b);
        }
    }
}
#endif

/* --- any device --------------------------------------------------------------------------------------------------- */

template <class A, class B>
__device__ __forceinline__ void tile_add_plain(struct tile at, int depth, A a, B b, struct tile_sums *d) {
    int lane = (int)threadIdx.x % WARP, row = at.row + lane / 4, column = at.column + lane % 4 * 2;
    for (int k = 0; k < depth; k++) {
        real upper = a(row, k), lower = a(row + 8, k);
#pragma unroll
        for (int n = 0; n < TILES_MOST; n++) {
            if (n >= at.count) break;
            real left = b(k, column + n * TILE_COLUMNS), right = b(k, column + n * TILE_COLUMNS + 1);
            d->of[n][0] = real_fma(upper, left, d->of[n][0]);
            d->of[n][1] = real_fma(upper, right, d->of[n][1]);
            d->of[n][2] = real_fma(lower, left, d->of[n][2]);
            d->of[n][3] = real_fma(lower, right, d->of[n][3]);
        }
    }
}

/* Adds the tiles of A B to d; a(i,k) and b(k,j) are the elements of A and B. All lanes of the warp must call it. */
template <class A, class B>
__device__ __forceinline__ void tile_add(struct tile at, int depth, A a, B b, struct tile_sums *d) {
#ifdef TILE_TENSOR_CORES
    if (tile_has_tensor_cores()) {
        tile_add_split(at, depth, a, b, d);
        return;
    }
#endif
    tile_add_plain(at, depth, a, b, d);
}

/* Calls store(i, j, sum) for each element of the lane. */
template <class Store>
__device__ __forceinline__ void tile_store(struct tile at, const struct tile_sums &d, Store store) {
    int lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int n = 0; n < TILES_MOST; n++) {
        if (n >= at.count) break;
        int column = at.column + n * TILE_COLUMNS + lane % 4 * 2;
#pragma unroll
        for (int e = 0; e < 4; e++) store(at.row + lane / 4 + e / 2 * 8, column + e % 2, d.of[n][e] + d.rest[n][e]);
    }
}

#endif

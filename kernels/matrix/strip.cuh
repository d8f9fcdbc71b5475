/* strip.cuh - divides the states of recurrences with a dk x dv matrix per head among warps, on CUDA.
 *
 * The columns of a state are independent in the recurrence. So a warp has a strip: W columns of one head of one
 * sequence. It has them in shared memory and computes one token after the other. For sums over rows each lane has a
 * column; for sums over columns each lane has a row. Rows are W + 1 values apart, so that in both cases lanes use
 * different banks. Sums over columns, which gradients need, are stored in scratch for each strip, and a second kernel
 * adds them over the strips, in order.
 *
 * Backward first computes all states again and stores those at the start of each chunk. Then it takes the chunks from
 * the last to the first, and computes the states inside each chunk once more. */
#ifndef LRNN_KERNELS_MATRIX_STRIP_CUH
#define LRNN_KERNELS_MATRIX_STRIP_CUH

#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/loaded_rows.cuh"

/* rows: the rows of all matrices of a head, which lie one below the other. There are dv columns, W in each strip.
 * chunk: number of tokens of a chunk. */
struct strip_shape {
    int64_t B, T, H;
    int rows, dv, W, strips, chunk, chunks;
};

/* A warp has in shared memory `matrices` arrays of rows x (W + 1) reals, and `vectors` more reals. */
static inline struct strip_shape strip_shape_of(int64_t B, int64_t T, int64_t H, int64_t rows, int64_t dv,
                                                int64_t matrices, int64_t vectors) {
    struct strip_shape s = {.B = B, .T = T, .H = H, .rows = (int)rows, .dv = (int)dv, .W = WARP};
    while (s.W > 1 && (size_t)(matrices * rows * (s.W + 1) + vectors) * sizeof(real) > CUDA_SHARED_UNASKED) s.W /= 2;
    while (s.W > 1 && s.W / 2 >= dv) s.W /= 2;
    s.strips = (int)((dv + s.W - 1) / s.W);
    s.chunk = 1;
    while ((int64_t)s.chunk * s.chunk < T) s.chunk++;
    s.chunks = (int)((T + s.chunk - 1) / s.chunk);
    return s;
}

static inline size_t strip_shared_bytes(const struct strip_shape &s, int64_t matrices, int64_t vectors) {
    return (size_t)(matrices * s.rows * (s.W + 1) + vectors) * sizeof(real);
}

static inline bool strip_fits(int64_t rows, int64_t matrices, int64_t vectors, const char **why) {
    bool fits = (size_t)(matrices * rows * 2 + vectors) * sizeof(real) <= CUDA_SHARED_UNASKED;
    if (!fits) *why = "a column of the state is larger than a block's shared memory";
    return fits;
}

/* The work of a warp, which is a whole thread block. */
struct strip {
    int64_t b, h, index; /* index: of the strip among all strips */
    int first, width;    /* the strip's columns of the head */
    int lane;
    bool in; /* the lane has a column */
};

static __device__ __forceinline__ struct strip strip_here(const struct strip_shape &s) {
    struct strip at;
    at.index = blockIdx.x;
    int64_t head = at.index / s.strips;
    at.b = head / s.H;
    at.h = head % s.H;
    at.first = (int)(at.index % s.strips) * s.W;
    at.width = s.dv - at.first < s.W ? s.dv - at.first : s.W;
    at.lane = (int)threadIdx.x;
    at.in = at.lane < at.width;
    return at;
}

/* These copy a state from shared memory to a packed array of rows x W, and back. */
static __device__ __forceinline__ void strip_store(const struct strip_shape &s, const struct strip &at,
                                                   const real *from, real *to) {
    for (int r = 0; r < s.rows; r++)
        if (at.in) to[r * s.W + at.lane] = from[r * (s.W + 1) + at.lane];
}

static __device__ __forceinline__ void strip_load(const struct strip_shape &s, const struct strip &at, const real *from,
                                                  real *to) {
    for (int r = 0; r < s.rows; r++)
        if (at.in) to[r * (s.W + 1) + at.lane] = from[r * s.W + at.lane];
}

static __device__ __forceinline__ void strip_clear(const struct strip_shape &s, const struct strip &at, real *to) {
    for (int r = 0; r < s.rows; r++)
        if (at.lane <= s.W) to[r * (s.W + 1) + at.lane] = 0;
    if (s.W == WARP && at.lane == 0)
        for (int r = 0; r < s.rows; r++) to[r * (s.W + 1) + s.W] = 0;
}

/* Copies n contiguous values into shared memory. */
static __device__ __forceinline__ void strip_read(int n, const real *from, real *to, int lane) {
    for (int i = lane; i < n; i += WARP) to[i] = from[i];
}

/* Returns the sum over strips of the values that they stored, which lie `stride` reals apart from `at` on. */
static __device__ __forceinline__ real strip_sum(const real *at, int64_t stride, int64_t strips) {
    real sum = 0;
    for (int64_t s = 0; s < strips; s++) sum += at[s * stride];
    return sum;
}

#endif

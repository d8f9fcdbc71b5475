/* strip.cuh - cuts the states of recurrences with a dk x dv matrix per head among warps, on CUDA.
 *
 * Columns of a state are independent in the recurrence, so a warp has a strip: W columns of one head of one sequence,
 * which it keeps in shared memory and walks through time. For sums over rows a lane has a column; for sums over columns
 * it has a row. Rows are W + 1 values apart, so that in neither order lanes wait for the same bank. Sums over columns,
 * for gradients, are stored in scratch per strip, and a second kernel adds them over strips, in order.
 *
 * Backward computes the states again from the start and keeps those at the start of each chunk. Then it takes the
 * chunks, the last one first, and keeps the states inside the current chunk. */
#ifndef LRNN_KERNELS_MATRIX_STRIP_CUH
#define LRNN_KERNELS_MATRIX_STRIP_CUH

#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/loaded_rows.cuh"

/* rows: of all matrices of a head, one below the other. There are dv columns, W per strip. chunk: tokens of a chunk. */
struct strip_shape {
    int64_t B, T, H;
    int rows, dv, W, strips, chunk, chunks;
};

/* In shared memory a warp has `matrices` arrays of rows x (W + 1) reals, and `vectors` more reals. */
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

/* The work of a warp, which is a whole block. */
struct strip {
    int64_t b, h, index; /* index: of the strip among all */
    int first, width;    /* its columns of the head */
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

/* Copy a state between shared memory and a packed array of rows x W. */
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

/* The sum over strips of the values that they stored, from `at` on, `stride` reals apart. */
static __device__ __forceinline__ real strip_sum(const real *at, int64_t stride, int64_t strips) {
    real sum = 0;
    for (int64_t s = 0; s < strips; s++) sum += at[s * stride];
    return sum;
}

#endif

/* strip.cuh - recurrences whose state is a dk x dv matrix per head, on CUDA: how states are cut among warps.
 *
 * Columns of a state do not meet in the recurrence, so a warp has a strip of them: W columns of one head of one
 * sequence, which it keeps in shared memory and takes along time. A lane is a column where sums run over rows, and a
 * row where they run over columns; rows are W + 1 values apart, so that neither order makes lanes wait for the same
 * bank. What gradients sum over columns is left in scratch a strip, and added over strips, in their order, by a second
 * kernel.
 *
 * Backward takes the states again from the start, keeps those where a chunk begins, and then those within one chunk
 * after the other, the last one first: simple, and as many bytes as there are states. */
#ifndef LRNN_KERNELS_MATRIX_STRIP_CUH
#define LRNN_KERNELS_MATRIX_STRIP_CUH

#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/loaded_rows.cuh"

/* rows: of the matrices of a head, one below the other; dv columns in all, W per strip. chunk: tokens of a chunk. */
struct strip_shape {
    int64_t B, T, H;
    int rows, dv, W, strips, chunk, chunks;
};

/* matrices, vectors: how many arrays of rows x (W + 1), and reals beside them, a warp has in shared memory. */
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

/* Position of a warp, which is a block. */
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

/* A state between shared memory and a packed array of rows x W. */
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

/* n values, one after the other, into shared memory. */
static __device__ __forceinline__ void strip_read(int n, const real *from, real *to, int lane) {
    for (int i = lane; i < n; i += WARP) to[i] = from[i];
}

/* The sum over the strips of what each has left at `at`; strides in reals. */
static __device__ __forceinline__ real strip_sum(const real *at, int64_t stride, int64_t strips) {
    real sum = 0;
    for (int64_t s = 0; s < strips; s++) sum += at[s * stride];
    return sum;
}

#endif

/* chunk.cuh - parts that the chunkwise CUDA kernels of the matrix-state recurrences share: matrices in shared memory,
 * the work of a thread block, and products (kernels/lib/tile_product.cuh).
 *
 * A sequence is cut into segments, and a head's state into strips of W columns (strip.cuh), which are independent in
 * the recurrence. A thread block computes one strip of one segment. In struct strip_shape, `rows` is dk rounded up to
 * whole tiles, `chunk` is the number of tokens of a segment, and `chunks` the number of segments. The STATE_CHUNK rows
 * of a chunk of tokens are computed at once. */
#ifndef LRNN_KERNELS_MATRIX_CHUNK_CUH
#define LRNN_KERNELS_MATRIX_CHUNK_CUH

#include "kernels/lib/tile_product.cuh"
#include "kernels/matrix/state.h"
#include "kernels/matrix/strip.cuh"

#define CHUNK_THREADS  128
#define CHUNK_RESIDENT 3 /* thread blocks per multiprocessor; the largest shared memory has room for so many */
#define CHUNK_SHARED   ((size_t)64 << 10) /* bytes that a block of any device may have */
#define CHUNK_WIDEST   72                 /* most columns of a strip: 64, and the normaliser of an mLSTM */
static_assert(STATE_CHUNK == TILE_ROWS, "a chunk's tokens are the rows of a tile");

namespace {

/* --- shared memory ------------------------------------------------------------------------------------------------ */

/* A matrix in shared memory. Rows lie 8 n + 4 apart, so that lanes of neighbouring rows read different banks. */
struct matrix {
    real *at;
    int ld;
    __host__ __device__ real &operator()(int row, int column) const {
        return at[row * ld + column];
    }
    __device__ struct matrix below(int row) const {
        return {at + row * ld, ld};
    }
};

/* Takes arrays one after the other. If base is NULL, it only counts their size. */
struct cursor {
    real *base;
    int used;

    __host__ __device__ real *take(int n) {
        real *at = base ? base + used : nullptr;
        used += n;
        return at;
    }
    __host__ __device__ struct matrix take(int rows, int columns) {
        struct matrix m;
        m.at = take(rows * (columns + 4));
        m.ld = columns + 4;
        return m;
    }
};

/* --- the work of a block ------------------------------------------------------------------------------------------ */

struct segment {
    int64_t b, h, head, strip; /* head and strip are counted over all sequences */
    int index, begin, end;     /* index: of the segment; begin, end: its tokens */
    int first, width;          /* first column of the strip, and number of columns */
};

/* Returns this block's segment and strip. The first blocks are the strips of segment `from`, then of the next. */
__device__ inline struct segment segment_here(const struct strip_shape &s, int from) {
    struct segment at;
    int64_t strips = s.B * s.H * s.strips;
    struct quotient block = divide(blockIdx.x, strips), strip = divide(block.rest, s.strips);
    struct quotient head = divide(strip.whole, s.H);
    at.strip = block.rest;
    at.head = strip.whole;
    at.b = head.whole;
    at.h = head.rest;
    at.index = from + (int)block.whole;
    at.begin = at.index * s.chunk;
    at.end = s.T - at.begin > s.chunk ? at.begin + s.chunk : (int)s.T;
    at.first = (int)strip.rest * s.W;
    at.width = s.dv - at.first < s.W ? s.dv - at.first : s.W;
    return at;
}

/* Returns the shape of a call whose arrays take `reals(shape)` of shared memory: as few strips as fit. */
template <class Reals>
inline struct strip_shape chunk_shape_of(const struct state_shape &z, int64_t segment, Reals reals) {
    const int step = TILE_COLUMNS;
    struct strip_shape s = {.B = z.B, .T = z.T, .H = z.heads};
    s.rows = (int)(z.dk + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    s.dv = (int)z.dv;
    s.W = CHUNK_WIDEST;
    while (s.W > step && (size_t)reals(s) * sizeof(real) > CHUNK_SHARED) s.W -= step;
    s.strips = (s.dv + s.W - 1) / s.W;
    s.W = ((s.dv + s.strips - 1) / s.strips + step - 1) / step * step;
    s.chunk = (int)segment;
    s.chunks = (int)((s.T + segment - 1) / segment);
    return s;
}

inline bool chunk_fits(int reals, const char **why) {
    bool fits = (size_t)reals * sizeof(real) <= CHUNK_SHARED;
    if (!fits) *why = "columns of a head's states and a chunk's keys and gates are larger than a block's shared memory";
    return fits;
}

inline dim3 chunk_blocks(const struct strip_shape &s, int segments) {
    return dim3((unsigned)(segments * s.B * s.H * s.strips));
}

/* Returns the number of tokens of the chunk that starts at `begin`. */
__device__ inline int chunk_count(const struct segment &at, int begin) {
    return at.end - begin < STATE_CHUNK ? at.end - begin : STATE_CHUNK;
}

/* Gives row i of `count` rows that lie `step` apart; NULL after the last row. */
struct spaced_rows {
    const real *from;
    int64_t step;
    int count;
    __device__ const real *operator()(int i) const {
        return from && i < count ? from + i * step : nullptr;
    }
};

/* Loads to = factor * row(i) for all rows. A row has `width` values; other columns, and rows NULL, become 0. */
template <class Row>
__device__ inline void load(struct matrix to, int rows, int columns, int width, Row row, real factor = 1) {
    for (int e = (int)threadIdx.x; e < rows * columns; e += CHUNK_THREADS) {
        int i = e / columns, j = e % columns;
        const real *from = row(i);
        to(i, j) = from && j < width ? factor * from[j] : 0;
    }
}

/* Loads the block's columns of the state at `from`, or zeros if `from` is NULL. */
__device__ inline void load_state(const struct strip_shape &s, int dk, const struct segment &at, const real *from,
                                  struct matrix to) {
    load(to, s.rows, s.W, at.width, spaced_rows{from, s.dv, dk});
}

__device__ inline void store_state(const struct strip_shape &s, int dk, const struct segment &at, struct matrix from,
                                   real *to) {
    for (int e = (int)threadIdx.x; e < dk * at.width; e += CHUNK_THREADS)
        to[e / at.width * s.dv + e % at.width] = from(e / at.width, e % at.width);
}

/* Returns the block's columns of the stored state before a token. `kept` is (B,tokens / every,H,dk,dv). */
__device__ inline real *kept_at(const struct strip_shape &s, int dk, const struct segment &at, int begin, int every,
                                real *kept) {
    int64_t count = (s.T + every - 1) / every;
    return kept + ((at.b * count + begin / every) * s.H + at.h) * dk * s.dv + at.first;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* Computes X = through X + rows^T diag(weight) columns: the state after a chunk, or the gradient before it. */
template <class Weight>
__device__ inline void advance(const struct strip_shape &s, real through, struct matrix rows, Weight weight,
                               struct matrix columns, struct matrix X) {
    each_tile(s.rows, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int i, int k) { return rows(k, i); },
            [&](int k, int j) { return weight(k) * columns(k, j); }, &sums);
        tile_store(tile, sums, [&](int i, int j, real x) { X(i, j) = real_fma(through, X(i, j), x); });
    });
}

/* Computes keys or values: to[m][n] = (row m of a) . (row n of b). */
__device__ inline void scores(int width, struct matrix a, struct matrix b, struct matrix to) {
    each_tile(STATE_CHUNK, STATE_CHUNK, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, width, [&](int m, int i) { return a(m, i); }, [&](int i, int n) { return b(n, i); }, &sums);
        tile_store(tile, sums, [&](int m, int n, real x) { to(m, n) = x; });
    });
}

/* Calls put(n, (row n of a) . (row n of b)) for all rows. A warp takes one row after the other. */
template <class Put> __device__ inline void row_dots(int width, struct matrix a, struct matrix b, Put put) {
    int lane = (int)threadIdx.x % WARP;
    for (int n = (int)threadIdx.x / WARP; n < STATE_CHUNK; n += CHUNK_THREADS / WARP) {
        real sum = 0;
        for (int i = lane; i < width; i += WARP) sum = real_fma(a(n, i), b(n, i), sum);
        sum = warp_sum(sum);
        if (lane == 0) put(n, sum);
    }
}

/* Returns the sum of A o B over a strip's states in every thread. All threads must call it. warps: one real each. */
__device__ inline real state_product(const struct strip_shape &s, struct matrix A, struct matrix B, real *warps) {
    real sum = 0;
    for (int e = (int)threadIdx.x; e < s.rows * s.W; e += CHUNK_THREADS)
        sum = real_fma(A(e / s.W, e % s.W), B(e / s.W, e % s.W), sum);
    return block_sum(sum, warps);
}

} // namespace

#endif

/* cuda_weights.cu - dW = dy^T x and db = column sums of dy for several linear maps (linear.c) in one launch.
 *
 * Alone, each of these products has too few tiles to occupy a device, and a small net's step waits for one after the
 * other. No other call of the backward walk reads them, so kernel_linear_cuda leaves them to the end of the walk. All
 * tiles of all products then run at the same time.
 *
 * A thread block computes a tile of TILE x TILE elements of one dW, over a chunk of the rows (tokens). It copies DEPTH
 * rows of dy and x into shared memory while it multiplies the DEPTH rows before. Each of its eight warps has 64 x 32
 * elements in registers and multiplies by mma.sync.m16n8k8 (tile_product.cuh). In tf32 and bf16 a factor is rounded
 * when it is read from shared memory, unless it is stored as bf16. In fp32 it is split into two tf32 numbers, and three
 * products are summed, the small ones first. A bias's gradient sums the unrounded dy of the same chunk. The block that
 * ends last for a tile adds the chunks in their order, so bits depend only on sizes. */
#include "kernels/lib/cuda_weights.cuh"
#include "kernels/lib/round.h"
#include "kernels/lib/tile_product.cuh"

#define TILE        128             /* rows and columns of dW of a thread block */
#define DEPTH       32              /* rows of dy and x in shared memory at once */
#define PITCH       (TILE + 8)      /* so that the 32 lanes' reads of a fragment are in 32 banks */
#define STAGE       (DEPTH * PITCH) /* values of one factor */
#define CHUNK_ROWS  512             /* of long chunks */
#define CHUNKS_MOST 8
#define ITEMS_MOST  32 /* products of a launch: its arguments have 4 KB */
#define PARTIAL     (TILE * TILE + TILE)
#define SHARED      ((4 * STAGE + 1) * sizeof(real)) /* two stages of two factors, and the flag of last_block */
/* Values of dy and x of a product that waits. Larger products occupy a device alone, and the memory of their factors is
 * used again sooner. */
#define VALUES_MOST ((int64_t)8 << 20)

namespace {

/* One product. Its blocks are numbered from first_block on, chunks of a tile side by side; its tiles from first_tile
 * on. */
struct item {
    const void *dy, *x;
    real *dw, *db; /* NULL: the gradient is not wanted, or there is no bias */
    int rows, O, I, pitch, chunks, across, first_tile, first_block; /* pitch: of dy's rows */
    bool dy_halves;                                                 /* dy has bf16 numbers of 16 bits */
};

struct group {
    struct item of[ITEMS_MOST];
    int count;
};

/* A block's tile and rows. */
struct work {
    int tile, o, i, begin, end; /* tile: its number in the launch */
    bool sums;                  /* it also computes the bias's gradient */
};

int64_t tiles_along(int64_t n) {
    return (n + TILE - 1) / TILE;
}

int64_t tiles_of(const struct call *c) {
    return tiles_along(c->in[1]->dims[0]) * tiles_along(c->in[1]->dims[1]);
}

/* Rows are cut into chunks of 512. Fewer rows are cut into up to four chunks, so that small nets have more blocks. */
int64_t chunks_of(int64_t rows) {
    int64_t chunks = rows / CHUNK_ROWS, least = rows / SUM_CHUNK_ROWS < 4 ? rows / SUM_CHUNK_ROWS : 4;
    if (chunks < least) chunks = least;
    return chunks < 1 ? 1 : chunks > CHUNKS_MOST ? CHUNKS_MOST : chunks;
}

/* Factors of a launch that have bf16 numbers of 16 bits: none; all dy; all x, and some dy. A kernel for all pairs of
 * types at once would need more registers than a thread has. */
enum half_factors { HALVES_NONE, HALVES_DY, HALVES_X };

enum half_factors halves_of(const struct call *c) {
    if (precision_bytes(c->precision) == sizeof(real)) return HALVES_NONE;
    return c->in[0]->rounded || c->in[0]->copied ? HALVES_X : c->out[0]->grad_rounded ? HALVES_DY : HALVES_NONE;
}

/* Returns how many of the calls from `first` on fit into one launch. */
int calls_of_launch(const struct deferred *d, int first) {
    int64_t tiles = 0;
    int n = 0;
    for (; first + n < d->n && n < ITEMS_MOST; n++) {
        tiles += tiles_of(d->calls[first + n]);
        if (tiles > CUDA_COUNTERS || halves_of(d->calls[first + n]) != halves_of(d->calls[first])) break;
    }
    return n;
}

/* Returns the number of blocks of a launch of n calls, and sets *all. */
int group_of(const struct deferred *d, int first, int n, struct group *all) {
    int tiles = 0, blocks = 0;
    *all = {};
    all->count = n;
    for (int k = 0; k < n; k++) {
        const struct call *c = d->calls[first + k];
        int64_t rows = tensor_rows(c->in[0]), chunks = chunks_of(rows);
        all->of[k] = {call_dout(c, 0),
                      c->in[0]->factor ? c->in[0]->factor : c->in[0]->data,
                      c->din[1],
                      c->din[2],
                      (int)rows,
                      (int)c->in[1]->dims[0],
                      (int)c->in[1]->dims[1],
                      (int)tensor_pitch(c->out[0]),
                      (int)chunks,
                      (int)tiles_along(c->in[1]->dims[1]),
                      tiles,
                      blocks,
                      precision_bytes(c->precision) < sizeof(real) && c->out[0]->grad_rounded};
        tiles += (int)tiles_of(c);
        blocks += (int)(tiles_of(c) * chunks);
    }
    return blocks;
}

#ifdef TILE_TENSOR_CORES

__device__ __forceinline__ struct work work_of(const struct item &it) {
    int local = (int)blockIdx.x - it.first_block, tile = local / it.chunks, chunk = local % it.chunks;
    struct work w;
    w.tile = it.first_tile + tile;
    w.o = tile / it.across * TILE;
    w.i = tile % it.across * TILE;
    w.begin = (int)((int64_t)it.rows * chunk / it.chunks);
    w.end = (int)((int64_t)it.rows * (chunk + 1) / it.chunks);
    w.sums = it.db && w.i == 0;
    return w;
}

/* Starts to copy rows of a matrix to a stage: DEPTH rows from `from` on, `pitch` apart, of which `rows` exist, and TILE
 * columns, of which `left` exist. What does not exist is 0. T: real, or uint16_t for bf16. */
template <class T> __device__ __forceinline__ void copy_rows(T *stage, const T *from, int pitch, int rows, int left) {
    constexpr int W = (int)(16 / sizeof(T));
    bool whole = pitch % W == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0;
    if (sizeof(T) < sizeof(real) && !whole) { /* no copy of two bytes is asynchronous */
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < DEPTH * TILE; i += CUDA_THREADS) {
            int row = i / TILE, column = i % TILE;
            stage[row * PITCH + column] = row < rows && column < left ? from[(int64_t)row * pitch + column] : 0;
        }
        return;
    }
    int column = (int)threadIdx.x % (TILE / W) * W;
#pragma unroll
    for (int k = 0; k < DEPTH; k += CUDA_THREADS / (TILE / W)) {
        int row = k + (int)threadIdx.x / (TILE / W);
        T *to = stage + row * PITCH + column;
        const T *at = from + (int64_t)row * pitch + column;
        if (whole && row < rows && column < left) {
            copy_async_16(to, at);
            continue;
        }
#pragma unroll
        for (int j = 0; j < W; j++) {
            if constexpr (sizeof(T) == sizeof(real))
                if (row < rows && column + j < left) {
                    copy_async(to + j, at + j);
                    continue;
                }
            to[j] = 0;
        }
    }
}

/* A factor as the tensor cores read it: one number, or in fp32 two. */
template <enum precision P> __device__ __forceinline__ struct tile_split factor_of(real x) {
    if constexpr (P == PRECISION_FULL)
        return tile_split_of(x);
    else
        return {rounded_bits(x, P == PRECISION_TF32 ? 13 : 16), 0};
}

template <enum precision P> __device__ __forceinline__ struct tile_split factor_of(uint16_t x) {
    return {(uint32_t)x << 16, 0};
}

/* A warp's 4 x 4 tiles of 16 x 8: the corner in the block's tile, and how many tiles down and across dW has there. */
struct share {
    int o, i, down, across;
};

__device__ __forceinline__ struct share share_of(const struct item &it, const struct work &w) {
    int warp = (int)threadIdx.x / WARP;
    struct share s = {warp / 4 * 64, warp % 4 * 32, 0, 0};
    s.down = (it.O - w.o - s.o + TILE_ROWS - 1) / TILE_ROWS;
    s.across = (it.I - w.i - s.i + TILE_COLUMNS - 1) / TILE_COLUMNS;
    return s;
}

/* Adds the products of the first `rows` rows of a stage to the warp's tiles. */
template <enum precision P, class DY, class X>
__device__ __forceinline__ void add_stage(const DY *dy, const X *x, int rows, const struct share &own,
                                          float (&sums)[4][4][4]) {
    int g = (int)threadIdx.x % WARP / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < DEPTH; k += TILE_DEPTH) {
        if (k >= rows || own.across <= 0) break;
        uint32_t high[4][2], low[4][2];
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                struct tile_split s = factor_of<P>(x[(k + t + e * 4) * PITCH + own.i + n * TILE_COLUMNS + g]);
                high[n][e] = s.high;
                low[n][e] = s.low;
            }
#pragma unroll
        for (int m = 0; m < 4; m++) {
            if (m >= own.down) break;
            uint32_t high_a[4], low_a[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                struct tile_split s =
                    factor_of<P>(dy[(k + t + e / 2 * 4) * PITCH + own.o + m * TILE_ROWS + g + e % 2 * 8]);
                high_a[e] = s.high;
                low_a[e] = s.low;
            }
#pragma unroll
            for (int n = 0; n < 4; n++) {
                if (n >= own.across) break;
                if constexpr (P == PRECISION_FULL) {
                    tile_mma(sums[m][n], low_a, high[n]);
                    tile_mma(sums[m][n], high_a, low[n]);
                }
                tile_mma(sums[m][n], high_a, high[n]);
            }
        }
    }
}

/* Returns this thread's part of the sums of dy's columns in a stage: of one column, over half of the rows. */
__device__ __forceinline__ real column_part(const real *dy) {
    int column = (int)threadIdx.x % TILE, first = (int)threadIdx.x / TILE * (DEPTH / 2);
    real sum = 0;
    for (int row = first; row < first + DEPTH / 2; row++) sum += dy[row * PITCH + column];
    return sum;
}

/* Multiplies the block's rows. *column gets this thread's part of the bias's gradient. DY and X are the types of dy and
 * x; with a bias DY is real. */
template <enum precision P, class DY, class X>
__device__ __forceinline__ void add_rows(const struct item &it, const struct work &w, const struct share &own,
                                         real *shared, float (&sums)[4][4][4], real *column) {
    auto copy = [&](int row, int stage) {
        real *to = shared + stage * 2 * STAGE;
        copy_rows((DY *)to, (const DY *)it.dy + (int64_t)row * it.pitch + w.o, it.pitch, w.end - row, it.O - w.o);
        copy_rows((X *)(to + STAGE), (const X *)it.x + (int64_t)row * it.I + w.i, it.I, w.end - row, it.I - w.i);
    };
    copy(w.begin, 0);
    copy_async_commit();
    for (int row = w.begin, stage = 0; row < w.end; row += DEPTH, stage ^= 1) {
        const real *dy = shared + stage * 2 * STAGE;
        if (row + DEPTH < w.end) copy(row + DEPTH, stage ^ 1);
        copy_async_commit();
        copy_async_wait<1>();
        __syncthreads();
        add_stage<P>((const DY *)dy, (const X *)(dy + STAGE), w.end - row, own, sums);
        if (sizeof(DY) == sizeof(real) && w.sums) *column += column_part(dy);
        __syncthreads();
    }
}

/* Adds the chunks of a tile in order. A thread reads what the same thread of the other blocks has stored. */
__device__ __forceinline__ void add_chunks(const real *partial, int chunks, float (&sums)[4][4][4], real *column) {
    real *sum = &sums[0][0][0];
#pragma unroll
    for (int e = 0; e < 64; e++) sum[e] = 0;
    *column = 0;
    for (int chunk = 0; chunk < chunks; chunk++, partial += PARTIAL) {
#pragma unroll
        for (int e = 0; e < 64; e++) sum[e] += later_load(partial + e * CUDA_THREADS + threadIdx.x);
        if (threadIdx.x < TILE) *column += later_load(partial + TILE * TILE + threadIdx.x);
    }
}

__device__ __forceinline__ void store_tile(const struct item &it, int o, int i, const float (&sums)[4][4][4]) {
    int g = (int)threadIdx.x % WARP / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int row = o + m * TILE_ROWS + g + e / 2 * 8;
#pragma unroll
            for (int n = 0; n < 4 && row < it.O; n++) {
                int column = i + n * TILE_COLUMNS + 2 * t + e % 2;
                if (column < it.I) it.dw[(int64_t)row * it.I + column] = sums[m][n][e];
            }
        }
}

/* Computes the block's tile. */
template <enum precision P, class DY, class X>
__device__ __forceinline__ void compute_tile(const struct item &it, real *shared, real *partial, unsigned *counters) {
    struct work w = work_of(it);
    struct share own = share_of(it, w);
    float sums[4][4][4] = {};
    real column = 0;
    add_rows<P, DY, X>(it, w, own, shared, sums, &column);
    if (w.sums) { /* adds the halves of each column */
        shared[threadIdx.x] = column;
        __syncthreads();
        column += threadIdx.x < TILE ? shared[threadIdx.x + TILE] : 0;
    }
    if (it.chunks > 1) {
        real *own = partial + (int64_t)blockIdx.x * PARTIAL;
        const real *sum = &sums[0][0][0];
#pragma unroll
        for (int e = 0; e < 64; e++) own[e * CUDA_THREADS + threadIdx.x] = sum[e];
        if (threadIdx.x < TILE) own[TILE * TILE + threadIdx.x] = column;
        if (!last_block(counters + w.tile, (unsigned)it.chunks, reinterpret_cast<unsigned *>(shared + 4 * STAGE)))
            return;
        int first = it.first_block + (w.tile - it.first_tile) * it.chunks;
        add_chunks(partial + (int64_t)first * PARTIAL, it.chunks, sums, &column);
    }
    if (it.dw) store_tile(it, w.o + own.o, w.i + own.i, sums);
    if (w.sums && threadIdx.x < TILE && w.o + (int)threadIdx.x < it.O) it.db[w.o + threadIdx.x] = column;
}

#endif

template <enum precision P, enum half_factors HALVES>
__global__ void __launch_bounds__(CUDA_THREADS, P == PRECISION_FULL ? 1 : 2)
    group_kernel(const __grid_constant__ struct group all, real *partial, unsigned *counters) {
    await_previous();
#ifdef TILE_TENSOR_CORES
    DYNAMIC_SHARED(real, shared); /* SHARED bytes */
    int k = 0;
    while (k + 1 < all.count && (int)blockIdx.x >= all.of[k + 1].first_block) k++;
    const struct item &it = all.of[k];
    if constexpr (HALVES == HALVES_NONE)
        compute_tile<P, real, real>(it, shared, partial, counters);
    else if constexpr (HALVES == HALVES_DY)
        compute_tile<P, uint16_t, real>(it, shared, partial, counters);
    else if (it.dy_halves)
        compute_tile<P, uint16_t, uint16_t>(it, shared, partial, counters);
    else
        compute_tile<P, real, uint16_t>(it, shared, partial, counters);
#else
    (void)all, (void)partial, (void)counters;
#endif
}

} // namespace

/* A place that is not open only measures, and is taken for a new device. */
bool cuda_weights_takes(const struct call *c) {
    const struct tensor *x = c->in[0], *w = c->in[1], *b = c->in[2];
    const struct cuda_context *cuda = c->place ? c->place->cuda : nullptr;
    bool able = !cuda || (cuda->capability >= COPY_ASYNC_CAPABILITY && cuda->shared >= SHARED);
    int64_t values = tensor_rows(x) * (w->dims[0] + w->dims[1]);
    return !REAL_IS_DOUBLE && able && w->needs_grad && w->producer < 0 && (!b || b->producer < 0) &&
           values <= VALUES_MOST && tiles_of(c) <= CUDA_COUNTERS;
}

size_t cuda_weights_workspace(const struct deferred *d) {
    int most = 0;
    for (int first = 0, n; first < d->n; first += n) {
        struct group all;
        n = calls_of_launch(d, first);
        int blocks = group_of(d, first, n, &all);
        if (blocks > most) most = blocks;
    }
    return (size_t)most * PARTIAL * sizeof(real);
}

template <enum precision P> static void launch(const struct deferred *d, const struct exec *x) {
    for (int first = 0, n; first < d->n; first += n) {
        struct group all;
        n = calls_of_launch(d, first);
        int blocks = group_of(d, first, n, &all);
        auto kernel = group_kernel<P, HALVES_NONE>;
        if constexpr (P == PRECISION_BF16) {
            enum half_factors halves = halves_of(d->calls[first]);
            if (halves == HALVES_DY) kernel = group_kernel<P, HALVES_DY>;
            if (halves == HALVES_X) kernel = group_kernel<P, HALVES_X>;
        }
        LAUNCH(x, kernel, dim3((unsigned)blocks), dim3(CUDA_THREADS), SHARED, all, (real *)d->scratch,
               x->place->cuda->now.counters);
    }
}

void cuda_weights_finish(const struct deferred *d, const struct exec *x) {
    switch (d->calls[0]->precision) {
    case PRECISION_TF32:
        return launch<PRECISION_TF32>(d, x);
    case PRECISION_BF16:
        return launch<PRECISION_BF16>(d, x);
    default:
        return launch<PRECISION_FULL>(d, x);
    }
}

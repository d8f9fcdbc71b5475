/* cuda.cuh - what the CUDA twins share: grids, sums of a warp and of a block. docs/gpu.md says how a twin is
 * written. */
#ifndef LRNN_KERNELS_LIB_CUDA_CUH
#define LRNN_KERNELS_LIB_CUDA_CUH

#ifndef LRNN_CUDA_HOST
#include <cuda_pipeline.h>
#endif

#include "core/cuda/cuda.cuh"
#include "kernels/lib/infer.h"
#include "kernels/kernel.h"

#define CUDA_THREADS 256 /* of a block, where nothing else decides */
#define WARP         32
#define FULL_WARP    0xffffffffu

/* Blocks of `threads` that cover n elements, one a thread. */
static inline dim3 cuda_blocks(int64_t n, int threads) {
    return dim3((unsigned)((n + threads - 1) / threads));
}

/* This thread's index over a one-dimensional grid. */
__device__ __forceinline__ int64_t cuda_index(void) {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* The sum over the warp's lanes, in a fixed tree: the same bits in every lane and every run. All lanes must come. */
template <class T> __device__ __forceinline__ T warp_sum(T x) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(FULL_WARP, x, distance);
    return x;
}

/* x[n] becomes the sum over a block of whole warps, in a fixed order, in every thread; partial: N values per warp of
 * shared memory, free again after the next barrier. All threads must come. */
template <int N, class T> __device__ __forceinline__ void block_sums(T (&x)[N], T *partial) {
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
#pragma unroll
    for (int n = 0; n < N; n++) x[n] = warp_sum(x[n]);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < N; n++)
        if (lane == 0) partial[warp * N + n] = x[n];
    __syncthreads();
#pragma unroll
    for (int n = 0; n < N; n++) {
        T sum = 0;
        for (int w = 0; w < warps; w++) sum += partial[w * N + n];
        x[n] = sum;
    }
}

/* Likewise of one. */
template <class T> __device__ __forceinline__ T block_sum(T x, T *partial) {
    T one[1] = {x};
    block_sums(one, partial);
    return one[0];
}

/* --- sums whose last step the last block takes -------------------------------------------------------------------- */

/* A second kernel would have to wait until the device has none of the first one's blocks left, and a step of a small
 * net is little more than its launches. So each block stores its partial sums and counts itself, and the one that comes
 * last, whichever that is, adds them in the order of the blocks: the same bits as by a second kernel. */

/* True, in each thread of the block, if `blocks` blocks have come to the counter with this one; then later_load() finds
 * what they all stored before. The counter, one of the place's, is 0 again for the next launch. All threads must come.
 */
static __device__ __forceinline__ bool last_block(unsigned *counter, unsigned blocks) {
    __shared__ bool last;
    __threadfence(); /* what this thread stored is there for all blocks before its block is counted */
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1u) == blocks - 1;
        if (last) *counter = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

/* Value that another block of the same launch stored, not from this multiprocessor's own cache, which may hold what was
 * there before. */
template <class T> __device__ __forceinline__ T later_load(const T *from) {
    return __ldcg(from);
}

/* N numbers that are summed side by side. */
template <class T, int N> struct numbers {
    T v[N];

    __device__ __forceinline__ numbers &operator+=(const numbers &other) {
        for (int k = 0; k < N; k++) v[k] += other.v[k];
        return *this;
    }
};

template <class T, int N> __device__ __forceinline__ numbers<T, N> later_load(const numbers<T, N> *from) {
    numbers<T, N> x;
    for (int k = 0; k < N; k++) x.v[k] = later_load(from->v + k);
    return x;
}

/* --- copies that a thread does not wait for ----------------------------------------------------------------------- */

#define COPY_ASYNC_CAPABILITY 80

#ifdef LRNN_CUDA_HOST
#define copy_async        cuda_host_copy_async
#define copy_async_commit cuda_host_copy_async_commit
#define copy_async_wait   cuda_host_copy_async_wait
#else
/* *to = *from, `to` in shared memory, some time before this thread's copy_async_wait has waited for the group that its
 * next copy_async_commit ends. */
static __device__ __forceinline__ void copy_async(real *to, const real *from) {
    __pipeline_memcpy_async(to, from, sizeof *to);
}

/* The two as instructions, and not by <cuda_pipeline.h>, whose wait says nothing of memory: after it no barrier keeps
 * the compiler from reading a slot sooner, since a thread reads its own slots alone. */
static __device__ __forceinline__ void copy_async_commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until no more than the last LEFT groups are on their way. */
template <int LEFT> __device__ __forceinline__ void copy_async_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
#endif

/* --- elements ----------------------------------------------------------------------------------------------------- */

/* W neighbouring values, moved 16 bytes at a time. Planned tensors begin on a cache line, so element i may be the first
 * of 4 if 4 divides i; inputs need not (linear_cuda.cu). */
template <int W> struct alignas(W * sizeof(real) < 16 ? W * sizeof(real) : 16) lanes { real v[W]; };

template <int W> __device__ __forceinline__ lanes<W> load_lanes(const real *from) {
    return *reinterpret_cast<const lanes<W> *>(from);
}

template <int W> __device__ __forceinline__ void store_lanes(real *to, lanes<W> x) {
    *reinterpret_cast<lanes<W> *>(to) = x;
}

/* put() of W values. */
template <int W> __device__ __forceinline__ void put_lanes(real *to, bool accumulate, lanes<W> x) {
    if (accumulate) {
        lanes<W> before = load_lanes<W>(to);
        for (int k = 0; k < W; k++) x.v[k] = before.v[k] + x.v[k];
    }
    store_lanes<W>(to, x);
}

template <class F> __global__ void __launch_bounds__(CUDA_THREADS) each_kernel(int64_t n, F f) {
    await_previous();
    int64_t i = 4 * cuda_index();
    if (i + 4 <= n) {
        f.template run<4>(i);
        return;
    }
    for (; i < n; i++) f.template run<1>(i);
}

/* f.run<W>(i) computes elements i to i + W - 1, for all of n elements; f holds plain pointers and numbers, and its type
 * stands in an unnamed namespace: it must not meet another file's. */
template <class F> void each(const struct call *c, const struct exec *x, int64_t n, F f) {
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, each_kernel<F>,
                cuda_blocks((n + 3) / 4, CUDA_THREADS), dim3(CUDA_THREADS), 0, n, f);
}

template <class F> __global__ void __launch_bounds__(CUDA_THREADS) each_value_kernel(int64_t n, F f) {
    await_previous();
    int64_t i = cuda_index();
    if (i < n) f(i);
}

/* f(i) computes what belongs to i, for i < n, one per thread; f as of each(). */
template <class F> void each_value(const struct call *c, const struct exec *x, int64_t n, F f) {
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, each_value_kernel<F>, cuda_blocks(n, CUDA_THREADS),
                dim3(CUDA_THREADS), 0, n, f);
}

/* to (+)= from: of each(), the gradient of what y has as a summand. */
struct passed_on {
    const real *from;
    real *to;
    bool accumulate;

    template <int W> __device__ void run(int64_t i) const {
        put_lanes<W>(to + i, accumulate, load_lanes<W>(from + i));
    }
};

/* i / n and i % n; a division of 64 bits takes several times as long as one of 32. */
struct quotient {
    int64_t whole, rest;
};
__device__ __forceinline__ struct quotient divide(int64_t i, int64_t n) {
    struct quotient q;
    if (((uint64_t)i | (uint64_t)n) >> 32 == 0) {
        q.whole = (uint32_t)i / (uint32_t)n;
        q.rest = (uint32_t)i % (uint32_t)n;
    } else {
        q.whole = i / n;
        q.rest = i % n;
    }
    return q;
}

/* Likewise of numbers below 2^32, without a branch, for which a loop's next loads would have to wait. */
__device__ __forceinline__ struct quotient divide_narrow(int64_t i, int64_t n) {
    uint32_t whole = (uint32_t)i / (uint32_t)n;
    return {whole, (uint32_t)i - whole * (uint32_t)n};
}

/* --- sums over rows: of chunks of rows, then of the chunks in order ----------------------------------------------- */

#define SUM_CHUNK_ROWS 128  /* least rows of a chunk */
#define SUM_BLOCKS     1024 /* about as many blocks as keep the largest device busy */
static_assert(SUM_BLOCKS <= CUDA_COUNTERS, "a counter for each tile of columns");

/* Columns a block covers: a power of two up to a warp. */
static inline int column_sums_width(int64_t C) {
    int width = 1;
    while (width < WARP && width < C) width *= 2;
    return width;
}

/* Tiles, as wide as a block, that cover them. */
static inline int64_t column_sums_tiles(int64_t C) {
    int width = column_sums_width(C);
    return (C + width - 1) / width;
}

/* Chunks that rows are cut into, by the sizes alone; `tiles` blocks have one chunk each. */
__host__ __device__ static inline int64_t sum_chunks(int64_t rows, int64_t tiles) {
    int64_t most = SUM_BLOCKS / tiles, chunks = rows / SUM_CHUNK_ROWS;
    if (chunks > most) chunks = most;
    return chunks < 1 ? 1 : chunks;
}

/* Bytes of scratch for partial sums of `each` bytes. */
static inline size_t cuda_column_sums_bytes(int64_t rows, int64_t C, size_t each = sizeof(real)) {
    int64_t chunks = sum_chunks(rows, column_sums_tiles(C));
    return chunks > 1 ? (size_t)(chunks * C) * each : 0;
}

/* How a matrix's rows and columns are cut. A tile is `width` columns side by side. */
struct column_cut {
    int64_t rows, C, chunks, tiles;
    int width;
};

static inline struct column_cut column_cut_of(int64_t rows, int64_t C, int64_t chunks) {
    return {rows, C, chunks, column_sums_tiles(C), column_sums_width(C)};
}

/* Share of a block, a chunk of a tile, and of a thread: its column, and whether it stores the column's sum. */
struct column_place {
    int64_t chunk, tile, begin, end, column;
    bool stores;
};

__device__ __forceinline__ struct column_place column_place_of(const struct column_cut &cut, int64_t block) {
    struct quotient of = divide_narrow(block, cut.tiles);
    struct column_place at;
    at.chunk = of.whole;
    at.tile = of.rest;
    at.begin = cut.rows * at.chunk / cut.chunks;
    at.end = cut.rows * (at.chunk + 1) / cut.chunks;
    at.column = at.tile * cut.width + (int)threadIdx.x % cut.width;
    at.stores = (int)threadIdx.x < cut.width && at.column < cut.C;
    return at;
}

/* The sum of term(r, r*C + column) over the rows from begin to end, in the threads of the tile's first row, and in
 * their sums[]; the rows are dealt out among CUDA_THREADS / width threads of each column. sums: CUDA_THREADS of shared
 * memory. */
template <class V, class Term>
__device__ __forceinline__ V rows_sum(const struct column_cut &cut, int64_t begin, int64_t end, int64_t column,
                                      const Term &term, V *sums) {
    int self = (int)threadIdx.x, dealt = CUDA_THREADS / cut.width, first = self / cut.width;
    V sum = {};
    if (column < cut.C) {
#pragma unroll(sizeof(V) <= 2 * sizeof(double) ? 4 : 2) /* as many as registers hold */
        for (int64_t r = begin + first; r < end; r += dealt) sum += term(r, r * cut.C + column);
    }
    sums[self] = sum;
    __syncthreads();
    for (int half = dealt / 2; half > 0; half /= 2) {
        if (first < half) sums[self] += sums[self + half * cut.width];
        __syncthreads();
    }
    return sums[self];
}

/* The sum of a matrix's columns: term(r, i) = m[i]. */
struct matrix_term {
    const real *m;
    __device__ real operator()(int64_t, int64_t i) const {
        return m[i];
    }
};

/* Likewise of one that other blocks of the launch have stored. */
template <class V> struct partial_term {
    const V *m;
    __device__ V operator()(int64_t, int64_t i) const {
        return later_load(m + i);
    }
};

/* out(c, sum of term(r, r*C + c) over r); partial[k*C + c]: the sum of chunk k, if there is more than one. The tile's
 * last block adds its chunks: as many blocks as a second kernel would have, so that it is never slower than that.
 * counters: one per tile; sums: CUDA_THREADS of shared memory. */
template <class V, class Term, class Out>
__device__ __forceinline__ void column_sums(const struct column_cut &cut, int64_t block, const Term &term, V *partial,
                                            unsigned *counters, const Out &out, V *sums) {
    struct column_place at = column_place_of(cut, block);
    V sum = rows_sum(cut, at.begin, at.end, at.column, term, sums);
    if (cut.chunks > 1) {
        if (at.stores) partial[at.chunk * cut.C + at.column] = sum;
        if (!last_block(counters + at.tile, (unsigned)cut.chunks)) return;
        sum = rows_sum(cut, 0, cut.chunks, at.column, partial_term<V>{partial}, sums);
    }
    if (at.stores) out(at.column, sum);
}

template <class V, class Term, class Out>
__global__ void __launch_bounds__(CUDA_THREADS)
    column_sums_kernel(struct column_cut cut, Term term, V *partial, unsigned *counters, Out out) {
    await_previous();
    DYNAMIC_SHARED(V, sums); /* CUDA_THREADS */
    column_sums(cut, blockIdx.x, term, partial, counters, out, sums);
}

/* out(c, sum of term(r, r*C + c) over r) for each column c; scratch: cuda_column_sums_bytes of V. */
template <class V, class Term, class Out>
void cuda_column_sums_to(const struct call *c, const struct exec *x, struct column_cut cut, Term term, Out out,
                         V *scratch) {
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, column_sums_kernel<V, Term, Out>,
                dim3((unsigned)(cut.chunks * cut.tiles)), dim3(CUDA_THREADS), CUDA_THREADS * sizeof(V), cut, term,
                scratch, x->place->cuda->now.counters, out);
}

/* to[c] (+)= sum */
struct column_put {
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t column, real sum) const {
        put(to + column, accumulate, sum);
    }
};

/* In `chunks` chunks. */
template <class Term>
void cuda_chunked_sums(const struct call *c, const struct exec *x, int64_t rows, int64_t C, int64_t chunks, Term term,
                       real *out, bool accumulate, real *scratch) {
    cuda_column_sums_to(c, x, column_cut_of(rows, C, chunks), term, column_put{out, accumulate}, scratch);
}

/* out[c] (+)= sum over r of term(r, r*C + c). */
template <class Term>
void cuda_column_sums(const struct call *c, const struct exec *x, int64_t rows, int64_t C, Term term, real *out,
                      bool accumulate, real *scratch) {
    cuda_chunked_sums(c, x, rows, C, sum_chunks(rows, column_sums_tiles(C)), term, out, accumulate, scratch);
}

#endif

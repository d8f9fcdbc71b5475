/* cuda.cuh - parts that the CUDA kernels share: grids, sums over a warp and over a thread block, sums of columns.
 * docs/gpu.md says how a kernel is written. */
#ifndef LRNN_KERNELS_LIB_CUDA_CUH
#define LRNN_KERNELS_LIB_CUDA_CUH

#ifndef LRNN_CUDA_HOST
#include <cuda_pipeline.h>
#endif

#include "core/cuda/cuda.cuh"
#include "kernels/lib/infer.h"
#include "kernels/lib/round.h"
#include "kernels/kernel.h"

#define CUDA_THREADS 256 /* threads of a block, if nothing else decides */
#define WARP         32
#define FULL_WARP    0xffffffffu

/* Returns the number of blocks of `threads` that cover n elements, with one element per thread. */
static inline dim3 cuda_blocks(int64_t n, int threads) {
    return dim3((unsigned)((n + threads - 1) / threads));
}

/* Returns this thread's index in a one-dimensional grid. */
__device__ __forceinline__ int64_t cuda_index(void) {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* Returns the sum over the warp's lanes, added in a fixed tree: every lane and every run gets the same bits. All lanes
 * must call it. */
template <class T> __device__ __forceinline__ T warp_sum(T x) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(FULL_WARP, x, distance);
    return x;
}

/* Replaces x[n] in every thread by its sum over the thread block, in a fixed order. The block consists of whole warps.
 * `partial` has N values of shared memory per warp, and is free again after the next barrier. All threads must call
 * it. */
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

/* Like block_sums, for one value. */
template <class T> __device__ __forceinline__ T block_sum(T x, T *partial) {
    T one[1] = {x};
    block_sums(one, partial);
    return one[0];
}

/* --- sums whose last step the last block takes -------------------------------------------------------------------- */

/* Sums over several thread blocks need no second kernel. A second kernel would have to wait until all blocks of the
 * first one have ended, and a step of a small net takes little more time than its launches. So each block stores its
 * partial sums and counts itself. The block that comes last adds all partial sums in the order of the blocks, which
 * gives the bits that a second kernel would give. */

/* Returns true, in each thread, if this is the last of `blocks` blocks that call it with this counter. Then
 * later_load() reads what all of them have stored before. The counter belongs to the place, and is 0 again for the next
 * launch. All threads must call it. *last is shared memory that no thread reads any more. */
static __device__ __forceinline__ bool last_block(unsigned *counter, unsigned blocks, unsigned *last) {
    __threadfence(); /* makes what this thread stored visible to all blocks before its block is counted */
    __syncthreads();
    if (threadIdx.x == 0) {
        *last = atomicAdd(counter, 1u) == blocks - 1;
        if (*last) *counter = 0;
    }
    __syncthreads();
    __threadfence();
    return *last;
}

static __device__ __forceinline__ bool last_block(unsigned *counter, unsigned blocks) {
    __shared__ unsigned last;
    return last_block(counter, blocks, &last);
}

/* Loads a value that another thread block of the same launch has stored. It bypasses the cache of this multiprocessor,
 * which may have an older value. */
template <class T> __device__ __forceinline__ T later_load(const T *from) {
    return __ldcg(from);
}

/* N numbers that are summed at the same time. */
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
#define copy_async         cuda_host_copy_async
#define copy_async_or_zero cuda_host_copy_async_or_zero
#define copy_async_16      cuda_host_copy_async_16
#define copy_async_commit  cuda_host_copy_async_commit
#define copy_async_wait    cuda_host_copy_async_wait
#else
/* Starts to copy *from to *to, which is in shared memory. The copy is complete when this thread's copy_async_wait has
 * waited for the group that its next copy_async_commit ends. */
static __device__ __forceinline__ void copy_async(real *to, const real *from) {
    __pipeline_memcpy_async(to, from, sizeof *to);
}

/* Copies like copy_async if `is`; else *to becomes 0, and `from` need not be an address. */
static __device__ __forceinline__ void copy_async_or_zero(real *to, const real *from, bool is) {
    __pipeline_memcpy_async(to, from, sizeof *to, is ? 0 : sizeof *to);
}

/* Like copy_async, for 16 bytes. Both addresses are multiples of 16. The copy leaves no copy in the cache of this
 * multiprocessor. */
static __device__ __forceinline__ void copy_async_16(void *to, const void *from) {
    __pipeline_memcpy_async(to, from, 16);
}

/* These two are written as instructions, not with <cuda_pipeline.h>, because a wait of <cuda_pipeline.h> does not keep
 * the compiler from reading a slot too early. A thread reads only its own slots, so there is no barrier that would. */
static __device__ __forceinline__ void copy_async_commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until only the last LEFT groups may still be incomplete. */
template <int LEFT> __device__ __forceinline__ void copy_async_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
#endif

/* --- elements ----------------------------------------------------------------------------------------------------- */

/* W neighbouring values, which are moved 16 bytes at a time. Planned tensors begin on a cache line, so element i may be
 * the first of 4 if 4 divides i. Inputs may begin elsewhere (linear_cuda.cu). */
template <int W> struct alignas(W * sizeof(real) < 16 ? W * sizeof(real) : 16) lanes { real v[W]; };

template <int W> __device__ __forceinline__ lanes<W> load_lanes(const real *from) {
    return *reinterpret_cast<const lanes<W> *>(from);
}

template <int W> __device__ __forceinline__ void store_lanes(real *to, lanes<W> x) {
    *reinterpret_cast<lanes<W> *>(to) = x;
}

/* put() for W values. */
template <int W> __device__ __forceinline__ void put_lanes(real *to, bool accumulate, lanes<W> x) {
    if (accumulate) {
        lanes<W> before = load_lanes<W>(to);
        for (int k = 0; k < W; k++) x.v[k] = before.v[k] + x.v[k];
    }
    store_lanes<W>(to, x);
}

/* W neighbouring numbers of bf16. */
template <int W> struct alignas(W * sizeof(uint16_t)) halves { uint16_t v[W]; };

/* Stores W values from element i on, rounded to p, in precision_bytes(p) each. */
template <int W> __device__ __forceinline__ void store_rounded(void *to, int64_t i, enum precision p, lanes<W> x) {
    if (precision_bytes(p) < sizeof(real)) {
        halves<W> h;
        for (int k = 0; k < W; k++) h.v[k] = bf16_bits(x.v[k]);
        *reinterpret_cast<halves<W> *>((uint16_t *)to + i) = h;
        return;
    }
    for (int k = 0; k < W; k++) x.v[k] = rounded(p, x.v[k]);
    store_lanes<W>((real *)to + i, x);
}

/* Stores or adds like put_lanes, rounded to p. The planner lets no gradient be rounded to which a call adds. */
template <int W>
__device__ __forceinline__ void put_rounded(void *to, int64_t i, bool accumulate, enum precision p, lanes<W> x) {
    if (accumulate)
        put_lanes<W>((real *)to + i, true, x);
    else
        store_rounded<W>(to, i, p, x);
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

/* Calls f.run<W>(i), which computes elements i to i + W - 1, for all of n elements. f has plain pointers and numbers as
 * members. Its type must be in an unnamed namespace, so that it differs from types of other files. */
template <class F> void each(const struct call *c, const struct exec *x, int64_t n, F f) {
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, each_kernel<F>,
                cuda_blocks((n + 3) / 4, CUDA_THREADS), dim3(CUDA_THREADS), 0, n, f);
}

template <class F> __global__ void __launch_bounds__(CUDA_THREADS) each_value_kernel(int64_t n, F f) {
    await_previous();
    int64_t i = cuda_index();
    if (i < n) f(i);
}

/* Calls f(i) for each i < n, one per thread. f has the same form as for each(). */
template <class F> void each_value(const struct call *c, const struct exec *x, int64_t n, F f) {
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, each_value_kernel<F>, cuda_blocks(n, CUDA_THREADS),
                dim3(CUDA_THREADS), 0, n, f);
}

/* For each(): to (+)= from, the gradient of a summand. */
struct passed_on {
    const real *from;
    real *to;
    bool accumulate;

    template <int W> __device__ void run(int64_t i) const {
        put_lanes<W>(to + i, accumulate, load_lanes<W>(from + i));
    }
};

/* i / n and i % n. A 64-bit division takes several times as long as a 32-bit division, so that is used for small
 * numbers. */
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

/* Like divide, for numbers below 2^32. It has no branch, for which the next loads of a loop would have to wait. */
__device__ __forceinline__ struct quotient divide_narrow(int64_t i, int64_t n) {
    uint32_t whole = (uint32_t)i / (uint32_t)n;
    return {whole, (uint32_t)i - whole * (uint32_t)n};
}

/* --- sums over rows: of chunks of rows, then of the chunks in order ----------------------------------------------- */

#define SUM_CHUNK_ROWS 128  /* least rows of a chunk */
#define SUM_BLOCKS     1024 /* about as many thread blocks keep the largest device busy */
static_assert(SUM_BLOCKS <= CUDA_COUNTERS, "a counter for each tile of columns");

/* Returns how many columns a thread block covers: a power of two, at most a warp. */
static inline int column_sums_width(int64_t C) {
    int width = 1;
    while (width < WARP && width < C) width *= 2;
    return width;
}

/* Returns how many tiles, as wide as a thread block, cover the columns. */
static inline int64_t column_sums_tiles(int64_t C) {
    int width = column_sums_width(C);
    return (C + width - 1) / width;
}

/* Returns the number of chunks into which rows are divided. It depends only on sizes. For each chunk there are `tiles`
 * blocks. */
__host__ __device__ static inline int64_t sum_chunks(int64_t rows, int64_t tiles) {
    int64_t most = SUM_BLOCKS / tiles, chunks = rows / SUM_CHUNK_ROWS;
    if (chunks > most) chunks = most;
    return chunks < 1 ? 1 : chunks;
}

/* Returns the bytes of scratch for partial sums of `each` bytes. */
static inline size_t cuda_column_sums_bytes(int64_t rows, int64_t C, size_t each = sizeof(real)) {
    int64_t chunks = sum_chunks(rows, column_sums_tiles(C));
    return chunks > 1 ? (size_t)(chunks * C) * each : 0;
}

/* Division of a matrix's rows and columns. A tile is `width` neighbouring columns. */
struct column_cut {
    int64_t rows, C, chunks, tiles;
    int width;
};

static inline struct column_cut column_cut_of(int64_t rows, int64_t C, int64_t chunks) {
    return {rows, C, chunks, column_sums_tiles(C), column_sums_width(C)};
}

/* The share of a thread block, which is one chunk of one tile; the column of a thread, and whether it stores the
 * column's sum. */
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

/* Returns the sum of term(r, r*C + column) over the rows from `begin` to `end`. Only the threads of the tile's first
 * row get it; it is also in their sums[]. CUDA_THREADS / width threads share the rows of each column. `sums` has
 * CUDA_THREADS values of shared memory. */
template <class V, class Term>
__device__ __forceinline__ V rows_sum(const struct column_cut &cut, int64_t begin, int64_t end, int64_t column,
                                      const Term &term, V *sums) {
    int self = (int)threadIdx.x, dealt = CUDA_THREADS / cut.width, first = self / cut.width;
    V sum = {};
    if (column < cut.C) {
#pragma unroll(sizeof(V) <= 2 * sizeof(double) ? 4 : 2) /* as many as fit into registers */
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

/* The term of a column sum of a matrix: term(r, i) = m[i]. */
struct matrix_term {
    const real *m;
    __device__ real operator()(int64_t, int64_t i) const {
        return m[i];
    }
};

/* Like matrix_term, for a matrix that other thread blocks of the launch have stored. */
template <class V> struct partial_term {
    const V *m;
    __device__ V operator()(int64_t, int64_t i) const {
        return later_load(m + i);
    }
};

/* Calls out(c, sum of term(r, r*C + c) over r). If there are several chunks, partial[k*C + c] is the sum of chunk k,
 * and the last thread block of a tile adds the tile's chunks. So as many blocks add as in a second kernel. counters:
 * one for each tile; sums: CUDA_THREADS values of shared memory. */
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

/* Launches out(c, sum of term(r, r*C + c) over r) for each column c. `scratch` has cuda_column_sums_bytes for V. */
template <class V, class Term, class Out>
void cuda_column_sums_to(const struct call *c, const struct exec *x, struct column_cut cut, Term term, Out out,
                         V *scratch) {
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, column_sums_kernel<V, Term, Out>,
                dim3((unsigned)(cut.chunks * cut.tiles)), dim3(CUDA_THREADS), CUDA_THREADS * sizeof(V), cut, term,
                scratch, x->place->cuda->now.counters, out);
}

/* Computes to[c] (+)= sum. */
struct column_put {
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t column, real sum) const {
        put(to + column, accumulate, sum);
    }
};

/* Like cuda_column_sums, with a given number of chunks. */
template <class Term>
void cuda_chunked_sums(const struct call *c, const struct exec *x, int64_t rows, int64_t C, int64_t chunks, Term term,
                       real *out, bool accumulate, real *scratch) {
    cuda_column_sums_to(c, x, column_cut_of(rows, C, chunks), term, column_put{out, accumulate}, scratch);
}

/* Computes out[c] (+)= sum over r of term(r, r*C + c). */
template <class Term>
void cuda_column_sums(const struct call *c, const struct exec *x, int64_t rows, int64_t C, Term term, real *out,
                      bool accumulate, real *scratch) {
    cuda_chunked_sums(c, x, rows, C, sum_chunks(rows, column_sums_tiles(C)), term, out, accumulate, scratch);
}

#endif

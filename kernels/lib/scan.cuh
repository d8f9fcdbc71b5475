/* scan.cuh - the scan engine of the CUDA kernels. It runs recurrences h_t = apply(element_t, h_{t-1}), and their
 * gradients, which go from the last time step to the first.
 *
 * A lane is one channel (or one block of channels) of one batch element; neighbouring threads belong to neighbouring
 * lanes. A walk is a structure of plain pointers and numbers that says what a lane does at a time step. The engine
 * calls it for all time steps. Its type is in an unnamed namespace, as with each() of cuda.cuh, and has these members:
 *   ROWS, LANES     number of threads of a lane (its rows); number of lanes of a thread block, whole warps
 *   VALUES          number of values that a thread reads from memory at a time step
 *   STEPS           number of time steps whose values a thread requests before it uses them
 *   REVERSE         true: the walk goes from the last time step to the first
 *   input, state    values that a thread reads at a time step; values that it carries to the next time step
 *   shared          shared memory through which the rows of a lane exchange values
 *   begin           sets the state before the first step
 *   load            returns the input of a time step. It gets each value by read(address), always in the same order
 *   prepare         does all arithmetic of the next STEPS inputs that does not need the state
 *   step            computes the state after a time step and stores results
 *   hear            with several rows: reads what the other rows have written to `shared` in step(), after a barrier.
 *                   `shared` has two buffers, which are used in turn, so that no row overwrites what another row reads
 *   end             stores what remains after the last step; all rows call it together
 * A lane usually is a whole sequence. If sequences are long and few, a lane is one chunk of a sequence, and there are
 * three walks. The first computes each chunk's summary: its transition product, and the state after it if the state
 * before it is zero. The second goes over the chunks instead of time steps, and computes the state before each chunk
 * (scan_carry). The third computes the results from these states.
 *
 * A few lanes must keep the memory busy. So a thread has requested the values of the next STEPS time steps while it
 * computes the current ones. They arrive in registers (scan_walk), or if these are too few, in shared memory for
 * several times as many steps (scan_walk_ring). Bits depend only on sizes, because sizes determine the length of
 * chunks. */
#ifndef LRNN_KERNELS_LIB_SCAN_CUH
#define LRNN_KERNELS_LIB_SCAN_CUH

#include "kernels/lib/cuda.cuh"

struct scan_shape {
    int64_t B;
    /* length: time steps of a chunk (the last may have fewer); chunks: number of chunks of a sequence */
    int T, N, length, chunks;
};

#define SCAN_CHUNK_MIN      16    /* least time steps of a chunk; its length is a multiple of this */
#define SCAN_THREADS_WANTED 65536 /* the length of chunks is chosen so that there are about so many threads */
#define SCAN_CORES          132   /* or so many multiprocessors full of blocks (scan_chunk_length), as of an H200 */
/* If all channels together read fewer than SCAN_VALUES_FEW values at a time step, they do not keep a large device's
 * memory busy. Then, for sequences of at least SCAN_LONG time steps, chunks are faster, although they read the elements
 * twice. */
#define SCAN_VALUES_FEW 32768
#define SCAN_LONG       256

static inline struct scan_shape scan_whole(int64_t B, int64_t T, int64_t N) {
    return {.B = B, .T = (int)T, .N = (int)N, .length = (int)T, .chunks = 1};
}

/* Number of thread blocks that shall be resident on a multiprocessor. A thread of a block with at most 64 threads may
 * then use all registers that a thread can have; a thread of a larger block may use half as many. */
#define SCAN_BLOCKS(threads) (REAL_IS_DOUBLE ? 1 : (threads) <= 64 ? 4 : 512 / (threads))

/* Returns the length of chunks. rows: threads per lane. Blocks of more than 64 threads are so few that all of them are
 * resident at the same time, if that is possible: a few blocks more would take as long again. Their number is that of a
 * device with SCAN_CORES multiprocessors, and not of the device at hand, so that bits depend only on sizes. */
static inline int64_t scan_chunk_length(int64_t B, int64_t T, int64_t N, int64_t rows) {
    int64_t chunks = rows * WARP > 64 ? SCAN_CORES * SCAN_BLOCKS(rows * WARP) * WARP / (B * N) : 0;
    if (chunks > 0) return (T + chunks - 1) / chunks;
    return (T * B * N * rows + SCAN_THREADS_WANTED - 1) / SCAN_THREADS_WANTED;
}

static inline struct scan_shape scan_chunked(int64_t B, int64_t T, int64_t N, int64_t rows) {
    int64_t length = scan_chunk_length(B, T, N, rows);
    length = (length + SCAN_CHUNK_MIN - 1) / SCAN_CHUNK_MIN * SCAN_CHUNK_MIN;
    return {.B = B, .T = (int)T, .N = (int)N, .length = (int)length, .chunks = (int)((T + length - 1) / length)};
}

/* values: number of values that a channel reads at a time step. */
static inline bool scan_chunks_pay(int64_t B, int64_t T, int64_t N, int64_t values) {
    return T >= SCAN_LONG && B * N * values < SCAN_VALUES_FEW;
}

__host__ __device__ static inline int64_t scan_lanes(const struct scan_shape &s) {
    return s.B * s.chunks * s.N;
}

/* The position of a thread. */
struct scan_lane {
    int64_t index, tokens; /* index: of the lane; tokens: number of tokens before its batch element */
    int k, N;              /* the lane's channel, and the number of channels */
    int first, count;      /* the lane's first time step, and the number of its time steps */
    int x, row;            /* the lane's index in the thread block, and the thread's row in the lane */
    bool stores;           /* false: the thread computes the last lane again, only to reach the barriers */

    /* Index of the channel's first value at time t in a tensor (B,T,rows*N). */
    __device__ __forceinline__ int64_t at(int t, int rows = 1) const {
        return tokens * rows * N + k + (int64_t)t * (rows * N);
    }

    __device__ __forceinline__ int last(void) const {
        return first + count - 1;
    }
};

/* Returns how many time steps a thread requests at once: about `values` values in flight, with `inputs` values per
 * step. Registers hold these values twice. */
constexpr int scan_steps(int inputs, int values) {
    int steps = values / inputs / (REAL_IS_DOUBLE ? 2 : 1);
    return steps < 1 ? 1 : steps > 24 ? 24 : steps;
}

struct scan_nothing_shared {};

__device__ __forceinline__ scan_lane scan_lane_at(const scan_shape &shape, int lanes) {
    scan_lane lane;
    int64_t count = scan_lanes(shape);
    lane.x = (int)threadIdx.x;
    lane.row = (int)threadIdx.y;
    lane.index = (int64_t)blockIdx.x * lanes + lane.x;
    lane.stores = lane.index < count;
    if (!lane.stores) lane.index = count - 1;
    quotient sequence = divide(lane.index, shape.N), b = divide(sequence.whole, shape.chunks);
    lane.N = shape.N;
    lane.k = (int)sequence.rest;
    lane.tokens = b.whole * shape.T;
    lane.first = (int)b.rest * shape.length;
    lane.count = shape.T - lane.first < shape.length ? shape.T - lane.first : shape.length;
    return lane;
}

/* Returns the i-th time step of the lane, in the walk's direction. */
template <class W> __device__ __forceinline__ int scan_time(const scan_lane &lane, int i) {
    return W::REVERSE ? lane.first + lane.count - 1 - i : lane.first + i;
}

/* The read() of scan_walk: returns the value. */
struct scan_at_once {
    __device__ __forceinline__ real operator()(const real *from) const {
        return *from;
    }
};

/* Loads the inputs of STEPS time steps from the i-th on. After the lane's last step it loads this step again. */
template <class W>
__device__ __forceinline__ void scan_load(const W &w, const scan_lane &lane, int i, typename W::input *next) {
    if (i + W::STEPS <= lane.count) {
#pragma unroll
        for (int s = 0; s < W::STEPS; s++) next[s] = w.load(lane, scan_time<W>(lane, i + s), scan_at_once());
    } else {
#pragma unroll
        for (int s = 0; s < W::STEPS; s++)
            next[s] = w.load(lane, scan_time<W>(lane, i + s < lane.count ? i + s : lane.count - 1), scan_at_once());
    }
}

/* With several rows, all threads of a block go through the time steps of the longest lane, because they share
 * barriers. */
template <class W> __device__ __forceinline__ int scan_steps_of(const W &w, const scan_lane &lane) {
    return W::ROWS > 1 ? w.shape.length : lane.count;
}

template <class W>
__device__ __forceinline__ void scan_step(const W &w, const scan_lane &lane, int i, const typename W::input &in,
                                          typename W::state &state, typename W::shared &shared) {
    int t = scan_time<W>(lane, i);
    if (i < lane.count) w.step(lane, t, in, state, shared);
    if constexpr (W::ROWS > 1) {
        __syncthreads();
        if (i < lane.count) w.hear(lane, t, in, state, shared);
    }
}

template <class W> __global__ void __launch_bounds__(W::LANES *W::ROWS, SCAN_BLOCKS(W::LANES *W::ROWS)) scan_walk(W w) {
    await_previous();
    __shared__ typename W::shared shared;
    scan_lane lane = scan_lane_at(w.shape, W::LANES);
    typename W::state state;
    typename W::input now[W::STEPS], next[W::STEPS];
    w.begin(lane, state, shared);
    scan_load(w, lane, 0, next);
    int steps = scan_steps_of(w, lane);
    for (int done = 0; done < steps; done += W::STEPS) {
#pragma unroll
        for (int s = 0; s < W::STEPS; s++) now[s] = next[s];
        if (done + W::STEPS < lane.count) scan_load(w, lane, done + W::STEPS, next);
        w.prepare(now);
#pragma unroll
        for (int s = 0; s < W::STEPS; s++)
            if (done + s < steps) scan_step(w, lane, done + s, now[s], state, shared);
    }
    w.end(lane, state, shared);
}

/* --- the same walk, its input by way of shared memory ------------------------------------------------------------- */

/* scan_walk has the requested values of STEPS time steps in registers. By Little's law, a device needs (bandwidth times
 * latency) bytes in flight: on an H100, 3.35 TB/s times about .7 us. Few lanes do not reach this number with registers.
 * In scan_walk_ring, each thread requests asynchronous copies (cp.async, capability 8.0) of its values into its own
 * slots of shared memory. A turn is the values of STEPS time steps; SCAN_RING turns have slots, and the thread waits
 * only for the turn that it needs next. No thread reads another thread's slots, so no barrier is needed. The
 * arithmetic, and so the bits, are those of scan_walk. */
#define SCAN_RING         4           /* number of turns; all but one are in flight */
#define SCAN_BYTES_WANTED (18u << 10) /* bytes in flight per multiprocessor: 3.35 TB/s * .7 us / 132 */

/* The slots of a thread: STEPS * VALUES per turn. Slots of neighbouring threads are neighbours in memory. */
template <class W> struct scan_slots {
    static constexpr int THREADS = W::LANES * W::ROWS, TURN = W::STEPS * W::VALUES;
    static constexpr int ALL = SCAN_RING * TURN * THREADS;
    static constexpr size_t BYTES = sizeof(real) * ALL + sizeof(typename W::shared);
    real *first;

    __device__ __forceinline__ real *at(int turn, int step) const {
        return first + (turn % SCAN_RING * TURN + step * W::VALUES) * THREADS;
    }
};

/* Two forms of read(): scan_ask requests a copy of the value into the next slot; scan_take returns the value of the
 * next slot. */
template <int THREADS> struct scan_ask {
    real **slot;
    __device__ __forceinline__ real operator()(const real *from) const {
        copy_async(*slot, from);
        *slot += THREADS;
        return 0;
    }
};

template <int THREADS> struct scan_take {
    real **slot;
    __device__ __forceinline__ real operator()(const real *) const {
        real value = **slot;
        *slot += THREADS;
        return value;
    }
};

/* Loads the inputs of a turn with Read. After the lane's last step it loads this step again. */
template <template <int> class Read, class W>
__device__ __forceinline__ void scan_turn(const W &w, const scan_lane &lane, const scan_slots<W> &slots, int turn,
                                          typename W::input *in) {
#pragma unroll
    for (int s = 0; s < W::STEPS; s++) {
        int i = turn * W::STEPS + s;
        real *slot = slots.at(turn, s);
        in[s] =
            w.load(lane, scan_time<W>(lane, i < lane.count ? i : lane.count - 1), Read<scan_slots<W>::THREADS>{&slot});
    }
}

/* Requests the copies of a turn. After the last turn it requests nothing, but still commits a group, because
 * copy_async_wait counts groups. */
template <class W>
__device__ __forceinline__ void scan_request(const W &w, const scan_lane &lane, const scan_slots<W> &slots, int turn) {
    typename W::input none[W::STEPS];
    if (turn * W::STEPS < lane.count) scan_turn<scan_ask>(w, lane, slots, turn, none);
    copy_async_commit();
}

/* Like scan_walk, through shared memory. The kernel is empty for older devices, where it is never launched: what
 * replaces cp.async there would spill registers. */
template <class W> __global__ void __launch_bounds__(W::LANES *W::ROWS, 1) scan_walk_ring(W w) {
    await_previous();
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 10 * COPY_ASYNC_CAPABILITY
    DYNAMIC_SHARED(real, ring); /* scan_slots::BYTES */
    typename W::shared &shared = *(typename W::shared *)(ring + scan_slots<W>::ALL);
    scan_lane lane = scan_lane_at(w.shape, W::LANES);
    scan_slots<W> slots = {ring + (threadIdx.y * W::LANES + threadIdx.x)};
    typename W::state state;
    typename W::input now[W::STEPS];
    for (int turn = 0; turn < SCAN_RING - 1; turn++) scan_request(w, lane, slots, turn);
    w.begin(lane, state, shared);
    int steps = scan_steps_of(w, lane);
    for (int turn = 0; turn * W::STEPS < steps; turn++) {
        scan_request(w, lane, slots, turn + SCAN_RING - 1);
        copy_async_wait<SCAN_RING - 1>();
        scan_turn<scan_take>(w, lane, slots, turn, now);
        w.prepare(now);
#pragma unroll
        for (int s = 0; s < W::STEPS; s++)
            if (turn * W::STEPS + s < steps) scan_step(w, lane, turn * W::STEPS + s, now[s], state, shared);
    }
    w.end(lane, state, shared);
#endif
}

/* True if too few bytes are in flight when they arrive in registers, and sequences are long enough for a second
 * turn. */
template <class W> bool scan_wants_ring(const struct cuda_context *cuda, const W &w) {
    int64_t in_flight = scan_lanes(w.shape) * W::ROWS * W::STEPS * W::VALUES * (int64_t)sizeof(real);
    return cuda->capability >= COPY_ASYNC_CAPABILITY && scan_slots<W>::BYTES <= cuda->shared &&
           w.shape.length > W::STEPS && in_flight < (int64_t)cuda->cores * SCAN_BYTES_WANTED;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

template <class W> void scan_launch(const struct call *c, const struct exec *x, const W &w) {
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, scan_walk<W>,
                cuda_blocks(scan_lanes(w.shape), W::LANES), dim3(W::LANES, W::ROWS), 0, w);
}

/* Launches the walk that computes the results, by scan_walk or by scan_walk_ring. */
template <class W> void scan_launch_long(const struct call *c, const struct exec *x, const W &w) {
    if (!scan_wants_ring(x->place->cuda, w)) return scan_launch(c, x, w);
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, scan_walk_ring<W>,
                cuda_blocks(scan_lanes(w.shape), W::LANES), dim3(W::LANES, W::ROWS), scan_slots<W>::BYTES, w);
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

/* The summary of chunks has m*m planes of transition products, row after row, then m planes of the states after each
 * chunk. A plane has one value per lane. Complex numbers (m = 2) have only two planes of products, the real and the
 * imaginary part. */

static inline int64_t scan_chunk_values(const scan_shape &shape, int64_t m, bool complex_product) {
    return ((complex_product ? m : m * m) + m) * scan_lanes(shape);
}

namespace {

/* The walk over chunks instead of time steps. It replaces the states after each chunk by the states before each chunk.
 * With REVERSED, it goes from the last chunk to the first. Its shape is scan_whole(B, chunks, N). */
template <int m, bool REVERSED, bool COMPLEX> struct scan_carry {
    static constexpr int ROWS = m, LANES = m == 1 ? 64 : 32, VALUES = m + 1;
    static constexpr int STEPS = scan_steps(VALUES, m <= 2 ? 32 : 24);
    static constexpr bool REVERSE = REVERSED;
    struct input {
        real product[m], sum;
    };
    struct state {
        real own, before[m];
    };
    struct shared {
        real own[2][m][LANES];
    };
    scan_shape shape;
    const real *product;
    real *sum; /* the state after each chunk, replaced by the state before it */

    __device__ __forceinline__ int64_t at(const scan_lane &lane, int chunk, int plane) const {
        return plane * (shape.B * shape.T * shape.N) + lane.at(chunk);
    }
    __device__ __forceinline__ void begin(const scan_lane &, state &s, shared &) const {
        s = {};
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int chunk, Read read) const {
        input in;
#pragma unroll
        for (int j = 0; j < m; j++)
            in.product[j] = read(product + at(lane, chunk, COMPLEX ? lane.row ^ j : lane.row * m + j));
        in.sum = read(sum + at(lane, chunk, lane.row));
        return in;
    }
    /* For a complex product: (re, im) x = (re x0 - im x1, im x0 + re x1). */
    __device__ __forceinline__ void prepare(input *in) const {
#pragma unroll
        for (int s = 0; s < STEPS; s++)
            if (COMPLEX && threadIdx.y == 0) in[s].product[m - 1] = -in[s].product[m - 1];
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int chunk, const input &in, state &s,
                                         shared &rows) const {
        real next = in.sum;
        if (lane.stores) sum[at(lane, chunk, lane.row)] = s.own;
#pragma unroll
        for (int j = 0; j < m; j++) next = real_fma(in.product[j], s.before[j], next);
        s.own = next;
        if constexpr (m == 1)
            s.before[0] = next;
        else
            rows.own[chunk & 1][lane.row][lane.x] = next;
    }
    __device__ __forceinline__ void hear(const scan_lane &lane, int chunk, const input &, state &s,
                                         shared &rows) const {
#pragma unroll
        for (int j = 0; j < m; j++) s.before[j] = rows.own[chunk & 1][j][lane.x];
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, shared &) const {}
};

} // namespace

/* Returns value i of the state before a lane's first step; 0 if carry is NULL. */
__device__ __forceinline__ real scan_first(const real *carry, const scan_shape &shape, const scan_lane &lane, int i) {
    return carry ? carry[i * scan_lanes(shape) + lane.index] : 0;
}

/* Replaces the summary's states after each chunk by the states before each chunk, and returns these. */
template <int m, bool REVERSE, bool COMPLEX>
const real *scan_carry_over(const struct call *c, const struct exec *x, const scan_shape &chunked, real *summary) {
    real *sum = summary + (scan_chunk_values(chunked, m, COMPLEX) - m * scan_lanes(chunked));
    scan_launch(c, x, scan_carry<m, REVERSE, COMPLEX>{scan_whole(chunked.B, chunked.chunks, chunked.N), summary, sum});
    return sum;
}

#endif

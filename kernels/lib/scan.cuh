/* scan.cuh - the one scan engine of the CUDA twins: h_t = apply(element_t, h_{t-1}) and its adjoint, which runs from
 * the last time step to the first.
 *
 * A lane is one channel (or block of them) of one batch element, and neighbouring threads are neighbouring lanes. A
 * walk is a structure of plain pointers and numbers that says what a lane does; the engine takes it along time. Its
 * type stands in an unnamed namespace, as with each() of cuda.cuh, and has
 *   ROWS, LANES         threads of one lane; lanes of a thread block, whole warps
 *   VALUES, STEPS       what a thread reads from memory at a time step; time steps asked for ahead of use
 *   REVERSE             from the last time step to the first
 *   input, state        what a thread reads from memory at a time step; what it carries from one to the next
 *   shared              what the rows of a lane tell each other
 *   begin               the state before the first step
 *   load, prepare       a time step's input, its values by read(address), in the same order whatever `read` does; all
 *                       arithmetic of the next STEPS inputs that needs no state
 *   step, hear          the state after a time step, and its stores; with several rows then, after a barrier, what the
 *                       others told meanwhile. Two buffers take turns, so that none is overwritten while it is read
 *   end                 what is stored after the last one, by all rows together
 * Sequential: a lane is a whole sequence. For long sequences of few lanes: a lane is one chunk of a sequence. A first
 * walk leaves each chunk's transition product and its end from a zero state, a second one, over chunks instead of time
 * steps, each chunk's first state (scan_carry), from which a third one does the work.
 *
 * Few lanes have to keep the memory busy: the loads of STEPS time steps are in flight while those before are computed,
 * in registers, or, where that is too little, of several times as many in shared memory (scan_walk_ring).
 * Bits depend on sizes alone, through the length of chunks. */
#ifndef LRNN_KERNELS_LIB_SCAN_CUH
#define LRNN_KERNELS_LIB_SCAN_CUH

#include "kernels/lib/cuda.cuh"

struct scan_shape {
    int64_t B;
    int T, N, length, chunks; /* length: time steps of a chunk, but for the last; chunks: of a sequence */
};

#define SCAN_CHUNK_MIN      16    /* time steps; lengths are multiples of it */
#define SCAN_THREADS_WANTED 65536 /* by which chunks are cut */
/* Fewer values to read at a time step do not keep a large device's memory busy: then, from so many time steps on, it
 * pays to read the elements twice. */
#define SCAN_VALUES_FEW 32768
#define SCAN_LONG       256

static inline struct scan_shape scan_whole(int64_t B, int64_t T, int64_t N) {
    return {.B = B, .T = (int)T, .N = (int)N, .length = (int)T, .chunks = 1};
}

/* rows: threads of a lane. */
static inline struct scan_shape scan_chunked(int64_t B, int64_t T, int64_t N, int64_t rows) {
    int64_t length = (T * B * N * rows + SCAN_THREADS_WANTED - 1) / SCAN_THREADS_WANTED;
    length = (length + SCAN_CHUNK_MIN - 1) / SCAN_CHUNK_MIN * SCAN_CHUNK_MIN;
    return {.B = B, .T = (int)T, .N = (int)N, .length = (int)length, .chunks = (int)((T + length - 1) / length)};
}

/* values: what a channel reads at a time step. */
static inline bool scan_chunks_pay(int64_t B, int64_t T, int64_t N, int64_t values) {
    return T >= SCAN_LONG && B * N * values < SCAN_VALUES_FEW;
}

__host__ __device__ static inline int64_t scan_lanes(const struct scan_shape &s) {
    return s.B * s.chunks * s.N;
}

/* Position of a thread. */
struct scan_lane {
    int64_t index, tokens; /* of the lane; in front of its batch element */
    int k, N;              /* channel, of how many */
    int first, count;      /* its time steps; no more than shape.length */
    int x, row;            /* in the thread block */
    bool stores;           /* false: there only for the barriers, on the last lane's data */

    /* Index of the channel's first value at time t in a tensor (B,T,rows*N). */
    __device__ __forceinline__ int64_t at(int t, int rows = 1) const {
        return tokens * rows * N + k + (int64_t)t * (rows * N);
    }

    __device__ __forceinline__ int last(void) const {
        return first + count - 1;
    }
};

/* Time steps asked for at once, `inputs` values each: registers hold them twice, and they are the bytes in flight. */
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

/* The lane's i-th time step. */
template <class W> __device__ __forceinline__ int scan_time(const scan_lane &lane, int i) {
    return W::REVERSE ? lane.first + lane.count - 1 - i : lane.first + i;
}

/* How a walk has a value: now. */
struct scan_at_once {
    __device__ __forceinline__ real operator()(const real *from) const {
        return *from;
    }
};

/* The input of time steps i and on; steps past the last repeat it. */
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

/* Thread blocks that a multiprocessor is to hold: two warps may use all the registers a thread can have, more share
 * half of the multiprocessor's among 256 threads. */
#define SCAN_BLOCKS(threads) (REAL_IS_DOUBLE ? 1 : (threads) <= 64 ? 4 : 512 / (threads))

/* With several rows all threads of a block go through all time steps of the longest lane, for the barriers. */
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

/* Registers hold STEPS inputs on their way. By Little's law a device needs its rate times its latency on the way, an
 * H100 3.35 TB/s times some .7 us; where lanes are few that is more. There each thread has what it will read copied
 * (cp.async, capability 8.0) into slots of its own, in SCAN_RING turns of STEPS time steps each, and waits for the turn
 * at hand alone. No thread reads another's slots, so there is no barrier; sums, and so bits, equal scan_walk's. */
#define SCAN_RING         4           /* turns, of which all but one are on their way */
#define SCAN_BYTES_WANTED (18u << 10) /* on their way, of a multiprocessor: 3.35 TB/s * .7 us / 132 */

/* A thread's slots: of each turn STEPS * VALUES, and neighbouring threads lie beside each other. */
template <class W> struct scan_slots {
    static constexpr int THREADS = W::LANES * W::ROWS, TURN = W::STEPS * W::VALUES;
    static constexpr int ALL = SCAN_RING * TURN * THREADS;
    static constexpr size_t BYTES = sizeof(real) * ALL + sizeof(typename W::shared);
    real *first;

    __device__ __forceinline__ real *at(int turn, int step) const {
        return first + (turn % SCAN_RING * TURN + step * W::VALUES) * THREADS;
    }
};

/* read() of a walk that has the values copied to slots, and read() of a walk that takes them from there. */
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

/* A turn's inputs by Read; steps past the last repeat it. */
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

/* Behind the last turn nothing is asked for, but counted all the same. */
template <class W>
__device__ __forceinline__ void scan_request(const W &w, const scan_lane &lane, const scan_slots<W> &slots, int turn) {
    typename W::input none[W::STEPS];
    if (turn * W::STEPS < lane.count) scan_turn<scan_ask>(w, lane, slots, turn, none);
    copy_async_commit();
}

/* Empty for older devices, to which it is never given: what stands in for cp.async there would spill registers. */
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

/* True if registers hold too little of it, and time is long enough for a second turn. */
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

/* Likewise of the walk that does a scan's work, in one of the two ways. */
template <class W> void scan_launch_long(const struct call *c, const struct exec *x, const W &w) {
    if (!scan_wants_ring(x->place->cuda, w)) return scan_launch(c, x, w);
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, scan_walk_ring<W>,
                cuda_blocks(scan_lanes(w.shape), W::LANES), dim3(W::LANES, W::ROWS), scan_slots<W>::BYTES, w);
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

/* Turns a summary, m*m planes of transition products, row after row, then m planes of ends, into the chunks' first
 * states; a plane is one value per lane. Complex numbers (m = 2) have two planes of products instead, the real and the
 * imaginary part. */

static inline int64_t scan_chunk_values(const scan_shape &shape, int64_t m, bool complex_product) {
    return ((complex_product ? m : m * m) + m) * scan_lanes(shape);
}

namespace {

/* Over chunks instead of time steps, first to last, with REVERSE last to first; its shape is scan_whole(B, chunks,
 * N). */
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
    real *sum; /* replaced */

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
    /* (re, im) x = (re x0 - im x1, im x0 + re x1) */
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

/* Value i of a lane's first state; carry NULL: zero. */
__device__ __forceinline__ real scan_first(const real *carry, const scan_shape &shape, const scan_lane &lane, int i) {
    return carry ? carry[i * scan_lanes(shape) + lane.index] : 0;
}

/* Makes first states of the ends; returns them. summary: see above. */
template <int m, bool REVERSE, bool COMPLEX>
const real *scan_carry_over(const struct call *c, const struct exec *x, const scan_shape &chunked, real *summary) {
    real *sum = summary + (scan_chunk_values(chunked, m, COMPLEX) - m * scan_lanes(chunked));
    scan_launch(c, x, scan_carry<m, REVERSE, COMPLEX>{scan_whole(chunked.B, chunked.chunks, chunked.N), summary, sum});
    return sum;
}

#endif

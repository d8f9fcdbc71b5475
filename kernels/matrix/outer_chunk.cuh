/* outer_chunk.cuh - outer-product states on CUDA, J matrices per head, with segments of 64 tokens in parallel.
 * scan_outer_chunk_cuda and scan_plstm_chunk_cuda use it. Equations: outer_chunk.c. Gates are only multiplied
 * (chunk_gates.h), so a decay may be negative or 0.
 *
 * There are three stages. First, a thread block for each strip and segment (chunk.cuh) computes the sum that a segment
 * of 64 tokens adds to the states after it; in backward, to the gradients of the states before it. Second, a thread for
 * each element computes the states between segments. Third, a thread block for each strip and segment computes the
 * outputs, or the gradients. If there is only one segment, the third stage suffices.
 *
 * In a segment, a thread block computes one chunk of 16 tokens after the other, with the states in shared memory and
 * products of matrices on tensor cores (kernels/lib/tile_product.cuh). It does not take 64 tokens in one product, for
 * two reasons: backward needs the states before every 16th token, and a token would be multiplied with 64 others
 * instead of 16. Backward reads those states one after the other, and keeps their gradients in shared memory.
 *
 * With P[m][n] = Gate[m][n] (q_n . k_m), U[m][n] = Gate[m][n] (w_n . v_m), w = scale do, and the factors r_i (with
 * which tokens read state i before the chunk), x_a (with which they write into state a after it) and F[i][a] (from
 * state i to state a):
 *   o = scale (P^T V + sum_i diag(r_i) Q C_i)      C_a <- sum_i F[i][a] C_i + K^T diag(x_a) V
 *   dq = U^T K + sum_i diag(r_i) W C_i^T    dk = U Q + sum_a diag(x_a) V E_a^T    dv = P W + sum_a diag(x_a) K E_a
 *   E_i <- sum_a F[i][a] E_a + Q^T diag(r_i) W
 *
 * The gates of a chunk are a type with these members:
 *   J, SINGLE                      number of states of a head; true if every head of this type has one state
 *   take(J, pass, cursor)          takes its arrays in shared memory
 *   load(in, s, at, begin)         loads the gates; missing tokens write nothing, read nothing and keep the states
 *   products()                     computes what follows. It needs a barrier before it (after load) and one after it
 *   gate(m, n)                     Gate[m][n], 0 for m > n
 *   reads(i, n), writes(a, m)      r_i[n], x_a[m]
 *   through(i, a)                  F[i][a]
 * In backward it also stores terms of its gradients:
 *   entry(i, n), taken(a, m)       q_n . C_i w_n and k_m . E_a v_m
 *   along(a, i)                    the sum of E_a o C_i
 *   warps                          for block_sum
 *   write(keys, values, n, to, step)  writes the gradients of the first n tokens. All threads call it after a barrier.
 *                                  keys[m][n] = k_m . q_n, values[m][n] = v_m . w_n; `to` gets dS, dM, dT, dD of each
 *                                  token (outer_partial) */
#ifndef LRNN_KERNELS_MATRIX_OUTER_CHUNK_CUH
#define LRNN_KERNELS_MATRIX_OUTER_CHUNK_CUH

#include "kernels/matrix/chunk.cuh"
#include "kernels/matrix/outer_sums.cuh"

#define SEGMENT 64 /* tokens */

namespace {

/* --- shared memory ------------------------------------------------------------------------------------------------ */

/* Returns state i of a head. The states lie one below the other, each padded to whole tiles. */
__device__ inline struct matrix state_of(const struct strip_shape &s, struct matrix X, int i) {
    return X.below(i * s.rows);
}

/* Shared memory of the first stage. X: the states or their gradients. rows (chunk x K) and columns (chunk x W): the
 * factors of the sum that is added. passes [to][from]: the transition of the segment. spare: for mix(). */
template <class Gates> struct summary_room {
    Gates g;
    struct matrix X, rows, columns;
    real *passes, *spare;
};

template <class Gates>
__host__ __device__ inline struct summary_room<Gates> take_summary(const struct strip_shape &s, int J,
                                                                   struct cursor *c) {
    struct summary_room<Gates> r;
    r.g = Gates::take(J, PASS_FORWARD, c);
    r.X = c->take(r.g.J * s.rows, s.W);
    r.rows = c->take(STATE_CHUNK, s.rows);
    r.columns = c->take(STATE_CHUNK, s.W);
    r.passes = c->take(r.g.J * r.g.J);
    r.spare = c->take(r.g.J * CHUNK_THREADS);
    return r;
}

/* Shared memory of the last stage. Q, K, V and W = scale dO have one row per token. keys[m][n] = k_m . q_n,
 * values[m][n] = v_m . w_n. C has all states in forward, and only one in backward. */
template <class Gates>
struct chunk_room {
    Gates g;
    struct matrix C, Q, K, V, keys;
    struct matrix E, W, values; /* only for backward, as all that follows; E has the gradients of all states */
    struct matrix X;            /* W C_i^T, then V E_a^T */
    real *spare;                /* for mix() if there are several states */
};

template <class Gates>
__host__ __device__ inline struct chunk_room<Gates> take_chunk(const struct strip_shape &s, int J, enum pass pass,
                                                               struct cursor *c) {
    const int N = STATE_CHUNK;
    struct chunk_room<Gates> r = {};
    r.g = Gates::take(J, pass, c);
    r.C = c->take(pass == PASS_FORWARD ? r.g.J * s.rows : s.rows, s.W);
    r.Q = c->take(N, s.rows);
    r.K = c->take(N, s.rows);
    r.V = c->take(N, s.W);
    r.keys = c->take(N, N);
    r.spare = c->take(r.g.J > 1 ? r.g.J * CHUNK_THREADS : 0);
    if (pass == PASS_FORWARD) return r;
    r.E = c->take(r.g.J * s.rows, s.W);
    r.W = c->take(N, s.W);
    r.values = c->take(N, N);
    r.X = c->take(N, s.rows);
    return r;
}

template <class Gates>
inline int chunk_reals(const struct strip_shape &s, int J, enum pass pass) {
    struct cursor c = {nullptr, 0};
    take_chunk<Gates>(s, J, pass, &c);
    return c.used;
}

template <class Gates> inline int summary_reals(const struct strip_shape &s, int J) {
    struct cursor c = {nullptr, 0};
    take_summary<Gates>(s, J, &c);
    return c.used;
}

/* --- a chunk ------------------------------------------------------------------------------------------------------ */

/* These load the rows of the chunk at `begin`: q or k, and v or scale dy. */
__device__ inline void load_keys(const struct outer_inputs &in, const struct strip_shape &s, const struct segment &at,
                                 int begin, const real *from, struct matrix to) {
    int64_t group = at.h / (in.H / in.G), row = at.b * s.T + begin;
    load(to, STATE_CHUNK, s.rows, in.dk,
         spaced_rows{from + (row * in.G + group) * in.dk, in.G * in.dk, chunk_count(at, begin)});
}

__device__ inline void load_values(const struct outer_inputs &in, const struct strip_shape &s, const struct segment &at,
                                   int begin, const real *from, real factor, struct matrix to) {
    int64_t row = at.b * s.T + begin;
    load(to, STATE_CHUNK, s.W, at.width,
         spaced_rows{from + (row * in.H + at.h) * s.dv + at.first, in.H * s.dv, chunk_count(at, begin)}, factor);
}

/* Loads J successive states from `from`; zeros if `from` is NULL. */
__device__ inline void load_states(const struct strip_shape &s, int J, int dk, const struct segment &at,
                                   const real *from, struct matrix to) {
    for (int j = 0; j < J; j++)
        load_state(s, dk, at, from ? from + (int64_t)j * dk * s.dv : nullptr, state_of(s, to, j));
}

__device__ inline void store_states(const struct strip_shape &s, int J, int dk, const struct segment &at,
                                    struct matrix from, real *to) {
    for (int j = 0; j < J; j++) store_state(s, dk, at, state_of(s, from, j), to + (int64_t)j * dk * s.dv);
}

/* Computes x_a <- sum_i weight(i, a) x_i for each of n elements; at(i, e) is element e of x_i. spare has J x
 * CHUNK_THREADS reals, and each thread uses its own part. */
template <class Weight, class At> __device__ inline void mix(int J, int n, Weight weight, At at, real *spare) {
    real *old = spare + threadIdx.x;
    for (int e = (int)threadIdx.x; e < n; e += CHUNK_THREADS) {
        for (int i = 0; i < J; i++) old[i * CHUNK_THREADS] = at(i, e);
        for (int a = 0; a < J; a++) {
            real sum = weight(0, a) * old[0];
            for (int i = 1; i < J; i++) sum = real_fma(weight(i, a), old[i * CHUNK_THREADS], sum);
            at(a, e) = sum;
        }
    }
}

/* Returns the factor with which state `from`, or its gradient, enters state `to` over a chunk. */
template <enum pass PASS, class Gates> __device__ inline real passing(const Gates &g, int from, int to) {
    return PASS == PASS_FORWARD ? g.through(from, to) : g.through(to, from);
}

/* Returns the factor of token n in state j after the chunk, or in the gradient of state j before the chunk. */
template <enum pass PASS, class Gates> __device__ inline real adding(const Gates &g, int j, int n) {
    return PASS == PASS_FORWARD ? g.writes(j, n) : g.reads(j, n);
}

/* Turns X into the states after a chunk, or into the gradients of the states before it. */
template <enum pass PASS, class Gates>
__device__ inline void advance_states(const struct strip_shape &s, const Gates &g, struct matrix rows,
                                      struct matrix columns, struct matrix X, real *spare) {
    if (g.J > 1) {
        mix(
            g.J, s.rows * s.W, [&](int from, int to) { return passing<PASS>(g, from, to); },
            [&](int j, int e) -> real & { return X(j * s.rows + e / s.W, e % s.W); }, spare);
        __syncthreads();
    }
    for (int j = 0; j < g.J; j++)
        advance(
            s, g.J > 1 ? 1 : g.through(0, 0), rows, [&](int n) { return adding<PASS>(g, j, n); }, columns,
            state_of(s, X, j));
}

/* --- between segments --------------------------------------------------------------------------------------------- */

/* The states between segments, or their gradients; state i is between segments i and i + 1. `states` is (segments - 1)
 * x B x H x J x dk x dv. `through`, (segments - 1) x B x H x J x J, [to][from], has the transitions of segments. */
struct between {
    real *states, *through;
};

__device__ inline real *between_states(const struct outer_inputs &in, const struct strip_shape &s,
                                       const struct between &mid, const struct segment &at, int i) {
    return mid.states + (i * s.B * s.H + at.head) * in.J * in.dk * s.dv + at.first;
}

/* Computes each segment's sum and transition, except the last one's (backward: the first's). dy: for backward. */
template <class Gates, enum pass PASS>
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_RESIDENT)
    outer_summary_kernel(struct outer_inputs in, struct strip_shape s, const real *dy, struct between mid) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct summary_room<Gates> r = take_summary<Gates>(s, in.J, &cursor);
    const bool forward = PASS == PASS_FORWARD;
    const int J = r.g.J;
    struct segment at = segment_here(s, forward ? 0 : 1);
    int chunks = (at.end - at.begin + STATE_CHUNK - 1) / STATE_CHUNK, slot = forward ? at.index : at.index - 1;
    load_states(s, J, in.dk, at, nullptr, r.X);
    for (int e = (int)threadIdx.x; e < J * J; e += CHUNK_THREADS) r.passes[e] = e / J == e % J;
    for (int i = 0; i < chunks; i++) {
        int begin = at.begin + (forward ? i : chunks - 1 - i) * STATE_CHUNK;
        load_keys(in, s, at, begin, forward ? in.k : in.q, r.rows);
        load_values(in, s, at, begin, forward ? in.v : dy, forward ? 1 : in.scale, r.columns);
        r.g.load(in, s, at, begin);
        __syncthreads();
        r.g.products();
        __syncthreads();
        mix(
            J, J, [&](int from, int to) { return passing<PASS>(r.g, from, to); },
            [&](int to, int from) -> real & { return r.passes[to * J + from]; }, r.spare);
        advance_states<PASS>(s, r.g, r.rows, r.columns, r.X, r.spare);
        __syncthreads();
    }
    store_states(s, J, in.dk, at, r.X, between_states(in, s, mid, at, slot));
    real *through = mid.through + (slot * s.B * s.H + at.head) * J * J;
    for (int e = (int)threadIdx.x; e < J * J && at.first == 0; e += CHUNK_THREADS) through[e] = r.passes[e];
}

/* Computes an element of a head's states between all segments, one segment after the other, forward or back. A single
 * state stays in a register. Several states are stored, and the thread reads them again. */
template <bool SINGLE> struct carry {
    struct between mid;
    int64_t heads, size; /* heads: number over all sequences; size: numbers of a state */
    int several, count;  /* several: number of states, unless SINGLE */
    bool forward;

    __device__ void operator()(int64_t element) const {
        const int J = SINGLE ? 1 : several;
        struct quotient at = divide(element, size);
        const real *before = nullptr;
        real last = 0;
        for (int i = 0; i < count; i++) {
            int64_t place = (forward ? i : count - 1 - i) * heads + at.whole;
            const real *through = mid.through + place * J * J;
            real *states = mid.states + place * J * size + at.rest;
            for (int to = 0; to < J; to++) {
                real sum = states[to * size];
                for (int from = 0; from < J; from++) {
                    real old = SINGLE ? last : before ? before[from * size] : 0;
                    sum = real_fma(through[to * J + from], old, sum);
                }
                states[to * size] = last = sum;
            }
            before = states;
        }
    }
};

/* --- forward ------------------------------------------------------------------------------------------------------ */

template <class Gates>
__device__ inline void write_outputs(const struct outer_inputs &in, const struct strip_shape &s,
                                     const struct segment &at, int begin, const struct chunk_room<Gates> &r, real *y) {
    int count = chunk_count(at, begin);
    real *to = y + ((at.b * s.T + begin) * in.H + at.h) * s.dv + at.first;
    each_tile(STATE_CHUNK, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int n, int m) { return r.g.gate(m, n) * r.keys(m, n); },
            [&](int m, int j) { return r.V(m, j); }, &sums);
        for (int i = 0; i < r.g.J; i++) {
            struct matrix C = state_of(s, r.C, i);
            tile_add(
                tile, s.rows, [&](int n, int k) { return r.g.reads(i, n) * r.Q(n, k); },
                [&](int k, int j) { return C(k, j); }, &sums);
        }
        tile_store(tile, sums, [&](int n, int j, real x) {
            if (n < count && j < at.width) to[n * in.H * s.dv + j] = in.scale * x;
        });
    });
}

/* Computes the outputs y, and stores the states before every chunk in `kept`. Either may be NULL. */
template <class Gates>
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_RESIDENT)
    outer_chunk_forward_kernel(struct outer_inputs in, struct strip_shape s, struct between mid, real *y, real *kept) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct chunk_room<Gates> r = take_chunk<Gates>(s, in.J, PASS_FORWARD, &cursor);
    const int J = r.g.J;
    struct segment at = segment_here(s, 0);
    load_states(s, J, in.dk, at, at.index > 0 ? between_states(in, s, mid, at, at.index - 1) : nullptr, r.C);
    for (int begin = at.begin; begin < at.end; begin += STATE_CHUNK) {
        if (y) load_keys(in, s, at, begin, in.q, r.Q);
        load_keys(in, s, at, begin, in.k, r.K);
        load_values(in, s, at, begin, in.v, 1, r.V);
        r.g.load(in, s, at, begin);
        __syncthreads();
        if (kept) store_states(s, J, in.dk, at, r.C, kept_at(s, J * in.dk, at, begin, STATE_CHUNK, kept));
        r.g.products();
        if (y) scores(s.rows, r.K, r.Q, r.keys);
        __syncthreads();
        if (y) write_outputs(in, s, at, begin, r, y);
        __syncthreads();
        advance_states<PASS_FORWARD>(s, r.g, r.K, r.V, r.C, r.spare);
        __syncthreads();
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Computes to = a B^T, chunk x K. B is a state. */
__device__ inline void times_state(const struct strip_shape &s, struct matrix a, struct matrix B, struct matrix to) {
    each_tile(STATE_CHUNK, s.rows, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, s.W, [&](int n, int j) { return a(n, j); }, [&](int j, int i) { return B(i, j); }, &sums);
        tile_store(tile, sums, [&](int n, int i, real x) { to(n, i) = x; });
    });
}

/* Adds term i of a sum over states to dq or dk: to[n] = or += weight(n) X[n]. The first term also has the sum over m of
 * a(n,m) rows[m]. Rows of `to` are `step` apart. Each lane has the same elements in every call. */
template <class A, class Weight>
__device__ inline void write_keys(const struct strip_shape &s, int dk, int count, int i, A a, struct matrix rows,
                                  Weight weight, struct matrix X, real *to, int64_t step) {
    each_tile(STATE_CHUNK, s.rows, [&](struct tile tile) {
        struct tile_sums sums = {};
        if (i == 0)
            tile_add(
                tile, STATE_CHUNK, a, [&](int m, int k) { return rows(m, k); }, &sums);
        tile_store(tile, sums, [&](int n, int k, real x) {
            if (n < count && k < dk) to[n * step + k] = real_fma(weight(n), X(n, k), i == 0 ? x : to[n * step + k]);
        });
    });
}

template <class Gates>
__device__ inline void write_values(const struct outer_inputs &in, const struct strip_shape &s,
                                    const struct segment &at, int begin, const struct chunk_room<Gates> &r, real *dv,
                                    bool accumulate) {
    int count = chunk_count(at, begin);
    real *to = dv + ((at.b * s.T + begin) * in.H + at.h) * s.dv + at.first;
    each_tile(STATE_CHUNK, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int m, int n) { return r.g.gate(m, n) * r.keys(m, n); },
            [&](int n, int j) { return r.W(n, j); }, &sums);
        for (int a = 0; a < r.g.J; a++) {
            struct matrix E = state_of(s, r.E, a);
            tile_add(
                tile, s.rows, [&](int m, int k) { return r.g.writes(a, m) * r.K(m, k); },
                [&](int k, int j) { return E(k, j); }, &sums);
        }
        tile_store(tile, sums, [&](int m, int j, real x) {
            if (m < count && j < at.width) put(to + m * in.H * s.dv + j, accumulate, x);
        });
    });
}

/* Computes the parts of dq and of the gates' gradients that come from state i before the chunk, which is in r.C. */
template <class Gates>
__device__ inline void entry_gradients(const struct outer_inputs &in, const struct strip_shape &s, int count, int i,
                                       const struct chunk_room<Gates> &r, real *dq) {
    times_state(s, r.W, r.C, r.X);
    for (int a = 0; a < r.g.J; a++) {
        real along = state_product(s, state_of(s, r.E, a), r.C, r.g.warps);
        if (threadIdx.x == 0) r.g.along(a, i) = along;
    }
    __syncthreads();
    row_dots(s.rows, r.Q, r.X, [&](int n, real sum) { r.g.entry(i, n) = sum; });
    write_keys(
        s, in.dk, count, i, [&](int n, int m) { return r.g.gate(m, n) * r.values(m, n); }, r.K,
        [&](int n) { return r.g.reads(i, n); }, r.X, dq, outer_partial(in.dk, r.g.J));
    __syncthreads();
}

/* Computes the parts of dk and of the gates' gradients that come from the gradient of state a after the chunk. */
template <class Gates>
__device__ inline void exit_gradients(const struct outer_inputs &in, const struct strip_shape &s, int count, int a,
                                      const struct chunk_room<Gates> &r, real *dk) {
    row_dots(s.rows, r.K, r.X, [&](int m, real sum) { r.g.taken(a, m) = sum; });
    write_keys(
        s, in.dk, count, a, [&](int m, int n) { return r.g.gate(m, n) * r.values(m, n); }, r.Q,
        [&](int m) { return r.g.writes(a, m); }, r.X, dk, outer_partial(in.dk, r.g.J));
    __syncthreads();
}

/* Computes all gradients of a chunk except those of the states: dv, and partial sums, which start at the chunk's first
 * token. C has the states before the chunk; the first of them is already in r.C. */
template <class Gates>
__device__ inline void chunk_gradients(const struct outer_inputs &in, const struct strip_shape &s,
                                       const struct segment &at, int begin, const struct chunk_room<Gates> &r,
                                       const real *C, real *dv, bool add_v, real *partial) {
    int count = chunk_count(at, begin);
    r.g.products();
    scores(s.rows, r.K, r.Q, r.keys);
    scores(s.W, r.V, r.W, r.values);
    for (int i = 0; i < r.g.J; i++) {
        if (i > 0) {
            load_state(s, in.dk, at, C + (int64_t)i * in.dk * s.dv, r.C);
            __syncthreads();
        }
        entry_gradients(in, s, count, i, r, partial);
    }
    if (dv) write_values(in, s, at, begin, r, dv, add_v);
    for (int a = 0; a < r.g.J; a++) {
        times_state(s, r.V, state_of(s, r.E, a), r.X);
        __syncthreads();
        exit_gradients(in, s, count, a, r, partial + in.dk);
    }
    r.g.write(r.keys, r.values, count, partial + 2 * in.dk, outer_partial(in.dk, r.g.J));
}

template <class Gates>
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_RESIDENT)
    outer_chunk_backward_kernel(struct outer_inputs in, struct strip_shape s, const real *dy, struct between mid,
                                real *kept, real *dv, bool add_v, real *partial) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct chunk_room<Gates> r = take_chunk<Gates>(s, in.J, PASS_BACKWARD, &cursor);
    const int J = r.g.J;
    struct segment at = segment_here(s, 0);
    int chunks = (at.end - at.begin + STATE_CHUNK - 1) / STATE_CHUNK;
    load_states(s, J, in.dk, at, at.index + 1 < s.chunks ? between_states(in, s, mid, at, at.index) : nullptr, r.E);
    for (int i = chunks - 1; i >= 0; i--) {
        int begin = at.begin + i * STATE_CHUNK;
        const real *C = kept_at(s, J * in.dk, at, begin, STATE_CHUNK, kept);
        load_state(s, in.dk, at, C, r.C);
        load_keys(in, s, at, begin, in.q, r.Q);
        load_keys(in, s, at, begin, in.k, r.K);
        load_values(in, s, at, begin, in.v, 1, r.V);
        load_values(in, s, at, begin, dy, in.scale, r.W);
        r.g.load(in, s, at, begin);
        __syncthreads();
        chunk_gradients(in, s, at, begin, r, C, dv, add_v,
                        partial + (at.strip * s.T + begin) * outer_partial(in.dk, J));
        advance_states<PASS_BACKWARD>(s, r.g, r.Q, r.W, r.E, r.spare);
        __syncthreads();
    }
}

/* --- functions for the kernels ------------------------------------------------------------------------------------ */

template <class Gates>
inline struct strip_shape outer_chunks_of(const struct state_shape &z, int J, enum pass pass,
                                          int64_t segment = SEGMENT) {
    return chunk_shape_of(z, segment, [=](const struct strip_shape &s) { return chunk_reals<Gates>(s, J, pass); });
}

/* Whether the arrays fit into shared memory. Backward needs the most. */
template <class Gates> inline bool outer_chunks_fit(const struct state_shape &z, int J, const char **why) {
    return chunk_fits(chunk_reals<Gates>(outer_chunks_of<Gates>(z, J, PASS_BACKWARD), J, PASS_BACKWARD), why);
}

/* A guess, not measured on a device: at least one segment of tokens, and at least as many numbers as padding. */
inline bool outer_chunks_pay(const struct state_shape &z) {
    return z.T >= SEGMENT && 2 * z.dk > TILE_ROWS && 2 * z.dv > TILE_COLUMNS;
}

inline struct between take_between(const struct state_shape &z, int J, struct scratch *scratch,
                                   int64_t segment = SEGMENT) {
    int64_t states = ((z.T + segment - 1) / segment - 1) * z.B * z.heads * J;
    struct between mid = {};
    if (states == 0) return mid;
    mid.states = scratch_reals(scratch, states * z.dk * z.dv);
    mid.through = scratch_reals(scratch, states * J);
    return mid;
}

inline real *take_partial(const struct outer_inputs &in, const struct strip_shape &s, struct scratch *scratch) {
    return scratch_reals(scratch, s.B * s.H * s.strips * s.T * outer_partial(in.dk, in.J));
}

template <class Gates, enum pass PASS>
void outer_states_between(const struct call *c, const struct exec *x, const struct outer_inputs &in,
                          const struct strip_shape &s, const real *dy, const struct between &mid) {
    int count = s.chunks - 1;
    int64_t heads = s.B * s.H, size = (int64_t)in.dk * s.dv;
    if (count == 0) return;
    LAUNCH(x, (outer_summary_kernel<Gates, PASS>), chunk_blocks(s, count), dim3(CHUNK_THREADS),
           summary_reals<Gates>(s, in.J) * sizeof(real), in, s, dy, mid);
    each_value(c, x, heads * size, carry<Gates::SINGLE>{mid, heads, size, in.J, count, PASS == PASS_FORWARD});
}

/* Launches all stages of forward. Either of y (outputs) and kept (the states before every chunk) may be NULL. */
template <class Gates>
void outer_chunks_forward(const struct call *c, const struct exec *x, const struct outer_inputs &in,
                          const struct state_shape &z, const struct between &mid, real *y, real *kept) {
    struct strip_shape s = outer_chunks_of<Gates>(z, in.J, PASS_FORWARD);
    outer_states_between<Gates, PASS_FORWARD>(c, x, in, s, nullptr, mid);
    LAUNCH(x, (outer_chunk_forward_kernel<Gates>), chunk_blocks(s, s.chunks), dim3(CHUNK_THREADS),
           chunk_reals<Gates>(s, in.J, PASS_FORWARD) * sizeof(real), in, s, mid, y, kept);
}

template <class Gates>
void outer_chunks_backward(const struct call *c, const struct exec *x, const struct outer_inputs &in,
                           const struct strip_shape &s, const struct between &mid, real *kept, real *partial,
                           const struct outer_gradients &d) {
    outer_states_between<Gates, PASS_BACKWARD>(c, x, in, s, call_dout(c, 0), mid);
    LAUNCH(x, (outer_chunk_backward_kernel<Gates>), chunk_blocks(s, s.chunks), dim3(CHUNK_THREADS),
           chunk_reals<Gates>(s, in.J, PASS_BACKWARD) * sizeof(real), in, s, call_dout(c, 0), mid, kept, d.v, d.add_v,
           partial);
    outer_gradient_sums(c, x, in, s, partial, d);
}

} // namespace

#endif

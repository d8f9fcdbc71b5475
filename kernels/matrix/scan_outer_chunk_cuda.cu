/* scan_outer_chunk_cuda.cu - scan_outer on CUDA, 64 tokens at a time in parallel. Equations: outer_chunk.c with one
 * state a head, gates as products, never logarithms or quotients (chunk_gates.h): a decay may be negative or 0.
 *
 * Three stages (blocks: chunk.cuh): what a segment of 64 tokens adds to the state behind it (backward: to the gradient
 * of the state before it), a thread block a strip and segment; the states between segments, a thread an element; then
 * outputs (gradients), again a block a strip and segment. One segment needs the last stage alone.
 *
 * Within a segment a block goes through chunks of 16 tokens, the state in shared memory and products of matrices on
 * tensor cores (kernels/lib/tile_product.cuh). Not 64 tokens in one product: the op's second output is the state before
 * every 16th token, which is had on the way, and a token is multiplied with 16 others instead of 64. Backward reads
 * those states and computes none again.
 *
 * With P[m][n] = Gate[m][n] (q_n . k_m), U[m][n] = Gate[m][n] (w_n . v_m), r what tokens read of the state before the
 * chunk, x what they write into the one behind it, F what passes through, w = scale do:
 *   o = scale (P^T V + diag(r) Q C)      C <- F C + K^T diag(x) V
 *   dq = U^T K + diag(r) W C^T    dk = U Q + diag(x) V E^T    dv = P W + diag(x) K E    E <- F E + Q^T diag(r) W */
#include "kernels/matrix/chunk.cuh"
#include "kernels/matrix/outer_call.cuh"

#define SEGMENT 64 /* tokens */

namespace {

/* --- shared memory ------------------------------------------------------------------------------------------------ */

/* Gates of a chunk; tokens that are missing write nothing, read nothing and keep the state. reach[m][n]: what token n
 * reads of a unit in the state behind token m < n, else 0. */
struct chunk_gates {
    real *T, *S, *M, *D;
    real *before, *after; /* products of T before and behind a token; before[STATE_CHUNK]: of all, F */
    struct matrix reach;

    __device__ real gate(int m, int n) const {
        return m == n ? D[n] : S[m] * reach(m, n);
    }
    __device__ real reads(int n) const {
        return M[n] * before[n];
    }
    __device__ real writes(int m) const {
        return S[m] * after[m];
    }
    __device__ real through(void) const {
        return before[STATE_CHUNK];
    }
};

__host__ __device__ inline struct chunk_gates take_gates(struct cursor *c) {
    const int N = STATE_CHUNK;
    struct chunk_gates g;
    g.T = c->take(N);
    g.S = c->take(N);
    g.M = c->take(N);
    g.D = c->take(N);
    g.after = c->take(N);
    g.before = c->take(N + 1);
    g.reach = c->take(N, N);
    return g;
}

/* The first stage: X, K x W, the state or its gradient; rows (chunk x K) and columns (chunk x W) of what is added. */
struct summary_room {
    struct chunk_gates g;
    struct matrix X, rows, columns;
};

__host__ __device__ inline struct summary_room take_summary(const struct strip_shape &s, struct cursor *c) {
    struct summary_room r;
    r.g = take_gates(c);
    r.X = c->take(s.rows, s.W);
    r.rows = c->take(STATE_CHUNK, s.rows);
    r.columns = c->take(STATE_CHUNK, s.W);
    return r;
}

/* The last stage. Tokens x widths: Q, K, V, W = scale dO; keys[m][n] = k_m . q_n, values[m][n] = v_m . w_n. */
struct chunk_room {
    struct chunk_gates g;
    struct matrix C, Q, K, V, keys;
    struct matrix E, W, values; /* backward, with what follows */
    struct matrix X;            /* W C^T, then V E^T */
    struct matrix Y;            /* [t][n]: what token n would read of the state before token t, times w_n */
    real *dM, *taken, *left;    /* by token; left: as Y, of what passes through the chunk */
    real *warps;                /* of block_sum */
};

__host__ __device__ inline struct chunk_room take_chunk(const struct strip_shape &s, enum pass pass, struct cursor *c) {
    const int N = STATE_CHUNK;
    struct chunk_room r = {};
    r.g = take_gates(c);
    r.C = c->take(s.rows, s.W);
    r.Q = c->take(N, s.rows);
    r.K = c->take(N, s.rows);
    r.V = c->take(N, s.W);
    r.keys = c->take(N, N);
    if (pass == PASS_FORWARD) return r;
    r.E = c->take(s.rows, s.W);
    r.W = c->take(N, s.W);
    r.values = c->take(N, N);
    r.X = c->take(N, s.rows);
    r.Y = c->take(N, N);
    r.dM = c->take(N);
    r.taken = c->take(N);
    r.left = c->take(N);
    r.warps = c->take(CHUNK_THREADS / WARP);
    return r;
}

inline int chunk_reals(const struct strip_shape &s, enum pass pass) {
    struct cursor c = {nullptr, 0};
    take_chunk(s, pass, &c);
    return c.used;
}

inline int summary_reals(const struct strip_shape &s) {
    struct cursor c = {nullptr, 0};
    take_summary(s, &c);
    return c.used;
}

/* --- a chunk ------------------------------------------------------------------------------------------------------ */

/* Rows of the chunk at `begin`: q or k, and v or scale dy. */
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

__device__ inline void load_gates(const struct outer_inputs &in, const struct strip_shape &s, const struct segment &at,
                                  int begin, const struct chunk_gates &g) {
    int n = (int)threadIdx.x;
    if (n >= STATE_CHUNK) return;
    int64_t head = (at.b * s.T + begin + n) * in.H + at.h;
    bool is = n < chunk_count(at, begin);
    g.T[n] = is ? in.transition[head] : 1;
    g.S[n] = !is ? 0 : in.source ? in.source[head] : 1;
    g.M[n] = !is ? 0 : in.mark ? in.mark[head] : in.transition[head];
    g.D[n] = !is ? 0 : in.direct ? in.direct[head] : g.S[n];
}

/* Behind a barrier after load_gates. */
__device__ inline void gate_products(const struct chunk_gates &g) {
    const int N = STATE_CHUNK;
    for (int e = (int)threadIdx.x; e < N * N; e += CHUNK_THREADS) {
        int m = e / N, n = e % N;
        real z = n > m ? g.M[n] : 0;
        for (int t = n - 1; t > m; t--) z *= g.T[t];
        g.reach(m, n) = z;
    }
    for (int n = (int)threadIdx.x; n <= N; n += CHUNK_THREADS) {
        real before = 1, after = 1;
        for (int t = 0; t < n; t++) before *= g.T[t];
        for (int t = N - 1; t > n; t--) after *= g.T[t];
        g.before[n] = before;
        if (n < N) g.after[n] = after;
    }
}

/* --- between segments --------------------------------------------------------------------------------------------- */

/* The states between segments, or their gradients: number i stands between segments i and i + 1. Arrays of
 * (segments - 1) x B x H (x dk x dv). */
struct between {
    real *states, *through;
};

__device__ inline real *between_state(const struct outer_inputs &in, const struct strip_shape &s,
                                      const struct between &mid, const struct segment &at, int i) {
    return mid.states + (i * s.B * s.H + at.head) * in.dk * s.dv + at.first;
}

/* What a segment adds, of the first segments but the last (backward: the last but the first), and what it lets
 * through. dy: backward. */
template <enum pass PASS>
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_RESIDENT)
    outer_summary_kernel(struct outer_inputs in, struct strip_shape s, const real *dy, struct between mid) {
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct summary_room r = take_summary(s, &cursor);
    const bool forward = PASS == PASS_FORWARD;
    struct segment at = segment_here(s, forward ? 0 : 1);
    int chunks = (at.end - at.begin + STATE_CHUNK - 1) / STATE_CHUNK, slot = forward ? at.index : at.index - 1;
    real through = 1;
    load_state(s, in.dk, at, nullptr, r.X);
    for (int i = 0; i < chunks; i++) {
        int begin = at.begin + (forward ? i : chunks - 1 - i) * STATE_CHUNK;
        load_keys(in, s, at, begin, forward ? in.k : in.q, r.rows);
        load_values(in, s, at, begin, forward ? in.v : dy, forward ? 1 : in.scale, r.columns);
        load_gates(in, s, at, begin, r.g);
        __syncthreads();
        gate_products(r.g);
        __syncthreads();
        advance(
            s, r.g.through(), r.rows, [&](int n) { return forward ? r.g.writes(n) : r.g.reads(n); }, r.columns, r.X);
        through *= r.g.through();
        __syncthreads();
    }
    store_state(s, in.dk, at, r.X, between_state(in, s, mid, at, slot));
    if (threadIdx.x == 0 && at.first == 0) mid.through[slot * s.B * s.H + at.head] = through;
}

/* An element of a head's state along the segments, or back. */
struct carry {
    struct between mid;
    int64_t heads, size; /* heads: of all sequences; size: of a state */
    int count;
    bool forward;
    __device__ void operator()(int64_t e) const {
        int64_t head = divide(e, size).whole;
        real x = 0;
        for (int i = 0; i < count; i++) {
            int slot = forward ? i : count - 1 - i;
            real *at = mid.states + slot * heads * size + e;
            x = real_fma(mid.through[slot * heads + head], x, *at);
            *at = x;
        }
    }
};

/* --- forward ------------------------------------------------------------------------------------------------------ */

__device__ inline void write_outputs(const struct outer_inputs &in, const struct strip_shape &s,
                                     const struct segment &at, int begin, const struct chunk_room &r, real *y) {
    int count = chunk_count(at, begin);
    real *to = y + ((at.b * s.T + begin) * in.H + at.h) * s.dv + at.first;
    each_tile(STATE_CHUNK, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int n, int m) { return r.g.gate(m, n) * r.keys(m, n); },
            [&](int m, int j) { return r.V(m, j); }, &sums);
        tile_add(
            tile, s.rows, [&](int n, int i) { return r.g.reads(n) * r.Q(n, i); },
            [&](int i, int j) { return r.C(i, j); }, &sums);
        tile_store(tile, sums, [&](int n, int j, real x) {
            if (n < count && j < at.width) to[n * in.H * s.dv + j] = in.scale * x;
        });
    });
}

__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_RESIDENT)
    outer_chunk_forward_kernel(struct outer_inputs in, struct strip_shape s, struct between mid, real *y, real *kept) {
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct chunk_room r = take_chunk(s, PASS_FORWARD, &cursor);
    struct segment at = segment_here(s, 0);
    load_state(s, in.dk, at, at.index > 0 ? between_state(in, s, mid, at, at.index - 1) : nullptr, r.C);
    for (int begin = at.begin; begin < at.end; begin += STATE_CHUNK) {
        load_keys(in, s, at, begin, in.q, r.Q);
        load_keys(in, s, at, begin, in.k, r.K);
        load_values(in, s, at, begin, in.v, 1, r.V);
        load_gates(in, s, at, begin, r.g);
        __syncthreads();
        store_state(s, in.dk, at, r.C, kept_at(s, in.dk, at, begin, STATE_CHUNK, kept));
        gate_products(r.g);
        scores(s.rows, r.K, r.Q, r.keys);
        __syncthreads();
        write_outputs(in, s, at, begin, r, y);
        __syncthreads();
        advance(
            s, r.g.through(), r.K, [&](int m) { return r.g.writes(m); }, r.V, r.C);
        __syncthreads();
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* to = a B^T, chunk x K, B being a state. */
__device__ inline void times_state(const struct strip_shape &s, struct matrix a, struct matrix B, struct matrix to) {
    each_tile(STATE_CHUNK, s.rows, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, s.W, [&](int n, int j) { return a(n, j); }, [&](int j, int i) { return B(i, j); }, &sums);
        tile_store(tile, sums, [&](int n, int i, real x) { to(n, i) = x; });
    });
}

/* to[n] = sum over m of a(n,m) rows[m] + weight(n) X[n], to with rows `step` apart: dq or dk. */
template <class A, class Weight>
__device__ inline void write_keys(const struct strip_shape &s, int dk, int count, A a, struct matrix rows,
                                  Weight weight, struct matrix X, real *to, int64_t step) {
    each_tile(STATE_CHUNK, s.rows, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, a, [&](int m, int i) { return rows(m, i); }, &sums);
        tile_store(tile, sums, [&](int n, int i, real x) {
            if (n < count && i < dk) to[n * step + i] = real_fma(weight(n), X(n, i), x);
        });
    });
}

__device__ inline void write_values(const struct outer_inputs &in, const struct strip_shape &s,
                                    const struct segment &at, int begin, const struct chunk_room &r, real *dv,
                                    bool accumulate) {
    int count = chunk_count(at, begin);
    real *to = dv + ((at.b * s.T + begin) * in.H + at.h) * s.dv + at.first;
    each_tile(STATE_CHUNK, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int m, int n) { return r.g.gate(m, n) * r.keys(m, n); },
            [&](int n, int j) { return r.W(n, j); }, &sums);
        tile_add(
            tile, s.rows, [&](int m, int i) { return r.g.writes(m) * r.K(m, i); },
            [&](int i, int j) { return r.E(i, j); }, &sums);
        tile_store(tile, sums, [&](int m, int j, real x) {
            if (m < count && j < at.width) put(to + m * in.H * s.dv + j, accumulate, x);
        });
    });
}

/* Y, dM and left: along the chunk, a token a thread, and one for what passes through. Y of the state before the chunk
 * lies in the first row, that of what passes through in left[0]. */
__device__ inline void gate_walk(const struct chunk_room &r) {
    int n = (int)threadIdx.x;
    if (n < STATE_CHUNK) {
        real y = r.Y(0, n);
        for (int t = 0; t < STATE_CHUNK; t++) {
            r.Y(t, n) = y;
            if (t == n) r.dM[n] = y;
            y = real_fma(r.g.T[t], y, r.g.S[t] * (r.keys(t, n) * r.values(t, n)));
        }
    } else if (n == STATE_CHUNK) {
        real y = r.left[0];
        for (int t = 0; t < STATE_CHUNK; t++) {
            r.left[t] = y;
            y = real_fma(r.g.T[t], y, r.g.S[t] * r.taken[t]);
        }
    }
}

/* Of token t, in the order of outer_partial: dS, dM, dT, dD. */
__device__ inline void write_gates(const struct chunk_room &r, int t, real *to) {
    real dS = r.g.after[t] * r.taken[t], dT = r.g.after[t] * r.left[t];
    for (int n = t + 1; n < STATE_CHUNK; n++) {
        dS = real_fma(r.g.reach(t, n), r.keys(t, n) * r.values(t, n), dS);
        dT = real_fma(r.g.reach(t, n), r.Y(t, n), dT);
    }
    to[0] = dS;
    to[1] = r.dM[t];
    to[2] = dT;
    to[3] = r.keys(t, t) * r.values(t, t);
}

/* All of a chunk that is no state: dv, and partial sums from the chunk's first token on. */
__device__ inline void chunk_gradients(const struct outer_inputs &in, const struct strip_shape &s,
                                       const struct segment &at, int begin, const struct chunk_room &r, real *dv,
                                       bool add_v, real *partial) {
    int count = chunk_count(at, begin);
    int64_t step = outer_partial(in.dk, 1);
    gate_products(r.g);
    scores(s.rows, r.K, r.Q, r.keys);
    scores(s.W, r.V, r.W, r.values);
    times_state(s, r.W, r.C, r.X);
    real along = state_product(s, r.E, r.C, r.warps);
    if (threadIdx.x == 0) r.left[0] = along;
    __syncthreads();
    row_dots(s.rows, r.Q, r.X, [&](int n, real sum) { r.Y(0, n) = sum; });
    write_keys(
        s, in.dk, count, [&](int n, int m) { return r.g.gate(m, n) * r.values(m, n); }, r.K,
        [&](int n) { return r.g.reads(n); }, r.X, partial, step);
    __syncthreads();
    times_state(s, r.V, r.E, r.X);
    if (dv) write_values(in, s, at, begin, r, dv, add_v);
    __syncthreads();
    row_dots(s.rows, r.K, r.X, [&](int m, real sum) { r.taken[m] = sum; });
    write_keys(
        s, in.dk, count, [&](int m, int n) { return r.g.gate(m, n) * r.values(m, n); }, r.Q,
        [&](int m) { return r.g.writes(m); }, r.X, partial + in.dk, step);
    __syncthreads();
    gate_walk(r);
    __syncthreads();
    if ((int)threadIdx.x < count) write_gates(r, (int)threadIdx.x, partial + threadIdx.x * step + 2 * in.dk);
}

__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_RESIDENT)
    outer_chunk_backward_kernel(struct outer_inputs in, struct strip_shape s, const real *dy, struct between mid,
                                real *kept, real *dv, bool add_v, real *partial) {
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct chunk_room r = take_chunk(s, PASS_BACKWARD, &cursor);
    struct segment at = segment_here(s, 0);
    int chunks = (at.end - at.begin + STATE_CHUNK - 1) / STATE_CHUNK;
    load_state(s, in.dk, at, at.index + 1 < s.chunks ? between_state(in, s, mid, at, at.index) : nullptr, r.E);
    for (int i = chunks - 1; i >= 0; i--) {
        int begin = at.begin + i * STATE_CHUNK;
        load_state(s, in.dk, at, kept_at(s, in.dk, at, begin, STATE_CHUNK, kept), r.C);
        load_keys(in, s, at, begin, in.q, r.Q);
        load_keys(in, s, at, begin, in.k, r.K);
        load_values(in, s, at, begin, in.v, 1, r.V);
        load_values(in, s, at, begin, dy, in.scale, r.W);
        load_gates(in, s, at, begin, r.g);
        __syncthreads();
        chunk_gradients(in, s, at, begin, r, dv, add_v, partial + (at.strip * s.T + begin) * outer_partial(in.dk, 1));
        advance(
            s, r.g.through(), r.Q, [&](int n) { return r.g.reads(n); }, r.W, r.E);
        __syncthreads();
    }
}

/* --- the twin ----------------------------------------------------------------------------------------------------- */

inline struct strip_shape shape_of(const struct call *c, enum pass pass) {
    return chunk_shape_of(outer_shape(c), SEGMENT, [=](const struct strip_shape &s) { return chunk_reals(s, pass); });
}

inline struct between take_between(const struct call *c, const struct strip_shape &s, struct scratch *scratch) {
    int64_t states = (s.chunks - 1) * s.B * s.H;
    struct between mid = {};
    if (states == 0) return mid;
    mid.states = scratch_reals(scratch, states * outer_shape(c).dk * s.dv);
    mid.through = scratch_reals(scratch, states);
    return mid;
}

inline real *take_partial(const struct call *c, const struct strip_shape &s, struct scratch *scratch) {
    return scratch_reals(scratch, s.B * s.H * s.strips * s.T * outer_partial(outer_shape(c).dk, 1));
}

template <enum pass PASS>
void states_between(const struct call *c, const struct exec *x, const struct outer_inputs &in,
                    const struct strip_shape &s, const real *dy, const struct between &mid) {
    int count = s.chunks - 1;
    int64_t heads = s.B * s.H, size = (int64_t)in.dk * s.dv;
    if (count == 0) return;
    LAUNCH(x, (outer_summary_kernel<PASS>), chunk_blocks(s, count), dim3(CHUNK_THREADS),
           summary_reals(s) * sizeof(real), in, s, dy, mid);
    each_value(c, x, heads * size, carry{mid, heads, size, count, PASS == PASS_FORWARD});
}

} // namespace

static bool scan_outer_chunk_cuda_applicable(const struct call *c, const char **why) {
    return chunk_fits(chunk_reals(shape_of(c, PASS_BACKWARD), PASS_BACKWARD), why);
}

/* A guess until a device has been asked: a segment's worth of tokens, and no more padding than numbers. */
static bool scan_outer_chunk_cuda_preferred(const struct call *c) {
    struct state_shape s = outer_shape(c);
    return s.T >= SEGMENT && 2 * s.dk > TILE_ROWS && 2 * s.dv > TILE_COLUMNS;
}

static size_t scan_outer_chunk_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    struct strip_shape s = shape_of(c, pass);
    take_between(c, s, &scratch);
    if (pass == PASS_BACKWARD) take_partial(c, s, &scratch);
    return scratch.used;
}

static void scan_outer_chunk_cuda_forward(const struct call *c, const struct exec *x) {
    struct outer_inputs in = outer_inputs_of(c);
    struct strip_shape s = shape_of(c, PASS_FORWARD);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct between mid = take_between(c, s, &scratch);
    states_between<PASS_FORWARD>(c, x, in, s, nullptr, mid);
    LAUNCH(x, outer_chunk_forward_kernel, chunk_blocks(s, s.chunks), dim3(CHUNK_THREADS),
           chunk_reals(s, PASS_FORWARD) * sizeof(real), in, s, mid, tensor_real(c->out[0]), tensor_real(c->out[1]));
}

static void scan_outer_chunk_cuda_backward(const struct call *c, const struct exec *x) {
    struct outer_inputs in = outer_inputs_of(c);
    struct outer_gradients d = outer_gradients_of(c);
    struct strip_shape s = shape_of(c, PASS_BACKWARD);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct between mid = take_between(c, s, &scratch);
    real *partial = take_partial(c, s, &scratch);
    states_between<PASS_BACKWARD>(c, x, in, s, call_dout(c, 0), mid);
    LAUNCH(x, outer_chunk_backward_kernel, chunk_blocks(s, s.chunks), dim3(CHUNK_THREADS),
           chunk_reals(s, PASS_BACKWARD) * sizeof(real), in, s, call_dout(c, 0), mid, tensor_real(c->out[1]), d.v,
           d.add_v, partial);
    outer_gradient_sums(c, x, in, s, partial, d);
}

/* Tolerance: as scan_outer_cpu; products by tensor cores are as exact as fp32's (tile_product.cuh). */
const struct kernel kernel_scan_outer_chunk_cuda = {
    .name = "scan_outer_chunk_cuda",
    .op = &op_scan_outer,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_outer_chunk_cuda_applicable,
    .preferred = scan_outer_chunk_cuda_preferred,
    .workspace = scan_outer_chunk_cuda_workspace,
    .forward = scan_outer_chunk_cuda_forward,
    .backward = scan_outer_chunk_cuda_backward,
};

/* scan_delta_chunk_cuda.cu - the delta rule on CUDA, 16 steps at a time (UT transform of Yang et al. 2024). Equations:
 * scan_delta_chunk_cpu.c. If a block can hold a whole head, and a token has at most two steps, head_delta.cuh computes
 * the call. Else a chunk costs products of matrices on tensor cores (kernels/lib/tile_product.cuh), and two triangular
 * solves with one thread per column.
 *
 * A thread block has a strip of a head's state (some of its columns) in shared memory, and computes one chunk after the
 * other: T / 16 sequential chunks. Cutting a sequence into parallel segments would not pay: the transition of a segment
 * is a dk x dk matrix, and products of these are as much work as the chunks that they save. Forward stores the state
 * before every 16th token, and backward reads these states. If a token has several steps, a chunk has fewer tokens.
 * Then a first kernel computes the states before the other chunks, in parallel from all stored states. */
#include "kernels/matrix/chunk.cuh"
#include "kernels/matrix/delta/delta_sums.cuh"
#include "kernels/matrix/delta/head_delta.cuh"

namespace {

/* Factors of a chunk's rows, one row per step. Rows after the end of the sequence have f = 1, b = 0 and zero vectors.
 * L[s][r] = f_{s+1} ... f_r for s <= r, else 0. */
struct delta_factors {
    real *f, *b, *a, *after; /* a: product of f up to row r; after: product of f of the rows after r */
    struct matrix L;
};

/* Arrays of one chunk, in shared memory. A token's query and its gradient W = scale dO are in the row of its last step;
 * other rows of Q and W are 0. */
struct delta_chunk {
    struct delta_factors x;
    struct matrix S, K, Q, E, keys, queries;
    struct matrix G, D, W, KS, QS; /* only for backward, as all that follow; D: K G, then dU */
    struct matrix steps, reads;    /* [s][r]: e_s . dU_r, e_s . w_r */
    /* [t][r]: the part of row r's output due to the state before row t, times that output's gradient */
    struct matrix Y;
    real *writes, *left; /* left: like Y, for the part of the state after the chunk */
    real *warps;         /* for block_sum */
};

__host__ __device__ inline struct delta_chunk take_delta(const struct strip_shape &s, enum pass pass,
                                                         struct cursor *c) {
    const int N = STATE_CHUNK;
    struct delta_chunk r = {};
    r.x.f = c->take(N);
    r.x.b = c->take(N);
    r.x.a = c->take(N);
    r.x.after = c->take(N);
    r.x.L = c->take(N, N);
    r.S = c->take(s.rows, s.W);
    r.K = c->take(N, s.rows);
    r.Q = c->take(N, s.rows);
    r.E = c->take(N, s.W);
    r.keys = c->take(N, N);
    r.queries = c->take(N, N);
    if (pass == PASS_FORWARD) return r;
    r.G = c->take(s.rows, s.W);
    r.D = c->take(N, s.W);
    r.W = c->take(N, s.W);
    r.KS = c->take(N, s.W);
    r.QS = c->take(N, s.W);
    r.steps = c->take(N, N);
    r.reads = c->take(N, N);
    r.Y = c->take(N, N);
    r.writes = c->take(N);
    r.left = c->take(N);
    r.warps = c->take(CHUNK_THREADS / WARP);
    return r;
}

inline int delta_reals(const struct strip_shape &s, enum pass pass) {
    struct cursor c = {nullptr, 0};
    take_delta(s, pass, &c);
    return c.used;
}

/* Returns the number of tokens of a chunk. It is a power of two, so that every stored state is at a chunk's start. */
__host__ __device__ inline int delta_tokens(int64_t steps) {
    int tokens = STATE_CHUNK;
    while (tokens > 1 && tokens * steps > STATE_CHUNK) tokens /= 2;
    return tokens;
}

/* --- reading a chunk ---------------------------------------------------------------------------------------------- */

/* Where a chunk lies: its first token in the batch, and its number of rows. */
struct delta_place {
    int64_t token;
    int rows;
};

__device__ inline struct delta_place delta_at(const struct delta_inputs &in, const struct strip_shape &s,
                                              const struct segment &at, int begin) {
    int tokens = delta_tokens(in.steps), left = at.end - begin;
    return {at.b * s.T + begin, (left < tokens ? left : tokens) * in.steps};
}

/* Gives row i of an array with one row per token: the token's row at the token's last step, else nullptr. */
struct token_rows {
    const real *from;
    int64_t step;
    int steps, rows;
    __device__ const real *operator()(int i) const {
        return i < rows && (i + 1) % steps == 0 ? from + i / steps * step : nullptr;
    }
};

__device__ inline void load_chunk(const struct delta_inputs &in, const struct strip_shape &s, const struct segment &at,
                                  const struct delta_place &p, const struct delta_chunk &r) {
    int64_t first = p.token * in.steps * in.H + at.h;
    load(r.K, STATE_CHUNK, s.rows, in.dk, spaced_rows{in.k + first * in.dk, in.H * in.dk, p.rows});
    load(r.Q, STATE_CHUNK, s.rows, in.dk,
         token_rows{in.q + (p.token * in.H + at.h) * in.dk, in.H * in.dk, in.steps, p.rows});
    load(r.E, STATE_CHUNK, s.W, at.width, spaced_rows{in.v + first * s.dv + at.first, in.H * s.dv, p.rows});
    int i = (int)threadIdx.x;
    if (i >= STATE_CHUNK) return;
    bool decays = i < p.rows && i % in.steps == 0 && in.decay;
    r.x.f[i] = decays ? in.decay[(p.token + i / in.steps) * in.H + at.h] : 1;
    r.x.b[i] = i < p.rows ? in.rate * in.beta[first + i * in.H] : 0;
}

/* Computes the products of factors, and the scores. Call it after load_chunk and a barrier. */
__device__ inline void prepare_chunk(const struct strip_shape &s, const struct delta_chunk &r) {
    const int N = STATE_CHUNK;
    const struct delta_factors &x = r.x;
    for (int e = (int)threadIdx.x; e < N * N; e += CHUNK_THREADS) {
        int from = e / N, to = e % N;
        real product = from <= to;
        for (int t = from + 1; t <= to; t++) product *= x.f[t];
        x.L(from, to) = product;
    }
    for (int i = (int)threadIdx.x; i < N; i += CHUNK_THREADS) {
        real before = 1, after = 1;
        for (int t = 0; t <= i; t++) before *= x.f[t];
        for (int t = N - 1; t > i; t--) after *= x.f[t];
        x.a[i] = before;
        x.after[i] = after;
    }
    scores(s.rows, r.K, r.K, r.keys);
    scores(s.rows, r.K, r.Q, r.queries);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Calls to(i, j, x) with x = (row i of a) . (column j of the state X). */
template <class To>
__device__ inline void read_state(const struct strip_shape &s, struct matrix a, struct matrix X, To to) {
    each_tile(STATE_CHUNK, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, s.rows, [&](int i, int k) { return a(i, k); }, [&](int k, int j) { return X(k, j); }, &sums);
        tile_store(tile, sums, to);
    });
}

/* Subtracts diag(a) K S from E, which contains V. K S is what the keys read from the state before the chunk; it is
 * stored in KS if this has room. */
__device__ inline void begin_errors(const struct strip_shape &s, const struct delta_chunk &r) {
    read_state(s, r.K, r.S, [&](int i, int j, real x) {
        r.E(i, j) = real_fma(-r.x.a[i], x, r.E(i, j));
        if (r.KS.at) r.KS(i, j) = x;
    });
}

/* Solves for the errors E: from the first row to the last, subtracts what earlier rows contribute. One thread per
 * column. */
__device__ inline void solve_down(const struct strip_shape &s, const struct delta_chunk &r) {
    int j = (int)threadIdx.x;
    for (int i = 1; i < STATE_CHUNK && j < s.W; i++) {
        real e = r.E(i, j);
        for (int k = 0; k < i; k++) e = real_fma(-r.x.b[k] * r.x.L(k, i) * r.keys(k, i), r.E(k, j), e);
        r.E(i, j) = e;
    }
}

__device__ inline void write_outputs(const struct delta_inputs &in, const struct strip_shape &s,
                                     const struct segment &at, const struct delta_place &p, const struct delta_chunk &r,
                                     real *o) {
    const struct delta_factors &x = r.x;
    real *to = o + (p.token * in.H + at.h) * s.dv + at.first;
    each_tile(STATE_CHUNK, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int i, int k) { return x.L(k, i) * r.queries(k, i) * x.b[k]; },
            [&](int k, int j) { return r.E(k, j); }, &sums);
        tile_add(
            tile, s.rows, [&](int i, int k) { return x.a[i] * r.Q(i, k); }, [&](int k, int j) { return r.S(k, j); },
            &sums);
        tile_store(tile, sums, [&](int i, int j, real y) {
            if (i < p.rows && (i + 1) % in.steps == 0 && j < at.width)
                to[i / in.steps * in.H * s.dv + j] = in.scale * y;
        });
    });
}

/* Computes each segment of s from the stored state before it (from 0 if `from` is NULL). Stores the state before every
 * `every`-th token in `to`, and the outputs in o unless it is NULL. */
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_RESIDENT)
    delta_walk_kernel(struct delta_inputs in, struct strip_shape s, real *from, real *to, int every, real *o) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct delta_chunk r = take_delta(s, PASS_FORWARD, &cursor);
    struct segment at = segment_here(s, 0);
    load_state(s, in.dk, at, from ? kept_at(s, in.dk, at, at.begin, s.chunk, from) : nullptr, r.S);
    for (int begin = at.begin; begin < at.end; begin += delta_tokens(in.steps)) {
        struct delta_place p = delta_at(in, s, at, begin);
        load_chunk(in, s, at, p, r);
        __syncthreads();
        if (begin % every == 0) store_state(s, in.dk, at, r.S, kept_at(s, in.dk, at, begin, every, to));
        prepare_chunk(s, r);
        __syncthreads();
        begin_errors(s, r);
        __syncthreads();
        solve_down(s, r);
        __syncthreads();
        if (o) write_outputs(in, s, at, p, r, o);
        __syncthreads();
        advance(
            s, r.x.a[STATE_CHUNK - 1], r.K, [&](int i) { return r.x.after[i] * r.x.b[i]; }, r.E, r.S);
        __syncthreads();
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Computes D = (L o Q K^T)^T W + diag(after) K G, which is dU without the part of later rows. Before the call, D
 * contains K G. */
__device__ inline void begin_adjoint(const struct strip_shape &s, const struct delta_chunk &r) {
    each_tile(STATE_CHUNK, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int i, int k) { return r.x.L(i, k) * r.queries(i, k); },
            [&](int k, int j) { return r.W(k, j); }, &sums);
        tile_store(tile, sums, [&](int i, int j, real x) { r.D(i, j) = real_fma(r.x.after[i], r.D(i, j), x); });
    });
}

/* Adds the part of later rows to D, from the last row to the first. */
__device__ inline void solve_up(const struct strip_shape &s, const struct delta_chunk &r) {
    int j = (int)threadIdx.x;
    for (int i = STATE_CHUNK - 2; i >= 0 && j < s.W; i--) {
        real d = r.D(i, j);
        for (int k = i + 1; k < STATE_CHUNK; k++) d = real_fma(-r.x.b[k] * r.x.L(i, k) * r.keys(i, k), r.D(k, j), d);
        r.D(i, j) = d;
    }
}

/* Returns where a strip stores its partial sums of row i: dk values for the key, then one for beta. */
__device__ inline real *step_partial(const struct delta_inputs &in, real *partial, int i) {
    return partial + i / in.steps * delta_partial(in) + (in.dk + 1) * (1 + i % in.steps);
}

/* Computes dv, dbeta, the scores of errors, and the first values of Y and left. Call it after solve_up. */
__device__ inline void error_gradients(const struct delta_inputs &in, const struct strip_shape &s,
                                       const struct segment &at, const struct delta_place &p,
                                       const struct delta_chunk &r, real *dv, bool add_v, real *partial) {
    scores(s.W, r.E, r.D, r.steps);
    scores(s.W, r.E, r.W, r.reads);
    row_dots(s.W, r.D, r.E, [&](int i, real sum) {
        if (i < p.rows) step_partial(in, partial, i)[in.dk] = in.rate * sum;
    });
    row_dots(s.W, r.QS, r.W, [&](int i, real sum) { r.Y(0, i) = sum; });
    row_dots(s.W, r.KS, r.D, [&](int i, real sum) { r.Y(0, i) = real_fma(-r.x.b[i], sum, r.Y(0, i)); });
    real along = state_product(s, r.G, r.S, r.warps);
    if (threadIdx.x == 0) r.left[0] = along;
    real *to = dv ? dv + (p.token * in.steps * in.H + at.h) * s.dv + at.first : nullptr;
    for (int e = (int)threadIdx.x; dv && e < p.rows * at.width; e += CHUNK_THREADS) {
        int i = e / at.width, j = e % at.width;
        put(to + i * in.H * s.dv + j, add_v, r.x.b[i] * r.D(i, j));
    }
}

/* Returns (L o P U^T)[i][k], with which row i's reading counts in the gradient of row k's key; 0 unless k < i. */
__device__ inline real step_pair(const struct delta_chunk &r, int k, int i) {
    return k < i ? r.x.L(k, i) * r.x.b[k] * r.x.b[i] * r.steps(k, i) : 0;
}

/* Returns (L o W U^T)[i][k]. */
__device__ inline real read_pair(const struct delta_chunk &r, int k, int i) {
    return r.x.L(k, i) * r.x.b[k] * r.reads(k, i);
}

__device__ inline void write_queries(const struct delta_inputs &in, const struct strip_shape &s,
                                     const struct delta_place &p, const struct delta_chunk &r, real *partial) {
    int64_t width = delta_partial(in);
    each_tile(STATE_CHUNK, s.rows, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int i, int k) { return read_pair(r, k, i); },
            [&](int k, int n) { return r.K(k, n); }, &sums);
        tile_add(
            tile, s.W, [&](int i, int j) { return r.x.a[i] * r.W(i, j); }, [&](int j, int n) { return r.S(n, j); },
            &sums);
        tile_store(tile, sums, [&](int i, int n, real x) {
            if (i < p.rows && (i + 1) % in.steps == 0 && n < in.dk) partial[i / in.steps * width + n] = x;
        });
    });
}

__device__ inline void write_keys(const struct delta_inputs &in, const struct strip_shape &s,
                                  const struct delta_place &p, const struct delta_chunk &r, real *partial) {
    const struct delta_factors &x = r.x;
    each_tile(STATE_CHUNK, s.rows, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, s.W, [&](int i, int j) { return x.after[i] * x.b[i] * r.E(i, j); },
            [&](int j, int n) { return r.G(n, j); }, &sums);
        tile_add(
            tile, s.W, [&](int i, int j) { return -x.a[i] * x.b[i] * r.D(i, j); },
            [&](int j, int n) { return r.S(n, j); }, &sums);
        tile_add(
            tile, STATE_CHUNK, [&](int i, int k) { return -(step_pair(r, i, k) + step_pair(r, k, i)); },
            [&](int k, int n) { return r.K(k, n); }, &sums);
        tile_add(
            tile, STATE_CHUNK, [&](int i, int k) { return read_pair(r, i, k); },
            [&](int k, int n) { return r.Q(k, n); }, &sums);
        tile_store(tile, sums, [&](int i, int n, real y) {
            if (i < p.rows && n < in.dk) step_partial(in, partial, i)[n] = y;
        });
    });
}

/* Computes Y and left row after row, with one thread per row of the chunk and one more for left. */
__device__ inline void factor_walk(const struct delta_chunk &r) {
    int n = (int)threadIdx.x;
    const struct delta_factors &x = r.x;
    if (n < STATE_CHUNK) {
        real y = r.Y(0, n);
        for (int t = 0; t < STATE_CHUNK; t++) {
            real pair = r.queries(t, n) * r.reads(t, n) - x.b[n] * (r.keys(t, n) * r.steps(t, n));
            r.Y(t, n) = y;
            y = real_fma(x.f[t], y, x.b[t] * pair);
        }
    } else if (n == STATE_CHUNK) {
        real y = r.left[0];
        for (int t = 0; t < STATE_CHUNK; t++) {
            r.left[t] = y;
            y = real_fma(x.f[t], y, r.writes[t]);
        }
    }
}

/* Returns the gradient of the decay f_t before row t. */
__device__ inline real factor_gradient(const struct delta_chunk &r, int t) {
    real sum = r.x.after[t] * r.left[t];
    for (int n = t; n < STATE_CHUNK; n++) sum = real_fma(r.x.L(t, n), r.Y(t, n), sum);
    return sum;
}

/* Computes G <- a_last G + (diag(a) Q)^T W - (diag(a) K)^T P. */
__device__ inline void pass_back(const struct strip_shape &s, const struct delta_chunk &r) {
    const struct delta_factors &x = r.x;
    each_tile(s.rows, s.W, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, STATE_CHUNK, [&](int n, int i) { return x.a[i] * r.Q(i, n); },
            [&](int i, int j) { return r.W(i, j); }, &sums);
        tile_add(
            tile, STATE_CHUNK, [&](int n, int i) { return -x.a[i] * r.K(i, n); },
            [&](int i, int j) { return x.b[i] * r.D(i, j); }, &sums);
        tile_store(tile, sums, [&](int n, int j, real y) { r.G(n, j) = real_fma(x.a[STATE_CHUNK - 1], r.G(n, j), y); });
    });
}

/* Computes the gradients of one chunk. Call it after load_chunk and a barrier. */
__device__ inline void chunk_gradients(const struct delta_inputs &in, const struct strip_shape &s,
                                       const struct segment &at, const struct delta_place &p,
                                       const struct delta_chunk &r, real *dv, bool add_v, real *partial) {
    prepare_chunk(s, r);
    __syncthreads();
    begin_errors(s, r);
    read_state(s, r.Q, r.S, [&](int i, int j, real x) { r.QS(i, j) = x; });
    read_state(s, r.K, r.G, [&](int i, int j, real x) { r.D(i, j) = x; });
    __syncthreads();
    solve_down(s, r);
    __syncthreads();
    row_dots(s.W, r.E, r.D, [&](int i, real sum) { r.writes[i] = r.x.b[i] * sum; });
    __syncthreads();
    begin_adjoint(s, r);
    __syncthreads();
    solve_up(s, r);
    __syncthreads();
    error_gradients(in, s, at, p, r, dv, add_v, partial);
    __syncthreads();
    write_queries(in, s, p, r, partial);
    write_keys(in, s, p, r, partial);
    factor_walk(r);
    __syncthreads();
    int t = (int)threadIdx.x;
    if (t < p.rows && t % in.steps == 0) partial[t / in.steps * delta_partial(in) + in.dk] = factor_gradient(r, t);
    pass_back(s, r);
}

/* Computes the gradients of all chunks, from the last to the first. `states` are the states before every chunk. */
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_RESIDENT)
    delta_chunk_backward_kernel(struct delta_inputs in, struct strip_shape s, const real *d_o, real *states, real *dv,
                                bool add_v, real *partial) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct delta_chunk r = take_delta(s, PASS_BACKWARD, &cursor);
    struct segment at = segment_here(s, 0);
    int tokens = delta_tokens(in.steps);
    load_state(s, in.dk, at, nullptr, r.G);
    for (int i = (int)((s.T - 1) / tokens); i >= 0; i--) {
        struct delta_place p = delta_at(in, s, at, i * tokens);
        load_state(s, in.dk, at, kept_at(s, in.dk, at, i * tokens, tokens, states), r.S);
        load_chunk(in, s, at, p, r);
        load(r.W, STATE_CHUNK, s.W, at.width,
             token_rows{d_o + (p.token * in.H + at.h) * s.dv + at.first, in.H * s.dv, in.steps, p.rows}, in.scale);
        __syncthreads();
        chunk_gradients(in, s, at, p, r, dv, add_v, partial + (at.strip * s.T + i * tokens) * delta_partial(in));
        __syncthreads();
    }
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

/* Returns the shape of a call that is cut into segments of this many tokens. */
inline struct strip_shape shape_of(const struct call *c, int64_t segment, enum pass pass) {
    return chunk_shape_of(delta_shape(c), segment, [=](const struct strip_shape &s) { return delta_reals(s, pass); });
}

inline struct strip_shape shape_of(const struct call *c, enum pass pass) {
    return shape_of(c, delta_shape(c).T, pass);
}

struct delta_chunk_scratch {
    real *states, *partial; /* states: the state before every chunk; NULL if forward has stored them all */
};

inline struct delta_chunk_scratch take_scratch(const struct call *c, struct scratch *scratch) {
    struct strip_shape s = shape_of(c, PASS_BACKWARD);
    struct state_shape z = delta_shape(c);
    int64_t tokens = delta_tokens(z.steps);
    struct delta_chunk_scratch r = {};
    if (tokens < STATE_CHUNK)
        r.states = scratch_reals(scratch, z.B * ((z.T + tokens - 1) / tokens) * z.heads * z.dk * z.dv);
    r.partial = scratch_reals(scratch, s.B * s.H * s.strips * s.T * delta_partial(delta_inputs_of(c)));
    return r;
}

inline void walk(const struct exec *x, const struct delta_inputs &in, const struct strip_shape &s, real *from, real *to,
                 int every, real *o) {
    LAUNCH(x, delta_walk_kernel, chunk_blocks(s, s.chunks), dim3(CHUNK_THREADS),
           delta_reals(s, PASS_FORWARD) * sizeof(real), in, s, from, to, every, o);
}

} // namespace

static bool scan_delta_chunk_cuda_applicable(const struct call *c, const char **why) {
    *why = delta_is_scalar(c) ? "a token has more than 16 steps" : DELTA_NOT_SCALAR;
    return delta_is_scalar(c) && delta_shape(c).steps <= STATE_CHUNK &&
           chunk_fits(delta_reals(shape_of(c, PASS_BACKWARD), PASS_BACKWARD), why);
}

/* This bound is a guess that has not been measured on a device. */
static bool scan_delta_chunk_cuda_preferred(const struct call *c) {
    struct state_shape s = delta_shape(c);
    return s.T * s.steps >= 64 && 2 * s.dk > TILE_ROWS && 2 * s.dv > TILE_COLUMNS;
}

static size_t scan_delta_chunk_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    if (pass == PASS_BACKWARD && !delta_heads_fit(c)) take_scratch(c, &scratch);
    return scratch.used;
}

static void scan_delta_chunk_cuda_forward(const struct call *c, const struct exec *x) {
    if (delta_heads_fit(c)) {
        delta_heads_forward(c, x);
        return;
    }
    walk(x, delta_inputs_of(c), shape_of(c, PASS_FORWARD), nullptr, tensor_real(c->out[1]), STATE_CHUNK,
         tensor_real(c->out[0]));
}

static void scan_delta_chunk_cuda_backward(const struct call *c, const struct exec *x) {
    if (delta_heads_fit(c)) {
        delta_heads_backward(c, x);
        return;
    }
    struct delta_inputs in = delta_inputs_of(c);
    struct strip_shape s = shape_of(c, PASS_BACKWARD);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct delta_chunk_scratch r = take_scratch(c, &scratch);
    real *kept = tensor_real(c->out[1]);
    if (r.states) walk(x, in, shape_of(c, STATE_CHUNK, PASS_FORWARD), kept, r.states, delta_tokens(in.steps), nullptr);
    LAUNCH(x, delta_chunk_backward_kernel, chunk_blocks(s, 1), dim3(CHUNK_THREADS),
           delta_reals(s, PASS_BACKWARD) * sizeof(real), in, s, call_dout(c, 0), r.states ? r.states : kept,
           c->din[DELTA_V], call_accumulates(c, DELTA_V), r.partial);
    delta_gradient_sums(c, x, in, s, r.partial);
}

/* Tolerance: products of the state with vectors are sums of dk or dv terms in working precision, the solve inside a
 * chunk subtracts such sums from each other, and the state carries rounding errors through T steps. Products by tensor
 * cores are as exact as in fp32 (tile_product.cuh). */
const struct kernel kernel_scan_delta_chunk_cuda = {
    .name = "scan_delta_chunk_cuda",
    .op = &op_scan_delta,
    .device = DEVICE_CUDA,
    .version = 3,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_delta_chunk_cuda_applicable,
    .preferred = scan_delta_chunk_cuda_preferred,
    .workspace = scan_delta_chunk_cuda_workspace,
    .forward = scan_delta_chunk_cuda_forward,
    .backward = scan_delta_chunk_cuda_backward,
};

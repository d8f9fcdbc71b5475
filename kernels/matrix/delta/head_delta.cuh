/* head_delta.cuh - the delta rule on CUDA with one or two steps per token, for states of at most 64 x 64: a thread
 * block computes a whole head, HEAD_CHUNK rows at a time, with the state in registers. Equations:
 * scan_delta_chunk_cpu.c. The work is that of scan_outer (matrix/outer/head_parts.cuh, head_chunk.cuh), with two
 * differences. With g(m,n) = L[n][m] b_m, and N[n][m] = g(m,n) k_n . k_m for m < n:
 *   values   The errors E are written instead of V: E = (1 + N)^-1 (V - diag(a) K S). From the gradient D of what is
 *            written follows dV = P = ((1 + N)^-1)^T D.
 *   readers  Keys read the state too. The gradient of what they read is -P, named B here.
 * The diagonal parts of 1 + N, 16 x 16 each, are inverted in the registers of a warp when they are computed. So solving
 * is a product with one inverse, a product with the part of N between, and a product with the other inverse.
 *
 * Forward: a warp has 16 columns of the state, and computes these columns of E and of the outputs. Backward: a warp has
 * 16 rows of the state's gradient G, and computes these columns of dq and dk. G is also in shared memory, from where a
 * warp reads 16 columns to compute these columns of P. */
#ifndef LRNN_KERNELS_MATRIX_DELTA_HEAD_DELTA_CUH
#define LRNN_KERNELS_MATRIX_DELTA_HEAD_DELTA_CUH

#include "kernels/matrix/delta/delta_sums.cuh"
#include "kernels/matrix/outer/head_parts.cuh"

#define HEAD_WARPS (HEAD_KEYS / 16)

namespace {

struct delta_forward_room {
    struct head_forward_room<HEAD_KEYS> of;
    struct split_pair N[HEAD_CHUNK * HEAD_CHUNK / 2]; /* the inverses, and N between the two blocks of tokens */
};

/* A call, in the form that the parts of scan_outer need: beta is the source, times rate. Each step of a token is a row.
 */
struct delta_call {
    struct outer_inputs in;
    struct strip_shape s; /* of rows */
    int shift;            /* a token has 1 << shift rows */
    real rate;
    real *kept; /* the states before every 16th token */
};

#ifdef HEAD_CODE

/* --- the solves --------------------------------------------------------------------------------------------------- */

/* Stores the inverse of a diagonal part of 1 + N, of which the warp has the products of keys. A lane computes a column,
 * from the first row to the last. */
__device__ __forceinline__ void put_inverse(struct split_matrix<HEAD_CHUNK> to, int part, const struct head_gates *g,
                                            const struct split_sums<2> &keys) {
    constexpr int SIZE = 16;
    int first = part_row(part), column = lane_here() % SIZE;
    real N[2][4], x[SIZE];
    keys.each([&](int n, int m, int tile, int e) {
        N[tile][e] = g->S[first + m] * g->reach[first + m][first + n] * keys.sum(tile, e);
    });
#pragma unroll
    for (int n = 0; n < SIZE; n++) x[n] = n == column;
#pragma unroll
    for (int m = 0; m < SIZE - 1; m++)
#pragma unroll
        for (int n = m + 1; n < SIZE; n++) {
            real below = __shfl_sync(FULL_WARP, N[m / 8][n / 8 * 2 + m % 2], n % 8 * 4 + m % 8 / 2);
            x[n] = real_fma(-below, x[m], x[n]);
        }
    if (lane_here() >= SIZE) return;
#pragma unroll
    for (int n = 0; n < SIZE; n++) {
        struct tile_split s = split_of(x[n]);
        uint32_t *high = to.around(first + n, first + column).high + column % 2;
        high[0] = s.high;
        high[2] = s.low;
    }
}

/* Solves for the lane's rows x of a transposed right side: (1 + N) X = x^T or, if BACK, (1 + N)^T X = x^T. */
template <bool BACK>
__device__ __forceinline__ void solve_rows(struct split_matrix<HEAD_CHUNK> N, real (&x)[HEAD_CHUNK / 8][4]) {
    constexpr int FIRST = BACK ? 2 : 0, SECOND = 2 - FIRST;
    auto right = [&](int k, int n) { return BACK ? columns_right(N, k, n) : rows_right(N, k, n); };
    auto solve = [&](int at) {
        struct split_sums<2> sums = {};
        sums.template add<2>([&](int k) { return left_of(x[at + k]); },
                             [&](int k, int n) { return right(at + k, at + n); },
                             [](int k, int n) { return BACK ? k >= n : k <= n; });
        sums.each([&](int, int, int n, int e) { x[at + n][e] = sums.sum(n, e); });
    };
    solve(FIRST);
    struct split_sums<2> sums = {};
    sums.template add<2>([&](int k) { return left_of(x[FIRST + k]); },
                         [&](int k, int n) { return right(FIRST + k, SECOND + n); });
    sums.each([&](int, int, int n, int e) { x[SECOND + n][e] -= sums.sum(n, e); });
    solve(SECOND);
}

/* Computes the products of keys with queries and with keys, in six parts that the warps divide: P, N, and in
 * `products`, unless it is NULL, [m][n] of queries n with keys m, and below the diagonal [n][m] of keys. The warps that
 * invert have no second part. */
__device__ __forceinline__ void key_products(struct split_matrix<HEAD_KEYS> Q, struct split_matrix<HEAD_KEYS> K,
                                             const struct head_gates *g, struct split_matrix<HEAD_CHUNK> P,
                                             struct split_matrix<HEAD_CHUNK> N,
                                             real (*products)[HEAD_CHUNK + 1] = nullptr) {
#pragma unroll 1
    for (int i = hidden(warp_here()); i < 6; i += HEAD_WARPS) {
        bool of_keys = i > 0 && i < 4;
        int part = i < 2 ? 1 : i % 2 * 2;
        struct split_sums<2> sums = {};
        token_products(of_keys ? K : Q, K, part, &sums);
        if (products)
            sums.each([&](int row, int column, int tile, int e) {
                int n = part_row(part) + row, m = part_column(part) + column;
                if (!of_keys && m <= n) products[m][n] = sums.sum(tile, e);
                if (of_keys && m < n) products[n][m] = sums.sum(tile, e);
            });
        if (of_keys && part != 1)
            put_inverse(N, part, g, sums);
        else
            put_tokens(of_keys ? N : P, part,
                       [&](int m, int n, int tile, int e) { return gate_of(g, m, n) * sums.sum(tile, e); });
    }
}

/* Computes V - diag(a) K S in place of K S, for 16 columns of values from `first` on. */
__device__ __forceinline__ void begin_errors(struct split_matrix<HEAD_KEYS> V, const struct head_gates *g, int first,
                                             const struct split_sums<HEAD_CHUNK / 8> &read,
                                             real (&x)[HEAD_CHUNK / 8][4]) {
    read.each([&](int, int token, int n, int e) {
        real v = tile_value(*V.place(n, e % 2, first / 8 + e / 2));
        x[n][e] = real_fma(-g->reads[token], read.sum(n, e), v);
    });
}

/* What the queries and what the keys read from a state, which is computed as one product: so the state, as its left
 * factor, is split once. */
using both_reads = struct split_sums<2 * HEAD_CHUNK / 8>;
using one_read = struct split_sums<HEAD_CHUNK / 8>;

__device__ __forceinline__ one_read read_of(const both_reads &both, bool keys) {
    one_read read;
    read.each([&](int, int, int n, int e) {
        read.of[n][e] = both.of[keys * HEAD_CHUNK / 8 + n][e];
        read.rest[n][e] = both.rest[keys * HEAD_CHUNK / 8 + n][e];
    });
    return read;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

__device__ __forceinline__ void delta_head_forward(const struct delta_call &c, real *o, real *shared) {
    constexpr int STEPS = HEAD_CHUNK / 8;
    const struct outer_inputs &in = c.in;
    const struct strip_shape &s = c.s;
    auto *r = reinterpret_cast<struct delta_forward_room *>(shared);
    split_matrix<HEAD_KEYS> Q = {r->of.Q};
    split_matrix<HEAD_KEYS> K = {r->of.K};
    split_matrix<HEAD_KEYS> V = {r->of.V};
    split_matrix<HEAD_CHUNK> P = {r->of.P};
    split_matrix<HEAD_CHUNK> N = {r->N};
    struct head_gates *g = &r->of.g;
    const struct segment &at = r->of.at;
    if (threadIdx.x == 0) r->of.at = segment_here(s, 0);
    __syncthreads();
    int first = 16 * warp_here();
    real S[HEAD_TILES][4] = {}; /* transposed: a column of the state is a row */
    for (int begin = 0; begin < at.end; begin += HEAD_CHUNK) {
        int count = at.end - begin < HEAD_CHUNK ? at.end - begin : HEAD_CHUNK;
        fetch_rows(keys_of(in, s, at, begin, count, in.q, c.shift), Q);
        fetch_rows(keys_of(in, s, at, begin, count, in.k), K);
        fetch_rows(values_of(in, s, at, begin, count, in.v), V);
        copy_async_commit();
        load_gates(in, s, at, begin, count, g, c.rate, c.shift);
        keep_state(S, s, in.dk, at, begin, first, c.kept, c.shift);
        copy_async_wait<0>();
        split_rows(Q);
        split_rows(K);
        __syncthreads();
        key_products(Q, K, g, P, N);
        __syncthreads();
        both_reads read = {};
        read.template add<HEAD_TILES>(
            [&](int k) { return left_of(S[k]); },
            [&](int k, int n) { return n < STEPS ? rows_right(Q, k, n) : rows_right(K, k, n - STEPS); });
        real E[STEPS][4];
        begin_errors(V, g, first, read_of(read, true), E);
        solve_rows<false>(N, E);
        one_read y = read_of(read, false);
        y.weigh(g->reads);
        y.template add<STEPS>([&](int k) { return left_of(E[k]); }, [&](int k, int n) { return rows_right(P, k, n); },
                              [](int k, int n) { return k <= n; });
        int step = hidden((int)(in.H * s.dv));
        real *out = o + (((at.b * s.T + begin) >> c.shift) * in.H + at.h) * s.dv + first;
        y.each([&](int j, int row, int n, int e) {
            if (row < count && ends_token(row, c.shift) && first + j < s.dv)
                out[(row >> c.shift) * step + j] = in.scale * y.sum(n, e);
        });
#pragma unroll
        for (int half = 0; half < HEAD_CHUNK / STATE_CHUNK; half++) {
            if (half > 0 && c.shift == 0 && begin + half * STATE_CHUNK < s.T)
                keep_state(S, s, in.dk, at, begin + half * STATE_CHUNK, first, c.kept);
            pass_half(S, K, g, half, [&](int k) {
                real x[4];
#pragma unroll
                for (int e = 0; e < 4; e++) x[e] = g->near[8 * k + 2 * tile_t() + e % 2] * E[k][e];
                return left_of(x);
            });
        }
        __syncthreads();
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Stores the lane's numbers x of 16 columns from `first` on, times a factor. */
__device__ __forceinline__ void put_values(struct split_matrix<HEAD_KEYS> to, int first,
                                           const real (&x)[HEAD_CHUNK / 8][4], real factor) {
#pragma unroll
    for (int n = 0; n < HEAD_CHUNK / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            struct tile_split s = split_of(factor * x[n][e]);
            uint32_t *high = to.place(n, e % 2, first / 8 + e / 2);
            high[0] = s.high;
            high[2] = s.low;
        }
}

/* Computes the products of the outputs' gradients with the errors: U of queries, N of keys. `products` gets their
 * products with what key_products left there, added over both readers. */
__device__ __forceinline__ void value_products(struct split_matrix<HEAD_KEYS> W, struct split_matrix<HEAD_KEYS> B,
                                               struct split_matrix<HEAD_KEYS> E, const struct head_gates *g,
                                               struct split_matrix<HEAD_CHUNK> U, struct split_matrix<HEAD_CHUNK> N,
                                               real (*products)[HEAD_CHUNK + 1]) {
    int part = hidden(warp_here());
    if (part >= 3) return;
    struct split_sums<2> queries = {}, keys = {};
    token_products(W, E, part, &queries);
    token_products(B, E, part, &keys);
    put_tokens(U, part, [&](int m, int n, int tile, int e) { return gate_of(g, m, n) * queries.sum(tile, e); });
    put_tokens(N, part, [&](int m, int n, int tile, int e) { return g->S[m] * g->reach[m][n] * keys.sum(tile, e); });
    queries.each([&](int row, int column, int tile, int e) {
        int n = part_row(part) + row, m = part_column(part) + column;
        if (m > n) return;
        real sum = products[m][n] * queries.sum(tile, e);
        products[m][n] = m < n ? real_fma(products[n][m], keys.sum(tile, e), sum) : sum;
    });
}

/* Places are used twice in a chunk: by V, then E; by P of the queries, then U; by the inverses and N, then the products
 * of B with E; by G, then B. */
__device__ __forceinline__ void delta_head_backward(const struct delta_call &c, const real *d_o,
                                                    const struct head_gradients &d, real *shared) {
    constexpr int STEPS = HEAD_CHUNK / 8;
    const struct outer_inputs &in = c.in;
    const struct strip_shape &s = c.s;
    auto *r = reinterpret_cast<struct head_backward_room<HEAD_KEYS> *>(shared);
    split_matrix<HEAD_KEYS> Q = {r->Q};
    split_matrix<HEAD_KEYS> K = {r->K};
    split_matrix<HEAD_KEYS> E = {r->V};
    split_matrix<HEAD_KEYS> W = {r->W};
    split_matrix<HEAD_KEYS> B = {r->B};
    split_matrix<HEAD_CHUNK> U = {r->U};
    split_matrix<HEAD_CHUNK> N = {r->P};
    const struct segment &at = r->at;
    if (threadIdx.x == 0) r->at = segment_here(s, 0);
    __syncthreads();
    int warp = warp_here(), first = 16 * warp;
    auto number = [&](const real *state, int i, int j) { return i < in.dk && j < s.dv ? state[i * s.dv + j] : 0; };
    auto after = [](int k, int n) { return k >= n; };
    auto before = [](int k, int n) { return k <= n; };
    real G[HEAD_TILES][4] = {};
    for (int begin = (at.end - 1) / HEAD_CHUNK * HEAD_CHUNK; begin >= 0; begin -= HEAD_CHUNK) {
        int count = at.end - begin < HEAD_CHUNK ? at.end - begin : HEAD_CHUNK;
        struct head_gates *g = r->g + !!(begin & HEAD_CHUNK);
        fetch_rows(keys_of(in, s, at, begin, count, in.q, c.shift), Q);
        fetch_rows(keys_of(in, s, at, begin, count, in.k), K);
        fetch_rows(values_of(in, s, at, begin, count, in.v), E);
        fetch_rows(values_of(in, s, at, begin, count, d_o, c.shift), W);
        copy_async_commit();
        load_gates(in, s, at, begin, count, g, c.rate, c.shift);
        real S[HEAD_TILES][4]; /* 16 columns of the state before the chunk, as rows */
        const real *state = kept_at(s, in.dk, at, begin, STATE_CHUNK << c.shift, c.kept);
        split_sums<HEAD_TILES>::each([&](int j, int i, int n, int e) { S[n][e] = number(state, i, first + j); });
        split_sums<HEAD_TILES>::each([&](int row, int j, int n, int e) { r->E[first + row][j] = G[n][e]; });
        copy_async_wait<0>();
        split_rows(Q);
        split_rows(K);
        split_rows(W, in.scale);
        __syncthreads();
        key_products(Q, K, g, U, N, r->products);
        __syncthreads();
        {
            struct split_sums<STEPS> read = {};
            real x[STEPS][4];
            read.template add<HEAD_TILES>([&](int k) { return left_of(S[k]); },
                                          [&](int k, int n) { return rows_right(K, k, n); });
            begin_errors(E, g, first, read, x);
            solve_rows<false>(N, x);
            put_values(E, first, x, 1);
        }
        {
            struct split_sums<STEPS> dv = {};
            dv.template add<HEAD_TILES>(
                [&](int k) {
                    real x[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) x[e] = r->E[8 * k + 2 * tile_t() + e % 2][first + tile_g() + e / 2 * 8];
                    return left_of(x);
                },
                [&](int k, int n) { return rows_right(K, k, n); });
            dv.weigh(g->writes);
            dv.template add<STEPS>([&](int k) { return columns_left(W, first / 8, k); },
                                   [&](int k, int n) { return columns_right(U, k, n); }, after);
            dv.each([&](int, int, int n, int e) {
                dv.of[n][e] = dv.sum(n, e);
                dv.rest[n][e] = 0;
            });
            solve_rows<true>(N, dv.of);
            put_columns(dv, d.v, at, begin, count, first, s.dv);
            __syncthreads();
            put_values(B, first, dv.of, -1);
        }
        __syncthreads();
        value_products(W, B, E, g, U, N, r->products);
        __syncthreads();
        {
            both_reads read = {};
            real along = 0;
            const real *rows = kept_at(s, in.dk, at, hidden(begin), STATE_CHUNK << c.shift, c.kept);
            read.template add<HEAD_TILES>(
                [&](int k) {
                    real x[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        x[e] = number(rows, first + tile_g() + e / 2 * 8, 8 * k + 2 * tile_t() + e % 2);
                        along = real_fma(G[k][e], x[e], along);
                    }
                    return left_of(x);
                },
                [&](int k, int n) { return n < STEPS ? rows_right(W, k, n) : rows_right(B, k, n - STEPS); });
            along = warp_sum(along);
            if (lane_here() == 0) r->along[warp] = along;
            put_dots(r->entry[warp], [&](int n, int side) {
                int of_key = STEPS + n;
                return lane_dot(Q, first, n, side, read.sum(n, side), read.sum(n, 2 + side)) +
                       lane_dot(K, first, n, side, read.sum(of_key, side), read.sum(of_key, 2 + side));
            });
            one_read dq = read_of(read, false), dk = read_of(read, true);
            dq.weigh(g->reads);
            dq.template add<STEPS>([&](int k) { return columns_left(K, first / 8, k); },
                                   [&](int k, int n) { return rows_right(U, k, n); }, before);
            put_columns(dq, d.q, at, begin, count, first, in.dk, c.shift);
            struct split_sums<STEPS> written = {};
            written.template add<HEAD_TILES>([&](int k) { return left_of(G[k]); },
                                             [&](int k, int n) { return rows_right(E, k, n); });
            put_dots(r->passed[warp], [&](int n, int side) {
                return lane_dot(K, first, n, side, written.sum(n, side), written.sum(n, 2 + side));
            });
            dk.each([&](int, int token, int n, int e) {
                dk.of[n][e] = real_fma(g->reads[token], dk.of[n][e], g->writes[token] * written.of[n][e]);
                dk.rest[n][e] = real_fma(g->reads[token], dk.rest[n][e], g->writes[token] * written.rest[n][e]);
            });
            dk.template add<STEPS>([&](int k) { return columns_left(K, first / 8, k); },
                                   [&](int k, int n) { return rows_right(N, k, n); }, before);
            dk.template add<STEPS>([&](int k) { return columns_left(K, first / 8, k); },
                                   [&](int k, int n) { return columns_right(N, k, n); }, after);
            dk.template add<STEPS>([&](int k) { return columns_left(Q, first / 8, k); },
                                   [&](int k, int n) { return columns_right(U, k, n); }, after);
            put_columns(dk, d.k, at, begin, count, first, in.dk);
#pragma unroll
            for (int half = 0; half < HEAD_TILES; half += HEAD_TILES / 2) {
                struct split_sums<HEAD_TILES / 2> more = {};
                more.template add<STEPS>([&](int k) { return weighted_left(Q, g->reads, first / 8, k); },
                                         [&](int k, int n) { return columns_right(W, k, half + n); });
                more.template add<STEPS>([&](int k) { return weighted_left(K, g->reads, first / 8, k); },
                                         [&](int k, int n) { return columns_right(B, k, half + n); });
                more.each([&](int, int, int n, int e) {
                    G[half + n][e] = real_fma(g->through, G[half + n][e], more.sum(n, e));
                });
            }
        }
        __syncthreads();
        gate_gradients(in, s, at, begin, count, g, r, d.gates, c.rate, c.shift);
    }
}

#endif

/* --- launches ----------------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(HEAD_WARPS *WARP, 2) delta_head_forward_kernel(struct delta_call c, real *o) {
    await_previous();
#ifdef HEAD_CODE
    DYNAMIC_SHARED(real, shared);
    delta_head_forward(c, o, shared);
#endif
}

__global__ void __launch_bounds__(HEAD_WARPS *WARP, 2)
    delta_head_backward_kernel(struct delta_call c, const real *d_o, struct head_gradients d) {
    await_previous();
#ifdef HEAD_CODE
    DYNAMIC_SHARED(real, shared);
    delta_head_backward(c, d_o, d, shared);
#endif
}

/* Whether the kernels can compute a call. Backward needs a stored state before every chunk, so a token has at most two
 * rows. */
inline bool delta_heads_fit(const struct call *c) {
    struct state_shape z = delta_shape(c);
    return z.steps <= 2 && head_values(z, c->place->cuda) == HEAD_KEYS;
}

inline struct delta_call delta_call_of(const struct call *c) {
    struct delta_inputs in = delta_inputs_of(c);
    struct state_shape z = delta_shape(c);
    struct outer_inputs of = {.q = in.q, .k = in.k, .v = in.v, .source = in.beta, .transition = in.decay};
    of.H = of.G = in.H;
    of.dk = in.dk;
    of.J = 1;
    of.scale = in.scale;
    z.T *= z.steps;
    return {of, head_shape(z, z.T), in.steps - 1, in.rate, tensor_real(c->out[1])};
}

/* Where the gradient of an input is written; steps: how many rows it has per token. */
inline struct head_rows delta_head_rows(const struct call *c, int i, int64_t width, int steps) {
    struct state_shape z = delta_shape(c);
    return {c->din[i], z.T * steps * z.heads * width, z.heads * width, width, call_accumulates(c, i)};
}

inline void delta_heads_forward(const struct call *c, const struct exec *x) {
    struct delta_call call = delta_call_of(c);
    LAUNCH(x, delta_head_forward_kernel, chunk_blocks(call.s, 1), dim3(HEAD_WARPS * WARP),
           sizeof(struct delta_forward_room), call, tensor_real(c->out[0]));
}

inline void delta_heads_backward(const struct call *c, const struct exec *x) {
    struct delta_call call = delta_call_of(c);
    int steps = call.shift + 1;
    struct head_gradients d = {.q = delta_head_rows(c, DELTA_Q, call.in.dk, 1),
                               .k = delta_head_rows(c, DELTA_K, call.in.dk, steps),
                               .v = delta_head_rows(c, DELTA_V, call.s.dv, steps)};
    d.gates.source = c->din[DELTA_BETA];
    d.gates.add_source = call_accumulates(c, DELTA_BETA);
    d.gates.transition = c->din[DELTA_DECAY];
    d.gates.add_transition = call_accumulates(c, DELTA_DECAY);
    LAUNCH(x, delta_head_backward_kernel, chunk_blocks(call.s, 1), dim3(HEAD_WARPS * WARP),
           sizeof(struct head_backward_room<HEAD_KEYS>), call, call_dout(c, 0), d);
}

} // namespace

#endif

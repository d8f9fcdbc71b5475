/* head_chunk.cuh - scan_outer on CUDA for states of at most 64 x 80: a thread block computes a whole head of a segment,
 * HEAD_CHUNK tokens at a time, with the state in registers. Equations: outer_chunk.cuh, with one state; segments are of
 * any multiple of HEAD_CHUNK tokens.
 *
 * Matrices of a chunk are stored split in shared memory (kernels/lib/split_product.cuh); missing rows and columns are
 * 0. All their sizes are known to the compiler. Forward: warp w has columns 16 w to 16 w + 15 of the state, as rows of
 * its transpose, and computes these columns of the outputs. Backward: warp w has 16 rows of the state's gradient E, and
 * computes these columns of dq and dk. For dv, which sums over all rows of E, E is also in shared memory. A token is a
 * lane in all that concerns gates. Three barriers a chunk: after its rows are stored, after the products of tokens with
 * tokens, and after all other products. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_HEAD_CHUNK_CUH
#define LRNN_KERNELS_MATRIX_OUTER_HEAD_CHUNK_CUH

#include "kernels/lib/split_product.cuh"
#include "kernels/matrix/outer_chunk.cuh"

#define HEAD_CHUNK  32  /* tokens */
#define HEAD_KEYS   64  /* rows of a state, with padding */
#define HEAD_MOST   80  /* columns: 64, and the normaliser of an mLSTM */
#define HEAD_BLOCKS 256 /* segments are as long as leaves so many thread blocks */
static_assert(HEAD_CHUNK == WARP && HEAD_CHUNK % STATE_CHUNK == 0, "a lane for each token, a place for each state");

/* Capabilities 8.6 to 8.9 are left out: most such devices have less shared memory than a block needs. */
#define HEAD_CAPABILITY(c) ((c) == 80 || (c) >= 90)
#if defined(TILE_TENSOR_CORES) && (defined(LRNN_CUDA_HOST) || HEAD_CAPABILITY(__CUDA_ARCH__ / 10))
#define HEAD_CODE 1
#endif

namespace {

/* --- shared memory ------------------------------------------------------------------------------------------------ */

/* Gates of a chunk: reads r, writes x (outer_chunk.cuh), after[t]: the product of T after t, reach[m][n]: as in
 * single_gates. through: the product of all T. near and halves: like writes and through, within STATE_CHUNK tokens. */
struct head_gates {
    real T[HEAD_CHUNK], S[HEAD_CHUNK], D[HEAD_CHUNK], reads[HEAD_CHUNK], writes[HEAD_CHUNK], after[HEAD_CHUNK];
    real near[HEAD_CHUNK], halves[HEAD_CHUNK / STATE_CHUNK], through;
    real reach[HEAD_CHUNK][HEAD_CHUNK + 1];
};

template <int VALUES> struct head_forward_room {
    struct split_pair Q[HEAD_CHUNK * HEAD_KEYS / 2], K[HEAD_CHUNK * HEAD_KEYS / 2], V[HEAD_CHUNK * VALUES / 2];
    struct split_pair P[HEAD_CHUNK * HEAD_CHUNK / 2]; /* [n][m], like U */
    struct head_gates g;
    struct segment at; /* of the block; in registers it would be there all the time */
};

/* [.] of entry, passed and along: each warp's part. */
template <int VALUES> struct head_backward_room {
    struct split_pair Q[HEAD_CHUNK * HEAD_KEYS / 2], K[HEAD_CHUNK * HEAD_KEYS / 2];
    struct split_pair V[HEAD_CHUNK * VALUES / 2], W[HEAD_CHUNK * VALUES / 2], U[HEAD_CHUNK * HEAD_CHUNK / 2];
    union {
        struct split_pair P[HEAD_CHUNK * HEAD_CHUNK / 2];
        real Y[HEAD_CHUNK][HEAD_CHUNK + 1]; /* reach o Y, [t][n]; after P was read */
    };
    real E[HEAD_KEYS][VALUES + 4]; /* 4 more, so that lanes of neighbouring rows use different banks */
    struct head_gates g[2];        /* of this chunk and of the one before, which the first two warps may still read */
    real entry[HEAD_KEYS / 16][HEAD_CHUNK], passed[HEAD_KEYS / 16][HEAD_CHUNK], along[HEAD_KEYS / 16];
    real products[HEAD_CHUNK][HEAD_CHUNK + 1]; /* [m][n]: keys times values */
    struct segment at;
};

/* Place of a head's gradient of q, k or v; NULL: not wanted. Sequences, tokens and heads lie that far apart. */
struct head_rows {
    real *at;
    int64_t batch, token, head;
    bool add;
};

struct head_gradients {
    struct head_rows q, k, v;
    struct outer_gradients gates;
};

#ifdef HEAD_CODE

__device__ __forceinline__ int warp_here(void) {
    return (int)(threadIdx.x / WARP);
}
__device__ __forceinline__ int lane_here(void) {
    return (int)(threadIdx.x % WARP);
}

/* --- a chunk's rows and gates ------------------------------------------------------------------------------------- */

/* Rows of a chunk: `count` rows of `width` numbers, which lie `step` apart. */
struct head_source {
    const real *from;
    int64_t step;
    int count, width;
};

__device__ __forceinline__ struct head_source keys_of(const struct outer_inputs &in, const struct strip_shape &s,
                                                      const struct segment &at, int begin, int count,
                                                      const real *from) {
    int64_t group = at.h / (in.H / in.G), row = at.b * s.T + begin;
    return {from + (row * in.G + group) * in.dk, in.G * in.dk, count, in.dk};
}

__device__ __forceinline__ struct head_source values_of(const struct outer_inputs &in, const struct strip_shape &s,
                                                        const struct segment &at, int begin, int count,
                                                        const real *from) {
    int64_t row = at.b * s.T + begin;
    return {from + (row * in.H + at.h) * s.dv, in.H * s.dv, count, s.dv};
}

/* Calls f(row, part, high) for the elements of a chunk's rows that this thread copies and splits. A lane has columns
 * lane + part; `high` is the place of the element's high part. The first four warps have all elements. The loop is not
 * unrolled as a whole, because addresses would need too many registers. */
template <int COLUMNS, class F> __device__ __forceinline__ void each_element(struct split_matrix<COLUMNS> m, F f) {
    constexpr int WARPS = 4;
    int warp = warp_here(), lane = lane_here(), place = lane / 2 ^ m.swap(warp);
    if (warp >= WARPS) return;
#pragma unroll 2
    for (int row = warp; row < HEAD_CHUNK; row += WARPS) {
        struct split_pair *pair = m.at + row * (COLUMNS / 2) + place;
#pragma unroll
        for (int part = 0; part < COLUMNS; part += WARP)
            if (part + WARP <= COLUMNS || lane + part < COLUMNS) f(row, part, pair[part / 2].high + lane % 2);
        place ^= WARPS;
    }
}

/* Starts to copy rows to where they will be split. A thread's copies need no registers, so all are under way at the
 * same time. */
template <int COLUMNS>
__device__ __forceinline__ void fetch_rows(const struct head_source &rows, struct split_matrix<COLUMNS> to) {
    int lane = lane_here(), step = (int)rows.step;
    const real *from = rows.from + lane;
    each_element(to, [&](int row, int part, uint32_t *high) {
        copy_async_or_zero(reinterpret_cast<real *>(high), from + row * step + part,
                           row < rows.count && lane + part < rows.width);
    });
}

/* Splits the numbers that this thread has copied, times a factor. */
template <int COLUMNS> __device__ __forceinline__ void split_rows(struct split_matrix<COLUMNS> m, real factor = 1) {
    each_element(m, [&](int, int, uint32_t *high) {
        struct tile_split x = split_of(factor * tile_value(*high));
        high[0] = x.high;
        high[2] = x.low;
    });
}

/* Loads the lane's gates, and computes products of gates. The first four warps divide the rows of reach. */
__device__ __forceinline__ void load_gates(const struct outer_inputs &in, const struct strip_shape &s,
                                           const struct segment &at, int begin, int count, struct head_gates *g) {
    int n = lane_here(), last = 8 * warp_here() + 7;
    int64_t head = (at.b * s.T + begin + n) * in.H + at.h;
    bool is = n < count;
    real T = is ? in.transition[head] : 1, S = !is ? 0 : in.source ? in.source[head] : 1;
    real M = !is ? 0 : in.mark ? in.mark[head] : T, D = !is ? 0 : in.direct ? in.direct[head] : S;
    /* products up to n, from n on to the end of its half, from last + 1 up to n */
    real front = T, rest = T, between = n > last ? T : 1;
#pragma unroll
    for (int d = 1; d < WARP; d *= 2) {
        real before = __shfl_up_sync(FULL_WARP, front, d), after = __shfl_down_sync(FULL_WARP, rest, d);
        real inner = __shfl_up_sync(FULL_WARP, between, d);
        if (n >= d) front *= before;
        if (n % STATE_CHUNK + d < STATE_CHUNK) rest *= after;
        if (n >= d) between *= inner;
    }
    real before = __shfl_up_sync(FULL_WARP, front, 1), after = __shfl_down_sync(FULL_WARP, rest, 1);
    real inner = __shfl_up_sync(FULL_WARP, between, 1), second = __shfl_sync(FULL_WARP, rest, STATE_CHUNK);
    if (warp_here() == 0) {
        if (n % STATE_CHUNK == STATE_CHUNK - 1) after = 1;
        g->near[n] = S * after;
        if (n < STATE_CHUNK) after *= second;
        g->T[n] = T;
        g->S[n] = S;
        g->D[n] = D;
        g->reads[n] = n == 0 ? M : M * before;
        g->writes[n] = S * after;
        g->after[n] = after;
        if (n % STATE_CHUNK == 0) g->halves[n / STATE_CHUNK] = rest;
        if (n == 0) g->through = rest * second;
    }
    if (last >= HEAD_CHUNK) return;
    real z = n > last ? M * inner : M;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int m = last - i;
        real next = __shfl_sync(FULL_WARP, T, m);
        g->reach[m][n] = n > m ? z : 0;
        if (n > m) z *= next;
    }
}

__device__ __forceinline__ real gate_of(const struct head_gates *g, int m, int n) {
    return m == n ? g->D[n] : g->S[m] * g->reach[m][n];
}

/* Products of tokens with tokens are computed in three parts of 16 x 16, [n][m] with m <= n; warp `part` computes one.
 * These are its first n and its first m. */
__device__ __forceinline__ int part_row(int part) {
    return part > 0 ? 16 : 0;
}
__device__ __forceinline__ int part_column(int part) {
    return part > 1 ? 16 : 0;
}

/* Adds the products of rows of a with rows of b. */
template <int COLUMNS>
__device__ __forceinline__ void token_products(struct split_matrix<COLUMNS> a, struct split_matrix<COLUMNS> b, int part,
                                               struct split_sums<2> *sums) {
    sums->add<COLUMNS / 8>([&](int k) { return rows_left(a, part_row(part) / 8, k); },
                           [&](int k, int n) { return rows_right(b, k, part_column(part) / 8 + n); });
}

/* Stores f(m, n, tile, e) at [n][m] for the lane's elements. */
template <class F> __device__ __forceinline__ void put_tokens(struct split_matrix<HEAD_CHUNK> to, int part, F f) {
#pragma unroll
    for (int tile = 0; tile < 2; tile++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int n = part_row(part) + hidden(tile_g()) + 8 * half, m = part_column(part) + 8 * tile + 2 * tile_t();
            struct tile_split even = split_of(f(m, n, tile, 2 * half)), odd = split_of(f(m + 1, n, tile, 2 * half + 1));
            to.pair(n / 8, m / 8) = {{even.high, odd.high}, {even.low, odd.low}};
        }
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

template <int VALUES>
__device__ __forceinline__ void head_forward(const struct outer_inputs &in, const struct strip_shape &s,
                                             const struct between &mid, real *y, real *kept, real *shared) {
    constexpr int TILES = HEAD_KEYS / 8;
    auto *r = reinterpret_cast<struct head_forward_room<VALUES> *>(shared);
    split_matrix<HEAD_KEYS> Q = {r->Q};
    split_matrix<HEAD_KEYS> K = {r->K};
    split_matrix<VALUES> V = {r->V};
    split_matrix<HEAD_CHUNK> P = {r->P};
    struct head_gates *g = &r->g;
    const struct segment &at = r->at;
    if (threadIdx.x == 0) r->at = segment_here(s, 0);
    __syncthreads();
    int warp = warp_here(), first = 16 * warp;
    real C[TILES][4]; /* transposed: a column of the state is a row */
    const real *from = at.index > 0 ? between_states(in, s, mid, at, at.index - 1) : nullptr;
    split_sums<TILES>::each([&](int j, int i, int n, int e) {
        C[n][e] = from && i < in.dk && first + j < s.dv ? from[i * s.dv + first + j] : 0;
    });
    auto keep = [&](int token) {
        int dv = hidden(s.dv);
        real *to = kept_at(s, in.dk, at, token, STATE_CHUNK, kept);
        split_sums<TILES>::each([&](int j, int i, int n, int e) {
            if (i < in.dk && first + j < dv) to[i * dv + first + j] = C[n][e];
        });
    };
    for (int begin = at.begin; begin < at.end; begin += HEAD_CHUNK) {
        int count = at.end - begin < HEAD_CHUNK ? at.end - begin : HEAD_CHUNK;
        fetch_rows(keys_of(in, s, at, begin, count, in.q), Q);
        fetch_rows(keys_of(in, s, at, begin, count, in.k), K);
        fetch_rows(values_of(in, s, at, begin, count, in.v), V);
        copy_async_commit();
        load_gates(in, s, at, begin, count, g);
        keep(begin);
        copy_async_wait<0>();
        split_rows(Q);
        split_rows(K);
        split_rows(V);
        __syncthreads();
        if (int part = hidden(warp); part < 3) {
            struct split_sums<2> keys = {};
            token_products(Q, K, part, &keys);
            put_tokens(P, part, [&](int m, int n, int tile, int e) { return gate_of(g, m, n) * keys.sum(tile, e); });
        }
        __syncthreads();
        struct split_sums<HEAD_CHUNK / 8> o = {};
        o.template add<TILES>([&](int k) { return left_of(C[k]); }, [&](int k, int n) { return rows_right(Q, k, n); });
        o.weigh(g->reads);
        o.template add<HEAD_CHUNK / 8>([&](int k) { return columns_left(V, first / 8, k); },
                                       [&](int k, int n) { return rows_right(P, k, n); },
                                       [](int k, int n) { return k <= n; });
        int step = hidden((int)(in.H * s.dv));
        real *out = y + ((at.b * s.T + begin) * in.H + at.h) * s.dv + first;
        o.each([&](int j, int token, int n, int e) {
            if (token < count && first + j < s.dv) out[token * step + j] = in.scale * o.sum(n, e);
        });
#pragma unroll
        for (int half = 0; half < HEAD_CHUNK / STATE_CHUNK; half++) {
            constexpr int STEPS = STATE_CHUNK / 8, COUNT = TILES / 2;
            if (half > 0 && begin + half * STATE_CHUNK < s.T) keep(begin + half * STATE_CHUNK);
#pragma unroll
            for (int tile = 0; tile < TILES; tile += COUNT) {
                struct split_sums<COUNT> more = {};
                more.template add<STEPS>([&](int k) { return weighted_left(V, g->near, first / 8, half * STEPS + k); },
                                         [&](int k, int n) { return columns_right(K, half * STEPS + k, tile + n); });
                more.each([&](int, int, int n, int e) {
                    C[tile + n][e] = real_fma(g->halves[half], C[tile + n][e], more.sum(n, e));
                });
            }
        }
        __syncthreads();
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Stores the sums over the warp's rows of sums o a^T, one per column: the part of (row n of a) . (column n of sums). */
template <int COLUMNS>
__device__ __forceinline__ void put_dots(struct split_matrix<COLUMNS> a, int first,
                                         const struct split_sums<HEAD_CHUNK / 8> &sums, real *to) {
#pragma unroll
    for (int n = 0; n < HEAD_CHUNK / 8; n++)
#pragma unroll
        for (int side = 0; side < 2; side++) {
            int token = 8 * n + 2 * tile_t() + side;
            real dot = sums.sum(n, side) * split_value(a.across(n, side, first / 8));
            dot = real_fma(sums.sum(n, 2 + side), split_value(a.across(n, side, first / 8 + 1)), dot);
#pragma unroll
            for (int distance = 4; distance < WARP; distance *= 2) dot += __shfl_xor_sync(FULL_WARP, dot, distance);
            if (tile_g() == 0) to[token] = dot;
        }
}

/* Writes columns of sums as rows of a gradient: rows of tokens, at `to`, of which the lane has elements from `first` on
 * that are below `width`. */
__device__ __forceinline__ void put_columns(const struct split_sums<HEAD_CHUNK / 8> &sums, const struct head_rows &rows,
                                            const struct segment &at, int begin, int count, int first, int width) {
    if (!rows.at) return;
    int step = hidden((int)rows.token);
    real *to = rows.at + at.b * rows.batch + begin * rows.token + at.h * rows.head + first;
    sums.each([&](int i, int token, int n, int e) {
        if (token < count && first + i < width) put(to + token * step + i, rows.add, sums.sum(n, e));
    });
}

/* Computes the gates' gradients of a chunk, by the first two warps. */
template <int VALUES>
__device__ __forceinline__ void gate_gradients(const struct outer_inputs &in, const struct strip_shape &s,
                                               const struct segment &at, int begin, int count,
                                               const struct head_gates *g, struct head_backward_room<VALUES> *r,
                                               const struct outer_gradients &d) {
    int n = hidden(lane_here());
    int64_t to = (at.b * s.T + begin + n) * in.H + at.h;
    real passed = 0;
#pragma unroll
    for (int w = 0; w < HEAD_KEYS / 16; w++) passed += r->passed[w][n];
    if (warp_here() == 0) {
        real y = 0, along = 0, mark = 0, left = 0, after = g->after[n], written = g->S[n] * passed;
#pragma unroll
        for (int w = 0; w < HEAD_KEYS / 16; w++) {
            y += r->entry[w][n];
            along += r->along[w];
        }
        for (int t = 0; t < HEAD_CHUNK; t++) {
            real T = g->T[t], add = __shfl_sync(FULL_WARP, written, t);
            if (t == n) {
                mark = y;
                left = along;
            }
            r->Y[t][n] = n > t ? g->reach[t][n] * y : 0;
            if (n > t) y = real_fma(T, y, g->S[t] * r->products[t][n]);
            along = real_fma(T, along, add);
        }
        __syncwarp();
        real sum = after * left;
        for (int i = 0; i < HEAD_CHUNK; i++) sum += r->Y[n][i];
        if (n >= count) return;
        if (d.transition) put(d.transition + to, d.add_transition, in.mark ? sum : sum + mark);
        if (d.mark) put(d.mark + to, d.add_mark, mark);
    } else if (warp_here() == 1) {
        real sum = g->after[n] * passed, direct = r->products[n][n];
        for (int i = 1; i < HEAD_CHUNK; i++)
            if (i > n) sum = real_fma(g->reach[n][i], r->products[n][i], sum);
        if (n >= count) return;
        if (d.source) put(d.source + to, d.add_source, in.mark ? sum : sum + direct);
        if (d.direct) put(d.direct + to, d.add_direct, direct);
    }
}

template <int VALUES>
__device__ __forceinline__ void head_backward(const struct outer_inputs &in, const struct strip_shape &s,
                                              const real *dy, const struct between &mid, real *kept,
                                              const struct head_gradients &d, real *shared) {
    constexpr int TILES = VALUES / 8, STEPS = HEAD_CHUNK / 8;
    auto *r = reinterpret_cast<struct head_backward_room<VALUES> *>(shared);
    split_matrix<HEAD_KEYS> Q = {r->Q};
    split_matrix<HEAD_KEYS> K = {r->K};
    split_matrix<VALUES> V = {r->V};
    split_matrix<VALUES> W = {r->W};
    split_matrix<HEAD_CHUNK> P = {r->P};
    split_matrix<HEAD_CHUNK> U = {r->U};
    const struct segment &at = r->at;
    if (threadIdx.x == 0) r->at = segment_here(s, 0);
    __syncthreads();
    int warp = warp_here(), first = 16 * warp;
    real E[TILES][4];
    /* Returns element e of tile n of a state's rows from `first` on; NULL: 0. */
    auto load = [&](const real *state, int n, int e) {
        int i = first + tile_g() + e / 2 * 8, j = 8 * n + 2 * tile_t() + e % 2;
        return state && i < in.dk && j < s.dv ? state[i * s.dv + j] : 0;
    };
    const real *from = at.index + 1 < s.chunks ? between_states(in, s, mid, at, at.index) : nullptr;
    split_sums<TILES>::each([&](int, int, int n, int e) { E[n][e] = load(from, n, e); });
    for (int begin = (at.end - 1) / HEAD_CHUNK * HEAD_CHUNK; begin >= at.begin; begin -= HEAD_CHUNK) {
        int count = at.end - begin < HEAD_CHUNK ? at.end - begin : HEAD_CHUNK;
        struct head_gates *g = r->g + !!(begin & HEAD_CHUNK);
        fetch_rows(keys_of(in, s, at, begin, count, in.q), Q);
        fetch_rows(keys_of(in, s, at, begin, count, in.k), K);
        fetch_rows(values_of(in, s, at, begin, count, in.v), V);
        fetch_rows(values_of(in, s, at, begin, count, dy), W);
        copy_async_commit();
        load_gates(in, s, at, begin, count, g);
        split_sums<TILES>::each([&](int row, int j, int n, int e) { r->E[first + row][j] = E[n][e]; });
        copy_async_wait<0>();
        split_rows(Q);
        split_rows(K);
        split_rows(V);
        split_rows(W, in.scale);
        __syncthreads();
        if (int part = hidden(warp); part < 3) {
            struct split_sums<2> keys = {}, values = {};
            token_products(Q, K, part, &keys);
            token_products(W, V, part, &values);
            put_tokens(P, part, [&](int m, int n, int tile, int e) { return gate_of(g, m, n) * keys.sum(tile, e); });
            put_tokens(U, part, [&](int m, int n, int tile, int e) { return gate_of(g, m, n) * values.sum(tile, e); });
            keys.each([&](int row, int column, int n, int e) {
                r->products[part_column(part) + column][part_row(part) + row] = keys.sum(n, e) * values.sum(n, e);
            });
        }
        __syncthreads();
        auto after = [](int k, int n) { return k >= n; };
        {
            struct split_sums<STEPS> dk = {};
            dk.template add<TILES>([&](int k) { return left_of(E[k]); },
                                   [&](int k, int n) { return rows_right(V, k, n); });
            put_dots(K, first, dk, r->passed[warp]);
            dk.weigh(g->writes);
            dk.template add<STEPS>([&](int k) { return columns_left(Q, first / 8, k); },
                                   [&](int k, int n) { return columns_right(U, k, n); }, after);
            put_columns(dk, d.k, at, begin, count, first, in.dk);
        }
        {
            struct split_sums<STEPS> dq = {};
            const real *state = kept_at(s, in.dk, at, begin, STATE_CHUNK, kept);
            real along = 0;
            dq.template add<TILES>(
                [&](int k) {
                    real C[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        C[e] = load(state, k, e);
                        along = real_fma(E[k][e], C[e], along);
                    }
                    return left_of(C);
                },
                [&](int k, int n) { return rows_right(W, k, n); });
            along = warp_sum(along);
            if (lane_here() == 0) r->along[warp] = along;
            put_dots(Q, first, dq, r->entry[warp]);
            dq.weigh(g->reads);
            dq.template add<STEPS>([&](int k) { return columns_left(K, first / 8, k); },
                                   [&](int k, int n) { return rows_right(U, k, n); },
                                   [](int k, int n) { return k <= n; });
            put_columns(dq, d.q, at, begin, count, first, in.dk);
        }
#pragma unroll 1
        for (int slab = hidden(first); slab < VALUES && d.v.at; slab += HEAD_KEYS) {
            struct split_sums<STEPS> dv = {};
            dv.template add<HEAD_KEYS / 8>(
                [&](int k) {
                    real x[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) x[e] = r->E[8 * k + 2 * tile_t() + e % 2][slab + tile_g() + e / 2 * 8];
                    return left_of(x);
                },
                [&](int k, int n) { return rows_right(K, k, n); });
            dv.weigh(g->writes);
            dv.template add<STEPS>([&](int k) { return columns_left(W, slab / 8, k); },
                                   [&](int k, int n) { return columns_right(P, k, n); }, after);
            put_columns(dv, d.v, at, begin, count, slab, s.dv);
        }
#pragma unroll
        for (int half = 0; half < TILES; half += TILES / 2) {
            struct split_sums<TILES / 2> more = {};
            more.template add<STEPS>([&](int k) { return weighted_left(Q, g->reads, first / 8, k); },
                                     [&](int k, int n) { return columns_right(W, k, half + n); });
            more.each(
                [&](int, int, int n, int e) { E[half + n][e] = real_fma(g->through, E[half + n][e], more.sum(n, e)); });
        }
        __syncthreads();
        gate_gradients(in, s, at, begin, count, g, r, d.gates);
    }
}

#endif

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* `kept` gets the states before every chunk. */
template <int VALUES>
__global__ void __launch_bounds__(2 * VALUES, VALUES == HEAD_KEYS ? 2 : 1)
    head_forward_kernel(struct outer_inputs in, struct strip_shape s, struct between mid, real *y, real *kept) {
    await_previous();
#ifdef HEAD_CODE
    DYNAMIC_SHARED(real, shared);
    head_forward<VALUES>(in, s, mid, y, kept, shared);
#endif
}

template <int VALUES>
__global__ void __launch_bounds__(2 * HEAD_KEYS, VALUES == HEAD_KEYS ? 2 : 1)
    head_backward_kernel(struct outer_inputs in, struct strip_shape s, const real *dy, struct between mid, real *kept,
                         struct head_gradients d) {
    await_previous();
#ifdef HEAD_CODE
    DYNAMIC_SHARED(real, shared);
    head_backward<VALUES>(in, s, dy, mid, kept, d, shared);
#endif
}

/* Returns the columns of the kernels for a call: 64 or 80; 0 if they cannot compute it, or would compute more padding
 * than numbers. */
inline int head_values(const struct call *c) {
    struct state_shape z = outer_shape(c);
    const struct cuda_context *cuda = c->place->cuda;
    int values = z.dv <= HEAD_KEYS ? HEAD_KEYS : HEAD_MOST;
    size_t bytes = values == HEAD_KEYS ? sizeof(struct head_backward_room<HEAD_KEYS>)
                                       : sizeof(struct head_backward_room<HEAD_MOST>);
    bool fits = !REAL_IS_DOUBLE && HEAD_CAPABILITY(cuda->capability) && bytes <= cuda->shared && z.dk <= HEAD_KEYS &&
                z.dv <= HEAD_MOST;
    return fits && 2 * z.dk > HEAD_KEYS && 2 * z.dv > HEAD_KEYS ? values : 0;
}

/* Returns the tokens of a segment: as few segments as occupy a device. */
inline int64_t head_segment(const struct state_shape &z) {
    int64_t heads = z.B * z.heads, segments = (HEAD_BLOCKS + heads - 1) / heads,
            tokens = (z.T + segments - 1) / segments;
    return (tokens + SEGMENT - 1) / SEGMENT * SEGMENT;
}

/* A whole head is one strip. */
inline struct strip_shape head_shape(const struct state_shape &z) {
    struct strip_shape s = {.B = z.B, .T = z.T, .H = z.heads, .rows = HEAD_KEYS, .dv = (int)z.dv, .W = (int)z.dv};
    s.strips = 1;
    s.chunk = (int)head_segment(z);
    s.chunks = (int)((s.T + s.chunk - 1) / s.chunk);
    return s;
}

template <int VALUES>
void head_forward_launch(const struct exec *x, const struct outer_inputs &in, const struct strip_shape &s,
                         const struct between &mid, real *y, real *kept) {
    LAUNCH(x, (head_forward_kernel<VALUES>), chunk_blocks(s, s.chunks), dim3(2 * VALUES),
           sizeof(struct head_forward_room<VALUES>), in, s, mid, y, kept);
}

template <int VALUES>
void head_backward_launch(const struct exec *x, const struct outer_inputs &in, const struct strip_shape &s,
                          const real *dy, const struct between &mid, real *kept, const struct head_gradients &d) {
    LAUNCH(x, (head_backward_kernel<VALUES>), chunk_blocks(s, s.chunks), dim3(2 * HEAD_KEYS),
           sizeof(struct head_backward_room<VALUES>), in, s, dy, mid, kept, d);
}

} // namespace

#endif

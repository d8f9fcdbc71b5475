/* head_chunk.cuh - scan_outer on CUDA for states of at most 64 x 80: a thread block computes a whole head of a segment,
 * HEAD_CHUNK tokens at a time, with the state in registers. Equations: outer_chunk.cuh, with one state; segments are of
 * any multiple of HEAD_CHUNK tokens.
 *
 * Forward: warp w has columns 16 w to 16 w + 15 of the state, as rows of its transpose, and computes these columns of
 * the outputs. Backward: warp w has 16 rows of the state's gradient E, and computes these columns of dq and dk. For dv,
 * which sums over all rows of E, E is also in shared memory. Three barriers a chunk: after its rows are stored, after
 * the products of tokens with tokens, and after all other products. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_HEAD_CHUNK_CUH
#define LRNN_KERNELS_MATRIX_OUTER_HEAD_CHUNK_CUH

#include "kernels/matrix/outer/head_parts.cuh"
#include "kernels/matrix/outer_chunk.cuh"

#define HEAD_BLOCKS 256 /* segments are as long as leaves so many thread blocks */

namespace {

#ifdef HEAD_CODE

/* --- forward ------------------------------------------------------------------------------------------------------ */

template <int VALUES>
__device__ __forceinline__ void head_forward(const struct outer_inputs &in, const struct strip_shape &s,
                                             const struct between &mid, real *y, real *kept, real *shared) {
    constexpr int TILES = HEAD_TILES;
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
    auto keep = [&](int token) { keep_state(C, s, in.dk, at, token, first, kept); };
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
            if (half > 0 && begin + half * STATE_CHUNK < s.T) keep(begin + half * STATE_CHUNK);
            pass_half(C, K, g, half, [&](int k) { return weighted_left(V, g->near, first / 8, k); });
        }
        __syncthreads();
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

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
            put_dots(r->passed[warp], [&](int n, int side) {
                return lane_dot(K, first, n, side, dk.sum(n, side), dk.sum(n, 2 + side));
            });
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
            put_dots(r->entry[warp], [&](int n, int side) {
                return lane_dot(Q, first, n, side, dq.sum(n, side), dq.sum(n, 2 + side));
            });
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

/* Returns the tokens of a segment: as few segments as occupy a device. */
inline int64_t head_segment(const struct state_shape &z) {
    int64_t heads = z.B * z.heads, segments = (HEAD_BLOCKS + heads - 1) / heads,
            tokens = (z.T + segments - 1) / segments;
    return (tokens + SEGMENT - 1) / SEGMENT * SEGMENT;
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

/* head_parts.cuh - parts of the CUDA kernels in which a thread block computes a whole head of at most 64 x 80 numbers,
 * HEAD_CHUNK rows at a time, with the state in registers: head_chunk.cuh and matrix/delta/head_delta.cuh. A row is a
 * token, or a step of the delta rule.
 *
 * Matrices of a chunk are stored split in shared memory (kernels/lib/split_product.cuh); missing rows and columns are
 * 0. All their sizes are known to the compiler. A token is a lane in all that concerns gates. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_HEAD_PARTS_CUH
#define LRNN_KERNELS_MATRIX_OUTER_HEAD_PARTS_CUH

#include "kernels/lib/split_product.cuh"
#include "kernels/matrix/chunk.cuh"
#include "kernels/matrix/outer_inputs.cuh"

#define HEAD_CHUNK 32 /* tokens */
#define HEAD_KEYS  64 /* rows of a state, with padding */
#define HEAD_MOST  80 /* columns: 64, and the normaliser of an mLSTM */
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

/* [.] of entry, passed and along: each warp's part. The delta rule has other matrices in some places (head_delta.cuh),
 * and its B where E was. */
template <int VALUES> struct head_backward_room {
    struct split_pair Q[HEAD_CHUNK * HEAD_KEYS / 2], K[HEAD_CHUNK * HEAD_KEYS / 2];
    struct split_pair V[HEAD_CHUNK * VALUES / 2], W[HEAD_CHUNK * VALUES / 2], U[HEAD_CHUNK * HEAD_CHUNK / 2];
    union {
        struct split_pair P[HEAD_CHUNK * HEAD_CHUNK / 2];
        real Y[HEAD_CHUNK][HEAD_CHUNK + 1]; /* reach o Y, [t][n]; after P was read */
    };
    union {
        real E[HEAD_KEYS][VALUES + 4]; /* 4 more, so that lanes of neighbouring rows use different banks */
        struct split_pair B[HEAD_CHUNK * VALUES / 2];
    };
    struct head_gates g[2]; /* of this chunk and of the one before, which the first two warps may still read */
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

/* Rows of a chunk: `count` rows of `width` numbers. If a token has 1 << shift rows, only its last row has numbers. What
 * there is lies `step` apart. */
struct head_source {
    const real *from;
    int64_t step;
    int count, width, shift;
};

__device__ __forceinline__ bool begins_token(int row, int shift) {
    return (row & ((1 << shift) - 1)) == 0;
}
__device__ __forceinline__ bool ends_token(int row, int shift) {
    return begins_token(row + 1, shift);
}

__device__ __forceinline__ struct head_source keys_of(const struct outer_inputs &in, const struct strip_shape &s,
                                                      const struct segment &at, int begin, int count, const real *from,
                                                      int shift = 0) {
    int64_t group = at.h / (in.H / in.G), row = (at.b * s.T + hidden(begin)) >> shift;
    return {from + (row * in.G + group) * in.dk, in.G * in.dk, count, in.dk, shift};
}

__device__ __forceinline__ struct head_source values_of(const struct outer_inputs &in, const struct strip_shape &s,
                                                        const struct segment &at, int begin, int count,
                                                        const real *from, int shift = 0) {
    int64_t row = (at.b * s.T + hidden(begin)) >> shift;
    return {from + (row * in.H + at.h) * s.dv, in.H * s.dv, count, s.dv, shift};
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
        copy_async_or_zero(reinterpret_cast<real *>(high), from + (row >> rows.shift) * step + part,
                           row < rows.count && ends_token(row, rows.shift) && lane + part < rows.width);
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

/* Loads the lane's gates, and computes products of gates. The first four warps divide the rows of reach. `rate` is a
 * factor of the source. Without a transition, or after the first of a token's 1 << shift rows, the transition is 1. */
__device__ __forceinline__ void load_gates(const struct outer_inputs &in, const struct strip_shape &s,
                                           const struct segment &at, int begin, int count, struct head_gates *g,
                                           real rate = 1, int shift = 0) {
    int n = lane_here(), last = 8 * warp_here() + 7;
    int64_t row = at.b * s.T + hidden(begin) + n, head = row * in.H + at.h;
    bool is = n < count;
    real T = is && in.transition && begins_token(n, shift) ? in.transition[(row >> shift) * in.H + at.h] : 1,
         S = !is         ? 0
             : in.source ? rate * in.source[head]
                         : 1;
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

/* --- forward: a warp has 16 columns of the state, as rows of C, from column `first` on ---------------------------- */

#define HEAD_TILES (HEAD_KEYS / 8)

__device__ __forceinline__ void keep_state(const real (&C)[HEAD_TILES][4], const struct strip_shape &s, int dk,
                                           const struct segment &at, int row, int first, real *kept, int shift = 0) {
    int dv = hidden(s.dv);
    real *to = kept_at(s, dk, at, row, STATE_CHUNK << shift, kept);
    split_sums<HEAD_TILES>::each([&](int j, int i, int n, int e) {
        if (i < dk && first + j < dv) to[i * dv + first + j] = C[n][e];
    });
}

/* Computes the state after a half of a chunk from the state before. writer(step): left factors of the values that are
 * written, 8 tokens per step, each times the token's `near`. */
template <class Writer>
__device__ __forceinline__ void pass_half(real (&C)[HEAD_TILES][4], struct split_matrix<HEAD_KEYS> K,
                                          const struct head_gates *g, int half, Writer writer) {
    constexpr int STEPS = STATE_CHUNK / 8, COUNT = HEAD_TILES / 2;
#pragma unroll
    for (int tile = 0; tile < HEAD_TILES; tile += COUNT) {
        struct split_sums<COUNT> more = {};
        more.template add<STEPS>([&](int k) { return writer(half * STEPS + k); },
                                 [&](int k, int n) { return columns_right(K, half * STEPS + k, tile + n); });
        more.each([&](int, int, int n, int e) {
            C[tile + n][e] = real_fma(g->halves[half], C[tile + n][e], more.sum(n, e));
        });
    }
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

/* Returns the lane's part of the product of row 8 n + 2 t + side of a with a column of a warp's sums, which begin at
 * column `first` of a. `upper` and `lower` are the lane's two numbers of the column. */
template <int COLUMNS>
__device__ __forceinline__ real lane_dot(struct split_matrix<COLUMNS> a, int first, int n, int side, real upper,
                                         real lower) {
    return real_fma(lower, split_value(a.across(n, side, first / 8 + 1)),
                    upper * split_value(a.across(n, side, first / 8)));
}

/* Stores the sums over the warp's rows of what the lanes have for each token: part(n, side) for token 8 n + 2 t + side.
 */
template <class Part> __device__ __forceinline__ void put_dots(real *to, Part part) {
#pragma unroll
    for (int n = 0; n < HEAD_CHUNK / 8; n++)
#pragma unroll
        for (int side = 0; side < 2; side++) {
            int token = 8 * n + 2 * tile_t() + side;
            real dot = part(n, side);
#pragma unroll
            for (int distance = 4; distance < WARP; distance *= 2) dot += __shfl_xor_sync(FULL_WARP, dot, distance);
            if (tile_g() == 0) to[token] = dot;
        }
}

/* Writes columns of sums as rows of a gradient: rows of tokens, at `to`, of which the lane has elements from `first` on
 * that are below `width`. If a token has 1 << shift rows, it gets the last one. */
__device__ __forceinline__ void put_columns(const struct split_sums<HEAD_CHUNK / 8> &sums, const struct head_rows &rows,
                                            const struct segment &at, int begin, int count, int first, int width,
                                            int shift = 0) {
    if (!rows.at) return;
    int step = hidden((int)rows.token);
    real *to = rows.at + at.b * rows.batch + (hidden(begin) >> shift) * rows.token + at.h * rows.head + first;
    sums.each([&](int i, int row, int n, int e) {
        if (row < count && ends_token(row, shift) && first + i < width)
            put(to + (row >> shift) * step + i, rows.add, sums.sum(n, e));
    });
}

/* Computes the gates' gradients of a chunk, by the first two warps. rate and shift: as for load_gates. */
template <int VALUES>
__device__ __forceinline__ void gate_gradients(const struct outer_inputs &in, const struct strip_shape &s,
                                               const struct segment &at, int begin, int count,
                                               const struct head_gates *g, struct head_backward_room<VALUES> *r,
                                               const struct outer_gradients &d, real rate = 1, int shift = 0) {
    int n = hidden(lane_here());
    int64_t row = at.b * s.T + begin + n, to = row * in.H + at.h;
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
        if (d.transition && begins_token(n, shift))
            put(d.transition + (row >> shift) * in.H + at.h, d.add_transition, in.mark ? sum : sum + mark);
        if (d.mark) put(d.mark + to, d.add_mark, mark);
    } else if (warp_here() == 1) {
        real sum = g->after[n] * passed, direct = r->products[n][n];
        for (int i = 1; i < HEAD_CHUNK; i++)
            if (i > n) sum = real_fma(g->reach[n][i], r->products[n][i], sum);
        if (n >= count) return;
        if (d.source) put(d.source + to, d.add_source, rate * (in.mark ? sum : sum + direct));
        if (d.direct) put(d.direct + to, d.add_direct, direct);
    }
}

#endif

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Returns the columns of the kernels for a call: 64 or 80; 0 if they cannot compute it, or would compute more padding
 * than numbers. */
inline int head_values(const struct state_shape &z, const struct cuda_context *cuda) {
    int values = z.dv <= HEAD_KEYS ? HEAD_KEYS : HEAD_MOST;
    size_t bytes = values == HEAD_KEYS ? sizeof(struct head_backward_room<HEAD_KEYS>)
                                       : sizeof(struct head_backward_room<HEAD_MOST>);
    bool fits = !REAL_IS_DOUBLE && HEAD_CAPABILITY(cuda->capability) && bytes <= cuda->shared && z.dk <= HEAD_KEYS &&
                z.dv <= HEAD_MOST;
    return fits && 2 * z.dk > HEAD_KEYS && 2 * z.dv > HEAD_KEYS ? values : 0;
}

/* Returns the shape of a call in segments of so many tokens. A whole head is one strip. */
inline struct strip_shape head_shape(const struct state_shape &z, int64_t segment) {
    struct strip_shape s = {.B = z.B, .T = z.T, .H = z.heads, .rows = HEAD_KEYS, .dv = (int)z.dv, .W = (int)z.dv};
    s.strips = 1;
    s.chunk = (int)segment;
    s.chunks = (int)((s.T + s.chunk - 1) / s.chunk);
    return s;
}

} // namespace

#endif

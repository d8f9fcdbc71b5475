/* softmax_attention_cuda.cu - softmax attention on CUDA. A block has some neighbouring queries (or keys) of one head,
 * one per warp. A warp walks 32 keys (or queries) at a time: for the scores each lane has one of them, whose columns
 * the block has loaded into shared memory; for the sums over them a lane has every 32nd column. Forward and dq walk a
 * query's keys. dk and dv walk a key's queries, with the normaliser and the mean of dp that were stored for each query.
 * Equations: softmax_attention.c. */
#include "core/real_math.h"
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/token/token.h"

#define BLOCK_ROWS  (CUDA_THREADS / WARP) /* queries or keys of a block */
#define COLUMNS_MAX 8                     /* most columns of a lane: dk up to 256 */
#define TILE_STRIDE (WARP + 1)            /* so that lanes that read different rows use different banks */

namespace {

/* qkv (B,T,3D): k and v of a head are D and 2D columns after its q. */
struct attention {
    const real *qkv;
    int64_t B, T, D;
    int heads, dk;
    real scale;
    bool causal;
    int64_t before;         /* rows before the tokens */
    const int32_t *lengths; /* or NULL */

    /* The number of keys that query t of sequence b sees. */
    __device__ int64_t keys(int64_t b, int64_t t) const {
        return causal ? t + 1 : lengths ? before + lengths[b] : T;
    }
};

struct attention attention_of(const struct call *c) {
    int64_t D = c->out[0]->dims[2];
    const struct attention_attr *attr = attention_attr(c);
    int heads = (int)attr->heads, dk = (int)(D / heads);
    return {tensor_real(c->in[0]),
            c->in[0]->dims[0],
            c->in[0]->dims[1],
            D,
            heads,
            dk,
            1 / real_sqrt((real)dk),
            attr->causal,
            attr->before,
            c->in[1] ? tensor_i32(c->in[1]) : nullptr};
}

/* The probabilities of a query's keys: p = exp(score - top) share. */
struct normaliser {
    real top, share;
    __device__ __forceinline__ real of(real score) const {
        return real_exp(score - top) * share;
    }
};

/* The values of a query that are stored for the gradients of its keys; mean: the sum of p dp. */
struct attention_query {
    struct normaliser p;
    real mean;
};

/* The work of a warp: its query or key `t` of a head, none if not `in`; and the block's first query or key. */
struct attention_place {
    int64_t b, head, first, t; /* head: of all sequences */
    const real *q, *k, *v;     /* the head's first token */
    int lane, warp;
    bool in;
};

} // namespace

static __device__ __forceinline__ struct attention_place place_here(const struct attention &a) {
    int64_t blocks = (a.T + BLOCK_ROWS - 1) / BLOCK_ROWS;
    struct quotient block = divide(blockIdx.x, blocks), head = divide(block.whole, a.heads);
    struct attention_place at;
    at.b = head.whole;
    at.head = block.whole;
    at.lane = (int)threadIdx.x % WARP;
    at.warp = (int)threadIdx.x / WARP;
    at.first = block.rest * BLOCK_ROWS;
    at.t = at.first + at.warp;
    at.in = at.t < a.T;
    at.q = a.qkv + head.whole * a.T * 3 * a.D + head.rest * a.dk;
    at.k = at.q + a.D;
    at.v = at.k + a.D;
    return at;
}

/* Index of the head's first token in (B,T,D). */
static __device__ __forceinline__ int64_t token_offset(const struct attention &a, const struct attention_place &at) {
    return at.b * a.T * a.D + (at.head - at.b * a.heads) * a.dk;
}

/* The size of a warp's own vector in shared memory: dk rounded up with zeros, because it is read four at a time. */
__host__ __device__ static inline int own_values(int dk) {
    return (dk + 3) / 4 * 4;
}

/* Shared memory of a block: a tile, then `vectors` of each warp. */
static __device__ __forceinline__ real *own_vector(const struct attention &a, const struct attention_place &at,
                                                   real *shared, int vector) {
    return shared + WARP * TILE_STRIDE + (vector * BLOCK_ROWS + at.warp) * own_values(a.dk);
}

static size_t shared_bytes(const struct attention &a, int vectors) {
    return (size_t)(WARP * TILE_STRIDE + vectors * BLOCK_ROWS * own_values(a.dk)) * sizeof(real);
}

/* Loads token t of `rows`, which are `stride` apart, as the warp's own vector; zeros if there is no such token. */
static __device__ __forceinline__ void read_own(const struct attention &a, const struct attention_place &at,
                                                const real *rows, int64_t stride, real *own) {
    for (int i = at.lane; i < own_values(a.dk); i += WARP) own[i] = at.in && i < a.dk ? rows[at.t * stride + i] : 0;
}

/* The block loads 32 columns, from `first` on, of `count` rows into shared memory, and zeros where there are none. All
 * its loads are issued before the first store. */
static __device__ __forceinline__ void read_tile(const struct attention &a, const struct attention_place &at,
                                                 const real *rows, int64_t stride, int count, int first, real *tile) {
    int column = first + at.lane;
    real loaded[WARP / BLOCK_ROWS];
#pragma unroll
    for (int i = 0; i < WARP / BLOCK_ROWS; i++) {
        int r = i * BLOCK_ROWS + at.warp;
        loaded[i] = r < count && column < a.dk ? rows[r * stride + column] : 0;
    }
    __syncthreads(); /* all threads are done with the previous tile */
#pragma unroll
    for (int i = 0; i < WARP / BLOCK_ROWS; i++) tile[(i * BLOCK_ROWS + at.warp) * TILE_STRIDE + at.lane] = loaded[i];
    __syncthreads();
}

/* The warp's own vector . row `lane` of `count` rows. All threads of the block must call it. */
static __device__ __forceinline__ real tile_dot(const struct attention &a, const struct attention_place &at,
                                                const real *own, const real *rows, int64_t stride, int count,
                                                real *tile) {
    real sum = 0;
    for (int first = 0; first < a.dk; first += WARP) {
        int width = own_values(a.dk) - first < WARP ? own_values(a.dk) - first : WARP;
        read_tile(a, at, rows, stride, count, first, tile);
#pragma unroll 2
        for (int j = 0; j < width; j += 4) {
            lanes<4> x = load_lanes<4>(own + first + j);
#pragma unroll
            for (int i = 0; i < 4; i++) sum = real_fma(x.v[i], tile[at.lane * TILE_STRIDE + j + i], sum);
        }
    }
    return sum;
}

/* sums[i] += sum over `count` lanes of weight row[lane], for columns i*32 + lane. The block's other warps read the same
 * rows, so they come from the cache. */
static __device__ __forceinline__ void add_weighted(int dk, real weight, const real *rows, int64_t stride, int count,
                                                    int lane, real *sums) {
#pragma unroll 4
    for (int from = 0; from < count; from++) {
        real w = __shfl_sync(FULL_WARP, weight, from);
#pragma unroll
        for (int i = 0; i < COLUMNS_MAX; i++) {
            if (i * WARP + lane >= dk) break;
            sums[i] = real_fma(w, rows[from * stride + i * WARP + lane], sums[i]);
        }
    }
}

static __device__ __forceinline__ int up_to_warp(int64_t n) {
    return n < 0 ? 0 : n < WARP ? (int)n : WARP;
}

static __device__ __forceinline__ real warp_max(real x) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        real other = __shfl_xor_sync(FULL_WARP, x, distance);
        x = other > x ? other : x;
    }
    return x;
}

namespace {

/* A query's softmax over the keys so far: the highest score, and each lane's sum of exp(score - top). */
struct softmax_so_far {
    real top = -INFINITY, sum = 0;

    /* Returns the weights exp(score - top) of 32 more keys, one per lane; sums with earlier weights must be multiplied
     * by *shrink. At least one lane must have a key, and all lanes must call it. */
    __device__ __forceinline__ real take(real score, bool has, real *shrink) {
        real next = warp_max(has ? score : -INFINITY);
        if (!(next > top)) next = top;
        *shrink = real_exp(top - next);
        top = next;
        real weight = has ? real_exp(score - top) : 0;
        sum = real_fma(sum, *shrink, weight);
        return weight;
    }

    /* The normaliser of all keys; without a key the weights are 0. */
    __device__ __forceinline__ struct normaliser normalised(void) const {
        real whole = warp_sum(sum);
        return {top, whole > 0 ? 1 / whole : 0};
    }
};

} // namespace

/* The most keys that a query of the block sees. */
static __device__ __forceinline__ int64_t most_keys(const struct attention &a, const struct attention_place &at) {
    int64_t last = at.first + BLOCK_ROWS < a.T ? at.first + BLOCK_ROWS - 1 : a.T - 1;
    return a.keys(at.b, last);
}

static __device__ __forceinline__ int64_t own_keys(const struct attention &a, const struct attention_place &at) {
    return at.in ? a.keys(at.b, at.t) : 0;
}

static __global__ void __launch_bounds__(CUDA_THREADS) attention_forward_kernel(struct attention a, real *y) {
    await_previous();
    DYNAMIC_SHARED(real, tile);
    struct attention_place at = place_here(a);
    int64_t stride = 3 * a.D, keys = own_keys(a, at), most = most_keys(a, at);
    struct softmax_so_far softmax;
    real *q = own_vector(a, at, tile, 0), sums[COLUMNS_MAX] = {}, shrink;
    read_own(a, at, at.q, stride, q);
    for (int64_t s = 0; s < most; s += WARP) {
        real score = a.scale * tile_dot(a, at, q, at.k + s * stride, stride, up_to_warp(most - s), tile);
        if (s >= keys) continue; /* keys of this warp's query; other queries of the block may see more */
        real weight = softmax.take(score, s + at.lane < keys, &shrink);
#pragma unroll
        for (int i = 0; i < COLUMNS_MAX; i++) sums[i] *= shrink;
        add_weighted(a.dk, weight, at.v + s * stride, stride, up_to_warp(keys - s), at.lane, sums);
    }
    real share = softmax.normalised().share, *to = y + token_offset(a, at);
#pragma unroll
    for (int i = 0; i < COLUMNS_MAX; i++)
        if (at.in && i * WARP + at.lane < a.dk) to[at.t * a.D + i * WARP + at.lane] = share * sums[i];
}

/* Computes dq, and stores the query's values for attention_key_kernel. */
static __global__ void __launch_bounds__(CUDA_THREADS, 2)
    attention_query_kernel(struct attention a, const real *dy, real *dqkv, bool accumulate,
                           struct attention_query *left) {
    await_previous();
    DYNAMIC_SHARED(real, tile);
    struct attention_place at = place_here(a);
    int64_t stride = 3 * a.D, keys = own_keys(a, at), most = most_keys(a, at), head = at.q - a.qkv;
    struct softmax_so_far softmax;
    real *q = own_vector(a, at, tile, 0), *d = own_vector(a, at, tile, 1), sums[COLUMNS_MAX] = {}, mean = 0, shrink;
    read_own(a, at, at.q, stride, q);
    read_own(a, at, dy + token_offset(a, at), a.D, d);
    for (int64_t s = 0; s < most; s += WARP) {
        real score = a.scale * tile_dot(a, at, q, at.k + s * stride, stride, up_to_warp(most - s), tile);
        real dp = tile_dot(a, at, d, at.v + s * stride, stride, up_to_warp(most - s), tile);
        if (s >= keys) continue;
        bool has = s + at.lane < keys;
        real weight = softmax.take(score, has, &shrink);
        mean = real_fma(mean, shrink, has ? weight * dp : 0);
    }
    struct normaliser p = softmax.normalised();
    mean = p.share * warp_sum(mean);
    for (int64_t s = 0; s < most; s += WARP) {
        real score = a.scale * tile_dot(a, at, q, at.k + s * stride, stride, up_to_warp(most - s), tile);
        real dp = tile_dot(a, at, d, at.v + s * stride, stride, up_to_warp(most - s), tile);
        real ds = s + at.lane < keys ? p.of(score) * (dp - mean) : 0;
        add_weighted(a.dk, ds, at.k + s * stride, stride, up_to_warp(keys - s), at.lane, sums);
    }
    if (!at.in) return;
    if (at.lane == 0) left[at.head * a.T + at.t] = {p, mean};
    real *to = dqkv + head + at.t * stride;
#pragma unroll
    for (int i = 0; i < COLUMNS_MAX; i++)
        if (i * WARP + at.lane < a.dk) put(to + i * WARP + at.lane, accumulate, a.scale * sums[i]);
}

/* Computes dk and dv. Two blocks per multiprocessor: with registers for four the kernel would spill. */
static __global__ void __launch_bounds__(CUDA_THREADS, 2)
    attention_key_kernel(struct attention a, const real *dy, real *dqkv, bool accumulate,
                         const struct attention_query *left) {
    await_previous();
    DYNAMIC_SHARED(real, tile);
    struct attention_place at = place_here(a);
    int64_t stride = 3 * a.D, queries = a.causal || at.first < a.keys(at.b, 0) ? a.T : 0;
    real *k = own_vector(a, at, tile, 0), *v = own_vector(a, at, tile, 1);
    real dk[COLUMNS_MAX] = {}, dv[COLUMNS_MAX] = {};
    read_own(a, at, at.k, stride, k);
    read_own(a, at, at.v, stride, v);
    for (int64_t t = a.causal ? at.first : 0; t < queries; t += WARP) {
        const real *q = at.q + t * stride, *d = dy + token_offset(a, at) + t * a.D;
        int count = up_to_warp(a.T - t);
        real score = a.scale * tile_dot(a, at, k, q, stride, count, tile), p = 0, ds = 0;
        real dp = tile_dot(a, at, v, d, a.D, count, tile);
        if (at.lane < count && at.t < a.keys(at.b, t + at.lane)) {
            struct attention_query of = left[at.head * a.T + t + at.lane];
            p = of.p.of(score);
            ds = p * (dp - of.mean);
        }
        add_weighted(a.dk, ds, q, stride, count, at.lane, dk);
        add_weighted(a.dk, p, d, a.D, count, at.lane, dv);
    }
    real *to = dqkv + (at.k - a.qkv) + at.t * stride;
#pragma unroll
    for (int i = 0; i < COLUMNS_MAX; i++)
        if (at.in && i * WARP + at.lane < a.dk) {
            put(to + i * WARP + at.lane, accumulate, a.scale * dk[i]);
            put(to + a.D + i * WARP + at.lane, accumulate, dv[i]);
        }
}

static bool softmax_attention_cuda_applicable(const struct call *c, const char **why) {
    bool fits = attention_of(c).dk <= COLUMNS_MAX * WARP;
    if (!fits) *why = "heads are up to 256 wide";
    return fits;
}

static size_t softmax_attention_cuda_workspace(const struct call *c, enum pass pass) {
    struct attention a = attention_of(c);
    return pass == PASS_FORWARD ? 0 : scratch_single(c, (size_t)(a.B * a.heads * a.T) * sizeof(struct attention_query));
}

static dim3 blocks_of(const struct attention &a) {
    return dim3((unsigned)(a.B * a.heads * ((a.T + BLOCK_ROWS - 1) / BLOCK_ROWS)));
}

static void softmax_attention_cuda_forward(const struct call *c, const struct exec *x) {
    struct attention a = attention_of(c);
    LAUNCH(x, attention_forward_kernel, blocks_of(a), dim3(CUDA_THREADS), shared_bytes(a, 1), a,
           tensor_real(c->out[0]));
}

static void softmax_attention_cuda_backward(const struct call *c, const struct exec *x) {
    struct attention a = attention_of(c);
    struct attention_query *left = (struct attention_query *)c->scratch[PASS_BACKWARD];
    if (!c->din[0]) return;
    LAUNCH(x, attention_query_kernel, blocks_of(a), dim3(CUDA_THREADS), shared_bytes(a, 2), a, call_dout(c, 0),
           c->din[0], call_accumulates(c, 0), left);
    LAUNCH(x, attention_key_kernel, blocks_of(a), dim3(CUDA_THREADS), shared_bytes(a, 2), a, call_dout(c, 0), c->din[0],
           call_accumulates(c, 0), left);
}

/* Tolerance: as softmax_attention_cpu; the probabilities are exponentials of differences of sums over dk. */
const struct kernel kernel_softmax_attention_cuda = {
    .name = "softmax_attention_cuda",
    .op = &op_softmax_attention,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 1024,
    .applicable = softmax_attention_cuda_applicable,
    .workspace = softmax_attention_cuda_workspace,
    .forward = softmax_attention_cuda_forward,
    .backward = softmax_attention_cuda_backward,
};

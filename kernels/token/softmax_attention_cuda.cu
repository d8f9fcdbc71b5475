/* softmax_attention_cuda.cu - softmax attention on CUDA, a warp a query or a key of a head: a lane has a key (or
 * query) of 32 for the scores, and every 32nd column for the sums over them. Forward and dq walk a query's keys; dk
 * and dv walk a key's queries, with the normaliser and the mean of dp that each query has left. Equations:
 * softmax_attention.c. */
#include "core/real_math.h"
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/token/token.h"

#define BLOCK_ROWS  (CUDA_THREADS / WARP)
#define COLUMNS_MAX 8 /* of a lane: dk up to 256 */

namespace {

/* qkv (B,T,3D): of a head q, and k and v D and 2D behind it. */
struct attention {
    const real *qkv;
    int64_t B, T, D;
    int heads, dk;
    real scale;
    bool causal;
    const int32_t *lengths; /* or NULL */

    /* Keys that query t of sequence b sees. */
    __device__ int64_t keys(int64_t b, int64_t t) const {
        return causal ? t + 1 : lengths ? lengths[b] : T;
    }
};

struct attention attention_of(const struct call *c) {
    int64_t D = c->out[0]->dims[2];
    const struct attention_attr *attr = (const struct attention_attr *)c->attr;
    int heads = (int)attr->heads, dk = (int)(D / heads);
    return {tensor_real(c->in[0]),
            c->in[0]->dims[0],
            c->in[0]->dims[1],
            D,
            heads,
            dk,
            1 / real_sqrt((real)dk),
            attr->causal,
            c->in[1] ? tensor_i32(c->in[1]) : nullptr};
}

/* p = exp(score - top) share, of a query's keys. */
struct normaliser {
    real top, share;
    __device__ __forceinline__ real of(real score) const {
        return real_exp(score - top) * share;
    }
};

/* What a query leaves for the gradients of its keys; mean: the sum of p dp. */
struct attention_query {
    struct normaliser p;
    real mean;
};

} // namespace

static __device__ __forceinline__ real dot(int n, const real *a, const real *b) {
    real sum = 0;
    for (int i = 0; i < n; i++) sum = real_fma(a[i], b[i], sum);
    return sum;
}

static __device__ __forceinline__ real warp_max(real x) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        real other = __shfl_xor_sync(FULL_WARP, x, distance);
        x = other > x ? other : x;
    }
    return x;
}

/* Of the first `keys` keys, in every lane. */
static __device__ struct normaliser normaliser_of(const struct attention &a, const real *q, const real *k, int64_t keys,
                                                  int lane) {
    real top = -INFINITY, sum = 0;
    for (int64_t s = lane; s < keys; s += WARP) {
        real score = a.scale * dot(a.dk, q, k + s * 3 * a.D);
        top = score > top ? score : top;
    }
    top = warp_max(top);
    for (int64_t s = lane; s < keys; s += WARP) sum += real_exp(a.scale * dot(a.dk, q, k + s * 3 * a.D) - top);
    return {top, 1 / warp_sum(sum)};
}

/* sums[i] += sum over 32 lanes of weight row[lane], of the columns i*32 + lane; rows of 3D (or D) values. */
static __device__ __forceinline__ void add_weighted(int dk, real weight, const real *rows, int64_t stride, int count,
                                                    int lane, real *sums) {
    for (int from = 0; from < count; from++) {
        real w = __shfl_sync(FULL_WARP, weight, from);
#pragma unroll
        for (int i = 0; i < COLUMNS_MAX; i++)
            if (i * WARP + lane < dk) sums[i] = real_fma(w, rows[from * stride + i * WARP + lane], sums[i]);
    }
}

static __device__ __forceinline__ int up_to_warp(int64_t n) {
    return n < WARP ? (int)n : WARP;
}

static __global__ void __launch_bounds__(CUDA_THREADS) attention_forward_kernel(struct attention a, real *y) {
    await_previous();
    int64_t query = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (query >= a.B * a.heads * a.T) return;
    struct quotient at = divide(query, a.T), head = divide(at.whole, a.heads);
    int64_t t = at.rest, keys = a.keys(head.whole, t);
    const real *q0 = a.qkv + head.whole * a.T * 3 * a.D + head.rest * a.dk, *q = q0 + t * 3 * a.D, *k = q0 + a.D;
    struct normaliser p = normaliser_of(a, q, k, keys, lane);
    real sums[COLUMNS_MAX] = {};
    for (int64_t s = 0; s < keys; s += WARP) {
        real weight = s + lane < keys ? p.of(a.scale * dot(a.dk, q, k + (s + lane) * 3 * a.D)) : 0;
        add_weighted(a.dk, weight, k + a.D + s * 3 * a.D, 3 * a.D, up_to_warp(keys - s), lane, sums);
    }
    real *to = y + (head.whole * a.T + t) * a.D + head.rest * a.dk;
#pragma unroll
    for (int i = 0; i < COLUMNS_MAX; i++)
        if (i * WARP + lane < a.dk) to[i * WARP + lane] = sums[i];
}

/* dq, and what the query leaves. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    attention_query_kernel(struct attention a, const real *dy, real *dqkv, bool accumulate,
                           struct attention_query *left) {
    await_previous();
    int64_t query = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (query >= a.B * a.heads * a.T) return;
    struct quotient at = divide(query, a.T), head = divide(at.whole, a.heads);
    int64_t t = at.rest, keys = a.keys(head.whole, t), first = head.whole * a.T * 3 * a.D + head.rest * a.dk;
    const real *q0 = a.qkv + first, *q = q0 + t * 3 * a.D, *k = q0 + a.D, *v = k + a.D;
    const real *d = dy + (head.whole * a.T + t) * a.D + head.rest * a.dk;
    struct normaliser p = normaliser_of(a, q, k, keys, lane);
    real mean = 0, sums[COLUMNS_MAX] = {};
    for (int64_t s = lane; s < keys; s += WARP)
        mean += p.of(a.scale * dot(a.dk, q, k + s * 3 * a.D)) * dot(a.dk, d, v + s * 3 * a.D);
    mean = warp_sum(mean);
    for (int64_t s = 0; s < keys; s += WARP) {
        real ds = 0;
        if (s + lane < keys)
            ds = p.of(a.scale * dot(a.dk, q, k + (s + lane) * 3 * a.D)) *
                 (dot(a.dk, d, v + (s + lane) * 3 * a.D) - mean);
        add_weighted(a.dk, ds, k + s * 3 * a.D, 3 * a.D, up_to_warp(keys - s), lane, sums);
    }
    if (lane == 0) left[query] = {p, mean};
    real *to = dqkv + first + t * 3 * a.D;
#pragma unroll
    for (int i = 0; i < COLUMNS_MAX; i++)
        if (i * WARP + lane < a.dk) put(to + i * WARP + lane, accumulate, a.scale * sums[i]);
}

/* Two blocks a multiprocessor: with registers for four it would spill. */
static __global__ void __launch_bounds__(CUDA_THREADS, 2)
    attention_key_kernel(struct attention a, const real *dy, real *dqkv, bool accumulate,
                         const struct attention_query *left) {
    await_previous();
    int64_t key = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (key >= a.B * a.heads * a.T) return;
    struct quotient at = divide(key, a.T), head = divide(at.whole, a.heads);
    int64_t s = at.rest, first = head.whole * a.T * 3 * a.D + head.rest * a.dk;
    const real *q = a.qkv + first, *k = q + a.D + s * 3 * a.D, *v = k + a.D;
    const real *d = dy + head.whole * a.T * a.D + head.rest * a.dk;
    real dk[COLUMNS_MAX] = {}, dv[COLUMNS_MAX] = {};
    bool seen = a.causal || s < a.keys(head.whole, 0);
    for (int64_t t = a.causal ? s : 0; t < a.T && seen; t += WARP) {
        real p = 0, ds = 0;
        if (t + lane < a.T) {
            struct attention_query of = left[at.whole * a.T + t + lane];
            p = of.p.of(a.scale * dot(a.dk, q + (t + lane) * 3 * a.D, k));
            ds = p * (dot(a.dk, d + (t + lane) * a.D, v) - of.mean);
        }
        int count = up_to_warp(a.T - t);
        add_weighted(a.dk, ds, q + t * 3 * a.D, 3 * a.D, count, lane, dk);
        add_weighted(a.dk, p, d + t * a.D, a.D, count, lane, dv);
    }
    real *to = dqkv + first + a.D + s * 3 * a.D;
#pragma unroll
    for (int i = 0; i < COLUMNS_MAX; i++)
        if (i * WARP + lane < a.dk) {
            put(to + i * WARP + lane, accumulate, a.scale * dk[i]);
            put(to + a.D + i * WARP + lane, accumulate, dv[i]);
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

static void softmax_attention_cuda_forward(const struct call *c, const struct exec *x) {
    struct attention a = attention_of(c);
    LAUNCH(x, attention_forward_kernel, cuda_blocks(a.B * a.heads * a.T, BLOCK_ROWS), dim3(CUDA_THREADS), 0, a,
           tensor_real(c->out[0]));
}

static void softmax_attention_cuda_backward(const struct call *c, const struct exec *x) {
    struct attention a = attention_of(c);
    struct attention_query *left = (struct attention_query *)c->scratch[PASS_BACKWARD];
    dim3 blocks = cuda_blocks(a.B * a.heads * a.T, BLOCK_ROWS);
    if (!c->din[0]) return;
    LAUNCH(x, attention_query_kernel, blocks, dim3(CUDA_THREADS), 0, a, call_dout(c, 0), c->din[0],
           call_accumulates(c, 0), left);
    LAUNCH(x, attention_key_kernel, blocks, dim3(CUDA_THREADS), 0, a, call_dout(c, 0), c->din[0],
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

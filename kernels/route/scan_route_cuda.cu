/* scan_route_cuda.cu - scan_route on CUDA. The equations are in scan_route.c.
 *
 * A thread makes the choice of one state for a few tokens, which share its loads of the dictionary. For the scan, a
 * block computes one sequence, with one thread per state. If several states move to one candidate, this candidate's
 * thread adds them in the order of their indices. Three kernels compute the gradient of the choice. Each computes M
 * again: one for the sum and mean of each softmax, one for ddict (by chunks of tokens), and one for ds. */
#include "core/real_math.h"
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/route/route.h"

#define CHOOSE_TOKENS 8   /* tokens per thread */
#define ROUTE_THREADS 128 /* threads per block */
#define ROUTE_SUMS    8   /* values of k for which a thread sums at a time */
#define DICT_CHUNK    128 /* fewest tokens of a chunk */
#define DICT_CHUNKS   16  /* most chunks */

namespace {

struct route {
    int64_t T, N, K, tokens;
    bool column;
    const real *d[2], *x[2], *dict, *s;
    real *h[2], *top;
    int32_t *choice; /* NULL: each state chooses itself */
};

struct route route_of(const struct call *c) {
    const struct tensor *d = c->in[ROUTE_D];
    struct route r = {};
    r.T = d->dims[1], r.N = d->dims[2], r.tokens = d->dims[0] * d->dims[1];
    r.column = scan_route_attr(c)->form == ROUTE_COLUMN;
    for (int plane = 0; plane < 2; plane++) {
        r.d[plane] = tensor_real(c->in[ROUTE_D + plane]);
        r.x[plane] = tensor_real(c->in[ROUTE_X + plane]);
        r.h[plane] = tensor_real(c->out[ROUTE_H + plane]);
    }
    if (!c->in[ROUTE_DICT]) return r;
    r.K = tensor_cols(c->in[ROUTE_S]);
    r.dict = tensor_real(c->in[ROUTE_DICT]);
    r.s = tensor_real(c->in[ROUTE_S]);
    r.choice = tensor_i32(c->out[ROUTE_CHOICE]);
    r.top = tensor_real(c->out[ROUTE_TOP]);
    return r;
}

struct complex {
    real re, im;
};

/* conj(a) b */
__device__ __forceinline__ struct complex conjugate_times(struct complex a, struct complex b) {
    return {a.re * b.re + a.im * b.im, a.re * b.im - a.im * b.re};
}

__device__ __forceinline__ struct complex times(struct complex a, struct complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

__device__ __forceinline__ struct complex number_at(const real *const planes[2], int64_t e) {
    return {planes[0][e], planes[1][e]};
}

/* Returns h[i] of the previous token. */
__device__ __forceinline__ struct complex state_before(const struct route &r, int64_t token, int64_t i) {
    if (token % r.T == 0) return {(real)(i == 0 && !r.column), 0};
    return {r.h[0][(token - 1) * r.N + i], r.h[1][(token - 1) * r.N + i]};
}

__device__ __forceinline__ real score(const struct route &r, int64_t token, int64_t from, int64_t i) {
    real M = 0;
    for (int64_t k = 0; k < r.K; k++) M = route_score(r.dict[(from * r.K + k) * r.N + i], r.s[token * r.K + k], M);
    return M;
}

/* dP of a state and a candidate is a v.re + b v.im, where v belongs to the candidate. The code subtracts dP of the
 * chosen candidate: this leaves dM unchanged and avoids cancellation if the choice is nearly certain. */
struct soft {
    real a, b, chosen[2]; /* chosen: v of the chosen candidate */
    const real *v[2];     /* NULL: v is h_{-1} = (1, 0, ..., 0) of form row */
};

__device__ __forceinline__ struct complex soft_v(const struct soft &o, int64_t from) {
    if (!o.v[0]) return {(real)(from == 0), 0};
    return number_at(o.v, from);
}

struct gradients {
    real *G[2], *inverse, *mean; /* inverse: 1 / sum of exp(M - top) */
};

__device__ __forceinline__ struct soft soft_at(const struct route &r, const struct gradients &w, int64_t token,
                                               int64_t i) {
    int64_t e = token * r.N + i;
    struct complex d = number_at(r.d, e), u;
    struct soft o = {};
    if (r.column) {
        u = times(d, state_before(r, token, i));
        o.a = u.re, o.b = u.im;
        o.v[0] = w.G[0] + token * r.N, o.v[1] = w.G[1] + token * r.N;
    } else {
        u = conjugate_times({w.G[0][e], w.G[1][e]}, d);
        o.a = u.re, o.b = -u.im;
        if (token % r.T > 0) o.v[0] = r.h[0] + (token - 1) * r.N, o.v[1] = r.h[1] + (token - 1) * r.N;
    }
    struct complex chosen = soft_v(o, r.choice[e]);
    o.chosen[0] = chosen.re, o.chosen[1] = chosen.im;
    return o;
}

__device__ __forceinline__ real dP_of(const struct soft &o, int64_t from) {
    struct complex v = soft_v(o, from);
    return real_fma(v.re - o.chosen[0], o.a, o.b * (v.im - o.chosen[1]));
}

/* Returns dM of state i and the candidate `from`. */
__device__ __forceinline__ real dM_of(const struct route &r, const struct gradients &w, int64_t token, int64_t from,
                                      int64_t i) {
    int64_t e = token * r.N + i;
    real p = real_exp(score(r, token, from, i) - r.top[e]) * w.inverse[e];
    return p * (dP_of(soft_at(r, w, token, i), from) - w.mean[e]);
}

} // namespace

/* --- forward ------------------------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(ROUTE_THREADS) route_choose_kernel(struct route r, int64_t tiles) {
    await_previous();
    int64_t i = (int64_t)(blockIdx.x % tiles) * ROUTE_THREADS + threadIdx.x;
    int64_t first = (int64_t)(blockIdx.x / tiles) * CHOOSE_TOKENS;
    real top[CHOOSE_TOKENS];
    int32_t choice[CHOOSE_TOKENS];
    if (i >= r.N) return;
    for (int64_t from = 0; from < r.N; from++) {
        real M[CHOOSE_TOKENS] = {};
        for (int64_t k = 0; k < r.K; k++) {
            real d = r.dict[(from * r.K + k) * r.N + i];
#pragma unroll
            for (int j = 0; j < CHOOSE_TOKENS; j++) {
                int64_t token = first + j < r.tokens ? first + j : r.tokens - 1;
                M[j] = route_score(d, r.s[token * r.K + k], M[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < CHOOSE_TOKENS; j++)
            if (from == 0 || M[j] > top[j]) top[j] = M[j], choice[j] = (int32_t)from;
    }
#pragma unroll
    for (int j = 0; j < CHOOSE_TOKENS; j++)
        if (first + j < r.tokens) {
            r.choice[(first + j) * r.N + i] = choice[j];
            r.top[(first + j) * r.N + i] = top[j];
        }
}

static __global__ void __launch_bounds__(ROUTE_THREADS) route_forward_kernel(struct route r) {
    await_previous();
    for (int64_t t = 0; t < r.T; t++) {
        int64_t token = (int64_t)blockIdx.x * r.T + t, row = token * r.N;
        for (int64_t i = threadIdx.x; i < r.N; i += ROUTE_THREADS) {
            struct complex h = number_at(r.x, row + i);
            bool scattered = r.column && r.choice;
            for (int64_t from = scattered ? 0 : i; from <= (scattered ? r.N - 1 : i); from++) {
                if (scattered && r.choice[row + from] != i) continue;
                int64_t j = r.column || !r.choice ? from : r.choice[row + from];
                struct complex moved = times(number_at(r.d, row + from), state_before(r, token, j));
                h.re += moved.re;
                h.im += moved.im;
            }
            r.h[0][row + i] = h.re;
            r.h[1][row + i] = h.im;
        }
        __syncthreads();
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

namespace {

/* Gradients of h (input), d and x (outputs; NULL: not wanted). */
struct route_grads {
    const real *dh[2];
    real *dd[2], *dx[2];
    bool add_d[2], add_x[2];
};

} // namespace

static __global__ void __launch_bounds__(ROUTE_THREADS)
    route_backward_kernel(struct route r, struct gradients w, struct route_grads g) {
    await_previous();
    for (int64_t t = r.T - 1; t >= 0; t--) {
        int64_t token = (int64_t)blockIdx.x * r.T + t, row = token * r.N, later = row + r.N;
        for (int64_t i = threadIdx.x; i < r.N; i += ROUTE_THREADS) {
            struct complex G = {g.dh[0][row + i], g.dh[1] ? g.dh[1][row + i] : 0};
            bool scattered = !r.column && r.choice;
            int64_t first = scattered ? 0 : i, last = t == r.T - 1 ? -1 : scattered ? r.N - 1 : i;
            for (int64_t to = first; to <= last; to++) {
                if (scattered && r.choice[later + to] != i) continue;
                int64_t j = r.column && r.choice ? r.choice[later + to] : to;
                struct complex carried =
                    conjugate_times(number_at(r.d, later + to), {w.G[0][later + j], w.G[1][later + j]});
                G.re += carried.re;
                G.im += carried.im;
            }
            w.G[0][row + i] = G.re;
            w.G[1][row + i] = G.im;
            if (g.dx[0]) put(g.dx[0] + row + i, g.add_x[0], G.re);
            if (g.dx[1]) put(g.dx[1] + row + i, g.add_x[1], G.im);
        }
        __syncthreads();
        for (int64_t i = threadIdx.x; i < r.N; i += ROUTE_THREADS) {
            int64_t j = r.choice ? r.choice[row + i] : i, to = r.column ? j : i;
            struct complex h = state_before(r, token, r.column ? i : j);
            struct complex dd = conjugate_times(h, {w.G[0][row + to], w.G[1][row + to]});
            if (g.dd[0]) put(g.dd[0] + row + i, g.add_d[0], dd.re);
            if (g.dd[1]) put(g.dd[1] + row + i, g.add_d[1], dd.im);
        }
    }
}

namespace {

/* Computes `inverse` and `mean` of state e % N at token e / N. */
struct route_soft {
    struct route r;
    struct gradients w;
    __device__ void operator()(int64_t e) const {
        struct quotient q = divide(e, r.N);
        struct soft o = soft_at(r, w, q.whole, q.rest);
        real sum = 0, mean = 0;
        for (int64_t from = 0; from < r.N; from++) {
            real p = real_exp(score(r, q.whole, from, q.rest) - r.top[e]);
            sum += p;
            mean = real_fma(p, dP_of(o, from), mean);
        }
        w.inverse[e] = 1 / sum;
        w.mean[e] = mean / sum;
    }
};

/* Sums the dictionary's gradient over chunks. */
struct route_dict_sum {
    const real *partial;
    real *to;
    int64_t n, chunks;
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        real sum = partial[e];
        for (int64_t chunk = 1; chunk < chunks; chunk++) sum += partial[chunk * n + e];
        put(to + e, accumulate, sum);
    }
};

} // namespace

/* Sums ddict over a chunk of tokens: partial (chunks, N, K, N). A block has one chunk, one candidate and ROUTE_SUMS
 * values of k; a thread has one state that chooses. */
static __global__ void __launch_bounds__(ROUTE_THREADS)
    route_dict_kernel(struct route r, struct gradients w, int64_t chunks, int64_t tiles, real *partial) {
    await_previous();
    struct quotient tile = divide(blockIdx.x, tiles), group = divide(tile.whole, (r.K + ROUTE_SUMS - 1) / ROUTE_SUMS);
    struct quotient from = divide(group.whole, r.N);
    int64_t i = tile.rest * ROUTE_THREADS + threadIdx.x, k = group.rest * ROUTE_SUMS;
    int64_t begin = r.tokens * from.whole / chunks, end = r.tokens * (from.whole + 1) / chunks;
    real sum[ROUTE_SUMS] = {};
    if (i >= r.N) return;
    for (int64_t token = begin; token < end; token++) {
        real dM = dM_of(r, w, token, from.rest, i);
#pragma unroll
        for (int n = 0; n < ROUTE_SUMS; n++)
            if (k + n < r.K) sum[n] = real_fma(r.s[token * r.K + k + n], dM, sum[n]);
    }
#pragma unroll
    for (int n = 0; n < ROUTE_SUMS; n++)
        if (k + n < r.K) partial[((from.whole * r.N + from.rest) * r.K + k + n) * r.N + i] = sum[n];
}

/* Computes ds. A block has one token and ROUTE_SUMS values of k. */
static __global__ void __launch_bounds__(ROUTE_THREADS)
    route_s_kernel(struct route r, struct gradients w, real *ds, bool accumulate) {
    await_previous();
    __shared__ real partial[ROUTE_THREADS / WARP * ROUTE_SUMS];
    struct quotient group = divide(blockIdx.x, (r.K + ROUTE_SUMS - 1) / ROUTE_SUMS);
    int64_t token = group.whole, k = group.rest * ROUTE_SUMS;
    real sum[ROUTE_SUMS] = {};
    for (int64_t i = threadIdx.x; i < r.N; i += ROUTE_THREADS)
        for (int64_t from = 0; from < r.N; from++) {
            real dM = dM_of(r, w, token, from, i);
#pragma unroll
            for (int n = 0; n < ROUTE_SUMS; n++)
                if (k + n < r.K) sum[n] = real_fma(r.dict[(from * r.K + k + n) * r.N + i], dM, sum[n]);
        }
    block_sums(sum, partial);
#pragma unroll
    for (int n = 0; n < ROUTE_SUMS; n++)
        if (threadIdx.x == 0 && k + n < r.K) put(ds + token * r.K + k + n, accumulate, sum[n]);
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

static int64_t dict_chunks(const struct route &r) {
    int64_t chunks = r.tokens / DICT_CHUNK;
    return chunks < 1 ? 1 : chunks > DICT_CHUNKS ? DICT_CHUNKS : chunks;
}

static struct gradients gradients_of(const struct route &r, struct scratch *s, real **partial) {
    struct gradients w = {};
    for (int plane = 0; plane < 2; plane++) w.G[plane] = scratch_reals(s, r.tokens * r.N);
    if (r.K == 0) return w;
    w.inverse = scratch_reals(s, r.tokens * r.N);
    w.mean = scratch_reals(s, r.tokens * r.N);
    *partial = scratch_reals(s, dict_chunks(r) * r.N * r.N * r.K);
    return w;
}

static size_t scan_route_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    real *partial = nullptr;
    if (pass == PASS_BACKWARD) gradients_of(route_of(c), &s, &partial);
    return s.used;
}

static void scan_route_cuda_forward(const struct call *c, const struct exec *x) {
    struct route r = route_of(c);
    int64_t tiles = (r.N + ROUTE_THREADS - 1) / ROUTE_THREADS, groups = (r.tokens + CHOOSE_TOKENS - 1) / CHOOSE_TOKENS;
    if (r.K > 0) LAUNCH(x, route_choose_kernel, dim3((unsigned)(groups * tiles)), dim3(ROUTE_THREADS), 0, r, tiles);
    LAUNCH(x, route_forward_kernel, dim3((unsigned)(r.tokens / r.T)), dim3(ROUTE_THREADS), 0, r);
}

static void scan_route_cuda_backward(const struct call *c, const struct exec *x) {
    struct route r = route_of(c);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    real *partial = nullptr;
    struct gradients w = gradients_of(r, &s, &partial);
    struct route_grads g = {};
    for (int plane = 0; plane < 2; plane++) {
        g.dh[plane] = call_dout(c, ROUTE_H + plane);
        g.dd[plane] = c->din[ROUTE_D + plane];
        g.dx[plane] = c->din[ROUTE_X + plane];
        g.add_d[plane] = call_accumulates(c, ROUTE_D + plane);
        g.add_x[plane] = call_accumulates(c, ROUTE_X + plane);
    }
    LAUNCH(x, route_backward_kernel, dim3((unsigned)(r.tokens / r.T)), dim3(ROUTE_THREADS), 0, r, w, g);
    if (!c->din[ROUTE_DICT] && !c->din[ROUTE_S]) return;
    each_value(c, x, r.tokens * r.N, route_soft{r, w});
    int64_t groups = (r.K + ROUTE_SUMS - 1) / ROUTE_SUMS, tiles = (r.N + ROUTE_THREADS - 1) / ROUTE_THREADS;
    if (c->din[ROUTE_DICT]) {
        int64_t chunks = dict_chunks(r), n = r.N * r.N * r.K;
        LAUNCH(x, route_dict_kernel, dim3((unsigned)(chunks * r.N * groups * tiles)), dim3(ROUTE_THREADS), 0, r, w,
               chunks, tiles, partial);
        each_value(c, x, n, route_dict_sum{partial, c->din[ROUTE_DICT], n, chunks, call_accumulates(c, ROUTE_DICT)});
    }
    if (c->din[ROUTE_S])
        LAUNCH(x, route_s_kernel, dim3((unsigned)(r.tokens * groups)), dim3(ROUTE_THREADS), 0, r, w, c->din[ROUTE_S],
               call_accumulates(c, ROUTE_S));
}

/* Tolerance: equals that of scan_route_cpu, because the same errors occur. */
const struct kernel kernel_scan_route_cuda = {
    .name = "scan_route_cuda",
    .op = &op_scan_route,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 256,
    .workspace = scan_route_cuda_workspace,
    .forward = scan_route_cuda_forward,
    .backward = scan_route_cuda_backward,
};

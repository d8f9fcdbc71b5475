/* scan_dplr_cuda.cu - the diagonal-plus-low-rank homogeneous recurrence on CUDA: a thread block a sequence, from one
 * time step to the next. A thread has every blockDim-th element of the state; the elements meet in scalar products
 * alone, which are sums over the block. Equations: scan_dplr.c. */
#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/lib/cuda.cuh"

namespace {

struct dplr {
    int64_t T, D, r;
    double clip;
    const real *d, *u, *v, *y0;
};

/* Where gradients go, NULL: nowhere. */
struct dplr_gradients {
    real *d, *u, *v, *y0;
    bool add_d, add_u, add_v, add_y0;
};

__device__ __forceinline__ void put_wanted(real *to, int64_t at, bool accumulate, real value) {
    if (to) put(to + at, accumulate, value);
}

/* a . b of D elements, in every thread; `partial` as of block_sum. */
__device__ __forceinline__ real inner(int64_t D, const real *a, const real *b, real *partial) {
    real sum = 0;
    for (int64_t i = threadIdx.x; i < D; i += blockDim.x) sum = real_fma(a[i], b[i], sum);
    return block_sum(sum, partial);
}

} // namespace

static __global__ void __launch_bounds__(CUDA_THREADS) dplr_forward_kernel(struct dplr k, real *y) {
    await_previous();
    DYNAMIC_SHARED(real, before); /* D */
    real *after = before + k.D, *partial = after + k.D;
    int64_t b = blockIdx.x;
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) before[i] = y[b * k.T * k.D + i] = k.y0[b * k.D + i];
    for (int64_t t = 1; t < k.T; t++) {
        int64_t token = b * k.T + t;
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x)
            after[i] = real_fma(k.d[token * k.D + i], before[i], before[i]);
        for (int64_t q = 0; q < k.r; q++) {
            const real *u = k.u + (token * k.r + q) * k.D, *v = k.v + (token * k.r + q) * k.D;
            real z = inner(k.D, v, before, partial);
            for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) after[i] = real_fma(z, u[i], after[i]);
        }
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x)
            before[i] = y[token * k.D + i] = (real)clipped(after[i], before[i], k.clip);
    }
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    dplr_backward_kernel(struct dplr k, const real *y, const real *dy, struct dplr_gradients to) {
    await_previous();
    DYNAMIC_SHARED(real, moved); /* D: the gradient of the step's move */
    real *carried = moved + k.D, *partial = carried + k.D;
    int64_t b = blockIdx.x;
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) carried[i] = 0;
    for (int64_t t = k.T - 1; t > 0; t--) {
        int64_t token = b * k.T + t;
        const real *before = y + (token - 1) * k.D;
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
            real G = carried[i] + dy[token * k.D + i];
            moved[i] = G * (real)clip_slope(before[k.D + i], before[i], k.clip);
            carried[i] = real_fma(k.d[token * k.D + i], moved[i], G);
            put_wanted(to.d, token * k.D + i, to.add_d, moved[i] * before[i]);
        }
        for (int64_t q = 0; q < k.r; q++) {
            int64_t row = (token * k.r + q) * k.D;
            real z = inner(k.D, k.v + row, before, partial), p = inner(k.D, k.u + row, moved, partial);
            for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
                carried[i] = real_fma(p, k.v[row + i], carried[i]);
                put_wanted(to.u, row + i, to.add_u, z * moved[i]);
                put_wanted(to.v, row + i, to.add_v, p * before[i]);
            }
        }
    }
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
        put_wanted(to.y0, b * k.D + i, to.add_y0, carried[i] + dy[b * k.T * k.D + i]);
        put_wanted(to.d, b * k.T * k.D + i, to.add_d, 0);
    }
    for (int64_t i = threadIdx.x; i < k.r * k.D; i += blockDim.x) {
        put_wanted(to.u, b * k.T * k.r * k.D + i, to.add_u, 0);
        put_wanted(to.v, b * k.T * k.r * k.D + i, to.add_v, 0);
    }
}

static struct dplr dplr_of(const struct call *c) {
    int64_t D = c->in[0]->dims[2];
    struct dplr k = {c->in[0]->dims[1],     D,
                     c->in[1]->dims[2] / D, ((const struct flow_attr *)c->attr)->clip,
                     tensor_real(c->in[0]), tensor_real(c->in[1]),
                     tensor_real(c->in[2]), tensor_real(c->in[3])};
    return k;
}

static dim3 dplr_threads(const struct dplr &k) {
    int64_t whole = (k.D + WARP - 1) / WARP * WARP;
    return dim3((unsigned)(whole < CUDA_THREADS ? whole : CUDA_THREADS));
}

static size_t dplr_shared(const struct dplr &k) {
    return (size_t)(2 * k.D + CUDA_THREADS / WARP) * sizeof(real);
}

static bool scan_dplr_cuda_applicable(const struct call *c, const char **why) {
    bool fits = dplr_shared(dplr_of(c)) <= CUDA_SHARED_UNASKED;
    if (!fits) *why = "a state is larger than a block's shared memory";
    return fits;
}

static void scan_dplr_cuda_forward(const struct call *c, const struct exec *x) {
    struct dplr k = dplr_of(c);
    LAUNCH(x, dplr_forward_kernel, dim3((unsigned)c->in[0]->dims[0]), dplr_threads(k), dplr_shared(k), k,
           tensor_real(c->out[0]));
}

static void scan_dplr_cuda_backward(const struct call *c, const struct exec *x) {
    struct dplr k = dplr_of(c);
    struct dplr_gradients to = {c->din[0],
                                c->din[1],
                                c->din[2],
                                c->din[3],
                                call_accumulates(c, 0),
                                call_accumulates(c, 1),
                                call_accumulates(c, 2),
                                call_accumulates(c, 3)};
    LAUNCH(x, dplr_backward_kernel, dim3((unsigned)c->in[0]->dims[0]), dplr_threads(k), dplr_shared(k), k,
           tensor_real(c->out[0]), call_dout(c, 0), to);
}

/* Tolerance: as scan_dplr_cpu. */
const struct kernel kernel_scan_dplr_cuda = {
    .name = "scan_dplr_cuda",
    .op = &op_scan_dplr,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_dplr_cuda_applicable,
    .forward = scan_dplr_cuda_forward,
    .backward = scan_dplr_cuda_backward,
};

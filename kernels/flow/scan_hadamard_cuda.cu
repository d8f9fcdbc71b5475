/* scan_hadamard_cuda.cu - the homogeneous recurrence with a Walsh-Hadamard generator on CUDA: a thread block a
 * sequence, from one time step to the next, the transform in log2 D rounds of sums and differences: the first five by
 * shuffles, within each 32 neighbours, the others in shared memory. Equations: scan_hadamard.c. */
#include <math.h>

#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/lib/cuda.cuh"

namespace {

struct hadamard {
    int64_t T, D;
    real scale; /* 1 / sqrt(D) */
    double clip;
    const real *d, *y0;
};

/* x becomes sqrt(D) H x; each thread has written elements of its own before, and may read any afterwards. */
__device__ __forceinline__ void transform(int64_t D, real *x) {
    int lane = (int)threadIdx.x % WARP;
    for (int64_t i = threadIdx.x; i - lane < D; i += blockDim.x) {
        real own = i < D ? x[i] : 0;
        for (int half = 1; half < WARP && half < D; half *= 2) {
            real other = __shfl_xor_sync(FULL_WARP, own, half);
            own = lane & half ? other - own : own + other;
        }
        if (i < D) x[i] = own;
    }
    __syncthreads();
    for (int64_t half = WARP; half < D; half *= 2) {
        for (int64_t p = threadIdx.x; p < D / 2; p += blockDim.x) {
            int64_t i = (p & -half) * 2 + (p & (half - 1));
            real a = x[i], b = x[i + half];
            x[i] = a + b;
            x[i + half] = a - b;
        }
        __syncthreads();
    }
}

} // namespace

static __global__ void __launch_bounds__(CUDA_THREADS) hadamard_forward_kernel(struct hadamard k, real *y) {
    await_previous();
    DYNAMIC_SHARED(real, state); /* D */
    real *product = state + k.D;
    int64_t b = blockIdx.x;
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) state[i] = y[b * k.T * k.D + i] = k.y0[b * k.D + i];
    for (int64_t t = 1; t < k.T; t++) {
        int64_t at = (b * k.T + t) * k.D;
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) product[i] = k.d[at + i] * state[i];
        transform(k.D, product);
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x)
            state[i] = y[at + i] = (real)clipped(real_fma(k.scale, product[i], state[i]), state[i], k.clip);
    }
}

/* dd, dy0 NULL: not wanted. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    hadamard_backward_kernel(struct hadamard k, const real *y, const real *dy, real *dd, bool add_d, real *dy0,
                             bool add_y0) {
    await_previous();
    DYNAMIC_SHARED(real, carried); /* D */
    real *moved = carried + k.D;
    int64_t b = blockIdx.x;
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) carried[i] = 0;
    for (int64_t t = k.T - 1; t > 0; t--) {
        int64_t at = (b * k.T + t) * k.D;
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
            carried[i] += dy[at + i];
            moved[i] = carried[i] * (real)clip_slope(y[at + i], y[at - k.D + i], k.clip);
        }
        transform(k.D, moved);
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
            real p = k.scale * moved[i];
            carried[i] = real_fma(k.d[at + i], p, carried[i]);
            if (dd) put(dd + at + i, add_d, p * y[at - k.D + i]);
        }
    }
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
        if (dd) put(dd + b * k.T * k.D + i, add_d, 0);
        if (dy0) put(dy0 + b * k.D + i, add_y0, carried[i] + dy[b * k.T * k.D + i]);
    }
}

static struct hadamard hadamard_of(const struct call *c) {
    int64_t D = c->in[0]->dims[2];
    struct hadamard k = {c->in[0]->dims[1],           D,
                         (real)(1 / sqrt((double)D)), ((const struct flow_attr *)c->attr)->clip,
                         tensor_real(c->in[0]),       tensor_real(c->in[1])};
    return k;
}

static dim3 hadamard_threads(const struct hadamard &k) {
    int64_t whole = (k.D + WARP - 1) / WARP * WARP;
    return dim3((unsigned)(whole < CUDA_THREADS ? whole : CUDA_THREADS));
}

static size_t hadamard_shared(const struct hadamard &k) {
    return (size_t)(2 * k.D) * sizeof(real);
}

static bool scan_hadamard_cuda_applicable(const struct call *c, const char **why) {
    bool fits = hadamard_shared(hadamard_of(c)) <= CUDA_SHARED_UNASKED;
    if (!fits) *why = "a state is larger than a block's shared memory";
    return fits;
}

static void scan_hadamard_cuda_forward(const struct call *c, const struct exec *x) {
    struct hadamard k = hadamard_of(c);
    LAUNCH(x, hadamard_forward_kernel, dim3((unsigned)c->in[0]->dims[0]), hadamard_threads(k), hadamard_shared(k), k,
           tensor_real(c->out[0]));
}

static void scan_hadamard_cuda_backward(const struct call *c, const struct exec *x) {
    struct hadamard k = hadamard_of(c);
    LAUNCH(x, hadamard_backward_kernel, dim3((unsigned)c->in[0]->dims[0]), hadamard_threads(k), hadamard_shared(k), k,
           tensor_real(c->out[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0), c->din[1],
           call_accumulates(c, 1));
}

/* Tolerance: as scan_hadamard_cpu. */
const struct kernel kernel_scan_hadamard_cuda = {
    .name = "scan_hadamard_cuda",
    .op = &op_scan_hadamard,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 128,
    .applicable = scan_hadamard_cuda_applicable,
    .forward = scan_hadamard_cuda_forward,
    .backward = scan_hadamard_cuda_backward,
};

/* scan_hadamard_cuda.cu - the homogeneous recurrence with a Walsh-Hadamard generator on CUDA. A thread block computes
 * all time steps of one sequence. The transform has log2 D rounds of sums and differences: the first five by shuffles
 * among 32 neighbours, the others in shared memory. The inputs of a step are loaded some steps ahead (step_ring.cuh).
 * Equations: scan_hadamard.c. */
#include <math.h>

#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/flow/step_ring.cuh"

namespace {

struct hadamard {
    int64_t T, D;
    real scale; /* 1 / sqrt(D) */
    double clip;
    const real *d, *y0;
};

/* Computes x <- sqrt(D) H x. Before it, each thread has written only its own elements; after it, a thread may read
 * any. */
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

template <bool RINGS>
static __global__ void __launch_bounds__(CUDA_THREADS) hadamard_forward_kernel(struct hadamard k, real *y) {
    await_previous();
    DYNAMIC_SHARED(real, state); /* D, the product D; the ring, of d */
    real *product = state + k.D;
    int64_t b = blockIdx.x;
    auto ask = [&](int64_t n, real *slots) { ring_ask_row(k.D, slots, k.d + (b * k.T + n + 1) * k.D); };
    auto step = [&](int64_t n, const real *slots) {
        int64_t at = (b * k.T + n + 1) * k.D;
        const real *d = RINGS ? slots : k.d + at;
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) product[i] = d[i] * state[i];
        transform(k.D, product);
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x)
            state[i] = y[at + i] = (real)clipped(real_fma(k.scale, product[i], state[i]), state[i], k.clip);
    };
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) state[i] = y[b * k.T * k.D + i] = k.y0[b * k.D + i];
    ring_steps<RINGS>(k.T - 1, state + 2 * k.D, k.D, ask, step);
}

/* The rows that a step of backward reads: d, dy, y after the step, and y before it. */
#define BACKWARD_ROWS 4

/* Computes the gradients. dd, dy0 NULL: not wanted. */
template <bool RINGS>
static __global__ void __launch_bounds__(CUDA_THREADS)
    hadamard_backward_kernel(struct hadamard k, const real *y, const real *dy, real *dd, bool add_d, real *dy0,
                             bool add_y0) {
    await_previous();
    DYNAMIC_SHARED(real, carried); /* D, the gradient of the step's move D; the ring */
    real *moved = carried + k.D;
    int64_t b = blockIdx.x;
    auto row = [&](int64_t n, int r) {
        int64_t at = (b * k.T + k.T - 1 - n) * k.D;
        return r == 0 ? k.d + at : r == 1 ? dy + at : r == 2 ? y + at : y + at - k.D;
    };
    auto ask = [&](int64_t n, real *slots) {
        for (int r = 0; r < BACKWARD_ROWS; r++) ring_ask_row(k.D, slots + r * k.D, row(n, r));
    };
    auto step = [&](int64_t n, const real *slots) {
        int64_t at = (b * k.T + k.T - 1 - n) * k.D;
        auto in = [&](int r) { return RINGS ? slots + r * k.D : row(n, r); };
        const real *d = in(0), *gradient = in(1), *after = in(2), *before = in(3);
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
            carried[i] += gradient[i];
            moved[i] = carried[i] * (real)clip_slope(after[i], before[i], k.clip);
        }
        transform(k.D, moved);
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
            real p = k.scale * moved[i];
            carried[i] = real_fma(d[i], p, carried[i]);
            if (dd) put(dd + at + i, add_d, p * before[i]);
        }
    };
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) carried[i] = 0;
    ring_steps<RINGS>(k.T - 1, carried + 2 * k.D, BACKWARD_ROWS * k.D, ask, step);
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
        if (dd) put(dd + b * k.T * k.D + i, add_d, 0);
        if (dy0) put(dy0 + b * k.D + i, add_y0, carried[i] + dy[b * k.T * k.D + i]);
    }
}

static struct hadamard hadamard_of(const struct call *c) {
    int64_t D = c->in[0]->dims[2];
    struct hadamard k = {c->in[0]->dims[1],           D,
                         (real)(1 / sqrt((double)D)), flow_attr(c)->clip,
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
    size_t bytes = hadamard_shared(k);
    bool rings = step_ring_pays(x, k.T - 1, k.D, bytes);
    LAUNCH(x, (rings ? hadamard_forward_kernel<true> : hadamard_forward_kernel<false>),
           dim3((unsigned)c->in[0]->dims[0]), hadamard_threads(k), bytes + (rings ? step_ring_bytes(k.D) : 0), k,
           tensor_real(c->out[0]));
}

static void scan_hadamard_cuda_backward(const struct call *c, const struct exec *x) {
    struct hadamard k = hadamard_of(c);
    size_t bytes = hadamard_shared(k);
    bool rings = step_ring_pays(x, k.T - 1, BACKWARD_ROWS * k.D, bytes);
    LAUNCH(x, (rings ? hadamard_backward_kernel<true> : hadamard_backward_kernel<false>),
           dim3((unsigned)c->in[0]->dims[0]), hadamard_threads(k),
           bytes + (rings ? step_ring_bytes(BACKWARD_ROWS * k.D) : 0), k, tensor_real(c->out[0]), call_dout(c, 0),
           c->din[0], call_accumulates(c, 0), c->din[1], call_accumulates(c, 1));
}

/* Tolerance: each step rounds log2 D + 2 times, and older errors grow like the state itself. */
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

/* scan_dplr_cuda.cu - the diagonal-plus-low-rank homogeneous recurrence on CUDA. A thread block computes all time steps
 * of one sequence; a thread has every blockDim-th element of the state. The elements interact only in scalar products,
 * which are sums over the block. These products are independent, so several are computed at the same time. The inputs
 * of a step are loaded some steps ahead (step_ring.cuh). Equations: scan_dplr.c. */
#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/flow/step_ring.cuh"

#define INNER 4 /* pairs of vectors u and v whose scalar products are summed at the same time */

namespace {

struct dplr {
    int64_t T, D, r;
    double clip;
    const real *d, *u, *v, *y0;
};

/* Where gradients are written; NULL: that gradient is not wanted. */
struct dplr_gradients {
    real *d, *u, *v, *y0;
    bool add_d, add_u, add_v, add_y0;
};

__device__ __forceinline__ void put_wanted(real *to, int64_t at, bool accumulate, real value) {
    if (to) put(to + at, accumulate, value);
}

/* Returns how many pairs, from q on, are summed together. */
__device__ __forceinline__ int together(const struct dplr &k, int64_t q) {
    return k.r - q < INNER ? (int)(k.r - q) : INNER;
}

} // namespace

template <bool RINGS>
static __global__ void __launch_bounds__(CUDA_THREADS) dplr_forward_kernel(struct dplr k, real *y) {
    await_previous();
    DYNAMIC_SHARED(real, before); /* D, the state after the step D, sums of warps; the ring, of d, u and v */
    real *after = before + k.D, *partial = after + k.D;
    int64_t b = blockIdx.x;
    auto row = [&](int64_t n, int64_t r) { /* d, then u, then v */
                                           int64_t token = b * k.T + n + 1;
                                           if (r == 0) return k.d + token * k.D;
                                           return r <= k.r ? k.u + (token * k.r + r - 1) * k.D
                                                           : k.v + (token * k.r + r - 1 - k.r) * k.D;
    };
    auto ask = [&](int64_t n, real *slots) {
        for (int64_t r = 0; r <= 2 * k.r; r++) ring_ask_row(k.D, slots + r * k.D, row(n, r));
    };
    auto step = [&](int64_t n, const real *slots) {
        auto in = [&](int64_t r) { return RINGS ? slots + r * k.D : row(n, r); };
        const real *d = in(0);
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) after[i] = real_fma(d[i], before[i], before[i]);
        for (int64_t q = 0; q < k.r; q += INNER) {
            int count = together(k, q);
            const real *u = in(1 + q), *v = in(1 + k.r + q);
            real z[INNER] = {};
            for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x)
                for (int j = 0; j < INNER; j++)
                    if (j < count) z[j] = real_fma(v[j * k.D + i], before[i], z[j]);
            block_sums(z, partial);
            for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
                real sum = after[i];
                for (int j = 0; j < INNER; j++)
                    if (j < count) sum = real_fma(z[j], u[j * k.D + i], sum);
                after[i] = sum;
            }
        }
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x)
            before[i] = y[(b * k.T + n + 1) * k.D + i] = (real)clipped(after[i], before[i], k.clip);
    };
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) before[i] = y[b * k.T * k.D + i] = k.y0[b * k.D + i];
    ring_steps<RINGS>(k.T - 1, partial + INNER * CUDA_THREADS / WARP, (1 + 2 * k.r) * k.D, ask, step);
}

template <bool RINGS>
static __global__ void __launch_bounds__(CUDA_THREADS)
    dplr_backward_kernel(struct dplr k, const real *y, const real *dy, struct dplr_gradients to) {
    await_previous();
    DYNAMIC_SHARED(real, moved); /* D: gradients of the step's move and of the state D, sums of warps, the ring */
    real *carried = moved + k.D, *partial = carried + k.D;
    int64_t b = blockIdx.x;
    auto row = [&](int64_t n, int64_t r) { /* d, dy, y after the step and before it, then u, then v */
                                           int64_t token = b * k.T + k.T - 1 - n;
                                           if (r < 4)
                                               return (r == 0 ? k.d : r == 1 ? dy : r == 2 ? y : y - k.D) + token * k.D;
                                           return r < 4 + k.r ? k.u + (token * k.r + r - 4) * k.D
                                                              : k.v + (token * k.r + r - 4 - k.r) * k.D;
    };
    auto ask = [&](int64_t n, real *slots) {
        for (int64_t r = 0; r < 4 + 2 * k.r; r++) ring_ask_row(k.D, slots + r * k.D, row(n, r));
    };
    auto step = [&](int64_t n, const real *slots) {
        int64_t token = b * k.T + k.T - 1 - n;
        auto in = [&](int64_t r) { return RINGS ? slots + r * k.D : row(n, r); };
        const real *d = in(0), *gradient = in(1), *after = in(2), *before = in(3);
        for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
            real G = carried[i] + gradient[i];
            moved[i] = G * (real)clip_slope(after[i], before[i], k.clip);
            carried[i] = real_fma(d[i], moved[i], G);
            put_wanted(to.d, token * k.D + i, to.add_d, moved[i] * before[i]);
        }
        for (int64_t q = 0; q < k.r; q += INNER) {
            int count = together(k, q);
            int64_t first = (token * k.r + q) * k.D;
            const real *u = in(4 + q), *v = in(4 + k.r + q);
            real sums[2 * INNER] = {}, *z = sums, *p = sums + INNER;
            for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x)
                for (int j = 0; j < INNER; j++)
                    if (j < count) {
                        z[j] = real_fma(v[j * k.D + i], before[i], z[j]);
                        p[j] = real_fma(u[j * k.D + i], moved[i], p[j]);
                    }
            block_sums(sums, partial);
            for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) {
                real sum = carried[i];
                for (int j = 0; j < INNER; j++)
                    if (j < count) {
                        sum = real_fma(p[j], v[j * k.D + i], sum);
                        put_wanted(to.u, first + j * k.D + i, to.add_u, z[j] * moved[i]);
                        put_wanted(to.v, first + j * k.D + i, to.add_v, p[j] * before[i]);
                    }
                carried[i] = sum;
            }
        }
    };
    for (int64_t i = threadIdx.x; i < k.D; i += blockDim.x) carried[i] = 0;
    ring_steps<RINGS>(k.T - 1, partial + 2 * INNER * CUDA_THREADS / WARP, (4 + 2 * k.r) * k.D, ask, step);
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
                     c->in[1]->dims[2] / D, flow_attr(c)->clip,
                     tensor_real(c->in[0]), tensor_real(c->in[1]),
                     tensor_real(c->in[2]), tensor_real(c->in[3])};
    return k;
}

static dim3 dplr_threads(const struct dplr &k) {
    int64_t whole = (k.D + WARP - 1) / WARP * WARP;
    return dim3((unsigned)(whole < CUDA_THREADS ? whole : CUDA_THREADS));
}

/* Returns the bytes of shared memory that both passes need, without the ring. */
static size_t dplr_shared(const struct dplr &k) {
    return (size_t)(2 * k.D + 2 * INNER * CUDA_THREADS / WARP) * sizeof(real);
}

static bool scan_dplr_cuda_applicable(const struct call *c, const char **why) {
    bool fits = dplr_shared(dplr_of(c)) <= CUDA_SHARED_UNASKED;
    if (!fits) *why = "a state is larger than a block's shared memory";
    return fits;
}

static void scan_dplr_cuda_forward(const struct call *c, const struct exec *x) {
    struct dplr k = dplr_of(c);
    int64_t values = (1 + 2 * k.r) * k.D;
    bool rings = step_ring_pays(x, k.T - 1, values, dplr_shared(k));
    LAUNCH(x, (rings ? dplr_forward_kernel<true> : dplr_forward_kernel<false>), dim3((unsigned)c->in[0]->dims[0]),
           dplr_threads(k), dplr_shared(k) + (rings ? step_ring_bytes(values) : 0), k, tensor_real(c->out[0]));
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
    int64_t values = (4 + 2 * k.r) * k.D;
    bool rings = step_ring_pays(x, k.T - 1, values, dplr_shared(k));
    LAUNCH(x, (rings ? dplr_backward_kernel<true> : dplr_backward_kernel<false>), dim3((unsigned)c->in[0]->dims[0]),
           dplr_threads(k), dplr_shared(k) + (rings ? step_ring_bytes(values) : 0), k, tensor_real(c->out[0]),
           call_dout(c, 0), to);
}

/* Tolerance: each step adds the rounding errors of two successive products, and older errors grow like the state
 * itself. */
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

/* optimiser_cuda.cu - step_begin and adamw on CUDA. What changes from step to step is read from the state in device
 * memory, so that an update can be captured once and replayed. The equations are in optimiser.c. */
#include "kernels/train/optimiser.h"

#include "core/real_math.h"
#include "kernels/lib/cuda.cuh"

/* --- step_begin --------------------------------------------------------------------------------------------------- */

#define NORM_ELEMENTS 4096 /* of one block's partial sum of squares */

/* A block's sum of squares, and the step's scalars from those of all. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    begin_kernel(int64_t n, const real *grad, double *partial, unsigned *counter, const real *loss,
                 struct step_attr attr, struct step_state *state) {
    __shared__ double warps[CUDA_THREADS / WARP];
    int64_t begin = (int64_t)blockIdx.x * NORM_ELEMENTS, end = begin + NORM_ELEMENTS < n ? begin + NORM_ELEMENTS : n;
    double sum = 0;
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x; i < end; i += CUDA_THREADS) sum += (double)grad[i] * (double)grad[i];
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
    if (!last_block(counter, gridDim.x)) return;
    sum = 0;
    for (int i = (int)threadIdx.x; i < (int)gridDim.x; i += CUDA_THREADS) sum += later_load(partial + i);
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0) begin_step(state, &attr, (double)*loss, sum);
}

static int64_t norm_blocks(const struct call *c) {
    return (tensor_count(c->in[1]) + NORM_ELEMENTS - 1) / NORM_ELEMENTS;
}

static size_t step_begin_cuda_workspace(const struct call *c, enum pass pass) {
    return pass == PASS_FORWARD ? (size_t)norm_blocks(c) * sizeof(double) : 0;
}

static void step_begin_cuda_forward(const struct call *c, const struct exec *x) {
    double *partial = (double *)c->scratch[PASS_FORWARD];
    LAUNCH(x, begin_kernel, dim3((unsigned)norm_blocks(c)), dim3(CUDA_THREADS), 0, tensor_count(c->in[1]),
           tensor_real(c->in[1]), partial, x->place->cuda->counters, tensor_real(c->in[0]),
           *(const struct step_attr *)c->attr, x->state);
}

/* --- adamw -------------------------------------------------------------------------------------------------------- */

#define UPDATE_ELEMENTS (4 * CUDA_THREADS) /* of one block */
#define SEGMENTS        64                 /* of one launch: parameters of a kernel go up to 4096 bytes */

namespace {

/* What one step's update needs of the state, worked out once. */
struct update_scalars {
    struct adamw_scalars k;
    double lr;
    bool frozen;
};

/* The attributes without the segments, which lie in host memory. */
struct update_rates {
    double beta1, beta2, eps;
};

struct segment_list {
    int n;
    int64_t begin, end; /* of the flat array: from the first to the last */
    struct adamw_segment of[SEGMENTS];
};

struct update_block {
    real *w, *m1, *m2;
    const real *grad;
};

} // namespace

/* The scalars of this step; with them the count of steps may move on, as nothing behind reads the state. */
static __global__ void update_scalars_kernel(struct adamw_attr attr, struct step_state *state,
                                             struct update_scalars *scalars) {
    *scalars = {adamw_scalars(&attr, state), state->lr, state->frozen != 0};
    state->step++;
}

/* W elements from i on, in the arithmetic of the CPU's twin. */
template <int W>
static __device__ __forceinline__ void update(const struct update_block &u, int64_t i, const struct update_rates &a,
                                              const struct update_scalars &s, const struct adamw_segment &of) {
    real scale_g = (real)s.k.gradient, rate = (real)(s.k.rate * of.rate), root = (real)s.k.root, eps = (real)a.eps;
    real b1 = (real)a.beta1, b2 = (real)a.beta2, rest1 = (real)(1 - a.beta1), rest2 = (real)(1 - a.beta2);
    real keep = (real)(1 - s.lr * of.rate * of.decay);
    lanes<W> w = load_lanes<W>(u.w + i), m1 = load_lanes<W>(u.m1 + i), m2 = load_lanes<W>(u.m2 + i);
    lanes<W> grad = load_lanes<W>(u.grad + i);
    for (int k = 0; k < W; k++) {
        real g = grad.v[k] * scale_g;
        m1.v[k] = real_fma(b1, m1.v[k], rest1 * g);
        m2.v[k] = real_fma(b2, m2.v[k], rest2 * g * g);
        w.v[k] = w.v[k] * keep - rate * m1.v[k] / real_fma(real_sqrt(m2.v[k]), root, eps);
    }
    store_lanes<W>(u.m1 + i, m1);
    store_lanes<W>(u.m2 + i, m2);
    store_lanes<W>(u.w + i, w);
}

/* A thread has four elements of the flat array, of which a segment has all, some or none. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    update_kernel(struct segment_list list, struct update_block u, struct update_rates a,
                  const struct update_scalars *scalars) {
    struct update_scalars s = *scalars;
    int64_t block = list.begin / 4 * 4 + (int64_t)blockIdx.x * UPDATE_ELEMENTS, from = block + 4 * (int)threadIdx.x;
    for (int k = 0; k < list.n && !s.frozen; k++) {
        int64_t begin = list.of[k].offset, end = begin + list.of[k].count;
        if (end <= block || begin >= block + UPDATE_ELEMENTS) continue;
        if (begin <= from && from + 4 <= end) {
            update<4>(u, from, a, s, list.of[k]);
            continue;
        }
        for (int64_t i = from; i < from + 4; i++)
            if (i >= begin && i < end) update<1>(u, i, a, s, list.of[k]);
    }
}

static struct segment_list segments_from(const struct adamw_attr *a, int first) {
    struct segment_list list = {};
    for (int s = first; s < a->n_segments && s < first + SEGMENTS; s++)
        if (a->segments[s].count) list.of[list.n++] = a->segments[s];
    if (list.n == 0) return list;
    list.begin = list.of[0].offset;
    list.end = list.of[list.n - 1].offset + list.of[list.n - 1].count;
    return list;
}

static size_t adamw_cuda_workspace(const struct call *, enum pass pass) {
    return pass == PASS_FORWARD ? sizeof(struct update_scalars) : 0;
}

static void adamw_cuda_forward(const struct call *c, const struct exec *x) {
    const struct adamw_attr *a = (const struct adamw_attr *)c->attr;
    struct update_scalars *scalars = (struct update_scalars *)c->scratch[PASS_FORWARD];
    struct update_block u = {tensor_real(c->in[0]), tensor_real(c->in[2]), tensor_real(c->in[3]),
                             tensor_real(c->in[1])};
    struct update_rates rates = {a->beta1, a->beta2, a->eps};
    struct adamw_attr numbers = *a;
    numbers.segments = nullptr; /* the host's */
    LAUNCH(x, update_scalars_kernel, dim3(1), dim3(1), 0, numbers, x->state, scalars);
    for (int first = 0; first < a->n_segments; first += SEGMENTS) {
        struct segment_list list = segments_from(a, first);
        if (list.n == 0) continue;
        int64_t n = list.end - list.begin / 4 * 4;
        LAUNCH(x, update_kernel, cuda_blocks(n, UPDATE_ELEMENTS), dim3(CUDA_THREADS), 0, list, u, rates, scalars);
    }
}

/* Tolerance: sums in double of 16 squares a thread, then of at most 256: invisible in float, half of them in the root
 * in double. */
const struct kernel kernel_step_begin_cuda = {
    .name = "step_begin_cuda",
    .op = &op_step_begin,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = REAL_IS_DOUBLE ? 32 : 4,
    .workspace = step_begin_cuda_workspace,
    .forward = step_begin_cuda_forward,
};

/* Tolerance: a dozen roundings, none of them cancelling more than w against its small update. */
const struct kernel kernel_adamw_cuda = {
    .name = "adamw_cuda",
    .op = &op_adamw,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 16,
    .workspace = adamw_cuda_workspace,
    .forward = adamw_cuda_forward,
};

/* optimiser_cuda.cu - step_begin and adamw on CUDA. What changes from step to step is read from the state in device
 * memory, so that an update can be captured once and replayed. The equations are in optimiser.c. */
#include "kernels/train/optimiser.h"

#include "core/real_math.h"
#include "kernels/lib/cuda.cuh"

/* --- step_begin --------------------------------------------------------------------------------------------------- */

#define NORM_ELEMENTS 4096 /* of one block's partial sum of squares */

/* A block's sum of squares, and the step's scalars from the sums of all blocks. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    begin_kernel(int64_t n, const real *grad, double *partial, unsigned *counter, const real *loss,
                 struct step_attr attr, struct step_state *state) {
    await_previous();
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
           tensor_real(c->in[1]), partial, x->place->cuda->now.counters, tensor_real(c->in[0]), *step_attr(c),
           x->state);
}

/* --- adamw -------------------------------------------------------------------------------------------------------- */

#define UPDATE_ELEMENTS (4 * CUDA_THREADS) /* of a block at a time */
#define UPDATE_BLOCKS   512 /* at most: each works the scalars out, two powers in double, slow on small devices */
#define SEGMENTS        64  /* of one launch: parameters of a kernel go up to 4096 bytes */

namespace {

/* Values of the step state that one update needs. */
struct update_scalars {
    struct adamw_scalars k;
    double lr;
    bool frozen;
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

/* W elements from i on, in the arithmetic of the CPU's twin. */
template <int W>
static __device__ __forceinline__ void update(const struct update_block &u, int64_t i, const struct adamw_attr &a,
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

/* The block's elements from `block` on: a thread has four, of which a segment has all, some or none. */
static __device__ __forceinline__ void update_elements(const struct segment_list &list, const struct update_block &u,
                                                       int64_t block, const struct adamw_attr &a,
                                                       const struct update_scalars &s) {
    int64_t from = block + 4 * (int)threadIdx.x;
    for (int k = 0; k < list.n; k++) {
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

/* Updates elements. Only the step's last launch has a counter: its last block counts the step, because no other block
 * reads the state any more. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    update_kernel(struct segment_list list, struct update_block u, struct adamw_attr a, struct step_state *state,
                  unsigned *counter) {
    await_previous();
    __shared__ struct update_scalars shared;
    if (threadIdx.x == 0) shared = {adamw_scalars(&a, state), state->lr, state->frozen != 0};
    __syncthreads();
    struct update_scalars s = shared;
    int64_t block = list.begin / 4 * 4 + (int64_t)blockIdx.x * UPDATE_ELEMENTS;
    for (; block < list.end && !s.frozen; block += (int64_t)gridDim.x * UPDATE_ELEMENTS)
        update_elements(list, u, block, a, s);
    if (counter && last_block(counter, gridDim.x) && threadIdx.x == 0) state->step++;
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

/* Launches once if there is no segment, to count the step. */
static void adamw_cuda_forward(const struct call *c, const struct exec *x) {
    const struct adamw_attr *a = adamw_attr(c);
    struct update_block u = {tensor_real(c->in[0]), tensor_real(c->in[2]), tensor_real(c->in[3]),
                             tensor_real(c->in[1])};
    struct adamw_attr numbers = *a;
    numbers.segments = nullptr; /* the host's */
    for (int first = 0; first == 0 || first < a->n_segments; first += SEGMENTS) {
        struct segment_list list = segments_from(a, first);
        bool last = first + SEGMENTS >= a->n_segments;
        if (list.n == 0 && !last) continue;
        int64_t blocks = (list.end - list.begin / 4 * 4 + UPDATE_ELEMENTS - 1) / UPDATE_ELEMENTS;
        if (blocks > UPDATE_BLOCKS) blocks = UPDATE_BLOCKS;
        LAUNCH(x, update_kernel, dim3(blocks > 0 ? (unsigned)blocks : 1), dim3(CUDA_THREADS), 0, list, u, numbers,
               x->state, last ? x->place->cuda->now.counters : nullptr);
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
    .forward = adamw_cuda_forward,
};

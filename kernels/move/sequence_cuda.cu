/* sequence_cuda.cu - pool and reverse on CUDA: one value per thread; neighbouring threads have neighbouring columns.
 * Equations: sequence.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/move/move.h"

namespace {

/* x (B,T,D); lengths NULL: all rows are in use. */
struct sequences {
    int64_t B, T, D;
    const int32_t *lengths;
    __device__ int64_t length(int64_t b) const {
        return lengths ? lengths[b] : T;
    }
};

} // namespace

static struct sequences sequences_of(const struct call *c) {
    const struct tensor *x = c->in[0];
    return {x->dims[0], x->dims[1], x->dims[2], c->in[1] ? tensor_i32(c->in[1]) : nullptr};
}

/* --- pool --------------------------------------------------------------------------------------------------------- */

/* Like in the reference, the weight of a row is rounded to real before it is used, and the sum is in double. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    pool_kernel(struct sequences s, bool last, const real *x, real *y) {
    await_previous();
    int64_t i = cuda_index();
    if (i >= s.B * s.D) return;
    struct quotient at = divide(i, s.D);
    int64_t n = s.length(at.whole);
    const real *rows = x + at.whole * s.T * s.D + at.rest;
    double sum = 0, weight = last ? 1 : (double)(1 / (real)n);
    for (int64_t t = last && n > 0 ? n - 1 : 0; t < n; t++) sum += weight * (double)rows[t * s.D];
    y[i] = (real)sum;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    pool_gradient_kernel(struct sequences s, bool last, const real *dy, real *dx, bool accumulate) {
    await_previous();
    int64_t i = cuda_index();
    if (i >= s.B * s.T * s.D) return;
    struct quotient row = divide(i, s.D), at = divide(row.whole, s.T);
    int64_t n = s.length(at.whole);
    real weight = at.rest >= n ? 0 : last ? (real)(at.rest == n - 1) : 1 / (real)n;
    put(dx + i, accumulate, weight * dy[at.whole * s.D + row.rest]);
}

static bool pools_last(const struct call *c) {
    return pool_attr(c)->how == POOL_LAST;
}

static void pool_cuda_forward(const struct call *c, const struct exec *x) {
    LAUNCH(x, pool_kernel, cuda_blocks(tensor_count(c->out[0]), CUDA_THREADS), dim3(CUDA_THREADS), 0, sequences_of(c),
           pools_last(c), tensor_real(c->in[0]), tensor_real(c->out[0]));
}

static void pool_cuda_backward(const struct call *c, const struct exec *x) {
    if (!c->din[0]) return;
    LAUNCH(x, pool_gradient_kernel, cuda_blocks(tensor_count(c->in[0]), CUDA_THREADS), dim3(CUDA_THREADS), 0,
           sequences_of(c), pools_last(c), call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

/* --- reverse ------------------------------------------------------------------------------------------------------ */

/* to (+)= the rows of `from` in reverse order. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    reverse_kernel(struct sequences s, const real *from, real *to, bool accumulate) {
    await_previous();
    int64_t i = cuda_index();
    if (i >= s.B * s.T * s.D) return;
    struct quotient row = divide(i, s.D), at = divide(row.whole, s.T);
    int64_t n = s.length(at.whole), t = at.rest < n ? n - 1 - at.rest : at.rest;
    put(to + i, accumulate, from[(at.whole * s.T + t) * s.D + row.rest]);
}

static void reverse_rows(const struct call *c, const struct exec *x, const real *from, real *to, bool accumulate) {
    LAUNCH(x, reverse_kernel, cuda_blocks(tensor_count(c->in[0]), CUDA_THREADS), dim3(CUDA_THREADS), 0, sequences_of(c),
           from, to, accumulate);
}

static void reverse_cuda_forward(const struct call *c, const struct exec *x) {
    reverse_rows(c, x, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void reverse_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0]) reverse_rows(c, x, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

const struct kernel kernel_pool_cuda = {
    .name = "pool_cuda",
    .op = &op_pool,
    .device = DEVICE_CUDA,
    .forward = pool_cuda_forward,
    .backward = pool_cuda_backward,
};

const struct kernel kernel_reverse_cuda = {
    .name = "reverse_cuda",
    .op = &op_reverse,
    .device = DEVICE_CUDA,
    .forward = reverse_cuda_forward,
    .backward = reverse_cuda_backward,
};

/* linear_slices_cuda.cu - linear_slices (linear_slices.c) on CUDA, with one value per thread, because slices are short.
 * The gradient of the weights is summed in chunks of rows, and then over the chunks in order. */
#include "kernels/dense/dense.h"
#include "kernels/lib/cuda.cuh"

namespace {

/* Computes y. x (rows,J m), w (J,m), y (rows,J). */
struct slices_forward {
    const real *x, *w;
    real *y;
    int64_t J, m;
    __device__ void operator()(int64_t e) const {
        const real *from = x + e * m, *weight = w + divide(e, J).rest * m;
        real sum = 0;
        for (int64_t k = 0; k < m; k++) sum = real_fma(weight[k], from[k], sum);
        y[e] = sum;
    }
};

struct slices_dx {
    const real *dy, *w;
    real *dx;
    int64_t D, m;
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        put(dx + e, accumulate, w[divide(e, D).rest] * dy[divide(e, m).whole]);
    }
};

struct slices_weight_term {
    const real *x, *dy;
    int64_t m;
    __device__ real operator()(int64_t, int64_t e) const {
        return dy[divide(e, m).whole] * x[e];
    }
};

} // namespace

static void linear_slices_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]),
               slices_forward{tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0]), c->in[1]->dims[0],
                              tensor_cols(c->in[1])});
}

static size_t linear_slices_cuda_workspace(const struct call *c, enum pass pass) {
    return pass == PASS_FORWARD ? 0 : cuda_column_sums_bytes(tensor_rows(c->in[0]), tensor_cols(c->in[0]));
}

static void linear_slices_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]);
    if (c->din[0])
        each_value(c, x, rows * D,
                   slices_dx{call_dout(c, 0), tensor_real(c->in[1]), c->din[0], D, m, call_accumulates(c, 0)});
    if (c->din[1])
        cuda_column_sums(c, x, rows, D, slices_weight_term{tensor_real(c->in[0]), call_dout(c, 0), m}, c->din[1],
                         call_accumulates(c, 1), (real *)c->scratch[PASS_BACKWARD]);
}

/* Tolerance: sums of m products and sums over rows are in working precision. */
const struct kernel kernel_linear_slices_cuda = {
    .name = "linear_slices_cuda",
    .op = &op_linear_slices,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = linear_slices_cuda_workspace,
    .forward = linear_slices_cuda_forward,
    .backward = linear_slices_cuda_backward,
};

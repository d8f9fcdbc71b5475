/* linear_blocks_cuda.cu - linear_blocks (linear_blocks.c) on CUDA, with one value per thread, because blocks are small.
 * The gradient of the weights is summed in chunks of rows, and then over the chunks in order. */
#include "kernels/dense/dense.h"
#include "kernels/lib/cuda.cuh"

namespace {

/* Computes y. Rows of x and y have C = N m values; w is (C,m), with row k*m + j for input j of block k. */
struct blocks_forward {
    const real *x, *w;
    real *y;
    int64_t C, m;
    __device__ void operator()(int64_t e) const {
        struct quotient at = divide(e, C), block = divide(at.rest, m);
        const real *from = x + at.whole * C + block.whole * m, *weight = w + block.whole * m * m + block.rest;
        real sum = 0;
        for (int64_t j = 0; j < m; j++) sum = real_fma(weight[j * m], from[j], sum);
        y[e] = sum;
    }
};

struct blocks_dx {
    const real *dy, *w;
    real *dx;
    int64_t C, m;
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        struct quotient at = divide(e, C);
        const real *from = dy + at.whole * C + divide(at.rest, m).whole * m, *weight = w + at.rest * m;
        real sum = 0;
        for (int64_t i = 0; i < m; i++) sum = real_fma(weight[i], from[i], sum);
        put(dx + e, accumulate, sum);
    }
};

/* The terms of dw. Columns are the C m weights; the term of row r and column e*m + i is dy[r][block of e, i]
 * x[r][e]. */
struct blocks_weight_term {
    const real *x, *dy;
    int64_t C, m;
    __device__ real operator()(int64_t r, int64_t at) const {
        struct quotient weight = divide_narrow(at - r * C * m, m);
        int64_t first = divide_narrow(weight.whole, m).whole * m;
        return dy[r * C + first + weight.rest] * x[r * C + weight.whole];
    }
};

} // namespace

/* Indices of weights are divided as 32-bit numbers. */
static bool linear_blocks_cuda_applicable(const struct call *c, const char **why) {
    bool fits = tensor_count(c->in[1]) <= UINT32_MAX;
    if (!fits) *why = "weights go up to 4294967295";
    return fits;
}

static void linear_blocks_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]),
               blocks_forward{tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0]),
                              tensor_cols(c->in[0]), tensor_cols(c->in[1])});
}

static size_t linear_blocks_cuda_workspace(const struct call *c, enum pass pass) {
    return pass == PASS_FORWARD ? 0 : cuda_column_sums_bytes(tensor_rows(c->in[0]), tensor_count(c->in[1]));
}

static void linear_blocks_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]);
    if (c->din[0])
        each_value(c, x, rows * C,
                   blocks_dx{call_dout(c, 0), tensor_real(c->in[1]), c->din[0], C, m, call_accumulates(c, 0)});
    if (c->din[1])
        cuda_column_sums(c, x, rows, C * m, blocks_weight_term{tensor_real(c->in[0]), call_dout(c, 0), C, m}, c->din[1],
                         call_accumulates(c, 1), (real *)c->scratch[PASS_BACKWARD]);
}

/* Tolerance: sums over a block and over rows are in working precision. */
const struct kernel kernel_linear_blocks_cuda = {
    .name = "linear_blocks_cuda",
    .op = &op_linear_blocks,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .applicable = linear_blocks_cuda_applicable,
    .workspace = linear_blocks_cuda_workspace,
    .forward = linear_blocks_cuda_forward,
    .backward = linear_blocks_cuda_backward,
};

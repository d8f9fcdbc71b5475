/* rows_cuda.cu - bias, scale and repeat_rows (rows.c) on CUDA. A thread computes four elements, which may be in
 * different rows. Sums over rows have two stages. */
#include "kernels/dense/dense.h"
#include "kernels/lib/cuda.cuh"

namespace {

enum row_rule { ROW_ADD, ROW_MUL, ROW_COPY };

/* Computes y[r][c] (+)= x[r][c] + v[c], or x[r][c] * v[c], or v[c] (then x is not read). There are C columns. */
template <row_rule RULE> struct over_rows {
    const real *x, *v;
    real *y;
    int64_t C;
    bool accumulate;

    template <int W> __device__ void run(int64_t i) const {
        int64_t column = divide(i, C).rest;
        lanes<W> u = {};
        if constexpr (RULE != ROW_COPY) u = load_lanes<W>(x + i);
        for (int k = 0; k < W; k++) {
            real w = v[column];
            if constexpr (RULE == ROW_ADD) u.v[k] += w;
            if constexpr (RULE == ROW_MUL) u.v[k] *= w;
            if constexpr (RULE == ROW_COPY) u.v[k] = w;
            column = column + 1 < C ? column + 1 : 0;
        }
        put_lanes<W>(y + i, accumulate, u);
    }
};

/* The terms of scale's ds. */
struct product_term {
    const real *a, *b;
    __device__ real operator()(int64_t, int64_t i) const {
        return a[i] * b[i];
    }
};

} // namespace

template <row_rule RULE> static void rows_cuda_forward(const struct call *c, const struct exec *x) {
    const real *from = RULE == ROW_COPY ? nullptr : tensor_real(c->in[0]), *v = tensor_real(c->in[c->n_in - 1]);
    each(c, x, tensor_count(c->out[0]),
         over_rows<RULE>{from, v, tensor_real(c->out[0]), tensor_cols(c->out[0]), false});
}

static size_t rows_cuda_workspace(const struct call *c, enum pass pass) {
    return pass == PASS_FORWARD ? 0 : cuda_column_sums_bytes(tensor_rows(c->out[0]), tensor_cols(c->out[0]));
}

template <row_rule RULE> static void rows_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->out[0]), C = tensor_cols(c->out[0]);
    int vector = c->n_in - 1;
    const real *dy = call_dout(c, 0);
    real *dv = c->din[vector], *scratch = (real *)c->scratch[PASS_BACKWARD];
    bool add = call_accumulates(c, vector);
    if (dv && RULE == ROW_MUL)
        cuda_column_sums(c, x, rows, C, product_term{dy, tensor_real(c->in[0])}, dv, add, scratch);
    else if (dv)
        cuda_column_sums(c, x, rows, C, matrix_term{dy}, dv, add, scratch);
    if (RULE == ROW_COPY || !c->din[0]) return;
    if (RULE == ROW_MUL)
        each(c, x, rows * C, over_rows<ROW_MUL>{dy, tensor_real(c->in[1]), c->din[0], C, call_accumulates(c, 0)});
    else
        each(c, x, rows * C, passed_on{dy, c->din[0], call_accumulates(c, 0)});
}

/* Tolerance of all three: forward is exact; sums over R rows in working precision have errors of about sqrt(R)
 * units. */
const struct kernel kernel_bias_cuda = {
    .name = "bias_cuda",
    .op = &op_bias,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = rows_cuda_workspace,
    .forward = rows_cuda_forward<ROW_ADD>,
    .backward = rows_cuda_backward<ROW_ADD>,
};

const struct kernel kernel_scale_cuda = {
    .name = "scale_cuda",
    .op = &op_scale,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = rows_cuda_workspace,
    .forward = rows_cuda_forward<ROW_MUL>,
    .backward = rows_cuda_backward<ROW_MUL>,
};

const struct kernel kernel_repeat_rows_cuda = {
    .name = "repeat_rows_cuda",
    .op = &op_repeat_rows,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = rows_cuda_workspace,
    .forward = rows_cuda_forward<ROW_COPY>,
    .backward = rows_cuda_backward<ROW_COPY>,
};

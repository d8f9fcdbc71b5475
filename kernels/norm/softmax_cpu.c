/* softmax_cpu.c - softmax (softmax.c) on the CPU, with chunks of rows on threads and the columns of a row in
 * vectors. */
#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/norm/norm.h"

static void row_forward(int64_t D, const real *x, real *y) {
    real top = x[0], sum = 0;
    for (int64_t i = 1; i < D; i++) top = x[i] > top ? x[i] : top;
#pragma omp simd
    for (int64_t i = 0; i < D; i++) y[i] = real_exp(x[i] - top);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < D; i++) sum += y[i];
#pragma omp simd
    for (int64_t i = 0; i < D; i++) y[i] /= sum;
}

static void row_backward(int64_t D, const real *y, const real *dy, real *dx, bool accumulate) {
    real along = 0;
#pragma omp simd reduction(+ : along)
    for (int64_t i = 0; i < D; i++) along += y[i] * dy[i];
#pragma omp simd
    for (int64_t i = 0; i < D; i++) put(&dx[i], accumulate, y[i] * (dy[i] - along));
}

static void softmax_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]), chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++)
            row_forward(D, tensor_real(c->in[0]) + r * D, tensor_real(c->out[0]) + r * D);
    }
}

static void softmax_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]), chunks = row_chunks(rows);
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++)
            row_backward(D, tensor_real(c->out[0]) + r * D, call_dout(c, 0) + r * D, c->din[0] + r * D,
                         call_accumulates(c, 0));
    }
}

/* Tolerance: exponentials and sums over the columns are in working precision, and dy cancels against its mean. */
const struct kernel kernel_softmax_cpu = {
    .name = "softmax_cpu",
    .op = &op_softmax,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .forward = softmax_cpu_forward,
    .backward = softmax_cpu_backward,
};

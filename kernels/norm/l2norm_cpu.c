/* l2norm_cpu.c - l2norm (l2norm.c) on the CPU, with chunks of rows on threads and the columns of a row in vectors. */
#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/norm/norm.h"

static real row_scale(int64_t D, const real *x, real eps) {
    real squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < D; i++) squares += x[i] * x[i];
    return 1 / real_sqrt(squares + eps);
}

static void row_dx(int64_t D, const real *x, const real *dy, real q, real *dx, bool accumulate) {
    real along = 0;
#pragma omp simd reduction(+ : along)
    for (int64_t i = 0; i < D; i++) along += x[i] * dy[i];
    along *= q * q;
#pragma omp simd
    for (int64_t i = 0; i < D; i++) put(&dx[i], accumulate, q * (dy[i] - x[i] * along));
}

static void l2norm_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct norm_attr *a = norm_attr(c);
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]), chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            const real *x = tensor_real(c->in[0]) + r * D;
            real *y = tensor_real(c->out[0]) + r * D, q = row_scale(D, x, (real)a->eps);
#pragma omp simd
            for (int64_t i = 0; i < D; i++) y[i] = q * x[i];
        }
    }
}

static void l2norm_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct norm_attr *a = norm_attr(c);
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]), chunks = row_chunks(rows);
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            const real *x = tensor_real(c->in[0]) + r * D;
            row_dx(D, x, call_dout(c, 0) + r * D, row_scale(D, x, (real)a->eps), c->din[0] + r * D,
                   call_accumulates(c, 0));
        }
    }
}

/* Tolerance: sums over the columns are in working precision, and the part of dy along y cancels. */
const struct kernel kernel_l2norm_cpu = {
    .name = "l2norm_cpu",
    .op = &op_l2norm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .forward = l2norm_cpu_forward,
    .backward = l2norm_cpu_backward,
};

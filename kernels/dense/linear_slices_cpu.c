/* linear_slices_cpu.c - linear_slices (linear_slices.c) on the CPU, with chunks of rows on threads. Each chunk has a
 * partial sum of dw, and these are added in order. */
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"

static real slice_product(int64_t m, const real *w, const real *x) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < m; k++) sum += w[k] * x[k];
    return sum;
}

static void linear_slices_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t m = tensor_cols(c->in[1]), J = c->in[1]->dims[0], rows = tensor_rows(c->in[0]), chunks = row_chunks(rows);
    const real *x = tensor_real(c->in[0]), *w = tensor_real(c->in[1]);
    real *y = tensor_real(c->out[0]);
#pragma omp parallel for schedule(static) if (rows * J * m > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t i = part.begin * J; i < part.end * J; i++) y[i] = slice_product(m, w + i % J * m, x + i * m);
    }
}

static size_t linear_slices_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) column_partials(&s, tensor_rows(c->in[0]), tensor_cols(c->in[0]));
    return s.used;
}

/* Computes dx of the rows of one chunk, and the chunk's sums for dw. */
static void chunk_gradient(const struct call *c, struct range part, real *dw) {
    int64_t m = tensor_cols(c->in[1]), J = c->in[1]->dims[0];
    const real *x = tensor_real(c->in[0]), *w = tensor_real(c->in[1]), *dy = call_dout(c, 0);
    real *dx = c->din[0];
    bool accumulate = call_accumulates(c, 0);
    memset(dw, 0, (size_t)(J * m) * sizeof *dw);
    for (int64_t i = part.begin * J; i < part.end * J; i++) {
        const real *wj = w + i % J * m, *xi = x + i * m;
        real *sum = dw + i % J * m, d = dy[i];
        if (dx) {
#pragma omp simd
            for (int64_t k = 0; k < m; k++) put(&dx[i * m + k], accumulate, wj[k] * d);
        }
#pragma omp simd
        for (int64_t k = 0; k < m; k++) sum[k] += d * xi[k];
    }
}

static void linear_slices_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t D = tensor_cols(c->in[0]), rows = tensor_rows(c->in[0]), chunks = row_chunks(rows);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct scratch_rows dw = column_partials(&s, rows, D);
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) chunk_gradient(c, part_at(rows, chunks, k), dw.at + k * dw.stride);
    if (c->din[1]) sum_partials(D, chunks, dw.at, dw.stride, c->din[1], call_accumulates(c, 1));
}

/* Tolerance: sums of m products and sums over rows are in working precision, while the reference sums in double. The
 * error grows like the square root of the number of terms. */
const struct kernel kernel_linear_slices_cpu = {
    .name = "linear_slices_cpu",
    .op = &op_linear_slices,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = linear_slices_cpu_workspace,
    .forward = linear_slices_cpu_forward,
    .backward = linear_slices_cpu_backward,
};

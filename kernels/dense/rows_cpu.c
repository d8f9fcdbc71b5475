/* rows_cpu.c - bias, scale and repeat_rows: chunks of rows on threads, columns in vectors. Equations: rows.c. */
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

enum row_rule { ROW_ADD, ROW_MUL, ROW_COPY };

/* Computes y[r][c] (+)= x[r][c] + v[c], or x[r][c] * v[c], or v[c]. */
static void over_rows(enum row_rule rule, int64_t rows, int64_t C, const real *x, const real *v, real *y,
                      bool accumulate) {
    int64_t chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            const real *xr = x + r * C;
            real *yr = y + r * C;
            if (rule == ROW_ADD) {
#pragma omp simd
                for (int64_t c = 0; c < C; c++) yr[c] = xr[c] + v[c];
            } else if (rule == ROW_MUL) {
#pragma omp simd
                for (int64_t c = 0; c < C; c++) put(&yr[c], accumulate, xr[c] * v[c]);
            } else {
                memcpy(yr, v, (size_t)C * sizeof *yr);
            }
        }
    }
}

static void rows_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    enum row_rule rule = c->op == &op_bias ? ROW_ADD : c->op == &op_scale ? ROW_MUL : ROW_COPY;
    real *y = tensor_real(c->out[0]);
    const real *x = rule == ROW_COPY ? y : tensor_real(c->in[0]), *v = tensor_real(c->in[c->n_in - 1]);
    over_rows(rule, tensor_rows(c->out[0]), tensor_cols(c->out[0]), x, v, y, false);
}

static size_t rows_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) column_partials(&s, tensor_rows(c->out[0]), tensor_cols(c->out[0]));
    return s.used;
}

static void copy_gradient(int64_t n, const real *dy, real *dx, bool accumulate) {
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) {
        struct range span = span_at(n, s);
#pragma omp simd
        for (int64_t i = span.begin; i < span.end; i++) put(&dx[i], accumulate, dy[i]);
    }
}

static void rows_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->out[0]), C = tensor_cols(c->out[0]);
    int vector = c->n_in - 1;
    bool scaled = c->op == &op_scale;
    const real *dy = call_dout(c, 0), *x = scaled ? tensor_real(c->in[0]) : NULL;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    if (c->din[vector])
        column_sums(rows, C, dy, x, c->din[vector], call_accumulates(c, vector), column_partials(&s, rows, C));
    if (vector == 0 || !c->din[0]) return;
    if (scaled)
        over_rows(ROW_MUL, rows, C, dy, tensor_real(c->in[1]), c->din[0], call_accumulates(c, 0));
    else
        copy_gradient(rows * C, dy, c->din[0], call_accumulates(c, 0));
}

/* Tolerance of all three: forward is exact; sums over R rows in working precision have errors of about sqrt(R)
 * units. */
const struct kernel kernel_bias_cpu = {
    .name = "bias_cpu",
    .op = &op_bias,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = rows_cpu_workspace,
    .forward = rows_cpu_forward,
    .backward = rows_cpu_backward,
};

const struct kernel kernel_scale_cpu = {
    .name = "scale_cpu",
    .op = &op_scale,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = rows_cpu_workspace,
    .forward = rows_cpu_forward,
    .backward = rows_cpu_backward,
};

const struct kernel kernel_repeat_rows_cpu = {
    .name = "repeat_rows_cpu",
    .op = &op_repeat_rows,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = rows_cpu_workspace,
    .forward = rows_cpu_forward,
    .backward = rows_cpu_backward,
};

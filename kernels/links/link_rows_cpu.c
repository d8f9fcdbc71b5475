/* link_rows_cpu.c - features of edges and pairs on the CPU. A thread computes one sequence at a time, row by row. */
#include "kernels/links/link_rows.h"

#include <string.h>

#include "kernels/lib/parallel.h"
#include "kernels/links/links_call.h"

static void gather_sequence(const struct call *c, int64_t b) {
    const struct links_attr *a = links_attr(c);
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2], columns = link_columns(a->rule);
    int64_t rows = link_row_count(a->size, a->rule);
    struct links_view l = links_at(c, b, T);
    const real *x = tensor_real(c->in[0]) + b * T * D;
    real *y = tensor_real(c->out[0]) + b * rows * columns * D;
    int32_t ends[LINK_COLUMNS_MAX][2];
    for (int64_t r = 0; r < rows; r++, y += columns * D) {
        if (!link_row_ends(&l, a->rule, r, ends)) {
            memset(y, 0, (size_t)(columns * D) * sizeof *y);
            continue;
        }
        for (int64_t k = 0; k < columns; k++) {
            const real *p = x + ends[k][0] * D, *q = x + ends[k][1] * D;
#pragma omp simd
            for (int64_t d = 0; d < D; d++) y[k * D + d] = (p[d] + q[d]) / 2;
        }
    }
}

static void add_half(int64_t D, const real *dy, real *dx) {
#pragma omp simd
    for (int64_t d = 0; d < D; d++) dx[d] = real_fma((real)0.5, dy[d], dx[d]);
}

static void scatter_sequence(const struct call *c, int64_t b) {
    const struct links_attr *a = links_attr(c);
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2], columns = link_columns(a->rule);
    int64_t rows = link_row_count(a->size, a->rule);
    struct links_view l = links_at(c, b, T);
    const real *dy = call_dout(c, 0) + b * rows * columns * D;
    real *dx = c->din[0] + b * T * D;
    int32_t ends[LINK_COLUMNS_MAX][2];
    if (!call_accumulates(c, 0)) memset(dx, 0, (size_t)(T * D) * sizeof *dx);
    for (int64_t r = 0; r < rows; r++, dy += columns * D)
        for (int64_t k = 0; k < columns && link_row_ends(&l, a->rule, r, ends); k++) {
            add_half(D, dy + k * D, dx + ends[k][0] * D);
            add_half(D, dy + k * D, dx + ends[k][1] * D);
        }
}

static void link_rows_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0];
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) gather_sequence(c, b);
}

static void link_rows_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0];
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) scatter_sequence(c, b);
}

/* Tolerance: the reference sums a node's gradient in double; here the sum rounds at each row that names the node. */
const struct kernel kernel_link_rows_cpu = {
    .name = "link_rows_cpu",
    .op = &op_link_rows,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .forward = link_rows_cpu_forward,
    .backward = link_rows_cpu_backward,
};

/* take_rows_cpu.c - take_rows on the CPU with strips of columns of one sequence on threads. The equations are in
 * take_rows.c. A row of dx sums the rows of y that copy it, in their order. */
#include "kernels/move/take_rows.h"

#include <string.h>

#include "kernels/lib/parallel.h"

#define TAKE_STRIP 256 /* columns of a strip */

/* Rows and columns of a call, and strip number i of sequence i / strips. */
struct strip {
    int64_t b, T, rows, D, column, width;
};

static int64_t strip_count(const struct call *c) {
    return c->in[0]->dims[0] * ((c->in[0]->dims[2] + TAKE_STRIP - 1) / TAKE_STRIP);
}

static struct strip strip_at(const struct call *c, int64_t i) {
    int64_t D = c->in[0]->dims[2], strips = (D + TAKE_STRIP - 1) / TAKE_STRIP, column = i % strips * TAKE_STRIP;
    int64_t width = D - column < TAKE_STRIP ? D - column : TAKE_STRIP;
    return (struct strip){i / strips, c->in[0]->dims[1], c->out[0]->dims[1], D, column, width};
}

static void take_strip(const struct call *c, struct strip p) {
    struct row_source s = row_source_of(c, p.b);
    const real *x = tensor_real(c->in[0]) + p.b * p.T * p.D + p.column;
    real *y = tensor_real(c->out[0]) + p.b * p.rows * p.D + p.column;
    for (int64_t r = 0; r < p.rows; r++) {
        int64_t from = row_source(&s, r);
        if (from < 0)
            memset(y + r * p.D, 0, (size_t)p.width * sizeof *y);
        else
            memcpy(y + r * p.D, x + from * p.D, (size_t)p.width * sizeof *y);
    }
}

static void strip_gradient(const struct call *c, struct strip p) {
    struct row_source s = row_source_of(c, p.b);
    const real *dy = call_dout(c, 0) + p.b * p.rows * p.D + p.column;
    real *dx = c->din[0] + p.b * p.T * p.D + p.column;
    for (int64_t t = 0; t < p.T && !call_accumulates(c, 0); t++) memset(dx + t * p.D, 0, (size_t)p.width * sizeof *dx);
    for (int64_t r = 0; r < p.rows; r++) {
        int64_t to = row_source(&s, r);
        if (to < 0) continue;
#pragma omp simd
        for (int64_t d = 0; d < p.width; d++) dx[to * p.D + d] += dy[r * p.D + d];
    }
}

static void take_rows_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < strip_count(c); i++) take_strip(c, strip_at(c, i));
}

static void take_rows_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < strip_count(c); i++) strip_gradient(c, strip_at(c, i));
}

/* Tolerance: dx sums over the positions of an interval in `real`, the reference in double. Errors grow like the root of
 * the number of positions. */
const struct kernel kernel_take_rows_cpu = {
    .name = "take_rows_cpu",
    .op = &op_take_rows,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .forward = take_rows_cpu_forward,
    .backward = take_rows_cpu_backward,
};

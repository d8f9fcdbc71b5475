/* linear_blocks_cpu.c - block-diagonal linear map: chunks of rows on threads, the outputs of a block in vectors, blocks
 * of 4 (mLSTM's) with their size known to the compiler; the weight's gradient as one partial sum a chunk, added in
 * order. The equations are in linear_blocks.c. */
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

/* y[i] = sum_j w[j][i] x[j] */
FORCE_INLINE void block_product(int64_t m, const real *w, const real *x, real *y) {
#pragma omp simd
    for (int64_t i = 0; i < m; i++) y[i] = w[i] * x[0];
    for (int64_t j = 1; j < m; j++)
#pragma omp simd
        for (int64_t i = 0; i < m; i++) y[i] = real_fma(w[j * m + i], x[j], y[i]);
}

/* dx[j] (+)= sum_i w[j][i] dy[i] */
FORCE_INLINE void block_dx(int64_t m, const real *w, const real *dy, real *dx, bool accumulate) {
    for (int64_t j = 0; j < m; j++) {
        real sum = 0;
        for (int64_t i = 0; i < m; i++) sum = real_fma(w[j * m + i], dy[i], sum);
        put(dx + j, accumulate, sum);
    }
}

/* dw[j][i] += dy[i] x[j] */
FORCE_INLINE void block_dw(int64_t m, const real *x, const real *dy, real *dw) {
    for (int64_t j = 0; j < m; j++)
#pragma omp simd
        for (int64_t i = 0; i < m; i++) dw[j * m + i] = real_fma(dy[i], x[j], dw[j * m + i]);
}

FORCE_INLINE void forward_rows(const struct call *c, struct range part, int64_t m) {
    int64_t C = tensor_cols(c->in[0]);
    const real *w = tensor_real(c->in[1]);
    for (int64_t r = part.begin; r < part.end; r++) {
        const real *x = tensor_real(c->in[0]) + r * C;
        real *y = tensor_real(c->out[0]) + r * C;
        for (int64_t first = 0; first < C; first += m) block_product(m, w + first * m, x + first, y + first);
    }
}

static void linear_blocks_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), m = tensor_cols(c->in[1]), chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * m > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        if (m == 4)
            forward_rows(c, part_at(rows, chunks, k), 4);
        else
            forward_rows(c, part_at(rows, chunks, k), m);
    }
}

static size_t linear_blocks_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) scratch_rows(&s, row_chunks(tensor_rows(c->in[0])), tensor_count(c->in[1]));
    return s.used;
}

/* One chunk of rows: dx, and the chunk's sums for dw. */
FORCE_INLINE void backward_rows(const struct call *c, struct range part, int64_t m, real *dw) {
    int64_t C = tensor_cols(c->in[0]);
    const real *w = tensor_real(c->in[1]);
    memset(dw, 0, (size_t)tensor_count(c->in[1]) * sizeof *dw);
    for (int64_t r = part.begin; r < part.end; r++) {
        const real *x = tensor_real(c->in[0]) + r * C, *dy = call_dout(c, 0) + r * C;
        for (int64_t first = 0; c->din[1] && first < C; first += m) block_dw(m, x + first, dy + first, dw + first * m);
        for (int64_t first = 0; c->din[0] && first < C; first += m)
            block_dx(m, w + first * m, dy + first, c->din[0] + r * C + first, call_accumulates(c, 0));
    }
}

static void linear_blocks_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), n = tensor_count(c->in[1]), m = tensor_cols(c->in[1]);
    int64_t chunks = row_chunks(rows);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct scratch_rows dw = scratch_rows(&s, chunks, n);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * m > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        if (m == 4)
            backward_rows(c, part_at(rows, chunks, k), 4, dw.at + k * dw.stride);
        else
            backward_rows(c, part_at(rows, chunks, k), m, dw.at + k * dw.stride);
    }
    if (c->din[1]) sum_partials(n, chunks, dw.at, dw.stride, c->din[1], call_accumulates(c, 1));
}

/* Tolerance: sums of m products, and over R rows in chunks of at least 128, in working precision. */
const struct kernel kernel_linear_blocks_cpu = {
    .name = "linear_blocks_cpu",
    .op = &op_linear_blocks,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = linear_blocks_cpu_workspace,
    .forward = linear_blocks_cpu_forward,
    .backward = linear_blocks_cpu_backward,
};

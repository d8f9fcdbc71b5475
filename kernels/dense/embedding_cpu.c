/* embedding_cpu.c - y[r] = table[ids[r]] on the CPU. In forward, threads have rows. In backward, threads have strips of
 * columns: each adds all rows in their order, so no two threads write the same element, and the order of summation is
 * fixed. */
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"

#define STRIP 32 /* columns of a strip: two cache lines per row */

static void embedding_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_count(c->in[0]), D = c->in[1]->dims[1];
    const int32_t *ids = tensor_i32(c->in[0]);
    const real *table = tensor_real(c->in[1]);
    real *y = tensor_real(c->out[0]);
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t r = 0; r < rows; r++) memcpy(y + r * D, table + ids[r] * D, (size_t)D * sizeof *y);
}

static void backward_strip(const struct call *c, struct range strip) {
    int64_t rows = tensor_count(c->in[0]), V = c->in[1]->dims[0], D = c->in[1]->dims[1];
    const int32_t *ids = tensor_i32(c->in[0]);
    const real *dy = call_dout(c, 0);
    real *table = c->din[1];
    size_t width = (size_t)(strip.end - strip.begin) * sizeof *table;
    for (int64_t v = 0; v < V && !call_accumulates(c, 1); v++) memset(table + v * D + strip.begin, 0, width);
    for (int64_t r = 0; r < rows; r++) {
        real *to = table + ids[r] * D;
        const real *from = dy + r * D;
#pragma omp simd
        for (int64_t i = strip.begin; i < strip.end; i++) to[i] += from[i];
    }
}

static void embedding_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_count(c->in[0]), D = c->in[1]->dims[1], strips = (D + STRIP - 1) / STRIP;
    if (!c->din[1]) return;
#pragma omp parallel for schedule(static) if ((rows + c->in[1]->dims[0]) * D > PARALLEL_MIN)
    for (int64_t s = 0; s < strips; s++)
        backward_strip(c, (struct range){s * STRIP, (s + 1) * STRIP < D ? (s + 1) * STRIP : D});
}

/* Tolerance: the rows of an id are summed one after the other in working precision. */
const struct kernel kernel_embedding_cpu = {
    .name = "embedding_cpu",
    .op = &op_embedding,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .forward = embedding_cpu_forward,
    .backward = embedding_cpu_backward,
};

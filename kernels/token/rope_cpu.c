/* rope_cpu.c - rotary positions on the CPU; rope.c has the equations. The code first computes the cosines and sines of
 * all positions. Then each thread rotates a chunk of tokens; SIMD vectors run along the pairs of a head. */
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/token/rope.h"

/* The scratch memory has dk/2 cosines, then dk/2 sines, for each position. */
static size_t rope_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    return scratch_single(c, (size_t)(c->in[0]->dims[1] * rope_attr(c)->dk) * sizeof(real));
}

static void fill_table(const struct call *c, real *table, double direction) {
    const struct rope_attr *a = rope_attr(c);
    int64_t T = c->in[0]->dims[1], half = a->dk / 2;
#pragma omp parallel for schedule(static) if (T * half > PARALLEL_MIN / 32)
    for (int64_t i = 0; i < half; i++)
        for (int64_t t = 0; t < T; t++) {
            double angle = direction * rope_angle(a, t, i);
            table[t * a->dk + i] = (real)cos(angle);
            table[t * a->dk + half + i] = (real)sin(angle);
        }
}

static void turn_row(const struct rope_attr *a, const real *table, const real *x, real *y, bool add) {
    int64_t half = a->dk / 2;
    const real *cosine = table, *sine = table + half;
    for (int64_t h = 0; h < a->heads; h++, x += a->dk, y += a->dk) {
#pragma omp simd
        for (int64_t i = 0; i < half; i++) {
            real low = x[i] * cosine[i] - x[i + half] * sine[i], high = x[i] * sine[i] + x[i + half] * cosine[i];
            put(&y[i], add, low);
            put(&y[i + half], add, high);
        }
    }
}

static void rope_cpu(const struct call *c, const real *x, real *y, bool add, double direction, real *table) {
    const struct rope_attr *a = rope_attr(c);
    int64_t rows = tensor_rows(c->in[0]), T = c->in[0]->dims[1], C = c->in[0]->dims[2], turned = a->heads * a->dk;
    int64_t chunks = row_chunks(rows);
    fill_table(c, table, direction);
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            turn_row(a, table + r % T * a->dk, x + r * C, y + r * C, add);
            for (int64_t col = turned; col < C; col++) put(&y[r * C + col], add, x[r * C + col]);
        }
    }
}

static void rope_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    rope_cpu(c, tensor_real(c->in[0]), tensor_real(c->out[0]), false, 1, c->scratch[PASS_FORWARD]);
}

static void rope_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (c->din[0]) rope_cpu(c, call_dout(c, 0), c->din[0], call_accumulates(c, 0), -1, c->scratch[PASS_BACKWARD]);
}

/* Tolerance: a result has two rounded factors and three roundings of the sum; the reference rounds once. */
const struct kernel kernel_rope_cpu = {
    .name = "rope_cpu",
    .op = &op_rope,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 8,
    .workspace = rope_cpu_workspace,
    .forward = rope_cpu_forward,
    .backward = rope_cpu_backward,
};

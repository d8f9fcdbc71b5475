/* norm_heads_cpu.c - RMSNorm and LayerNorm of each head (norm_heads.c) on the CPU, with chunks of rows on threads and
 * the columns of a head in vectors. Each chunk has a partial sum of the weight's gradient, and these are added in
 * order. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/norm/norm.h"

/* n = (x - mean) q. The weight is added to `one`. In rmsnorm_heads mean = one = 0, which changes no number. */
struct head_statistics {
    real mean, q, one;
};

static struct head_statistics head_statistics(int64_t width, const real *x, bool layer, real eps) {
    struct head_statistics s = {.one = layer};
    real sum = 0, squares = 0;
    if (layer) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < width; i++) sum += x[i];
        s.mean = sum / (real)width;
    }
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < width; i++) squares += (x[i] - s.mean) * (x[i] - s.mean);
    s.q = 1 / real_sqrt(squares / (real)width + eps);
    return s;
}

static void norm_heads_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    real eps = (real)norm_attr(c)->eps;
    bool layer = c->op == &op_layernorm_heads;
    int64_t rows = tensor_rows(c->in[0]), H = c->in[1]->dims[0], width = c->in[1]->dims[1], chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (rows * H * width > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin * H; r < part.end * H; r++) {
            const real *x = tensor_real(c->in[0]) + r * width, *w = tensor_real(c->in[1]) + r % H * width;
            struct head_statistics s = head_statistics(width, x, layer, eps);
            real *y = tensor_real(c->out[0]) + r * width;
#pragma omp simd
            for (int64_t i = 0; i < width; i++) y[i] = (x[i] - s.mean) * s.q * (s.one + w[i]);
        }
    }
}

/* Computes dx of one head. */
static void head_dx(int64_t width, struct head_statistics s, const real *x, const real *w, const real *dy, real *dx,
                    bool accumulate) {
    real mean_e = 0, mean_en = 0;
#pragma omp simd reduction(+ : mean_e, mean_en)
    for (int64_t i = 0; i < width; i++) {
        real e = dy[i] * (s.one + w[i]);
        mean_e += e;
        mean_en += e * ((x[i] - s.mean) * s.q);
    }
    mean_e = s.one > 0 ? mean_e / (real)width : 0;
    mean_en /= (real)width;
#pragma omp simd
    for (int64_t i = 0; i < width; i++)
        put(&dx[i], accumulate, s.q * (dy[i] * (s.one + w[i]) - mean_e - (x[i] - s.mean) * s.q * mean_en));
}

static size_t norm_heads_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) scratch_rows(&s, row_chunks(tensor_rows(c->in[0])), tensor_count(c->in[1]));
    return s.used;
}

/* Computes for one chunk of rows dx, and the chunk's sums of dy n in dw. */
static void backward_chunk(const struct call *c, struct range part, real *dw) {
    real eps = (real)norm_attr(c)->eps;
    bool layer = c->op == &op_layernorm_heads;
    int64_t H = c->in[1]->dims[0], width = c->in[1]->dims[1];
    memset(dw, 0, (size_t)(H * width) * sizeof *dw);
    for (int64_t r = part.begin * H; r < part.end * H; r++) {
        const real *x = tensor_real(c->in[0]) + r * width, *dy = call_dout(c, 0) + r * width;
        struct head_statistics s = head_statistics(width, x, layer, eps);
        real *sum = dw + r % H * width;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) sum[i] = real_fma(dy[i], (x[i] - s.mean) * s.q, sum[i]);
        if (!c->din[0]) continue;
        head_dx(width, s, x, tensor_real(c->in[1]) + r % H * width, dy, c->din[0] + r * width, call_accumulates(c, 0));
    }
}

static void norm_heads_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), n = tensor_count(c->in[1]), chunks = row_chunks(rows);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct scratch_rows dw = scratch_rows(&s, chunks, n);
#pragma omp parallel for schedule(static) if (rows * n > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) backward_chunk(c, part_at(rows, chunks, k), dw.at + k * dw.stride);
    if (c->din[1]) sum_partials(n, chunks, dw.at, dw.stride, c->din[1], call_accumulates(c, 1));
}

/* Tolerance: sums over columns and rows are in working precision, with errors of about the square root of their number,
 * and the means of dx cancel against e. */
const struct kernel kernel_rmsnorm_heads_cpu = {
    .name = "rmsnorm_heads_cpu",
    .op = &op_rmsnorm_heads,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_heads_cpu_workspace,
    .forward = norm_heads_cpu_forward,
    .backward = norm_heads_cpu_backward,
};

const struct kernel kernel_layernorm_heads_cpu = {
    .name = "layernorm_heads_cpu",
    .op = &op_layernorm_heads,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_heads_cpu_workspace,
    .forward = norm_heads_cpu_forward,
    .backward = norm_heads_cpu_backward,
};

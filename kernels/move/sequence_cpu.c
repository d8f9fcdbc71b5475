/* sequence_cpu.c - pool, reverse and decode_positions with sequences or positions on threads, columns in vectors. The
 * equations are in sequence.c. */
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/move/move.h"
#include "kernels/move/sequence.h"

#include <string.h>

#define POOL_STRIP 256 /* columns of a part of pool */
#define POOL_ROWS  64  /* rows of a partial sum, so that errors grow with T / POOL_ROWS + POOL_ROWS instead of T */

static int64_t length_of(const struct call *c, int64_t b) {
    return c->in[1] ? tensor_i32(c->in[1])[b] : c->in[0]->dims[1];
}

static bool pools_last(const struct call *c) {
    return pool_attr(c)->how == POOL_LAST;
}

static void add_row(int64_t width, const real *x, real *y) {
#pragma omp simd
    for (int64_t d = 0; d < width; d++) y[d] += x[d];
}

/* y = factor * sum of n rows of x, D apart. */
static void mean_rows(int64_t width, int64_t n, int64_t D, const real *x, real factor, real *y) {
    real sum[POOL_STRIP];
    memset(y, 0, (size_t)width * sizeof *y);
    for (int64_t first = 0; first < n; first += POOL_ROWS) {
        memset(sum, 0, sizeof sum);
        for (int64_t t = first; t < n && t < first + POOL_ROWS; t++) add_row(width, x + t * D, sum);
        add_row(width, sum, y);
    }
    for (int64_t d = 0; d < width; d++) y[d] *= factor;
}

static void pool_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    int64_t strips = (D + POOL_STRIP - 1) / POOL_STRIP;
    bool last = pools_last(c);
#pragma omp parallel for schedule(static) if (B * D * (last ? 1 : T) > PARALLEL_MIN)
    for (int64_t i = 0; i < B * strips; i++) {
        int64_t b = i / strips, k = i % strips * POOL_STRIP, width = D - k < POOL_STRIP ? D - k : POOL_STRIP;
        int64_t n = length_of(c, b), from = last && n > 0 ? n - 1 : 0, count = last && n > 0 ? 1 : n;
        mean_rows(width, count, D, tensor_real(c->in[0]) + (b * T + from) * D + k, count > 0 ? 1 / (real)count : 0,
                  tensor_real(c->out[0]) + b * D + k);
    }
}

/* dx of row t of sequence b. */
static void pool_row_gradient(const struct call *c, int64_t b, int64_t t) {
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2], n = length_of(c, b);
    real weight = pools_last(c) ? t == n - 1 : t < n ? 1 / (real)n : 0;
    const real *dy = call_dout(c, 0) + b * D;
    real *dx = c->din[0] + (b * T + t) * D;
    bool accumulate = call_accumulates(c, 0);
#pragma omp simd
    for (int64_t d = 0; d < D; d++) put(&dx[d], accumulate, weight * dy[d]);
}

static void pool_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1];
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++) pool_row_gradient(c, b, t);
}

/* to (+)= the rows of `from` in reverse order. */
static void reverse_rows(const struct call *c, const real *from, real *to, bool accumulate) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
#pragma omp parallel for schedule(static) if (B * T * D > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) {
        int64_t n = length_of(c, b);
        for (int64_t t = 0; t < T; t++) {
            const real *x = from + (b * T + (t < n ? n - 1 - t : t)) * D;
            real *y = to + (b * T + t) * D;
#pragma omp simd
            for (int64_t d = 0; d < D; d++) put(&y[d], accumulate, x[d]);
        }
    }
}

static void reverse_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    reverse_rows(c, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void reverse_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (c->din[0]) reverse_rows(c, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

/* The frequencies of D/2 columns. */
static size_t decode_positions_cpu_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? (size_t)(tensor_cols(c->in[0]) / 2) * sizeof(double) : 0);
}

/* y[b][p] for all b. The code of the position is computed once, in the row of sequence 0. */
static void decode_position(const struct call *c, const double *frequency, int64_t p) {
    int64_t B = c->in[0]->dims[0], D = c->in[0]->dims[1], T = c->out[0]->dims[1], h = D / 2;
    const real *e = tensor_real(c->in[0]);
    real *code = tensor_real(c->out[0]) + p * D;
    for (int64_t j = 0; j < h; j++) {
        double angle = (double)p * frequency[j];
        code[j] = (real)sin(angle);
        code[h + j] = (real)cos(angle);
    }
    if (D % 2) code[D - 1] = 0;
    for (int64_t b = B - 1; b >= 0; b--) {
        real *y = code + b * T * D;
#pragma omp simd
        for (int64_t d = 0; d < D; d++) y[d] = e[b * D + d] + code[d];
    }
}

static void decode_positions_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t D = c->in[0]->dims[1], T = c->out[0]->dims[1];
    double *frequency = c->scratch[PASS_FORWARD];
    for (int64_t j = 0; j < D / 2; j++) frequency[j] = position_frequency(j, D);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t p = 0; p < T; p++) decode_position(c, frequency, p);
}

static void decode_positions_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], D = c->in[0]->dims[1], T = c->out[0]->dims[1];
    int64_t strips = (D + POOL_STRIP - 1) / POOL_STRIP;
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (B * T * D > PARALLEL_MIN)
    for (int64_t i = 0; i < B * strips; i++) {
        real sum[POOL_STRIP], *from = sum;
        int64_t b = i / strips, k = i % strips * POOL_STRIP, width = D - k < POOL_STRIP ? D - k : POOL_STRIP;
        mean_rows(width, T, D, call_dout(c, 0) + b * T * D + k, 1, from);
        for (int64_t d = 0; d < width; d++) put(c->din[0] + b * D + k + d, call_accumulates(c, 0), from[d]);
    }
}

/* Tolerance: the mean of T rows is a sum of partial sums of POOL_ROWS rows in `real`; the reference sums in double. */
const struct kernel kernel_pool_cpu = {
    .name = "pool_cpu",
    .op = &op_pool,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .forward = pool_cpu_forward,
    .backward = pool_cpu_backward,
};

const struct kernel kernel_reverse_cpu = {
    .name = "reverse_cpu",
    .op = &op_reverse,
    .device = DEVICE_CPU,
    .forward = reverse_cpu_forward,
    .backward = reverse_cpu_backward,
};

/* Tolerance: the gradient is like pool_cpu's sum; forward is bit-equal. */
const struct kernel kernel_decode_positions_cpu = {
    .name = "decode_positions_cpu",
    .op = &op_decode_positions,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .workspace = decode_positions_cpu_workspace,
    .forward = decode_positions_cpu_forward,
    .backward = decode_positions_cpu_backward,
};

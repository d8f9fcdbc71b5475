/* conv_depthwise_cpu.c - causal depthwise convolution on the CPU. Each thread computes a chunk of tokens; SIMD vectors
 * run along channels. The code adds one tap after the other to a row of channels, which stays in L1. Each chunk has
 * partial sums of the gradients of w and b, which are added in order. */
#include <string.h>

#include "kernels/token/token.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

/* Computes y[c] (+)= w[c] x[c]. */
static void tap(int64_t C, const real *w, const real *x, real *y) {
#pragma omp simd
    for (int64_t c = 0; c < C; c++) y[c] = real_fma(w[c], x[c], y[c]);
}

/* Adds four taps at once. Their rows are `step` numbers apart, their weights C numbers. */
static void four_taps(int64_t C, const real *w, const real *x, int64_t step, real *y) {
#pragma omp simd
    for (int64_t c = 0; c < C; c++) {
        real sum = real_fma(w[c], x[c], y[c]);
        sum = real_fma(w[C + c], x[step + c], sum);
        sum = real_fma(w[2 * C + c], x[2 * step + c], sum);
        y[c] = real_fma(w[3 * C + c], x[3 * step + c], sum);
    }
}

static void conv_depthwise_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], m = tensor_cols(c->in[1]), tokens = tensor_rows(c->in[0]);
    int64_t chunks = row_chunks(tokens);
#pragma omp parallel for schedule(static) if (tokens * C > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(tokens, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            const real *x = tensor_real(c->in[0]) + r * C, *w = tensor_real(c->in[1]) + (m - 1) * C;
            real *y = tensor_real(c->out[0]) + r * C;
            int64_t taps = r % T + 1 < m ? r % T + 1 : m, back = 0;
            if (c->n_in == 3)
                memcpy(y, c->in[2]->data, (size_t)C * sizeof *y);
            else
                memset(y, 0, (size_t)C * sizeof *y);
            for (; back + 4 <= taps; back += 4) four_taps(C, w - (back + 3) * C, x - (back + 3) * C, C, y);
            for (; back < taps; back++) tap(C, w - back * C, x - back * C, y);
        }
    }
}

/* Arrays of each chunk: a row of dx, dw [m][C] and db [C]. */
struct partials {
    struct scratch_rows dx, dw, db;
};

static struct partials partials_of(const struct call *c, struct scratch *s) {
    int64_t chunks = row_chunks(tensor_rows(c->in[0])), C = c->in[0]->dims[2];
    struct partials p = {.dx = scratch_rows(s, chunks, C)};
    p.dw = scratch_rows(s, chunks, tensor_cols(c->in[1]) * C);
    p.db = scratch_rows(s, chunks, C);
    return p;
}

static size_t conv_depthwise_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) partials_of(c, &s);
    return s.used;
}

static void backward_chunk(const struct call *c, struct range part, real *row, real *dw, real *db) {
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], m = tensor_cols(c->in[1]);
    const real *w = tensor_real(c->in[1]) + (m - 1) * C;
    memset(dw, 0, (size_t)(m * C) * sizeof *dw);
    memset(db, 0, (size_t)C * sizeof *db);
    for (int64_t r = part.begin; r < part.end; r++) {
        const real *x = tensor_real(c->in[0]) + r * C, *dy = call_dout(c, 0) + r * C;
        int64_t before = r % T + 1 < m ? r % T + 1 : m, after = T - r % T < m ? T - r % T : m, later = 0;
        for (int64_t back = 0; c->din[1] && back < before; back++) tap(C, dy, x - back * C, dw + (m - 1 - back) * C);
        for (int64_t i = 0; c->n_in == 3 && c->din[2] && i < C; i++) db[i] += dy[i];
        if (!c->din[0]) continue;
        real *dx = call_accumulates(c, 0) ? row : c->din[0] + r * C;
        memset(dx, 0, (size_t)C * sizeof *dx);
        for (; later + 4 <= after; later += 4) four_taps(C, w - (later + 3) * C, dy + (later + 3) * C, -C, dx);
        for (; later < after; later++) tap(C, w - later * C, dy + later * C, dx);
        for (int64_t i = 0; call_accumulates(c, 0) && i < C; i++) c->din[0][r * C + i] += row[i];
    }
}

static void conv_depthwise_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t C = c->in[0]->dims[2], m = tensor_cols(c->in[1]), tokens = tensor_rows(c->in[0]),
            chunks = row_chunks(tokens);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct partials p = partials_of(c, &s);
#pragma omp parallel for schedule(static) if (tokens * C > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++)
        backward_chunk(c, part_at(tokens, chunks, k), p.dx.at + k * p.dx.stride, p.dw.at + k * p.dw.stride,
                       p.db.at + k * p.db.stride);
    if (c->din[1]) sum_partials(m * C, chunks, p.dw.at, p.dw.stride, c->din[1], call_accumulates(c, 1));
    if (c->n_in == 3 && c->din[2]) sum_partials(C, chunks, p.db.at, p.db.stride, c->din[2], call_accumulates(c, 2));
}

/* Tolerance: sums of m products, and sums over all tokens in chunks of at least 128, are in working precision. */
const struct kernel kernel_conv_depthwise_cpu = {
    .name = "conv_depthwise_cpu",
    .op = &op_conv_depthwise,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = conv_depthwise_cpu_workspace,
    .forward = conv_depthwise_cpu_forward,
    .backward = conv_depthwise_cpu_backward,
};

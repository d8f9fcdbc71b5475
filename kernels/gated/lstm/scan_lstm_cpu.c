/* scan_lstm_cpu.c - the LSTM recurrence (scan_lstm.c) on the CPU.
 *
 * The batch is cut into at most 8 independent tiles. At each step, a tile multiplies its rows of h with wh in one
 * product. Backward stores dp of all tokens in du (or in scratch). Then it computes dwh as a product over all tokens;
 * this product is cut into tiles of tokens, whose partial results are added in order. */
#include <string.h>

#include "kernels/gated/gated.h"
#include "core/real_math.h"
#include "kernels/lib/gemm.h"
#include "kernels/kernel.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

#define MAX_TILES 8
/* least rows of a tile of the batch; fewer would not be worth packing wh anew in each product */
#define BATCH_TILE 32
#define TOKEN_TILE 1024 /* least rows of a tile of tokens */

static int64_t tiles_of(int64_t n, int64_t least) {
    int64_t tiles = n / least;
    return tiles < 1 ? 1 : tiles > MAX_TILES ? MAX_TILES : tiles;
}

#define STEP static inline __attribute__((always_inline)) /* so that `first` is a constant in the loops over units */

/* Computes one step of one sequence. p has the pre-activations, and becomes the activated gates. `before` is c_{t-1};
 * it is not read at a first step from zero. */
STEP void step_forward(bool first, int64_t H, real *p, const real *before, real *cell, real *h) {
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        real i = real_sigmoid(p[j]), f = real_sigmoid(p[H + j]), g = real_tanh(p[2 * H + j]);
        real o = real_sigmoid(p[3 * H + j]), c = i * g;
        if (!first) c = real_fma(f, before[j], c);
        p[j] = i;
        p[H + j] = f;
        p[2 * H + j] = g;
        p[3 * H + j] = o;
        cell[j] = c;
        h[j] = o * real_tanh(c);
    }
}

static void add_bias(int64_t n, const real *u, const real *bh, real *p) {
#pragma omp simd
    for (int64_t r = 0; r < n; r++) p[r] = u[r] + bh[r];
}

static void forward_tile(const struct call *c, struct range rows) {
    int64_t T = c->in[0]->dims[1], H = tensor_cols(c->in[1]);
    const real *u = tensor_real(c->in[0]), *wh = tensor_real(c->in[1]), *bh = tensor_real(c->in[2]);
    real *h = tensor_real(c->out[0]), *cell = tensor_real(c->out[1]), *gates = tensor_real(c->out[2]);
    for (int64_t t = 0; t < T; t++) {
        int64_t first = rows.begin * T + t;
        for (int64_t b = rows.begin; b < rows.end; b++)
            add_bias(4 * H, u + (b * T + t) * 4 * H, bh, gates + (b * T + t) * 4 * H);
        const real *h_before = t > 0 ? h + (first - 1) * H : lstm_row(c, 0, rows.begin);
        if (h_before)
            real_gemm(false, true, rows.end - rows.begin, 4 * H, H, 1, h_before, t > 0 ? T * H : H, wh, H, true,
                      gates + first * 4 * H, T * 4 * H);
        for (int64_t b = rows.begin; b < rows.end; b++) {
            real *p = gates + (b * T + t) * 4 * H, *now = cell + (b * T + t) * H, *out = h + (b * T + t) * H;
            const real *before = t > 0 ? now - H : lstm_row(c, 1, b);
            if (before)
                step_forward(false, H, p, before, now, out);
            else
                step_forward(true, H, p, now, now, out);
        }
    }
}

static void scan_lstm_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], tiles = tiles_of(B, BATCH_TILE);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < tiles; i++) forward_tile(c, part_at(B, tiles, i));
}

/* Scratch of the gradient. dp (B,T,4H); late (B,T,H): h of the previous step; dh and dc (B,H): gradients that flow to
 * the previous step; dwh: partial results; sums: partial sums of column_sums. */
struct work {
    real *dp, *late, *dh, *dc;
    struct scratch_rows dwh, sums;
};

static struct work work_of(const struct call *c, struct scratch *s) {
    int64_t B = c->in[0]->dims[0], tokens = tensor_rows(c->in[0]), H = tensor_cols(c->in[1]);
    struct work w = {.dp = scratch_reals(s, tokens * 4 * H)};
    w.late = scratch_reals(s, tokens * H);
    w.dh = scratch_reals(s, B * H);
    w.dc = scratch_reals(s, B * H);
    w.dwh = scratch_rows(s, tiles_of(tokens, TOKEN_TILE) - 1, 4 * H * H);
    w.sums = column_partials(s, tokens, 4 * H);
    if (c->din[0] && !call_accumulates(c, 0)) w.dp = c->din[0];
    return w;
}

static size_t scan_lstm_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) work_of(c, &s);
    return s.used;
}

/* Computes dp of sequence b at step t, and turns dc_t into dc_{t-1}. w->dh contains wh^T dp_{t+1}. `before` is
 * c_{t-1}; it is not read at a `first` step from zero. */
STEP void step_backward(bool first, const struct call *c, const struct work *w, int64_t b, int64_t t,
                        const real *before) {
    int64_t H = tensor_cols(c->in[1]), token = b * c->in[0]->dims[1] + t;
    const real *gates = tensor_real(c->out[2]) + token * 4 * H; /* gates i, f, g, o, with H values each */
    const real *cell = tensor_real(c->out[1]) + token * H, *d_cell = call_dout(c, 1);
    const real *dout = call_dout(c, 0) + token * H, *dh = w->dh + b * H;
    real *dc = w->dc + b * H, *dp = w->dp + token * 4 * H;
    for (int64_t j = 0; j < H && d_cell; j++) dc[j] += d_cell[token * H + j];
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        real i = gates[j], f = gates[H + j], g = gates[2 * H + j], o = gates[3 * H + j];
        real tanh_c = real_tanh(cell[j]), dh_j = dout[j] + dh[j];
        real dc_j = real_fma(dh_j * o, 1 - tanh_c * tanh_c, dc[j]);
        dp[j] = dc_j * g * (i * (1 - i));
        dp[H + j] = first ? 0 : dc_j * before[j] * (f * (1 - f));
        dp[2 * H + j] = dc_j * i * (1 - g * g);
        dp[3 * H + j] = dh_j * tanh_c * (o * (1 - o));
        dc[j] = dc_j * f;
    }
}

static void backward_tile(const struct call *c, const struct work *w, struct range rows) {
    int64_t T = c->in[0]->dims[1], H = tensor_cols(c->in[1]), n = rows.end - rows.begin;
    const real *wh = tensor_real(c->in[1]), *h = tensor_real(c->out[0]), *cell = tensor_real(c->out[1]);
    memset(w->dh + rows.begin * H, 0, (size_t)(n * H) * sizeof(real));
    memset(w->dc + rows.begin * H, 0, (size_t)(n * H) * sizeof(real));
    for (int64_t t = T - 1; t >= 0; t--) {
        if (t + 1 < T)
            real_gemm(false, false, n, H, 4 * H, 1, w->dp + (rows.begin * T + t + 1) * 4 * H, T * 4 * H, wh, H, false,
                      w->dh + rows.begin * H, H);
        for (int64_t b = rows.begin; b < rows.end; b++) {
            real *late = w->late + (b * T + t) * H;
            const real *h_before = t > 0 ? h + (b * T + t - 1) * H : lstm_row(c, 0, b);
            const real *before = t > 0 ? cell + (b * T + t - 1) * H : lstm_row(c, 1, b);
            if (before) {
                step_backward(false, c, w, b, t, before);
                memcpy(late, h_before, (size_t)H * sizeof(real));
            } else {
                step_backward(true, c, w, b, t, cell);
                memset(late, 0, (size_t)H * sizeof(real));
            }
        }
    }
    if (c->n_in > 3 && c->din[3])
        real_gemm(false, false, n, H, 4 * H, 1, w->dp + rows.begin * T * 4 * H, T * 4 * H, wh, H,
                  call_accumulates(c, 3), c->din[3] + rows.begin * H, H);
}

static void weight_gradient(const struct call *c, struct work s) {
    int64_t H = tensor_cols(c->in[1]), tokens = tensor_rows(c->in[0]), tiles = tiles_of(tokens, TOKEN_TILE);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < tiles; i++) {
        struct range rows = part_at(tokens, tiles, i);
        real *dwh = i == 0 ? c->din[1] : s.dwh.at + (i - 1) * s.dwh.stride;
        real_gemm(true, false, 4 * H, H, rows.end - rows.begin, 1, s.dp + rows.begin * 4 * H, 4 * H,
                  s.late + rows.begin * H, H, i == 0 && call_accumulates(c, 1), dwh, H);
    }
    if (tiles > 1) sum_partials(4 * H * H, tiles - 1, s.dwh.at, s.dwh.stride, c->din[1], true);
}

static void scan_lstm_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], H = tensor_cols(c->in[1]), tokens = tensor_rows(c->in[0]);
    int64_t tiles = tiles_of(B, BATCH_TILE);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct work s = work_of(c, &scratch);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < tiles; i++) backward_tile(c, &s, part_at(B, tiles, i));
    if (c->n_in > 3 && c->din[4]) sum_partials(B * H, 1, s.dc, 0, c->din[4], call_accumulates(c, 4));
    if (c->din[1]) weight_gradient(c, s);
    if (c->din[2]) column_sums(tokens, 4 * H, s.dp, NULL, c->din[2], call_accumulates(c, 2), s.sums);
    if (c->din[0] && call_accumulates(c, 0)) sum_partials(tokens * 4 * H, 1, s.dp, 0, c->din[0], true);
}

/* Tolerance: a pre-activation sums H terms |wh| |h|, and its rounding error is in units of these terms, not of its own
 * size. The gate then has the same error: a few units with weights below 1, but up to a thousand units with weights of
 * magnitude 30 and H = 64. Each step multiplies the error by the derivative of h_t by h_{t-1}. With such large weights
 * the derivative is above 1, so the recurrence is chaotic: errors grow with T, and no number of units bounds them. For
 * random inputs of that kind, `make fuzz-kernels` measures how much the reference changes if the last bits of the
 * inputs change, and bounds the kernel's error by that. */
const struct kernel kernel_scan_lstm_cpu = {
    .name = "scan_lstm_cpu",
    .op = &op_scan_lstm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 1024,
    .tiles = "each step is a product of the batch's rows with wh, and the library takes other tiles for other numbers "
             "of rows",
    .workspace = scan_lstm_cpu_workspace,
    .forward = scan_lstm_cpu_forward,
    .backward = scan_lstm_cpu_backward,
};

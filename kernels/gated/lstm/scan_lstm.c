/* scan_lstm.c - the LSTM recurrence (PyTorch gate order i, f, g, o): the op and its reference.
 *
 *   p_t = u_t + wh h_{t-1} + bh;   i, f, o = sigmoid, g = tanh of the quarters of p_t
 *   c_t = f c_{t-1} + i g;   h_t = o tanh(c_t);   h_{-1} = c_{-1} = 0, or inputs 3 and 4
 * Backward, dh_t and dc_t from the outputs and from t + 1:
 *   dc_t += dh_t o (1 - tanh(c_t)^2);   dp = (dc g i(1-i), dc c_{t-1} f(1-f), dc i (1-g^2), dh tanh(c) o(1-o))
 *   dc_{t-1} = dc_t f;   dh_{t-1} = wh^T dp_t;   du_t = dp_t;   dwh = sum dp_t h_{t-1}^T;   dbh = sum dp_t
 * Output 1 is c (B,T,H), and output 2 keeps the activated gates (B,T,4H) for the gradient. The graph gives neither a
 * gradient; the library (library/gated.c) may give c one. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/gated/gated.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"

struct tensor *scan_lstm(struct graph *g, struct tensor *u, struct tensor *wh, struct tensor *bh) {
    struct call *c = graph_call(g, &op_scan_lstm, NULL, 0, (struct tensor *[]){u, wh, bh}, 3);
    return c ? c->out[0] : NULL;
}

struct tensor *scan_lstm_from(struct graph *g, struct tensor *u, struct tensor *wh, struct tensor *bh,
                              struct tensor *h0, struct tensor *c0, struct tensor **cell) {
    struct call *c = graph_call(g, &op_scan_lstm, NULL, 0, (struct tensor *[]){u, wh, bh, h0, c0}, h0 ? 5 : 3);
    *cell = c ? c->out[1] : NULL;
    return c ? c->out[0] : NULL;
}

static void scan_lstm_infer(struct graph *g, struct call *c) {
    const struct tensor *u = c->in[0], *wh = c->in[1], *bh = c->in[2];
    if (!infer_present(g, c, c->n_in)) return;
    int64_t H = tensor_cols(wh);
    const struct tensor *states[] = {lstm_first(c, 0), lstm_first(c, 1)};
    if (u->rank != 3 || wh->rank != 2 || bh->rank != 1) {
        graph_fail(g, ST_USAGE, "scan_lstm: u, wh, bh have rank %d, %d, %d, expected 3, 2, 1", u->rank, wh->rank,
                   bh->rank);
    } else if (wh->dims[0] != 4 * H) {
        graph_fail(g, ST_USAGE, "scan_lstm: wh is %" PRId64 " x %" PRId64 ", expected 4H x H = %" PRId64 " x %" PRId64,
                   wh->dims[0], H, 4 * H, H);
    } else if (u->dims[2] != 4 * H) {
        graph_fail(g, ST_USAGE, "scan_lstm: u is %" PRId64 " wide, expected 4H = %" PRId64, u->dims[2], 4 * H);
    } else if (bh->dims[0] != 4 * H) {
        graph_fail(g, ST_USAGE, "scan_lstm: bh has %" PRId64 " elements, expected 4H = %" PRId64, bh->dims[0], 4 * H);
    } else {
        int64_t B = u->dims[0], T = u->dims[1];
        for (int i = 0; i < 2 && states[i]; i++)
            if (states[i]->rank != 2 || states[i]->dims[0] != B || states[i]->dims[1] != H) {
                graph_fail(g, ST_USAGE,
                           "scan_lstm: %s has %" PRId64 " rows of %" PRId64 ", expected B = %" PRId64
                           " of H = %" PRId64,
                           i ? "c0" : "h0", tensor_rows(states[i]), tensor_cols(states[i]), B, H);
                return;
            }
        graph_output(g, c, DT_REAL, 3, (int64_t[]){B, T, H});
        struct tensor *cell = graph_output(g, c, DT_REAL, 3, (int64_t[]){B, T, H});
        struct tensor *gates = graph_output(g, c, DT_REAL, 3, (int64_t[]){B, T, 4 * H});
        if (gates) gates->needs_grad = false;
        if (cell) cell->needs_grad = false;
    }
}

/* FLOPs per token: forward 8H^2 + 25H; backward two products of 8H^2 and about 35H. The bytes of the weights count once
 * per pass. */
static struct cost scan_lstm_cost(const struct call *c, enum pass pass) {
    double H = (double)tensor_cols(c->in[1]), tokens = (double)tensor_rows(c->in[0]);
    if (pass == PASS_FORWARD)
        return (struct cost){tokens * (8 * H * H + 25 * H), sizeof(real) * (tokens * 10 * H + 4 * H * H)};
    return (struct cost){tokens * (16 * H * H + 35 * H), sizeof(real) * (tokens * 11 * H + 8 * H * H)};
}

static bool scan_lstm_build(struct graph *g, const struct op_sizes *s) {
    int64_t H = s->dim;
    if (s->variant > 1) return false;
    struct tensor *u = input_tokens(g, s, "u", 4 * H), *wh = input_matrix(g, "wh", 4 * H, H), *cell = NULL;
    struct tensor *bh = input_vector(g, "bh", 4 * H);
    struct tensor *h0 = s->variant ? input_matrix(g, "h0", s->batch, H) : NULL;
    scan_lstm_from(g, u, wh, bh, h0, s->variant ? input_matrix(g, "c0", s->batch, H) : NULL, &cell);
    return true;
}

const struct op op_scan_lstm = {
    .name = "scan_lstm",
    .maths = "i,f,g,o = u_t + wh h_{t-1} + bh; c_t = sig(f) c_{t-1} + sig(i) tanh(g); h_t = sig(o) tanh(c_t)",
    .source = "Hochreiter & Schmidhuber 1997; gates as PyTorch",
    .needs_in = 2 | 1 << 3 | 1 << 4,
    .needs_out = 7,
    .infer = scan_lstm_infer,
    .cost = scan_lstm_cost,
    .sizes = "batch length dim",
    .build = scan_lstm_build,
};

/* --- reference: one sequence after the other, sums in double ------------------------------------------------------ */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void scan_lstm_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = tensor_cols(c->in[1]);
    const real *wh = tensor_real(c->in[1]), *bh = tensor_real(c->in[2]);
    for (int64_t token = 0; token < B * T; token++) {
        bool first = token % T == 0;
        const real *u = tensor_real(c->in[0]) + token * 4 * H;
        real *h = tensor_real(c->out[0]) + token * H, *cell = tensor_real(c->out[1]) + token * H;
        real *gates = tensor_real(c->out[2]) + token * 4 * H;
        const real *h_before = first ? lstm_row(c, 0, token / T) : h - H;
        const real *c_before = first ? lstm_row(c, 1, token / T) : cell - H;
        for (int64_t r = 0; r < 4 * H; r++) {
            double p = (double)u[r] + bh[r];
            for (int64_t j = 0; j < H && h_before; j++) p += (double)wh[r * H + j] * h_before[j];
            gates[r] = (real)(r / H == 2 ? tanh(p) : sigmoid(p));
        }
        for (int64_t j = 0; j < H; j++) {
            double before = c_before ? c_before[j] : 0;
            cell[j] = (real)(gates[H + j] * before + (double)gates[j] * gates[2 * H + j]);
            h[j] = (real)(gates[3 * H + j] * tanh(cell[j]));
        }
    }
}

/* Scratch of the gradient: dwh and dbh; dp of one token; dh and dc, which flow to the previous step. */
struct sums {
    double *dwh, *dbh, *dp, *dh, *dc;
};

static struct sums ref_sums(const struct call *c, struct scratch *s) {
    int64_t H = tensor_cols(c->in[1]);
    struct sums sums = {.dwh = scratch_doubles(s, 4 * H * H)};
    sums.dbh = scratch_doubles(s, 4 * H);
    sums.dp = scratch_doubles(s, 4 * H);
    sums.dh = scratch_doubles(s, H);
    sums.dc = scratch_doubles(s, H);
    return sums;
}

static size_t scan_lstm_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) ref_sums(c, &s);
    return s.used;
}

static void ref_backward_token(const struct call *c, struct sums s, int64_t b, int64_t t) {
    int64_t H = tensor_cols(c->in[1]), token = b * c->in[0]->dims[1] + t;
    const real *wh = tensor_real(c->in[1]), *cell = tensor_real(c->out[1]) + token * H;
    const real *gates = tensor_real(c->out[2]) + token * 4 * H, *d_cell = call_dout(c, 1);
    const real *h_before = t == 0 ? lstm_row(c, 0, b) : tensor_real(c->out[0]) + (token - 1) * H;
    const real *c_before = t == 0 ? lstm_row(c, 1, b) : cell - H;
    for (int64_t j = 0; j < H; j++) {
        double i = gates[j], f = gates[H + j], g = gates[2 * H + j], o = gates[3 * H + j];
        double dh = call_dout(c, 0)[token * H + j] + s.dh[j], tanh_c = tanh(cell[j]);
        double dc = s.dc[j] + (d_cell ? d_cell[token * H + j] : 0) + dh * o * (1 - tanh_c * tanh_c);
        s.dp[j] = dc * g * i * (1 - i);
        s.dp[H + j] = c_before ? dc * c_before[j] * f * (1 - f) : 0;
        s.dp[2 * H + j] = dc * i * (1 - g * g);
        s.dp[3 * H + j] = dh * tanh_c * o * (1 - o);
        s.dc[j] = dc * f;
    }
    memset(s.dh, 0, (size_t)H * sizeof *s.dh);
    for (int64_t r = 0; r < 4 * H; r++) {
        for (int64_t j = 0; j < H && h_before; j++) {
            s.dh[j] += s.dp[r] * wh[r * H + j];
            s.dwh[r * H + j] += s.dp[r] * h_before[j];
        }
        s.dbh[r] += s.dp[r];
        if (c->din[0]) put(c->din[0] + token * 4 * H + r, call_accumulates(c, 0), (real)s.dp[r]);
    }
}

static void scan_lstm_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = tensor_cols(c->in[1]);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct sums s = ref_sums(c, &scratch);
    memset(s.dwh, 0, (size_t)(4 * H * H) * sizeof *s.dwh);
    memset(s.dbh, 0, (size_t)(4 * H) * sizeof *s.dbh);
    for (int64_t b = 0; b < B; b++) {
        memset(s.dh, 0, (size_t)H * sizeof *s.dh);
        memset(s.dc, 0, (size_t)H * sizeof *s.dc);
        for (int64_t t = T - 1; t >= 0; t--) ref_backward_token(c, s, b, t);
        for (int64_t j = 0; j < H && c->n_in > 3; j++) {
            if (c->din[3]) put(c->din[3] + b * H + j, call_accumulates(c, 3), (real)s.dh[j]);
            if (c->din[4]) put(c->din[4] + b * H + j, call_accumulates(c, 4), (real)s.dc[j]);
        }
    }
    for (int64_t i = 0; c->din[1] && i < 4 * H * H; i++) put(c->din[1] + i, call_accumulates(c, 1), (real)s.dwh[i]);
    for (int64_t r = 0; c->din[2] && r < 4 * H; r++) put(c->din[2] + r, call_accumulates(c, 2), (real)s.dbh[r]);
}

const struct kernel kernel_scan_lstm_ref = {
    .name = "scan_lstm_ref",
    .op = &op_scan_lstm,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_lstm_ref_workspace,
    .forward = scan_lstm_ref_forward,
    .backward = scan_lstm_ref_backward,
};

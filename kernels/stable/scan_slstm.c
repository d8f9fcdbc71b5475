/* scan_slstm.c - the recurrence of sLSTM: the op and its reference.
 *
 * The four gates g are input i, forget f, value z and output o. raw_g are their inputs, R_g the recurrent weights and
 * b_g the biases. The state of a channel is h, c and its normaliser n; m keeps the exponentials in range:
 *   p_g = raw_g[t] + R_g h_{t-1} + b_g;   m_t = max(p_i, logsig(p_f) + m_{t-1});   z = tanh(p_z);   o = sig(p_o)
 *   I = exp(p_i - m_t);   F = exp(logsig(p_f) + m_{t-1} - m_t)
 *   c_t = F c_{t-1} + I z;   n_t = F n_{t-1} + I;   h_t = o c_t / n_t
 * m_{-1} = -infinity. So at the first step I = 1 and F = 0, and no earlier state is read. At each step I or F is 1, so
 * n_t >= 1.
 *
 * Backward: c_t and n_t have the same factor exp(-m_t), which cancels in h_t, so m is treated as a constant. dh_t is
 * the output's gradient plus the sum over gates of R_g^T dp_g of step t + 1. dc_t and dn_t start as F dc and F dn of
 * step t + 1. Then:
 *   dc_t += dh_t o / n_t;       dn_t -= dh_t o c_t / n_t^2
 *   dp_i = I (dc_t z + dn_t);   dp_f = F (1 - sig(p_f)) (dc_t c_{t-1} + dn_t n_{t-1})
 *   dp_z = dc_t I (1 - z^2);    dp_o = dh_t (c_t / n_t) o (1 - o)
 * The gradient of raw_g is dp_g. dR_g is the sum of dp_g h_{t-1}^T over tokens, and db_g is the sum of dp_g. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/stable/stable.h"

struct tensor *scan_slstm(struct graph *g, struct tensor *const raw[4], struct tensor *recurrent, struct tensor *b) {
    struct tensor *in[] = {raw[0], raw[1], raw[2], raw[3], recurrent, b};
    return call1(g, &op_scan_slstm, NULL, 0, in, 6);
}

static void scan_slstm_infer(struct graph *g, struct call *c) {
    const struct tensor *raw = c->in[0], *r = c->in[SLSTM_RECURRENT], *b = c->in[SLSTM_BIAS];
    if (!infer_present(g, c, 6)) return;
    for (int i = 1; i < SLSTM_GATES; i++)
        if (!infer_same_shape(g, c, 0, i)) return;
    int64_t D = tensor_cols(raw), dh = tensor_cols(r);
    if (raw->rank != 3 || r->rank != 2 || b->rank != 1) {
        graph_fail(g, ST_USAGE, "scan_slstm: raw gates, recurrent, bias have rank %d, %d, %d, expected 3, 2, 1",
                   raw->rank, r->rank, b->rank);
    } else if (D % dh != 0 || r->dims[0] != 4 * D) {
        graph_fail(g, ST_USAGE,
                   "scan_slstm: recurrent is %" PRId64 " x %" PRId64 ", expected 4D = %" PRId64
                   " rows, and a number of columns that divides D = %" PRId64,
                   r->dims[0], dh, 4 * D, D);
    } else if (b->dims[0] != 4 * D) {
        graph_fail(g, ST_USAGE, "scan_slstm: bias has %" PRId64 " elements, expected 4D = %" PRId64, b->dims[0], 4 * D);
    } else {
        int64_t B = raw->dims[0], T = raw->dims[1];
        graph_output(g, c, DT_REAL, 3, raw->dims);
        struct tensor *kept = graph_output(g, c, DT_REAL, 3, (int64_t[]){B, T, SLSTM_KEPT_PARTS * D});
        struct tensor *cells = graph_output(g, c, DT_REAL, 3, (int64_t[]){B, T, SLSTM_CELL_PARTS * D});
        if (kept) kept->needs_grad = false;
        if (cells) cells->needs_grad = false;
    }
}

/* The gates of a token take about 60D FLOPs in forward and 35D in backward. An exponential counts as 10 FLOPs. */
static struct cost scan_slstm_cost(const struct call *c, enum pass pass) {
    double D = (double)tensor_cols(c->in[0]), dh = (double)tensor_cols(c->in[SLSTM_RECURRENT]);
    double tokens = (double)tensor_rows(c->in[0]);
    if (pass == PASS_FORWARD)
        return (struct cost){tokens * (8 * D * dh + 60 * D), sizeof(real) * (tokens * 12 * D + 4 * D * dh)};
    return (struct cost){tokens * (16 * D * dh + 35 * D), sizeof(real) * (tokens * 13 * D + 8 * D * dh)};
}

static struct heads scan_slstm_heads(const struct call *c) {
    int64_t dh = tensor_cols(c->in[SLSTM_RECURRENT]);
    return (struct heads){tensor_cols(c->in[0]) / dh, {dh, dh, dh, dh, 4 * dh * dh, 4 * dh}, {dh, dh, dh}};
}

static bool scan_slstm_build(struct graph *g, const struct op_sizes *s) {
    static const char *const names[] = {"i", "f", "z", "o"};
    int64_t D = s->heads * s->dk;
    struct tensor *raw[SLSTM_GATES];
    if (s->variant > 0) return false;
    for (int i = 0; i < SLSTM_GATES; i++) raw[i] = input_tokens(g, s, names[i], D);
    struct tensor *recurrent = input_matrix(g, "recurrent", 4 * D, s->dk);
    scan_slstm(g, raw, recurrent, input_vector(g, "b", 4 * D));
    return true;
}

const struct op op_scan_slstm = {
    .name = "scan_slstm",
    .maths =
        "p = raw_t + R h_{t-1} + b; m_t = max(p_i, logsig(p_f) + m_{t-1}); (c, n)_t = F (c, n)_{t-1} + I (tanh(p_z), "
        "1); h_t = sig(p_o) c_t / n_t",
    .source = "xLSTM (Beck et al. 2024), Eq. 8 to 17",
    .needs_in = 1U << SLSTM_RECURRENT,
    .needs_out = 7,
    .infer = scan_slstm_infer,
    .cost = scan_slstm_cost,
    .heads = scan_slstm_heads,
    .sizes = "batch length heads dk",
    .build = scan_slstm_build,
};

/* --- reference: one head of one sequence at a time, with states in double ----------------------------------------- */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Scratch arrays. In forward h, c, n, m are the values of one head at the previous step. In backward h, c, n are the
 * gradients of these values, and dp is the gradient of the head's p. dR and db are the gradients of all heads. */
struct work {
    double *h, *c, *n, *m, *dp, *dR, *db;
};

static struct work work_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t D = tensor_cols(c->in[0]), dh = tensor_cols(c->in[SLSTM_RECURRENT]);
    struct work w = {.h = scratch_doubles(s, dh)};
    w.c = scratch_doubles(s, dh);
    w.n = scratch_doubles(s, dh);
    w.m = scratch_doubles(s, dh);
    if (pass == PASS_FORWARD) return w;
    w.dp = scratch_doubles(s, 4 * dh);
    w.dR = scratch_doubles(s, 4 * D * dh);
    w.db = scratch_doubles(s, 4 * D);
    return w;
}

static size_t scan_slstm_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    work_of(c, pass, &s);
    return s.used;
}

/* first: the first token of a sequence. at() returns the index of channel j in a part of token t, in a tensor that has
 * `parts` parts of D numbers per token. */
struct place_of {
    int64_t first, D;
};

static int64_t at(struct place_of p, int64_t parts, int64_t t, int part, int64_t j) {
    return ((p.first + t) * parts + part) * p.D + j;
}

static void ref_forward_head(const struct call *c, struct work w, int64_t b, int64_t head) {
    int64_t T = c->in[0]->dims[1], D = tensor_cols(c->in[0]), dh = tensor_cols(c->in[SLSTM_RECURRENT]);
    const real *R = tensor_real(c->in[SLSTM_RECURRENT]) + head * 4 * dh * dh;
    const real *bias = tensor_real(c->in[SLSTM_BIAS]) + head * 4 * dh;
    real *h = tensor_real(c->out[SLSTM_H]), *kept = tensor_real(c->out[SLSTM_KEPT]);
    real *cells = tensor_real(c->out[SLSTM_CELLS]);
    struct place_of p = {b * T, D};
    for (int64_t t = 0; t < T; t++) {
        for (int64_t j = 0; j < dh; j++) {
            int64_t column = head * dh + j;
            double x[SLSTM_GATES];
            for (int g = 0; g < SLSTM_GATES; g++) {
                x[g] = (double)tensor_real(c->in[g])[at(p, 1, t, 0, column)] + bias[g * dh + j];
                for (int64_t k = 0; k < dh && t > 0; k++) x[g] += (double)R[(g * dh + j) * dh + k] * w.h[k];
            }
            double forget = stable_log_sigmoid(x[SLSTM_F]) + w.m[j];
            double m = t == 0 || x[SLSTM_I] > forget ? x[SLSTM_I] : forget;
            double I = exp(x[SLSTM_I] - m), F = t == 0 ? 0 : exp(forget - m);
            double z = tanh(x[SLSTM_Z]), o = sigmoid(x[SLSTM_O]);
            w.m[j] = m;
            w.c[j] = t == 0 ? I * z : F * w.c[j] + I * z;
            w.n[j] = t == 0 ? I : F * w.n[j] + I;
            h[at(p, 1, t, 0, column)] = (real)(o * w.c[j] / w.n[j]);
            double keeps[] = {I, F, z, o, sigmoid(-x[SLSTM_F])};
            for (int k = 0; k < SLSTM_KEPT_PARTS; k++) kept[at(p, SLSTM_KEPT_PARTS, t, k, column)] = (real)keeps[k];
            cells[at(p, SLSTM_CELL_PARTS, t, SLSTM_C, column)] = (real)w.c[j];
            cells[at(p, SLSTM_CELL_PARTS, t, SLSTM_N, column)] = (real)w.n[j];
        }
        for (int64_t j = 0; j < dh; j++) w.h[j] = h[at(p, 1, t, 0, head * dh + j)];
    }
}

static void scan_slstm_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], heads = tensor_cols(c->in[0]) / tensor_cols(c->in[SLSTM_RECURRENT]);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct work w = work_of(c, PASS_FORWARD, &s);
    for (int64_t i = 0; i < B * heads; i++) {
        memset(w.m, 0, (size_t)tensor_cols(c->in[SLSTM_RECURRENT]) * sizeof *w.m);
        ref_forward_head(c, w, i / heads, i % heads);
    }
}

/* Computes the gradients of step t. Before the call, h, c and n in w have the parts of dh_t, dc_t and dn_t that come
 * from step t + 1. After it they have the parts that step t - 1 needs. */
static void ref_backward_step(const struct call *c, struct work w, int64_t b, int64_t head, int64_t t) {
    int64_t T = c->in[0]->dims[1], D = tensor_cols(c->in[0]), dh = tensor_cols(c->in[SLSTM_RECURRENT]);
    const real *R = tensor_real(c->in[SLSTM_RECURRENT]) + head * 4 * dh * dh;
    const real *kept = tensor_real(c->out[SLSTM_KEPT]), *cells = tensor_real(c->out[SLSTM_CELLS]);
    struct place_of p = {b * T, D};
    for (int64_t j = 0; j < dh; j++) {
        int64_t column = head * dh + j;
        double k[SLSTM_KEPT_PARTS], cell[SLSTM_CELL_PARTS], before[SLSTM_CELL_PARTS] = {0};
        for (int i = 0; i < SLSTM_KEPT_PARTS; i++) k[i] = kept[at(p, SLSTM_KEPT_PARTS, t, i, column)];
        for (int i = 0; i < SLSTM_CELL_PARTS; i++) {
            cell[i] = cells[at(p, SLSTM_CELL_PARTS, t, i, column)];
            if (t > 0) before[i] = cells[at(p, SLSTM_CELL_PARTS, t - 1, i, column)];
        }
        double d = call_dout(c, 0)[at(p, 1, t, 0, column)] + w.h[j], mean = cell[SLSTM_C] / cell[SLSTM_N];
        double o = k[SLSTM_O], z = k[SLSTM_Z];
        double dc = w.c[j] + d * o / cell[SLSTM_N], dn = w.n[j] - d * o / cell[SLSTM_N] * mean;
        double dp[] = {k[SLSTM_I] * (dc * z + dn),
                       k[SLSTM_F] * k[SLSTM_REST] * (dc * before[SLSTM_C] + dn * before[SLSTM_N]),
                       dc * k[SLSTM_I] * (1 - z * z), d * mean * o * (1 - o)};
        w.c[j] = k[SLSTM_F] * dc;
        w.n[j] = k[SLSTM_F] * dn;
        for (int g = 0; g < SLSTM_GATES; g++) {
            w.dp[g * dh + j] = dp[g];
            w.db[(head * 4 + g) * dh + j] += dp[g];
            if (c->din[g]) put(c->din[g] + at(p, 1, t, 0, column), call_accumulates(c, g), (real)dp[g]);
        }
    }
    memset(w.h, 0, (size_t)dh * sizeof *w.h);
    for (int64_t r = 0; r < 4 * dh && t > 0; r++)
        for (int64_t j = 0; j < dh; j++) {
            w.h[j] += w.dp[r] * R[r * dh + j];
            w.dR[(head * 4 * dh + r) * dh + j] += w.dp[r] * tensor_real(c->out[0])[at(p, 1, t - 1, 0, head * dh + j)];
        }
}

static void scan_slstm_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = tensor_cols(c->in[0]);
    int64_t dh = tensor_cols(c->in[SLSTM_RECURRENT]), heads = D / dh;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct work w = work_of(c, PASS_BACKWARD, &s);
    memset(w.dR, 0, (size_t)(4 * D * dh) * sizeof *w.dR);
    memset(w.db, 0, (size_t)(4 * D) * sizeof *w.db);
    for (int64_t i = 0; i < B * heads; i++) {
        memset(w.h, 0, (size_t)dh * sizeof *w.h);
        memset(w.c, 0, (size_t)dh * sizeof *w.c);
        memset(w.n, 0, (size_t)dh * sizeof *w.n);
        for (int64_t t = T - 1; t >= 0; t--) ref_backward_step(c, w, i / heads, i % heads, t);
    }
    real *dR = c->din[SLSTM_RECURRENT], *db = c->din[SLSTM_BIAS];
    for (int64_t i = 0; dR && i < 4 * D * dh; i++) put(dR + i, call_accumulates(c, SLSTM_RECURRENT), (real)w.dR[i]);
    for (int64_t i = 0; db && i < 4 * D; i++) put(db + i, call_accumulates(c, SLSTM_BIAS), (real)w.db[i]);
}

const struct kernel kernel_scan_slstm_ref = {
    .name = "scan_slstm_ref",
    .op = &op_scan_slstm,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_slstm_ref_workspace,
    .forward = scan_slstm_ref_forward,
    .backward = scan_slstm_ref_backward,
};

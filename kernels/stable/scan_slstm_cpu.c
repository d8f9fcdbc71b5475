/* scan_slstm_cpu.c - the recurrence of sLSTM on the CPU.
 *
 * The batch is cut into tiles of sequences, which are independent. At each step, a tile's h is multiplied with R: one
 * matrix product per head. The state (h, c, n, m) and its gradients are packed in scratch memory. In the tensors, one
 * step's rows of neighbouring sequences are T rows apart; T is often a power of two, so these rows would compete for a
 * few sets of the cache. Backward stores dp and the previous h of every step, so that dR of a head is one product over
 * all tokens of a tile. The equations are in scan_slstm.c. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/gemm.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/stable/stable.h"

#define MAX_TILES  8
#define BATCH_TILE 32 /* fewest sequences of a tile: the GEMM library packs R again in each product */

struct size {
    int64_t B, T, D, dh, heads, tiles;
};

static struct size size_of(const struct call *c) {
    const struct tensor *raw = c->in[0];
    struct size s = {raw->dims[0], raw->dims[1], raw->dims[2], tensor_cols(c->in[SLSTM_RECURRENT]), 0, 0};
    s.heads = s.D / s.dh;
    s.tiles = s.B / BATCH_TILE < 1 ? 1 : s.B / BATCH_TILE > MAX_TILES ? MAX_TILES : s.B / BATCH_TILE;
    return s;
}

/* n sequences; the first is b. */
struct tile {
    int64_t b, n;
};

static struct tile tile_at(const struct size *s, int64_t i) {
    struct range rows = part_at(s->B, s->tiles, i);
    return (struct tile){rows.begin, rows.end - rows.begin};
}

static int64_t rows_at_most(const struct size *s) {
    return (s->B + s->tiles - 1) / s->tiles;
}

#define STEP static inline __attribute__((always_inline)) /* so that `first` is a constant in the loops over channels */

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Scratch arrays of a tile; `product` has R h. Each array has one row for each sequence of each head, head by head. */
struct states {
    real *h, *c, *n, *m, *product;
};

static struct states states_of(const struct size *s, struct scratch *scratch) {
    int64_t n = rows_at_most(s) * s->D;
    struct states w = {0};
    scratch_take(scratch,
                 (struct scratch_array[]){{&w.h, n}, {&w.c, n}, {&w.n, n}, {&w.m, n}, {&w.product, SLSTM_GATES * n}},
                 5);
    return w;
}

/* Sets *log to log sig(f) and *rest to 1 - sig(f). */
STEP void log_sigmoid(real f, real *log, real *rest) {
    real e = real_exp(-real_abs(f)), w = 1 + e;
    *rest = (f < 0 ? 1 : e) / w;
    *log = (f < 0 ? f : 0) - (real_log(w) + (e - (w - 1)) / w); /* the last term restores what 1 + e rounds away */
}

/* Computes one head of one token. `row` is its row in the arrays of `w`. */
STEP void step_forward(bool first, const struct call *c, const struct size *s, const struct states *w, int64_t token,
                       int64_t head, int64_t row) {
    int64_t dh = s->dh, D = s->D, e = token * D + head * dh;
    const real *i_raw = tensor_real(c->in[SLSTM_I]) + e, *f_raw = tensor_real(c->in[SLSTM_F]) + e;
    const real *z_raw = tensor_real(c->in[SLSTM_Z]) + e, *o_raw = tensor_real(c->in[SLSTM_O]) + e;
    const real *b = tensor_real(c->in[SLSTM_BIAS]) + head * SLSTM_GATES * dh;
    const real *p = w->product + row * SLSTM_GATES * dh;
    real *hr = w->h + row * dh, *cr = w->c + row * dh, *nr = w->n + row * dh, *mr = w->m + row * dh;
    real *h = tensor_real(c->out[SLSTM_H]) + e;
    real *kept = tensor_real(c->out[SLSTM_KEPT]) + token * SLSTM_KEPT_PARTS * D + head * dh;
    real *cells = tensor_real(c->out[SLSTM_CELLS]) + token * SLSTM_CELL_PARTS * D + head * dh;
#pragma omp simd
    for (int64_t j = 0; j < dh; j++) {
        real i = i_raw[j] + b[j], f = f_raw[j] + b[dh + j], z = z_raw[j] + b[2 * dh + j], o = o_raw[j] + b[3 * dh + j];
        if (!first) i += p[j], f += p[dh + j], z += p[2 * dh + j], o += p[3 * dh + j];
        real log, rest;
        log_sigmoid(f, &log, &rest);
        z = real_tanh(z);
        o = real_sigmoid(o);
        real I = 1, F = 0, m = i, cell = z, n = 1;
        if (!first) {
            real forget = log + mr[j], less = real_exp(-real_abs(forget - i));
            bool input = forget < i;
            m = input ? i : forget;
            I = input ? 1 : less;
            F = input ? less : 1;
            cell = real_fma(F, cr[j], I * z);
            n = real_fma(F, nr[j], I);
        }
        mr[j] = m;
        cr[j] = cell;
        nr[j] = n;
        hr[j] = o * (cell / n);
        h[j] = hr[j];
        kept[j] = I;
        kept[D + j] = F;
        kept[2 * D + j] = z;
        kept[3 * D + j] = o;
        kept[4 * D + j] = rest;
        cells[j] = cell;
        cells[D + j] = n;
    }
}

static void forward_tile(const struct call *c, const struct size *s, struct tile tile, struct states w) {
    int64_t gates = SLSTM_GATES * s->dh;
    const real *R = tensor_real(c->in[SLSTM_RECURRENT]);
    for (int64_t t = 0; t < s->T; t++) {
        for (int64_t head = 0; head < s->heads && t > 0; head++)
            real_gemm(false, true, tile.n, gates, s->dh, 1, w.h + head * tile.n * s->dh, s->dh,
                      R + head * gates * s->dh, s->dh, false, w.product + head * tile.n * gates, gates);
        for (int64_t r = 0; r < tile.n; r++) {
            int64_t token = (tile.b + r) * s->T + t;
            for (int64_t head = 0; head < s->heads; head++) {
                if (t == 0) step_forward(true, c, s, &w, token, head, head * tile.n + r);
                if (t > 0) step_forward(false, c, s, &w, token, head, head * tile.n + r);
            }
        }
    }
}

static void scan_slstm_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    struct size s = size_of(c);
    struct scratch all = scratch_of(c, PASS_FORWARD);
#pragma omp parallel for schedule(static) if (s.B * s.T * s.D > PARALLEL_MIN)
    for (int64_t i = 0; i < s.tiles; i++) {
        struct scratch own = scratch_part(&all, i, s.tiles);
        forward_tile(c, &s, tile_at(&s, i), states_of(&s, &own));
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Scratch arrays of a tile. dp and `before` (the previous h) are ordered by head, step and sequence. dh, dc and dn have
 * one row for each sequence of each head. dR and db are sums over the tile, db_step is a sum over one step. */
struct flow {
    real *dp, *before, *dh, *dc, *dn, *dR, *db, *db_step;
};

static struct flow flow_of(const struct size *s, struct scratch *scratch) {
    int64_t n = rows_at_most(s) * s->D, gates = SLSTM_GATES * s->D;
    struct flow w = {0};
    scratch_take(scratch,
                 (struct scratch_array[]){{&w.dp, s->T * n * SLSTM_GATES},
                                          {&w.before, s->T * n},
                                          {&w.dh, n},
                                          {&w.dc, n},
                                          {&w.dn, n},
                                          {&w.dR, gates * s->dh},
                                          {&w.db, gates},
                                          {&w.db_step, gates}},
                 8);
    return w;
}

/* Computes dp of one head of one token, and dc and dn for step t - 1. `row` is the head's row in dh, dc and dn. w->dh
 * has the part of dh that comes from step t + 1. */
STEP void step_backward(bool first, const struct call *c, const struct size *s, const struct flow *w, int64_t token,
                        int64_t head, int64_t row, real *dp) {
    int64_t dh = s->dh, D = s->D;
    const real *dout = call_dout(c, 0) + token * D + head * dh, *dh_r = w->dh + row * dh;
    const real *kept = tensor_real(c->out[SLSTM_KEPT]) + token * SLSTM_KEPT_PARTS * D + head * dh;
    const real *cells = tensor_real(c->out[SLSTM_CELLS]) + token * SLSTM_CELL_PARTS * D + head * dh;
    const real *before = first ? cells : cells - SLSTM_CELL_PARTS * D;
    real *dc_r = w->dc + row * dh, *dn_r = w->dn + row * dh, *db = w->db_step + head * SLSTM_GATES * dh;
#pragma omp simd
    for (int64_t j = 0; j < dh; j++) {
        real I = kept[j], F = kept[D + j], z = kept[2 * D + j], o = kept[3 * D + j], rest = kept[4 * D + j];
        real d = dout[j] + dh_r[j], part = 1 / cells[D + j], mean = cells[j] * part, scaled = d * o * part;
        real dc = dc_r[j] + scaled, dn = real_fma(-scaled, mean, dn_r[j]);
        real di = I * real_fma(dc, z, dn);
        real df = first ? 0 : F * rest * real_fma(dc, before[j], dn * before[D + j]);
        real dz = dc * I * (1 - z * z), d_o = d * mean * (o * (1 - o));
        dp[j] = di;
        dp[dh + j] = df;
        dp[2 * dh + j] = dz;
        dp[3 * dh + j] = d_o;
        db[j] += di;
        db[dh + j] += df;
        db[2 * dh + j] += dz;
        db[3 * dh + j] += d_o;
        dc_r[j] = F * dc;
        dn_r[j] = F * dn;
    }
}

STEP void backward_at(bool first, const struct call *c, const struct size *s, struct tile tile, const struct flow *w,
                      int64_t t) {
    int64_t dh = s->dh, gates = SLSTM_GATES * dh;
    memset(w->db_step, 0, (size_t)(SLSTM_GATES * s->D) * sizeof(real));
    for (int64_t r = 0; r < tile.n; r++) {
        int64_t token = (tile.b + r) * s->T + t;
        for (int64_t head = 0; head < s->heads; head++) {
            int64_t kept_row = (head * s->T + t) * tile.n + r, e = token * s->D + head * dh;
            real *dp = w->dp + kept_row * gates;
            step_backward(first, c, s, w, token, head, head * tile.n + r, dp);
            for (int g = 0; g < SLSTM_GATES; g++)
                for (int64_t j = 0; c->din[g] && j < dh; j++)
                    put(c->din[g] + e + j, call_accumulates(c, g), dp[g * dh + j]);
            if (!first)
                memcpy(w->before + kept_row * dh, tensor_real(c->out[SLSTM_H]) + e - s->D, (size_t)dh * sizeof(real));
        }
    }
    for (int64_t k = 0; k < SLSTM_GATES * s->D; k++) w->db[k] += w->db_step[k]; /* two-level sums round less */
}

static void backward_tile(const struct call *c, const struct size *s, struct tile tile, struct flow w) {
    int64_t T = s->T, dh = s->dh, gates = SLSTM_GATES * dh, rows = tile.n;
    const real *R = tensor_real(c->in[SLSTM_RECURRENT]);
    size_t row_bytes = (size_t)(rows * s->D) * sizeof(real);
    memset(w.dh, 0, row_bytes);
    memset(w.dc, 0, row_bytes);
    memset(w.dn, 0, row_bytes);
    memset(w.db, 0, (size_t)(SLSTM_GATES * s->D) * sizeof(real));
    for (int64_t t = T - 1; t > 0; t--) {
        backward_at(false, c, s, tile, &w, t);
        for (int64_t head = 0; head < s->heads; head++)
            real_gemm(false, false, rows, dh, gates, 1, w.dp + (head * T + t) * rows * gates, gates,
                      R + head * gates * dh, dh, false, w.dh + head * rows * dh, dh);
    }
    backward_at(true, c, s, tile, &w, 0);
    for (int64_t head = 0; head < s->heads && c->din[SLSTM_RECURRENT]; head++) {
        real *dR = w.dR + head * gates * dh;
        int64_t second = (head * T + 1) * rows; /* row of step 1; step 0 has no previous h */
        if (T > 1)
            real_gemm(true, false, gates, dh, (T - 1) * rows, 1, w.dp + second * gates, gates, w.before + second * dh,
                      dh, false, dR, dh);
        else
            memset(dR, 0, (size_t)(gates * dh) * sizeof(real));
    }
}

static void scan_slstm_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct size s = size_of(c);
    struct scratch all = scratch_of(c, PASS_BACKWARD);
    int64_t gates = SLSTM_GATES * s.D;
#pragma omp parallel for schedule(static) if (s.B * s.T * s.D > PARALLEL_MIN)
    for (int64_t i = 0; i < s.tiles; i++) {
        struct scratch own = scratch_part(&all, i, s.tiles);
        backward_tile(c, &s, tile_at(&s, i), flow_of(&s, &own));
    }
    real *dR = c->din[SLSTM_RECURRENT], *db = c->din[SLSTM_BIAS];
    for (int64_t i = 0; i < s.tiles; i++) {
        struct scratch own = scratch_part(&all, i, s.tiles);
        struct flow w = flow_of(&s, &own);
        if (dR) sum_partials(gates * s.dh, 1, w.dR, 0, dR, i > 0 || call_accumulates(c, SLSTM_RECURRENT));
        if (db) sum_partials(gates, 1, w.db, 0, db, i > 0 || call_accumulates(c, SLSTM_BIAS));
    }
}

static size_t scan_slstm_cpu_workspace(const struct call *c, enum pass pass) {
    struct size s = size_of(c);
    struct scratch scratch = scratch_measure(c);
    for (int64_t i = 0; i < s.tiles; i++) {
        if (pass == PASS_FORWARD) states_of(&s, &scratch);
        if (pass == PASS_BACKWARD) flow_of(&s, &scratch);
    }
    return scratch.used;
}

/* Tolerance: an error of a pre-activation grows from step to step through R. In addition m is a sum of up to T
 * logarithms, and an absolute error of m is a relative error of the gates. */
const struct kernel kernel_scan_slstm_cpu = {
    .name = "scan_slstm_cpu",
    .op = &op_scan_slstm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 1024,
    .tiles = "each step is a product of the batch's rows with R, and the tiles of the library depend on the number of "
             "rows",
    .workspace = scan_slstm_cpu_workspace,
    .forward = scan_slstm_cpu_forward,
    .backward = scan_slstm_cpu_backward,
};

/* grid_gates.c - from raw values to the eight gates of a grid node, in each of four directions: the op and its
 * reference.
 *
 * P-mode (pLSTM, Eq. 5), raw s, t, m, o: S = sig(s), T = tanh(5t), M = sig(m), a = sig(o):
 *   paper:  rl = ru = T a;  dl = du = T (1-a);  Sr = S a;  Sd = S (1-a);   Ml = Mu = M
 *   ref:    rl = ru = T a;  dl = du = 1 - T a;  Sr = S a;  Sd = 1 - S a;   Ml = Mu = M      (the released code)
 * D-mode (section 3.3.1), raw sr, sd, right, down, turn, left, top: Sr, Sd, Ml, Mu logistic, rl, du and the turn
 * tanh(5.);
 *   chirality L:  ru = turn, dl = 0;   R:  dl = turn, ru = 0 */
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/sizes.h"
#include "kernels/plstm/grid/grid.h"

struct tensor *grid_gates(struct graph *g, struct tensor *const *raw, enum grid_form form) {
    struct grid_gates_attr attr = {.form = form};
    return call1(g, &op_grid_gates, &attr, sizeof attr, raw, grid_raw_count(form));
}

int grid_raw_count(enum grid_form form) {
    return form == GRID_P || form == GRID_P_REF ? 4 : 7;
}

static void grid_gates_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, c->n_in)) return;
    const struct tensor *z = c->in[0];
    for (int i = 1; i < c->n_in; i++)
        if (!infer_same_shape(g, c, 0, i)) return;
    if (z->rank != 3 || z->dims[2] % 4 != 0)
        graph_fail(g, ST_USAGE,
                   "grid_gates: raw gates have rank %d and %" PRId64
                   " columns, expected rank 3 and 4 directions a head",
                   z->rank, tensor_cols(z));
    else
        graph_output(g, c, DT_REAL, 3, (int64_t[]){z->dims[0], z->dims[1], GRID_PLANES * z->dims[2]});
}

/* An exponential counts 10. */
static struct cost grid_gates_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->in[0]), raw = n * c->n_in, gates = n * GRID_PLANES;
    if (pass == PASS_FORWARD) return (struct cost){13 * raw, (raw + gates) * sizeof(real)};
    return (struct cost){18 * raw, (2 * raw + gates) * sizeof(real)};
}

/* Variants: the forms. */
static bool grid_gates_build(struct graph *g, const struct op_sizes *s) {
    static const char *const names[7] = {"z0", "z1", "z2", "z3", "z4", "z5", "z6"};
    struct tensor *raw[7];
    if (s->variant >= GRID_FORMS) return false;
    enum grid_form form = (enum grid_form)s->variant;
    for (int i = 0; i < grid_raw_count(form); i++) raw[i] = input_tokens(g, s, names[i], 4 * s->heads);
    grid_gates(g, raw, form);
    return true;
}

static struct heads grid_gates_heads(const struct call *c) {
    return (struct heads){tensor_cols(c->in[0]), {1, 1, 1, 1, 1, 1, 1}, {1}};
}

const struct op op_grid_gates = {
    .name = "grid_gates",
    .maths = "Sr, Sd, rl, ru, dl, du, Ml, Mu of P-mode (paper, ref) or D-mode (L, R) from raw gates",
    .source = "pLSTM (workshop version), section 3.3.1, Eq. 5; ml-jku/plstm, plstm_2d_layer_fused.py",
    .needs_in = 127,
    .infer = grid_gates_infer,
    .cost = grid_gates_cost,
    .heads = grid_gates_heads,
    .sizes = "batch length heads",
    .build = grid_gates_build,
};

/* --- reference: one raw column of one node after the other -------------------------------------------------------- */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void ref_gates(enum grid_form form, const double *z, double *gate) {
    if (form == GRID_P || form == GRID_P_REF) {
        double S = sigmoid(z[0]), T = tanh(5 * z[1]), a = sigmoid(z[3]);
        bool ref = form == GRID_P_REF;
        gate[GRID_SR] = S * a;
        gate[GRID_SD] = ref ? 1 - S * a : S * (1 - a);
        gate[GRID_RL] = gate[GRID_RU] = T * a;
        gate[GRID_DL] = gate[GRID_DU] = ref ? 1 - T * a : T * (1 - a);
        gate[GRID_ML] = gate[GRID_MU] = sigmoid(z[2]);
        return;
    }
    double turn = tanh(5 * z[4]);
    gate[GRID_SR] = sigmoid(z[0]);
    gate[GRID_SD] = sigmoid(z[1]);
    gate[GRID_RL] = tanh(5 * z[2]);
    gate[GRID_RU] = form == GRID_D_LEFT ? turn : 0;
    gate[GRID_DL] = form == GRID_D_LEFT ? 0 : turn;
    gate[GRID_DU] = tanh(5 * z[3]);
    gate[GRID_ML] = sigmoid(z[5]);
    gate[GRID_MU] = sigmoid(z[6]);
}

static double sigmoid_slope(double z) {
    double s = sigmoid(z);
    return s * (1 - s);
}

static double tanh5_slope(double z) {
    double t = tanh(5 * z);
    return 5 * (1 - t * t);
}

static void ref_raw_gradient(enum grid_form form, const double *z, const double *d, double *dz) {
    if (form == GRID_P || form == GRID_P_REF) {
        bool ref = form == GRID_P_REF;
        double S = sigmoid(z[0]), T = tanh(5 * z[1]), a = sigmoid(z[3]);
        double right = d[GRID_RL] + d[GRID_RU], down = d[GRID_DL] + d[GRID_DU];
        double source = ref ? a * (d[GRID_SR] - d[GRID_SD]) : a * d[GRID_SR] + (1 - a) * d[GRID_SD];
        double carry = ref ? a * (right - down) : a * right + (1 - a) * down;
        dz[0] = source * sigmoid_slope(z[0]);
        dz[1] = carry * tanh5_slope(z[1]);
        dz[2] = (d[GRID_ML] + d[GRID_MU]) * sigmoid_slope(z[2]);
        dz[3] = (T * (right - down) + S * (d[GRID_SR] - d[GRID_SD])) * sigmoid_slope(z[3]);
        return;
    }
    dz[0] = d[GRID_SR] * sigmoid_slope(z[0]);
    dz[1] = d[GRID_SD] * sigmoid_slope(z[1]);
    dz[2] = d[GRID_RL] * tanh5_slope(z[2]);
    dz[3] = d[GRID_DU] * tanh5_slope(z[3]);
    dz[4] = d[form == GRID_D_LEFT ? GRID_RU : GRID_DL] * tanh5_slope(z[4]);
    dz[5] = d[GRID_ML] * sigmoid_slope(z[5]);
    dz[6] = d[GRID_MU] * sigmoid_slope(z[6]);
}

static void grid_gates_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct grid_gates_attr *a = grid_gates_attr(c);
    int64_t rows = tensor_rows(c->in[0]), width = tensor_cols(c->in[0]);
    for (int64_t i = 0; i < rows * width; i++) {
        double z[7] = {0}, gate[GRID_PLANES];
        for (int j = 0; j < c->n_in; j++) z[j] = tensor_real(c->in[j])[i];
        ref_gates(a->form, z, gate);
        real *out = tensor_real(c->out[0]) + i / width * GRID_PLANES * width + i % width;
        for (int p = 0; p < GRID_PLANES; p++) out[p * width] = (real)gate[p];
    }
}

static void grid_gates_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct grid_gates_attr *a = grid_gates_attr(c);
    int64_t rows = tensor_rows(c->in[0]), width = tensor_cols(c->in[0]);
    for (int64_t i = 0; i < rows * width; i++) {
        double z[7] = {0}, d[GRID_PLANES], dz[7];
        const real *dout = call_dout(c, 0) + i / width * GRID_PLANES * width + i % width;
        for (int j = 0; j < c->n_in; j++) z[j] = tensor_real(c->in[j])[i];
        for (int p = 0; p < GRID_PLANES; p++) d[p] = dout[p * width];
        ref_raw_gradient(a->form, z, d, dz);
        for (int j = 0; j < c->n_in; j++)
            if (c->din[j]) put(c->din[j] + i, call_accumulates(c, j), (real)dz[j]);
    }
}

const struct kernel kernel_grid_gates_ref = {
    .name = "grid_gates_ref",
    .op = &op_grid_gates,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = grid_gates_ref_forward,
    .backward = grid_gates_ref_backward,
};

/* stable_readout.c - the read-out of a state with stable_gates, divided by its normaliser: the op and its reference.
 *
 * A head's read-out is a denominator den and values num; m is the running maximum of its gates. The state is stored in
 * units of exp(m), so E is the number 1 in these units:
 *   E = exp(-m);   D = max(|den|, E) + eps;   h = num / D
 * Backward:
 *   dnum = dh / D;   dD = -(dh . h) / D
 *   dden = sign(den) dD if |den| >= E;   else dm = -E dD = (1 - eps / D) (dh . h)
 * If E overflows, h is 0, and so is its gradient. */
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/matrix/state.h"
#include "kernels/stable/stable.h"

struct tensor *stable_readout(struct graph *g, struct tensor *o, struct tensor *m, double eps) {
    struct stable_readout_attr attr = {.eps = eps};
    return call1(g, &op_stable_readout, &attr, sizeof attr, (struct tensor *[]){o, m}, 2);
}

static void stable_readout_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    const struct tensor *o = c->in[0], *m = c->in[1];
    double eps = stable_readout_attr(c)->eps;
    if (m->rank != 3 || o->rank < 3 || o->dims[0] != m->dims[0] || o->dims[1] != m->dims[1])
        graph_fail(g, ST_USAGE, "stable_readout: o and m have ranks %d and %d, expected (B,T,...) and (B,T,heads)",
                   o->rank, m->rank);
    else if (token_width(o) % m->dims[2] != 0 || token_width(o) < 2 * m->dims[2])
        graph_fail(g, ST_USAGE,
                   "stable_readout: o is %" PRId64 " wide, expected a denominator and equally many values for each of "
                   "%" PRId64 " heads",
                   token_width(o), m->dims[2]);
    else if (!(eps >= 0))
        graph_fail(g, ST_USAGE, "stable_readout: eps is %g, expected a number that is not negative", eps);
    else
        graph_output(g, c, DT_REAL, 3, (int64_t[]){m->dims[0], m->dims[1], token_width(o) - m->dims[2]});
}

/* An exponential counts as 10 FLOPs. */
static struct cost stable_readout_cost(const struct call *c, enum pass pass) {
    double o = (double)tensor_count(c->in[0]), m = (double)tensor_count(c->in[1]), h = o - m;
    if (pass == PASS_FORWARD) return (struct cost){h + 14 * m, (o + m + h) * sizeof(real)};
    return (struct cost){4 * h + 20 * m, (2 * o + 2 * m + h) * sizeof(real)};
}

/* The variant chooses eps. */
static bool stable_readout_build(struct graph *g, const struct op_sizes *s) {
    static const double eps[] = {1e-6, 0.3, 0};
    if (s->variant >= (int64_t)(sizeof eps / sizeof eps[0])) return false;
    struct tensor *o = input_heads(g, s, "o", 1 + s->dv);
    stable_readout(g, o, input_tokens(g, s, "m", s->heads), eps[s->variant]);
    return true;
}

static struct heads stable_readout_heads(const struct call *c) {
    int64_t H = tensor_cols(c->in[1]), width = token_width(c->in[0]) / H;
    return (struct heads){H, {width, 1}, {width - 1}};
}

const struct op op_stable_readout = {
    .name = "stable_readout",
    .maths = "h = num / (max(|den|, exp(-m)) + eps) of o = (den, num) for each head",
    .source = "xLSTM (Beck et al. 2024), Eq. 21; eps as in NX-AI/xlstm",
    .needs_in = 3,
    .infer = stable_readout_infer,
    .cost = stable_readout_cost,
    .heads = stable_readout_heads,
    .sizes = "batch length heads dv",
    .build = stable_readout_build,
};

/* Returns the divisor D. A NaN in den stays NaN, while fmax would drop it. */
static double ref_divisor(const struct call *c, double den, double m) {
    double size = fabs(den), least = exp(-m);
    return (size >= least || isnan(size) ? size : least) + stable_readout_attr(c)->eps;
}

static void stable_readout_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t rows = tensor_count(c->in[1]), dv = tensor_count(c->out[0]) / rows;
    for (int64_t r = 0; r < rows; r++) {
        const real *o = tensor_real(c->in[0]) + r * (1 + dv);
        double D = ref_divisor(c, o[0], tensor_real(c->in[1])[r]);
        for (int64_t j = 0; j < dv; j++) tensor_real(c->out[0])[r * dv + j] = (real)(o[1 + j] / D);
    }
}

static void stable_readout_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t rows = tensor_count(c->in[1]), dv = tensor_count(c->out[0]) / rows;
    double eps = stable_readout_attr(c)->eps;
    for (int64_t r = 0; r < rows; r++) {
        const real *o = tensor_real(c->in[0]) + r * (1 + dv), *dh = call_dout(c, 0) + r * dv;
        real *d_o = c->din[0] ? c->din[0] + r * (1 + dv) : NULL;
        double m = tensor_real(c->in[1])[r], D = ref_divisor(c, o[0], m), along = 0;
        bool floor = fabs((double)o[0]) < exp(-m);
        for (int64_t j = 0; j < dv; j++) {
            along += dh[j] * (o[1 + j] / D);
            if (d_o) put(d_o + 1 + j, call_accumulates(c, 0), (real)(dh[j] / D));
        }
        if (d_o) put(d_o, call_accumulates(c, 0), (real)(floor ? 0 : o[0] < 0 ? along / D : -along / D));
        if (c->din[1]) put(c->din[1] + r, call_accumulates(c, 1), (real)(floor ? (1 - eps / D) * along : 0));
    }
}

const struct kernel kernel_stable_readout_ref = {
    .name = "stable_readout_ref",
    .op = &op_stable_readout,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = stable_readout_ref_forward,
    .backward = stable_readout_ref_backward,
};

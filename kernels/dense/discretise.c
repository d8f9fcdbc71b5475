/* discretise.c - turns a continuous complex diagonal system into time steps: the op and its CPU kernel.
 *
 *   h' = lambda h + u over a step D becomes h_t = a h_{t-1} + b u_t
 *   zoh: a = e^z, b = D (e^z - 1) / z, z = lambda D      bilinear: a = (1 + z)/(1 - z), b = D / (1 - z), z = lambda D/2
 * Gradients, with G = dL/dre + i dL/dim: G_z = conj(da/dz) G_a + conj(db/dz) G_b. Then follow the gradients through z =
 * lambda D (or lambda D/2), and through the factor D of b. S5 (Smith et al. 2022, arXiv 2208.04933), section 2 and App.
 * A; lindermanlab/S5, s5/ssm.py. */
#include "kernels/dense/discretise.h"

#include <inttypes.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"

void discretise(struct graph *g, struct tensor *re, struct tensor *im, struct tensor *step,
                const struct discretise_attr *attr, struct tensor *out[DISCRETISE_OUTPUTS]) {
    struct call *c = graph_call(g, &op_discretise, attr, sizeof *attr, (struct tensor *[]){re, im, step}, 3);
    for (int i = 0; i < DISCRETISE_OUTPUTS; i++) out[i] = c ? c->out[i] : NULL;
}

static void discretise_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 3) || !infer_same_shape(g, c, 0, 1) || !infer_same_shape(g, c, 0, 2)) return;
    for (int i = 0; i < DISCRETISE_OUTPUTS; i++) graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

/* An exponential, a sine and a cosine count 10 FLOPs each; the series of small z counts 200. */
static struct cost discretise_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->in[0]);
    return pass == PASS_FORWARD ? (struct cost){230 * n, 7 * n * sizeof(real)}
                                : (struct cost){260 * n, 10 * n * sizeof(real)};
}

/* Variant 0 is zero-order hold, variant 1 bilinear. Variants 2 and 3 are the same with `clip`. */
static bool discretise_build(struct graph *g, const struct op_sizes *s) {
    struct tensor *out[DISCRETISE_OUTPUTS];
    if (s->variant > 3) return false;
    struct discretise_attr attr = {s->variant % 2 ? DISCRETISE_BILINEAR : DISCRETISE_ZOH, s->variant > 1};
    struct tensor *re = input_vector(g, "lambda_re", s->blocks), *im = input_vector(g, "lambda_im", s->blocks);
    discretise(g, re, im, input_vector(g, "step", s->blocks), &attr, out);
    return true;
}

const struct op op_discretise = {
    .name = "discretise",
    .maths = "h' = lambda h + u in steps: h_t = a h_{t-1} + b u_t",
    .source = "S5 (Smith et al. 2022, arXiv 2208.04933)",
    .needs_in = 7,
    .infer = discretise_infer,
    .cost = discretise_cost,
    .sizes = "blocks",
    .build = discretise_build,
};

static struct discrete_state state_at(const struct call *c, int64_t k) {
    return discrete_state_of(discretise_attr(c), tensor_real(c->in[0])[k], tensor_real(c->in[1])[k],
                             tensor_real(c->in[2])[k]);
}

static void discretise_forward(const struct call *c, const struct exec *e) {
    (void)e;
    for (int64_t k = 0; k < tensor_count(c->in[0]); k++) {
        struct discrete_state x = state_at(c, k);
        struct discrete_step s = discrete_step_of(discretise_attr(c)->form, x.lambda, x.step);
        double values[DISCRETISE_OUTPUTS] = {s.a.re, s.a.im, s.b.re, s.b.im};
        for (int i = 0; i < DISCRETISE_OUTPUTS; i++) tensor_real(c->out[i])[k] = (real)values[i];
    }
}

static double gradient_at(const struct call *c, int output, int64_t k) {
    return call_dout(c, output) ? (double)call_dout(c, output)[k] : 0;
}

static void discretise_backward(const struct call *c, const struct exec *e) {
    (void)e;
    for (int64_t k = 0; k < tensor_count(c->in[0]); k++) {
        struct discrete_state x = state_at(c, k);
        struct discrete Ga = {gradient_at(c, 0, k), gradient_at(c, 1, k)};
        struct discrete Gb = {gradient_at(c, 2, k), gradient_at(c, 3, k)};
        double d[3];
        discrete_gradients(discretise_attr(c), &x, Ga, Gb, d);
        for (int i = 0; i < 3; i++)
            if (c->din[i]) put(c->din[i] + k, call_accumulates(c, i), (real)d[i]);
    }
}

/* There is no other CPU kernel: the op has one element per state, whatever batch and length are, so it need not be
 * fast. */
const struct kernel kernel_discretise_ref = {
    .name = "discretise_ref",
    .op = &op_discretise,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = discretise_forward,
    .backward = discretise_backward,
};

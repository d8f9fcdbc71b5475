/* frobenius.c - y = sqrt(sum x^2 + sum z^2) of whole tensors: the op and its reference, which sums in more than double.
 * It is a loss term on parameters (SLiCE; Benjamin-Walker/structured-linear-cdes, train.py). The gradient is x / y, and
 * 0 where y is 0. */
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/norm/norm.h"

struct tensor *frobenius(struct graph *g, struct tensor *x, struct tensor *z) {
    return call1(g, &op_frobenius, NULL, 0, (struct tensor *[]){x, z}, 2);
}

static void frobenius_infer(struct graph *g, struct call *c) {
    if (infer_present(g, c, 1)) graph_output(g, c, DT_REAL, 1, (int64_t[]){1});
}

static double element_count(const struct call *c) {
    return (double)tensor_count(c->in[0]) + (c->in[1] ? (double)tensor_count(c->in[1]) : 0);
}

static struct cost frobenius_cost(const struct call *c, enum pass pass) {
    double n = element_count(c);
    return pass == PASS_FORWARD ? (struct cost){2 * n, n * sizeof(real)} : (struct cost){n, 2 * n * sizeof(real)};
}

/* In variant 0 there is one tensor, in variant 1 two. */
static bool frobenius_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    struct tensor *x = input_matrix(g, "x", op_sizes_out(s), s->dim);
    frobenius(g, x, s->variant ? input_vector(g, "z", s->dim) : NULL);
    return true;
}

const struct op op_frobenius = {
    .name = "frobenius",
    .maths = "y = sqrt(sum x^2 + sum z^2)",
    .source = "",
    .needs_in = 3,
    .needs_out = 1,
    .infer = frobenius_infer,
    .cost = frobenius_cost,
    .sizes = "dim out",
    .build = frobenius_build,
};

static void frobenius_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    long double sum = 0; /* more precise than the kernels that are compared with it, in float and in double */
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; c->in[k] && i < tensor_count(c->in[k]); i++)
            sum += (long double)tensor_real(c->in[k])[i] * tensor_real(c->in[k])[i];
    tensor_real(c->out[0])[0] = (real)sqrtl(sum);
}

static void frobenius_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    real y = tensor_real(c->out[0])[0], factor = y > 0 ? call_dout(c, 0)[0] / y : 0;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; c->in[k] && c->din[k] && i < tensor_count(c->in[k]); i++)
            put(&c->din[k][i], call_accumulates(c, k), factor * tensor_real(c->in[k])[i]);
}

const struct kernel kernel_frobenius_ref = {
    .name = "frobenius_ref",
    .op = &op_frobenius,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = frobenius_ref_forward,
    .backward = frobenius_ref_backward,
};

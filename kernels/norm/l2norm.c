/* l2norm.c - gives rows a Euclidean length of (almost) 1: the op and its reference.
 *
 *   q = (sum x^2 + eps)^-1/2     y = q x     dx = q (dy - y (y . dy))
 * DeltaNet uses it for q and k, with one row per head (fla-org/flash-linear-attention, layers/delta_net.py). */
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/norm/norm.h"

struct tensor *l2norm(struct graph *g, struct tensor *x, double eps) {
    struct norm_attr attr = {.eps = eps};
    return call1(g, &op_l2norm, &attr, sizeof attr, (struct tensor *[]){x}, 1);
}

static void l2norm_infer(struct graph *g, struct call *c) {
    const struct norm_attr *a = norm_attr(c);
    if (!infer_present(g, c, 1)) return;
    if (!(a->eps >= 0))
        graph_fail(g, ST_USAGE, "l2norm: eps is %g, expected a number that is not negative", a->eps);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static struct cost l2norm_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->in[0]);
    if (pass == PASS_FORWARD) return (struct cost){3 * n, sizeof(real) * 2 * n};
    return (struct cost){9 * n, sizeof(real) * 3 * n};
}

/* Variant 0 has a small eps, variant 1 a large one. */
static bool l2norm_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    l2norm(g, input_tokens(g, s, "x", s->dim), s->variant ? 0.1 : 1e-6);
    return true;
}

const struct op op_l2norm = {
    .name = "l2norm",
    .maths = "y = x * rsqrt(sum(x^2) + eps)",
    .source = "",
    .needs_in = 1,
    .infer = l2norm_infer,
    .cost = l2norm_cost,
    .sizes = "batch length dim",
    .build = l2norm_build,
};

static double scale_of(const struct call *c, const real *x) {
    double squares = norm_attr(c)->eps;
    for (int64_t i = 0; i < tensor_cols(c->in[0]); i++) squares += (double)x[i] * x[i];
    return 1 / sqrt(squares);
}

static void l2norm_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    for (int64_t r = 0; r < rows; r++) {
        const real *x = tensor_real(c->in[0]) + r * D;
        double q = scale_of(c, x);
        for (int64_t i = 0; i < D; i++) tensor_real(c->out[0])[r * D + i] = (real)(q * x[i]);
    }
}

static void l2norm_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    for (int64_t r = 0; c->din[0] && r < rows; r++) {
        const real *x = tensor_real(c->in[0]) + r * D, *dy = call_dout(c, 0) + r * D;
        double q = scale_of(c, x), along = 0;
        for (int64_t i = 0; i < D; i++) along += q * x[i] * dy[i];
        for (int64_t i = 0; i < D; i++)
            put(c->din[0] + r * D + i, call_accumulates(c, 0), (real)(q * (dy[i] - q * x[i] * along)));
    }
}

const struct kernel kernel_l2norm_ref = {
    .name = "l2norm_ref",
    .op = &op_l2norm,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = l2norm_ref_forward,
    .backward = l2norm_ref_backward,
};

/* softmax.c - turns each row into numbers that are positive and sum to 1: the op and its reference.
 *
 *   y_i = exp(x_i) / sum_j exp(x_j)     dx_i = y_i (dy_i - sum_j y_j dy_j) */
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/norm/norm.h"

struct tensor *softmax(struct graph *g, struct tensor *x) {
    return call1(g, &op_softmax, NULL, 0, (struct tensor *[]){x}, 1);
}

static void softmax_infer(struct graph *g, struct call *c) {
    if (infer_present(g, c, 1)) graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

/* An exponential counts 10 FLOPs. */
static struct cost softmax_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->in[0]);
    if (pass == PASS_FORWARD) return (struct cost){13 * n, sizeof(real) * 2 * n};
    return (struct cost){4 * n, sizeof(real) * 3 * n};
}

static bool softmax_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    softmax(g, input_tokens(g, s, "x", s->dim));
    return true;
}

const struct op op_softmax = {
    .name = "softmax",
    .maths = "y_i = exp(x_i) / sum_j exp(x_j)",
    .source = "",
    .needs_out = 1,
    .infer = softmax_infer,
    .cost = softmax_cost,
    .sizes = "batch length dim",
    .build = softmax_build,
};

static void softmax_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    for (int64_t r = 0; r < rows; r++) {
        const real *x = tensor_real(c->in[0]) + r * D;
        double top = x[0], sum = 0;
        for (int64_t i = 1; i < D; i++) top = x[i] > top ? x[i] : top;
        for (int64_t i = 0; i < D; i++) sum += exp(x[i] - top);
        for (int64_t i = 0; i < D; i++) tensor_real(c->out[0])[r * D + i] = (real)(exp(x[i] - top) / sum);
    }
}

static void softmax_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    for (int64_t r = 0; c->din[0] && r < rows; r++) {
        const real *y = tensor_real(c->out[0]) + r * D, *dy = call_dout(c, 0) + r * D;
        double along = 0;
        for (int64_t i = 0; i < D; i++) along += (double)y[i] * dy[i];
        for (int64_t i = 0; i < D; i++)
            put(c->din[0] + r * D + i, call_accumulates(c, 0), (real)(y[i] * (dy[i] - along)));
    }
}

const struct kernel kernel_softmax_ref = {
    .name = "softmax_ref",
    .op = &op_softmax,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = softmax_ref_forward,
    .backward = softmax_ref_backward,
};

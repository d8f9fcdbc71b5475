/* conv_depthwise.c - causal depthwise convolution over time: the op and its reference.
 *
 * Channel c has m taps w[c] and the bias b[c]. w is stored tap by tap: w[c][j] is element j*C + c.
 *   y_t[c] = b[c] + sum_{j<m} w[c][j] x_{t-m+1+j}[c]          x_s = 0 for s < 0
 *   dx_s[c] = sum_j w[c][j] dy_{s+m-1-j}[c]
 *   dw[c][j] = sum_{b,t} dy_t[c] x_{t-m+1+j}[c];   db[c] = sum_{b,t} dy_t[c] */
#include <inttypes.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/token/token.h"

struct tensor *conv_depthwise(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b) {
    return call1(g, &op_conv_depthwise, NULL, 0, (struct tensor *[]){x, w, b}, b ? 3 : 2);
}

static void conv_depthwise_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, c->n_in)) return;
    const struct tensor *x = c->in[0], *w = c->in[1];
    if (x->rank != 3 || w->rank != 2)
        graph_fail(g, ST_USAGE, "conv_depthwise: x and w have rank %d and %d, expected 3 (B,T,C) and 2 (C,m)", x->rank,
                   w->rank);
    else if (w->dims[0] != x->dims[2])
        graph_fail(g, ST_USAGE, "conv_depthwise: w has %" PRId64 " channels but x has %" PRId64 "; they must agree",
                   w->dims[0], x->dims[2]);
    else if (c->n_in == 2 || infer_vector(g, c, x, c->in[2], "the bias"))
        graph_output(g, c, DT_REAL, 3, x->dims);
}

static struct cost conv_depthwise_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->in[0]), m = (double)tensor_cols(c->in[1]), w = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){2 * m * n, sizeof(real) * (2 * n + w)};
    return (struct cost){4 * m * n, sizeof(real) * (3 * n + 2 * w)};
}

/* Variant 0 has a bias, variant 1 has none. */
static bool conv_depthwise_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim), *w = input_matrix(g, "w", s->dim, s->m);
    conv_depthwise(g, x, w, s->variant ? NULL : input_vector(g, "b", s->dim));
    return true;
}

static struct heads conv_depthwise_heads(const struct call *c) {
    return (struct heads){tensor_cols(c->in[0]), {1, 1, 1}, {1}};
}

const struct op op_conv_depthwise = {
    .name = "conv_depthwise",
    .maths = "y_t[c] = b[c] + sum_j w[c][j] x_{t-m+1+j}[c]",
    .source = "",
    .needs_in = 3,
    .infer = conv_depthwise_infer,
    .cost = conv_depthwise_cost,
    .heads = conv_depthwise_heads,
    .sizes = "batch length dim m",
    .build = conv_depthwise_build,
};

/* --- reference: one output at a time, with sums in double --------------------------------------------------------- */

static void conv_depthwise_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], m = tensor_cols(c->in[1]), tokens = tensor_rows(c->in[0]);
    const real *x = tensor_real(c->in[0]), *w = tensor_real(c->in[1]);
    for (int64_t r = 0; r < tokens; r++)
        for (int64_t k = 0; k < C; k++) {
            double sum = c->n_in == 3 ? tensor_real(c->in[2])[k] : 0;
            for (int64_t back = 0; back < m && back <= r % T; back++)
                sum += (double)w[(m - 1 - back) * C + k] * x[(r - back) * C + k];
            tensor_real(c->out[0])[r * C + k] = (real)sum;
        }
}

static void ref_dx(const struct call *c) {
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], m = tensor_cols(c->in[1]), tokens = tensor_rows(c->in[0]);
    const real *w = tensor_real(c->in[1]), *dy = call_dout(c, 0);
    for (int64_t r = 0; r < tokens; r++)
        for (int64_t k = 0; k < C; k++) {
            double sum = 0;
            for (int64_t later = 0; later < m && r % T + later < T; later++)
                sum += (double)w[(m - 1 - later) * C + k] * dy[(r + later) * C + k];
            put(c->din[0] + r * C + k, call_accumulates(c, 0), (real)sum);
        }
}

static void conv_depthwise_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], m = tensor_cols(c->in[1]), tokens = tensor_rows(c->in[0]);
    const real *x = tensor_real(c->in[0]), *dy = call_dout(c, 0);
    if (c->din[0]) ref_dx(c);
    for (int64_t back = 0; c->din[1] && back < m; back++)
        for (int64_t k = 0; k < C; k++) {
            double sum = 0;
            for (int64_t r = 0; r < tokens; r++)
                if (r % T >= back) sum += (double)dy[r * C + k] * x[(r - back) * C + k];
            put(c->din[1] + (m - 1 - back) * C + k, call_accumulates(c, 1), (real)sum);
        }
    for (int64_t k = 0; c->n_in == 3 && c->din[2] && k < C; k++) {
        double sum = 0;
        for (int64_t r = 0; r < tokens; r++) sum += dy[r * C + k];
        put(c->din[2] + k, call_accumulates(c, 2), (real)sum);
    }
}

const struct kernel kernel_conv_depthwise_ref = {
    .name = "conv_depthwise_ref",
    .op = &op_conv_depthwise,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = conv_depthwise_ref_forward,
    .backward = conv_depthwise_ref_backward,
};

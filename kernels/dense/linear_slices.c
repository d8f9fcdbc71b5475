/* linear_slices.c - a linear map in which each output reads its own slice of the input: the op and its reference.
 *
 *   y[r][j] = sum_c w[j][c] x[r][j*m+c]
 *   dx[r][j*m+c] = w[j][c] dy[r][j];   dw[j][c] = sum over rows of dy[r][j] x[r][j*m+c] */
#include <inttypes.h>
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"

struct tensor *linear_slices(struct graph *g, struct tensor *x, struct tensor *w) {
    return call1(g, &op_linear_slices, NULL, 0, (struct tensor *[]){x, w}, 2);
}

static void linear_slices_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    const struct tensor *x = c->in[0], *w = c->in[1];
    int64_t dims[TENSOR_MAX_RANK];
    if (w->rank != 2 || tensor_cols(x) != tensor_count(w)) {
        graph_fail(g, ST_USAGE,
                   "linear_slices: x has %" PRId64 " columns, w has rank %d and %" PRId64
                   " numbers; expected rank 2 and as many numbers as columns",
                   tensor_cols(x), w->rank, tensor_count(w));
        return;
    }
    memcpy(dims, x->dims, sizeof dims);
    dims[x->rank - 1] = w->dims[0];
    graph_output(g, c, DT_REAL, x->rank, dims);
}

/* Backward counts only the products for wanted gradients. */
static struct cost linear_slices_cost(const struct call *c, enum pass pass) {
    double x = (double)tensor_count(c->in[0]), y = (double)tensor_count(c->out[0]), w = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){2 * x, sizeof(real) * (x + y + w)};
    bool dx = c->in[0]->needs_grad, dw = c->in[1]->needs_grad;
    return (struct cost){x * (dx + 2 * dw), sizeof(real) * (y + (x + w) * (dx + dw))};
}

/* In variant 0 both inputs need gradients, in variant 1 only the weights, in variant 2 only x. */
static bool linear_slices_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 2) return false;
    struct tensor *x = input_tokens(g, s, "x", s->blocks * s->m), *w = input_matrix(g, "w", s->blocks, s->m);
    if (s->variant > 0) input_constant(s->variant == 1 ? x : w);
    linear_slices(g, x, w);
    return true;
}

static struct heads linear_slices_heads(const struct call *c) {
    int64_t m = tensor_cols(c->in[1]);
    return (struct heads){c->in[1]->dims[0], {m, m}, {1}};
}

const struct op op_linear_slices = {
    .name = "linear_slices",
    .maths = "y[j] = w[j] . x[j*m .. j*m+m-1]",
    .source = "the gates of pLSTM on images, each of a slice of channels (ml-jku/plstm, sub_heads)",
    .needs_in = 3,
    .infer = linear_slices_infer,
    .cost = linear_slices_cost,
    .heads = linear_slices_heads,
    .sizes = "batch length blocks m",
    .build = linear_slices_build,
};

static void linear_slices_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t m = tensor_cols(c->in[1]), J = c->in[1]->dims[0];
    for (int64_t i = 0; i < tensor_count(c->out[0]); i++) {
        double sum = 0;
        for (int64_t k = 0; k < m; k++)
            sum += (double)tensor_real(c->in[1])[i % J * m + k] * tensor_real(c->in[0])[i * m + k];
        tensor_real(c->out[0])[i] = (real)sum;
    }
}

static void linear_slices_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t m = tensor_cols(c->in[1]), D = tensor_count(c->in[1]), rows = tensor_rows(c->in[0]);
    const real *x = tensor_real(c->in[0]), *w = tensor_real(c->in[1]), *dy = call_dout(c, 0);
    for (int64_t i = 0; c->din[0] && i < rows * D; i++)
        put(c->din[0] + i, call_accumulates(c, 0), w[i % D] * dy[i / m]);
    for (int64_t k = 0; c->din[1] && k < D; k++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += (double)dy[(r * D + k) / m] * x[r * D + k];
        put(c->din[1] + k, call_accumulates(c, 1), (real)sum);
    }
}

const struct kernel kernel_linear_slices_ref = {
    .name = "linear_slices_ref",
    .op = &op_linear_slices,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = linear_slices_ref_forward,
    .backward = linear_slices_ref_backward,
};

/* linear_blocks.c - block-diagonal linear map, N blocks of m x m: the op and its reference, plain loops that sum in
 * double.
 *
 *   y[k*m+i] = sum_j W[k][i][j] x[k*m+j], W stored [k][j][i]
 *   dx[k*m+j] = sum_i W[k][i][j] dy[k*m+i];   dW[k][i][j] = sum over rows of dy[k*m+i] x[k*m+j] */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"

struct tensor *linear_blocks(struct graph *g, struct tensor *x, struct tensor *w) {
    return call1(g, &op_linear_blocks, NULL, 0, (struct tensor *[]){x, w}, 2);
}

static void linear_blocks_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    const struct tensor *x = c->in[0], *w = c->in[1];
    if (w->rank != 2)
        graph_fail(g, ST_USAGE, "linear_blocks: w has rank %d, expected 2 (outputs, inputs of a block)", w->rank);
    else if (tensor_cols(x) != w->dims[0])
        graph_fail(g, ST_USAGE, "linear_blocks: x has %" PRId64 " columns but w has %" PRId64 " rows; they must agree",
                   tensor_cols(x), w->dims[0]);
    else if (w->dims[0] % w->dims[1] != 0)
        graph_fail(g, ST_USAGE, "linear_blocks: %" PRId64 " columns are not made of blocks of %" PRId64, w->dims[0],
                   w->dims[1]);
    else
        graph_output(g, c, DT_REAL, x->rank, x->dims);
}

/* Backward counts only the products for wanted gradients. */
static struct cost linear_blocks_cost(const struct call *c, enum pass pass) {
    double x = (double)tensor_count(c->in[0]), w = (double)tensor_count(c->in[1]);
    double product = 2 * x * (double)tensor_cols(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){product, sizeof(real) * (2 * x + w)};
    bool dx = c->in[0]->needs_grad, dw = c->in[1]->needs_grad;
    return (struct cost){product * (dx + dw), sizeof(real) * (x + (x + w) * (dx + dw))};
}

/* In variant 0 both inputs need gradients, in variant 1 only the weights, in variant 2 only x. */
static bool linear_blocks_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 2) return false;
    struct tensor *x = input_tokens(g, s, "x", s->blocks * s->m);
    struct tensor *w = input_matrix(g, "w", s->blocks * s->m, s->m);
    if (s->variant > 0) input_constant(s->variant == 1 ? x : w);
    linear_blocks(g, x, w);
    return true;
}

static struct heads linear_blocks_heads(const struct call *c) {
    int64_t m = tensor_cols(c->in[1]);
    return (struct heads){c->in[1]->dims[0] / m, {m, m * m}, {m}};
}

const struct op op_linear_blocks = {
    .name = "linear_blocks",
    .maths = "y[k] = W[k] x[k] for each block k",
    .source = "the block-diagonal projections of mLSTM (Beck et al. 2024), NX-AI/xlstm",
    .needs_in = 3,
    .infer = linear_blocks_infer,
    .cost = linear_blocks_cost,
    .heads = linear_blocks_heads,
    .sizes = "batch length blocks m",
    .build = linear_blocks_build,
};

static void linear_blocks_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]);
    const real *w = tensor_real(c->in[1]);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t first = 0; first < C; first += m)
            for (int64_t i = 0; i < m; i++) {
                const real *x = tensor_real(c->in[0]) + r * C + first;
                double sum = 0;
                for (int64_t j = 0; j < m; j++) sum += (double)w[(first + j) * m + i] * x[j];
                tensor_real(c->out[0])[r * C + first + i] = (real)sum;
            }
}

static void ref_dx(const struct call *c) {
    int64_t rows = tensor_rows(c->in[0]), C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]);
    const real *w = tensor_real(c->in[1]);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t e = 0; e < C; e++) {
            const real *dy = call_dout(c, 0) + r * C + e / m * m;
            double sum = 0;
            for (int64_t i = 0; i < m; i++) sum += (double)w[e * m + i] * dy[i];
            put(c->din[0] + r * C + e, call_accumulates(c, 0), (real)sum);
        }
}

static void ref_dw(const struct call *c) {
    int64_t rows = tensor_rows(c->in[0]), C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]);
    const real *x = tensor_real(c->in[0]), *dy = call_dout(c, 0);
    for (int64_t e = 0; e < C; e++)
        for (int64_t i = 0; i < m; i++) {
            double sum = 0;
            for (int64_t r = 0; r < rows; r++) sum += (double)dy[r * C + e / m * m + i] * x[r * C + e];
            put(c->din[1] + e * m + i, call_accumulates(c, 1), (real)sum);
        }
}

static void linear_blocks_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (c->din[0]) ref_dx(c);
    if (c->din[1]) ref_dw(c);
}

const struct kernel kernel_linear_blocks_ref = {
    .name = "linear_blocks_ref",
    .op = &op_linear_blocks,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = linear_blocks_ref_forward,
    .backward = linear_blocks_ref_backward,
};

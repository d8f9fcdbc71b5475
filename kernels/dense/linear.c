/* linear.c - y = x W^T + b: the op and its reference, plain loops that sum in double. The factors of products (x, W and
 * dy) are rounded to the call's precision.
 *
 * Gradients: dx = dy W;  dW = dy^T x;  db = column sums of dy. */
#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/round.h"
#include "kernels/lib/sizes.h"

#include <inttypes.h>
#include <math.h>

struct tensor *linear(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b) {
    return call1(g, &op_linear, NULL, 0, (struct tensor *[]){x, w, b}, 3);
}

static void linear_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    const struct tensor *x = c->in[0], *w = c->in[1], *b = c->in[2];
    if (w->rank != 2) {
        graph_fail(g, ST_USAGE, "linear: w has rank %d, expected 2 (outputs, inputs)", w->rank);
    } else if (tensor_cols(x) != w->dims[1]) {
        graph_fail(g, ST_USAGE, "linear: x has %" PRId64 " columns but w has %" PRId64 "; they must agree",
                   tensor_cols(x), w->dims[1]);
    } else if (b && (b->rank != 1 || b->dims[0] != w->dims[0])) {
        graph_fail(g, ST_USAGE, "linear: w has %" PRId64 " rows but the bias has %" PRId64 " elements; they must agree",
                   w->dims[0], tensor_count(b));
    } else {
        int64_t dims[TENSOR_MAX_RANK];
        for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
        dims[x->rank - 1] = w->dims[0];
        graph_output(g, c, DT_REAL, x->rank, dims);
    }
}

/* Backward counts only the products for wanted gradients. Factors have the bytes in which the plan stores them. */
static struct cost linear_cost(const struct call *c, enum pass pass) {
    double x = (double)tensor_count(c->in[0]), w = (double)tensor_count(c->in[1]), y = (double)tensor_count(c->out[0]);
    double product = 2 * x * (double)c->in[1]->dims[0], bias = c->in[2] ? y : 0;
    double full = sizeof(real), part = (double)precision_bytes(c->precision);
    double read_x = x * (c->in[0]->rounded || c->in[0]->copied ? part : full),
           read_w = w * (c->in[1]->rounded ? part : full);
    if (pass == PASS_FORWARD) return (struct cost){product + bias, read_x + read_w + full * y};
    double read_y = y * (c->out[0]->grad_rounded ? part : c->out[0]->grad_copied ? part + full : full);
    bool dx = c->in[0]->needs_grad, dw = c->in[1]->needs_grad;
    return (struct cost){product * (dx + dw) + bias,
                         read_y + (dx ? read_w + full * x : 0) + (dw ? read_x + full * w : 0)};
}

/* Variant 0 has a bias, variant 1 has none. In variant 2 x needs no gradient, in variant 3 the weights need none.
 * Products are in tf32 in variant 4, in bf16 in variant 5. */
static bool linear_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 5) return false;
    if (s->variant == 4) g->options.precision = PRECISION_TF32;
    if (s->variant == 5) g->options.precision = PRECISION_BF16;
    int64_t I = s->dim, O = op_sizes_out(s);
    struct tensor *x = input_tokens(g, s, "x", I), *w = input_matrix(g, "w", O, I);
    struct tensor *b = s->variant == 1 ? NULL : input_vector(g, "b", O);
    if (s->variant == 2) input_constant(x);
    if (s->variant == 3) input_constant(w), input_constant(b);
    linear(g, x, w, b);
    return true;
}

/* A matrix whose element (i, l) is at[i * row + l * column]. If `at` is NULL, all elements are 1. */
struct strided {
    const real *at;
    int64_t row, column;
};

/* Returns the largest sum over l < K of |a_il b_lj|, for i < M, j < N. */
static double largest_sum(int64_t M, int64_t N, int64_t K, struct strided a, struct strided b) {
    double largest = 0;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t l = 0; l < K; l++)
                sum += fabs((double)a.at[i * a.row + l * a.column] * (b.at ? b.at[l * b.row + j * b.column] : 1));
            largest = fmax(largest, sum);
        }
    return largest;
}

static double linear_terms(const struct call *c, enum pass pass, int j) {
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0];
    const real *x = tensor_real(c->in[0]), *w = tensor_real(c->in[1]), *dy = call_dout(c, 0);
    if (pass == PASS_BACKWARD && j == 0)
        return largest_sum(rows, I, O, (struct strided){dy, O, 1}, (struct strided){w, I, 1});
    if (pass == PASS_BACKWARD)
        return largest_sum(O, j == 1 ? I : 1, rows, (struct strided){dy, 1, O},
                           (struct strided){j == 1 ? x : NULL, I, 1});
    double bias = 0;
    for (int64_t o = 0; c->in[2] && o < O; o++) bias = fmax(bias, fabs((double)tensor_real(c->in[2])[o]));
    return bias + largest_sum(rows, O, I, (struct strided){x, I, 1}, (struct strided){w, 1, I});
}

const struct op op_linear = {
    .name = "linear",
    .maths = "y = x W^T + b",
    .source = "",
    .needs_in = 3,
    .infer = linear_infer,
    .cost = linear_cost,
    .terms = linear_terms,
    .sizes = "batch length dim out",
    .build = linear_build,
};

static void linear_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0];
    const real *x = tensor_real(c->in[0]), *w = tensor_real(c->in[1]), *b = c->in[2] ? tensor_real(c->in[2]) : NULL;
    real *y = tensor_real(c->out[0]);
    enum precision p = c->precision;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < O; o++) {
            double sum = b ? b[o] : 0;
            for (int64_t i = 0; i < I; i++) sum += (double)rounded(p, x[r * I + i]) * rounded(p, w[o * I + i]);
            y[r * O + o] = (real)sum;
        }
}

static void linear_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0];
    const real *x = tensor_real(c->in[0]), *w = tensor_real(c->in[1]), *dy = call_dout(c, 0);
    enum precision p = c->precision;
    for (int64_t r = 0; r < rows && c->din[0]; r++)
        for (int64_t i = 0; i < I; i++) {
            double sum = 0;
            for (int64_t o = 0; o < O; o++) sum += (double)rounded(p, dy[r * O + o]) * rounded(p, w[o * I + i]);
            put(&c->din[0][r * I + i], call_accumulates(c, 0), (real)sum);
        }
    for (int64_t o = 0; o < O && c->din[1]; o++)
        for (int64_t i = 0; i < I; i++) {
            double sum = 0;
            for (int64_t r = 0; r < rows; r++) sum += (double)rounded(p, dy[r * O + o]) * rounded(p, x[r * I + i]);
            put(&c->din[1][o * I + i], call_accumulates(c, 1), (real)sum);
        }
    for (int64_t o = 0; o < O && c->din[2]; o++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += dy[r * O + o];
        put(&c->din[2][o], call_accumulates(c, 2), (real)sum);
    }
}

const struct kernel kernel_linear_ref = {
    .name = "linear_ref",
    .op = &op_linear,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = linear_ref_forward,
    .backward = linear_ref_backward,
};

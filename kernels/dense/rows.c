/* rows.c - ops with one vector for all rows: bias, scale, repeat_rows, and their references.
 *
 *   bias         y[r][c] = x[r][c] + b[c]     dx = dy;      db[c] = sum_r dy[r][c]
 *   scale        y[r][c] = x[r][c] * s[c]     dx = dy * s;  ds[c] = sum_r dy[r][c] * x[r][c]
 *   repeat_rows  y[r][c] = p[c]               dp[c] = sum_r dy[r][c] */
#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"

#include <inttypes.h>

struct tensor *bias(struct graph *g, struct tensor *x, struct tensor *b) {
    return call1(g, &op_bias, NULL, 0, (struct tensor *[]){x, b}, 2);
}

struct tensor *scale(struct graph *g, struct tensor *x, struct tensor *s) {
    return call1(g, &op_scale, NULL, 0, (struct tensor *[]){x, s}, 2);
}

struct tensor *repeat_rows(struct graph *g, struct tensor *p, int64_t B, int64_t T) {
    struct repeat_rows_attr attr = {.B = B, .T = T};
    return call1(g, &op_repeat_rows, &attr, sizeof attr, (struct tensor *[]){p}, 1);
}

static void vector_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    if (!infer_vector(g, c, c->in[0], c->in[1], c->op == &op_bias ? "the bias" : "the scale")) return;
    graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static void repeat_rows_infer(struct graph *g, struct call *c) {
    const struct repeat_rows_attr *a = repeat_rows_attr(c);
    if (!infer_present(g, c, 1)) return;
    if (c->in[0]->rank != 1)
        graph_fail(g, ST_USAGE, "repeat_rows: p has rank %d, expected 1", c->in[0]->rank);
    else if (a->B < 1 || a->T < 1)
        graph_fail(g, ST_USAGE, "repeat_rows: batch %" PRId64 " and length %" PRId64 " must both be at least 1", a->B,
                   a->T);
    else
        graph_output(g, c, DT_REAL, 3, (int64_t[]){a->B, a->T, c->in[0]->dims[0]});
}

/* Bytes of backward: bias reads dy and writes dx; scale reads dy and x and writes dx; repeat_rows reads dy. */
static struct cost vector_cost(const struct call *c, enum pass pass) {
    double y = (double)tensor_count(c->out[0]), v = (double)tensor_count(c->in[c->n_in - 1]);
    if (c->op == &op_repeat_rows) return (struct cost){pass == PASS_FORWARD ? 0 : y, sizeof(real) * (y + v)};
    if (pass == PASS_FORWARD) return (struct cost){y, sizeof(real) * (2 * y + v)};
    double x_read = c->op == &op_scale ? y : 0;
    return (struct cost){c->op == &op_scale ? 3 * y : y, sizeof(real) * (2 * y + x_read + 2 * v)};
}

/* In variant 0 both inputs need gradients, in variant 1 only the vector, in variant 2 only x. */
static bool vector_build(struct graph *g, const struct op_sizes *s, const struct op *op) {
    if (s->variant > 2) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim), *v = input_vector(g, "v", s->dim);
    if (s->variant > 0) input_constant(s->variant == 1 ? x : v);
    call1(g, op, NULL, 0, (struct tensor *[]){x, v}, 2);
    return true;
}

static bool bias_build(struct graph *g, const struct op_sizes *s) {
    return vector_build(g, s, &op_bias);
}

static bool scale_build(struct graph *g, const struct op_sizes *s) {
    return vector_build(g, s, &op_scale);
}

static bool repeat_rows_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    repeat_rows(g, input_vector(g, "p", s->dim), s->batch, s->length);
    return true;
}

const struct op op_bias = {
    .name = "bias",
    .maths = "y[r][c] = x[r][c] + b[c]",
    .source = "",
    .infer = vector_infer,
    .cost = vector_cost,
    .sizes = "batch length dim",
    .build = bias_build,
};

const struct op op_scale = {
    .name = "scale",
    .maths = "y[r][c] = x[r][c] * s[c]",
    .source = "",
    .needs_in = 3,
    .infer = vector_infer,
    .cost = vector_cost,
    .sizes = "batch length dim",
    .build = scale_build,
};

const struct op op_repeat_rows = {
    .name = "repeat_rows",
    .maths = "y[b][t][c] = p[c]",
    .source = "",
    .infer = repeat_rows_infer,
    .cost = vector_cost,
    .sizes = "batch length dim",
    .build = repeat_rows_build,
};

static void bias_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->out[0]), C = tensor_cols(c->out[0]);
    const real *x = tensor_real(c->in[0]), *b = tensor_real(c->in[1]);
    real *y = tensor_real(c->out[0]);
    for (int64_t i = 0; i < rows * C; i++) y[i] = x[i] + b[i % C];
}

static void scale_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->out[0]), C = tensor_cols(c->out[0]);
    const real *x = tensor_real(c->in[0]), *s = tensor_real(c->in[1]);
    real *y = tensor_real(c->out[0]);
    for (int64_t i = 0; i < rows * C; i++) y[i] = x[i] * s[i % C];
}

static void repeat_rows_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->out[0]), C = tensor_cols(c->out[0]);
    const real *p = tensor_real(c->in[0]);
    real *y = tensor_real(c->out[0]);
    for (int64_t i = 0; i < rows * C; i++) y[i] = p[i % C];
}

/* The vector's gradient is the column sums of dy, for scale of dy times x. The gradient of x is dy, for scale dy times
 * s. */
static void rows_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->out[0]), C = tensor_cols(c->out[0]);
    int vector = c->n_in - 1;
    const real *x = c->op == &op_scale ? tensor_real(c->in[0]) : NULL, *dy = call_dout(c, 0);
    const real *s = c->op == &op_scale ? tensor_real(c->in[1]) : NULL;
    for (int64_t col = 0; col < C && c->din[vector]; col++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += (double)dy[r * C + col] * (x ? x[r * C + col] : 1);
        put(&c->din[vector][col], call_accumulates(c, vector), (real)sum);
    }
    for (int64_t i = 0; i < rows * C && vector == 1 && c->din[0]; i++)
        put(&c->din[0][i], call_accumulates(c, 0), s ? dy[i] * s[i % C] : dy[i]);
}

const struct kernel kernel_bias_ref = {
    .name = "bias_ref",
    .op = &op_bias,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = bias_ref_forward,
    .backward = rows_ref_backward,
};

const struct kernel kernel_scale_ref = {
    .name = "scale_ref",
    .op = &op_scale,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = scale_ref_forward,
    .backward = rows_ref_backward,
};

const struct kernel kernel_repeat_rows_ref = {
    .name = "repeat_rows_ref",
    .op = &op_repeat_rows,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = repeat_rows_ref_forward,
    .backward = rows_ref_backward,
};

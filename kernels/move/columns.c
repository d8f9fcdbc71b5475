/* columns.c - taking, joining, prepending and repeating columns: the ops and their references.
 *
 *   split         y_p[r][c] = x[r][first_p + c], first_p = from + the widths before   dx = dy_p in its columns, else 0
 *   join_columns  y[r] = (a[r], b[r])                                                da, db = the two parts of dy
 *   prepend_one   y[r] = factor * (1, x[r])                                          dx[r][c] = factor * dy[r][c + 1]
 *   repeat_each   y[c*n + i] = p[c]                                                  dp[c] = sum_i dy[c*n + i] */
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/move/move.h"

#include <inttypes.h>

static void call_split(struct graph *g, struct tensor *x, const struct split_attr *attr, struct tensor **out) {
    struct call *c = graph_call(g, &op_split, attr, sizeof *attr, (struct tensor *[]){x}, 1);
    for (int p = 0; c && p < c->n_out; p++) out[p] = c->out[p];
}

void split(struct graph *g, struct tensor *x, int parts, const int64_t *widths, struct tensor **out) {
    struct split_attr attr = {.parts = parts};
    for (int p = 0; p < parts; p++) out[p] = NULL;
    if (parts < 1 || parts > OP_MAX_OUT) {
        graph_fail(g, ST_FAIL, "split: %d parts, expected 1 to %d", parts, OP_MAX_OUT);
        return;
    }
    int64_t sum = 0;
    for (int p = 0; p < parts; p++) sum += attr.widths[p] = widths[p];
    if (x && sum != tensor_cols(x))
        graph_fail(g, ST_USAGE, "split: %s has %" PRId64 " columns but the parts have %" PRId64 " together", x->name,
                   tensor_cols(x), sum);
    else
        call_split(g, x, &attr, out);
}

struct tensor *columns(struct graph *g, struct tensor *x, int64_t from, int64_t count) {
    struct split_attr attr = {.from = from, .parts = 1, .widths = {count}};
    struct tensor *y = NULL;
    call_split(g, x, &attr, &y);
    return y;
}

struct tensor *join_columns(struct graph *g, struct tensor *a, struct tensor *b) {
    return call1(g, &op_join_columns, NULL, 0, (struct tensor *[]){a, b}, 2);
}

struct tensor *prepend_one(struct graph *g, struct tensor *x, double factor) {
    struct prepend_one_attr attr = {factor};
    return call1(g, &op_prepend_one, &attr, sizeof attr, (struct tensor *[]){x}, 1);
}

struct tensor *repeat_each(struct graph *g, struct tensor *p, int64_t n) {
    struct repeat_each_attr attr = {.n = n};
    return call1(g, &op_repeat_each, &attr, sizeof attr, (struct tensor *[]){p}, 1);
}

/* An output with the leading axes of x and `cols` columns. */
static void output_with_columns(struct graph *g, struct call *c, int64_t cols) {
    int64_t dims[TENSOR_MAX_RANK];
    const struct tensor *x = c->in[0];
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    dims[x->rank - 1] = cols;
    graph_output(g, c, DT_REAL, x->rank, dims);
}

static void split_infer(struct graph *g, struct call *c) {
    const struct split_attr *a = split_attr(c);
    if (!infer_present(g, c, 1)) return;
    int64_t C = tensor_cols(c->in[0]), end = a->from;
    bool empty = false;
    for (int p = 0; p < a->parts; p++) {
        end += a->widths[p];
        empty = empty || a->widths[p] < 1;
    }
    if (empty || a->from < 0 || end > C)
        graph_fail(g, ST_USAGE,
                   "split: %" PRId64 " columns in %d parts from %" PRId64 " on were asked of %s, which has %" PRId64,
                   end - a->from, a->parts, a->from, c->in[0]->name, C);
    else
        for (int p = 0; p < a->parts; p++) output_with_columns(g, c, a->widths[p]);
}

static void join_columns_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    const struct tensor *a = c->in[0], *b = c->in[1];
    if (a->rank != b->rank || tensor_rows(a) != tensor_rows(b))
        graph_fail(g, ST_USAGE,
                   "join_columns: %s has %" PRId64 " rows in %d axes but %s has %" PRId64 " in %d; they must agree",
                   a->name, tensor_rows(a), a->rank, b->name, tensor_rows(b), b->rank);
    else
        output_with_columns(g, c, tensor_cols(a) + tensor_cols(b));
}

static void prepend_one_infer(struct graph *g, struct call *c) {
    if (infer_present(g, c, 1)) output_with_columns(g, c, tensor_cols(c->in[0]) + 1);
}

static void repeat_each_infer(struct graph *g, struct call *c) {
    const struct repeat_each_attr *a = repeat_each_attr(c);
    if (!infer_present(g, c, 1)) return;
    if (c->in[0]->rank != 1)
        graph_fail(g, ST_USAGE, "repeat_each: p has rank %d, expected 1", c->in[0]->rank);
    else if (a->n < 1)
        graph_fail(g, ST_USAGE, "repeat_each: n is %" PRId64 ", expected at least 1", a->n);
    else
        graph_output(g, c, DT_REAL, 1, (int64_t[]){c->in[0]->dims[0] * a->n});
}

/* All elements are copied; the gradient of split also writes zeros where no part was taken. */
static struct cost split_cost(const struct call *c, enum pass pass) {
    double x = (double)tensor_count(c->in[0]), taken = 0;
    for (int p = 0; p < c->n_out; p++) taken += (double)tensor_count(c->out[p]);
    return (struct cost){0, sizeof(real) * (taken + (pass == PASS_FORWARD ? taken : x))};
}

static struct cost columns_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double y = (double)tensor_count(c->out[0]);
    return (struct cost){c->op == &op_prepend_one ? y : 0, sizeof(real) * 2 * y};
}

static struct cost repeat_each_cost(const struct call *c, enum pass pass) {
    double p = (double)tensor_count(c->in[0]), y = (double)tensor_count(c->out[0]);
    return (struct cost){pass == PASS_FORWARD ? 0 : y, sizeof(real) * (p + y)};
}

/* Variants: three parts; four; one; only the first columns; only the middle ones; only the last ones. */
static bool split_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 5) return false;
    static const int parts[] = {3, 4, 1};
    int64_t widths[OP_MAX_OUT] = {s->dim, op_sizes_out(s), 5, 1}, sum = 0;
    int n = s->variant < 3 ? parts[s->variant] : 3, one = (int)s->variant - 3;
    struct tensor *out[OP_MAX_OUT];
    for (int p = 0; p < n; p++) sum += widths[p];
    struct tensor *x = input_tokens(g, s, "x", sum);
    if (one < 0)
        split(g, x, n, widths, out);
    else
        columns(g, x, one == 0 ? 0 : one == 1 ? widths[0] : widths[0] + widths[1], widths[one]);
    return true;
}

static bool repeat_each_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    repeat_each(g, input_vector(g, "p", s->dim), op_sizes_out(s));
    return true;
}

/* Variants: all gradients; no gradient of a. */
static bool join_columns_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    struct tensor *a = input_tokens(g, s, "a", s->dim), *b = input_tokens(g, s, "b", op_sizes_out(s));
    if (s->variant == 1) input_constant(a);
    join_columns(g, a, b);
    return true;
}

/* The variants have different factors. */
static bool prepend_one_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    prepend_one(g, input_tokens(g, s, "x", s->dim), s->variant ? 1 : 0.025);
    return true;
}

const struct op op_split = {
    .name = "split",
    .maths = "y_p[r][c] = x[r][first_p + c]",
    .source = "",
    .infer = split_infer,
    .cost = split_cost,
    .sizes = "batch length dim out",
    .build = split_build,
};

const struct op op_repeat_each = {
    .name = "repeat_each",
    .maths = "y[c*n + i] = p[c]",
    .source = "",
    .infer = repeat_each_infer,
    .cost = repeat_each_cost,
    .sizes = "dim out",
    .build = repeat_each_build,
};

const struct op op_join_columns = {
    .name = "join_columns",
    .maths = "y[r] = (a[r], b[r])",
    .source = "",
    .infer = join_columns_infer,
    .cost = columns_cost,
    .sizes = "batch length dim out",
    .build = join_columns_build,
};

const struct op op_prepend_one = {
    .name = "prepend_one",
    .maths = "y[r] = factor * (1, x[r])",
    .source = "",
    .infer = prepend_one_infer,
    .cost = columns_cost,
    .sizes = "batch length dim",
    .build = prepend_one_build,
};

static void split_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct split_attr *a = split_attr(c);
    int64_t rows = tensor_rows(c->in[0]), C = tensor_cols(c->in[0]), first = a->from;
    for (int p = 0; p < a->parts; first += a->widths[p], p++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < a->widths[p]; i++)
                tensor_real(c->out[p])[r * a->widths[p] + i] = tensor_real(c->in[0])[r * C + first + i];
}

/* Gradient of column `col` of row r: 0 if no part has that column or if its part has no gradient. */
static real split_gradient(const struct call *c, int64_t r, int64_t col) {
    const struct split_attr *a = split_attr(c);
    int64_t first = a->from;
    for (int p = 0; p < a->parts; first += a->widths[p], p++)
        if (call_dout(c, p) && col >= first && col < first + a->widths[p])
            return call_dout(c, p)[r * a->widths[p] + col - first];
    return 0;
}

static void split_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t C = tensor_cols(c->in[0]);
    for (int64_t i = 0; c->din[0] && i < tensor_count(c->in[0]); i++)
        put(c->din[0] + i, call_accumulates(c, 0), split_gradient(c, i / C, i % C));
}

static void join_columns_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t P = tensor_cols(c->in[0]), Q = tensor_cols(c->in[1]);
    for (int64_t i = 0; i < tensor_count(c->out[0]); i++) {
        int64_t r = i / (P + Q), col = i % (P + Q);
        tensor_real(c->out[0])[i] =
            col < P ? tensor_real(c->in[0])[r * P + col] : tensor_real(c->in[1])[r * Q + col - P];
    }
}

static void join_columns_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t P = tensor_cols(c->in[0]), Q = tensor_cols(c->in[1]);
    for (int64_t i = 0; i < tensor_count(c->out[0]); i++) {
        int64_t r = i / (P + Q), col = i % (P + Q);
        int part = col >= P;
        int64_t at = part ? r * Q + col - P : r * P + col;
        if (c->din[part]) put(&c->din[part][at], call_accumulates(c, part), call_dout(c, 0)[i]);
    }
}

static void prepend_one_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    real factor = (real)prepend_one_attr(c)->factor;
    int64_t C = tensor_cols(c->in[0]);
    for (int64_t i = 0; i < tensor_count(c->out[0]); i++) {
        int64_t r = i / (C + 1), col = i % (C + 1);
        tensor_real(c->out[0])[i] = col ? factor * tensor_real(c->in[0])[r * C + col - 1] : factor;
    }
}

static void prepend_one_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    real factor = (real)prepend_one_attr(c)->factor;
    int64_t C = tensor_cols(c->in[0]);
    for (int64_t i = 0; c->din[0] && i < tensor_count(c->in[0]); i++)
        put(&c->din[0][i], call_accumulates(c, 0), factor * call_dout(c, 0)[i / C * (C + 1) + i % C + 1]);
}

static void repeat_each_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct repeat_each_attr *a = repeat_each_attr(c);
    for (int64_t i = 0; i < tensor_count(c->out[0]); i++) tensor_real(c->out[0])[i] = tensor_real(c->in[0])[i / a->n];
}

static void repeat_each_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct repeat_each_attr *a = repeat_each_attr(c);
    for (int64_t p = 0; c->din[0] && p < tensor_count(c->in[0]); p++) {
        double sum = 0;
        for (int64_t i = 0; i < a->n; i++) sum += call_dout(c, 0)[p * a->n + i];
        put(c->din[0] + p, call_accumulates(c, 0), (real)sum);
    }
}

const struct kernel kernel_split_ref = {
    .name = "split_ref",
    .op = &op_split,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = split_ref_forward,
    .backward = split_ref_backward,
};

const struct kernel kernel_repeat_each_ref = {
    .name = "repeat_each_ref",
    .op = &op_repeat_each,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = repeat_each_ref_forward,
    .backward = repeat_each_ref_backward,
};

const struct kernel kernel_join_columns_ref = {
    .name = "join_columns_ref",
    .op = &op_join_columns,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = join_columns_ref_forward,
    .backward = join_columns_ref_backward,
};

const struct kernel kernel_prepend_one_ref = {
    .name = "prepend_one_ref",
    .op = &op_prepend_one,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = prepend_one_ref_forward,
    .backward = prepend_one_ref_backward,
};

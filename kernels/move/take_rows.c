/* take_rows.c - moves rows of a sequence by a rule that knows the sequence's number of tokens: the op and its
 * reference. move.h has the rules.
 *
 *   y[b][r] = x[b][source(r, n)], n = lengths[b], or 0 where the rule names no row
 *   dx[b][s] = sum over the rows r with source(r, n) = s of dy[b][r] */
#include "kernels/move/take_rows.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"

int64_t grid_width(const struct grid *grid, int64_t n) {
    return grid_columns(grid, n);
}

int64_t grid_nodes(const struct grid *grid, int64_t T) {
    int64_t w = grid_width(grid, T);
    return w * (grid->height ? grid->height : (T + w - 1) / w);
}

static struct tensor *take_rows(struct graph *g, struct tensor *x, struct tensor *lengths, struct take_rows_attr attr) {
    return call1(g, &op_take_rows, &attr, sizeof attr, (struct tensor *[]){x, lengths}, 2);
}

struct tensor *rows_in_use(struct graph *g, struct tensor *x, struct tensor *lengths, const int32_t *first) {
    if (!x) return NULL;
    int64_t rows = x->rank == 3 ? x->dims[1] : 0, tokens = lengths ? lengths->limit - 1 : rows;
    return take_rows(g, x, lengths, (struct take_rows_attr){ROWS_IN_USE, rows, tokens, .first = first});
}

struct tensor *rows_before(struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    int64_t T = x->rank == 3 ? x->dims[1] : 0;
    return take_rows(g, x, NULL, (struct take_rows_attr){.rule = ROWS_BEFORE, .rows = T, .tokens = T});
}

struct tensor *leading_rows(struct graph *g, struct tensor *x, int64_t n) {
    if (!x) return NULL;
    return take_rows(g, x, NULL, (struct take_rows_attr){ROWS_IN_USE, x->rank == 3 ? x->dims[1] : 0, .tokens = n});
}

struct tensor *rows_of_intervals(struct graph *g, struct tensor *x, struct tensor *lengths, int64_t interval,
                                 int64_t T) {
    return take_rows(g, x, lengths, (struct take_rows_attr){ROWS_OF_INTERVALS, T, T, .interval = interval});
}

struct tensor *rows_to_grid(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid) {
    if (!x) return NULL;
    int64_t T = x->rank == 3 ? x->dims[1] : 0;
    return take_rows(g, x, lengths, (struct take_rows_attr){ROWS_TO_GRID, grid_nodes(grid, T), T, .grid = *grid});
}

struct tensor *rows_from_grid(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid,
                              int64_t T) {
    return take_rows(g, x, lengths, (struct take_rows_attr){ROWS_FROM_GRID, T, T, .grid = *grid});
}

struct tensor *rows_of_corners(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid) {
    if (!x) return NULL;
    int64_t T = x->rank == 3 ? x->dims[1] : 0;
    return take_rows(g, x, lengths, (struct take_rows_attr){ROWS_OF_CORNERS, 4, T, .grid = *grid});
}

/* Rows that x must have. */
static int64_t rows_wanted(const struct take_rows_attr *a) {
    switch (a->rule) {
    case ROWS_OF_INTERVALS:
        return 1 + (a->tokens - 1 + a->interval - 1) / a->interval;
    case ROWS_FROM_GRID:
        return grid_nodes(&a->grid, a->tokens);
    case ROWS_TO_GRID:
    case ROWS_OF_CORNERS:
        return a->tokens;
    case ROWS_BEFORE:
    case ROWS_IN_USE:
        break;
    }
    return a->rows;
}

static int64_t take_rows_table(const struct call *c, int32_t *to) {
    const struct take_rows_attr *a = take_rows_attr(c);
    if (a->first && to) memcpy(to, a->first, (size_t)a->rows * sizeof *to);
    return a->first ? a->rows : 0;
}

static void take_rows_infer(struct graph *g, struct call *c) {
    const struct take_rows_attr *a = take_rows_attr(c);
    const struct tensor *x = c->in[0], *n = c->in[1];
    if (!infer_present(g, c, 1)) return;
    if (x->rank != 3 || a->rows < 1 || a->tokens < 1 || (a->rule == ROWS_OF_INTERVALS && a->interval < 1))
        graph_fail(g, ST_USAGE,
                   "take_rows: rank %d, %" PRId64 " rows of %" PRId64
                   " tokens, expected rank 3 and at least 1 of each, and intervals of at least 1",
                   x->rank, a->rows, a->tokens);
    else if (x->dims[1] != rows_wanted(a))
        graph_fail(g, ST_USAGE, "take_rows: x has %" PRId64 " rows, expected %" PRId64, x->dims[1], rows_wanted(a));
    else if (n && (n->rank != 1 || n->dims[0] != x->dims[0] || n->limit > a->tokens + 1))
        graph_fail(g, ST_USAGE,
                   "take_rows: %" PRId64 " lengths of at most %" PRId32 " do not fit %" PRId64 " sequences of %" PRId64
                   " tokens",
                   tensor_count(n), n->limit - 1, x->dims[0], a->tokens);
    else
        graph_output(g, c, DT_REAL, 3, (int64_t[]){x->dims[0], a->rows, x->dims[2]});
}

static struct cost take_rows_cost(const struct call *c, enum pass pass) {
    double x = (double)tensor_count(c->in[0]), y = (double)tensor_count(c->out[0]);
    enum row_rule rule = take_rows_attr(c)->rule;
    bool sums = pass == PASS_BACKWARD && (rule == ROWS_OF_INTERVALS || rule == ROWS_OF_CORNERS);
    return (struct cost){sums ? y : 0, sizeof(real) * (x + y)};
}

/* Variants: each rule; some rules again without lengths, with `first`, or with a given side of the grid. */
static bool take_rows_build(struct graph *g, const struct op_sizes *s) {
    static const struct grid grids[] = {{0, 0}, {0, 3}, {2, 0}};
    if (s->variant > 14) return false;
    struct tensor *lengths = s->variant == 3 || s->variant > 12 ? NULL : input_lengths(g, s);
    struct op_sizes of_x = *s;
    if (s->variant < 2) {
        int32_t *first = s->variant ? input_table(g, s->length) : NULL;
        for (int64_t r = 0; first && r < s->length; r++) first[r] = (int32_t)(r * r % s->length);
        rows_in_use(g, input_tokens(g, s, "x", s->dim), lengths, first);
    } else if (s->variant < 4) {
        of_x.length = 1 + (s->length - 1 + s->interval - 1) / s->interval;
        rows_of_intervals(g, input_tokens(g, &of_x, "x", s->dim), lengths, s->interval, s->length);
    } else if (s->variant < 7) {
        const struct grid *grid = &grids[s->variant - 4];
        of_x.length = grid_nodes(grid, s->length);
        rows_from_grid(g, input_tokens(g, &of_x, "x", s->dim), lengths, grid, s->length);
    } else if (s->variant < 10) {
        rows_to_grid(g, input_tokens(g, s, "x", s->dim), lengths, &grids[s->variant - 7]);
    } else if (s->variant < 13) {
        rows_of_corners(g, input_tokens(g, s, "x", s->dim), lengths, &grids[s->variant - 10]);
    } else if (s->variant < 14) {
        rows_before(g, input_tokens(g, s, "x", s->dim));
    } else {
        leading_rows(g, input_tokens(g, s, "x", s->dim), 1);
    }
    return true;
}

const struct op op_take_rows = {
    .name = "take_rows",
    .maths = "y[b][r] = x[b][source(r, n)], or 0 where there is none, n = lengths[b]",
    .source = "",
    .no_grad_in = 2,
    .table = take_rows_table,
    .infer = take_rows_infer,
    .cost = take_rows_cost,
    .sizes = "batch length dim interval",
    .build = take_rows_build,
};

static void take_rows_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], rows = c->out[0]->dims[1];
    for (int64_t i = 0; i < B * rows; i++) {
        struct row_source s = row_source_of(c, i / rows);
        int64_t from = row_source(&s, i % rows);
        for (int64_t d = 0; d < D; d++)
            tensor_real(c->out[0])[i * D + d] = from < 0 ? 0 : tensor_real(c->in[0])[(i / rows * T + from) * D + d];
    }
}

static size_t take_rows_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)c->in[0]->dims[1] * sizeof(double));
}

static void take_rows_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], rows = c->out[0]->dims[1];
    double *dx = c->scratch[PASS_BACKWARD];
    for (int64_t i = 0; i < B * D && c->din[0]; i++) {
        int64_t b = i / D, d = i % D;
        struct row_source s = row_source_of(c, b);
        for (int64_t t = 0; t < T; t++) dx[t] = 0;
        for (int64_t r = 0; r < rows; r++) {
            int64_t to = row_source(&s, r);
            if (to >= 0) dx[to] += call_dout(c, 0)[(b * rows + r) * D + d];
        }
        for (int64_t t = 0; t < T; t++) put(c->din[0] + (b * T + t) * D + d, call_accumulates(c, 0), (real)dx[t]);
    }
}

const struct kernel kernel_take_rows_ref = {
    .name = "take_rows_ref",
    .op = &op_take_rows,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = take_rows_ref_workspace,
    .forward = take_rows_ref_forward,
    .backward = take_rows_ref_backward,
};

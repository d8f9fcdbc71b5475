/* grid_positions.c - adds a learnt table of positions to the tokens of a grid. If the grid has other sides than the
 * table, the table is resized. The op and its reference.
 *
 *   y[b][t] = x[b][t] + sum_j R[t][j] p[j] for t < n, else x[b][t];  R = the bicubic weights of token t's position in
 *   the grid of sequence b, entry j = (row, column) of the table having the product of the weights of its row and its
 *   column (grid_positions.h)
 *   dx = dy;  dp[j] = sum over b and t < n of R[t][j] dy[b][t] */
#include "kernels/move/grid_positions.h"

#include <inttypes.h>

#include "kernels/lib/sizes.h"

struct tensor *grid_positions(struct graph *g, struct tensor *x, struct tensor *table, struct tensor *lengths,
                              const struct grid *trained, const struct grid *own) {
    struct grid_positions_attr attr = {*trained, *own};
    return call1(g, &op_grid_positions, &attr, sizeof attr, (struct tensor *[]){x, table, lengths}, 3);
}

static void grid_positions_infer(struct graph *g, struct call *c) {
    const struct grid_positions_attr *a = grid_positions_attr(c);
    const struct tensor *x = c->in[0], *p = c->in[1], *n = c->in[2];
    if (!infer_present(g, c, 2)) return;
    if (x->rank != 3 || p->rank != 2 || p->dims[1] != tensor_cols(x) || a->trained.height < 1 || a->trained.width < 1 ||
        p->dims[0] != a->trained.height * a->trained.width)
        graph_fail(g, ST_USAGE,
                   "grid_positions: x has rank %d and %" PRId64 " columns, the table rank %d, %" PRId64
                   " rows and %" PRId64 " columns for %" PRId64 " x %" PRId64
                   " positions; expected ranks 3 and 2, equal columns and a row for each position",
                   x->rank, tensor_cols(x), p->rank, p->dims[0], tensor_cols(p), a->trained.height, a->trained.width);
    else if (n && (n->rank != 1 || n->dims[0] != x->dims[0] || n->limit > x->dims[1] + 1))
        graph_fail(g, ST_USAGE,
                   "grid_positions: %" PRId64 " lengths of at most %" PRId32 " do not fit %" PRId64
                   " sequences of %" PRId64 " tokens",
                   tensor_count(n), n->limit - 1, x->dims[0], x->dims[1]);
    else
        graph_output(g, c, DT_REAL, 3, x->dims);
}

/* Counts the case in which nothing is resized. */
static struct cost grid_positions_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double x = (double)tensor_count(c->in[0]), p = (double)tensor_count(c->in[1]);
    return (struct cost){x, sizeof(real) * (2 * x + p)};
}

/* Variants: the table's own grid; grids that are larger or smaller on both axes, on one axis; a table of one
 * position. */
static bool grid_positions_build(struct graph *g, const struct op_sizes *s) {
    const struct grid trained[] = {{1, s->length}, {2, 3}, {4, 3}, {5, 6}, {1, 1}};
    const struct grid own[] = {{1, s->length}, {0, 0}, {0, 3}, {0, 0}, {2, 0}};
    if (s->variant > 4) return false;
    const struct grid *of_table = &trained[s->variant];
    struct tensor *lengths = s->variant == 3 ? NULL : input_lengths(g, s);
    struct tensor *x = input_tokens(g, s, "x", s->dim);
    struct tensor *table = input_matrix(g, "table", of_table->height * of_table->width, s->dim);
    grid_positions(g, x, table, lengths, of_table, &own[s->variant]);
    return true;
}

const struct op op_grid_positions = {
    .name = "grid_positions",
    .maths = "y[b][t] = x[b][t] + the table's vector at the position of token t, bicubic between positions",
    .source = "Keys 1981; the position table of pLSTM on images (ml-jku/plstm, vision_model.py)",
    .no_grad_in = 4,
    .infer = grid_positions_infer,
    .cost = grid_positions_cost,
    .sizes = "batch length dim",
    .build = grid_positions_build,
};

static void grid_positions_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct grid *of_table = &grid_positions_attr(c)->trained;
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    for (int64_t i = 0; i < tensor_count(c->out[0]); i++) {
        struct token_grid g = token_grid_of(c, i / D / T);
        int64_t t = i / D % T;
        double sum = 0;
        if (t < g.n) {
            struct cubic row = cubic_at(t / g.width, g.height, of_table->height);
            struct cubic column = cubic_at(t % g.width, g.width, of_table->width);
            for (int64_t j = 0; j < c->in[1]->dims[0]; j++)
                sum += cubic_weight(&row, j / of_table->width) * cubic_weight(&column, j % of_table->width) *
                       tensor_real(c->in[1])[j * D + i % D];
        }
        tensor_real(c->out[0])[i] = (real)(tensor_real(c->in[0])[i] + sum);
    }
}

/* Gradient of entry j of the table in column d. */
static double entry_gradient(const struct call *c, int64_t j, int64_t d) {
    const struct grid *of_table = &grid_positions_attr(c)->trained;
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    double sum = 0;
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) {
        struct token_grid g = token_grid_of(c, b);
        for (int64_t t = 0; t < g.n; t++) {
            struct cubic row = cubic_at(t / g.width, g.height, of_table->height);
            struct cubic column = cubic_at(t % g.width, g.width, of_table->width);
            sum += cubic_weight(&row, j / of_table->width) * cubic_weight(&column, j % of_table->width) *
                   call_dout(c, 0)[(b * T + t) * D + d];
        }
    }
    return sum;
}

static void grid_positions_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t D = c->in[0]->dims[2];
    for (int64_t i = 0; c->din[0] && i < tensor_count(c->in[0]); i++)
        put(c->din[0] + i, call_accumulates(c, 0), call_dout(c, 0)[i]);
    for (int64_t i = 0; c->din[1] && i < tensor_count(c->in[1]); i++)
        put(c->din[1] + i, call_accumulates(c, 1), (real)entry_gradient(c, i / D, i % D));
}

const struct kernel kernel_grid_positions_ref = {
    .name = "grid_positions_ref",
    .op = &op_grid_positions,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = grid_positions_ref_forward,
    .backward = grid_positions_ref_backward,
};

/* link_rows.c - features of edges and of pairs of edges from the features of nodes: the op and its reference.
 *
 * Row r of the result belongs to an edge or a pair of edges. It consists of several columns, each as wide as x. A
 * column names two nodes a and b and has (x[a] + x[b]) / 2. If a = b, it has the node's own row.
 *   dx[a], dx[b] += dy / 2, summed over rows in their order
 * These are pLSTM's features of edges and pairs of edges (ml-jku/plstm_experiments, plstm_graph/). */
#include "kernels/links/link_rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/lib/scratch.h"
#include "kernels/links/links_call.h"

struct tensor *link_rows(struct graph *g, struct tensor *x, const struct links *links, enum link_rule rule) {
    return call_on_links(g, &op_link_rows, x, links, (int)rule);
}

static void link_rows_infer(struct graph *g, struct call *c) {
    const struct links_attr *a = links_attr(c);
    if (!infer_present(g, c, 2)) return;
    const struct tensor *x = c->in[0];
    if (x->rank != 3)
        graph_fail(g, ST_USAGE, "link_rows: x has rank %d, expected 3 (B,T,D)", x->rank);
    else if (infer_links(g, c, 1, a->size, x))
        graph_output(g, c, DT_REAL, 3,
                     (int64_t[]){x->dims[0], link_row_count(a->size, a->rule), link_columns(a->rule) * x->dims[2]});
}

static struct cost link_rows_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double x = (double)tensor_count(c->in[0]), y = (double)tensor_count(c->out[0]);
    return (struct cost){2 * y, (x + y) * sizeof(real)};
}

/* Adds half of `value` to the sums of the nodes that column k names. */
static void add_halves(double *sum, int32_t (*ends)[2], int64_t k, double value) {
    sum[ends[k][0]] += 0.5 * value;
    sum[ends[k][1]] += 0.5 * value;
}

/* Gives the size of the terms of dx: a node gets half of every column that names it. */
static double link_rows_terms(const struct call *c, enum pass pass, int j) {
    const struct links_attr *a = links_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], columns = link_columns(a->rule);
    int64_t rows = link_row_count(a->size, a->rule);
    double most = 0, *sum = c->scratch[PASS_BACKWARD];
    int32_t ends[LINK_COLUMNS_MAX][2];
    (void)j;
    for (int64_t b = 0; b < B && pass == PASS_BACKWARD; b++) {
        struct links_view l = links_at(c, b, T);
        for (int64_t d = 0; d < D; d++) {
            for (int64_t n = 0; n < T; n++) sum[n] = 0;
            for (int64_t r = 0; r < rows; r++)
                for (int64_t k = 0; k < columns && link_row_ends(&l, a->rule, r, ends); k++)
                    add_halves(sum, ends, k, fabs((double)call_dout(c, 0)[((b * rows + r) * columns + k) * D + d]));
            for (int64_t n = 0; n < T; n++) most = fmax(most, sum[n]);
        }
    }
    return most;
}

/* The variants are each rule on each kind of links. */
static bool link_rows_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant >= LINK_INPUTS * LINK_RULES) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim);
    struct links links = input_links(g, x, s, LINK_RULES);
    link_rows(g, x, &links, (enum link_rule)(s->variant % LINK_RULES));
    return true;
}

const struct op op_link_rows = {
    .name = "link_rows",
    .maths = "y[r] = concatenation of (x[a] + x[b]) / 2 over the ends (a,b) of the edges of row r",
    .source = "pLSTM on graphs; ml-jku/plstm_experiments, plstm_graph/",
    .needs_in = 2,
    .no_grad_in = 2,
    .infer = link_rows_infer,
    .cost = link_rows_cost,
    .terms = link_rows_terms,
    .sizes = "batch length dim",
    .build = link_rows_build,
};

/* --- reference ---------------------------------------------------------------------------------------------------- */

static void link_rows_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct links_attr *a = links_attr(c);
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2], columns = link_columns(a->rule);
    int64_t rows = link_row_count(a->size, a->rule);
    int32_t ends[LINK_COLUMNS_MAX][2];
    for (int64_t i = 0; i < c->in[0]->dims[0] * rows; i++) {
        struct links_view l = links_at(c, i / rows, T);
        const real *x = tensor_real(c->in[0]) + i / rows * T * D;
        real *y = tensor_real(c->out[0]) + i * columns * D;
        bool there = link_row_ends(&l, a->rule, i % rows, ends);
        for (int64_t k = 0; k < columns; k++)
            for (int64_t d = 0; d < D; d++)
                y[k * D + d] = there ? (real)(((double)x[ends[k][0] * D + d] + x[ends[k][1] * D + d]) / 2) : 0;
    }
}

static size_t link_rows_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)c->in[0]->dims[1] * sizeof(double));
}

static void link_rows_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct links_attr *a = links_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], columns = link_columns(a->rule);
    int64_t rows = link_row_count(a->size, a->rule);
    double *dx = c->scratch[PASS_BACKWARD];
    int32_t ends[LINK_COLUMNS_MAX][2];
    for (int64_t b = 0; b < B && c->din[0]; b++) {
        struct links_view l = links_at(c, b, T);
        for (int64_t d = 0; d < D; d++) {
            for (int64_t n = 0; n < T; n++) dx[n] = 0;
            for (int64_t r = 0; r < rows; r++)
                for (int64_t k = 0; k < columns && link_row_ends(&l, a->rule, r, ends); k++)
                    add_halves(dx, ends, k, (double)call_dout(c, 0)[((b * rows + r) * columns + k) * D + d]);
            for (int64_t n = 0; n < T; n++) put(c->din[0] + (b * T + n) * D + d, call_accumulates(c, 0), (real)dx[n]);
        }
    }
}

const struct kernel kernel_link_rows_ref = {
    .name = "link_rows_ref",
    .op = &op_link_rows,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = link_rows_ref_workspace,
    .forward = link_rows_ref_forward,
    .backward = link_rows_ref_backward,
};

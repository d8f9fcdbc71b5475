/* gather.c - features of edges and line edges from those of nodes, and the normaliser over groups of them: ops and
 * references.
 *
 *   gather_pairs:      y[r] = [ (x[a] + x[b]) / 2 for each (a, b) of row r ], side by side; a = b takes a node as it is
 *                dx[a], dx[b] += dy / 2, summed over rows in their order
 *   l1_groups:   y_r = t_r / S, S = 1/2 + sum of |t| over the rows of r's group    (spec/plstm-myosotis.md A3.1)
 *                dt_r = (dy_r - sign(t_r) sum over the group of dy y) / S */
#include "kernels/lib/infer.h"
#include "kernels/lib/inverse.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"
#include "kernels/move/move.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct tensor *gather_pairs(struct graph *g, struct tensor *x, const int32_t *index, int64_t rows, int64_t columns) {
    struct gather_pairs_attr attr = {.index = index, .rows = rows, .columns = columns};
    return call1(g, &op_gather_pairs, &attr, sizeof attr, (struct tensor *[]){x}, 1);
}

struct tensor *l1_groups(struct graph *g, struct tensor *t, const int32_t *group, int64_t rows) {
    struct l1_groups_attr attr = {.group = group, .rows = rows};
    return call1(g, &op_l1_groups, &attr, sizeof attr, (struct tensor *[]){t}, 1);
}

static void gather_pairs_infer(struct graph *g, struct call *c) {
    const struct gather_pairs_attr *a = c->attr;
    if (!infer_present(g, c, 1)) return;
    const struct tensor *x = c->in[0];
    if (x->rank != 3 || a->rows < 1 || a->columns < 1) {
        graph_fail(g, ST_USAGE,
                   "gather_pairs: rank %d, %" PRId64 " rows of %" PRId64
                   " columns, expected rank 3 and at least 1 of each",
                   x->rank, a->rows, a->columns);
        return;
    }
    for (int64_t i = 0; i < 2 * a->rows * a->columns; i++)
        if (a->index[i] < 0 || a->index[i] >= x->dims[1]) {
            graph_fail(g, ST_USAGE, "gather_pairs: row %" PRId64 " names node %d, expected 0 to %" PRId64,
                       i / (2 * a->columns), a->index[i], x->dims[1] - 1);
            return;
        }
    graph_output(g, c, DT_REAL, 3, (int64_t[]){x->dims[0], a->rows, a->columns * x->dims[2]});
}

static void l1_groups_infer(struct graph *g, struct call *c) {
    const struct l1_groups_attr *a = c->attr;
    if (!infer_present(g, c, 1)) return;
    if (c->in[0]->rank != 3 || c->in[0]->dims[1] != a->rows) {
        graph_fail(g, ST_USAGE, "l1_groups: t has rank %d and %" PRId64 " rows, expected rank 3 and %" PRId64 " rows",
                   c->in[0]->rank, c->in[0]->rank == 3 ? c->in[0]->dims[1] : 0, a->rows);
        return;
    }
    for (int64_t r = 0; r < a->rows; r++)
        if (a->group[r] < 0 || a->group[r] >= a->rows) {
            graph_fail(g, ST_USAGE, "l1_groups: row %" PRId64 " is of group %d, expected 0 to %" PRId64, r, a->group[r],
                       a->rows - 1);
            return;
        }
    graph_output(g, c, DT_REAL, 3, c->in[0]->dims);
}

/* index[rows][columns][2] and its inverse. */
static int64_t gather_pairs_table(const struct call *c, int32_t *to) {
    const struct gather_pairs_attr *a = c->attr;
    int64_t n = 2 * a->rows * a->columns, N = c->in[0]->dims[1];
    if (to) memcpy(to, a->index, (size_t)n * sizeof *to);
    if (to) inverse_fill(n, a->index, N, to + n);
    return n + inverse_count(n, N);
}

/* group[rows] and its inverse. */
static int64_t l1_groups_table(const struct call *c, int32_t *to) {
    const struct l1_groups_attr *a = c->attr;
    if (to) memcpy(to, a->group, (size_t)a->rows * sizeof *to);
    if (to) inverse_fill(a->rows, a->group, a->rows, to + a->rows);
    return a->rows + inverse_count(a->rows, a->rows);
}

static struct cost gather_pairs_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double x = (double)tensor_count(c->in[0]), y = (double)tensor_count(c->out[0]);
    return (struct cost){2 * y, (x + y) * sizeof(real)};
}

static struct cost l1_groups_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->out[0]);
    return (struct cost){(pass == PASS_FORWARD ? 3 : 7) * n, (pass == PASS_FORWARD ? 2 : 3) * n * sizeof(real)};
}

/* Of dx: a node's share of every row that names it. */
static double gather_pairs_terms(const struct call *c, enum pass pass, int j) {
    const struct gather_pairs_attr *a = c->attr;
    int64_t B = c->in[0]->dims[0], N = c->in[0]->dims[1], D = c->in[0]->dims[2];
    double most = 0, *sum = c->scratch[PASS_BACKWARD];
    (void)j;
    for (int64_t b = 0; b < B && pass == PASS_BACKWARD; b++)
        for (int64_t d = 0; d < D; d++) {
            for (int64_t n = 0; n < N; n++) sum[n] = 0;
            for (int64_t i = 0; i < 2 * a->rows * a->columns; i++)
                sum[a->index[i]] += 0.5 * fabs(call_dout(c, 0)[(b * a->rows * a->columns + i / 2) * D + d]);
            for (int64_t n = 0; n < N; n++) most = fmax(most, sum[n]);
        }
    return most;
}

/* `out` rows of one, two or three pairs each, of `length` nodes. */
static bool gather_pairs_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 2) return false;
    int64_t rows = op_sizes_out(s), columns = s->variant + 1;
    int32_t *index = input_table(g, 2 * rows * columns);
    for (int64_t i = 0; index && i < 2 * rows * columns; i++) index[i] = (int32_t)((i * i + 3 * i + i / 2) % s->length);
    gather_pairs(g, input_tokens(g, s, "x", s->dim), index, rows, columns);
    return true;
}

/* Variants: groups of a few rows each; seven groups. */
static bool l1_groups_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    int32_t *group = input_table(g, s->length);
    for (int64_t r = 0; group && r < s->length; r++)
        group[r] = (int32_t)((s->variant ? r * r % 7 : r - r % 3) % s->length);
    l1_groups(g, input_tokens(g, s, "t", s->dim), group, s->length);
    return true;
}

const struct op op_gather_pairs = {
    .name = "gather_pairs",
    .maths = "y[r] = concatenation of (x[a] + x[b]) / 2 over the pairs (a,b) of row r",
    .source = "spec/plstm-myosotis.md A3.1, A3.3",
    .table = gather_pairs_table,
    .infer = gather_pairs_infer,
    .cost = gather_pairs_cost,
    .terms = gather_pairs_terms,
    .sizes = "batch length dim out",
    .build = gather_pairs_build,
};

static struct heads l1_groups_heads(const struct call *c) {
    return (struct heads){tensor_cols(c->in[0]), {1}, {1}};
}

const struct op op_l1_groups = {
    .name = "l1_groups",
    .maths = "y_r = t_r / (1/2 + sum of |t| over the group of r)",
    .source = "pLSTM, Eq. 4, spec/plstm-myosotis.md A3.1",
    .needs_in = 1,
    .table = l1_groups_table,
    .infer = l1_groups_infer,
    .cost = l1_groups_cost,
    .heads = l1_groups_heads,
    .sizes = "batch length dim",
    .build = l1_groups_build,
};

/* --- reference ---------------------------------------------------------------------------------------------------- */

static void gather_pairs_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct gather_pairs_attr *a = c->attr;
    int64_t B = c->in[0]->dims[0], N = c->in[0]->dims[1], D = c->in[0]->dims[2];
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < a->rows * a->columns; i++)
            for (int64_t d = 0; d < D; d++) {
                const real *x = tensor_real(c->in[0]) + b * N * D + d;
                double sum = (double)x[a->index[2 * i] * D] + x[a->index[2 * i + 1] * D];
                tensor_real(c->out[0])[(b * a->rows * a->columns + i) * D + d] = (real)(sum / 2);
            }
}

static size_t gather_pairs_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)c->in[0]->dims[1] * sizeof(double));
}

static void gather_pairs_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct gather_pairs_attr *a = c->attr;
    int64_t B = c->in[0]->dims[0], N = c->in[0]->dims[1], D = c->in[0]->dims[2];
    double *dx = c->scratch[PASS_BACKWARD];
    for (int64_t b = 0; b < B && c->din[0]; b++)
        for (int64_t d = 0; d < D; d++) {
            for (int64_t n = 0; n < N; n++) dx[n] = 0;
            for (int64_t i = 0; i < 2 * a->rows * a->columns; i++)
                dx[a->index[i]] += 0.5 * call_dout(c, 0)[(b * a->rows * a->columns + i / 2) * D + d];
            for (int64_t n = 0; n < N; n++) put(c->din[0] + (b * N + n) * D + d, call_accumulates(c, 0), (real)dx[n]);
        }
}

static size_t l1_groups_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int i = 0; i < (pass == PASS_FORWARD ? 1 : 2); i++) scratch_doubles(&s, c->in[0]->dims[1]);
    return s.used;
}

/* Groups' S of one column of one batch element. */
static void group_sums(const struct l1_groups_attr *a, int64_t H, const real *t, double *S) {
    for (int64_t r = 0; r < a->rows; r++) S[r] = 0.5;
    for (int64_t r = 0; r < a->rows; r++) S[a->group[r]] += fabs((double)t[r * H]);
}

static void l1_groups_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct l1_groups_attr *a = c->attr;
    int64_t B = c->in[0]->dims[0], H = c->in[0]->dims[2];
    double *S = c->scratch[PASS_FORWARD];
    for (int64_t column = 0; column < B * H; column++) {
        int64_t at = column / H * a->rows * H + column % H;
        const real *t = tensor_real(c->in[0]) + at;
        group_sums(a, H, t, S);
        for (int64_t r = 0; r < a->rows; r++) tensor_real(c->out[0])[at + r * H] = (real)(t[r * H] / S[a->group[r]]);
    }
}

static void l1_groups_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct l1_groups_attr *a = c->attr;
    int64_t B = c->in[0]->dims[0], H = c->in[0]->dims[2];
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    double *S = scratch_doubles(&s, a->rows), *dot = scratch_doubles(&s, a->rows);
    for (int64_t column = 0; column < B * H && c->din[0]; column++) {
        int64_t at = column / H * a->rows * H + column % H;
        const real *t = tensor_real(c->in[0]) + at, *dy = call_dout(c, 0) + at;
        group_sums(a, H, t, S);
        for (int64_t r = 0; r < a->rows; r++) dot[r] = 0;
        for (int64_t r = 0; r < a->rows; r++) dot[a->group[r]] += dy[r * H] * (t[r * H] / S[a->group[r]]);
        for (int64_t r = 0; r < a->rows; r++) {
            double sign = t[r * H] > 0 ? 1 : t[r * H] < 0 ? -1 : 0;
            put(c->din[0] + at + r * H, call_accumulates(c, 0),
                (real)((dy[r * H] - sign * dot[a->group[r]]) / S[a->group[r]]));
        }
    }
}

const struct kernel kernel_gather_pairs_ref = {
    .name = "gather_pairs_ref",
    .op = &op_gather_pairs,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = gather_pairs_ref_workspace,
    .forward = gather_pairs_ref_forward,
    .backward = gather_pairs_ref_backward,
};

const struct kernel kernel_l1_groups_ref = {
    .name = "l1_groups_ref",
    .op = &op_l1_groups,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = l1_groups_ref_workspace,
    .forward = l1_groups_ref_forward,
    .backward = l1_groups_ref_backward,
};

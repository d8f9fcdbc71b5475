/* append_rows.c - appends rows of a table to each sequence (the virtual nodes of a tree): the op, its reference and its
 * CPU twin, with sequences on threads.
 *
 *   y[b][t] = x[b][t] for t < T;  y[b][T + i] = p[which[i]], or 0 where which[i] is -1
 *   dx = dy in its rows;  dp[r] = sum over b and all i with which[i] = r of dy[b][T + i] */
#include <inttypes.h>
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/inverse.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/move/move.h"

struct tensor *append_rows(struct graph *g, struct tensor *x, struct tensor *p, const int32_t *which, int64_t n) {
    struct append_rows_attr attr = {.which = which, .n = n};
    return call1(g, &op_append_rows, &attr, sizeof attr, (struct tensor *[]){x, p}, 2);
}

static void append_rows_infer(struct graph *g, struct call *c) {
    const struct append_rows_attr *a = append_rows_attr(c);
    const struct tensor *x = c->in[0], *p = c->in[1];
    if (!infer_present(g, c, 2)) return;
    if (x->rank != 3 || p->rank != 2 || p->dims[1] != x->dims[2] || a->n < 1) {
        graph_fail(g, ST_USAGE,
                   "append_rows: x has rank %d and %" PRId64 " columns, the table rank %d and %" PRId64 ", for %" PRId64
                   " rows; expected ranks 3 and 2, equal columns and at least 1 row",
                   x->rank, tensor_cols(x), p->rank, tensor_cols(p), a->n);
        return;
    }
    for (int64_t i = 0; i < a->n; i++)
        if (a->which[i] < -1 || a->which[i] >= p->dims[0]) {
            graph_fail(g, ST_USAGE, "append_rows: row %" PRId64 " names entry %d of a table of %" PRId64, i,
                       (int)a->which[i], p->dims[0]);
            return;
        }
    graph_output(g, c, DT_REAL, 3, (int64_t[]){x->dims[0], x->dims[1] + a->n, x->dims[2]});
}

/* which[n] and its inverse. */
static int64_t append_rows_table(const struct call *c, int32_t *to) {
    const struct append_rows_attr *a = append_rows_attr(c);
    if (to) memcpy(to, a->which, (size_t)a->n * sizeof *to);
    if (to) inverse_fill(a->n, a->which, c->in[1]->dims[0], to + a->n);
    return a->n + inverse_count(a->n, c->in[1]->dims[0]);
}

static struct cost append_rows_cost(const struct call *c, enum pass pass) {
    double y = (double)tensor_count(c->out[0]), x = (double)tensor_count(c->in[0]);
    double p = (double)tensor_count(c->in[1]);
    return (struct cost){pass == PASS_FORWARD ? 0 : y - x, sizeof(real) * (y + x + p)};
}

/* Variants: as many appended rows as the sequence has, from a table of four with one unused row; one appended row. */
static bool append_rows_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    static const int32_t entries[] = {2, -1, 0, 2, 2, 1, 0};
    int64_t n = s->variant ? 1 : s->length;
    int32_t *which = input_table(g, n);
    for (int64_t i = 0; which && i < n; i++) which[i] = entries[i % 7];
    struct tensor *x = input_tokens(g, s, "x", s->dim), *p = input_matrix(g, "p", 4, s->dim);
    if (which) append_rows(g, x, p, which, n);
    return true;
}

const struct op op_append_rows = {
    .name = "append_rows",
    .maths = "y[b] = (x[b], p[which])",
    .source = "",
    .table = append_rows_table,
    .infer = append_rows_infer,
    .cost = append_rows_cost,
    .sizes = "batch length dim",
    .build = append_rows_build,
};

static void append_to_sequence(const struct call *c, int64_t b) {
    const struct append_rows_attr *a = append_rows_attr(c);
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2];
    real *y = tensor_real(c->out[0]) + b * (T + a->n) * C;
    memcpy(y, tensor_real(c->in[0]) + b * T * C, (size_t)(T * C) * sizeof *y);
    for (int64_t i = 0; i < a->n; i++) {
        real *row = y + (T + i) * C;
        if (a->which[i] < 0)
            memset(row, 0, (size_t)C * sizeof *row);
        else
            memcpy(row, tensor_real(c->in[1]) + a->which[i] * C, (size_t)C * sizeof *row);
    }
}

static void append_rows_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) append_to_sequence(c, b);
}

static size_t append_rows_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)tensor_count(c->in[1]) * sizeof(double));
}

static void append_rows_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct append_rows_attr *a = append_rows_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], C = c->in[0]->dims[2], P = tensor_count(c->in[1]);
    const real *dy = call_dout(c, 0);
    double *dp = c->scratch[PASS_BACKWARD];
    for (int64_t i = 0; c->din[0] && i < B * T * C; i++)
        put(c->din[0] + i, call_accumulates(c, 0), dy[i + i / (T * C) * a->n * C]);
    if (!c->din[1]) return;
    memset(dp, 0, (size_t)P * sizeof *dp);
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < a->n; i++)
            for (int64_t k = 0; a->which[i] >= 0 && k < C; k++)
                dp[a->which[i] * C + k] += dy[(b * (T + a->n) + T + i) * C + k];
    for (int64_t i = 0; i < P; i++) put(c->din[1] + i, call_accumulates(c, 1), (real)dp[i]);
}

const struct kernel kernel_append_rows_ref = {
    .name = "append_rows_ref",
    .op = &op_append_rows,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = append_rows_ref_workspace,
    .forward = append_rows_ref_forward,
    .backward = append_rows_ref_backward,
};

/* --- CPU: the table's gradient in groups of sequences, summed in order -------------------------------------------- */

#define APPEND_GROUPS 16

static int64_t groups_of(const struct call *c) {
    int64_t B = c->in[0]->dims[0];
    return B < APPEND_GROUPS ? B : APPEND_GROUPS;
}

static void append_rows_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) append_to_sequence(c, b);
}

static size_t append_rows_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) scratch_rows(&s, groups_of(c), tensor_count(c->in[1]));
    return s.used;
}

/* Computes dx of the sequences of one group, and the group's part of dp. */
static void group_gradient(const struct call *c, struct range sequences, real *dp) {
    const struct append_rows_attr *a = append_rows_attr(c);
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2];
    bool accumulate = call_accumulates(c, 0);
    memset(dp, 0, (size_t)tensor_count(c->in[1]) * sizeof *dp);
    for (int64_t b = sequences.begin; b < sequences.end; b++) {
        const real *dy = call_dout(c, 0) + b * (T + a->n) * C;
        real *dx = c->din[0] ? c->din[0] + b * T * C : NULL;
        if (dx) {
#pragma omp simd
            for (int64_t k = 0; k < T * C; k++) put(&dx[k], accumulate, dy[k]);
        }
        for (int64_t i = 0; i < a->n; i++) {
            if (a->which[i] < 0) continue;
            const real *row = dy + (T + i) * C;
            real *sum = dp + a->which[i] * C;
#pragma omp simd
            for (int64_t k = 0; k < C; k++) sum[k] += row[k];
        }
    }
}

static void append_rows_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t groups = groups_of(c), P = tensor_count(c->in[1]);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct scratch_rows dp = scratch_rows(&s, groups, P);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < groups; i++)
        group_gradient(c, part_at(c->in[0]->dims[0], groups, i), dp.at + i * dp.stride);
    if (c->din[1]) sum_partials(P, groups, dp.at, dp.stride, c->din[1], call_accumulates(c, 1));
}

/* Tolerance: dp sums the uses of each table row in `real`, the reference in double. Errors grow like the square root of
 * the number of uses. */
const struct kernel kernel_append_rows_cpu = {
    .name = "append_rows_cpu",
    .op = &op_append_rows,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = append_rows_cpu_workspace,
    .forward = append_rows_cpu_forward,
    .backward = append_rows_cpu_backward,
};

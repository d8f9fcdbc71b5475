/* tree_add.c - adds a row of a table to each node of a tree; several nodes may share a row. The file has the op, its
 * reference and its CPU kernel.
 *
 * Sequence b has the values w[b][v] at node v; p is the table:
 *   y[b][v] = w[b][v] + p[row of v];   the root has no row, so y = w there
 * Gradients: dw = dy;  dp[row] = sum of dy over the batch and over the nodes that use this row. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/tree/tree_walk.h"

struct tensor *tree_add(struct graph *g, const struct tree *tree, struct tensor *w, struct tensor *p) {
    return call1(g, &op_tree_add, tree, sizeof *tree, (struct tensor *[]){w, p}, 2);
}

static void tree_add_infer(struct graph *g, struct call *c) {
    const struct tree *t = tree_add_attr(c);
    const struct tensor *w = c->in[0], *p = c->in[1];
    if (!infer_present(g, c, 2)) return;
    int64_t nodes = tree_nodes(t);
    if (w->rank != 3 || p->rank != 2)
        graph_fail(g, ST_USAGE, "tree_add: w and p have rank %d and %d, expected 3 (B,nodes,P) and 2 (rows,P)", w->rank,
                   p->rank);
    else if (w->dims[1] != nodes)
        graph_fail(g, ST_USAGE,
                   "tree_add: w has %" PRId64 " nodes but the tree of arity %" PRId64 " and %" PRId64
                   " levels has %" PRId64,
                   w->dims[1], t->arity, t->levels, nodes);
    else if (p->dims[0] != 1 && p->dims[0] != t->levels - 1 && p->dims[0] != nodes - 1)
        graph_fail(g, ST_USAGE,
                   "tree_add: p has %" PRId64 " rows, expected 1, levels-1 = %" PRId64 " or nodes-1 = %" PRId64,
                   p->dims[0], t->levels - 1, nodes - 1);
    else if (p->dims[1] != w->dims[2])
        graph_fail(g, ST_USAGE, "tree_add: w is %" PRId64 " wide and p %" PRId64 "; they must agree", w->dims[2],
                   p->dims[1]);
    else
        graph_output(g, c, DT_REAL, 3, w->dims);
}

static struct cost tree_add_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double n = (double)tensor_count(c->in[0]), p = (double)tensor_count(c->in[1]);
    return (struct cost){n, sizeof(real) * (2 * n + p)};
}

/* `length` leaves, nodes of a chain. Variants: sharings and arities. */
static bool tree_add_build(struct graph *g, const struct op_sizes *s) {
    static const struct {
        int64_t arity;
        enum tree_sharing sharing;
    } cases[] = {{2, SHARED_BY_LEVEL}, {3, OWN_OF_NODE}, {1, SHARED_BY_ALL}};
    if (s->variant >= (int64_t)(sizeof cases / sizeof *cases)) return false;
    struct tree t = tree_for(cases[s->variant].arity, s->length);
    struct op_sizes nodes = *s;
    nodes.length = tree_nodes(&t);
    struct tensor *w = input_tokens(g, &nodes, "w", s->blocks);
    tree_add(g, &t, w, input_couplings(g, &nodes, &t, cases[s->variant].sharing, "p"));
    return true;
}

static struct heads tree_add_heads(const struct call *c) {
    return (struct heads){tensor_cols(c->in[0]), {1, 1}, {1}};
}

/* The gradient of a row of the table is a sum over sequences and nodes. */
static double tree_add_terms(const struct call *c, enum pass pass, int j) {
    const struct tree *t = tree_add_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], P = c->in[0]->dims[2], n = tensor_count(c->in[1]);
    enum tree_sharing sharing = tree_sharing(t, c->in[1]);
    double *sum = c->scratch[pass], largest = 0;
    if (pass == PASS_FORWARD || j != 1) return 0;
    for (int64_t i = 0; i < n; i++) sum[i] = 0;
    for (int64_t b = 0; b < B; b++) {
        struct tree_level v = tree_bottom(t, 0);
        for (int64_t l = 0; l < t->levels - 1; l++, v = tree_above(t, 0, v))
            for (int64_t i = 0; i < v.count * P; i++) {
                double *row = sum + tree_row(sharing, v, i / P) * P + i % P;
                *row += fabs((double)call_dout(c, 0)[(b * T + v.offset) * P + i]);
                largest = fmax(largest, *row);
            }
    }
    return largest;
}

const struct op op_tree_add = {
    .name = "tree_add",
    .maths = "y[b][v] = w[b][v] + p[row of v]",
    .source = "",
    .infer = tree_add_infer,
    .cost = tree_add_cost,
    .heads = tree_add_heads,
    .terms = tree_add_terms,
    .sizes = "batch length blocks",
    .build = tree_add_build,
};

/* --- reference ------------------------------------------------------------------------------------------------- */

static void tree_add_ref_forward(const struct call *c, const struct exec *e) {
    (void)e;
    const struct tree *t = tree_add_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], P = c->in[0]->dims[2];
    enum tree_sharing sharing = tree_sharing(t, c->in[1]);
    for (int64_t b = 0; b < B; b++) {
        struct tree_level v = tree_bottom(t, 0);
        for (int64_t l = 0; l < t->levels; l++, v = tree_above(t, 0, v))
            for (int64_t i = 0; i < v.count; i++)
                for (int64_t k = 0; k < P; k++) {
                    int64_t at = (b * T + v.offset + i) * P + k;
                    real p = l < t->levels - 1 ? tensor_real(c->in[1])[tree_row(sharing, v, i) * P + k] : 0;
                    tensor_real(c->out[0])[at] = tensor_real(c->in[0])[at] + p;
                }
    }
}

static size_t tree_add_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)tensor_count(c->in[1]) * sizeof(double));
}

static void tree_add_ref_backward(const struct call *c, const struct exec *e) {
    (void)e;
    const struct tree *t = tree_add_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], P = c->in[0]->dims[2], n = tensor_count(c->in[1]);
    enum tree_sharing sharing = tree_sharing(t, c->in[1]);
    double *sum = c->scratch[PASS_BACKWARD];
    for (int64_t i = 0; i < n; i++) sum[i] = 0;
    for (int64_t b = 0; b < B; b++) {
        struct tree_level v = tree_bottom(t, 0);
        for (int64_t l = 0; l < t->levels - 1; l++, v = tree_above(t, 0, v))
            for (int64_t i = 0; i < v.count; i++)
                for (int64_t k = 0; k < P; k++)
                    sum[tree_row(sharing, v, i) * P + k] += call_dout(c, 0)[(b * T + v.offset + i) * P + k];
    }
    for (int64_t i = 0; c->din[1] && i < n; i++) put(c->din[1] + i, call_accumulates(c, 1), (real)sum[i]);
    for (int64_t i = 0; c->din[0] && i < tensor_count(c->in[0]); i++)
        put(c->din[0] + i, call_accumulates(c, 0), call_dout(c, 0)[i]);
}

/* --- CPU: threads compute sequences, lanes compute heads; each group of sequences has its own sums for dp --------- */

static void tree_add_cpu_forward(const struct call *c, const struct exec *e) {
    (void)e;
    const struct tree *t = tree_add_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], P = c->in[0]->dims[2];
    enum tree_sharing sharing = tree_sharing(t, c->in[1]);
#pragma omp parallel for schedule(static) if (B * T * P > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) {
        struct tree_level v = tree_bottom(t, 0);
        for (int64_t l = 0; l < t->levels - 1; l++, v = tree_above(t, 0, v))
            for (int64_t i = 0; i < v.count; i++) {
                const real *w = tensor_real(c->in[0]) + (b * T + v.offset + i) * P;
                const real *p = tensor_real(c->in[1]) + tree_row(sharing, v, i) * P;
                real *y = tensor_real(c->out[0]) + (b * T + v.offset + i) * P;
#pragma omp simd
                for (int64_t k = 0; k < P; k++) y[k] = w[k] + p[k];
            }
        int64_t root = (b * T + T - 1) * P;
        memcpy(tensor_real(c->out[0]) + root, tensor_real(c->in[0]) + root, (size_t)P * sizeof(real));
    }
}

static int64_t groups_of(const struct call *c) {
    int64_t B = c->in[0]->dims[0];
    return B < TREE_GROUPS ? B : TREE_GROUPS;
}

static size_t tree_add_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) scratch_rows(&s, groups_of(c), tensor_count(c->in[1]));
    return s.used;
}

/* Computes sum[row], the sum of dy over the sequences of one group and the nodes that use this row. */
static void group_gradient(const struct call *c, struct range sequences, real *sum) {
    const struct tree *t = tree_add_attr(c);
    int64_t T = c->in[0]->dims[1], P = c->in[0]->dims[2];
    enum tree_sharing sharing = tree_sharing(t, c->in[1]);
    memset(sum, 0, (size_t)tensor_count(c->in[1]) * sizeof *sum);
    for (int64_t b = sequences.begin; b < sequences.end; b++) {
        struct tree_level v = tree_bottom(t, 0);
        for (int64_t l = 0; l < t->levels - 1; l++, v = tree_above(t, 0, v))
            for (int64_t i = 0; i < v.count; i++) {
                const real *dy = call_dout(c, 0) + (b * T + v.offset + i) * P;
                real *s = sum + tree_row(sharing, v, i) * P;
#pragma omp simd
                for (int64_t k = 0; k < P; k++) s[k] += dy[k];
            }
    }
}

static void tree_add_cpu_backward(const struct call *c, const struct exec *e) {
    (void)e;
    int64_t n = tensor_count(c->in[0]), m = tensor_count(c->in[1]), groups = groups_of(c);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct scratch_rows dp = scratch_rows(&s, groups, m);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t i = 0; i < groups; i++)
        group_gradient(c, part_at(c->in[0]->dims[0], groups, i), dp.at + i * dp.stride);
    if (c->din[1]) sum_partials(m, groups, dp.at, dp.stride, c->din[1], call_accumulates(c, 1));
    if (!c->din[0]) return;
    bool add_dw = call_accumulates(c, 0);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t i = 0; i < span_count(n); i++) {
        struct range r = span_at(n, i);
        const real *dy = call_dout(c, 0);
#pragma omp simd
        for (int64_t k = r.begin; k < r.end; k++) put(c->din[0] + k, add_dw, dy[k]);
    }
}

const struct kernel kernel_tree_add_ref = {
    .name = "tree_add_ref",
    .op = &op_tree_add,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = tree_add_ref_workspace,
    .forward = tree_add_ref_forward,
    .backward = tree_add_ref_backward,
};

/* Tolerance: dp sums up to B * nodes terms in `real`, the reference in double. Errors grow like the square root of the
 * number of terms. They are measured in units of the terms (op->terms), because the sum itself may be almost 0. */
const struct kernel kernel_tree_add_cpu = {
    .name = "tree_add_cpu",
    .op = &op_tree_add,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = tree_add_cpu_workspace,
    .forward = tree_add_cpu_forward,
    .backward = tree_add_cpu_backward,
};

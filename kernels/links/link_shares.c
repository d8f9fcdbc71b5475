/* link_shares.c - the share of each pair of edges in an edge that several pairs have in common: the op and its
 * reference.
 *
 * Pair p leads from the edge `from` to the edge `to` and has the number t_p. It shares one of these edges with others:
 *   y_p = t_p / S,   S = 1/2 + sum of |t| over the pairs that share the edge;   y_p = 0 if p is not in effect
 *   dt_p = (dy_p - sign(t_p) sum of dy y over the same pairs) / S
 * pLSTM, Eq. 4; the 1/2 is from ml-jku/plstm, torch/plstm_graph.py. */
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/scratch.h"
#include "kernels/links/links_call.h"

struct tensor *link_shares(struct graph *g, struct tensor *t, const struct links *links, enum link_side side) {
    return call_on_links(g, &op_link_shares, t, links, (int)side);
}

static void link_shares_infer(struct graph *g, struct call *c) {
    const struct links_attr *a = links_attr(c);
    if (!infer_present(g, c, 2)) return;
    const struct tensor *t = c->in[0];
    if (t->rank != 3 || t->dims[1] != a->size.pairs)
        graph_fail(g, ST_USAGE,
                   "link_shares: t has rank %d and %" PRId64 " rows, expected rank 3 and %" PRId64
                   " rows, one per pair",
                   t->rank, t->rank == 3 ? t->dims[1] : 0, a->size.pairs);
    else if (infer_links(g, c, 1, a->size, t))
        graph_output(g, c, DT_REAL, 3, t->dims);
}

static struct cost link_shares_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->out[0]);
    return (struct cost){(pass == PASS_FORWARD ? 3 : 7) * n, (pass == PASS_FORWARD ? 2 : 3) * n * sizeof(real)};
}

static struct heads link_shares_heads(const struct call *c) {
    return (struct heads){tensor_cols(c->in[0]), {1}, {1}};
}

/* The variants are both sides (`from` and `to`) of each kind of links. */
static bool link_shares_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant >= LINK_INPUTS * LINK_SIDES) return false;
    struct links links = input_links(g, input_constant(input_tokens(g, s, "x", 1)), s, LINK_SIDES);
    struct tensor *t = graph_input(g, "t", 3, (int64_t[]){s->batch, links.size.pairs, s->dim}, true);
    link_shares(g, t, &links, (enum link_side)(s->variant % LINK_SIDES));
    return true;
}

const struct op op_link_shares = {
    .name = "link_shares",
    .maths = "y_p = t_p / (1/2 + sum of |t| over the pairs with the same edge)",
    .source = "pLSTM (workshop version), Eq. 4; ml-jku/plstm, torch/plstm_graph.py",
    .needs_in = 3,
    .no_grad_in = 2,
    .infer = link_shares_infer,
    .cost = link_shares_cost,
    .heads = link_shares_heads,
    .sizes = "batch length dim",
    .build = link_shares_build,
};

/* --- reference: one column of one sequence at a time -------------------------------------------------------------- */

/* Returns the edge that pair p shares, or -1 if the pair is not in effect. This op does not know the number of nodes,
 * so nodes are not checked here. */
static int32_t shared_edge(const struct call *c, const struct links_view *l, int64_t p) {
    int32_t from, to;
    if (!links_pair(l, p, &from, &to)) return -1;
    return links_attr(c)->rule == LINK_SAME_FROM ? from : to;
}

/* Computes S of all edges, for the column that begins at t. */
static void sums_of(const struct call *c, const struct links_view *l, const real *t, double *S) {
    int64_t H = c->in[0]->dims[2];
    for (int64_t e = 0; e < l->size.edges; e++) S[e] = 0.5;
    for (int64_t p = 0; p < l->size.pairs; p++) {
        int32_t e = shared_edge(c, l, p);
        if (e >= 0) S[e] += fabs((double)t[p * H]);
    }
}

static size_t link_shares_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    int64_t E = links_attr(c)->size.edges;
    scratch_doubles(&s, E);
    if (pass == PASS_BACKWARD) scratch_doubles(&s, E);
    return s.used;
}

static void link_shares_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], P = c->in[0]->dims[1], H = c->in[0]->dims[2];
    double *S = c->scratch[PASS_FORWARD];
    for (int64_t column = 0; column < B * H; column++) {
        struct links_view l = links_at(c, column / H, INT32_MAX);
        int64_t at = column / H * P * H + column % H;
        const real *t = tensor_real(c->in[0]) + at;
        sums_of(c, &l, t, S);
        for (int64_t p = 0; p < P; p++) {
            int32_t e = shared_edge(c, &l, p);
            tensor_real(c->out[0])[at + p * H] = e < 0 ? 0 : (real)(t[p * H] / S[e]);
        }
    }
}

static void link_shares_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct links_attr *a = links_attr(c);
    int64_t B = c->in[0]->dims[0], P = c->in[0]->dims[1], H = c->in[0]->dims[2];
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    double *S = scratch_doubles(&s, a->size.edges), *dot = scratch_doubles(&s, a->size.edges);
    for (int64_t column = 0; column < B * H && c->din[0]; column++) {
        struct links_view l = links_at(c, column / H, INT32_MAX);
        int64_t at = column / H * P * H + column % H;
        const real *t = tensor_real(c->in[0]) + at, *dy = call_dout(c, 0) + at;
        sums_of(c, &l, t, S);
        for (int64_t e = 0; e < a->size.edges; e++) dot[e] = 0;
        for (int64_t p = 0; p < P; p++) {
            int32_t e = shared_edge(c, &l, p);
            if (e >= 0) dot[e] += dy[p * H] * (t[p * H] / S[e]);
        }
        for (int64_t p = 0; p < P; p++) {
            int32_t e = shared_edge(c, &l, p);
            double sign = t[p * H] > 0 ? 1 : t[p * H] < 0 ? -1 : 0;
            put(c->din[0] + at + p * H, call_accumulates(c, 0), e < 0 ? 0 : (real)((dy[p * H] - sign * dot[e]) / S[e]));
        }
    }
}

const struct kernel kernel_link_shares_ref = {
    .name = "link_shares_ref",
    .op = &op_link_shares,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = link_shares_ref_workspace,
    .forward = link_shares_ref_forward,
    .backward = link_shares_ref_backward,
};

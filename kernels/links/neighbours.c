/* neighbours.c - sums over the neighbours of a node: the op and its reference.
 *
 * N(n) are the neighbours of node n:
 *   sum: y_n = sum over u in N(n) of x_u
 *   gcn: y_n = sum over u in N(n) and n itself of x_u / sqrt(d_n d_u), d = 1 + |N|   (Kipf & Welling 2017, Eq. 2)
 * Both maps are symmetric, so dx is the same map of dy. */
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/scratch.h"
#include "kernels/links/links_call.h"

struct tensor *neighbours(struct graph *g, struct tensor *x, const struct links *links, enum neighbours how) {
    return call_on_links(g, &op_neighbours, x, links, (int)how);
}

static void neighbours_infer(struct graph *g, struct call *c) {
    const struct links_attr *a = links_attr(c);
    if (!infer_present(g, c, 2)) return;
    const struct tensor *x = c->in[0];
    if (x->rank != 3)
        graph_fail(g, ST_USAGE, "neighbours: x has rank %d, expected 3 (B,T,D)", x->rank);
    else if (infer_links(g, c, 1, a->size, x))
        graph_output(g, c, DT_REAL, 3, x->dims);
}

/* Each edge adds a row to each of its ends. */
static struct cost neighbours_cost(const struct call *c, enum pass pass) {
    (void)pass;
    const struct links_attr *a = links_attr(c);
    double n = (double)tensor_count(c->in[0]), rows = (double)(c->in[0]->dims[0] * c->in[0]->dims[2]);
    return (struct cost){4 * rows * (double)a->size.edges, 2 * n * sizeof(real)};
}

static bool neighbours_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant >= LINK_INPUTS * NEIGHBOURS_COUNT) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim);
    struct links links = input_links(g, x, s, NEIGHBOURS_COUNT);
    neighbours(g, x, &links, (enum neighbours)(s->variant % NEIGHBOURS_COUNT));
    return true;
}

/* --- reference: one column of one sequence at a time -------------------------------------------------------------- */

struct ref {
    double *sum, *factor; /* [T]; factor: 1 / sqrt(d) */
};

static struct ref ref_of(const struct call *c, struct scratch *s) {
    struct ref r = {.sum = scratch_doubles(s, c->in[0]->dims[1])};
    r.factor = scratch_doubles(s, c->in[0]->dims[1]);
    return r;
}

static size_t neighbours_ref_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    ref_of(c, &s);
    return s.used;
}

static void ref_factors(const struct links_view *l, double *factor) {
    int32_t a, b;
    for (int64_t n = 0; n < l->T; n++) factor[n] = 1;
    for (int64_t e = 0; e < l->size.edges; e++)
        if (links_edge(l, e, &a, &b)) factor[a]++, factor[b]++;
    for (int64_t n = 0; n < l->T; n++) factor[n] = 1 / sqrt(factor[n]);
}

/* Sums over the neighbours of each node into r.sum, for the column that begins at x. `magnitudes`: sums |x|. */
static void ref_column(const struct call *c, const struct links_view *l, const real *x, bool magnitudes, struct ref r) {
    bool gcn = links_attr(c)->rule == NEIGHBOURS_GCN;
    int64_t D = c->in[0]->dims[2];
    int32_t a, b;
    for (int64_t n = 0; n < l->T; n++) {
        double own = magnitudes ? fabs((double)x[n * D]) : x[n * D];
        r.sum[n] = gcn ? own * r.factor[n] * r.factor[n] : 0;
    }
    for (int64_t e = 0; e < l->size.edges; e++) {
        if (!links_edge(l, e, &a, &b)) continue;
        double of_a = magnitudes ? fabs((double)x[a * D]) : x[a * D],
               of_b = magnitudes ? fabs((double)x[b * D]) : x[b * D];
        double factor = gcn ? r.factor[a] * r.factor[b] : 1;
        r.sum[a] += factor * of_b;
        r.sum[b] += factor * of_a;
    }
}

static double neighbours_terms(const struct call *c, enum pass pass, int j) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct scratch s = scratch_of(c, pass);
    struct ref r = ref_of(c, &s);
    const real *x = pass == PASS_FORWARD ? tensor_real(c->in[0]) : call_dout(c, 0);
    double most = 0;
    (void)j;
    for (int64_t i = 0; i < B * D; i++) {
        struct links_view l = links_at(c, i / D, T);
        ref_factors(&l, r.factor);
        ref_column(c, &l, x + i / D * T * D + i % D, true, r);
        for (int64_t n = 0; n < T; n++) most = fmax(most, r.sum[n]);
    }
    return most;
}

const struct op op_neighbours = {
    .name = "neighbours",
    .maths = "y_n = sum of x_u over the neighbours u of n, or of x_u / sqrt(d_n d_u) over n and its neighbours",
    .source = "Kipf & Welling 2017, Eq. 2; Xu et al. 2019, Eq. 4.1",
    .needs_in = 2,
    .no_grad_in = 2,
    .infer = neighbours_infer,
    .cost = neighbours_cost,
    .terms = neighbours_terms,
    .sizes = "batch length dim",
    .build = neighbours_build,
};

/* Computes y (+)= the map of x. Both are (B,T,D). */
static void ref_map(const struct call *c, enum pass pass, const real *x, real *y, bool accumulate) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct scratch s = scratch_of(c, pass);
    struct ref r = ref_of(c, &s);
    for (int64_t b = 0; b < B; b++) {
        struct links_view l = links_at(c, b, T);
        ref_factors(&l, r.factor);
        for (int64_t d = 0; d < D; d++) {
            ref_column(c, &l, x + b * T * D + d, false, r);
            for (int64_t n = 0; n < T; n++) put(y + (b * T + n) * D + d, accumulate, (real)r.sum[n]);
        }
    }
}

static void neighbours_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    ref_map(c, PASS_FORWARD, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void neighbours_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    if (c->din[0]) ref_map(c, PASS_BACKWARD, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

const struct kernel kernel_neighbours_ref = {
    .name = "neighbours_ref",
    .op = &op_neighbours,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = neighbours_ref_workspace,
    .forward = neighbours_ref_forward,
    .backward = neighbours_ref_backward,
};

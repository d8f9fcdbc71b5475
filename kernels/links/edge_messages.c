/* edge_messages.c - messages of a node's neighbours, summed: the op and its reference.
 *
 * a and c are rows of the nodes, N(n) are the neighbours of n, and [...] is 1 if the condition holds, else 0:
 *   y_n = sum over u in N(n) of relu(a_n + c_u)
 *   da_n = sum over u of dy_n [a_n + c_u > 0]     dc_u = sum over n of dy_n [a_n + c_u > 0]
 * If a = W x and c = W' x, the message is a layer that reads x_n and x_u (Gilmer et al. 2017, section 2). */
#include <math.h>

#include "kernels/lib/scratch.h"
#include "kernels/links/links_call.h"

struct tensor *edge_messages(struct graph *g, struct tensor *a, struct tensor *c, const struct links *links) {
    struct links_attr attr = {.size = links->size, .reversed = links->reversed};
    return call1(g, &op_edge_messages, &attr, sizeof attr, (struct tensor *[]){a, links->words, c}, 3);
}

static void edge_messages_infer(struct graph *g, struct call *c) {
    const struct links_attr *attr = links_attr(c);
    if (!infer_present(g, c, 3)) return;
    const struct tensor *a = c->in[0];
    if (a->rank != 3)
        graph_fail(g, ST_USAGE, "edge_messages: a has rank %d, expected 3 (B,T,D)", a->rank);
    else if (infer_same_shape(g, c, 0, 2) && infer_links(g, c, 1, attr->size, a))
        graph_output(g, c, DT_REAL, 3, a->dims);
}

static struct cost edge_messages_cost(const struct call *c, enum pass pass) {
    const struct links_attr *attr = links_attr(c);
    double n = (double)tensor_count(c->in[0]), rows = (double)(c->in[0]->dims[0] * c->in[0]->dims[2]);
    return (struct cost){(pass == PASS_FORWARD ? 6 : 8) * rows * (double)attr->size.edges, 3 * n * sizeof(real)};
}

static bool edge_messages_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant >= LINK_INPUTS) return false;
    struct tensor *a = input_tokens(g, s, "a", s->dim), *c = input_tokens(g, s, "c", s->dim);
    struct links links = input_links(g, a, s, 1);
    edge_messages(g, a, c, &links);
    return true;
}

const struct op op_edge_messages = {
    .name = "edge_messages",
    .maths = "y_n = sum over the neighbours u of n of relu(a_n + c_u)",
    .source = "Gilmer et al. 2017",
    .needs_in = 7,
    .no_grad_in = 2,
    .infer = edge_messages_infer,
    .cost = edge_messages_cost,
    .sizes = "batch length dim",
    .build = edge_messages_build,
};

/* --- reference: one column of one sequence at a time, with sums in double ----------------------------------------- */

static size_t edge_messages_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    scratch_doubles(&s, c->in[0]->dims[1]);
    if (pass == PASS_BACKWARD) scratch_doubles(&s, c->in[0]->dims[1]);
    return s.used;
}

/* Returns the message of node u to node n. */
static double message(const real *a, const real *c, int64_t n, int64_t u, int64_t D) {
    double sum = (double)a[n * D] + c[u * D];
    return sum <= 0 ? 0 : sum; /* NaN stays NaN */
}

static void edge_messages_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    double *sum = c->scratch[PASS_FORWARD];
    int32_t p, q;
    for (int64_t i = 0; i < B * D; i++) {
        struct links_view l = links_at(c, i / D, T);
        int64_t at = i / D * T * D + i % D;
        const real *a = tensor_real(c->in[0]) + at, *other = tensor_real(c->in[2]) + at;
        for (int64_t n = 0; n < T; n++) sum[n] = 0;
        for (int64_t e = 0; e < l.size.edges; e++) {
            if (!links_edge(&l, e, &p, &q)) continue;
            sum[p] += message(a, other, p, q, D);
            sum[q] += message(a, other, q, p, D);
        }
        for (int64_t n = 0; n < T; n++) tensor_real(c->out[0])[at + n * D] = (real)sum[n];
    }
}

static void edge_messages_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    double *da = scratch_doubles(&s, T), *dc = scratch_doubles(&s, T);
    int32_t p, q;
    for (int64_t i = 0; i < B * D; i++) {
        struct links_view l = links_at(c, i / D, T);
        int64_t at = i / D * T * D + i % D;
        const real *a = tensor_real(c->in[0]) + at, *other = tensor_real(c->in[2]) + at, *dy = call_dout(c, 0) + at;
        for (int64_t n = 0; n < T; n++) da[n] = dc[n] = 0;
        for (int64_t e = 0; e < l.size.edges; e++) {
            if (!links_edge(&l, e, &p, &q)) continue;
            if (!(message(a, other, p, q, D) <= 0)) { /* q sends to p; NaN counts as positive */
                da[p] += dy[p * D];
                dc[q] += dy[p * D];
            }
            if (!(message(a, other, q, p, D) <= 0)) { /* p sends to q */
                da[q] += dy[q * D];
                dc[p] += dy[q * D];
            }
        }
        for (int64_t n = 0; n < T && c->din[0]; n++) put(c->din[0] + at + n * D, call_accumulates(c, 0), (real)da[n]);
        for (int64_t n = 0; n < T && c->din[2]; n++) put(c->din[2] + at + n * D, call_accumulates(c, 2), (real)dc[n]);
    }
}

const struct kernel kernel_edge_messages_ref = {
    .name = "edge_messages_ref",
    .op = &op_edge_messages,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = edge_messages_ref_workspace,
    .forward = edge_messages_ref_forward,
    .backward = edge_messages_ref_backward,
};

/* edge_attention.c - attention of a node over its neighbours and itself: the op and its reference.
 *
 * Node n has the scores s_n and r_n and the values v_n for each head; heads are independent. u runs over n and its
 * neighbours (Velickovic et al. 2018, Eq. 3 and 4):
 *   z_nu = s_n + r_u   e_nu = z_nu if z_nu > 0, else 0.2 z_nu   p_n = softmax over u of e_nu   y_n = sum_u p_nu v_u
 * Gradients:
 *   dp_nu = dy_n . v_u   de_nu = p_nu (dp_nu - sum_w p_nw dp_nw)   dz_nu = de_nu if z_nu > 0, else 0.2 de_nu
 *   ds_n = sum_u dz_nu   dr_u = sum_n dz_nu   dv_u = sum_n p_nu dy_n */
#include "kernels/links/edge_attention.h"

#include <inttypes.h>
#include <math.h>

struct tensor *edge_attention(struct graph *g, struct tensor *v, struct tensor *s, struct tensor *r,
                              const struct links *links) {
    struct links_attr attr = {.size = links->size, .reversed = links->reversed};
    return call1(g, &op_edge_attention, &attr, sizeof attr, (struct tensor *[]){v, links->words, s, r}, 4);
}

static void edge_attention_infer(struct graph *g, struct call *c) {
    const struct links_attr *a = links_attr(c);
    if (!infer_present(g, c, 4)) return;
    const struct tensor *v = c->in[0], *s = c->in[2];
    bool fits = v->rank == 3 && s->rank == 3 && s->dims[0] == v->dims[0] && s->dims[1] == v->dims[1];
    if (!fits || v->dims[2] % s->dims[2] != 0)
        graph_fail(g, ST_USAGE,
                   "edge_attention: v of rank %d, %" PRId64 " wide, and scores of rank %d, %" PRId64 " wide, expected "
                   "(B,T,H*dv) and (B,T,H)",
                   v->rank, v->dims[v->rank - 1], s->rank, s->dims[s->rank - 1]);
    else if (infer_same_shape(g, c, 2, 3) && infer_links(g, c, 1, a->size, v))
        graph_output(g, c, DT_REAL, 3, v->dims);
}

/* Counts score, weight and row for a node and for each of its neighbours, where each edge counts from both ends. */
static struct cost edge_attention_cost(const struct call *c, enum pass pass) {
    const struct links_attr *a = links_attr(c);
    double n = (double)tensor_count(c->in[0]), B = (double)c->in[0]->dims[0], D = (double)c->in[0]->dims[2];
    double reads = B * ((double)c->in[0]->dims[1] + 2 * (double)a->size.edges);
    double flops = reads * (2 * D + 8 * (double)c->in[2]->dims[2]);
    return (struct cost){pass == PASS_FORWARD ? flops : 3 * flops, (pass == PASS_FORWARD ? 2 : 4) * n * sizeof(real)};
}

static bool edge_attention_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant >= LINK_INPUTS) return false;
    struct tensor *v = input_tokens(g, s, "v", s->heads * s->dv);
    struct links links = input_links(g, v, s, 1);
    edge_attention(g, v, input_tokens(g, s, "s", s->heads), input_tokens(g, s, "r", s->heads), &links);
    return true;
}

static double edge_attention_terms(const struct call *c, enum pass pass, int j);

static struct heads edge_attention_heads(const struct call *c) {
    int64_t H = c->in[2]->dims[2], dv = c->in[0]->dims[2] / H;
    return (struct heads){H, {dv, 0, 1, 1}, {dv}};
}

const struct op op_edge_attention = {
    .name = "edge_attention",
    .maths = "y_n = sum over u in N(n) and n of p_nu v_u, p_n = softmax of leaky_relu(s_n + r_u)",
    .source = "Velickovic et al. 2018, Eq. 3 and 4",
    .needs_in = 15,
    .no_grad_in = 2,
    .infer = edge_attention_infer,
    .cost = edge_attention_cost,
    .heads = edge_attention_heads,
    .terms = edge_attention_terms,
    .sizes = "batch length heads dv",
    .build = edge_attention_build,
};

/* --- reference: one head of one node at a time -------------------------------------------------------------------- */

struct ref {
    struct neighbourhoods near;
    double *p, *dp;       /* [T + 2 edges], for the current node */
    double *dv, *ds, *dr; /* [T][dv], [T], [T], for the current head */
};

static struct ref ref_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t T = c->in[0]->dims[1], most = T + 2 * links_attr(c)->size.edges;
    struct ref r = {.near = neighbourhoods_of(c, s)};
    r.p = scratch_doubles(s, most);
    if (pass == PASS_FORWARD) return r;
    r.dp = scratch_doubles(s, most);
    r.dv = scratch_doubles(s, T * (c->in[0]->dims[2] / c->in[2]->dims[2]));
    r.ds = scratch_doubles(s, T);
    r.dr = scratch_doubles(s, T);
    return r;
}

static size_t edge_attention_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    ref_of(c, pass, &s);
    return s.used;
}

static double score_of(const struct call *c, int64_t b, int64_t h, int64_t n, int64_t u) {
    int64_t T = c->in[0]->dims[1], H = c->in[2]->dims[2];
    double s = tensor_real(c->in[2])[(b * T + n) * H + h], r = tensor_real(c->in[3])[(b * T + u) * H + h];
    return s + r;
}

/* Computes the weights p of n and its neighbours, in the order of the list. */
static void ref_weights(const struct call *c, int64_t b, int64_t h, int64_t n, struct ref r) {
    double most = -INFINITY, sum = 0;
    int32_t begin = r.near.start[n], end = r.near.start[n + 1];
    for (int32_t i = begin; i < end; i++) {
        double z = score_of(c, b, h, n, r.near.node[i]);
        r.p[i] = z > 0 ? z : EDGE_ATTENTION_SLOPE * z;
        most = fmax(most, r.p[i]);
    }
    for (int32_t i = begin; i < end; i++) sum += r.p[i] = exp(r.p[i] - most);
    for (int32_t i = begin; i < end; i++) r.p[i] /= sum;
}

/* Gives the size of the terms in the gradients of the scores, p (dp - mean). If one weight is nearly 1, dp and mean
 * cancel. */
static double edge_attention_terms(const struct call *c, enum pass pass, int j) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], H = c->in[2]->dims[2], dv = D / H;
    if (pass == PASS_FORWARD || j < 2) return 0;
    double most = 0;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct ref r = ref_of(c, PASS_BACKWARD, &s);
    for (int64_t b = 0; b < B; b++) {
        struct links_view l = links_at(c, b, T);
        neighbourhoods_read(&l, r.near);
        for (int64_t i = 0; i < T * H; i++) {
            int64_t n = i / H, h = i % H;
            const real *dy = call_dout(c, 0) + (b * T + n) * D + h * dv;
            ref_weights(c, b, h, n, r);
            for (int32_t k = r.near.start[n]; k < r.near.start[n + 1]; k++) {
                const real *v = tensor_real(c->in[0]) + (b * T + r.near.node[k]) * D + h * dv;
                double sum = 0;
                for (int64_t d = 0; d < dv; d++) sum += fabs((double)dy[d] * v[d]);
                most = fmax(most, r.p[k] * sum);
            }
        }
    }
    return most;
}

static void edge_attention_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], H = c->in[2]->dims[2], dv = D / H;
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct ref r = ref_of(c, PASS_FORWARD, &s);
    for (int64_t b = 0; b < B; b++) {
        struct links_view l = links_at(c, b, T);
        neighbourhoods_read(&l, r.near);
        for (int64_t i = 0; i < T * H; i++) {
            int64_t n = i / H, h = i % H;
            ref_weights(c, b, h, n, r);
            for (int64_t j = h * dv; j < (h + 1) * dv; j++) {
                double sum = 0;
                for (int32_t k = r.near.start[n]; k < r.near.start[n + 1]; k++)
                    sum += r.p[k] * tensor_real(c->in[0])[(b * T + r.near.node[k]) * D + j];
                tensor_real(c->out[0])[(b * T + n) * D + j] = (real)sum;
            }
        }
    }
}

/* Adds the gradients that come from dy_n, for n and its neighbours, to the sums of the head. */
static void ref_node_backward(const struct call *c, int64_t b, int64_t h, int64_t n, struct ref r) {
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2], dv = D / c->in[2]->dims[2];
    const real *dy = call_dout(c, 0) + (b * T + n) * D + h * dv;
    int32_t begin = r.near.start[n], end = r.near.start[n + 1];
    double mean = 0;
    ref_weights(c, b, h, n, r);
    for (int32_t k = begin; k < end; k++) {
        int64_t u = r.near.node[k];
        const real *v = tensor_real(c->in[0]) + (b * T + u) * D + h * dv;
        r.dp[k] = 0;
        for (int64_t j = 0; j < dv; j++) {
            r.dp[k] += (double)dy[j] * v[j];
            r.dv[u * dv + j] += r.p[k] * dy[j];
        }
        mean += r.p[k] * r.dp[k];
    }
    for (int32_t k = begin; k < end; k++) {
        double dz = r.p[k] * (r.dp[k] - mean);
        if (score_of(c, b, h, n, r.near.node[k]) <= 0) dz *= EDGE_ATTENTION_SLOPE;
        r.ds[n] += dz;
        r.dr[r.near.node[k]] += dz;
    }
}

static void put_at(const struct call *c, int input, int64_t at, double value) {
    if (c->din[input]) put(c->din[input] + at, call_accumulates(c, input), (real)value);
}

static void edge_attention_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], H = c->in[2]->dims[2], dv = D / H;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct ref r = ref_of(c, PASS_BACKWARD, &s);
    for (int64_t i = 0; i < B * H; i++) {
        int64_t b = i / H, h = i % H;
        struct links_view l = links_at(c, b, T);
        neighbourhoods_read(&l, r.near);
        for (int64_t k = 0; k < T * dv; k++) r.dv[k] = 0;
        for (int64_t n = 0; n < T; n++) r.ds[n] = r.dr[n] = 0;
        for (int64_t n = 0; n < T; n++) ref_node_backward(c, b, h, n, r);
        for (int64_t n = 0; n < T; n++) {
            for (int64_t j = 0; j < dv; j++) put_at(c, 0, (b * T + n) * D + h * dv + j, r.dv[n * dv + j]);
            put_at(c, 2, (b * T + n) * H + h, r.ds[n]);
            put_at(c, 3, (b * T + n) * H + h, r.dr[n]);
        }
    }
}

const struct kernel kernel_edge_attention_ref = {
    .name = "edge_attention_ref",
    .op = &op_edge_attention,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = edge_attention_ref_workspace,
    .forward = edge_attention_ref_forward,
    .backward = edge_attention_ref_backward,
};

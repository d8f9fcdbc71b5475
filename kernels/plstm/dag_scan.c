/* dag_scan.c - pLSTM on a directed acyclic graph: the op and its reference.
 *
 * Edge e leads from node t = tail(e) to node n = head(e). It has the state C_e (dk x dv) and the gates S and M; a pair
 * of edges that follow each other has the gate T. A node has the vectors q, k, v and the gate D; c is a scale:
 *   C_e = sum over pairs (e',e) of T_{e'e} C_{e'} + S_e k_t v_t^T
 *   y_n = c ( sum over the edges e into n of M_e C_e^T q_n + D_n (q_n.k_n) v_n )
 * Edges are sorted so that e' comes before e in each pair. The equations are pLSTM, Eq. 1 and 2; V_k in the direct term
 * there must mean V_v.
 *
 * Backward, from the last edge to the first. E_e is the gradient of C_e, and w = c dy:
 *   E_e = sum over pairs (e,f) of T_{ef} E_f + M_e q_n w_n^T
 *   dT_{ef} = <C_e, E_f>   dM_e = q_n^T C_e w_n   dS_e = k_t^T E_e v_t
 *   dk_t += S_e E_e v_t    dv_t += S_e E_e^T k_t   dq_n += M_e C_e w_n
 * dq, dk, dv and dD also have terms from the direct term. */
#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/links/links_call.h"
#include "kernels/plstm/dag_links.h"

struct tensor *dag_scan(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *source,
                        struct tensor *mark, struct tensor *transition, struct tensor *direct,
                        const struct links *links, bool tree, int64_t H, double scale_of_qk) {
    struct dag_scan_attr attr = {
        .size = links->size, .reversed = links->reversed, .tree = tree, .H = H, .scale = scale_of_qk};
    struct tensor *in[] = {q, k, v, direct, source, mark, transition, links->words};
    return call1(g, &op_dag_scan, &attr, sizeof attr, in, 8);
}

static void dag_scan_infer(struct graph *g, struct call *c) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    if (!infer_dag_state(g, c, a->H) || !infer_links(g, c, DAG_SCAN_LINKS, a->size, c->in[0])) return;
    if (infer_gate(g, c, 3, c->in[0]->dims[1], a->H, "the direct gate") &&
        infer_gate(g, c, 4, a->size.edges, a->H, "the source gate") &&
        infer_gate(g, c, 5, a->size.edges, a->H, "the mark gate") &&
        infer_gate(g, c, 6, a->size.pairs, a->H, "the transition"))
        graph_output(g, c, DT_REAL, 3, c->in[2]->dims);
}

/* Counts FLOPs in units of dk dv. An edge takes 5 in forward (source 3, mark 2) and 13 in backward, a pair 2 and 6.
 * Backward computes the states again. */
static struct cost dag_scan_cost(const struct call *c, enum pass pass) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    double state = (double)(z.dk * z.dv) * (double)(z.B * z.H), E = (double)a->size.edges, L = (double)a->size.pairs;
    double bytes = 0;
    for (int i = 0; i < c->n_in; i++) bytes += (double)tensor_bytes(c->in[i]);
    if (pass == PASS_FORWARD) return (struct cost){state * (5 * E + 2 * L), bytes + (double)tensor_bytes(c->out[0])};
    return (struct cost){state * (13 * E + 6 * L), 2 * bytes + (double)tensor_bytes(c->out[0])};
}

/* The variants are each kind of links, with all pairs and with only the pairs of a multitree. */
static bool dag_scan_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant >= 2 * LINK_INPUTS) return false;
    int64_t H = s->heads, B = s->batch;
    struct tensor *q = input_tokens(g, s, "q", H * s->dk), *k = input_tokens(g, s, "k", H * s->dk);
    struct tensor *v = input_tokens(g, s, "v", H * s->dv), *direct = input_tokens(g, s, "direct", H);
    struct links links = input_links(g, q, s, 2);
    struct tensor *source = graph_input(g, "source", 3, (int64_t[]){B, links.size.edges, H}, true);
    struct tensor *mark = graph_input(g, "mark", 3, (int64_t[]){B, links.size.edges, H}, true);
    struct tensor *transition = graph_input(g, "transition", 3, (int64_t[]){B, links.size.pairs, H}, true);
    dag_scan(g, q, k, v, source, mark, transition, direct, &links, s->variant % 2, H, 1 / sqrt((double)s->dk));
    return true;
}

static struct heads dag_scan_heads(const struct call *c) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes s = dag_sizes_of(c, a->H);
    return (struct heads){a->H, {s.dk, s.dk, s.dv, 1, 1, 1, 1, 0}, {s.dv}};
}

const struct op op_dag_scan = {
    .name = "dag_scan",
    .maths =
        "C_e = sum T_{e'e} C_{e'} + S_e k_tail v_tail^T; y_n = c (sum over in-edges M_e C_e^T q_n + D_n (q_n.k_n) v_n)",
    .source = "pLSTM (workshop version), Eq. 1 and 2",
    .needs_in = 255,
    .no_grad_in = 1u << DAG_SCAN_LINKS,
    .infer = dag_scan_infer,
    .cost = dag_scan_cost,
    .heads = dag_scan_heads,
    .sizes = "batch length heads dk dv",
    .build = dag_scan_build,
};

/* --- reference: one head of one graph at a time ------------------------------------------------------------------- */

static size_t state_bytes(const struct call *c) {
    struct dag_sizes z = dag_sizes_of(c, dag_scan_attr(c)->H);
    return (size_t)(z.dk * z.dv) * sizeof(real);
}

/* Sums over the edges of each node for one head: dq, dk (nodes,dk) and dv (nodes,dv). */
struct sums {
    double *dq, *dk, *dv;
};

/* The links of the current example and all C. Backward also has all E and the sums of all nodes. */
struct ref {
    struct dag d;
    real *C, *E;
    struct sums s;
};

static struct ref ref_of(const struct call *c, enum pass pass, struct scratch *s) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct ref r = {.d = dag_of(c, s)};
    r.C = scratch_bytes(s, (size_t)a->size.edges * state_bytes(c));
    if (pass == PASS_FORWARD) return r;
    r.E = scratch_bytes(s, (size_t)a->size.edges * state_bytes(c));
    r.s.dq = scratch_doubles(s, z.T * z.dk);
    r.s.dk = scratch_doubles(s, z.T * z.dk);
    r.s.dv = scratch_doubles(s, z.T * z.dv);
    return r;
}

static size_t dag_scan_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    ref_of(c, pass, &s);
    return s.used;
}

static double gate_of(const struct call *c, int input, int64_t b, int64_t row, int64_t h) {
    return *head_in(c, input, b * c->in[input]->dims[1] + row, h, 1);
}

static void ref_states(const struct call *c, const struct dag *d, int64_t b, int64_t h, real *C) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t n = z.dk * z.dv;
    for (int64_t e = 0, p = 0, first = 0; e < d->edges; e++, first = p) {
        const real *k = head_in(c, 1, b * z.T + d->tail[e], h, z.dk), *v = head_in(c, 2, b * z.T + d->tail[e], h, z.dv);
        while (p < d->pairs && d->to[p] == e) p++;
        for (int64_t i = 0; i < n; i++) {
            double sum = gate_of(c, 4, b, d->edge_row[e], h) * k[i / z.dv] * v[i % z.dv];
            for (int64_t l = first; l < p; l++) sum += gate_of(c, 6, b, d->pair_row[l], h) * C[d->from[l] * n + i];
            C[e * n + i] = (real)sum;
        }
    }
}

static double ref_dot(int64_t n, const real *a, const real *b) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void dag_scan_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct ref r = ref_of(c, PASS_FORWARD, &scratch);
    const struct dag *d = &r.d;
    real *C = r.C;
    for (int64_t b = 0; b < z.B; b++) {
        dag_read(c, b, &r.d);
        for (int64_t h = 0; h < z.H; h++) {
            ref_states(c, d, b, h, C);
            for (int64_t node = 0; node < z.T; node++) {
                int64_t row = b * z.T + node;
                const real *q = head_in(c, 0, row, h, z.dk), *v = head_in(c, 2, row, h, z.dv);
                double direct = gate_of(c, 3, b, node, h) * ref_dot(z.dk, q, head_in(c, 1, row, h, z.dk));
                for (int64_t j = 0; j < z.dv; j++) {
                    double sum = direct * v[j];
                    for (int64_t e = 0; e < d->edges; e++)
                        for (int64_t i = 0; i < z.dk && d->head[e] == node; i++)
                            sum += gate_of(c, 5, b, d->edge_row[e], h) * q[i] * C[(e * z.dk + i) * z.dv + j];
                    tensor_real(c->out[0])[(row * z.H + h) * z.dv + j] = (real)(a->scale * sum);
                }
            }
        }
    }
}

/* Computes one edge e of backward. On entry E_e has the sum over pairs (e,f). Adds the term with M_e, then computes all
 * gradients that depend on E_e. */
static void ref_edge_backward(const struct call *c, const struct dag *d, int64_t b, int64_t h, int64_t e, const real *C,
                              real *E, struct sums s) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t tail = d->tail[e], head = d->head[e], row = d->edge_row[e], n = z.dk * z.dv;
    const real *q = head_in(c, 0, b * z.T + head, h, z.dk), *dy = call_dout(c, 0) + ((b * z.T + head) * z.H + h) * z.dv;
    const real *k = head_in(c, 1, b * z.T + tail, h, z.dk), *v = head_in(c, 2, b * z.T + tail, h, z.dv);
    double S = gate_of(c, 4, b, row, h), M = gate_of(c, 5, b, row, h), dS = 0, dM = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t r = i / z.dv, j = i % z.dv;
        double w = a->scale * dy[j], total = E[i] + M * q[r] * w;
        E[i] = (real)total;
        dS += k[r] * total * v[j];
        dM += q[r] * (double)C[e * n + i] * w;
        s.dk[tail * z.dk + r] += S * total * v[j];
        s.dv[tail * z.dv + j] += S * total * k[r];
        s.dq[head * z.dk + r] += M * C[e * n + i] * w;
    }
    put_wanted(c, 4, head_din(c, 4, b * a->size.edges + row, h, 1), 0, (real)dS);
    put_wanted(c, 5, head_din(c, 5, b * a->size.edges + row, h, 1), 0, (real)dM);
}

/* Adds the direct terms of a node and writes its gradients. */
static void ref_node_gradients(const struct call *c, int64_t b, int64_t h, int64_t node, struct sums s) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t row = b * z.T + node;
    const real *q = head_in(c, 0, row, h, z.dk), *k = head_in(c, 1, row, h, z.dk), *v = head_in(c, 2, row, h, z.dv);
    const real *dy = call_dout(c, 0) + (row * z.H + h) * z.dv;
    double D = gate_of(c, 3, b, node, h), qk = ref_dot(z.dk, q, k), vw = a->scale * ref_dot(z.dv, v, dy);
    for (int64_t i = 0; i < z.dk; i++) {
        put_wanted(c, 0, head_din(c, 0, row, h, z.dk), i, (real)(s.dq[node * z.dk + i] + D * vw * k[i]));
        put_wanted(c, 1, head_din(c, 1, row, h, z.dk), i, (real)(s.dk[node * z.dk + i] + D * vw * q[i]));
    }
    for (int64_t j = 0; j < z.dv; j++)
        put_wanted(c, 2, head_din(c, 2, row, h, z.dv), j, (real)(s.dv[node * z.dv + j] + D * qk * a->scale * dy[j]));
    put_wanted(c, 3, head_din(c, 3, row, h, 1), 0, (real)(qk * vw));
}

static void dag_scan_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t n = z.dk * z.dv;
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref r = ref_of(c, PASS_BACKWARD, &scratch);
    const struct dag *d = &r.d;
    struct sums s = r.s;
    real *C = r.C, *E = r.E;
    for (int64_t b = 0; b < z.B; b++) {
        dag_read(c, b, &r.d);
        for (int64_t h = 0; h < z.H; h++) {
            dag_clear_gates(c, b, h);
            ref_states(c, d, b, h, C);
            memset(E, 0, (size_t)d->edges * state_bytes(c));
            memset(s.dq, 0, (size_t)(z.T * z.dk) * sizeof *s.dq);
            memset(s.dk, 0, (size_t)(z.T * z.dk) * sizeof *s.dk);
            memset(s.dv, 0, (size_t)(z.T * z.dv) * sizeof *s.dv);
            for (int64_t e = d->edges - 1, p = d->pairs - 1; e >= 0; e--) {
                ref_edge_backward(c, d, b, h, e, C, E + e * n, s);
                for (; p >= 0 && d->to[p] == e; p--) {
                    real *before = E + d->from[p] * n;
                    double T = gate_of(c, 6, b, d->pair_row[p], h);
                    for (int64_t i = 0; i < n; i++) before[i] = (real)(before[i] + T * E[e * n + i]);
                    put_wanted(c, 6, head_din(c, 6, b * a->size.pairs + d->pair_row[p], h, 1), 0,
                               (real)ref_dot(n, C + d->from[p] * n, E + e * n));
                }
            }
            for (int64_t node = 0; node < z.T; node++) ref_node_gradients(c, b, h, node, s);
        }
    }
}

const struct kernel kernel_dag_scan_ref = {
    .name = "dag_scan_ref",
    .op = &op_dag_scan,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = dag_scan_ref_workspace,
    .forward = dag_scan_ref_forward,
    .backward = dag_scan_ref_backward,
};

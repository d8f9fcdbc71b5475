/* dag_scan.c - pLSTM on a directed acyclic graph: the op and its reference.
 *
 *   C_e = sum over pairs (e',e) of T_{e'e} C_{e'} + S_e k_t v_t^T, t = tail(e)
 *   y_n = c ( sum over in-edges e of n of M_e C_e^T q_n + D_n (q_n.k_n) v_n )
 * Edges stand in a topological order of the line graph. pLSTM Eq. 1, 2; spec/plstm-myosotis.md A3. Adjoint, w = c dy,
 * edges from the last to the first:
 *   E_e = sum over pairs (e,f) of T_{ef} E_f + M_e q_n w_n^T, n = head(e)
 *   dT_{ef} = <C_e, E_f>   dM_e = q_n^T C_e w_n   dS_e = k_t^T E_e v_t   dk_t += S_e E_e v_t   dv_t += S_e E_e^T k_t
 *   dq_n += M_e C_e w_n, and the direct terms */
#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/plstm/dag_state.h"

struct tensor *dag_scan(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *source,
                        struct tensor *mark, struct tensor *transition, struct tensor *direct, const struct dag *dag,
                        int64_t H, double scale_of_qk) {
    struct dag_scan_attr attr = {.dag = dag, .H = H, .scale = scale_of_qk};
    return call1(g, &op_dag_scan, &attr, sizeof attr, (struct tensor *[]){q, k, v, direct, source, mark, transition},
                 7);
}

/* Edges join nodes of the graph; pairs join an edge to a later one that starts where it ends, in order of the later
 * one. */
static bool infer_dag(struct graph *g, const struct dag *d, int64_t N) {
    for (int64_t e = 0; e < d->edges; e++)
        if (d->tail[e] < 0 || d->tail[e] >= N || d->head[e] < 0 || d->head[e] >= N) {
            graph_fail(g, ST_USAGE, "dag_scan: edge %d-%d, expected nodes 0 to %" PRId64, d->tail[e], d->head[e],
                       N - 1);
            return false;
        }
    for (int64_t p = 0; p < d->pairs; p++) {
        int32_t from = d->from[p], to = d->to[p];
        bool ordered = from >= 0 && from < to && to < d->edges && (p == 0 || d->to[p - 1] <= to);
        if (ordered && d->head[from] == d->tail[to]) continue;
        graph_fail(g, ST_USAGE,
                   "dag_scan: pair %" PRId64 " leads from edge %d to edge %d, expected a later edge, of %" PRId64
                   ", that starts where the first one ends",
                   p, from, to, d->edges);
        return false;
    }
    return true;
}

static void dag_scan_infer(struct graph *g, struct call *c) {
    const struct dag_scan_attr *a = c->attr;
    const struct dag *d = a->dag;
    if (d->edges == 0)
        c->n_in = 4; /* neither gates of edges nor of pairs */
    else if (d->pairs == 0)
        c->n_in = 6;
    if (!infer_dag_state(g, c, a->H) || !infer_dag(g, d, c->in[0]->dims[1])) return;
    if (infer_gate(g, c, 3, c->in[0]->dims[1], a->H, "the direct gate") &&
        (d->edges == 0 || (infer_gate(g, c, 4, d->edges, a->H, "the source gate") &&
                           infer_gate(g, c, 5, d->edges, a->H, "the mark gate"))) &&
        (d->pairs == 0 || infer_gate(g, c, 6, d->pairs, a->H, "the transition")))
        graph_output(g, c, DT_REAL, 3, c->in[2]->dims);
}

/* An edge, 5 dk dv forward (source 3, mark 2) and 13 backward; a pair 2 and 6, the states once more included. */
static struct cost dag_scan_cost(const struct call *c, enum pass pass) {
    const struct dag_scan_attr *a = c->attr;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    double state = (double)(z.dk * z.dv) * (double)(z.B * z.H), E = (double)a->dag->edges, L = (double)a->dag->pairs;
    double bytes = 0;
    for (int i = 0; i < c->n_in; i++) bytes += (double)tensor_bytes(c->in[i]);
    if (pass == PASS_FORWARD) return (struct cost){state * (5 * E + 2 * L), bytes + (double)tensor_bytes(c->out[0])};
    return (struct cost){state * (13 * E + 6 * L), 2 * bytes + (double)tensor_bytes(c->out[0])};
}

/* N nodes in a row; each has edges to the next `reach` ones. All pairs are kept. */
static struct dag *chain_dag(struct graph *g, int64_t N, int64_t reach) {
    int64_t edges = N * reach, pairs = edges * reach;
    struct dag *d = arena_alloc(&g->host, sizeof *d);
    int32_t *table = arena_alloc(&g->host, (size_t)(2 * edges + 2 * pairs + 1) * sizeof *table);
    if (!d || !table) {
        graph_fail(g, ST_FAIL, "the graph is too large: %" PRId64 " nodes", N);
        return NULL;
    }
    int32_t *tail = table, *head = tail + edges, *from = head + edges, *to = from + pairs;
    *d = (struct dag){.nodes = N, .tail = tail, .head = head, .from = from, .to = to};
    for (int64_t n = 0; n < N; n++)
        for (int64_t m = n + 1; m <= n + reach && m < N; m++) {
            int64_t before = reach * (reach + 1); /* edges that may end in n, and those that start there */
            for (int64_t e = d->edges > before ? d->edges - before : 0; e < d->edges; e++) {
                if (head[e] != n) continue;
                from[d->pairs] = (int32_t)e;
                to[d->pairs++] = (int32_t)d->edges;
            }
            tail[d->edges] = (int32_t)n;
            head[d->edges++] = (int32_t)m;
        }
    return d;
}

/* `length` nodes with edges to the next two, one, three or none. */
static bool dag_scan_build(struct graph *g, const struct op_sizes *s) {
    static const int64_t reach[] = {2, 1, 3, 0};
    if (s->variant >= (int64_t)(sizeof reach / sizeof reach[0])) return false;
    int64_t H = s->heads;
    struct dag *d = chain_dag(g, s->length, reach[s->variant]);
    if (!d) return true;
    struct op_sizes edges = *s, pairs = *s;
    edges.length = d->edges;
    pairs.length = d->pairs;
    struct tensor *q = input_tokens(g, s, "q", H * s->dk), *k = input_tokens(g, s, "k", H * s->dk);
    struct tensor *v = input_tokens(g, s, "v", H * s->dv), *direct = input_tokens(g, s, "direct", H);
    struct tensor *source = d->edges ? input_tokens(g, &edges, "source", H) : NULL;
    struct tensor *mark = d->edges ? input_tokens(g, &edges, "mark", H) : NULL;
    struct tensor *transition = d->pairs ? input_tokens(g, &pairs, "transition", H) : NULL;
    dag_scan(g, q, k, v, source, mark, transition, direct, d, H, 1 / sqrt((double)s->dk));
    return true;
}

static struct heads dag_scan_heads(const struct call *c) {
    const struct dag_scan_attr *a = c->attr;
    struct dag_sizes s = dag_sizes_of(c, a->H);
    return (struct heads){a->H, {s.dk, s.dk, s.dv, 1, 1, 1, 1}, {s.dv}};
}

const struct op op_dag_scan = {
    .name = "dag_scan",
    .maths =
        "C_e = sum T_{e'e} C_{e'} + S_e k_tail v_tail^T; y_n = c (sum over in-edges M_e C_e^T q_n + D_n (q_n.k_n) v_n)",
    .source = "pLSTM, Eq. 1 and 2, spec/plstm-myosotis.md A3",
    .needs_in = 127,
    .infer = dag_scan_infer,
    .cost = dag_scan_cost,
    .heads = dag_scan_heads,
    .sizes = "batch length heads dk dv",
    .build = dag_scan_build,
};

/* --- reference: one head of one graph after the other ------------------------------------------------------------- */

static size_t state_bytes(const struct call *c) {
    struct dag_sizes z = dag_sizes_of(c, ((const struct dag_scan_attr *)c->attr)->H);
    return (size_t)(z.dk * z.dv) * sizeof(real);
}

/* Sums over the edges of a node, one head: dq, dk (nodes,dk) and dv (nodes,dv). */
struct sums {
    double *dq, *dk, *dv;
};

/* All C, and for the gradient all E and the sums of all nodes. */
struct ref {
    real *C, *E;
    struct sums s;
};

static struct ref ref_of(const struct call *c, enum pass pass, struct scratch *s) {
    const struct dag_scan_attr *a = c->attr;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct ref r = {.C = scratch_bytes(s, (size_t)a->dag->edges * state_bytes(c))};
    if (pass == PASS_FORWARD) return r;
    r.E = scratch_bytes(s, (size_t)a->dag->edges * state_bytes(c));
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

static void ref_states(const struct call *c, int64_t b, int64_t h, real *C) {
    const struct dag_scan_attr *a = c->attr;
    const struct dag *d = a->dag;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t n = z.dk * z.dv;
    for (int64_t e = 0, p = 0, first = 0; e < d->edges; e++, first = p) {
        const real *k = head_in(c, 1, b * z.T + d->tail[e], h, z.dk), *v = head_in(c, 2, b * z.T + d->tail[e], h, z.dv);
        while (p < d->pairs && d->to[p] == e) p++;
        for (int64_t i = 0; i < n; i++) {
            double sum = gate_of(c, 4, b, e, h) * k[i / z.dv] * v[i % z.dv];
            for (int64_t l = first; l < p; l++) sum += gate_of(c, 6, b, l, h) * C[d->from[l] * n + i];
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
    const struct dag_scan_attr *a = c->attr;
    const struct dag *d = a->dag;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    real *C = ref_of(c, PASS_FORWARD, &scratch).C;
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t h = 0; h < z.H; h++) {
            ref_states(c, b, h, C);
            for (int64_t node = 0; node < z.T; node++) {
                int64_t row = b * z.T + node;
                const real *q = head_in(c, 0, row, h, z.dk), *v = head_in(c, 2, row, h, z.dv);
                double direct = gate_of(c, 3, b, node, h) * ref_dot(z.dk, q, head_in(c, 1, row, h, z.dk));
                for (int64_t j = 0; j < z.dv; j++) {
                    double sum = direct * v[j];
                    for (int64_t e = 0; e < d->edges; e++)
                        for (int64_t i = 0; i < z.dk && d->head[e] == node; i++)
                            sum += gate_of(c, 5, b, e, h) * q[i] * C[(e * z.dk + i) * z.dv + j];
                    tensor_real(c->out[0])[(row * z.H + h) * z.dv + j] = (real)(a->scale * sum);
                }
            }
        }
}

/* Edge e: E_e holds what its followers sent; adds its mark, then gives everything that depends on it. */
static void ref_edge_backward(const struct call *c, int64_t b, int64_t h, int64_t e, const real *C, real *E,
                              struct sums s) {
    const struct dag_scan_attr *a = c->attr;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t tail = a->dag->tail[e], head = a->dag->head[e], n = z.dk * z.dv;
    const real *q = head_in(c, 0, b * z.T + head, h, z.dk), *dy = call_dout(c, 0) + ((b * z.T + head) * z.H + h) * z.dv;
    const real *k = head_in(c, 1, b * z.T + tail, h, z.dk), *v = head_in(c, 2, b * z.T + tail, h, z.dv);
    double S = gate_of(c, 4, b, e, h), M = gate_of(c, 5, b, e, h), dS = 0, dM = 0;
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
    put_wanted(c, 4, head_din(c, 4, b * a->dag->edges + e, h, 1), 0, (real)dS);
    put_wanted(c, 5, head_din(c, 5, b * a->dag->edges + e, h, 1), 0, (real)dM);
}

/* The direct terms, and the sums to where they belong. */
static void ref_node_gradients(const struct call *c, int64_t b, int64_t h, int64_t node, struct sums s) {
    const struct dag_scan_attr *a = c->attr;
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
    const struct dag_scan_attr *a = c->attr;
    const struct dag *d = a->dag;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t n = z.dk * z.dv;
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref r = ref_of(c, PASS_BACKWARD, &scratch);
    struct sums s = r.s;
    real *C = r.C, *E = r.E;
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t h = 0; h < z.H; h++) {
            ref_states(c, b, h, C);
            memset(E, 0, (size_t)d->edges * state_bytes(c));
            memset(s.dq, 0, (size_t)(z.T * z.dk) * sizeof *s.dq);
            memset(s.dk, 0, (size_t)(z.T * z.dk) * sizeof *s.dk);
            memset(s.dv, 0, (size_t)(z.T * z.dv) * sizeof *s.dv);
            for (int64_t e = d->edges - 1, p = d->pairs - 1; e >= 0; e--) {
                ref_edge_backward(c, b, h, e, C, E + e * n, s);
                for (; p >= 0 && d->to[p] == e; p--) {
                    real *before = E + d->from[p] * n;
                    double T = gate_of(c, 6, b, p, h);
                    for (int64_t i = 0; i < n; i++) before[i] = (real)(before[i] + T * E[e * n + i]);
                    put_wanted(c, 6, head_din(c, 6, b * d->pairs + p, h, 1), 0,
                               (real)ref_dot(n, C + d->from[p] * n, E + e * n));
                }
            }
            for (int64_t node = 0; node < z.T; node++) ref_node_gradients(c, b, h, node, s);
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

/* dag_scan_cpu.c - pLSTM on graphs: a task is one head of one graph, columns in vector lanes. All states, and in the gradient
 * all their gradients, stay in scratch. */
#include <string.h>

#include "kernels/dag_state.h"

struct sizes {
    int64_t N, H, dk, dv, n; /* n = dk dv */
    real scale;
};

static struct sizes sizes_of(const struct call *c) {
    const struct dag_scan_attr *a = c->attr;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    return (struct sizes){z.T, z.H, z.dk, z.dv, z.dk * z.dv, (real)a->scale};
}

static const struct dag *dag_of(const struct call *c) {
    return ((const struct dag_scan_attr *)c->attr)->dag;
}

static real gate_of(const struct call *c, int input, int64_t b, int64_t row, int64_t h) {
    return *head_in(c, input, b * c->in[input]->dims[1] + row, h, 1);
}

static void compute_states(const struct call *c, struct sizes z, int64_t b, int64_t h, real *C) {
    const struct dag *d = dag_of(c);
    for (int64_t e = 0, p = 0; e < d->edges; e++) {
        const real *k = head_in(c, 1, b * z.N + d->tail[e], h, z.dk), *v = head_in(c, 2, b * z.N + d->tail[e], h, z.dv);
        real *state = C + e * z.n, S = gate_of(c, 4, b, e, h);
        memset(state, 0, (size_t)z.n * sizeof *state);
        for (; p < d->pairs && d->to[p] == e; p++) add_scaled(z.n, gate_of(c, 6, b, p, h), C + d->from[p] * z.n, state);
        for (int64_t i = 0; i < z.dk; i++) add_scaled(z.dv, S * k[i], v, state + i * z.dv);
    }
}

static void forward_head(const struct call *c, struct sizes z, int64_t b, int64_t h, real *C) {
    const struct dag *d = dag_of(c);
    real *out = tensor_real(c->out[0]) + (b * z.N * z.H + h) * z.dv;
    int64_t stride = z.H * z.dv;
    compute_states(c, z, b, h, C);
    for (int64_t node = 0; node < z.N; node++) {
        int64_t row = b * z.N + node;
        const real *v = head_in(c, 2, row, h, z.dv);
        real qk = dot_product(z.dk, head_in(c, 0, row, h, z.dk), head_in(c, 1, row, h, z.dk));
        real direct = gate_of(c, 3, b, node, h) * qk;
        for (int64_t j = 0; j < z.dv; j++) out[node * stride + j] = direct * v[j];
    }
    for (int64_t e = 0; e < d->edges; e++) {
        const real *q = head_in(c, 0, b * z.N + d->head[e], h, z.dk);
        real M = gate_of(c, 5, b, e, h);
        for (int64_t i = 0; i < z.dk; i++)
            add_scaled(z.dv, M * q[i], C + e * z.n + i * z.dv, out + d->head[e] * stride);
    }
    for (int64_t node = 0; node < z.N; node++)
        for (int64_t j = 0; j < z.dv; j++) out[node * stride + j] *= z.scale;
}

/* States, their gradients, sums over the edges of a node, and scale dy of one node. */
struct work {
    real *C, *E, *dq, *dk, *dv, *w;
};

static int64_t work_reals(struct sizes z, const struct dag *d) {
    return 2 * d->edges * z.n + z.N * (2 * z.dk + z.dv) + z.dv;
}

static struct work work_of(struct sizes z, const struct dag *d, real *s) {
    struct work w = {.C = s, .E = s + d->edges * z.n, .dq = s + 2 * d->edges * z.n};
    w.dk = w.dq + z.N * z.dk;
    w.dv = w.dk + z.N * z.dk;
    w.w = w.dv + z.N * z.dv;
    return w;
}

/* Adds edge e's mark to E, then its gates' gradients and its share of dq, dk, dv. */
static void backward_edge(const struct call *c, struct sizes z, int64_t b, int64_t h, int64_t e, struct work w) {
    const struct dag *d = dag_of(c);
    int64_t tail = d->tail[e], head = d->head[e];
    const real *q = head_in(c, 0, b * z.N + head, h, z.dk), *dy = call_dout(c, 0) + ((b * z.N + head) * z.H + h) * z.dv;
    const real *k = head_in(c, 1, b * z.N + tail, h, z.dk), *v = head_in(c, 2, b * z.N + tail, h, z.dv);
    real S = gate_of(c, 4, b, e, h), M = gate_of(c, 5, b, e, h), dS = 0, dM = 0;
    for (int64_t j = 0; j < z.dv; j++) w.w[j] = z.scale * dy[j];
    for (int64_t i = 0; i < z.dk; i++) {
        real *E = w.E + e * z.n + i * z.dv;
        add_scaled(z.dv, M * q[i], w.w, E);
        real Ev = dot_product(z.dv, E, v), Cw = dot_product(z.dv, w.C + e * z.n + i * z.dv, w.w);
        dS = real_fma(k[i], Ev, dS);
        dM = real_fma(q[i], Cw, dM);
        w.dk[tail * z.dk + i] = real_fma(S, Ev, w.dk[tail * z.dk + i]);
        w.dq[head * z.dk + i] = real_fma(M, Cw, w.dq[head * z.dk + i]);
        add_scaled(z.dv, S * k[i], E, w.dv + tail * z.dv);
    }
    put_wanted(c, 4, head_din(c, 4, b * d->edges + e, h, 1), 0, dS);
    put_wanted(c, 5, head_din(c, 5, b * d->edges + e, h, 1), 0, dM);
}

/* The direct terms, and the sums to where they belong. */
static void backward_node(const struct call *c, struct sizes z, int64_t b, int64_t h, int64_t node, struct work w) {
    int64_t row = b * z.N + node;
    const real *q = head_in(c, 0, row, h, z.dk), *k = head_in(c, 1, row, h, z.dk), *v = head_in(c, 2, row, h, z.dv);
    const real *dy = call_dout(c, 0) + (row * z.H + h) * z.dv;
    real D = gate_of(c, 3, b, node, h), qk = dot_product(z.dk, q, k), vw = z.scale * dot_product(z.dv, v, dy);
    add_scaled(z.dk, D * vw, k, w.dq + node * z.dk);
    add_scaled(z.dk, D * vw, q, w.dk + node * z.dk);
    add_scaled(z.dv, D * qk * z.scale, dy, w.dv + node * z.dv);
    put_row(head_din(c, 0, row, h, z.dk), call_accumulates(c, 0), z.dk, w.dq + node * z.dk);
    put_row(head_din(c, 1, row, h, z.dk), call_accumulates(c, 1), z.dk, w.dk + node * z.dk);
    put_row(head_din(c, 2, row, h, z.dv), call_accumulates(c, 2), z.dv, w.dv + node * z.dv);
    put_wanted(c, 3, head_din(c, 3, row, h, 1), 0, qk * vw);
}

static void backward_head(const struct call *c, struct sizes z, int64_t b, int64_t h, real *scratch) {
    const struct dag *d = dag_of(c);
    struct work w = work_of(z, d, scratch);
    compute_states(c, z, b, h, w.C);
    memset(w.E, 0, (size_t)(d->edges * z.n + z.N * (2 * z.dk + z.dv)) * sizeof(real)); /* E, dq, dk, dv */
    for (int64_t e = d->edges - 1, p = d->pairs - 1; e >= 0; e--) {
        backward_edge(c, z, b, h, e, w);
        for (; p >= 0 && d->to[p] == e; p--) {
            add_scaled(z.n, gate_of(c, 6, b, p, h), w.E + e * z.n, w.E + d->from[p] * z.n);
            real dT = dot_product(z.n, w.C + d->from[p] * z.n, w.E + e * z.n);
            put_wanted(c, 6, head_din(c, 6, b * d->pairs + p, h, 1), 0, dT);
        }
    }
    for (int64_t node = 0; node < z.N; node++) backward_node(c, z, b, h, node, w);
}

static int64_t group_reals(const struct call *c, enum pass pass) {
    struct sizes z = sizes_of(c);
    int64_t reals = pass == PASS_FORWARD ? dag_of(c)->edges * z.n : work_reals(z, dag_of(c));
    return (reals + 15) / 16 * 16;
}

static size_t dag_scan_cpu_workspace(const struct call *c, enum pass pass) {
    struct sizes z = sizes_of(c);
    return (size_t)(dag_groups(c->in[0]->dims[0] * z.H) * group_reals(c, pass)) * sizeof(real);
}

static void run(const struct call *c, enum pass pass) {
    struct sizes z = sizes_of(c);
    int64_t tasks = c->in[0]->dims[0] * z.H, groups = dag_groups(tasks), reals = group_reals(c, pass);
    real *scratch = c->scratch[pass];
#pragma omp parallel for schedule(static) if (tasks * z.N * z.n > PARALLEL_MIN)
    for (int64_t i = 0; i < groups; i++) {
        struct range part = part_at(tasks, groups, i);
        for (int64_t task = part.begin; task < part.end; task++) {
            if (pass == PASS_FORWARD) forward_head(c, z, task / z.H, task % z.H, scratch + i * reals);
            if (pass == PASS_BACKWARD) backward_head(c, z, task / z.H, task % z.H, scratch + i * reals);
        }
    }
}

static void dag_scan_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void dag_scan_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: as scan_plstm_cpu, along the longest path of the graph. */
const struct kernel kernel_dag_scan_cpu = {
    .name = "dag_scan_cpu",
    .op = &op_dag_scan,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .workspace = dag_scan_cpu_workspace,
    .forward = dag_scan_cpu_forward,
    .backward = dag_scan_cpu_backward,
};

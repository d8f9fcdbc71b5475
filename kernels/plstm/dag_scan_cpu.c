/* dag_scan_cpu.c - pLSTM on graphs (dag_scan.c) on the CPU. A thread computes one head of one graph at a time. A state
 * is divided into tiles of LANES x LANES numbers (dag_state.h). The code takes one tile after the other and computes it
 * for all edges; scratch memory has this tile's states and, in backward, their gradients. In forward the rows of a tile
 * belong to k and its lanes to v, so that y is summed in registers. In backward the rows belong to v and the lanes to
 * k, so that dq and dk are summed in registers. While the terms of other edges are added to an edge's state, or to its
 * gradient, this state or gradient stays in registers. */
#include "kernels/lib/simd.h"
#include "kernels/plstm/dag_links.h"

struct sizes {
    int64_t N, H, dk, dv, pk, pv; /* pk, pv: dk and dv, padded to whole tiles */
    real scale;
};

static struct sizes sizes_of(const struct call *c) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    return (struct sizes){z.T, z.H, z.dk, z.dv, whole_lanes(z.dk), whole_lanes(z.dv), (real)a->scale};
}

static real gate_of(const struct call *c, int input, int64_t b, int64_t row, int64_t h) {
    return *head_in(c, input, b * c->in[input]->dims[1] + row, h, 1);
}

/* One head, with rows that are padded with zeros, and the current tile. */
struct head {
    struct sizes z;
    struct dag d;
    int64_t i, e;           /* the tile's first index along dk, and along dv */
    real *q, *k, *v, *w;    /* [N][pk] or [N][pv]; w = scale dy */
    real *y, *dq, *dk, *dv; /* sums over edges and tiles */
    real *S, *M, *T;        /* [edges], [edges], [pairs] */
    real *dS, *dM, *dT;     /* the gradients of S, M, T: each has LANES partial sums */
    real *C, *E;            /* [edges] tiles */
    int32_t *first, *next;  /* backward: first pair (e,f) of edge e [edges]; the pair after a pair [pairs]; -1: none */
};

/* The arrays of one head. */
static struct head head_of(const struct call *c, enum pass pass, struct scratch *s) {
    struct links_size room = dag_scan_attr(c)->size;
    struct sizes z = sizes_of(c);
    struct head g = {.z = z, .d = dag_of(c, s)};
    g.q = scratch_reals(s, z.N * z.pk);
    g.k = scratch_reals(s, z.N * z.pk);
    g.v = scratch_reals(s, z.N * z.pv);
    g.S = scratch_reals(s, room.edges);
    g.M = scratch_reals(s, room.edges);
    g.T = scratch_reals(s, room.pairs);
    g.C = scratch_reals(s, room.edges * TILE);
    if (pass == PASS_FORWARD) {
        g.y = scratch_reals(s, z.N * z.pv);
        return g;
    }
    g.w = scratch_reals(s, z.N * z.pv);
    g.E = scratch_reals(s, room.edges * TILE);
    g.dS = scratch_reals(s, room.edges * LANES);
    g.dM = scratch_reals(s, room.edges * LANES);
    g.dT = scratch_reals(s, room.pairs * LANES);
    g.dq = scratch_reals(s, z.N * z.pk);
    g.dk = scratch_reals(s, z.N * z.pk);
    g.dv = scratch_reals(s, z.N * z.pv);
    g.first = scratch_i32(s, room.edges);
    g.next = scratch_i32(s, room.pairs);
    return g;
}

static struct head load_head(const struct call *c, enum pass pass, int64_t b, int64_t h, struct scratch *s) {
    struct head g = head_of(c, pass, s);
    struct sizes z = g.z;
    const struct dag *d = &g.d;
    dag_read(c, b, &g.d);
    for (int64_t n = 0; n < z.N; n++) {
        int64_t row = b * z.N + n;
        padded_row(z.dk, z.pk, 1, head_in(c, 0, row, h, z.dk), g.q + n * z.pk);
        padded_row(z.dk, z.pk, 1, head_in(c, 1, row, h, z.dk), g.k + n * z.pk);
        padded_row(z.dv, z.pv, 1, head_in(c, 2, row, h, z.dv), g.v + n * z.pv);
        if (pass == PASS_BACKWARD)
            padded_row(z.dv, z.pv, z.scale, call_dout(c, 0) + (row * z.H + h) * z.dv, g.w + n * z.pv);
    }
    for (int64_t e = 0; e < d->edges; e++) {
        g.S[e] = gate_of(c, 4, b, d->edge_row[e], h);
        g.M[e] = gate_of(c, 5, b, d->edge_row[e], h);
    }
    for (int64_t p = 0; p < d->pairs; p++) g.T[p] = gate_of(c, 6, b, d->pair_row[p], h);
    return g;
}

/* Returns the first pair from p on that does not lead to edge e. */
static int64_t pairs_end(const struct dag *d, int64_t e, int64_t p) {
    while (p < d->pairs && d->to[p] == e) p++;
    return p;
}

/* Computes the tile of an edge's state: the source term x c, plus the terms T C of the pairs from `first` to `end`. */
FORCE_INLINE void edge_state(const struct head *g, int64_t first, int64_t end, const real *x, lanes c, lanes *state) {
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++) state[j] = x[j] * c;
    for (int64_t p = first; p < end; p++) {
        const real *from = g->C + g->d.from[p] * TILE;
        lanes T = all_lanes(g->T[p]);
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++) state[j] = lanes_fma(T, lanes_at(from + j * LANES), state[j]);
    }
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void forward_tile(const struct head *g) {
    const struct dag *d = &g->d;
    for (int64_t e = 0, p = 0; e < d->edges; e++) {
        int64_t end = pairs_end(d, e, p);
        const real *q = g->q + d->head[e] * g->z.pk + g->i, *k = g->k + d->tail[e] * g->z.pk + g->i;
        real *y = g->y + d->head[e] * g->z.pv + g->e;
        lanes source = g->S[e] * lanes_at(g->v + d->tail[e] * g->z.pv + g->e), read = {0}, state[LANES];
        edge_state(g, p, end, k, source, state);
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++) {
            lanes_to(g->C + e * TILE + j * LANES, state[j]);
            read = lanes_fma(all_lanes(q[j]), state[j], read);
        }
        lanes_to(y, lanes_fma(all_lanes(g->M[e]), read, lanes_at(y)));
        p = end;
    }
}

static void forward_head(const struct call *c, int64_t b, int64_t h, struct scratch own) {
    struct head g = load_head(c, PASS_FORWARD, b, h, &own);
    struct sizes z = g.z;
    memset(g.y, 0, (size_t)(z.N * z.pv) * sizeof *g.y);
    for (g.e = 0; g.e < z.pv; g.e += LANES)
        for (g.i = 0; g.i < z.pk; g.i += LANES) forward_tile(&g);
    for (int64_t n = 0; n < z.N; n++) {
        const real *v = g.v + n * z.pv, *y = g.y + n * z.pv;
        real *out = tensor_real(c->out[0]) + ((b * z.N + n) * z.H + h) * z.dv;
        real direct = gate_of(c, 3, b, n, h) * dot_product(z.pk, g.q + n * z.pk, g.k + n * z.pk);
        for (int64_t j = 0; j < z.dv; j++) out[j] = z.scale * real_fma(direct, v[j], y[j]);
    }
}

/* --- backward: rows of v and w, lanes of q and k ------------------------------------------------------------------ */

static void states_tile(const struct head *g) {
    const struct dag *d = &g->d;
    for (int64_t e = 0, p = 0; e < d->edges; e++) {
        int64_t end = pairs_end(d, e, p);
        const real *v = g->v + d->tail[e] * g->z.pv + g->e;
        lanes source = g->S[e] * lanes_at(g->k + d->tail[e] * g->z.pk + g->i), state[LANES];
        edge_state(g, p, end, v, source, state);
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++) lanes_to(g->C + e * TILE + j * LANES, state[j]);
        p = end;
    }
}

/* Computes E of edge e: the term w mark, plus the terms T E of the pairs (e,f). Also computes dT of these pairs. */
FORCE_INLINE void edge_gradient(const struct head *g, int64_t e, const real *w, lanes mark, lanes *E) {
    const real *C = g->C + e * TILE;
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++) E[j] = w[j] * mark;
    for (int64_t p = g->first[e]; p >= 0; p = g->next[p]) {
        const real *next = g->E + g->d.to[p] * TILE;
        lanes T = all_lanes(g->T[p]), even = {0}, odd = {0};
#pragma GCC unroll 8
        for (int j = 0; j < LANES; j += 2) {
            lanes first = lanes_at(next + j * LANES), second = lanes_at(next + (j + 1) * LANES);
            E[j] = lanes_fma(T, first, E[j]);
            E[j + 1] = lanes_fma(T, second, E[j + 1]);
            even = lanes_fma(lanes_at(C + j * LANES), first, even);
            odd = lanes_fma(lanes_at(C + (j + 1) * LANES), second, odd);
        }
        add_lanes(g->dT + p * LANES, even + odd);
    }
}

/* Computes E of edge e, its gates' gradients, and its parts of dq, dk and dv. */
static void backward_edge(const struct head *g, int64_t e) {
    int64_t tail = g->d.tail[e], head = g->d.head[e];
    const real *v = g->v + tail * g->z.pv + g->e, *w = g->w + head * g->z.pv + g->e, *C = g->C + e * TILE;
    lanes k = lanes_at(g->k + tail * g->z.pk + g->i), q = lanes_at(g->q + head * g->z.pk + g->i);
    lanes source = g->S[e] * k, Ev = {0}, Cw = {0}, E[LANES];
    edge_gradient(g, e, w, g->M[e] * q, E);
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++) {
        lanes_to(g->E + e * TILE + j * LANES, E[j]);
        Ev = lanes_fma(E[j], all_lanes(v[j]), Ev);
        Cw = lanes_fma(lanes_at(C + j * LANES), all_lanes(w[j]), Cw);
        E[j] = source * E[j];
    }
    add_lanes(g->dv + tail * g->z.pv + g->e, sums_of_rows(E));
    add_lanes(g->dk + tail * g->z.pk + g->i, g->S[e] * Ev);
    add_lanes(g->dq + head * g->z.pk + g->i, g->M[e] * Cw);
    add_lanes(g->dS + e * LANES, k * Ev);
    add_lanes(g->dM + e * LANES, q * Cw);
}

static void backward_tile(const struct head *g) {
    states_tile(g);
    for (int64_t e = g->d.edges - 1; e >= 0; e--) backward_edge(g, e);
}

/* Fills `first` and `next`, which list the pairs (e,f) of each edge e in order. */
static void list_pairs(const struct head *g) {
    for (int64_t e = 0; e < g->d.edges; e++) g->first[e] = -1;
    for (int64_t p = g->d.pairs - 1; p >= 0; p--) {
        int32_t *first = g->first + g->d.from[p];
        g->next[p] = *first;
        *first = (int32_t)p;
    }
}

/* Adds the direct terms of a node and writes its gradients. */
static void backward_node(const struct call *c, const struct head *g, int64_t b, int64_t h, int64_t node) {
    struct sizes z = g->z;
    int64_t row = b * z.N + node;
    const real *q = g->q + node * z.pk, *k = g->k + node * z.pk, *v = g->v + node * z.pv, *w = g->w + node * z.pv;
    real D = gate_of(c, 3, b, node, h), qk = dot_product(z.pk, q, k), vw = dot_product(z.pv, v, w);
    add_scaled(z.pk, D * vw, k, g->dq + node * z.pk);
    add_scaled(z.pk, D * vw, q, g->dk + node * z.pk);
    add_scaled(z.pv, D * qk, w, g->dv + node * z.pv);
    put_row(head_din(c, 0, row, h, z.dk), call_accumulates(c, 0), z.dk, g->dq + node * z.pk);
    put_row(head_din(c, 1, row, h, z.dk), call_accumulates(c, 1), z.dk, g->dk + node * z.pk);
    put_row(head_din(c, 2, row, h, z.dv), call_accumulates(c, 2), z.dv, g->dv + node * z.pv);
    put_wanted(c, 3, head_din(c, 3, row, h, 1), 0, qk * vw);
}

static void clear(int64_t n, real *x) {
    memset(x, 0, (size_t)n * sizeof *x);
}

static void backward_head(const struct call *c, int64_t b, int64_t h, struct scratch own) {
    struct head g = load_head(c, PASS_BACKWARD, b, h, &own);
    struct links_size room = dag_scan_attr(c)->size;
    const struct dag *d = &g.d;
    struct sizes z = g.z;
    clear(d->edges * LANES, g.dS);
    clear(d->edges * LANES, g.dM);
    clear(d->pairs * LANES, g.dT);
    clear(z.N * z.pk, g.dq);
    clear(z.N * z.pk, g.dk);
    clear(z.N * z.pv, g.dv);
    list_pairs(&g);
    for (g.e = 0; g.e < z.pv; g.e += LANES)
        for (g.i = 0; g.i < z.pk; g.i += LANES) backward_tile(&g);
    dag_clear_gates(c, b, h);
    for (int64_t e = 0; e < d->edges; e++) {
        put_wanted(c, 4, head_din(c, 4, b * room.edges + d->edge_row[e], h, 1), 0, sum_of(lanes_at(g.dS + e * LANES)));
        put_wanted(c, 5, head_din(c, 5, b * room.edges + d->edge_row[e], h, 1), 0, sum_of(lanes_at(g.dM + e * LANES)));
    }
    for (int64_t p = 0; p < d->pairs; p++)
        put_wanted(c, 6, head_din(c, 6, b * room.pairs + d->pair_row[p], h, 1), 0, sum_of(lanes_at(g.dT + p * LANES)));
    for (int64_t node = 0; node < z.N; node++) backward_node(c, &g, b, h, node);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static size_t dag_scan_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int64_t i = 0; i < dag_groups(c, sizes_of(c).H); i++) head_of(c, pass, &s);
    return s.used;
}

static void dag_scan_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    dag_each_pass(c, PASS_FORWARD, sizes_of(c).H, forward_head);
}

static void dag_scan_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    dag_each_pass(c, PASS_BACKWARD, sizes_of(c).H, backward_head);
}

/* Tolerance: each edge on a path rounds the state, and gradients are sums of dk dv products that cancel. */
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

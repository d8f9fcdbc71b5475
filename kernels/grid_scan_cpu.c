/* grid_scan_cpu.c - pLSTM on a grid: a task is one head of one grid, all four directions, columns in vector lanes.
 *
 * Rows of the frame one after the other: one state to the right for each column, one downwards; a node turns (l, u) into
 * (Cr, Cd) in place. Backward keeps the states that enter each node and goes back likewise with (Er, Ed). */
#include <string.h>

#include "kernels/grid.h"

struct sizes {
    int64_t N, H, dk, dv, n; /* n = dk dv */
    real scale;
};

struct node {
    const real *q, *k, *v;
    real gate[GRID_PLANES];
    int64_t row;
};

static struct sizes sizes_of(const struct call *c) {
    const struct grid_scan_attr *a = c->attr;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    return (struct sizes){z.T, z.H, z.dk, z.dv, z.dk * z.dv, (real)a->scale};
}

static struct node node_at(const struct call *c, struct sizes z, int64_t row, int direction, int64_t h) {
    struct node n = {head_in(c, 0, row, h, z.dk), head_in(c, 1, row, h, z.dk), head_in(c, 2, row, h, z.dv), {0}, row};
    const real *gates = tensor_real(c->in[3]) + grid_gate_at(z.H, row, direction, h);
    for (int p = 0; p < GRID_PLANES; p++) n.gate[p] = gates[p * 4 * z.H];
    return n;
}

/* Row i of (l, u) -> (Cr, Cd); in place or to other places. */
STATE_INLINE void update_row(int64_t dv, const struct node *n, real ki, const real *l, const real *u, real *r,
                             real *d) {
    real rl = n->gate[GRID_RL], ru = n->gate[GRID_RU], dl = n->gate[GRID_DL], du = n->gate[GRID_DU];
    real sr = n->gate[GRID_SR] * ki, sd = n->gate[GRID_SD] * ki;
#pragma omp simd
    for (int64_t e = 0; e < dv; e++) {
        real left = l[e], top = u[e], v = n->v[e];
        r[e] = real_fma(rl, left, real_fma(ru, top, sr * v));
        d[e] = real_fma(dl, left, real_fma(du, top, sd * v));
    }
}

static void forward_node(struct sizes z, const struct node *n, real *l, real *u, real *y) {
    for (int64_t i = 0; i < z.dk; i++) {
        real *left = l + i * z.dv, *top = u + i * z.dv;
        add_scaled(z.dv, n->q[i] * n->gate[GRID_ML], left, y);
        add_scaled(z.dv, n->q[i] * n->gate[GRID_MU], top, y);
        update_row(z.dv, n, n->k[i], left, top, left, top);
    }
}

/* scratch: Y states to the right, one downwards. */
static void forward_head(const struct call *c, struct sizes z, int64_t b, int64_t h, real *scratch) {
    const struct grid_scan_attr *a = c->attr;
    real *out = tensor_real(c->out[0]), *down = scratch + a->Y * z.n;
    for (int64_t row = b * z.N; row < (b + 1) * z.N; row++) {
        struct node n = node_at(c, z, row, 0, h);
        real *y = out + (row * z.H + h) * z.dv, direct = *head_in(c, 4, row, h, 1) * dot_product(z.dk, n.q, n.k);
        for (int64_t e = 0; e < z.dv; e++) y[e] = direct * n.v[e];
    }
    for (int direction = 0; direction < 4; direction++) {
        memset(scratch, 0, (size_t)(a->Y * z.n) * sizeof *scratch);
        for (int64_t x = 0; x < a->X; x++) {
            memset(down, 0, (size_t)z.n * sizeof *down);
            for (int64_t y = 0; y < a->Y; y++) {
                struct node n = node_at(c, z, b * z.N + grid_node(a, direction, x, y), direction, h);
                forward_node(z, &n, scratch + y * z.n, down, out + (n.row * z.H + h) * z.dv);
            }
        }
    }
    for (int64_t row = b * z.N; row < (b + 1) * z.N; row++)
        for (int64_t e = 0; e < z.dv; e++) out[(row * z.H + h) * z.dv + e] *= z.scale;
}

/* What the gradient of one head needs: states entering each node, gradients on their way, sums over the directions. */
struct work {
    real *l, *u, *er, *ed, *dq, *dk, *dv, *w;
};

static int64_t work_reals(struct sizes z, int64_t Y) {
    return (2 * z.N + Y + 1) * z.n + z.N * (2 * z.dk + z.dv) + z.dv;
}

static struct work work_of(struct sizes z, int64_t Y, real *s) {
    struct work w = {.l = s, .u = s + z.N * z.n, .er = s + 2 * z.N * z.n};
    w.ed = w.er + Y * z.n;
    w.dq = w.ed + z.n;
    w.dk = w.dq + z.N * z.dk;
    w.dv = w.dk + z.N * z.dk;
    w.w = w.dv + z.N * z.dv;
    return w;
}

static void enter_states(const struct call *c, struct sizes z, int64_t b, int64_t h, int direction, struct work w) {
    const struct grid_scan_attr *a = c->attr;
    memset(w.l, 0, (size_t)(a->Y * z.n) * sizeof(real));
    for (int64_t x = 0; x < a->X; x++) {
        memset(w.u + x * a->Y * z.n, 0, (size_t)z.n * sizeof(real));
        for (int64_t y = 0; y < a->Y; y++) {
            int64_t at = x * a->Y + y;
            struct node n = node_at(c, z, b * z.N + grid_node(a, direction, x, y), direction, h);
            /* what leaves the grid goes to er and ed, which are cleared afterwards */
            real *r = x + 1 < a->X ? w.l + (at + a->Y) * z.n : w.er, *d = y + 1 < a->Y ? w.u + (at + 1) * z.n : w.ed;
            for (int64_t i = 0; i < z.dk; i++)
                update_row(z.dv, &n, n.k[i], w.l + at * z.n + i * z.dv, w.u + at * z.n + i * z.dv, r + i * z.dv,
                           d + i * z.dv);
        }
    }
}

/* Row i of (er, ed) -> (left, top) in place; dv += F^T k. */
STATE_INLINE void carry_row(struct sizes z, const struct node *n, int64_t i, const real *w, real *er, real *ed,
                            real *dv) {
    real rl = n->gate[GRID_RL], ru = n->gate[GRID_RU], dl = n->gate[GRID_DL], du = n->gate[GRID_DU];
    real ml = n->gate[GRID_ML] * n->q[i], mu = n->gate[GRID_MU] * n->q[i];
    real sr = n->gate[GRID_SR] * n->k[i], sd = n->gate[GRID_SD] * n->k[i];
#pragma omp simd
    for (int64_t e = 0; e < z.dv; e++) {
        real r = er[e], d = ed[e];
        dv[e] = real_fma(sr, r, real_fma(sd, d, dv[e]));
        er[e] = real_fma(rl, r, real_fma(dl, d, ml * w[e]));
        ed[e] = real_fma(ru, r, real_fma(du, d, mu * w[e]));
    }
}

/* place: of the token in its grid, at: of the node in the frame. */
static void backward_node(struct sizes z, const struct node *n, int64_t place, int64_t at, real *er, real *ed,
                          struct work w, real *gates) {
    const real *l = w.l + at * z.n, *u = w.u + at * z.n;
    real *dq = w.dq + place * z.dk, *dk = w.dk + place * z.dk, *dv = w.dv + place * z.dv;
    gates[GRID_RL] = dot_product(z.n, er, l);
    gates[GRID_RU] = dot_product(z.n, er, u);
    gates[GRID_DL] = dot_product(z.n, ed, l);
    gates[GRID_DU] = dot_product(z.n, ed, u);
    gates[GRID_SR] = gates[GRID_SD] = gates[GRID_ML] = gates[GRID_MU] = 0;
    for (int64_t i = 0; i < z.dk; i++) {
        int64_t o = i * z.dv;
        real right = dot_product(z.dv, er + o, n->v), down = dot_product(z.dv, ed + o, n->v);
        real left = dot_product(z.dv, l + o, w.w), top = dot_product(z.dv, u + o, w.w);
        gates[GRID_SR] = real_fma(n->k[i], right, gates[GRID_SR]);
        gates[GRID_SD] = real_fma(n->k[i], down, gates[GRID_SD]);
        gates[GRID_ML] = real_fma(n->q[i], left, gates[GRID_ML]);
        gates[GRID_MU] = real_fma(n->q[i], top, gates[GRID_MU]);
        dk[i] = real_fma(n->gate[GRID_SR], right, real_fma(n->gate[GRID_SD], down, dk[i]));
        dq[i] = real_fma(n->gate[GRID_ML], left, real_fma(n->gate[GRID_MU], top, dq[i]));
        carry_row(z, n, i, w.w, er + o, ed + o, dv);
    }
}

static void backward_direction(const struct call *c, struct sizes z, int64_t b, int64_t h, int direction,
                               struct work w) {
    const struct grid_scan_attr *a = c->attr;
    enter_states(c, z, b, h, direction, w);
    memset(w.er, 0, (size_t)(a->Y * z.n) * sizeof(real));
    for (int64_t x = a->X - 1; x >= 0; x--) {
        memset(w.ed, 0, (size_t)z.n * sizeof(real));
        for (int64_t y = a->Y - 1; y >= 0; y--) {
            int64_t place = grid_node(a, direction, x, y);
            struct node n = node_at(c, z, b * z.N + place, direction, h);
            const real *dy = call_dout(c, 0) + (n.row * z.H + h) * z.dv;
            real gates[GRID_PLANES];
            for (int64_t e = 0; e < z.dv; e++) w.w[e] = z.scale * dy[e];
            backward_node(z, &n, place, x * a->Y + y, w.er + y * z.n, w.ed, w, gates);
            real *out = c->din[3] ? c->din[3] + grid_gate_at(z.H, n.row, direction, h) : NULL;
            for (int p = 0; p < GRID_PLANES && out; p++) put(out + p * 4 * z.H, call_accumulates(c, 3), gates[p]);
        }
    }
}

static void backward_head(const struct call *c, struct sizes z, int64_t b, int64_t h, real *scratch) {
    struct work w = work_of(z, ((const struct grid_scan_attr *)c->attr)->Y, scratch);
    memset(w.dq, 0, (size_t)(z.N * (2 * z.dk + z.dv)) * sizeof(real)); /* dq, dk and dv */
    for (int direction = 0; direction < 4; direction++) backward_direction(c, z, b, h, direction, w);
    for (int64_t i = 0; i < z.N; i++) {
        int64_t row = b * z.N + i;
        struct node n = node_at(c, z, row, 0, h);
        const real *dy = call_dout(c, 0) + (row * z.H + h) * z.dv;
        real D = *head_in(c, 4, row, h, 1), qk = dot_product(z.dk, n.q, n.k), vw = z.scale * dot_product(z.dv, n.v, dy);
        real direct = qk * vw;
        add_scaled(z.dk, D * vw, n.k, w.dq + i * z.dk);
        add_scaled(z.dk, D * vw, n.q, w.dk + i * z.dk);
        add_scaled(z.dv, D * qk * z.scale, dy, w.dv + i * z.dv);
        put_row(head_din(c, 0, row, h, z.dk), call_accumulates(c, 0), z.dk, w.dq + i * z.dk);
        put_row(head_din(c, 1, row, h, z.dk), call_accumulates(c, 1), z.dk, w.dk + i * z.dk);
        put_row(head_din(c, 2, row, h, z.dv), call_accumulates(c, 2), z.dv, w.dv + i * z.dv);
        put_row(head_din(c, 4, row, h, 1), call_accumulates(c, 4), 1, &direct);
    }
}

static int64_t group_reals(const struct call *c, enum pass pass) {
    struct sizes z = sizes_of(c);
    int64_t Y = ((const struct grid_scan_attr *)c->attr)->Y;
    int64_t reals = pass == PASS_FORWARD ? (Y + 1) * z.n : work_reals(z, Y);
    return (reals + 15) / 16 * 16;
}

static size_t grid_scan_cpu_workspace(const struct call *c, enum pass pass) {
    int64_t tasks = c->in[0]->dims[0] * ((const struct grid_scan_attr *)c->attr)->H;
    return (size_t)(dag_groups(tasks) * group_reals(c, pass)) * sizeof(real);
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

static void grid_scan_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void grid_scan_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: as scan_plstm_cpu; a path of X + Y steps rounds at each, and gradients are sums of dk dv products that cancel. */
const struct kernel kernel_grid_scan_cpu = {
    .name = "grid_scan_cpu",
    .op = &op_grid_scan,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .workspace = grid_scan_cpu_workspace,
    .forward = grid_scan_cpu_forward,
    .backward = grid_scan_cpu_backward,
};

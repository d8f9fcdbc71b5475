/* grid_scan.c - pLSTM on a grid of X x Y nodes in four directions: the op and its reference.
 *
 * In the frame of a direction (bit 0 flips the first axis, bit 1 the second), l = Cr[x-1][y], u = Cd[x][y-1], zero
 * outside:
 *   y_n += scale (Ml l + Mu u)^T q          reads the states before node n enters them
 *   Cr[x][y] = rl l + ru u + Sr k v^T       Cd[x][y] = dl l + du u + Sd k v^T
 * and once for all directions y_n += scale D (q.k) v. pLSTM, Eq. 1 and 2 on a grid, section 3.3.1. Adjoint
 * with er, ed the gradients of Cr, Cd at the node and w = scale dy:
 *   drl = <er,l>  dru = <er,u>  ddl = <ed,l>  ddu = <ed,u>
 *   dSr = k^T er v  dSd = k^T ed v  dMl = q^T l w  dMu = q^T u w
 *   F = Sr er + Sd ed:  dk += F v   dv += F^T k   dq += (Ml l + Mu u) w   (and the direct terms of scan_plstm, once)
 *   Er[x-1][y] = rl er + dl ed + Ml q w^T   Ed[x][y-1] = ru er + du ed + Mu q w^T */
#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/plstm/grid/grid.h"

struct tensor *grid_scan(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *gates,
                         struct tensor *direct, int64_t X, int64_t Y, int64_t H, double scale_of_qk) {
    struct grid_scan_attr attr = {.X = X, .Y = Y, .H = H, .scale = scale_of_qk};
    return call1(g, &op_grid_scan, &attr, sizeof attr, (struct tensor *[]){q, k, v, gates, direct}, 5);
}

static void grid_scan_infer(struct graph *g, struct call *c) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    if (!infer_dag_state(g, c, a->H)) return;
    int64_t N = c->in[0]->dims[1];
    if (a->X < 1 || a->Y < 1 || a->X * a->Y != N)
        graph_fail(g, ST_USAGE, "grid_scan: height=%" PRId64 " times width=%" PRId64 " is not the length %" PRId64,
                   a->X, a->Y, N);
    else if (infer_gate(g, c, 3, N, GRID_PLANES * 4 * a->H, "the gates") &&
             infer_gate(g, c, 4, N, a->H, "the direct gate"))
        graph_output(g, c, DT_REAL, 3, c->in[2]->dims);
}

/* FLOPs in units of dk dv, per node, head and direction with four free transitions. Forward 14; backward 10 for the
 * states again, 8 for the gradients of T, 4 each for F v and F^T k with the sources, 4 for (.) w, 10 for Er and Ed. */
static struct cost grid_scan_cost(const struct call *c, enum pass pass) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    double work = (double)(z.B * z.T * z.H) * (double)(z.dk * z.dv) * 4, bytes = 0;
    for (int i = 0; i < 5; i++) bytes += (double)tensor_bytes(c->in[i]);
    if (pass == PASS_FORWARD) return (struct cost){14 * work, bytes + (double)tensor_bytes(c->out[0])};
    return (struct cost){40 * work, 2 * bytes + (double)tensor_bytes(c->out[0])};
}

/* `length` nodes. Variants: as square as the divisors of `length` allow; one column; one row; the first with its sides
 * exchanged. */
static bool grid_scan_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 3) return false;
    int64_t H = s->heads, N = s->length, X = s->variant == 1 ? N : s->variant == 2 ? 1 : (int64_t)sqrt((double)N);
    while (N % X != 0) X--;
    if (s->variant == 3) X = N / X;
    struct tensor *q = input_tokens(g, s, "q", H * s->dk), *k = input_tokens(g, s, "k", H * s->dk);
    struct tensor *v = input_tokens(g, s, "v", H * s->dv), *gates = input_tokens(g, s, "gates", GRID_PLANES * 4 * H);
    grid_scan(g, q, k, v, gates, input_tokens(g, s, "direct", H), X, N / X, H, 1 / sqrt((double)s->dk));
    return true;
}

static struct heads grid_scan_heads(const struct call *c) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct dag_sizes s = dag_sizes_of(c, a->H);
    return (struct heads){a->H, {s.dk, s.dk, s.dv, 1, 1}, {s.dv}};
}

const struct op op_grid_scan = {
    .name = "grid_scan",
    .maths = "y_n = c (sum over 4 directions (Ml l + Mu u)^T q + D (q.k) v); Cr = rl l + ru u + Sr k v^T; Cd = dl l + "
             "du u + Sd k v^T",
    .source = "pLSTM (workshop version), Eq. 1 and 2 on a grid, section 3.3.1",
    .needs_in = 31,
    .infer = grid_scan_infer,
    .cost = grid_scan_cost,
    .heads = grid_scan_heads,
    .sizes = "batch length heads dk dv",
    .build = grid_scan_build,
};

/* --- reference: one head, one direction after the other, row-major in the frame ----------------------------------- */

/* All states of one head and direction, node after node in the frame; `zero` is the state outside the grid. The
 * gradients have one more place at the end, for the gradients that leave the grid and are not used. */
struct ref {
    real *Cr, *Cd, *Er, *Ed, *zero;
    double *y, *dq, *dk, *dv; /* sums over the directions */
    int64_t n;                /* reals of a state */
};

static struct ref ref_of(const struct call *c, struct scratch *s) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct ref r = {.n = z.dk * z.dv};
    r.y = scratch_doubles(s, z.T * z.dv);
    r.dv = scratch_doubles(s, z.T * z.dv);
    r.dq = scratch_doubles(s, z.T * z.dk);
    r.dk = scratch_doubles(s, z.T * z.dk);
    r.Cr = scratch_reals(s, z.T * r.n);
    r.Cd = scratch_reals(s, z.T * r.n);
    r.Er = scratch_reals(s, (z.T + 1) * r.n);
    r.Ed = scratch_reals(s, (z.T + 1) * r.n);
    r.zero = scratch_reals(s, r.n);
    return r;
}

static size_t grid_scan_ref_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    ref_of(c, &s);
    return s.used;
}

/* One node of one direction and head. */
struct node {
    const real *q, *k, *v, *l, *u;
    double gate[GRID_PLANES];
    int64_t row, at;   /* token; place in the frame */
    int64_t left, top; /* places of its neighbours; N: none */
};

static struct node node_at(const struct call *c, const struct ref *r, int64_t b, int64_t h, int direction, int64_t at) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t x = at / a->Y, y = at % a->Y;
    struct node n = {.row = b * z.T + grid_node(a, direction, x, y), .at = at};
    n.left = x > 0 ? at - a->Y : z.T;
    n.top = y > 0 ? at - 1 : z.T;
    n.q = head_in(c, 0, n.row, h, z.dk);
    n.k = head_in(c, 1, n.row, h, z.dk);
    n.v = head_in(c, 2, n.row, h, z.dv);
    n.l = x > 0 ? r->Cr + n.left * r->n : r->zero;
    n.u = y > 0 ? r->Cd + n.top * r->n : r->zero;
    const real *gates = tensor_real(c->in[3]) + grid_gate_at(a->H, n.row, direction, h);
    for (int p = 0; p < GRID_PLANES; p++) n.gate[p] = gates[p * 4 * a->H];
    return n;
}

static void ref_states(const struct call *c, struct ref *r, int64_t b, int64_t h, int direction) {
    struct dag_sizes z = dag_sizes_of(c, grid_scan_attr(c)->H);
    for (int64_t at = 0; at < z.T; at++) {
        struct node n = node_at(c, r, b, h, direction, at);
        for (int64_t i = 0; i < r->n; i++) {
            double kv = (double)n.k[i / z.dv] * n.v[i % z.dv];
            r->Cr[at * r->n + i] = (real)(n.gate[GRID_RL] * n.l[i] + n.gate[GRID_RU] * n.u[i] + n.gate[GRID_SR] * kv);
            r->Cd[at * r->n + i] = (real)(n.gate[GRID_DL] * n.l[i] + n.gate[GRID_DU] * n.u[i] + n.gate[GRID_SD] * kv);
        }
    }
}

static double ref_dot(int64_t n, const real *a, const real *b) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void grid_scan_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct ref r = ref_of(c, &scratch);
    memset(r.zero, 0, (size_t)r.n * sizeof(real));
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t h = 0; h < z.H; h++) {
            for (int64_t i = 0; i < z.T * z.dv; i++) {
                int64_t row = b * z.T + i / z.dv;
                r.y[i] = *head_in(c, 4, row, h, 1) *
                         ref_dot(z.dk, head_in(c, 0, row, h, z.dk), head_in(c, 1, row, h, z.dk)) *
                         head_in(c, 2, row, h, z.dv)[i % z.dv];
            }
            for (int direction = 0; direction < 4; direction++) {
                ref_states(c, &r, b, h, direction);
                for (int64_t at = 0; at < z.T; at++) {
                    struct node n = node_at(c, &r, b, h, direction, at);
                    for (int64_t i = 0; i < r.n; i++)
                        r.y[(n.row - b * z.T) * z.dv + i % z.dv] +=
                            n.q[i / z.dv] * (n.gate[GRID_ML] * n.l[i] + n.gate[GRID_MU] * n.u[i]);
                }
            }
            for (int64_t i = 0; i < z.T * z.dv; i++)
                tensor_real(c->out[0])[((b * z.T + i / z.dv) * z.H + h) * z.dv + i % z.dv] = (real)(a->scale * r.y[i]);
        }
}

/* Computes a node's gradients: of its gates, its parts of dq, dk and dv, and of the states that enter it. */
static void ref_node_backward(const struct call *c, struct ref *r, int64_t b, int64_t h, int direction, int64_t at) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct node n = node_at(c, r, b, h, direction, at);
    const real *er = r->Er + at * r->n, *ed = r->Ed + at * r->n, *dy = call_dout(c, 0) + (n.row * z.H + h) * z.dv;
    real *left = r->Er + n.left * r->n, *top = r->Ed + n.top * r->n;
    double d[GRID_PLANES] = {0}, *g = n.gate;
    int64_t place = n.row - b * z.T;
    d[GRID_RL] = ref_dot(r->n, er, n.l);
    d[GRID_RU] = ref_dot(r->n, er, n.u);
    d[GRID_DL] = ref_dot(r->n, ed, n.l);
    d[GRID_DU] = ref_dot(r->n, ed, n.u);
    for (int64_t i = 0; i < r->n; i++) {
        double q = n.q[i / z.dv], k = n.k[i / z.dv], v = n.v[i % z.dv], w = a->scale * dy[i % z.dv];
        double F = g[GRID_SR] * er[i] + g[GRID_SD] * ed[i];
        d[GRID_SR] += k * er[i] * v;
        d[GRID_SD] += k * ed[i] * v;
        d[GRID_ML] += q * n.l[i] * w;
        d[GRID_MU] += q * n.u[i] * w;
        r->dk[place * z.dk + i / z.dv] += F * v;
        r->dv[place * z.dv + i % z.dv] += F * k;
        r->dq[place * z.dk + i / z.dv] += (g[GRID_ML] * n.l[i] + g[GRID_MU] * n.u[i]) * w;
        left[i] = (real)(g[GRID_RL] * er[i] + g[GRID_DL] * ed[i] + g[GRID_ML] * q * w);
        top[i] = (real)(g[GRID_RU] * er[i] + g[GRID_DU] * ed[i] + g[GRID_MU] * q * w);
    }
    for (int p = 0; p < GRID_PLANES && c->din[3]; p++)
        put(c->din[3] + grid_gate_at(a->H, n.row, direction, h) + p * 4 * a->H, call_accumulates(c, 3), (real)d[p]);
}

/* Sets Er of the last row and Ed of the last column of the frame to 0, because no node follows them. The others are
 * written by the node that follows. */
static void ref_clear(const struct call *c, struct ref *r) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    size_t bytes = (size_t)r->n * sizeof(real);
    for (int64_t y = 0; y < a->Y; y++) memset(r->Er + ((a->X - 1) * a->Y + y) * r->n, 0, bytes);
    for (int64_t x = 0; x < a->X; x++) memset(r->Ed + (x * a->Y + a->Y - 1) * r->n, 0, bytes);
}

/* Adds the direct terms of a token and writes its gradients from the sums over the directions. */
static void ref_token_gradients(const struct call *c, struct ref *r, int64_t row, int64_t place, int64_t h) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    const real *q = head_in(c, 0, row, h, z.dk), *k = head_in(c, 1, row, h, z.dk), *v = head_in(c, 2, row, h, z.dv);
    const real *dy = call_dout(c, 0) + (row * z.H + h) * z.dv;
    double D = *head_in(c, 4, row, h, 1), qk = ref_dot(z.dk, q, k), vw = a->scale * ref_dot(z.dv, v, dy);
    for (int64_t i = 0; i < z.dk; i++) {
        put_wanted(c, 0, head_din(c, 0, row, h, z.dk), i, (real)(r->dq[place * z.dk + i] + D * vw * k[i]));
        put_wanted(c, 1, head_din(c, 1, row, h, z.dk), i, (real)(r->dk[place * z.dk + i] + D * vw * q[i]));
    }
    for (int64_t i = 0; i < z.dv; i++)
        put_wanted(c, 2, head_din(c, 2, row, h, z.dv), i, (real)(r->dv[place * z.dv + i] + D * qk * a->scale * dy[i]));
    put_wanted(c, 4, head_din(c, 4, row, h, 1), 0, (real)(qk * vw));
}

static void grid_scan_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct dag_sizes z = dag_sizes_of(c, grid_scan_attr(c)->H);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref r = ref_of(c, &scratch);
    memset(r.zero, 0, (size_t)r.n * sizeof(real));
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t h = 0; h < z.H; h++) {
            memset(r.dq, 0, (size_t)(z.T * z.dk) * sizeof *r.dq);
            memset(r.dk, 0, (size_t)(z.T * z.dk) * sizeof *r.dk);
            memset(r.dv, 0, (size_t)(z.T * z.dv) * sizeof *r.dv);
            for (int direction = 0; direction < 4; direction++) {
                ref_states(c, &r, b, h, direction);
                ref_clear(c, &r);
                for (int64_t at = z.T - 1; at >= 0; at--) ref_node_backward(c, &r, b, h, direction, at);
            }
            for (int64_t i = 0; i < z.T; i++) ref_token_gradients(c, &r, b * z.T + i, i, h);
        }
}

const struct kernel kernel_grid_scan_ref = {
    .name = "grid_scan_ref",
    .op = &op_grid_scan,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = grid_scan_ref_workspace,
    .forward = grid_scan_ref_forward,
    .backward = grid_scan_ref_backward,
};

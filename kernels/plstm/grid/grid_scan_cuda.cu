/* grid_scan_cuda.cu - pLSTM on a grid on CUDA: a strip of columns of one head and direction crosses the grid row by row
 * (row_sums.cuh), all four directions at once. Equations: grid_scan.c.
 *
 * Backward keeps the states that enter each node of a stretch of rows, and before each stretch those that enter its
 * first row; the stretches come back in reverse. */
#include "kernels/plstm/grid/grid.h"
#include "kernels/matrix/row_sums.cuh"

namespace {

enum { Q, K, V, GATES, DIRECT };

struct grid_strips {
    struct column_strips s;
    struct grid_scan_attr a;
    int64_t stride, stretches; /* rows of a stretch */
    const real *q, *k, *v, *gates, *dy;

    __device__ int64_t row(int64_t b, int direction, int64_t x, int64_t y) const {
        return b * s.z.T + grid_node(&a, direction, x, y);
    }
};

/* A strip's states, each array one after the other for all strips of the call. */
struct grid_room {
    real *l, *u, *copies, *er, *ed;
    real *dq, *dk;              /* shares of 4 directions x strips */
    real *y, *dv;               /* of 4 directions */
    real *dgates;               /* of strips */
    int64_t l_n, u_n, copies_n; /* states of one strip */
};

struct grid_strips strips_of(const struct call *c) {
    const struct grid_scan_attr *a = (const struct grid_scan_attr *)c->attr;
    struct row_sizes z = row_sizes_of(c, a->H);
    struct grid_strips g = {column_strips_of(z, 2 * z.dk + GRID_PLANES), *a, 1};
    while (2 * g.stride * g.stride < a->X) g.stride++; /* fewest states in all, as in grid_scan_cpu */
    g.stretches = (a->X + g.stride - 1) / g.stride;
    g.q = tensor_real(c->in[Q]);
    g.k = tensor_real(c->in[K]);
    g.v = tensor_real(c->in[V]);
    g.gates = tensor_real(c->in[GATES]);
    return g;
}

int64_t blocks_of(const struct grid_strips &g) {
    return g.s.z.B * g.s.z.H * 4 * g.s.strips;
}

struct grid_room room_of(const struct grid_strips &g, enum pass pass, struct scratch *s) {
    struct row_sizes z = g.s.z;
    int64_t state = z.dk * g.s.W, blocks = blocks_of(g), rows = z.B * z.T * z.H;
    struct grid_room r = {};
    r.l_n = pass == PASS_FORWARD ? g.a.Y : g.stride * g.a.Y;
    r.u_n = pass == PASS_FORWARD ? 1 : g.stride * g.a.Y;
    r.copies_n = g.stretches * g.a.Y;
    r.l = scratch_reals(s, blocks * r.l_n * state);
    r.u = scratch_reals(s, blocks * r.u_n * state);
    if (pass == PASS_FORWARD) {
        r.y = scratch_reals(s, 4 * rows * z.dv);
        return r;
    }
    r.copies = scratch_reals(s, blocks * r.copies_n * state);
    r.er = scratch_reals(s, blocks * g.a.Y * state);
    r.ed = scratch_reals(s, blocks * state);
    r.dq = scratch_reals(s, 4 * g.s.strips * rows * z.dk);
    r.dk = scratch_reals(s, 4 * g.s.strips * rows * z.dk);
    r.dv = scratch_reals(s, 4 * rows * z.dv);
    r.dgates = scratch_reals(s, g.s.strips * rows * 4 * GRID_PLANES);
    return r;
}

/* A block's head, direction and strip, and the states of it. */
struct grid_strip {
    int64_t b, h;
    int direction;
    struct column at;
    real *l, *u, *copies, *er, *ed;
};

__device__ struct grid_strip strip_at(const struct grid_strips &g, const struct grid_room &r) {
    int64_t state = g.s.z.dk * g.s.W, index = blockIdx.x, line = index / g.s.strips;
    struct grid_strip w;
    w.at = column_here(g.s, index % g.s.strips);
    w.direction = (int)(line % 4);
    w.h = line / 4 % g.s.z.H;
    w.b = line / 4 / g.s.z.H;
    w.l = r.l + index * r.l_n * state;
    w.u = r.u + index * r.u_n * state;
    w.copies = r.copies ? r.copies + index * r.copies_n * state : nullptr;
    w.er = r.er ? r.er + index * g.a.Y * state : nullptr;
    w.ed = r.ed ? r.ed + index * state : nullptr;
    return w;
}

/* One node of a strip: its gates, q and k of the head, v of the column. */
struct grid_place {
    int64_t row; /* of (B,T,H) */
    const real *q, *k;
    real v, gate[GRID_PLANES];
};

__device__ struct grid_place place_at(const struct grid_strips &g, const struct grid_strip &w, int64_t x, int64_t y) {
    struct grid_place p;
    int64_t token = g.row(w.b, w.direction, x, y), H = g.s.z.H;
    const real *gates = g.gates + grid_gate_at(H, token, w.direction, w.h);
    p.row = token * H + w.h;
    p.q = g.q + p.row * g.s.z.dk;
    p.k = g.k + p.row * g.s.z.dk;
    p.v = w.at.in ? g.v[p.row * g.s.z.dv + w.at.j] : 0;
    for (int i = 0; i < GRID_PLANES; i++) p.gate[i] = gates[i * 4 * H];
    return p;
}

/* (l, u) of row i of the state become (Cr, Cd). */
__device__ __forceinline__ void advance(const struct grid_place &p, int64_t i, real l, real u, real *Cr, real *Cd) {
    real kv = p.k[i] * p.v;
    *Cr = real_fma(p.gate[GRID_RL], l, real_fma(p.gate[GRID_RU], u, p.gate[GRID_SR] * kv));
    *Cd = real_fma(p.gate[GRID_DL], l, real_fma(p.gate[GRID_DU], u, p.gate[GRID_SD] * kv));
}

__device__ void clear(const struct grid_strips &g, const struct grid_strip &w, real *states, int64_t n) {
    for (int64_t i = 0; i < n * g.s.z.dk && w.at.in; i++) *column_at(g.s, w.at, states, 0, i) = 0;
}

/* The states that enter the nodes of a stretch, from its copy; those that enter the next stretch to the next copy. */
__device__ void enter_states(const struct grid_strips &g, const struct grid_strip &w, int64_t first, int64_t end) {
    int64_t Y = g.a.Y, stretch = first / g.stride;
    if (!w.at.in) return;
    for (int64_t i = 0; i < Y * g.s.z.dk; i++)
        *column_at(g.s, w.at, w.l, 0, i) = *column_at(g.s, w.at, w.copies, stretch * Y, i);
    for (int64_t x = first; x < end; x++) {
        clear(g, w, column_at(g.s, w.at, w.u, (x - first) * Y, 0) - w.at.lane, 1);
        for (int64_t y = 0; y < Y; y++) {
            struct grid_place p = place_at(g, w, x, y);
            int64_t n = (x - first) * Y + y;
            for (int64_t i = 0; i < g.s.z.dk; i++) {
                real Cr, Cd;
                advance(p, i, *column_at(g.s, w.at, w.l, n, i), *column_at(g.s, w.at, w.u, n, i), &Cr, &Cd);
                if (y + 1 < Y) *column_at(g.s, w.at, w.u, n + 1, i) = Cd;
                if (x + 1 < end) *column_at(g.s, w.at, w.l, n + Y, i) = Cr;
                if (x + 1 == end && end < g.a.X) *column_at(g.s, w.at, w.copies, (stretch + 1) * Y + y, i) = Cr;
            }
        }
    }
}

/* One node, whose entering states are number n of l and u, and whose gradients are er of its column and ed. */
__device__ void backward_node(const struct grid_strips &g, const struct grid_strip &w, const struct grid_room &r,
                              int64_t x, int64_t y, int64_t n, real *table) {
    struct row_sizes z = g.s.z;
    struct grid_place p = place_at(g, w, x, y);
    real weight = w.at.in ? (real)g.a.scale * g.dy[p.row * z.dv + w.at.j] : 0, dv = 0, d[GRID_PLANES] = {};
    for (int64_t i = 0; i < z.dk; i++) {
        real *right = column_at(g.s, w.at, w.er, y, i), *down = column_at(g.s, w.at, w.ed, 0, i);
        real er = w.at.in ? *right : 0, ed = w.at.in ? *down : 0, q = p.q[i], k = p.k[i];
        real l = w.at.in ? *column_at(g.s, w.at, w.l, n, i) : 0, u = w.at.in ? *column_at(g.s, w.at, w.u, n, i) : 0;
        real F = real_fma(p.gate[GRID_SR], er, p.gate[GRID_SD] * ed), qw = q * weight, kv = k * p.v;
        d[GRID_RL] = real_fma(er, l, d[GRID_RL]);
        d[GRID_RU] = real_fma(er, u, d[GRID_RU]);
        d[GRID_DL] = real_fma(ed, l, d[GRID_DL]);
        d[GRID_DU] = real_fma(ed, u, d[GRID_DU]);
        d[GRID_SR] = real_fma(er, kv, d[GRID_SR]);
        d[GRID_SD] = real_fma(ed, kv, d[GRID_SD]);
        d[GRID_ML] = real_fma(l, qw, d[GRID_ML]);
        d[GRID_MU] = real_fma(u, qw, d[GRID_MU]);
        dv = real_fma(F, k, dv);
        row_share(g.s, w.at, table, (int)i, real_fma(p.gate[GRID_ML], l, p.gate[GRID_MU] * u) * weight);
        row_share(g.s, w.at, table, (int)(z.dk + i), F * p.v);
        if (!w.at.in) continue;
        *right = real_fma(p.gate[GRID_RL], er, real_fma(p.gate[GRID_DL], ed, p.gate[GRID_ML] * qw));
        *down = real_fma(p.gate[GRID_RU], er, real_fma(p.gate[GRID_DU], ed, p.gate[GRID_MU] * qw));
    }
    for (int i = 0; i < GRID_PLANES; i++) row_share(g.s, w.at, table, (int)(2 * z.dk) + i, d[i]);
    int64_t rows = z.B * z.T * z.H, part = w.direction * g.s.strips + w.at.strip;
    if (w.at.in) r.dv[(w.direction * rows + p.row) * z.dv + w.at.j] = dv;
    __syncthreads();
    for (int line = w.at.lane; line < g.s.lines; line += WARP) {
        real sum = row_sum(g.s, table, line);
        if (line < z.dk)
            r.dq[(part * rows + p.row) * z.dk + line] = sum;
        else if (line < 2 * z.dk)
            r.dk[(part * rows + p.row) * z.dk + line - z.dk] = sum;
        else
            r.dgates[w.at.strip * rows * 4 * GRID_PLANES + grid_gate_at(z.H, p.row / z.H, w.direction, w.h) +
                     (line - 2 * z.dk) * 4 * z.H] = sum;
    }
    __syncthreads();
}

} // namespace

static __global__ void __launch_bounds__(WARP) grid_forward_kernel(struct grid_strips g, struct grid_room r) {
    struct grid_strip w = strip_at(g, r);
    struct row_sizes z = g.s.z;
    if (!w.at.in) return;
    clear(g, w, w.l, g.a.Y);
    for (int64_t x = 0; x < g.a.X; x++) {
        clear(g, w, w.u, 1);
        for (int64_t y = 0; y < g.a.Y; y++) {
            struct grid_place p = place_at(g, w, x, y);
            real read = 0;
            for (int64_t i = 0; i < z.dk; i++) {
                real *l = column_at(g.s, w.at, w.l, y, i), *u = column_at(g.s, w.at, w.u, 0, i);
                read = real_fma(p.q[i], real_fma(p.gate[GRID_ML], *l, p.gate[GRID_MU] * *u), read);
                advance(p, i, *l, *u, l, u);
            }
            r.y[(w.direction * z.B * z.T * z.H + p.row) * z.dv + w.at.j] = read;
        }
    }
}

static __global__ void __launch_bounds__(WARP) grid_backward_kernel(struct grid_strips g, struct grid_room r) {
    DYNAMIC_SHARED(real, table); /* a line a sum */
    struct grid_strip w = strip_at(g, r);
    clear(g, w, w.copies, g.a.Y);
    clear(g, w, w.er, g.a.Y);
    for (int64_t first = 0; first < g.a.X; first += g.stride)
        enter_states(g, w, first, first + g.stride < g.a.X ? first + g.stride : g.a.X);
    for (int64_t stretch = g.stretches - 1; stretch >= 0; stretch--) {
        int64_t first = stretch * g.stride, end = first + g.stride < g.a.X ? first + g.stride : g.a.X;
        if (stretch < g.stretches - 1) enter_states(g, w, first, end);
        for (int64_t x = end - 1; x >= first; x--) {
            clear(g, w, w.ed, 1);
            for (int64_t y = g.a.Y - 1; y >= 0; y--) backward_node(g, w, r, x, y, (x - first) * g.a.Y + y, table);
        }
    }
}

static bool grid_scan_cuda_applicable(const struct call *c, const char **why) {
    return column_strips_fit(strips_of(c).s, why);
}

static size_t grid_scan_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    room_of(strips_of(c), pass, &s);
    return s.used;
}

static void grid_scan_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct grid_strips g = strips_of(c);
    struct grid_room r = room_of(g, PASS_FORWARD, &s);
    LAUNCH(x, grid_forward_kernel, dim3((unsigned)blocks_of(g)), dim3(WARP), 0, g, r);
    each_value(c, x, tensor_count(c->out[0]),
               outside_y{outside_of(c, g.s.z, g.a.scale, DIRECT, nullptr), r.y, tensor_count(c->out[0]), 4,
                         tensor_real(c->out[0])});
}

static void grid_scan_cuda_backward(const struct call *c, const struct exec *x) {
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct grid_strips g = strips_of(c);
    struct grid_room r = room_of(g, PASS_BACKWARD, &s);
    g.dy = call_dout(c, 0);
    LAUNCH(x, grid_backward_kernel, dim3((unsigned)blocks_of(g)), dim3(WARP), column_strips_shared(g.s), g, r);
    outside_gradients(c, x, outside_of(c, g.s.z, g.a.scale, DIRECT, g.dy), DIRECT, r.dq, r.dk, 4 * g.s.strips, r.dv, 4);
    int64_t gates = tensor_count(c->in[GATES]);
    if (c->din[GATES])
        each_value(c, x, gates, sum_shares{r.dgates, gates, g.s.strips, c->din[GATES], call_accumulates(c, GATES)});
}

/* Tolerance: as grid_scan_cpu. */
const struct kernel kernel_grid_scan_cuda = {
    .name = "grid_scan_cuda",
    .op = &op_grid_scan,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 512,
    .applicable = grid_scan_cuda_applicable,
    .workspace = grid_scan_cuda_workspace,
    .forward = grid_scan_cuda_forward,
    .backward = grid_scan_cuda_backward,
};

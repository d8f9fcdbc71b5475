/* grid_scan_cuda.cu - pLSTM on a grid on CUDA. The nodes of an anti-diagonal are independent, so a block computes some
 * of them at the same time (a wave). Equations: grid_scan.c.
 *
 * A block has a strip of columns of one head and direction (row_sums.cuh); all four directions run in parallel. Each
 * warp of the block has a row of the grid, and computes a node one step later than the previous warp. After its row a
 * warp takes the row that is `warps` further. States that go to the next node of a row, or to the next row, are in
 * shared memory. States from the last warp to the first, which needs them later, are in scratch.
 *
 * Rows are cut into stretches. Backward first keeps the states that enter the first row of each stretch. Then it takes
 * the stretches in reverse, and keeps the states that enter each node of the current stretch. */
#include "kernels/plstm/grid/grid.h"
#include "kernels/matrix/loaded_rows.cuh"
#include "kernels/matrix/row_sums.cuh"

#define FORWARD_WARPS  16         /* most warps of a block */
#define BACKWARD_WARPS 8          /* most warps of a block; the states of so many rows are kept at the same time */
#define TABLE_ROWS     (WARP / 2) /* rows of a state whose sums for dq and dk are computed together, one per lane */

namespace {

enum { Q, K, V, GATES, DIRECT };

struct grid_strips {
    struct column_strips s; /* lines: what a warp has in shared memory */
    struct grid_scan_attr a;
    int warps;
    int64_t stride, stretches; /* rows of a stretch */
    const real *q, *k, *v, *gates, *dy;

    __host__ __device__ int64_t state() const {
        return s.z.dk * s.W;
    }
    __device__ int64_t row(int64_t b, int direction, int64_t x, int64_t y) const {
        return b * s.z.T + grid_node(&a, direction, x, y);
    }
    __device__ int64_t rows(int64_t first) const { /* of the stretch that begins there */
        return first + stride < a.X ? stride : a.X - first;
    }
};

/* A strip's states, each array one after the other for all strips of the call. */
struct grid_room {
    real *line, *er; /* of a row, from the last warp to the first */
    real *l, *u;     /* of a stretch's nodes */
    real *copies;    /* of the rows before all stretches except the first */
    real *dq, *dk;   /* partial sums of 4 directions x strips */
    real *y, *dv;    /* of 4 directions */
    real *dgates;    /* of strips */
};

/* The number of warps of a block, at most the nodes of an anti-diagonal. */
int warps_of(const struct call *c, const struct grid_strips &g, int64_t most) {
    size_t room = c->place ? c->place->cuda->shared : CUDA_SHARED_UNASKED;
    int64_t warps = (int64_t)(room / column_strips_shared(g.s)), nodes = g.a.X < g.a.Y ? g.a.X : g.a.Y;
    if (warps > most) warps = most;
    if (warps > nodes) warps = nodes;
    return warps > 1 ? (int)warps : 1;
}

/* Forward, all rows are one stretch. Backward, stretches are chosen so that the fewest states are kept, as in
 * grid_scan_cpu, but a stretch has at least a row for each warp. */
struct grid_strips strips_of(const struct call *c, enum pass pass) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct row_sizes z = row_sizes_of(c, a->H);
    bool forward = pass == PASS_FORWARD;
    struct grid_strips g = {column_strips_of(z, 2 * z.dk + (forward ? 0 : 2 * TABLE_ROWS)), *a};
    g.warps = warps_of(c, g, forward ? FORWARD_WARPS : BACKWARD_WARPS);
    g.stride = forward ? a->X : g.warps;
    while (2 * g.stride * g.stride < a->X) g.stride++;
    g.stretches = (a->X + g.stride - 1) / g.stride;
    g.stride = (a->X + g.stretches - 1) / g.stretches;
    if (g.warps > g.stride) g.warps = (int)g.stride;
    g.q = tensor_real(c->in[Q]);
    g.k = tensor_real(c->in[K]);
    g.v = tensor_real(c->in[V]);
    g.gates = tensor_real(c->in[GATES]);
    return g;
}

int64_t blocks_of(const struct grid_strips &g) {
    return g.s.z.B * g.s.z.H * 4 * g.s.strips;
}

size_t shared_of(const struct grid_strips &g) {
    return (size_t)g.warps * column_strips_shared(g.s);
}

struct grid_room room_of(const struct grid_strips &g, enum pass pass, struct scratch *s) {
    struct row_sizes z = g.s.z;
    int64_t rows = z.B * z.T * z.H, row = blocks_of(g) * g.a.Y * g.state(); /* of the tensors; of states */
    struct grid_room r = {};
    r.line = scratch_reals(s, g.stride > g.warps ? row : 0);
    if (pass == PASS_FORWARD) {
        r.y = scratch_reals(s, 4 * rows * z.dv);
        return r;
    }
    r.er = scratch_reals(s, g.a.X > g.warps ? row : 0);
    r.l = scratch_reals(s, g.stride * row);
    r.u = scratch_reals(s, g.stride * row);
    r.copies = scratch_reals(s, (g.stretches - 1) * row);
    r.dq = scratch_reals(s, 4 * g.s.strips * rows * z.dk);
    r.dk = scratch_reals(s, 4 * g.s.strips * rows * z.dk);
    r.dv = scratch_reals(s, 4 * rows * z.dv);
    r.dgates = scratch_reals(s, g.s.strips * rows * 4 * GRID_PLANES);
    return r;
}

/* A block's head, direction and strip; and its states, at this lane's column. */
struct grid_strip {
    int64_t b, h;
    int direction, warp;
    struct column at;
    real *line, *er, *l, *u, *copies;
    real *shared; /* of all warps */
};

__device__ struct grid_strip strip_at(const struct grid_strips &g, const struct grid_room &r, real *shared) {
    int64_t index = blockIdx.x, head = index / g.s.strips, row = index * g.a.Y * g.state();
    struct grid_strip w;
    w.at = column_here(g.s, index % g.s.strips);
    w.direction = (int)(head % 4);
    w.h = head / 4 % g.s.z.H;
    w.b = head / 4 / g.s.z.H;
    w.warp = (int)threadIdx.x / WARP;
    w.shared = shared;
    auto here = [&](real *states, int64_t rows) { return states ? states + rows * row + w.at.lane : nullptr; };
    w.line = here(r.line, 1);
    w.er = here(r.er, 1);
    w.l = here(r.l, g.stride);
    w.u = here(r.u, g.stride);
    w.copies = here(r.copies, g.stretches - 1);
    return w;
}

/* Shared memory of a warp: a state between rows, one along its row, and backward a table of sums. */
__device__ __forceinline__ real *shared_at(const struct grid_strips &g, const struct grid_strip &w, int warp,
                                           int states) {
    return w.shared + warp * g.s.lines * (g.s.W + 1) + states * g.state();
}

/* --- the wave ----------------------------------------------------------------------------------------------------- */

/* A warp's node: its row in the stretch, and its place y in the row, in the order of the wave. A state that goes to the
 * next row is in the shared memory of warp `slot`, which is free again when the last warp has read it. */
struct turn {
    int64_t row, y;
    int slot;
};

/* Calls node(turn) for all nodes of `rows` rows, each after the previous nodes of its row and of its column. A row has
 * Y >= warps nodes, so all other warps have begun their rows when a warp begins its next row. */
template <class Node> __device__ __forceinline__ void wave(const struct grid_strips &g, int64_t rows, Node node) {
    int warp = (int)threadIdx.x / WARP;
    int64_t steps = ((rows - 1) / g.warps + 1) * g.a.Y + (rows - 1) % g.warps;
    struct turn t = {warp, -warp, 0};
    for (int64_t step = 0; step < steps; step++) {
        if (t.y >= 0 && t.row < rows) {
            node(t);
            if (++t.slot == g.warps) t.slot = 0;
        }
        if (++t.y == g.a.Y) {
            t.y = 0;
            t.row += g.warps;
        }
        __syncthreads();
    }
}

/* The places of a state that enters a node, and of the state that leaves it, at this lane's column. from NULL: zeros;
 * to NULL: not stored. */
struct carried {
    const real *from;
    real *to;
    int W;

    __device__ __forceinline__ real get(int64_t i) const {
        return from ? from[i * W] : 0;
    }
    __device__ __forceinline__ void put(int64_t i, real x) const {
        if (to) to[i * W] = x;
    }
};

/* The states before the first row of a wave, and the place of those after the last row; one per node, or NULL. */
struct borders {
    const real *before;
    real *after;
    real *line; /* between the last warp and the first */
};

/* The state that goes from row to row. */
__device__ struct carried across(const struct grid_strips &g, const struct grid_strip &w, const struct turn &t,
                                 int64_t rows, const struct borders &b) {
    struct carried c = {nullptr, nullptr, g.s.W};
    if (!w.at.in) return c;
    int64_t at = t.y * g.state();
    c.from = c.to = shared_at(g, w, t.slot, 0) + w.at.lane;
    if (w.warp == 0) c.from = b.line + at;
    if (w.warp == g.warps - 1) c.to = b.line + at;
    if (t.row == 0) c.from = b.before ? b.before + at : nullptr;
    if (t.row == rows - 1) c.to = b.after ? b.after + at : nullptr;
    return c;
}

/* The state that goes along the row. */
__device__ struct carried along(const struct grid_strips &g, const struct grid_strip &w, const struct turn &t) {
    struct carried c = {nullptr, nullptr, g.s.W};
    if (w.at.in) c.to = shared_at(g, w, w.warp, 1) + w.at.lane;
    if (t.y > 0) c.from = c.to;
    return c;
}

/* The state of node n in scratch; NULL if there are no states, or this lane has no column. */
__device__ __forceinline__ real *kept_at(const struct grid_strips &g, const struct grid_strip &w, real *states,
                                         int64_t n) {
    return states && w.at.in ? states + n * g.state() : nullptr;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

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

/* A row (l, u) of the state becomes (Cr, Cd). */
__device__ __forceinline__ void advance(const struct grid_place &p, real k, real l, real u, real *Cr, real *Cd) {
    real kv = k * p.v;
    *Cr = real_fma(p.gate[GRID_RL], l, real_fma(p.gate[GRID_RU], u, p.gate[GRID_SR] * kv));
    *Cd = real_fma(p.gate[GRID_DL], l, real_fma(p.gate[GRID_DU], u, p.gate[GRID_SD] * kv));
}

struct forward_rows {
    const struct grid_place &p;
    struct carried left, top;
    real read; /* (Ml l + Mu u)^T q */

    template <int N> __device__ __forceinline__ void operator()(row_count<N>, int64_t i) {
        real l[N], u[N], q[N], k[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            l[j] = left.get(i + j);
            u[j] = top.get(i + j);
            q[j] = p.q[i + j];
            k[j] = p.k[i + j];
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            real Cr, Cd;
            read = real_fma(q[j], real_fma(p.gate[GRID_ML], l[j], p.gate[GRID_MU] * u[j]), read);
            advance(p, k[j], l[j], u[j], &Cr, &Cd);
            left.put(i + j, Cr);
            top.put(i + j, Cd);
        }
    }
};

/* Like forward_rows, without q; stores l and u in l_kept and u_kept, unless these are NULL. */
struct enter_rows {
    const struct grid_place &p;
    struct carried left, top;
    real *l_kept, *u_kept;

    template <int N> __device__ __forceinline__ void operator()(row_count<N>, int64_t i) {
        real l[N], u[N], k[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            l[j] = left.get(i + j);
            u[j] = top.get(i + j);
            k[j] = p.k[i + j];
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            real Cr, Cd;
            if (l_kept) {
                l_kept[(i + j) * left.W] = l[j];
                u_kept[(i + j) * left.W] = u[j];
            }
            advance(p, k[j], l[j], u[j], &Cr, &Cd);
            left.put(i + j, Cr);
            top.put(i + j, Cd);
        }
    }
};

/* Computes the states that enter the nodes of a stretch, and stores those that enter the next stretch in its copy. With
 * `keep`, all states are stored for the backward walk that follows. */
__device__ void enter_states(const struct grid_strips &g, const struct grid_strip &w, int64_t stretch, bool keep) {
    int64_t Y = g.a.Y, first = stretch * g.stride, rows = g.rows(first);
    int64_t row = Y * g.state();
    struct borders b = {stretch > 0 ? w.copies + (stretch - 1) * row : nullptr,
                        stretch + 1 < g.stretches ? w.copies + stretch * row : nullptr, w.line};
    wave(g, rows, [&](const struct turn &t) {
        struct grid_place p = place_at(g, w, first + t.row, t.y);
        int64_t n = t.row * Y + t.y;
        struct enter_rows node = {p, across(g, w, t, rows, b), along(g, w, t)};
        node.l_kept = kept_at(g, w, keep ? w.l : nullptr, n);
        node.u_kept = kept_at(g, w, keep ? w.u : nullptr, n);
        if (w.at.in) each_rows(0, g.s.z.dk, node);
    });
}

/* right, down: er and ed; l, u: the states that entered the node. */
struct backward_rows {
    const struct column_strips &s;
    const struct column &at;
    const struct grid_place &p;
    struct carried right, down, left, top;
    real weight, dv, d[GRID_PLANES];
    real *table; /* terms of dq, then terms of dk */

    template <int N> __device__ __forceinline__ void operator()(row_count<N>, int64_t i) {
        real er[N], ed[N], l[N], u[N], q[N], k[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            er[j] = right.get(i + j);
            ed[j] = down.get(i + j);
            l[j] = left.get(i + j);
            u[j] = top.get(i + j);
            q[j] = p.q[i + j];
            k[j] = p.k[i + j];
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            real F = real_fma(p.gate[GRID_SR], er[j], p.gate[GRID_SD] * ed[j]), qw = q[j] * weight, kv = k[j] * p.v;
            int line = (int)(i + j) % TABLE_ROWS;
            d[GRID_RL] = real_fma(er[j], l[j], d[GRID_RL]);
            d[GRID_RU] = real_fma(er[j], u[j], d[GRID_RU]);
            d[GRID_DL] = real_fma(ed[j], l[j], d[GRID_DL]);
            d[GRID_DU] = real_fma(ed[j], u[j], d[GRID_DU]);
            d[GRID_SR] = real_fma(er[j], kv, d[GRID_SR]);
            d[GRID_SD] = real_fma(ed[j], kv, d[GRID_SD]);
            d[GRID_ML] = real_fma(l[j], qw, d[GRID_ML]);
            d[GRID_MU] = real_fma(u[j], qw, d[GRID_MU]);
            dv = real_fma(F, k[j], dv);
            row_share(s, at, table, line, real_fma(p.gate[GRID_ML], l[j], p.gate[GRID_MU] * u[j]) * weight);
            row_share(s, at, table, TABLE_ROWS + line, F * p.v);
            right.put(i + j, real_fma(p.gate[GRID_RL], er[j], real_fma(p.gate[GRID_DL], ed[j], p.gate[GRID_ML] * qw)));
            down.put(i + j, real_fma(p.gate[GRID_RU], er[j], real_fma(p.gate[GRID_DU], ed[j], p.gate[GRID_MU] * qw)));
        }
    }
};

/* Computes gradients at node n of the stretch. */
__device__ void backward_node(const struct grid_strips &g, const struct grid_strip &w, const struct grid_room &r,
                              const struct grid_place &p, int64_t n, struct carried right, struct carried down) {
    struct row_sizes z = g.s.z;
    int64_t rows = z.B * z.T * z.H, part = w.direction * g.s.strips + w.at.strip;
    real *table = shared_at(g, w, w.warp, 2);
    struct backward_rows node = {g.s, w.at, p, right, down};
    node.left = {kept_at(g, w, w.l, n), nullptr, g.s.W};
    node.top = {kept_at(g, w, w.u, n), nullptr, g.s.W};
    node.weight = w.at.in ? (real)g.a.scale * g.dy[p.row * z.dv + w.at.j] : 0;
    node.table = table;
    for (int64_t begin = 0; begin < z.dk; begin += TABLE_ROWS) {
        int64_t i = begin + w.at.lane % TABLE_ROWS;
        each_rows(begin, begin + TABLE_ROWS < z.dk ? begin + TABLE_ROWS : z.dk, node);
        __syncwarp();
        if (i < z.dk)
            (w.at.lane < TABLE_ROWS ? r.dq : r.dk)[(part * rows + p.row) * z.dk + i] = row_sum(g.s, table, w.at.lane);
        __syncwarp();
    }
    for (int i = 0; i < GRID_PLANES; i++) row_share(g.s, w.at, table, i, node.d[i]);
    if (w.at.in) r.dv[(w.direction * rows + p.row) * z.dv + w.at.j] = node.dv;
    __syncwarp();
    if (w.at.lane < GRID_PLANES)
        r.dgates[w.at.strip * rows * 4 * GRID_PLANES + grid_gate_at(z.H, p.row / z.H, w.direction, w.h) +
                 w.at.lane * 4 * z.H] = row_sum(g.s, table, w.at.lane);
    __syncwarp();
}

__device__ void backward_stretch(const struct grid_strips &g, const struct grid_strip &w, const struct grid_room &r,
                                 int64_t stretch) {
    int64_t first = stretch * g.stride, rows = g.rows(first);
    struct borders b = {stretch + 1 < g.stretches ? w.er : nullptr, stretch > 0 ? w.er : nullptr, w.er};
    wave(g, rows, [&](const struct turn &t) {
        int64_t x = rows - 1 - t.row, y = g.a.Y - 1 - t.y;
        backward_node(g, w, r, place_at(g, w, first + x, y), x * g.a.Y + y, across(g, w, t, rows, b), along(g, w, t));
    });
}

} // namespace

static __global__ void __launch_bounds__(FORWARD_WARPS *WARP)
    grid_forward_kernel(struct grid_strips g, struct grid_room r) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct grid_strip w = strip_at(g, r, shared);
    struct row_sizes z = g.s.z;
    struct borders b = {nullptr, nullptr, w.line};
    wave(g, g.a.X, [&](const struct turn &t) {
        struct grid_place p = place_at(g, w, t.row, t.y);
        struct forward_rows node = {p, across(g, w, t, g.a.X, b), along(g, w, t)};
        if (!w.at.in) return;
        each_rows(0, z.dk, node);
        r.y[(w.direction * z.B * z.T * z.H + p.row) * z.dv + w.at.j] = node.read;
    });
}

static __global__ void __launch_bounds__(BACKWARD_WARPS *WARP)
    grid_backward_kernel(struct grid_strips g, struct grid_room r) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct grid_strip w = strip_at(g, r, shared);
    for (int64_t stretch = 0; stretch < g.stretches; stretch++) enter_states(g, w, stretch, stretch == g.stretches - 1);
    for (int64_t stretch = g.stretches - 1; stretch >= 0; stretch--) {
        if (stretch < g.stretches - 1) enter_states(g, w, stretch, true);
        backward_stretch(g, w, r, stretch);
    }
}

static bool grid_scan_cuda_applicable(const struct call *c, const char **why) {
    return column_strips_fit(strips_of(c, PASS_BACKWARD).s, why);
}

static size_t grid_scan_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    room_of(strips_of(c, pass), pass, &s);
    return s.used;
}

/* One warp for each row that the block computes at the same time. */
static dim3 threads_of(const struct grid_strips &g) {
    return dim3((unsigned)(g.warps * WARP));
}

static void grid_scan_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct grid_strips g = strips_of(c, PASS_FORWARD);
    struct grid_room r = room_of(g, PASS_FORWARD, &s);
    LAUNCH(x, grid_forward_kernel, dim3((unsigned)blocks_of(g)), threads_of(g), shared_of(g), g, r);
    each_value(c, x, tensor_count(c->out[0]),
               outside_y{outside_of(c, g.s.z, g.a.scale, DIRECT, nullptr), r.y, tensor_count(c->out[0]), 4,
                         tensor_real(c->out[0])});
}

static void grid_scan_cuda_backward(const struct call *c, const struct exec *x) {
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct grid_strips g = strips_of(c, PASS_BACKWARD);
    struct grid_room r = room_of(g, PASS_BACKWARD, &s);
    g.dy = call_dout(c, 0);
    LAUNCH(x, grid_backward_kernel, dim3((unsigned)blocks_of(g)), threads_of(g), shared_of(g), g, r);
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

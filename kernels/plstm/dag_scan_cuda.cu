/* dag_scan_cuda.cu - pLSTM on directed acyclic graphs on CUDA: a warp walks a strip of columns of one head over the
 * edges of the example in order (row_sums.cuh). First a warp per example lists the present edges and pairs, 32 at a
 * time. Equations: dag_scan.c. */
#include "kernels/plstm/dag_links.h"
#include "kernels/matrix/loaded_rows.cuh"
#include "kernels/matrix/row_sums.cuh"

#define DAG_ROWS 16 /* rows of a state that are read before one is written; many, as few warps share the waiting */

namespace {

enum { Q, K, V, DIRECT, SOURCE, MARK, TRANSITION };

struct dag_strips {
    struct column_strips s;
    struct dag_scan_attr a;
    const int32_t *words;
    const real *q, *k, *v, *source, *mark, *transition, *dy;
};

/* The lists of all examples, one after the other, and the number of edges and pairs of each. */
struct dag_lists {
    struct dag first;
    int32_t *edges, *pairs;

    __device__ struct dag at(const struct links_size &room, int64_t b) const {
        struct dag d = first;
        d.edges = edges[b];
        d.pairs = pairs[b];
        d.tail += b * room.edges;
        d.head += b * room.edges;
        d.edge_row += b * room.edges;
        d.place += b * room.edges;
        d.start += b * (room.edges + 1);
        d.from += b * room.pairs;
        d.to += b * room.pairs;
        d.pair_row += b * room.pairs;
        return d;
    }
};

/* States C and gradients E of the edges, one strip after the other; and the partial sums of the strips. */
struct dag_room {
    struct dag_lists lists;
    real *C, *E;
    real *y, *dv;                       /* complete sums */
    real *dq, *dk;                      /* partial sums of strips */
    real *dsource, *dmark, *transition; /* partial sums of strips */
};

struct dag_strips strips_of(const struct call *c) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    struct row_sizes z = row_sizes_of(c, a->H);
    struct dag_strips g = {column_strips_of(z, 2 * z.dk + 2), *a, tensor_i32(c->in[DAG_SCAN_LINKS])};
    g.q = tensor_real(c->in[Q]);
    g.k = tensor_real(c->in[K]);
    g.v = tensor_real(c->in[V]);
    g.source = tensor_real(c->in[SOURCE]);
    g.mark = tensor_real(c->in[MARK]);
    g.transition = tensor_real(c->in[TRANSITION]);
    return g;
}

int64_t blocks_of(const struct dag_strips &g) {
    return g.s.z.B * g.s.z.H * g.s.strips;
}

struct dag_lists lists_of(const struct dag_strips &g, struct scratch *s) {
    int64_t B = g.s.z.B;
    struct dag_lists l = {};
    l.first.tail = scratch_i32(s, B * g.a.size.edges);
    l.first.head = scratch_i32(s, B * g.a.size.edges);
    l.first.edge_row = scratch_i32(s, B * g.a.size.edges);
    l.first.place = scratch_i32(s, B * g.a.size.edges);
    l.first.start = scratch_i32(s, B * (g.a.size.edges + 1));
    l.first.from = scratch_i32(s, B * g.a.size.pairs);
    l.first.to = scratch_i32(s, B * g.a.size.pairs);
    l.first.pair_row = scratch_i32(s, B * g.a.size.pairs);
    l.edges = scratch_i32(s, B);
    l.pairs = scratch_i32(s, B);
    return l;
}

struct dag_room room_of(const struct dag_strips &g, enum pass pass, struct scratch *s) {
    struct row_sizes z = g.s.z;
    int64_t states = blocks_of(g) * g.a.size.edges * z.dk * g.s.W, rows = z.B * z.T * z.H, strips = g.s.strips;
    struct dag_room r = {lists_of(g, s)};
    r.C = scratch_reals(s, states);
    if (pass == PASS_FORWARD) {
        r.y = scratch_reals(s, rows * z.dv);
        return r;
    }
    r.E = scratch_reals(s, states);
    r.dv = scratch_reals(s, rows * z.dv);
    r.dq = scratch_reals(s, strips * rows * z.dk);
    r.dk = scratch_reals(s, strips * rows * z.dk);
    r.dsource = scratch_reals(s, strips * z.B * g.a.size.edges * z.H);
    r.dmark = scratch_reals(s, strips * z.B * g.a.size.edges * z.H);
    r.transition = scratch_reals(s, strips * z.B * g.a.size.pairs * z.H);
    return r;
}

/* A block's head and strip, its links and states. */
struct dag_strip {
    struct column at;
    int64_t b, h;
    struct dag d;
    real *C, *E;
};

__device__ struct dag_strip strip_at(const struct dag_strips &g, const struct dag_room &r) {
    int64_t index = blockIdx.x, head = index / g.s.strips, states = g.a.size.edges * g.s.z.dk * g.s.W;
    struct dag_strip w;
    w.at = column_here(g.s, index % g.s.strips);
    w.b = head / g.s.z.H;
    w.h = head % g.s.z.H;
    w.d = r.lists.at(g.a.size, w.b);
    w.C = r.C + index * states;
    w.E = r.E ? r.E + index * states : nullptr;
    return w;
}

/* Row of (B,rows,H). */
__device__ __forceinline__ int64_t row_of(const struct dag_strips &g, const struct dag_strip &w, int64_t rows,
                                          int64_t row) {
    return (w.b * rows + row) * g.s.z.H + w.h;
}

__device__ __forceinline__ real source_of(const struct dag_strips &g, const struct dag_strip &w, int64_t e) {
    return g.source[row_of(g, w, g.a.size.edges, w.d.edge_row[e])];
}

__device__ __forceinline__ real mark_of(const struct dag_strips &g, const struct dag_strip &w, int64_t e) {
    return g.mark[row_of(g, w, g.a.size.edges, w.d.edge_row[e])];
}

__device__ __forceinline__ real transition_of(const struct dag_strips &g, const struct dag_strip &w, int64_t p) {
    return g.transition[row_of(g, w, g.a.size.pairs, w.d.pair_row[p])];
}

/* C of edge e, to which the pairs `first` to end - 1 lead. */
__device__ void edge_state(const struct dag_strips &g, const struct dag_strip &w, int64_t e, int64_t first,
                           int64_t end) {
    struct row_sizes z = g.s.z;
    int64_t tail = row_of(g, w, z.T, w.d.tail[e]);
    const real *k = g.k + tail * z.dk;
    real source = w.at.in ? source_of(g, w, e) * g.v[tail * z.dv + w.at.j] : 0;
    if (!w.at.in) return;
    each_rows<DAG_ROWS>(0, z.dk, [&](auto rows, int64_t i) {
        constexpr int N = decltype(rows)::n;
        real sum[N], *to = column_at(g.s, w.at, w.C, e, i);
#pragma unroll
        for (int r = 0; r < N; r++) sum[r] = source * k[i + r];
        for (int64_t p = first; p < end; p++) {
            const real *from = column_at(g.s, w.at, w.C, w.d.from[p], i);
            real T = transition_of(g, w, p);
#pragma unroll
            for (int r = 0; r < N; r++) sum[r] = real_fma(T, from[r * g.s.W], sum[r]);
        }
#pragma unroll
        for (int r = 0; r < N; r++) to[r * g.s.W] = sum[r];
    });
}

/* The end of the pairs that lead to edge e; they begin at p. */
__device__ __forceinline__ int64_t pairs_end(const struct dag_strip &w, int64_t e, int64_t p) {
    while (p < w.d.pairs && w.d.to[p] == e) p++;
    return p;
}

/* Adds the mark's part to E of edge e, which already has the parts of later edges; then adds all sums from E. */
__device__ void backward_edge(const struct dag_strips &g, const struct dag_strip &w, const struct dag_room &r,
                              int64_t e, real *table) {
    struct row_sizes z = g.s.z;
    int64_t tail = row_of(g, w, z.T, w.d.tail[e]), head = row_of(g, w, z.T, w.d.head[e]), dk = z.dk;
    const real *q = g.q + head * dk, *k = g.k + tail * dk;
    real v = w.at.in ? g.v[tail * z.dv + w.at.j] : 0, S = source_of(g, w, e), M = mark_of(g, w, e);
    real weight = w.at.in ? (real)g.a.scale * g.dy[head * z.dv + w.at.j] : 0, dS = 0, dM = 0, dv = 0;
    each_rows<DAG_ROWS>(0, dk, [&](auto rows, int64_t i) {
        constexpr int N = decltype(rows)::n;
        real total[N], C[N], *E_e = column_at(g.s, w.at, w.E, e, i), *C_e = column_at(g.s, w.at, w.C, e, i);
#pragma unroll
        for (int r = 0; r < N; r++) {
            total[r] = w.at.in ? real_fma(M * q[i + r], weight, E_e[r * g.s.W]) : 0;
            C[r] = w.at.in ? C_e[r * g.s.W] : 0;
        }
#pragma unroll
        for (int r = 0; r < N; r++) {
            if (w.at.in) E_e[r * g.s.W] = total[r];
            dS = real_fma(k[i + r] * v, total[r], dS);
            dM = real_fma(q[i + r] * weight, C[r], dM);
            dv = real_fma(k[i + r], total[r], dv);
            row_share(g.s, w.at, table, (int)(i + r), C[r] * weight);
            row_share(g.s, w.at, table, (int)(dk + i + r), total[r] * v);
        }
    });
    row_share(g.s, w.at, table, (int)(2 * dk), dS);
    row_share(g.s, w.at, table, (int)(2 * dk) + 1, dM);
    if (w.at.in) r.dv[tail * z.dv + w.at.j] = real_fma(S, dv, r.dv[tail * z.dv + w.at.j]);
    int64_t rows = z.B * z.T * z.H, gates = z.B * g.a.size.edges * z.H;
    int64_t gate = w.at.strip * gates + row_of(g, w, g.a.size.edges, w.d.edge_row[e]);
    __syncthreads();
    for (int line = w.at.lane; line < g.s.lines; line += WARP) {
        real sum = row_sum(g.s, table, line);
        if (line < dk)
            r.dq[(w.at.strip * rows + head) * dk + line] += M * sum;
        else if (line < 2 * dk)
            r.dk[(w.at.strip * rows + tail) * dk + line - dk] += S * sum;
        else
            (line == 2 * dk ? r.dsource : r.dmark)[gate] = sum;
    }
    __syncthreads();
}

/* Pair p into edge e: computes the gradient of its transition, and adds to E of the edge from which it comes. */
__device__ void backward_pair(const struct dag_strips &g, const struct dag_strip &w, const struct dag_room &r,
                              int64_t e, int64_t p) {
    real T = transition_of(g, w, p), dT = 0;
    int64_t from = w.d.from[p];
    auto add = [&](auto rows, int64_t i) {
        constexpr int N = decltype(rows)::n;
        const real *E_e = column_at(g.s, w.at, w.E, e, i), *C_from = column_at(g.s, w.at, w.C, from, i);
        real *E_from = column_at(g.s, w.at, w.E, from, i), next[N];
#pragma unroll
        for (int r = 0; r < N; r++) {
            real E = E_e[r * g.s.W];
            dT = real_fma(C_from[r * g.s.W], E, dT);
            next[r] = real_fma(T, E, E_from[r * g.s.W]);
        }
#pragma unroll
        for (int r = 0; r < N; r++) E_from[r * g.s.W] = next[r];
    };
    if (w.at.in) each_rows<DAG_ROWS>(0, g.s.z.dk, add);
    dT = warp_sum(dT);
    int64_t gates = g.s.z.B * g.a.size.pairs * g.s.z.H;
    if (w.at.lane == 0) r.transition[w.at.strip * gates + row_of(g, w, g.a.size.pairs, w.d.pair_row[p])] = dT;
}

/* Sets a strip's partial sums to 0, if edges add to them or if their gates are absent. */
__device__ void clear_shares(const struct dag_strips &g, const struct dag_strip &w, const struct dag_room &r) {
    struct row_sizes z = g.s.z;
    int64_t rows = z.B * z.T * z.H, edges = g.a.size.edges, pairs = g.a.size.pairs;
    for (int64_t i = w.at.lane; i < z.T * z.dk; i += WARP) {
        int64_t at = (w.at.strip * rows + row_of(g, w, z.T, i / z.dk)) * z.dk + i % z.dk;
        r.dq[at] = r.dk[at] = 0;
    }
    for (int64_t e = w.at.lane; e < edges; e += WARP) {
        int64_t at = w.at.strip * z.B * edges * z.H + row_of(g, w, edges, e);
        r.dsource[at] = r.dmark[at] = 0;
    }
    for (int64_t p = w.at.lane; p < pairs; p += WARP)
        r.transition[w.at.strip * z.B * pairs * z.H + row_of(g, w, pairs, p)] = 0;
    for (int64_t n = 0; n < z.T && w.at.in; n++) r.dv[row_of(g, w, z.T, n) * z.dv + w.at.j] = 0;
    for (int64_t i = 0; i < w.d.edges * z.dk && w.at.in; i++) *column_at(g.s, w.at, w.E, 0, i) = 0;
    __syncthreads();
}

} // namespace

/* --- the lists, as dag_read_links makes them ---------------------------------------------------------------------- */

/* The number of earlier lanes that have a vote. */
static __device__ __forceinline__ int votes_before(unsigned votes) {
    return __popc(votes & ((1u << threadIdx.x) - 1));
}

static __device__ void read_edges(const struct links_view &l, struct dag *d) {
    d->edges = 0;
    for (int64_t first = 0; first < l.size.edges; first += WARP) {
        int64_t i = first + threadIdx.x, e = l.reversed ? l.size.edges - 1 - i : i;
        int32_t tail, head;
        bool there = i < l.size.edges && links_edge(&l, e, &tail, &head);
        unsigned votes = __ballot_sync(FULL_WARP, there);
        int64_t at = d->edges + votes_before(votes);
        if (i < l.size.edges) d->place[e] = there ? (int32_t)at : -1;
        if (there) {
            d->tail[at] = tail;
            d->head[at] = head;
            d->edge_row[at] = (int32_t)e;
        }
        d->edges += __popc(votes);
    }
    __syncwarp();
}

/* The lane's pair of 32 pairs. If it is in effect, its edges are named by their place in the walk. */
struct lane_pair {
    int32_t from, to;
    bool there;
};

static __device__ struct lane_pair read_pair(const struct links_view &l, bool tree, const struct dag &d, int64_t p) {
    struct lane_pair pair = {0, 0, false};
    pair.there = p < l.size.pairs && dag_read_pair(&l, tree, &d, p, &pair.from, &pair.to);
    return pair;
}

/* start[e] = the number of pairs that lead to edges before e. */
static __device__ void count_pairs(const struct links_view &l, bool tree, struct dag *d) {
    int32_t before = 0;
    for (int64_t e = threadIdx.x; e <= d->edges; e += WARP) d->start[e] = 0;
    __syncwarp();
    for (int64_t first = 0; first < l.size.pairs; first += WARP) {
        struct lane_pair pair = read_pair(l, tree, *d, first + threadIdx.x);
        if (pair.there) atomicAdd(d->start + pair.to + 1, 1); /* whole numbers: the same in any order */
    }
    __syncwarp();
    for (int64_t first = 0; first <= d->edges; first += WARP) {
        int64_t e = first + threadIdx.x;
        int32_t sum = e <= d->edges ? d->start[e] : 0;
        for (unsigned distance = 1; distance < WARP; distance *= 2) {
            int32_t other = __shfl_up_sync(FULL_WARP, sum, distance);
            if (threadIdx.x >= distance) sum += other;
        }
        sum += before;
        if (e <= d->edges) d->start[e] = sum;
        before = __shfl_sync(FULL_WARP, sum, WARP - 1);
    }
    d->pairs = before;
    __syncwarp();
}

/* Sorts pairs by the edge to which they lead; pairs to the same edge keep their order. */
static __device__ void sort_pairs(const struct links_view &l, bool tree, struct dag *d) {
    for (int64_t first = 0; first < l.size.pairs; first += WARP) {
        struct lane_pair pair = read_pair(l, tree, *d, first + threadIdx.x);
        unsigned same = 0;
        for (int lane = 0; lane < WARP; lane++) {
            int32_t other = __shfl_sync(FULL_WARP, pair.there ? pair.to : -1, lane);
            if (pair.there && other == pair.to) same |= 1u << lane;
        }
        int32_t at = pair.there ? d->start[pair.to] + votes_before(same) : 0;
        __syncwarp();
        if (pair.there) {
            d->from[at] = pair.from;
            d->to[at] = pair.to;
            d->pair_row[at] = (int32_t)(first + threadIdx.x);
            if (same >> threadIdx.x == 1) d->start[pair.to] = at + 1; /* by the last such lane */
        }
        __syncwarp();
    }
}

static __global__ void __launch_bounds__(WARP) dag_lists_kernel(struct dag_strips g, struct dag_lists lists) {
    await_previous();
    int64_t b = blockIdx.x;
    struct links_view l = {g.words + b * links_words(g.a.size), g.a.size, g.s.z.T, g.a.reversed};
    struct dag d = lists.at(g.a.size, b);
    read_edges(l, &d);
    count_pairs(l, g.a.tree, &d);
    sort_pairs(l, g.a.tree, &d);
    if (threadIdx.x > 0) return;
    lists.edges[b] = (int32_t)d.edges;
    lists.pairs[b] = (int32_t)d.pairs;
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(WARP) dag_forward_kernel(struct dag_strips g, struct dag_room r) {
    await_previous();
    struct dag_strip w = strip_at(g, r);
    struct row_sizes z = g.s.z;
    if (!w.at.in) return;
    for (int64_t n = 0; n < z.T; n++) r.y[row_of(g, w, z.T, n) * z.dv + w.at.j] = 0;
    for (int64_t e = 0, p = 0; e < w.d.edges; e++) {
        int64_t end = pairs_end(w, e, p), head = row_of(g, w, z.T, w.d.head[e]);
        real *y = r.y + head * z.dv + w.at.j, read = 0;
        edge_state(g, w, e, p, end);
        for (int64_t i = 0; i < z.dk; i++)
            read = real_fma(g.q[head * z.dk + i], *column_at(g.s, w.at, w.C, e, i), read);
        *y = real_fma(mark_of(g, w, e), read, *y);
        p = end;
    }
}

static __global__ void __launch_bounds__(WARP) dag_backward_kernel(struct dag_strips g, struct dag_room r) {
    await_previous();
    DYNAMIC_SHARED(real, table); /* one line per sum */
    struct dag_strip w = strip_at(g, r);
    int64_t p = 0;
    clear_shares(g, w, r);
    for (int64_t e = 0; e < w.d.edges; e++) {
        int64_t end = pairs_end(w, e, p);
        edge_state(g, w, e, p, end);
        p = end;
    }
    for (int64_t e = w.d.edges - 1; e >= 0; e--) {
        backward_edge(g, w, r, e, table);
        for (; p > 0 && w.d.to[p - 1] == e; p--) backward_pair(g, w, r, e, p - 1);
    }
}

static bool dag_scan_cuda_applicable(const struct call *c, const char **why) {
    return column_strips_fit(strips_of(c).s, why);
}

static size_t dag_scan_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    room_of(strips_of(c), pass, &s);
    return s.used;
}

static void dag_scan_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct dag_strips g = strips_of(c);
    struct dag_room r = room_of(g, PASS_FORWARD, &s);
    LAUNCH(x, dag_lists_kernel, dim3((unsigned)g.s.z.B), dim3(WARP), 0, g, r.lists);
    LAUNCH(x, dag_forward_kernel, dim3((unsigned)blocks_of(g)), dim3(WARP), 0, g, r);
    each_value(c, x, tensor_count(c->out[0]),
               outside_y{outside_of(c, g.s.z, g.a.scale, DIRECT, nullptr), r.y, 0, 1, tensor_real(c->out[0])});
}

/* Writes a gate's gradient: the sum over strips of their partial sums. */
static void put_gate(const struct call *c, const struct exec *x, int input, const real *shares, int64_t strips) {
    int64_t n = tensor_count(c->in[input]);
    if (c->din[input]) each_value(c, x, n, sum_shares{shares, n, strips, c->din[input], call_accumulates(c, input)});
}

static void dag_scan_cuda_backward(const struct call *c, const struct exec *x) {
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct dag_strips g = strips_of(c);
    struct dag_room r = room_of(g, PASS_BACKWARD, &s);
    g.dy = call_dout(c, 0);
    LAUNCH(x, dag_lists_kernel, dim3((unsigned)g.s.z.B), dim3(WARP), 0, g, r.lists);
    LAUNCH(x, dag_backward_kernel, dim3((unsigned)blocks_of(g)), dim3(WARP), column_strips_shared(g.s), g, r);
    outside_gradients(c, x, outside_of(c, g.s.z, g.a.scale, DIRECT, g.dy), DIRECT, r.dq, r.dk, g.s.strips, r.dv, 1);
    put_gate(c, x, SOURCE, r.dsource, g.s.strips);
    put_gate(c, x, MARK, r.dmark, g.s.strips);
    put_gate(c, x, TRANSITION, r.transition, g.s.strips);
}

/* Tolerance: as dag_scan_cpu. */
const struct kernel kernel_dag_scan_cuda = {
    .name = "dag_scan_cuda",
    .op = &op_dag_scan,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 512,
    .applicable = dag_scan_cuda_applicable,
    .workspace = dag_scan_cuda_workspace,
    .forward = dag_scan_cuda_forward,
    .backward = dag_scan_cuda_backward,
};

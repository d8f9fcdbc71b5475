/* grid_scan_block_cuda.cu - pLSTM on a grid as one block on CUDA: y = scale ((Q K^T) o G) V, with no matrix states.
 * pLSTM, Eq. 3.
 *
 * G[n][m] is the product of gates on the way from node m to node n, summed over all paths and directions; its diagonal
 * also has the direct gate. grid_scan_block (CPU) joins blocks of the grid to build G. Here a thread has a source m and
 * runs the recurrence of grid_scan.c with numbers as states; a warp has 32 neighbouring sources. This takes N^2
 * multiply-adds per gate, against N^2 (dk + dv) of the products. The products use tiles of 16 x 16 nodes
 * (kernels/lib/tile_product.cuh), with a thread block per row of tiles, in backward also one per column:
 *   S = Q K^T, R = W V^T, W = scale dY:   dG = S o R   dQ = (R o G) K   dK = (R o G)^T Q   dV = (S o G)^T W
 * dG goes back through the recurrence of numbers, again with a thread per source. The gates' gradients are summed over
 * the sources, first inside a warp, then over the warps by a separate kernel. */
#include "kernels/plstm/grid/grid.h"
/* With more tiles at once the kernels of the gradients spill registers on compute capability 7.5. */
#define TILES_MOST 1
#include "kernels/matrix/chunk.cuh"
#include "kernels/matrix/row_sums.cuh"

#define BLOCK_NODES_MAX 1024 /* backward keeps 11 N^2 numbers per head */
#define NODES           STATE_CHUNK
#define DIRECTIONS      4

namespace {

enum { Q, K, V, GATES, DIRECT };

struct grid_block {
    struct row_sizes z;
    struct grid_scan_attr a;
    int pk, pv;      /* dk, dv rounded up to whole tiles */
    int64_t sources; /* T rounded up to whole warps */
    const real *q, *k, *v, *gates, *direct, *dy;

    __host__ __device__ int64_t heads() const {
        return z.B * z.H;
    }
    __host__ __device__ int64_t warps() const { /* of a head's sources */
        return sources / WARP;
    }
};

struct grid_block block_of(const struct call *c) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct grid_block g = {row_sizes_of(c, a->H), *a};
    g.pk = (int)(g.z.dk + TILE_DEPTH - 1) / TILE_DEPTH * TILE_DEPTH;
    g.pv = (int)(g.z.dv + TILE_DEPTH - 1) / TILE_DEPTH * TILE_DEPTH;
    g.sources = (g.z.T + WARP - 1) / WARP * WARP;
    g.q = tensor_real(c->in[Q]);
    g.k = tensor_real(c->in[K]);
    g.v = tensor_real(c->in[V]);
    g.gates = tensor_real(c->in[GATES]);
    g.direct = tensor_real(c->in[DIRECT]);
    return g;
}

/* Arrays of numbers; a row has all sources of a head. */
struct block_room {
    real *G, *dG; /* of heads, T rows */
    real *line;   /* states between rows of the grid: of heads (backward: and directions), Y rows */
    real *l, *u;  /* backward, the states that enter a node: of heads and directions, T rows */
    real *dgates; /* partial sums of the warps */
};

struct block_room room_of(const struct grid_block &g, enum pass pass, struct scratch *s) {
    int64_t row = g.heads() * g.sources, T = g.z.T;
    bool backward = pass == PASS_BACKWARD;
    struct block_room r = {scratch_reals(s, row * T)};
    r.line = scratch_reals(s, (backward ? DIRECTIONS : 1) * row * g.a.Y);
    if (!backward) return r;
    r.dG = scratch_reals(s, row * T);
    r.l = scratch_reals(s, DIRECTIONS * row * T);
    r.u = scratch_reals(s, DIRECTIONS * row * T);
    r.dgates = scratch_reals(s, g.warps() * g.heads() * T * DIRECTIONS * GRID_PLANES);
    return r;
}

/* --- numbers on their way ----------------------------------------------------------------------------------------- */

/* The work of a thread: a head of a grid and a source `at`, which does not exist from T on. */
struct source {
    int64_t b, h, head, warp, at;
};

/* `index` is the number of the warp; the warps of a head are neighbours. */
__device__ struct source source_of(const struct grid_block &g, int64_t index) {
    struct source m;
    m.head = index / g.warps();
    m.warp = index % g.warps();
    m.at = m.warp * WARP + threadIdx.x % WARP;
    m.b = m.head / g.z.H;
    m.h = m.head % g.z.H;
    return m;
}

/* The first row, in the frame of a direction, that contains a source of the warp. Earlier rows have only zeros. */
__device__ int64_t first_row(const struct grid_block &g, const struct source &m, int direction) {
    int64_t first = m.warp * WARP, last = first + WARP < g.z.T ? first + WARP - 1 : g.z.T - 1;
    return direction & 1 ? g.a.X - 1 - last / g.a.Y : first / g.a.Y;
}

/* A node of the frame: its place in the grid, and its gates. */
struct block_node {
    int64_t n;
    const real *from;
    real gate[GRID_PLANES];
};

__device__ __forceinline__ struct block_node node_at(const struct grid_block &g, const struct source &m, int direction,
                                                     int64_t x, int64_t y) {
    struct block_node node;
    node.n = grid_node(&g.a, direction, x, y);
    node.from = g.gates + grid_gate_at(g.z.H, m.b * g.z.T + node.n, direction, m.h);
    for (int p = 0; p < GRID_PLANES; p++) node.gate[p] = node.from[p * DIRECTIONS * g.z.H];
    return node;
}

/* Computes G, a column per thread; backward also the states that enter each node, in the order of the frame. */
__device__ void reach(const struct grid_block &g, const struct source &m, const struct block_room &r) {
    int64_t P = g.sources, T = g.z.T, Y = g.a.Y;
    real *G = r.G + m.head * T * P + m.at, *line = r.line + m.head * Y * P + m.at;
    for (int64_t n = 0; n < T; n++) G[n * P] = n == m.at ? g.direct[(m.b * T + n) * g.z.H + m.h] : 0;
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        int64_t begin = first_row(g, m, direction), kept = ((m.head * DIRECTIONS + direction) * T) * P + m.at;
        for (int64_t x = begin; x < g.a.X; x++) {
            real u = 0;
            for (int64_t y = 0; y < Y; y++) {
                struct block_node node = node_at(g, m, direction, x, y);
                real l = x > begin ? line[y * P] : 0, one = node.n == m.at ? 1 : 0;
                if (r.l) {
                    r.l[kept + (x * Y + y) * P] = l;
                    r.u[kept + (x * Y + y) * P] = u;
                }
                G[node.n * P] += real_fma(node.gate[GRID_ML], l, node.gate[GRID_MU] * u);
                line[y * P] =
                    real_fma(node.gate[GRID_RL], l, real_fma(node.gate[GRID_RU], u, node.gate[GRID_SR] * one));
                u = real_fma(node.gate[GRID_DL], l, real_fma(node.gate[GRID_DU], u, node.gate[GRID_SD] * one));
            }
        }
    }
}

/* The sum over the warp's lanes of value number `lane % 8` of eight, in a fixed order. All lanes must call it. */
__device__ __forceinline__ real warp_sums(real (&x)[GRID_PLANES]) {
    int lane = (int)threadIdx.x % WARP;
    static_assert(GRID_PLANES == 8, "halved three times");
#pragma unroll
    for (int half = GRID_PLANES / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < half; i++) {
            real mine = lane & half ? x[i + half] : x[i], other = lane & half ? x[i] : x[i + half];
            x[i] = mine + __shfl_xor_sync(FULL_WARP, other, half);
        }
    real sum = x[0];
    for (int distance = GRID_PLANES; distance < WARP; distance *= 2) sum += __shfl_xor_sync(FULL_WARP, sum, distance);
    return sum;
}

/* Computes the warp's part of the gates' gradients of a direction, from dG; er, ed: gradients of Cr, Cd at a node. */
__device__ void reach_backward(const struct grid_block &g, const struct source &m, int direction,
                               const struct block_room &r) {
    int64_t P = g.sources, T = g.z.T, Y = g.a.Y, begin = first_row(g, m, direction);
    int64_t frame = m.head * DIRECTIONS + direction;
    const real *dG = r.dG + m.head * T * P + m.at, *kept_l = r.l + frame * T * P + m.at,
               *kept_u = r.u + frame * T * P + m.at;
    real *line = r.line + frame * Y * P + m.at;
    real *shares = r.dgates + m.warp * g.heads() * T * DIRECTIONS * GRID_PLANES;
    int plane = (int)threadIdx.x % WARP;
    for (int64_t x = g.a.X - 1; x >= 0; x--) {
        real ed = 0;
        for (int64_t y = Y - 1; y >= 0; y--) {
            struct block_node node = node_at(g, m, direction, x, y);
            real sum = 0;
            if (x >= begin) {
                bool own = node.n == m.at;
                real er = x + 1 < g.a.X ? line[y * P] : 0, d = m.at < T ? dG[node.n * P] : 0;
                real l = kept_l[(x * Y + y) * P], u = kept_u[(x * Y + y) * P], of[GRID_PLANES];
                of[GRID_SR] = own ? er : 0;
                of[GRID_SD] = own ? ed : 0;
                of[GRID_RL] = er * l;
                of[GRID_RU] = er * u;
                of[GRID_DL] = ed * l;
                of[GRID_DU] = ed * u;
                of[GRID_ML] = d * l;
                of[GRID_MU] = d * u;
                sum = warp_sums(of);
                line[y * P] =
                    real_fma(node.gate[GRID_RL], er, real_fma(node.gate[GRID_DL], ed, node.gate[GRID_ML] * d));
                ed = real_fma(node.gate[GRID_RU], er, real_fma(node.gate[GRID_DU], ed, node.gate[GRID_MU] * d));
            }
            if (plane < GRID_PLANES) shares[node.from - g.gates + plane * DIRECTIONS * g.z.H] = sum;
        }
    }
}

/* --- products of nodes -------------------------------------------------------------------------------------------- */

/* In shared memory: rows of 16 nodes n and of 16 nodes m. S, R: [n][m]. A, B: the sums that a kernel computes. */
struct pair_room {
    struct matrix Q, W, K, V, S, R, A, B;
};

enum pair_sums { OF_Y, OF_DQ, OF_DK_DV };

__host__ __device__ inline struct pair_room take_pairs(const struct grid_block &g, enum pair_sums what,
                                                       struct cursor *c) {
    struct pair_room r = {};
    r.Q = c->take(NODES, g.pk);
    r.K = c->take(NODES, g.pk);
    r.V = c->take(NODES, g.pv);
    r.S = c->take(NODES, NODES);
    r.A = c->take(NODES, what == OF_Y ? g.pv : g.pk);
    if (what == OF_Y) return r;
    r.W = c->take(NODES, g.pv);
    r.R = c->take(NODES, NODES);
    if (what == OF_DK_DV) r.B = c->take(NODES, g.pv);
    return r;
}

inline size_t pairs_shared(const struct grid_block &g, enum pair_sums what) {
    struct cursor c = {nullptr, 0};
    take_pairs(g, what, &c);
    return (size_t)c.used * sizeof(real);
}

/* A thread block's head and its 16 nodes from `first` on. */
struct block_place {
    int64_t head, first;

    __device__ int64_t row(const struct grid_block &g, int64_t n) const { /* of (B,T,H) */
        return (head / g.z.H * g.z.T + n) * g.z.H + head % g.z.H;
    }
};

__device__ inline struct block_place place_here(const struct grid_block &g) {
    int64_t tiles = (g.z.T + NODES - 1) / NODES;
    return {blockIdx.x / tiles, blockIdx.x % tiles * NODES};
}

__device__ inline int nodes_from(const struct grid_block &g, int64_t first) {
    return g.z.T - first < NODES ? (int)(g.z.T - first) : NODES;
}

/* to = 16 rows of a tensor of heads, from node `first` on, zeros after the last; from NULL: all zeros. */
__device__ inline void load_nodes(const struct grid_block &g, const struct block_place &at, int64_t first,
                                  const real *from, int64_t width, int padded, struct matrix to, real factor = 1) {
    load(to, NODES, padded, (int)width,
         spaced_rows{from ? from + at.row(g, first) * width : nullptr, g.z.H * width, nodes_from(g, first)}, factor);
}

/* Calls f(n, m, place in G) for the pairs of nodes n from `rows` and m from `columns` on; place < 0: no such node n. */
template <class F>
__device__ inline void each_pair(const struct grid_block &g, const struct block_place &at, int64_t rows,
                                 int64_t columns, F f) {
    for (int e = (int)threadIdx.x; e < NODES * NODES; e += CHUNK_THREADS) {
        int64_t n = rows + e / NODES, m = columns + e % NODES;
        f(e / NODES, e % NODES, n < g.z.T ? (at.head * g.z.T + n) * g.sources + m : -1);
    }
}

/* to += a b, where a(i,k) is 16 x 16 and b has `columns` columns. */
template <class A> __device__ inline void add_rows(int columns, A a, struct matrix b, struct matrix to) {
    each_tile(NODES, columns, [&](struct tile tile) {
        struct tile_sums sums = {};
        tile_add(
            tile, NODES, a, [&](int k, int j) { return b(k, j); }, &sums);
        tile_store(tile, sums, [&](int i, int j, real x) { to(i, j) += x; });
    });
}

/* Calls put(row of the tensor, column, sum) for all sums of the block's nodes. */
template <class Put>
__device__ inline void each_sum(const struct grid_block &g, const struct block_place &at, int64_t width,
                                struct matrix sums, Put put) {
    int count = nodes_from(g, at.first), columns = (int)width;
    for (int e = (int)threadIdx.x; e < count * columns; e += CHUNK_THREADS)
        put(at.row(g, at.first + e / columns) * width + e % columns, sums(e / columns, e % columns));
}

/* The places of the gradients; NULL: not wanted. */
struct block_gradients {
    real *q, *k, *v, *direct;
    bool add_q, add_k, add_v, add_direct;
};

} // namespace

static __global__ void __launch_bounds__(CHUNK_THREADS) grid_reach_kernel(struct grid_block g, struct block_room r) {
    await_previous();
    int64_t index = cuda_index() / WARP;
    if (index < g.heads() * g.warps()) reach(g, source_of(g, index), r);
}

static __global__ void __launch_bounds__(CHUNK_THREADS)
    grid_reach_backward_kernel(struct grid_block g, struct block_room r) {
    await_previous();
    int64_t index = cuda_index() / WARP;
    if (index < DIRECTIONS * g.heads() * g.warps())
        reach_backward(g, source_of(g, index / DIRECTIONS), (int)(index % DIRECTIONS), r);
}

static __global__ void __launch_bounds__(CHUNK_THREADS)
    grid_block_forward_kernel(struct grid_block g, struct block_room r, real *y) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct pair_room p = take_pairs(g, OF_Y, &cursor);
    struct block_place at = place_here(g);
    load_nodes(g, at, at.first, g.q, g.z.dk, g.pk, p.Q);
    load_nodes(g, at, at.first, nullptr, g.z.dv, g.pv, p.A);
    for (int64_t m = 0; m < g.z.T; m += NODES) {
        load_nodes(g, at, m, g.k, g.z.dk, g.pk, p.K);
        load_nodes(g, at, m, g.v, g.z.dv, g.pv, p.V);
        __syncthreads();
        scores(g.pk, p.Q, p.K, p.S);
        __syncthreads();
        each_pair(g, at, at.first, m, [&](int i, int j, int64_t place) { p.S(i, j) *= place < 0 ? 0 : r.G[place]; });
        __syncthreads();
        add_rows(
            g.pv, [&](int i, int k) { return p.S(i, k); }, p.V, p.A);
        __syncthreads();
    }
    each_sum(g, at, g.z.dv, p.A, [&](int64_t i, real x) { y[i] = (real)g.a.scale * x; });
}

/* Computes dG, dq and the gradient of the direct gate, which is the diagonal of dG. */
static __global__ void __launch_bounds__(CHUNK_THREADS)
    grid_block_rows_kernel(struct grid_block g, struct block_room r, struct block_gradients d) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct pair_room p = take_pairs(g, OF_DQ, &cursor);
    struct block_place at = place_here(g);
    load_nodes(g, at, at.first, g.q, g.z.dk, g.pk, p.Q);
    load_nodes(g, at, at.first, g.dy, g.z.dv, g.pv, p.W, (real)g.a.scale);
    load_nodes(g, at, at.first, nullptr, g.z.dk, g.pk, p.A);
    for (int64_t m = 0; m < g.z.T; m += NODES) {
        load_nodes(g, at, m, g.k, g.z.dk, g.pk, p.K);
        load_nodes(g, at, m, g.v, g.z.dv, g.pv, p.V);
        __syncthreads();
        scores(g.pk, p.Q, p.K, p.S);
        scores(g.pv, p.W, p.V, p.R);
        __syncthreads();
        each_pair(g, at, at.first, m, [&](int i, int j, int64_t place) {
            if (place < 0) return;
            real product = p.S(i, j) * p.R(i, j);
            r.dG[place] = product;
            p.R(i, j) *= r.G[place];
            if (at.first + i == m + j && d.direct) put(d.direct + at.row(g, m + j), d.add_direct, product);
        });
        __syncthreads();
        add_rows(
            g.pk, [&](int i, int k) { return p.R(i, k); }, p.K, p.A);
        __syncthreads();
    }
    if (d.q) each_sum(g, at, g.z.dk, p.A, [&](int64_t i, real x) { put(d.q + i, d.add_q, x); });
}

static __global__ void __launch_bounds__(CHUNK_THREADS)
    grid_block_columns_kernel(struct grid_block g, struct block_room r, struct block_gradients d) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct cursor cursor = {shared, 0};
    struct pair_room p = take_pairs(g, OF_DK_DV, &cursor);
    struct block_place at = place_here(g);
    load_nodes(g, at, at.first, g.k, g.z.dk, g.pk, p.K);
    load_nodes(g, at, at.first, g.v, g.z.dv, g.pv, p.V);
    load_nodes(g, at, at.first, nullptr, g.z.dk, g.pk, p.A);
    load_nodes(g, at, at.first, nullptr, g.z.dv, g.pv, p.B);
    for (int64_t n = 0; n < g.z.T; n += NODES) {
        load_nodes(g, at, n, g.q, g.z.dk, g.pk, p.Q);
        load_nodes(g, at, n, g.dy, g.z.dv, g.pv, p.W, (real)g.a.scale);
        __syncthreads();
        scores(g.pk, p.Q, p.K, p.S);
        scores(g.pv, p.W, p.V, p.R);
        __syncthreads();
        each_pair(g, at, n, at.first, [&](int i, int j, int64_t place) {
            real G = place < 0 ? 0 : r.G[place];
            p.S(i, j) *= G;
            p.R(i, j) *= G;
        });
        __syncthreads();
        add_rows(
            g.pk, [&](int m, int k) { return p.R(k, m); }, p.Q, p.A);
        add_rows(
            g.pv, [&](int m, int k) { return p.S(k, m); }, p.W, p.B);
        __syncthreads();
    }
    if (d.k) each_sum(g, at, g.z.dk, p.A, [&](int64_t i, real x) { put(d.k + i, d.add_k, x); });
    if (d.v) each_sum(g, at, g.z.dv, p.B, [&](int64_t i, real x) { put(d.v + i, d.add_v, x); });
}

static bool grid_scan_block_cuda_applicable(const struct call *c, const char **why) {
    struct grid_block g = block_of(c);
    *why = "the grid has more than 1024 nodes";
    if (g.z.T > BLOCK_NODES_MAX) return false;
    *why = "keys and values of 32 nodes are larger than a block's shared memory";
    return pairs_shared(g, OF_DK_DV) <= CUDA_SHARED_UNASKED;
}

/* A thread walks its 4 N nodes one after the other, each with a latency of the L2 cache. By estimate (not measured) the
 * wave of grid_scan_cuda is faster for more nodes. */
#define BLOCK_NODES_PREFERRED 64

/* A guess that no device has confirmed: G has at most half as many numbers as the head's states in a direction, and
 * products have no more padding than numbers. */
static bool grid_scan_block_cuda_preferred(const struct call *c) {
    struct grid_block g = block_of(c);
    return g.z.T <= BLOCK_NODES_PREFERRED && 2 * g.z.T <= g.z.dk * g.z.dv && 2 * g.z.dk > TILE_DEPTH &&
           2 * g.z.dv > TILE_COLUMNS;
}

static size_t grid_scan_block_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    room_of(block_of(c), pass, &s);
    return s.used;
}

/* Blocks of a kernel that has `times` warps for each warp of sources. */
static dim3 blocks_of_sources(const struct grid_block &g, int times) {
    return cuda_blocks(times * g.heads() * g.sources, CHUNK_THREADS);
}

static dim3 blocks_of_nodes(const struct grid_block &g) {
    return dim3((unsigned)(g.heads() * ((g.z.T + NODES - 1) / NODES)));
}

static void grid_scan_block_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct grid_block g = block_of(c);
    struct block_room r = room_of(g, PASS_FORWARD, &s);
    LAUNCH(x, grid_reach_kernel, blocks_of_sources(g, 1), dim3(CHUNK_THREADS), 0, g, r);
    LAUNCH(x, grid_block_forward_kernel, blocks_of_nodes(g), dim3(CHUNK_THREADS), pairs_shared(g, OF_Y), g, r,
           tensor_real(c->out[0]));
}

static void grid_scan_block_cuda_backward(const struct call *c, const struct exec *x) {
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct grid_block g = block_of(c);
    struct block_room r = room_of(g, PASS_BACKWARD, &s);
    struct block_gradients d = {c->din[Q],
                                c->din[K],
                                c->din[V],
                                c->din[DIRECT],
                                call_accumulates(c, Q),
                                call_accumulates(c, K),
                                call_accumulates(c, V),
                                call_accumulates(c, DIRECT)};
    int64_t gates = tensor_count(c->in[GATES]);
    g.dy = call_dout(c, 0);
    LAUNCH(x, grid_reach_kernel, blocks_of_sources(g, 1), dim3(CHUNK_THREADS), 0, g, r);
    LAUNCH(x, grid_block_rows_kernel, blocks_of_nodes(g), dim3(CHUNK_THREADS), pairs_shared(g, OF_DQ), g, r, d);
    if (d.k || d.v)
        LAUNCH(x, grid_block_columns_kernel, blocks_of_nodes(g), dim3(CHUNK_THREADS), pairs_shared(g, OF_DK_DV), g, r,
               d);
    if (!c->din[GATES]) return;
    LAUNCH(x, grid_reach_backward_kernel, blocks_of_sources(g, DIRECTIONS), dim3(CHUNK_THREADS), 0, g, r);
    each_value(c, x, gates, sum_shares{r.dgates, gates, g.warps(), c->din[GATES], call_accumulates(c, GATES)});
}

/* Tolerance: as grid_scan_cpu, for equal products of gates in another order; products by tensor cores are as exact as
 * in fp32 (tile_product.cuh). */
const struct kernel kernel_grid_scan_block_cuda = {
    .name = "grid_scan_block_cuda",
    .op = &op_grid_scan,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 512,
    .applicable = grid_scan_block_cuda_applicable,
    .preferred = grid_scan_block_cuda_preferred,
    .workspace = grid_scan_block_cuda_workspace,
    .forward = grid_scan_block_cuda_forward,
    .backward = grid_scan_block_cuda_backward,
};

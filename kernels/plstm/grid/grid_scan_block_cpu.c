/* grid_scan_block_cpu.c - pLSTM on a grid as one block: y = ((Q K^T) o G + diag D) V, with no matrix states. A part is
 * one head of one grid. pLSTM, App. D.3, Eq. 16 to 24.
 *
 * G[n][n'] is the product of gates on the way from node n' to node n, summed over all paths and directions. It is built
 * level by level from blocks of the grid. The matrices of a block map numbers that enter it on its left or top edges
 * (F), or that start at its nodes (S), to its outputs:
 *   F ((m + n) x m) rows: its m edges out (right, bottom), reads of its n nodes; columns: its m edges in (left, top)
 *   S (m x n)       rows: its edges out; columns: its nodes
 * Two neighbours A, B are joined along the edges out of A that lead into B. The paper joins four children at once;
 * halving one axis at a time gives the same matrices and works for any X x Y:
 *   from A to B: F_B[.,in] (F_A | S_A)[out,.]; its part from nodes to reads is a rectangle of G.
 * Blocks of up to LEAF_SIDE nodes per side (leaves) are walked node by node, with numbers instead of matrices as states
 * and all sources and edges in side by side in vector lanes, because joins of such small blocks would be slow.
 * Backward runs the same products in reverse from dG = (W V^T) o (Q K^T), W = scale dY. The nodes of each block are
 * contiguous. Work per head is of order N^2 (dk + dv), against N dk dv of the recurrence. */
#include "kernels/lib/gemm.h"
#include "kernels/lib/scratch.h"
#include "kernels/plstm/grid/grid_tile.h"

#define BLOCK_NODES_MAX       4096 /* G has N^2 elements */
#define BLOCK_NODES_PREFERRED 1024
#define GEMM_MIN              8192 /* multiply-adds; for fewer, a BLAS call costs more than loops */
#define LEAF_SIDE             16

/* A block of the grid. Children come before their parent. */
struct block {
    int32_t nx, ny, first; /* size; place of its first node */
    int32_t axis;          /* the halved axis: 0 x, 1 y, -1: a leaf */
    int32_t lower, upper;  /* children: blocks of the table; lower of a leaf: its first node in the grid */
    int32_t edges;         /* m = nx + ny; 0 for the whole grid, which nothing enters or leaves */
    int64_t F, S;          /* their offsets, in reals, from the first block's data */
};

/* Division of the grid: the same for all heads and directions. */
struct plan {
    struct grid_sizes z;
    int64_t blocks;
    struct scratch data; /* measures F and S of all blocks */
    struct block *block; /* [2N - 1] at most */
    int32_t *place;      /* [N]: the place of node n in the order of the blocks */
};

static int64_t nodes_of(const struct block *b) {
    return (int64_t)b->nx * b->ny;
}

/* --- cutting the grid --------------------------------------------------------------------------------------------- */

/* Adds the block of nx x ny nodes from (x, y), whose places start at `first`, after its children. Returns its index. */
static int32_t add_block(struct plan *p, int64_t x, int64_t y, int64_t nx, int64_t ny, int64_t first) {
    struct block b = {(int32_t)nx, (int32_t)ny, (int32_t)first, -1, -1, -1, 0, 0, 0};
    if (nx * ny < p->z.N) b.edges = (int32_t)(nx + ny);
    if (nx <= LEAF_SIDE && ny <= LEAF_SIDE) {
        b.lower = (int32_t)(x * p->z.Y + y);
        for (int64_t n = 0; n < nx * ny; n++) p->place[b.lower + n / ny * p->z.Y + n % ny] = (int32_t)(first + n);
    } else if (nx >= ny) {
        int64_t half = nx / 2;
        b.axis = 0;
        b.lower = add_block(p, x, y, half, ny, first);
        b.upper = add_block(p, x + half, y, nx - half, ny, first + half * ny);
    } else {
        int64_t half = ny / 2;
        b.axis = 1;
        b.lower = add_block(p, x, y, nx, half, first);
        b.upper = add_block(p, x, y + half, nx, ny - half, first + half * nx);
    }
    b.F = (int64_t)(p->data.used / sizeof(real));
    scratch_reals(&p->data, b.edges * (b.edges + nodes_of(&b)));
    b.S = (int64_t)(p->data.used / sizeof(real));
    scratch_reals(&p->data, b.edges * nodes_of(&b));
    p->block[p->blocks] = b;
    return (int32_t)p->blocks++;
}

/* Takes F and S of a block's children, then of the block, which has `edges` edges, as in add_block. Returns the
 * first. */
static real *take_blocks(int64_t nx, int64_t ny, int64_t edges, struct scratch *s) {
    int64_t half = nx >= ny ? nx / 2 : ny / 2;
    bool leaf = nx <= LEAF_SIDE && ny <= LEAF_SIDE;
    real *first = NULL;
    if (!leaf && nx >= ny) {
        first = take_blocks(half, ny, half + ny, s);
        take_blocks(nx - half, ny, nx - half + ny, s);
    } else if (!leaf) {
        first = take_blocks(nx, half, nx + half, s);
        take_blocks(nx, ny - half, nx + ny - half, s);
    }
    real *own = scratch_reals(s, edges * (edges + nx * ny));
    scratch_reals(s, edges * nx * ny);
    return leaf ? own : first;
}

static struct plan plan_of(const struct call *c, struct scratch *s) {
    struct grid_sizes z = grid_sizes_of(c);
    struct plan p = {.z = z, .data = {.guards = c->guards}};
    p.block = scratch_bytes(s, (size_t)(2 * z.N - 1) * sizeof(struct block));
    p.place = scratch_i32(s, z.N);
    return p;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* A matrix or a part of one: rows ld apart. */
struct matrix {
    real *at;
    int64_t ld;
};

static struct matrix part_of(struct matrix a, int64_t row, int64_t column) {
    return (struct matrix){a.at + row * a.ld + column, a.ld};
}

/* C (m x n) += A (m x k) B (k x n) */
static void add_product(int64_t m, int64_t n, int64_t k, struct matrix A, struct matrix B, struct matrix C) {
    if (m * n * k >= GEMM_MIN) {
        real_gemm(false, false, m, n, k, 1, A.at, A.ld, B.at, B.ld, true, C.at, C.ld);
        return;
    }
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; j < k; j++) add_scaled(n, A.at[r * A.ld + j], B.at + j * B.ld, C.at + r * C.ld);
}

/* The gradients of add_product: dA += dC B^T, dB += A^T dC. */
static void add_product_backward(int64_t m, int64_t n, int64_t k, struct matrix A, struct matrix B, struct matrix dC,
                                 struct matrix dA, struct matrix dB) {
    if (m * n * k >= GEMM_MIN) {
        real_gemm(false, true, m, k, n, 1, dC.at, dC.ld, B.at, B.ld, true, dA.at, dA.ld);
        real_gemm(true, false, k, n, m, 1, A.at, A.ld, dC.at, dC.ld, true, dB.at, dB.ld);
        return;
    }
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; j < k; j++) {
            dA.at[r * dA.ld + j] += dot_product(n, dC.at + r * dC.ld, B.at + j * B.ld);
            add_scaled(n, A.at[r * A.ld + j], dC.at + r * dC.ld, dB.at + j * dB.ld);
        }
}

static void copy_matrix(int64_t m, int64_t n, struct matrix from, struct matrix to) {
    for (int64_t r = 0; r < m; r++)
        for (int64_t i = 0; i < n; i++) to.at[r * to.ld + i] = from.at[r * from.ld + i];
}

/* --- joining blocks ----------------------------------------------------------------------------------------------- */

/* Values or gradients of all blocks and of G. */
struct level_data {
    real *blocks, *G;
};

static struct matrix F_of(const struct block *b, struct level_data d) {
    return (struct matrix){d.blocks + b->F, b->edges};
}

static struct matrix S_of(const struct block *b, struct level_data d) {
    return (struct matrix){d.blocks + b->S, nodes_of(b)};
}

static void clear_block(const struct block *b, struct level_data d) {
    memset(F_of(b, d).at, 0, (size_t)(b->edges * (b->edges + nodes_of(b))) * sizeof(real));
    memset(S_of(b, d).at, 0, (size_t)(b->edges * nodes_of(b)) * sizeof(real));
}

/* Neighbouring edges, reads or nodes of a child: where they start in the child and in its parent, and their number. */
struct segment {
    int64_t from, to, n;
};

/* A child in its parent, cut into segments. Rows: edges out, then reads; columns: edges in. */
struct child {
    const struct block *b;
    struct segment row[3], column[2];
};

static struct child child_of(const struct block *parent, const struct block *b) {
    bool upper = b->first != parent->first;
    int64_t shift_x = upper && parent->axis == 0 ? parent->nx - b->nx : 0;
    int64_t shift_y = upper && parent->axis == 1 ? parent->ny - b->ny : 0;
    struct segment side = {0, shift_y, b->ny}, end = {b->ny, parent->ny + shift_x, b->nx};
    struct segment reads = {b->edges, parent->edges + b->first - parent->first, nodes_of(b)};
    return (struct child){b, {side, end, reads}, {side, end}};
}

/* The children in the order in which the direction meets them. */
static void children_of(const struct plan *p, const struct block *parent, int direction, struct child *a,
                        struct child *b) {
    bool back = direction >> parent->axis & 1;
    *a = child_of(parent, &p->block[back ? parent->upper : parent->lower]);
    *b = child_of(parent, &p->block[back ? parent->lower : parent->upper]);
}

/* Copies F and S of a child to its parent, without the segments `row` and `column` of edges between the children (-1:
 * none). Backward: adds the parent's gradient to the child's. */
static void pass_on(const struct block *parent, struct child c, int row, int column, struct level_data d,
                    bool backward) {
    struct matrix F = F_of(c.b, d), S = S_of(c.b, d), parent_F = F_of(parent, d), parent_S = S_of(parent, d);
    for (int i = 0; i < 3; i++) {
        struct segment r = c.row[i];
        for (int j = 0; j < 2; j++) {
            struct matrix own = part_of(F, r.from, c.column[j].from), its = part_of(parent_F, r.to, c.column[j].to);
            if (i != row && j != column) copy_matrix(r.n, c.column[j].n, backward ? its : own, backward ? own : its);
        }
        struct matrix own = part_of(S, r.from, 0), its = part_of(parent_S, r.to, c.b->first - parent->first);
        if (i != row && i < 2) copy_matrix(r.n, nodes_of(c.b), backward ? its : own, backward ? own : its);
    }
}

/* The rectangle of G from nodes of a to reads at nodes of b. */
static struct matrix G_between(const struct plan *p, const struct block *b, const struct block *a, real *G) {
    return (struct matrix){G + b->first * p->z.N + a->first, p->z.N};
}

/* Joins the children, first a, then b, into the parent. */
static void join(const struct plan *p, const struct block *parent, int direction, struct level_data d) {
    struct child a, b;
    children_of(p, parent, direction, &a, &b);
    int way = parent->axis; /* edges between the children: sides where x is halved, ends where y is */
    int64_t k = a.row[way].n;
    struct matrix in = part_of(F_of(b.b, d), 0, b.column[way].from);
    struct matrix out = part_of(F_of(a.b, d), a.row[way].from, 0), out_S = part_of(S_of(a.b, d), a.row[way].from, 0);
    add_product(nodes_of(b.b), nodes_of(a.b), k, part_of(in, b.b->edges, 0), out_S, G_between(p, b.b, a.b, d.G));
    if (parent->edges == 0) return;
    struct matrix F = F_of(parent, d), S = S_of(parent, d);
    clear_block(parent, d);
    pass_on(parent, a, way, -1, d, false);
    pass_on(parent, b, -1, way, d, false);
    for (int i = 0; i < 3; i++) {
        struct segment r = b.row[i];
        for (int j = 0; j < 2; j++)
            add_product(r.n, a.column[j].n, k, part_of(in, r.from, 0), part_of(out, 0, a.column[j].from),
                        part_of(F, r.to, a.column[j].to));
        if (i < 2)
            add_product(r.n, nodes_of(a.b), k, part_of(in, r.from, 0), out_S,
                        part_of(S, r.to, a.b->first - parent->first));
    }
}

static void join_backward(const struct plan *p, const struct block *parent, int direction, struct level_data d,
                          struct level_data g) {
    struct child a, b;
    children_of(p, parent, direction, &a, &b);
    int way = parent->axis;
    int64_t k = a.row[way].n, in_at = b.column[way].from, out_at = a.row[way].from;
    struct matrix in = part_of(F_of(b.b, d), 0, in_at), d_in = part_of(F_of(b.b, g), 0, in_at);
    struct matrix out = part_of(F_of(a.b, d), out_at, 0), d_out = part_of(F_of(a.b, g), out_at, 0);
    struct matrix out_S = part_of(S_of(a.b, d), out_at, 0), d_out_S = part_of(S_of(a.b, g), out_at, 0);
    int64_t reads = b.b->edges;
    add_product_backward(nodes_of(b.b), nodes_of(a.b), k, part_of(in, reads, 0), out_S, G_between(p, b.b, a.b, g.G),
                         part_of(d_in, reads, 0), d_out_S);
    if (parent->edges == 0) return;
    pass_on(parent, a, way, -1, g, true);
    pass_on(parent, b, -1, way, g, true);
    for (int i = 0; i < 3; i++) {
        struct segment r = b.row[i];
        for (int j = 0; j < 2; j++)
            add_product_backward(r.n, a.column[j].n, k, part_of(in, r.from, 0), part_of(out, 0, a.column[j].from),
                                 part_of(F_of(parent, g), r.to, a.column[j].to), part_of(d_in, r.from, 0),
                                 part_of(d_out, 0, a.column[j].from));
        if (i < 2)
            add_product_backward(r.n, nodes_of(a.b), k, part_of(in, r.from, 0), out_S,
                                 part_of(S_of(parent, g), r.to, a.b->first - parent->first), part_of(d_in, r.from, 0),
                                 d_out_S);
    }
}

/* --- leaves ------------------------------------------------------------------------------------------------------- */

/* A row has the factors with which the leaf's nodes, then its edges in, enter a state or a read. Row x * ny + y of l
 * and u is for the states that enter node (x, y) of the leaf. */
struct leaf_rows {
    real *l, *u, *er, *ed, *read; /* [nodes] twice, [ny], [1], [1] */
    real *overflow;               /* [1], for gradients that leave the leaf and are not used */
};

/* A leaf in one direction, its rows `width` wide. */
struct leaf {
    const struct call *c;
    const struct plan *p;
    const struct block *block;
    int64_t b, h, nodes, width;
    int direction;
    struct leaf_rows row;
};

static int64_t leaf_side(int64_t n) {
    return n < LEAF_SIDE ? n : LEAF_SIDE;
}

/* Takes rows for the largest leaf. */
static struct leaf_rows take_leaf(struct grid_sizes z, struct scratch *s) {
    int64_t nx = leaf_side(z.X), ny = leaf_side(z.Y), width = whole_lanes(nx * ny + nx + ny);
    struct leaf_rows r = {.l = scratch_reals(s, nx * ny * width)};
    r.u = scratch_reals(s, nx * ny * width);
    r.er = scratch_reals(s, ny * width);
    r.ed = scratch_reals(s, width);
    r.read = scratch_reals(s, width);
    r.overflow = scratch_reals(s, width);
    return r;
}

static struct leaf leaf_of(const struct call *c, const struct plan *p, const struct block *block, int64_t b, int64_t h,
                           int direction, struct leaf_rows row) {
    int64_t nodes = nodes_of(block);
    return (struct leaf){c, p, block, b, h, nodes, whole_lanes(nodes + block->edges), direction, row};
}

/* Index of step i of n along an axis, which the direction may flip. */
static int64_t step_at(bool flipped, int64_t n, int64_t i) {
    return flipped ? n - 1 - i : i;
}

static int64_t leaf_row(const struct leaf *f, int64_t x, int64_t y) {
    return f->p->z.N * f->b + f->block->lower + x * f->p->z.Y + y;
}

static void leaf_gates(const struct leaf *f, int64_t x, int64_t y, real *gate) {
    int64_t H = f->p->z.H;
    const real *gates = tensor_real(f->c->in[3]) + grid_gate_at(H, leaf_row(f, x, y), f->direction, f->h);
    for (int p = 0; p < GRID_PLANES; p++) gate[p] = gates[p * 4 * H];
}

/* to += from; one is a row [nodes, edges], the other a row of F, S or G. */
static void add_row(int64_t n, const real *from, real *to) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* Computes a node's read, and (r, d) from (l, u); `own` is its column. */
static void leaf_node(const struct leaf *f, const real *gate, int64_t own, const real *l, const real *u, real *r,
                      real *d) {
    lanes rl = all_lanes(gate[GRID_RL]), ru = all_lanes(gate[GRID_RU]), ml = all_lanes(gate[GRID_ML]);
    lanes dl = all_lanes(gate[GRID_DL]), du = all_lanes(gate[GRID_DU]), mu = all_lanes(gate[GRID_MU]);
    for (int64_t i = 0; i < f->width; i += LANES) {
        lanes left = lanes_at(l + i), top = lanes_at(u + i);
        lanes_to(f->row.read + i, lanes_fma(ml, left, mu * top));
        lanes_to(r + i, lanes_fma(rl, left, ru * top));
        lanes_to(d + i, lanes_fma(dl, left, du * top));
    }
    r[own] += gate[GRID_SR];
    d[own] += gate[GRID_SD];
}

/* Computes l and u of all nodes of the leaf and, unless `again`, its F, its S and its part of G. */
static void leaf_forward(const struct leaf *f, struct level_data d, bool again) {
    const struct block *t = f->block;
    int64_t N = f->p->z.N, n = f->nodes, m = t->edges, W = f->width;
    bool flip_x = f->direction & 1, flip_y = f->direction >> 1 & 1;
    struct matrix F = F_of(t, d), S = S_of(t, d);
    memset(f->row.l, 0, (size_t)(n * W) * sizeof(real));
    memset(f->row.u, 0, (size_t)(n * W) * sizeof(real));
    for (int64_t y = 0; y < t->ny && m; y++) f->row.l[(step_at(flip_x, t->nx, 0) * t->ny + y) * W + n + y] = 1;
    for (int64_t x = 0; x < t->nx && m; x++) f->row.u[(x * t->ny + step_at(flip_y, t->ny, 0)) * W + n + t->ny + x] = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t step_x = i / t->ny, step_y = i % t->ny;
        int64_t x = step_at(flip_x, t->nx, step_x), y = step_at(flip_y, t->ny, step_y), at = x * t->ny + y;
        bool out_r = step_x + 1 == t->nx, out_d = step_y + 1 == t->ny;
        real gate[GRID_PLANES], *r = f->row.overflow, *down = f->row.ed;
        if (!out_r) r = f->row.l + (at + (flip_x ? -t->ny : t->ny)) * W;
        if (!out_d) down = f->row.u + (at + (flip_y ? -1 : 1)) * W;
        leaf_gates(f, x, y, gate);
        leaf_node(f, gate, at, f->row.l + at * W, f->row.u + at * W, r, down);
        if (again) continue;
        add_row(n, f->row.read, d.G + (t->first + at) * N + t->first);
        if (m) memcpy(F.at + (m + at) * m, f->row.read + n, (size_t)m * sizeof(real));
        if (m && out_r) {
            memcpy(F.at + y * m, r + n, (size_t)m * sizeof(real));
            memcpy(S.at + y * n, r, (size_t)n * sizeof(real));
        }
        if (m && out_d) {
            memcpy(F.at + (t->ny + x) * m, down + n, (size_t)m * sizeof(real));
            memcpy(S.at + (t->ny + x) * n, down, (size_t)n * sizeof(real));
        }
    }
}

/* Builds the gradient of a row [nodes, edges] from its parts in S or G (nodes) and in F (edges). */
static void gather_row(const struct leaf *f, const real *nodes, const real *edges, real *to) {
    int64_t n = f->nodes, m = f->block->edges;
    memset(to, 0, (size_t)f->width * sizeof(real));
    if (nodes) memcpy(to, nodes, (size_t)n * sizeof(real));
    if (edges) memcpy(to + n, edges, (size_t)m * sizeof(real));
}

/* Adjoint of leaf_node: computes gradients of the gates, and turns (er, ed) into gradients of (l, u), in place. */
static void leaf_node_backward(const struct leaf *f, const real *gate, int64_t own, const real *l, const real *u,
                               real *er, real *ed, real *dgate) {
    lanes rl = all_lanes(gate[GRID_RL]), ru = all_lanes(gate[GRID_RU]), ml = all_lanes(gate[GRID_ML]);
    lanes dl = all_lanes(gate[GRID_DL]), du = all_lanes(gate[GRID_DU]), mu = all_lanes(gate[GRID_MU]);
    lanes grl = {0}, gru = {0}, gdl = {0}, gdu = {0}, gml = {0}, gmu = {0};
    dgate[GRID_SR] = er[own];
    dgate[GRID_SD] = ed[own];
    for (int64_t i = 0; i < f->width; i += LANES) {
        lanes left = lanes_at(l + i), top = lanes_at(u + i), g = lanes_at(f->row.read + i);
        lanes r = lanes_at(er + i), d = lanes_at(ed + i);
        grl = lanes_fma(r, left, grl);
        gru = lanes_fma(r, top, gru);
        gdl = lanes_fma(d, left, gdl);
        gdu = lanes_fma(d, top, gdu);
        gml = lanes_fma(g, left, gml);
        gmu = lanes_fma(g, top, gmu);
        lanes_to(er + i, lanes_fma(rl, r, lanes_fma(dl, d, ml * g)));
        lanes_to(ed + i, lanes_fma(ru, r, lanes_fma(du, d, mu * g)));
    }
    dgate[GRID_RL] = sum_of(grl);
    dgate[GRID_RU] = sum_of(gru);
    dgate[GRID_DL] = sum_of(gdl);
    dgate[GRID_DU] = sum_of(gdu);
    dgate[GRID_ML] = sum_of(gml);
    dgate[GRID_MU] = sum_of(gmu);
}

/* Gradients of the gates from the gradients of F, S and G. */
static void leaf_backward(const struct leaf *f, struct level_data g) {
    const struct block *t = f->block;
    int64_t N = f->p->z.N, n = f->nodes, m = t->edges, W = f->width, H = f->p->z.H;
    bool flip_x = f->direction & 1, flip_y = f->direction >> 1 & 1;
    struct matrix F = F_of(t, g), S = S_of(t, g);
    for (int64_t y = 0; y < t->ny; y++)
        gather_row(f, m ? S.at + y * n : NULL, m ? F.at + y * m : NULL, f->row.er + y * W);
    for (int64_t i = n - 1; i >= 0; i--) {
        int64_t x = step_at(flip_x, t->nx, i / t->ny), y = step_at(flip_y, t->ny, i % t->ny), at = x * t->ny + y;
        int64_t out = t->ny + x;
        if (i % t->ny == t->ny - 1) gather_row(f, m ? S.at + out * n : NULL, m ? F.at + out * m : NULL, f->row.ed);
        gather_row(f, g.G + (t->first + at) * N + t->first, m ? F.at + (m + at) * m : NULL, f->row.read);
        real gate[GRID_PLANES], dgate[GRID_PLANES];
        leaf_gates(f, x, y, gate);
        leaf_node_backward(f, gate, at, f->row.l + at * W, f->row.u + at * W, f->row.er + y * W, f->row.ed, dgate);
        real *to = f->c->din[3] + grid_gate_at(H, leaf_row(f, x, y), f->direction, f->h);
        for (int p = 0; p < GRID_PLANES; p++) put(to + p * 4 * H, call_accumulates(f->c, 3), dgate[p]);
    }
}

/* --- all blocks --------------------------------------------------------------------------------------------------- */

/* Computes F and S of all blocks of one direction, and adds the direction's part of G. */
static void build(const struct call *c, const struct plan *p, int64_t b, int64_t h, int direction, struct level_data d,
                  struct leaf_rows rows) {
    for (int64_t i = 0; i < p->blocks; i++) {
        if (p->block[i].axis >= 0) {
            join(p, &p->block[i], direction, d);
            continue;
        }
        struct leaf leaf = leaf_of(c, p, &p->block[i], b, h, direction, rows);
        leaf_forward(&leaf, d, false);
    }
}

/* Gradients of the gates of one direction from dG. */
static void build_backward(const struct call *c, const struct plan *p, int64_t b, int64_t h, int direction,
                           struct level_data d, struct level_data g, struct leaf_rows rows) {
    for (int64_t i = 0; i < p->blocks; i++) clear_block(&p->block[i], g);
    for (int64_t i = p->blocks - 1; i >= 0; i--) {
        if (p->block[i].axis >= 0) {
            join_backward(p, &p->block[i], direction, d, g);
            continue;
        }
        struct leaf leaf = leaf_of(c, p, &p->block[i], b, h, direction, rows);
        leaf_forward(&leaf, d, true);
        leaf_backward(&leaf, g);
    }
}

/* --- one head ----------------------------------------------------------------------------------------------------- */

/* The arrays of one head. */
struct head {
    struct grid_head rows;
    real *G, *scores;  /* N x N */
    real *dG, *R;      /* backward: N x N, and (W V^T) o G */
    real *blocks[4];   /* one per direction; forward only one */
    real *block_grads; /* backward */
    struct leaf_rows leaf;
};

static struct head head_of(struct grid_sizes z, enum pass pass, struct scratch *s) {
    bool backward = pass == PASS_BACKWARD;
    struct head h = {.rows = grid_head_of(z, pass, s), .leaf = take_leaf(z, s)};
    h.G = scratch_reals(s, z.N * z.N);
    h.scores = scratch_reals(s, z.N * z.N);
    for (int direction = 0; direction < (backward ? 4 : 1); direction++)
        h.blocks[direction] = take_blocks(z.X, z.Y, 0, s);
    if (!backward) return h;
    h.dG = scratch_reals(s, z.N * z.N);
    h.R = scratch_reals(s, z.N * z.N);
    h.block_grads = take_blocks(z.X, z.Y, 0, s);
    return h;
}

/* C = op(A) op(B), `rows` x `columns`, the sum over `depth`. */
static void product(bool transpose_a, bool transpose_b, int64_t rows, int64_t columns, int64_t depth, struct matrix A,
                    struct matrix B, struct matrix C) {
    real_gemm(transpose_a, transpose_b, rows, columns, depth, 1, A.at, A.ld, B.at, B.ld, false, C.at, C.ld);
}

static void forward_head(const struct call *c, const struct plan *p, int64_t b, int64_t h, struct scratch own) {
    struct grid_sizes z = p->z;
    struct head s = head_of(z, PASS_FORWARD, &own);
    struct matrix q = {s.rows.q, z.pk}, k = {s.rows.k, z.pk}, v = {s.rows.v, z.pv}, y = {s.rows.y, z.pv};
    struct matrix scores = {s.scores, z.N};
    grid_head_load(c, z, PASS_FORWARD, b, h, p->place, s.rows);
    memset(s.G, 0, (size_t)(z.N * z.N) * sizeof *s.G);
    for (int direction = 0; direction < 4; direction++)
        build(c, p, b, h, direction, (struct level_data){s.blocks[0], s.G}, s.leaf);
    product(false, true, z.N, z.N, z.dk, q, k, scores);
#pragma omp simd
    for (int64_t i = 0; i < z.N * z.N; i++) s.scores[i] *= s.G[i];
    product(false, false, z.N, z.dv, z.N, scores, v, y);
    for (int64_t n = 0; n < z.N; n++) grid_put_output(c, z, s.rows, b, h, n, p->place[n]);
}

/* scores -> scores o G, R -> R o G, dG = R o scores. */
static void mask(int64_t n, const real *G, real *scores, real *R, real *dG) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        real s = scores[i], r = R[i];
        dG[i] = r * s;
        scores[i] = s * G[i];
        R[i] = r * G[i];
    }
}

static void backward_head(const struct call *c, const struct plan *p, int64_t b, int64_t h, struct scratch own) {
    struct grid_sizes z = p->z;
    int64_t square = z.N * z.N;
    struct head s = head_of(z, PASS_BACKWARD, &own);
    struct matrix q = {s.rows.q, z.pk}, k = {s.rows.k, z.pk}, v = {s.rows.v, z.pv}, w = {s.rows.w, z.pv};
    struct matrix dq = {s.rows.dq, z.pk}, dk = {s.rows.dk, z.pk}, dv = {s.rows.dv, z.pv};
    struct matrix scores = {s.scores, z.N}, R = {s.R, z.N};
    grid_head_load(c, z, PASS_BACKWARD, b, h, p->place, s.rows);
    memset(s.G, 0, (size_t)square * sizeof *s.G);
    product(false, true, z.N, z.N, z.dk, q, k, scores);
    product(false, true, z.N, z.N, z.dv, w, v, R);
    for (int direction = 0; direction < 4; direction++)
        build(c, p, b, h, direction, (struct level_data){s.blocks[direction], s.G}, s.leaf);
    mask(square, s.G, s.scores, s.R, s.dG);
    for (int direction = 3; direction >= 0 && c->din[3]; direction--)
        build_backward(c, p, b, h, direction, (struct level_data){s.blocks[direction], s.G},
                       (struct level_data){s.block_grads, s.dG}, s.leaf);
    product(true, false, z.N, z.dv, z.N, scores, w, dv);
    product(false, false, z.N, z.dk, z.N, R, k, dq);
    product(true, false, z.N, z.dk, z.N, R, q, dk);
    for (int64_t n = 0; n < z.N; n++) grid_put_gradients(c, z, s.rows, b, h, n, p->place[n]);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static bool grid_scan_block_applicable(const struct call *c, const char **why) {
    *why = "the grid has more than 4096 nodes";
    return c->in[0]->dims[1] <= BLOCK_NODES_MAX;
}

/* Measured on one core, fp32, square grids: the row sweep becomes faster from about 40, 230 and 550 nodes on with heads
 * of 16, 32 and 64. The memory of this kernel grows with N^2. */
static bool grid_scan_block_preferred(const struct call *c) {
    struct grid_sizes z = grid_sizes_of(c);
    return 8 * z.N <= z.pk * z.pv && z.N <= BLOCK_NODES_PREFERRED;
}

static size_t grid_scan_block_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    struct plan p = plan_of(c, &s);
    for (int64_t i = 0; i < dag_groups(c, p.z.H); i++) head_of(p.z, pass, &s);
    return s.used;
}

static void run_head(const struct call *c, enum pass pass, const void *plan, int64_t b, int64_t h, struct scratch own) {
    (pass == PASS_FORWARD ? forward_head : backward_head)(c, plan, b, h, own);
}

static void run(const struct call *c, enum pass pass) {
    struct scratch s = scratch_of(c, pass);
    struct plan p = plan_of(c, &s);
    add_block(&p, 0, 0, p.z.X, p.z.Y, 0);
    int64_t work = c->in[0]->dims[0] * p.z.H * p.z.N * p.z.N;
    dag_each_head(c, pass, p.z.H, work, s, run_head, &p);
}

static void grid_scan_block_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void grid_scan_block_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: as grid_scan_cpu; the same products of gates in another order. */
const struct kernel kernel_grid_scan_block = {
    .name = "grid_scan_block",
    .op = &op_grid_scan,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .applicable = grid_scan_block_applicable,
    .preferred = grid_scan_block_preferred,
    .workspace = grid_scan_block_workspace,
    .forward = grid_scan_block_forward,
    .backward = grid_scan_block_backward,
};

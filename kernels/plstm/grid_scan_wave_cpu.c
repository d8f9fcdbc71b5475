/* grid_scan_wave_cpu.c - pLSTM on a grid, antidiagonal by antidiagonal: nodes with the same x + y do not depend on each other
 * and are shared among the threads, so that one head of one grid keeps all of them busy. Heads come one after the other.
 *
 * The state to the right of a node stays in the slot of its column y, the one downwards in that of its row x: one node of an
 * antidiagonal has each slot (spec/plstm-myosotis.md A2.1). Backward keeps the states that enter each node, of LANES rows at a
 * time (grid_tile.h), and goes back likewise. What a node adds to, no other node of its antidiagonal adds to. */
#include "kernels/plstm/grid_tile.h"

#define WAVE_NODES                                                                                                     \
    4096 /* tiles of an antidiagonal times LANES; below, a barrier costs about as much as the work between two */

/* One head and direction. States are tiles, `tiles` of them beside each other at a slot or node. */
struct wave {
    struct grid_sizes z;
    struct grid_head head;
    const struct grid_scan_attr *attr;
    int direction;
    int64_t e, tiles;     /* backward: first row of the tiles; tiles of a slot or node */
    real *gates, *dgates; /* [N][GRID_PLANES], and as many times LANES */
    real *right, *down;   /* forward: slots [Y], [X] */
    real *l, *u;          /* backward: of each node, one more that nothing reads */
    real *er, *ed;        /* backward: slots [Y], [X] */
};

static int64_t wave_reals(struct grid_sizes z, enum pass pass) {
    int64_t inputs = grid_head_reals(z, pass) + z.N * GRID_PLANES, slots = z.X + z.Y;
    if (pass == PASS_FORWARD) return inputs + slots * z.pk * z.pv;
    return inputs + z.N * GRID_PLANES * LANES + (slots + 2 * z.N + 2) * z.pk * LANES;
}

static struct wave wave_of(const struct call *c, struct grid_sizes z, enum pass pass, int64_t b, int64_t h) {
    real *s = c->scratch[pass];
    struct wave w = {.z = z, .attr = c->attr, .tiles = z.pk / LANES};
    if (pass == PASS_FORWARD) w.tiles *= z.pv / LANES;
    w.head = grid_head_load(c, z, pass, b, h, NULL, s);
    w.gates = s + grid_head_reals(z, pass);
    w.right = w.gates + z.N * GRID_PLANES;
    w.down = w.right + z.Y * w.tiles * TILE;
    w.er = w.right;
    w.ed = w.down;
    w.l = w.ed + z.X * w.tiles * TILE;
    w.u = w.l + (z.N + 1) * w.tiles * TILE;
    w.dgates = w.u + (z.N + 1) * w.tiles * TILE;
    return w;
}

/* Rows of the frame that antidiagonal s crosses. */
static struct range wave_rows(struct grid_sizes z, int64_t s) {
    return (struct range){s < z.Y ? 0 : s - z.Y + 1, s < z.X ? s + 1 : z.X};
}

static void clear(real *x, int64_t n) {
    memset(x, 0, (size_t)n * sizeof *x);
}

/* --- forward ----------------------------------------------------------------------------------------------------------- */

static void forward_node(const struct wave *w, int64_t x, int64_t y) {
    struct grid_sizes z = w->z;
    int64_t node = grid_node(w->attr, w->direction, x, y), tile = 0;
    real *l = w->right + y * w->tiles * TILE, *u = w->down + x * w->tiles * TILE;
    for (int64_t e = 0; e < z.pv; e += LANES)
        for (int64_t i = 0; i < z.pk; i += LANES, tile += TILE)
            tile_forward(w->gates + (x * z.Y + y) * GRID_PLANES, w->head.q + node * z.pk + i,
                         w->head.k + node * z.pk + i, w->head.v + node * z.pv + e, l + tile, u + tile,
                         w->head.y + node * z.pv + e);
}

static void forward_head(const struct call *c, struct grid_sizes z, int64_t b, int64_t h, bool wide) {
    struct wave w = wave_of(c, z, PASS_FORWARD, b, h);
    clear(w.head.y, z.N * z.pv);
    for (w.direction = 0; w.direction < 4; w.direction++) {
        grid_gates_load(c, z, b, h, w.direction, w.gates);
        clear(w.right, (z.X + z.Y) * w.tiles * TILE);
#pragma omp parallel if (wide)
        for (int64_t s = 0; s < z.X + z.Y - 1; s++) {
            struct range rows = wave_rows(z, s);
#pragma omp for schedule(static)
            for (int64_t x = rows.begin; x < rows.end; x++) forward_node(&w, x, s - x);
        }
    }
    for (int64_t n = 0; n < z.N; n++) grid_put_output(c, z, w.head, b, h, n, n);
}

/* --- backward: rows of a tile are those of v and w, columns those of q and k -------------------------------------------- */

/* The states that leave a node go to where they enter the next. */
static void enter_node(const struct wave *w, int64_t x, int64_t y) {
    struct grid_sizes z = w->z;
    int64_t node = grid_node(w->attr, w->direction, x, y), at = x * z.Y + y, n = w->tiles * TILE;
    real *r = w->l + (x + 1 < z.X ? at + z.Y : z.N) * n, *d = w->u + (y + 1 < z.Y ? at + 1 : z.N) * n;
    if (x + 1 == z.X && y + 1 == z.Y) return;
    for (int64_t i = 0, tile = 0; i < z.pk; i += LANES, tile += TILE)
        tile_update(w->gates + at * GRID_PLANES, w->head.v + node * z.pv + w->e, lanes_at(w->head.k + node * z.pk + i),
                    w->l + at * n + tile, w->u + at * n + tile, r + tile, d + tile);
}

static void backward_node(const struct wave *w, int64_t x, int64_t y) {
    struct grid_sizes z = w->z;
    int64_t node = grid_node(w->attr, w->direction, x, y), at = x * z.Y + y, n = w->tiles * TILE;
    for (int64_t i = 0, tile = 0; i < z.pk; i += LANES, tile += TILE) {
        struct tile_sums sums = {w->head.dq + node * z.pk + i, w->head.dk + node * z.pk + i,
                                 w->head.dv + node * z.pv + w->e, w->dgates + at * GRID_PLANES * LANES};
        tile_backward(w->gates + at * GRID_PLANES, w->head.q + node * z.pk + i, w->head.k + node * z.pk + i,
                      w->head.v + node * z.pv + w->e, w->head.w + node * z.pv + w->e, w->l + at * n + tile,
                      w->u + at * n + tile, w->er + y * n + tile, w->ed + x * n + tile, sums);
    }
}

/* All nodes for LANES rows of the states. */
static void backward_rows(const struct wave *w, bool wide) {
    struct grid_sizes z = w->z;
    int64_t n = w->tiles * TILE, last = z.X + z.Y - 2;
    clear(w->er, (z.X + z.Y) * n);
    clear(w->l, z.Y * n);
    for (int64_t x = 0; x < z.X; x++) clear(w->u + x * z.Y * n, n);
#pragma omp parallel if (wide)
    {
        for (int64_t s = 0; s <= last; s++) {
            struct range rows = wave_rows(z, s);
#pragma omp for schedule(static)
            for (int64_t x = rows.begin; x < rows.end; x++) enter_node(w, x, s - x);
        }
        for (int64_t s = last; s >= 0; s--) {
            struct range rows = wave_rows(z, s);
#pragma omp for schedule(static)
            for (int64_t x = rows.begin; x < rows.end; x++) backward_node(w, x, s - x);
        }
    }
}

static void backward_head(const struct call *c, struct grid_sizes z, int64_t b, int64_t h, bool wide) {
    struct wave w = wave_of(c, z, PASS_BACKWARD, b, h);
    clear(w.head.dq, z.N * (2 * z.pk + z.pv)); /* dq, dk and dv */
    for (w.direction = 0; w.direction < 4; w.direction++) {
        grid_gates_load(c, z, b, h, w.direction, w.gates);
        clear(w.dgates, z.N * GRID_PLANES * LANES);
        for (w.e = 0; w.e < z.pv; w.e += LANES) backward_rows(&w, wide);
        for (int64_t at = 0; at < z.N; at++)
            grid_put_gates(c, z, b * z.N + grid_node(w.attr, w.direction, at / z.Y, at % z.Y), h, w.direction,
                           w.dgates + at * GRID_PLANES * LANES);
    }
    for (int64_t n = 0; n < z.N; n++) grid_put_gradients(c, z, w.head, b, h, n, n);
}

/* --- heads ----------------------------------------------------------------------------------------------------------------- */

static size_t grid_scan_wave_workspace(const struct call *c, enum pass pass) {
    return (size_t)wave_reals(grid_sizes_of(c), pass) * sizeof(real);
}

/* Whether there is enough to do between two barriers. */
static bool wide_enough(struct grid_sizes z) {
    return (z.X < z.Y ? z.X : z.Y) * z.pk * z.pv / LANES >= WAVE_NODES;
}

static void grid_scan_wave_forward(const struct call *c, const struct exec *x) {
    (void)x;
    struct grid_sizes z = grid_sizes_of(c);
    for (int64_t i = 0; i < c->in[0]->dims[0] * z.H; i++) forward_head(c, z, i / z.H, i % z.H, wide_enough(z));
}

static void grid_scan_wave_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct grid_sizes z = grid_sizes_of(c);
    for (int64_t i = 0; i < c->in[0]->dims[0] * z.H; i++) backward_head(c, z, i / z.H, i % z.H, wide_enough(z));
}

/* By name only: on one core the row sweep is 1.2 to 1.7 times as fast, and with as many heads as threads it keeps them all busy. */
static bool grid_scan_wave_preferred(const struct call *c) {
    (void)c;
    return false;
}

/* Tolerance: as grid_scan_cpu, which computes the same at each node. */
const struct kernel kernel_grid_scan_wave = {
    .name = "grid_scan_wave",
    .op = &op_grid_scan,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .preferred = grid_scan_wave_preferred,
    .workspace = grid_scan_wave_workspace,
    .forward = grid_scan_wave_forward,
    .backward = grid_scan_wave_backward,
};

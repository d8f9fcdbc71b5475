/* grid_scan_cpu.c - pLSTM on a grid, row by row, with one part per head and grid. The tiles of the states (grid_tile.h)
 * cross the whole grid one after the other, in all four directions, so that the carried states stay in the near caches.
 *
 * The rows of the frame are walked in order, with one state Cr per column and one Cd; a node turns (l, u) into (Cr, Cd)
 * in place. The rows are cut into stretches as long as SWEEP_BYTES allows. Backward first keeps the states that enter
 * the first row of each stretch. Then it takes the stretches in reverse and computes the states that enter each of
 * their nodes again. */
#include "kernels/lib/scratch.h"
#include "kernels/plstm/grid/grid_tile.h"

#define SWEEP_BYTES (1 << 19) /* of states that enter the nodes of a stretch, so that they stay in an L2 cache */

/* Division of the rows into stretches. */
struct cut {
    int64_t stride, stretches;
};

static struct cut cut_of(struct grid_sizes z) {
    int64_t row = 2 * z.Y * TILE * (int64_t)sizeof(real), least = 1, stretches = (z.X * row - 1) / SWEEP_BYTES + 1;
    while (2 * least * least < z.X)
        least++; /* X / stride copies and 2 stride rows are fewest at stride = sqrt(X / 2) */
    int64_t stride = stretches < z.X ? (z.X + stretches - 1) / stretches : 1;
    if (stride < least) stride = least;
    return (struct cut){stride, (z.X + stride - 1) / stride};
}

/* One head and direction: its inputs, its gates in the frame, and the tile that crosses the grid: rows from i, columns
 * from e. */
struct crossing {
    struct grid_sizes z;
    struct cut cut;
    struct grid_head head;
    const struct grid_scan_attr *attr;
    int direction;
    int64_t i, e;
    real *gates, *dgates; /* [N][GRID_PLANES], and as many times LANES */
    real *l, *u, *copies; /* forward Y tiles and one; backward those that enter the nodes of a stretch, its first row */
    real *er, *ed, *overflow; /* Y tiles, one, and one for gradients that leave the grid and are not used */
};

static struct crossing crossing_of(const struct call *c, enum pass pass, struct scratch *s) {
    struct grid_sizes z = grid_sizes_of(c);
    struct crossing w = {.z = z, .cut = cut_of(z), .attr = grid_scan_attr(c), .head = grid_head_of(z, pass, s)};
    w.gates = scratch_reals(s, z.N * GRID_PLANES);
    w.l = scratch_reals(s, (pass == PASS_FORWARD ? 1 : w.cut.stride) * z.Y * TILE);
    w.u = scratch_reals(s, (pass == PASS_FORWARD ? 1 : w.cut.stride * z.Y) * TILE);
    if (pass == PASS_FORWARD) return w;
    w.copies = scratch_reals(s, w.cut.stretches * z.Y * TILE);
    w.er = scratch_reals(s, z.Y * TILE);
    w.ed = scratch_reals(s, TILE);
    w.overflow = scratch_reals(s, TILE);
    w.dgates = scratch_reals(s, z.N * GRID_PLANES * LANES);
    return w;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void forward_tile(const struct crossing *w) {
    struct grid_sizes z = w->z;
    grid_clear(w->l, z.Y * TILE);
    for (int64_t x = 0; x < z.X; x++) {
        grid_clear(w->u, TILE);
        for (int64_t y = 0; y < z.Y; y++) {
            int64_t node = grid_node(w->attr, w->direction, x, y);
            tile_forward(w->gates + (x * z.Y + y) * GRID_PLANES, w->head.q + node * z.pk + w->i,
                         w->head.k + node * z.pk + w->i, w->head.v + node * z.pv + w->e, w->l + y * TILE, w->u,
                         w->head.y + node * z.pv + w->e);
        }
    }
}

static void forward_head(const struct call *c, int64_t b, int64_t h, struct scratch own) {
    struct crossing w = crossing_of(c, PASS_FORWARD, &own);
    struct grid_sizes z = w.z;
    grid_head_load(c, z, PASS_FORWARD, b, h, NULL, w.head);
    grid_head_clear(z, PASS_FORWARD, w.head);
    for (w.direction = 0; w.direction < 4; w.direction++) {
        grid_gates_load(c, z, b, h, w.direction, w.gates);
        for (w.e = 0; w.e < z.pv; w.e += LANES)
            for (w.i = 0; w.i < z.pk; w.i += LANES) forward_tile(&w);
    }
    for (int64_t n = 0; n < z.N; n++) grid_put_output(c, z, w.head, b, h, n, n);
}

/* --- backward: rows of a tile are rows of v and w, columns are columns of q and k --------------------------------- */

/* Computes the states that enter the nodes of a stretch, from its copy, and stores those that enter the next stretch in
 * the next copy. */
static void enter_states(const struct crossing *w, int64_t stretch) {
    struct grid_sizes z = w->z;
    int64_t first = stretch * w->cut.stride, end = first + w->cut.stride < z.X ? first + w->cut.stride : z.X;
    memcpy(w->l, w->copies + stretch * z.Y * TILE, (size_t)(z.Y * TILE) * sizeof(real));
    for (int64_t x = first; x < end; x++) {
        grid_clear(w->u + (x - first) * z.Y * TILE, TILE);
        for (int64_t y = 0; y < z.Y; y++) {
            int64_t node = grid_node(w->attr, w->direction, x, y), at = (x - first) * z.Y + y;
            real *r = w->l + (at + z.Y) * TILE, *d = y + 1 < z.Y ? w->u + (at + 1) * TILE : w->overflow;
            if (x + 1 == end) r = end < z.X ? w->copies + ((stretch + 1) * z.Y + y) * TILE : w->overflow;
            tile_update(w->gates + (x * z.Y + y) * GRID_PLANES, w->head.v + node * z.pv + w->e,
                        lanes_at(w->head.k + node * z.pk + w->i), w->l + at * TILE, w->u + at * TILE, r, d);
        }
    }
}

static void backward_stretch(const struct crossing *w, int64_t stretch) {
    struct grid_sizes z = w->z;
    int64_t first = stretch * w->cut.stride, end = first + w->cut.stride < z.X ? first + w->cut.stride : z.X;
    for (int64_t x = end - 1; x >= first; x--) {
        grid_clear(w->ed, TILE);
        for (int64_t y = z.Y - 1; y >= 0; y--) {
            int64_t node = grid_node(w->attr, w->direction, x, y), at = (x - first) * z.Y + y, frame = x * z.Y + y;
            struct tile_sums sums = {w->head.dq + node * z.pk + w->i, w->head.dk + node * z.pk + w->i,
                                     w->head.dv + node * z.pv + w->e, w->dgates + frame * GRID_PLANES * LANES};
            tile_backward(w->gates + frame * GRID_PLANES, w->head.q + node * z.pk + w->i,
                          w->head.k + node * z.pk + w->i, w->head.v + node * z.pv + w->e,
                          w->head.w + node * z.pv + w->e, w->l + at * TILE, w->u + at * TILE, w->er + y * TILE, w->ed,
                          sums);
        }
    }
}

static void backward_tile(const struct crossing *w) {
    int64_t last = w->cut.stretches - 1;
    grid_clear(w->copies, w->z.Y * TILE);
    grid_clear(w->er, w->z.Y * TILE);
    for (int64_t stretch = 0; stretch <= last; stretch++) enter_states(w, stretch);
    for (int64_t stretch = last; stretch >= 0; stretch--) {
        if (stretch < last) enter_states(w, stretch);
        backward_stretch(w, stretch);
    }
}

static void backward_head(const struct call *c, int64_t b, int64_t h, struct scratch own) {
    struct crossing w = crossing_of(c, PASS_BACKWARD, &own);
    struct grid_sizes z = w.z;
    grid_head_load(c, z, PASS_BACKWARD, b, h, NULL, w.head);
    grid_head_clear(z, PASS_BACKWARD, w.head);
    for (w.direction = 0; w.direction < 4; w.direction++) {
        grid_gates_load(c, z, b, h, w.direction, w.gates);
        grid_clear(w.dgates, z.N * GRID_PLANES * LANES);
        for (w.e = 0; w.e < z.pv; w.e += LANES)
            for (w.i = 0; w.i < z.pk; w.i += LANES) backward_tile(&w);
        for (int64_t at = 0; at < z.N; at++)
            grid_put_gates(c, z, b * z.N + grid_node(w.attr, w.direction, at / z.Y, at % z.Y), h, w.direction,
                           w.dgates + at * GRID_PLANES * LANES);
    }
    for (int64_t n = 0; n < z.N; n++) grid_put_gradients(c, z, w.head, b, h, n, n);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static size_t grid_scan_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int64_t i = 0; i < dag_groups(c, grid_sizes_of(c).H); i++) crossing_of(c, pass, &s);
    return s.used;
}

static void grid_scan_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    dag_each_pass(c, PASS_FORWARD, grid_sizes_of(c).H, forward_head);
}

static void grid_scan_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    dag_each_pass(c, PASS_BACKWARD, grid_sizes_of(c).H, backward_head);
}

/* Tolerance: as scan_plstm_cpu. Each of the X + Y steps of a path rounds, and gradients are sums of dk dv products that
 * cancel. */
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

/* grid_tile.h - parts that the CPU kernels of grid_scan share: a head's inputs in padded rows, and the recurrence of
 * one node on one tile of the states.
 *
 * States are cut into tiles of LANES rows and LANES columns, which are independent except for the sums in y and in the
 * gradients. Forward, dv is along the lanes and dk along the rows, so that y is summed in registers. Backward it is the
 * other way round, so that one sum over lanes (dv) is needed instead of two (dq, dk). */
#ifndef LRNN_KERNELS_PLSTM_GRID_GRID_TILE_H
#define LRNN_KERNELS_PLSTM_GRID_GRID_TILE_H

#include "kernels/lib/simd.h"
#include "kernels/plstm/dag_state.h"
#include "kernels/plstm/grid/grid.h"

/* --- one head ----------------------------------------------------------------------------------------------------- */

/* Sizes of a call; pk and pv are dk and dv padded to whole tiles. */
struct grid_sizes {
    int64_t X, Y, N, H, dk, dv, pk, pv;
    real scale;
};

LRNN_INLINE struct grid_sizes grid_sizes_of(const struct call *c) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct grid_sizes s = {a->X, a->Y, z.T, z.H, z.dk, z.dv, whole_lanes(z.dk), whole_lanes(z.dv), (real)a->scale};
    return s;
}

/* One head of one grid, rows padded with zeros: q, k [N][pk], v and y or w = scale dy [N][pv]. Backward also the sums
 * over directions and tiles: dq, dk [N][pk], dv [N][pv]. */
struct grid_head {
    real *q, *k, *v, *w, *y, *dq, *dk, *dv;
};

LRNN_INLINE struct grid_head grid_head_of(struct grid_sizes z, enum pass pass, struct scratch *s) {
    struct grid_head g = {.q = scratch_reals(s, z.N * z.pk)};
    g.k = scratch_reals(s, z.N * z.pk);
    g.v = scratch_reals(s, z.N * z.pv);
    if (pass == PASS_FORWARD) {
        g.y = scratch_reals(s, z.N * z.pv);
    } else {
        g.w = scratch_reals(s, z.N * z.pv);
        g.dq = scratch_reals(s, z.N * z.pk);
        g.dk = scratch_reals(s, z.N * z.pk);
        g.dv = scratch_reals(s, z.N * z.pv);
    }
    return g;
}

LRNN_INLINE void grid_clear(real *x, int64_t n) {
    memset(x, 0, (size_t)n * sizeof *x);
}

/* Clears the sums of a pass. */
LRNN_INLINE void grid_head_clear(struct grid_sizes z, enum pass pass, struct grid_head g) {
    if (pass == PASS_FORWARD) {
        grid_clear(g.y, z.N * z.pv);
    } else {
        grid_clear(g.dq, z.N * z.pk);
        grid_clear(g.dk, z.N * z.pk);
        grid_clear(g.dv, z.N * z.pv);
    }
}

/* Reads head h of grid b. Node n of the grid goes to row place[n]; place NULL: n. */
LRNN_INLINE void grid_head_load(const struct call *c, struct grid_sizes z, enum pass pass, int64_t b, int64_t h,
                                const int32_t *place, struct grid_head g) {
    for (int64_t n = 0; n < z.N; n++) {
        int64_t row = b * z.N + n, at = place ? place[n] : n;
        padded_row(z.dk, z.pk, 1, head_in(c, 0, row, h, z.dk), g.q + at * z.pk);
        padded_row(z.dk, z.pk, 1, head_in(c, 1, row, h, z.dk), g.k + at * z.pk);
        padded_row(z.dv, z.pv, 1, head_in(c, 2, row, h, z.dv), g.v + at * z.pv);
        if (pass == PASS_BACKWARD)
            padded_row(z.dv, z.pv, z.scale, call_dout(c, 0) + (row * z.H + h) * z.dv, g.w + at * z.pv);
    }
}

/* Writes y of node n, which is at row `at`: the sum over the directions plus the direct term, scaled. */
LRNN_INLINE void grid_put_output(const struct call *c, struct grid_sizes z, struct grid_head g, int64_t b, int64_t h,
                                 int64_t n, int64_t at) {
    int64_t row = b * z.N + n;
    real *out = tensor_real(c->out[0]) + (row * z.H + h) * z.dv;
    const real *v = g.v + at * z.pv, *y = g.y + at * z.pv;
    real direct = *head_in(c, 4, row, h, 1) * dot_product(z.pk, g.q + at * z.pk, g.k + at * z.pk);
    for (int64_t e = 0; e < z.dv; e++) out[e] = z.scale * real_fma(direct, v[e], y[e]);
}

/* Writes dq, dk, dv and the gradient of the direct gate of node n, from the sums over the directions. */
LRNN_INLINE void grid_put_gradients(const struct call *c, struct grid_sizes z, struct grid_head g, int64_t b, int64_t h,
                                    int64_t n, int64_t at) {
    int64_t row = b * z.N + n;
    const real *q = g.q + at * z.pk, *k = g.k + at * z.pk, *v = g.v + at * z.pv, *w = g.w + at * z.pv;
    real D = *head_in(c, 4, row, h, 1), qk = dot_product(z.pk, q, k), vw = dot_product(z.pv, v, w), direct = qk * vw;
    add_scaled(z.pk, D * vw, k, g.dq + at * z.pk);
    add_scaled(z.pk, D * vw, q, g.dk + at * z.pk);
    add_scaled(z.pv, D * qk, w, g.dv + at * z.pv);
    put_row(head_din(c, 0, row, h, z.dk), call_accumulates(c, 0), z.dk, g.dq + at * z.pk);
    put_row(head_din(c, 1, row, h, z.dk), call_accumulates(c, 1), z.dk, g.dk + at * z.pk);
    put_row(head_din(c, 2, row, h, z.dv), call_accumulates(c, 2), z.dv, g.dv + at * z.pv);
    put_row(head_din(c, 4, row, h, 1), call_accumulates(c, 4), 1, &direct);
}

/* Reads the gates of a direction to [N][GRID_PLANES], in the order of its frame. */
LRNN_INLINE void grid_gates_load(const struct call *c, struct grid_sizes z, int64_t b, int64_t h, int direction,
                                 real *to) {
    const struct grid_scan_attr *a = grid_scan_attr(c);
    for (int64_t at = 0; at < z.N; at++) {
        int64_t row = b * z.N + grid_node(a, direction, at / z.Y, at % z.Y);
        const real *gates = tensor_real(c->in[3]) + grid_gate_at(z.H, row, direction, h);
        for (int p = 0; p < GRID_PLANES; p++) to[at * GRID_PLANES + p] = gates[p * 4 * z.H];
    }
}

/* --- one node on one tile ----------------------------------------------------------------------------------------- */

/* (l, u) -> (r, d), where row j of r is rl l + ru u + Sr x_j c, and d likewise. r and d may be l and u. c has the
 * inputs of the columns. */
FORCE_INLINE void tile_update(const real *gate, const real *x, lanes c, const real *l, const real *u, real *r,
                              real *d) {
    lanes rl = all_lanes(gate[GRID_RL]), ru = all_lanes(gate[GRID_RU]), sr = gate[GRID_SR] * c;
    lanes dl = all_lanes(gate[GRID_DL]), du = all_lanes(gate[GRID_DU]), sd = gate[GRID_SD] * c;
    for (int j = 0; j < LANES; j++) {
        lanes left = lanes_at(l + j * LANES), top = lanes_at(u + j * LANES), xj = all_lanes(x[j]);
        lanes_to(r + j * LANES, lanes_fma(rl, left, lanes_fma(ru, top, sr * xj)));
        lanes_to(d + j * LANES, lanes_fma(dl, left, lanes_fma(du, top, sd * xj)));
    }
}

/* Adds (Ml l + Mu u)^T q to y, then does tile_update in place with rows k and columns v. */
FORCE_INLINE void tile_forward(const real *gate, const real *q, const real *k, const real *v, real *l, real *u,
                               real *y) {
    lanes rl = all_lanes(gate[GRID_RL]), ru = all_lanes(gate[GRID_RU]), sr = gate[GRID_SR] * lanes_at(v);
    lanes dl = all_lanes(gate[GRID_DL]), du = all_lanes(gate[GRID_DU]), sd = gate[GRID_SD] * lanes_at(v);
    lanes from_left = {0}, from_top = {0};
    for (int j = 0; j < LANES; j++) {
        lanes left = lanes_at(l + j * LANES), top = lanes_at(u + j * LANES);
        lanes qj = all_lanes(q[j]), kj = all_lanes(k[j]);
        from_left = lanes_fma(qj, left, from_left);
        from_top = lanes_fma(qj, top, from_top);
        lanes_to(l + j * LANES, lanes_fma(rl, left, lanes_fma(ru, top, sr * kj)));
        lanes_to(u + j * LANES, lanes_fma(dl, left, lanes_fma(du, top, sd * kj)));
    }
    lanes sum = lanes_fma(all_lanes(gate[GRID_ML]), from_left, lanes_at(y));
    lanes_to(y, lanes_fma(all_lanes(gate[GRID_MU]), from_top, sum));
}

/* The sums to which one node's tile adds: dq, dk (lanes), dv (rows), and dgate [GRID_PLANES][LANES], the gates'
 * gradients, each as partial sums in the lanes. */
struct tile_sums {
    real *dq, *dk, *dv, *dgate;
};

/* Adjoint of tile_forward, with rows v and w, columns q and k: turns (er, ed) into the gradients of (l, u) in place. l
 * and u are the states that entered the node. */
FORCE_INLINE void tile_backward(const real *gate, const real *q, const real *k, const real *v, const real *w,
                                const real *l, const real *u, real *er, real *ed, struct tile_sums s) {
    lanes rl = all_lanes(gate[GRID_RL]), ru = all_lanes(gate[GRID_RU]);
    lanes dl = all_lanes(gate[GRID_DL]), du = all_lanes(gate[GRID_DU]);
    lanes kl = lanes_at(k), ql = lanes_at(q), part[LANES];
    lanes sr = gate[GRID_SR] * kl, sd = gate[GRID_SD] * kl, ml = gate[GRID_ML] * ql, mu = gate[GRID_MU] * ql;
    lanes grl = {0}, gru = {0}, gdl = {0}, gdu = {0}, erv = {0}, edv = {0}, lw = {0}, uw = {0};
    for (int j = 0; j < LANES; j++) {
        lanes left = lanes_at(l + j * LANES), top = lanes_at(u + j * LANES), vj = all_lanes(v[j]), wj = all_lanes(w[j]);
        lanes r = lanes_at(er + j * LANES), d = lanes_at(ed + j * LANES);
        grl = lanes_fma(r, left, grl);
        gru = lanes_fma(r, top, gru);
        gdl = lanes_fma(d, left, gdl);
        gdu = lanes_fma(d, top, gdu);
        erv = lanes_fma(r, vj, erv);
        edv = lanes_fma(d, vj, edv);
        lw = lanes_fma(left, wj, lw);
        uw = lanes_fma(top, wj, uw);
        part[j] = lanes_fma(sr, r, sd * d);
        lanes_to(er + j * LANES, lanes_fma(rl, r, lanes_fma(dl, d, ml * wj)));
        lanes_to(ed + j * LANES, lanes_fma(ru, r, lanes_fma(du, d, mu * wj)));
    }
    add_lanes(s.dv, sums_of_rows(part));
    add_lanes(s.dk, lanes_fma(all_lanes(gate[GRID_SR]), erv, gate[GRID_SD] * edv));
    add_lanes(s.dq, lanes_fma(all_lanes(gate[GRID_ML]), lw, gate[GRID_MU] * uw));
    add_lanes(s.dgate + GRID_RL * LANES, grl);
    add_lanes(s.dgate + GRID_RU * LANES, gru);
    add_lanes(s.dgate + GRID_DL * LANES, gdl);
    add_lanes(s.dgate + GRID_DU * LANES, gdu);
    add_lanes(s.dgate + GRID_SR * LANES, kl * erv);
    add_lanes(s.dgate + GRID_SD * LANES, kl * edv);
    add_lanes(s.dgate + GRID_ML * LANES, ql * lw);
    add_lanes(s.dgate + GRID_MU * LANES, ql * uw);
}

/* Writes the gates' gradients of one node of a direction. */
LRNN_INLINE void grid_put_gates(const struct call *c, struct grid_sizes z, int64_t row, int64_t h, int direction,
                                const real *dgate) {
    if (!c->din[3]) return;
    real *out = c->din[3] + grid_gate_at(z.H, row, direction, h);
    for (int p = 0; p < GRID_PLANES; p++) {
        real sum = 0;
        for (int i = 0; i < LANES; i++) sum += dgate[p * LANES + i];
        put(out + p * 4 * z.H, call_accumulates(c, 3), sum);
    }
}

#endif

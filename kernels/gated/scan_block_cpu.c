/* scan_block_cpu.c - BD-LRU on the CPU: time outer, rows of a block next, blocks inner in vector lanes.
 *
 * Raw gates cross memory once each way: a row's m + 1 gates are normalised in registers and used there, of m above
 * SCAN_UNROLLED in L1. The state of the step before is read from h itself, which is still in L1. Backward walks time in
 * reverse, recomputes the gates and carries A^T G in L1. Since sum_l a_l da_l = G_t[i] h_t[i], the normaliser's
 * gradient needs no sum over the row:
 *   dz_t[i][j] = w_t[i][j] G_t[i] (x_j - h_t[i]),   x = (h_{t-1}, v_t[i])
 * Bits do not depend on the cut into strips: every lane does the same arithmetic (real_fma, real_exp). */
#include <string.h>

#include "kernels/lib/parallel.h"
#include "kernels/gated/scan_softmax.h"

/* One row of one block: sum_j a_j h_prev[j*prev] + a_m v. */
FORCE_INLINE real row_forward(int m, enum gate gate, int64_t N, const real *z, real v, const real *h_prev,
                              int64_t prev) {
    real p[GATE_MAX];
    real scale = scan_gates(gate, m + 1, z, N, p), sum = p[m] * v;
    UNROLLED(m, sum = real_fma(p[j], h_prev[j * prev], sum));
    return sum * scale;
}

/* The same of any m, of `width` blocks. */
FORCE_INLINE void rows_forward(int m, enum gate gate, int64_t N, int64_t width, const real *z, const real *v,
                               const real *h_prev, int64_t prev, real *h) {
    real p[SCAN_GATES], scale[SCAN_WIDTH];
    scan_gates_in_memory(gate, m + 1, width, z, N, p, scale);
    for (int64_t k = 0; k < width; k++) h[k] = p[m * SCAN_STRIDE + k] * v[k];
    for (int j = 0; j < m; j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++) h[k] = real_fma(p[j * SCAN_STRIDE + k], h_prev[j * prev + k], h[k]);
    for (int64_t k = 0; k < width; k++) h[k] *= scale[k];
}

static const real zeros[SCAN_WIDTH]; /* h_{-1}, with rows of stride 0 */

FORCE_INLINE void walk_forward(int order, enum gate gate, int layout, const struct scan_part *s) {
    (void)layout;
    int m = order ? order : s->m;
    int64_t N = s->N, ahead = scan_rows_ahead(s);
    for (int64_t t = 0; t < s->T; t++) {
        real *h = s->h + t * m * N;
        const real *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        for (int i = 0; i < m; i++) {
            int64_t row = t * m + i;
            const real *z = s->z + row * (m + 1) * N, *v = s->v + row * N;
            scan_prefetch(s, row + ahead, s->T * m);
            if (!order) {
                rows_forward(m, gate, N, s->width, z, v, h_prev, prev, h + i * N);
                continue;
            }
#pragma omp simd
            for (int64_t k = 0; k < s->width; k++)
                h[i * N + k] = row_forward(order, gate, N, z + k, v[k], h_prev + k, prev);
        }
    }
}

/* One row of one block: dz[j*dz_stride] and carry[j*SCAN_STRIDE] += a_j G; returns dv. */
FORCE_INLINE real row_backward(int m, enum gate gate, int64_t N, const real *z, real v, const real *h_prev,
                               int64_t prev, real h, real G, real *carry, real *dz, int64_t dz_stride) {
    real p[GATE_MAX];
    real scale = scan_gates(gate, m + 1, z, N, p), mean = gate_divides(gate) ? h : 0, G_scale = G * scale;
    if (gate == GATE_SOFTMAX) { /* w = a: a_j G serves the carry and dz */
        UNROLLED(m + 1, p[j] *= G_scale);
        UNROLLED(m, carry[j * SCAN_STRIDE] += p[j]);
        UNROLLED(m, dz[j * dz_stride] = p[j] * (h_prev[j * prev] - mean));
        /* cppcheck-suppress [arrayIndexOutOfBoundsCond, negativeIndex] ; 1 <= m <= SCAN_UNROLLED < GATE_MAX */
        dz[m * dz_stride] = p[m] * (v - mean);
        /* cppcheck-suppress [arrayIndexOutOfBoundsCond, negativeIndex] ; the same */
        return p[m];
    }
    UNROLLED(m, carry[j * SCAN_STRIDE] = real_fma(p[j], G_scale, carry[j * SCAN_STRIDE]));
    UNROLLED(m, dz[j * dz_stride] = gate_slope(gate, p[j], scale) * (G * (h_prev[j * prev] - mean)));
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; the same */
    dz[m * dz_stride] = gate_slope(gate, p[m], scale) * (G * (v - mean));
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; the same */
    return p[m] * G_scale;
}

/* The same of any m, of `width` blocks. */
FORCE_INLINE void rows_backward(int m, enum gate gate, int64_t N, int64_t width, const real *z, const real *v,
                                const real *h_prev, int64_t prev, const real *h, const real *G, real *carry, real *dz,
                                int64_t dz_stride, real *dv) {
    real p[SCAN_GATES], scale[SCAN_WIDTH];
    scan_gates_in_memory(gate, m + 1, width, z, N, p, scale);
    memset(dv, 0, (size_t)width * sizeof *dv);
    for (int j = 0; j <= m; j++) {
        const real *a = p + j * SCAN_STRIDE, *x = j < m ? h_prev + j * prev : v;
        real *da = dz + j * dz_stride, *back = j < m ? carry + j * SCAN_STRIDE : dv;
#pragma omp simd
        for (int64_t k = 0; k < width; k++) {
            back[k] = real_fma(a[k], G[k] * scale[k], back[k]);
            da[k] = gate_slope(gate, a[k], scale[k]) * (G[k] * (x[k] - (gate_divides(gate) ? h[k] : 0)));
        }
    }
}

/* Gradients that are added to, or not wanted, go to a scratch row first. */
FORCE_INLINE void walk_backward(int order, enum gate gate, int layout, const struct scan_part *s) {
    (void)layout;
    int m = order ? order : s->m;
    real buffers[2][SCAN_STATES], dz_row[SCAN_GATES], dv_row[SCAN_WIDTH];
    real *G = buffers[0], *carry = buffers[1];
    int64_t N = s->N;
    bool dz_direct = s->dz && !s->add_dz, dv_direct = s->dv && !s->add_dv;
    int64_t dz_stride = dz_direct ? N : SCAN_STRIDE;
    memset(carry, 0, (size_t)(m * SCAN_STRIDE) * sizeof *carry);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        const real *h = s->h + t * m * N, *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        scan_fetch_back(s, t, m, m);
        real *swap = G;
        G = carry;
        carry = swap;
        for (int i = 0; i < m; i++) scan_add(G + i * SCAN_STRIDE, s->dh + (t * m + i) * N, s->width);
        for (int i = 0; i < m; i++) memset(carry + i * SCAN_STRIDE, 0, (size_t)s->width * sizeof *carry);
        for (int i = m - 1; i >= 0; i--) {
            int64_t row = t * m + i;
            const real *z = s->z + row * (m + 1) * N, *v = s->v + row * N, *g = G + i * SCAN_STRIDE;
            real *dz = dz_direct ? s->dz + row * (m + 1) * N : dz_row, *dv = dv_direct ? s->dv + row * N : dv_row;
            if (order) {
#pragma omp simd
                for (int64_t k = 0; k < s->width; k++)
                    dv[k] = row_backward(order, gate, N, z + k, v[k], h_prev + k, prev, h[i * N + k], g[k], carry + k,
                                         dz + k, dz_stride);
            } else {
                rows_backward(m, gate, N, s->width, z, v, h_prev, prev, h + i * N, g, carry, dz, dz_stride, dv);
            }
            for (int j = 0; s->dz && s->add_dz && j <= m; j++)
                scan_add(s->dz + (row * (m + 1) + j) * N, dz_row + j * SCAN_STRIDE, s->width);
            if (s->dv && s->add_dv) scan_add(s->dv + row * N, dv_row, s->width);
        }
    }
}

SCAN_TABLE(forward, walk_forward, 0)
SCAN_TABLE(backward, walk_backward, 0)

static void run(const struct call *c, part_walk *walk) {
    const struct scan_attr *a = scan_attr(c);
    struct scan_strips strips = scan_strips_shared(c->in[1]->dims[0], a->N);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < strips.parts; i++) {
        struct scan_part s = scan_part_of(c, strips, i, a->m, a->m);
        walk(&s);
    }
}

static void scan_block_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, part_walk_of(c, forward));
}

static void scan_block_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, part_walk_of(c, backward));
}

/* Rows that sum to 1 pass on old rounding without growth, so each step adds about one unit and T steps at most T. The
 * reference sums in double. dz = w G (x - h) counts in units of its terms (op->terms): with one gate of a row near 1, h
 * is x up to its rounding, and what is left of x - h comes times w, 1 / S under sigmoid and relu gates. The other way
 * to write it, w G times the sum over l of a_l (x - x_l), cancels nothing but takes m + 1 times the work. */
const struct kernel kernel_scan_block_cpu = {
    .name = "scan_block_cpu",
    .op = &op_scan_block,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .applicable = scan_applicable,
    .forward = scan_block_cpu_forward,
    .backward = scan_block_cpu_backward,
};

/* scan_block_cpu.c - BD-LRU on the CPU: time outer, rows of a block next, blocks inner in vector lanes.
 *
 * Raw gates cross memory once each way: a row's m + 1 gates are normalised in registers and used there. The state of the
 * step before is read from h itself, which is still in L1. Backward walks time in reverse, recomputes the gates and
 * carries A^T G in L1. Since sum_l a_l da_l = G_t[i] h_t[i], the normaliser's gradient needs no sum over the row:
 *   dz_t[i][j] = w_t[i][j] G_t[i] (x_j - h_t[i]),   x = (h_{t-1}, v_t[i])
 * Bits do not depend on the cut into strips: every lane does the same arithmetic (real_fma, real_exp). */
#include <string.h>

#include "kernels/parallel.h"
#include "kernels/scan.h"

/* One row of one block: sum_j a_j h_prev[j*prev] + a_m v. (A function of its own because arrays declared in the body of
 * an `omp simd` loop would stay in memory.) */
GATE_INLINE real row_forward(int m, enum gate gate, int64_t N, const real *z, real v, const real *h_prev,
                             int64_t prev) {
    real raw[SCAN_ROW_MAX], a[SCAN_ROW_MAX];
    GATE_UNROLL
    for (int j = 0; j <= m; j++) raw[j] = z[j * N];
    gate_row(gate, m + 1, raw, a);
    real sum = a[m] * v;
    GATE_UNROLL
    for (int j = 0; j < m; j++) sum = real_fma(a[j], h_prev[j * prev], sum);
    return sum;
}

static const real zeros[SCAN_STATE_MAX]; /* h_{-1}, with rows of stride 0 */

GATE_INLINE void walk_forward(int m, enum gate gate, int layout, const struct scan_task *s) {
    (void)layout;
    int64_t N = s->N, ahead = scan_rows_ahead(s);
    for (int64_t t = 0; t < s->T; t++) {
        real *h = s->h + t * m * N;
        const real *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        for (int i = 0; i < m; i++) {
            int64_t row = t * m + i;
            const real *z = s->z + row * (m + 1) * N, *v = s->v + row * N;
            scan_prefetch(s, row + ahead, s->T * m);
#pragma omp simd
            for (int64_t k = 0; k < s->width; k++) h[i * N + k] = row_forward(m, gate, N, z + k, v[k], h_prev + k, prev);
        }
    }
}

/* One row of one block: dz[j*dz_stride] and carry[j*width] += a_j G; returns dv. */
GATE_INLINE real row_backward(int m, enum gate gate, int64_t N, const real *z, real v, const real *h_prev, int64_t prev,
                              real h, real G, real *carry, int64_t width, real *dz, int64_t dz_stride) {
    real raw[SCAN_ROW_MAX], a[SCAN_ROW_MAX], w[SCAN_ROW_MAX];
    GATE_UNROLL
    for (int j = 0; j <= m; j++) raw[j] = z[j * N];
    gate_row_slope(gate, m + 1, raw, a, w);
    real mean = gate_divides(gate) ? h : 0;
    GATE_UNROLL
    for (int j = 0; j < m; j++) {
        dz[j * dz_stride] = w[j] * (G * (h_prev[j * prev] - mean));
        carry[j * width] = real_fma(a[j], G, carry[j * width]);
    }
    dz[m * dz_stride] = w[m] * (G * (v - mean));
    return a[m] * G;
}

/* Gradients that are added to, or not wanted, go to a scratch row first. */
GATE_INLINE void walk_backward(int m, enum gate gate, int layout, const struct scan_task *s) {
    (void)layout;
    real buffers[2][SCAN_STATE_MAX], dz_row[2 * SCAN_STATE_MAX], dv_row[SCAN_STATE_MAX];
    real *G = buffers[0], *carry = buffers[1];
    int64_t N = s->N, width = s->width, ahead = scan_rows_ahead(s);
    bool dz_direct = s->dz && !s->add_dz, dv_direct = s->dv && !s->add_dv;
    int64_t dz_stride = dz_direct ? N : width;
    memset(carry, 0, (size_t)(m * width) * sizeof *carry);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        const real *h = s->h + t * m * N, *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        real *swap = G;
        G = carry;
        carry = swap;
        for (int i = 0; i < m; i++) scan_add(G + i * width, s->dh + (t * m + i) * N, width);
        memset(carry, 0, (size_t)(m * width) * sizeof *carry);
        for (int i = m - 1; i >= 0; i--) {
            int64_t row = t * m + i;
            const real *z = s->z + row * (m + 1) * N, *v = s->v + row * N;
            real *dz = dz_direct ? s->dz + row * (m + 1) * N : dz_row, *dv = dv_direct ? s->dv + row * N : dv_row;
            scan_prefetch(s, row - ahead, s->T * m);
#pragma omp simd
            for (int64_t k = 0; k < width; k++)
                dv[k] = row_backward(m, gate, N, z + k, v[k], h_prev + k, prev, h[i * N + k], G[i * width + k],
                                     carry + k, width, dz + k, dz_stride);
            for (int j = 0; s->dz && s->add_dz && j <= m; j++)
                scan_add(s->dz + (row * (m + 1) + j) * N, dz_row + j * width, width);
            if (s->dv && s->add_dv) scan_add(s->dv + row * N, dv_row, width);
        }
    }
}

SCAN_EACH(forward, walk_forward, 0)
SCAN_EACH(backward, walk_backward, 0)

static void run(const struct call *c, void (*walk)(const struct scan_task *s)) {
    const struct scan_attr *a = c->attr;
    struct scan_strips strips = scan_strips(c->in[1]->dims[0], a->N, a->m);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < strips.tasks; i++) {
        struct scan_task s = scan_task_of(c, strips, i, a->m, a->m);
        walk(&s);
    }
}

static void scan_block_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, forward[((const struct scan_attr *)c->attr)->gate]);
}

static void scan_block_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, backward[((const struct scan_attr *)c->attr)->gate]);
}

/* Rows that sum to 1 pass on old rounding without growth, so each step adds about one unit and T steps at most T; a
 * dz also divides by S, which sigmoid and relu do not keep near 1. The reference sums in double. */
const struct kernel kernel_scan_block_cpu = {
    .name = "scan_block_cpu",
    .op = &op_scan_block,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .applicable = scan_cpu_applicable,
    .forward = scan_block_cpu_forward,
    .backward = scan_block_cpu_backward,
};

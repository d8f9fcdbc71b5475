/* scan_companion_cpu.c - H-LRU on the CPU: time outer, channels inner in vector lanes. As scan_block_cpu.c, with one row
 * of gates a channel. */
#include <string.h>

#include "kernels/parallel.h"
#include "kernels/scan.h"

/* One channel at one step: s[i*N] from s_prev[i*prev]. */
GATE_INLINE void step_forward(int m, enum gate gate, int layout, int64_t N, const real *z, real v, const real *s_prev,
                              int64_t prev, real *s) {
    real raw[SCAN_ROW_MAX], a[SCAN_ROW_MAX];
    GATE_UNROLL
    for (int j = 0; j <= m; j++) raw[j] = z[j * N];
    gate_row(gate, m + 1, raw, a);
    real first = a[m] * v;
    if (layout == LAYOUT_COMPANION) {
        GATE_UNROLL
        for (int j = 0; j < m; j++) first = real_fma(a[j], s_prev[j * prev], first);
        s[0] = first;
        GATE_UNROLL
        for (int i = 1; i < m; i++) s[i * N] = s_prev[(i - 1) * prev];
        return;
    }
    GATE_UNROLL
    for (int i = 0; i < m; i++) {
        real shifted = i + 1 < m ? s_prev[(i + 1) * prev] : 0;
        if (i == 0) shifted += first;
        s[i * N] = real_fma(a[i], s_prev[0], shifted);
    }
}

static const real zeros[SCAN_STATE_MAX]; /* s_{-1}, with rows of stride 0 */

GATE_INLINE void walk_forward(int m, enum gate gate, int layout, const struct scan_task *s) {
    int64_t N = s->N, ahead = scan_rows_ahead(s);
    for (int64_t t = 0; t < s->T; t++) {
        const real *z = s->z + t * (m + 1) * N, *v = s->v + t * N;
        real *h = s->h + t * m * N;
        const real *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        scan_prefetch(s, t + ahead, s->T);
#pragma omp simd
        for (int64_t k = 0; k < s->width; k++)
            step_forward(m, gate, layout, N, z + k, v[k], h_prev + k, prev, h + k);
    }
}

/* One channel at one step: carry[i*width] holds A_{t+1}^T G_{t+1} and leaves with A_t^T G_t; dz[j*dz_stride]; returns dv.
 * companion: only row 0 has gates, and sum_l a_l da_l = G[0] s_t[0]. */
GATE_INLINE real step_backward(int m, enum gate gate, int layout, int64_t N, const real *z, real v, const real *s_prev,
                               int64_t prev, const real *s, const real *ds, real *carry, int64_t width, real *dz,
                               int64_t dz_stride) {
    real raw[SCAN_ROW_MAX], a[SCAN_ROW_MAX], w[SCAN_ROW_MAX], G[SCAN_ROW_MAX];
    GATE_UNROLL
    for (int j = 0; j <= m; j++) raw[j] = z[j * N];
    gate_row_slope(gate, m + 1, raw, a, w);
    GATE_UNROLL
    for (int i = 0; i < m; i++) G[i] = ds[i * N] + carry[i * width];
    if (layout == LAYOUT_COMPANION) {
        real mean = gate_divides(gate) ? s[0] : 0;
        GATE_UNROLL
        for (int j = 0; j < m; j++) {
            dz[j * dz_stride] = w[j] * (G[0] * (s_prev[j * prev] - mean));
            carry[j * width] = real_fma(a[j], G[0], j + 1 < m ? G[j + 1] : 0);
        }
        dz[m * dz_stride] = w[m] * (G[0] * (v - mean));
        return a[m] * G[0];
    }
    real back = 0, mean = a[m] * (G[0] * v);
    GATE_UNROLL
    for (int i = 0; i < m; i++) back = real_fma(a[i], G[i], back);
    mean = gate_divides(gate) ? real_fma(back, s_prev[0], mean) : 0;
    GATE_UNROLL
    for (int i = 0; i < m; i++) {
        dz[i * dz_stride] = w[i] * (G[i] * s_prev[0] - mean);
        carry[i * width] = i == 0 ? back : G[i > 0 ? i - 1 : 0];
    }
    dz[m * dz_stride] = w[m] * (G[0] * v - mean);
    return a[m] * G[0];
}

/* Gradients that are added to, or not wanted, go to a scratch row first. */
GATE_INLINE void walk_backward(int m, enum gate gate, int layout, const struct scan_task *s) {
    real carry[SCAN_STATE_MAX], dz_row[2 * SCAN_STATE_MAX], dv_row[SCAN_STATE_MAX];
    int64_t N = s->N, width = s->width, ahead = scan_rows_ahead(s);
    bool dz_direct = s->dz && !s->add_dz, dv_direct = s->dv && !s->add_dv;
    int64_t dz_stride = dz_direct ? N : width;
    memset(carry, 0, (size_t)(m * width) * sizeof *carry);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        const real *z = s->z + t * (m + 1) * N, *v = s->v + t * N, *ds = s->dh + t * m * N;
        const real *h = s->h + t * m * N, *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        real *dz = dz_direct ? s->dz + t * (m + 1) * N : dz_row, *dv = dv_direct ? s->dv + t * N : dv_row;
        scan_prefetch(s, t - ahead, s->T);
#pragma omp simd
        for (int64_t k = 0; k < width; k++)
            dv[k] = step_backward(m, gate, layout, N, z + k, v[k], h_prev + k, prev, h + k, ds + k, carry + k, width,
                                  dz + k, dz_stride);
        for (int j = 0; s->dz && s->add_dz && j <= m; j++)
            scan_add(s->dz + (t * (m + 1) + j) * N, dz_row + j * width, width);
        if (s->dv && s->add_dv) scan_add(s->dv + t * N, dv_row, width);
    }
}

SCAN_EACH(forward_companion, walk_forward, LAYOUT_COMPANION)
SCAN_EACH(forward_observer, walk_forward, LAYOUT_OBSERVER)
SCAN_EACH(backward_companion, walk_backward, LAYOUT_COMPANION)
SCAN_EACH(backward_observer, walk_backward, LAYOUT_OBSERVER)

static void run(const struct call *c, void (*walk)(const struct scan_task *s)) {
    const struct scan_attr *a = c->attr;
    struct scan_strips strips = scan_strips(c->in[1]->dims[0], a->N, a->m);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < strips.tasks; i++) {
        struct scan_task s = scan_task_of(c, strips, i, 1, 1);
        walk(&s);
    }
}

static void scan_companion_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scan_attr *a = c->attr;
    run(c, a->layout == LAYOUT_COMPANION ? forward_companion[a->gate] : forward_observer[a->gate]);
}

static void scan_companion_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scan_attr *a = c->attr;
    run(c, a->layout == LAYOUT_COMPANION ? backward_companion[a->gate] : backward_observer[a->gate]);
}

/* As scan_block_cpu; the observer layout keeps only column sums at 1, so its state and its rounding may grow with T. */
const struct kernel kernel_scan_companion_cpu = {
    .name = "scan_companion_cpu",
    .op = &op_scan_companion,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 128,
    .applicable = scan_cpu_applicable,
    .forward = scan_companion_cpu_forward,
    .backward = scan_companion_cpu_backward,
};

/* scan_companion_cpu.c - H-LRU on the CPU: time outer, channels inner in vector lanes. As scan_block_cpu.c, with one
 * row of gates a channel. */
#include <string.h>

#include "kernels/lib/parallel.h"
#include "kernels/gated/scan_softmax.h"

/* One channel at one step: s[i*N] from s_prev[i*prev]. */
FORCE_INLINE void step_forward(int m, enum gate gate, int layout, int64_t N, const real *z, real v, const real *s_prev,
                               int64_t prev, real *s) {
    real p[GATE_MAX];
    real scale = scan_gates(gate, m + 1, z, N, p), sum = p[m] * v;
    if (layout == LAYOUT_COMPANION) {
        UNROLLED(m, sum = real_fma(p[j], s_prev[j * prev], sum));
        s[0] = sum * scale;
        UNROLLED(m - 1, s[(j + 1) * N] = s_prev[j * prev]);
    } else {
        real first = s_prev[0] * scale;
        UNROLLED(m, s[j * N] = real_fma(p[j], first, j + 1 < m ? s_prev[(j + 1) * prev] : 0));
        s[0] = real_fma(sum, scale, s[0]);
    }
}

/* The same of any m, of `width` channels. */
FORCE_INLINE void rows_forward(int m, enum gate gate, int layout, int64_t N, int64_t width, const real *z,
                               const real *v, const real *s_prev, int64_t prev, real *s) {
    real p[SCAN_GATES], scale[SCAN_WIDTH], sum[SCAN_WIDTH];
    scan_gates_in_memory(gate, m + 1, width, z, N, p, scale);
    for (int64_t k = 0; k < width; k++) sum[k] = p[m * SCAN_STRIDE + k] * v[k];
    for (int j = 0; j < m; j++) {
        const real *a = p + j * SCAN_STRIDE, *lag = s_prev + j * prev, *next = lag + prev;
        if (layout == LAYOUT_COMPANION) {
#pragma omp simd
            for (int64_t k = 0; k < width; k++) sum[k] = real_fma(a[k], lag[k], sum[k]);
            if (j + 1 < m) memcpy(s + (j + 1) * N, lag, (size_t)width * sizeof *s);
        } else {
#pragma omp simd
            for (int64_t k = 0; k < width; k++)
                s[j * N + k] = real_fma(a[k], s_prev[k] * scale[k], j + 1 < m ? next[k] : 0);
        }
    }
    for (int64_t k = 0; k < width; k++)
        s[k] = layout == LAYOUT_COMPANION ? sum[k] * scale[k] : real_fma(sum[k], scale[k], s[k]);
}

static const real zeros[SCAN_WIDTH]; /* s_{-1}, with rows of stride 0 */

FORCE_INLINE void walk_forward(int order, enum gate gate, int layout, const struct scan_part *s) {
    int m = order ? order : s->m;
    int64_t N = s->N, ahead = scan_rows_ahead(s);
    for (int64_t t = 0; t < s->T; t++) {
        const real *z = s->z + t * (m + 1) * N, *v = s->v + t * N;
        real *h = s->h + t * m * N;
        const real *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        scan_prefetch(s, t + ahead, s->T);
        if (!order) {
            rows_forward(m, gate, layout, N, s->width, z, v, h_prev, prev, h);
            continue;
        }
#pragma omp simd
        for (int64_t k = 0; k < s->width; k++)
            step_forward(order, gate, layout, N, z + k, v[k], h_prev + k, prev, h + k);
    }
}

/* One channel at one step: carry[i*SCAN_STRIDE] holds A_{t+1}^T G_{t+1} and leaves with A_t^T G_t; dz[j*dz_stride];
 * returns dv. companion: only row 0 has gates, and sum_l a_l da_l = G[0] s_t[0]. */
FORCE_INLINE real step_backward(int m, enum gate gate, int layout, int64_t N, const real *z, real v, const real *s_prev,
                                int64_t prev, const real *s, const real *ds, real *carry, real *dz, int64_t dz_stride) {
    real p[GATE_MAX], G[GATE_MAX];
    real scale = scan_gates(gate, m + 1, z, N, p);
    UNROLLED(m, G[j] = ds[j * N] + carry[j * SCAN_STRIDE]);
    /* 1 <= m <= SCAN_UNROLLED < GATE_MAX, so that G[0] is set and p[m] is there. */
    /* cppcheck-suppress [arrayIndexOutOfBoundsCond, uninitvar] */
    real dv = p[m] * (G[0] * scale); /* NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    if (layout == LAYOUT_COMPANION) {
        real mean = gate_divides(gate) ? s[0] : 0, G_scale = G[0] * scale;
        UNROLLED(m, carry[j * SCAN_STRIDE] = real_fma(p[j], G_scale, j + 1 < m ? G[(j + 1) % GATE_MAX] : 0));
        UNROLLED(m, dz[j * dz_stride] = gate_slope(gate, p[j], scale) * (G[0] * (s_prev[j * prev] - mean)));
        /* cppcheck-suppress arrayIndexOutOfBoundsCond ; as above */
        dz[m * dz_stride] = gate_slope(gate, p[m], scale) * (G[0] * (v - mean));
    } else {
        real back = 0; /* sum_i a_i G[i] */
        UNROLLED(m, back = real_fma(p[j] * scale, G[j], back));
        real mean = gate_divides(gate) ? real_fma(back, s_prev[0], dv * v) : 0;
        UNROLLED(m, carry[j * SCAN_STRIDE] = j == 0 ? back : G[(j + GATE_MAX - 1) % GATE_MAX]);
        UNROLLED(m, dz[j * dz_stride] = gate_slope(gate, p[j], scale) * (G[j] * s_prev[0] - mean));
        /* cppcheck-suppress arrayIndexOutOfBoundsCond ; as above */
        dz[m * dz_stride] = gate_slope(gate, p[m], scale) * (G[0] * v - mean);
    }
    return dv;
}

/* The same of any m, of `width` channels. */
FORCE_INLINE void rows_backward(int m, enum gate gate, int layout, int64_t N, int64_t width, const real *z,
                                const real *v, const real *s_prev, int64_t prev, const real *s, const real *ds,
                                real *carry, real *dz, int64_t dz_stride, real *dv) {
    real p[SCAN_GATES], scale[SCAN_WIDTH], G_0[SCAN_WIDTH], back[SCAN_WIDTH], mean[SCAN_WIDTH];
    size_t rest = (size_t)(m - 1) * SCAN_STRIDE * sizeof *carry;
    scan_gates_in_memory(gate, m + 1, width, z, N, p, scale);
    for (int j = 0; j < m; j++) scan_add(carry + j * SCAN_STRIDE, ds + j * N, width); /* now G */
    for (int64_t k = 0; k < width; k++) {
        G_0[k] = carry[k];
        dv[k] = p[m * SCAN_STRIDE + k] * (G_0[k] * scale[k]);
        back[k] = 0;
    }
    for (int j = 0; j < m && layout == LAYOUT_OBSERVER; j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++)
            back[k] = real_fma(p[j * SCAN_STRIDE + k] * scale[k], carry[j * SCAN_STRIDE + k], back[k]);
    for (int64_t k = 0; k < width; k++)
        mean[k] = !gate_divides(gate)          ? 0
                  : layout == LAYOUT_COMPANION ? s[k]
                                               : real_fma(back[k], s_prev[k], dv[k] * v[k]);
    for (int j = 0; j <= m; j++) {
        const real *a = p + j * SCAN_STRIDE, *g = j < m && layout == LAYOUT_OBSERVER ? carry + j * SCAN_STRIDE : G_0;
        const real *x = j == m ? v : layout == LAYOUT_COMPANION ? s_prev + j * prev : s_prev;
        real *da = dz + j * dz_stride;
#pragma omp simd
        for (int64_t k = 0; k < width; k++)
            da[k] = gate_slope(gate, a[k], scale[k]) *
                    (layout == LAYOUT_COMPANION ? g[k] * (x[k] - mean[k]) : g[k] * x[k] - mean[k]);
    }
    if (layout == LAYOUT_OBSERVER) {
        memmove(carry + SCAN_STRIDE, carry, rest);
        memcpy(carry, back, (size_t)width * sizeof *carry);
        return;
    }
    memmove(carry, carry + SCAN_STRIDE, rest);
    memset(carry + (m - 1) * SCAN_STRIDE, 0, (size_t)width * sizeof *carry);
    for (int j = 0; j < m; j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++)
            carry[j * SCAN_STRIDE + k] =
                real_fma(p[j * SCAN_STRIDE + k], G_0[k] * scale[k], carry[j * SCAN_STRIDE + k]);
}

/* Gradients that are added to, or not wanted, go to a scratch row first. */
FORCE_INLINE void walk_backward(int order, enum gate gate, int layout, const struct scan_part *s) {
    int m = order ? order : s->m;
    real carry[SCAN_STATES], dz_row[SCAN_GATES], dv_row[SCAN_WIDTH];
    int64_t N = s->N;
    bool dz_direct = s->dz && !s->add_dz, dv_direct = s->dv && !s->add_dv;
    int64_t dz_stride = dz_direct ? N : SCAN_STRIDE;
    memset(carry, 0, (size_t)(m * SCAN_STRIDE) * sizeof *carry);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        const real *z = s->z + t * (m + 1) * N, *v = s->v + t * N, *ds = s->dh + t * m * N;
        const real *h = s->h + t * m * N, *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        real *dz = dz_direct ? s->dz + t * (m + 1) * N : dz_row, *dv = dv_direct ? s->dv + t * N : dv_row;
        scan_fetch_back(s, t, 1, 1);
        if (order) {
#pragma omp simd
            for (int64_t k = 0; k < s->width; k++)
                dv[k] = step_backward(order, gate, layout, N, z + k, v[k], h_prev + k, prev, h + k, ds + k, carry + k,
                                      dz + k, dz_stride);
        } else {
            rows_backward(m, gate, layout, N, s->width, z, v, h_prev, prev, h, ds, carry, dz, dz_stride, dv);
        }
        for (int j = 0; s->dz && s->add_dz && j <= m; j++)
            scan_add(s->dz + (t * (m + 1) + j) * N, dz_row + j * SCAN_STRIDE, s->width);
        if (s->dv && s->add_dv) scan_add(s->dv + t * N, dv_row, s->width);
    }
}

SCAN_TABLE(forward_companion, walk_forward, LAYOUT_COMPANION)
SCAN_TABLE(forward_observer, walk_forward, LAYOUT_OBSERVER)
SCAN_TABLE(backward_companion, walk_backward, LAYOUT_COMPANION)
SCAN_TABLE(backward_observer, walk_backward, LAYOUT_OBSERVER)

static void run(const struct call *c, part_walk *walk) {
    const struct scan_attr *a = scan_attr(c);
    struct scan_strips strips = scan_strips_shared(c->in[1]->dims[0], a->N);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < strips.parts; i++) {
        struct scan_part s = scan_part_of(c, strips, i, 1, 1);
        walk(&s);
    }
}

static part_walk *walk_of(const struct call *c, bool forward) {
    bool companion = scan_attr(c)->layout == LAYOUT_COMPANION;
    if (forward) return part_walk_of(c, companion ? forward_companion : forward_observer);
    return part_walk_of(c, companion ? backward_companion : backward_observer);
}

static void scan_companion_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, walk_of(c, true));
}

static void scan_companion_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, walk_of(c, false));
}

/* As scan_block_cpu, its units too; the observer layout keeps only column sums at 1, so its state and its rounding may
 * grow with T. */
const struct kernel kernel_scan_companion_cpu = {
    .name = "scan_companion_cpu",
    .op = &op_scan_companion,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 128,
    .applicable = scan_applicable,
    .forward = scan_companion_cpu_forward,
    .backward = scan_companion_cpu_backward,
};

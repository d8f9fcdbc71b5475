/* scan_companion_cpu.c - H-LRU (scan_companion.c) on the CPU. The outer loop runs over time, the inner loop over
 * channels in vector lanes. Each channel has one row of gates per step.
 *
 * Each row has m + 1 raw gates z and the gates a (gate.h):
 *   p = f(z),  S = sum_j p_j,  a = p * scale with scale = 1 / S      a_0 to a_{m-1} multiply states, a_m multiplies v_t
 * Backward, where dz and da are gradients of the loss:
 *   G = ds_t + carry                        whole gradient of s_t; the carry from step t + 1 is A^T G of that step
 *   dz_j = w_j (da_j - sum_l a_l da_l)      w_j: the slope of a_j over z_j with S held constant
 * In the companion layout, only row 0 of the transition matrix A has gates. So da_l is G[0] times the state (or v_t)
 * that a_l multiplies, and sum_l a_l da_l = G[0] s_t[0]. In the observer layout only column 0 of A has gates, and the
 * code computes the sum. */
#include <string.h>

#include "kernels/gated/scan_cpu.h"

/* --- forward: s_t from s_{t-1} ------------------------------------------------------------------------------------ */

/* Computes the m states of channel k at one step. */
FORCE_INLINE void companion_forward(int m, enum gate gate, const struct scan_row *r, int64_t k) {
    const real *before = r->before + k;
    int64_t N = r->N, stride = r->stride;
    real p[GATE_MAX], *s = r->h + k;
    real scale = scan_gates(gate, m + 1, r->z + k, N, p), sum = p[m] * r->v[k];
    UNROLLED(m, sum = real_fma(p[j], before[j * stride], sum));
    s[0] = sum * scale;
    UNROLLED(m - 1, s[(j + 1) * N] = before[j * stride]);
}

FORCE_INLINE void observer_forward(int m, enum gate gate, const struct scan_row *r, int64_t k) {
    const real *before = r->before + k;
    int64_t N = r->N, stride = r->stride;
    real p[GATE_MAX], *s = r->h + k;
    real scale = scan_gates(gate, m + 1, r->z + k, N, p), sum = p[m] * r->v[k], first = before[0] * scale;
    UNROLLED(m, s[j * N] = real_fma(p[j], first, j + 1 < m ? before[(j + 1) * stride] : 0));
    s[0] = real_fma(sum, scale, s[0]);
}

/* Computes one step for the `width` channels of `part`, in both layouts and for any m. */
FORCE_INLINE void rows_forward(int m, enum gate gate, const struct scan_part *part, const struct scan_row *r) {
    real p[SCAN_GATES], scale[SCAN_WIDTH], sum[SCAN_WIDTH], *s = r->h;
    int64_t N = r->N, width = part->width;
    bool companion = part->layout == LAYOUT_COMPANION;
    scan_gates_in_memory(gate, m + 1, width, r->z, N, p, scale);
    for (int64_t k = 0; k < width; k++) sum[k] = p[m * SCAN_STRIDE + k] * r->v[k];
    for (int j = 0; j < m; j++) {
        const real *a = p + j * SCAN_STRIDE, *before = r->before, *lag = before + j * r->stride,
                   *next = lag + r->stride;
        if (companion) {
#pragma omp simd
            for (int64_t k = 0; k < width; k++) sum[k] = real_fma(a[k], lag[k], sum[k]);
            if (j + 1 < m) memcpy(s + (j + 1) * N, lag, (size_t)width * sizeof *s);
        } else {
#pragma omp simd
            for (int64_t k = 0; k < width; k++)
                s[j * N + k] = real_fma(a[k], before[k] * scale[k], j + 1 < m ? next[k] : 0);
        }
    }
    for (int64_t k = 0; k < width; k++) s[k] = companion ? sum[k] * scale[k] : real_fma(sum[k], scale[k], s[k]);
}

FORCE_INLINE void forward(int order, enum gate gate, const struct scan_part *s) {
    int m = order ? order : s->m;
    for (int64_t t = 0; t < s->T; t++) {
        struct scan_row r = scan_row_at(s, t, 0, NULL);
        r.h = s->h + t * m * s->N;
        scan_prefetch(s, t, 0);
        if (!order) {
            rows_forward(m, gate, s, &r);
        } else if (s->layout == LAYOUT_COMPANION) {
#pragma omp simd
            for (int64_t k = 0; k < s->width; k++) companion_forward(order, gate, &r, k);
        } else {
#pragma omp simd
            for (int64_t k = 0; k < s->width; k++) observer_forward(order, gate, &r, k);
        }
    }
}

/* --- backward: G = ds + carry; then dz and dv; then the next carry, A^T G ----------------------------------------- */

/* Computes the gradients of channel k at one step. `ds` is the incoming gradient of the states: m rows, N apart. */
FORCE_INLINE void companion_backward(int m, enum gate gate, const struct scan_row *r, const real *ds, int64_t k) {
    const real *before = r->before + k;
    real *carry = r->carry + k, *dz = r->dz + k;
    int64_t N = r->N, stride = r->stride, dz_stride = r->dz_stride;
    real p[GATE_MAX], G[GATE_MAX], v = r->v[k];
    real scale = scan_gates(gate, m + 1, r->z + k, N, p), mean = gate_divides(gate) ? r->h[k] : 0;
    UNROLLED(m, G[j] = ds[j * N + k] + carry[j * SCAN_STRIDE]);
    /* 1 <= m <= SCAN_UNROLLED < GATE_MAX, so that G[0] is set and p[m] exists. */
    /* cppcheck-suppress [arrayIndexOutOfBoundsCond, uninitvar] */
    real G_scale = G[0] * scale; /* NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    r->dv[k] = p[m] * G_scale;
    UNROLLED(m, carry[j * SCAN_STRIDE] = real_fma(p[j], G_scale, j + 1 < m ? G[(j + 1) % GATE_MAX] : 0));
    UNROLLED(m, dz[j * dz_stride] = gate_slope(gate, p[j], scale) * (G[0] * (before[j * stride] - mean)));
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; as above */
    dz[m * dz_stride] = gate_slope(gate, p[m], scale) * (G[0] * (v - mean));
}

FORCE_INLINE void observer_backward(int m, enum gate gate, const struct scan_row *r, const real *ds, int64_t k) {
    real *carry = r->carry + k, *dz = r->dz + k;
    int64_t N = r->N, dz_stride = r->dz_stride;
    real p[GATE_MAX], G[GATE_MAX], v = r->v[k], before = r->before[k], back = 0; /* back: sum_i a_i G[i] */
    real scale = scan_gates(gate, m + 1, r->z + k, N, p);
    UNROLLED(m, G[j] = ds[j * N + k] + carry[j * SCAN_STRIDE]);
    /* cppcheck-suppress [arrayIndexOutOfBoundsCond, uninitvar] ; as in companion_backward */
    real dv = p[m] * (G[0] * scale); /* NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    UNROLLED(m, back = real_fma(p[j] * scale, G[j], back));
    real mean = gate_divides(gate) ? real_fma(back, before, dv * v) : 0;
    UNROLLED(m, carry[j * SCAN_STRIDE] = j == 0 ? back : G[(j + GATE_MAX - 1) % GATE_MAX]);
    UNROLLED(m, dz[j * dz_stride] = gate_slope(gate, p[j], scale) * (G[j] * before - mean));
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; as in companion_backward */
    dz[m * dz_stride] = gate_slope(gate, p[m], scale) * (G[0] * v - mean);
    r->dv[k] = dv;
}

/* Computes the gradients of one step for the `width` channels of `part`, in both layouts and for any m. */
FORCE_INLINE void rows_backward(int m, enum gate gate, const struct scan_part *part, const struct scan_row *r,
                                const real *ds) {
    real p[SCAN_GATES], scale[SCAN_WIDTH], G_0[SCAN_WIDTH], back[SCAN_WIDTH], mean[SCAN_WIDTH];
    real *carry = r->carry, *dv = r->dv;
    int64_t width = part->width;
    bool companion = part->layout == LAYOUT_COMPANION;
    size_t rest = (size_t)(m - 1) * SCAN_STRIDE * sizeof *carry;
    scan_gates_in_memory(gate, m + 1, width, r->z, r->N, p, scale);
    for (int j = 0; j < m; j++) scan_add(carry + j * SCAN_STRIDE, ds + j * r->N, width); /* carry becomes G */
    for (int64_t k = 0; k < width; k++) {
        G_0[k] = carry[k];
        dv[k] = p[m * SCAN_STRIDE + k] * (G_0[k] * scale[k]);
        back[k] = 0;
    }
    for (int j = 0; j < m && !companion; j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++)
            back[k] = real_fma(p[j * SCAN_STRIDE + k] * scale[k], carry[j * SCAN_STRIDE + k], back[k]);
    for (int64_t k = 0; k < width; k++)
        mean[k] = !gate_divides(gate) ? 0 : companion ? r->h[k] : real_fma(back[k], r->before[k], dv[k] * r->v[k]);
    for (int j = 0; j <= m; j++) {
        const real *a = p + j * SCAN_STRIDE, *g = j < m && !companion ? carry + j * SCAN_STRIDE : G_0;
        const real *x = j == m ? r->v : companion ? r->before + j * r->stride : r->before;
        real *da = r->dz + j * r->dz_stride;
        if (companion) {
#pragma omp simd
            for (int64_t k = 0; k < width; k++) da[k] = gate_slope(gate, a[k], scale[k]) * (g[k] * (x[k] - mean[k]));
        } else {
#pragma omp simd
            for (int64_t k = 0; k < width; k++) da[k] = gate_slope(gate, a[k], scale[k]) * (g[k] * x[k] - mean[k]);
        }
    }
    if (!companion) {
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

FORCE_INLINE void backward(int order, enum gate gate, const struct scan_part *s) {
    int m = order ? order : s->m;
    real carry[SCAN_STATES];
    struct scan_buffers buffers;
    memset(carry, 0, (size_t)(m * SCAN_STRIDE) * sizeof *carry);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        const real *ds = s->dh + t * m * s->N;
        struct scan_row r = scan_row_at(s, t, 0, &buffers);
        r.h = s->h + t * m * s->N;
        r.carry = carry;
        scan_fetch_back(s, t);
        if (!order) {
            rows_backward(m, gate, s, &r, ds);
        } else if (s->layout == LAYOUT_COMPANION) {
#pragma omp simd
            for (int64_t k = 0; k < s->width; k++) companion_backward(order, gate, &r, ds, k);
        } else {
#pragma omp simd
            for (int64_t k = 0; k < s->width; k++) observer_backward(order, gate, &r, ds, k);
        }
        scan_row_add(s, t, 0, &buffers);
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static void forward_softmax(const struct scan_part *s) {
    SCAN_BY_ORDER(forward, GATE_SOFTMAX, s)
}
static void forward_sigmoid(const struct scan_part *s) {
    SCAN_BY_ORDER(forward, GATE_SIGMOID, s)
}
static void forward_relu(const struct scan_part *s) {
    SCAN_BY_ORDER(forward, GATE_RELU, s)
}
static void forward_none(const struct scan_part *s) {
    SCAN_BY_ORDER(forward, GATE_NONE, s)
}
static void backward_softmax(const struct scan_part *s) {
    SCAN_BY_ORDER(backward, GATE_SOFTMAX, s)
}
static void backward_sigmoid(const struct scan_part *s) {
    SCAN_BY_ORDER(backward, GATE_SIGMOID, s)
}
static void backward_relu(const struct scan_part *s) {
    SCAN_BY_ORDER(backward, GATE_RELU, s)
}
static void backward_none(const struct scan_part *s) {
    SCAN_BY_ORDER(backward, GATE_NONE, s)
}

static void (*const forward_of[GATE_COUNT])(const struct scan_part *) = {forward_softmax, forward_sigmoid, forward_relu,
                                                                         forward_none};
static void (*const backward_of[GATE_COUNT])(const struct scan_part *) = {backward_softmax, backward_sigmoid,
                                                                          backward_relu, backward_none};

static void scan_companion_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    scan_parts(c, 1, forward_of[scan_attr(c)->gate]);
}

static void scan_companion_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    scan_parts(c, 1, backward_of[scan_attr(c)->gate]);
}

/* Tolerance: each step adds about one rounding unit, and the reference sums in double. In the companion layout the
 * gates sum to 1, so old errors do not grow. In the observer layout the columns of A sum to 1 but its rows do not, so
 * the state and its rounding errors may grow with T. */
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

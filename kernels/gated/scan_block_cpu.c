/* scan_block_cpu.c - BD-LRU (scan_block.c) on the CPU. The outer loop runs over time, the next over the rows of a
 * block, the inner one over blocks in vector lanes.
 *
 * Each pass reads the raw gates only once from memory. A row's m + 1 gates are normalised in registers and used there;
 * if m is above 8 they stay in L1. The previous state is read from the output h, which is still in L1. Backward goes
 * from the last step to the first, recomputes the gates and carries A^T G in L1. With x = (h_{t-1}, v_t[i]), row i
 * computes h_t[i] = sum_l a_l x_l, so the gradient of gate a_l is G_t[i] x_l, and the sum of a_l times it is G_t[i]
 * h_t[i]. The gradient of the gates' normalisation therefore needs no sum over the row:
 *   dz_t[i][j] = w_t[i][j] G_t[i] (x_j - h_t[i])
 * where w is the derivative of the gate function divided by the row's sum S (softmax: w = a). In the code `p` holds the
 * gates before the division by S: a = p * scale, scale = 1 / S. */
#include <string.h>

#include "kernels/gated/scan_cpu.h"

/* Computes one row of block k: h = sum_j a_j before_j + a_m v. */
FORCE_INLINE void row_forward(int m, enum gate gate, const struct scan_row *r, int64_t k) {
    real p[GATE_MAX];
    real scale = scan_gates(gate, m + 1, r->z + k, r->N, p), sum = p[m] * r->v[k];
    UNROLLED(m, sum = real_fma(p[j], r->before[j * r->stride + k], sum));
    r->h[k] = sum * scale;
}

/* Like row_forward, for any m and for `width` neighbouring blocks. */
FORCE_INLINE void rows_forward(int m, enum gate gate, const struct scan_row *r, int64_t width) {
    real p[SCAN_GATES], scale[SCAN_WIDTH];
    real *h = r->h;
    scan_gates_in_memory(gate, m + 1, width, r->z, r->N, p, scale);
    for (int64_t k = 0; k < width; k++) h[k] = p[m * SCAN_STRIDE + k] * r->v[k];
    for (int j = 0; j < m; j++)
#pragma omp simd
        for (int64_t k = 0; k < width; k++) h[k] = real_fma(p[j * SCAN_STRIDE + k], r->before[j * r->stride + k], h[k]);
    for (int64_t k = 0; k < width; k++) h[k] *= scale[k];
}

FORCE_INLINE void forward(int order, enum gate gate, const struct scan_part *s) {
    int m = order ? order : s->m;
    for (int64_t t = 0; t < s->T; t++)
        for (int i = 0; i < m; i++) {
            struct scan_row r = scan_row_at(s, t, i, NULL);
            r.h = s->h + (t * m + i) * s->N;
            scan_prefetch(s, t, i);
            if (order) {
#pragma omp simd
                for (int64_t k = 0; k < s->width; k++) row_forward(order, gate, &r, k);
            } else {
                rows_forward(m, gate, &r, s->width);
            }
        }
}

/* Computes the gradients of one row of block k: dz, dv, and carry_j += a_j G. */
FORCE_INLINE void row_backward(int m, enum gate gate, const struct scan_row *r, const real *G_row, int64_t k) {
    const real *before = r->before + k;
    real *carry = r->carry + k, *dz = r->dz + k;
    int64_t stride = r->stride, dz_stride = r->dz_stride;
    real p[GATE_MAX], v = r->v[k], G = G_row[k];
    real scale = scan_gates(gate, m + 1, r->z + k, r->N, p), mean = gate_divides(gate) ? r->h[k] : 0;
    real G_scale = G * scale;
    if (gate == GATE_SOFTMAX) { /* w = a, so a_j G is needed for both the carry and dz */
        UNROLLED(m + 1, p[j] *= G_scale);
        UNROLLED(m, carry[j * SCAN_STRIDE] += p[j]);
        UNROLLED(m, dz[j * dz_stride] = p[j] * (before[j * stride] - mean));
        /* cppcheck-suppress [arrayIndexOutOfBoundsCond, negativeIndex] ; 1 <= m <= SCAN_UNROLLED < GATE_MAX */
        dz[m * dz_stride] = p[m] * (v - mean);
        /* cppcheck-suppress [arrayIndexOutOfBoundsCond, negativeIndex] ; see above */
        r->dv[k] = p[m];
        return;
    }
    UNROLLED(m, carry[j * SCAN_STRIDE] = real_fma(p[j], G_scale, carry[j * SCAN_STRIDE]));
    UNROLLED(m, dz[j * dz_stride] = gate_slope(gate, p[j], scale) * (G * (before[j * stride] - mean)));
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; see above */
    dz[m * dz_stride] = gate_slope(gate, p[m], scale) * (G * (v - mean));
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; see above */
    r->dv[k] = p[m] * G_scale;
}

/* Like row_backward, for any m and all `width` blocks of the strip. */
FORCE_INLINE void rows_backward(int m, enum gate gate, const struct scan_row *r, const real *G, int64_t width) {
    real p[SCAN_GATES], scale[SCAN_WIDTH];
    scan_gates_in_memory(gate, m + 1, width, r->z, r->N, p, scale);
    memset(r->dv, 0, (size_t)width * sizeof *r->dv);
    for (int j = 0; j <= m; j++) {
        const real *a = p + j * SCAN_STRIDE, *x = j < m ? r->before + j * r->stride : r->v, *h = r->h;
        real *da = r->dz + j * r->dz_stride, *back = j < m ? r->carry + j * SCAN_STRIDE : r->dv;
#pragma omp simd
        for (int64_t k = 0; k < width; k++) {
            back[k] = real_fma(a[k], G[k] * scale[k], back[k]);
            da[k] = gate_slope(gate, a[k], scale[k]) * (G[k] * (x[k] - (gate_divides(gate) ? h[k] : 0)));
        }
    }
}

/* Computes the gradients from the last step to the first. Each step first computes G_t = dh_t + carry in the carry's
 * buffer, then the next carry from the rows of A_t. */
FORCE_INLINE void backward(int order, enum gate gate, const struct scan_part *s) {
    int m = order ? order : s->m;
    real states[2][SCAN_STATES];
    struct scan_buffers buffers;
    real *G = states[0], *carry = states[1];
    memset(carry, 0, (size_t)(m * SCAN_STRIDE) * sizeof *carry);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        scan_fetch_back(s, t);
        real *swap = G;
        G = carry;
        carry = swap;
        for (int i = 0; i < m; i++) scan_add(G + i * SCAN_STRIDE, s->dh + (t * m + i) * s->N, s->width);
        for (int i = 0; i < m; i++) memset(carry + i * SCAN_STRIDE, 0, (size_t)s->width * sizeof *carry);
        for (int i = m - 1; i >= 0; i--) {
            struct scan_row r = scan_row_at(s, t, i, &buffers);
            r.h = s->h + (t * m + i) * s->N;
            r.carry = carry;
            if (order) {
#pragma omp simd
                for (int64_t k = 0; k < s->width; k++) row_backward(order, gate, &r, G + i * SCAN_STRIDE, k);
            } else {
                rows_backward(m, gate, &r, G + i * SCAN_STRIDE, s->width);
            }
            scan_row_add(s, t, i, &buffers);
        }
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

static void scan_block_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    scan_parts(c, scan_attr(c)->m, forward_of[scan_attr(c)->gate]);
}

static void scan_block_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    scan_parts(c, scan_attr(c)->m, backward_of[scan_attr(c)->gate]);
}

/* Tolerance: a row's gates sum to 1, so old rounding errors do not grow. Each step adds about one rounding error
 * (REAL_EPSILON) with a random sign. The reference sums in double. The error of dz = w G (x - h) is compared with the
 * size of its terms (op->terms): if one gate of a row is near 1, x - h is only rounding error, and w multiplies this
 * error by up to 1 / S with sigmoid and relu gates. The form w G sum_l a_l (x - x_l) does not cancel, but takes m + 1
 * times the work. */
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

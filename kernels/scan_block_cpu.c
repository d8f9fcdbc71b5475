/* scan_block_cpu.c - BD-LRU on the CPU: time outer, rows of a block next, blocks inner in vector lanes.
 *
 * Raw gates cross memory once each way: a row's m + 1 gates are normalised in registers and used there. The state of the
 * step before is read from h itself, which is still in L1. Backward walks time in reverse, recomputes the gates and
 * carries A^T G in L1. Since sum_l a_l da_l = G_t[i] h_t[i], the normaliser's gradient needs no sum over the row:
 *   dz_t[i][j] = w_t[i][j] G_t[i] (x_j - h_t[i]),   x = (h_{t-1}, v_t[i])
 * Bits do not depend on the cut into strips: every lane does the same arithmetic (real_fma, real_exp). */
#include <string.h>

#include "kernels/gate.h"
#include "kernels/scan.h"

#define ROW_MAX (SCAN_ORDER_MAX + 1)
#define PREFETCH_BYTES 2048 /* distance; more evicts, less comes late */

/* One task: element 0 of batch b and of its strip; width blocks. dz and dv may be NULL. */
struct task {
    const real *z, *v, *dh;
    real *h, *dz, *dv;
    bool add_dz, add_dv;
    int64_t T, N, m, width;
    enum gate gate;
};

static struct task task_of(const struct call *c, struct scan_strips strips, int64_t index) {
    const struct scan_block_attr *a = c->attr;
    int64_t T = c->in[1]->dims[1], b = index / strips.count, k = index % strips.count * strips.width;
    int64_t states = b * T * a->m * a->N + k, gates = b * T * a->m * (a->m + 1) * a->N + k;
    return (struct task){
        .z = tensor_real(c->in[0]) + gates,
        .v = tensor_real(c->in[1]) + states,
        .h = tensor_real(c->out[0]) + states,
        .T = T,
        .N = a->N,
        .m = a->m,
        .width = a->N - k < strips.width ? a->N - k : strips.width,
        .gate = a->gate,
        .dh = c->out[0]->grad ? c->out[0]->grad + states : NULL,
        .dz = c->din[0] ? c->din[0] + gates : NULL,
        .dv = c->din[1] ? c->din[1] + states : NULL,
        .add_dz = call_accumulates(c, 0),
        .add_dv = call_accumulates(c, 1),
    };
}

/* One row of one block: sum_j a_j h_prev[j*prev] + a_m v. (A function of its own because arrays declared in the body of
 * an `omp simd` loop would stay in memory.) */
GATE_INLINE real row_forward(enum gate gate, int m, int64_t N, const real *z, real v, const real *h_prev,
                             int64_t prev) {
    real raw[ROW_MAX], a[ROW_MAX];
    GATE_UNROLL
    for (int j = 0; j <= m; j++) raw[j] = z[j * N];
    gate_row(gate, m + 1, raw, a);
    real sum = a[m] * v;
    GATE_UNROLL
    for (int j = 0; j < m; j++) sum = real_fma(a[j], h_prev[j * prev], sum);
    return sum;
}

/* How many rows of gates ahead of use to prefetch. */
static int64_t rows_ahead(const struct task *s, int m) {
    return PREFETCH_BYTES / ((m + 1) * s->width * (int64_t)sizeof(real)) + 1;
}

/* Row r of the task's T*m rows of gates: the hardware does not follow m + 1 short runs on its own. */
static void prefetch_row(const struct task *s, int m, int64_t r) {
    if (r < 0 || r >= s->T * m) return;
    for (int j = 0; j <= m; j++)
        for (int64_t k = 0; k < s->width; k += SCAN_VECTOR) __builtin_prefetch(s->z + (r * (m + 1) + j) * s->N + k);
}

GATE_INLINE void walk_forward(enum gate gate, int m, const struct task *s) {
    static const real zeros[SCAN_STATE_MAX];
    int64_t N = s->N, ahead = rows_ahead(s, m);
    for (int64_t t = 0; t < s->T; t++) {
        const real *z = s->z + t * m * (m + 1) * N, *v = s->v + t * m * N;
        real *h = s->h + t * m * N;
        const real *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        for (int i = 0; i < m; i++) {
            prefetch_row(s, m, t * m + i + ahead);
#pragma omp simd
            for (int64_t k = 0; k < s->width; k++)
                h[i * N + k] = row_forward(gate, m, N, z + i * (m + 1) * N + k, v[i * N + k], h_prev + k, prev);
        }
    }
}

/* One row of one block: dz[j*dz_stride] and carry[j*width] += a_j G; returns dv. */
GATE_INLINE real row_backward(enum gate gate, int m, int64_t N, const real *z, real v, const real *h_prev, int64_t prev,
                              real h, real G, real *carry, int64_t width, real *dz, int64_t dz_stride) {
    real raw[ROW_MAX], a[ROW_MAX], w[ROW_MAX];
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

static void add_to(real *d, const real *x, int64_t n) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) d[k] += x[k];
}

/* Gradients that are added to, or not wanted, go to a scratch row first. */
GATE_INLINE void walk_backward(enum gate gate, int m, const struct task *s) {
    static const real zeros[SCAN_STATE_MAX];
    real buffers[2][SCAN_STATE_MAX], dz_row[SCAN_STATE_MAX + SCAN_STATE_MAX], dv_row[SCAN_STATE_MAX];
    real *G = buffers[0], *carry = buffers[1];
    int64_t N = s->N, width = s->width;
    bool dz_direct = s->dz && !s->add_dz, dv_direct = s->dv && !s->add_dv;
    int64_t dz_stride = dz_direct ? N : width, ahead = rows_ahead(s, m);
    memset(carry, 0, (size_t)(m * width) * sizeof *carry);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        const real *z = s->z + t * m * (m + 1) * N, *v = s->v + t * m * N, *h = s->h + t * m * N;
        real *swap = G;
        G = carry;
        carry = swap;
        for (int i = 0; i < m; i++) add_to(G + i * width, s->dh + (t * m + i) * N, width);
        memset(carry, 0, (size_t)(m * width) * sizeof *carry);
        const real *h_prev = t ? h - m * N : zeros;
        int64_t prev = t ? N : 0;
        for (int i = m - 1; i >= 0; i--) {
            prefetch_row(s, m, t * m + i - ahead);
            const real *z_row = z + i * (m + 1) * N;
            real *dz_out = s->dz ? s->dz + (t * m + i) * (m + 1) * N : NULL, *dz = dz_direct ? dz_out : dz_row;
            real *dv_out = s->dv ? s->dv + (t * m + i) * N : NULL, *dv = dv_direct ? dv_out : dv_row;
#pragma omp simd
            for (int64_t k = 0; k < width; k++)
                dv[k] = row_backward(gate, m, N, z_row + k, v[i * N + k], h_prev + k, prev, h[i * N + k],
                                     G[i * width + k], carry + k, width, dz + k, dz_stride);
            for (int j = 0; s->dz && s->add_dz && j <= m; j++) add_to(dz_out + j * N, dz_row + j * width, width);
            if (s->dv && s->add_dv) add_to(dv_out, dv_row, width);
        }
    }
}

/* Each m with each gate is compiled for itself: a variable m would leave the loops scalar. */
#define EACH_M(walk, gate)                                                                                             \
    switch (s->m) {                                                                                                    \
    case 1: walk(gate, 1, s); break;                                                                                   \
    case 2: walk(gate, 2, s); break;                                                                                   \
    case 3: walk(gate, 3, s); break;                                                                                   \
    case 4: walk(gate, 4, s); break;                                                                                   \
    case 5: walk(gate, 5, s); break;                                                                                   \
    case 6: walk(gate, 6, s); break;                                                                                   \
    case 7: walk(gate, 7, s); break;                                                                                   \
    case 8: walk(gate, 8, s); break;                                                                                   \
    }

#define EACH_GATE(name, walk)                                                                                          \
    static void name##_softmax(const struct task *s) { EACH_M(walk, GATE_SOFTMAX) }                                    \
    static void name##_sigmoid(const struct task *s) { EACH_M(walk, GATE_SIGMOID) }                                    \
    static void name##_relu(const struct task *s) { EACH_M(walk, GATE_RELU) }                                          \
    static void name##_none(const struct task *s) { EACH_M(walk, GATE_NONE) }                                          \
    static void (*const name[GATE_COUNT])(const struct task *s) = {name##_softmax, name##_sigmoid, name##_relu,        \
                                                                   name##_none};

EACH_GATE(forward, walk_forward)
EACH_GATE(backward, walk_backward)

static bool scan_block_cpu_applicable(const struct call *c, const char **why) {
    const struct scan_block_attr *a = c->attr;
    *why = "m is larger than 8";
    return a->m <= SCAN_ORDER_MAX;
}

static void run(const struct call *c, void (*walk)(const struct task *s)) {
    const struct scan_block_attr *a = c->attr;
    struct scan_strips strips = scan_strips(c->in[1]->dims[0], a->N, a->m);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < strips.tasks; i++) {
        struct task s = task_of(c, strips, i);
        walk(&s);
    }
}

static void scan_block_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scan_block_attr *a = c->attr;
    run(c, forward[a->gate]);
}

static void scan_block_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scan_block_attr *a = c->attr;
    run(c, backward[a->gate]);
}

/* Rounding of a step is contracted by normalised gates, so errors add up over time at most linearly, and in practice as
 * a random walk; the reference sums in double. */
const struct kernel kernel_scan_block_cpu = {
    .name = "scan_block_cpu",
    .op = &op_scan_block,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .applicable = scan_block_cpu_applicable,
    .forward = scan_block_cpu_forward,
    .backward = scan_block_cpu_backward,
};

/* scan_dplr_cpu.c - the diagonal-plus-low-rank homogeneous recurrence on the CPU. A part of the work is one sequence.
 * Its state is a row of y that is still in L1. Each row of U and V is read from memory only once. Equations:
 * scan_dplr.c. */
#include <string.h>

#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

#define LANES 16

/* Sums in 16 lanes, then adds the lanes in order, so the bits are the same on every processor. */
static real inner(int64_t n, const real *a, const real *b) {
    real lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
#pragma omp simd
        for (int l = 0; l < LANES; l++) lane[l] = real_fma(a[i + l], b[i + l], lane[l]);
    }
    for (; i < n; i++) lane[i % LANES] = real_fma(a[i], b[i], lane[i % LANES]);
    for (int l = 0; l < LANES; l++) sum += lane[l];
    return sum;
}

static void add_scaled(int64_t n, real factor, const real *x, real *y) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = real_fma(factor, x[i], y[i]);
}

/* Computes d[i] (+)= factor * x[i]; does nothing if d is NULL. */
static void put_scaled(int64_t n, real factor, const real *x, real *d, bool add) {
    if (!d) return;
    if (add) {
        add_scaled(n, factor, x, d);
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) d[i] = factor * x[i];
}

static double clip_of(const struct call *c) {
    return flow_attr(c)->clip;
}

static void sequence_forward(const struct call *c, int64_t b) {
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2], r = c->in[1]->dims[2] / D;
    real *y = tensor_real(c->out[0]) + b * T * D;
    memcpy(y, tensor_real(c->in[3]) + b * D, (size_t)D * sizeof *y);
    for (int64_t t = 1; t < T; t++) {
        int64_t token = b * T + t;
        const real *d = tensor_real(c->in[0]) + token * D, *u = tensor_real(c->in[1]) + token * r * D;
        const real *v = tensor_real(c->in[2]) + token * r * D, *before = y + (t - 1) * D;
        real *now = y + t * D;
#pragma omp simd
        for (int64_t i = 0; i < D; i++) now[i] = real_fma(d[i], before[i], before[i]);
        for (int64_t q = 0; q < r; q++) add_scaled(D, inner(D, v + q * D, before), u + q * D, now);
        clip_moves(D, clip_of(c), before, now);
    }
}

/* Returns where the gradient of input i at a token is written, or NULL. */
static real *gradient_at(const struct call *c, int i, int64_t token) {
    return c->din[i] ? c->din[i] + token * c->in[i]->dims[2] : NULL;
}

/* Computes one step t > 0: writes the gradients of d, u, v, and writes the gradient that flows to the previous state to
 * `next`. G is the gradient of the state after the step, and becomes the gradient of the step's move. */
static void step_backward(const struct call *c, int64_t token, real *G, real *next) {
    int64_t D = c->in[0]->dims[2], r = c->in[1]->dims[2] / D;
    const real *d = tensor_real(c->in[0]) + token * D, *u = tensor_real(c->in[1]) + token * r * D;
    const real *v = tensor_real(c->in[2]) + token * r * D, *before = tensor_real(c->out[0]) + (token - 1) * D;
    real *dd = gradient_at(c, 0, token), *du = gradient_at(c, 1, token), *dv = gradient_at(c, 2, token);
    bool add = call_accumulates(c, 0);
    memcpy(next, G, (size_t)D * sizeof *next);
    clip_gradient(D, clip_of(c), before, before + D, G);
#pragma omp simd
    for (int64_t i = 0; i < D; i++) next[i] = real_fma(d[i], G[i], next[i]);
    if (dd) {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) put(&dd[i], add, G[i] * before[i]);
    }
    for (int64_t q = 0; q < r; q++) {
        real z = inner(D, v + q * D, before), p = inner(D, u + q * D, G);
        add_scaled(D, p, v + q * D, next);
        put_scaled(D, z, G, du ? du + q * D : NULL, call_accumulates(c, 1));
        put_scaled(D, p, before, dv ? dv + q * D : NULL, call_accumulates(c, 2));
    }
}

static void sequence_backward(const struct call *c, int64_t b) {
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct scratch all = scratch_of(c, PASS_BACKWARD), own = scratch_part(&all, b, c->in[0]->dims[0]);
    real *G = scratch_reals(&own, D), *next = scratch_reals(&own, D);
    memset(next, 0, (size_t)D * sizeof *next);
    for (int64_t t = T - 1; t >= 0; t--) {
        const real *dy = call_dout(c, 0) + (b * T + t) * D;
#pragma omp simd
        for (int64_t i = 0; i < D; i++) G[i] = next[i] + dy[i];
        if (t > 0) step_backward(c, b * T + t, G, next);
    }
    for (int i = 0; i < 3; i++)
        if (c->din[i] && !call_accumulates(c, i))
            memset(gradient_at(c, i, b * T), 0, (size_t)c->in[i]->dims[2] * sizeof(real));
    for (int64_t i = 0; c->din[3] && i < D; i++) put(&c->din[3][b * D + i], call_accumulates(c, 3), G[i]);
}

static size_t scan_dplr_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int64_t i = 0; i < 2 * c->in[0]->dims[0] && pass == PASS_BACKWARD; i++) scratch_reals(&s, c->in[0]->dims[2]);
    return s.used;
}

static void scan_dplr_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
#pragma omp parallel for schedule(static) if (tensor_count(c->in[1]) > PARALLEL_MIN)
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) sequence_forward(c, b);
}

static void scan_dplr_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
#pragma omp parallel for schedule(static) if (tensor_count(c->in[1]) > PARALLEL_MIN)
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) sequence_backward(c, b);
}

/* Tolerance: each step adds the rounding errors of two successive products, and older errors grow like the state
 * itself. */
const struct kernel kernel_scan_dplr_cpu = {
    .name = "scan_dplr_cpu",
    .op = &op_scan_dplr,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .workspace = scan_dplr_cpu_workspace,
    .forward = scan_dplr_cpu_forward,
    .backward = scan_dplr_cpu_backward,
};

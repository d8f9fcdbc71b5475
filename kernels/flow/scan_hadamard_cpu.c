/* scan_hadamard_cpu.c - the Walsh-Hadamard homogeneous recurrence on the CPU. A part of the work is one sequence. The
 * transform needs D log2 D additions on a row that stays in L1. Equations: scan_hadamard.c. */
#include <math.h>
#include <string.h>

#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

/* Computes x <- sqrt(D) H x by butterflies (a, b) -> (a + b, a - b) at distances 1, 2, 4, ... */
static void transform(int64_t D, real *x) {
    for (int64_t distance = 1; distance < D; distance *= 2)
        for (int64_t start = 0; start < D; start += 2 * distance) {
            real *low = x + start, *high = low + distance;
#pragma omp simd
            for (int64_t i = 0; i < distance; i++) {
                real a = low[i], b = high[i];
                low[i] = a + b;
                high[i] = a - b;
            }
        }
}

/* Scratch of a sequence: one row in forward, two in backward. */
static size_t scan_hadamard_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    int64_t rows = c->in[0]->dims[0] * (pass == PASS_FORWARD ? 1 : 2);
    for (int64_t i = 0; i < rows; i++) scratch_reals(&s, c->in[0]->dims[2]);
    return s.used;
}

static double clip_of(const struct call *c) {
    return flow_attr(c)->clip;
}

static void sequence_forward(const struct call *c, int64_t b) {
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    const real *d = tensor_real(c->in[0]) + b * T * D;
    struct scratch all = scratch_of(c, PASS_FORWARD), own = scratch_part(&all, b, c->in[0]->dims[0]);
    real *y = tensor_real(c->out[0]) + b * T * D, *s = scratch_reals(&own, D);
    real root = (real)(1 / sqrt((double)D));
    memcpy(y, tensor_real(c->in[1]) + b * D, (size_t)D * sizeof *y);
    for (int64_t t = 1; t < T; t++) {
        const real *before = y + (t - 1) * D;
#pragma omp simd
        for (int64_t i = 0; i < D; i++) s[i] = d[t * D + i] * before[i];
        transform(D, s);
#pragma omp simd
        for (int64_t i = 0; i < D; i++) y[t * D + i] = real_fma(root, s[i], before[i]);
        clip_moves(D, clip_of(c), before, y + t * D);
    }
}

static void sequence_backward(const struct call *c, int64_t b) {
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    const real *d = tensor_real(c->in[0]) + b * T * D, *y = tensor_real(c->out[0]) + b * T * D;
    const real *dy = call_dout(c, 0) + b * T * D;
    struct scratch all = scratch_of(c, PASS_BACKWARD), own = scratch_part(&all, b, c->in[0]->dims[0]);
    real *G = scratch_reals(&own, D), *p = scratch_reals(&own, D);
    real *dd = c->din[0] ? c->din[0] + b * T * D : NULL, root = (real)(1 / sqrt((double)D));
    memcpy(G, dy + (T - 1) * D, (size_t)D * sizeof *G);
    for (int64_t t = T - 1; t > 0; t--) {
        memcpy(p, G, (size_t)D * sizeof *p);
        clip_gradient(D, clip_of(c), y + (t - 1) * D, y + t * D, p);
        transform(D, p);
#pragma omp simd
        for (int64_t i = 0; i < D; i++) {
            p[i] *= root;
            G[i] = real_fma(d[t * D + i], p[i], G[i]) + dy[(t - 1) * D + i];
        }
        if (!dd) continue;
#pragma omp simd
        for (int64_t i = 0; i < D; i++) put(&dd[t * D + i], call_accumulates(c, 0), p[i] * y[(t - 1) * D + i]);
    }
    if (dd && !call_accumulates(c, 0)) memset(dd, 0, (size_t)D * sizeof *dd);
    for (int64_t i = 0; c->din[1] && i < D; i++) put(&c->din[1][b * D + i], call_accumulates(c, 1), G[i]);
}

static void scan_hadamard_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) sequence_forward(c, b);
}

static void scan_hadamard_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) sequence_backward(c, b);
}

/* Tolerance: each step rounds log2 D + 2 times, and older errors grow like the state itself. */
const struct kernel kernel_scan_hadamard_cpu = {
    .name = "scan_hadamard_cpu",
    .op = &op_scan_hadamard,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 128,
    .workspace = scan_hadamard_cpu_workspace,
    .forward = scan_hadamard_cpu_forward,
    .backward = scan_hadamard_cpu_backward,
};

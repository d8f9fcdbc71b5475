/* frobenius_cpu.c - the norm of whole tensors (frobenius.c) on the CPU. Threads compute spans of elements, and the sums
 * of the spans are added in double, in order. */
#include <math.h>

#include "kernels/norm/norm.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

static int64_t spans_of(const struct tensor *t) {
    return t ? span_count(tensor_count(t)) : 0;
}

static size_t frobenius_cpu_workspace(const struct call *c, enum pass pass) {
    int64_t spans = pass == PASS_FORWARD ? spans_of(c->in[0]) + spans_of(c->in[1]) : 0;
    return scratch_single(c, (size_t)spans * sizeof(double));
}

/* Computes sums[s] of each span s of t. */
static void squares(const struct tensor *t, double *sums) {
    int64_t n = tensor_count(t);
    const real *x = tensor_real(t);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) {
        struct range r = span_at(n, s);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = r.begin; i < r.end; i++) sum += (double)x[i] * (double)x[i];
        sums[s] = sum;
    }
}

static void frobenius_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    double *sums = c->scratch[PASS_FORWARD], total = 0;
    int64_t first = spans_of(c->in[0]), spans = first + spans_of(c->in[1]);
    squares(c->in[0], sums);
    if (c->in[1]) squares(c->in[1], sums + first);
    for (int64_t s = 0; s < spans; s++) total += sums[s];
    tensor_real(c->out[0])[0] = (real)sqrt(total);
}

/* Computes dx (+)= factor x. */
static void scaled(const struct tensor *t, real factor, real *dx, bool accumulate) {
    int64_t n = tensor_count(t);
    const real *x = tensor_real(t);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) {
        struct range r = span_at(n, s);
#pragma omp simd
        for (int64_t i = r.begin; i < r.end; i++) dx[i] = accumulate ? dx[i] + factor * x[i] : factor * x[i];
    }
}

static void frobenius_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    real y = tensor_real(c->out[0])[0], factor = y > 0 ? call_dout(c, 0)[0] / y : 0;
    for (int k = 0; k < 2; k++)
        if (c->in[k] && c->din[k]) scaled(c->in[k], factor, c->din[k], call_accumulates(c, k));
}

/* Tolerance: a span of 8192 squares, all positive, is summed in double, with an error of about sqrt(8192) / 2 = 45
 * units of the sum. The root halves it. In float this is invisible, and only the last rounding remains. */
const struct kernel kernel_frobenius_cpu = {
    .name = "frobenius_cpu",
    .op = &op_frobenius,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = REAL_IS_DOUBLE ? 32 : 4,
    .workspace = frobenius_cpu_workspace,
    .forward = frobenius_cpu_forward,
    .backward = frobenius_cpu_backward,
};

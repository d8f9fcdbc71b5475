/* gather_cpu.c - gather_pairs and l1_groups: sequences (and strips of columns) on threads, columns in vectors. The
 * equations are in gather.c. A node or group sums in the order of the rows that name it. */
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/move/move.h"

#include <string.h>

#include "core/real_math.h"

#define GATHER_STRIP 128 /* columns of a part of the gradient */

/* --- gather_pairs ------------------------------------------------------------------------------------------------- */

static void gather_pairs_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct gather_pairs_attr *a = c->attr;
    int64_t B = c->in[0]->dims[0], N = c->in[0]->dims[1], D = c->in[0]->dims[2], pairs = a->rows * a->columns;
#pragma omp parallel for schedule(static) if (B * pairs * D > PARALLEL_MIN)
    for (int64_t i = 0; i < B * pairs; i++) {
        const int32_t *pair = a->index + 2 * (i % pairs);
        const real *x = tensor_real(c->in[0]) + i / pairs * N * D, *p = x + pair[0] * D, *q = x + pair[1] * D;
        real *y = tensor_real(c->out[0]) + i * D;
        if (p == q) {
            memcpy(y, p, (size_t)D * sizeof *y);
            continue;
        }
#pragma omp simd
        for (int64_t d = 0; d < D; d++) y[d] = (p[d] + q[d]) / 2;
    }
}

static void add_half(int64_t width, const real *dy, real *dx) {
#pragma omp simd
    for (int64_t d = 0; d < width; d++) dx[d] = real_fma((real)0.5, dy[d], dx[d]);
}

/* One strip of columns of one sequence, from column k on. */
static void scatter_strip(const struct call *c, int64_t b, int64_t k, int64_t width) {
    const struct gather_pairs_attr *a = c->attr;
    int64_t N = c->in[0]->dims[1], D = c->in[0]->dims[2], pairs = a->rows * a->columns;
    real *dx = c->din[0] + b * N * D + k;
    const real *dy = call_dout(c, 0) + b * pairs * D + k;
    for (int64_t n = 0; n < N && !call_accumulates(c, 0); n++) memset(dx + n * D, 0, (size_t)width * sizeof *dx);
    for (int64_t i = 0; i < pairs; i++) {
        add_half(width, dy + i * D, dx + a->index[2 * i] * D);
        add_half(width, dy + i * D, dx + a->index[2 * i + 1] * D);
    }
}

static void gather_pairs_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], D = c->in[0]->dims[2], strips = (D + GATHER_STRIP - 1) / GATHER_STRIP;
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < B * strips; i++) {
        int64_t k = i % strips * GATHER_STRIP;
        scatter_strip(c, i / strips, k, D - k < GATHER_STRIP ? D - k : GATHER_STRIP);
    }
}

/* --- l1_groups ---------------------------------------------------------------------------------------------------- */

/* Scratch of each sequence: S of each group, in backward also sum(dy y). */
static size_t l1_groups_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    int64_t B = c->in[0]->dims[0], arrays = pass == PASS_FORWARD ? B : 2 * B;
    for (int64_t i = 0; i < arrays; i++) scratch_reals(&s, tensor_count(c->in[0]) / B);
    return s.used;
}

/* S of all groups and columns of one sequence. */
static void sum_groups(const struct l1_groups_attr *a, int64_t H, const real *t, real *S) {
    for (int64_t i = 0; i < a->rows * H; i++) S[i] = (real)0.5;
    for (int64_t r = 0; r < a->rows; r++) {
        real *s = S + a->group[r] * H;
#pragma omp simd
        for (int64_t h = 0; h < H; h++) s[h] += real_abs(t[r * H + h]);
    }
}

static void l1_groups_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct l1_groups_attr *a = c->attr;
    int64_t B = c->in[0]->dims[0], H = c->in[0]->dims[2], n = a->rows * H;
    struct scratch all = scratch_of(c, PASS_FORWARD);
#pragma omp parallel for schedule(static) if (B * n > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) {
        const real *t = tensor_real(c->in[0]) + b * n;
        struct scratch own = scratch_part(&all, b, B);
        real *y = tensor_real(c->out[0]) + b * n, *S = scratch_reals(&own, n);
        sum_groups(a, H, t, S);
        for (int64_t r = 0; r < a->rows; r++) {
            const real *s = S + a->group[r] * H;
#pragma omp simd
            for (int64_t h = 0; h < H; h++) y[r * H + h] = t[r * H + h] / s[h];
        }
    }
}

static void l1_groups_backward_sequence(const struct call *c, int64_t b) {
    const struct l1_groups_attr *a = c->attr;
    int64_t H = c->in[0]->dims[2], n = a->rows * H;
    const real *t = tensor_real(c->in[0]) + b * n, *dy = call_dout(c, 0) + b * n;
    struct scratch all = scratch_of(c, PASS_BACKWARD), own = scratch_part(&all, b, c->in[0]->dims[0]);
    real *dt = c->din[0] + b * n, *S = scratch_reals(&own, n), *dot = scratch_reals(&own, n);
    bool accumulate = call_accumulates(c, 0);
    sum_groups(a, H, t, S);
    memset(dot, 0, (size_t)n * sizeof *dot);
    for (int64_t r = 0; r < a->rows; r++) {
        int64_t g = a->group[r] * H;
#pragma omp simd
        for (int64_t h = 0; h < H; h++) dot[g + h] = real_fma(dy[r * H + h], t[r * H + h] / S[g + h], dot[g + h]);
    }
    for (int64_t r = 0; r < a->rows; r++) {
        int64_t g = a->group[r] * H;
#pragma omp simd
        for (int64_t h = 0; h < H; h++) {
            real x = t[r * H + h], along = x > 0 ? dot[g + h] : x < 0 ? -dot[g + h] : 0;
            put(&dt[r * H + h], accumulate, (dy[r * H + h] - along) / S[g + h]);
        }
    }
}

static void l1_groups_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) l1_groups_backward_sequence(c, b);
}

/* The reference sums a node's gradient in double; here each of the pairs that name it rounds. */
const struct kernel kernel_gather_pairs_cpu = {
    .name = "gather_pairs_cpu",
    .op = &op_gather_pairs,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .forward = gather_pairs_cpu_forward,
    .backward = gather_pairs_cpu_backward,
};

/* As gather_pairs_cpu, for the sums of a group. */
const struct kernel kernel_l1_groups_cpu = {
    .name = "l1_groups_cpu",
    .op = &op_l1_groups,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .workspace = l1_groups_cpu_workspace,
    .forward = l1_groups_cpu_forward,
    .backward = l1_groups_cpu_backward,
};

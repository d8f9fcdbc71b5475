/* scan_flow_cpu.c - the block-diagonal homogeneous recurrence (scan_flow.c) on the CPU. Each pass reads A only once
 * from memory.
 *
 * The state of a strip of W neighbouring blocks is transposed in scratch: element j*W + k is at the same place as in a
 * row of A, element j*N + k. A row is read in vectors of neighbouring elements:
 *   wide, W >= 16 blocks: a vector is up to 16 blocks k, with one loop over j for each; its sums are rows of 16 blocks;
 *   narrow, N < 16 (dense: N = 1): vectors of a multiple of N elements go over the whole row of m*N elements, and the
 *   lanes of each block are added at the end.
 * Backward reads in the same way: the gradient of row i times A goes to the carry, and times the state to dA. A part is
 * one batch element and one strip. The division into parts depends only on sizes, and every lane does the same
 * arithmetic in the same order. */
#include <string.h>

#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/lib/fetch.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/unroll.h"

#define LANES 16

/* Division of the work: strips of W blocks (narrow: one strip of all N), vectors of `lanes` elements. */
struct cut {
    int64_t W, strips, lanes;
    bool narrow;
};

static struct cut cut_of(const struct call *c) {
    int64_t B = c->in[0]->dims[0], N = flow_attr(c)->N;
    if (N < LANES) return (struct cut){N, 1, LANES / N * N, true};
    int64_t parts = B < 16 ? (16 + B - 1) / B : 1;
    int64_t W = ((N + parts - 1) / parts + LANES - 1) / LANES * LANES;
    return (struct cut){W, (N + W - 1) / W, LANES, false};
}

/* The state and place of one part. State buffers have m * W reals each, in transposed order. */
struct strip {
    /* for batch element b: a at the strip's first block, y0 and dy at its first state; t = 0 */
    const real *a, *y0, *dy;
    real *y, *da, *dy0;
    real *state, *next, *G; /* the state before the step; forward: the state after it; backward: the carry */
    real *after;            /* backward with a bound: the state after the step */
    double clip;
    bool add_da, add_dy0, narrow;
    int64_t T, N, m, W, stride, lanes; /* stride: of the state buffers */
};

static int64_t part_count(const struct call *c) {
    return c->in[0]->dims[0] * cut_of(c).strips;
}

static void take_buffers(const struct call *c, struct scratch *s, struct strip *strip) {
    int64_t n = flow_attr(c)->m * cut_of(c).W;
    strip->state = scratch_reals(s, n);
    strip->next = scratch_reals(s, n);
    strip->G = scratch_reals(s, n);
    strip->after = scratch_reals(s, n);
}

static size_t scan_flow_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    struct strip none;
    for (int64_t part = 0; part < part_count(c); part++) take_buffers(c, &s, &none);
    return s.used;
}

static struct strip strip_of(const struct call *c, enum pass pass, int64_t part) {
    const struct flow_attr *at = flow_attr(c);
    struct cut cut = cut_of(c);
    int64_t T = c->in[0]->dims[1], m = at->m, D = at->N * m, b = part / cut.strips, k = part % cut.strips * cut.W;
    struct scratch all = scratch_of(c, pass), own = scratch_part(&all, part, part_count(c));
    struct strip s = {.T = T, .N = at->N, .m = m, .stride = cut.W, .lanes = cut.lanes, .narrow = cut.narrow};
    s.clip = at->clip;
    s.W = at->N - k < cut.W ? at->N - k : cut.W;
    s.a = tensor_real(c->in[0]) + b * T * m * D + k;
    s.y0 = tensor_real(c->in[1]) + b * D + k * m;
    s.y = tensor_real(c->out[0]) + b * T * D + k * m;
    if (pass == PASS_BACKWARD) {
        s.dy = call_dout(c, 0) + b * T * D + k * m;
        s.da = c->din[0] ? c->din[0] + b * T * m * D + k : NULL;
        s.dy0 = c->din[1] ? c->din[1] + b * D + k * m : NULL;
        s.add_da = call_accumulates(c, 0);
        s.add_dy0 = call_accumulates(c, 1);
    }
    take_buffers(c, &own, &s);
    size_t bytes = (size_t)(m * cut.W) * sizeof(real); /* columns after the last block stay 0 */
    memset(s.state, 0, bytes);
    memset(s.next, 0, bytes);
    memset(s.G, 0, bytes);
    memset(s.after, 0, bytes);
    return s;
}

/* collect_strip copies to[j*stride + k] = from[k*m + j]; the next function copies back. */
static void collect_strip(const struct strip *s, const real *from, real *to) {
    for (int64_t j = 0; j < s->m; j++)
        for (int64_t k = 0; k < s->W; k++) to[j * s->stride + k] = from[k * s->m + j];
}

static void spread_strip(const struct strip *s, const real *from, real *to) {
    for (int64_t j = 0; j < s->m; j++)
        for (int64_t k = 0; k < s->W; k++) to[k * s->m + j] = from[j * s->stride + k];
}

/* Computes sum[l] += sum over steps n of a[n*a_step + l] * x[n*x_step + l]. */
FORCE_INLINE void dot_lanes(int64_t lanes, int64_t steps, const real *a, int64_t a_step, const real *x, int64_t x_step,
                            real *sum) {
    for (int64_t n = 0; n < steps; n++) {
#pragma omp simd
        for (int64_t l = 0; l < lanes; l++) sum[l] = real_fma(a[n * a_step + l], x[n * x_step + l], sum[l]);
    }
}

static void dot(int64_t lanes, int64_t steps, const real *a, int64_t a_step, const real *x, int64_t x_step,
                real *restrict sum) {
    if (lanes < LANES) {
        dot_lanes(lanes, steps, a, a_step, x, x_step, sum);
        return;
    }
    real own[LANES];
    memcpy(own, sum, sizeof own);
    dot_lanes(LANES, steps, a, a_step, x, x_step, own);
    memcpy(sum, own, sizeof own);
}

/* Computes row i of the next transposed state from row `a` of A. */
static void row_forward(const struct strip *s, const real *a, int64_t i) {
    const real *state = s->state;
    real *next = s->next + i * s->stride;
    memcpy(next, state + i * s->stride, (size_t)s->W * sizeof *next);
    if (!s->narrow) {
        for (int64_t k = 0; k < s->W; k += LANES)
            dot(s->W - k < LANES ? s->W - k : LANES, s->m, a + k, s->N, state + k, s->stride, next + k);
        return;
    }
    int64_t length = s->m * s->N, steps = length / s->lanes, rest = length % s->lanes;
    real sum[LANES] = {0};
    dot(s->lanes, steps, a, s->lanes, state, s->lanes, sum);
    dot(rest, 1, a + length - rest, 0, state + length - rest, 0, sum);
    for (int64_t l = 0; l < s->lanes; l++) next[l % s->N] += sum[l];
}

static void strip_forward(struct strip *s) {
    int64_t D = s->m * s->N;
    collect_strip(s, s->y0, s->state);
    spread_strip(s, s->state, s->y);
    for (int64_t t = 1; t < s->T; t++) {
        for (int64_t i = 0; i < s->m; i++) row_forward(s, s->a + (t * s->m + i) * D, i);
        clip_moves(s->m * s->stride, s->clip, s->state, s->next);
        real *swap = s->state;
        s->state = s->next;
        s->next = swap;
        spread_strip(s, s->state, s->y + t * D);
    }
}

/* Computes carry[n*x_step + l] += a[n*a_step + l] * G[l] and da[n*a_step + l] (+)= G[l] * x[n*x_step + l]. */
FORCE_INLINE void outer_lanes(int64_t lanes, int64_t steps, const real *restrict a, int64_t a_step,
                              const real *restrict x, int64_t x_step, const real *restrict G, real *restrict carry,
                              real *restrict da, bool add) {
    for (int64_t n = 0; n < steps; n++) {
        int64_t an = n * a_step, xn = n * x_step;
#pragma omp simd
        for (int64_t l = 0; l < lanes; l++) carry[xn + l] = real_fma(a[an + l], G[l], carry[xn + l]);
        if (!da) continue;
        if (add) {
#pragma omp simd
            for (int64_t l = 0; l < lanes; l++) da[an + l] += G[l] * x[xn + l];
        } else {
#pragma omp simd
            for (int64_t l = 0; l < lanes; l++) da[an + l] = G[l] * x[xn + l];
        }
    }
}

static void outer(int64_t lanes, int64_t steps, const real *a, int64_t a_step, const real *x, int64_t x_step,
                  const real *G, real *carry, real *da, bool add) {
    real own[LANES];
    memcpy(own, G, (size_t)lanes * sizeof *own);
    if (lanes < LANES)
        outer_lanes(lanes, steps, a, a_step, x, x_step, own, carry, da, add);
    else if (!add)
        outer_lanes(LANES, steps, a, a_step, x, x_step, own, carry, da, false);
    else
        outer_lanes(LANES, steps, a, a_step, x, x_step, own, carry, da, true);
}

static void row_backward(const struct strip *s, const real *a, real *da, int64_t i) {
    const real *G = s->G + i * s->stride;
    if (!s->narrow) {
        for (int64_t k = 0; k < s->W; k += LANES)
            outer(s->W - k < LANES ? s->W - k : LANES, s->m, a + k, s->N, s->state + k, s->stride, G + k, s->next + k,
                  da ? da + k : NULL, s->add_da);
        return;
    }
    int64_t length = s->m * s->N, steps = length / s->lanes, rest = length % s->lanes, last = length - rest;
    real repeated[LANES] = {0};
    for (int64_t l = 0; l < s->lanes; l++) repeated[l] = G[l % s->N];
    outer(s->lanes, steps, a, s->lanes, s->state, s->lanes, repeated, s->next, da, s->add_da);
    outer(rest, 1, a + last, 0, s->state + last, 0, repeated, s->next + last, da ? da + last : NULL, s->add_da);
}

static void clear_first(const struct strip *s) {
    for (int64_t i = 0; s->da && !s->add_da && i < s->m * s->m; i++)
        memset(s->da + i * s->N, 0, (size_t)s->W * sizeof *s->da);
}

/* Fetches the data that step t and the steps before it read and write, when that is due (kernels/lib/fetch.h). */
static void fetch_back(const struct strip *s, int64_t t) {
    int64_t D = s->m * s->N, first;
    if (!fetch_is_due(t, s->T, s->m * s->m * s->W, &first)) return;
    fetch_rows(s->a + first * s->m * D, (t + 1 - first) * s->m * s->m, s->W, s->N);
    fetch_rows(s->y + first * D, t + 1 - first, s->m * s->W, D);
    fetch_rows(s->dy + first * D, t + 1 - first, s->m * s->W, D);
    if (s->da) fetch_written(s->da + first * s->m * D, (t + 1 - first) * s->m * s->m, s->W, s->N);
}

/* Computes the gradients of a part. `next` contains the gradient that flows from later steps. */
static void strip_backward(struct strip *s) {
    int64_t D = s->m * s->N;
    memset(s->next, 0, (size_t)(s->m * s->stride) * sizeof *s->next);
    collect_strip(s, s->y + (s->T - 1) * D, s->state);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        fetch_back(s, t);
        collect_strip(s, s->dy + t * D, s->G);
#pragma omp simd
        for (int64_t i = 0; i < s->m * s->stride; i++) s->next[i] += s->G[i];
        memcpy(s->G, s->next, (size_t)(s->m * s->stride) * sizeof *s->G);
        if (t == 0) break;
        real *swap = s->after;
        s->after = s->state;
        s->state = swap;
        collect_strip(s, s->y + (t - 1) * D, s->state);
        clip_gradient(s->m * s->stride, s->clip, s->state, s->after, s->G);
        for (int64_t i = 0; i < s->m; i++)
            row_backward(s, s->a + (t * s->m + i) * D, s->da ? s->da + (t * s->m + i) * D : NULL, i);
    }
    clear_first(s);
    for (int64_t k = 0; s->dy0 && k < s->W; k++)
        for (int64_t j = 0; j < s->m; j++) put(&s->dy0[k * s->m + j], s->add_dy0, s->G[j * s->stride + k]);
}

static void run(const struct call *c, enum pass pass, void (*walk)(struct strip *s)) {
    int64_t parts = part_count(c);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < parts; i++) {
        struct strip s = strip_of(c, pass, i);
        walk(&s);
    }
}

static void scan_flow_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    run(c, PASS_FORWARD, strip_forward);
}

static void scan_flow_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    run(c, PASS_BACKWARD, strip_backward);
}

/* Tolerance: each step adds the rounding errors of m products, about m + 1 units relative to the largest value, and
 * older errors grow like the state itself. The reference sums in double. */
const struct kernel kernel_scan_flow_cpu = {
    .name = "scan_flow_cpu",
    .op = &op_scan_flow,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 128,
    .workspace = scan_flow_cpu_workspace,
    .forward = scan_flow_cpu_forward,
    .backward = scan_flow_cpu_backward,
};

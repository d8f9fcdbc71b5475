/* link_shares_cpu.c - shares in an edge on the CPU. A thread computes one sequence at a time; SIMD vectors run along
 * the heads of a pair. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/links/links_call.h"

/* One sequence: sums by edge, [edges][H]. */
struct shares {
    struct links_view l;
    int64_t H;
    int rule;
    real *S, *dot; /* dot: sums of dy y, only in backward */
};

static struct shares shares_of(const struct call *c, enum pass pass, int64_t b, struct scratch *s) {
    const struct links_attr *a = links_attr(c);
    struct shares k = {.l = links_at(c, b, INT32_MAX), .H = c->in[0]->dims[2], .rule = a->rule};
    k.S = scratch_reals(s, a->size.edges * k.H);
    if (pass == PASS_BACKWARD) k.dot = scratch_reals(s, a->size.edges * k.H);
    return k;
}

static size_t link_shares_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    const struct links_attr *a = links_attr(c);
    int64_t n = a->size.edges * c->in[0]->dims[2];
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) {
        scratch_reals(&s, n);
        if (pass == PASS_BACKWARD) scratch_reals(&s, n);
    }
    return s.used;
}

/* Returns the index of the first sum of pair p's edge, or -1 if the pair is not in effect. */
static int64_t sums_at(const struct shares *k, int64_t p) {
    int32_t from, to;
    if (!links_pair(&k->l, p, &from, &to)) return -1;
    return k->H * (k->rule == LINK_SAME_FROM ? from : to);
}

static void sum_pairs(const struct shares *k, const real *t) {
    for (int64_t i = 0; i < k->l.size.edges * k->H; i++) k->S[i] = (real)0.5;
    for (int64_t p = 0; p < k->l.size.pairs; p++) {
        int64_t at = sums_at(k, p);
        real *S = k->S + at;
        if (at < 0) continue;
#pragma omp simd
        for (int64_t h = 0; h < k->H; h++) S[h] += real_abs(t[p * k->H + h]);
    }
}

static void forward_sequence(const struct call *c, int64_t b, struct scratch own) {
    struct shares k = shares_of(c, PASS_FORWARD, b, &own);
    int64_t H = k.H, n = k.l.size.pairs * H;
    const real *t = tensor_real(c->in[0]) + b * n;
    real *y = tensor_real(c->out[0]) + b * n;
    sum_pairs(&k, t);
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t p = 0; p < k.l.size.pairs; p++) {
        int64_t at = sums_at(&k, p);
        if (at < 0) continue;
#pragma omp simd
        for (int64_t h = 0; h < H; h++) y[p * H + h] = t[p * H + h] / k.S[at + h];
    }
}

static void backward_sequence(const struct call *c, int64_t b, struct scratch own) {
    struct shares k = shares_of(c, PASS_BACKWARD, b, &own);
    int64_t H = k.H, n = k.l.size.pairs * H;
    const real *t = tensor_real(c->in[0]) + b * n, *dy = call_dout(c, 0) + b * n;
    real *dt = c->din[0] + b * n;
    sum_pairs(&k, t);
    memset(k.dot, 0, (size_t)(k.l.size.edges * H) * sizeof *k.dot);
    if (!call_accumulates(c, 0)) memset(dt, 0, (size_t)n * sizeof *dt);
    for (int64_t p = 0; p < k.l.size.pairs; p++) {
        int64_t at = sums_at(&k, p);
        if (at < 0) continue;
#pragma omp simd
        for (int64_t h = 0; h < H; h++)
            k.dot[at + h] = real_fma(dy[p * H + h], t[p * H + h] / k.S[at + h], k.dot[at + h]);
    }
    for (int64_t p = 0; p < k.l.size.pairs; p++) {
        int64_t at = sums_at(&k, p);
        if (at < 0) continue;
#pragma omp simd
        for (int64_t h = 0; h < H; h++) {
            real x = t[p * H + h], along = x > 0 ? k.dot[at + h] : x < 0 ? -k.dot[at + h] : 0;
            dt[p * H + h] += (dy[p * H + h] - along) / k.S[at + h];
        }
    }
}

static void run(const struct call *c, enum pass pass) {
    int64_t B = c->in[0]->dims[0];
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++)
        (pass == PASS_FORWARD ? forward_sequence : backward_sequence)(c, b, scratch_part(&all, b, B));
}

static void link_shares_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void link_shares_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    if (c->din[0]) run(c, PASS_BACKWARD);
}

/* Tolerance: the reference sums in double; here the sum rounds at each pair of an edge. */
const struct kernel kernel_link_shares_cpu = {
    .name = "link_shares_cpu",
    .op = &op_link_shares,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .workspace = link_shares_cpu_workspace,
    .forward = link_shares_cpu_forward,
    .backward = link_shares_cpu_backward,
};

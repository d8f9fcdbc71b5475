/* neighbours_cpu.c - sums over neighbours on the CPU. A thread computes one sequence at a time. Each edge adds a row to
 * each of its ends. */
#include <math.h>
#include <string.h>

#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/links/links_call.h"

static size_t neighbours_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) scratch_reals(&s, c->in[0]->dims[1]);
    return s.used;
}

/* Computes 1 / sqrt(1 + number of neighbours) of each node. */
static void factors(const struct links_view *l, real *factor) {
    int32_t a, b;
    for (int64_t n = 0; n < l->T; n++) factor[n] = 1;
    for (int64_t e = 0; e < l->size.edges; e++)
        if (links_edge(l, e, &a, &b)) factor[a]++, factor[b]++;
    for (int64_t n = 0; n < l->T; n++) factor[n] = (real)(1 / sqrt((double)factor[n]));
}

static void add_row(int64_t D, real factor, const real *x, real *y) {
#pragma omp simd
    for (int64_t d = 0; d < D; d++) y[d] = real_fma(factor, x[d], y[d]);
}

static void map_sequence(const struct call *c, int64_t b, const real *x, real *y, bool accumulate, struct scratch own) {
    const struct links_attr *a = links_attr(c);
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct links_view l = links_at(c, b, T);
    bool gcn = a->rule == NEIGHBOURS_GCN;
    real *factor = scratch_reals(&own, T);
    int32_t p, q;
    x += b * T * D;
    y += b * T * D;
    if (!accumulate) memset(y, 0, (size_t)(T * D) * sizeof *y);
    if (gcn) factors(&l, factor);
    for (int64_t n = 0; n < T && gcn; n++) add_row(D, factor[n] * factor[n], x + n * D, y + n * D);
    for (int64_t e = 0; e < a->size.edges; e++) {
        if (!links_edge(&l, e, &p, &q)) continue;
        real along = gcn ? factor[p] * factor[q] : 1;
        add_row(D, along, x + q * D, y + p * D);
        add_row(D, along, x + p * D, y + q * D);
    }
}

static void map_all(const struct call *c, enum pass pass, const real *x, real *y, bool accumulate) {
    int64_t B = c->in[0]->dims[0];
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (2 * tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) map_sequence(c, b, x, y, accumulate, scratch_part(&all, b, B));
}

static void neighbours_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    map_all(c, PASS_FORWARD, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void neighbours_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    if (c->din[0]) map_all(c, PASS_BACKWARD, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

/* Tolerance: the reference sums in double; here the sum rounds at each neighbour, and the factors round. */
const struct kernel kernel_neighbours_cpu = {
    .name = "neighbours_cpu",
    .op = &op_neighbours,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .workspace = neighbours_cpu_workspace,
    .forward = neighbours_cpu_forward,
    .backward = neighbours_cpu_backward,
};

/* edge_attention_cpu.c - attention over neighbours on the CPU. A thread computes one sequence at a time, whose heads
 * share the lists of neighbours. For each head it first computes all weights, then adds rows with SIMD vectors. */
#include <math.h>
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/parallel.h"
#include "kernels/links/edge_attention.h"

/* One head of one sequence. */
struct head {
    struct neighbourhoods near;
    int64_t T, D, H, dv, h, row; /* row: of the sequence's first node */
    real *p;                     /* [T + 2 edges]: weights, neighbourhood by neighbourhood */
};

static struct head head_of(const struct call *c, struct scratch *s) {
    struct head g = {.T = c->in[0]->dims[1], .D = c->in[0]->dims[2], .H = c->in[2]->dims[2]};
    g.dv = g.D / g.H;
    g.near = neighbourhoods_of(c, s);
    g.p = scratch_reals(s, g.T + 2 * links_attr(c)->size.edges);
    return g;
}

static size_t edge_attention_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) head_of(c, &s);
    return s.used;
}

static real score_of(const struct call *c, const struct head *g, int64_t n, int64_t u) {
    return tensor_real(c->in[2])[(g->row + n) * g->H + g->h] + tensor_real(c->in[3])[(g->row + u) * g->H + g->h];
}

static void make_weights(const struct call *c, const struct head *g) {
    for (int64_t n = 0; n < g->T; n++) {
        int32_t begin = g->near.start[n], end = g->near.start[n + 1];
        real most = (real)-INFINITY, sum = 0;
        for (int32_t k = begin; k < end; k++) {
            real z = score_of(c, g, n, g->near.node[k]);
            g->p[k] = z > 0 ? z : (real)EDGE_ATTENTION_SLOPE * z;
            if (g->p[k] > most) most = g->p[k];
        }
        for (int32_t k = begin; k < end; k++) sum += g->p[k] = real_exp(g->p[k] - most);
        for (int32_t k = begin; k < end; k++) g->p[k] /= sum;
    }
}

static void add_row(int64_t n, real factor, const real *x, real *y) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) y[j] = real_fma(factor, x[j], y[j]);
}

static real dot(int64_t n, const real *a, const real *b) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) sum = real_fma(a[j], b[j], sum);
    return sum;
}

/* Returns the address of the head's values at node n, in an array with D values per node. */
static int64_t row_at(const struct head *g, int64_t n) {
    return (g->row + n) * g->D + g->h * g->dv;
}

static void forward_head(const struct call *c, const struct head *g) {
    for (int64_t n = 0; n < g->T; n++) {
        real *y = tensor_real(c->out[0]) + row_at(g, n);
        memset(y, 0, (size_t)g->dv * sizeof *y);
        for (int32_t k = g->near.start[n]; k < g->near.start[n + 1]; k++)
            add_row(g->dv, g->p[k], tensor_real(c->in[0]) + row_at(g, g->near.node[k]), y);
    }
}

static void add_to(const struct call *c, int input, int64_t at, real value) {
    if (c->din[input]) c->din[input][at] += value;
}

/* Adds the gradients of one head. The arrays start with zeros, or with the gradients of another call. */
static void backward_head(const struct call *c, const struct head *g) {
    for (int64_t n = 0; n < g->T; n++) {
        const real *dy = call_dout(c, 0) + row_at(g, n);
        int32_t begin = g->near.start[n], end = g->near.start[n + 1];
        real mean = 0;
        for (int32_t k = begin; k < end; k++)
            mean = real_fma(g->p[k], dot(g->dv, dy, tensor_real(c->in[0]) + row_at(g, g->near.node[k])), mean);
        for (int32_t k = begin; k < end; k++) {
            int64_t u = g->near.node[k];
            real dz = g->p[k] * (dot(g->dv, dy, tensor_real(c->in[0]) + row_at(g, u)) - mean);
            if (score_of(c, g, n, u) <= 0) dz *= (real)EDGE_ATTENTION_SLOPE;
            add_to(c, 2, (g->row + n) * g->H + g->h, dz);
            add_to(c, 3, (g->row + u) * g->H + g->h, dz);
            if (c->din[0]) add_row(g->dv, g->p[k], dy, c->din[0] + row_at(g, u));
        }
    }
}

/* Sets the sequence's rows of a gradient, `width` wide, to 0, unless they have the gradient of another call. */
static void clear(const struct call *c, int input, const struct head *g, int64_t width) {
    if (c->din[input] && !call_accumulates(c, input))
        memset(c->din[input] + g->row * width, 0, (size_t)(g->T * width) * sizeof(real));
}

static void run_sequence(const struct call *c, enum pass pass, int64_t b, struct scratch own) {
    struct head g = head_of(c, &own);
    struct links_view l = links_at(c, b, g.T);
    g.row = b * g.T;
    neighbourhoods_read(&l, g.near);
    if (pass == PASS_BACKWARD) {
        clear(c, 0, &g, g.D);
        clear(c, 2, &g, g.H);
        clear(c, 3, &g, g.H);
    }
    for (g.h = 0; g.h < g.H; g.h++) {
        make_weights(c, &g);
        (pass == PASS_FORWARD ? forward_head : backward_head)(c, &g);
    }
}

static void run(const struct call *c, enum pass pass) {
    int64_t B = c->in[0]->dims[0];
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (4 * tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) run_sequence(c, pass, b, scratch_part(&all, b, B));
}

static void edge_attention_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void edge_attention_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: weights come from an exponential with an error of a few epsilon, and sums are in `real`. Gradients of
 * scores may cancel, so the terms of the sum over a neighbourhood are their scale (op->terms). */
const struct kernel kernel_edge_attention_cpu = {
    .name = "edge_attention_cpu",
    .op = &op_edge_attention,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 128,
    .workspace = edge_attention_cpu_workspace,
    .forward = edge_attention_cpu_forward,
    .backward = edge_attention_cpu_backward,
};

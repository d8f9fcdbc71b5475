/* scale_by.c - y = factor * x + offset with constants: the op, its reference, and its CPU kernel with spans of elements
 * on threads. */
#include <math.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/parallel.h"

/* Adding -0 changes no number. Adding 0 would turn -0 into 0. */
#define NO_OFFSET (-0.0)

struct tensor *scale_by(struct graph *g, struct tensor *x, double factor) {
    return scale_shift(g, x, factor, NO_OFFSET);
}

struct tensor *scale_shift(struct graph *g, struct tensor *x, double factor, double offset) {
    struct scale_by_attr attr = {factor, offset};
    return call1(g, &op_scale_by, &attr, sizeof attr, (struct tensor *[]){x}, 1);
}

static void scale_by_infer(struct graph *g, struct call *c) {
    const struct scale_by_attr *a = scale_by_attr(c);
    if (!infer_present(g, c, 1)) return;
    if (!isfinite(a->factor) || !isfinite(a->offset))
        graph_fail(g, ST_USAGE, "scale_by: the %s is %g, expected a finite number",
                   isfinite(a->factor) ? "offset" : "factor", isfinite(a->factor) ? a->offset : a->factor);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static struct cost scale_by_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double n = (double)tensor_count(c->out[0]);
    return (struct cost){n, 2 * n * sizeof(real)};
}

/* The variants have different factors, and one has an offset. */
static bool scale_by_build(struct graph *g, const struct op_sizes *s) {
    static const struct scale_by_attr variants[] = {{5, NO_OFFSET}, {-0.25, NO_OFFSET}, {0, NO_OFFSET}, {2, -1}};
    if (s->variant >= (int64_t)(sizeof variants / sizeof variants[0])) return false;
    scale_shift(g, input_tokens(g, s, "x", s->dim), variants[s->variant].factor, variants[s->variant].offset);
    return true;
}

const struct op op_scale_by = {
    .name = "scale_by",
    .maths = "y = factor * x + offset",
    .source = "",
    .infer = scale_by_infer,
    .cost = scale_by_cost,
    .sizes = "batch length dim",
    .build = scale_by_build,
};

static void scale_by_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scale_by_attr *a = scale_by_attr(c);
    const real *in = tensor_real(c->in[0]);
    real *y = tensor_real(c->out[0]), factor = (real)a->factor, offset = (real)a->offset;
    for (int64_t i = 0; i < tensor_count(c->out[0]); i++) y[i] = real_fma(factor, in[i], offset);
}

static void scale_by_backward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scale_by_attr *a = scale_by_attr(c);
    const real *dy = call_dout(c, 0);
    real factor = (real)a->factor;
    for (int64_t i = 0; c->din[0] && i < tensor_count(c->out[0]); i++)
        put(&c->din[0][i], call_accumulates(c, 0), factor * dy[i]);
}

const struct kernel kernel_scale_by_ref = {
    .name = "scale_by_ref",
    .op = &op_scale_by,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = scale_by_forward,
    .backward = scale_by_backward,
};

/* Computes y (+)= factor * x + offset. */
static void scale_spans(int64_t n, real factor, real offset, const real *x, real *y, bool accumulate) {
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) {
        struct range span = span_at(n, s);
#pragma omp simd
        for (int64_t i = span.begin; i < span.end; i++) put(&y[i], accumulate, real_fma(factor, x[i], offset));
    }
}

static void scale_by_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scale_by_attr *a = scale_by_attr(c);
    scale_spans(tensor_count(c->out[0]), (real)a->factor, (real)a->offset, tensor_real(c->in[0]),
                tensor_real(c->out[0]), false);
}

static void scale_by_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    real factor = (real)scale_by_attr(c)->factor;
    real offset = (real)NO_OFFSET;
    if (c->din[0])
        scale_spans(tensor_count(c->out[0]), factor, offset, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

const struct kernel kernel_scale_by_cpu = {
    .name = "scale_by_cpu",
    .op = &op_scale_by,
    .device = DEVICE_CPU,
    .forward = scale_by_cpu_forward,
    .backward = scale_by_cpu_backward,
};

/* dropout.c - inverted dropout (Srivastava et al. 2014): the op and its reference.
 *
 *   y = x keep / (1 - p),   dx = dy keep / (1 - p)
 * Forward and backward apply the same map, to x and to dy. No mask is stored: keep is drawn again from (seed, call,
 * step, element), see dropout.h. */
#include "kernels/dense/dense.h"
#include "kernels/dense/dropout.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"

struct tensor *dropout(struct graph *g, struct tensor *x, double p) {
    if (!g->options.training || p == 0) return x;
    struct dropout_attr attr = {.p = p};
    return call1(g, &op_dropout, &attr, sizeof attr, (struct tensor *[]){x}, 1);
}

static void dropout_infer(struct graph *g, struct call *c) {
    const struct dropout_attr *a = dropout_attr(c);
    if (!infer_present(g, c, 1)) return;
    if (!(a->p > 0 && a->p < 1))
        graph_fail(g, ST_USAGE, "dropout: p is %g, expected 0 <= p < 1", a->p);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

/* FLOPs: an element's share of a Philox block counts 20. */
static struct cost dropout_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double n = (double)tensor_count(c->out[0]);
    return (struct cost){21 * n, sizeof(real) * 2 * n};
}

/* The variants have different chances p. */
static bool dropout_build(struct graph *g, const struct op_sizes *s) {
    static const double p[] = {0.1, 0.5, 0.9};
    if (s->variant >= (int64_t)(sizeof p / sizeof p[0])) return false;
    dropout(g, input_tokens(g, s, "x", s->dim), p[s->variant]);
    return true;
}

const struct op op_dropout = {
    .name = "dropout",
    .maths = "y = x * keep / (1 - p)",
    .source = "Srivastava et al. 2014, JMLR 15",
    .infer = dropout_infer,
    .cost = dropout_cost,
    .sizes = "batch length dim",
    .build = dropout_build,
};

/* Computes to[i] (+)= from[i] keep[i] / (1 - p). */
static void drop(const struct call *c, const struct exec *exec, const real *from, real *to, bool accumulate) {
    const struct dropout_attr *attr = dropout_attr(c);
    uint32_t threshold = dropout_threshold(attr->p);
    real factor = (real)(1 / (1 - attr->p));
    int64_t n = tensor_count(c->out[0]);
    for (int64_t i = 0; i < n; i++) {
        struct philox_block words = dropout_words(c, exec->state, i / 4);
        put(&to[i], accumulate, words.word[i % 4] >= threshold ? from[i] * factor : 0);
    }
}

static void dropout_ref_forward(const struct call *c, const struct exec *exec) {
    drop(c, exec, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void dropout_ref_backward(const struct call *c, const struct exec *exec) {
    if (c->din[0]) drop(c, exec, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

const struct kernel kernel_dropout_ref = {
    .name = "dropout_ref",
    .op = &op_dropout,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = dropout_ref_forward,
    .backward = dropout_ref_backward,
};

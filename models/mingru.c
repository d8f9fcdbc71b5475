/* mingru.c - minGRU: a gated running mean whose gate and candidate read only the input.
 *
 *   z_t = sig(W_z x_t + b_z)   v_t = W_h x_t + b_h   h_t = (1 - z_t) h_{t-1} + z_t g(v_t)   y_t = W_o h_t if N != D
 * form=log: g(v) = v + 1/2 for v >= 0, else sig(v), positive everywhere; form=plain: g(v) = v.
 *
 * Feng et al. 2024 (arXiv 2410.01201); maps as lucidrains/minGRU-pytorch, with biases, all at the framework's default.
 * The paper computes form=log over logarithms; the scan gives the same numbers with fewer operations. A state of
 * form=log is a mean of positive numbers, so it cannot store a sign, and the mixer cannot learn parity. */
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "models/parts.h"

enum form { FORM_LOG, FORM_PLAIN };

struct mingru {
    int64_t hidden;
    int form;
};

static const struct option options[] = {{"hidden", OPT_INT, offsetof(struct mingru, hidden), "auto", 1, 1 << 20, NULL,
                                         "hidden width N; auto: the width", OPT_AUTO},
                                        {"form", OPT_CHOICE, offsetof(struct mingru, form), "log", 0, 0, "log plain",
                                         "candidates: log makes them positive, plain leaves them", 0},
                                        {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    (void)e;
    struct mingru *o = inst;
    if (o->hidden == 0) o->hidden = d->D;
    return ST_OK;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct mingru *o = inst;
    int64_t N = o->hidden, D = x->dims[2];
    struct tensor *z = affine_map(g, x, "z", N), *v = affine_map(g, x, "h", N);
    if (o->form == FORM_LOG) v = activate(g, v, ACT_POSITIVE);
    struct tensor *kept = activate(g, activate(g, z, ACT_NEG), ACT_SIGMOID);
    struct tensor *h = scan_diag(g, kept, mul(g, activate(g, z, ACT_SIGMOID), v));
    return N == D ? h : linear(g, h, weight(g, "out.weight", D, N, 1, AS_CONTRACT), NULL);
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    int64_t hidden = ((const struct mingru *)inst)->hidden;
    return hidden ? hidden : d->D;
}

const struct model model_mingru = {
    .name = "mingru",
    .title = "minGRU",
    .summary = "gated running mean, gates read the input alone (minGRU, Feng et al. 2024)",
    .equation = "h_t = (1 - z_t) h_{t-1} + z_t g(W_h x_t + b_h);  z_t = sig(W_z x_t + b_z);  g(v) = v + 1/2 or sig(v)",
    .options = options,
    .small = "mingru mingru:hidden=9,form=plain",
    .inst_bytes = sizeof(struct mingru),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

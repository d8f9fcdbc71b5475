/* lru.c - the Linear Recurrent Unit: a complex diagonal recurrence that does not depend on the input.
 *
 *   lambda = exp(-exp(nu) + i exp(theta))   h_t = lambda h_{t-1} + exp(gamma) (B x_t)   y_t = Re(C h_t) + skip * x_t
 *
 * Orvieto et al. 2023; parameters and initialisation as minimal-LRU (NicolasZucchet/minimal-LRU). */
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "models/parts.h"

struct lru {
    int64_t state;
};

static const struct option options[] = {
    {"state", OPT_INT, offsetof(struct lru, state), "128", 1, 1 << 20, NULL, "complex states N", OPT_STATE}, {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    (void)inst, (void)d, (void)e;
    return ST_OK;
}

/* |lambda|^2 uniform in (rmin^2, rmax^2) = (0, 1), without the ends, where the logarithms below are infinite. */
static double radius_squared(struct rng *r) {
    return 1e-6 + (1 - 2e-6) * rng_uniform(r);
}

static double draw_nu(struct rng *r, int64_t element, double a, double b) {
    (void)element, (void)a, (void)b;
    return log(-0.5 * log(radius_squared(r)));
}

static double draw_theta(struct rng *r, int64_t element, double a, double b) {
    (void)element, (void)a, (void)b;
    return log(6.28 * (1 - rng_uniform(r)));
}

/* gamma = log sqrt(1 - |lambda|^2). It shares the draw of nu, so lambda is the state's own. */
static double draw_gamma(struct rng *r, int64_t element, double a, double b) {
    (void)element, (void)a, (void)b;
    return 0.5 * log(1 - radius_squared(r));
}

static struct tensor *dynamics(struct graph *g, const char *name, int64_t n,
                               double (*draw)(struct rng *, int64_t, double, double), const char *draws_as) {
    return graph_param(g, &(struct param_spec){.name = name,
                                               .rank = 1,
                                               .dims = {n},
                                               .group = PARAM_STATE,
                                               .init = {.kind = INIT_CUSTOM, .draw = draw, .draws_as = draws_as}});
}

static struct tensor *normal_weight(struct graph *g, const char *name, int64_t out, int64_t in, double sd) {
    return graph_param(
        g, &(struct param_spec){.name = name, .rank = 2, .dims = {out, in}, .init = {.kind = INIT_NORMAL, .b = sd}});
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct lru *o = inst;
    int64_t N = o->state, D = x->dims[2];
    struct tensor *nu = dynamics(g, "nu.log", N, draw_nu, NULL);
    struct tensor *theta = dynamics(g, "theta.log", N, draw_theta, NULL);
    struct tensor *gamma = activate(g, dynamics(g, "gamma.log", N, draw_gamma, "nu.log"), ACT_EXP);
    struct tensor *radius = activate(g, activate(g, activate(g, nu, ACT_EXP), ACT_NEG), ACT_EXP);
    struct tensor *angle = activate(g, theta, ACT_EXP);
    struct tensor *lambda_re = mul(g, radius, activate(g, angle, ACT_COS));
    struct tensor *lambda_im = mul(g, radius, activate(g, angle, ACT_SIN));

    double b_sd = 1 / sqrt(2.0 * (double)D), c_sd = 1 / sqrt((double)N);
    struct tensor *u_re = scale(g, linear(g, x, normal_weight(g, "B.re", N, D, b_sd), NULL), gamma);
    struct tensor *u_im = scale(g, linear(g, x, normal_weight(g, "B.im", N, D, b_sd), NULL), gamma);
    struct tensor *h_im, *h_re = scan_diag_complex(g, lambda_re, lambda_im, u_re, u_im, &h_im);
    struct tensor *y_re = linear(g, h_re, normal_weight(g, "C.re", D, N, c_sd), NULL);
    struct tensor *y_im = linear(g, h_im, normal_weight(g, "C.im", D, N, c_sd), NULL);
    struct tensor *skip = vector(g, "skip", D, (struct init){.kind = INIT_NORMAL, .b = 1}, AS_CONTRACT);
    return add(g, sub(g, y_re, y_im), scale(g, x, skip));
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)d;
    return 2 * ((const struct lru *)inst)->state;
}

const struct model model_lru = {
    .name = "lru",
    .title = "LRU",
    .summary = "linear recurrent unit: complex diagonal, not selective (Orvieto et al. 2023)",
    .equation = "h_t = lambda h_{t-1} + exp(gamma) (B x_t);  lambda = exp(-exp(nu) + i exp(theta));  y_t = Re(C h_t) + "
                "skip x_t",
    .options = options,
    .small = "lru:state=9",
    .inst_bytes = sizeof(struct lru),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

/* matrix_state.c - parts that the mixers with a matrix state a head share. See matrix_state.h. */
#include "models/matrix_state.h"

#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "kernels/norm/norm.h"
#include "kernels/token/token.h"
#include "models/parts.h"

struct tensor *silu_conv(struct graph *g, struct tensor *x, const char *name, const char *bias_name, int64_t width) {
    if (!x) return NULL;
    int64_t C = x->dims[2];
    struct tensor *w = weight_from(g, name, C, width, init_linear(width, 1), (struct layout){2, {C, width}, {1, 0}});
    struct tensor *b = bias_name ? vector(g, bias_name, C, init_linear(width, 1), AS_CONTRACT) : NULL;
    return activate(g, conv_depthwise(g, x, w, b), ACT_SILU);
}

/* dt = exp U(log 0.001, log 0.1), at least 1e-4; softplus^-1(dt) = dt + log(1 - e^-dt). */
static double draw_step_bias(struct rng *r, int64_t element, double a, double b) {
    (void)element, (void)a, (void)b;
    double dt = exp(log(0.001) + (log(0.1) - log(0.001)) * rng_uniform(r));
    if (dt < 1e-4) dt = 1e-4;
    return dt + log(-expm1(-dt));
}

/* log of U(a, b]: the open end keeps 0 out. */
static double draw_log_rate(struct rng *r, int64_t element, double a, double b) {
    (void)element;
    return log(b - (b - a) * rng_uniform(r));
}

static struct tensor *dynamics(struct graph *g, const char *name, int64_t n, struct init init) {
    return graph_param(g,
                       &(struct param_spec){.name = name, .rank = 1, .dims = {n}, .group = PARAM_STATE, .init = init});
}

struct tensor *time_step(struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    struct init init = {.kind = INIT_CUSTOM, .draw = draw_step_bias};
    return activate(g, bias(g, x, dynamics(g, "dt.bias", x->dims[2], init)), ACT_SOFTPLUS);
}

struct tensor *time_decay(struct graph *g, struct tensor *delta, double low) {
    if (!delta) return NULL;
    struct init init = {.kind = INIT_CUSTOM, .a = low, .b = 16, .draw = draw_log_rate};
    struct tensor *rate = activate(g, dynamics(g, "A.log", delta->dims[2], init), ACT_EXP);
    return activate(g, scale(g, delta, activate(g, rate, ACT_NEG)), ACT_EXP);
}

/* --- the delta rule ----------------------------------------------------------------------------------------------- */

static struct tensor *projection(struct graph *g, struct tensor *x, const char *name, int64_t width) {
    return x ? linear(g, x, weight(g, name, width, x->dims[2], 1, AS_CONTRACT), NULL) : NULL;
}

/* silu(conv(W x)): the path of q, k and v. */
static struct tensor *conv_projection(const struct delta_rule *o, struct graph *g, struct tensor *x, const char *name,
                                      int64_t width) {
    graph_scope_push(g, name);
    struct tensor *y = silu_conv(g, projection(g, x, "weight", width), "conv", NULL, o->conv);
    graph_scope_pop(g);
    return y;
}

/* The rows of a token as heads of dk, each of length 1. */
static struct tensor *unit_heads(struct graph *g, struct tensor *x, int64_t heads, int64_t dk) {
    if (!x) return NULL;
    return l2norm(g, graph_reshape(g, x, 4, (int64_t[]){x->dims[0], x->dims[1], heads, dk}), L2_EPS);
}

struct tensor *delta_rule(const struct delta_rule *o, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    int64_t B = x->dims[0], T = x->dims[1], D = x->dims[2], H = o->heads, dk = o->headdim, n = o->steps, inner = H * dk;
    struct tensor *q = unit_heads(g, conv_projection(o, g, x, "q", inner), H, dk);
    struct tensor *k = unit_heads(g, conv_projection(o, g, x, "k", n * inner), n * H, dk);
    struct tensor *v = conv_projection(o, g, x, "v", n * inner);
    struct tensor *beta = activate(g, projection(g, x, "beta.weight", n * H), ACT_SIGMOID);
    struct tensor *decay = NULL;
    if (o->forget) decay = time_decay(g, time_step(g, projection(g, x, "a.weight", H)), 0);

    struct delta_attr attr = {.heads = H, .steps = n, .scale = 1 / sqrt((double)dk), .rate = o->beta};
    struct tensor *heads = scan_delta(g, q, k, v, beta, decay, &attr);
    struct tensor *norm = vector(g, "norm.weight", dk, (struct init){.kind = INIT_CONST, .a = 1}, AS_CONTRACT);
    struct tensor *y = rmsnorm(g, graph_reshape(g, heads, 4, (int64_t[]){B, T, H, dk}), norm, NORM_EPS);
    y = graph_reshape(g, y, 3, (int64_t[]){B, T, inner});
    if (o->outgate) y = silu_mul(g, projection(g, x, "g.weight", inner), y);
    return projection(g, y, "out.weight", D);
}

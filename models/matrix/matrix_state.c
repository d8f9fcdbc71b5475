/* matrix_state.c - parts that the mixers with a matrix state per head share. See matrix_state.h. */
#include "models/matrix/matrix_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "kernels/move/move.h"
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

struct tensor *time_step(struct graph *g, struct tensor *x, struct tensor **raw) {
    *raw = NULL;
    if (!x) return NULL;
    struct init init = {.kind = INIT_CUSTOM, .draw = draw_step_bias};
    *raw = bias(g, x, state_vector(g, "dt.bias", x->dims[2], init));
    return activate(g, *raw, ACT_SOFTPLUS);
}

#define EXP_MOST 80.0 /* exp(80) and exp(-80) are normal floats */

/* max(sign x - 80, 0) */
static struct tensor *beyond(struct graph *g, struct tensor *x, double sign) {
    return activate(g, scale_shift(g, x, sign, -EXP_MOST), ACT_RELU);
}

/* Returns x exp(A), or -x exp(A) if negative; each A is for `times` columns. In float exp(A) is infinite from 88.8 on,
 * while x may be 0. So exp(A) is computed as two factors, exp(min(A, 80)) and exp(max(A - 80, 0)). For A <= 80 the
 * second factor is 1, which changes no bit. */
static struct tensor *scale_exp(struct graph *g, struct tensor *x, struct tensor *A, int64_t times, bool negative) {
    struct tensor *above = beyond(g, A, 1);
    struct tensor *rate = activate(g, sub(g, A, above), ACT_EXP), *rest = activate(g, above, ACT_EXP);
    if (negative) rate = activate(g, rate, ACT_NEG);
    return scale(g, scale(g, x, repeat_each(g, rate, times)), repeat_each(g, rest, times));
}

/* Delta exp(A) is max(Delta, exp(-80)) exp(min(A, 80)) exp(a - b) with a = max(A - 80, 0) and b = max(-80 - raw, 0).
 * Below -80, softplus(raw) is exp(raw), which underflows in float although Delta exp(A) may not. Elsewhere the last
 * factor is 1, which changes no bit. */
struct tensor *time_decay(struct graph *g, struct tensor *delta, struct tensor *raw, double low) {
    if (!delta) return NULL;
    struct init init = {.kind = INIT_CUSTOM, .a = low, .b = 16, .draw = draw_log_rate};
    struct tensor *A = state_vector(g, "A.log", delta->dims[2], init), *above = beyond(g, A, 1);
    struct tensor *lacks = activate(g, scale_shift(g, delta, -1, exp(-EXP_MOST)), ACT_RELU);
    struct tensor *rate = activate(g, activate(g, sub(g, A, above), ACT_EXP), ACT_NEG);
    struct tensor *rest = activate(g, bias(g, activate(g, beyond(g, raw, -1), ACT_NEG), above), ACT_EXP);
    return activate(g, mul(g, scale(g, add(g, delta, lacks), rate), rest), ACT_EXP);
}

struct tensor *projection(struct graph *g, struct tensor *x, const char *name, int64_t width) {
    return x ? linear(g, x, weight(g, name, width, x->dims[2], 1, AS_CONTRACT), NULL) : NULL;
}

struct tensor *conv_projection(struct graph *g, struct tensor *x, const char *name, int64_t width, int64_t conv) {
    graph_scope_push(g, name);
    struct tensor *y = projection(g, x, "weight", width);
    if (conv > 0) y = silu_conv(g, y, "conv", NULL, conv);
    graph_scope_pop(g);
    return y;
}

struct tensor *low_rank(struct graph *g, struct tensor *x, const char *name, int64_t rank, int64_t width, bool biased) {
    graph_scope_push(g, name);
    struct tensor *y = projection(g, projection(g, x, "down.weight", rank), "up.weight", width);
    if (biased) y = bias(g, y, vector(g, "up.bias", width, init_linear(rank, 1), AS_CONTRACT));
    graph_scope_pop(g);
    return y;
}

struct tensor *heads_of(struct graph *g, struct tensor *x, int64_t heads) {
    if (!x) return NULL;
    return graph_reshape(g, x, 4, (int64_t[]){x->dims[0], x->dims[1], heads, x->dims[2] / heads});
}

enum status headdim_check(const char *mixer, int64_t *headdim, int64_t inner, struct error *e) {
    if (*headdim == 0)
        for (*headdim = 64; inner % *headdim != 0;) --*headdim;
    if (inner % *headdim != 0)
        return fail(e, ST_USAGE,
                    "%s: headdim=%" PRId64 " does not divide the inner width expand * width = %" PRId64
                    "; take a divisor of it",
                    mixer, *headdim, inner);
    return ST_OK;
}

struct tensor *normed_heads(struct graph *g, struct tensor *o, int64_t heads) {
    if (!o) return NULL;
    struct init one = {.kind = INIT_CONST, .a = 1};
    struct tensor *norm = vector(g, "norm.weight", o->dims[2] / heads, one, AS_CONTRACT);
    return graph_reshape(g, rmsnorm(g, heads_of(g, o, heads), norm, NORM_EPS), 3, o->dims);
}

/* --- the delta rules ---------------------------------------------------------------------------------------------- */

static const char delta_rank_help[] =
    "rank of the decay's map and of the output gate's; auto: width of a head's values";

const struct option delta_channel_options[] = {
    {"heads", OPT_INT, offsetof(struct delta_rule, heads), "4", 1, 1 << 16, NULL, "heads", 0},
    {"headdim", OPT_INT, offsetof(struct delta_rule, headdim), "auto", 1, 1 << 16, NULL,
     "key width of a head; auto: width / heads", OPT_AUTO},
    {"expandv", OPT_INT, offsetof(struct delta_rule, expandv), "1", 1, 64, NULL, "value width of a head over key width",
     0},
    {"conv", OPT_INT, offsetof(struct delta_rule, conv), "4", 1, 64, NULL, "width of the causal convolutions", 0},
    {"beta", OPT_REAL, offsetof(struct delta_rule, beta), "1", 0, 2, NULL, "largest erase", 0},
    {"rank", OPT_INT, offsetof(struct delta_rule, rank), "auto", 1, 1 << 16, NULL, delta_rank_help, OPT_AUTO},
    {"decay", OPT_CHOICE, offsetof(struct delta_rule, decay), "softplus", 0, 0, "softplus bounded",
     "log decay: -exp(A) softplus(f), or floor sigmoid(exp(A) f)", 0},
    {"floor", OPT_REAL, offsetof(struct delta_rule, floor), "-5", -80, 0, NULL, "least log decay (decay=bounded)", 0},
    {0}};

static int64_t delta_steps(const struct delta_rule *o) {
    return o->steps ? o->steps : 1;
}

static int64_t delta_values(const struct delta_rule *o, int64_t dk) {
    return dk * (o->expandv ? o->expandv : 1);
}

enum status delta_check(const char *mixer, struct delta_rule *o, const struct dims *d, struct error *e) {
    if (o->headdim == 0) {
        TRY(check_heads(mixer, o->heads, d, e));
        o->headdim = d->D / o->heads;
    }
    if (o->rank == 0) o->rank = delta_values(o, o->headdim);
    double floats = (double)d->B * (double)d->T * (double)o->heads * (double)o->headdim * (double)delta_steps(o);
    char asked[120];
    snprintf(asked, sizeof asked, "%s: heads=%" PRId64 " headdim=%" PRId64 " steps=%" PRId64, mixer, o->heads,
             o->headdim, delta_steps(o));
    return check_room(asked, "keys", floats, d, e);
}

int64_t delta_state_floats(const void *rule, const struct dims *d) {
    const struct delta_rule *o = rule;
    int64_t dk = o->headdim ? o->headdim : d->D / o->heads;
    return o->heads * dk * delta_values(o, dk);
}

/* One decay per key channel: exp(-exp(A.log) softplus(f + dt.bias)), or exp(floor sigmoid(exp(A.log) (f + dt.bias))),
 * A.log one per head. */
static struct tensor *channel_decay(const struct delta_rule *o, struct graph *g, struct tensor *x) {
    struct tensor *f = low_rank(g, x, "f", o->rank, o->heads * o->headdim, false);
    if (!f) return NULL;
    struct init start = {.kind = INIT_CUSTOM, .a = 1, .b = 16, .draw = draw_log_rate};
    struct init bounded_start = {.kind = INIT_ZERO}, step = {.kind = INIT_CUSTOM, .draw = draw_step_bias};
    bool bounded = o->decay == DELTA_BOUNDED;
    f = bias(g, f, state_vector(g, "dt.bias", f->dims[2], step));
    struct tensor *A = state_vector(g, "A.log", o->heads, bounded ? bounded_start : start);
    if (!bounded) return activate(g, scale_exp(g, activate(g, f, ACT_SOFTPLUS), A, o->headdim, true), ACT_EXP);
    f = activate(g, scale_exp(g, f, A, o->headdim, false), ACT_SIGMOID);
    return activate(g, scale_by(g, f, o->floor), ACT_EXP);
}

/* A gate in (0, 1) per column: sigmoid(W x). */
static struct tensor *logistic(struct graph *g, struct tensor *x, const char *name, int64_t width) {
    return activate(g, projection(g, x, name, width), ACT_SIGMOID);
}

struct tensor *delta_rule(const struct delta_rule *o, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    int64_t D = x->dims[2], H = o->heads, dk = o->headdim, n = delta_steps(o), keys = H * dk;
    int64_t values = H * delta_values(o, dk);
    struct tensor *q = l2norm(g, heads_of(g, conv_projection(g, x, "q", keys, o->conv), H), L2_EPS);
    struct tensor *k = l2norm(g, heads_of(g, conv_projection(g, x, "k", n * keys, o->conv), n * H), L2_EPS);
    struct tensor *v = conv_projection(g, x, "v", n * values, o->conv);
    struct delta_gates gates = {0};
    if (o->vectors) {
        gates.read = mul(g, k, heads_of(g, logistic(g, x, "erase.weight", n * keys), n * H));
        v = mul(g, v, logistic(g, x, "write.weight", n * values));
    } else {
        gates.beta = logistic(g, x, "beta.weight", n * H);
    }
    if (o->channels) gates.decay = channel_decay(o, g, x);
    if (o->forget) {
        struct tensor *raw, *delta = time_step(g, projection(g, x, "a.weight", H), &raw);
        gates.decay = time_decay(g, delta, raw, 0);
    }

    struct delta_attr attr = {.heads = H, .steps = n, .scale = 1 / sqrt((double)dk), .rate = o->beta};
    struct tensor *y = normed_heads(g, scan_delta(g, q, k, v, &gates, &attr), H);
    if (o->channels) y = mul(g, y, activate(g, low_rank(g, x, "g", o->rank, values, true), ACT_SIGMOID));
    if (o->outgate) y = silu_mul(g, projection(g, x, "g.weight", values), y);
    return projection(g, y, "out.weight", D);
}

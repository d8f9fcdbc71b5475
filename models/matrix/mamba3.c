/* mamba3.c - Mamba-3 with a single input and output: Mamba2's state with the trapezoidal rule. Keys and queries are
 * turned by angles that depend on the input, and have biases instead of a convolution.
 *
 *   [z | x | B | C | dt | A | trap | angle] = W_in u, one B, C and angle for all heads
 *   Delta = softplus(dt + dt.bias)    alpha = exp(-Delta max(f(A), 1e-4))    lambda = sigmoid(trap)
 *   theta_t = theta_{t-1} + Delta pi tanh(angle)      k, q = turn(RMSNorm(B, C) + B.bias, C.bias, theta)
 *   h_t = alpha h_{t-1} + (1 - lambda) Delta alpha x_{t-1} k_{t-1}^T + lambda Delta x_t k_t^T, x_{-1} = 0
 *   out = W_out (RMSNorm_head(h_t q_t + skip x_t) * silu(z)), that norm only with norm=yes; h is P x S per head
 * scan_outer runs it with four gates: a token enters the state with the weight of its own step and of the next one,
 * lambda_t Delta_t + (1 - lambda_{t+1}) Delta_{t+1}, while its own output reads it with lambda_t Delta_t only.
 *
 * Lahoti et al. 2026 (arXiv 2603.15569); state-spaces/mamba (modules/mamba3.py), whose f is 1 + A for A >= 0, else
 * 1 / (1 - A). decay=softplus is the f of its first release, with which the paper's numbers were made. Initial values
 * are the release's: default linear maps, Delta log-uniform in [0.001, 0.1], biases, norms and skip 1. Like there,
 * angles are modulo 2 pi. Only a share `rope` of the channels turns: theta has R = floor(floor(rope S) / 2) angles. */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "kernels/token/token.h"
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

#define LEAST_RATE 1e-4

enum decay { DECAY_HEAVY, DECAY_SOFTPLUS };

struct mamba3 {
    int64_t state, headdim, expand;
    double rope;
    int decay;
    bool norm;
};

static const struct option options[] = {
    {"state", OPT_INT, offsetof(struct mamba3, state), "128", 1, 1 << 16, NULL, "state size S of a channel", OPT_STATE},
    {"headdim", OPT_INT, offsetof(struct mamba3, headdim), "auto", 1, 1 << 16, NULL,
     "channels P per head, divides expand * width; auto: the largest divisor up to 64", OPT_AUTO},
    {"expand", OPT_INT, offsetof(struct mamba3, expand), "2", 1, 64, NULL, "inner width over outer width", 0},
    {"rope", OPT_REAL, offsetof(struct mamba3, rope), "0.5", 0, 1, NULL, "share of a state's channels that turn", 0},
    {"decay", OPT_CHOICE, offsetof(struct mamba3, decay), "heavy", 0, 0, "heavy softplus",
     "rate of decay from A: 1 + A or 1 / (1 - A), or softplus(A)", 0},
    {"norm", OPT_BOOL, offsetof(struct mamba3, norm), "no", 0, 0, NULL, "norm of each head before the output gate", 0},
    {0}};

static int64_t angles_of(const struct mamba3 *o) {
    return (int64_t)(o->rope * (double)o->state) / 2;
}

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct mamba3 *o = inst;
    TRY(headdim_check("mamba3", &o->headdim, o->expand * d->D, e));
    if (angles_of(o) == 0)
        return fail(e, ST_USAGE,
                    "mamba3: rope=%g of state=%" PRId64 " is no pair of channels that could turn; take a larger state "
                    "or share",
                    o->rope, o->state);
    return ST_OK;
}

/* -Delta times the rate of decay. */
static struct tensor *log_decay(const struct mamba3 *o, struct graph *g, struct tensor *A, struct tensor *delta) {
    struct tensor *rate = activate(g, A, o->decay == DECAY_HEAVY ? ACT_HEAVY : ACT_SOFTPLUS);
    rate = scale_shift(g, activate(g, scale_shift(g, rate, 1, -LEAST_RATE), ACT_RELU), 1, LEAST_RATE);
    return scale_by(g, mul(g, delta, rate), -1);
}

/* A key or query of all heads. */
static struct tensor *turned(struct graph *g, struct tensor *x, const char *name, int64_t heads, struct tensor *cosine,
                             struct tensor *sine) {
    if (!x) return NULL;
    int64_t S = x->dims[2];
    struct init one = {.kind = INIT_CONST, .a = 1};
    graph_scope_push(g, name);
    x = rmsnorm(g, x, vector(g, "norm", S, one, AS_CONTRACT), NORM_EPS);
    struct param_spec bias = {.name = "bias", .rank = 2, .dims = {heads, S}, .init = one, .group = PARAM_VECTOR};
    struct tensor *y = turn_heads(g, x, graph_param(g, &bias), cosine, sine);
    graph_scope_pop(g);
    return y;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *u) {
    if (!u) return NULL;
    const struct mamba3 *o = inst;
    int64_t D = u->dims[2], I = o->expand * D, S = o->state, P = o->headdim, n = I / P, R = angles_of(o);
    struct init one = {.kind = INIT_CONST, .a = 1};
    struct tensor *parts[4], *bc[2], *raw[4], *sine;
    struct tensor *all = linear(g, u, weight(g, "in.weight", 2 * I + 2 * S + 3 * n + R, D, 1, AS_CONTRACT), NULL);
    split(g, all, 4, (int64_t[]){I, I, 2 * S, 3 * n + R}, parts);
    split(g, parts[2], 2, (int64_t[]){S, S}, bc);
    split(g, parts[3], 4, (int64_t[]){n, n, n, R}, raw);
    struct tensor *z = parts[0], *x = parts[1];

    struct tensor *delta = time_step(g, raw[0], &raw[0]), *log_alpha = log_decay(o, g, raw[1], delta);
    struct tensor *now = mul(g, activate(g, raw[2], ACT_SIGMOID), delta), *later = sub(g, delta, now);
    later = reverse(g, rows_before(g, reverse(g, later, NULL)), NULL); /* the next token's value */
    struct outer_gates gates = {.decay = activate(g, log_alpha, ACT_EXP),
                                .source = add(g, now, later),
                                .mark = activate(g, log_alpha, ACT_EXP), /* an op takes no tensor twice */
                                .direct = now};
    struct tensor *cosine = running_turn(g, delta, activate(g, raw[3], ACT_TANH), &sine);
    struct tensor *k = turned(g, bc[0], "B", n, cosine, sine), *q = turned(g, bc[1], "C", n, cosine, sine);
    struct tensor *y = scan_outer(g, q, k, x, &gates, n, n, 1);
    y = add(g, y, scale(g, x, repeat_each(g, state_vector(g, "skip", n, one), P)));
    if (o->norm) {
        struct tensor *w = vector(g, "norm.weight", I, one, AS_CONTRACT);
        y = rmsnorm_heads(g, y, w ? graph_reshape(g, w, 2, (int64_t[]){n, P}) : NULL, NORM_EPS);
    }
    return linear(g, silu_mul(g, z, y), weight(g, "out.weight", D, I, 1, AS_CONTRACT), NULL);
}

/* The matrices h; x and the k of each head of the previous token; the angles. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    const struct mamba3 *o = inst;
    int64_t I = o->expand * d->D, n = I / o->headdim;
    return I * o->state + I + n * o->state + n * angles_of(o);
}

const struct model model_mamba3 = {
    .name = "mamba3",
    .title = "Mamba-3",
    .summary = "outer-product state by the trapezoidal rule, turned keys (Mamba-3, Lahoti et al. 2026)",
    .equation =
        "h_t = alpha_t h_{t-1} + (1 - lambda_t) Delta_t alpha_t x_{t-1} k_{t-1}^T + lambda_t Delta_t x_t k_t^T\n"
        "k_t, q_t turned by theta_t = theta_{t-1} + Delta_t pi tanh(angle_t);  y_t = W_out ((h_t q_t + skip x_t) "
        "* silu(z_t))",
    .options = options,
    .small = "mamba3:state=4,headdim=8 mamba3:state=6,headdim=24,expand=4,rope=1,norm=yes "
             "mamba3:state=5,headdim=8,decay=softplus",
    .inst_bytes = sizeof(struct mamba3),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

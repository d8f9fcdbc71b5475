/* mamba2.c - Mamba2: an outer-product state with one input-dependent decay per head; all heads share B and C.
 *
 *   [z | x | B | C | dt] = W_in u      (x, B, C) <- silu(conv(x, B, C))      Delta = softplus(dt + dt.bias)
 *   h_t = exp(-Delta exp(A.log)) h_{t-1} + Delta x_t B_t^T  (P x S per head)     y_t = h_t C_t + skip x_t
 *   out = W_out RMSNorm(y * silu(z))
 * range=signed: the decay is 2 exp(-Delta exp(A.log)) - 1 in (-1, 1), so that a token can change the sign of a state;
 * the source stays Delta (Grazzi et al. 2024, arXiv 2411.12537; automl/unlocking_state_tracking does so in Mamba-1).
 *
 * Dao & Gu 2024; state-spaces/mamba's module with one group (modules/mamba2.py), whose initial values these are:
 * default linear maps and convolution, A.log = log U(1,16], Delta log-uniform in [0.001, 0.1], skip 1. */
#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

enum range { RANGE_UNIT, RANGE_SIGNED };

struct mamba2 {
    int64_t state, headdim, conv, expand;
    int range;
};

static const struct option options[] = {
    {"state", OPT_INT, offsetof(struct mamba2, state), "128", 1, 1 << 16, NULL, "state size S of a channel", OPT_STATE},
    {"headdim", OPT_INT, offsetof(struct mamba2, headdim), "auto", 1, 1 << 16, NULL,
     "channels P per head, divides expand * width; auto: the largest divisor up to 64", OPT_AUTO},
    {"conv", OPT_INT, offsetof(struct mamba2, conv), "4", 1, 64, NULL, "width of the causal convolution", 0},
    {"expand", OPT_INT, offsetof(struct mamba2, expand), "2", 1, 64, NULL, "inner width over outer width", 0},
    {"range", OPT_CHOICE, offsetof(struct mamba2, range), "unit", 0, 0, "unit signed",
     "of the decay: unit (0, 1], signed (-1, 1]", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct mamba2 *o = inst;
    return headdim_check("mamba2", &o->headdim, o->expand * d->D, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *u) {
    if (!u) return NULL;
    const struct mamba2 *o = inst;
    int64_t D = u->dims[2], I = o->expand * D, S = o->state, P = o->headdim, n = I / P;
    struct tensor *parts[3], *xbc[3];
    struct tensor *all = linear(g, u, weight(g, "in.weight", 2 * I + 2 * S + n, D, 1, AS_CONTRACT), NULL);
    split(g, all, 3, (int64_t[]){I, I + 2 * S, n}, parts);
    split(g, silu_conv(g, parts[1], "conv.weight", "conv.bias", o->conv), 3, (int64_t[]){I, S, S}, xbc);
    struct tensor *z = parts[0], *x = xbc[0];

    struct tensor *raw, *delta = time_step(g, parts[2], &raw);
    struct tensor *decay = time_decay(g, delta, raw, 1);
    if (o->range == RANGE_SIGNED) decay = scale_shift(g, decay, 2, -1);
    struct outer_gates gates = {.decay = decay, .source = delta};
    struct tensor *y = scan_outer(g, xbc[2], xbc[1], x, &gates, n, 1, 1);
    struct tensor *skip = state_vector(g, "skip", n, (struct init){.kind = INIT_CONST, .a = 1});
    y = add(g, y, scale(g, x, repeat_each(g, skip, P)));

    struct tensor *norm = vector(g, "norm.weight", I, (struct init){.kind = INIT_CONST, .a = 1}, AS_CONTRACT);
    struct tensor *v = rmsnorm(g, silu_mul(g, z, y), norm, NORM_EPS);
    return linear(g, v, weight(g, "out.weight", D, I, 1, AS_CONTRACT), NULL);
}

/* The matrices h; the window of the convolution is not counted. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    const struct mamba2 *o = inst;
    return o->expand * d->D * o->state;
}

const struct model model_mamba2 = {
    .name = "mamba2",
    .title = "Mamba2",
    .summary = "outer-product state, one selective decay a head (Mamba2, Dao & Gu 2024)",
    .equation = "h_t = exp(-Delta_t exp(A.log)) h_{t-1} + Delta_t x_t B_t^T;  y_t = W_out RMSNorm((h_t C_t + skip x_t) "
                "* silu(z_t))",
    .options = options,
    .small = "mamba2:state=3,headdim=8 mamba2:state=2,headdim=24,conv=2,expand=4 mamba2:state=3,headdim=8,range=signed",
    .inst_bytes = sizeof(struct mamba2),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

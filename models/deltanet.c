/* deltanet.c - DeltaNet[-1,1]: the delta rule, one Householder-like step a token, deltaproduct.c with steps = 1.
 *
 *   q, k = l2norm(silu(conv(W x)))   v = silu(conv(W_v x))   b_t = beta sigmoid(W_b x)      a head: dk = D / heads
 *   S_t = (I - b_t k_t k_t^T) S_{t-1} + b_t k_t v_t^T     o_t = S_t^T q_t / sqrt(dk)     y = W_o RMSNorm(o)
 *
 * Yang et al. 2024; flash-linear-attention's layer (layers/delta_net.py). beta = 2 lets I - b k k^T have the eigenvalue
 * -1 (Grazzi et al. 2024); beta = 1 is the original. */
#include "models/matrix_state.h"
#include "models/parts.h"

struct deltanet {
    int64_t heads, conv;
    double beta;
};

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct deltanet, heads), "4", 1, 1 << 16, NULL, "heads; must divide the width", 0},
    {"conv", OPT_INT, offsetof(struct deltanet, conv), "4", 1, 64, NULL, "width of the causal convolutions", 0},
    {"beta", OPT_REAL, offsetof(struct deltanet, beta), "2", 0, 2, NULL, "largest step b_t", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return check_heads("deltanet", ((const struct deltanet *)inst)->heads, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct deltanet *o = inst;
    struct delta_rule rule = {
        .heads = o->heads, .headdim = x->dims[2] / o->heads, .steps = 1, .conv = o->conv, .beta = o->beta};
    return delta_rule(&rule, g, x);
}

/* The matrices S; the windows of the convolutions are not counted. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    return d->D * (d->D / ((const struct deltanet *)inst)->heads);
}

const struct model model_deltanet = {
    .name = "deltanet",
    .summary = "delta rule, one step a token, eigenvalues in [-1, 1] (DeltaNet, Yang et al.; Grazzi et al. 2024)",
    .equation = "S_t = (I - b_t k_t k_t^T) S_{t-1} + b_t k_t v_t^T;  b_t = beta sigmoid(W_b x_t);  y_t = W_o "
                "RMSNorm(S_t^T q_t / sqrt(dk))",
    .options = options,
    .small = "deltanet:heads=3",
    .inst_bytes = sizeof(struct deltanet),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

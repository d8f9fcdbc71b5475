/* deltanet.c - DeltaNet[-1,1]: the delta rule, one Householder-like step per token, deltaproduct.c with steps = 1.
 *
 *   q, k = l2norm(silu(conv(W x)))   v = silu(conv(W_v x))   b_t = beta sigmoid(W_b x)    per head, dk = D / heads
 *   S_t = (I - b_t k_t k_t^T) S_{t-1} + b_t k_t v_t^T     o_t = S_t^T q_t / sqrt(dk)     y = W_o RMSNorm(o)
 *
 * Yang et al. 2024; flash-linear-attention's layer (layers/delta_net.py). beta = 2 lets I - b k k^T have the eigenvalue
 * -1 (Grazzi et al. 2024); beta = 1 is the original. */
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct delta_rule, heads), "4", 1, 1 << 16, NULL, "heads; must divide the width", 0},
    {"conv", OPT_INT, offsetof(struct delta_rule, conv), "4", 1, 64, NULL, "width of the causal convolutions", 0},
    {"beta", OPT_REAL, offsetof(struct delta_rule, beta), "2", 0, 2, NULL, "largest step b_t", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return delta_check("deltanet", inst, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    return delta_rule(inst, g, x);
}

const struct model model_deltanet = {
    .name = "deltanet",
    .title = "DeltaNet",
    .summary = "delta rule, one step per token, eigenvalues in [-1, 1] (DeltaNet, Yang et al.; Grazzi et al. 2024)",
    .equation = "S_t = (I - b_t k_t k_t^T) S_{t-1} + b_t k_t v_t^T;  b_t = beta sigmoid(W_b x_t);  y_t = W_o "
                "RMSNorm(S_t^T q_t / sqrt(dk))",
    .options = options,
    .small = "deltanet:heads=3",
    .inst_bytes = sizeof(struct delta_rule),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = delta_state_floats,
};

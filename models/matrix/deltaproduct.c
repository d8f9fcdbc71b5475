/* deltaproduct.c - DeltaProduct[-1,1]: several delta-rule steps per token, so that a token's transition is a product of
 * generalised Householder matrices. With forget and output gates it is Gated DeltaProduct (and gated_deltanet.c if
 * steps = 1).
 *
 *   q = l2norm(silu(conv(W_q x)))   k_j = l2norm(silu(conv(W_k x)_j))   v_j = silu(conv(W_v x)_j)
 *   b_j = beta sigmoid(W_b x)_j
 *   S <- a_t S, a_t = exp(-exp(A.log) softplus(W_a x + dt.bias))  (forget)
 *   j = 0..steps-1: S <- S + k_j (b_j (v_j - S^T k_j))^T
 *   o_t = S^T q_t / sqrt(dk)     y = W_o (RMSNorm(o) * silu(W_g x))  (outgate; else y = W_o RMSNorm(o))
 *
 * Siems et al. 2025; flash-linear-attention's layer (layers/gated_deltaproduct.py). In the projections to k, v and b
 * the step is the outermost axis. Initial values are that layer's: default linear maps, A.log = log U(0,16], dt.bias as
 * in Mamba2. */
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct delta_rule, heads), "4", 1, 1 << 16, NULL, "heads", 0},
    {"headdim", OPT_INT, offsetof(struct delta_rule, headdim), "auto", 1, 1 << 16, NULL,
     "width of a head; auto: width / heads", OPT_AUTO},
    {"steps", OPT_INT, offsetof(struct delta_rule, steps), "2", 1, 64, NULL, "delta-rule steps per token", 0},
    {"conv", OPT_INT, offsetof(struct delta_rule, conv), "4", 1, 64, NULL, "width of the causal convolutions", 0},
    {"beta", OPT_REAL, offsetof(struct delta_rule, beta), "2", 0, 2, NULL, "largest step b_j", 0},
    {"forget", OPT_BOOL, offsetof(struct delta_rule, forget), "no", 0, 0, NULL, "decay of the state per token", 0},
    {"outgate", OPT_BOOL, offsetof(struct delta_rule, outgate), "no", 0, 0, NULL, "SiLU gate on the output", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return delta_check("deltaproduct", inst, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    return delta_rule(inst, g, x);
}

const struct model model_deltaproduct = {
    .name = "deltaproduct",
    .title = "DeltaProduct",
    .summary =
        "delta rule, several steps per token, optional forget and output gates (DeltaProduct, Siems et al. 2025)",
    .equation = "S <- a_t S;  j < steps: S <- S + k_j (b_j (v_j - S^T k_j))^T;  y_t = W_o (RMSNorm(S^T q_t / sqrt(dk)) "
                "* silu(W_g x_t))",
    .options = options,
    .small = "deltaproduct:heads=2,headdim=5,steps=3 deltaproduct:heads=4,steps=1,forget=yes,outgate=yes",
    .inst_bytes = sizeof(struct delta_rule),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = delta_state_floats,
};

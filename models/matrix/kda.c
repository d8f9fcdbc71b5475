/* kda.c - Kimi Delta Attention: the delta rule with one decay per key channel.
 *
 *   q, k, v, b_t as in gated_deltanet.c;   f = W_f2 W_f1 x, of rank `rank`
 *   a_t = exp(-exp(A.log) softplus(f + dt.bias)), or exp(floor sigmoid(exp(A.log) (f + dt.bias)))  (decay=bounded)
 *   S_t = (I - b_t k_t k_t^T) Diag(a_t) S_{t-1} + b_t k_t v_t^T     o_t = S_t^T q_t / sqrt(dk)
 *   y = W_o (RMSNorm(o) * sigmoid(W_g2 W_g1 x + b))
 *
 * Kimi Team 2025 (arXiv 2510.26692); flash-linear-attention's layer (layers/kda.py, ops/kda/gate.py), whose initial
 * values these are: A.log = log U(1,16], or 0 if bounded; dt.bias as in Mamba2, one per channel. */
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return delta_check("kda", inst, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    struct delta_rule rule = *(const struct delta_rule *)inst;
    rule.channels = true;
    return delta_rule(&rule, g, x);
}

const struct model model_kda = {
    .name = "kda",
    .title = "KDA",
    .summary = "delta rule with a decay a key channel (Kimi Delta Attention, Kimi Team 2025)",
    .equation = "S_t = (I - b_t k_t k_t^T) Diag(a_t) S_{t-1} + b_t k_t v_t^T;  a_t = exp(-exp(A) softplus(W_f x_t + "
                "d));  y_t = W_o (RMSNorm(S_t^T q_t / sqrt(dk)) * sigmoid(W_g x_t + c))",
    .options = delta_channel_options,
    .small = "kda:heads=3 kda:heads=2,headdim=5,expandv=2,rank=3,decay=bounded,beta=2",
    .inst_bytes = sizeof(struct delta_rule),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = delta_state_floats,
};

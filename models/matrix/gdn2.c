/* gdn2.c - Gated DeltaNet 2: the delta rule with a decay and an erase gate per key channel, a write gate per value
 * channel.
 *
 *   q, k, v, a_t and the output as in kda.c
 *   e_t = beta sigmoid(W_e x) per key channel      w_t = sigmoid(W_w x) per value channel
 *   S_t = (I - k_t (e_t * k_t)^T) Diag(a_t) S_{t-1} + k_t (w_t * v_t)^T     o_t = S_t^T q_t / sqrt(dk)
 *
 * Hatamizadeh, Choi & Kautz 2026 (arXiv 2605.22791); flash-linear-attention's layer (layers/gdn2.py). beta = 2 doubles
 * only the erase gate, as there. That layer has no bounded decay, but its kernel has, so the options are kda's. */
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return delta_check("gdn2", inst, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    struct delta_rule rule = *(const struct delta_rule *)inst;
    rule.channels = rule.vectors = true;
    return delta_rule(&rule, g, x);
}

const struct model model_gdn2 = {
    .name = "gdn2",
    .title = "Gated DeltaNet 2",
    .summary = "delta rule with decay, erase and write gates per channel (Gated DeltaNet 2, Hatamizadeh et al. 2026)",
    .equation = "S_t = (I - k_t (e_t * k_t)^T) Diag(a_t) S_{t-1} + k_t (w_t * v_t)^T;  e_t = beta sigmoid(W_e x_t);  "
                "y_t = W_o (RMSNorm(S_t^T q_t / sqrt(dk)) * sigmoid(W_g x_t + c))",
    .options = delta_channel_options,
    .small = "gdn2:heads=3 gdn2:heads=2,headdim=5,expandv=2,rank=3,decay=bounded,beta=2",
    .inst_bytes = sizeof(struct delta_rule),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = delta_state_floats,
};

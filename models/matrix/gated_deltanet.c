/* gated_deltanet.c - Gated DeltaNet: the delta rule with one decay per head and an output gate.
 *
 *   q, k = l2norm(silu(conv(W x)))   v = silu(conv(W_v x)), dv = expandv * dk   b_t = beta sigmoid(W_b x)
 *   a_t = exp(-exp(A.log) softplus(W_a x + dt.bias))          per head
 *   S_t = (I - b_t k_t k_t^T) a_t S_{t-1} + b_t k_t v_t^T     o_t = S_t^T q_t / sqrt(dk)
 *   y = W_o (RMSNorm(o) * silu(W_g x))
 *
 * Yang, Kautz & Hatamizadeh 2024 (arXiv 2412.06464); flash-linear-attention's layer (layers/gated_deltanet.py), whose
 * initial values these are. It equals deltaproduct with steps=1,forget=yes,outgate=yes and reads its files. beta is 1
 * as in the paper; beta=2 gives the Gated DeltaNet [-1,1] of other papers' tables. Widths follow the net's width, while
 * that layer's (6 heads of 256, expandv=2) do not. */
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct delta_rule, heads), "4", 1, 1 << 16, NULL, "heads", 0},
    {"headdim", OPT_INT, offsetof(struct delta_rule, headdim), "auto", 1, 1 << 16, NULL,
     "key width of a head; auto: width / heads", OPT_AUTO},
    {"expandv", OPT_INT, offsetof(struct delta_rule, expandv), "1", 1, 64, NULL, "value width of a head over key width",
     0},
    {"conv", OPT_INT, offsetof(struct delta_rule, conv), "4", 1, 64, NULL, "width of the causal convolutions", 0},
    {"beta", OPT_REAL, offsetof(struct delta_rule, beta), "1", 0, 2, NULL, "largest step b_t", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return delta_check("gated-deltanet", inst, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    struct delta_rule rule = *(const struct delta_rule *)inst;
    rule.forget = rule.outgate = true;
    return delta_rule(&rule, g, x);
}

const struct model model_gated_deltanet = {
    .name = "gated-deltanet",
    .title = "Gated DeltaNet",
    .summary = "delta rule with a decay a head and an output gate (Gated DeltaNet, Yang et al. 2024)",
    .equation =
        "S_t = (I - b_t k_t k_t^T) a_t S_{t-1} + b_t k_t v_t^T;  a_t = exp(-exp(A) softplus(W_a x_t + d));  y_t "
        "= W_o (RMSNorm(S_t^T q_t / sqrt(dk)) * silu(W_g x_t))",
    .options = options,
    .small = "gated-deltanet:heads=3 gated-deltanet:heads=2,headdim=5,expandv=2,beta=2",
    .inst_bytes = sizeof(struct delta_rule),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = delta_state_floats,
};

/* slstm.c - sLSTM: scalar memories with exponential input gates and a normaliser. The gates of a head also read the
 * head's own h_{t-1}, so the tokens are computed one after the other instead of by a scan.
 *
 *   xc = silu(conv(x)), or x itself (conv=0)       p_g = W_g xc + R_g h_{t-1} + b_g; z, o: x for xc
 *   m_t = max(p_i, logsig(p_f) + m_{t-1})          F = exp(logsig(p_f) + m_{t-1} - m_t)     I = exp(p_i - m_t)
 *   c_t = F c_{t-1} + I tanh(p_z)                  n_t = F n_{t-1} + I                      h_t = sig(p_o) c_t / n_t
 *   y = headnorm(h) (1 + norm.weight)              W_g, R_g block-diagonal, a block per head
 *
 * Beck et al. 2024 (xLSTM), Eq. 8 to 17; NX-AI/xlstm (blocks/slstm), whose start this is: W N(0, 2 / 5D), R and
 * biases 0, but the f bias 5 - 12 (j / (dh - 1))^(0.3 + 1.3 layer / (layers - 1)) in channel j of its head. There the
 * layer's fgate feeds the cell's i and igate its f; both read xc, so only names differ: i.weight is its fgate.weight.
 * The release has dropout before the head norm; the nets here have it after the mixer.
 *
 * The release decays what has `weight` but not `norm` in its name (xlstm/utils.py), so neither biases nor norms nor R,
 * which is _recurrent_kernel_ there. --decay-all no does the same. --backbone xlstm alone decays R. */
#include "kernels/dense/dense.h"
#include "kernels/norm/norm.h"
#include "kernels/stable/stable.h"
#include "models/matrix/matrix_state.h"
#include "models/parts.h"
#include "models/xlstm.h"

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct xlstm_cell, heads), "4", 1, 1 << 16, NULL, "heads; must divide the width", 0},
    {"conv", OPT_INT, offsetof(struct xlstm_cell, conv), "4", 0, 64, NULL,
     "width of the causal convolution before the gates i and f; 0: none", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return check_heads("slstm", ((const struct xlstm_cell *)inst)->heads, d, e);
}

/* `a` packs two sizes, D + dh / 2^17; b is the power. */
static double draw_bias(struct rng *r, int64_t element, double a, double b) {
    (void)r;
    int64_t D = (int64_t)a, dh = (int64_t)((a - floor(a)) * (1 << 17)), j = element % dh;
    if (element / D != SLSTM_F) return 0;
    return 5 - 12 * (dh > 1 ? pow((double)j / (double)(dh - 1), b) : 0);
}

static struct init bias_start(struct graph *g, int64_t D, int64_t dh) {
    const struct graph_builder *now = graph_builder(g);
    double share = now->layers > 1 ? (double)now->layer / (now->layers - 1) : 0;
    return (struct init){
        .kind = INIT_CUSTOM, .a = (double)D + (double)dh / (1 << 17), .b = 0.3 + 1.3 * share, .draw = draw_bias};
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    static const char *const names[] = {"i.weight", "f.weight", "z.weight", "o.weight"};
    const struct xlstm_cell *o = inst;
    int64_t D = x->dims[2], H = o->heads, dh = D / H;
    struct layout inputs_first = {3, {H, dh, dh}, {0, 2, 1}}, by_head = {4, {SLSTM_GATES, H, dh, dh}, {1, 0, 2, 3}};
    struct layout bias_by_head = {3, {SLSTM_GATES, H, dh}, {1, 0, 2}};
    struct tensor *xc = o->conv > 0 ? silu_conv(g, x, "conv.weight", "conv.bias", o->conv) : x, *raw[SLSTM_GATES];
    for (int i = 0; i < SLSTM_GATES; i++)
        raw[i] = linear_blocks(g, i == SLSTM_I || i == SLSTM_F ? xc : x,
                               weight_from(g, names[i], D, dh, init_small(D), inputs_first));
    struct tensor *R =
        weight_from(g, "recurrent.weight", SLSTM_GATES * D, dh, (struct init){.kind = INIT_ZERO}, by_head);
    struct tensor *b = vector(g, "bias", SLSTM_GATES * D, bias_start(g, D, dh), bias_by_head);
    return layernorm_heads(g, scan_slstm(g, raw, R, b), norm_around_one(g, H, dh), NORM_EPS);
}

/* h, c, n and m; the window of the convolution is not counted. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)inst;
    return 4 * d->D;
}

static bool takes_mlp(const void *inst, int64_t layer) {
    (void)inst, (void)layer;
    return true;
}

const struct model model_slstm = {
    .name = "slstm",
    .title = "sLSTM",
    .summary = "scalar memories, exponential gates that read the step before (sLSTM of xLSTM, Beck et al. 2024)",
    .equation =
        "m_t = max(i_t, logsig(f_t) + m_{t-1});  F = exp(logsig(f_t) + m_{t-1} - m_t);  I = exp(i_t - m_t)\n"
        "c_t = F c_{t-1} + I tanh(z_t);  n_t = F n_{t-1} + I;  h_t = sig(o_t) c_t / n_t;  y_t = LayerNorm(h_t)\n"
        "(i, f, z, o)_t = W x_t + R h_{t-1} + b",
    .options = options,
    .small = "slstm:heads=3 slstm:heads=2,conv=0",
    .inst_bytes = sizeof(struct xlstm_cell),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
    .undecayed = "recurrent.weight bias conv.bias norm.weight",
    .takes_mlp = takes_mlp,
};

/* mlstm.c - mLSTM: a matrix memory with exponential input gates and a normaliser, kept in range by a running maximum.
 *
 *   (u, z) = W_up x, E = 2D wide each   c = silu(conv(u))   q, k = W_q c, W_k c, v = W_v u, in blocks of 4 channels
 *   (i, f) = W (q, k, v) + b a head, dk = E / heads wide            m_t = max(logsig(f) + m_{t-1}, i), m_{-1} = 0
 *   F = exp(logsig(f) + m_{t-1} - m_t)   I = exp(i - m_t)           C_t = F C_{t-1} + I k v^T / sqrt(dk), n with v = 1
 *   h = C_t^T q / (max(|n_t . q|, exp(-m_t)) + 1e-6)                y = W_down ((LayerNorm_head(h) + skip c) silu(z))
 * C and n are computed by one recurrence, scan_outer on (1, v). Two recurrences would take longer, by a half at dk = 24
 * and by a tenth at 128, because both compute q . k and both pad their values to whole vectors.
 *
 * Beck et al. 2024 (xLSTM), Eq. 19 to 27; the release's block without residual and outer norms
 * (NX-AI/xlstm, blocks/mlstm), whose start this is: W_up, W_q, W_k and W_v N(0, 2 / 5D), W_down N(0, 4 / (layers^2 D)),
 * gates with weights 0, i bias N(0, 0.1^2), f bias from 3 to 6 over the heads; skip 1; the convolution as the
 * framework's. In the contract norm.weight [H][dk] is the weight less 1; gates.weight [2H][3E] and gates.bias have the
 * rows of i, then the rows of f; the columns are q, k, v. */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "kernels/stable/stable.h"
#include "models/matrix/matrix_state.h"
#include "models/parts.h"
#include "models/xlstm.h"

#define EXPAND      2 /* inner width over outer width */
#define BLOCK       4 /* channels of a block of W_q, W_k, W_v */
#define DIVISOR_EPS 1e-6

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct xlstm_cell, heads), "4", 1, 1 << 16, NULL,
     "heads; must divide the inner width, twice the width", 0},
    {"conv", OPT_INT, offsetof(struct xlstm_cell, conv), "4", 1, 64, NULL, "width of the causal convolution", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct xlstm_cell *o = inst;
    int64_t I = EXPAND * d->D;
    if (I % o->heads != 0)
        return fail(e, ST_USAGE,
                    "mlstm: heads=%" PRId64 " does not divide the inner width %d * %" PRId64 " = %" PRId64
                    "; take a divisor of it",
                    o->heads, EXPAND, d->D, I);
    if (I % BLOCK != 0)
        return fail(e, ST_USAGE,
                    "mlstm: the inner width %d * %" PRId64 " = %" PRId64
                    " is not made of blocks of %d channels; take an even width",
                    EXPAND, d->D, I, BLOCK);
    return ST_OK;
}

/* One of W_q x, W_k x, W_v x. The weight's start depends on the outer width instead of the block's width. */
static struct tensor *blocks(struct graph *g, struct tensor *x, const char *name) {
    if (!x) return NULL;
    int64_t I = x->dims[2];
    struct layout inputs_first = {3, {I / BLOCK, BLOCK, BLOCK}, {0, 2, 1}};
    return linear_blocks(g, x, weight_from(g, name, I, BLOCK, init_small(I / EXPAND), inputs_first));
}

/* The gates' biases for a = H heads: N(0, 0.1^2) for i, then 3 to 6 for f. */
static double draw_gate_bias(struct rng *r, int64_t element, double a, double b) {
    (void)b;
    int64_t H = (int64_t)a, h = element - H;
    if (h < 0) return 0.1 * rng_normal(r);
    return H > 1 ? 3 + 3 * (double)h / (double)(H - 1) : 3;
}

/* Raw i and f from (q, k, v). The weight is split by columns, so that q, k and v need not be joined. */
static void raw_gates(const struct xlstm_cell *o, struct graph *g, struct tensor *const qkv[3], struct tensor *raw[2]) {
    int64_t H = o->heads, I = qkv[0]->dims[2];
    struct tensor *parts[3];
    struct param_spec zero = {.name = "gates.weight", .rank = 2, .dims = {2 * H, 3 * I}, .init = {.kind = INIT_ZERO}};
    struct init start = {.kind = INIT_CUSTOM, .a = (double)H, .draw = draw_gate_bias};
    split(g, graph_param(g, &zero), 3, (int64_t[]){I, I, I}, parts);
    struct tensor *z = linear(g, qkv[0], parts[0], vector(g, "gates.bias", 2 * H, start, AS_CONTRACT));
    for (int i = 1; i < 3; i++) z = add(g, z, linear(g, qkv[i], parts[i], NULL));
    split(g, z, 2, (int64_t[]){H, H}, raw);
}

/* Returns h of all heads (B,T,I). */
static struct tensor *memory(const struct xlstm_cell *o, struct graph *g, struct tensor *const qkv[3]) {
    if (!qkv[0] || !qkv[1] || !qkv[2]) return NULL;
    int64_t B = qkv[0]->dims[0], T = qkv[0]->dims[1], H = o->heads, dk = qkv[0]->dims[2] / H;
    struct tensor *raw[2], *source, *m;
    raw_gates(o, g, qkv, raw);
    struct outer_gates gates = {.decay = stable_gates(g, raw[0], raw[1], 0, &source, &m), .source = source};
    struct tensor *values = prepend_one(g, graph_reshape(g, qkv[2], 4, (int64_t[]){B, T, H, dk}), 1);
    struct tensor *read = scan_outer(g, qkv[0], qkv[1], values, &gates, H, H, 1 / sqrt((double)dk));
    return stable_readout(g, read, m, DIVISOR_EPS);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct xlstm_cell *o = inst;
    int64_t D = x->dims[2], I = EXPAND * D, H = o->heads;
    struct tensor *parts[2];
    split(g, linear(g, x, weight_or(g, "up.weight", 2 * I, D, init_small(D), AS_CONTRACT), NULL), 2, (int64_t[]){I, I},
          parts);
    struct tensor *u = parts[0], *z = parts[1], *c = silu_conv(g, u, "conv.weight", "conv.bias", o->conv);
    struct tensor *h =
        memory(o, g, (struct tensor *[]){blocks(g, c, "q.weight"), blocks(g, c, "k.weight"), blocks(g, u, "v.weight")});
    struct tensor *norm = norm_around_one(g, H, I / H);
    struct tensor *skip = vector(g, "skip", I, (struct init){.kind = INIT_CONST, .a = 1}, AS_CONTRACT);
    h = add(g, layernorm_heads(g, h, norm, NORM_EPS), scale(g, c, skip));
    return linear(g, silu_mul(g, z, h), weight_or(g, "down.weight", D, I, init_of_branch(g, D), AS_CONTRACT), NULL);
}

/* C, n and m; the window of the convolution is not counted. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    int64_t H = ((const struct xlstm_cell *)inst)->heads, dk = EXPAND * d->D / H;
    return H * (dk * dk + dk + 1);
}

const struct model model_mlstm = {
    .name = "mlstm",
    .title = "mLSTM",
    .summary = "matrix memory, exponential gates, normalised read-out (mLSTM of xLSTM, Beck et al. 2024)",
    .equation = "m_t = max(logsig(f_t) + m_{t-1}, i_t);  F = exp(logsig(f_t) + m_{t-1} - m_t);  I = exp(i_t - m_t)\n"
                "C_t = F C_{t-1} + I k_t v_t^T / sqrt(dk);  n_t = F n_{t-1} + I k_t / sqrt(dk)\n"
                "h_t = C_t^T q_t / (max(|n_t . q_t|, exp(-m_t)) + 1e-6);  y_t = W_down ((LayerNorm(h_t) + skip c_t) * "
                "silu(z_t))",
    .options = options,
    .small = "mlstm:heads=3 mlstm:heads=4,conv=2",
    .inst_bytes = sizeof(struct xlstm_cell),
    .causal = true,
    .undecayed = "gates.bias conv.bias norm.weight skip",
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

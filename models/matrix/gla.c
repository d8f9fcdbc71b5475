/* gla.c - Gated Linear Attention: an outer-product state with one decay per key channel.
 *
 *   q, k, v = W x (conv > 0: silu(conv(W x)))    a_t = sigmoid(W_f2 W_f1 x + b)^(1 / divisor)    per key channel
 *   S_t = Diag(a_t) S_{t-1} + k_t v_t^T    o_t = S_t^T q_t / sqrt(dk)    y = W_o (RMSNorm(o) * silu(W_g x))
 *
 * Yang et al. 2023 (arXiv 2312.06635); flash-linear-attention's layer (layers/gla.py), whose initial values are the
 * framework's and which exempts no parameter from weight decay. */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

struct gla {
    int64_t heads, headdim, keydim, rank, conv;
    double divisor;
};

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct gla, heads), "4", 1, 1 << 16, NULL, "heads", 0},
    {"headdim", OPT_INT, offsetof(struct gla, headdim), "auto", 1, 1 << 16, NULL,
     "value width of a head; auto: width / heads", OPT_AUTO},
    {"keydim", OPT_INT, offsetof(struct gla, keydim), "auto", 1, 1 << 16, NULL,
     "key width of a head; auto: half its value width, at least 1", OPT_AUTO},
    {"rank", OPT_INT, offsetof(struct gla, rank), "16", 1, 1 << 16, NULL, "rank of the decay's map", 0},
    {"divisor", OPT_REAL, offsetof(struct gla, divisor), "16", 0.001, 1e6, NULL, "divides the log decay", 0},
    {"conv", OPT_INT, offsetof(struct gla, conv), "0", 0, 64, NULL, "width of the causal convolutions; 0: none", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct gla *o = inst;
    if (o->headdim == 0) {
        TRY(check_heads("gla", o->heads, d, e));
        o->headdim = d->D / o->heads;
    }
    if (o->keydim == 0) o->keydim = o->headdim > 1 ? o->headdim / 2 : 1;
    return ST_OK;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct gla *o = inst;
    int64_t H = o->heads, keys = H * o->keydim, values = H * o->headdim;
    struct tensor *q = conv_projection(g, x, "q", keys, o->conv), *k = conv_projection(g, x, "k", keys, o->conv);
    struct tensor *v = conv_projection(g, x, "v", values, o->conv);
    struct tensor *minus = activate(g, low_rank(g, x, "f", o->rank, keys, true), ACT_NEG);
    struct tensor *log_decay = scale_by(g, activate(g, minus, ACT_SOFTPLUS), -1 / o->divisor);
    struct delta_gates gates = {.decay = activate(g, log_decay, ACT_EXP)};
    struct delta_attr attr = {.heads = H, .steps = 1, .scale = 1 / sqrt((double)o->keydim), .rate = 1};
    struct tensor *y = normed_heads(g, scan_delta(g, q, k, v, &gates, &attr), H);
    return projection(g, silu_mul(g, projection(g, x, "g.weight", values), y), "out.weight", x->dims[2]);
}

/* The matrices S. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    struct gla o = *(const struct gla *)inst;
    struct error e;
    return check(&o, d, &e) == ST_OK ? o.heads * o.headdim * o.keydim : 0;
}

const struct model model_gla = {
    .name = "gla",
    .title = "GLA",
    .summary = "outer-product state with a decay a key channel (Gated Linear Attention, Yang et al. 2023)",
    .equation = "S_t = Diag(a_t) S_{t-1} + k_t v_t^T;  a_t = sigmoid(W_f x_t + b)^(1 / divisor);  y_t = W_o "
                "(RMSNorm(S_t^T q_t / sqrt(dk)) * silu(W_g x_t))",
    .options = options,
    .small = "gla:heads=3 gla:heads=2,headdim=5,keydim=3,rank=2,conv=3",
    .inst_bytes = sizeof(struct gla),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

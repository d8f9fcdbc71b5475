/* rglru.c - RG-LRU in the recurrent block of Griffin: a real diagonal recurrence that keeps the size of its state.
 *
 *   g = gelu(W_y x + b_y)   u = conv(W_x x + b_x)   i = sig(W_i u + b_i)   r = sig(W_r u + b_r)
 *   a_t = exp(-8 r_t softplus(A))   h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t u_t), but h_0 = i_0 u_0
 *   y_t = W_out (h_t g_t) + b_out
 * W_i and W_r are block-diagonal, one block per head. The root's argument is computed as 1 - exp(-2 rate), because 1 -
 * a^2 would lose digits near a = 1.
 *
 * De et al. 2024 (Griffin, arXiv 2402.19427); google-deepmind/recurrentgemma, which leaves the root out at a document's
 * first token and whose initial values these are: maps N(0, 1 / inputs), convolution N(0, 0.01 / width), biases 0, A
 * such that exp(-softplus(A)) = rho with rho^2 uniform in (0.9^2, 0.999^2). The release's fine-tuning
 * (colabs/fine_tuning_tutorial_jax.ipynb) exempts from decay A, the maps and biases of both gates, all other biases,
 * norms and the embedding. A is in the group of a state's dynamics here, as the rates of other state spaces are; the
 * gates and biases are exempt with --decay-all no. */
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/move/move.h"
#include "kernels/token/token.h"
#include "models/parts.h"

#define RATE 8

struct rglru {
    int64_t width, heads, conv;
};

static const struct option options[] = {
    {"width", OPT_INT, offsetof(struct rglru, width), "auto", 1, 1 << 20, NULL,
     "channels R of the recurrence; auto: the width", OPT_AUTO},
    {"heads", OPT_INT, offsetof(struct rglru, heads), "4", 1, 1 << 16, NULL, "blocks of the gates' maps; divide R", 0},
    {"conv", OPT_INT, offsetof(struct rglru, conv), "4", 1, 64, NULL, "width of the causal convolution", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct rglru *o = inst;
    if (o->width == 0) o->width = d->D;
    return check_heads("rglru", o->heads, &(struct dims){.D = o->width}, e);
}

static double draw_A(struct rng *r, int64_t element, double a, double b) {
    (void)element;
    double rho = sqrt(a * a + (b * b - a * a) * rng_uniform(r));
    return log(1 / rho - 1);
}

static struct init init_normal(int64_t in) {
    return (struct init){.kind = INIT_NORMAL, .b = 1 / sqrt((double)in)};
}

static struct tensor *zero_bias(struct graph *g, int64_t n) {
    return vector(g, "bias", n, (struct init){.kind = INIT_ZERO}, AS_CONTRACT);
}

static struct tensor *map(struct graph *g, struct tensor *x, const char *name, int64_t out) {
    if (!x) return NULL;
    int64_t in = x->dims[2];
    graph_scope_push(g, name);
    struct tensor *w = weight_or(g, "weight", out, in, init_normal(in), AS_CONTRACT);
    struct tensor *y = linear(g, x, w, zero_bias(g, out));
    graph_scope_pop(g);
    return y;
}

/* sig(blocks(u) + b) */
static struct tensor *gate(const struct rglru *o, struct graph *g, struct tensor *u, const char *name) {
    int64_t R = o->width, H = o->heads, m = R / H;
    graph_scope_push(g, name);
    struct tensor *w = weight_from(g, "weight", R, m, init_normal(m), (struct layout){3, {H, m, m}, {0, 2, 1}});
    struct tensor *z = bias(g, linear_blocks(g, u, w), zero_bias(g, R));
    graph_scope_pop(g);
    return activate(g, z, ACT_SIGMOID);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct rglru *o = inst;
    int64_t R = o->width, D = x->dims[2];
    struct tensor *out_gate = activate(g, map(g, x, "y", R), ACT_GELU_TANH);
    struct init taps = {.kind = INIT_NORMAL, .b = sqrt(0.01 / (double)o->conv)};
    struct tensor *kernel = weight_from(g, "conv.weight", R, o->conv, taps, (struct layout){2, {R, o->conv}, {1, 0}});
    struct tensor *conv_bias = vector(g, "conv.bias", R, (struct init){.kind = INIT_ZERO}, AS_CONTRACT);
    struct tensor *u = conv_depthwise(g, map(g, x, "x", R), kernel, conv_bias);

    struct tensor *entry = mul(g, gate(o, g, u, "input"), u), *r = gate(o, g, u, "decay");
    struct init init = {.kind = INIT_CUSTOM, .a = 0.9, .b = 0.999, .draw = draw_A};
    struct tensor *A = activate(g, state_vector(g, "A", R, init), ACT_SOFTPLUS);
    struct tensor *rate = scale(g, r, scale_by(g, A, RATE));
    struct tensor *rooted = mul(g, activate(g, scale_by(g, rate, 2), ACT_REST), entry);
    struct tensor *source = add(g, rooted, leading_rows(g, sub(g, entry, rooted), 1));
    struct tensor *h = scan_diag(g, activate(g, activate(g, rate, ACT_NEG), ACT_EXP), source);
    return map(g, mul(g, h, out_gate), "out", D);
}

/* The state; the window of the convolution is not counted. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    int64_t width = ((const struct rglru *)inst)->width;
    return width ? width : d->D;
}

const struct model model_rglru = {
    .name = "rglru",
    .title = "RG-LRU",
    .summary = "real-gated linear recurrent unit in Griffin's block (RG-LRU, De et al. 2024)",
    .equation = "a_t = exp(-8 r_t softplus(A));  h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t u_t);  u = conv(W_x x)\n"
                "i, r = sig(blocks(u));  y_t = W_out (h_t gelu(W_y x_t))",
    .options = options,
    .small = "rglru:heads=3 rglru:width=8,heads=2,conv=2",
    .inst_bytes = sizeof(struct rglru),
    .undecayed = "input.weight input.bias decay.weight decay.bias x.bias y.bias conv.bias out.bias",
    .version = 2,
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

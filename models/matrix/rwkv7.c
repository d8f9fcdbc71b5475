/* rwkv7.c - RWKV-7's time mixing: a delta rule with one decay per key channel, whose write key is not its erase vector.
 *
 *   x_n = x + (x' - x) * mix.n, x' the token before, n = r, w, k, v, a, g      r, k, v = W_n x_n
 *   w = exp(-e^(-1/2) sigmoid(decay.bias + decay.up tanh(decay.down x_w)))
 *   a = sigmoid(rate.bias + rate.up (rate.down x_a))      gate = gate.up sigmoid(gate.down x_g)
 *   v <- v + (v_first - v) * sigmoid(vmix.bias + vmix.up (vmix.down x_v))                            (vmix)
 *   kk = k * key.scale, each head of length 1             k <- k * (1 + (a - 1) * key.rate)
 *   S_t = S_{t-1} diag(w) - (S_{t-1} kk)(kk * a)^T + v k^T     o = S_t r       a head, S value x key
 *   y = W_out ((GroupNorm(o) + (sum_c r_c k_c bonus_c) v) * gate)
 *
 * Peng et al. 2025 (arXiv 2503.14456); BlinkDL/RWKV-LM (RWKV-v7/train_temp/src/model.py), whose initial values these
 * are, except that every .up starts at N(0, 0.01 / D) instead of orthogonal rows. We follow it where
 * flash-linear-attention differs: GroupNorm's eps is 64e-5 at any width. The transpose of its kernel's state is
 * scan_delta's state. There kk reads the state before the decay, here after it, so here kk is divided by w (> 0.54).
 *
 * One layer cannot track S5, or parity, at any length. A token that is repeated multiplies the state by one matrix,
 * diag(w) - kk (a * kk)^T, which is similar to the symmetric diag(w) - u u^T with u = sqrt(a) * kk shorter than 1. Its
 * eigenvalues lie in (-0.46, 1], but a swap has -1. The paper's construction for regular languages takes four layers.
 *
 * v_first is the v of the net's first layer, and only later layers mix it in (vmix=auto). With vmix=yes the first layer
 * mixes too, with x as v_first. Weight decay acts only on the .weight of r, k, v and out; all other parameters are in
 * the group of the state's dynamics. Ranks at D >= 128 are the release's, max(32, 32 round(c sqrt(D) / 32)) with c =
 * 2.5 (decay, rate), 1.7 (vmix) and 5 (gate). At smaller D that could reach D, so they are max(8, 8 floor(D / 32)). */
#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

#define GROUP_EPS 64e-5
#define KEY_EPS   1e-24               /* of a squared length: keys of length 0 stay 0 */
#define LOG_DECAY 0.60653065971263342 /* e^(-1/2) */

enum vmix { VMIX_AUTO, VMIX_NO, VMIX_YES };

struct rwkv7 {
    int64_t heads, rank_decay, rank_rate, rank_vmix, rank_gate;
    int vmix;
};

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct rwkv7, heads), "4", 1, 1 << 16, NULL, "heads; must divide the width", 0},
    {"vmix", OPT_CHOICE, offsetof(struct rwkv7, vmix), "auto", 0, 0, "auto no yes",
     "mix in the values of the first layer; auto: in all layers after it", 0},
    {"rank-decay", OPT_INT, offsetof(struct rwkv7, rank_decay), "auto", 1, 1 << 16, NULL, "rank of the decay's map",
     OPT_AUTO},
    {"rank-rate", OPT_INT, offsetof(struct rwkv7, rank_rate), "auto", 1, 1 << 16, NULL, "rank of the erase rate's map",
     OPT_AUTO},
    {"rank-vmix", OPT_INT, offsetof(struct rwkv7, rank_vmix), "auto", 1, 1 << 16, NULL, "rank of the map of vmix",
     OPT_AUTO},
    {"rank-gate", OPT_INT, offsetof(struct rwkv7, rank_gate), "auto", 1, 1 << 16, NULL, "rank of the output gate's map",
     OPT_AUTO},
    {0}};

static void fill_rank(int64_t *rank, double c, int64_t D) {
    if (*rank > 0) return;
    double wide = 32 * rint(c * sqrt((double)D) / 32), narrow = 8 * floor((double)D / 32);
    *rank = D >= 128 ? (int64_t)fmax(32, wide) : (int64_t)fmax(8, narrow);
}

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct rwkv7 *o = inst;
    fill_rank(&o->rank_decay, 2.5, d->D);
    fill_rank(&o->rank_rate, 2.5, d->D);
    fill_rank(&o->rank_vmix, 1.7, d->D);
    fill_rank(&o->rank_gate, 5, d->D);
    return check_heads("rwkv7", o->heads, d, e);
}

/* --- parameters and their start ----------------------------------------------------------------------------------- */

/* Returns i / (D - 1) - 1/2 for channel i. */
static double along_channels(int64_t i, double D) {
    return D > 1 ? (double)i / (D - 1) - 0.5 : 0;
}

/* Returns n |n|, where n from -1 to 1 is the channel's place in its head. */
static double zigzag(int64_t i, int64_t dk) {
    double n = dk > 1 ? (double)(2 * (i % dk) - dk + 1) / (double)(dk - 1) : 0;
    return n * fabs(n);
}

/* Returns 1 - (i / D)^b; a is D. */
static double draw_mix(struct rng *r, int64_t i, double a, double b) {
    (void)r;
    return 1 - pow((double)i / a, b);
}

/* `a` packs two sizes, D + dk / 2^17; b is the power. */
static double draw_decay(struct rng *r, int64_t i, double a, double b) {
    (void)r;
    double D = floor(a), share = D > 1 ? (double)i / (D - 1) : 0;
    return -6 + 6 * pow(share, b) + 0.5 + 2.5 * zigzag(i, (int64_t)((a - D) * (1 << 17)));
}

/* `a` packs sizes as in draw_decay. */
static double draw_rate(struct rng *r, int64_t i, double a, double b) {
    (void)r, (void)b;
    return -0.19 + 0.3 * zigzag(i, (int64_t)((a - floor(a)) * (1 << 17))) + 0.4 * along_channels(i, floor(a));
}

/* `a` is D. */
static double draw_vmix(struct rng *r, int64_t i, double a, double b) {
    (void)r, (void)b;
    return 0.73 - 0.4 * along_channels(i, a);
}

static double draw_scale(struct rng *r, int64_t i, double a, double b) {
    (void)r, (void)b;
    return 0.71 - 0.1 * along_channels(i, a);
}

static struct tensor *free_map(struct graph *g, struct tensor *x, const char *name, int64_t out, struct init init) {
    if (!x) return NULL;
    struct param_spec spec = {.name = name, .rank = 2, .dims = {out, x->dims[2]}, .group = PARAM_STATE, .init = init};
    return linear(g, x, graph_param(g, &spec), NULL);
}

/* up f(down x) + bias, with parameters name.down [rank][D], name.up [D][rank] and, unless `start` is NULL, name.bias
 * [D]. f = ACT_COUNT: no activation. */
static struct tensor *narrow(struct graph *g, struct tensor *x, const char *name, int64_t rank, enum activation f,
                             const struct init *start) {
    if (!x) return NULL;
    int64_t D = x->dims[2];
    struct init up = {.kind = INIT_NORMAL, .b = 0.1 / sqrt((double)D)};
    graph_scope_push(g, name);
    struct tensor *y = free_map(g, x, "down", rank, (struct init){.kind = INIT_ZERO});
    y = free_map(g, f == ACT_COUNT ? y : activate(g, y, f), "up", D, up);
    if (start) y = bias(g, y, state_vector(g, "bias", D, *start));
    graph_scope_pop(g);
    return y;
}

/* x + (x' - x) * mix.NAME; `step` is x' - x. */
static struct tensor *mixed(struct graph *g, struct tensor *x, struct tensor *step, const char *name,
                            struct init start) {
    graph_scope_push(g, "mix");
    struct tensor *y = add(g, x, scale(g, step, state_vector(g, name, x->dims[2], start)));
    graph_scope_pop(g);
    return y;
}

static struct tensor *map(struct graph *g, struct tensor *x, const char *name, double gain) {
    int64_t D = x ? x->dims[2] : 0;
    return x ? linear(g, x, weight(g, name, D, D, gain, AS_CONTRACT), NULL) : NULL;
}

/* --- the mixer ---------------------------------------------------------------------------------------------------- */

/* The values, mixed with the first layer's values. */
static struct tensor *mixed_values(const struct rwkv7 *o, struct graph *g, struct tensor *x, struct tensor *xv,
                                   struct tensor *v) {
    struct graph_builder *now = graph_builder(g);
    struct tensor **first = &now->first_values[now->backwards];
    if (now->layer == 0) *first = v;
    if (!v || o->vmix == VMIX_NO || (o->vmix == VMIX_AUTO && now->layer == 0)) return v;
    struct init start = {.kind = INIT_CUSTOM, .a = (double)x->dims[2], .draw = draw_vmix};
    struct tensor *share = activate(g, narrow(g, xv, "vmix", o->rank_vmix, ACT_COUNT, &start), ACT_SIGMOID);
    return add(g, v, mul(g, sub(g, now->layer == 0 ? x : *first, v), share));
}

/* GroupNorm of each head of o, with a weight and a bias per channel. */
static struct tensor *group_norm(struct graph *g, struct tensor *o, int64_t heads, double start) {
    if (!o) return NULL;
    int64_t D = o->dims[2];
    struct tensor *w = state_vector(g, "norm.weight", D, (struct init){.kind = INIT_CONST, .a = start});
    struct tensor *zeros = graph_reshape(g, scale_by(g, w, 0), 2, (int64_t[]){heads, D / heads});
    struct tensor *y = scale(g, layernorm_heads(g, o, zeros, GROUP_EPS), w);
    return bias(g, y, state_vector(g, "norm.bias", D, (struct init){.kind = INIT_ZERO}));
}

/* (sum_c r_c k_c bonus_c) v of each head. */
static struct tensor *bonus_term(struct graph *g, struct tensor *r, struct tensor *k, struct tensor *v, int64_t heads) {
    if (!r || !k || !v) return NULL;
    int64_t D = v->dims[2], rows = v->dims[0] * v->dims[1];
    struct param_spec spec = {.name = "bonus",
                              .rank = 2,
                              .dims = {heads, D / heads},
                              .group = PARAM_STATE,
                              .init = {.kind = INIT_CONST, .a = -0.04}};
    struct tensor *sums = linear_slices(g, mul(g, r, k), graph_param(g, &spec));
    if (!sums) return NULL;
    struct tensor *each = repeat_each(g, graph_reshape(g, sums, 1, (int64_t[]){rows * heads}), D / heads);
    return mul(g, graph_reshape(g, each, 3, v->dims), v);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct rwkv7 *o = inst;
    const struct graph_builder *now = graph_builder(g);
    int64_t B = x->dims[0], T = x->dims[1], D = x->dims[2], H = o->heads, dk = D / H;
    double layers = now->layers > 0 ? now->layers : 1, layer = now->layers > 0 ? now->layer : 0;
    double depth = layers > 1 ? layer / (layers - 1) : 0, left = 1 - layer / layers,
           both = (double)D + (double)dk / (1 << 17);
    struct init mix[] = {{.kind = INIT_CUSTOM, .a = (double)D, .b = 0.2 * left, .draw = draw_mix},
                         {.kind = INIT_CUSTOM, .a = (double)D, .b = 0.9 * left, .draw = draw_mix},
                         {.kind = INIT_CUSTOM, .a = (double)D, .b = 0.7 * left, .draw = draw_mix}};
    struct init decay_start = {.kind = INIT_CUSTOM, .a = both, .b = 1 + pow(depth, 0.3), .draw = draw_decay};
    struct init rate_start = {.kind = INIT_CUSTOM, .a = both, .draw = draw_rate};
    struct init scale_start = {.kind = INIT_CUSTOM, .a = (double)D, .draw = draw_scale};
    struct tensor *step = sub(g, rows_before(g, x), x), *xv = mixed(g, x, step, "v", mix[2]);
    struct tensor *r = map(g, mixed(g, x, step, "r", mix[0]), "r.weight", 0.5);
    struct tensor *k = map(g, mixed(g, x, step, "k", mix[2]), "k.weight", 0.05);
    struct tensor *v = mixed_values(o, g, x, xv, map(g, xv, "v.weight", 0.5));
    struct tensor *z = narrow(g, mixed(g, x, step, "w", mix[1]), "decay", o->rank_decay, ACT_TANH, &decay_start);
    struct tensor *speed = scale_by(g, activate(g, z, ACT_SIGMOID), LOG_DECAY); /* -log w */
    struct tensor *a = narrow(g, mixed(g, x, step, "a", mix[1]), "rate", o->rank_rate, ACT_COUNT, &rate_start);
    a = activate(g, a, ACT_SIGMOID);
    struct tensor *gate = narrow(g, mixed(g, x, step, "g", mix[0]), "gate", o->rank_gate, ACT_SIGMOID, NULL);

    struct tensor *kk = scale(g, k, state_vector(g, "key.scale", D, scale_start));
    kk = l2norm(g, heads_of(g, kk, H), KEY_EPS);
    if (kk) kk = graph_reshape(g, kk, 3, (int64_t[]){B, T, D});
    struct tensor *ka = mul(g, k, a); /* k (1 + (a - 1) rate) = k + (k a - k) rate */
    struct tensor *rate = state_vector(g, "key.rate", D, (struct init){.kind = INIT_CONST, .a = 1.02});
    k = add(g, k, scale(g, sub(g, ka, k), rate));
    struct delta_gates gates = {.decay = activate(g, activate(g, speed, ACT_NEG), ACT_EXP),
                                .read = mul(g, kk, activate(g, speed, ACT_EXP)),
                                .erase = mul(g, kk, a)};
    struct delta_attr attr = {.heads = H, .steps = 1, .scale = 1, .rate = 1};
    struct tensor *y = group_norm(g, scan_delta(g, r, k, v, &gates, &attr), H, pow((layer + 1) / layers, 0.7));
    y = mul(g, add(g, y, bonus_term(g, r, k, v, H)), gate);
    struct tensor *out = weight_from(g, "out.weight", D, D, (struct init){.kind = INIT_ZERO}, AS_CONTRACT);
    return linear(g, y, out, NULL);
}

/* The matrices S; the previous token is not counted. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    return d->D * (d->D / ((const struct rwkv7 *)inst)->heads);
}

const struct model model_rwkv7 = {
    .name = "rwkv7",
    .title = "RWKV-7",
    .summary = "delta rule with a decay a channel and its own erase vectors (RWKV-7, Peng et al. 2025)",
    .equation = "S_t = S_{t-1} diag(w_t) - (S_{t-1} kk_t)(kk_t * a_t)^T + v_t k_t^T;  y_t = W_o ((GroupNorm(S_t r_t) + "
                "(sum r k bonus) v_t) * gate_t)",
    .options = options,
    .small = "rwkv7:heads=3 rwkv7:heads=2,vmix=yes,rank-decay=3,rank-gate=5",
    .inst_bytes = sizeof(struct rwkv7),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

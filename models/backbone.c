/* backbone.c - the blocks of the nets around a mixer, and how each paper's code treats their parameters. Models in one
 * net differ only in the mixer, so comparisons are fair.
 *
 * Blocks, by --backbone:
 *   mad-lm     x <- x + mixer(norm(x)), x <- x + mlp(norm(x)); a norm before the head. The language model of MAD
 *              (athms/mad-lab, language_model.py): embedding N(0, 0.02^2), linear weights at the framework default,
 *              linear biases 0, no positional code
 *   slice      z = x + mixer(x), z <- z + tanh(W z + b), x <- dropout(LayerNorm(z)); embedding N(0, 1), no decay on it
 *              (Benjamin-Walker/structured-linear-cdes, models/slcde.py)
 *   slice-glu  like slice with z <- z + (P z + p) * sig(Q z + q): the wrapper of SLiCE's baselines (models/mamba.py,
 *              models/fla.py)
 *   stacked    x <- mixer(x), with dropout only between layers: SLiCE's LSTM, which is PyTorch's
 *   xlstm      x <- x + dropout(mixer(norm(x))), and after sLSTM x <- x + dropout(W2 (gelu(g) * u)), (g, u) =
 *              W1 norm(x), of inner width U, 1.3 D rounded up to a multiple of 64; one more norm before the head. The
 *              norm is a LayerNorm without a bias, its weight stored as the difference from 1. Embedding, W1 and head
 *              N(0, 0.4 / D), W2 N(0, 4 / (layers^2 D)); all matrices decay except the embedding (NX-AI/xlstm,
 *              xlstm_lm_model.py, whose head has no bias)
 *   slice-xlstm  the layers of xlstm in SLiCE's net: embedding N(0, 1), a head at the framework default, and decay on
 *              all parameters except the embedding, so also on a norm's difference from 1 (models/xlstm.py)
 *   slice-transformer  x <- x + dropout(mixer(norm(x))), x <- x + dropout(W2 dropout(gelu(W1 norm(x) + b1)) + b2) of
 *              inner width 512, a norm before the head; all norms are LayerNorms (models/transformer.py, which also has
 *              biases in its attention, 16 heads and dropout on the attention's weights)
 *   slice-paper  the net that the SLiCE paper puts around the mixer: slice around SLiCE, stacked for the LSTM,
 *              slice-xlstm for xLSTM's mixers, slice-transformer for attention, and slice-glu for Mamba2, the delta
 *              rules and all mixers that are not in the paper
 *   s5         y = dropout(silu(mixer(BatchNorm(x)))), x <- x + dropout(y * sig(W y + b)); embedding N(0, 1);
 *              Myosotis' block in S5's architecture (lindermanlab/S5, s5/layers.py, half_glu1), running statistics
 *              with momentum .95
 *   vision     the blocks of mad-lm as in pLSTM on images (ml-jku/plstm, blocks.py): the MLP with tanh-GELU has
 *              biases, and its inner width is 4D rounded up to a multiple of 64; maps N(0, 0.4 / inputs), biases 0;
 *              only maps decay
 *
 * --layer-scale a, in mad-lm and vision, multiplies each branch by diag(s) before it is added. s is a learnt vector
 * that starts at a: LayerScale (Touvron et al., arXiv 2103.17239, Eq. 3), which pLSTM's vision transformer has with
 * a = 1.
 *
 * --bidirectional adds reverse(mixer_back(reverse(.))) to each causal mixer (S4's way). */
#include "models/backbone.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "models/parts.h"

#define NORM_EPS          1e-5
#define TRANSFORMER_INNER 512

const struct option backbone_options[] = {
    {"dim", OPT_INT, offsetof(struct backbone, dim), "128", 1, 1 << 16, NULL, "model width D", 0},
    {"layers", OPT_INT, offsetof(struct backbone, layers), "1", 1, 256, NULL, "layers, each a mixer and an MLP", 0},
    {"mlp", OPT_CHOICE, offsetof(struct backbone, mlp), "swiglu", 0, 0, "none swiglu gelu",
     "channel mixer after each mixer (mad-lm, vision)", 0},
    {"norm", OPT_CHOICE, offsetof(struct backbone, norm), "rmsnorm", 0, 0, "rmsnorm layernorm",
     "pre-norm of each branch (mad-lm, vision)", 0},
    {"backbone", OPT_CHOICE, offsetof(struct backbone, kind), "mad-lm", 0, 0,
     "mad-lm slice slice-glu stacked s5 slice-paper vision slice-xlstm slice-transformer xlstm", "net around the mixer",
     0},
    {"dropout", OPT_REAL, offsetof(struct backbone, dropout), "0", 0, 0.95, NULL, "rate on each residual branch", 0},
    {"layer-scale", OPT_REAL, offsetof(struct backbone, layer_scale), "0", 0, 1000, NULL,
     "initial value of a learnt vector that scales each residual branch (mad-lm, vision); 0 = no scaling", 0},
    {"pool", OPT_CHOICE, offsetof(struct backbone, pool), "mean", 0, 0, "last mean top corners class",
     "row read for a sequence's label: last, mean of all, a tree's root, a grid's corners, a class token", 0},
    {"top-levels", OPT_INT, offsetof(struct backbone, top_levels), "1", 1, 30, NULL,
     "uppermost levels of a tree whose nodes' mean --pool top reads; 1 = the root", 0},
    {"bidirectional", OPT_BOOL, offsetof(struct backbone, bidirectional), "no", 0, 0, NULL,
     "second mixer, on the reversed sequence, beside a causal one", 0},
    {"ssm-lr-factor", OPT_REAL, offsetof(struct backbone, ssm_lr_factor), "1", 0, 1000, NULL,
     "rate of state parameters and norms over --lr (s5); 0.2 to 0.33 in its paper", 0},
    {"degree-code", OPT_BOOL, offsetof(struct backbone, degree_code), "no", 0, 0, NULL,
     "sinusoids of a node's number of neighbours, added to its embedding (graphs)", 0},
    {"positions", OPT_CHOICE, offsetof(struct backbone, positions), "none", 0, 0, "none learnt",
     "vector added to each position of an image, resized for larger images", 0},
    {"encoder", OPT_CHOICE, offsetof(struct backbone, encoder), "affine", 0, 0, "affine linear",
     "encoder of values (series): affine W u + b, or linear W u, which keeps an increment of 0 at 0", 0},
    {0}};

static struct tensor *norm_param(struct graph *g, const char *name, int64_t D, enum param_group group,
                                 struct init init) {
    return graph_param(g, &(struct param_spec){.name = name, .rank = 1, .dims = {D}, .group = group, .init = init});
}

struct tensor *residual_sum(struct graph *g, struct residual r) {
    return r.branch ? add(g, r.x, r.branch) : r.x;
}

struct tensor *residual_norm(struct graph *g, int kind, const char *name, struct residual *r) {
    if (!r->x) return NULL;
    int64_t D = r->x->dims[r->x->rank - 1];
    struct init one = {.kind = INIT_CONST, .a = 1}, zero = {.kind = INIT_ZERO};
    graph_scope_push(g, name);
    struct tensor *w = norm_param(g, "weight", D, PARAM_NORM, one), *y;
    struct tensor *b = kind == NORM_RMS ? NULL : norm_param(g, "bias", D, PARAM_NORM, zero);
    if (r->branch)
        y = add_norm(g, r->x, r->branch, w, b, NORM_EPS, &r->x);
    else
        y = kind == NORM_RMS ? rmsnorm(g, r->x, w, NORM_EPS) : layernorm(g, r->x, w, b, NORM_EPS);
    graph_scope_pop(g);
    r->branch = NULL;
    return y;
}

static struct tensor *norm_as_asked(struct graph *g, const struct backbone *b, const char *name, struct residual *r) {
    return residual_norm(g, b->norm, name, r);
}

static struct tensor *layer_norm(struct graph *g, const struct backbone *b, const char *name, struct residual *r) {
    (void)b;
    return residual_norm(g, NORM_LAYER, name, r);
}

/* The norm of xLSTM: a head norm with one head and no bias, whose weight is stored as the difference from 1. */
static struct tensor *norm_near_one(struct graph *g, const struct backbone *b, const char *name, struct residual *r) {
    (void)b;
    *r = (struct residual){residual_sum(g, *r), NULL};
    if (!r->x) return NULL;
    int64_t D = r->x->dims[r->x->rank - 1];
    graph_scope_push(g, name);
    struct tensor *w = norm_param(g, "weight", D, PARAM_NORM, (struct init){.kind = INIT_ZERO});
    graph_scope_pop(g);
    return layernorm_heads(g, r->x, w ? graph_reshape(g, w, 2, (int64_t[]){1, D}) : NULL, NORM_EPS);
}

struct tensor *affine(struct graph *g, const struct backbone *b, const char *name, struct tensor *x, int64_t out,
                      struct init init) {
    if (!x) return NULL;
    int64_t in = x->dims[x->rank - 1];
    struct init bias = backbone_traits(b)->zero_biases ? (struct init){.kind = INIT_ZERO} : init_linear(in, 1);
    graph_scope_push(g, name);
    struct tensor *w = weight_from(g, "weight", out, in, init, AS_CONTRACT);
    struct tensor *y = linear(g, x, w, vector(g, "bias", out, bias, AS_CONTRACT));
    graph_scope_pop(g);
    return y;
}

/* W2 gelu(W1 x + b1) + b2, the MLP of pLSTM on images. */
static struct tensor *vision_mlp(struct graph *g, const struct backbone *b, struct tensor *x) {
    int64_t D = x->dims[x->rank - 1], inner = (4 * D + 63) / 64 * 64;
    struct tensor *y = activate(g, affine(g, b, "w1", x, inner, init_small(D)), ACT_GELU_TANH);
    return affine(g, b, "w2", y, D, init_small(inner));
}

/* W2 gelu(W1 x), inner width 4D, the MLP of MAD. */
static struct tensor *gelu_mlp(struct graph *g, const struct backbone *b, struct tensor *x) {
    int64_t D = x->dims[x->rank - 1];
    (void)b;
    struct tensor *inner = linear(g, x, weight(g, "w1.weight", 4 * D, D, 1, AS_CONTRACT), NULL);
    return linear(g, activate(g, inner, ACT_GELU_TANH), weight(g, "w2.weight", D, 4 * D, 1, AS_CONTRACT), NULL);
}

/* The MLP of SLiCE's transformer. Its inner width does not depend on the width D. */
static struct tensor *transformer_mlp(struct graph *g, const struct backbone *b, struct tensor *x) {
    int64_t D = x->dims[x->rank - 1];
    struct tensor *y = activate(g, affine(g, b, "w1", x, TRANSFORMER_INNER, init_linear(D, 1)), ACT_GELU_ERF);
    return affine(g, b, "w2", dropout(g, y, b->dropout), D, init_linear(TRANSFORMER_INNER, 1));
}

/* W2 (gelu(g) * u), (g, u) = W1 x, the MLP of xLSTM. */
static struct tensor *xlstm_mlp(struct graph *g, const struct backbone *b, struct tensor *x) {
    int64_t D = x->dims[x->rank - 1], U = (13 * D + 639) / 640 * 64;
    struct tensor *parts[2];
    (void)b;
    split(g, linear(g, x, weight_or(g, "w1.weight", 2 * U, D, init_small(D), AS_CONTRACT), NULL), 2, (int64_t[]){U, U},
          parts);
    struct tensor *gated = mul(g, activate(g, parts[0], ACT_GELU_ERF), parts[1]);
    return linear(g, gated, weight_or(g, "w2.weight", D, U, init_of_branch(g, D), AS_CONTRACT), NULL);
}

/* W3 (silu(W1 x) * W2 x), of inner width 8 D / 3 rounded up to a multiple of 16, as in MAD. */
static struct tensor *swiglu_mlp(struct graph *g, struct tensor *x) {
    int64_t D = x->dims[x->rank - 1], W = (8 * D / 3 + 15) / 16 * 16;
    struct tensor *gated = linear(g, x, weight(g, "w1.weight", W, D, 1, AS_CONTRACT), NULL);
    struct tensor *value = linear(g, x, weight(g, "w2.weight", W, D, 1, AS_CONTRACT), NULL);
    return linear(g, silu_mul(g, gated, value), weight(g, "w3.weight", D, W, 1, AS_CONTRACT), NULL);
}

/* Builds one mixer with its parameters under `name`. */
static struct tensor *one_way(struct graph *g, const struct model_choice *choice, const char *name, struct tensor *x) {
    graph_scope_push(g, name);
    struct tensor *y = choice->model->build(choice->inst, g, x);
    graph_scope_pop(g);
    return y;
}

bool backbone_doubles(const struct backbone *b, const struct model *m) {
    return b->bidirectional && m->causal;
}

static struct tensor *mixer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                            struct tensor *x) {
    struct graph_builder *now = graph_builder(g);
    struct tensor *y = one_way(g, choice, "mixer", x);
    if (!backbone_doubles(b, choice->model)) return y;
    now->backwards = true;
    struct tensor *back = one_way(g, choice, "mixer_back", reverse(g, x, now->lengths));
    now->backwards = false;
    return add(g, y, reverse(g, back, now->lengths));
}

/* The branch y as it is added to x: with layer scale, if the net has it, and dropout. */
static struct tensor *branch_of(struct graph *g, const struct backbone *b, const char *name, struct tensor *y) {
    if (y && b->layer_scale > 0) {
        struct init init = {.kind = INIT_CONST, .a = b->layer_scale};
        y = scale(g, y, vector(g, name, y->dims[y->rank - 1], init, AS_CONTRACT));
    }
    return dropout(g, y, b->dropout);
}

static struct residual pre_norm_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                                      struct residual r, bool last) {
    (void)last;
    const struct backbone_traits *traits = backbone_traits(b);
    struct tensor *normed = traits->norm(g, b, "norm", &r);
    r.branch = branch_of(g, b, "scale", mixer(g, b, choice, normed));
    if (b->mlp == MLP_NONE) return r;
    normed = traits->norm(g, b, "mlp_norm", &r);
    if (!normed) return r;
    graph_scope_push(g, "mlp");
    struct tensor *mixed_channels = b->mlp == MLP_GELU ? traits->gelu(g, b, normed) : swiglu_mlp(g, normed);
    graph_scope_pop(g);
    r.branch = branch_of(g, b, "mlp_scale", mixed_channels);
    return r;
}

/* A pre-norm layer, with an MLP only if the mixer's takes_mlp asks for one. */
static struct residual xlstm_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                                   struct residual r, bool last) {
    bool (*takes_mlp)(const void *, int64_t) = choice->model->takes_mlp;
    struct backbone own = *b;
    own.mlp = takes_mlp && takes_mlp(choice->inst, graph_builder(g)->layer) ? MLP_GELU : MLP_NONE;
    return pre_norm_layer(g, &own, choice, r, last);
}

/* tanh(W z + b), which SLiCE's blocks add to z. */
static struct tensor *tanh_branch(struct graph *g, const struct backbone *b, struct tensor *z, int64_t D) {
    return activate(g, affine(g, b, "mlp", z, D, init_linear(D, 1)), ACT_TANH);
}

/* (P z + p) * sig(Q z + q), which the blocks of SLiCE's baselines add to z. */
static struct tensor *glu_branch(struct graph *g, const struct backbone *b, struct tensor *z, int64_t D) {
    struct tensor *value = affine(g, b, "mlp", z, D, init_linear(D, 1));
    return mul(g, value, activate(g, affine(g, b, "mlp_gate", z, D, init_linear(D, 1)), ACT_SIGMOID));
}

static struct residual post_norm_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                                       struct residual r, bool last) {
    (void)last;
    if (!r.x) return r;
    struct tensor *z = add(g, r.x, mixer(g, b, choice, r.x));
    struct residual sum = {z, backbone_traits(b)->branch(g, b, z, r.x->dims[2])};
    return (struct residual){dropout(g, residual_norm(g, NORM_LAYER, "norm", &sum), b->dropout), NULL};
}

/* Only the mixer, with dropout between layers. */
static struct residual stacked_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                                     struct residual r, bool last) {
    return (struct residual){dropout(g, mixer(g, b, choice, r.x), last ? 0 : b->dropout), NULL};
}

static struct tensor *batch_normed(struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    int64_t D = x->dims[2];
    struct init zero = {.kind = INIT_ZERO}, one = {.kind = INIT_CONST, .a = 1};
    const struct graph_builder *now = graph_builder(g);
    struct batch_norm p = {.eps = NORM_EPS, .momentum = 0.95, .lengths = now->lengths, .first = now->row_first};
    graph_scope_push(g, "norm");
    p.weight = norm_param(g, "weight", D, PARAM_NORM, one);
    p.bias = norm_param(g, "bias", D, PARAM_NORM, zero);
    p.mean = norm_param(g, "mean", D, PARAM_CONST, zero);
    p.variance = norm_param(g, "variance", D, PARAM_CONST, one);
    graph_scope_pop(g);
    return batch_norm(g, x, &p);
}

static struct residual s5_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                                struct residual r, bool last) {
    (void)last;
    if (!r.x) return r;
    int64_t D = r.x->dims[2];
    struct tensor *y = dropout(g, activate(g, mixer(g, b, choice, batch_normed(g, r.x)), ACT_SILU), b->dropout);
    struct tensor *open = activate(g, affine(g, b, "glu", y, D, init_linear(D, 1)), ACT_SIGMOID);
    return (struct residual){add(g, r.x, dropout(g, mul(g, y, open), b->dropout)), NULL};
}

/* --- by --backbone ------------------------------------------------------------------------------------------------ */

#define IN(group) (1U << PARAM_##group)
#define IN_ALL    (IN(WEIGHT) | IN(VECTOR) | IN(EMBEDDING) | IN(NORM) | IN(STATE))

/* The parameters that decay, and their rates, follow the code of each paper:
 *   MAD     all: its optimiser ignores the mixers' tags (athms/mad-lab, mad/model/pl_model_wrapper.py)
 *   SLiCE   all except the embedding: its training loop ignores tags too (structured-linear-cdes, train.py)
 *   pLSTM   only its maps, on images (ml-jku/plstm_experiments)
 *   xLSTM   only matrices, without the embedding (NX-AI/xlstm, utils.py); models/slstm.c says which mixers' parameters
 *           its authors exempt besides
 *   S5      all except a state's dynamics and the norms. These two learn at their own rate, ssm_lr; the others learn at
 *           lr_factor times that, 3 to 5 (lindermanlab/S5, bin/run_experiments)
 * Biases start at 0 in MAD's, S5's and pLSTM's nets, as in the authors' code, and like weights in SLiCE's (the
 * framework's default). slice-paper is resolved before a net is built; all nets that it resolves to have the same
 * rules. */
static const struct backbone_traits traits[] = {
    [BACKBONE_MAD_LM] = {pre_norm_layer, .as_asked = true, .norm = norm_as_asked, .gelu = gelu_mlp,
                         .ends_in_norm = true, .zero_biases = true, .embedding_sd = 0.02, .decays = IN_ALL},
    [BACKBONE_SLICE] = {post_norm_layer, .branch = tanh_branch, .embedding_sd = 1, .decays = IN_ALL & ~IN(EMBEDDING)},
    [BACKBONE_SLICE_GLU] = {post_norm_layer, .branch = glu_branch, .embedding_sd = 1,
                            .decays = IN_ALL & ~IN(EMBEDDING)},
    [BACKBONE_STACKED] = {stacked_layer, .embedding_sd = 1, .decays = IN_ALL & ~IN(EMBEDDING)},
    [BACKBONE_S5] = {s5_layer, .zero_biases = true, .embedding_sd = 1, .has_ssm_rate = true,
                     .decays = IN_ALL & ~(IN(STATE) | IN(NORM))},
    [BACKBONE_SLICE_PAPER] = {.embedding_sd = 1, .decays = IN_ALL & ~IN(EMBEDDING)},
    [BACKBONE_VISION] = {pre_norm_layer, .as_asked = true, .norm = norm_as_asked, .gelu = vision_mlp,
                         .ends_in_norm = true, .zero_biases = true, .small_maps = true, .embedding_sd = 1,
                         .decays = IN(WEIGHT)},
    [BACKBONE_SLICE_XLSTM] = {xlstm_layer, .norm = norm_near_one, .gelu = xlstm_mlp, .ends_in_norm = true,
                              .embedding_sd = 1, .decays = IN_ALL & ~IN(EMBEDDING)},
    [BACKBONE_XLSTM] = {xlstm_layer, .norm = norm_near_one, .gelu = xlstm_mlp, .ends_in_norm = true,
                        .zero_biases = true, .small_maps = true, .decays = IN(WEIGHT)},
    [BACKBONE_SLICE_TRANSFORMER] = {pre_norm_layer, .norm = layer_norm, .gelu = transformer_mlp, .ends_in_norm = true,
                                    .embedding_sd = 1, .decays = IN_ALL & ~IN(EMBEDDING)},
};

const struct backbone_traits *backbone_traits(const struct backbone *b) {
    return &traits[b->kind];
}

struct backbone backbone_resolved(const struct backbone *b, const struct model *m) {
    static const struct {
        const char *mixer;
        int kind; /* enum backbone_kind */
    } of_paper[] = {{"slice", BACKBONE_SLICE},       {"lstm", BACKBONE_STACKED},
                    {"mlstm", BACKBONE_SLICE_XLSTM}, {"slstm", BACKBONE_SLICE_XLSTM},
                    {"xlstm", BACKBONE_SLICE_XLSTM}, {"attention", BACKBONE_SLICE_TRANSFORMER}};
    struct backbone resolved = *b;
    if (b->kind == BACKBONE_SLICE_PAPER) {
        resolved.kind = BACKBONE_SLICE_GLU;
        for (size_t i = 0; i < sizeof of_paper / sizeof *of_paper; i++)
            if (strcmp(m->name, of_paper[i].mixer) == 0) resolved.kind = of_paper[i].kind;
    }
    if (!backbone_takes_parts(&resolved))
        resolved.mlp = resolved.kind == BACKBONE_SLICE_TRANSFORMER ? MLP_GELU : MLP_NONE;
    return resolved;
}

bool backbone_takes_parts(const struct backbone *resolved) {
    return traits[resolved->kind].as_asked;
}

struct param_rule backbone_param_rule(const struct backbone *b, enum param_group group) {
    const struct backbone_traits *t = backbone_traits(b);
    bool of_ssm = t->has_ssm_rate && (group == PARAM_STATE || group == PARAM_NORM);
    return (struct param_rule){t->decays >> group & 1, of_ssm ? b->ssm_lr_factor : 1};
}

struct residual backbone_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                               int64_t index, struct residual r) {
    char name[40];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    graph_builder(g)->layer = (int)index;
    graph_scope_push(g, name);
    r = backbone_traits(b)->layer(g, b, choice, r, index + 1 == b->layers);
    graph_scope_pop(g);
    return r;
}

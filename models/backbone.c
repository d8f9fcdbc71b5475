/* backbone.c - the net around a mixer; models differ in the mixer alone, so comparisons are fair.
 *
 * Blocks, by --backbone:
 *   mad-lm     x <- x + mixer(norm(x)), x <- x + mlp(norm(x)); a norm before the head. The language model of MAD
 *              (athms/mad-lab, language_model.py): embedding N(0, 0.02^2), linear weights at the framework default,
 *              linear biases 0, no positional code
 *   slice      z = x + mixer(x), z <- z + tanh(W z + b), x <- dropout(LayerNorm(z)); embedding N(0, 1), no decay on it
 *              (Benjamin-Walker/structured-linear-cdes, models/slcde.py)
 *   slice-glu  the same with z <- z + (P z + p) * sig(Q z + q): its baselines' wrapper (models/mamba.py, models/fla.py)
 *   stacked    x <- mixer(x), nothing around, dropout between layers alone: its LSTM, of torch
 *   slice-paper  of these the one that the mixer has in the SLiCE paper's comparisons
 *   s5         y = dropout(silu(mixer(BatchNorm(x)))), x <- x + dropout(y * sig(W y + b)); embedding N(0, 1);
 *              Myosotis' block in S5's architecture (lindermanlab/S5, s5/layers.py, half_glu1), running statistics
 *              with momentum .95
 *   vision     the blocks of mad-lm, as pLSTM has them on images (ml-jku/plstm, blocks.py): an MLP of tanh-GELU has
 *              biases and its inner width is 4D rounded up to a multiple of 64; maps N(0, 0.4 / inputs), biases 0;
 *              only maps decay
 * An input of values has a linear encoder W u + b instead of the embedding, its weights at the framework default, its
 * bias 0 (S5's and S4's encoder of images and series).
 *
 * --positions learnt adds a vector to every position of an image's grid, resized where an image is larger than those of
 * training; in another order than row by row to every position of the sequence.
 *
 * --degree-code adds the sinusoids of a node's number of neighbours (pLSTM's graphs).
 *
 * --bidirectional adds reverse(mixer_back(reverse(.))) to each causal mixer (S4's way).
 *
 * Read-outs: logits = W x_t + b at every position; of one vector a sequence, the rows in use pooled, or the four
 * corners of its grid side by side; of two documents' vectors u and v, W gelu(W' (u, v, u - v, u * v) + b') + b (S4's
 * retrieval); or MAD's auto-encoder: e = x at the last row in use, then at each position p, d = e + PE[p], twice d <-
 * gelu(W norm(d) + b), logits = W norm(d) + b, with normal weights of sd 0.02. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/links/links.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "kernels/train/train.h"
#include "models/net.h"
#include "models/parts.h"

#define NORM_EPS 1e-5

const struct option backbone_options[] = {
    {"dim", OPT_INT, offsetof(struct backbone, dim), "128", 1, 1 << 16, NULL, "model width D", 0},
    {"layers", OPT_INT, offsetof(struct backbone, layers), "1", 1, 256, NULL, "layers, each a mixer and an MLP", 0},
    {"mlp", OPT_CHOICE, offsetof(struct backbone, mlp), "swiglu", 0, 0, "none swiglu gelu",
     "channel mixer after each mixer (mad-lm, vision)", 0},
    {"norm", OPT_CHOICE, offsetof(struct backbone, norm), "rmsnorm", 0, 0, "rmsnorm layernorm",
     "pre-norm of each branch (mad-lm, vision)", 0},
    {"backbone", OPT_CHOICE, offsetof(struct backbone, kind), "mad-lm", 0, 0,
     "mad-lm slice slice-glu stacked s5 slice-paper vision", "net around the mixer", 0},
    {"dropout", OPT_REAL, offsetof(struct backbone, dropout), "0", 0, 0.95, NULL, "rate on each residual branch", 0},
    {"pool", OPT_CHOICE, offsetof(struct backbone, pool), "mean", 0, 0, "last mean top corners",
     "one label a sequence: from the last row, the mean of rows, a tree's root, a grid's corners", 0},
    {"bidirectional", OPT_BOOL, offsetof(struct backbone, bidirectional), "no", 0, 0, NULL,
     "add a mixer on the reversed sequence to a causal one", 0},
    {"ssm-lr-factor", OPT_REAL, offsetof(struct backbone, ssm_lr_factor), "1", 0, 1000, NULL,
     "rate of state parameters and norms over --lr (s5); 0.2 to 0.33 in its paper", OPT_LATER},
    {"degree-code", OPT_BOOL, offsetof(struct backbone, degree_code), "no", 0, 0, NULL,
     "add sinusoids of a node's number of neighbours to its embedding (graphs)", OPT_LATER},
    {"positions", OPT_CHOICE, offsetof(struct backbone, positions), "none", 0, 0, "none learnt",
     "add a vector to each position of an image, resized for larger images", OPT_LATER},
    {0}};

static struct tensor *norm_param(struct graph *g, const char *name, int64_t D, enum param_group group,
                                 struct init init) {
    return graph_param(g, &(struct param_spec){.name = name, .rank = 1, .dims = {D}, .group = group, .init = init});
}

/* x + branch, not yet added: a norm of the sum does that in the same pass. No branch: x alone. */
struct residual {
    struct tensor *x, *branch;
};

/* The sum. */
static struct tensor *added(struct graph *g, struct residual r) {
    return r.branch ? add(g, r.x, r.branch) : r.x;
}

/* Of the sum, which becomes x. */
static struct tensor *norm(struct graph *g, int kind, const char *name, struct residual *r) {
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

/* The blocks x + mixer(norm(x)), x + mlp(norm(x)). */
static bool is_pre_norm(const struct backbone *b) {
    return b->kind == BACKBONE_MAD_LM || b->kind == BACKBONE_VISION;
}

/* Maps from outside and to the logits. */
static struct init map_init(const struct backbone *b, int64_t fan_in) {
    return b->kind == BACKBONE_VISION ? init_small(fan_in) : init_linear(fan_in, 1);
}

/* Biases start at 0 in MAD's nets, in S5's and in pLSTM's, as the authors' do, and like weights in SLiCE's (the
 * framework's default). */
static struct init bias_init(const struct backbone *b, int64_t fan_in) {
    if (is_pre_norm(b) || b->kind == BACKBONE_S5) return (struct init){.kind = INIT_ZERO};
    return init_linear(fan_in, 1);
}

static struct tensor *affine(struct graph *g, const struct backbone *b, const char *name, struct tensor *x, int64_t out,
                             struct init init) {
    if (!x) return NULL;
    int64_t in = x->dims[x->rank - 1];
    graph_scope_push(g, name);
    struct tensor *w =
        graph_param(g, &(struct param_spec){.name = "weight", .rank = 2, .dims = {out, in}, .init = init});
    struct tensor *y = linear(g, x, w, vector(g, "bias", out, bias_init(b, in), AS_CONTRACT));
    graph_scope_pop(g);
    return y;
}

/* floor(8 D / 3) rounded up to a multiple of 16, as MAD's SwiGLU. */
static int64_t swiglu_width(int64_t D) {
    return (8 * D / 3 + 15) / 16 * 16;
}

/* pLSTM's on images: W2 gelu(W1 x + b1) + b2. */
static struct tensor *vision_mlp(struct graph *g, const struct backbone *b, struct tensor *x) {
    int64_t D = x->dims[x->rank - 1], inner = (4 * D + 63) / 64 * 64;
    struct tensor *y = activate(g, affine(g, b, "w1", x, inner, init_small(D)), ACT_GELU_TANH);
    return affine(g, b, "w2", y, D, init_small(inner));
}

static struct tensor *mlp(struct graph *g, const struct backbone *b, struct tensor *x) {
    if (!x) return NULL;
    if (b->mlp == MLP_GELU && b->kind == BACKBONE_VISION) return vision_mlp(g, b, x);
    int64_t D = x->dims[x->rank - 1];
    if (b->mlp == MLP_GELU) { /* W2 gelu(W1 x), inner width 4D */
        struct tensor *inner = linear(g, x, weight(g, "w1.weight", 4 * D, D, 1, AS_CONTRACT), NULL);
        return linear(g, activate(g, inner, ACT_GELU_TANH), weight(g, "w2.weight", D, 4 * D, 1, AS_CONTRACT), NULL);
    }
    int64_t W = swiglu_width(D); /* W3 (silu(W1 x) * W2 x) */
    struct tensor *gated = linear(g, x, weight(g, "w1.weight", W, D, 1, AS_CONTRACT), NULL);
    struct tensor *value = linear(g, x, weight(g, "w2.weight", W, D, 1, AS_CONTRACT), NULL);
    return linear(g, silu_mul(g, gated, value), weight(g, "w3.weight", D, W, 1, AS_CONTRACT), NULL);
}

/* The mixer under `name`. */
static struct tensor *one_way(struct graph *g, const struct model_choice *choice, const char *name, struct tensor *x) {
    graph_scope_push(g, name);
    struct tensor *y = choice->model->build(choice->inst, g, x);
    graph_scope_pop(g);
    return y;
}

static struct tensor *mixer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                            struct tensor *x) {
    struct tensor *y = one_way(g, choice, "mixer", x);
    if (!b->bidirectional || !choice->model->causal) return y; /* a mixer that looks both ways needs no second one */
    struct tensor *back = one_way(g, choice, "mixer_back", reverse(g, x, g->lengths));
    return add(g, y, reverse(g, back, g->lengths));
}

static struct residual mad_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                                 struct residual r) {
    struct tensor *normed = norm(g, b->norm, "norm", &r);
    r.branch = dropout(g, mixer(g, b, choice, normed), b->dropout);
    if (b->mlp == MLP_NONE) return r;
    normed = norm(g, b->norm, "mlp_norm", &r);
    graph_scope_push(g, "mlp");
    struct tensor *mixed_channels = mlp(g, b, normed);
    graph_scope_pop(g);
    r.branch = dropout(g, mixed_channels, b->dropout);
    return r;
}

static struct tensor *slice_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                                  struct tensor *x) {
    if (!x) return NULL;
    int64_t D = x->dims[2];
    struct tensor *z = add(g, x, mixer(g, b, choice, x));
    struct tensor *branch = affine(g, b, "mlp", z, D, init_linear(D, 1));
    if (b->kind == BACKBONE_SLICE)
        branch = activate(g, branch, ACT_TANH);
    else
        branch = mul(g, branch, activate(g, affine(g, b, "mlp_gate", z, D, init_linear(D, 1)), ACT_SIGMOID));
    struct residual sum = {z, branch};
    return dropout(g, norm(g, NORM_LAYER, "norm", &sum), b->dropout);
}

static struct tensor *batch_normed(struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    int64_t D = x->dims[2];
    struct init zero = {.kind = INIT_ZERO}, one = {.kind = INIT_CONST, .a = 1};
    struct batch_norm p = {.eps = NORM_EPS, .momentum = 0.95, .lengths = g->lengths, .first = g->row_first};
    graph_scope_push(g, "norm");
    p.weight = norm_param(g, "weight", D, PARAM_NORM, one);
    p.bias = norm_param(g, "bias", D, PARAM_NORM, zero);
    p.mean = norm_param(g, "mean", D, PARAM_CONST, zero);
    p.variance = norm_param(g, "variance", D, PARAM_CONST, one);
    graph_scope_pop(g);
    return batch_norm(g, x, &p);
}

static struct tensor *s5_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                               struct tensor *x) {
    if (!x) return NULL;
    int64_t D = x->dims[2];
    struct tensor *y = dropout(g, activate(g, mixer(g, b, choice, batch_normed(g, x)), ACT_SILU), b->dropout);
    struct tensor *open = activate(g, affine(g, b, "glu", y, D, init_linear(D, 1)), ACT_SIGMOID);
    return add(g, x, dropout(g, mul(g, y, open), b->dropout));
}

static struct residual layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                             int64_t index, struct residual r) {
    char name[40];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    g->layer = (int)index;
    graph_scope_push(g, name);
    if (is_pre_norm(b))
        r = mad_layer(g, b, choice, r);
    else if (b->kind == BACKBONE_S5)
        r.x = s5_layer(g, b, choice, r.x);
    else if (b->kind == BACKBONE_STACKED)
        r.x = dropout(g, mixer(g, b, choice, r.x), index + 1 < b->layers ? b->dropout : 0);
    else
        r.x = slice_layer(g, b, choice, r.x);
    graph_scope_pop(g);
    return r;
}

/* loss + the terms that the mixers have kept. */
static struct tensor *with_terms(struct graph *g, struct tensor *loss) {
    for (const struct graph_term *term = g->terms; term; term = term->next) loss = add(g, loss, term->build(g, term));
    g->terms = NULL;
    return loss;
}

/* (B,nodes,D) -> (B,n,D), the first n rows. */
static struct tensor *first_rows(struct graph *g, struct tensor *x, int64_t n) {
    if (!x) return NULL;
    int64_t B = x->dims[0], nodes = x->dims[1], D = x->dims[2];
    struct tensor *flat = columns(g, graph_reshape(g, x, 2, (int64_t[]){B, nodes * D}), 0, n * D);
    return flat ? graph_reshape(g, flat, 3, (int64_t[]){B, n, D}) : NULL;
}

/* (B,T,D) -> (B,4D): the rows at the corners of the grid side by side. */
static struct tensor *corners(struct graph *g, const struct grid *grid, struct tensor *x) {
    struct tensor *y = rows_of_corners(g, x, g->lengths, grid);
    return y ? graph_reshape(g, y, 2, (int64_t[]){y->dims[0], 4 * y->dims[2]}) : NULL;
}

/* (B,D), of corners (B,4D): what one label a sequence is read from. The root of a tree is its last node, which every
 * token lies below; that of a chain is its last token. */
static struct tensor *pooled(struct graph *g, const struct backbone *b, const struct grid *grid, struct tensor *x,
                             int64_t T) {
    if (!x) return NULL;
    int64_t nodes = x->dims[1];
    bool root = g->row_first && g->row_first[nodes - 1] == 0;
    if (b->pool == FROM_ROOT && root) return pool(g, x, g->lengths, POOL_TOP);
    if (nodes > T) x = first_rows(g, x, T);
    if (b->pool == FROM_CORNERS) return corners(g, grid, x);
    return pool(g, x, g->lengths, b->pool == FROM_MEAN ? POOL_MEAN : POOL_LAST);
}

/* (2B,D) -> (B,D): gelu(W (u, v, u - v, u * v) + b) of the vectors u, v of a pair's documents. */
static struct tensor *matched(struct graph *g, const struct backbone *b, struct tensor *x) {
    if (!x) return NULL;
    int64_t B = x->dims[0] / 2, D = x->dims[1];
    struct tensor *both = graph_reshape(g, x, 2, (int64_t[]){B, 2 * D});
    struct tensor *u = columns(g, both, 0, D), *v = columns(g, both, D, D);
    struct tensor *all = join_columns(g, both, join_columns(g, sub(g, u, v), mul(g, u, v)));
    return activate(g, affine(g, b, "match", all, D, init_linear(4 * D, 1)), ACT_GELU_ERF);
}

/* MAD's auto-encoder draws every linear map, those of mixers and MLPs too, from N(0, .02^2): athms/mad-lab,
 * mad/model/auto_encoder.py, which goes over all modules of that kind. Its language model leaves them as they are. */
#define DECODED_SD 0.02

/* MAD's auto-encoder behind the layers: each of T positions from the last row in use. */
static struct tensor *decoded(struct graph *g, const struct backbone *b, struct tensor *x, int64_t T) {
    struct init init = {.kind = INIT_NORMAL, .b = DECODED_SD};
    struct tensor *d = decode_positions(g, pool(g, x, g->lengths, POOL_LAST), T);
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "decoder.%d", i);
        graph_scope_push(g, name);
        struct tensor *normed = norm(g, b->norm, "norm", &(struct residual){d, NULL});
        d = activate(g, affine(g, b, "linear", normed, b->dim, init), ACT_GELU_ERF);
        graph_scope_pop(g);
    }
    return d;
}

/* --- what is asked of it ------------------------------------------------------------------------------------------ */

/* Weight decay and rates, as the code of each paper has them:
 *   MAD     every parameter: its optimiser minds no tags of the mixers (athms/mad-lab, mad/model/pl_model_wrapper.py)
 *   SLiCE   every parameter but the embedding: its loop minds none either (structured-linear-cdes, train.py)
 *   pLSTM   its maps alone, on images (ml-jku/plstm_experiments)
 *   S5      every parameter but a state's dynamics and the norms, which also have a rate of their own, ssm_lr; the
 *           others have lr_factor times that, 3 to 5 (lindermanlab/S5, bin/run_experiments) */
struct param_rule net_param_rule(const struct backbone *b, enum param_group group) {
    bool mad = b->kind == BACKBONE_MAD_LM, s5 = b->kind == BACKBONE_S5, vision = b->kind == BACKBONE_VISION;
    bool of_ssm = s5 && (group == PARAM_STATE || group == PARAM_NORM), decays = false;
    switch (group) {
    case PARAM_WEIGHT:
        decays = true;
        break;
    case PARAM_VECTOR:
        decays = !vision;
        break;
    case PARAM_EMBEDDING:
        decays = mad || s5;
        break;
    case PARAM_NORM:
        decays = !s5 && !vision;
        break;
    case PARAM_STATE:
        decays = !s5 && !vision;
        break;
    case PARAM_FREE:
    case PARAM_CONST:
    case PARAM_GROUP_COUNT:
        break;
    }
    return (struct param_rule){decays, of_ssm ? b->ssm_lr_factor : 1};
}

enum status net_check(const struct backbone *b, const struct model *m, struct error *e) {
    if (b->pool == FROM_ROOT && !m->nodes)
        return fail(e, ST_USAGE, "--pool top reads the root of a tree, and %s has none; use last or mean", m->name);
    if (b->ssm_lr_factor != 1 && b->kind != BACKBONE_S5)
        return fail(
            e, ST_USAGE,
            "--ssm-lr-factor %g is for --backbone s5: in the other nets state parameters and norms have the rate "
            "of all others; leave it out or take s5",
            b->ssm_lr_factor);
    return ST_OK;
}

bool net_causal(const struct backbone *b, const struct model_choice *choice) {
    return choice->model->causal && !b->bidirectional;
}

/* Sequences of B examples. */
static int64_t sequences(const struct net_shape *s) {
    return s->B * (s->documents > 1 ? s->documents : 1);
}

static void declare_inputs(struct net *net, struct graph *g, const struct net_shape *s) {
    bool per_sequence = s->readout == READOUT_SEQUENCE;
    int64_t rows = sequences(s);
    if (s->vocab_in)
        net->input = graph_input_ids(g, "tokens", 2, (int64_t[]){rows, s->T}, (int32_t)s->vocab_in, false);
    else
        net->input = graph_input(g, "values", 3, (int64_t[]){rows, s->T, s->channels}, false);
    net->targets =
        graph_input_ids(g, "targets", 2, (int64_t[]){s->B, per_sequence ? 1 : s->T}, (int32_t)s->vocab_out, true);
    net->lengths = graph_input_ids(g, "lengths", 1, &rows, (int32_t)s->T + 1, false);
    net->links = NULL;
    if (s->links.edges > 0)
        net->links = graph_input_ids(g, "links", 2, (int64_t[]){rows, links_words(s->links)},
                                     (int32_t)(s->T > s->links.edges ? s->T : s->links.edges), true);
    g->lengths = net->lengths;
    g->row_first = NULL;
    g->links = (struct links){.words = net->links, .size = s->links};
}

/* Tokens by a table of vectors, values by a linear map. */
static struct tensor *encoded(struct graph *g, const struct backbone *b, const struct net_shape *s,
                              struct tensor *input) {
    bool mad = b->kind == BACKBONE_MAD_LM;
    if (!s->vocab_in) return affine(g, b, "encoder", input, b->dim, map_init(b, s->channels));
    struct tensor *table = graph_param(g, &(struct param_spec){.name = "embedding",
                                                               .rank = 2,
                                                               .dims = {s->vocab_in, b->dim},
                                                               .group = PARAM_EMBEDDING,
                                                               .init = {.kind = INIT_NORMAL, .b = mad ? 0.02 : 1}});
    return embedding(g, input, table);
}

/* x + the table of the positions of the images that training has. In another order than row by row they stand in that
 * order, since images are of one size there. */
static struct tensor *with_positions(struct graph *g, const struct net_shape *s, const struct grid *images,
                                     struct tensor *x) {
    if (!x) return NULL;
    const struct grid sequence = {1, s->T}, trained = s->reordered ? sequence : (struct grid){s->height, s->width};
    const struct grid *own = s->reordered ? &sequence : images;
    int64_t rows = trained.height * trained.width, D = x->dims[2];
    struct tensor *table = graph_param(g, &(struct param_spec){.name = "positions",
                                                               .rank = 3,
                                                               .dims = {trained.height, trained.width, D},
                                                               .group = PARAM_EMBEDDING,
                                                               .init = init_small(rows)});
    if (table) table = graph_reshape(g, table, 2, (int64_t[]){rows, D});
    return grid_positions(g, x, table, g->lengths, &trained, own);
}

/* --backbone slice-paper is another name for one of the three, by mixer. */
static int resolved_kind(const struct backbone *b, const struct model *m) {
    static const int wrappers[] = {BACKBONE_SLICE_GLU, BACKBONE_SLICE, BACKBONE_STACKED}; /* by enum slice_wrapper */
    return b->kind == BACKBONE_SLICE_PAPER ? wrappers[m->wrapper] : b->kind;
}

enum status net_build(struct net *net, struct graph *g, const struct backbone *asked, const struct model_choice *choice,
                      const struct net_shape *shape, struct error *e) {
    struct backbone resolved = *asked, *b = &resolved;
    const struct dims dims = choice->dims;
    resolved.kind = resolved_kind(asked, choice->model);
    if (choice->tokens != shape->T || dims.B != sequences(shape) || dims.D != b->dim)
        return fail(e, ST_FAIL,
                    "a net of %" PRId64 " x %" PRId64 " x %" PRId64 " cannot have a mixer %s fitted to %" PRId64
                    " x %" PRId64 " x %" PRId64,
                    sequences(shape), shape->T, b->dim, choice->model->name, dims.B, choice->tokens, dims.D);
    TRY(net_check(b, choice->model, e));
    if (b->degree_code && shape->links.edges == 0)
        return fail(e, ST_USAGE,
                    "--degree-code counts the neighbours of a node, and the task's examples are no graphs; "
                    "leave it out, or take molecules");
    if (b->positions == POSITIONS_LEARNT && shape->height == 0 && !shape->reordered)
        return fail(e, ST_USAGE,
                    "--positions learnt has a vector for each position of an image, and the task's examples are none; "
                    "leave it out, or take a task of images");
    if (b->pool == FROM_CORNERS && shape->readout == READOUT_SEQUENCE && shape->height == 0)
        return fail(e, ST_USAGE,
                    "--pool corners reads those of an image that is read row by row, and the task's examples are none; "
                    "take last or mean, or an image task without order, transpose and pad");
    bool decodes = shape->readout == READOUT_DECODED;
    g->linear_sd = decodes ? DECODED_SD : 0;
    declare_inputs(net, g, shape);
    const struct grid grid = {dims.height, dims.width};
    struct tensor *x = encoded(g, b, shape, net->input);
    if (b->positions == POSITIONS_LEARNT) x = with_positions(g, shape, &grid, x);
    if (b->degree_code) x = degree_code(g, x, &g->links);
    if (dims.T > shape->T) x = choice->model->append(choice->inst, g, x);
    struct residual r = {x, NULL};
    for (int64_t i = 0; i < b->layers; i++) r = layer(g, b, choice, i, r);
    if (dims.T > shape->T && shape->readout != READOUT_SEQUENCE)
        r = (struct residual){first_rows(g, added(g, r), shape->T), NULL};
    struct init init = map_init(b, b->pool == FROM_CORNERS && shape->readout == READOUT_SEQUENCE ? 4 * b->dim : b->dim);
    if (decodes) {
        r = (struct residual){decoded(g, b, added(g, r), shape->T), NULL};
        init = (struct init){.kind = INIT_NORMAL, .b = DECODED_SD};
    }
    x = is_pre_norm(b) ? norm(g, b->norm, "norm", &r) : r.x;
    if (shape->readout == READOUT_SEQUENCE) x = pooled(g, b, &grid, x, shape->T);
    if (shape->documents == 2) x = matched(g, b, x);
    net->logits = affine(g, b, "head", x, shape->vocab_out, init);
    net->loss = cross_entropy(g, net->logits, net->targets, &net->predictions);
    graph_keep(g, net->predictions);
    graph_keep(g, net->loss);
    graph_set_root(g, with_terms(g, net->loss));
    return g->error.status == ST_OK ? ST_OK : fail(e, g->error.status, "%s", g->error.text);
}

/* backbone.c - the net around a mixer; models differ in the mixer alone, so comparisons are fair.
 *
 * mad-lm, the language model of MAD (athms/mad-lab, spec/tasks.md 1.1):
 *   x = embedding[tokens];  per layer: x <- x + mixer(norm(x)), x <- x + mlp(norm(x));  logits = W norm(x) + b
 * Embedding N(0, 0.02^2); linear weights at the framework default, linear biases 0; no positional code. */
#include <inttypes.h>
#include <stdio.h>

#include "kernels/kernel.h"
#include "models/parts.h"

#define NORM_EPS 1e-5

const struct option backbone_options[] = {
    {"dim", OPT_INT, offsetof(struct backbone, dim), "128", 1, 1 << 16, NULL, "model width D", 0},
    {"layers", OPT_INT, offsetof(struct backbone, layers), "1", 1, 256, NULL, "blocks of [mixer, MLP]", 0},
    {"mlp", OPT_CHOICE, offsetof(struct backbone, mlp), "swiglu", 0, 0, "none swiglu gelu",
     "channel mixer after each mixer", 0},
    {"norm", OPT_CHOICE, offsetof(struct backbone, norm), "rmsnorm", 0, 0, "rmsnorm layernorm",
     "pre-norm of each branch", 0},
    {"backbone", OPT_CHOICE, offsetof(struct backbone, kind), "mad-lm", 0, 0, "mad-lm", "net around the mixer", 0},
    {"dropout", OPT_REAL, offsetof(struct backbone, dropout), "0", 0, 0.95, NULL, "rate on each residual branch", 0},
    {0}};

static struct tensor *norm(struct graph *g, const struct backbone *b, const char *name, struct tensor *x) {
    if (!x) return NULL;
    int64_t D = x->dims[x->rank - 1];
    struct init one = {.kind = INIT_CONST, .a = 1}, zero = {.kind = INIT_ZERO};
    graph_scope_push(g, name);
    struct tensor *w = vector(g, "weight", D, one, AS_CONTRACT);
    struct tensor *y = b->norm == NORM_RMS ? rmsnorm(g, x, w, NORM_EPS)
                                           : layernorm(g, x, w, vector(g, "bias", D, zero, AS_CONTRACT), NORM_EPS);
    graph_scope_pop(g);
    return y;
}

/* floor(8 D / 3) rounded up to a multiple of 16, as MAD's SwiGLU. */
static int64_t swiglu_width(int64_t D) {
    return (8 * D / 3 + 15) / 16 * 16;
}

static struct tensor *mlp(struct graph *g, const struct backbone *b, struct tensor *x) {
    if (!x) return NULL;
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

/* x + dropout(branch) */
static struct tensor *residual(struct graph *g, const struct backbone *b, struct tensor *x, struct tensor *branch) {
    return add(g, x, dropout(g, branch, b->dropout));
}

static struct tensor *layer(struct graph *g, const struct backbone *b, const struct model_choice *choice, int64_t index,
                            struct tensor *x) {
    char name[40];
    snprintf(name, sizeof name, "layers.%" PRId64, index);
    graph_scope_push(g, name);
    struct tensor *normed = norm(g, b, "norm", x);
    graph_scope_push(g, "mixer");
    struct tensor *mixed = choice->model->build(choice->inst, g, normed);
    graph_scope_pop(g);
    x = residual(g, b, x, mixed);
    if (b->mlp != MLP_NONE) {
        normed = norm(g, b, "mlp_norm", x);
        graph_scope_push(g, "mlp");
        struct tensor *mixed_channels = mlp(g, b, normed);
        graph_scope_pop(g);
        x = residual(g, b, x, mixed_channels);
    }
    graph_scope_pop(g);
    return x;
}

/* (B,nodes,D) -> (B,T,D) */
static struct tensor *first_rows(struct graph *g, struct tensor *x, int64_t T) {
    if (!x) return NULL;
    int64_t B = x->dims[0], nodes = x->dims[1], D = x->dims[2];
    struct tensor *flat = columns(g, graph_reshape(g, x, 2, (int64_t[]){B, nodes * D}), 0, T * D);
    return flat ? graph_reshape(g, flat, 3, (int64_t[]){B, T, D}) : NULL;
}

enum status net_build(struct net *net, struct graph *g, const struct backbone *b, struct model_choice *choice,
                      const struct net_shape *shape, struct error *e) {
    const struct model *model = choice->model;
    struct dims dims = {shape->B, shape->T, b->dim};
    TRY(model_fit(choice, &dims, e));
    int64_t rows[2] = {shape->B, shape->T}, V = shape->vocab_out;
    net->tokens = graph_input_ids(g, "tokens", 2, rows, (int32_t)shape->vocab_in, false);
    net->targets = graph_input_ids(g, "targets", 2, rows, (int32_t)V, true);
    struct tensor *table = graph_param(g, &(struct param_spec){.name = "embedding",
                                                               .rank = 2,
                                                               .dims = {shape->vocab_in, b->dim},
                                                               .init = {.kind = INIT_NORMAL, .b = 0.02}});
    struct tensor *x = embedding(g, net->tokens, table);
    if (dims.T > shape->T) x = model->append(choice->inst, g, x);
    for (int64_t i = 0; i < b->layers; i++) x = layer(g, b, choice, i, x);
    if (dims.T > shape->T) x = first_rows(g, x, shape->T);
    x = norm(g, b, "norm", x);
    graph_scope_push(g, "head");
    struct tensor *w = weight(g, "weight", V, b->dim, 1, AS_CONTRACT);
    net->logits = linear(g, x, w, vector(g, "bias", V, (struct init){.kind = INIT_ZERO}, AS_CONTRACT));
    graph_scope_pop(g);
    net->loss = cross_entropy(g, net->logits, net->targets, &net->predictions);
    graph_keep(g, net->predictions);
    graph_set_root(g, net->loss);
    return g->error.status == ST_OK ? ST_OK : fail(e, g->error.status, "%s", g->error.text);
}

/* net.c - the net around a mixer, from its inputs to the loss. The layers are in backbone.c.
 *
 * An input of values has a linear encoder W u + b instead of the embedding, its weights at the framework default, its
 * bias like the net's others (S5's and S4's encoder of images and series). --encoder linear leaves b out: on the
 * increments of a path, b would be a constant drift, which a linear CDE amplifies over thousands of steps.
 *
 * --positions learnt adds a learnt vector to every position of an image's grid; the table is resized for images that
 * are larger than in training. If the positions are not in row order, the table has a vector for every position of the
 * sequence.
 *
 * --degree-code adds the sinusoids of a node's number of neighbours (pLSTM's graphs).
 *
 * Read-outs:
 *   every position           logits = W x_t + b
 *   one label per sequence   logits of one vector: the pool of the rows in use, the grid's four corners side by side,
 *                            or the class token, a learnt row before the tokens (ViT)
 *   one label per pair of documents with vectors u and v: W gelu(W' (u, v, u - v, u * v) + b') + b (S4's retrieval)
 *   MAD's auto-encoder       e = x at the last row in use; at each position p, d = e + PE[p], twice
 *                            d <- gelu(W norm(d) + b), logits = W norm(d) + b; weights N(0, 0.02^2) */
#include <inttypes.h>
#include <stdio.h>

#include "kernels/dense/dense.h"
#include "kernels/links/links.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "kernels/train/train.h"
#include "models/net.h"
#include "models/parts.h"

/* The start of maps of input values and of maps to the logits. */
static struct init map_init(const struct backbone *b, int64_t fan_in) {
    return backbone_traits(b)->small_maps ? init_small(fan_in) : init_linear(fan_in, 1);
}

/* --- read-outs ---------------------------------------------------------------------------------------------------- */

/* (B,nodes,D) -> (B,n,D), the first n rows. */
static struct tensor *first_rows(struct graph *g, struct tensor *x, int64_t n) {
    if (!x) return NULL;
    int64_t B = x->dims[0], nodes = x->dims[1], D = x->dims[2];
    struct tensor *flat = columns(g, graph_reshape(g, x, 2, (int64_t[]){B, nodes * D}), 0, n * D);
    return flat ? graph_reshape(g, flat, 3, (int64_t[]){B, n, D}) : NULL;
}

/* Number of nodes in the uppermost levels of a tree, whose nodes stand level by level, the root last; 0: it has fewer
 * levels above its leaves. The first node of each level lies above the first token. */
static int64_t top_nodes(const int32_t *first, int64_t nodes, int64_t T, int64_t levels) {
    int64_t from = nodes;
    for (; levels > 0; levels--) {
        do
            if (from-- == T) return 0;
        while (first[from] != 0);
    }
    return nodes - from;
}

/* The mean of the nodes in the uppermost levels of a tree; a node above no token counts as zeros. */
static struct tensor *mean_of_top(struct graph *g, const struct backbone *b, struct tensor *x, int64_t T) {
    const struct graph_builder *now = graph_builder(g);
    int64_t B = x->dims[0], nodes = x->dims[1], D = x->dims[2];
    int64_t n = now->row_first ? top_nodes(now->row_first, nodes, T, b->top_levels) : 0;
    if (n == 0) {
        graph_fail(g, ST_USAGE,
                   "--top-levels %" PRId64 " are more than the levels of nodes that the tree has above its %" PRId64
                   " leaves; take fewer",
                   b->top_levels, T);
        return NULL;
    }
    struct tensor *flat = columns(g, graph_reshape(g, x, 2, (int64_t[]){B, nodes * D}), (nodes - n) * D, n * D);
    if (!flat) return NULL;
    struct tensor *top = graph_reshape(g, flat, 3, (int64_t[]){B, n, D});
    return pool(g, rows_in_use(g, top, now->lengths, now->row_first + nodes - n), NULL, POOL_MEAN);
}

/* The vector that the label of a sequence is read from: (B,D), or (B,4D) for the corners of the grid side by side. The
 * root of a tree is its last node, which every token lies below; the root of a chain is its last token. */
static struct tensor *pooled(struct graph *g, const struct backbone *b, const struct grid *grid, struct tensor *x,
                             int64_t T) {
    if (!x) return NULL;
    int64_t nodes = x->dims[1];
    const struct graph_builder *now = graph_builder(g);
    bool root = now->row_first && now->row_first[nodes - 1] == 0;
    if (b->pool == FROM_ROOT && b->top_levels > 1) return mean_of_top(g, b, x, T);
    if (b->pool == FROM_ROOT && root) return pool(g, x, now->lengths, POOL_TOP);
    if (b->pool == FROM_CLASS) {
        struct tensor *y = first_rows(g, x, 1);
        return y ? graph_reshape(g, y, 2, (int64_t[]){y->dims[0], y->dims[2]}) : NULL;
    }
    if (nodes > T) x = first_rows(g, x, T);
    if (b->pool == FROM_CORNERS) {
        struct tensor *y = rows_of_corners(g, x, now->lengths, grid);
        return y ? graph_reshape(g, y, 2, (int64_t[]){y->dims[0], 4 * y->dims[2]}) : NULL;
    }
    return pool(g, x, now->lengths, b->pool == FROM_MEAN ? POOL_MEAN : POOL_LAST);
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

/* MAD's auto-encoder draws every linear map from N(0, .02^2), in mixers and MLPs too (athms/mad-lab,
 * mad/model/auto_encoder.py, which loops over all linear modules). MAD's language model keeps their own start. */
#define DECODED_SD 0.02

/* MAD's auto-encoder after the layers: each of T positions is decoded from the last row in use. */
static struct tensor *decoded(struct graph *g, const struct backbone *b, struct tensor *x, int64_t T) {
    struct init init = {.kind = INIT_NORMAL, .b = DECODED_SD};
    struct tensor *d = decode_positions(g, pool(g, x, graph_builder(g)->lengths, POOL_LAST), T);
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "decoder.%d", i);
        graph_scope_push(g, name);
        struct tensor *normed = residual_norm(g, b->norm, "norm", &(struct residual){d, NULL});
        d = activate(g, affine(g, b, "linear", normed, b->dim, init), ACT_GELU_ERF);
        graph_scope_pop(g);
    }
    return d;
}

/* --- checks of the flags ------------------------------------------------------------------------------------------ */

enum status net_check(const struct backbone *b, const struct model *m, struct error *e) {
    if (b->pool == FROM_ROOT && !m->nodes)
        return fail(e, ST_USAGE, "--pool top reads the root of a tree, and %s has none; use last or mean", m->name);
    if (b->top_levels > 1 && b->pool != FROM_ROOT)
        return fail(e, ST_USAGE,
                    "--top-levels %" PRId64 " is for --pool top, which reads a tree; leave it out or add that",
                    b->top_levels);
    if (b->ssm_lr_factor != 1 && b->kind != BACKBONE_S5)
        return fail(
            e, ST_USAGE,
            "--ssm-lr-factor %g is for --backbone s5: in the other nets state parameters and norms have the rate "
            "of all others; leave it out or take s5",
            b->ssm_lr_factor);
    struct backbone resolved = backbone_resolved(b, m);
    if (b->pool == FROM_CLASS && (!m->takes_rows_before || !backbone_takes_parts(&resolved)))
        return fail(e, ST_USAGE,
                    "--pool class adds a row before the tokens, which only full-attention takes, in --backbone mad-lm "
                    "and vision; use last or mean");
    if (b->layer_scale > 0 && !backbone_takes_parts(&resolved))
        return fail(e, ST_USAGE,
                    "--layer-scale %g is for --backbone mad-lm and vision, whose branches are plain; leave it out or "
                    "take one of them",
                    b->layer_scale);
    return ST_OK;
}

bool net_causal(const struct backbone *b, const struct model_choice *choice) {
    return choice->model->causal && !b->bidirectional;
}

int64_t net_state_floats(const struct backbone *b, const struct model_choice *fitted) {
    int64_t floats = 0;
    struct dims dims = fitted->dims;
    dims.T += b->pool == FROM_CLASS;
    for (dims.layer = 0; dims.layer < b->layers; dims.layer++)
        floats += fitted->model->state_floats(fitted->inst, &dims);
    return floats * (backbone_doubles(b, fitted->model) ? 2 : 1);
}

/* The number of sequences in B examples. */
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
    struct graph_builder *now = graph_builder(g);
    now->lengths = net->lengths;
    now->row_first = NULL;
    now->rows_before = 0;
    now->links = (struct links){.words = net->links, .size = s->links};
    now->embedded = (struct lookup){0};
    now->first_values[0] = now->first_values[1] = NULL;
}

/* Encodes tokens by a table of vectors, values by a linear map. */
static struct tensor *encoded(struct graph *g, const struct backbone *b, const struct net_shape *s,
                              struct tensor *input) {
    if (!s->vocab_in && b->encoder == ENCODER_AFFINE)
        return affine(g, b, "encoder", input, b->dim, map_init(b, s->channels));
    if (!s->vocab_in) {
        struct init init = map_init(b, s->channels);
        return linear(g, input, weight_from(g, "encoder.weight", b->dim, s->channels, init, AS_CONTRACT), NULL);
    }
    double sd = backbone_traits(b)->embedding_sd > 0 ? backbone_traits(b)->embedding_sd : init_small(b->dim).b;
    struct tensor *table = graph_param(g, &(struct param_spec){.name = "embedding",
                                                               .rank = 2,
                                                               .dims = {s->vocab_in, b->dim},
                                                               .group = PARAM_EMBEDDING,
                                                               .init = {.kind = INIT_NORMAL, .b = sd}});
    struct tensor *x = embedding(g, input, table);
    graph_builder(g)->embedded = (struct lookup){x, input, table};
    return x;
}

/* x + a table of vectors for the positions of training images. If the positions are not in row order, all images have
 * one size, and the table has the order of the sequence. */
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
    return grid_positions(g, x, table, graph_builder(g)->lengths, &trained, own);
}

/* (B,T,D) -> (B,1+T,D): a learnt row, the class token, before the tokens. ViT's released code starts it at 0, where a
 * norm magnifies gradients by 1 / sqrt(eps); here it starts like ViT's maps. */
static struct tensor *with_class(struct graph *g, struct tensor *x) {
    static const int32_t row = 0;
    if (!x) return NULL;
    int64_t B = x->dims[0], T = x->dims[1], D = x->dims[2];
    struct tensor *own = graph_param(g, &(struct param_spec){.name = "class",
                                                             .rank = 2,
                                                             .dims = {1, D},
                                                             .group = PARAM_EMBEDDING,
                                                             .init = {.kind = INIT_NORMAL, .b = 0.02}});
    struct tensor *last = append_rows(g, x, own, &row, 1);
    if (!last) return NULL;
    struct tensor *flat = graph_reshape(g, last, 2, (int64_t[]){B, (T + 1) * D});
    struct tensor *first = join_columns(g, columns(g, flat, T * D, D), columns(g, flat, 0, T * D));
    graph_builder(g)->rows_before = 1;
    return first ? graph_reshape(g, first, 3, (int64_t[]){B, T + 1, D}) : NULL;
}

/* Checks that the flags of the net fit the task's examples. */
static enum status check_examples(const struct backbone *b, const struct net_shape *shape, struct error *e) {
    if (b->degree_code && shape->links.edges == 0)
        return fail(e, ST_USAGE,
                    "--degree-code counts the neighbours of a node, and the task's examples are no graphs; "
                    "leave it out, or take molecules");
    if (b->encoder != ENCODER_AFFINE && shape->vocab_in)
        return fail(e, ST_USAGE,
                    "--encoder linear is for values, and the task's examples are of tokens, which have an "
                    "embedding; leave it out, or take a task of series or images");
    if (b->positions == POSITIONS_LEARNT && shape->height == 0 && !shape->reordered)
        return fail(e, ST_USAGE,
                    "--positions learnt has a vector for each position of an image, and the task's examples are none; "
                    "leave it out, or take a task of images");
    if (b->pool == FROM_CORNERS && shape->readout == READOUT_SEQUENCE && shape->height == 0)
        return fail(e, ST_USAGE,
                    "--pool corners is for images that are read row by row, and the task's examples are none; "
                    "take last or mean, or an image task without order, transpose and pad");
    return ST_OK;
}

/* The vectors that enter the first layer. */
static struct tensor *embedded(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                               const struct net_shape *shape, const struct grid *grid, struct tensor *input) {
    struct tensor *x = encoded(g, b, shape, input);
    if (b->positions == POSITIONS_LEARNT) x = with_positions(g, shape, grid, x);
    if (b->degree_code) x = degree_code(g, x, &graph_builder(g)->links);
    if (b->pool == FROM_CLASS) x = with_class(g, x);
    return choice->dims.T > shape->T ? choice->model->append(choice->inst, g, x) : x;
}

/* The vectors from which the head computes the logits. r is the output of the last layer, with `nodes` rows per
 * sequence. */
static struct tensor *read_out(struct graph *g, const struct backbone *b, const struct net_shape *shape,
                               const struct grid *grid, int64_t nodes, struct residual r) {
    bool label = shape->readout == READOUT_SEQUENCE;
    if (nodes > shape->T && !label) r = (struct residual){first_rows(g, residual_sum(g, r), shape->T), NULL};
    if (shape->readout == READOUT_DECODED) r = (struct residual){decoded(g, b, residual_sum(g, r), shape->T), NULL};
    const struct backbone_traits *traits = backbone_traits(b);
    struct tensor *x = traits->ends_in_norm ? traits->norm(g, b, "norm", &r) : r.x;
    if (label) x = pooled(g, b, grid, x, shape->T);
    return shape->documents == 2 ? matched(g, b, x) : x;
}

enum status net_build(struct net *net, struct graph *g, const struct backbone *asked, const struct model_choice *choice,
                      const struct net_shape *shape, struct error *e) {
    const struct backbone resolved = backbone_resolved(asked, choice->model), *b = &resolved;
    const struct dims dims = choice->dims;
    if (choice->tokens != shape->T || dims.B != sequences(shape) || dims.D != b->dim)
        return fail(e, ST_FAIL,
                    "a net of %" PRId64 " x %" PRId64 " x %" PRId64 " cannot have a mixer %s fitted to %" PRId64
                    " x %" PRId64 " x %" PRId64,
                    sequences(shape), shape->T, b->dim, choice->model->name, dims.B, choice->tokens, dims.D);
    TRY(net_check(b, choice->model, e));
    TRY(check_examples(b, shape, e));
    struct graph_builder *now = graph_builder(g);
    bool decodes = shape->readout == READOUT_DECODED;
    now->linear_sd = decodes ? DECODED_SD : 0;
    now->layers = (int)b->layers;
    declare_inputs(net, g, shape);
    const struct grid grid = {dims.height, dims.width};
    struct residual r = {embedded(g, b, choice, shape, &grid, net->input), NULL};
    for (int64_t i = 0; i < b->layers; i++) r = backbone_layer(g, b, choice, i, r);
    struct tensor *x = read_out(g, b, shape, &grid, dims.T, r);
    if (!x) return graph_status(g, e);
    struct init start = decodes ? (struct init){.kind = INIT_NORMAL, .b = DECODED_SD} : map_init(b, tensor_cols(x));
    net->logits = affine(g, b, "head", x, shape->vocab_out, start);
    net->loss = cross_entropy(g, net->logits, net->targets, &net->predictions);
    tensor_keep(net->predictions);
    tensor_keep(net->loss);
    struct tensor *root = net->loss;
    for (const struct graph_term *term = now->terms; term; term = term->next) root = add(g, root, term->build(g, term));
    now->terms = NULL;
    graph_set_root(g, root);
    return graph_status(g, e);
}

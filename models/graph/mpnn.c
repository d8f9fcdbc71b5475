/* mpnn.c - message passing: a layer makes a message from a node and each neighbour, and an MLP reads the node and the
 * sum of its messages.
 *
 *   m_n = sum over u in N(n) of relu(A x_n + C x_u + c)   y_n = W2 relu(W1 [x_n, m_n] + b1) + b2
 * The graph is the example's or, between a sequence's tokens, given by the option `edges`. The direction of an edge
 * does not matter. Gilmer et al. 2017, section 2, with a layer as message and an MLP as update. */
#include "kernels/dense/dense.h"
#include "kernels/move/move.h"
#include "models/graph/graph_links.h"
#include "models/parts.h"

struct mpnn {
    char edges[OPTION_TEXT];
};

static const struct option options[] = {GRAPH_EDGES_OPTION(struct mpnn), {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return graph_links_check("mpnn", ((const struct mpnn *)inst)->edges, d, e);
}

/* W x + b with parameters of these names; bias_name NULL: no bias. */
static struct tensor *affine(struct graph *g, struct tensor *x, const char *weight_name, const char *bias_name,
                             int64_t out) {
    if (!x) return NULL;
    struct tensor *w = weight(g, weight_name, out, x->dims[2], 1, AS_CONTRACT), *b = NULL;
    if (bias_name) b = vector(g, bias_name, out, (struct init){.kind = INIT_ZERO}, AS_CONTRACT);
    return linear(g, x, w, b);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    int64_t D = x->dims[2];
    struct links links = graph_links(((const struct mpnn *)inst)->edges, g, x);
    struct tensor *reader = affine(g, x, "reader.weight", "reader.bias", D);
    struct tensor *m = edge_messages(g, reader, affine(g, x, "writer.weight", NULL, D), &links);
    struct tensor *inner = affine(g, join_columns(g, x, m), "w1.weight", "w1.bias", D);
    return affine(g, activate(g, inner, ACT_RELU), "w2.weight", "w2.bias", D);
}

const struct model model_mpnn = {
    .name = "mpnn",
    .title = "MPNN",
    .summary = "message passing over edges, messages of both ends (Gilmer et al. 2017)",
    .equation = "m_n = sum over u in N(n) of relu(A x_n + C x_u + c);  y_n = W2 relu(W1 [x_n, m_n] + b1) + b2",
    .options = options,
    .small = "mpnn mpnn:edges=0-1+0-2+1-2+1-3+1-5+2-3+2-4+3-4+3-5",
    .inst_bytes = sizeof(struct mpnn),
    .causal = false,
    .check = check,
    .build = build,
    .state_floats = graph_no_state,
};

/* gin.c - graph isomorphism network: an MLP of two layers reads the sum of a node and its neighbours.
 *
 *   y_n = W2 relu(W1 (x_n + sum over u in N(n) of x_u) + b1) + b2,  W1 (inner D, D)
 * The paper's eps is 0 (GIN-0, its better variant). The graph is the example's or, between a sequence's tokens, given
 * by the option `edges`. The direction of an edge does not matter. Xu et al. 2019, Eq. 4.1. */
#include "kernels/dense/dense.h"
#include "models/graph/graph_links.h"
#include "models/parts.h"

struct gin {
    int64_t inner;
    char edges[OPTION_TEXT];
};

static const struct option options[] = {
    {"inner", OPT_INT, offsetof(struct gin, inner), "1", 1, 64, NULL, "width of the MLP's inner layer over D", 0},
    GRAPH_EDGES_OPTION(struct gin),
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return graph_links_check("gin", ((const struct gin *)inst)->edges, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct gin *o = inst;
    int64_t D = x->dims[2], W = o->inner * D;
    struct init zero = {.kind = INIT_ZERO};
    struct links links = graph_links(o->edges, g, x);
    struct tensor *sum = add(g, x, neighbours(g, x, &links, NEIGHBOURS_SUM));
    struct tensor *w1 = weight(g, "w1.weight", W, D, 1, AS_CONTRACT), *b1 = vector(g, "w1.bias", W, zero, AS_CONTRACT);
    struct tensor *w2 = weight(g, "w2.weight", D, W, 1, AS_CONTRACT), *b2 = vector(g, "w2.bias", D, zero, AS_CONTRACT);
    return linear(g, activate(g, linear(g, sum, w1, b1), ACT_RELU), w2, b2);
}

const struct model model_gin = {
    .name = "gin",
    .title = "GIN",
    .summary = "graph isomorphism network: neighbours summed, then an MLP (Xu et al. 2019)",
    .equation = "y_n = W2 relu(W1 (x_n + sum over u in N(n) of x_u) + b1) + b2",
    .options = options,
    .small = "gin gin:inner=2,edges=0-1+0-2+1-2+1-3+1-5+2-3+2-4+3-4+3-5",
    .inst_bytes = sizeof(struct gin),
    .causal = false,
    .check = check,
    .build = build,
    .state_floats = graph_no_state,
};

/* gcn.c - graph convolution: a node takes the mean of its neighbourhood, weighted by degrees.
 *
 *   y_n = relu(W sum over u in N(n) and n of x_u / sqrt(d_n d_u) + b),  d = 1 + |N|
 * The graph is the example's or, between a sequence's tokens, given by the option `edges`. The direction of an edge
 * does not matter. Kipf & Welling 2017, Eq. 2. */
#include "kernels/dense/dense.h"
#include "models/graph/graph_links.h"
#include "models/parts.h"

struct gcn {
    char edges[OPTION_TEXT];
};

static const struct option options[] = {GRAPH_EDGES_OPTION(struct gcn), {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return graph_links_check("gcn", ((const struct gcn *)inst)->edges, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    int64_t D = x->dims[2];
    struct links links = graph_links(((const struct gcn *)inst)->edges, g, x);
    struct tensor *w = weight(g, "weight", D, D, 1, AS_CONTRACT);
    struct tensor *b = vector(g, "bias", D, (struct init){.kind = INIT_ZERO}, AS_CONTRACT);
    return activate(g, linear(g, neighbours(g, x, &links, NEIGHBOURS_GCN), w, b), ACT_RELU);
}

const struct model model_gcn = {
    .name = "gcn",
    .title = "GCN",
    .summary = "graph convolution over neighbours, weighted by degrees (Kipf & Welling 2017)",
    .equation = "y_n = relu(W sum over u in N(n) and n of x_u / sqrt(d_n d_u) + b)",
    .options = options,
    .small = "gcn gcn:edges=0-1+0-2+1-2+1-3+1-5+2-3+2-4+3-4+3-5",
    .inst_bytes = sizeof(struct gcn),
    .causal = false,
    .check = check,
    .build = build,
    .state_floats = graph_no_state,
};

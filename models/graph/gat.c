/* gat.c - graph attention: a node takes a mean of its neighbours' values and its own, weighted by learnt scores.
 *
 *   v = W x, H heads   s = A x   r = A' x   p_n = softmax over u in N(n) and n of leaky_relu(s_n + r_u)
 *   y_n = sum over u in N(n) and n of p_nu v_u + b
 * The paper's scores are a . W x, so its A has a row a W for each head; here A and A' (H,D) are learnt directly.
 * The graph is the example's or, between a sequence's tokens, given by the option `edges`. The direction of an edge
 * does not matter. Velickovic et al. 2018, Eq. 3 to 5. */
#include "kernels/dense/dense.h"
#include "models/graph/graph_links.h"
#include "models/parts.h"

struct gat {
    int64_t heads;
    char edges[OPTION_TEXT];
};

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct gat, heads), "4", 1, 1 << 16, NULL, "heads H; D must be divisible", 0},
    GRAPH_EDGES_OPTION(struct gat),
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct gat *o = inst;
    TRY(graph_links_check("gat", o->edges, d, e));
    return check_heads("gat", o->heads, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct gat *o = inst;
    int64_t D = x->dims[2], H = o->heads;
    struct links links = graph_links(o->edges, g, x);
    struct tensor *v = linear(g, x, weight(g, "v.weight", D, D, 1, AS_CONTRACT), NULL);
    struct tensor *s = linear(g, x, weight(g, "reader.weight", H, D, 1, AS_CONTRACT), NULL);
    struct tensor *r = linear(g, x, weight(g, "writer.weight", H, D, 1, AS_CONTRACT), NULL);
    struct tensor *b = vector(g, "bias", D, (struct init){.kind = INIT_ZERO}, AS_CONTRACT);
    return bias(g, edge_attention(g, v, s, r, &links), b);
}

const struct model model_gat = {
    .name = "gat",
    .title = "GAT",
    .summary = "graph attention: neighbours weighted by learnt scores (Velickovic et al. 2018)",
    .equation = "y_n = sum over u in N(n) and n of p_nu W x_u + b;  p_n = softmax over u of leaky_relu(a.x_n + a'.x_u)",
    .options = options,
    .small = "gat:heads=2 gat:heads=3,edges=0-1+0-2+1-2+1-3+1-5+2-3+2-4+3-4+3-5",
    .inst_bytes = sizeof(struct gat),
    .causal = false,
    .check = check,
    .build = build,
    .state_floats = graph_no_state,
};

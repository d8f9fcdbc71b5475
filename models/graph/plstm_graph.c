/* plstm_graph.c - pLSTM on a directed acyclic graph whose nodes are the tokens.
 *
 *   f_e = mean of x over the ends of edge e
 *   S_e = sig(W [x_tail, f_e] + b)    M_e = sig(W [x_head, f_e] + b)    D_n = sig(W x_n + b)
 *   t_{e'e} = W [f_e', f_e, x_n] + b at the node n they share
 *   P-mode: T = t / (1/2 + sum of |t| over the out-edges that follow the same in-edge)
 *   D-mode: T = tanh(t), on the pairs that leave at most one path between any two edges (multitree reduction)
 *   C_e = sum T_{e'e} C_{e'} + S_e k v^T
 *   y_n = sum over in-edges M_e C_e^T q_n + D_n (q_n.k_n) v_n;   out = W_o RMSNorm_head(y)
 *
 * The graph is the example's (core/links.h) or, between a sequence's tokens, given by the option `edges`. On the
 * reversed graph all edges lead the other way, and the multitree keeps the same pairs. A net of the paper has blocks of
 * two layers, P and D. Its blocks alternate between the graph and the reversed graph: mode=PD, direction=both.
 *
 * pLSTM paper (workshop version), Eq. 1, 2 and 4; the edge variant of ml-jku/plstm (torch/plstm_graph.py). Both lack
 * the factor dk^-1/2. */
#include "kernels/dense/dense.h"
#include "kernels/plstm/plstm.h"
#include "models/graph/graph_links.h"
#include "models/plstm.h"

struct plstm_graph {
    int64_t heads;
    int mode, node, pnorm, direction;
    double gate_start;
    char edges[OPTION_TEXT];
};

enum { MODE_P, MODE_D, MODE_PD };
enum { NODE_SHARED, NODE_TAIL };
enum { PNORM_OUT, PNORM_IN };
enum { FORWARD, BACK, BOTH };

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct plstm_graph, heads), "4", 1, 1 << 16, NULL, "heads H; D must be divisible", 0},
    {"mode", OPT_CHOICE, offsetof(struct plstm_graph, mode), "P", 0, 0, "P D PD",
     "transitions: propagation, diffusion, or layer by layer in turn", 0},
    GRAPH_EDGES_OPTION(struct plstm_graph),
    {"node", OPT_CHOICE, offsetof(struct plstm_graph, node), "shared", 0, 0, "shared tail",
     "node whose x a transition reads: between its edges, or the tail of the first edge", 0},
    {"pnorm", OPT_CHOICE, offsetof(struct plstm_graph, pnorm), "out", 0, 0, "out in",
     "P-mode normalises over the out-edges of an in-edge, or the in-edges of an out-edge", 0},
    {"direction", OPT_CHOICE, offsetof(struct plstm_graph, direction), "forward", 0, 0, "forward back both",
     "along the edges, against them, or two layers each in turn", 0},
    {"gate-start", OPT_REAL, offsetof(struct plstm_graph, gate_start), "-5", -100, 100, NULL,
     "initial bias of S, M and D; -5, nearly closed, is the library's; -4, -4 and -6 are the paper's", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct plstm_graph *o = inst;
    TRY(graph_links_check("plstm-graph", o->edges, d, e));
    if (o->pnorm == PNORM_IN && o->mode == MODE_D)
        return fail(e, ST_USAGE,
                    "plstm-graph: pnorm=in is how propagation normalises, and mode=D has none; leave it out, or take "
                    "mode=P or PD");
    return check_heads("plstm-graph", o->heads, d, e);
}

/* Whether the current layer has P-mode. */
static bool is_p(const struct plstm_graph *o, struct graph *g) {
    return o->mode == MODE_P || (o->mode == MODE_PD && graph_builder(g)->layer % 2 == 0);
}

static bool is_reversed(const struct plstm_graph *o, struct graph *g) {
    return o->direction == BACK || (o->direction == BOTH && graph_builder(g)->layer / 2 % 2 == 1);
}

/* --- gates -------------------------------------------------------------------------------------------------------- */

/* W [features] + b, H wide. */
static struct tensor *gate(const struct plstm_graph *o, struct graph *g, struct tensor *features,
                           const char *weight_name, const char *bias_name, int64_t in, struct init start) {
    struct tensor *w = graph_param(
        g, &(struct param_spec){.name = weight_name, .rank = 2, .dims = {o->heads, in}, .init = {.kind = INIT_ZERO}});
    struct tensor *b = vector(g, bias_name, o->heads, start, AS_CONTRACT);
    return linear(g, features, w, b);
}

/* sig(W [features] + b). */
static struct tensor *sigmoid_gate(const struct plstm_graph *o, struct graph *g, struct tensor *features,
                                   const char *weight_name, const char *bias_name, int64_t in) {
    struct init start = {.kind = INIT_CONST, .a = o->gate_start};
    return activate(g, gate(o, g, features, weight_name, bias_name, in, start), ACT_SIGMOID);
}

static struct tensor *transition(const struct plstm_graph *o, struct graph *g, struct tensor *x,
                                 const struct links *links) {
    struct init start = {.kind = INIT_NORMAL, .b = 10};
    struct tensor *features = link_rows(g, x, links, o->node == NODE_TAIL ? LINK_PAIRS_OF_TAIL : LINK_PAIRS);
    struct tensor *t = gate(o, g, features, "transition.weight", "transition.bias", 3 * x->dims[2], start);
    if (!is_p(o, g)) return activate(g, t, ACT_TANH);
    return link_shares(g, t, links, o->pnorm == PNORM_OUT ? LINK_SAME_FROM : LINK_SAME_TO);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct plstm_graph *o = inst;
    int64_t D = x->dims[2];
    struct links links = graph_links(o->edges, g, x);
    links.reversed = is_reversed(o, g);
    struct plstm_qkv in = plstm_project(g, x);
    struct tensor *S = sigmoid_gate(o, g, link_rows(g, x, &links, LINK_TAILS), "source.weight", "source.bias", 2 * D);
    struct tensor *M = sigmoid_gate(o, g, link_rows(g, x, &links, LINK_HEADS), "mark.weight", "mark.bias", 2 * D);
    struct tensor *T = transition(o, g, x, &links);
    struct tensor *D_gate = sigmoid_gate(o, g, x, "direct.weight", "direct.bias", D);
    struct tensor *y = dag_scan(g, in.q, in.k, in.v, S, M, T, D_gate, &links, !is_p(o, g), o->heads, 1);
    return plstm_finish(g, y, o->heads);
}

/* Counts one state on each edge. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    const struct plstm_graph *o = inst;
    return graph_links_edges(o->edges, d) * d->D * (d->D / o->heads);
}

const struct model model_plstm_graph = {
    .name = "plstm-graph",
    .title = "pLSTM-graph",
    .summary = "pLSTM on a directed acyclic graph of tokens: P-mode or D-mode transitions (pLSTM paper)",
    .equation = "C_e = sum T_{e'e} C_{e'} + S_e k v^T of the tail;\n"
                "y_n = sum over in-edges M_e C_e^T q_n + D_n (q_n.k_n) v_n;  out = W_o RMSNorm_head(y)",
    .options = options,
    .small = "plstm-graph:heads=2 plstm-graph:heads=2,mode=D,node=tail "
             "plstm-graph:heads=2,edges=0-1+0-2+1-2+1-3+1-5+2-3+2-4+3-4+3-5 "
             "plstm-graph:heads=2,edges=0-1+0-2+1-2+1-3+1-5+2-3+2-4+3-4+3-5,pnorm=in",
    .inst_bytes = sizeof(struct plstm_graph),
    .causal = false,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};

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
 * A sequence has the nodes of its tokens and the edges between them. States flow to higher nodes alone, so that those
 * behind its end reach none of them, but for the normaliser of P-mode, which counts the edges that are there.
 *
 * pLSTM paper, Eq. 1, 2, 4, edge variant; spec/plstm-myosotis.md A3. There is no factor dk^-1/2 here. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/move/move.h"
#include "kernels/plstm/plstm.h"
#include "models/plstm.h"

#define EDGES_MAX (OPTION_TEXT / 4) /* "0-1," is the shortest edge */

struct plstm_graph {
    int64_t heads;
    int mode, node, pnorm;
    char edges[OPTION_TEXT];
};

enum { MODE_P, MODE_D };
enum { NODE_SHARED, NODE_TAIL };
enum { PNORM_OUT, PNORM_IN };

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct plstm_graph, heads), "4", 1, 1 << 16, NULL, "heads H; D must be divisible", 0},
    {"mode", OPT_CHOICE, offsetof(struct plstm_graph, mode), "P", 0, 0, "P D", "transitions: propagation or diffusion",
     0},
    {"edges", OPT_TEXT_FIELD, offsetof(struct plstm_graph, edges), "path", 0, 0, NULL,
     "tail-head,... (+ for , on the command line), tail < head, in order; path: 0-1,1-2,...; none", 0},
    {"node", OPT_CHOICE, offsetof(struct plstm_graph, node), "shared", 0, 0, "shared tail",
     "node whose x a transition reads: that between its edges, or the first one's tail", 0},
    {"pnorm", OPT_CHOICE, offsetof(struct plstm_graph, pnorm), "out", 0, 0, "out in",
     "P-mode normalises over the out-edges of an in-edge, or the in-edges of an out-edge", 0},
    {0}};

/* --- the graph ---------------------------------------------------------------------------------------------------- */

struct edges {
    int64_t n;
    int32_t tail[EDGES_MAX], head[EDGES_MAX];
};

/* A number of at most nine digits at *text, which moves on; -1 if there is none. */
static int32_t read_node(const char **text) {
    int32_t value = 0;
    int digits = 0;
    for (; **text >= '0' && **text <= '9' && digits < 9; digits++) value = 10 * value + (*(*text)++ - '0');
    return digits ? value : -1;
}

/* Whether edge e of the list closes a cycle with others: its tail is reached from its head. */
static bool closes_cycle(const struct edges *s, int64_t e) {
    bool reached[EDGES_MAX] = {0};
    if (s->tail[e] == s->head[e]) return true;
    for (int64_t round = 0; round < s->n; round++)
        for (int64_t i = 0; i < s->n; i++) {
            bool from_head = s->tail[i] == s->head[e];
            for (int64_t j = 0; j < s->n && !from_head; j++) from_head = reached[j] && s->head[j] == s->tail[i];
            reached[i] = from_head;
            if (from_head && s->head[i] == s->tail[e]) return true;
        }
    return false;
}

static enum status parse_edges(const char *text, struct edges *s, struct error *e) {
    s->n = 0;
    if (!strcmp(text, "none")) return ST_OK;
    for (const char *at = text; *at;) {
        if (s->n > 0 && (*at == ',' || *at == '+')) at++;
        const char *start = at;
        int32_t tail = read_node(&at), dash = *at++ == '-' ? 1 : 0, head = dash ? read_node(&at) : -1;
        if (tail < 0 || head < 0 || (*at && *at != ',' && *at != '+') || s->n == EDGES_MAX)
            return fail(e, ST_USAGE,
                        "plstm-graph: edges has '%.20s' where an edge tail-head was expected, such as 0-1,0-2,1-2",
                        start);
        s->tail[s->n] = tail;
        s->head[s->n++] = head;
    }
    return ST_OK;
}

static enum status check_edges(const struct edges *s, int64_t nodes, struct error *e) {
    for (int64_t i = 0; i < s->n; i++) {
        int32_t tail = s->tail[i], head = s->head[i];
        if (tail >= nodes || head >= nodes)
            return fail(e, ST_USAGE, "plstm-graph: edge %d-%d, but the length %" PRId64 " gives nodes 0 to %" PRId64,
                        tail, head, nodes, nodes - 1);
        if (tail >= head)
            return fail(e, ST_USAGE,
                        "plstm-graph: edge %d-%d %s; number the nodes so that each edge leads from a lower to a "
                        "higher one",
                        tail, head, closes_cycle(s, i) ? "closes a cycle" : "leads backwards");
        if (i > 0 && (s->tail[i - 1] > tail || (s->tail[i - 1] == tail && s->head[i - 1] >= head)))
            return fail(e, ST_USAGE,
                        "plstm-graph: edge %d-%d stands behind %d-%d; list each edge once, by tail, then head", tail,
                        head, s->tail[i - 1], s->head[i - 1]);
    }
    return ST_OK;
}

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct plstm_graph *o = inst;
    struct edges s;
    if (strcmp(o->edges, "path") != 0) {
        TRY(parse_edges(o->edges, &s, e));
        TRY(check_edges(&s, d->T, e));
    }
    return plstm_check_heads("plstm-graph", o->heads, d, e);
}

/* Bytes on the graph's own arena; an error there is the graph's. */
static void *on_graph(struct graph *g, size_t bytes) {
    void *p = arena_alloc(&g->host, bytes);
    if (!p) graph_fail(g, ST_FAIL, "plstm-graph: the graph has too many edges: no room for %zu bytes", bytes);
    return p;
}

/* D-mode: edge `to` takes `from` only if no strict ancestor of `from` reaches it already; reaches[a*E + b]: a is an
 * ancestor of b. In lexicographic order of edges, which is Kahn's with the smallest first (spec/plstm-myosotis.md
 * A3.2). */
static bool keeps_multitree(unsigned char *reaches, int64_t E, int32_t from, int32_t to) {
    for (int64_t a = 0; a < from; a++)
        if (reaches[a * E + from] && reaches[a * E + to]) return false;
    for (int64_t a = 0; a < from; a++) reaches[a * E + to] |= reaches[a * E + from];
    reaches[from * E + to] = 1;
    return true;
}

/* Edges and the kept pairs of consecutive ones, on the graph's arena; NULL after an error. */
static struct dag *make_dag(const struct plstm_graph *o, struct graph *g, int64_t nodes) {
    struct edges s = {0};
    bool path = !strcmp(o->edges, "path");
    if (!path && parse_edges(o->edges, &s, &g->error) != ST_OK) return NULL;
    int64_t E = path ? nodes - 1 : s.n, pairs = 0;
    for (int64_t e = 0; e < E && !path; e++)
        for (int64_t before = 0; before < e; before++) pairs += s.head[before] == s.tail[e];
    if (path) pairs = E;
    struct dag *d = on_graph(g, sizeof *d);
    int32_t *table = on_graph(g, (size_t)(2 * E + 2 * pairs + 1) * sizeof *table);
    unsigned char *reaches = o->mode == MODE_D && !path ? on_graph(g, (size_t)(E * E + 1)) : NULL;
    if (g->error.status != ST_OK) return NULL;
    int32_t *tail = table, *head = tail + E, *from = head + E, *to = from + pairs;
    *d = (struct dag){.nodes = nodes, .edges = E, .tail = tail, .head = head, .from = from, .to = to};
    for (int64_t e = 0; e < E; e++) {
        tail[e] = path ? (int32_t)e : s.tail[e];
        head[e] = path ? (int32_t)e + 1 : s.head[e];
        for (int64_t before = path && e > 0 ? e - 1 : 0; before < e; before++) {
            if (head[before] != tail[e] || (reaches && !keeps_multitree(reaches, E, (int32_t)before, (int32_t)e)))
                continue;
            from[d->pairs] = (int32_t)before;
            to[d->pairs++] = (int32_t)e;
        }
    }
    return d;
}

/* --- gates -------------------------------------------------------------------------------------------------------- */

/* Rows of two columns of gather_pairs for edges, three for pairs. */
static void set_pair(int32_t *at, int64_t row, int64_t columns, int64_t column, int32_t a, int32_t b) {
    at[2 * (row * columns + column)] = a;
    at[2 * (row * columns + column) + 1] = b;
}

/* W [features] + b, H wide; declared even where there is nothing to compute. NULL then. */
static struct tensor *gate(const struct plstm_graph *o, struct graph *g, struct tensor *features,
                           const char *weight_name, const char *bias_name, int64_t in, struct init start) {
    struct tensor *w = graph_param(
        g, &(struct param_spec){.name = weight_name, .rank = 2, .dims = {o->heads, in}, .init = {.kind = INIT_ZERO}});
    struct tensor *b = vector(g, bias_name, o->heads, start, AS_CONTRACT);
    return features ? linear(g, features, w, b) : NULL;
}

/* [x_end, f_e] of each edge. */
static struct tensor *edge_features(struct graph *g, struct tensor *x, const struct dag *d, const int32_t *end) {
    int32_t *index = d->edges ? on_graph(g, (size_t)(4 * d->edges) * sizeof *index) : NULL;
    if (!index) return NULL;
    for (int32_t e = 0; e < d->edges; e++) {
        set_pair(index, e, 2, 0, end[e], end[e]);
        set_pair(index, e, 2, 1, d->tail[e], d->head[e]);
    }
    return gather_pairs(g, x, index, d->edges, 2);
}

/* [f_from, f_to, x_node] of each pair. */
static struct tensor *pair_features(const struct plstm_graph *o, struct graph *g, struct tensor *x,
                                    const struct dag *d) {
    int32_t *index = d->pairs ? on_graph(g, (size_t)(6 * d->pairs) * sizeof *index) : NULL;
    if (!index) return NULL;
    for (int32_t p = 0; p < d->pairs; p++) {
        int32_t from = d->from[p], to = d->to[p], node = o->node == NODE_TAIL ? d->tail[from] : d->tail[to];
        set_pair(index, p, 3, 0, d->tail[from], d->head[from]);
        set_pair(index, p, 3, 1, d->tail[to], d->head[to]);
        set_pair(index, p, 3, 2, node, node);
    }
    return gather_pairs(g, x, index, d->pairs, 3);
}

/* t where a pair's out-edge leads to a token, else 0. */
static struct tensor *present(struct graph *g, struct tensor *t, const struct dag *d) {
    int32_t *head = on_graph(g, (size_t)d->pairs * sizeof *head);
    if (!head) return NULL;
    for (int32_t p = 0; p < d->pairs; p++) head[p] = d->head[d->to[p]];
    return rows_in_use(g, t, g->lengths, head);
}

/* The group of a pair: its in-edge or its out-edge, by the number of the first pair that has it. Edges that follow one
 * in-edge may lead behind a sequence's end, those that precede one out-edge all lead to the same node; on a path one
 * follows. */
static struct tensor *normalise(const struct plstm_graph *o, struct graph *g, struct tensor *t, const struct dag *d) {
    bool path = !strcmp(o->edges, "path");
    if (g->lengths && o->pnorm == PNORM_OUT && !path) t = present(g, t, d);
    const int32_t *edge = o->pnorm == PNORM_OUT ? d->from : d->to;
    int32_t *group = on_graph(g, (size_t)d->pairs * sizeof *group);
    if (!group) return NULL;
    for (int32_t p = 0; p < d->pairs; p++)
        for (group[p] = 0; edge[group[p]] != edge[p];) group[p]++;
    return l1_groups(g, t, group, d->pairs);
}

static struct tensor *transition(const struct plstm_graph *o, struct graph *g, struct tensor *x, const struct dag *d) {
    struct init start = {.kind = INIT_NORMAL, .b = 10};
    struct tensor *t =
        gate(o, g, pair_features(o, g, x, d), "transition.weight", "transition.bias", 3 * x->dims[2], start);
    if (!t) return NULL;
    return o->mode == MODE_P ? normalise(o, g, t, d) : activate(g, t, ACT_TANH);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct plstm_graph *o = inst;
    int64_t D = x->dims[2];
    struct init closed = {.kind = INIT_CONST, .a = -5};
    struct dag *d = make_dag(o, g, x->dims[1]);
    if (!d) return NULL;
    struct plstm_qkv in = plstm_project(g, x);
    struct tensor *S = gate(o, g, edge_features(g, x, d, d->tail), "source.weight", "source.bias", 2 * D, closed);
    struct tensor *M = gate(o, g, edge_features(g, x, d, d->head), "mark.weight", "mark.bias", 2 * D, closed);
    struct tensor *T = transition(o, g, x, d);
    struct tensor *D_gate = gate(o, g, x, "direct.weight", "direct.bias", D, closed);
    if (S) S = activate(g, S, ACT_SIGMOID);
    if (M) M = activate(g, M, ACT_SIGMOID);
    D_gate = activate(g, D_gate, ACT_SIGMOID);
    return plstm_finish(g, dag_scan(g, in.q, in.k, in.v, S, M, T, D_gate, d, o->heads, 1), o->heads);
}

/* A state on each edge. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    const struct plstm_graph *o = inst;
    struct edges s;
    struct error e = {0};
    int64_t edges = d->T - 1;
    if (strcmp(o->edges, "path") != 0) edges = parse_edges(o->edges, &s, &e) == ST_OK ? s.n : 0;
    return edges * d->D * (d->D / o->heads);
}

const struct model model_plstm_graph = {
    .name = "plstm-graph",
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

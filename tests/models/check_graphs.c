/* check_graphs.c - mixers of graphs on examples with a graph of their own: a label depends neither on the graphs beside
 * it nor on padding nor, but for pLSTM, on the numbering of nodes; sums over neighbours equal dense matrices; a
 * multitree has one path. */
#include <math.h>
#include <string.h>

#include "core/batch.h"
#include "core/graph_walk.h"
#include "core/philox.h"
#include "kernels/links/links.h"
#include "tests/lib/support.h"

enum { GRAPHS = 3, V = 11, NODES = 7, ROOM = 10, EDGES_MAX = NODES * (NODES - 1) / 2 };

/* The first ones do not mind how nodes are numbered. */
static const char *const mixers[] = {"gcn",
                                     "gin:inner=2",
                                     "gat:heads=2",
                                     "mpnn",
                                     "plstm-graph:heads=2",
                                     "plstm-graph:heads=2,mode=D,direction=back",
                                     "plstm-graph:heads=2,mode=PD,direction=both"};
enum { SYMMETRIC = 4, MIXERS = sizeof mixers / sizeof *mixers };

/* A connected graph. */
struct example_graph {
    int32_t nodes, token[NODES];
    int64_t n;
    int32_t edges[EDGES_MAX][2];
};

/* Edges ascending by (tail, head), as links_fill wants them. */
static struct example_graph make_graph(uint64_t seed) {
    struct rng r = rng_at(seed, STREAM_TEST, 0);
    struct example_graph g = {.nodes = (int32_t)(NODES - rng_below(&r, 3))};
    bool joined[NODES][NODES] = {{false}};
    for (int32_t i = 0; i < g.nodes; i++) g.token[i] = (int32_t)rng_below(&r, V);
    for (int32_t i = 1; i < g.nodes; i++) joined[rng_below(&r, (uint64_t)i)][i] = true;
    for (int32_t a = 0; a < g.nodes; a++)
        for (int32_t b = a + 1; b < g.nodes; b++) {
            if (!joined[a][b] && rng_below(&r, 4) != 0) continue;
            g.edges[g.n][0] = a;
            g.edges[g.n++][1] = b;
        }
    return g;
}

/* Returns the graph with node i called order[i]. */
static struct example_graph renumbered(const struct example_graph *g, const int32_t *order) {
    struct example_graph h = {.nodes = g->nodes};
    bool joined[NODES][NODES] = {{false}};
    for (int32_t i = 0; i < g->nodes; i++) h.token[order[i]] = g->token[i];
    for (int64_t e = 0; e < g->n; e++) {
        int32_t a = order[g->edges[e][0]], b = order[g->edges[e][1]];
        joined[a < b ? a : b][a < b ? b : a] = true;
    }
    for (int32_t a = 0; a < h.nodes; a++)
        for (int32_t b = a + 1; b < h.nodes; b++)
            if (joined[a][b]) {
                h.edges[h.n][0] = a;
                h.edges[h.n++][1] = b;
            }
    return h;
}

static const struct links_size small_room = {EDGES_MAX, EDGES_MAX *NODES};

static void put_links(const struct example_graph *g, struct links_size room, int32_t *words) {
    uint64_t scratch[EDGES_MAX + 1];
    ck_assert_int_le(links_scratch(g->n), EDGES_MAX + 1);
    links_fill(words, room, g->n, (const int32_t(*)[2])g->edges, scratch);
}

static void move_parameters(struct params *p) {
    for (int i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->list[i].count && p->list[i].spec.group != PARAM_CONST; k++)
            p->value[p->list[i].offset + k] += (real)(0.1 * sin((double)(k + 3 * i)));
}

/* A net on these graphs, with room for T nodes and for links; pads are drawn from `pads`. */
static void open_on(struct trial *t, const char *model, const char *kernel, const struct example_graph *graphs,
                    int64_t B, int64_t T, struct links_size room, uint64_t pads) {
    struct trial_shape s = {.model = model, .B = B, .T = T, .V = V, .D = 12, .layers = 4, .mlp = MLP_GELU};
    struct rng r = rng_at(pads, STREAM_TEST, 1);
    s.kernel = kernel;
    s.pool = 1; /* mean */
    s.readout = READOUT_SEQUENCE;
    s.links = room;
    s.degree_code = true;
    trial_open(t, &s, 5);
    move_parameters(&t->params);
    for (int64_t b = 0; b < B; b++) {
        const struct example_graph *g = &graphs[b];
        for (int64_t i = 0; i < T; i++)
            tensor_i32(t->net.input)[b * T + i] = i < NODES && i < g->nodes ? g->token[i] : (int32_t)rng_below(&r, V);
        tensor_i32(t->net.lengths)[b] = g->nodes;
        tensor_i32(t->net.targets)[b] = (int32_t)(b % V);
        put_links(g, room, tensor_i32(t->net.links) + b * links_words(room));
    }
}

static void walk(struct trial *t) {
    graph_forward(&t->graph, &t->state);
    graph_backward(&t->graph, &t->state);
}

/* --- what a label depends on -------------------------------------------------------------------------------------- */

static void expect_logits(const struct trial *got, int64_t at, const struct trial *want, int64_t from, double bound,
                          const char *what) {
    const real *a = tensor_real(got->net.logits) + at * V, *b = tensor_real(want->net.logits) + from * V;
    if (bound > 0) {
        expect_close(a, b, V, bound, what);
        return;
    }
    for (int64_t i = 0; i < V; i++)
        if (!(a[i] == b[i]))
            ck_abort_msg("%s: logit %d is %.17g, expected %.17g", what, (int)i, (double)a[i], (double)b[i]);
}

/* Reference kernels sum one element after the other: what is absent changes no bit. */
START_TEST(labels_depend_neither_on_other_graphs_nor_on_padding) {
    static const struct links_size large_room = {EDGES_MAX + 9, EDGES_MAX * NODES + 5};
    struct example_graph graphs[GRAPHS];
    for (int b = 0; b < GRAPHS; b++) graphs[b] = make_graph((uint64_t)b + 1);
    for (int tuned = 0; tuned < 2; tuned++) {
        const char *kernel = tuned ? "" : "reference";
        double bound = tuned ? 256 * REAL_EPSILON : 0;
        struct trial together, alone, padded;
        open_on(&together, mixers[_i], kernel, graphs, GRAPHS, NODES, small_room, 1);
        open_on(&padded, mixers[_i], kernel, graphs, GRAPHS, ROOM, large_room, 2);
        walk(&together);
        walk(&padded);
        for (int b = 0; b < GRAPHS; b++) {
            open_on(&alone, mixers[_i], kernel, graphs + b, 1, NODES, small_room, 3);
            walk(&alone);
            expect_logits(&alone, 0, &together, b, bound, "alone");
            expect_logits(&padded, b, &together, b, bound, "with more room");
            trial_close(&alone);
        }
        ck_assert_int_eq(padded.params.n, together.params.n);
        for (int i = 0; i < padded.params.n; i++) {
            const struct param *p = &padded.params.list[i];
            expect_close(padded.params.grad + p->offset, together.params.grad + p->offset, p->count,
                         fmax(bound, REAL_EPSILON), p->name);
        }
        trial_close(&padded);
        trial_close(&together);
    }
}
END_TEST

/* The edges matter, too: the same atoms otherwise joined have another label. */
START_TEST(labels_depend_on_the_edges) {
    struct example_graph graphs[2] = {make_graph(1), make_graph(1)};
    struct trial t;
    graphs[1].n--;
    open_on(&t, mixers[_i], "", graphs, 2, NODES, small_room, 1);
    walk(&t);
    double difference = 0;
    for (int64_t i = 0; i < V; i++)
        difference += fabs((double)tensor_real(t.net.logits)[i] - (double)tensor_real(t.net.logits)[V + i]);
    ck_assert_msg(difference > 1e-5, "%s: the logits of two graphs differ by %g", mixers[_i], difference);
    trial_close(&t);
}
END_TEST

START_TEST(labels_do_not_depend_on_how_nodes_are_numbered) {
    static const int32_t orders[][NODES] = {{6, 5, 4, 3, 2, 1, 0}, {2, 0, 1, 4, 3, 6, 5}};
    for (uint64_t seed = 1; seed < 9; seed++) {
        struct example_graph graphs[3] = {make_graph(seed)};
        if (graphs[0].nodes != NODES) continue;
        struct trial t;
        for (int i = 0; i < 2; i++) graphs[1 + i] = renumbered(&graphs[0], orders[i]);
        open_on(&t, mixers[_i], "", graphs, 3, NODES, small_room, 1);
        walk(&t);
        expect_logits(&t, 1, &t, 0, 1024 * REAL_EPSILON, mixers[_i]);
        expect_logits(&t, 2, &t, 0, 1024 * REAL_EPSILON, mixers[_i]);
        trial_close(&t);
    }
}
END_TEST

/* Against its edges a graph is the same as along them with its nodes numbered from the end. */
START_TEST(a_reversed_graph_is_the_mirrored_one) {
    static const int32_t mirror[NODES] = {6, 5, 4, 3, 2, 1, 0};
    int looked_at = 0;
    for (uint64_t seed = 1; seed < 9; seed++) {
        struct example_graph one = make_graph(seed), other;
        struct trial back, forth;
        if (one.nodes != NODES) continue;
        looked_at++;
        other = renumbered(&one, mirror);
        open_on(&back, "plstm-graph:heads=2,direction=back", "", &one, 1, NODES, small_room, 1);
        open_on(&forth, "plstm-graph:heads=2", "", &other, 1, NODES, small_room, 1);
        walk(&back);
        walk(&forth);
        expect_logits(&back, 0, &forth, 0, 1024 * REAL_EPSILON, "mirrored");
        trial_close(&back);
        trial_close(&forth);
    }
    ck_assert_int_gt(looked_at, 0);
}
END_TEST

START_TEST(gradients_of_graph_nets_match_central_differences) {
    struct example_graph graphs[GRAPHS];
    struct trial t;
    for (int b = 0; b < GRAPHS; b++) graphs[b] = make_graph((uint64_t)b + 4);
    open_on(&t, mixers[_i], "", graphs, GRAPHS, NODES, small_room, 1);
    expect_gradients(&t, (uint64_t)_i);
    trial_close(&t);
}
END_TEST

/* --- against dense matrices --------------------------------------------------------------------------------------- */

enum { WIDTH = 6, HEADS = 2 };

struct dense {
    bool joined[NODES][NODES];
    int degree[NODES];
};

static struct dense dense_of(const struct example_graph *g) {
    struct dense d = {{{false}}, {0}};
    for (int64_t e = 0; e < g->n; e++) {
        int32_t a = g->edges[e][0], b = g->edges[e][1];
        d.joined[a][b] = d.joined[b][a] = true;
        d.degree[a]++;
        d.degree[b]++;
    }
    return d;
}

static double at(const struct tensor *t, int n, int d) {
    return tensor_real(t)[n * t->dims[2] + d];
}

enum sum_kind { SUM, GCN, MESSAGES, ATTENTION, DEGREE, SUM_KINDS };

/* Element (n, d) of what the op makes, from a matrix of neighbours. */
static double expected(enum sum_kind kind, const struct dense *m, int nodes, struct tensor *const *x, int n, int d) {
    double sum = 0, weights = 0;
    if (kind == DEGREE) {
        int pair = d / 2;
        double angle = m->degree[n] * pow(10000, -2.0 * pair / WIDTH);
        return at(x[0], n, d) + (d % 2 ? cos(angle) : sin(angle));
    }
    for (int u = 0; u < nodes; u++) {
        bool itself = u == n && (kind == GCN || kind == ATTENTION);
        if (!m->joined[n][u] && !itself) continue;
        if (kind == SUM) sum += at(x[0], u, d);
        if (kind == GCN) sum += at(x[0], u, d) / sqrt((1.0 + m->degree[n]) * (1.0 + m->degree[u]));
        if (kind == MESSAGES) sum += fmax(0, at(x[0], n, d) + at(x[1], u, d));
        if (kind == ATTENTION) {
            int h = d / (WIDTH / HEADS);
            double z = at(x[1], n, h) + at(x[2], u, h), p = exp(z > 0 ? z : 0.2 * z);
            sum += p * at(x[0], u, d);
            weights += p;
        }
    }
    return kind == ATTENTION ? sum / weights : sum;
}

static struct tensor *call_kind(struct graph *g, enum sum_kind kind, struct tensor *const *x,
                                const struct links *links) {
    switch (kind) {
    case SUM:
        return neighbours(g, x[0], links, NEIGHBOURS_SUM);
    case GCN:
        return neighbours(g, x[0], links, NEIGHBOURS_GCN);
    case MESSAGES:
        return edge_messages(g, x[0], x[1], links);
    case ATTENTION:
        return edge_attention(g, x[0], x[1], x[2], links);
    case DEGREE:
    case SUM_KINDS:
        break;
    }
    return degree_code(g, x[0], links);
}

START_TEST(sums_over_neighbours_equal_dense_matrices) {
    static const char *const kernels[] = {"reference", ""};
    for (int kernel = 0; kernel < 2; kernel++)
        for (uint64_t seed = 1; seed < 6; seed++) {
            struct example_graph example = make_graph(seed);
            struct dense m = dense_of(&example);
            struct graph g;
            open_graph(&g, NULL, false, false, kernels[kernel]);
            int64_t second = _i == ATTENTION ? HEADS : WIDTH;
            struct tensor *x[3] = {input3(&g, "x", 1, NODES, WIDTH, false), input3(&g, "y", 1, NODES, second, false),
                                   input3(&g, "z", 1, NODES, second, false)};
            struct links links = {.size = small_room};
            links.words = graph_input_ids(&g, "links", 2, (int64_t[]){1, links_words(small_room)}, NODES, true);
            struct tensor *y = call_kind(&g, (enum sum_kind)_i, x, &links);
            tensor_keep(y);
            plan_graph(&g);
            for (int i = 0; i < 3; i++) fill_tensor(x[i], FILL_SMALL, false);
            put_links(&example, small_room, tensor_i32(links.words));
            struct step_state state = first_state();
            graph_forward(&g, &state);
            for (int n = 0; n < NODES; n++)
                for (int d = 0; d < WIDTH; d++)
                    ck_assert_double_eq_tol(at(y, n, d), expected((enum sum_kind)_i, &m, NODES, x, n, d),
                                            64 * REAL_EPSILON);
            graph_free(&g);
        }
}
END_TEST

/* --- links -------------------------------------------------------------------------------------------------------- */

/* Paths from edge to edge along the pairs that a multitree keeps. */
static int64_t most_paths(const struct links_view *l) {
    int64_t paths[EDGES_MAX][EDGES_MAX] = {{0}}, most = 0;
    int32_t from, to;
    for (int64_t p = 0; p < l->size.pairs; p++) { /* in order of `to` */
        if (!links_pair(l, p, &from, &to) || !links_pair_in_tree(l, p)) continue;
        paths[from][to]++;
        for (int e = 0; e < EDGES_MAX; e++) paths[e][to] += paths[e][from];
    }
    for (int a = 0; a < EDGES_MAX; a++)
        for (int b = 0; b < EDGES_MAX; b++) most = paths[a][b] > most ? paths[a][b] : most;
    return most;
}

START_TEST(a_multitree_has_at_most_one_path) {
    int32_t words[LINK_EDGE_WORDS * EDGES_MAX + LINK_PAIR_WORDS * EDGES_MAX * NODES];
    int64_t left_out = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct example_graph example = make_graph(seed);
        put_links(&example, small_room, words);
        struct links_view l = {words, small_room, example.nodes, false};
        int32_t from, to, tail, head;
        int64_t pairs = 0, wanted = 0;
        ck_assert_int_le(most_paths(&l), 1);
        for (int64_t p = 0; p < small_room.pairs; p++) {
            bool there = links_pair(&l, p, &from, &to);
            pairs += there;
            left_out += there && !links_pair_in_tree(&l, p);
        }
        for (int64_t a = 0; a < example.n; a++)
            for (int64_t b = 0; b < example.n; b++) wanted += example.edges[a][1] == example.edges[b][0];
        ck_assert_int_eq(pairs, wanted);
        ck_assert(links_edge(&l, example.n - 1, &tail, &head) && !links_edge(&l, example.n, &tail, &head));
        struct links_size size = links_size_of(example.n, (const int32_t(*)[2])example.edges);
        ck_assert_int_eq(size.edges, example.n);
        ck_assert_int_eq(size.pairs, wanted > 0 ? wanted : 1);
    }
    ck_assert_int_gt(left_out, 0);
}
END_TEST

/* A diamond 0-1, 0-2, 1-3, 2-3, and 3-4: the second way into 3-4 would be a second path from nothing (the two ways come
 * of different edges), so both stay; with an edge before the diamond it would be, and is left out. */
START_TEST(the_multitree_of_a_diamond) {
    static const int32_t plain[][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}};
    static const int32_t stem[][2] = {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}};
    static const struct links_size room = {6, 8};
    int32_t words[6 * LINK_EDGE_WORDS + 8 * LINK_PAIR_WORDS], from, to;
    uint64_t scratch[8];
    int64_t kept[2] = {0};
    for (int i = 0; i < 2; i++) {
        links_fill(words, room, i ? 6 : 5, i ? stem : plain, scratch);
        struct links_view l = {words, room, 6, false};
        for (int64_t p = 0; p < room.pairs; p++) kept[i] += links_pair(&l, p, &from, &to) && links_pair_in_tree(&l, p);
        if (i) ck_assert(links_pair(&l, 5, &from, &to) && from == 4 && to == 5 && !links_pair_in_tree(&l, 5));
    }
    ck_assert_int_eq(kept[0], 4);
    ck_assert_int_eq(kept[1], 5);
}
END_TEST

START_TEST(edges_are_not_asked_for_where_examples_have_their_own) {
    static const char *const models[] = {"gcn", "gin", "gat:heads=2", "mpnn", "plstm-graph:heads=2"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct model_choice choice;
        struct error e = {0};
        struct dims d = {.B = 1, .T = 4, .D = 12, .links = {3, 3}};
        char text[100];
        snprintf(text, sizeof text, "%s%sedges=0-1", models[i], strchr(models[i], ':') ? "," : ":");
        ck_assert_int_eq(model_parse(&choice, text, &e), ST_OK);
        ck_assert_int_eq(model_fit(&choice, &d, &e), ST_USAGE);
        ck_assert_msg(strstr(e.text, "graphs") && strstr(e.text, "edges=0-1"), "%s", e.text);
        d.links = (struct links_size){0};
        ck_assert_int_eq(model_parse(&choice, text, &e), ST_OK);
        ck_assert_int_eq(model_fit(&choice, &d, &e), ST_OK);
    }
}
END_TEST

static const struct {
    const char *edges, *says;
} wrong_edges[] = {
    {"0-1+2", "plstm-graph: edges has '2' where an edge tail-head was expected, such as 0-1+0-2+1-2"},
    {"0-1+", "plstm-graph: edges has '' where an edge tail-head was expected, such as 0-1+0-2+1-2"},
    {"0-1x", "plstm-graph: edges has '0-1x' where an edge tail-head was expected, such as 0-1+0-2+1-2"},
    {"0-1+1-4", "plstm-graph: edge 1-4, but the length 4 gives nodes 0 to 3"},
    {"0-1+2-1",
     "plstm-graph: edge 2-1 does not lead from a lower to a higher node; number them so that each edge does"},
    {"1-1", "plstm-graph: edge 1-1 does not lead from a lower to a higher node; number them so that each edge does"},
    {"0-2+0-1", "plstm-graph: edge 0-1 stands after 0-2; list each edge once, by tail, then head"},
    {"0-1+0-1", "plstm-graph: edge 0-1 stands after 0-1; list each edge once, by tail, then head"},
};

/* The sentence's own example is one that a label takes. */
START_TEST(edges_that_fit_no_sequence_are_refused) {
    struct model_choice choice;
    struct error e = {0};
    struct dims d = {.B = 1, .T = 4, .D = 12};
    char text[100];
    snprintf(text, sizeof text, "plstm-graph:edges=%s", wrong_edges[_i].edges);
    ck_assert_int_eq(model_parse(&choice, text, &e), ST_OK);
    ck_assert_int_eq(model_fit(&choice, &d, &e), ST_USAGE);
    ck_assert_str_eq(e.text, wrong_edges[_i].says);
    ck_assert_int_eq(model_parse(&choice, "plstm-graph:edges=0-1+0-2+1-2", &e), ST_OK);
    ck_assert_int_eq(model_fit(&choice, &d, &e), ST_OK);
}
END_TEST

Suite *check_graphs(void);
Suite *check_graphs(void) {
    Suite *suite = suite_create("graphs");
    TCase *tests = tcase_create("graphs");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, labels_depend_neither_on_other_graphs_nor_on_padding, 0, MIXERS);
    tcase_add_loop_test(tests, labels_depend_on_the_edges, 0, MIXERS);
    tcase_add_loop_test(tests, edges_that_fit_no_sequence_are_refused, 0,
                        (int)(sizeof wrong_edges / sizeof *wrong_edges));
    tcase_add_loop_test(tests, labels_do_not_depend_on_how_nodes_are_numbered, 0, SYMMETRIC);
    tcase_add_test(tests, a_reversed_graph_is_the_mirrored_one);
    if (REAL_IS_DOUBLE) tcase_add_loop_test(tests, gradients_of_graph_nets_match_central_differences, 0, MIXERS);
    tcase_add_loop_test(tests, sums_over_neighbours_equal_dense_matrices, 0, SUM_KINDS);
    tcase_add_test(tests, a_multitree_has_at_most_one_path);
    tcase_add_test(tests, the_multitree_of_a_diamond);
    tcase_add_test(tests, edges_are_not_asked_for_where_examples_have_their_own);
    suite_add_tcase(suite, tests);
    return suite;
}

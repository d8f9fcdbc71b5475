/* tud.c - graphs of TUDataset with one label each, as pLSTM's experiments take them (ml-jku/plstm_experiments,
 * plstm_graph; torch_geometric, io/tu.py).
 *
 * A node's input is its attributes, unchanged, and then a one at its label. Edges lead from the lower node to the
 * higher one. Ten folds, stratified and shuffled by seed 42: `fold` is for test, the next one for validation, the other
 * eight for training, and no seed of a run changes them. The paper shuffles with scikit-learn's generator, which is not
 * repeated here, so its fold of the same number has other graphs. The files come from `lrnn data import`. */
#include <string.h>

#include "core/philox.h"
#include "tasks/data/datasets.h"
#include "tasks/data/file_entries.h"
#include "tasks/data/tud_files.h"
#include "tasks/examples.h"
#include "tasks/graph/isomorphic.h"

#define FOLDS     10
#define FOLD_SEED 42

/* The parts of an entry. */
struct tud_graph {
    int64_t nodes, attributes;
    const float *attribute; /* (nodes, attributes); borrowed */
    const int32_t *kind;    /* (nodes) labels; borrowed */
    int64_t edges;
    const int32_t (*edge)[2]; /* (edges); borrowed */
    const int32_t *words;     /* its links, without spare room */
    struct links_size links;
};

struct tud {
    char set[OPTION_TEXT];
    int64_t fold;
    int twins; /* enum twins */
    struct file_entries from;
    int64_t n[SPLIT_COUNT];
    const int32_t *use;            /* (graphs) numbers of training, then validation, then test graphs */
    const struct tud_graph *graph; /* (graphs) */
    struct links_size room;        /* for the links of any graph */
    double floor;                  /* share of the commonest label */
    int64_t n_twins;               /* test graphs that are isomorphic to a training graph */
};

/* Whether such test graphs, which a net may have memorised, are kept. */
enum twins { TWINS_KEEP, TWINS_DROP };

static const struct option options[] = {
    {"set", OPT_TEXT_FIELD, offsetof(struct tud, set), "mutag", 0, 0, NULL,
     "mutag, nci1, proteins, ptc-fm, or another by its name in TUDataset, imported as tud:NAME", OPT_FILLED},
    {"fold", OPT_INT, offsetof(struct tud, fold), "0", 0, FOLDS - 1, NULL,
     "fold for test, out of ten; the next one is for validation", OPT_FOLD},
    {"twins", OPT_CHOICE, offsetof(struct tud, twins), "keep", 0, 0, "keep drop",
     "test graphs that are isomorphic to a training graph of the fold; `lrnn data stats` counts them", 0},
    FILE_ENTRIES_OPTIONS(struct tud, from),
    {0},
};

static const struct task_alias aliases[] = {
    {"mutag", "set=mutag", "188 molecules: do they change genes?"},
    {"nci1", "set=nci1", "4110 molecules: do they act against lung cancer?"},
    {"proteins", "set=proteins", "1113 proteins: are they enzymes?"},
    {"ptc-fm", "set=ptc-fm", "349 molecules: do they cause cancer in female mice?"},
    {NULL, NULL, NULL},
};

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static enum status bad_graph(const char *what, int64_t i, struct error *e) {
    return fail(e, ST_DATA, "tud: graph %lld: expected %s as `lrnn data import` stores them, found others",
                (long long)i, what);
}

static bool edges_ascend(const struct tud_graph *g) {
    const int32_t(*edge)[2] = g->edge;
    for (int64_t k = 0; k < g->edges; k++) {
        if (edge[k][0] < 0 || edge[k][0] >= edge[k][1] || edge[k][1] >= g->nodes) return false;
        if (k > 0 && edge[k - 1][0] == edge[k][0] && edge[k - 1][1] >= edge[k][1]) return false;
        if (k > 0 && edge[k - 1][0] > edge[k][0]) return false;
    }
    return true;
}

/* Parses entry i. The set's hash guarantees that the entry is unaltered, but not that it is a valid graph. */
static enum status parse_graph(const struct entry_set *s, int64_t i, struct tud_graph *g, struct error *e) {
    struct entry r = entry_get(s, i);
    const int32_t *number = (const void *)r.bytes; /* a payload begins at a multiple of 4 */
    *g = (struct tud_graph){.nodes = r.length, .attributes = r.size < 4 ? -1 : number[0]};
    int64_t kinds = s->width - g->attributes;
    if (s->width < 1 || s->width > TUD_FEATURES || g->attributes < 0 || kinds < 0) return bad_graph("features", i, e);
    int64_t left = r.size / 4 - 1 - g->nodes * (g->attributes + 1);
    if (g->nodes < 1 || g->nodes > TUD_GRAPH_NODES || left < 0 || left > 2 * TUD_GRAPH_EDGES || left % 2)
        return bad_graph("nodes and edges", i, e);
    g->attribute = (const void *)(number + 1);
    g->kind = number + 1 + g->nodes * g->attributes;
    for (int64_t node = 0; node < g->nodes; node++)
        if (g->kind[node] < 0 || g->kind[node] >= (kinds ? kinds : 1)) return bad_graph("labels of nodes", i, e);
    g->edge = (const int32_t(*)[2])(g->kind + g->nodes);
    g->edges = left / 2;
    g->links = links_size_of(g->edges, g->edge);
    if (!edges_ascend(g) || g->links.pairs > TUD_GRAPH_PAIRS) return bad_graph("edges", i, e);
    return ST_OK;
}

static enum status open_graphs(struct tud *w, struct arena *host, struct error *e) {
    const struct entry_set *s = &w->from.set;
    int64_t graphs = entry_count(s), most = 0, made = 0;
    struct tud_graph *graph = arena_alloc(host, (size_t)graphs * sizeof *graph);
    for (int64_t i = 0; graph && i < graphs; i++) {
        TRY(parse_graph(s, i, &graph[i], e));
        if (graph[i].edges > most) most = graph[i].edges;
        if (graph[i].links.edges > w->room.edges) w->room.edges = graph[i].links.edges;
        if (graph[i].links.pairs > w->room.pairs) w->room.pairs = graph[i].links.pairs;
    }
    uint64_t *scratch = arena_alloc(host, (size_t)links_scratch(most) * sizeof *scratch);
    for (; graph && scratch && made < graphs; made++) {
        struct tud_graph *g = &graph[made];
        int32_t *words = arena_alloc(host, (size_t)links_words(g->links) * sizeof *words);
        if (!words) break;
        links_fill(words, g->links, g->edges, g->edge, scratch);
        g->words = words;
    }
    if (made < graphs) return fail(e, ST_MEMORY, "%s: no room for the links of %lld graphs", w->set, (long long)graphs);
    w->graph = graph;
    return ST_OK;
}

/* --- folds -------------------------------------------------------------------------------------------------------- */

/* Number of graphs in fold `fold` when n graphs are dealt out in turn. */
static int64_t fold_size(int64_t n, int64_t fold) {
    return (n + FOLDS - 1 - fold % FOLDS) / FOLDS;
}

/* Deals the graphs out to the folds in turn, label after label, each label's graphs in the order of seed 42. Fold sizes
 * then differ by at most one, over all graphs and within each label. */
static enum status open_folds(struct tud *w, struct arena *host, struct error *e) {
    const struct entry_set *s = &w->from.set;
    int64_t graphs = entry_count(s), q = 0, most = 0, next[SPLIT_COUNT] = {0};
    int64_t *count = arena_alloc(host, (size_t)s->labels * sizeof *count);
    int32_t *use = arena_alloc(host, (size_t)graphs * sizeof *use), *of_label = arena_alloc(host, (size_t)graphs * 4);
    if (!count || !use || !of_label) return fail(e, ST_MEMORY, "tud: no room for ten folds");
    memset(count, 0, (size_t)s->labels * sizeof *count);
    for (int64_t i = 0; i < graphs; i++) count[entry_get(s, i).label]++;
    for (int64_t label = 0; label < s->labels; label++) {
        if (count[label] < FOLDS)
            return fail(e, ST_DATA, "%s: expected at least %d graphs of each label, found %lld of label %lld", w->set,
                        FOLDS, (long long)count[label], (long long)label);
        if (count[label] > most) most = count[label];
    }
    w->floor = (double)most / (double)graphs;
    w->n[SPLIT_TEST] = fold_size(graphs, w->fold);
    w->n[SPLIT_VAL] = fold_size(graphs, w->fold + 1);
    w->n[SPLIT_TRAIN] = graphs - w->n[SPLIT_TEST] - w->n[SPLIT_VAL];
    next[SPLIT_VAL] = w->n[SPLIT_TRAIN];
    next[SPLIT_TEST] = next[SPLIT_VAL] + w->n[SPLIT_VAL];
    for (int64_t label = 0; label < s->labels; label++) {
        int64_t n = 0;
        for (int64_t i = 0; i < graphs; i++)
            if (entry_get(s, i).label == label) of_label[n++] = (int32_t)i;
        for (int64_t i = 0; i < n; i++, q++) {
            int64_t turn = (q - w->fold + FOLDS) % FOLDS;
            enum split split = turn == 0 ? SPLIT_TEST : turn == 1 ? SPLIT_VAL : SPLIT_TRAIN;
            use[next[split]++] =
                of_label[permute_index(FOLD_SEED, STREAM_TABLE, (uint64_t)label, (uint64_t)i, (uint64_t)n)];
        }
    }
    w->use = use;
    return ST_OK;
}

/* --- twins -------------------------------------------------------------------------------------------------------- */

/* A graph with refined colours, which begin as hashes of the nodes' inputs, and the hash that isomorphic graphs
 * share. */
struct twin {
    struct coloured_graph graph;
    uint64_t hash;
};

static void colour_graph(const struct tud_graph *g, struct twin *twin, uint64_t *colour, uint64_t *scratch) {
    twin->graph = (struct coloured_graph){g->nodes, g->edges, g->edge, colour};
    for (int64_t node = 0; node < g->nodes; node++) {
        colour[node] = 0x9e3779b97f4a7c15U * (uint64_t)(g->kind[node] + 1);
        for (int64_t c = 0; c < g->attributes; c++) {
            uint32_t bits;
            memcpy(&bits, &g->attribute[node * g->attributes + c], sizeof bits);
            colour[node] = (colour[node] ^ bits) * 0x100000001b3U;
        }
    }
    twin->hash = graph_refine(&twin->graph, scratch);
}

/* Counts the test graphs with a twin (an isomorphic graph) in training; twins=drop removes them from the test. */
static enum status find_twins(struct tud *w, struct arena *host, struct error *e) {
    int64_t graphs = entry_count(&w->from.set), nodes = 0, first = w->n[SPLIT_TRAIN] + w->n[SPLIT_VAL], kept = 0;
    for (int64_t i = 0; i < graphs; i++) nodes += w->graph[i].nodes;
    struct twin *twin = arena_alloc(host, (size_t)graphs * sizeof *twin);
    uint64_t *colour = arena_alloc(host, (size_t)nodes * sizeof *colour);
    uint64_t *scratch = arena_alloc(host, (size_t)w->from.set.longest * sizeof *scratch);
    int32_t *work = arena_alloc(host, 4 * (size_t)w->from.set.longest * sizeof *work);
    int32_t *use = arena_alloc(host, (size_t)graphs * sizeof *use);
    if (!twin || !colour || !scratch || !work || !use)
        return fail(e, ST_MEMORY, "%s: no room to compare %lld graphs", w->set, (long long)graphs);
    for (int64_t i = 0; i < graphs; colour += w->graph[i++].nodes)
        colour_graph(&w->graph[i], &twin[i], colour, scratch);
    memcpy(use, w->use, (size_t)graphs * sizeof *use);
    w->n_twins = 0;
    for (int64_t i = first; i < first + w->n[SPLIT_TEST]; i++) {
        const struct twin *own = &twin[use[i]];
        bool found = false;
        for (int64_t k = 0; k < w->n[SPLIT_TRAIN] && !found; k++) {
            const struct twin *other = &twin[use[k]];
            found = own->hash == other->hash && graph_isomorphic(&own->graph, &other->graph, work);
        }
        w->n_twins += found;
        if (!found || w->twins == TWINS_KEEP) use[first + kept++] = use[i];
    }
    if (kept == 0)
        return fail(e, ST_DATA,
                    "%s: each of the %lld test graphs of fold %lld is isomorphic to a training graph; take "
                    "twins=keep",
                    w->set, (long long)w->n[SPLIT_TEST], (long long)w->fold);
    w->n[SPLIT_TEST] = kept;
    w->use = use;
    return ST_OK;
}

static void tud_notes(const void *inst, FILE *f) {
    const struct tud *w = inst;
    fprintf(f, "  twins      %lld of %lld test graphs of fold %lld are isomorphic to a training graph%s\n",
            (long long)w->n_twins, (long long)(w->n[SPLIT_TEST] + (w->twins == TWINS_DROP ? w->n_twins : 0)),
            (long long)w->fold, w->twins == TWINS_DROP ? " and left out" : "; twins=drop leaves them out");
}

/* --- the task ----------------------------------------------------------------------------------------------------- */

static enum status tud_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct tud *w = inst;
    (void)seed;
    w->room = (struct links_size){0, 0};
    const struct dataset *known;
    char of_archive[OPTION_TEXT + 8];
    snprintf(of_archive, sizeof of_archive, "tud:%s", w->set);
    bool is_known = dataset_find(w->set, &known, NULL) == ST_OK;
    TRY(file_entries_open(&w->from, w->set, is_known ? w->set : of_archive, e));
    TRY(open_graphs(w, host, e));
    TRY(open_folds(w, host, e));
    return find_twins(w, host, e);
}

static void tud_shape(const void *inst, struct task_shape *out) {
    const struct tud *w = inst;
    shape_of_labels(out, w->from.set.longest, w->from.set.labels);
    out->unequal_test = true;
    out->channels = w->from.set.width;
    out->links = w->room;
    out->floor = w->floor;
    for (int split = 0; split < SPLIT_COUNT; split++) out->examples[split] = w->n[split];
}

/* Writes a graph's links with the room of the largest graph. */
static void put_links(const struct tud_graph *g, struct links_size room, int32_t *words) {
    int64_t edges = LINK_EDGE_WORDS * g->links.edges, pairs = LINK_PAIR_WORDS * g->links.pairs;
    for (int64_t i = 0; i < links_words(room); i++) words[i] = IGNORED;
    memcpy(words, g->words, (size_t)edges * sizeof *words);
    memcpy(words + LINK_EDGE_WORDS * room.edges, g->words + edges, (size_t)pairs * sizeof *words);
}

static void tud_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct tud *w = inst;
    int64_t C = w->from.set.width, T = w->from.set.longest;
    for (int before = 0; before < (int)split; before++) index += w->n[before];
    const struct tud_graph *g = &w->graph[w->use[index]];
    memset(x->values, 0, (size_t)(T * C) * sizeof *x->values);
    for (int64_t node = 0; node < g->nodes; node++) {
        real *row = x->values + node * C;
        for (int64_t c = 0; c < g->attributes; c++) row[c] = (real)g->attribute[node * g->attributes + c];
        if (g->attributes < C) row[g->attributes + g->kind[node]] = 1;
    }
    put_links(g, w->room, x->links);
    x->targets[0] = (int32_t)entry_get(&w->from.set, w->use[index]).label;
    x->length = (int32_t)g->nodes;
}

_Static_assert(sizeof(struct tud) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_tud = {
    .name = "tud",
    .summary = "classes of molecules and proteins as graphs (TUDataset, Morris et al. 2020)",
    .suite = "tud",
    .data = "mutag",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct tud),
    .aliases = aliases,
    .open = tud_open,
    .shape = tud_shape,
    .fill = tud_fill,
    .notes = tud_notes,
};

/* molecules.c - drawn molecules, one label each: do a nitrogen and an oxygen stand exactly `distance` bonds apart?
 *
 * Nodes are atoms without hydrogens, edges single bonds; no atom exceeds its valence. A tree of atoms grows bond by
 * bond, and up to two bonds close rings of five or six atoms. Then the elements are placed: two N, two O, up to two
 * halogens, the rest C. The number of atoms of each element is drawn before the label, so counting gives nothing away:
 * the elements are placed anew until the label is right. The distance is the shortest way over bonds.
 *
 * The graphs are a fixed set, like a released one: graph i has label i mod 2, and no seed changes it. Ten folds,
 * stratified and shuffled, as in ml-jku/plstm_experiments (plstm_graph): `fold` is for test, the next one for
 * validation, eight for training. The task stands in for TUDataset if its files are absent, and is never reported as
 * one of its sets. */
#include <string.h>

#include "core/philox.h"
#include "tasks/task.h"

#define ATOMS_MAX  64
#define RINGS_MAX  2
#define BONDS_MAX  (ATOMS_MAX - 1 + RINGS_MAX)
#define DEGREE_MAX 4 /* of carbon, the largest */
#define FOLDS      10
#define FOLD_SEED  42

enum element { CARBON, NITROGEN, OXYGEN, FLUORINE, CHLORINE, ELEMENTS };
static const int valence[ELEMENTS] = {4, 3, 2, 1, 1};

struct molecules {
    int64_t min_nodes, max_nodes, distance, graphs, fold;
};

static const struct option options[] = {
    {"min_nodes", OPT_INT, offsetof(struct molecules, min_nodes), "12", 8, ATOMS_MAX, NULL, "fewest atoms", OPT_AXIS},
    {"max_nodes", OPT_INT, offsetof(struct molecules, max_nodes), "24", 8, ATOMS_MAX, NULL, "most atoms", OPT_AXIS},
    {"distance", OPT_INT, offsetof(struct molecules, distance), "2", 1, 4, NULL, "bonds between the N and the O",
     OPT_AXIS},
    {"graphs", OPT_INT, offsetof(struct molecules, graphs), "1000", 20, 1e9, NULL, "molecules in all, a multiple of 20",
     0},
    {"fold", OPT_INT, offsetof(struct molecules, fold), "0", 0, FOLDS - 1, NULL,
     "fold for test, out of ten; the next one is for validation", OPT_FOLD},
    {0},
};

static enum status molecules_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    const struct molecules *w = inst;
    (void)seed, (void)host;
    if (w->min_nodes > w->max_nodes)
        return fail(e, ST_USAGE, "molecules: min_nodes=%lld is above max_nodes=%lld", (long long)w->min_nodes,
                    (long long)w->max_nodes);
    if (w->graphs % (2 * FOLDS) != 0)
        return fail(e, ST_USAGE,
                    "molecules: graphs=%lld does not make ten folds of two equal halves; take a multiple "
                    "of %d",
                    (long long)w->graphs, 2 * FOLDS);
    return ST_OK;
}

static void molecules_shape(const void *inst, struct task_shape *out) {
    const struct molecules *w = inst;
    out->T = w->max_nodes;
    out->unequal_test = w->min_nodes < w->max_nodes;
    out->vocab_in = ELEMENTS;
    out->vocab_out = 2;
    /* Counts the pairs of links: an atom with `in` bonds to lower numbers and `out` to higher ones makes in * out of
     * them, at most 2 * 2. */
    out->links = (struct links_size){w->max_nodes - 1 + RINGS_MAX, 4 * w->max_nodes};
    out->per_sequence = true;
    out->examples[SPLIT_TRAIN] = w->graphs / FOLDS * (FOLDS - 2);
    out->examples[SPLIT_VAL] = out->examples[SPLIT_TEST] = w->graphs / FOLDS;
    out->chance = out->floor = 0.5;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

/* --- a molecule --------------------------------------------------------------------------------------------------- */

struct molecule {
    int32_t atoms, bonds;
    int32_t bond[BONDS_MAX][2]; /* lower atom first */
    int32_t degree[ATOMS_MAX], near[ATOMS_MAX][DEGREE_MAX];
    enum element element[ATOMS_MAX];
};

static void add_bond(struct molecule *m, int32_t a, int32_t b) {
    m->bond[m->bonds][0] = a < b ? a : b;
    m->bond[m->bonds++][1] = a < b ? b : a;
    m->near[a][m->degree[a]++] = b;
    m->near[b][m->degree[b]++] = a;
}

/* Distances, in bonds, from atom `from` to every other one. */
static void measure(const struct molecule *m, int32_t from, int32_t distance[ATOMS_MAX]) {
    int32_t queue[ATOMS_MAX], first = 0, last = 1;
    for (int32_t i = 0; i < m->atoms; i++) distance[i] = -1;
    queue[0] = from;
    distance[from] = 0;
    while (first < last) {
        int32_t a = queue[first++];
        for (int32_t k = 0; k < m->degree[a]; k++) {
            int32_t b = m->near[a][k];
            if (distance[b] >= 0) continue;
            distance[b] = distance[a] + 1;
            queue[last++] = b;
        }
    }
}

/* Grows a tree in which most atoms have up to three bonds. */
static void grow(struct rng *r, struct molecule *m) {
    m->bonds = 0;
    memset(m->degree, 0, sizeof m->degree);
    for (int32_t i = 1; i < m->atoms; i++) {
        int32_t at;
        do at = (int32_t)rng_below(r, (uint64_t)i);
        while (m->degree[at] == DEGREE_MAX || (m->degree[at] == DEGREE_MAX - 1 && rng_below(r, 4) != 0));
        add_bond(m, at, i);
    }
}

/* Closes a ring of five or six atoms between two random ones, if they are that far apart. */
static void close_ring(struct rng *r, struct molecule *m) {
    int32_t distance[ATOMS_MAX];
    for (int attempt = 0; attempt < 16; attempt++) {
        int32_t a = (int32_t)rng_below(r, (uint64_t)m->atoms), b = (int32_t)rng_below(r, (uint64_t)m->atoms);
        measure(m, a, distance);
        if ((distance[b] != 4 && distance[b] != 5) || m->degree[a] == DEGREE_MAX || m->degree[b] == DEGREE_MAX)
            continue;
        add_bond(m, a, b);
        return;
    }
}

/* Turns a carbon with few enough bonds into the element; false if there is none. */
static bool put_element(struct rng *r, struct molecule *m, enum element element) {
    int32_t free[ATOMS_MAX], n = 0;
    for (int32_t i = 0; i < m->atoms; i++)
        if (m->element[i] == CARBON && m->degree[i] <= valence[element]) free[n++] = i;
    if (n == 0) return false;
    m->element[free[rng_below(r, (uint64_t)n)]] = element;
    return true;
}

static bool put_elements(struct rng *r, struct molecule *m, const enum element *elements, int n) {
    for (int32_t i = 0; i < m->atoms; i++) m->element[i] = CARBON;
    for (int i = 0; i < n; i++)
        if (!put_element(r, m, elements[i])) return false;
    return true;
}

static bool has_pair(const struct molecule *m, int64_t wanted) {
    int32_t distance[ATOMS_MAX];
    for (int32_t a = 0; a < m->atoms; a++) {
        if (m->element[a] != NITROGEN) continue;
        measure(m, a, distance);
        for (int32_t b = 0; b < m->atoms; b++)
            if (m->element[b] == OXYGEN && distance[b] == wanted) return true;
    }
    return false;
}

#define PLACEMENTS 64 /* attempts on a skeleton before a new one is grown */

/* Draws an example. The numbers of atoms are drawn first, independent of the label. */
static void draw(const struct molecules *w, int64_t index, bool label, struct molecule *m) {
    struct rng r = rng_at(0, STREAM_DATA, (uint64_t)index);
    enum element elements[6] = {NITROGEN, NITROGEN, OXYGEN, OXYGEN};
    m->atoms = (int32_t)(w->min_nodes + (int64_t)rng_below(&r, (uint64_t)(w->max_nodes - w->min_nodes + 1)));
    int halogens = (int)rng_below(&r, 3), rings = (int)rng_below(&r, RINGS_MAX + 1);
    for (int i = 0; i < halogens; i++) elements[4 + i] = rng_below(&r, 2) ? FLUORINE : CHLORINE;
    for (;;) {
        grow(&r, m);
        for (int i = 0; i < rings; i++) close_ring(&r, m);
        for (int attempt = 0; attempt < PLACEMENTS; attempt++)
            if (put_elements(&r, m, elements, 4 + halogens) && has_pair(m, w->distance) == label) return;
    }
}

/* --- examples ----------------------------------------------------------------------------------------------------- */

/* Orders edges by (lower atom, higher atom). */
static void sort_bonds(struct molecule *m) {
    for (int32_t i = 1; i < m->bonds; i++) {
        int32_t a = m->bond[i][0], b = m->bond[i][1], at = i;
        for (; at > 0 && (m->bond[at - 1][0] > a || (m->bond[at - 1][0] == a && m->bond[at - 1][1] > b)); at--) {
            m->bond[at][0] = m->bond[at - 1][0];
            m->bond[at][1] = m->bond[at - 1][1];
        }
        m->bond[at][0] = a;
        m->bond[at][1] = b;
    }
}

/* Splits the graphs into ten folds, a tenth of each label's graphs in the order of seed 42. Test is fold `fold`,
 * validation the next fold, training the eight after that, cyclically. */
static int64_t graph_at(const struct molecules *w, enum split split, int64_t index) {
    int64_t label = index % 2, half = w->graphs / 2, fold = half / FOLDS;
    int64_t first = split == SPLIT_TEST ? 0 : split == SPLIT_VAL ? 1 : 2;
    uint64_t position = (uint64_t)(((w->fold + first) * fold + index / 2) % half);
    return 2 * (int64_t)permute_index(FOLD_SEED, STREAM_TABLE, (uint64_t)label, position, (uint64_t)half) + label;
}

static void molecules_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct molecules *w = inst;
    int64_t graph = graph_at(w, split, index);
    struct links_size room = {w->max_nodes - 1 + RINGS_MAX, 4 * w->max_nodes};
    uint64_t scratch[BONDS_MAX * ((BONDS_MAX + 63) / 64) + 1];
    struct molecule m;
    draw(w, graph, graph % 2, &m);
    sort_bonds(&m);
    for (int32_t i = 0; i < w->max_nodes; i++) x->tokens[i] = i < m.atoms ? (int32_t)m.element[i] : 0;
    links_fill(x->links, room, m.bonds, (const int32_t(*)[2])m.bond, scratch);
    x->targets[0] = (int32_t)(graph % 2);
    x->length = m.atoms;
}

_Static_assert(sizeof(struct molecules) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_molecules = {
    .name = "molecules",
    .summary = "drawn molecules: are a nitrogen and an oxygen so many bonds apart? (stands in for TUDataset's graphs)",
    .suite = "graphs",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct molecules),
    .open = molecules_open,
    .shape = molecules_shape,
    .fill = molecules_fill,
};

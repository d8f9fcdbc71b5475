/* mqar.c - multi-query associative recall: K pairs first, then the K keys again, each with its value as the target.
 *
 *   x = k_1 v_1 .. k_K v_K, then (L-2K)/2 slots of two ids: k_i at the start of slot g_i;  y there = v_i
 *
 * Arora et al. 2024, "Zoology" (HazyResearch/zoology). Slots differ, drawn one after the other with weights
 * (g+1)^(power-1), so most keys come back soon. The value stands at the key's own position and never in the inputs
 * after it. Ids: 0 filler, keys 1..V/2-1, values from V/2. Three other forms of that library:
 *
 *   updates=U   U of the keys come again after the pairs, each with a new value, which is then the target
 *   keys=pairs  a key is two ids, k_i k'_j, of sqrt(K) each and all combined: neither tells the value. Entries and
 *               slots have three ids, the value is asked for at the second of a key; ids: 0, two thirds keys, values
 *   mix=zoology training has five pairs of length and K, 64:4 for 100 of 180 examples and 128:8, 256:16, 256:32, 256:64
 *               for 20 each; validation and test have 64:4, 64:8, 64:16, 128:32, 256:64, 512:128, 1024:256 alike */
#include <math.h>

#include "tasks/examples.h"
#include "tasks/mad/mad.h"

#define MAX_PAIRS 4096 /* a quarter of MAD_MAX_LENGTH */

enum filler { FILLER_RANDOM, FILLER_ZERO };
enum keys { KEYS_SINGLE, KEYS_PAIRS };
enum mix { MIX_NONE, MIX_ZOOLOGY };

/* One length of a mixture, and its share of the examples. */
struct part {
    int64_t length, pairs, examples;
};

static const struct part zoology_training[] = {{64, 4, 100}, {128, 8, 20}, {256, 16, 20}, {256, 32, 20}, {256, 64, 20}};
static const struct part zoology_test[] = {{64, 4, 1},   {64, 8, 1},    {64, 16, 1},   {128, 32, 1},
                                           {256, 64, 1}, {512, 128, 1}, {1024, 256, 1}};

struct mqar {
    struct mad mad;
    int64_t pairs; /* K */
    int64_t updates, min_length;
    double power;
    int filler, keys, mix;

    /* made by open */
    const double *weight; /* of the slots of the longest example: sum of the weights up to and including each */
};

static const struct option options[] = {
    MAD_OPTIONS(struct mqar, "8192", "64", "100000", "3000"),
    {"pairs", OPT_INT, offsetof(struct mqar, pairs), "4", 2, MAX_PAIRS, NULL, "keys shown and asked for", OPT_AXIS},
    {"min_length", OPT_INT, offsetof(struct mqar, min_length), "auto", 1, MAD_MAX_LENGTH, "length",
     "training sequences have lengths from this to `length`, equally often, and the shorter ones fewer pairs; auto: "
     "`length` alone",
     OPT_AXIS | OPT_AUTO | OPT_TESTED},
    {"power", OPT_REAL, offsetof(struct mqar, power), "0.01", 0, 1, NULL,
     "exponent of the slots' weights plus 1; 1 = all alike", 0},
    {"filler", OPT_CHOICE, offsetof(struct mqar, filler), "random", 0, 0, "random zero",
     "between the questions: any id, or 0", 0},
    {"updates", OPT_INT, offsetof(struct mqar, updates), "0", 0, MAX_PAIRS, NULL,
     "keys that get a second value, which is then the answer", OPT_AXIS},
    {"keys", OPT_CHOICE, offsetof(struct mqar, keys), "single", 0, 0, "single pairs",
     "a key is one id, or a pair of ids (`pairs` is then a square)", OPT_AXIS},
    {"mix", OPT_CHOICE, offsetof(struct mqar, mix), "none", 0, 0, "none zoology",
     "lengths and pairs: as given, or zoology's five in training and seven in the test, up to 1024 tokens and 256 "
     "pairs",
     OPT_AXIS},
    {0},
};

static const struct task_alias aliases[] = {
    {"mqar-64", "length=64,pairs=4,filler=zero", "64 tokens, 4 pairs; a point of the paper's figure"},
    {"mqar-128", "length=128,pairs=8,filler=zero", "128 tokens, 8 pairs"},
    {"mqar-256", "length=256,pairs=16,filler=zero", "256 tokens, 16 pairs"},
    {"mqar-512", "length=512,pairs=64,filler=zero", "512 tokens, 64 pairs"},
    {"mqar-mixed", "n_train=180000,n_val=700,n_test=7000,filler=zero,mix=zoology",
     "trained on 64 to 256 tokens, tested to 1024 with 256 pairs"},
    {"mqar-forgetting", "pairs=8,filler=zero,updates=4", "half of the keys get a new value"},
    {"mqar-compositional", "filler=zero,keys=pairs", "a key is two ids, and both count"},
    {NULL, NULL, NULL},
};

/* The longest example of a split of a mixture, or the one of the given options. */
static struct part longest(const struct mqar *c, bool training) {
    if (c->mix == MIX_NONE) return (struct part){c->mad.length, c->pairs, 1};
    return training ? zoology_training[4] : zoology_test[6];
}

/* Number of ids of an entry and of a slot. */
static int64_t width_of(const struct mqar *c) {
    return c->keys == KEYS_PAIRS ? 3 : 2;
}

/* Counts updates, in proportion to the pairs. */
static int64_t updates_of(const struct mqar *c, struct part p) {
    return c->updates * p.pairs / c->pairs;
}

static int64_t slots_of(const struct mqar *c, struct part p) {
    return p.length / width_of(c) - p.pairs - updates_of(c, p);
}

static int64_t root_of(int64_t pairs) {
    int64_t root = 0;
    while ((root + 1) * (root + 1) <= pairs) root++;
    return root;
}

/* The shortest length at which a part still has one of its pairs. */
static int64_t shortest(struct part p) {
    return (p.length + p.pairs - 1) / p.pairs;
}

static enum status check_sizes(const struct mqar *c, struct error *e) {
    long long L = c->mad.length, K = c->pairs, V = c->mad.vocab, U = c->updates, most = longest(c, false).length;
    if (c->mix != MIX_NONE && c->mad.test_length[0])
        return fail(e, ST_USAGE, "mqar: mix=zoology has test lengths of its own; take test_length away");
    if (c->mix != MIX_NONE && (U || c->keys == KEYS_PAIRS))
        return fail(e, ST_USAGE, "mqar: mix=zoology has single keys and no updates; take updates=0,keys=single");
    if (U && c->keys == KEYS_PAIRS)
        return fail(e, ST_USAGE, "mqar: updates=%lld go with single keys; take updates=0 or keys=single", U);
    if (U > K) return fail(e, ST_USAGE, "mqar: updates=%lld are more than pairs=%lld", U, K);
    if (c->keys == KEYS_PAIRS && (root_of(K) * root_of(K) != K || V / 3 <= K))
        return fail(
            e, ST_USAGE,
            "mqar: keys=pairs needs a square as pairs, such as 4 or 16, below a third of vocab; got pairs=%lld, "
            "vocab=%lld",
            K, V);
    if (c->keys == KEYS_SINGLE && L % 2)
        return fail(e, ST_USAGE, "mqar: length=%lld is not made of whole slots of two ids; it must be even", L);
    if (c->mix == MIX_NONE && slots_of(c, longest(c, true)) < K)
        return fail(e, ST_USAGE,
                    "mqar: length=%lld cannot hold pairs=%lld pairs and a slot for each key; it must be at least "
                    "%s = %lld",
                    L, K,
                    c->keys == KEYS_PAIRS ? "6 * pairs"
                    : U                   ? "4 * pairs + 2 * updates"
                                          : "4 * pairs",
                    width_of(c) * (2 * K + U));
    if (V <= most)
        return fail(e, ST_USAGE, "mqar: vocab=%lld must exceed length=%lld; raise vocab or lower length", V, most);
    if (c->min_length && c->mix != MIX_NONE)
        return fail(e, ST_USAGE, "mqar: mix=zoology has training lengths of its own; take min_length away");
    if (c->min_length && (c->min_length > L || c->min_length < shortest(longest(c, true))))
        return fail(e, ST_USAGE, "mqar: min_length=%lld is not from %lld, which holds one pair, to length=%lld",
                    (long long)c->min_length, (long long)shortest(longest(c, true)), L);
    return ST_OK;
}

static enum status mqar_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct mqar *c = inst;
    TRY(check_sizes(c, e));
    int64_t slots = longest(c, false).length / width_of(c); /* the most that any example has, shortened ones too */
    size_t bytes = (size_t)slots * sizeof *c->weight;
    double *weight = arena_alloc(host, bytes), sum = 0;
    if (!weight) return fail(e, ST_MEMORY, "mqar: no room for the %zu bytes of the slots' weights", bytes);
    for (int64_t g = 0; g < slots; g++) weight[g] = sum += pow((double)g + 1, c->power - 1);
    c->weight = weight;
    c->mad.seed = seed;
    return ST_OK;
}

/* A part in at most that many positions (0: its own), with as large a share of its pairs. */
static struct part shortened(const struct mqar *c, struct part p, int64_t most) {
    if (most == 0 || most >= p.length) return p;
    struct part q = {most / width_of(c) * width_of(c), p.pairs * most / p.length, p.examples};
    if (c->keys == KEYS_PAIRS) q.pairs = root_of(q.pairs) * root_of(q.pairs);
    return q;
}

/* The floor. The trivial answer is any of the values shown; with keys of two ids, any of those that share the first id.
 * In zoology's test most questions belong to the longest strings, and the floor is the mean over questions: seven of
 * 508 values. */
static void mqar_shape(const void *inst, struct task_shape *out) {
    const struct mqar *c = inst;
    int64_t values = c->mad.vocab - (width_of(c) - 1) * (c->mad.vocab / width_of(c));
    mad_shape(&c->mad, longest(c, true).length, values, out);
    out->vocab_in = out->vocab_out = c->mad.vocab;
    out->floor = 1.0 / (double)(c->keys == KEYS_PAIRS ? root_of(c->pairs) : c->pairs);
    if (c->mix == MIX_ZOOLOGY) {
        out->T_eval = longest(c, false).length;
        out->unequal_test = true;
        out->floor = 7.0 / 508;
    }
    out->solved = 0.99;
    out->metric = METRIC_ACC;
    struct part sparsest = c->mix == MIX_ZOOLOGY ? zoology_training[0] : longest(c, true);
    out->curriculum = (struct length_range){shortest(sparsest), out->T};
}

/* The i-th of the distinct ids of a kind (0 keys, 1 values, 2 second ids of keys) in an example, by a bijection keyed
 * by the example, so earlier draws need not be stored. Permutations have random numbers of their own, apart from
 * mad_rng. */
static int32_t draw_distinct(const struct mqar *c, enum split split, int64_t index, uint64_t which, int64_t i) {
    int64_t parts = width_of(c), part = c->mad.vocab / parts;
    int64_t first = which == 0 ? 1 : which == 1 ? (parts - 1) * part : part;
    int64_t count = which == 0 ? part - 1 : which == 1 ? c->mad.vocab - first : part;
    uint64_t example = ((uint64_t)index << 1 | (which & 1)) | (uint64_t)split << 60 | (which >> 1) << 59;
    uint64_t seed = split == SPLIT_TRAIN ? c->mad.seed : 0;
    return (int32_t)first + (int32_t)permute_index(seed, STREAM_DATA, example, (uint64_t)i, (uint64_t)count);
}

/* The first g at which the summed weights exceed a uniform share of all. */
static int32_t draw_slot(const struct mqar *c, int64_t slots, struct rng *r) {
    double share = rng_uniform(r) * c->weight[slots - 1];
    int32_t low = 0, high = (int32_t)slots - 1;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (c->weight[middle] > share)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Gives length and number of pairs of an example; the parts of a mixture follow each other in the order of the
 * index. */
static struct part part_of(const struct mqar *c, enum split split, int64_t index) {
    if (c->mix == MIX_NONE) return longest(c, true);
    bool training = split == SPLIT_TRAIN;
    int64_t examples = training ? c->mad.n_train : split == SPLIT_VAL ? c->mad.n_val : c->mad.n_test;
    double place = (double)index / (double)examples * (training ? 180 : 7);
    const struct part *p = training ? zoology_training : zoology_test, *last = p + (training ? 4 : 6);
    for (; p < last && place >= (double)p->examples; p++) place -= (double)p->examples;
    return *p;
}

/* The longest length that an example may have (0: its own). Mixed lengths are whole slots, or all positions. */
static int64_t draw_most(const struct mqar *c, enum split split, int64_t most, struct rng *r) {
    int64_t all = most ? most : c->mad.length, width = width_of(c), slots = all / width;
    if (split != SPLIT_TRAIN || c->min_length == 0 || c->min_length >= all) return most;
    int64_t least = (c->min_length + width - 1) / width, drawn = least < slots ? draw_length(r, least, slots) : slots;
    return drawn == slots ? all : drawn * width;
}

static void mqar_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct mqar *c = inst;
    struct rng r = mad_rng(&c->mad, split, index);
    struct part part = shortened(c, part_of(c, split, index), draw_most(c, split, x->most, &r));
    int64_t width = width_of(c), updates = updates_of(c, part), context = width * (part.pairs + updates),
            root = root_of(part.pairs);
    int64_t slots = slots_of(c, part), T = longest(c, split == SPLIT_TRAIN).length;
    uint64_t order = c->keys == KEYS_PAIRS || updates ? rng_u64(&r) : 0;
    for (int64_t t = context; t < part.length; t++)
        x->tokens[t] = c->filler == FILLER_RANDOM ? mad_draw(&r, 0, (int32_t)c->mad.vocab) : 0;
    for (int64_t i = 0; i < part.pairs; i++) {
        int64_t at, place = i, key = i, last = width - 1; /* of the value in an entry */
        if (c->keys == KEYS_PAIRS) {
            place = (int64_t)permute_index(order, STREAM_DATA, 0, (uint64_t)i, (uint64_t)part.pairs);
            key = i / root;
        }
        int32_t *entry = x->tokens + width * place, value = draw_distinct(c, split, index, 1, i);
        entry[0] = draw_distinct(c, split, index, 0, key);
        if (c->keys == KEYS_PAIRS) entry[1] = draw_distinct(c, split, index, 2, i % root);
        entry[last] = value;
        int64_t update = updates ? (int64_t)permute_index(order, STREAM_DATA, 0, (uint64_t)i, (uint64_t)part.pairs) : 0;
        if (update < updates) {
            int32_t *again = x->tokens + width * (part.pairs + update);
            again[0] = entry[0];
            again[last] = value = draw_distinct(c, split, index, 1, part.pairs + i);
        }
        do at = context + width * draw_slot(c, slots, &r);
        while (x->targets[at + last - 1] != IGNORED); /* taken */
        for (int64_t k = 0; k < last; k++) x->tokens[at + k] = entry[k];
        x->targets[at + last - 1] = value;
    }
    for (int64_t t = part.length; t < T; t++) x->tokens[t] = 0;
    x->length = (int32_t)part.length;
}

_Static_assert(4 * MAX_PAIRS == MAD_MAX_LENGTH, "longer strings hold more pairs");
_Static_assert(sizeof(struct mqar) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_mqar = {
    .name = "mqar",
    .summary = "pairs first, then the keys again, each asking for its value (Arora et al. 2024)",
    .suite = "mqar",
    .about = "Zoology's figures train one length at a time (mqar-64 .. mqar-512). mqar-mixed is the later protocol: "
             "100k strings\n"
             "of 64 tokens with 4 pairs and 20k each of 128:8, 256:16, 256:32, 256:64; tested on 1k each of 64:4, "
             "64:8, 64:16,\n"
             "128:32, 256:64, 512:128, 1024:256. Chance is one in the values, the trivial answer one of those shown.\n"
             "Arora et al. 2024 (arXiv 2312.04927): attention solves every length at any width; gated convolutions "
             "need a width\n"
             "that grows with the length.",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct mqar),
    .aliases = aliases,
    .open = mqar_open,
    .shape = mqar_shape,
    .fill = mqar_fill,
};

/* mqar.c - multi-query associative recall: K pairs first, then the K keys again, each where its value is the target.
 *
 *   x = k_1 v_1 .. k_K v_K, then (L-2K)/2 slots of two ids: k_i at the start of slot g_i;  y there = v_i
 *
 * Arora et al. 2024, "Zoology" (HazyResearch/zoology). Slots differ, drawn one after the other with weights
 * (g+1)^(power-1), so most keys come back soon. The value stands at the key's own position and never in the inputs
 * after it. Ids: 0 filler, keys 1..V/2-1, values from V/2. */
#include <math.h>

#include "tasks/mad/mad.h"

#define MAX_PAIRS 4096 /* a quarter of MAD_MAX_LENGTH */

enum filler { FILLER_RANDOM, FILLER_ZERO };

struct mqar {
    struct mad mad;
    int64_t pairs; /* K */
    double power;
    int filler;

    /* made by open */
    int32_t slots;
    const double *weight; /* (slots) sum of the weights up to and with each */
};

static const struct option options[] = {
    MAD_OPTIONS(struct mqar, "8192", "64", "100000", "3000"),
    TEST_LENGTH_OPTION(struct mqar, mad.test_length),
    {"pairs", OPT_INT, offsetof(struct mqar, pairs), "4", 2, MAX_PAIRS, NULL, "keys shown and asked for", OPT_AXIS},
    {"power", OPT_REAL, offsetof(struct mqar, power), "0.01", 0, 1, NULL,
     "exponent of the slots' weights plus 1; 1 = all alike", 0},
    {"filler", OPT_CHOICE, offsetof(struct mqar, filler), "random", 0, 0, "random zero",
     "between the questions: any id, or 0", 0},
    {0},
};

static const struct task_alias aliases[] = {
    {"mqar-64", "length=64,pairs=4,filler=zero", "64 tokens, 4 pairs; a point of the paper's figure"},
    {"mqar-128", "length=128,pairs=8,filler=zero", "128 tokens, 8 pairs"},
    {"mqar-256", "length=256,pairs=16,filler=zero", "256 tokens, 16 pairs"},
    {"mqar-512", "length=512,pairs=64,filler=zero", "512 tokens, 64 pairs"},
    {NULL, NULL, NULL},
};

static enum status check_sizes(const struct mqar *c, struct error *e) {
    long long L = c->mad.length, K = c->pairs, V = c->mad.vocab;
    if (L % 2) return fail(e, ST_USAGE, "mqar: length=%lld is not made of whole slots of two ids; it must be even", L);
    if (4 * K > L)
        return fail(e, ST_USAGE,
                    "mqar: length=%lld cannot hold pairs=%lld pairs and a slot for each key; it must be at least "
                    "4 * pairs = %lld",
                    L, K, 4 * K);
    if (V <= L) return fail(e, ST_USAGE, "mqar: vocab=%lld must exceed length=%lld; raise vocab or lower length", V, L);
    return ST_OK;
}

static enum status mqar_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct mqar *c = inst;
    TRY(check_sizes(c, e));
    c->slots = (int32_t)(c->mad.length / 2 - c->pairs);
    size_t bytes = (size_t)c->slots * sizeof *c->weight;
    double *weight = arena_alloc(host, bytes), sum = 0;
    if (!weight) return fail(e, ST_MEMORY, "mqar: no room for the %zu bytes of the slots' weights", bytes);
    for (int32_t g = 0; g < c->slots; g++) weight[g] = sum += pow(g + 1, c->power - 1);
    c->weight = weight;
    c->mad.seed = seed;
    return ST_OK;
}

/* The trivial answer is any of the K values shown. */
static void mqar_shape(const void *inst, struct task_shape *out) {
    const struct mqar *c = inst;
    mad_shape(&c->mad, c->mad.length, c->mad.vocab - c->mad.vocab / 2, out);
    out->floor = 1.0 / (double)c->pairs;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

/* Number i of the distinct keys (which = 0) or values (which = 1) of an example: a bijection keyed by the example, so
 * nothing drawn before needs to be remembered. Not the random numbers of mad_rng: permutations have their own. */
static int32_t draw_distinct(const struct mqar *c, enum split split, int64_t index, uint64_t which, int64_t i) {
    int64_t half = c->mad.vocab / 2, first = which ? half : 1, count = which ? c->mad.vocab - half : half - 1;
    uint64_t example = ((uint64_t)index << 1 | which) | (uint64_t)split << 60;
    uint64_t seed = split == SPLIT_TRAIN ? c->mad.seed : 0;
    return (int32_t)first + (int32_t)permute_index(seed, STREAM_DATA, example, (uint64_t)i, (uint64_t)count);
}

/* First g whose weights sum to more than a uniform share of all. */
static int32_t draw_slot(const struct mqar *c, struct rng *r) {
    double share = rng_uniform(r) * c->weight[c->slots - 1];
    int32_t low = 0, high = c->slots - 1;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (c->weight[middle] > share)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void mqar_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct mqar *c = inst;
    struct rng r = mad_rng(&c->mad, split, index);
    int64_t context = 2 * c->pairs;
    for (int64_t t = context; t < c->mad.length; t++)
        x->tokens[t] = c->filler == FILLER_RANDOM ? mad_draw(&r, 0, (int32_t)c->mad.vocab) : 0;
    for (int64_t i = 0; i < c->pairs; i++) {
        int32_t key = draw_distinct(c, split, index, 0, i), value = draw_distinct(c, split, index, 1, i);
        int64_t at;
        do at = context + 2 * draw_slot(c, &r);
        while (x->targets[at] != IGNORED); /* taken */
        x->tokens[2 * i] = x->tokens[at] = key;
        x->tokens[2 * i + 1] = x->targets[at] = value;
    }
    x->length = (int32_t)c->mad.length;
}

_Static_assert(4 * MAX_PAIRS == MAD_MAX_LENGTH, "longer strings hold more pairs");
_Static_assert(sizeof(struct mqar) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_mqar = {
    .name = "mqar",
    .summary = "pairs first, then the keys again, each asking for its value (Arora et al. 2024)",
    .suite = "mqar",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct mqar),
    .aliases = aliases,
    .open = mqar_open,
    .shape = mqar_shape,
    .fill = mqar_fill,
};

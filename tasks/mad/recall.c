/* recall.c - in-context recall: a key shown again asks for the value that followed it before; noisy recall has
 * distractors between the pairs.
 *
 *   x = k v k' v' ..;  y at a key shown before = its value
 *
 * MAD (Poli et al. 2024). The map from keys to values is new in every string; values may coincide. In training every
 * next token is a target, also first values, keys and noise, so much of that loss cannot be learnt. Ids: mad.h; a
 * single query has the marker V-1 before it. */
#include <string.h>

#include "tasks/mad/mad.h"

struct recall {
    struct mad mad;
    struct mad_noise noise;
    int query;
    struct mad_ids ids; /* made by open */
};

static const struct option options[] = {
    MAD_OPTIONS(struct recall, "16", "128", "12800", "1280"),
    MAD_QUERY_OPTION(struct recall),
    MAD_NOISE_OPTIONS(struct recall, "probability that two noise tokens stand in place of a pair"),
    {0},
};

static const struct task_alias aliases[] = {
    {"noisy-recall", "vocab=32,noise_vocab=16,noise=0.2", "in-context recall with noise between the pairs"},
    {"hlru-recall", "length=64,n_train=20k", "in-context recall, base setting of the BD-LRU/H-LRU paper"},
    {NULL, NULL, NULL},
};

static enum status recall_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct recall *c = inst;
    (void)host;
    TRY(mad_check_noise("in-context-recall", &c->noise, e));
    TRY(mad_deal_ids("in-context-recall", &c->mad, c->noise.vocab, c->query == QUERY_SINGLE, 2, 2, &c->ids, e));
    if (c->mad.length % 2 || c->mad.length < 4)
        return fail(e, ST_USAGE,
                    "in-context-recall: length=%lld is not made of whole pairs, at least two; it must be even and at "
                    "least 4",
                    (long long)c->mad.length);
    c->mad.seed = seed;
    return ST_OK;
}

/* Counts inputs: L ids, with a single query also the marker, less one for the shift. */
static int64_t input_length(const struct recall *c) {
    return c->mad.length - (c->query == QUERY_MULTI);
}

static void recall_shape(const void *inst, struct task_shape *out) {
    const struct recall *c = inst;
    mad_shape(&c->mad, input_length(c), c->ids.values, out);
}

/* The map of one string. */
struct pairs {
    uint16_t value[MAD_MAX_VOCAB / 2]; /* value of each key; 0, itself a key, for one not shown */
    uint16_t shown[MAD_MAX_VOCAB / 2]; /* keys in the order of their first use */
    int32_t n_shown;
};

static void put_pair(const struct recall *c, struct mad_string *s, struct pairs *p, struct rng *r) {
    int32_t key = mad_draw(r, 0, c->ids.keys);
    bool known = p->value[key] != 0;
    if (!known) {
        p->value[key] = (uint16_t)mad_draw(r, c->ids.keys, c->ids.values);
        p->shown[p->n_shown++] = (uint16_t)key;
    }
    mad_put(s, key, false);
    mad_put(s, p->value[key], known && c->query == QUERY_MULTI);
}

static void put_noise(const struct recall *c, struct mad_string *s, struct rng *r) {
    for (int i = 0; i < 2; i++) mad_put(s, mad_draw(r, c->ids.keys + c->ids.values, c->ids.noise), false);
}

static void recall_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct recall *c = inst;
    struct rng r = mad_rng(&c->mad, split, index);
    struct mad_string s = {x, (int32_t)input_length(c), 0, split == SPLIT_TRAIN};
    struct pairs p;
    int32_t slots = (int32_t)c->mad.length / 2, protected = mad_draw(&r, 0, slots);
    memset(p.value, 0, (size_t)c->ids.keys * sizeof *p.value);
    p.n_shown = 0;
    for (int32_t slot = 0; slot < slots - 1; slot++) {
        /* MAD protects one slot from noise, but that may be the final one, which needs a key to ask for. */
        bool needed = slot == protected || (slot == slots - 2 && p.n_shown == 0);
        if (!needed && mad_is_noise(&c->noise, &r))
            put_noise(c, &s, &r);
        else
            put_pair(c, &s, &p, &r);
    }
    int32_t key = p.shown[mad_draw(&r, 0, p.n_shown)];
    if (c->query == QUERY_SINGLE) mad_put(&s, (int32_t)c->mad.vocab - 1, false);
    mad_put(&s, key, false);
    mad_put(&s, p.value[key], true);
    x->length = s.T;
}

_Static_assert(sizeof(struct recall) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_recall = {
    .name = "in-context-recall",
    .summary = "a key shown again asks for its value; associative lookup (MAD, Poli et al. 2024)",
    .suite = "mad",
    .about = MAD_ABOUT("vocab 32, 64, 128; length 256, 512, 1024; n_train 6400, 3200, 1600, 800; for\n"
                       "noisy-recall vocab 48, 80, 144 and noise .4, .6, .8",
                       "In training every token is a target, in tests only values of keys that were shown\n"
                       "before. Chance is one in the values." HLRU_ABOUT),
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct recall),
    .aliases = aliases,
    .open = recall_open,
    .shape = recall_shape,
    .fill = recall_fill,
};

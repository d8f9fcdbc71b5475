/* fuzzy_recall.c - in-context recall where keys and values are motifs of several ids.
 *
 *   x = pad .. pad K V K' V' ..;  y_t = x_{t+1} where x_{t+1} belongs to the value of a key shown before
 *
 * MAD (Poli et al. 2024). A motif is an ordered tuple of distinct ids. The map from keys to values is new in every
 * string. In training, keys have 1 to key_motif ids and every next token is a target, pads included; elsewhere all keys
 * have key_motif ids. The pair that ends the string is also put in earlier, at a random place; in 2.44 % of test
 * strings (L=128) the string ends before that place, and the last answer is a guess. Ids: mad.h; the last ones are the
 * pad and, with a single query, after it the marker. */
#include <string.h>

#include "tasks/mad/mad.h"

#define MAX_MOTIF 8

struct fuzzy {
    struct mad mad;
    struct mad_noise noise;
    int query;
    int64_t key_motif, value_motif; /* most ids of a key, of a value */
    struct mad_ids ids;             /* made by open */
};

static const struct option options[] = {
    MAD_OPTIONS(struct fuzzy, "16", "128", "12800", "1280"),
    {"key_motif", OPT_INT, offsetof(struct fuzzy, key_motif), "3", 1, MAX_MOTIF, NULL, "most ids of a key", OPT_AXIS},
    {"value_motif", OPT_INT, offsetof(struct fuzzy, value_motif), "3", 1, MAX_MOTIF, NULL, "most ids of a value",
     OPT_AXIS},
    MAD_QUERY_OPTION(struct fuzzy),
    MAD_NOISE_OPTIONS(struct fuzzy, "probability that noise of the same size stands in place of a pair"),
    {0},
};

static enum status fuzzy_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct fuzzy *c = inst;
    int64_t special = c->query == QUERY_SINGLE ? 2 : 1, longest = c->key_motif + c->value_motif;
    int64_t min_keys = c->key_motif > 2 ? c->key_motif : 2, min_values = c->value_motif > 2 ? c->value_motif : 2;
    (void)host;
    TRY(mad_check_noise("fuzzy-recall", &c->noise, e));
    TRY(mad_deal_ids("fuzzy-recall", &c->mad, c->noise.vocab, special, min_keys, min_values, &c->ids, e));
    if (c->mad.length <= 2 * longest)
        return fail(e, ST_USAGE,
                    "fuzzy-recall: length=%lld cannot show the longest pair twice; it must exceed 2 * (key_motif=%lld "
                    "+ value_motif=%lld) = %lld",
                    (long long)c->mad.length, (long long)c->key_motif, (long long)c->value_motif,
                    (long long)(2 * longest));
    c->mad.seed = seed;
    return ST_OK;
}

static void fuzzy_shape(const void *inst, struct task_shape *out) {
    const struct fuzzy *c = inst;
    mad_shape(&c->mad, c->mad.length, c->ids.values, out);
}

/* --- motifs ------------------------------------------------------------------------------------------------------- */

struct motif {
    int32_t id[MAX_MOTIF], size;
};

/* Draws an ordered tuple of `size` distinct ids out of `count`, uniformly. */
static struct motif draw_motif(struct rng *r, int32_t first, int32_t count, int32_t size) {
    struct motif m = {{0}, size};
    for (int32_t i = 0; i < size; i++) {
        bool taken;
        do {
            m.id[i] = mad_draw(r, first, count);
            taken = false;
            for (int32_t j = 0; j < i; j++) taken = taken || m.id[j] == m.id[i];
        } while (taken);
    }
    return m;
}

static bool same_motif(const struct motif *m, const int32_t *ids, int32_t size) {
    return m->size == size && memcmp(m->id, ids, (size_t)size * sizeof *ids) == 0;
}

/* --- the map of one string ---------------------------------------------------------------------------------------- */

/* A pair that has been shown; the string itself holds its ids. */
struct shown {
    uint16_t at; /* place of its key; the value follows */
    uint8_t key_size, value_size;
};

/* A string that is being written, and its keys in an open hash table of L slots; a pair has at least two ids, so half
 * the slots stay free. */
struct writer {
    const struct fuzzy *task;
    struct mad_string s;
    struct shown table[MAD_MAX_LENGTH]; /* the first L; key_size 0 = free */
};

/* Returns the slot of the key, or the free one where it belongs. */
static struct shown *find_key(struct writer *w, const struct motif *key) {
    uint32_t hash = (uint32_t)key->size, L = (uint32_t)w->task->mad.length;
    for (int32_t i = 0; i < key->size; i++) hash = (hash ^ (uint32_t)key->id[i]) * 0x9E3779B1u;
    uint32_t slot = (uint32_t)((uint64_t)hash * L >> 32);
    while (w->table[slot].key_size && !same_motif(key, w->s.x->tokens + w->table[slot].at, w->table[slot].key_size))
        slot = slot + 1 < L ? slot + 1 : 0;
    return &w->table[slot];
}

static void put_motif(struct writer *w, const struct motif *m, bool answer) {
    for (int32_t i = 0; i < m->size; i++) mad_put(&w->s, m->id[i], answer);
}

/* Appends the key and its value; *value if the key is new. */
static void put_pair(struct writer *w, const struct motif *key, const struct motif *value) {
    struct shown *known = find_key(w, key);
    struct motif answer = *value;
    bool asked = known->key_size > 0 && w->task->query == QUERY_MULTI;
    if (known->key_size > 0) {
        answer.size = known->value_size;
        memcpy(answer.id, w->s.x->tokens + known->at + known->key_size, known->value_size * sizeof *answer.id);
    } else {
        *known = (struct shown){(uint16_t)w->s.n, (uint8_t)key->size, (uint8_t)value->size};
    }
    put_motif(w, key, false);
    put_motif(w, &answer, asked);
}

/* --- examples ----------------------------------------------------------------------------------------------------- */

static struct motif draw_key(const struct writer *w, struct rng *r) {
    int32_t longest = (int32_t)w->task->key_motif;
    return draw_motif(r, 0, w->task->ids.keys, w->s.training ? mad_draw(r, 1, longest) : longest);
}

static struct motif draw_value(const struct writer *w, struct rng *r) {
    const struct mad_ids *ids = &w->task->ids;
    return draw_motif(r, ids->keys, ids->values, mad_draw(r, 1, (int32_t)w->task->value_motif));
}

static void put_noise(struct writer *w, int32_t size, struct rng *r) {
    const struct mad_ids *ids = &w->task->ids;
    for (int32_t i = 0; i < size; i++) mad_put(&w->s, mad_draw(r, ids->keys + ids->values, ids->noise), false);
}

/* Writes the string without its final pair: at most L - size ids, when that pair has `size`. */
static void put_pairs(struct writer *w, const struct motif *probe_key, const struct motif *probe_value, struct rng *r) {
    const struct fuzzy *c = w->task;
    int32_t L = (int32_t)c->mad.length, size = probe_key->size + probe_value->size;
    int32_t place = mad_draw(r, 0, L - 2 * size), end = L - size - (int32_t)(c->key_motif + c->value_motif);
    bool placed = false;
    while (w->s.n < end) {
        if (!placed && w->s.n >= place) {
            put_pair(w, probe_key, probe_value);
            placed = true;
            continue;
        }
        struct motif key = draw_key(w, r), value = draw_value(w, r);
        if (mad_is_noise(&c->noise, r)) {
            put_noise(w, key.size + value.size, r);
            continue;
        }
        bool probe = same_motif(probe_key, key.id, key.size);
        put_pair(w, &key, probe ? probe_value : &value);
        placed = placed || probe;
    }
}

/* Moves the string to the end of its L + 1 places, the last of which is a target only; pads fill the front. */
static void pad_left(struct writer *w) {
    int32_t *tokens = w->s.x->tokens, *targets = w->s.x->targets, T = w->s.T, pads = T + 1 - w->s.n;
    int32_t pad = (int32_t)w->task->mad.vocab - (w->task->query == QUERY_SINGLE ? 2 : 1), first = tokens[0];
    memmove(tokens + pads, tokens, (size_t)(T - pads) * sizeof *tokens);
    memmove(targets + pads, targets, (size_t)(T - pads) * sizeof *targets);
    for (int32_t t = 0; t < pads; t++) {
        tokens[t] = pad;
        targets[t] = w->s.training ? pad : IGNORED;
    }
    if (w->s.training) targets[pads - 1] = first;
}

static void fuzzy_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    struct writer w;
    struct rng r;
    w.task = inst;
    w.s = (struct mad_string){x, (int32_t)w.task->mad.length, 0, split == SPLIT_TRAIN};
    r = mad_rng(&w.task->mad, split, index);
    memset(w.table, 0, (size_t)w.task->mad.length * sizeof *w.table);
    struct motif key = draw_key(&w, &r), value = draw_value(&w, &r);
    put_pairs(&w, &key, &value, &r);
    if (w.task->query == QUERY_SINGLE) mad_put(&w.s, (int32_t)w.task->mad.vocab - 1, false);
    put_motif(&w, &key, false);
    put_motif(&w, &value, true);
    pad_left(&w);
    x->length = w.s.T;
}

_Static_assert(sizeof(struct fuzzy) <= TASK_INST_BYTES, "the instance must fit its slot");
_Static_assert(MAD_MAX_LENGTH <= UINT16_MAX, "struct shown holds positions");

const struct task task_fuzzy_recall = {
    .name = "fuzzy-recall",
    .summary = "in-context recall of keys and values of several tokens each (MAD, Poli et al. 2024)",
    .suite = "mad",
    .about = MAD_ABOUT("vocab 32, 64, 128; length 256, 512, 1024; n_train 6400, 3200, 1600, 800",
                       "Test keys have all of key_motif tokens. Chance is one in the values. In 2.6 % of the\n"
                       "test strings of 128 tokens the key at the end was not shown before, so its value\n"
                       "cannot be known."),
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct fuzzy),
    .open = fuzzy_open,
    .shape = fuzzy_shape,
    .fill = fuzzy_fill,
};

/* memorization.c - values of keys under a fixed map that no input shows: facts go into the parameters.
 *
 *   x = k m k' m ..;  y at a marker m = map[key before it]
 *
 * MAD (Poli et al. 2024). The map is an injection, the same in every split and for every seed. Ids: keys 0.., values
 * after them (one or more stays unused), the marker m = V-1. */
#include "tasks/mad/mad.h"

#define MAP_SEED 12345 /* MAD's value */

struct memorization {
    struct mad mad;
    struct mad_ids ids; /* made by open */
    const int32_t *map; /* (keys) value of each */
};

static const struct option options[] = {
    MAD_OPTIONS(struct memorization, "256", "32", "256", "1280"),
    {0},
};

static enum status memorization_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct memorization *c = inst;
    TRY(mad_deal_ids("memorization", &c->mad, 0, 1, 2, 2, &c->ids, e));
    if (c->mad.length % 2)
        return fail(e, ST_USAGE, "memorization: length=%lld is not made of whole pairs; it must be even",
                    (long long)c->mad.length);
    size_t bytes = (size_t)c->ids.keys * sizeof *c->map;
    int32_t *map = arena_alloc(host, bytes);
    if (!map) return fail(e, ST_MEMORY, "memorization: no room for the %zu bytes of the map", bytes);
    for (int32_t k = 0; k < c->ids.keys; k++) {
        uint64_t place =
            permute_index(MAP_SEED, STREAM_TABLE, (uint64_t)c->mad.vocab, (uint64_t)k, (uint64_t)c->ids.values);
        map[k] = c->ids.keys + (int32_t)place;
    }
    c->map = map;
    c->mad.seed = seed;
    return ST_OK;
}

/* The floor: the best constant answer is a value that the map uses. */
static void memorization_shape(const void *inst, struct task_shape *out) {
    const struct memorization *c = inst;
    mad_shape(&c->mad, c->mad.length, c->ids.values, out);
    out->floor = 1.0 / c->ids.keys;
}

static void memorization_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct memorization *c = inst;
    struct rng r = mad_rng(&c->mad, split, index);
    for (int64_t t = 0; t < c->mad.length; t += 2) {
        x->tokens[t] = mad_draw(&r, 0, c->ids.keys);
        x->tokens[t + 1] = (int32_t)c->mad.vocab - 1;
        x->targets[t + 1] = c->map[x->tokens[t]];
    }
    x->length = (int32_t)c->mad.length;
}

_Static_assert(sizeof(struct memorization) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_memorization = {
    .name = "memorization",
    .summary = "values of keys under a fixed map that no input shows (MAD, Poli et al. 2024)",
    .suite = "mad",
    .about = MAD_ABOUT("vocab 512, 1024, 2048, 4096, 8192",
                       "Training has 256 strings, and all splits use one map from keys to values. Chance is one\n"
                       "in the values. Pairs do not depend on each other: test_length= asks whether the mixer\n"
                       "stays stable."),
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct memorization),
    .open = memorization_open,
    .shape = memorization_shape,
    .fill = memorization_fill,
};

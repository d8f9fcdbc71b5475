/* compression.c - store a random string in one vector.
 *
 *   x = c_0 .. c_{L-2} m,  c_t uniform;  y_t = x_t for every t, decoded from the vector at m alone
 *
 * MAD (Poli et al. 2024). The target is the input itself, marker and noise included. The auto-encoder backbone makes
 * this a task: all is decoded from one vector. Ids: content from 0, then noise, the marker m = V-1. */
#include "tasks/mad/mad.h"

struct compression {
    struct mad mad;
    struct mad_noise noise;
    int32_t content; /* ids of content, made by open */
};

static const struct option options[] = {
    MAD_OPTIONS(struct compression, "16", "32", "12800", "1280"),
    MAD_NOISE_OPTIONS(struct compression, "probability that a content token becomes noise"),
    {0},
};

static const struct task_alias aliases[] = {
    {"hlru-compress", "length=64,n_train=20k", "compression, base setting of the BD-LRU/H-LRU paper"},
    {NULL, NULL, NULL},
};

static enum status compression_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct compression *c = inst;
    int64_t content = c->mad.vocab - c->noise.vocab - 1;
    (void)host;
    TRY(mad_check_noise("compression", &c->noise, e));
    if (content < 2)
        return fail(e, ST_USAGE,
                    "compression: vocab=%lld less noise_vocab=%lld and the marker leaves %lld content ids, but at "
                    "least 2 are needed; raise vocab or lower noise_vocab",
                    (long long)c->mad.vocab, (long long)c->noise.vocab, (long long)(content > 0 ? content : 0));
    c->content = (int32_t)content;
    c->mad.seed = seed;
    return ST_OK;
}

/* Accuracy of a constant answer: its own class and, at the last position, the marker's, so 2 of the classes that
 * occur. */
static void compression_shape(const void *inst, struct task_shape *out) {
    const struct compression *c = inst;
    mad_shape(&c->mad, c->mad.length, c->mad.vocab, out);
    out->chance = out->floor = 2.0 / (double)(c->mad.vocab - (c->noise.share > 0 ? 0 : c->noise.vocab));
    out->reading.one_vector = true;
    out->needs_causal = false;
}

static void compression_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct compression *c = inst;
    struct rng r = mad_rng(&c->mad, split, index);
    int64_t last = c->mad.length - 1;
    for (int64_t t = 0; t < last; t++) {
        bool noise = mad_is_noise(&c->noise, &r);
        x->tokens[t] = noise ? mad_draw(&r, c->content, (int32_t)c->noise.vocab) : mad_draw(&r, 0, c->content);
        x->targets[t] = x->tokens[t];
    }
    x->tokens[last] = x->targets[last] = (int32_t)c->mad.vocab - 1;
    x->length = (int32_t)c->mad.length;
}

_Static_assert(sizeof(struct compression) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_compression = {
    .name = "compression",
    .summary = "store a random string in one vector; memory capacity (MAD, Poli et al. 2024)",
    .suite = "mad",
    .about = MAD_ABOUT("vocab 32, 64, 128; length 64, 128, 256; n_train 6400, 3200, 1600, 800",
                       "Chance is a constant answer: right for its own class, and for the marker at the end.\n"
                       "In tests at other lengths more or fewer tokens are decoded from one vector; positions\n"
                       "past the training length are not learnt." HLRU_ABOUT),
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct compression),
    .aliases = aliases,
    .open = compression_open,
    .shape = compression_shape,
    .fill = compression_fill,
};

/* copying.c - selective copying: content in order, blanks between it skipped.
 *
 *   x = c_0 .. c_{K-1} with L-2K-1 blanks strewn in, marker, K blanks;  y_{L-K+j} = c_j
 *
 * MAD (Poli et al. 2024). Each blank stands before a content token chosen uniformly, so the last content token touches
 * the marker. Ids: content 0..V-3, blank V-2, marker V-1. */
#include "tasks/mad/mad.h"

struct copying {
    struct mad mad;
    int64_t copy; /* K */
};

static const struct option options[] = {
    MAD_OPTIONS(struct copying, "16", "256", "12800", "1280"),
    {"copy", OPT_INT, offsetof(struct copying, copy), "16", 1, MAD_MAX_LENGTH, NULL, "tokens to copy", OPT_AXIS},
    {0},
};

static const struct task_alias aliases[] = {
    {"hlru-copy", "length=64,n_train=20k", "selective copying, base setting of the BD-LRU/H-LRU paper"},
    {NULL, NULL, NULL},
};

static enum status copying_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct copying *c = inst;
    (void)host;
    if (c->mad.length <= 2 * c->copy + 1)
        return fail(e, ST_USAGE,
                    "selective-copying: length=%lld cannot hold copy=%lld tokens, the marker and their copies with "
                    "blanks; it must exceed 2 * copy + 1 = %lld",
                    (long long)c->mad.length, (long long)c->copy, (long long)(2 * c->copy + 1));
    c->mad.seed = seed;
    return ST_OK;
}

static void copying_shape(const void *inst, struct task_shape *out) {
    const struct copying *c = inst;
    mad_shape(&c->mad, c->mad.length, c->mad.vocab - 2, out);
}

static void copying_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct copying *c = inst;
    struct rng r = mad_rng(&c->mad, split, index);
    int32_t L = (int32_t)c->mad.length, K = (int32_t)c->copy, content = (int32_t)c->mad.vocab - 2, t = 0;
    /* The last K inputs first count the blanks before each content token. */
    int32_t *blanks = x->tokens + L - K;
    for (int32_t j = 0; j < K; j++) blanks[j] = 0;
    for (int32_t b = 0; b < L - 2 * K - 1; b++) blanks[mad_draw(&r, 0, K)]++;
    for (int32_t j = 0; j < K; j++) {
        for (int32_t b = 0; b < blanks[j]; b++) x->tokens[t++] = content;
        x->tokens[t++] = x->targets[L - K + j] = mad_draw(&r, 0, content);
    }
    x->tokens[t] = content + 1;
    for (int32_t j = 0; j < K; j++) blanks[j] = content;
    x->length = L;
}

_Static_assert(sizeof(struct copying) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_copying = {
    .name = "selective-copying",
    .summary = "repeat the content of a string in order, without its blanks (MAD, Poli et al. 2024)",
    .suite = "mad",
    .about = MAD_ABOUT("vocab 32, 64, 128; length 512, 1024; copy 32, 64, 96; n_train 6400, 3200, 1600, 800",
                       "Only the copied tokens are scored. Chance is one in the content tokens." HLRU_ABOUT),
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct copying),
    .aliases = aliases,
    .open = copying_open,
    .shape = copying_shape,
    .fill = copying_fill,
};

/* lra_retrieval.c - the Long Range Arena's retrieval task: does one paper cite the other? Characters of pairs of papers
 * of the ACL anthology (spec/tasks.md 5b): the first length - 1 characters of each and an end mark, all characters of
 * the training texts. The files come from `lrnn data import aan`. */
#include <string.h>

#include "tasks/data/characters.h"
#include "tasks/data/file_records.h"
#include "tasks/task.h"

struct lra_retrieval {
    int64_t length, least;
    int level;
    struct file_records from;
    struct characters characters;
};

static const struct option options[] = {
    {"length", OPT_INT, offsetof(struct lra_retrieval, length), "4000", 2, 1 << 20, NULL,
     "characters of a paper at most, the end mark among them", OPT_AXIS},
    {"level", OPT_CHOICE, offsetof(struct lra_retrieval, level), "character", 0, 0, TEXT_LEVELS,
     "what an id is: a character, or a byte as in the Long Range Arena's own code", 0},
    {"least", OPT_INT, offsetof(struct lra_retrieval, least), "1", 1, 1e9, NULL,
     "how often a character has to be in the training texts", 0},
    FILE_RECORDS_OPTIONS(struct lra_retrieval, from),
    {NULL, OPT_INT, 0, NULL, 0, 0, NULL, NULL, 0},
};

/* Bytes of text 0 or 1 of a pair, and where it begins. */
static int64_t text_bytes(const struct record *r, int which) {
    const uint8_t *at = r->bytes + 4 * which;
    return (int64_t)at[0] | (int64_t)at[1] << 8 | (int64_t)at[2] << 16 | (int64_t)at[3] << 24;
}

static const uint8_t *text_at(const struct record *r, int which) {
    return r->bytes + 8 + (which ? text_bytes(r, 0) : 0);
}

static enum status check_pairs(const struct lra_retrieval *w, struct error *e) {
    for (int64_t i = 0; i < record_count(&w->from.set); i++) {
        struct record r = record_get(&w->from.set, i);
        if (r.size < 8 || text_bytes(&r, 0) + text_bytes(&r, 1) > r.size - 8)
            return fail(e, ST_DATA, "lra-retrieval: record %lld of %lld bytes is no pair of texts", (long long)i,
                        (long long)r.size);
    }
    return ST_OK;
}

static enum status count_characters(const struct lra_retrieval *w, struct character_counter *c, struct error *e) {
    TRY(counter_create(c, e));
    for (int64_t i = 0; i < w->from.set.n[SPLIT_TRAIN]; i++) {
        struct record r = record_get(&w->from.set, i);
        for (int which = 0; which < 2; which++) counter_add(c, text_at(&r, which), text_bytes(&r, which));
    }
    return ST_OK;
}

static enum status lra_retrieval_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct lra_retrieval *w = inst;
    struct character_counter c = {NULL};
    (void)seed;
    TRY(file_records_open(&w->from, "lra-retrieval", "aan", e));
    TRY(check_pairs(w, e));
    enum status status = w->level == LEVEL_BYTE ? ST_OK : count_characters(w, &c, e);
    if (status == ST_OK) status = characters_make(&w->characters, w->level, &c, w->least, host, e);
    counter_free(&c);
    return status;
}

static void lra_retrieval_shape(const void *inst, struct task_shape *out) {
    const struct lra_retrieval *w = inst;
    out->T = w->length;
    out->documents = 2;
    out->vocab_in = w->characters.vocab;
    out->vocab_out = w->from.set.labels;
    out->per_sequence = true;
    out->needs_causal = false;
    for (int split = 0; split < SPLIT_COUNT; split++)
        out->examples[split] = file_records_count(&w->from, (enum split)split);
    out->chance = out->floor = 1 / (double)w->from.set.labels;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

static void lra_retrieval_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct lra_retrieval *w = inst;
    struct record r = record_get(&w->from.set, file_records_index(&w->from, split, index));
    int32_t length[2];
    for (int which = 0; which < 2; which++)
        length[which] = characters_put(&w->characters, text_at(&r, which), text_bytes(&r, which), w->length - 1,
                                       w->length, x->tokens + which * w->length);
    x->length = length[0];
    x->second = length[1];
    x->targets[0] = (int32_t)r.label;
}

_Static_assert(sizeof(struct lra_retrieval) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_lra_retrieval = {
    .name = "lra-retrieval",
    .summary = "does one paper cite the other, by their characters? (Long Range Arena, Tay et al. 2021)",
    .suite = "lra-retrieval",
    .data = "aan",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct lra_retrieval),
    .open = lra_retrieval_open,
    .shape = lra_retrieval_shape,
    .fill = lra_retrieval_fill,
};

/* lra_text.c - the Long Range Arena's text task: is a film review kind? Characters of the IMDb reviews (spec/tasks.md
 * 5b), as S4 reads them: the first length - 1 characters of a review and an end mark, characters that the training
 * reviews have at least 15 times. A tenth of the training reviews is for validation. The files come from
 * `lrnn data import imdb`. */
#include <string.h>

#include "tasks/data/characters.h"
#include "tasks/data/file_records.h"
#include "tasks/task.h"

struct lra_text {
    int64_t length, least;
    int level;
    struct file_records from;
    struct characters characters;
};

static const struct option options[] = {
    {"length", OPT_INT, offsetof(struct lra_text, length), "4096", 2, 1 << 20, NULL,
     "characters at most, the end mark among them", OPT_AXIS},
    {"level", OPT_CHOICE, offsetof(struct lra_text, level), "character", 0, 0, TEXT_LEVELS,
     "what an id is: a character, or a byte as in the Long Range Arena's own code", 0},
    {"least", OPT_INT, offsetof(struct lra_text, least), "15", 1, 1e9, NULL,
     "how often a character has to be in the training texts", 0},
    FILE_RECORDS_OPTIONS(struct lra_text, from),
    {NULL, OPT_INT, 0, NULL, 0, 0, NULL, NULL, 0},
};

static enum status count_characters(struct lra_text *w, struct character_counter *c, struct error *e) {
    TRY(counter_create(c, e));
    for (int64_t i = 0; i < w->from.set.n[SPLIT_TRAIN]; i++) {
        struct record r = record_get(&w->from.set, i);
        counter_add(c, r.bytes, r.length);
    }
    return ST_OK;
}

static enum status check_texts(const struct lra_text *w, struct error *e) {
    for (int64_t i = 0; i < record_count(&w->from.set); i++) {
        struct record r = record_get(&w->from.set, i);
        if (r.length > r.size)
            return fail(e, ST_DATA, "lra-text: record %lld has %lld bytes, expected a text of %lld", (long long)i,
                        (long long)r.size, (long long)r.length);
    }
    return ST_OK;
}

static enum status lra_text_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct lra_text *w = inst;
    struct character_counter c = {NULL};
    (void)seed;
    TRY(file_records_open(&w->from, "lra-text", "imdb", e));
    TRY(check_texts(w, e));
    enum status status = w->level == LEVEL_BYTE ? ST_OK : count_characters(w, &c, e);
    if (status == ST_OK) status = characters_make(&w->characters, w->level, &c, w->least, host, e);
    counter_free(&c);
    return status;
}

static void lra_text_shape(const void *inst, struct task_shape *out) {
    const struct lra_text *w = inst;
    out->T = w->length;
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

static void lra_text_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct lra_text *w = inst;
    struct record r = record_get(&w->from.set, file_records_index(&w->from, split, index));
    x->length = characters_put(&w->characters, r.bytes, r.length, w->length - 1, w->length, x->tokens);
    x->targets[0] = (int32_t)r.label;
}

_Static_assert(sizeof(struct lra_text) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_lra_text = {
    .name = "lra-text",
    .summary = "is a film review kind, by its characters? (Long Range Arena, Tay et al. 2021)",
    .suite = "lra-text",
    .data = "imdb",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct lra_text),
    .open = lra_text_open,
    .shape = lra_text_shape,
    .fill = lra_text_fill,
};

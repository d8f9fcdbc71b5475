/* pairs.c - do two documents share a passage? Our own stand-in for the Long Range Arena's retrieval, never
 * reported as it.
 *
 *   document   length words, its length uniform in min_length..max_length, words uniform; somewhere in it, between
 *              two marks, a passage of `passage` words; then an end mark
 *   label 1    both passages are the same, by a fair coin
 *   label 0    `differ` of the second one's words, at random places, are replaced by other words; with differ=auto all
 *
 * Words around the passages are drawn independently for each document. Ids: 0 padding, 1 end, 2 and 3 the marks, then
 * words. */
#include <string.h>

#include "tasks/examples.h"

#define MAX_LENGTH  65536
#define MAX_PASSAGE 1024

enum { PAD, END, FROM, TO, FIRST_WORD };

struct pairs {
    int64_t min_length, max_length, passage, differ, words;
    int64_t examples[SPLIT_COUNT];
    uint64_t seed;
};

static const struct option options[] = {
    {"min_length", OPT_INT, offsetof(struct pairs, min_length), "1000", 3, MAX_LENGTH, NULL,
     "words of a document at least", OPT_AXIS},
    {"max_length", OPT_INT, offsetof(struct pairs, max_length), "4000", 3, MAX_LENGTH, NULL,
     "words of a document at most", OPT_AXIS},
    {"passage", OPT_INT, offsetof(struct pairs, passage), "40", 1, MAX_PASSAGE, NULL, "words of the passage", OPT_AXIS},
    {"differ", OPT_INT, offsetof(struct pairs, differ), "auto", 1, MAX_PASSAGE, "passage",
     "words in which passages that are not the same differ; auto = all", OPT_AUTO | OPT_AXIS},
    {"words", OPT_INT, offsetof(struct pairs, words), "64", 2, 1 << 20, NULL, "different words", OPT_AXIS},
    EXAMPLES_OPTIONS(struct pairs, examples, "100000", "2000", "5000", "pairs"),
    {0},
};

static enum status pairs_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct pairs *w = inst;
    (void)host;
    w->seed = seed;
    TRY(check_length_range("pairs", w->min_length, w->max_length, e));
    if (w->passage + 2 > w->min_length)
        return fail(e, ST_USAGE, "pairs: passage=%lld and its two marks need min_length=%lld, not %lld",
                    (long long)w->passage, (long long)w->passage + 2, (long long)w->min_length);
    if (w->differ > w->passage)
        return fail(e, ST_USAGE, "pairs: passages of %lld words cannot differ in differ=%lld", (long long)w->passage,
                    (long long)w->differ);
    return ST_OK;
}

static void pairs_shape(const void *inst, struct task_shape *out) {
    const struct pairs *w = inst;
    shape_of_labels(out, w->max_length + 1, 2); /* the end mark */
    out->unequal_test = w->min_length < w->max_length;
    out->reading.documents = 2;
    out->vocab_in = FIRST_WORD + w->words;
    memcpy(out->examples, w->examples, sizeof out->examples);
}

static int32_t word(const struct pairs *w, struct rng *r) {
    return FIRST_WORD + (int32_t)rng_below(r, (uint64_t)w->words);
}

/* Replaces `differ` words; a place is chosen with probability (replacements left / places left). */
static void change(const struct pairs *w, struct rng *r, int32_t *passage) {
    int64_t left = w->differ ? w->differ : w->passage;
    for (int64_t i = 0; i < w->passage; i++) {
        if (rng_below(r, (uint64_t)(w->passage - i)) >= (uint64_t)left) continue;
        int64_t other = 1 + (int64_t)rng_below(r, (uint64_t)(w->words - 1));
        passage[i] = FIRST_WORD + (int32_t)((passage[i] - FIRST_WORD + other) % w->words);
        left--;
    }
}

static int32_t write_document(const struct pairs *w, struct rng *r, const int32_t *passage, int32_t *tokens) {
    int64_t length = draw_length(r, w->min_length, w->max_length);
    int64_t at = (int64_t)rng_below(r, (uint64_t)(length - w->passage - 1));
    for (int64_t t = 0; t < length; t++) tokens[t] = word(w, r);
    tokens[at] = FROM;
    for (int64_t i = 0; i < w->passage; i++) tokens[at + 1 + i] = passage[i];
    tokens[at + 1 + w->passage] = TO;
    tokens[length] = END;
    for (int64_t t = length + 1; t <= w->max_length; t++) tokens[t] = PAD;
    return (int32_t)length + 1;
}

static void pairs_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct pairs *w = inst;
    int32_t passage[MAX_PASSAGE];
    struct rng r = example_rng(w->seed, split, index);
    int32_t label = (int32_t)rng_below(&r, 2);
    for (int64_t i = 0; i < w->passage; i++) passage[i] = word(w, &r);
    x->length = write_document(w, &r, passage, x->tokens);
    if (!label) change(w, &r, passage);
    x->second = write_document(w, &r, passage, x->tokens + w->max_length + 1);
    x->targets[0] = label;
}

_Static_assert(sizeof(struct pairs) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_pairs = {
    .name = "pairs",
    .summary = "do two documents share a passage? (this project)",
    .suite = "pairs",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct pairs),
    .open = pairs_open,
    .shape = pairs_shape,
    .fill = pairs_fill,
};

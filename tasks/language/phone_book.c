/* phone_book.c - a book of names and numbers, then one of its names: the number.
 *
 *   first_1 last_1 d d d d ; first_2 last_2 d d d d ; .. ? first_i last_i, then the digits of entry i
 *
 * Jelassi et al. 2024, "Repeat after me", who ask language models for it in words. Names are drawn without repeats, but
 * first and last names do repeat, so that both are needed; digits are uniform. Each digit of the answer is the target
 * one position before it; nothing else is scored or learnt. Ids: digits 0..9, ';', '?', first names, last names. */
#include <string.h>

#include "tasks/examples.h"

#define MAX_ENTRIES 1024

enum { ENTRY_END = 10, QUESTION, NAMES };

struct phone_book {
    int64_t entries, names, digits, examples[SPLIT_COUNT];
    char test_length[OPTION_TEXT];
    uint64_t seed; /* set by open */
};

static const struct option options[] = {
    {"entries", OPT_INT, offsetof(struct phone_book, entries), "20", 1, MAX_ENTRIES, NULL, "names in a book",
     OPT_AXIS | OPT_TESTED},
    {"names", OPT_INT, offsetof(struct phone_book, names), "32", 2, 4096, NULL, "first names, and as many last names",
     OPT_AXIS},
    {"digits", OPT_INT, offsetof(struct phone_book, digits), "4", 1, 32, NULL, "digits of a number", OPT_AXIS},
    EXAMPLES_OPTIONS(struct phone_book, examples, "100000", "1000", "4000", "books"),
    {"test_length", OPT_TEXT_FIELD, offsetof(struct phone_book, test_length), "", 0, 0, NULL,
     "entries of the test books, ascending: 20,40,80, n_test of each; empty: one set", OPT_AXIS},
    {0},
};

static enum status phone_book_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct phone_book *b = inst;
    (void)host;
    b->seed = seed;
    if (b->entries <= b->names * b->names) return ST_OK;
    return fail(e, ST_USAGE, "phone-book: names=%lld give %lld names, too few for entries=%lld", (long long)b->names,
                (long long)(b->names * b->names), (long long)b->entries);
}

/* The floor is chance: the digits are independent. */
static void phone_book_shape(const void *inst, struct task_shape *out) {
    const struct phone_book *b = inst;
    out->T = b->entries * (b->digits + 3) + 2 + b->digits;
    out->vocab_in = out->vocab_out = NAMES + 2 * b->names;
    out->needs_causal = true;
    memcpy(out->examples, b->examples, sizeof out->examples);
    out->chance = out->floor = 0.1;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

static void phone_book_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct phone_book *b = inst;
    struct rng r = example_rng(b->seed, split, index);
    uint64_t all = (uint64_t)(b->names * b->names), key = rng_u64(&r); /* of the names' order, the example's own */
    int64_t width = b->digits + 3, asked = (int64_t)rng_below(&r, (uint64_t)b->entries);
    for (int64_t i = 0; i < b->entries; i++) {
        int32_t *entry = x->tokens + i * width;
        int64_t name = (int64_t)permute_index(key, STREAM_DATA, 0, (uint64_t)i, all);
        entry[0] = (int32_t)(NAMES + name / b->names);
        entry[1] = (int32_t)(NAMES + b->names + name % b->names);
        for (int64_t d = 0; d < b->digits; d++) entry[2 + d] = (int32_t)rng_below(&r, 10);
        entry[2 + b->digits] = ENTRY_END;
    }
    const int32_t *entry = x->tokens + asked * width;
    int64_t at = b->entries * width;
    x->tokens[at++] = QUESTION;
    x->tokens[at++] = entry[0];
    x->tokens[at] = entry[1];
    for (int64_t d = 0; d < b->digits; d++) {
        x->targets[at + d] = entry[2 + d];
        if (d + 1 < b->digits) x->tokens[at + d + 1] = entry[2 + d];
    }
    x->length = (int32_t)(at + b->digits);
}

_Static_assert(sizeof(struct phone_book) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_phone_book = {
    .name = "phone-book",
    .summary = "the number of a name in a book of them (Jelassi et al. 2024)",
    .suite = "copy",
    .about = "20 names with 4 digits each, then one of the names; its digits are scored. Chance 0.1.\n"
             "Jelassi et al. 2024 (arXiv 2402.01032) ask pretrained language models for numbers of ten digits, after\n"
             "two answered examples: those with attention retrieve far more than state-space models. None of their\n"
             "numbers is quoted.",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct phone_book),
    .open = phone_book_open,
    .shape = phone_book_shape,
    .fill = phone_book_fill,
};

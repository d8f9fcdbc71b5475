/* copy.c - copy a string, as a whole or from an n-gram of it on.
 *
 *   form=whole    s_1 .. s_n | s_1 .. s_n
 *   form=suffix   s_1 .. s_n | k_1 .. k_g, then the `answer` letters that follow k in s
 *   form=prefix   k_1 .. k_g | s_1 .. s_n | the same
 *
 * Jelassi et al. 2024, "Repeat after me: transformers are better than state space models at copying". Letters are
 * uniform. The n-gram k is drawn from the places with a whole answer after them. The answer is the text after the first
 * place of k in s. Each letter of the copy is the target one position before it; nothing else is scored or learnt. Ids:
 * letters, the separator, then padding. Validation and test strings are twice as long as the longest training
 * string. */
#include <string.h>

#include "tasks/examples.h"

#define MAX_LENGTH 8192

enum form { WHOLE, SUFFIX, PREFIX };

struct copy {
    int form;
    int64_t letters, min_length, max_length, eval_length, ngram, answer, examples[SPLIT_COUNT];
    char test_length[OPTION_TEXT];
    uint64_t seed; /* set by open */
};

static const struct option options[] = {
    {"form", OPT_CHOICE, offsetof(struct copy, form), "whole", 0, 0, "whole suffix prefix",
     "the whole string, or what follows an n-gram that stands after the string or before it", OPT_AXIS},
    {"letters", OPT_INT, offsetof(struct copy, letters), "26", 2, 1024, NULL, "different letters", OPT_AXIS},
    {"min_length", OPT_INT, offsetof(struct copy, min_length), "8", 1, MAX_LENGTH, NULL,
     "letters of the shortest training string", OPT_AXIS},
    {"max_length", OPT_INT, offsetof(struct copy, max_length), "64", 1, MAX_LENGTH, NULL,
     "letters of the longest training string", OPT_AXIS},
    {"eval_length", OPT_INT, offsetof(struct copy, eval_length), "128", 1, MAX_LENGTH, NULL,
     "letters of a validation or test string", OPT_AXIS | OPT_TESTED},
    {"ngram", OPT_INT, offsetof(struct copy, ngram), "3", 1, 64, NULL, "letters of the n-gram", OPT_AXIS},
    {"answer", OPT_INT, offsetof(struct copy, answer), "4", 1, 1024, NULL, "letters that follow the n-gram", OPT_AXIS},
    EXAMPLES_OPTIONS(struct copy, examples, "100000", "1000", "4000", "strings"),
    TEST_LENGTH_OPTION(struct copy, test_length),
    {0},
};

static const struct task_alias aliases[] = {
    {"ngram-lookup", "form=suffix", "what follows an n-gram in the string before it"},
    {"ngram-prefix", "form=prefix", "what follows an n-gram in the string after it"},
    {NULL, NULL, NULL},
};

static enum status copy_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct copy *c = inst;
    int64_t shortest = c->min_length < c->eval_length ? c->min_length : c->eval_length;
    (void)host;
    c->seed = seed;
    TRY(check_length_range("copy", c->min_length, c->max_length, e));
    if (c->form == WHOLE || shortest >= c->ngram + c->answer) return ST_OK;
    return fail(e, ST_USAGE,
                "copy: a string of %lld letters cannot hold ngram=%lld letters and the answer=%lld that follow; raise "
                "min_length and eval_length",
                (long long)shortest, (long long)c->ngram, (long long)c->answer);
}

/* Number of inputs for a string of n letters: the last target is not an input. */
static int64_t inputs_of(const struct copy *c, int64_t n) {
    if (c->form == WHOLE) return 2 * n;
    return n + c->ngram + c->answer + (c->form == PREFIX);
}

/* The floor is chance: the letters are uniform. */
static void copy_shape(const void *inst, struct task_shape *out) {
    const struct copy *c = inst;
    out->T = inputs_of(c, c->max_length);
    out->T_eval = inputs_of(c, c->eval_length);
    out->vocab_in = out->vocab_out = c->letters + 2;
    out->needs_causal = true;
    memcpy(out->examples, c->examples, sizeof out->examples);
    out->chance = out->floor = 1.0 / (double)c->letters;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

static void copy_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct copy *c = inst;
    struct rng r = example_rng(c->seed, split, index);
    bool training = split == SPLIT_TRAIN, whole = c->form == WHOLE;
    int64_t n = training ? draw_length(&r, c->min_length, c->max_length) : c->eval_length;
    int64_t T = inputs_of(c, training ? c->max_length : c->eval_length), used = inputs_of(c, n);
    int64_t first = c->form == PREFIX ? c->ngram + 1 : 0, from = 0, key = 0, m = whole ? n : c->answer;
    int32_t *string = x->tokens + first, separator = (int32_t)c->letters;
    for (int64_t t = 0; t < n; t++) string[t] = (int32_t)rng_below(&r, (uint64_t)c->letters);
    if (!whole) {
        key = (int64_t)rng_below(&r, (uint64_t)(n - c->ngram - c->answer + 1));
        size_t bytes = (size_t)c->ngram * sizeof *string;
        for (from = 0; memcmp(string + from, string + key, bytes) != 0; from++) continue;
        memcpy(c->form == PREFIX ? x->tokens : string + n + 1, string + from, bytes);
        if (c->form == PREFIX) x->tokens[c->ngram] = separator;
        from += c->ngram;
    }
    string[n] = separator;
    int64_t start = first + n + (c->form == SUFFIX ? c->ngram : 0); /* the position that asks for the first letter */
    for (int64_t t = 0; t < m; t++) {
        x->targets[start + t] = string[from + t];
        if (t + 1 < m) x->tokens[start + t + 1] = string[from + t];
    }
    for (int64_t t = used; t < T; t++) x->tokens[t] = separator + 1;
    x->length = (int32_t)used;
}

_Static_assert(sizeof(struct copy) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_copy = {
    .name = "copy",
    .summary = "a string again, at twice the trained length (Jelassi et al. 2024)",
    .suite = "copy",
    .about =
        "Trained on strings of 8 to 64 letters and tested on 128, twice as many. Chance is one in the letters.\n"
        "Jelassi et al. 2024 (arXiv 2402.01032) prove that two layers of attention copy strings of exponential length\n"
        "and a fixed state no more than it holds, and find that transformers learn it from fewer strings and go on to\n"
        "longer ones. None of their numbers is quoted.",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct copy),
    .aliases = aliases,
    .open = copy_open,
    .shape = copy_shape,
    .fill = copy_fill,
};

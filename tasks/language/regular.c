/* regular.c - four regular languages: read a string, say at its end which of 2 or 5 states a finite automaton is in.
 *
 *   parity              number of b mod 2
 *   even-pairs          number of unequal neighbours mod 2, which is: first symbol != last symbol
 *   cycle-navigation    (number of +1 - number of -1) mod 5
 *   modular-arithmetic  value mod 5 of digits 0..4 joined by + - *; * binds first, then left to right
 *
 * Training strings are short and held-out ones long: the score is length generalisation. One position a string is
 * scored; everything after it is padding. Symbols are i.i.d. and uniform, so chance is one over the number of states.
 * No trivial answer beats it on long strings. Among short ones a cycle ends more often where it began, and an
 * expression in 0 (one product of two digits is 0 in 9 of 25 cases), but from 40 symbols on by less than 1e-6. Two
 * strings of 40 or more symbols practically never agree, so the splits are disjoint; shorter evaluation strings
 * overlap.
 *
 * Three encodings of the same strings:
 *   slice     ids 0 = pad, then symbols, then labels; out of length n the last symbol is scored. An expression is
 *             rounded up to even n and ends in '=' (Walker et al. 2025, structured linear CDEs). The default.
 *   xlstm     ids like slice, but length counts the answer: n - 1 symbols, the last one scored; expressions have odd n
 *             (Beck et al. 2024)
 *   deepmind  n symbols (an expression: n rounded down to odd, no '='), then one query step, which is scored. The
 *             source's one-hot channels are numbered: symbols as it codes them, then the query channel, which here also
 *             pads (the source has no padding: its batches have one length each). Labels are 0, 1, .. (Deletang et al.
 *             2023) */
#include "tasks/examples.h"

#define MAX_LENGTH 65536
#define STATES     5 /* of cycle and arithmetic */

enum encoding { SLICE, XLSTM, DEEPMIND };

/* Ids of one encoding. */
struct alphabet {
    int32_t vocab_in, vocab_out;
    int32_t pad;   /* including deepmind's query */
    int32_t label; /* id of state 0; the others follow */
    int32_t id[9]; /* of the language's symbols */
};

struct language {
    const char *name;
    int32_t states;
    bool paired; /* symbols come in pairs: digit and operator */
    struct alphabet tokens, channels;
    /* Draws n symbols, writes their ids and returns the automaton's last state. */
    int32_t (*write)(struct rng *r, int64_t n, const int32_t *id, int32_t *tokens);
};

struct lengths {
    int64_t min, max;
};

struct regular {
    int encoding;
    struct lengths train, eval;
    int64_t examples[SPLIT_COUNT];
    char test_length[OPTION_TEXT];

    /* made by open */
    const struct language *language;
    const struct alphabet *alphabet;
    uint64_t seed;
    int64_t T[2]; /* of training strings; of the others */
};

static const struct option options[] = {
    {"encoding", OPT_CHOICE, offsetof(struct regular, encoding), "slice", 0, 0, "slice xlstm deepmind",
     "ids, what length counts, and where the answer is read", 0},
    {"min_length", OPT_INT, offsetof(struct regular, train.min), "3", 1, MAX_LENGTH, NULL, "shortest training string",
     OPT_AXIS},
    {"max_length", OPT_INT, offsetof(struct regular, train.max), "40", 1, MAX_LENGTH, NULL, "longest training string",
     OPT_AXIS},
    {"eval_min_length", OPT_INT, offsetof(struct regular, eval.min), "40", 1, MAX_LENGTH, NULL,
     "shortest validation and test string", OPT_AXIS | OPT_TESTED},
    {"eval_max_length", OPT_INT, offsetof(struct regular, eval.max), "256", 1, MAX_LENGTH, NULL,
     "longest validation and test string", OPT_AXIS | OPT_TESTED},
    {"n_train", OPT_INT, offsetof(struct regular, examples[SPLIT_TRAIN]), "25600000", 1, 1e12, NULL, "training strings",
     OPT_AXIS},
    {"n_val", OPT_INT, offsetof(struct regular, examples[SPLIT_VAL]), "8192", 1, 1e9, NULL, "validation strings", 0},
    {"n_test", OPT_INT, offsetof(struct regular, examples[SPLIT_TEST]), "8192", 1, 1e9, NULL, "test strings", 0},
    TEST_LENGTH_OPTION(struct regular, test_length),
    {0},
};

/* --- languages ---------------------------------------------------------------------------------------------------- */

static int32_t residue(int64_t value) {
    return (int32_t)((value % STATES + STATES) % STATES);
}

/* Symbols a, b. */
static int32_t write_parity(struct rng *r, int64_t n, const int32_t *id, int32_t *tokens) {
    int32_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t b = (int32_t)rng_below(r, 2);
        tokens[i] = id[b];
        odd ^= b;
    }
    return odd;
}

/* Symbols a, b. */
static int32_t write_even_pairs(struct rng *r, int64_t n, const int32_t *id, int32_t *tokens) {
    for (int64_t i = 0; i < n; i++) tokens[i] = id[rng_below(r, 2)];
    return tokens[0] != tokens[n - 1];
}

/* Symbols stay, +1, -1. */
static int32_t write_cycle(struct rng *r, int64_t n, const int32_t *id, int32_t *tokens) {
    static const int8_t move[3] = {0, 1, -1};
    int64_t place = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t symbol = rng_below(r, 3);
        tokens[i] = id[symbol];
        place += move[symbol];
    }
    return residue(place);
}

enum { PLUS = 5, MINUS, TIMES, EQUALS }; /* symbols after the digits */

/* Writes digits at even positions and operators at odd ones; with n even the last symbol is '='. `term` gathers a
 * product with its sign, which is added once the operator after it does not multiply. */
static int32_t write_arithmetic(struct rng *r, int64_t n, const int32_t *id, int32_t *tokens) {
    int64_t sum = 0, term = 1;
    for (int64_t i = 0; i < n; i += 2) {
        int64_t digit = (int64_t)rng_below(r, 5);
        tokens[i] = id[digit];
        term = term * digit % STATES;
        if (i + 2 >= n) continue;
        int symbol = PLUS + (int)rng_below(r, 3);
        tokens[i + 1] = id[symbol];
        if (symbol == TIMES) continue;
        sum += term;
        term = symbol == PLUS ? 1 : -1;
    }
    if (n % 2 == 0) tokens[n - 1] = id[EQUALS];
    return residue(sum + term);
}

static const struct language parity = {
    .name = "parity",
    .states = 2,
    .tokens = {3, 3, 0, 1, {1, 2}},
    .channels = {3, 2, 2, 0, {0, 1}},
    .write = write_parity,
};

static const struct language even_pairs = {
    .name = "even-pairs",
    .states = 2,
    .tokens = {3, 3, 0, 1, {1, 2}},
    .channels = {3, 2, 2, 0, {0, 1}},
    .write = write_even_pairs,
};

static const struct language cycle_navigation = {
    .name = "cycle-navigation",
    .states = STATES,
    .tokens = {9, 9, 0, 4, {1, 2, 3}},
    .channels = {4, 5, 3, 0, {1, 2, 0}},
    .write = write_cycle,
};

/* Channel 8 is the source's blank, which it never samples; it has no '='. */
static const struct language modular_arithmetic = {
    .name = "modular-arithmetic",
    .states = STATES,
    .paired = true,
    .tokens = {10, 10, 0, 5, {5, 6, 7, 8, 9, 1, 2, 3, 4}},
    .channels = {10, 5, 9, 0, {0, 1, 2, 3, 4, 5, 6, 7, -1}},
    .write = write_arithmetic,
};

/* --- lengths ------------------------------------------------------------------------------------------------------ */

/* Number of symbols of a string whose drawn length is n, with '=' and without the query step. */
static int64_t symbols_of(const struct regular *w, int64_t n) {
    bool paired = w->language->paired;
    switch (w->encoding) {
    case SLICE:
        return paired ? n + n % 2 : n;
    case XLSTM:
        return n - 1;
    default:
        return paired ? n - 1 + n % 2 : n;
    }
}

/* Bounds of the random numbers for lengths: the lengths themselves, but k for xlstm's expressions of length 2k - 1. */
static struct lengths drawn(const struct regular *w, struct lengths l) {
    if (w->encoding != XLSTM || !w->language->paired) return l;
    return (struct lengths){l.min / 2 + 1, (l.max + 1) / 2};
}

static int64_t length_of(const struct regular *w, int64_t number) {
    return w->encoding == XLSTM && w->language->paired ? 2 * number - 1 : number;
}

/* Number of positions of the longest input. */
static int64_t longest(const struct regular *w, struct lengths l) {
    return symbols_of(w, length_of(w, drawn(w, l).max)) + (w->encoding == DEEPMIND);
}

static enum status check_lengths(const struct regular *w, struct lengths l, const char *prefix, struct error *e) {
    const char *name = w->language->name;
    if (l.min > l.max)
        return fail(e, ST_USAGE, "%s: %smin_length=%lld is more than %smax_length=%lld", name, prefix, (long long)l.min,
                    prefix, (long long)l.max);
    if (w->encoding == XLSTM && l.min < 2)
        return fail(e, ST_USAGE,
                    "%s: with encoding=xlstm a length counts the answer, so %smin_length must be at least "
                    "2, got %lld",
                    name, prefix, (long long)l.min);
    struct lengths numbers = drawn(w, l);
    if (numbers.min > numbers.max)
        return fail(e, ST_USAGE,
                    "%s: with encoding=xlstm lengths are odd and at least 3, and there is none from %smin_length=%lld "
                    "to %smax_length=%lld",
                    name, prefix, (long long)l.min, prefix, (long long)l.max);
    return ST_OK;
}

/* --- the tasks ---------------------------------------------------------------------------------------------------- */

static enum status regular_open(struct regular *w, const struct language *language, uint64_t seed, struct error *e) {
    w->language = language;
    w->alphabet = w->encoding == DEEPMIND ? &language->channels : &language->tokens;
    w->seed = seed;
    TRY(check_lengths(w, w->train, "", e));
    TRY(check_lengths(w, w->eval, "eval_", e));
    w->T[0] = longest(w, w->train);
    w->T[1] = longest(w, w->eval);
    return ST_OK;
}

static enum status parity_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    (void)host;
    return regular_open(inst, &parity, seed, e);
}

static enum status even_pairs_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    (void)host;
    return regular_open(inst, &even_pairs, seed, e);
}

static enum status cycle_navigation_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    (void)host;
    return regular_open(inst, &cycle_navigation, seed, e);
}

static enum status modular_arithmetic_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    (void)host;
    return regular_open(inst, &modular_arithmetic, seed, e);
}

/* A mixer that looks ahead gains nothing: only padding follows the scored position. The threshold is the accuracy at
 * which the reference stops training. */
static void regular_shape(const void *inst, struct task_shape *out) {
    const struct regular *w = inst;
    struct lengths tested = drawn(w, w->eval);
    out->T = w->T[0];
    out->T_eval = w->T[1];
    out->unequal_test = tested.min < tested.max;
    out->vocab_in = w->alphabet->vocab_in;
    out->vocab_out = w->alphabet->vocab_out;
    out->needs_causal = false;
    for (int split = 0; split < SPLIT_COUNT; split++) out->examples[split] = w->examples[split];
    int64_t least = w->train.min + (w->encoding == XLSTM), pairs = symbols_of(w, least);
    out->curriculum = (struct length_range){pairs > least ? pairs : least, w->train.max};
    out->chance = out->floor = 1.0 / w->language->states;
    out->solved = 0.9995;
    out->metric = METRIC_ACC;
}

static void regular_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct regular *w = inst;
    const struct alphabet *alphabet = w->alphabet;
    struct rng r = example_rng(w->seed, split, index);
    struct lengths lengths = split == SPLIT_TRAIN ? w->train : w->eval;
    if (x->most) lengths.max = x->most - (x->most > lengths.min && symbols_of(w, x->most) > x->most);
    struct lengths numbers = drawn(w, lengths);
    int64_t number = draw_length(&r, numbers.min, numbers.max);
    int64_t n = symbols_of(w, length_of(w, number));
    int32_t state = w->language->write(&r, n, alphabet->id, x->tokens);
    int64_t answer = w->encoding == DEEPMIND ? n : n - 1;
    for (int64_t t = n; t < w->T[split != SPLIT_TRAIN]; t++) x->tokens[t] = alphabet->pad;
    x->targets[answer] = alphabet->label + state;
    x->length = (int32_t)(answer + 1);
}

_Static_assert(sizeof(struct regular) <= TASK_INST_BYTES, "the instance must fit its slot");

#define ABOUT                                                                                                          \
    "Trained on 3 to 40 symbols, scored at 40 to 256: at the last symbol (encoding=slice, xlstm) or at a query step\n" \
    "after it (deepmind). Chance is one in the number of states, and nothing trivial is better on long strings.\n"     \
    "Published for 17 models: Table 2 of PD-SSM (arXiv 2509.22284), `lrnn bench slice-regular`. Deletang et al.\n"     \
    "2023 (arXiv 2207.02098): LSTMs solve regular languages at longer lengths."

const struct task task_parity = {
    .name = "parity",
    .summary = "is the number of b even? trained short, scored long (Deletang et al. 2023)",
    .suite = "regular",
    .about = ABOUT,
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct regular),
    .open = parity_open,
    .shape = regular_shape,
    .fill = regular_fill,
};

const struct task task_even_pairs = {
    .name = "even-pairs",
    .summary = "is the number of ab and ba even? trained short, scored long (Deletang et al. 2023)",
    .suite = "regular",
    .about = ABOUT,
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct regular),
    .open = even_pairs_open,
    .shape = regular_shape,
    .fill = regular_fill,
};

const struct task task_cycle_navigation = {
    .name = "cycle-navigation",
    .summary = "place on a cycle of 5 after steps of 0, +1, -1; trained short, scored long (Deletang et al. 2023)",
    .suite = "regular",
    .about = ABOUT,
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct regular),
    .open = cycle_navigation_open,
    .shape = regular_shape,
    .fill = regular_fill,
};

const struct task task_modular_arithmetic = {
    .name = "modular-arithmetic",
    .summary = "value mod 5 of sums and products of digits; trained short, scored long (Deletang et al. 2023)",
    .suite = "regular",
    .about = ABOUT,
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct regular),
    .open = modular_arithmetic_open,
    .shape = regular_shape,
    .fill = regular_fill,
};

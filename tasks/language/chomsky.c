/* chomsky.c - strings to read and strings to answer: the tasks of the Chomsky hierarchy beyond regular languages.
 *
 *   reverse-string       s_n .. s_1, bits
 *   stack-manipulation   bits of a stack from its bottom, then actions (pop, push 0, push 1): the stack from its top
 *   modular-arithmetic-brackets  value mod 5 of an expression of + - ( )
 *   solve-equation       the same with one digit hidden as x, '=' and the value: the digit
 *   duplicate-string     s_1 .. s_n s_1 .. s_n, bits
 *   missing-duplicate    a string of bits twice, one bit hidden: that bit
 *   odds-first           s_2 s_4 .. s_1 s_3 .., bits, as the source's code has it
 *   binary-addition      a + b, both and the sum with their lowest bit first
 *   binary-multiplication  a * b likewise
 *   bucket-sort          digits 0..4 in ascending order
 *   majority             1 if an odd number of bits has more ones than zeros
 *
 * Deletang et al. 2023, "Neural networks and the Chomsky hierarchy"
 * (google-deepmind/neural_networks_chomsky_hierarchy); majority as in Beck et al. 2024. The input is the string and
 * then one query step for each answer, whose target is that answer. After an answer shorter than its room an end mark
 * is scored, and nothing after it. Channels are numbered as the source has them; the query follows them, which here
 * also pads. */
#include <string.h>

#include "tasks/examples.h"

#define MAX_LENGTH 4096
#define MODULUS    5

/* A string to read and its answers; both arrays have room for MAX_LENGTH and more. */
struct strings {
    int32_t *input, *answer;
    int64_t n, m; /* inputs, answers; `write` sets m */
};

struct language {
    const char *name;
    int32_t symbols, labels; /* of the inputs without the query; of the answers */
    int32_t most, more;      /* most answers for n inputs: most * n + more */
    int64_t shortest;        /* inputs */
    bool odd;                /* a string of even length is made one symbol shorter */
    double floor;            /* see the comment at `languages` */
    void (*write)(struct rng *r, struct strings *s);
};

struct lengths {
    int64_t min, max;
};

struct chomsky {
    int chosen;
    struct lengths train, eval;
    int64_t examples[SPLIT_COUNT];
    char test_length[OPTION_TEXT];

    /* made by open */
    const struct language *language;
    uint64_t seed;
};

/* --- strings ------------------------------------------------------------------------------------------------------ */

static void draw_digits(struct rng *r, int32_t *digits, int64_t n, uint64_t below) {
    for (int64_t i = 0; i < n; i++) digits[i] = (int32_t)rng_below(r, below);
}

static void write_reverse(struct rng *r, struct strings *s) {
    draw_digits(r, s->input, s->n, 2);
    for (s->m = 0; s->m < s->n; s->m++) s->answer[s->m] = s->input[s->n - 1 - s->m];
}

static void write_duplicate(struct rng *r, struct strings *s) {
    draw_digits(r, s->input, s->n, 2);
    for (s->m = 0; s->m < 2 * s->n; s->m++) s->answer[s->m] = s->input[s->m % s->n];
}

static void write_odds_first(struct rng *r, struct strings *s) {
    s->m = 0;
    draw_digits(r, s->input, s->n, 2);
    for (int64_t first = 1; first >= 0; first--)
        for (int64_t i = first; i < s->n; i += 2) s->answer[s->m++] = s->input[i];
}

static void write_bucket_sort(struct rng *r, struct strings *s) {
    int64_t count[MODULUS] = {0};
    s->m = 0;
    draw_digits(r, s->input, s->n, MODULUS);
    for (int64_t i = 0; i < s->n; i++) count[s->input[i]]++;
    for (int32_t digit = 0; digit < MODULUS; digit++)
        for (int64_t i = 0; i < count[digit]; i++) s->answer[s->m++] = digit;
}

static void write_majority(struct rng *r, struct strings *s) {
    int64_t ones = 0;
    draw_digits(r, s->input, s->n, 2);
    for (int64_t i = 0; i < s->n; i++) ones += s->input[i];
    s->answer[0] = 2 * ones > s->n;
    s->m = 1;
}

/* Symbols: 0, 1, 2 the hidden bit, 3 the filler of an odd length. */
static void write_missing_duplicate(struct rng *r, struct strings *s) {
    int64_t half = s->n / 2, hidden = (int64_t)rng_below(r, (uint64_t)(2 * half));
    draw_digits(r, s->input, half, 2);
    memcpy(s->input + half, s->input, (size_t)half * sizeof *s->input);
    if (s->n % 2) s->input[s->n - 1] = 3;
    s->answer[0] = s->input[hidden];
    s->input[hidden] = 2;
    s->m = 1;
}

/* Symbols 0, 1, 2 pop, 3 push 0, 4 push 1; an empty stack stays as it is. Label 2 is the bottom. */
static void write_stack(struct rng *r, struct strings *s) {
    int64_t height = 1 + (int64_t)rng_below(r, (uint64_t)(s->n - 1)), bottom = height;
    int32_t *stack = s->answer; /* bottom first, reversed at the end */
    draw_digits(r, s->input, height, 2);
    memcpy(stack, s->input, (size_t)height * sizeof *stack);
    for (int64_t i = bottom; i < s->n; i++) {
        s->input[i] = 2 + (int32_t)rng_below(r, 3);
        if (s->input[i] > 2)
            stack[height++] = s->input[i] - 3;
        else if (height > 0)
            height--;
    }
    for (int64_t low = 0, high = height - 1; low < high; low++, high--) {
        int32_t swapped = stack[low];
        stack[low] = stack[high];
        stack[high] = swapped;
    }
    stack[height] = 2;
    s->m = height + 1;
}

/* --- arithmetic --------------------------------------------------------------------------------------------------- */

enum { PLUS = MODULUS, MINUS, OPEN, CLOSE, UNKNOWN, EQUALS }; /* symbols after the digits */

/* Writes an expression of n symbols and returns its value: a digit d, -d, (d), (-d), or two expressions whose lengths
 * add up, joined in brackets. */
static int32_t write_expression(struct rng *r, int64_t n, int32_t *out) {
    if (n < 5) {
        int32_t digit = (int32_t)rng_below(r, MODULUS);
        bool negative = n % 2 == 0;
        if (n > 2) *out++ = OPEN;
        if (negative) *out++ = MINUS;
        *out++ = digit;
        if (n > 2) *out = CLOSE;
        return negative ? (MODULUS - digit) % MODULUS : digit;
    }
    int64_t left = 1 + (int64_t)rng_below(r, (uint64_t)(n - 4));
    out[0] = OPEN;
    int32_t a = write_expression(r, left, out + 1), b = write_expression(r, n - 3 - left, out + 2 + left);
    bool minus = rng_below(r, 2) == 1;
    out[1 + left] = minus ? MINUS : PLUS;
    out[n - 1] = CLOSE;
    return (minus ? a - b + MODULUS : a + b) % MODULUS;
}

static void write_brackets(struct rng *r, struct strings *s) {
    s->answer[0] = write_expression(r, s->n, s->input);
    s->m = 1;
}

/* Hides the first digit after a random place, wrapping at the end. Every digit has one solution. */
static void write_equation(struct rng *r, struct strings *s) {
    int64_t n = s->n - 2;
    s->input[n + 1] = write_expression(r, n, s->input);
    s->input[n] = EQUALS;
    int64_t hidden = (int64_t)rng_below(r, (uint64_t)n);
    while (s->input[hidden] >= MODULUS) hidden = (hidden + 1) % n;
    s->answer[0] = s->input[hidden];
    s->input[hidden] = UNKNOWN;
    s->m = 1;
}

/* Writes two positive numbers of random lengths with symbol 2 between them. Returns the length of the first. */
static int64_t draw_numbers(struct rng *r, struct strings *s) {
    int64_t first = 1 + (int64_t)rng_below(r, (uint64_t)(s->n - 2));
    const struct { int64_t at, bits; } numbers[2] = {{0, first}, {first + 1, s->n - 1 - first}};
    for (int i = 0; i < 2; i++) {
        int32_t ones = 0;
        while (ones == 0) {
            draw_digits(r, s->input + numbers[i].at, numbers[i].bits, 2);
            for (int64_t k = 0; k < numbers[i].bits; k++) ones += s->input[numbers[i].at + k];
        }
    }
    s->input[first] = 2;
    return first;
}

/* Removes zeros from the end and puts the end mark there. */
static void end_number(struct strings *s) {
    while (s->answer[s->m - 1] == 0) s->m--;
    s->answer[s->m++] = 2;
}

static void write_addition(struct rng *r, struct strings *s) {
    int64_t a = draw_numbers(r, s), b = s->n - 1 - a;
    int32_t carry = 0;
    for (s->m = 0; s->m < a || s->m < b || carry; s->m++) {
        carry += (s->m < a ? s->input[s->m] : 0) + (s->m < b ? s->input[a + 1 + s->m] : 0);
        s->answer[s->m] = carry % 2;
        carry /= 2;
    }
    end_number(s);
}

/* Multiplies: bit k of a product is the sum of a_i b_(k-i) and the carry. */
static void write_multiplication(struct rng *r, struct strings *s) {
    int64_t a = draw_numbers(r, s), b = s->n - 1 - a, carry = 0;
    for (s->m = 0; s->m < a + b; s->m++) {
        for (int64_t i = s->m < b ? 0 : s->m - b + 1; i < a && i <= s->m; i++)
            carry += s->input[i] & s->input[a + 1 + s->m - i];
        s->answer[s->m] = (int32_t)(carry % 2);
        carry /= 2;
    }
    end_number(s);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* The floor is the best constant answer. Where all answers are equally frequent that is chance; for sorted digits it is
 * the answer from the place alone, floor(5 i / n). For stacks, numbers and sorted digits it was counted over 8192 test
 * strings of 41 to 256 symbols. */
static const struct language languages[] = {
    {"reverse-string", 2, 2, 1, 0, 1, false, 0.5, write_reverse},
    {"stack-manipulation", 5, 3, 1, 1, 2, false, 0.495, write_stack},
    {"modular-arithmetic-brackets", 11, MODULUS, 0, 1, 1, false, 0.2, write_brackets},
    {"solve-equation", 11, MODULUS, 0, 1, 3, false, 0.2, write_equation},
    {"duplicate-string", 2, 2, 2, 0, 1, false, 0.5, write_duplicate},
    {"missing-duplicate", 4, 2, 0, 1, 2, false, 0.5, write_missing_duplicate},
    {"odds-first", 2, 2, 1, 0, 1, false, 0.5, write_odds_first},
    {"binary-addition", 3, 3, 1, 1, 3, false, 0.5, write_addition},
    {"binary-multiplication", 3, 3, 1, 0, 3, false, 0.499, write_multiplication},
    {"bucket-sort", MODULUS, MODULUS, 1, 0, 1, false, 0.886, write_bucket_sort},
    {"majority", 2, 2, 0, 1, 1, true, 0.5, write_majority},
};

static const struct option options[] = {
    {"language", OPT_CHOICE, offsetof(struct chomsky, chosen), "reverse-string", 0, 0,
     "reverse-string stack-manipulation modular-arithmetic-brackets solve-equation duplicate-string missing-duplicate "
     "odds-first binary-addition binary-multiplication bucket-sort majority",
     "what the answer is", OPT_AXIS},
    {"min_length", OPT_INT, offsetof(struct chomsky, train.min), "3", 1, MAX_LENGTH, NULL,
     "symbols of the shortest training string", OPT_AXIS},
    {"max_length", OPT_INT, offsetof(struct chomsky, train.max), "40", 1, MAX_LENGTH, NULL,
     "symbols of the longest training string", OPT_AXIS},
    {"eval_min_length", OPT_INT, offsetof(struct chomsky, eval.min), "41", 1, MAX_LENGTH, NULL,
     "symbols of the shortest validation and test string", OPT_AXIS | OPT_TESTED},
    {"eval_max_length", OPT_INT, offsetof(struct chomsky, eval.max), "256", 1, MAX_LENGTH, NULL,
     "symbols of the longest validation and test string", OPT_AXIS | OPT_TESTED},
    EXAMPLES_OPTIONS(struct chomsky, examples, "1000000", "2048", "8192", "strings"),
    TEST_LENGTH_OPTION(struct chomsky, test_length),
    {0},
};

#define ALIAS(NAME, SUMMARY)                                                                                           \
    { NAME, "language=" NAME, SUMMARY }

static const struct task_alias aliases[] = {
    ALIAS("reverse-string", "a string of bits backwards"),
    ALIAS("stack-manipulation", "bits of a stack, then pops and pushes: the stack from its top"),
    ALIAS("modular-arithmetic-brackets", "value mod 5 of an expression of + - and brackets"),
    ALIAS("solve-equation", "the digit that an equation mod 5 hides"),
    ALIAS("duplicate-string", "a string of bits twice"),
    ALIAS("missing-duplicate", "the bit that one of two equal strings hides"),
    ALIAS("odds-first", "the bits at odd places, then those at even ones"),
    ALIAS("binary-addition", "the sum of two binary numbers, lowest bit first"),
    ALIAS("binary-multiplication", "the product of two binary numbers, lowest bit first"),
    ALIAS("bucket-sort", "digits 0..4 in ascending order"),
    ALIAS("majority", "are there more ones than zeros?"),
    {NULL, NULL, NULL},
};

/* --- the task ----------------------------------------------------------------------------------------------------- */

static enum status chomsky_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct chomsky *w = inst;
    (void)host;
    w->language = &languages[w->chosen];
    w->seed = seed;
    TRY(check_length_range(w->language->name, w->train.min, w->train.max, e));
    if (w->eval.max < w->eval.min)
        return fail(e, ST_USAGE, "%s: eval_min_length=%lld is more than eval_max_length=%lld", w->language->name,
                    (long long)w->eval.min, (long long)w->eval.max);
    if (w->train.min >= w->language->shortest && w->eval.min >= w->language->shortest) return ST_OK;
    return fail(e, ST_USAGE, "%s: strings have at least %lld symbols; raise min_length=%lld and eval_min_length=%lld",
                w->language->name, (long long)w->language->shortest, (long long)w->train.min, (long long)w->eval.min);
}

/* Number of symbols of a string whose drawn length is n. */
static int64_t symbols_of(const struct language *l, int64_t n) {
    return l->odd ? n - 1 + n % 2 : n;
}

/* Number of positions of a string with so many symbols and the most answers: all of those are query steps. */
static int64_t positions(const struct language *l, int64_t symbols) {
    return symbols * (1 + l->most) + l->more;
}

/* Only query steps follow the string, so a mixer that looks ahead gains nothing. */
static void chomsky_shape(const void *inst, struct task_shape *out) {
    const struct chomsky *w = inst;
    const struct language *l = w->language;
    int64_t train = symbols_of(l, w->train.max), eval = symbols_of(l, w->eval.max);
    out->T = positions(l, train);
    out->T_eval = positions(l, eval);
    out->unequal_test = symbols_of(l, w->eval.min) < eval;
    out->vocab_in = l->symbols + 1;
    out->vocab_out = l->labels;
    out->needs_causal = false;
    memcpy(out->examples, w->examples, sizeof out->examples);
    out->chance = 1.0 / l->labels;
    out->floor = l->floor;
    out->solved = 0.9995;
    out->metric = METRIC_ACC;
}

static void chomsky_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct chomsky *w = inst;
    const struct language *l = w->language;
    struct rng r = example_rng(w->seed, split, index);
    struct lengths lengths = split == SPLIT_TRAIN ? w->train : w->eval;
    int64_t n = symbols_of(l, draw_length(&r, lengths.min, lengths.max));
    int64_t T = positions(l, symbols_of(l, lengths.max));
    struct strings s = {.input = x->tokens, .answer = x->targets + n, .n = n};
    l->write(&r, &s);
    for (int64_t t = n; t < T; t++) x->tokens[t] = l->symbols;
    for (int64_t t = n + s.m; t < T; t++) x->targets[t] = IGNORED; /* written and taken back */
    x->length = (int32_t)positions(l, n);
}

_Static_assert(sizeof(struct chomsky) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_chomsky = {
    .name = "chomsky",
    .summary = "strings to answer beyond regular languages; trained short, scored long (Deletang et al. 2023)",
    .suite = "chomsky",
    .about = "A string is read, then one query step an answer: reverse-string and the other short names below. Trained "
             "on up\n"
             "to 40 symbols; the source scores lengths up to 500, here those to 256 (eval_max_length). Positions after "
             "an end\n"
             "mark do not count. Chance is one in the number of labels.\n"
             "Deletang et al. 2023 (arXiv 2207.02098), over 20 910 trained models: RNNs and transformers generalise to "
             "longer\n"
             "strings on no task beyond regular languages, LSTMs on those that need counters, such as bucket-sort; "
             "nets with a\n"
             "stack on those that a stack solves, with a tape on most.",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct chomsky),
    .aliases = aliases,
    .open = chomsky_open,
    .shape = chomsky_shape,
    .fill = chomsky_fill,
};

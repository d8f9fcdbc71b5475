/* word_problem.c - group word problem: emit every prefix product of a sequence of group elements.
 *
 *   y_t = y_{t-1} * x_t, y_{-1} = identity, (a * b)(i) = a(b(i)): the newest element acts first.
 *
 * Merrill, Petty and Sabharwal 2024, "The illusion of state in state-space models" (jopetty/word-problem), in the
 * configurations of the BD-LRU/H-LRU paper: fixed length, distinct sequences, no BOS and no other special ids. */
#include "tasks/task.h"

#include <string.h>

#include "core/philox.h"

#define MAX_DEGREE       5   /* of symmetric and alternating groups */
#define MAX_PERMUTATIONS 120 /* MAX_DEGREE! */
#define MAX_CYCLIC       1000
#define MAX_LENGTH       4096
#define DIGIT_ROUNDS     8
#define INDEX_LIMIT      (INT64_C(1) << 62) /* permute_index goes no further */

enum split_rule { SPLIT_DISTINCT, SPLIT_80_20, SPLIT_80_20_CAPPED };

struct word_problem {
    char group[OPTION_TEXT];
    int64_t length, n_train, n_val, n_test, extra_length;
    int split;
    char test_length[OPTION_TEXT];

    /* made by open */
    int32_t order;           /* g, the number of elements */
    const uint16_t *product; /* (g,g): id of a * b at [a * g + b] */
    int64_t sequences;       /* min(g^length, INDEX_LIMIT) */
    int64_t examples[SPLIT_COUNT];
    uint64_t seed, key; /* of the training set; of the numbering of sequences (group and length alone) */
    uint64_t group_key; /* the latter without the length */
};

static const struct option options[] = {
    {"group", OPT_TEXT_FIELD, offsetof(struct word_problem, group), "s3", 0, 0, NULL,
     "s1..s5 (permutations), a1..a5 (even ones) or z1..z1000 (residues)", OPT_AXIS},
    {"length", OPT_INT, offsetof(struct word_problem, length), "16", 1, MAX_LENGTH, NULL, "tokens of a sequence",
     OPT_AXIS | OPT_LENGTH | OPT_TESTED},
    {"n_train", OPT_INT, offsetof(struct word_problem, n_train), "10000", 1, 1e9, NULL,
     "distinct training sequences; with split=80-20 training and test together", OPT_AXIS},
    {"n_val", OPT_INT, offsetof(struct word_problem, n_val), "2000", 1, 1e9, NULL,
     "validation sequences; they follow the test sequences in one fixed order, so n_test moves them", 0},
    {"n_test", OPT_INT, offsetof(struct word_problem, n_test), "2000", 1, 1e9, NULL,
     "test sequences, the same for every seed; not used with split=80-20", 0},
    {"split", OPT_CHOICE, offsetof(struct word_problem, split), "distinct", 0, 0, "distinct 80-20 80-20-capped",
     "distinct: n_train for training, n_test apart; 80-20: n_train is cut into 80% training and 20% test; "
     "80-20-capped: "
     "likewise all there are where they are fewer than n_train",
     0},
    {"extra_length", OPT_INT, offsetof(struct word_problem, extra_length), "0", 0, MAX_LENGTH, NULL,
     "each training step learns from a tenth as many strings of this length besides, as SLiCE's A5; 0 = none", 0},
    TEST_LENGTH_OPTION(struct word_problem, test_length),
    {0},
};

static const struct task_alias aliases[] = {
    {"s3", "group=s3,n_train=10000", "all permutations of 3, 10k training sequences"},
    {"s4", "group=s4,n_train=50000", "all permutations of 4, 50k training sequences"},
    {"s5", "group=s5,n_train=100000", "all permutations of 5, 100k training sequences"},
    {"a5", "group=a5,n_train=100000", "even permutations of 5, 100k training sequences"},
    {"a5-slice", "group=a5,length=20,n_train=1M,split=80-20-capped,extra_length=2",
     "even permutations of 5 as SLiCE trains on them: up to a million strings, and those of length 2 in every step"},
    {"s3-250", "group=s3,n_train=250", "all permutations of 3, only 250 training sequences"},
    {"s4-3k", "group=s4,n_train=3000", "all permutations of 4, only 3k training sequences"},
    {NULL, NULL, NULL},
};

/* --- groups ----------------------------------------------------------------------------------------------------- */

struct permutation {
    uint8_t to[MAX_DEGREE];
};

/* The next one-line tuple in lexicographic order; false after the last. */
static bool next_permutation(struct permutation *p, int degree) {
    int i = degree - 2, j = degree - 1;
    while (i >= 0 && p->to[i] > p->to[i + 1]) i--;
    if (i < 0) return false;
    while (p->to[j] < p->to[i]) j--;
    uint8_t swapped = p->to[i];
    p->to[i] = p->to[j];
    p->to[j] = swapped;
    for (int low = i + 1, high = degree - 1; low < high; low++, high--) {
        swapped = p->to[low];
        p->to[low] = p->to[high];
        p->to[high] = swapped;
    }
    return true;
}

static bool is_even(const struct permutation *p, int degree) {
    int inversions = 0;
    for (int i = 0; i < degree; i++)
        for (int j = i + 1; j < degree; j++) inversions += p->to[i] > p->to[j];
    return inversions % 2 == 0;
}

/* All permutations, or the even ones, in lexicographic order: the place in the list is the id. Returns their number. */
static int list_permutations(int degree, bool even_only, struct permutation list[MAX_PERMUTATIONS]) {
    struct permutation p = {{0}};
    int n = 0;
    for (int i = 0; i < degree; i++) p.to[i] = (uint8_t)i;
    do
        if (!even_only || is_even(&p, degree)) list[n++] = p;
    while (next_permutation(&p, degree));
    return n;
}

static int find_permutation(const struct permutation *list, int n, const struct permutation *p) {
    for (int i = 0; i < n; i++)
        if (memcmp(&list[i], p, sizeof *p) == 0) return i;
    return -1;
}

static void fill_permutation_table(uint16_t *product, const struct permutation *list, int n, int degree) {
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            struct permutation ab = {{0}};
            for (int i = 0; i < degree; i++) ab.to[i] = list[a].to[list[b].to[i]];
            product[a * n + b] = (uint16_t)find_permutation(list, n, &ab);
        }
}

/* Splits "s5" into family and number; false if there is no such group. */
static bool parse_group(const char *text, char *family, int *number) {
    int64_t value;
    if (text[0] == '\0' || text[1] == '0' || text[1 + strspn(text + 1, "0123456789")] != '\0') return false;
    if (!parse_int64(text + 1, &value)) return false;
    *family = text[0];
    if (*family != 's' && *family != 'a' && *family != 'z') return false;
    if (value > (*family == 'z' ? MAX_CYCLIC : MAX_DEGREE)) return false;
    *number = (int)value;
    return true;
}

/* Makes order and product table. */
static enum status make_group(struct word_problem *w, char family, int number, struct arena *host, struct error *e) {
    struct permutation list[MAX_PERMUTATIONS];
    w->order = family == 'z' ? number : list_permutations(number, family == 'a', list);
    size_t bytes = (size_t)w->order * (size_t)w->order * sizeof(uint16_t);
    uint16_t *product = arena_alloc(host, bytes);
    if (!product)
        return fail(e, ST_MEMORY, "word-problem: no room for the %zu bytes of the product table of group %s", bytes,
                    w->group);
    w->product = product;
    if (family != 'z') {
        fill_permutation_table(product, list, w->order, number);
        return ST_OK;
    }
    for (int a = 0; a < number; a++)
        for (int b = 0; b < number; b++) product[a * number + b] = (uint16_t)((a + b) % number);
    return ST_OK;
}

/* --- sequences -------------------------------------------------------------------------------------------------- */

/* to += stream(from), digit by digit modulo g: invertible, because `from` is left as it is. The stream is Philox's, its
 * index a digest of `from`, its sub-stream the round. Digits are below 2^16, so a block absorbs four. */
static void add_stream(const struct word_problem *w, uint32_t round, const int32_t *from, int64_t n_from, int32_t *to,
                       int64_t n_to) {
    struct philox_block digest = {{0, 0, 0, 0}};
    for (int64_t i = 0; i < n_from; i++) {
        digest.word[i % 4] ^= (uint32_t)from[i];
        if (i % 4 == 3 || i == n_from - 1) digest = philox4x32(digest, (uint32_t)w->key, (uint32_t)(w->key >> 32));
    }
    struct rng r = rng_at(w->key, STREAM_TABLE | round << 8, digest.word[0] | (uint64_t)digest.word[1] << 32);
    for (int64_t i = 0; i < n_to; i++) {
        int32_t sum = to[i] + (int32_t)rng_below(&r, (uint64_t)w->order);
        to[i] = sum < w->order ? sum : sum - w->order;
    }
}

/* Sequence number `index` of the group's g^L: an exact bijection, so different numbers are different sequences and
 * nothing needs to be stored. The number is written in base g and sent through a Feistel network on strings of digits;
 * g^L itself may be far beyond 64 bits. A single digit has no halves and is permuted directly. */
static void make_sequence(const struct word_problem *w, int64_t index, int32_t *tokens) {
    int64_t n = w->length, left = n / 2;
    if (n == 1) {
        tokens[0] = (int32_t)permute_index(w->key, STREAM_TABLE, 0, (uint64_t)index, (uint64_t)w->order);
        return;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        tokens[i] = (int32_t)(index % w->order);
        index /= w->order;
    }
    for (uint32_t round = 0; round < DIGIT_ROUNDS; round += 2) {
        add_stream(w, round, tokens + left, n - left, tokens, left);
        add_stream(w, round + 1, tokens, left, tokens + left, n - left);
    }
}

/* Strings that are cut 80:20. */
static int64_t pool_size(const struct word_problem *w) {
    int64_t left = w->sequences - w->n_val;
    return w->split == SPLIT_80_20_CAPPED && left < w->n_train ? left : w->n_train;
}

static enum status check_counts(const struct word_problem *w, struct error *e) {
    int64_t wanted = w->examples[SPLIT_TRAIN] + w->examples[SPLIT_VAL] + w->examples[SPLIT_TEST];
    if (w->extra_length >= w->length)
        return fail(e, ST_USAGE, "word-problem: extra_length=%lld must be below length=%lld",
                    (long long)w->extra_length, (long long)w->length);
    if (w->split != SPLIT_DISTINCT && pool_size(w) < 5)
        return fail(e, ST_USAGE, "word-problem: split=80-20 needs n_train of at least 5, got %lld%s",
                    (long long)pool_size(w), pool_size(w) < w->n_train ? ", which is all that n_val leaves" : "");
    if (wanted <= w->sequences) return ST_OK;
    char n_test[48] = " (80-20)";
    if (w->split == SPLIT_DISTINCT) snprintf(n_test, sizeof n_test, " n_test=%lld", (long long)w->n_test);
    return fail(e, ST_USAGE,
                "word-problem: group %s at length %lld has only %lld sequence%s, but n_train=%lld n_val=%lld%s ask for "
                "%lld; lower them or raise length",
                w->group, (long long)w->length, (long long)w->sequences, w->sequences == 1 ? "" : "s",
                (long long)w->n_train, (long long)w->n_val, n_test, (long long)wanted);
}

/* min(g^length, INDEX_LIMIT) */
static int64_t count_sequences(int64_t order, int64_t length) {
    int64_t n = 1;
    for (int64_t t = 0; t < length; t++) /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a group has an identity */
        n = n <= INDEX_LIMIT / order ? n * order : INDEX_LIMIT;
    return n;
}

static enum status word_problem_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct word_problem *w = inst;
    char family;
    int number;
    if (!parse_group(w->group, &family, &number))
        return fail(e, ST_USAGE, "word-problem: unknown group '%s'; expected s1..s%d, a1..a%d or z1..z%d", w->group,
                    MAX_DEGREE, MAX_DEGREE, MAX_CYCLIC);
    TRY(make_group(w, family, number, host, e));
    w->sequences = count_sequences(w->order, w->length);
    int64_t pool = pool_size(w), test = w->split == SPLIT_DISTINCT ? w->n_test : pool / 5;
    w->examples[SPLIT_TRAIN] = w->split == SPLIT_DISTINCT ? w->n_train : pool - test;
    w->examples[SPLIT_VAL] = w->n_val;
    w->examples[SPLIT_TEST] = test;
    w->seed = seed;
    w->group_key = (uint64_t)family << 48 | (uint64_t)number << 32;
    w->key = w->group_key | (uint64_t)w->length;
    return check_counts(w, e);
}

static void fill_sequence(const struct word_problem *w, int64_t number, struct example *x) {
    make_sequence(w, number, x->tokens);
    int32_t y = 0; /* identity */
    for (int64_t t = 0; t < w->length; t++) x->targets[t] = y = w->product[y * w->order + x->tokens[t]];
    x->length = (int32_t)w->length;
}

/* The second batch has all strings of its length, whichever of them a run may have been given to learn from. */
static void word_problem_fill_second(const void *inst, int64_t index, struct example *x) {
    struct word_problem w = *(const struct word_problem *)inst;
    w.length = w.extra_length;
    w.key = w.group_key | (uint64_t)w.length;
    fill_sequence(&w, index, x);
}

static void word_problem_shape(const void *inst, struct task_shape *out) {
    const struct word_problem *w = inst;
    double g = w->order, length = (double)w->length;
    out->T = w->length;
    out->vocab_in = out->vocab_out = w->order;
    out->needs_causal = true;
    memcpy(out->examples, w->examples, sizeof out->examples);
    if (w->extra_length)
        out->second = (struct second_batch){.T = w->extra_length,
                                            .examples = count_sequences(w->order, w->extra_length),
                                            .fill = word_problem_fill_second};
    out->chance = 1 / g;
    out->floor = (1 + (length - 1) / g) / length; /* copies y_0 = x_0 and guesses the rest */
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

/* Test sequences come first in the numbering, then validation, and the seed draws the training sequences out of all
 * others: so test and validation are the same for every seed. */
static int64_t sequence_number(const struct word_problem *w, enum split split, int64_t index) {
    int64_t test = w->examples[SPLIT_TEST], held_out = test + w->examples[SPLIT_VAL];
    if (split == SPLIT_TEST) return index;
    if (split == SPLIT_VAL) return test + index;
    return held_out +
           (int64_t)permute_index(w->seed, STREAM_DATA, 0, (uint64_t)index, (uint64_t)(w->sequences - held_out));
}

static void word_problem_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct word_problem *w = inst;
    fill_sequence(w, sequence_number(w, split, index), x);
}

_Static_assert(sizeof(struct word_problem) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_word_problem = {
    .name = "word-problem",
    .summary = "every prefix product of a sequence of group elements; state tracking (Merrill et al. 2024)",
    .suite = "word-problem",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct word_problem),
    .aliases = aliases,
    .open = word_problem_open,
    .shape = word_problem_shape,
    .fill = word_problem_fill,
};

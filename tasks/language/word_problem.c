/* word_problem.c - group word problem: emit every prefix product of a sequence of group elements.
 *
 *   y_t = y_{t-1} * x_t, y_{-1} = identity, (a * b)(i) = a(b(i)): the newest element acts first.
 *
 * Merrill, Petty and Sabharwal 2024, "The illusion of state in state-space models" (jopetty/word-problem), in the
 * configurations of the BD-LRU/H-LRU paper: fixed length, distinct sequences, no BOS and no other special ids. */
#include <string.h>

#include "tasks/examples.h"
#include "tasks/language/group.h"

#define MAX_LENGTH   4096
#define MAX_DRAWS    1000 /* attempts to draw generators */
#define SETTLED      4096 /* positions times generators after which products are taken as uniform */
#define DIGIT_ROUNDS 8
#define INDEX_LIMIT  (INT64_C(1) << 62) /* limit of permute_index */

enum generators { EVERY_ELEMENT, TRANSPOSITIONS, TWO_GENERATORS, RANDOM_GENERATORS };
enum split_rule { SPLIT_DISTINCT, SPLIT_80_20, SPLIT_80_20_CAPPED };

struct word_problem {
    char group[OPTION_TEXT];
    int64_t length, min_length, n_train, n_val, n_test, extra_length, n_generators;
    int split, generators;
    char test_length[OPTION_TEXT];

    /* made by open */
    struct group of;
    int32_t letters;        /* k, the number of elements that sequences are made of */
    const uint16_t *letter; /* (k) their ids */
    double floor;
    int64_t sequences; /* min(k^length, INDEX_LIMIT) */
    int64_t examples[SPLIT_COUNT];
    uint64_t seed, key; /* seed of the training set; key of the numbering of sequences (from group and length) */
    uint64_t group_key; /* `key` without the length */
};

static const struct option options[] = {
    {"group", OPT_TEXT_FIELD, offsetof(struct word_problem, group), "s3", 0, 0, NULL,
     "s1..s5 (permutations), a1..a5 (even ones), z1..z1000 (residues), d1..d500 (symmetries of a polygon), q8, q12, .. "
     "(dicyclic; q8 the quaternions), h2..h10 (Heisenberg modulo that number), or a product: z2xs3",
     OPT_AXIS},
    {"generators", OPT_CHOICE, offsetof(struct word_problem, generators), "all", 0, 0, "all transpositions two random",
     "elements of the sequences: all; transpositions: the identity and the swaps of two (s1..s5); two: the first two "
     "by id that generate the group; random: n_generators drawn ones that generate it, the same for every seed",
     OPT_AXIS},
    {"n_generators", OPT_INT, offsetof(struct word_problem, n_generators), "4", 1, GROUP_MAX_ORDER, NULL,
     "number of elements with generators=random", OPT_AXIS},
    {"length", OPT_INT, offsetof(struct word_problem, length), "16", 1, MAX_LENGTH, NULL, "tokens of a sequence",
     OPT_AXIS | OPT_LENGTH | OPT_TESTED},
    {"min_length", OPT_INT, offsetof(struct word_problem, min_length), "auto", 1, MAX_LENGTH, "length",
     "training and validation sequences have lengths from this to `length`, equally often; auto: `length` alone",
     OPT_AXIS | OPT_AUTO | OPT_TESTED},
    {"n_train", OPT_INT, offsetof(struct word_problem, n_train), "10000", 1, 1e9, NULL,
     "distinct training sequences; with split=80-20 training and test together", OPT_AXIS},
    {"n_val", OPT_INT, offsetof(struct word_problem, n_val), "2000", 1, 1e9, NULL,
     "validation sequences; they follow the test sequences in one fixed order, so n_test moves them", 0},
    {"n_test", OPT_INT, offsetof(struct word_problem, n_test), "2000", 1, 1e9, NULL,
     "test sequences, the same for every seed; not used with split=80-20", 0},
    {"split", OPT_CHOICE, offsetof(struct word_problem, split), "distinct", 0, 0, "distinct 80-20 80-20-capped",
     "distinct: n_train for training and n_test for the test; 80-20: n_train is cut into 80% training and 20% test; "
     "80-20-capped: like 80-20, of all sequences if there are fewer than n_train",
     0},
    {"extra_length", OPT_INT, offsetof(struct word_problem, extra_length), "0", 0, MAX_LENGTH, NULL,
     "each training step also learns from a tenth as many strings of this length, as SLiCE's A5; 0 = none", 0},
    TEST_LENGTH_OPTION(struct word_problem, test_length),
    {0},
};

/* The automata of PD-SSM (arXiv 2509.22284); which generators the paper drew is not in its release. */
#define BY(GROUP, COUNT)                                                                                               \
    "group=" GROUP ",generators=random,n_generators=" COUNT                                                            \
    ",length=40,min_length=3,n_train=25600000,test_length=64,128,256"

static const struct task_alias aliases[] = {
    {"s3", "group=s3,n_train=10000", "all permutations of 3, 10k training sequences"},
    {"s4", "group=s4,n_train=50000", "all permutations of 4, 50k training sequences"},
    {"s5", "group=s5,n_train=100000", "all permutations of 5, 100k training sequences"},
    {"a5", "group=a5,n_train=100000", "even permutations of 5, 100k training sequences"},
    {"a5-slice", "group=a5,length=20,n_train=1M,split=80-20-capped,extra_length=2",
     "even permutations of 5 as in SLiCE: up to a million strings, and strings of length 2 in every step"},
    {"s3-250", "group=s3,n_train=250", "all permutations of 3, only 250 training sequences"},
    {"s4-3k", "group=s4,n_train=3000", "all permutations of 4, only 3k training sequences"},
    {"a5-by-2", BY("a5", "2"), "products of 2 random even permutations of 5, trained to 40, tested to 256"},
    {"a5-by-6", BY("a5", "6"), "products of 6 random even permutations of 5, trained to 40, tested to 256"},
    {"a5-by-8", BY("a5", "8"), "products of 8 random even permutations of 5, trained to 40, tested to 256"},
    {"a5-by-12", BY("a5", "12"), "products of 12 random even permutations of 5, trained to 40, tested to 256"},
    {"s5-by-4", BY("s5", "4"), "products of 4 random permutations of 5, trained to 40, tested to 256"},
    {"s5-by-8", BY("s5", "8"), "products of 8 random permutations of 5, trained to 40, tested to 256"},
    {"s5-by-32", BY("s5", "32"), "products of 32 random permutations of 5, trained to 40, tested to 256"},
    {NULL, NULL, NULL},
};

/* --- generators ----------------------------------------------------------------------------------------------- */

/* Finds the first two elements by id that generate the group, neither of them the identity. 0: there are none. */
static int find_two(const struct group *g, uint16_t list[2]) {
    for (list[0] = 1; list[0] < g->order; list[0]++)
        for (list[1] = (uint16_t)(list[0] + 1); list[1] < g->order; list[1]++)
            if (group_is_generated(g, list, 2)) return 2;
    return 0;
}

/* Takes the first `count` elements, without the identity, of a random permutation that depends only on the group and
 * its number. If they do not generate the group, it tries the next permutation. 0: all MAX_DRAWS failed. */
static int draw_generators(const struct group *g, int64_t count, uint16_t *list) {
    for (uint64_t draw = 0; draw < MAX_DRAWS && count < g->order; draw++) {
        for (int64_t i = 0; i < count; i++)
            list[i] = (uint16_t)(1 + permute_index(g->key, STREAM_TABLE, draw, (uint64_t)i, (uint64_t)g->order - 1));
        if (group_is_generated(g, list, (int)count)) return (int)count;
    }
    return 0;
}

/* Chooses the elements that sequences are made of. */
static enum status choose_letters(struct word_problem *w, struct arena *host, struct error *e) {
    const struct group *g = &w->of;
    uint16_t *list = arena_alloc(host, (size_t)g->order * sizeof *list);
    if (!list) return fail(e, ST_MEMORY, "word-problem: no room for the generators of group %s", w->group);
    w->letter = list;
    w->letters = 0;
    switch (w->generators) {
    case EVERY_ELEMENT:
        for (int32_t i = 0; i < g->order; i++) list[i] = (uint16_t)i;
        w->letters = g->order;
        return ST_OK;
    case TRANSPOSITIONS:
        w->letters = group_transpositions(g, w->group, list);
        if (w->letters) return ST_OK;
        return fail(e, ST_USAGE,
                    "word-problem: group %s has no transpositions; generators=transpositions is for s1..s5", w->group);
    case TWO_GENERATORS:
        if (g->order > 2) w->letters = find_two(g, list);
        if (w->letters) return ST_OK;
        return fail(e, ST_USAGE,
                    "word-problem: no two elements beside the identity generate group %s; try generators=all",
                    w->group);
    default:
        w->letters = draw_generators(g, w->n_generators, list);
        if (w->letters) return ST_OK;
        return fail(
            e, ST_USAGE,
            "word-problem: no n_generators=%lld elements beside the identity were found that generate group %s of "
            "order %d; try another number",
            (long long)w->n_generators, w->group, (int)g->order);
    }
}

/* Computes the accuracy of the best answer from only the position and the newest element: the likeliest product so far,
 * times that element. It is the mean over positions of the largest probability of a product. */
static enum status find_floor(struct word_problem *w, struct arena *host, struct error *e) {
    int32_t g = w->of.order;
    double *now = arena_alloc(host, 2 * (size_t)g * sizeof *now), sum = 0;
    if (!now) return fail(e, ST_MEMORY, "word-problem: no room for the chances of products of group %s", w->group);
    double *next = now + g, most = 1;
    for (int32_t a = 0; a < g; a++) now[a] = a == 0;
    for (int64_t t = 0; t < w->length; t++) {
        sum += most;
        if (t > 0 && (w->letters == g || t * w->letters > SETTLED)) continue; /* it stays unchanged */
        for (int32_t a = 0; a < g; a++) next[a] = 0;
        for (int32_t a = 0; a < g; a++)
            for (int32_t i = 0; i < w->letters; i++)
                next[w->of.product[a * g + w->letter[i]]] += now[a] / (double)w->letters;
        most = 0;
        for (int32_t a = 0; a < g; a++) {
            now[a] = next[a];
            if (now[a] > most) most = now[a];
        }
    }
    w->floor = sum / (double)w->length;
    return ST_OK;
}

/* --- sequences -------------------------------------------------------------------------------------------------- */

/* Adds stream(from) to `to`, digit by digit modulo k. The step is invertible, because `from` is unchanged. The stream
 * is Philox's: its index is a digest of `from`, its sub-stream the round. Digits are below 2^16, so a block absorbs
 * four. */
static void add_stream(const struct word_problem *w, uint32_t round, const int32_t *from, int64_t n_from, int32_t *to,
                       int64_t n_to) {
    struct philox_block digest = {{0, 0, 0, 0}};
    for (int64_t i = 0; i < n_from; i++) {
        digest.word[i % 4] ^= (uint32_t)from[i];
        if (i % 4 == 3 || i == n_from - 1) digest = philox4x32(digest, (uint32_t)w->key, (uint32_t)(w->key >> 32));
    }
    struct rng r = rng_at(w->key, STREAM_TABLE | round << 8, digest.word[0] | (uint64_t)digest.word[1] << 32);
    for (int64_t i = 0; i < n_to; i++) {
        int32_t sum = to[i] + (int32_t)rng_below(&r, (uint64_t)w->letters);
        to[i] = sum < w->letters ? sum : sum - w->letters;
    }
}

/* Writes sequence number `index` of the k^L over k letters. The map is a bijection, so different numbers are different
 * sequences and nothing is stored. The number is written in base k and sent through a Feistel network on strings of
 * digits; k^L itself may be far beyond 64 bits. A single digit has no halves and is permuted directly. */
static void make_sequence(const struct word_problem *w, int64_t index, int32_t *tokens) {
    int64_t n = w->length, left = n / 2;
    if (n == 1) {
        tokens[0] = (int32_t)permute_index(w->key, STREAM_TABLE, 0, (uint64_t)index, (uint64_t)w->letters);
        return;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        tokens[i] = (int32_t)(index % w->letters);
        index /= w->letters;
    }
    for (uint32_t round = 0; round < DIGIT_ROUNDS; round += 2) {
        add_stream(w, round, tokens + left, n - left, tokens, left);
        add_stream(w, round + 1, tokens, left, tokens + left, n - left);
    }
}

/* Returns the number of strings that are divided 80:20. */
static int64_t pool_size(const struct word_problem *w) {
    int64_t left = w->sequences - w->n_val;
    return w->split == SPLIT_80_20_CAPPED && left < w->n_train ? left : w->n_train;
}

static enum status check_counts(const struct word_problem *w, struct error *e) {
    int64_t wanted = w->examples[SPLIT_TRAIN] + w->examples[SPLIT_VAL] + w->examples[SPLIT_TEST];
    if (w->min_length > w->length)
        return fail(e, ST_USAGE, "word-problem: min_length=%lld is more than length=%lld", (long long)w->min_length,
                    (long long)w->length);
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

/* min(k^length, INDEX_LIMIT) */
static int64_t count_sequences(int64_t letters, int64_t length) {
    int64_t n = 1;
    for (int64_t t = 0; t < length; t++) /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): choose_letters found one */
        n = n <= INDEX_LIMIT / letters ? n * letters : INDEX_LIMIT;
    return n;
}

static enum status word_problem_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct word_problem *w = inst;
    TRY(group_make(&w->of, w->group, host, e));
    TRY(choose_letters(w, host, e));
    TRY(find_floor(w, host, e));
    w->sequences = count_sequences(w->letters, w->length);
    int64_t pool = pool_size(w), test = w->split == SPLIT_DISTINCT ? w->n_test : pool / 5;
    w->examples[SPLIT_TRAIN] = w->split == SPLIT_DISTINCT ? w->n_train : pool - test;
    w->examples[SPLIT_VAL] = w->n_val;
    w->examples[SPLIT_TEST] = test;
    w->seed = seed;
    w->group_key = w->of.key ^ (uint64_t)w->generators << 60;
    w->key = w->group_key | (uint64_t)w->length;
    return check_counts(w, e);
}

static void fill_sequence(const struct word_problem *w, int64_t number, struct example *x) {
    make_sequence(w, number, x->tokens);
    int32_t y = 0; /* identity */
    for (int64_t t = 0; t < w->length; t++) {
        x->tokens[t] = w->letter[x->tokens[t]];
        x->targets[t] = y = w->of.product[y * w->of.order + x->tokens[t]];
    }
    x->length = (int32_t)w->length;
}

/* Fills the second batch, which has all strings of its length, whichever strings the run trains on. */
static void word_problem_fill_second(const void *inst, int64_t index, struct example *x) {
    struct word_problem w = *(const struct word_problem *)inst;
    w.length = w.extra_length;
    w.key = w.group_key | (uint64_t)w.length;
    fill_sequence(&w, index, x);
}

static void word_problem_shape(const void *inst, struct task_shape *out) {
    const struct word_problem *w = inst;
    out->T = w->length;
    out->vocab_in = out->vocab_out = w->of.order;
    out->needs_causal = true;
    memcpy(out->examples, w->examples, sizeof out->examples);
    if (w->extra_length)
        out->second = (struct second_batch){.T = w->extra_length,
                                            .examples = count_sequences(w->letters, w->extra_length),
                                            .fill = word_problem_fill_second};
    out->curriculum = (struct length_range){1, w->length};
    out->chance = 1.0 / w->of.order;
    out->floor = w->floor;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

/* A sequence of mixed lengths, or of a curriculum, is the beginning of one of the longest. A short one may be a test
 * sequence of its length by chance.
 *
 * Test sequences come first in the numbering, then validation, and the seed draws the training sequences out of all
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
    if (split == SPLIT_TEST || (w->min_length == 0 && x->most == 0)) return;
    struct rng r = example_rng(w->seed, split, index);
    int64_t most = x->most ? x->most : w->length, least = w->min_length && w->min_length < most ? w->min_length : most;
    x->length = (int32_t)draw_length(&r, least, most);
    for (int64_t t = x->length; t < w->length; t++) {
        x->tokens[t] = 0;
        x->targets[t] = IGNORED;
    }
}

_Static_assert(sizeof(struct word_problem) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_word_problem = {
    .name = "word-problem",
    .summary = "every prefix product of a sequence of group elements; state tracking (Merrill et al. 2024)",
    .suite = "word-problem",
    .about =
        "A sequence of group elements is read one by one; each position's target is the product so far. Sequences are\n"
        "distinct, and the test is the same for every seed. Chance is one in the number of elements; the best trivial\n"
        "answer knows the newest element and the position.\n"
        "Fewest Householder steps n_h with which one layer of DeltaProduct learns it (Siems et al. 2025, arXiv\n"
        "2502.10297; trained at 128, tested to 512): S3 2, S4 2, A5 2, S5 4; `lrnn bench deltaproduct`.\n"
        "Table 2 of BD-LRU (arXiv 2602.12021) is `lrnn bench hlru-table2`, the A5 figure of SLiCE `lrnn bench "
        "slice-a5`.",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct word_problem),
    .aliases = aliases,
    .open = word_problem_open,
    .shape = word_problem_shape,
    .fill = word_problem_fill,
};

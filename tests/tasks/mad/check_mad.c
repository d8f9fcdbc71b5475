/* check_mad.c - the MAD tasks and MQAR: options, shapes, splits, what trivial answers score; and the examples of
 * compression, selective copying and memorization (athms/mad-lab, mad/data/instances.py). */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/metrics.h"
#include "tasks/variants.h"
#include "tests/tasks/mad/mad_view.h"

static const char *const names[] = {
    "compression", "selective-copying", "in-context-recall", "noisy-recall", "fuzzy-recall", "memorization", "mqar"};
#define NAMES (int)(sizeof names / sizeof *names)

/* --- options ------------------------------------------------------------------------------------------------------ */

START_TEST(options_that_do_not_fit_are_refused) {
    check_task_refused("selective-copying:length=33",
                       "selective-copying: length=33 cannot hold copy=16 tokens|it must exceed 2 * copy + 1 = 33");
    check_task_refused("selective-copying:copy=128", "length=256|copy=128|257");
    check_task_refused("selective-copying:vocab=3", "vocab=3 (task selective-copying): expected a whole number from 4");
    check_task_refused("selective-copying:copy=0", "copy=0");
    check_task_refused("in-context-recall:length=127",
                       "in-context-recall: length=127 is not made of whole pairs|even and at least 4");
    check_task_refused("in-context-recall:length=2", "length=2|even and at least 4");
    check_task_refused("noisy-recall:vocab=19",
                       "in-context-recall: vocab=19 less noise_vocab=16 and 0 special ids leaves 1 keys and 2 values, "
                       "but at least 2 and 2 are needed; raise vocab");
    check_task_refused("in-context-recall:vocab=4,query=single", "vocab=4 and 1 special id leaves 1 keys and 2 values");
    check_task_refused("in-context-recall:vocab=8,noise_vocab=100", "leaves 0 keys and 0 values");
    check_task_refused("in-context-recall:noise=0.5", "noise=0.5 needs ids of its own, but noise_vocab=0");
    check_task_refused("in-context-recall:noise=1,noise_vocab=2",
                       "noise=1 (task in-context-recall): expected a number from 0 to 0.95");
    check_task_refused("fuzzy-recall:noise=0.1", "fuzzy-recall: noise=0.1 needs ids");
    check_task_refused("compression:noise=0.1", "compression: noise=0.1 needs ids");
    check_task_refused("compression:noise_vocab=14",
                       "compression: vocab=16 less noise_vocab=14 and the marker leaves 1 content ids|at least 2");
    check_task_refused("compression:noise_vocab=16", "leaves 0 content ids");
    check_task_refused("compression:length=1", "length=1");
    check_task_refused("fuzzy-recall:length=12",
                       "fuzzy-recall: length=12 cannot show the longest pair twice|2 * (key_motif=3 + value_motif=3) = "
                       "12");
    check_task_refused("fuzzy-recall:vocab=6",
                       "vocab=6 and 1 special id leaves 2 keys and 3 values|at least 3 and 3 are needed");
    check_task_refused("fuzzy-recall:vocab=7,query=single", "vocab=7 and 2 special ids leaves 2 keys and 3 values");
    check_task_refused("fuzzy-recall:key_motif=8", "leaves 7 keys and 8 values, but at least 8 and 3 are needed");
    check_task_refused("fuzzy-recall:key_motif=1,value_motif=1,vocab=4", "1 keys and 2 values|at least 2 and 2");
    check_task_refused("memorization:length=31", "memorization: length=31 is not made of whole pairs; it must be even");
    check_task_refused("memorization:vocab=4", "vocab=4 and 1 special id leaves 1 keys and 2 values");
    check_task_refused("mqar:length=63", "mqar: length=63|even");
    check_task_refused("mqar:pairs=17", "mqar: length=64 cannot hold pairs=17|at least 4 * pairs = 68");
    check_task_refused("mqar:vocab=64", "mqar: vocab=64 must exceed length=64");
    check_task_refused("mqar:pairs=1", "pairs=1");
    check_task_refused("mqar:updates=5", "mqar: updates=5 are more than pairs=4");
    check_task_refused("mqar:pairs=12,updates=9", "length=64 cannot hold pairs=12|4 * pairs + 2 * updates = 66");
    check_task_refused("mqar:keys=pairs,pairs=5", "a square as pairs|pairs=5, vocab=8192");
    check_task_refused("mqar:keys=pairs,pairs=16", "length=64 cannot hold pairs=16|6 * pairs = 96");
    check_task_refused("mqar:keys=pairs,updates=1", "updates=1 go with single keys");
    check_task_refused("mqar-mixed:test_length=64", "mix=zoology has test lengths of its own");
    check_task_refused("mqar-mixed:updates=1", "mix=zoology has single keys and no updates");
    check_task_refused("mqar-mixed:vocab=1024", "vocab=1024 must exceed length=1024");
    check_task_refused("mqar-mixed:min_length=32", "mix=zoology has training lengths of its own");
    check_task_refused("mqar:min_length=15", "min_length=15 is not from 16, which holds one pair, to length=64");
    check_task_refused("mqar:min_length=65", "min_length=65 is not from 16");
    check_task_refused("in-context-recall:query=many", "query=many");
    check_task_refused("fuzzy-recal", "did you mean 'fuzzy-recall'?");
}
END_TEST

static void check_row(const struct view *v) {
    int64_t scored = 0;
    for (int64_t t = 0; t < v->s->T; t++) {
        int32_t x = v->x.tokens[t], y = v->x.targets[t];
        require(v, 0 <= x && x < v->s->vocab_in, "an input out of range");
        require(v, y == IGNORED || (0 <= y && y < v->s->vocab_out), "a target out of range");
        scored += y != IGNORED;
    }
    require(v, scored > 0 && v->x.length == v->s->T, "nothing to score");
}

START_TEST(the_tightest_options_are_accepted) {
    static const char *const tight[] = {"selective-copying:length=34",
                                        "selective-copying:length=4,copy=1,vocab=4",
                                        "in-context-recall:length=4,vocab=4",
                                        "in-context-recall:length=4,vocab=5,query=single",
                                        "in-context-recall:length=4,vocab=5,noise_vocab=1,noise=0.95",
                                        "noisy-recall:vocab=20",
                                        "compression:length=2,vocab=4,noise_vocab=1,noise=0.95",
                                        "fuzzy-recall:length=13,vocab=7",
                                        "fuzzy-recall:length=13,vocab=8,query=single",
                                        "fuzzy-recall:length=5,vocab=5,key_motif=1,value_motif=1",
                                        "fuzzy-recall:length=13,vocab=8,noise_vocab=1,noise=0.95",
                                        "fuzzy-recall:length=33,vocab=17,key_motif=8,value_motif=8",
                                        "memorization:length=2,vocab=5",
                                        "mqar:length=8,pairs=2,vocab=9",
                                        "mqar:length=64,pairs=16,power=0"};
    for (size_t i = 0; i < sizeof tight / sizeof *tight; i++) {
        struct view v;
        view_open(&v, tight[i], 3);
        struct example other = new_example(v.s);
        for (int split = 0; split < SPLIT_COUNT; split++)
            for (v.index = 0; v.index < 100; v.index++) {
                fill_example(&v.c, (enum split)split, v.index, -7, &v.x);
                fill_example(&v.c, (enum split)split, v.index, 5, &other);
                require(&v, same_example(v.s, (enum split)split, &v.x, &other), "depends on what its memory held");
                check_row(&v);
            }
        free_example(&other);
        view_close(&v);
    }
}
END_TEST

START_TEST(a_full_arena_is_an_error_and_not_a_crash) {
    static const char *const rows[][2] = {{"memorization", "508 bytes of the map"}, {"mqar", "256 bytes of the slots"}};
    for (int i = 0; i < 2; i++) {
        struct task_choice c;
        struct error e;
        ck_assert_int_eq(task_parse(&c, rows[i][0], &e), ST_OK);
        task_host.fail_after = 1;
        ck_assert_int_eq(task_open(&c, 1, &task_host, &e), ST_MEMORY);
        ck_assert_msg(strstr(e.text, rows[i][1]) != NULL, "%s", e.text);
    }
}
END_TEST

/* --- shapes ------------------------------------------------------------------------------------------------------- */

START_TEST(shapes_are_those_of_the_specification) {
    static const struct {
        const char *name;
        int64_t T, vocab, train, held_out;
        double chance, floor;
    } rows[] = {
        {"compression", 32, 16, 12800, 1280, 2. / 16, 2. / 16},
        {"compression:vocab=64,length=256", 256, 64, 12800, 1280, 2. / 64, 2. / 64},
        {"compression:noise_vocab=8", 32, 16, 12800, 1280, 2. / 8, 2. / 8}, /* 7 ids and the marker occur */
        {"compression:noise_vocab=8,noise=0.2", 32, 16, 12800, 1280, 2. / 16, 2. / 16},
        {"in-context-recall", 127, 16, 12800, 1280, .125, .125},
        {"in-context-recall:query=single", 128, 16, 12800, 1280, .125, .125}, /* 15 ids: 7 keys, 8 values */
        {"in-context-recall:vocab=128", 127, 128, 12800, 1280, 2. / 128, 2. / 128},
        {"noisy-recall", 127, 32, 12800, 1280, .125, .125},
        {"fuzzy-recall", 128, 16, 12800, 1280, .125, .125},
        {"fuzzy-recall:query=single", 128, 16, 12800, 1280, 1. / 7, 1. / 7},
        {"selective-copying", 256, 16, 12800, 1280, 1. / 14, 1. / 14},
        {"memorization", 32, 256, 256, 1280, 1. / 128, 1. / 127},
        {"hlru-recall", 63, 16, 20000, 1280, .125, .125},
        {"hlru-copy", 64, 16, 20000, 1280, 1. / 14, 1. / 14},
        {"hlru-compress", 64, 16, 20000, 1280, .125, .125},
        {"mqar", 64, 8192, 100000, 3000, 1. / 4096, .25},
        {"mqar-64", 64, 8192, 100000, 3000, 1. / 4096, 1. / 4},
        {"mqar-128", 128, 8192, 100000, 3000, 1. / 4096, 1. / 8},
        {"mqar-256", 256, 8192, 100000, 3000, 1. / 4096, 1. / 16},
        {"mqar-512", 512, 8192, 100000, 3000, 1. / 4096, 1. / 64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct task_choice c;
        open_task(&c, rows[i].name, 1);
        const struct task_shape *s = &c.shape;
        bool mqar = strncmp(rows[i].name, "mqar", 4) == 0, compression = strstr(rows[i].name, "compress") != NULL;
        ck_assert_msg(s->T == rows[i].T && s->vocab_in == rows[i].vocab && s->vocab_out == rows[i].vocab, "%s: %lld",
                      c.name, (long long)s->T);
        ck_assert_int_eq(s->examples[SPLIT_TRAIN], rows[i].train);
        ck_assert_int_eq(s->examples[SPLIT_VAL], rows[i].held_out);
        ck_assert_int_eq(s->examples[SPLIT_TEST], rows[i].held_out);
        ck_assert_double_eq_tol(s->chance, rows[i].chance, 1e-12);
        ck_assert_double_eq_tol(s->floor, rows[i].floor, 1e-12);
        ck_assert_double_eq(s->solved, mqar ? 0.99 : 0.999);
        ck_assert_int_eq(s->metric, mqar ? METRIC_ACC : METRIC_MACRO_ACC);
        ck_assert_str_eq(c.task->suite, mqar ? "mqar" : "mad");
        ck_assert(s->needs_causal == !compression && c.shape.reading.one_vector == compression && !s->per_sequence);
    }
}
END_TEST

/* `lrnn info` tells the changes that --variants trains. */
START_TEST(what_is_said_of_a_task_names_its_variants) {
    for (int i = 0; i < NAMES - 1; i++) { /* MQAR has none */
        struct task_choice c;
        open_task(&c, names[i], 1);
        const char *const *change = task_variants(names[i]);
        ck_assert_msg(change && c.task->about, "%s", names[i]);
        for (; *change; change++) {
            int key = (int)strcspn(*change, "=");
            const char *value = *change + key + 1;
            char option[32], number[32];
            snprintf(option, sizeof option, "%.*s ", key, *change);
            snprintf(number, sizeof number, " %s", value[0] == '0' ? value + 1 : value); /* .4 for 0.4 */
            ck_assert_msg(strstr(c.task->about, option) && strstr(c.task->about, number), "%s: %s", names[i], *change);
        }
    }
}
END_TEST

/* --- trivial answers ---------------------------------------------------------------------------------------------- */

/* A guess at every position of an example. */
typedef void guesser(const struct view *v, int32_t constant, int32_t *guess);

static void guess_constant(const struct view *v, int32_t constant, int32_t *guess) {
    for (int64_t t = 0; t < v->s->T; t++) guess[t] = constant;
}

static void guess_constant_and_marker(const struct view *v, int32_t constant, int32_t *guess) {
    guess_constant(v, constant, guess);
    guess[v->s->T - 1] = (int32_t)v->s->vocab_out - 1;
}

static void guess_first_value(const struct view *v, int32_t constant, int32_t *guess) {
    (void)constant;
    guess_constant(v, v->x.tokens[1], guess);
}

/* Scores of the test split in batches of 128. */
static struct scores score_guesses(struct view *v, guesser *guess, int32_t constant) {
    struct metrics m;
    struct error e;
    int64_t T = v->s->T, n = v->s->examples[SPLIT_TEST];
    int32_t lengths[128] = {0};
    int32_t *targets = malloc((size_t)(128 * T) * sizeof *targets),
            *guesses = malloc((size_t)(128 * T) * sizeof *guesses);
    ck_assert_int_eq(metrics_create(&m, v->s->vocab_out, T, &task_host, &e), ST_OK);
    for (int64_t first = 0; first < n; first += 128) {
        int64_t rows = n - first < 128 ? n - first : 128;
        for (int64_t b = 0; b < rows; b++) {
            view_fill(v, SPLIT_TEST, first + b);
            memcpy(targets + b * T, v->x.targets, (size_t)T * sizeof *targets);
            guess(v, constant, guesses + b * T);
        }
        metrics_add(&m, targets, guesses, lengths, rows, T, 0);
    }
    free(targets);
    free(guesses);
    return metrics_scores(&m);
}

/* Every class occurs in every batch, so the macro accuracy of a constant is exact. */
START_TEST(the_floor_is_what_a_trivial_answer_scores) {
    static const struct {
        const char *name;
        int32_t constant;
        guesser *guess;
    } rows[] = {{"compression", 3, guess_constant_and_marker},
                {"compression:noise=0.2,noise_vocab=4", 3, guess_constant_and_marker},
                {"selective-copying", 13, guess_constant},
                {"in-context-recall", 8, guess_constant},
                {"in-context-recall:query=single", 14, guess_constant},
                {"noisy-recall", 15, guess_constant},
                {"fuzzy-recall", 7, guess_constant},
                {"fuzzy-recall:query=single", 13, guess_constant},
                {"mqar", 0, guess_first_value},
                {"mqar-512:n_test=256", 0, guess_first_value}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct view v;
        view_open(&v, rows[i].name, 1);
        struct scores s = score_guesses(&v, rows[i].guess, rows[i].constant);
        double got = v.s->metric == METRIC_ACC ? s.acc : s.macro_acc;
        ck_assert_msg(fabs(got - v.s->floor) < 1e-12, "%s: %g and not %g", rows[i].name, got, v.s->floor);
        view_close(&v);
    }
}
END_TEST

START_TEST(compression_has_the_chance_numbers_of_the_specification) {
    struct view v;
    view_open(&v, "compression", 1);
    struct scores s = score_guesses(&v, guess_constant_and_marker, 5);
    ck_assert_double_eq_tol(s.macro_acc, 0.125, 1e-12);
    double micro = (1 + 31. / 15) / 32;
    ck_assert_double_eq_tol(micro, 0.096, 5e-4);
    check_share("micro accuracy less the marker", (int64_t)lrint(s.acc * (double)s.scored) - s.sequences,
                31 * s.sequences, 1. / 15, 0);
    ck_assert_int_eq(s.scored, 32 * s.sequences);
    view_close(&v);
}
END_TEST

START_TEST(memorization_has_the_floor_of_a_value_in_use) {
    struct view v;
    view_open(&v, "memorization", 1);
    view_fill(&v, SPLIT_TRAIN, 0);
    struct scores s = score_guesses(&v, guess_constant, v.x.targets[1]);
    ck_assert_double_eq_tol(s.macro_acc, 1. / 127, 1e-12);
    view_close(&v);
}
END_TEST

/* --- splits ------------------------------------------------------------------------------------------------------- */

static bool same_inputs(const struct view *a, const struct view *b) {
    return memcmp(a->x.tokens, b->x.tokens, (size_t)a->s->T * sizeof *a->x.tokens) == 0;
}

/* The first 60 examples of two splits, which may be the same one, have no inputs in common. */
static void check_apart(struct view *a, enum split split_a, struct view *b, enum split split_b) {
    for (int64_t i = 0; i < 60; i++) {
        view_fill(a, split_a, i);
        for (int64_t j = 0; j < 60; j++) {
            if (split_a == split_b && i == j) continue;
            view_fill(b, split_b, j);
            require(a, !same_inputs(a, b), "the same inputs elsewhere");
        }
    }
}

/* Also for seed 0, which the held-out splits have. */
START_TEST(no_split_repeats_another) {
    for (int i = 0; i < NAMES; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct view a, b;
            view_open(&a, names[i], seed);
            view_open(&b, names[i], seed);
            for (int first = 0; first < SPLIT_COUNT; first++)
                for (int second = first; second < SPLIT_COUNT; second++)
                    check_apart(&a, (enum split)first, &b, (enum split)second);
            view_close(&a);
            view_close(&b);
        }
}
END_TEST

/* FNV-1a over inputs and targets. */
static uint32_t digest(const struct view *v, uint32_t hash) {
    for (int64_t t = 0; t < v->s->T; t++) {
        hash = (hash ^ (uint32_t)v->x.tokens[t]) * 16777619u;
        hash = (hash ^ (uint32_t)v->x.targets[t]) * 16777619u;
    }
    return hash;
}

/* Results are measured on these examples: whoever changes them raises the task's version, and then these numbers. */
START_TEST(the_examples_are_those_of_version_1) {
    static const struct {
        const char *name;
        uint32_t digest;
    } rows[] = {{"compression", 0x57dbd651},
                {"compression:noise=0.2,noise_vocab=4", 0xeb4180b9},
                {"selective-copying", 0xb9f04957},
                {"in-context-recall", 0x72c7a526},
                {"noisy-recall:query=single", 0xf7881893},
                {"fuzzy-recall", 0x9ce1788a},
                {"fuzzy-recall:query=single,noise=0.2,noise_vocab=3,vocab=32", 0x539ea871},
                {"memorization", 0xe51f556f},
                {"mqar", 0xb258c3fc},
                {"mqar-512", 0x0b530141}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct view v;
        uint32_t hash = 2166136261u;
        view_open(&v, rows[i].name, 1);
        ck_assert_int_eq(v.c.task->version, 1);
        for (int split = 0; split < SPLIT_COUNT; split++)
            for (int64_t k = 0; k < 20; k++) {
                view_fill(&v, (enum split)split, k);
                hash = digest(&v, hash);
            }
        ck_assert_msg(hash == rows[i].digest, "%s: 0x%08x", rows[i].name, hash);
        view_close(&v);
    }
}
END_TEST

/* Threads that make data may have small stacks. */
static void *fill_longest(void *text) {
    struct view v;
    view_open(&v, text, 1);
    for (int split = 0; split < SPLIT_COUNT; split++) view_fill(&v, (enum split)split, 7);
    view_close(&v);
    return NULL;
}

START_TEST(the_longest_strings_fit_a_stack_of_256_kilobytes) {
    static char longest[][96] = {"in-context-recall:length=16384,vocab=16384",
                                 "fuzzy-recall:length=16384,vocab=16384",
                                 "fuzzy-recall:length=16384,key_motif=1,value_motif=1",
                                 "compression:length=16384,vocab=16384",
                                 "selective-copying:length=16384,copy=8191,vocab=16384",
                                 "memorization:length=16384,vocab=16384",
                                 "mqar:length=16382,vocab=16384,pairs=2048"};
    /* A thread's stack also holds the thread-local variables of every library: OpenBLAS has 60 KB, cuBLAS 13 another
     * 122. */
    const size_t thread_locals = 192 << 10;
    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++) {
        pthread_attr_t attributes;
        pthread_t thread;
        ck_assert_int_eq(pthread_attr_init(&attributes), 0);
        ck_assert_int_eq(pthread_attr_setstacksize(&attributes, (256 << 10) + thread_locals), 0);
        ck_assert_int_eq(pthread_create(&thread, &attributes, fill_longest, longest[i]), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attributes);
    }
}
END_TEST

/* --- compression -------------------------------------------------------------------------------------------------- */

static void check_compression(const char *text, int content, int noise, double share, enum split split, int64_t n) {
    struct view v;
    int64_t count[64] = {0}, noisy = 0;
    view_open(&v, text, 4);
    int64_t T = v.s->T, draws = n * (T - 1);
    ck_assert_int_eq(content + noise + 1, v.s->vocab_in);
    for (int64_t i = 0; i < n; i++) {
        view_fill(&v, split, i);
        for (int64_t t = 0; t < T; t++) {
            require(&v, v.x.targets[t] == v.x.tokens[t], "a target is not its input");
            require(&v, (v.x.tokens[t] == v.s->vocab_in - 1) == (t == T - 1), "the marker is not at the end alone");
            if (t < T - 1) count[v.x.tokens[t]]++;
        }
    }
    for (int i = 0; i < noise; i++) noisy += count[content + i];
    check_uniform(text, count, content, draws - noisy);
    if (noise > 0) check_uniform(text, count + content, noise, noisy);
    if (noise > 0) check_share(text, noisy, draws, share, 0);
    view_close(&v);
}

START_TEST(compression_asks_for_its_own_input) {
    check_compression("compression", 15, 0, 0, SPLIT_TRAIN, 12800);
    check_compression("compression", 15, 0, 0, SPLIT_TEST, 1280);
    check_compression("compression:vocab=64,length=256,n_val=2000", 63, 0, 0, SPLIT_VAL, 2000);
    check_compression("compression:vocab=20,noise_vocab=4,noise=0.2", 15, 4, 0.2, SPLIT_TRAIN, 12800);
    check_compression("compression:vocab=20,noise_vocab=7,noise=0.8", 12, 7, 0.8, SPLIT_TEST, 1280);
}
END_TEST

/* --- selective copying -------------------------------------------------------------------------------------------- */

static void check_copying(const char *text, int K, enum split split, int64_t n) {
    struct view v;
    view_open(&v, text, 4);
    int64_t L = v.s->T, marker = L - K - 1, before[128] = {0}, count[128] = {0};
    int32_t V = (int32_t)v.s->vocab_in;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = 0;
        view_fill(&v, split, i);
        for (int64_t t = 0; t < marker; t++) {
            require(&v, v.x.targets[t] == IGNORED, "a target before the marker");
            require(&v, v.x.tokens[t] < V - 1, "a marker too early");
            if (v.x.tokens[t] == V - 2) {
                require(&v, j < K, "a blank after the last content token");
                before[j]++;
                continue;
            }
            require(&v, v.x.tokens[t] == v.x.targets[marker + 1 + j], "the targets are not the content in order");
            count[v.x.tokens[t]]++;
            j++;
        }
        require(&v, j == K, "content tokens are missing");
        require(&v, v.x.tokens[marker - 1] < V - 2, "a blank touches the marker");
        require(&v, v.x.tokens[marker] == V - 1 && v.x.targets[marker] == IGNORED, "the marker");
        for (int64_t t = marker + 1; t < L; t++) require(&v, v.x.tokens[t] == V - 2, "the end is not blank");
    }
    check_uniform("blanks", before, K, n * (L - 2 * K - 1));
    check_uniform("content", count, V - 2, n * K);
    view_close(&v);
}

START_TEST(selective_copying_wants_the_content_in_order) {
    check_copying("selective-copying", 16, SPLIT_TRAIN, 12800);
    check_copying("selective-copying", 16, SPLIT_TEST, 1280);
    check_copying("selective-copying:copy=96,vocab=128", 96, SPLIT_TRAIN, 12800);
    check_copying("hlru-copy", 16, SPLIT_TRAIN, 20000);
    check_copying("selective-copying:length=40,copy=3,vocab=5", 3, SPLIT_TEST, 1280);
}
END_TEST

/* --- memorization ------------------------------------------------------------------------------------------------- */

/* Adds what a split shows of the map (0: nothing yet) and checks the rest. */
static void check_memorization(const char *text, uint64_t seed, enum split split, int keys, int32_t *map) {
    struct view v;
    view_open(&v, text, seed);
    int32_t V = (int32_t)v.s->vocab_in;
    int64_t n = v.s->examples[split], *count = calloc((size_t)keys, sizeof *count);
    for (int64_t i = 0; i < n; i++) {
        view_fill(&v, split, i);
        for (int64_t t = 0; t < v.s->T; t += 2) {
            int32_t key = v.x.tokens[t], value = v.x.targets[t + 1];
            require(&v, key < keys && v.x.targets[t] == IGNORED, "a key is scored or out of range");
            require(&v, v.x.tokens[t + 1] == V - 1 && keys <= value && value < V - 1, "no marker with a value");
            require(&v, !map[key] || map[key] == value, "the map changes");
            map[key] = value;
            count[key]++;
        }
    }
    check_uniform(text, count, keys, n * v.s->T / 2);
    free(count);
    view_close(&v);
}

START_TEST(the_memorized_map_is_a_fixed_injection) {
    static const struct {
        const char *text;
        int keys;
    } rows[] = {{"memorization:n_train=2000", 127},
                {"memorization:vocab=512,n_train=2000", 255},
                {"memorization:vocab=33,length=16", 16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t map[256] = {0};
        int fixed = 0;
        for (uint64_t seed = 1; seed < 3; seed++)
            for (int split = 0; split < SPLIT_COUNT; split++)
                check_memorization(rows[i].text, seed, (enum split)split, rows[i].keys, map);
        for (int a = 0; a < rows[i].keys; a++) {
            ck_assert_int_ne(map[a], 0);
            for (int b = 0; b < a; b++)
                if (map[a] == map[b]) ck_abort_msg("%s: keys %d and %d share a value", rows[i].text, a, b);
            fixed += map[a] == rows[i].keys + a;
        }
        ck_assert_int_le(fixed, 6); /* a shuffle leaves one in place on average */
    }
}
END_TEST

Suite *check_mad(void) {
    Suite *suite = suite_create("mad");
    TCase *tests = tcase_create("mad");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_test(tests, options_that_do_not_fit_are_refused);
    tcase_add_test(tests, the_tightest_options_are_accepted);
    tcase_add_test(tests, a_full_arena_is_an_error_and_not_a_crash);
    tcase_add_test(tests, shapes_are_those_of_the_specification);
    tcase_add_test(tests, what_is_said_of_a_task_names_its_variants);
    tcase_add_test(tests, the_floor_is_what_a_trivial_answer_scores);
    tcase_add_test(tests, compression_has_the_chance_numbers_of_the_specification);
    tcase_add_test(tests, memorization_has_the_floor_of_a_value_in_use);
    tcase_add_test(tests, no_split_repeats_another);
    tcase_add_test(tests, the_examples_are_those_of_version_1);
    tcase_add_test(tests, the_longest_strings_fit_a_stack_of_256_kilobytes);
    tcase_add_test(tests, compression_asks_for_its_own_input);
    tcase_add_test(tests, selective_copying_wants_the_content_in_order);
    tcase_add_test(tests, the_memorized_map_is_a_fixed_injection);
    suite_add_tcase(suite, tests);
    return suite;
}

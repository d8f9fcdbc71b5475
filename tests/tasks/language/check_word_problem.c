/* check_word_problem.c - generators, distinct sequences, splits and distribution of word problems. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/chi_square.h"
#include "tests/tasks/task_examples.h"

/* --- refusals ----------------------------------------------------------------------------------------------------- */

START_TEST(generators_that_do_not_exist_are_refused) {
    check_task_refused("word-problem:group=s5xz9", "group s5xz9 has more than 1000 elements");
    check_task_refused("word-problem:group=a5,generators=transpositions", "group a5 has no transpositions|for s1..s5");
    check_task_refused("word-problem:group=z2xz2xz2,generators=two", "no two elements|generate group z2xz2xz2");
    check_task_refused("word-problem:group=z2,generators=two", "no two elements|generate group z2");
    check_task_refused("s5:generators=random,n_generators=1", "no n_generators=1 elements|group s5 of order 120");
    check_task_refused("s3:generators=random,n_generators=6", "no n_generators=6 elements|group s3 of order 6");
    check_task_refused("s3:generators=two,length=8", "group s3 at length 8 has only 256 sequences");
}
END_TEST

START_TEST(too_few_sequences_are_refused_with_the_numbers) {
    check_task_refused("s3:length=2",
                       "word-problem: group s3 at length 2 has only 36 sequences, but n_train=10000 n_val=2000 "
                       "n_test=2000 ask for 14000; lower them or raise length");
    check_task_refused("s3:length=4,n_train=1295,n_val=1,n_test=1", "only 1296 sequences|ask for 1297");
    check_task_refused("s3:length=4,n_train=1296,n_val=1,split=80-20",
                       "only 1296 sequences|n_train=1296 n_val=1 (80-20)|1297");
    check_task_refused("word-problem:group=z1,n_train=1,n_val=1,n_test=1", "only 1 sequence,|ask for 3");
    check_task_refused("s3:n_train=4,split=80-20", "at least 5, got 4");
    check_task_refused("a5-slice:length=3,n_val=215998", "at least 5, got 2, which is all that n_val leaves");
    check_task_refused("s3:length=3,extra_length=3", "extra_length=3 must be below length=3");
    check_task_refused("s3:n_train=1G,n_val=1G,n_test=1G,length=11", "only 362797056 sequences|ask for 3000000000");
}
END_TEST

/* Lengths are even; what is read of a sequence has its own products as targets, and nothing after it is scored. */
START_TEST(sequences_of_mixed_lengths_are_beginnings_of_long_ones) {
    struct task_choice c, whole;
    int count[17] = {0}, n = 3900;
    open_task(&c, "s3:min_length=4,test_length=8,40", 1);
    open_task(&whole, "s3", 1);
    ck_assert(c.shape.T == 16 && c.shape.T_eval == 40);
    struct example x = new_example(&c.shape), y = new_example(&whole.shape);
    for (int i = 0; i < n; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        fill_example(&whole, SPLIT_TRAIN, i, -7, &y);
        ck_assert(4 <= x.length && x.length <= 16);
        ck_assert(!memcmp(x.tokens, y.tokens, (size_t)x.length * sizeof *x.tokens) &&
                  !memcmp(x.targets, y.targets, (size_t)x.length * sizeof *x.targets));
        int padding = 0;
        for (int t = x.length; t < 16; t++) padding += x.tokens[t] == 0 && x.targets[t] == IGNORED;
        ck_assert_int_eq(padding, 16 - x.length);
        count[x.length]++;
    }
    for (int length = 4; length <= 16; length++) /* four standard deviations */
        ck_assert_msg(abs(count[length] - n / 13) < 67, "%d of length %d", count[length], length);
    for (int i = 0; i < 2; i++) {
        fill_example(&c, SPLIT_TEST, 2000 * i, -7, &x);
        ck_assert_int_eq(x.length, i ? 40 : 8);
    }
    free_example(&x);
    free_example(&y);
    check_task_refused("s3:min_length=17", "min_length=17 is more than length=16");
}
END_TEST

START_TEST(a_full_arena_is_an_error_and_not_a_crash) {
    struct task_choice c;
    struct error e;
    ck_assert_int_eq(task_parse(&c, "s5", &e), ST_OK);
    task_host.fail_after = 1;
    ck_assert_int_eq(task_open(&c, 1, &task_host, &e), ST_MEMORY);
    ck_assert_ptr_nonnull(strstr(e.text, "28800 bytes"));
}
END_TEST

/* --- generators --------------------------------------------------------------------------------------------------- */

static int64_t sequence_length; /* of compare_sequences */

static int compare_sequences(const void *a, const void *b) {
    return memcmp(a, b, (size_t)sequence_length * sizeof(int32_t));
}

/* Takes `per_split` examples, spread, of each split (all of them if negative); asserts that no two are equal. */
static int64_t check_distinct(const char *text, uint64_t seed, int64_t per_split) {
    struct task_choice c;
    open_task(&c, text, seed);
    const struct task_shape *s = &c.shape;
    struct example x = new_example(s);
    int64_t n = 0, room = 0;
    for (int split = 0; split < SPLIT_COUNT; split++) room += per_split < 0 ? s->examples[split] : per_split;
    int32_t *all = malloc((size_t)(room * s->T) * sizeof *all);
    for (int split = 0; split < SPLIT_COUNT; split++) {
        int64_t count = per_split < 0 ? s->examples[split] : per_split;
        for (int64_t k = 0; k < count; k++) {
            int64_t index = count == s->examples[split] ? k : spread(s, (enum split)split, (int)k, (int)count);
            fill_example(&c, (enum split)split, index, -7, &x);
            memcpy(all + n++ * s->T, x.tokens, (size_t)s->T * sizeof *all);
        }
    }
    sequence_length = s->T;
    qsort(all, (size_t)n, (size_t)s->T * sizeof *all, compare_sequences);
    for (int64_t k = 1; k < n; k++)
        ck_assert_msg(compare_sequences(all + (k - 1) * s->T, all + k * s->T) != 0, "%s has a sequence twice", text);
    free(all);
    free_example(&x);
    return n;
}

/* Counts the different elements that sequences are made of, and the products that they reach. */
static void count_elements(const char *text, int *letters, int *products) {
    struct task_choice c;
    bool letter[1000] = {false}, product[1000] = {false};
    open_task(&c, text, 1);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < 500; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        for (int t = 0; t < c.shape.T; t++) letter[x.tokens[t]] = product[x.targets[t]] = true;
    }
    *letters = *products = 0;
    for (int a = 0; a < 1000; a++) {
        *letters += letter[a];
        *products += product[a];
    }
    free_example(&x);
}

START_TEST(sequences_are_made_of_the_generators_and_reach_the_group) {
    static const struct {
        const char *text;
        int letters, products;
    } rows[] = {{"s4:length=32,generators=transpositions", 7, 24},
                {"s5:length=32,generators=transpositions", 11, 120},
                {"s5:length=32,generators=two", 2, 120},
                {"a5:length=32,generators=two", 2, 60},
                {"a5:length=32,generators=random,n_generators=6", 6, 60},
                {"a5:length=32,generators=random,n_generators=59", 59, 60},
                {"word-problem:group=q8,length=32,generators=two", 2, 8},
                {"word-problem:group=h3,length=32,generators=two", 2, 27},
                {"word-problem:group=z2xs3,length=32,generators=two", 2, 12}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int letters, products;
        count_elements(rows[i].text, &letters, &products);
        ck_assert_msg(letters == rows[i].letters && products == rows[i].products, "%s: %d letters, %d products",
                      rows[i].text, letters, products);
    }
    check_distinct("s5:length=32,generators=two", 1, 1000);
    ck_assert_int_eq(check_distinct("s3:length=5,generators=two,n_train=20,n_val=6,n_test=6", 1, -1), 32);
}
END_TEST

/* An answer from the newest element and the position, with the likeliest product before it learnt from other sequences,
 * is as often right as the floor says. */
START_TEST(the_floor_with_generators_is_what_the_newest_element_tells) {
    static const char *const texts[] = {"s3:length=12,generators=two,n_train=3000,n_val=1,n_test=1",
                                        "s4:length=20,generators=transpositions,n_train=20000"};
    for (size_t k = 0; k < 2; k++) {
        struct task_choice c;
        open_task(&c, texts[k], 1);
        int T = (int)c.shape.T, n = (int)c.shape.examples[SPLIT_TRAIN];
        static int count[20][24];
        double right = T * n; /* the position before the first has the identity */
        memset(count, 0, sizeof count);
        struct example x = new_example(&c.shape);
        for (int64_t i = 0; i < n; i++) {
            fill_example(&c, SPLIT_TRAIN, i, -7, &x);
            for (int t = 0; t < T; t++) count[t][x.targets[t]]++;
        }
        for (int t = 0; t < T; t++) {
            int most = t == 0 ? n : 0;
            for (int a = 0; t > 0 && a < 24; a++)
                if (count[t - 1][a] > most) most = count[t - 1][a];
            right -= n - most;
        }
        ck_assert_double_eq_tol(right / (T * n), c.shape.floor, 0.01);
        ck_assert(c.shape.floor > (1 + (T - 1) / (double)c.shape.vocab_in) / T);
        free_example(&x);
    }
}
END_TEST

/* --- sequences ------------------------------------------------------------------------------------ */

START_TEST(splits_are_disjoint_and_sequences_distinct) {
    for (const struct task_alias *a = task_find("word-problem")->aliases; a->name; a++)
        for (uint64_t seed = 0; seed < 3 && !strstr(a->options, "min_length"); seed++) /* short ones may be equal */
            check_distinct(a->name, seed, strcmp(a->name, "s3-250") ? 1000 : 250);
    check_distinct("s3", 1, -1);
    check_distinct("s5:split=80-20", 1, 1000);
    check_distinct("s5:length=4096", 1, 100);
}
END_TEST

/* Small spaces used up to the last sequence, lengths even, odd, 1 and 2. */
START_TEST(a_whole_space_has_each_sequence_once) {
    for (uint64_t seed = 0; seed < 3; seed++) {
        ck_assert_int_eq(check_distinct("s3:length=4,n_train=1000,n_val=196,n_test=100", seed, -1), 1296);
        ck_assert_int_eq(check_distinct("s3:length=4,n_train=1000,n_val=296,split=80-20", seed, -1), 1296);
        ck_assert_int_eq(check_distinct("word-problem:group=s2,length=10,n_train=1000,n_val=12,n_test=12", seed, -1),
                         1024);
        ck_assert_int_eq(check_distinct("word-problem:group=z11,length=3,n_train=1,n_val=330,n_test=1000", seed, -1),
                         1331);
        ck_assert_int_eq(check_distinct("word-problem:group=z30,length=2,n_train=898,n_val=1,n_test=1", seed, -1), 900);
        ck_assert_int_eq(check_distinct("word-problem:group=z1000,length=1,n_train=800,n_val=99,n_test=101", seed, -1),
                         1000);
        ck_assert_int_eq(check_distinct("word-problem:group=z2,length=2,n_train=2,n_val=1,n_test=1", seed, -1), 4);
        ck_assert_int_eq(check_distinct("word-problem:group=a3,length=1,n_train=1,n_val=1,n_test=1", seed, -1), 3);
    }
}
END_TEST

/* Whether the first `count` inputs of a split are the same in both tasks. */
static bool same_sequences(const char *a, uint64_t seed_a, enum split split_a, const char *b, uint64_t seed_b,
                           enum split split_b, int count) {
    struct task_choice first, second;
    open_task(&first, a, seed_a);
    open_task(&second, b, seed_b);
    struct example x = new_example(&first.shape), y = new_example(&second.shape);
    bool same = true;
    for (int i = 0; i < count && same; i++) {
        fill_example(&first, split_a, i, -7, &x);
        fill_example(&second, split_b, i, -7, &y);
        same = memcmp(x.tokens, y.tokens, (size_t)first.shape.T * sizeof *x.tokens) == 0;
    }
    free_example(&x);
    free_example(&y);
    return same;
}

START_TEST(the_test_set_depends_on_group_and_length_alone) {
    ck_assert(same_sequences("s3", 1, SPLIT_TEST, "s3-250:n_val=7", 99, SPLIT_TEST, 2000));
    ck_assert(same_sequences("s3", 1, SPLIT_VAL, "s3-250", 99, SPLIT_VAL, 2000));
    ck_assert(same_sequences("s4", 1, SPLIT_TEST, "s4:n_test=50", 2, SPLIT_TEST, 50));
    ck_assert(same_sequences("s4", 1, SPLIT_TEST, "s4:split=80-20", 2, SPLIT_TEST, 2000));
    ck_assert(
        !same_sequences("s4", 1, SPLIT_VAL, "s4:n_test=50", 1, SPLIT_VAL, 50)); /* validation follows the test set */
    ck_assert(!same_sequences("s3", 1, SPLIT_TEST, "s3", 1, SPLIT_VAL, 10));
    /* Groups of the same order do not share sequences. */
    ck_assert(!same_sequences("word-problem:group=s3", 1, SPLIT_TEST, "word-problem:group=z6", 1, SPLIT_TEST, 10));
}
END_TEST

/* Committed results were measured on these sequences: whoever changes them raises the task's version, and then these
 * numbers. */
START_TEST(the_sequences_are_those_of_version_1) {
    static const int32_t test[16] = {15, 79, 15, 41, 1, 28, 89, 99, 13, 58, 79, 38, 106, 1, 63, 15};
    static const int32_t train[16] = {55, 45, 47, 114, 34, 9, 33, 10, 112, 117, 58, 16, 49, 107, 4, 31};
    struct task_choice c;
    open_task(&c, "s5", 1);
    ck_assert_int_eq(c.task->version, 1);
    struct example x = new_example(&c.shape);
    fill_example(&c, SPLIT_TEST, 0, -7, &x);
    ck_assert_mem_eq(x.tokens, test, sizeof test);
    ck_assert_int_eq(x.targets[15], 55);
    fill_example(&c, SPLIT_TRAIN, 123, -7, &x);
    ck_assert_mem_eq(x.tokens, train, sizeof train);
    ck_assert_int_eq(x.targets[15], 4);
    free_example(&x);
}
END_TEST

START_TEST(an_80_20_split_cuts_n_train) {
    struct task_choice c;
    open_task(&c, "s5:split=80-20,n_val=500", 1);
    ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], 80000);
    ck_assert_int_eq(c.shape.examples[SPLIT_TEST], 20000);
    ck_assert_int_eq(c.shape.examples[SPLIT_VAL], 500);
    open_task(&c, "s3:split=80-20,n_train=9", 1);
    ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], 8);
    ck_assert_int_eq(c.shape.examples[SPLIT_TEST], 1);
}
END_TEST

/* SLiCE's A5: a million strings, or all of them if there are fewer, and strings of length 2 besides. */
START_TEST(a_capped_split_cuts_what_there_is) {
    struct task_choice c;
    open_task(&c, "a5-slice", 1);
    ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], 800000);
    ck_assert_int_eq(c.shape.examples[SPLIT_TEST], 200000);
    ck_assert(c.shape.T == 20 && c.shape.second.T == 2 && c.shape.second.examples == 3600);
    open_task(&c, "a5-slice:length=3", 1);
    ck_assert_str_eq(c.name, "a5-slice:length=3");
    ck_assert_int_eq(c.shape.examples[SPLIT_TEST], (216000 - 2000) / 5);
    ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], 216000 - 2000 - (216000 - 2000) / 5);
    ck_assert_int_eq(check_distinct("s3:length=4,n_train=9999,n_val=100,split=80-20-capped", 1, -1), 1296);
    open_task(&c, "a5", 1);
    ck_assert(c.shape.second.T == 0 && c.shape.second.examples == 0);
}
END_TEST

START_TEST(shape_states_the_floors_of_the_specification) {
    static const struct {
        const char *name;
        int64_t order, train;
        double floor, chance;
    } rows[] = {{"s3", 6, 10000, .219, .167},   {"s4", 24, 50000, .102, .042},  {"s5", 120, 100000, .070, .008},
                {"a5", 60, 100000, .078, .017}, {"s3-250", 6, 250, .219, .167}, {"s4-3k", 24, 3000, .102, .042}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct task_choice c;
        open_task(&c, rows[i].name, 1);
        ck_assert(c.shape.T == 16 && c.shape.vocab_in == rows[i].order && c.shape.vocab_out == rows[i].order);
        ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], rows[i].train);
        ck_assert_int_eq(c.shape.examples[SPLIT_VAL], 2000);
        ck_assert_int_eq(c.shape.examples[SPLIT_TEST], 2000);
        ck_assert_double_eq_tol(c.shape.floor, rows[i].floor, 5e-4);
        ck_assert_double_eq_tol(c.shape.chance, rows[i].chance, 5e-4);
        ck_assert(c.shape.needs_causal && !c.shape.per_sequence && c.shape.solved == 0.99);
    }
}
END_TEST

/* Inputs uniform at every position and independent between positions, products uniform: within 3 sigma. */
static void check_uniform(const char *text, enum split split, int64_t sequences) {
    struct task_choice c;
    open_task(&c, text, 5);
    int g = (int)c.shape.vocab_in, T = (int)c.shape.T, half = T / 2;
    size_t elements = (size_t)g;
    int64_t *single = calloc((size_t)T * elements, sizeof *single), *last = calloc(elements, sizeof *last);
    int64_t *pairs = calloc(3 * elements * elements, sizeof *pairs);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < sequences; i++) {
        fill_example(&c, split, i, -7, &x);
        for (int t = 0; t < T; t++) single[t * g + x.tokens[t]]++;
        pairs[x.tokens[0] * g + x.tokens[1]]++;
        pairs[g * g + x.tokens[half - 1] * g + x.tokens[half]]++; /* either side of the Feistel halves */
        pairs[2 * g * g + x.tokens[0] * g + x.tokens[T - 1]]++;
        last[x.targets[T - 1]]++;
    }
    double pooled = 0;
    for (int t = 0; t < T; t++) {
        double z = chi_square_z(single + t * g, g, sequences);
        ck_assert_msg(fabs(z) < 4, "%s: position %d is %.1f sigma from uniform", text, t, z); /* the worst of T */
        pooled += z / sqrt(T);
    }
    ck_assert_msg(fabs(pooled) < 3, "%s: inputs are %.1f sigma from uniform", text, pooled);
    for (int p = 0; p < 3; p++) {
        double z = chi_square_z(pairs + p * g * g, g * g, sequences);
        ck_assert_msg(fabs(z) < 3, "%s: pair %d is %.1f sigma from independent", text, p, z);
    }
    double z = chi_square_z(last, g, sequences);
    ck_assert_msg(fabs(z) < 3, "%s: last product is %.1f sigma from uniform", text, z);
    free(single);
    free(last);
    free(pairs);
    free_example(&x);
}

/* Neighbours in the numbering differ in their last digit before the Feistel network; after it they must have nothing in
 * common, at any position and for halves of any length. */
START_TEST(neighbouring_numbers_give_unrelated_sequences) {
    for (int length = 3; length <= 12; length++) {
        char text[96];
        struct task_choice c;
        snprintf(text, sizeof text, "word-problem:group=z10,length=%d,n_train=1,n_val=1,n_test=900", length);
        open_task(&c, text, 1);
        struct example x = new_example(&c.shape), y = new_example(&c.shape);
        int same[12] = {0};
        for (int64_t i = 0; i < 899; i++) {
            fill_example(&c, SPLIT_TEST, i, -7, &x);
            fill_example(&c, SPLIT_TEST, i + 1, -7, &y);
            for (int t = 0; t < length; t++) same[t] += x.tokens[t] == y.tokens[t];
        }
        for (int t = 0; t < length; t++) /* binomial: 89.9 with a standard deviation of 9.0; 4 of them */
            ck_assert_msg(abs(same[t] - 90) <= 36, "length %d, position %d: %d agree", length, t, same[t]);
        free_example(&x);
        free_example(&y);
    }
}
END_TEST

START_TEST(sequences_are_uniform) {
    check_uniform("s3", SPLIT_TRAIN, 10000);
    check_uniform("s3:n_test=20000", SPLIT_TEST, 20000); /* consecutive numbers, upper digits all zero */
    check_uniform("s5", SPLIT_TRAIN, 100000);
    check_uniform("a5:n_val=50000", SPLIT_VAL, 50000);
    check_uniform("word-problem:group=z2,length=40,n_train=20000", SPLIT_TRAIN, 20000);
    check_uniform("word-problem:group=z10,length=7,n_train=50000", SPLIT_TRAIN, 50000);
}
END_TEST

Suite *check_word_problem(void) {
    Suite *suite = suite_create("word_problem");
    TCase *tests = tcase_create("word_problem");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_test(tests, generators_that_do_not_exist_are_refused);
    tcase_add_test(tests, too_few_sequences_are_refused_with_the_numbers);
    tcase_add_test(tests, sequences_of_mixed_lengths_are_beginnings_of_long_ones);
    tcase_add_test(tests, a_full_arena_is_an_error_and_not_a_crash);
    tcase_add_test(tests, sequences_are_made_of_the_generators_and_reach_the_group);
    tcase_add_test(tests, the_floor_with_generators_is_what_the_newest_element_tells);
    tcase_add_test(tests, splits_are_disjoint_and_sequences_distinct);
    tcase_add_test(tests, a_whole_space_has_each_sequence_once);
    tcase_add_test(tests, the_test_set_depends_on_group_and_length_alone);
    tcase_add_test(tests, the_sequences_are_those_of_version_1);
    tcase_add_test(tests, an_80_20_split_cuts_n_train);
    tcase_add_test(tests, a_capped_split_cuts_what_there_is);
    tcase_add_test(tests, shape_states_the_floors_of_the_specification);
    tcase_add_test(tests, neighbouring_numbers_give_unrelated_sequences);
    tcase_add_test(tests, sequences_are_uniform);
    suite_add_tcase(suite, tests);
    return suite;
}

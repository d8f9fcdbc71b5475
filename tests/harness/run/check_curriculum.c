/* check_curriculum.c - training sequences that grow over the run (--curriculum): which lengths each step has, that they
 * are examples of the task, that nothing else of the run changes, and what is refused; the floor of a cosine as a share
 * of its peak; the parameters of the last step in place of the best; the test's curve. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/batches/examples.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"

/* --- lengths ------------------------------------------------------------------------------------------------------ */

static struct setup *run_of(const char *task, const char *flag, const char *value) {
    return small_run_of(task, own_folder, "none", "lstm:hidden=4", flag, value);
}

/* The batch of a step; the caller frees *memory. */
static struct batch batch_of_step(const struct setup *s, int64_t step, char **memory) {
    struct step_batches b = step_sizes(&s->spec);
    *memory = malloc(step_bytes(&s->spec));
    batch_lay(&b.second, batch_lay(&b.main, *memory));
    step_fill(&s->spec, &s->shapes, step, &b);
    return b.main;
}

/* Lengths of the rows in use. */
static void expect_lengths(const struct setup *s, int64_t step, int32_t least, int32_t most, bool reached) {
    char *memory;
    struct batch b = batch_of_step(s, step, &memory);
    int32_t longest = 0, shortest = INT32_MAX;
    for (int64_t row = 0; row < b.B; row++) {
        if (!b.lengths[row]) continue; /* past the end of an epoch */
        if (b.lengths[row] > longest) longest = b.lengths[row];
        if (b.lengths[row] < shortest) shortest = b.lengths[row];
        for (int64_t t = b.lengths[row]; t < b.T; t++) ck_assert_int_eq(b.targets[row * b.labels + t], IGNORED);
    }
    ck_assert_msg(shortest >= least && longest <= most && (!reached || longest == most),
                  "%s, step %lld: lengths %d to %d, expected %d to %d", s->spec.task.name, (long long)step, shortest,
                  longest, least, most);
    free(memory);
}

/* Three stages of ten steps each. */
START_TEST(each_part_of_a_run_has_its_longest_length) {
    static const struct {
        const char *task, *stages;
        int32_t longest[3], least;
        bool mixed; /* lengths differ within a step */
    } cases[] = {
        {SMALL_TASK, "2:3:8", {2, 3, 8}, 0, false},
        {SMALL_TASK ",min_length=3", "2:5:8", {2, 5, 8}, 3, true},
        {"parity:max_length=20,eval_max_length=50,n_train=300,n_val=50,n_test=60", "4:9:20", {4, 9, 20}, 3, true},
        {"modular-arithmetic:max_length=20,eval_max_length=50,n_train=300,n_val=50,n_test=60",
         "4:9:20",
         {4, 8, 20},
         3,
         true},
        {"mqar:vocab=64,length=24,pairs=3,n_train=300,n_val=50,n_test=60", "8:17:24", {8, 16, 24}, 0, false},
        {"mqar:vocab=64,length=24,pairs=3,min_length=9,n_train=300,n_val=50,n_test=60",
         "8:17:24",
         {8, 16, 24},
         10,
         true},
        {"mqar:vocab=64,length=48,keys=pairs,n_train=300,n_val=50,n_test=60", "12:40:48", {12, 39, 48}, 0, false},
        {"mqar:vocab=64,length=48,pairs=6,updates=3,n_train=300,n_val=50,n_test=60", "8:31:48", {8, 30, 48}, 0, false},
        /* a little shorter: fewer pairs and updates leave more slots than the full length has */
        {"mqar:vocab=128,length=64,pairs=8,updates=4,n_train=300,n_val=50,n_test=60",
         "32:62:64",
         {32, 62, 64},
         0,
         false},
        {"mqar:vocab=160,length=126,pairs=16,keys=pairs,n_train=300,n_val=50,n_test=60",
         "60:120:126",
         {60, 120, 126},
         0,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setup *s = run_of(cases[i].task, "curriculum", cases[i].stages);
        ck_assert_int_eq(s->shapes.schedule_steps, 30);
        for (int64_t step = 0; step < 30; step++) {
            int32_t most = cases[i].longest[step / 10];
            int32_t least = cases[i].mixed && cases[i].least < most ? cases[i].least : most;
            expect_lengths(s, step, least, most, !cases[i].mixed);
        }
        small_run_free(s);
    }
}
END_TEST

/* A shortened sequence of a group is the beginning of the one that the step has without a curriculum. */
START_TEST(a_short_word_is_the_beginning_of_the_long_one) {
    struct setup *s[2] = {run_of(SMALL_TASK, "curriculum", "3:8"), run_of(SMALL_TASK, NULL, NULL)};
    char *memory[2];
    for (int64_t step = 0; step < 30; step += 7) {
        struct batch a = batch_of_step(s[0], step, &memory[0]), b = batch_of_step(s[1], step, &memory[1]);
        for (int64_t row = 0; row < a.B; row++)
            for (int64_t t = 0; t < a.lengths[row]; t++)
                ck_assert(a.tokens[row * a.T + t] == b.tokens[row * b.T + t] &&
                          a.targets[row * a.T + t] == b.targets[row * b.T + t]);
        for (int i = 0; i < 2; i++) free(memory[i]);
    }
    for (int i = 0; i < 2; i++) small_run_free(s[i]);
}
END_TEST

/* Each question of a shortened string of mqar has a key that was shown, and its newest value is the answer. */
START_TEST(a_short_string_of_pairs_answers_its_questions) {
    static const char *const tasks[] = {
        "mqar:vocab=64,length=48,pairs=8,filler=zero,n_train=300,n_val=50,n_test=60",
        "mqar:vocab=64,length=48,pairs=8,updates=4,filler=zero,n_train=300,n_val=50,n_test=60",
        "mqar:vocab=64,length=48,pairs=8,min_length=6,filler=zero,n_train=300,n_val=50,n_test=60",
        "mqar:n_train=180,n_val=50,n_test=70,filler=zero,mix=zoology,vocab=2048"};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        struct setup *s = run_of(tasks[i], "curriculum", i == 3 ? "16:40:256" : "12:30:48");
        char *memory;
        for (int64_t step = 0; step < s->shapes.steps; step += 3) {
            struct batch b = batch_of_step(s, step, &memory);
            for (int64_t row = 0; row < b.B; row++) {
                const int32_t *x = b.tokens + row * b.T, *y = b.targets + row * b.T;
                int asked = 0;
                for (int64_t t = 0; t < b.lengths[row]; t++) {
                    if (y[t] == IGNORED) continue;
                    int64_t back = t - 2;
                    while (back >= 0 && (x[back] != x[t] || back % 2 || !x[back + 1])) back--;
                    ck_assert(back >= 0 && x[back + 1] == y[t]);
                    asked++;
                }
                ck_assert(asked > 0 || b.lengths[row] == 0);
            }
            free(memory);
        }
        small_run_free(s);
    }
}
END_TEST

/* --- the rest of the run ------------------------------------------------------------------------------------------ */

START_TEST(validation_and_names_of_other_runs_stay_as_they_are) {
    struct setup *s[3] = {run_of(SMALL_TASK, "curriculum", "3:8"), run_of(SMALL_TASK, NULL, NULL),
                          run_of(SMALL_TASK, "curriculum", "4:8")};
    ck_assert_ptr_nonnull(strstr(s[0]->id.text, "curriculum=3:8\n"));
    ck_assert_ptr_nonnull(strstr(s[0]->id.config_text, "curriculum=3:8\n"));
    ck_assert_ptr_null(strstr(s[1]->id.text, "curriculum"));
    ck_assert(strcmp(s[0]->id.run_id, s[1]->id.run_id) != 0 && strcmp(s[0]->id.run_id, s[2]->id.run_id) != 0);
    for (enum split split = SPLIT_VAL; split <= SPLIT_TEST; split++) {
        struct batch a = batch_of(&s[0]->spec.task.shape, split, 50), b = a;
        char *memory[2] = {calloc(1, batch_bytes(&a)), calloc(1, batch_bytes(&b))}; /* fields are aligned */
        batch_lay(&a, memory[0]);
        batch_lay(&b, memory[1]);
        batch_fill(&s[0]->spec, split, 0, &a);
        batch_fill(&s[1]->spec, split, 0, &b);
        ck_assert_mem_eq(memory[0], memory[1], batch_bytes(&a));
        for (int i = 0; i < 2; i++) free(memory[i]);
    }
    for (int i = 0; i < 3; i++) small_run_free(s[i]);
}
END_TEST

START_TEST(other_curricula_are_refused) {
    static const struct {
        const char *task, *stages, *words;
    } cases[] = {
        {"s3:length=8", "8:4", "ascend from 1 to 8, between which s3:length=8 trains; write for example 4:8"},
        {"s3:length=8", "4:4", "ascend from 1 to 8"},
        {"s3:length=8", "4:9", "ascend from 1 to 8"},
        {"s3:length=8", "0:8", "ascend from 1 to 8"},
        {"s3:length=8", "4::8", "ascend from 1 to 8"},
        {"s3:length=8", "4:x", "ascend from 1 to 8"},
        {"s3:length=8", "4:8:", "ascend from 1 to 8"},
        {"s3:length=8", "4-8", "ascend from 1 to 8"},
        {"mqar:length=64,pairs=4", "15:64", "ascend from 16 to 64"},
        {"parity", "2:40", "ascend from 3 to 40"},
        {"listops", "100:2000",
         "--curriculum is for word problems, regular languages and mqar; leave it out for listops"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[300];
        snprintf(arguments, sizeof arguments, "train %s lstm:hidden=4 --steps 4 --curriculum %s --out %s/r",
                 cases[i].task, cases[i].stages, program_folder);
        expect_status(run(arguments), ST_USAGE, arguments);
        expect_text(err, cases[i].words, arguments);
    }
}
END_TEST

/* A whole run says its curriculum in its record, and has the same bits whoever makes its batches. */
START_TEST(a_record_says_the_curriculum_and_its_bits_are_those_of_any_threads) {
    char arguments[500], curve[2][4000];
    for (int i = 0; i < 2; i++) {
        snprintf(arguments, sizeof arguments,
                 "train s3:length=8,n_train=300,n_val=50,n_test=60,test_length=8,16 lstm:hidden=8 --dim 8 --batch 50 "
                 "--steps 20 --curriculum 2:4:8 --threads %d --quiet --log-steps %s/log%d --out %s/r%d",
                 i + 1, program_folder, i, program_folder, i);
        expect_status(run(arguments), ST_OK, arguments);
        snprintf(arguments, sizeof arguments, "%s/log%d", program_folder, i);
        size_t size;
        char *text = slurp(arguments, &size);
        snprintf(curve[i], sizeof curve[i], "%.*s", (int)size, text);
        free(text);
    }
    ck_assert_str_eq(curve[0], curve[1]);
    snprintf(arguments, sizeof arguments, "report --out %s/r0 --where curriculum=2:4:8 --format csv", program_folder);
    expect_status(run(arguments), ST_OK, arguments);
    expect_text(out, "lstm", arguments);
}
END_TEST

/* --- floor and selection ------------------------------------------------------------------------------------------ */

START_TEST(the_floor_of_a_cosine_may_be_a_share_of_its_peak) {
    struct setup *s = run_of(SMALL_TASK, "lr-min-share", "0.001"), *plain = run_of(SMALL_TASK, NULL, NULL);
    ck_assert_double_eq(setup_schedule(&s->spec.config, &s->shapes).lr_min, 0.001 * s->spec.config.lr);
    ck_assert_double_eq(setup_schedule(&plain->spec.config, &plain->shapes).lr_min, plain->spec.config.lr_min);
    ck_assert_ptr_null(strstr(plain->id.text, "lr-min-share"));
    ck_assert_ptr_null(strstr(plain->id.text, "select"));
    small_run_free(s);
    small_run_free(plain);
}
END_TEST

/* With such a rate the best of six validations is the third. */
START_TEST(the_last_step_is_tested_where_it_is_selected) {
    double val[2], test[2];
    for (int i = 0; i < 2; i++) {
        char arguments[400];
        snprintf(arguments, sizeof arguments,
                 "train " SMALL_TASK " lstm:hidden=4 --dim 8 --batch 50 --steps 30 --eval-every 5 --lr 0.3 --stop-at 2 "
                 "--select %s --quiet --json --out %s/r",
                 i ? "last" : "best", program_folder);
        expect_status(run(arguments), ST_OK, arguments);
        json_t *row = json_loads(out, 0, NULL);
        size_t size;
        char *record = slurp(json_string_value(json_object_get(row, "record")), &size);
        const char *best = strstr(record, "\"best_step\": ");
        ck_assert_ptr_nonnull(best);
        ck_assert_int_eq(strtol(best + strlen("\"best_step\": "), NULL, 10), i ? 30 : 15);
        val[i] = json_number_value(json_object_get(row, "val_acc"));
        test[i] = json_number_value(json_object_get(row, "test_acc"));
        free(record);
        json_decref(row);
    }
    ck_assert(val[1] < val[0] && test[1] != test[0]);
}
END_TEST

/* --- the test's curve --------------------------------------------------------------------------------------------- */

/* Returns the accuracy of test examples of one length after `step` steps, from a list of a record, "curve" or "evals";
 * NAN: there is none. *points: the test's points in the list. */
static double test_accuracy(const json_t *record, const char *list, int64_t step, int64_t length, int *points) {
    const json_t *in = json_object_get(record, list), *columns = json_object_get(in, "columns"), *point, *name;
    double found = NAN;
    size_t i, k;
    *points = 0;
    json_array_foreach(json_object_get(in, "points"), i, point) {
        double values[3] = {NAN, NAN, NAN};
        bool test = false, position = false;
        static const char *const names[] = {"step", "length", "acc"};
        json_array_foreach(columns, k, name) {
            const json_t *value = json_array_get(point, k);
            test = test || (!strcmp(json_string_value(name), "split") && json_is_string(value) &&
                            !strcmp(json_string_value(value), "test"));
            position = position || (json_is_string(value) && !strcmp(json_string_value(value), EVAL_BY_POSITION));
            for (int c = 0; c < 3; c++)
                if (!strcmp(json_string_value(name), names[c])) values[c] = json_number_value(value);
        }
        *points += test;
        if (test && !position && values[0] == (double)step && values[1] == (double)length) found = values[2];
    }
    return found;
}

/* The points of the tested step are the test's, the run's numbers are those of a run without them, and a figure shows
 * them. */
START_TEST(a_curve_may_have_the_test_of_each_length) {
    char *numbers[2];
    for (int i = 0; i < 2; i++) {
        char arguments[400];
        int points;
        snprintf(arguments, sizeof arguments,
                 "train s3:length=8,n_train=300,n_val=50,n_test=60,test_length=8,16 lstm:hidden=8 --dim 8 --batch 50 "
                 "--steps 12 --eval-every 3 --lr 0.02 --stop-at 2 %s --quiet --json --out %s/r%d",
                 i ? "--test-each yes" : "", program_folder, i);
        expect_status(run(arguments), ST_OK, arguments);
        json_t *row = json_loads(out, 0, NULL);
        size_t size;
        char *text = slurp(json_string_value(json_object_get(row, "record")), &size);
        json_t *record = json_loads(text, 0, NULL);
        const json_t *data = json_object_get(record, "run");
        int64_t best = json_integer_value(json_object_get(data, "best_step"));
        ck_assert_int_gt(best, 0);
        for (int64_t length = 8; length <= 16; length += 8) {
            double tested = test_accuracy(record, "evals", best, length, &points);
            double drawn = test_accuracy(record, "curve", best, length, &points);
            ck_assert_int_eq(points, i ? 8 : 0); /* two lengths, four validations */
            ck_assert_msg(i ? drawn == tested : isnan(drawn), "at %lld: %g, tested %g", (long long)length, drawn,
                          tested);
        }
        numbers[i] = malloc(200);
        snprintf(numbers[i], 200, "%.17g %.17g %.17g %lld", json_number_value(json_object_get(data, "val_loss")),
                 json_number_value(json_object_get(data, "test_loss")),
                 json_number_value(json_object_get(data, "test_acc")), (long long)best);
        json_decref(row);
        json_decref(record);
        free(text);
        snprintf(arguments, sizeof arguments, "plot accuracy --y test --format svg --out %s/r%d", program_folder, i);
        expect_status(run(arguments), i ? ST_OK : ST_USAGE, arguments);
        expect_text(err, i ? "s3-test.svg" : "no run here has a number of its validation", arguments);
    }
    ck_assert_str_eq(numbers[0], numbers[1]);
    for (int i = 0; i < 2; i++) free(numbers[i]);
}
END_TEST

Suite *check_curriculum(void);
Suite *check_curriculum(void) {
    Suite *suite = suite_create("curriculum");
    TCase *tests = tcase_create("curriculum");
    tcase_add_checked_fixture(tests, own_folder_begin, own_folder_end);
    tcase_add_checked_fixture(tests, program_begin, program_end);
    tcase_add_test(tests, each_part_of_a_run_has_its_longest_length);
    tcase_add_test(tests, a_short_word_is_the_beginning_of_the_long_one);
    tcase_add_test(tests, a_short_string_of_pairs_answers_its_questions);
    tcase_add_test(tests, validation_and_names_of_other_runs_stay_as_they_are);
    tcase_add_test(tests, other_curricula_are_refused);
    tcase_add_test(tests, a_record_says_the_curriculum_and_its_bits_are_those_of_any_threads);
    tcase_add_test(tests, the_floor_of_a_cosine_may_be_a_share_of_its_peak);
    tcase_add_test(tests, the_last_step_is_tested_where_it_is_selected);
    tcase_add_test(tests, a_curve_may_have_the_test_of_each_length);
    suite_add_tcase(suite, tests);
    return suite;
}

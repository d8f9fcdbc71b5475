/* check_listops.c - generated ListOps expressions and their distribution. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/philox.h"
#include "tasks/language/listops_operation.h"
#include "tests/lib/chi_square.h"
#include "tests/tasks/language/listops_meaning.h"
#include "tests/tasks/task_examples.h"

/* --- operators ---------------------------------------------------------------------------------------------------- */

START_TEST(operators_have_the_values_of_the_specification) {
    static const struct {
        int32_t name;
        char arguments[12];
        int32_t value;
    } rows[] = {
        {MED, "12", 1},   {MED, "21", 1},   {MED, "19", 5},         {MED, "193", 3},        {MED, "1234", 2},
        {MED, "7", 7},    {MED, "0099", 4}, {MED, "99999999", 9},   {MED, "98765432", 5},   {MAX, "353", 5},
        {MAX, "0", 0},    {MIN, "353", 3},  {MIN, "9999999998", 8}, {SM, "9999999999", 0},  {SM, "99", 8},
        {SM, "12345", 5}, {SM, "0", 0},     {MAX, "0123456789", 9}, {MIN, "0123456789", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct operation o;
        int values[16], n = 0;
        operation_start(&o, rows[i].name);
        for (const char *digit = rows[i].arguments; *digit; digit++) {
            operation_add(&o, *digit - '0');
            values[n++] = *digit - '0';
        }
        ck_assert_msg(operation_value(&o) == rows[i].value, "%d of %s is %d, not %d", rows[i].name, rows[i].arguments,
                      operation_value(&o), rows[i].value);
        ck_assert_int_eq(apply(rows[i].name, values, n), rows[i].value);
    }
}
END_TEST

/* --- options ------------------------------------------------------------------------------------------------------ */

START_TEST(impossible_options_are_refused) {
    check_task_refused("listops:min_length=1999", "listops: no length is more than min_length=1999 and less than "
                                                  "max_length=2000; expected a difference of at least 2");
    check_task_refused("listops:max_length=400", "min_length=500|max_length=400");
    check_task_refused("listops:depth=2", "random expressions with depth=2 and arity=10 only 0 have more than "
                                          "min_length=500 and fewer than max_length=2000 tokens");
    check_task_refused("listops:min_length=1,max_length=4", "only 0 have more than min_length=1 and fewer than");
    check_task_refused("listops:depth=32", "depth=32 and arity=10 only 0"); /* trees end early or explode */
    check_task_refused("listops:depth=1", "depth=1 (task listops): expected a whole number from 2 to 32");
    check_task_refused("listops:depth=33", "depth=33");
    check_task_refused("listops:arity=1", "arity=1 (task listops): expected a whole number from 2 to 1000");
    check_task_refused("listops:max_length=100k", "max_length=100k");
    check_task_refused("listops:length=100", "has no option 'length'");
}
END_TEST

START_TEST(the_shape_is_that_of_the_specification) {
    struct task_choice c;
    open_task(&c, "listops", 1);
    ck_assert(c.shape.T == 2000 && c.shape.vocab_in == 18 && c.shape.vocab_out == 10 && c.shape.per_sequence);
    ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], 96000);
    ck_assert_int_eq(c.shape.examples[SPLIT_VAL], 2000);
    ck_assert_int_eq(c.shape.examples[SPLIT_TEST], 2000);
    ck_assert(c.shape.chance == 0.1 && c.shape.floor == 0.17 && !c.shape.needs_causal);
    open_task(&c, "listops:max_length=600,n_train=7,n_val=8,n_test=9", 1);
    ck_assert(c.shape.T == 600 && c.shape.examples[SPLIT_TRAIN] == 7 && c.shape.examples[SPLIT_VAL] == 8 &&
              c.shape.examples[SPLIT_TEST] == 9);
}
END_TEST

START_TEST(a_full_arena_is_an_error_and_not_a_crash) {
    struct task_choice c;
    struct error e;
    ck_assert_int_eq(task_parse(&c, "listops", &e), ST_OK);
    task_host.fail_after = 1;
    ck_assert_int_eq(task_open(&c, 1, &task_host, &e), ST_MEMORY);
    ck_assert_ptr_nonnull(strstr(e.text, "max_length=2000"));
}
END_TEST

/* --- generated expressions ---------------------------------------------------------------------------------------- */

static void check_expressions(const char *options, int n_each, int64_t min, int64_t max, struct seen *seen) {
    char text[128];
    struct task_choice c;
    snprintf(text, sizeof text, "listops%s", options);
    open_task(&c, text, 7);
    struct example x = new_example(&c.shape);
    *seen = (struct seen){0, 0, 1000};
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int i = 0; i < n_each; i++) {
            fill_example(&c, (enum split)split, i, -7, &x);
            const int32_t *at = x.tokens;
            ck_assert_int_eq(x.targets[0], value_of(&at, 1, seen));
            ck_assert_int_eq(*at++, EOS);
            ck_assert_int_eq(at - x.tokens, x.length);
            ck_assert_msg(min < x.length - 1 && x.length - 1 < max, "%s: %d tokens", text, x.length - 1);
            int64_t t = x.length;
            while (t < c.shape.T && x.tokens[t] == 0) t++;
            ck_assert_int_eq(t, c.shape.T);
        }
    free_example(&x);
}

START_TEST(labels_are_the_value_of_the_expression) {
    struct seen seen;
    check_expressions("", 1000, 500, 2000, &seen);
    ck_assert(seen.deepest == 10 && seen.most == 10 && seen.fewest == 2);
    check_expressions(":min_length=20,max_length=100,depth=4,arity=5", 500, 20, 100, &seen);
    ck_assert(seen.deepest == 4 && seen.most == 5 && seen.fewest == 2);
    check_expressions(":min_length=0,max_length=2", 500, 0, 2, &seen);
    ck_assert(seen.deepest == 1 && seen.most == 0);
    check_expressions(":min_length=3,max_length=5,depth=2,arity=2", 500, 3, 5, &seen);
    ck_assert(seen.deepest == 2 && seen.most == 2 && seen.fewest == 2);
    check_expressions(":min_length=498,max_length=500", 30, 498, 500, &seen);
    check_expressions(":depth=32,arity=6", 30, 500, 2000, &seen);
    ck_assert_int_gt(seen.deepest, 10);
    check_expressions(":depth=2,arity=1000", 30, 500, 2000, &seen);
    ck_assert_int_gt(seen.most, 100);
}
END_TEST

#define SMALL 20 /* tokens */

/* share[n][v]: probability of a node with n tokens and value v, from its children's. */
static void add_level(double share[SMALL][10], double child[SMALL][10]) {
    memset(share, 0, SMALL * sizeof *share);
    for (int v = 0; v < 10; v++) share[1][v] = 0.75 / 10;
    for (int a = 0; a < SMALL * 10; a++)
        for (int b = 0; b < SMALL * 10; b++) {
            int values[3] = {a % 10, b % 10, 0}, n = a / 10 + b / 10 + 2;
            double p = child[a / 10][a % 10] * child[b / 10][b % 10] / 32; /* operator, which, two or three arguments */
            if (p == 0 || n >= SMALL) continue;
            for (int name = MAX; name <= SM; name++) share[n][apply(name, values, 2)] += p;
            for (int c = 0; c < (SMALL - n) * 10; c++) {
                values[2] = c % 10;
                if (child[c / 10][c % 10] == 0) continue;
                for (int name = MAX; name <= SM; name++)
                    share[n + c / 10][apply(name, values, 3)] += p * child[c / 10][c % 10];
            }
        }
}

/* Lengths and values together, against all expressions of 3 levels with up to 3 arguments, enumerated. */
START_TEST(small_expressions_are_distributed_as_enumerated) {
    static double share[SMALL][10], child[SMALL][10];
    static int64_t count[SMALL][10];
    double accepted = 0;
    for (int v = 0; v < 10; v++) child[1][v] = 0.1;
    for (int level = 2; level <= 3; level++) {
        add_level(share, child);
        memcpy(child, share, sizeof child);
    }
    for (int n = 0; n < SMALL; n++)
        for (int v = 0; v < 10; v++) accepted += n > 3 ? share[n][v] : (share[n][v] = 0);
    for (int n = 0; n < SMALL; n++)
        for (int v = 0; v < 10; v++) share[n][v] /= accepted;
    struct task_choice c;
    open_task(&c, "listops:depth=3,arity=3,min_length=3,max_length=20", 4);
    ck_assert_int_eq(c.shape.T, SMALL);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < 90000; i++) {
        c.task->fill(c.inst, SPLIT_TRAIN, i, &x);
        count[x.length - 1][x.targets[0]]++;
    }
    double z = chi_square_shares_z(&count[0][0], &share[0][0], SMALL * 10, 90000);
    ck_assert_msg(fabs(z) < 3, "%.1f sigma off", z);
    free_example(&x);
}
END_TEST

#define LONGEST 2000

/* Mean and standard deviation of the accepted lengths, and the share of roots that is accepted: share[n] is the
 * probability of n tokens, level by level from the deepest. */
static void compute_lengths(double *accepted, double *mean, double *deviation) {
    static double child[LONGEST], power[LONGEST], next[LONGEST], sum[LONGEST];
    child[1] = 1;
    for (int level = 9; level >= 1; level--) {
        memcpy(power, child, sizeof power);
        memset(sum, 0, sizeof sum);
        for (int arguments = 2; arguments <= 10; arguments++) {
            memset(next, 0, sizeof next);
            for (int a = 1; a < LONGEST; a++)
                for (int b = 1; power[a] > 0 && a + b < LONGEST; b++) next[a + b] += power[a] * child[b];
            memcpy(power, next, sizeof power);
            for (int n = 0; n < LONGEST; n++) sum[n] += power[n] / 9;
        }
        memset(child, 0, sizeof child);
        child[1] = 0.75;
        for (int n = 2; n < LONGEST; n++) child[n] += 0.25 * sum[n - 2];
    }
    double moment[3] = {0};
    for (int n = 501; n < LONGEST; n++)
        for (int k = 0; k < 3; k++) moment[k] += child[n] * pow(n, k);
    *accepted = moment[0];
    *mean = moment[1] / moment[0];
    *deviation = sqrt(moment[2] / moment[0] - *mean * *mean);
}

#define DRAWS 20000

START_TEST(standard_expressions_have_the_lengths_and_classes_of_the_specification) {
    static const double frequency[10] = {.17, .09, .07, .08, .10, .09, .08, .07, .09, .17}; /* measured on 3000 */
    double accepted, mean, deviation, sum = 0;
    int64_t count[10] = {0};
    compute_lengths(&accepted, &mean, &deviation);
    ck_assert_double_eq_tol(accepted, 0.08, 0.005); /* of theirs the whole percents are known; .0828 here */
    ck_assert_double_eq_tol(mean, 1048, 3 * deviation / sqrt(3000)); /* theirs was measured, on as many */
    struct task_choice c;
    open_task(&c, "listops", 1);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < DRAWS; i++) {
        x.targets[0] = IGNORED;
        c.task->fill(c.inst, SPLIT_TRAIN, i, &x);
        sum += x.length - 1;
        count[x.targets[0]]++;
    }
    ck_assert_msg(fabs(sum / DRAWS - mean) < 3 * deviation / sqrt(DRAWS), "mean length %.1f, expected %.1f",
                  sum / DRAWS, mean);
    for (int v = 0; v < 10; v++) {
        /* Both are samples, and theirs is known to a percent: half of one is what rounding may have taken. */
        double p = frequency[v], sigma = sqrt(p * (1 - p) * (1.0 / 3000 + 1.0 / DRAWS));
        ck_assert_msg(fabs((double)count[v] / DRAWS - p) < 3 * sigma + 0.005, "class %d has %.3f, expected %.2f", v,
                      (double)count[v] / DRAWS, p);
    }
    free_example(&x);
}
END_TEST

/* All of held-out, some of training: no two begin with the same 64 tokens. */
START_TEST(expressions_do_not_repeat) {
    enum { HELD = 2000, PREFIX = 64 };
    struct task_choice c;
    open_task(&c, "listops", 0);
    struct example x = new_example(&c.shape);
    int32_t(*all)[PREFIX] = malloc(3 * HELD * sizeof *all);
    int n = 0;
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int i = 0; i < HELD; i++) {
            c.task->fill(c.inst, (enum split)split, i, &x);
            memcpy(all[n++], x.tokens, sizeof *all);
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(all[i], all[j], sizeof *all) == 0) ck_abort_msg("%d repeats %d", i, j);
    free(all);
    free_example(&x);
}
END_TEST

/* Committed results were measured on these expressions: whoever changes them raises the task's version, and then
 * these. */
START_TEST(the_expressions_are_those_of_version_1) {
    static const int32_t val[] = {13, 11, 14, 6, 6, 11, 5, 11, 3, 4, 6, 17, 10, 10, 8, 17, 2};
    struct task_choice c;
    open_task(&c, "listops:min_length=10,max_length=20", 1);
    ck_assert_int_eq(c.task->version, 1);
    struct example x = new_example(&c.shape);
    fill_example(&c, SPLIT_VAL, 0, -7, &x);
    ck_assert_mem_eq(x.tokens, val, sizeof val);
    free_example(&x);
    open_task(&c, "listops", 1);
    x = new_example(&c.shape);
    fill_example(&c, SPLIT_TRAIN, 12345, -7, &x);
    ck_assert_int_eq(x.length, 700);
    ck_assert_int_eq(x.targets[0], 5);
    free_example(&x);
}
END_TEST

Suite *check_listops(void);
Suite *check_listops(void) {
    Suite *suite = suite_create("listops");
    TCase *tests = tcase_create("listops");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_test(tests, operators_have_the_values_of_the_specification);
    tcase_add_test(tests, impossible_options_are_refused);
    tcase_add_test(tests, the_shape_is_that_of_the_specification);
    tcase_add_test(tests, a_full_arena_is_an_error_and_not_a_crash);
    tcase_add_test(tests, labels_are_the_value_of_the_expression);
    tcase_add_test(tests, small_expressions_are_distributed_as_enumerated);
    tcase_add_test(tests, standard_expressions_have_the_lengths_and_classes_of_the_specification);
    tcase_add_test(tests, expressions_do_not_repeat);
    tcase_add_test(tests, the_expressions_are_those_of_version_1);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_eval.c - `lrnn eval`: a run's weights give the record's numbers on its own task, and on longer sequences the
 * numbers of a run that was tested there; the answer is no run. */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define TASK  "s3:length=6,n_train=200,n_val=30,n_test=40"
#define TRAIN " lstm:hidden=8 --epochs 3 --lr 0.01 --dim 16 --quiet --json --out %s/r"

static json_t *answer;

/* Runs the program with the test's folder in place of %s; its line of JSON is then the answer. */
static void ask(const char *format) {
    char arguments[500];
    snprintf(arguments, sizeof arguments, format, program_folder);
    expect_status(run(arguments), 0, arguments);
    json_decref(answer);
    answer = parse_line(out);
}

/* Accuracy of the answer's point of that kind and length. */
static double accuracy_of(const char *by, int64_t length) {
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(answer, "points"), i, point) {
        if (!strcmp(json_string_value(json_object_get(point, "by")), by) && whole(point, "length") == length)
            return number(point, "acc");
    }
    ck_abort_msg("no accuracy by %s of %d", by, (int)length);
    return 0;
}

START_TEST(weights_are_evaluated_on_other_lengths_without_a_run) {
    char id[40], format[300];
    ask("train " TASK TRAIN);
    snprintf(id, sizeof id, "%s", json_string_value(json_object_get(answer, "run_id")));
    double own = number(answer, "test_acc");
    int records = records_in("r");

    snprintf(format, sizeof format, "eval %s --json --out %%s/r", id);
    ask(format);
    ck_assert(accuracy_of("all", 6) == own);
    ck_assert_str_eq(json_string_value(json_object_get(answer, "kind")), "evaluation");
    ck_assert_str_eq(json_string_value(json_object_get(answer, "task")), TASK);
    ck_assert_str_eq(json_string_value(json_object_get(answer, "run_id")), id);

    /* A run that was tested at both lengths trained to the same weights. */
    snprintf(format, sizeof format, "eval %s --task " TASK ",test_length=6,20 --json --batch 16 --out %%s/r", id);
    ask(format);
    double six = accuracy_of("length", 6), twenty = accuracy_of("length", 20);
    ck_assert(six == own);
    ask("train " TASK ",test_length=6,20" TRAIN);
    double both = number(answer, "test_acc");
    ck_assert_double_eq_tol((6 * six + 20 * twenty) / 26, both, 1e-12);
    snprintf(format, sizeof format, "eval %s --task s3:length=20,n_test=40 --json --out %%s/r", id);
    ask(format);
    ck_assert(accuracy_of("all", 20) == twenty);
    ck_assert_int_eq(records_in("r"), records + 1);
    json_decref(answer);
    answer = NULL;

    snprintf(format, sizeof format, "eval %.8s --task s3:length=20 --out %s/r", id, program_folder);
    expect_status(run(format), 0, format);
    expect_text(out, "on s3:length=20, weights of step", format);
    expect_text(out, "(Wilson ", format);
    snprintf(format, sizeof format, "eval %.8s --task s4 --out %s/r", id, program_folder);
    expect_status(run(format), ST_DATA, format);
    expect_text(err, "expected (24,16)", format);
    snprintf(format, sizeof format, "rm -r %s/r/weights", program_folder);
    ck_assert_int_eq(system(format), 0);
    snprintf(format, sizeof format, "eval %.8s --out %s/r", id, program_folder);
    ck_assert_int_ne(run(format), 0);
    expect_text(err, "No such file", format);
    expect_status(run("eval"), ST_USAGE, "eval");
}
END_TEST

Suite *check_eval(void);
Suite *check_eval(void) {
    Suite *suite = suite_create("eval");
    TCase *tests = tcase_create("eval");
    tcase_add_checked_fixture(tests, program_begin, program_end);
    tcase_add_test(tests, weights_are_evaluated_on_other_lengths_without_a_run);
    suite_add_tcase(suite, tests);
    return suite;
}

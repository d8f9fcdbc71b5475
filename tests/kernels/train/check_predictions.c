/* check_predictions.c - logits that are not finite predict nothing, so that a net of NaN is right nowhere: neither at
 * the label 0, which is what the greatest of incomparable numbers would be, nor in the metrics. */
#include <math.h>

#include "core/batch.h"
#include "harness/run/metrics.h"
#include "kernels/kernel.h"
#include "kernels/train/train.h"
#include "tests/kernels/train/predictions.h"
#include "tests/lib/op_run.h"

/* --- kernels ------------------------------------------------------------------------------------------------------ */

#define ROWS 9

/* Row r has one such logit, in the first, a middle or the last column; the others have none. */
static const struct {
    int row;
    double value;
} bad[] = {{0, NAN}, {2, INFINITY}, {3, -INFINITY}, {5, -NAN}, {8, INFINITY}};
#define N_BAD (sizeof bad / sizeof *bad)

static bool is_bad(int64_t row) {
    bool found = false;
    for (size_t i = 0; i < N_BAD; i++) found |= bad[i].row == row;
    return found;
}

static void expect_at(const char *kernel, const struct place *place, int64_t V, int64_t column) {
    const struct kernel *k = kernel_find(kernel);
    char sizes[64];
    struct op_run r;
    snprintf(sizes, sizeof sizes, "batch=1 length=%d vocab=%d variant=1", ROWS, (int)V);
    struct trial_op what = {.op = k->op, .kernel = k->name, .sizes = sizes_at(sizes), .outputs = 1, .place = place};
    ck_assert(run_open(&r, &what));
    for (size_t i = 0; i < N_BAD; i++) tensor_real(r.call->in[0])[bad[i].row * V + column] = (real)bad[i].value;
    run_walk(&r);
    for (int64_t row = 0; row < ROWS; row++) {
        int32_t got = tensor_i32(r.call->out[1])[row];
        ck_assert_msg((got == NO_CLASS) == is_bad(row), "%s: %s row %d of %d columns predicts %d", kernel,
                      is_bad(row) ? "bad" : "good", (int)row, (int)V, (int)got);
    }
    ck_assert(!isfinite(tensor_real(r.call->out[0])[0]));
    run_close(&r);
}

void expect_no_class(const char *kernel, const struct place *place) {
    static const int64_t columns[] = {1, 2, 5, 16, 33, 70};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        int64_t V = columns[i];
        expect_at(kernel, place, V, 0);
        expect_at(kernel, place, V, V / 2);
        expect_at(kernel, place, V, V - 1);
    }
}

START_TEST(logits_that_are_not_finite_predict_no_class) {
    expect_no_class("cross_entropy_ref", NULL);
    expect_no_class("cross_entropy_cpu", NULL);
}
END_TEST

/* --- metrics ------------------------------------------------------------------------------------------------------ */

START_TEST(no_class_is_wrong_at_every_target) {
    const int32_t targets[] = {0, 1, 0, IGNORED, 1, 0, 0, 0}, lengths[] = {4, 4};
    const int32_t predictions[] = {0, NO_CLASS, NO_CLASS, NO_CLASS, 1, 0, 1, 0};
    struct arena arena = {0};
    struct metrics m;
    struct error e;
    ck_assert_int_eq(arena_reserve(&arena, metrics_bytes(2, 4), &e), ST_OK);
    ck_assert_int_eq(metrics_create(&m, 2, 4, &arena, &e), ST_OK);
    metrics_add(&m, targets, predictions, lengths, 2, 4, NAN);
    struct scores s = metrics_scores(&m);
    ck_assert_int_eq(s.scored, 7);
    ck_assert_double_eq_tol(s.acc, 4.0 / 7, 1e-15);
    ck_assert_double_eq_tol(s.nonfinite, 2.0 / 7, 1e-15);
    ck_assert_double_eq_tol(s.macro_acc, (3.0 / 5 + 1.0 / 2) / 2, 1e-15); /* 0 is right 3 of 5 times, 1 once of 2 */
    ck_assert_double_nan(s.loss);
    arena_free(&arena);
}
END_TEST

Suite *check_predictions(void);
Suite *check_predictions(void) {
    Suite *suite = suite_create("predictions");
    TCase *tests = tcase_create("predictions");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_test(tests, logits_that_are_not_finite_predict_no_class);
    tcase_add_test(tests, no_class_is_wrong_at_every_target);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_golden.c - trainings have the bits of tests/golden/traces.tsv, or a raised numerics version and new rows. In
 * every other build they stay near the exact traces. */
#include <math.h>
#include <string.h>

#include "tests/golden/trace_file.h"
#include "tests/lib/support.h"

static int trace_count(void) {
    struct trace t;
    int n = 0;
    while (trace_at(n, &t)) n++;
    return n;
}

static void golden_run(const struct trace *t, const char *kernel, struct trace_row *row) {
    struct error e = {0};
    ck_assert_msg(trace_run(t, kernel, row, &e) == ST_OK, "%s %s: %s", t->task, t->model, e.text);
}

/* The file's row of that trace. Every trace has one, so that a mixer that is listed is held to its bits. */
static struct trace_row row_of(const char *name, const char *precision, const char *arithmetic) {
    struct trace_row row;
    struct error e = {0};
    ck_assert_msg(trace_find_row(name, precision, arithmetic, &row, &e) == ST_OK, "%s", e.text);
    return row;
}

START_TEST(reference_kernels_give_the_bits_of_the_file) {
    struct trace t;
    struct trace_row got;
    ck_assert(trace_at(_i, &t));
    golden_run(&t, "reference", &got);
    struct trace_row want = row_of(got.name, REAL_NAME, trace_arithmetic());
    ck_assert_msg(!strcmp(got.numerics, want.numerics),
                  "%s: numerics %s, in the file %s; make golden writes new traces", got.name, got.numerics,
                  want.numerics);
    ck_assert_msg(trace_same_bits(&got, &want),
                  "%s: losses %.17g %.17g %.17g, in the file %.17g %.17g %.17g: other bits under the same numerics "
                  "version %s; if that is meant, raise `version` beside the op, kernel, model or backbone that "
                  "changed, or NUMERICS_BASE (harness/study/numerics.h), then make golden",
                  got.name, got.loss[0], got.loss[1], got.loss[2], want.loss[0], want.loss[1], want.loss[2],
                  got.numerics);
}
END_TEST

/* The bounds of the distance from the exact trace, which is of the plain build with reference kernels, relative to the
 * loss at the three steps of TRACE_POINTS. Fused multiply-adds alone measure 0, 8e-8, 8e-8 in float, 3e-16, 5e-16,
 * 2e-16 in double; tuned kernels have trace_tuned_bounds. */
static const double fused_bounds[2][TRACE_POINTS] = {{1e-6, 1e-6, 1e-6}, {1e-14, 1e-14, 1e-14}};

static void expect_near_exact(const struct trace_row *got, const struct trace_row *exact,
                              const double bounds[2][TRACE_POINTS], const char *what) {
    ck_assert_msg(trace_is_near(got, exact, bounds),
                  "%s, %s: losses %.17g %.17g %.17g, in the exact trace %.17g %.17g %.17g", exact->name, what,
                  got->loss[0], got->loss[1], got->loss[2], exact->loss[0], exact->loss[1], exact->loss[2]);
}

START_TEST(tuned_kernels_stay_near_the_exact_trace) {
    struct trace t;
    struct trace_row tuned;
    char name[TRACE_TEXT];
    ck_assert(trace_at(_i, &t));
    trace_name(&t, name);
    struct trace_row exact = row_of(name, REAL_NAME, "plain");
    golden_run(&t, "", &tuned);
    expect_near_exact(&tuned, &exact, trace_tuned_bounds, "tuned kernels");
}
END_TEST

/* Both precisions' rows of fused multiply-adds, whichever precision this build has. */
START_TEST(fused_rows_stay_near_the_exact_ones) {
    static const char *const precisions[] = {"fp32", "fp64"};
    struct trace t;
    char name[TRACE_TEXT];
    ck_assert(trace_at(_i, &t));
    trace_name(&t, name);
    for (int p = 0; p < 2; p++) {
        struct trace_row fused = row_of(name, precisions[p], "fma"), exact = row_of(name, precisions[p], "plain");
        ck_assert_msg(!strcmp(fused.numerics, exact.numerics), "%s, %s: numerics %s and %s; make golden writes all",
                      name, precisions[p], fused.numerics, exact.numerics);
        expect_near_exact(&fused, &exact, fused_bounds, "fused multiply-adds");
    }
}
END_TEST

static Suite *suite_of(const char *name, const TTest *test, int n) {
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, test, 0, n);
    suite_add_tcase(suite, tests);
    return suite;
}

Suite *check_golden(void);
Suite *check_golden(void) {
    return suite_of("golden", reference_kernels_give_the_bits_of_the_file, trace_count());
}

/* A suite apart, as one process runs a whole suite. */
Suite *check_golden_near(void);
Suite *check_golden_near(void) {
    Suite *suite = suite_of("golden_near", tuned_kernels_stay_near_the_exact_trace, trace_count());
    TCase *tests = tcase_create("rows");
    tcase_add_loop_test(tests, fused_rows_stay_near_the_exact_ones, 0, trace_count());
    suite_add_tcase(suite, tests);
    return suite;
}

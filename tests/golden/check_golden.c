/* check_golden.c - trainings have the bits of tests/golden/traces.tsv, or a raised numerics version and a new file. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden/trace.h"
#include "tests/lib/support.h"

#define TRACES "tests/golden/traces.tsv"

static int trace_count(void) {
    struct trace t;
    int n = 0;
    while (trace_at(n, &t)) n++;
    return n;
}

/* The file's row of that trace in this build. */
static bool find_row(const struct trace_row *like, struct trace_row *row) {
    FILE *f = fopen(TRACES, "r");
    bool found = false;
    ck_assert_msg(f != NULL, "there is no %s; make golden writes it", TRACES);
    while (!found && trace_read(f, row))
        found = !strcmp(row->name, like->name) && !strcmp(row->real, like->real) &&
                !strcmp(row->arithmetic, like->arithmetic);
    fclose(f);
    return found;
}

/* A mixer with ground truth is part of the suite, so it has golden traces too; a new one gets both. */
static bool has_cases(const char *model) {
    char needle[64];
    bool found = false;
    snprintf(needle, sizeof needle, "-%.*s-", (int)strcspn(model, ":"), model);
    DIR *folder = opendir("tests/cases");
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; !found && (entry = readdir(folder));) found = strstr(entry->d_name, needle) != NULL;
    closedir(folder);
    return found;
}

START_TEST(reference_kernels_give_the_bits_of_the_file) {
    struct trace t;
    struct trace_row got, want;
    ck_assert(trace_at(_i, &t));
    trace_run(&t, "reference", &got);
    if (!find_row(&got, &want)) {
        ck_assert_msg(!has_cases(t.model), "%s has no row in %s; make golden writes it", got.name, TRACES);
        return;
    }
    ck_assert_msg(!strcmp(got.numerics, want.numerics),
                  "%s: numerics %s, in the file %s; make golden writes new traces", got.name, got.numerics,
                  want.numerics);
    ck_assert_msg(!strcmp(got.weights, want.weights) && memcmp(got.loss, want.loss, sizeof got.loss) == 0,
                  "%s: losses %.17g %.17g %.17g, in the file %.17g %.17g %.17g: other bits under the same numerics "
                  "version %s; if "
                  "that is meant, raise the version of what changed in harness/plan/numerics.c, then make golden",
                  got.name, got.loss[0], got.loss[1], got.loss[2], want.loss[0], want.loss[1], want.loss[2],
                  got.numerics);
}
END_TEST

/* Other orders of summation move a loss by its rounding; then Adam divides gradients by their size, so a weight whose gradient is
 * rounding noise (1e-9 in float, a tenth of its eps) moves by what the order made of it. Measured over all traces, relative to the
 * loss, at steps 1, 10, 50: 1.3e-7 3.4e-6 2.5e-2 in float (5e-6 but for deltaproduct with a forget gate), 6e-16 1e-14 9e-9 in double. */
START_TEST(tuned_kernels_stay_near_the_reference) {
    static const double bounds[2][TRACE_POINTS] = {{1e-6, 3e-5, 5e-2}, {1e-14, 1e-12, 1e-7}};
    struct trace t;
    struct trace_row tuned, reference;
    ck_assert(trace_at(_i, &t));
    trace_run(&t, "reference", &reference);
    trace_run(&t, "", &tuned);
    for (int i = 0; i < TRACE_POINTS; i++)
        ck_assert_msg(fabs(tuned.loss[i] - reference.loss[i]) <= bounds[REAL_IS_DOUBLE][i] * fabs(reference.loss[i]),
                      "%s: point %d: loss %.17g, by the reference %.17g", tuned.name, i, tuned.loss[i],
                      reference.loss[i]);
}
END_TEST

/* Run by `make golden` alone. */
START_TEST(traces_are_written) {
    trace_update(TRACES);
}
END_TEST

Suite *check_golden(void);
Suite *check_golden(void) {
    Suite *suite = suite_create("golden");
    TCase *tests = tcase_create("golden");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    if (getenv("LRNN_GOLDEN_WRITE")) {
        tcase_add_test(tests, traces_are_written);
    } else {
        tcase_add_loop_test(tests, reference_kernels_give_the_bits_of_the_file, 0, trace_count());
        tcase_add_loop_test(tests, tuned_kernels_stay_near_the_reference, 0, trace_count());
    }
    suite_add_tcase(suite, tests);
    return suite;
}

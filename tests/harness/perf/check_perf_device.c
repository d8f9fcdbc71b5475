/* check_perf_device.c - what `lrnn perf device` computes on the host: errors, how many buffers a cold row takes, and
 * which kernels are asked for. */
#include <math.h>
#include <stdlib.h>

#include "harness/perf/device.h"
#include "harness/run/trainer.h"
#include "harness/store/version.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"
#include "tests/testing.h"

static void begin(void) {
    start_kernels();
    program_begin();
}

START_TEST(errors_are_relative_to_the_largest_magnitude) {
    const real got[] = {1, 2, -3}, want[] = {1, 2.5, -4}, zeros[] = {0, 0, 0};
    ck_assert_double_eq_tol(device_error(got, want, 3), 0.25, 1e-12);
    ck_assert_double_eq_tol(device_error(got, zeros, 3), 3, 1e-12);
    ck_assert(device_error(want, want, 3) == 0);
}
END_TEST

/* A value that is not finite counts in every place, whatever follows it. */
START_TEST(what_is_not_finite_is_an_infinite_error) {
    const real fine[] = {1, 2, 3}, wrong[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    real other[3];
    for (int at = 0; at < 3; at++)
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) other[j] = j == at ? wrong[i] : fine[j];
            ck_assert(device_error(other, fine, 3) == INFINITY);
            ck_assert(device_error(fine, other, 3) == INFINITY);
        }
}
END_TEST

START_TEST(cold_sets_are_twice_the_cache_or_none) {
    ck_assert_int_eq(device_cold_sets(50e6, 200e6), 1);
    ck_assert_int_eq(device_cold_sets(50e6, 100e6), 1);
    ck_assert_int_eq(device_cold_sets(50e6, 99e6), 2);
    ck_assert_int_eq(device_cold_sets(50e6, 6e6), 17);
    ck_assert_int_eq(device_cold_sets(50e6, 1e6), 0);
    ck_assert_int_eq(device_cold_sets(50e6, 0), 0);
}
END_TEST

/* AdamW reads weight, gradient and both moments, and writes three of them. */
START_TEST(a_step_costs_its_update_as_well) {
    struct setup *s = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=4", NULL, NULL);
    struct trainer t;
    struct error e = {ST_OK, ""};
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    struct cost step = trainer_step_cost(&t), forward = graph_cost(&t.train, PASS_FORWARD);
    struct cost backward = graph_cost(&t.train, PASS_BACKWARD);
    double update = 7.0 * sizeof(real) * (double)params_trained(&t.params);
    ck_assert(step.bytes >= forward.bytes + backward.bytes + update);
    ck_assert(step.flops > forward.flops + backward.flops);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

START_TEST(a_shape_that_is_not_measured_is_said) {
    const char *line = "perf device --only scan_lstm --shape 'length=1 dim=256'"; /* length=16 is no length=1 */
    expect_status(run(line), 2, line);
    expect_text(err, "of scan_lstm there are batch=128 length=16 dim=256, batch=128 length=128 dim=256", line);
    line = "perf device --only scan_lstn";
    expect_status(run(line), 2, line);
    expect_text(err, "perf device measures scan_diag", line);
}
END_TEST

/* A file of a device is evidence: what would take its place is refused before anything is measured, on any machine. */
START_TEST(a_file_of_a_device_is_not_replaced) {
    char path[SCRATCH_BYTES + 128], line[SCRATCH_BYTES + 64];
    size_t size;
    snprintf(path, sizeof path, "%s/device-%.12s.csv", program_folder, build_info()->commit);
    spill(path, "rows\n", 5);
    snprintf(line, sizeof line, "perf device --only scan_lstm --out %s", program_folder);
    expect_status(run(line), 2, line);
    expect_text(err, "is there already", line);
    char *text = slurp(path, &size);
    ck_assert_str_eq(text, "rows\n");
    free(text);
    snprintf(line, sizeof line, "perf device --once --out %s/other", program_folder);
    expect_status(run(line), 2, line);
    expect_text(err, "--once prints no row", line);
}
END_TEST

Suite *check_perf_device(void);
Suite *check_perf_device(void) {
    Suite *suite = suite_create("perf_device");
    TCase *tests = tcase_create("perf_device");
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_test(tests, errors_are_relative_to_the_largest_magnitude);
    tcase_add_test(tests, what_is_not_finite_is_an_infinite_error);
    tcase_add_test(tests, cold_sets_are_twice_the_cache_or_none);
    tcase_add_test(tests, a_step_costs_its_update_as_well);
    tcase_add_test(tests, a_shape_that_is_not_measured_is_said);
    tcase_add_test(tests, a_file_of_a_device_is_not_replaced);
    suite_add_tcase(suite, tests);
    return suite;
}

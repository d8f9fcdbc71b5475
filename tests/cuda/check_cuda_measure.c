/* check_cuda_measure.c - tests/device/measure.sh at tiny sizes, on the host: whether all its steps run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/program.h"
#include "tests/lib/support.h"

#ifdef LRNN_CUDA_HOST

static void begin(void) {
    start_kernels();
    program_begin();
}

/* What measures a device does all its steps, but for tools that are not there. */
START_TEST(a_device_can_be_measured) {
    char check[4096], line[SCRATCH_BYTES + 8], path[SCRATCH_BYTES + 32];
    size_t size;
    ssize_t n = readlink("/proc/self/exe", check, sizeof check - 1);
    ck_assert_int_gt(n, 0);
    check[n] = 0;
    setenv("CHECK", check, 1);
    setenv("LRNN", named_program("LRNN", "lrnn"), 1);
    setenv("SMALL", "1", 1);
    snprintf(line, sizeof line, "%d %s", _i, program_folder);
    int status = run_program(program_folder, "tests/device/measure.sh", line);
    ck_assert_msg(status == 0, "%s\n%s%s", line, out, err);
    snprintf(path, sizeof path, "%s/steps-%d.csv", program_folder, _i);
    char *steps = slurp(path, &size);
    static const char *const wanted[] = {"1,walked-equals-captured,ok,", "2,perf-device,ok,", "3,population-3,ok,"};
    expect_text(steps, wanted[_i - 1], line);
    free(steps);
}
END_TEST

/* Parts 2 and 3 measure kernels and trainings, minutes on the host: they go with all sizes (EVERY in the Makefile). */
static int parts_measured(void) {
    const char *every = getenv("LRNN_CUDA_EVERY");
    return every && atoi(every) > 1 ? 1 : 3;
}

START_TEST(the_parts_of_a_measurement_are_said) {
    ck_assert_int_eq(run_program(program_folder, "tests/device/measure.sh", "4 nowhere"), 2);
    expect_text(err, "there is no part '4'", "measure.sh 4");
}
END_TEST

#endif

Suite *check_cuda_measure(void);
Suite *check_cuda_measure(void) {
    Suite *suite = suite_create("cuda_measure");
#ifdef LRNN_CUDA_HOST
    TCase *tests = tcase_create("steps");
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_loop_test(tests, a_device_can_be_measured, 1, 1 + parts_measured());
    tcase_add_test(tests, the_parts_of_a_measurement_are_said);
    suite_add_tcase(suite, tests);
#endif
    return suite;
}

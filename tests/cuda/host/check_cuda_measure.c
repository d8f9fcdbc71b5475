/* check_cuda_measure.c - tests/device/measure.sh at tiny sizes, on the host: whether all its steps run; and what `lrnn
 * perf device` does when a kernel fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/store/version.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

#ifdef LRNN_CUDA_HOST

static void begin(void) {
    start_kernels();
    program_begin();
}

/* The script that measures a device does all its steps, except for tools that are missing. */
START_TEST(a_device_can_be_measured) {
    char check[4096], line[SCRATCH_BYTES + 8], path[SCRATCH_BYTES + 32];
    size_t size;
    ssize_t n = readlink("/proc/self/exe", check, sizeof check - 1);
    ck_assert_int_gt(n, 0);
    check[n] = 0;
    setenv("CHECK", check, 1);
    setenv("LRNN", named_program("LRNN", "lrnn"), 1);
    setenv("SMALL", "1", 1);
    static const char *const parts[] = {"0", "1", "lease", "2", "3"};
    snprintf(line, sizeof line, "%s %s", parts[_i], program_folder);
    int status = run_program(program_folder, "tests/device/measure.sh", line);
    ck_assert_msg(status == 0, "%s\n%s%s", line, out, err);
    snprintf(path, sizeof path, "%s%s/steps-%s.csv", program_folder, strcmp(parts[_i], "lease") ? "" : "/no-device",
             parts[_i]);
    char *steps = slurp(path, &size);
    static const char *const wanted[] = {"0,walked-equals-captured,ok,", "1,suite-cuda_host,ok,", "lease,taken,ok,",
                                         "2,perf-device,ok,", "3,population-3,ok,"};
    expect_text(steps, wanted[_i], line);
    free(steps);
}
END_TEST

/* A lease and parts 2 and 3 measure kernels and trainings, minutes on the host: they go with all sizes (EVERY in the
 * Makefile). */
static int parts_measured(void) {
    const char *every = getenv("LRNN_CUDA_EVERY");
    return every && atoi(every) > 1 ? 2 : 5;
}

/* The 48th launch, after some rows of the second kernel, finds no memory; the third kernel has another place. */
START_TEST(a_kernel_that_fails_leaves_the_others_their_rows) {
    const char *line = "perf device --small --seconds 0 --only scan_diag --shape length=1024 --compare=no";
    setenv("LRNN_CUDA_HOST_FULL", "48", 1);
    expect_status(run(line), 6, line);
    expect_text(out, "scan_diag_chunk_cuda,no,", line);
    expect_text(out, "scan_diag_cuda,yes,", line);
    expect_text(err, "1 of the kernels and shapes failed, 0 are too far from their references; first: scan_diag_chunk",
                line);
}
END_TEST

/* The gradient of a loss is 1 on the host and on a device, whatever other roots are given. */
START_TEST(kernels_are_held_against_references) {
    const char *line = "perf device --small --seconds 0 --only cross_entropy";
    expect_status(run(line), 0, line);
    line = "perf device --small --once --only cross_entropy";
    expect_status(run(line), 0, line);
    ck_assert_str_eq(out, "");
}
END_TEST

/* The rows that are printed, whole, once and for all. */
START_TEST(rows_of_a_device_are_kept_in_a_file) {
    char line[SCRATCH_BYTES + 128], path[SCRATCH_BYTES + 128];
    size_t size;
    snprintf(line, sizeof line, "perf device --small --seconds 0 --only cross_entropy --compare=no --out %s/rows",
             program_folder);
    snprintf(path, sizeof path, "%s/rows/device-%.12s.csv", program_folder, build_info()->commit);
    expect_status(run(line), 0, line);
    expect_text(out, ",copy,copy_kernel,,\"4 kB\",", line);
    char *text = slurp(path, &size);
    ck_assert_str_eq(text, out);
    expect_status(run(line), 2, line);
    ck_assert_str_eq(out, "");
    free(text);
    ck_assert_int_eq(scratch_count(program_folder, "device-"), 1);
}
END_TEST

#endif

Suite *check_cuda_measure(void);
Suite *check_cuda_measure(void) {
    Suite *suite = suite_create("cuda_measure");
#ifdef LRNN_CUDA_HOST
    TCase *tests = tcase_create("steps");
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_loop_test(tests, a_device_can_be_measured, 0, parts_measured());
    tcase_add_test(tests, a_kernel_that_fails_leaves_the_others_their_rows);
    tcase_add_test(tests, kernels_are_held_against_references);
    tcase_add_test(tests, rows_of_a_device_are_kept_in_a_file);
    suite_add_tcase(suite, tests);
#endif
    return suite;
}

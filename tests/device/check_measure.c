/* check_measure.c - what tests/device/measure.sh makes of how its steps end, with programs that only act as if; the
 * suite cuda_measure has the real ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/program.h"
#include "tests/lib/support.h"
#include "tests/testing.h"

/* A program whose steps are walked and whose machine has no device, and which says both and exits with 0; of the two
 * ops that it measures the second has no row unless it is asked for alone. */
static const char lrnn[] =
    "#!/bin/sh\n"
    "case \"$*\" in\n"
    "--version) echo '  commit    0123456789abcdef with local changes' ;;\n"
    "doctor) echo 'note  CUDA         no device' ;;\n"
    "train*) echo 'cuda: the step cannot be captured' >&2\n"
    "    while [ \"$1\" != --log-steps ]; do shift; done; echo loss >\"$2\" ;;\n"
    "'perf device --only ? '* | 'perf device --only ?') echo 'measures one, two' >&2; exit 2 ;;\n"
    "*'--only two'*) echo 'commit,device,driver,1,1,1,two,two_cuda' ;;\n"
    "'perf device'*) echo 'commit,device,driver,1,1,1,one,one_cuda'; exit 6 ;;\n"
    "'perf launches'*) printf '| mixer | bytes, MB |\\n|---|--:|\\n| lru | 3 |\\n\\nfp32, D\\n' ;;\n"
    "esac\n";

/* Tests that fail beside each other and pass apart, and of which one would go on for two seconds more. */
static const char check[] = "#!/bin/sh\n"
                            "(sleep 2; echo >\"$0.left\") &\n"
                            "printf 'ok 1 - a\\nnot ok 2 - b\\n' >\"$CK_TAP_LOG_FILE_NAME\"\n"
                            "[ \"$CK_FORK\" = no ] && kill -9 $$\n"
                            "printf 'ok 1 - a\\nok 2 - b\\n' >\"$CK_TAP_LOG_FILE_NAME\"\n";

static const char nvidia_smi[] = "#!/bin/sh\n"
                                 "case \"$*\" in\n"
                                 "*driver*) echo 'NVIDIA H100, 580.1' ;;\n"
                                 "*) echo 'NVIDIA H100' ;;\n"
                                 "esac\n";

/* A page of one kernel, with what is not to be kept of it. */
static const char ncu[] =
    "#!/bin/sh\n"
    "echo '==PROF== Connected'\n"
    "echo '\"ID\",\"Process ID\",\"Host Name\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Section Name\","
    "\"Metric Name\",\"Metric Unit\",\"Metric Value\"'\n"
    "echo '\"0\",\"7\",\"somewhere\",\"void walk<a, 4>(int)\",\"(128, 1, 1)\",\"(4, 1, 1)\",\"Speed\",\"DRAM\",\"Ghz\","
    "\"2.6\"'\n";

/* Writes a program into the folder that comes first in PATH; `variable` names it. */
static void write_program(const char *name, const char *text, const char *variable) {
    char path[SCRATCH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    FILE *f = fopen(path, "w");
    ck_assert(f && fputs(text, f) >= 0);
    ck_assert(fclose(f) == 0 && chmod(path, 0755) == 0);
    if (variable) setenv(variable, path, 1);
}

static void begin(void) {
    char path[4096];
    program_begin();
    snprintf(path, sizeof path, "%s:%s", program_folder, getenv("PATH"));
    setenv("PATH", path, 1);
    write_program("lrnn", lrnn, "LRNN");
    write_program("check", check, "CHECK");
    write_program("nvidia-smi", nvidia_smi, NULL);
    write_program("ncu", ncu, NULL);
    setenv("SMALL", "1", 1);
    setenv("CUDA_HOME", program_folder, 1); /* no profilers but those */
}

/* A part of the measurement, whose status is 1. */
static void expect_failed_part(const char *part) {
    char line[SCRATCH_BYTES + 16];
    snprintf(line, sizeof line, "%s %s/rows", part, program_folder);
    int status = run_program(program_folder, "tests/device/measure.sh", line);
    ck_assert_msg(status == 1, "%s\n%s%s", line, out, err);
}

static void expect_in_file(const char *name, const char *wanted) {
    char path[SCRATCH_BYTES + 64];
    size_t size;
    snprintf(path, sizeof path, "%s/rows/%s", program_folder, name);
    char *text = slurp(path, &size);
    expect_text(text, wanted, name);
    free(text);
}

START_TEST(what_is_said_with_status_0_fails_a_step) {
    expect_failed_part("0");
    expect_in_file("steps-0.csv", "0123456789ab+,NVIDIA H100,580.1,0,doctor,ok,");
    expect_in_file("steps-0.csv", ",doctor-finds-device,1,");
    expect_in_file("steps-0.csv", ",train-captured,ok,");
    expect_in_file("steps-0.csv", ",train-is-captured,1,");
    expect_in_file("steps-0.csv", ",walked-equals-captured,ok,");
    expect_in_file("launches.csv", "commit,device,driver,mixer,bytes in MB\n0123456789ab+,NVIDIA H100,580.1,lru,3\n");
    expect_in_file("gpu-0.csv", "NVIDIA H100");
}
END_TEST

START_TEST(a_suite_that_is_killed_has_a_row_and_is_run_apart) {
    unsetenv("SMALL");
    expect_failed_part("1");
    expect_in_file("suites.csv", ",cuda,1/8,no,137,1,1\n");
    expect_in_file("suites.csv", ",cuda,8/8,yes,ok,2,0\n");
    expect_in_file("suites.csv", ",cuda_values,1/1,yes,ok,2,0\n");
    expect_in_file("suites.csv", ",cuda_ways,1/1,yes,ok,2,0\n");
    expect_in_file("log-1.txt", "not ok 2 - b");
    char left[SCRATCH_BYTES + 32];
    snprintf(left, sizeof left, "%s/check.left", program_folder);
    usleep(2500000);
    ck_assert_msg(access(left, F_OK) != 0, "a test goes on after its suite");
}
END_TEST

START_TEST(a_program_of_ours_that_is_not_there_fails) {
    setenv("CHECK", "/nowhere/check", 1);
    expect_failed_part("1");
    expect_in_file("suites.csv", ",cuda_host,1/1,yes,12");
}
END_TEST

START_TEST(rows_are_kept_of_what_fails_and_the_rest_is_measured) {
    expect_failed_part("2");
    expect_in_file("steps-2.csv", ",perf-device,6,");
    expect_in_file("perf-device.csv", ",one,one_cuda\n");
    expect_in_file("perf-device.csv", ",two,two_cuda\n");
}
END_TEST

START_TEST(profiles_are_rows_without_hosts) {
    expect_failed_part("2");
    expect_in_file("steps-2.csv", ",ncu-linear-has-rows,ok,");
    expect_in_file("ncu.csv",
                   "commit,device,driver,op,shape,kernel,block,grid,section,metric,unit,value\n"
                   "0123456789ab+,NVIDIA H100,580.1,scan_block,batch=128 length=128 m=5,"
                   "\"void walk<a, 4>(int)\",\"(128, 1, 1)\",\"(4, 1, 1)\",\"Speed\",\"DRAM\",\"Ghz\",\"2.6\"\n");
    write_program("ncu", "#!/bin/sh\necho '==WARNING== No kernels were profiled.'\n", NULL);
    expect_failed_part("2");
    expect_in_file("steps-2.csv", ",ncu-linear,ok,");
    expect_in_file("steps-2.csv", ",ncu-linear-has-rows,1,");
}
END_TEST

/* A lease goes on after a step that fails, in the order of its list, and then does once more what has failed. */
START_TEST(a_lease_does_its_steps_in_order_and_again_what_failed) {
    static const char *const order[] = {",nvidia-smi,ok,",
                                        ",train-walked,ok,",
                                        ",steps,6,",
                                        ",calls,6,",
                                        ",population-tf32-1,ok,",
                                        ",population-tf32-32,ok,",
                                        ",population-bf16-1,ok,",
                                        ",population-bf16-32,ok,",
                                        ",taken,6,",
                                        ",memcheck,",
                                        ",racecheck,",
                                        ",again: check_all,",
                                        ",again: measure_steps,",
                                        ",steps,6,",
                                        ",again: measure_taken,"};
    char path[SCRATCH_BYTES + 64];
    size_t size;
    expect_failed_part("lease");
    snprintf(path, sizeof path, "%s/rows/NVIDIA-H100/steps-lease.csv", program_folder);
    char *steps = slurp(path, &size), *at = steps;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        char *found = strstr(at, order[i]);
        ck_assert_msg(found, "'%s' does not come after '%s' in\n%s", order[i], i ? order[i - 1] : "", steps);
        at = found;
    }
    ck_assert_ptr_null(strstr(steps, "again: measure_population"));
    free(steps);
    expect_in_file("NVIDIA-H100/perf-steps.csv", ",one,one_cuda\n");
}
END_TEST

/* The seconds of all steps are no more than a lease has. */
START_TEST(a_lease_says_its_steps_and_fits_its_time) {
    unsetenv("SMALL");
    setenv("DRY_RUN", "1", 1);
    ck_assert_int_eq(run_program(program_folder, "tests/device/measure.sh", "lease nowhere"), 0);
    expect_text(out, "20 measure_steps\n20 measure_calls\n", "measure.sh lease");
    expect_text(out, " of 560 seconds\n", "measure.sh lease");
    setenv("LIMIT", "300", 1);
    ck_assert_int_eq(run_program(program_folder, "tests/device/measure.sh", "lease nowhere"), 1);
    unsetenv("LIMIT");
    ck_assert_int_eq(run_program(program_folder, "tests/device/measure.sh", "0 nowhere"), 2);
    expect_text(err, "DRY_RUN is for a lease", "measure.sh 0");
}
END_TEST

START_TEST(the_parts_of_a_measurement_are_said) {
    ck_assert_int_eq(run_program(program_folder, "tests/device/measure.sh", "4 nowhere"), 2);
    expect_text(err, "there is no part '4'", "measure.sh 4");
    setenv("LIMIT", "soon", 1);
    ck_assert_int_eq(run_program(program_folder, "tests/device/measure.sh", "0 nowhere"), 2);
    expect_text(err, "LIMIT is seconds, got 'soon'", "measure.sh 0");
}
END_TEST

Suite *check_measure(void);
Suite *check_measure(void) {
    Suite *suite = suite_create("measure");
    TCase *tests = tcase_create("measure");
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_test(tests, what_is_said_with_status_0_fails_a_step);
    tcase_add_test(tests, a_suite_that_is_killed_has_a_row_and_is_run_apart);
    tcase_add_test(tests, a_program_of_ours_that_is_not_there_fails);
    tcase_add_test(tests, rows_are_kept_of_what_fails_and_the_rest_is_measured);
    tcase_add_test(tests, profiles_are_rows_without_hosts);
    tcase_add_test(tests, a_lease_does_its_steps_in_order_and_again_what_failed);
    tcase_add_test(tests, a_lease_says_its_steps_and_fits_its_time);
    tcase_add_test(tests, the_parts_of_a_measurement_are_said);
    suite_add_tcase(suite, tests);
    return suite;
}

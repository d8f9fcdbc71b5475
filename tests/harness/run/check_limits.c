/* check_limits.c - runs that the machine has no room for, seen from outside. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/real.h"
#include "harness/store/record_files.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define TASK "s3:n_train=64,n_val=8,n_test=8"

#define TOLD "1 of them cannot start and will be oom: "

/* Sequences of 16 x 1024 numbers of which one activation fits into the machine's memory, and a step does not. */
static long long too_many(void) {
    return (long long)(machine_memory_bytes() / 10 * 6 / (16 * 1024 * sizeof(real)));
}

START_TEST(a_run_without_room_is_a_row_and_the_others_go_on) {
    char line[512];
    struct record_set set;
    struct error e;
    int n[RUN_STATUS_COUNT] = {0};
    snprintf(line, sizeof line,
             "bench " TASK
             " --models 'lstm@dim=8 lstm@dim=1024,batch=%lld' --steps 2 --profile smoke --no-plots --no-speed --out %s",
             too_many(), program_folder);
    expect_status(run(line), 0, line);
    expect_text(err, "MB of memory are needed, the machine has ", line);
    expect_text(err, TOLD, line); /* before it began */
    ck_assert_msg(records_load(&set, program_folder, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < set.n; i++) n[set.list[i].run.status]++;
    ck_assert_int_eq(n[RUN_OK], 1);
    ck_assert_int_eq(n[RUN_OOM], 1);
    records_free(&set);
}
END_TEST

/* A dry run says it, of as many runs as are to be done and have no room. */
START_TEST(a_dry_run_tells_which_runs_have_no_room) {
    char line[512];
    snprintf(line, sizeof line,
             "bench " TASK
             " --models 'lstm@dim=8 lstm@dim=1024,batch=%lld' --seeds 3 --profile smoke --dry-run --out %s",
             too_many(), program_folder);
    expect_status(run(line), 0, line);
    expect_text(err, "\n3 of them cannot start and will be oom: s3:n_train=64,n_val=8,n_test=8 lstm", line);
    expect_text(err, "MB of memory, the machine has ", line);
    expect_status(run("bench " TASK " --models lstm --profile smoke --dry-run"), 0, "bench");
    ck_assert_ptr_null(strstr(err, "oom"));
}
END_TEST

START_TEST(no_memory_ends_the_process_as_no_device_does) {
    char line[512];
    snprintf(line, sizeof line, "train " TASK " lstm --dim 1024 --batch %lld --steps 2 --out %s", too_many(),
             program_folder);
    expect_status(run(line), 6, line);
    expect_text(err, "lower batch, length or width", line);
    ck_assert_int_eq(scratch_count(program_folder, ".json"), 0);
    ck_assert_int_eq(status_exit_code(ST_MEMORY), 6);
    ck_assert_int_eq(status_exit_code(ST_USAGE), 2);
    ck_assert_int_eq(status_exit_code((enum status)143), 143);
}
END_TEST

Suite *check_limits(void);
Suite *check_limits(void) {
    Suite *suite = suite_create("limits");
    TCase *tests = tcase_create("limits");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, program_begin, program_end);
    tcase_add_test(tests, a_run_without_room_is_a_row_and_the_others_go_on);
    tcase_add_test(tests, a_dry_run_tells_which_runs_have_no_room);
    tcase_add_test(tests, no_memory_ends_the_process_as_no_device_does);
    suite_add_tcase(suite, tests);
    return suite;
}

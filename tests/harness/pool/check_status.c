/* check_status.c - what is told of the sweeps of a folder; and when one has ended, the command that shows its table
 * again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/status.h"
#include "tests/lib/own_plan.h"
#include "tests/testing.h"

#define SMALL "s3:n_train=200,n_val=20,n_test=20,length=4 --profile smoke --no-speed --no-plots --epochs 2"

/* --- status ------------------------------------------------------------------------------------------------------- */

/* --confirm-seeds leaves two lists, the second of which has the runs of the first as well. */
START_TEST(a_run_of_two_lists_is_left_once) {
    char command[1024];
    expect("bench " SMALL " --models lstm:hidden=4 --lr 0.01,0.02 --seeds 2 --confirm-seeds 2 --out %s/r", 0);
    snprintf(
        command, sizeof command,
        "cd %s/r && rm -r runs && timeout -s TERM 1 ${LRNN:-./lrnn} status . --watch >said 2>&1; cat said >../said",
        program_folder);
    setenv("LRNN", realpath(named_program("LRNN", "./lrnn"), NULL), 1);
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/said", program_folder);
    size_t size;
    char *said = slurp(command, &size);
    expect_text(said, "0 of 4 runs done, 4 left", "status");
    expect_text(said, "0 of 6 runs done, 6 left", "status");
    expect_text(said, "; nobody is at work on it\n", "status");
    expect_text(said, "stopped watching with 6 runs left", "status");
    free(said);
}
END_TEST

START_TEST(lists_stand_in_the_order_of_their_names) {
    for (int i = 0; i < 6; i++) {
        char name[64];
        snprintf(name, sizeof name, "sweeps/%c-1.tsv", "dbface"[i]);
        if (i == 0) expect("status %s", 0);
        char make[512];
        snprintf(make, sizeof make, "mkdir -p %s/sweeps", program_folder);
        ck_assert_int_eq(system(make), 0);
        write_text(name, "00000000000000000000000000000000\t1\ts3\tlstm\t0.1\t1\n");
    }
    expect("status %s", 0);
    const char *at = out;
    for (const char *c = "abcdef"; *c; c++) {
        char line[32];
        snprintf(line, sizeof line, "%c-1: 0 of 1 runs", *c);
        ck_assert_msg((at = strstr(at, line)) != NULL, "%s in\n%s", line, out);
    }
}
END_TEST

START_TEST(one_record_is_one) {
    expect("train s3:n_train=200,n_val=20,n_test=20 lstm:hidden=4 --steps 2 --quiet --out %s/r", 0);
    expect("status %s/r", 0);
    expect_text(out, "1 record, no list of a sweep", "status");
    expect("status %s/r --out %s/r", ST_USAGE);
    expect_text(err, "/r and --out both say which folder; leave one of them out", "status");
}
END_TEST

/* Nobody reads what is written again and again. */
/* A hint is typed as it stands: with the path by which the program was called. */
START_TEST(hints_call_the_program_as_it_was_called) {
    char command[1024], said[SCRATCH_BYTES + 64];
    snprintf(command, sizeof command, "cd %s && ln -s '%s' lrnn && ./lrnn report --out none >out 2>err; ./lrnn >>err",
             program_folder, realpath(named_program("LRNN", "./lrnn"), NULL));
    ck_assert_int_eq(system(command), 0);
    snprintf(said, sizeof said, "%s/err", program_folder);
    size_t size;
    char *text = slurp(said, &size);
    expect_text(text, "lrnn: no run records under none/runs; `./lrnn bench s3` makes some\n", "report");
    expect_text(text, "  ./lrnn train s5 bdlru:m=5 ", "lrnn");
    free(text);
}
END_TEST

START_TEST(a_watch_ends_where_nobody_reads_it) {
    char command[1024];
    expect("sweep " SMALL " --models lstm:hidden=4 --seeds 2 --shard 1/2 --out %s/r", 0);
    snprintf(command, sizeof command, "timeout 20 %s status %s/r --watch >/dev/full 2>%s/said",
             named_program("LRNN", "./lrnn"), program_folder, program_folder);
    ck_assert_int_eq(WEXITSTATUS(system(command)), ST_FAIL);
}
END_TEST

/* --- again -------------------------------------------------------------------------------------------------------- */

/* Runs the command after "again: lrnn" in `err`; expects the output from before, from this text on: a caption says the
 * flags as well. */
static void expect_again(const char *from) {
    const char *line = strstr(err, "again: lrnn "), *table = strstr(out, from);
    ck_assert_msg(line && table, "%s%s", out, err);
    char *before = strdup(table), *command = strndup(line + 12, strcspn(line + 12, "\n"));
    expect_status(run(command), 0, command);
    table = strstr(out, from);
    ck_assert_msg(table && strcmp(table, before) == 0, "lrnn %s: expected\n%s\nin\n%s", command, before, out);
    free(before);
    free(command);
}

START_TEST(a_plans_table_is_shown_again) {
    static const char *const flags[] = {"--seeds 1 --lr 0.02", "--models lstm:hidden=4 --variants no",
                                        "s4:n_train=200,n_val=20,n_test=20,length=4 --seeds 2..3",
                                        "--layers 1,2 --dim 8", "--seeds 1 --grid task.min_length=2"};
    begin_plan(own_plan);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char arguments[512];
        snprintf(arguments, sizeof arguments, "sweep %%s/own.plan %s --no-plots --out '%%s/it is %zu'", flags[i], i);
        expect(arguments, 0);
        expect_again("\nmodel");
    }
    /* A list of models has blanks, as --where has between its flags. */
    expect("sweep %s/own.plan --seeds 1 --lr 0.02 --models 'lstm:hidden=4 lru:state=4' --no-plots --out %s/r", 0);
    expect_text(err, "; all tables: lrnn report --out ", "sweep");
}
END_TEST

/* The words of the call are noted beside the runs, so that the plan's name finds them. */
START_TEST(a_shortened_plan_is_shown_as_such) {
    begin_plan(own_plan);
    expect("sweep %s/own.plan s3:n_train=200,n_val=20,n_test=20,length=4 --seeds 1 --lr 0.02,0.03 --stop-after 1 "
           "--no-plots --out %s/r",
           0);
    expect_again("\nmodel");
    expect(REPORT, 0);
    expect_text(out, ",length=4 seeds=1 lr=0.02,0.03 stop-after=1, 4 of 4 runs\n", "report --paper");
    expect_text(out, "Shortened: none of the whole plan's runs is on record", "report --paper");
    expect("plot accuracy --paper %s/own.plan --out %s/r --format svg", 0);
    expect(REPORT " --profile smoke", 0); /* asked for by the plan's own profile, it is the whole */
    expect_text(out, ", 0 of 16 runs\n", "report --paper");
}
END_TEST

START_TEST(a_benchs_table_is_shown_again) {
    expect("bench " SMALL " --models lstm:hidden=4 --lr 0.01,0.02 --seeds 2 --protocol iqm --out %s/r", 0);
    expect_text(err, " --protocol iqm\n", "bench");
    expect_again("");
    expect("bench " SMALL " --models lstm:hidden=4 --lr 0.01,0.02 --seeds 2 --confirm-seeds 2 --out %s/s", 0);
    expect_text(err, " --confirm-seeds 2\n", "bench");
    expect_again("");
}
END_TEST

START_TEST(a_peak_that_is_never_reached_is_said) {
    expect("train s3:n_train=200,n_val=20,n_test=20,length=4 lstm:hidden=4 --steps 2 --warmup 9 --out %s/r", 0);
    expect_text(err, "--warmup 9: 1 of 1 run ends within it (after 2 steps), so that the rate never reaches its peak",
                "train");
    expect("bench s3 --models lstm --steps 20 --warmup 19 --schedule cosine --dry-run --out %s/r", 0);
    ck_assert_ptr_null(strstr(err, "--warmup"));
}
END_TEST

/* A run of another setting than its profile's is called custom before it is done, too. */
START_TEST(a_sweep_is_announced_as_its_records_will_say) {
    expect("bench word-problem --dry-run --out %s/r", 0);
    expect_text(err, "s3, profile custom: ", "bench");
    expect("bench s3 --models 'bdlru:m=1,2,4' --seeds 3 --dry-run --out %s/r", 0);
    expect_text(err, "s3, profile quick: 9 runs, seeds 1 to 3, ", "bench"); /* three models, not seed 3 */
    expect("bench s3 --seeds 3,5 --dry-run --out %s/r", 0);
    expect_text(err, ", seeds from 3 to 5, ", "bench");
}
END_TEST

Suite *check_status(void);
Suite *check_status(void) {
    Suite *suite = suite_create("status");
    TCase *c = tcase_create("status");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_run_of_two_lists_is_left_once);
    tcase_add_test(c, lists_stand_in_the_order_of_their_names);
    tcase_add_test(c, one_record_is_one);
    tcase_add_test(c, hints_call_the_program_as_it_was_called);
    tcase_add_test(c, a_watch_ends_where_nobody_reads_it);
    tcase_add_test(c, a_plans_table_is_shown_again);
    tcase_add_test(c, a_shortened_plan_is_shown_as_such);
    tcase_add_test(c, a_benchs_table_is_shown_again);
    tcase_add_test(c, a_peak_that_is_never_reached_is_said);
    tcase_add_test(c, a_sweep_is_announced_as_its_records_will_say);
    suite_add_tcase(suite, c);
    return suite;
}

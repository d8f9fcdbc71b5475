/* check_population.c - runs that one process trains at once, on the CPU: the same records as each alone, and what is
 * left when the process is killed, stopped or asked for what does not go with it. tests/cuda/ has the same on a device.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "tests/harness/pool/same_runs.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define RUNS 6 /* three models, two seeds */
#define BENCH                                                                                                          \
    "bench s3:n_train=200,n_val=40,n_test=40,length=6 --profile smoke --models 'bdlru:m=2,blocks=4 lru:state=4 "       \
    "lstm:hidden=4' --dim 8 --seeds 2 --no-plots --no-speed "

static const char *results(const char *name) {
    static char path[2][SCRATCH_BYTES + 32];
    static int which;
    which = !which;
    snprintf(path[which], sizeof path[which], "%s/%s", program_folder, name);
    return path[which];
}

/* The bench into a folder of that name, with more flags. */
static const char *bench(const char *flags, const char *name) {
    static char line[1024];
    snprintf(line, sizeof line, BENCH "%s --out %s", flags, results(name));
    return line;
}

START_TEST(members_leave_the_records_of_runs_alone) {
    static const char *const populations[] = {"--population 2", "--population 6 --threads 2"};
    const char *line = bench("--epochs 3 --jobs 1", "alone");
    expect_status(run(line), 0, line);
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "beside-%d", i);
        char flags[128];
        snprintf(flags, sizeof flags, "--epochs 3 %s", populations[i]);
        line = bench(flags, name);
        expect_status(run(line), 0, line);
        if (i == 0) expect_same_runs(results("alone"), results(name), RUNS);
    }
    line = bench("--epochs 3 --jobs 1 --threads 2", "two-threads"); /* which is a field of the record */
    expect_status(run(line), 0, line);
    expect_same_runs(results("two-threads"), results("beside-1"), RUNS);
}
END_TEST

/* A run whose examples are many and of other lengths beside runs whose are few. */
START_TEST(tasks_of_a_population_may_differ) {
    static const char *const flags[] = {"--jobs 1", "--population 4"};
    static const char *const names[] = {"alone", "beside"};
    for (int i = 0; i < 2; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "sweep s3:n_train=200,n_val=40,n_test=40,length=6 'listops:min_length=4,max_length=12,n_train=130,"
                 "n_val=20,n_test=20' --profile smoke --models 'bdlru:m=2,blocks=4 lstm:hidden=4' --dim 8 --seeds 1 "
                 "--epochs 2 --no-plots --no-speed %s --out %s",
                 flags[i], results(names[i]));
        expect_status(run(line), 0, line);
    }
    expect_same_runs(results("alone"), results("beside"), 4);
}
END_TEST

/* --- processes that end ------------------------------------------------------------------------------------------- */

/* The long bench by a population of three, in a process group of its own; what it says goes to "log". */
static pid_t start_bench(void) {
    const char *line = bench("--epochs 150 --population 3 --checkpoint-every 0.05s", "results");
    pid_t pid = fork();
    if (pid != 0) return pid;
    setpgid(0, 0);
    char command[2048];
    snprintf(command, sizeof command, "exec %s %s >>%s 2>&1", named_program("LRNN", "./lrnn"), line, results("log"));
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* The process of the population, once it is there and has begun to train. */
static pid_t worker_of(pid_t parent) {
    pid_t found = first_child(parent);
    wait_for_files(results("results"), ".ckpt", 2);
    return found;
}

/* Number of runs on record; all must have ended well. */
static int good_records(void) {
    struct record_set set;
    struct error e;
    ck_assert_msg(records_load(&set, results("results"), &e) == ST_OK, "%s", e.text);
    int n = set.n;
    for (int i = 0; i < n; i++) ck_assert_int_eq(set.list[i].run.status, RUN_OK);
    records_free(&set);
    return n;
}

static char *log_text(void) {
    size_t size;
    return slurp(results("log"), &size);
}

static void expect_log(const char *wanted) {
    char *text = log_text();
    ck_assert_msg(strstr(text, wanted) != NULL, "no '%s' in: %.3000s", wanted, text);
    free(text);
}

/* Nobody can tell whose fault it was: no run becomes a row before it has failed alone. */
START_TEST(runs_of_a_process_that_died_are_done_again_alone) {
    pid_t pid = start_bench();
    kill(worker_of(pid), SIGKILL);
    ck_assert_int_eq(wait_for(pid), 0);
    expect_log("a process that trained several runs ended with signal 9");
    expect_log("done again, each alone");
    ck_assert_int_eq(good_records(), RUNS);
}
END_TEST

START_TEST(ctrl_c_ends_all_members_with_checkpoints) {
    pid_t pid = start_bench();
    worker_of(pid);
    wait_for_files(results("results"), ".ckpt", 3); /* members begin one after the other: one that has not, has none */
    double before = time_now_s();
    kill(-pid, SIGINT);
    ck_assert_int_eq(wait_for(pid), 130);
    ck_assert_msg(time_now_s() - before < 5, "it took %g s to stop", time_now_s() - before);
    ck_assert_int_eq(scratch_count(results("results"), ".ckpt"), 3);
    ck_assert_int_eq(wait_for(start_bench()), 0);
    ck_assert_int_eq(good_records(), RUNS);
    ck_assert_int_eq(scratch_count(results("results"), ".ckpt"), 0);
}
END_TEST

/* Waiting runs go to another process; a stopped run is left to the next command. */
START_TEST(a_process_that_is_told_to_stop_gets_no_further_run) {
    pid_t pid = start_bench();
    kill(worker_of(pid), SIGTERM);
    ck_assert_int_eq(wait_for(pid), ST_FAIL);
    expect_log("was stopped; the same command goes on with it");
    expect_log("runs were stopped by a signal that was sent to them alone; the same command goes on");
    expect_log("tok/s"); /* the table of the others */
    int before = good_records();
    ck_assert_msg(before >= 3 && before < RUNS, "%d runs are on record", before);
    ck_assert_int_eq(wait_for(start_bench()), 0);
    ck_assert_int_eq(good_records(), RUNS);
}
END_TEST

/* One that cannot begin is a row, and the other members do not notice. */
START_TEST(a_member_that_fails_is_a_row) {
    struct record_set set;
    struct error e;
    const char *line = bench("--epochs 2 --population 3 --dry-run", "results");
    expect_status(run(line), 0, line);
    char id[33], path[SCRATCH_BYTES + 96];
    snprintf(id, sizeof id, "%.32s", out);
    ck_assert_int_eq((int)strspn(id, "0123456789abcdef"), 32);
    snprintf(path, sizeof path, "%s/checkpoints", results("results"));
    ck_assert_int_eq(make_folder(path, &e), ST_OK);
    snprintf(path, sizeof path, "%s/checkpoints/%s.ckpt", results("results"), id);
    ck_assert_int_eq(symlink(path, path), 0); /* which nobody can open */
    line = bench("--epochs 2 --population 3", "results");
    expect_status(run(line), 0, line);
    expect_text(err, path, line);
    ck_assert_msg(records_load(&set, results("results"), &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(set.n, RUNS);
    for (int i = 0; i < set.n; i++)
        ck_assert_int_eq(set.list[i].run.status, strcmp(set.list[i].run.run_id, id) ? RUN_OK : RUN_ERROR);
    records_free(&set);
}
END_TEST

START_TEST(what_needs_a_process_each_is_refused) {
    static const struct {
        const char *flags, *text;
    } cases[] = {
        {"--population 4 --jobs 2", "--population trains runs in one process and --jobs each in its own; leave one"},
        {"--population 4 --timeout 9s",
         "--timeout kills a run with its process, which the runs of a population share; --population 1"},
        {"--population 4 --jobs 2 --slurm 2", "--population trains runs in one process"},
        {"--population 65", "population=65 (command line): expected a whole number from 1 to 64, or auto"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *line = bench(cases[i].flags, "results");
        expect_status(run(line), 2, line);
        expect_text(err, cases[i].text, line);
    }
    const char *line = bench("--population 1 --timeout 900s --jobs 2 --epochs 1", "results");
    expect_status(run(line), 0, line);
}
END_TEST

Suite *check_population(void);
Suite *check_population(void) {
    Suite *suite = suite_create("population");
    TCase *c = tcase_create("population");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, members_leave_the_records_of_runs_alone);
    tcase_add_test(c, tasks_of_a_population_may_differ);
    tcase_add_test(c, runs_of_a_process_that_died_are_done_again_alone);
    tcase_add_test(c, ctrl_c_ends_all_members_with_checkpoints);
    tcase_add_test(c, a_process_that_is_told_to_stop_gets_no_further_run);
    tcase_add_test(c, a_member_that_fails_is_a_row);
    tcase_add_test(c, what_needs_a_process_each_is_refused);
    suite_add_tcase(suite, c);
    return suite;
}

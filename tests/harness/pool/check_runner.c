/* check_runner.c - between the parent of a sweep and its runs: what is told, what is waited for, and what is said of
 * runs that failed. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/run/signals.h"
#include "harness/pool/population.h"
#include "harness/store/clock.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* Until nothing more goes in. */
static void fill_pipe(int read_end) {
    char path[64];
    struct member_report nothing = {.kind = REPORT_PROGRESS};
    snprintf(path, sizeof path, "/proc/self/fd/%d", read_end);
    int fd = open(path, O_WRONLY | O_NONBLOCK);
    ck_assert_int_ge(fd, 0);
    while (write(fd, &nothing, sizeof nothing) == (ssize_t)sizeof nothing) continue;
    close(fd);
}

/* The parent looks at no pipe while a run goes on to its end; then signals come, as to all processes of a terminal. */
START_TEST(the_end_of_a_run_reaches_a_parent_that_was_busy) {
    struct setup *s = small_run(program_folder, "none", "lru:state=4", NULL, NULL);
    struct population p;
    struct member_report report = {.kind = REPORT_PROGRESS};
    struct error e;
    signals_install();
    ck_assert_msg(population_start(&p, 1, "cpu", NULL, 0, &e) == ST_OK, "%s", e.text);
    fill_pipe(p.reports[0]);
    ck_assert(population_give(&p, 0, s, NULL, 1));
    wait_for_files(program_folder, ".json", 1);
    for (int i = 0; i < 5; i++) { /* one of them falls into the report of the end */
        sleep_ms(50);
        kill(p.pid, SIGTERM);
    }
    while (report.kind != REPORT_END) {
        struct pollfd news = {.fd = p.reports[0], .events = POLLIN};
        ck_assert_msg(poll(&news, 1, (int)patience_ms()) == 1, "the end of the run is not told");
        ck_assert(population_read(&p, 0, &report));
    }
    ck_assert_int_eq(report.error.status, ST_OK);
    population_end(&p);
    small_run_free(s);
}
END_TEST

/* --- sweeps ------------------------------------------------------------------------------------------------------- */

static const char *in_folder(const char *name) {
    static char path[2][SCRATCH_BYTES + 96];
    static int which;
    which = !which;
    snprintf(path[which], sizeof path[which], "%s/%s", program_folder, name);
    return path[which];
}

/* A command into FOLDER/r, in a process group of its own; what it says goes to FOLDER/log. */
static pid_t start(const char *words) {
    char command[2048];
    snprintf(command, sizeof command, "exec %s %s --no-plots --no-speed --out %s >>%s 2>&1",
             named_program("LRNN", "./lrnn"), words, in_folder("r"), in_folder("log"));
    pid_t pid = fork();
    if (pid != 0) return pid;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody at work */
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static char *log_text(void) {
    size_t size;
    return slurp(in_folder("log"), &size);
}

static void expect_log(const char *wanted, bool there) {
    char *text = log_text();
    ck_assert_msg((strstr(text, wanted) != NULL) == there, "%s '%s' in: %.3000s", there ? "no" : "there is", wanted,
                  text);
    free(text);
}

/* Ctrl-C, and an end within five seconds. */
static void expect_stop(pid_t pid) {
    int status;
    double before = time_now_s();
    kill(-pid, SIGINT);
    while (waitpid(pid, &status, WNOHANG) == 0 && time_now_s() - before < 5) sleep_ms(5);
    double took = time_now_s() - before;
    kill(-pid, SIGKILL);
    ck_assert_msg(took < 5, "it does not stop");
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 130, "wait status %d", status);
}

/* The first run of the sweep cannot begin, and its row wants examples for which nobody waits. The other runs are begun
 * and done meanwhile, and the sweep can be stopped. */
START_TEST(the_row_of_a_failure_holds_up_no_other_run) {
    static const char sweep[] =
        "sweep s3:n_train=2000,n_val=20,n_test=900000000,length=400 s3:n_train=100,n_val=20,n_test=20,length=6 "
        "s3:n_train=100,n_val=20,n_test=20,length=4 --profile smoke --models lru:state=4 --dim 8 --seeds 1 "
        "--steps 20 --batch 8 --jobs 2";
    char words[1024], file[64], id[33];
    snprintf(words, sizeof words, "%s --dry-run --out %s", sweep, in_folder("r"));
    expect_status(run(words), 0, words);
    snprintf(id, sizeof id, "%.32s", out); /* the longest is listed and begun first */
    ck_assert_int_eq((int)strspn(id, "0123456789abcdef"), 32);
    ck_assert_int_eq(mkdir(in_folder("r"), 0700), 0);
    ck_assert_int_eq(mkdir(in_folder("r/checkpoints"), 0700), 0);
    snprintf(file, sizeof file, "r/checkpoints/%s.ckpt", id);
    const char *path = in_folder(file);
    ck_assert_int_eq(symlink(path, path), 0); /* which nobody can open */
    pid_t pid = start(sweep);
    wait_for_files(in_folder("r"), ".json", 2);
    expect_stop(pid);
    ck_assert_int_eq(scratch_count(in_folder("r"), ".json"), 2);
    expect_log("stopped with 2 of 3 runs done; the same command goes on", true);
}
END_TEST

/* Further seeds are begun when --force has done its work, and still the same command would do all of it again. */
START_TEST(a_confirmation_that_is_stopped_says_what_the_command_does) {
    pid_t pid = start("bench s3:n_train=200,n_val=20,n_test=20,length=6 --profile smoke --models lru:state=4 --dim 8 "
                      "--seeds 1 --epochs 20 --confirm-seeds 60 --force --jobs 2");
    wait_for_files(in_folder("r"), ".json", 3);
    expect_stop(pid);
    expect_log("runs done; the same command trains all runs again; without --force", true);
}
END_TEST

START_TEST(a_run_that_diverged_is_not_done) {
    int status = wait_for(start("bench s3:n_train=200,n_val=20,n_test=20,length=64 --profile smoke --models "
                                "bdlru:m=2,blocks=4,gate=none --dim 16 --epochs 3 --lr 1e6 --seeds 1 --jobs 1"));
    ck_assert_int_eq(status, ST_FAIL); /* every one of the runs failed */
    expect_log(" lr 1e+06 seed 1 nan: step ", true);
    expect_log("validation nan", false);
    expect_log(" done in ", false);
}
END_TEST

Suite *check_runner(void);
Suite *check_runner(void) {
    Suite *suite = suite_create("runner");
    TCase *c = tcase_create("runner");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, the_end_of_a_run_reaches_a_parent_that_was_busy);
    tcase_add_test(c, the_row_of_a_failure_holds_up_no_other_run);
    tcase_add_test(c, a_confirmation_that_is_stopped_says_what_the_command_does);
    tcase_add_test(c, a_run_that_diverged_is_not_done);
    suite_add_tcase(suite, c);
    return suite;
}

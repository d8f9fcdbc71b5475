/* check_signals.c - a training that is told to stop: the first signal saves, another one ends it at once; and one whose
 * standard files are closed. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/store/clock.h"
#include "harness/store/record_files.h"
#include "kernels/lib/gemm.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define SMALL "train s3:n_train=400,n_val=40,n_test=40,length=6 lru:state=4 --dim 8 --batch 32"
#define TRAIN SMALL " --epochs 300"
/* On one thread a step of this takes many seconds, by kernels that nobody tunes. */
#define SLOW                                                                                                           \
    "train s3:n_train=8,n_val=1,n_test=1,length=512 lstm:hidden=256 --dim 256 --batch 8 --layers 4 --steps 50 "        \
    "--kernel reference"
#define REST "--threads 1 --checkpoint-every 0 --quiet"

/* Starts a training that writes no checkpoint by itself into FOLDER/r, its steps into FOLDER/steps.csv and what it says
 * into FOLDER/log. */
static pid_t start(const char *training) {
    char command[2048];
    snprintf(command, sizeof command, "exec %s %s " REST " --out %s/r --log-steps %s/steps.csv >>%s/log 2>&1",
             named_program("LRNN", "./lrnn"), training, program_folder, program_folder, program_folder);
    pid_t pid = fork();
    if (pid != 0) return pid;
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static char *file_text(const char *name) {
    char path[SCRATCH_BYTES + 32];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    return access(path, F_OK) == 0 ? slurp(path, &size) : strdup("");
}

/* Waits until so many lines of the log of steps are there, the header among them, which is written when the first step
 * is about to begin. */
static void wait_for_lines(int n) {
    int found = 0;
    for (long ms = 0; found < n && ms < patience_ms(); ms++) {
        char *text = file_text("steps.csv");
        found = 0;
        for (const char *c = text; *c; c++) found += *c == '\n';
        free(text);
        if (found < n) sleep_ms(1);
    }
    ck_assert_msg(found >= n, "%d lines of %d in the log of steps", found, n);
}

static void expect_exit(pid_t pid, int wanted) {
    int status = wait_for(pid);
    char *text = file_text("log");
    ck_assert_msg(status == wanted, "exit %d, expected %d: %.2000s", status, wanted, text);
    free(text);
}

/* Twice at once: timeout(1) signals its child and then the group that both are of. */
START_TEST(a_signal_saves_and_the_same_command_goes_on) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    pid_t pid = start(TRAIN);
    wait_for_lines(3);
    double before = time_now_s();
    kill(pid, signals[_i]);
    sleep_ms(2); /* two of a number that wait would be one */
    kill(pid, signals[_i]);
    expect_exit(pid, 128 + signals[_i]);
    ck_assert_msg(time_now_s() - before < 5, "it took %g s to stop", time_now_s() - before);
    ck_assert_int_eq(scratch_count(program_folder, ".ckpt"), 1);
    ck_assert_int_eq(scratch_count(program_folder, ".json"), 0);
    char look[1024]; /* another machine goes on with it: how far it is */
    snprintf(look, sizeof look,
             "r=%s/r; id=$(basename $r/checkpoints/*.ckpt .ckpt) && rm -r $r/claims && mkdir $r/claims && "
             "echo 'elsewhere 7 1 boot/space 2026-01-01T00:00:00Z s3 lstm' >$r/claims/$id.1 && "
             "mkdir $r/sweeps && printf \"$id\\t100\\ts3\\tlstm\\t0.1\\t1\\t10\\n\" >$r/sweeps/s-1.tsv && "
             "%s status $r >$r/said && grep 'T00:00:00Z, saved at step [1-9]' $r/said >/dev/null && "
             "grep 's-1: 0 of 1 runs.*; [1-9][0-9]* %% of' $r/said >/dev/null && rm -r $r/claims",
             program_folder, named_program("LRNN", "./lrnn"));
    ck_assert_int_eq(system(look), 0);
    snprintf(look, sizeof look, TRAIN " --threads 1 --out %s/r", program_folder);
    expect_status(run(look), 0, look);
    expect_text(err, "goes on from step ", look);
    struct record_set set;
    struct error e;
    char folder[SCRATCH_BYTES + 8];
    snprintf(folder, sizeof folder, "%s/r", program_folder);
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK && set.n == 1, "%s", e.text);
    ck_assert_int_eq(set.list[0].run.resumed, 1);
    records_free(&set);
    ck_assert_int_eq(scratch_count(program_folder, ".ckpt"), 0);
}
END_TEST

/* Whether what a command prints about the folder of records has a text. */
static bool says(const char *command, const char *text) {
    char line[1024];
    snprintf(line, sizeof line, "%s %s --out %s/r 2>&1 | grep -F '%s' >%s/found", named_program("LRNN", "./lrnn"),
             command, program_folder, text, program_folder);
    return system(line) == 0;
}

/* It leaves no row, but its claim; the same command goes on with it, and there is one run. */
START_TEST(a_training_that_is_killed_is_told_of_and_done_once) {
    static const char lost[] = "1 run began, but the process was killed; no number includes it. lrnn status names it.";
    pid_t pid = start(TRAIN);
    wait_for_lines(3);
    kill(pid, SIGKILL);
    ck_assert_int_ne(wait_for(pid), 0);
    expect_exit(start(SMALL " --epochs 1"), 0);
    ck_assert(says("status", "gone, its next start goes on with it"));
    ck_assert(says("report", lost));
    expect_exit(start(TRAIN), 0);
    ck_assert(!says("report", "no number includes"));
    ck_assert_int_eq(scratch_count(program_folder, ".json"), 2);
}
END_TEST

/* Other kernels of matrix products round otherwise: what began by them does not go on by these unless it is told to,
 * and then says so. */
START_TEST(other_products_do_not_go_on_unmarked) {
    static const char saved[] = "of other kernels of matrix products";
    char command[1024], *text;
    if (strncmp(gemm_library(), "oneDNN", 6) != 0 || strstr(gemm_library(), "SSE41")) return; /* has no others */
    setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
    pid_t pid = start(TRAIN);
    unsetenv("ONEDNN_MAX_CPU_ISA");
    wait_for_lines(3);
    kill(pid, SIGINT);
    expect_exit(pid, 130);
    expect_exit(start(TRAIN), ST_USAGE);
    text = file_text("log");
    ck_assert_msg(strstr(text, "multiplied by other kernels than here") != NULL, "%s", text);
    free(text);
    expect_exit(start(TRAIN " --force-resume"), 0);
    snprintf(command, sizeof command, "rerun $(basename %s/r/runs/*/*.json .json) --out %s/r", program_folder,
             program_folder);
    expect_status(run(command), ST_FAIL, command);
    expect_text(err, saved, command);
}
END_TEST

/* A second signal ends the run at once: no checkpoint is written, although the slow step has not ended. A signal within
 * a second of the first repeats it. */
START_TEST(another_signal_ends_it_at_once) {
    pid_t pid = start(SLOW);
    wait_for_lines(1);
    kill(pid, SIGINT);
    sleep_ms(50);
    kill(pid, SIGINT);
    sleep_ms(50);
    kill(pid, SIGTERM);
    sleep_ms(1000);
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGINT);
    expect_exit(pid, 130);
    ck_assert_int_eq(scratch_count(program_folder, ".ckpt"), 0);
}
END_TEST

/* Whose examples alone take longer to be made than anybody waits for an answer. */
#define LARGE                                                                                                          \
    "train pathfinder:size=32,n_train=10,n_val=10,n_test=60000 lru:state=4 --dim 8 --batch 8 --layers 1 --steps 20"

START_TEST(the_making_of_examples_is_ended_too) {
    char folder[SCRATCH_BYTES + 8];
    snprintf(folder, sizeof folder, "%s/r/runs", program_folder);
    pid_t pid = start(LARGE);
    for (long ms = 0; access(folder, F_OK) != 0 && ms < patience_ms(); ms++) sleep_ms(1);
    sleep_ms(300);
    double before = time_now_s();
    kill(pid, SIGINT);
    expect_exit(pid, 130);
    ck_assert_msg(time_now_s() - before < 5, "it took %g s to stop", time_now_s() - before);
    ck_assert_int_eq(scratch_count(program_folder, ".json"), 0);
}
END_TEST

/* A program under nohup ignores that the terminal goes away. */
START_TEST(a_hangup_that_is_ignored_stays_ignored) {
    ck_assert(signal(SIGHUP, SIG_IGN) != SIG_ERR);
    pid_t pid = start(TRAIN);
    wait_for_lines(3);
    kill(pid, SIGHUP);
    wait_for_lines(20);
    kill(pid, SIGTERM);
    expect_exit(pid, 143);
}
END_TEST

/* With standard error closed, the file that gets its number receives no messages. */
START_TEST(closed_standard_files_are_taken_by_no_other) {
    char command[2048], *text;
    snprintf(command, sizeof command, "%s %s --steps 20 --out %s/r --log-steps %s/steps.csv 2>&- <&- >%s/log",
             named_program("LRNN", "./lrnn"), SMALL, program_folder, program_folder, program_folder);
    ck_assert_int_eq(system(command), 0);
    text = file_text("steps.csv");
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        double value[4];
        int n = 0, found = sscanf(line, "%lf,%lf,%lf,%lf%n", &value[0], &value[1], &value[2], &value[3], &n);
        ck_assert_msg(lines == 0 || (found == 4 && line[n] == 0), "line %d: %s", lines + 1, line);
    }
    ck_assert_int_eq(lines, 21);
    free(text);
    snprintf(command, sizeof command, "%s list >&- 2>%s/log", named_program("LRNN", "./lrnn"), program_folder);
    ck_assert_int_eq(WEXITSTATUS(system(command)), 1);
    text = file_text("log");
    ck_assert_msg(strstr(text, "cannot write to standard output") != NULL, "%s", text);
    free(text);
}
END_TEST

Suite *check_signals(void);
Suite *check_signals(void) {
    Suite *suite = suite_create("signals");
    TCase *c = tcase_create("signals");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_loop_test(c, a_signal_saves_and_the_same_command_goes_on, 0, 3);
    tcase_add_test(c, a_training_that_is_killed_is_told_of_and_done_once);
    tcase_add_test(c, other_products_do_not_go_on_unmarked);
    tcase_add_test(c, another_signal_ends_it_at_once);
    tcase_add_test(c, the_making_of_examples_is_ended_too);
    tcase_add_test(c, a_hangup_that_is_ignored_stays_ignored);
    tcase_add_test(c, closed_standard_files_are_taken_by_no_other);
    suite_add_tcase(suite, c);
    return suite;
}

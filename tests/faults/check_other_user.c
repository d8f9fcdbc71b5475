/* check_other_user.c - a folder that becomes read-only and a limit of processes, which hold for every user but root.
 * Started by root, the program runs as the user 65534 (nobody). */
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/store/record_files.h"
#include "tests/faults/spawn.h"
#include "tests/lib/not_run.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define NOBODY 65534
#define LONG                                                                                                           \
    "train s3:n_train=2000,n_val=20,n_test=20,length=6 lstm --dim 8 --layers 1 --mlp none --batch 8 --steps 4000 "     \
    "--eval-every 1000 --threads %d --quiet --out %s/%s"
#define SAVING " --checkpoint-every 0.001s"

/* Becomes another user if this one is root, who may write everywhere and start any number of processes. */
static bool leave_root(void) {
    if (geteuid() != 0) return true;
    return setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 && geteuid() == NOBODY;
}

/* Starts the program as another user, with at most so many processes (0: any number). The program is a copy in the
 * folder, since that user may not reach the original. The output is in FOLDER/out and FOLDER/err. */
static pid_t start_as_other(const char *arguments, rlim_t processes) {
    char command[2048];
    snprintf(command, sizeof command, "cd %s && exec ./lrnn %s >out 2>err", program_folder, arguments);
    pid_t pid = fork();
    if (pid) return pid;
    const struct rlimit limit = {processes, processes};
    if (!leave_root() || (processes && setrlimit(RLIMIT_NPROC, &limit) != 0)) _exit(126);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the search for leaks starts a process */
    execl("/bin/sh", "sh", "-c", command, NULL);
    _exit(127);
}

/* Copies the program and makes the folder writable for the other user. False: this process cannot start programs as
 * another user, which is printed. */
static bool prepare(const char *test) {
    char command[4096];
    snprintf(command, sizeof command, "cp -L %s %s/lrnn && chmod 755 %s/lrnn && chmod 777 %s",
             named_program("LRNN", "./lrnn"), program_folder, program_folder, program_folder);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c) */
    pid_t pid = fork();
    if (pid == 0) _exit(!leave_root());
    if (wait_for(pid) == 0) return true;
    not_run("other_user", test, "this root may not become another user");
    return false;
}

static char *said_there(const char *stream) {
    char path[SCRATCH_BYTES + 8];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", program_folder, stream);
    return slurp(path, &size);
}

/* Hash of the weights of the only record in FOLDER/NAME. */
static void weights_of(const char *name, char hash[RUN_ID_HEX]) {
    struct record_set set;
    struct error e = {0};
    char store[SCRATCH_BYTES + 16];
    snprintf(store, sizeof store, "%s/%s", program_folder, name);
    ck_assert_msg(records_load(&set, store, &e) == ST_OK && set.n == 1, "%d records. %s", set.n, e.text);
    memcpy(hash, set.list[0].run.ckpt_xxh3, RUN_ID_HEX);
    records_free(&set);
}

static void forbid(const char *place, mode_t mode) {
    char path[SCRATCH_BYTES + 32];
    snprintf(path, sizeof path, "%s/cut/%s", program_folder, place);
    ck_assert_int_eq(chmod(path, mode), 0);
}

/* The sentence names the file; the run goes on from its checkpoint once the folder can be written again. */
START_TEST(a_folder_that_becomes_read_only_loses_no_step) {
    char arguments[1024], store[SCRATCH_BYTES + 8], whole[RUN_ID_HEX], again[RUN_ID_HEX];
    if (!prepare("a_folder_that_becomes_read_only_loses_no_step")) return;
    snprintf(arguments, sizeof arguments, LONG, 1, program_folder, "whole");
    ck_assert_int_eq(wait_for(start_as_other(arguments, 0)), 0);
    weights_of("whole", whole);
    snprintf(arguments, sizeof arguments, LONG SAVING, 1, program_folder, "cut");
    snprintf(store, sizeof store, "%s/cut", program_folder);
    pid_t pid = start_as_other(arguments, 0);
    wait_for_files(store, ".ckpt", 1);
    kill(pid, SIGSTOP);
    forbid("checkpoints", 0555);
    kill(pid, SIGCONT);
    int status = wait_for(pid);
    char *text = said_there("err");
    ck_assert_msg(status == ST_FAIL, "status %d: %s", status, text);
    ck_assert_msg(strstr(text, "cannot ") && strstr(text, ".ckpt: Permission denied"), "%s", text);
    free(text);
    ck_assert_int_eq(scratch_count(store, ".ckpt"), 1);
    forbid("checkpoints", 0755);
    snprintf(arguments, sizeof arguments, LONG, 1, program_folder, "cut");
    ck_assert_int_eq(wait_for(start_as_other(arguments, 0)), 0);
    weights_of("cut", again);
    ck_assert_str_eq(again, whole);
}
END_TEST

/* Threads count as processes. The first command lacks a thread, the second a process. */
START_TEST(a_limit_of_processes_is_said) {
    char arguments[1024], store[SCRATCH_BYTES + 8];
    if (!prepare("a_limit_of_processes_is_said")) return;
    snprintf(store, sizeof store, "%s/cut", program_folder);
    static const char *const commands[] = {LONG, "bench s3:n_train=200,n_val=20,n_test=20,length=5 --profile smoke "
                                                 "--models lstm --seeds 2 --jobs 2 --threads %d "
                                                 "--no-plots --no-speed --out %s/%s"};
    static const char *const sentences[] = {
        "lrnn: cannot start 2 threads: Resource temporarily unavailable; end other processes, raise the limit of",
        "lrnn: cannot start a process for a run: Resource temporarily unavailable"};
    for (int i = 0; i < 2; i++) {
        snprintf(arguments, sizeof arguments, commands[i], 2 - i, program_folder,
                 "cut"); /* NOLINT: of the list above */
        int status = wait_for(start_as_other(arguments, 1));
        char *text = said_there("err");
        ck_assert_msg(status == ST_FAIL, "lrnn %s: status %d: %s", arguments, status, text);
        ck_assert_msg(strstr(text, sentences[i]), "lrnn %s: %s", arguments, text);
        free(text);
        ck_assert_int_eq(scratch_count(store, ".json"), 0);
        ck_assert_int_eq(wait_for(start_as_other(arguments, 0)), 0);
        scratch_remove(store);
    }
}
END_TEST

Suite *check_other_user(void);
Suite *check_other_user(void) {
    Suite *suite = suite_create("other_user");
    TCase *c = tcase_create("other_user");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, a_folder_that_becomes_read_only_loses_no_step);
    tcase_add_test(c, a_limit_of_processes_is_said);
    suite_add_tcase(suite, c);
    return suite;
}

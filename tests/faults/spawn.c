/* spawn.c - see spawn.h. */
#include "tests/faults/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/store/record_files.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define MOST_WORDS 48
#define LONGEST    600 /* seconds */

void bad(struct tally *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (t->bad++ == 0) vsnprintf(t->first, sizeof t->first, format, args);
    va_end(args);
}

const char *program(void) {
    return named_program("LRNN", "./lrnn");
}

pid_t start(const char *folder, const char *name, const char *const *variables, const char *arguments) {
    char copy[4096], out_path[256], err_path[256], *words[MOST_WORDS + 2] = {0}, *rest = NULL;
    int n = 1;
    snprintf(copy, sizeof copy, "%s", arguments);
    snprintf(out_path, sizeof out_path, "%s/%s.out", folder, name);
    snprintf(err_path, sizeof err_path, "%s/%s.err", folder, name);
    words[0] = (char *)program();
    for (char *w = strtok_r(copy, " ", &rest); w && n < MOST_WORDS; w = strtok_r(NULL, " ", &rest)) words[n++] = w;
    sigset_t all, before;
    sigfillset(&all);
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid) sigprocmask(SIG_SETMASK, &before, NULL);
    ck_assert_int_ge(pid, 0);
    if (pid) return pid;
    setpgid(0, 0);
    alarm(LONGEST);          /* a command that hangs ends by a signal */
    signal(SIGINT, SIG_DFL); /* libcheck's handler would kill the test */
    signal(SIGTERM, SIG_DFL);
    int out_fd = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0644),
        err_fd = open(err_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(out_fd, STDOUT_FILENO);
    dup2(err_fd, STDERR_FILENO);
    for (int i = 0; variables && variables[i]; i++) putenv((char *)variables[i]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execv(words[0], words);
    _exit(127);
}

int run_words(const char *folder, const char *const *variables, const char *arguments) {
    return wait_for(start(folder, "last", variables, arguments));
}

char *said(const char *folder, const char *stream) {
    char path[256];
    size_t size;
    snprintf(path, sizeof path, "%s/last.%s", folder, stream);
    return slurp(path, &size);
}

const char *preload(char text[4096]) {
    char *path = realpath(named_program("LRNN_FAULTS", "build/faults.so"), NULL);
    ck_assert_ptr_nonnull(path);
    snprintf(text, 4096, "LD_PRELOAD=%s", path);
    free(path);
    return text;
}

int64_t whole_records(const char *store, struct error *e) {
    struct record_set set;
    if (records_load(&set, store, e) != ST_OK) return -1;
    int64_t n = set.n;
    records_free(&set);
    return n;
}

long spread_step(long n) {
    long step = (long)(0.618 * (double)n) + 1;
    for (long a = step, b = n, rest; n > 1; step++, a = step, b = n) {
        while ((rest = a % b)) a = b, b = rest;
        if (b == 1) break;
    }
    return step;
}

void compare_stores(const char *store, const char *alone, int runs, struct tally *t) {
    struct record_set a, b;
    struct error e = {0};
    if (records_load(&a, store, &e) != ST_OK) {
        bad(t, "%.300s", e.text);
        return;
    }
    ck_assert_msg(records_load(&b, alone, &e) == ST_OK && b.n == runs, "%s", e.text);
    if (a.n != runs) bad(t, "%d records of %d runs", a.n, runs);
    for (int i = 0; i < b.n; i++) {
        int k = 0;
        while (k < a.n && strcmp(a.list[k].run.run_id, b.list[i].run.run_id) != 0) k++;
        if (k == a.n || a.list[k].run.test_loss != b.list[i].run.test_loss)
            bad(t, "run %s is %s", b.list[i].run.run_id, k == a.n ? "lost" : "another");
    }
    records_free(&a);
    records_free(&b);
}

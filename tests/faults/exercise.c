/* exercise.c - see exercise.h. */
#include "tests/faults/exercise.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/cli/cli.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/faults/power.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define MOST_WORDS 48
#define LONGEST    600 /* seconds */
#define TRAIN                                                                                                          \
    "train s3:length=4,n_train=64,n_val=16,n_test=16 bdlru:m=2,blocks=4 --dim 8 --layers 1 --mlp none --batch 8 "      \
    "--steps 6 --threads 1 --keep-weights all --checkpoint-every 0 --quiet --out %s --seed %ld"

__attribute__((format(printf, 2, 3))) static void bad(struct tally *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (t->bad++ == 0) vsnprintf(t->first, sizeof t->first, format, args);
    va_end(args);
}

static const char *program(void) {
    return named_program("LRNN", "./lrnn");
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

/* Starts the program with these words, no shell between, its output in FOLDER/NAME.out and .err, in a group of its own;
 * `variables` are "NAME=VALUE" for it, NULL-terminated. */
static pid_t start(const char *folder, const char *name, const char *const *variables, const char *arguments) {
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

static int run_words(const char *folder, const char *const *variables, const char *arguments) {
    return wait_for(start(folder, "last", variables, arguments));
}

static char *said(const char *folder, const char *stream) {
    char path[256];
    size_t size;
    snprintf(path, sizeof path, "%s/last.%s", folder, stream);
    return slurp(path, &size);
}

static const char *preload(char text[4096]) {
    char *path = realpath(named_program("LRNN_FAULTS", "build/faults.so"), NULL);
    ck_assert_ptr_nonnull(path);
    snprintf(text, 4096, "LD_PRELOAD=%s", path);
    free(path);
    return text;
}

/* --- calls that fail ---------------------------------------------------------------------------------------------- */

const char *const fault_kinds[] = {"malloc", "mmap", "open", "write", "fsync", "link", "rename", "mkdir", NULL};

/* %s is the folder of the store, %ld the number of the case. */
static const char *const commands[] = {
    TRAIN, /* NOLINT(bugprone-suspicious-missing-comma): one string, in several lines */
    "report --out %s/before --format csv",
    "verify tests/cases/00-bdlru-blocks3-m4.safetensors",
    "bench s3 --profile smoke --dry-run",
    "import %s/exported",
};
#define N_COMMANDS (int)(sizeof commands / sizeof *commands)

int fault_commands(void) {
    return N_COMMANDS;
}

/* A folder with a store in which a run is done, the same one in `before`. */
struct ground {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 32];
    char *wanted; /* what the command says without a fault */
    int64_t records;
};

static void words_of(const struct ground *g, int command, long number, char arguments[1024]) {
    snprintf(arguments, 1024, commands[command], g->store, number); /* NOLINT: of the table above */
}

/* The weights of the first run as another program would read them. */
static const char *export_words(const struct ground *g, char arguments[1024]) {
    struct record_set set;
    struct error e = {0};
    ck_assert_msg(records_load(&set, g->store, &e) == ST_OK && set.n > 0, "%s", e.text);
    snprintf(arguments, 1024, "export %s %s/exported --out %s", set.list[0].run.run_id, g->store, g->store);
    records_free(&set);
    return arguments;
}

static void ground_make(struct ground *g, int command) {
    char arguments[1024];
    scratch_make(g->folder);
    snprintf(g->store, sizeof g->store, "%s/store/before", g->folder);
    snprintf(arguments, sizeof arguments, TRAIN, g->store, 1L);
    ck_assert_int_eq(run_words(g->folder, NULL, arguments), 0);
    snprintf(g->store, sizeof g->store, "%s/store", g->folder);
    snprintf(arguments, sizeof arguments, TRAIN, g->store, 1L);
    ck_assert_int_eq(run_words(g->folder, NULL, arguments), 0);
    ck_assert_int_eq(run_words(g->folder, NULL, export_words(g, arguments)), 0);
    words_of(g, command, 2, arguments);
    ck_assert_int_eq(run_words(g->folder, NULL, arguments), 0);
    g->wanted = said(g->folder, "out");
}

static void ground_leave(struct ground *g) {
    free(g->wanted);
    scratch_remove(g->folder);
}

/* How many records there are, all whole; -1 and why. */
static int64_t whole_records(const char *store, struct error *e) {
    struct record_set set;
    if (records_load(&set, store, e) != ST_OK) return -1;
    int64_t n = set.n;
    records_free(&set);
    return n;
}

static void judge_fault(struct ground *g, int command, long number, const char *what, int status, bool killed,
                        struct tally *t) {
    char arguments[1024];
    struct error e = {0};
    char *out_text = said(g->folder, "out"), *err_text = said(g->folder, "err");
    if (status >= 128 && !(killed && status == 128 + SIGKILL))
        bad(t, "%s: ended by signal %d: %.300s", what, status - 128, err_text);
    else if (status == 0 && command != 0 && strcmp(out_text, g->wanted) != 0)
        bad(t, "%s: says that all is well, but wrote\n%.300s", what, out_text);
    else if (status != 0 && status < 128 && !strstr(err_text, "lrnn: "))
        bad(t, "%s: exit %d without a sentence", what, status);
    t->failed += status != 0;
    free(out_text);
    free(err_text);
    int64_t n = whole_records(g->store, &e);
    if (n < g->records + (status == 0 && command == 0))
        bad(t, "%s, exit %d: %ld records, %ld before: %.300s", what, status, (long)n, (long)g->records, e.text);
    words_of(g, command, number, arguments);
    int again = run_words(g->folder, NULL, arguments);
    if (again != 0) bad(t, "%s: the same command without a fault ends with %d", what, again);
    g->records = whole_records(g->store, &e);
}

static long count_calls(const struct ground *g, int command, const char *kind) {
    char arguments[1024], library[4096], count[320], path[256], name[32];
    long calls = 0, n;
    snprintf(path, sizeof path, "%s/counts", g->folder);
    snprintf(count, sizeof count, "LRNN_FAIL_COUNT=%s", path);
    const char *variables[] = {preload(library), count, NULL};
    words_of(g, command, 1000000, arguments);
    ck_assert_int_eq(run_words(g->folder, variables, arguments), 0);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fscanf(f, "%31s %ld", name, &n) == 2)
        if (!strcmp(name, kind)) calls = n;
    fclose(f);
    return calls;
}

/* A step that shares no divisor with n and is near the golden section of it: its multiples spread evenly. */
static long spread(long n) {
    long step = (long)(0.618 * (double)n) + 1;
    for (long a = step, b = n, rest; n > 1; step++, a = step, b = n) {
        while ((rest = a % b)) a = b, b = rest;
        if (b == 1) break;
    }
    return step;
}

void fault_exercise(int command, const char *kind, enum fault fault, long most, double seconds, struct tally *t) {
    static const char *const marks[] = {"", "+", "!"};
    struct ground g;
    struct error e = {0};
    char arguments[1024], library[4096], wish[64], what[1200];
    const char *variables[] = {preload(library), wish, NULL};
    double begin = time_now_s();
    ground_make(&g, command);
    long calls = count_calls(&g, command, kind), step = spread(calls);
    g.records = whole_records(g.store, &e);
    t->all += calls;
    for (long i = 0; i < calls && i < most && (seconds <= 0 || i == 0 || time_now_s() - begin < seconds); i++) {
        snprintf(wish, sizeof wish, "LRNN_FAIL=%s:%ld%s", kind, 1 + i * step % calls, marks[fault]);
        words_of(&g, command, 3 + i, arguments);
        snprintf(what, sizeof what, "%s lrnn %s", wish, arguments);
        t->tried++;
        judge_fault(&g, command, 3 + i, what, run_words(g.folder, variables, arguments), fault == FAULT_KILL, t);
    }
    ground_leave(&g);
}

/* --- power -------------------------------------------------------------------------------------------------------- */

void power_exercise(int choices, int forgetful, struct tally *t) {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], log[SCRATCH_BYTES + 16], library[4096], wish[128];
    char arguments[1024];
    struct power_log power = {0};
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/store", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    snprintf(wish, sizeof wish, "LRNN_FILE_LOG=%s", log);
    const char *variables[] = {preload(library), wish, NULL};
    for (long seed = 1; seed <= 3; seed++) {
        snprintf(arguments, sizeof arguments, TRAIN, store, seed);
        ck_assert_int_eq(run_words(folder, variables, arguments), 0);
        power_promise(&power, log);
    }
    power_read(&power, log, forgetful);
    power_replay(&power, store, choices, &t->tried, &t->bad, t->first, sizeof t->first);
    power_free(&power);
    scratch_remove(folder);
}

/* --- kills -------------------------------------------------------------------------------------------------------- */

#define BENCH                                                                                                          \
    "bench s3:n_train=200,n_val=20,n_test=20,length=5 --profile smoke --models bdlru:m=2,blocks=4 --seeds %d --jobs "  \
    "2 --epochs 2 --checkpoint-every 0.02s --no-plots --no-speed --threads 1 --out %s/store"

void kill_exercise(int kills, int runs, uint64_t seed, double seconds, struct tally *t) {
    char folder[SCRATCH_BYTES] = "", store[SCRATCH_BYTES + 16], arguments[1024];
    struct rng r = rng_at(seed, STREAM_TEST, 0);
    struct error e = {0};
    int64_t done = runs, now;
    double begin = time_now_s();
    for (int k = 0; k < kills && (seconds <= 0 || time_now_s() - begin < seconds); k++) {
        if (done >= runs) {
            if (*folder) scratch_remove(folder);
            scratch_make(folder);
            snprintf(store, sizeof store, "%s/store", folder);
            snprintf(arguments, sizeof arguments, BENCH, runs, folder);
            done = 0;
        }
        pid_t pid = start(folder, "last", NULL, arguments);
        if (k % 2) wait_for_files(store, ".json", (int)done + 1);
        usleep((useconds_t)(k % 2 ? rng_below(&r, 20000) : 20000 + rng_below(&r, 400000)));
        kill(-pid, SIGKILL); /* parent and workers at once */
        wait_for(pid);
        t->tried++;
        now = access(store, F_OK) == 0 ? whole_records(store, &e) : 0;
        if (now < done) bad(t, "kill %d: %ld records, %ld before: %.300s", k, (long)now, (long)done, e.text);
        if (scratch_count(folder, ".corrupt")) bad(t, "kill %d: a record is damaged", k);
        t->failed += now > 0 && now < runs;
        done = now;
    }
    if (*folder) {
        if (run_words(folder, NULL, arguments) != 0) bad(t, "the bench does not come to its end after the kills");
        now = whole_records(store, &e);
        if (now != runs) bad(t, "%ld of %d runs in the end: %.300s", (long)now, runs, e.text);
        scratch_remove(folder);
    }
}

/* --- flips -------------------------------------------------------------------------------------------------------- */

void flip_exercise(int flips, uint64_t seed, struct tally *t) {
    char folder[SCRATCH_BYTES], arguments[1024], path[PATH_BYTES];
    struct record_set set;
    struct error e = {0};
    size_t size;
    scratch_make(folder);
    snprintf(arguments, sizeof arguments, TRAIN, folder, 1L);
    ck_assert_int_eq(run_words(folder, NULL, arguments), 0);
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    record_path(folder, set.list[0].run.run_id, path, sizeof path);
    records_free(&set);
    char *bytes = slurp(path, &size);
    for (int i = 0; i < flips; i++) {
        struct rng r = rng_at(seed, STREAM_TEST, (uint64_t)i);
        size_t at = rng_below(&r, 8 * size);
        bytes[at / 8] ^= (char)(1 << at % 8);
        spill(path, bytes, size);
        bytes[at / 8] ^= (char)(1 << at % 8);
        t->tried++;
        if (records_load(&set, folder, &e) == ST_OK) {
            bad(t, "bit %zu of %s is another, which nobody noticed", at, path);
            records_free(&set);
        } else
            t->failed++;
    }
    free(bytes);
    scratch_remove(folder);
}

/* --- writers ------------------------------------------------------------------------------------------------------ */

void writers_exercise(int writers, int runs, struct tally *t) {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], arguments[1024], name[32];
    struct record_set set;
    struct error e = {0};
    pid_t pids[64];
    ck_assert_int_le(writers, 64);
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/store", folder);
    for (int run = 1; run <= runs; run++) {
        snprintf(arguments, sizeof arguments, TRAIN, store, (long)run);
        for (int w = 0; w < writers; w++) {
            snprintf(name, sizeof name, "writer-%d", w);
            pids[w] = start(folder, name, NULL, arguments);
        }
        for (int w = 0; w < writers; w++) {
            int status = wait_for(pids[w]);
            t->tried++;
            if (status != 0) bad(t, "writer %d of run %d ends with %d", w, run, status);
        }
    }
    if (records_load(&set, store, &e) != ST_OK) {
        bad(t, "%.300s", e.text);
        return;
    }
    if (set.n != runs) bad(t, "%d records of %d runs", set.n, runs);
    for (int i = 0; i < set.n; i++) {
        snprintf(arguments, sizeof arguments, "export %s %s/exported --out %s", set.list[i].run.run_id, folder, store);
        if (run_words(folder, NULL, arguments) != 0) bad(t, "lrnn %s fails", arguments);
    }
    if (scratch_count(store, "") != 3 * runs) bad(t, "%d files of %d runs", scratch_count(store, ""), runs);
    records_free(&set);
    scratch_remove(folder);
}

/* --- pauses ------------------------------------------------------------------------------------------------------- */

/* Makes the claims of that machine older than any that is still believed. */
static void age_claims(const char *store, const char *host) {
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char folder[PATH_BYTES], path[PATH_BYTES];
    struct folder_names names;
    snprintf(folder, sizeof folder, "%s/claims", store);
    if (access(folder, F_OK) != 0 || folder_names(&names, folder, NULL) != ST_OK) return;
    for (int i = 0; i < names.n; i++) {
        char *text;
        size_t size;
        if (path_format(path, sizeof path, NULL, "%s/%s", folder, names.list[i]->d_name) != ST_OK ||
            file_read(path, 4096, &text, &size, NULL) != ST_OK)
            continue;
        if (strncmp(text, host, strlen(host)) == 0) utimensat(AT_FDCWD, path, long_ago, 0);
        free(text);
    }
    folder_names_free(&names);
}

/* Every run of one store is in the other with the same result, and there is no further one. */
static void compare_stores(const char *store, const char *alone, int runs, struct tally *t) {
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

void pause_exercise(int writers, int runs, int pauses, uint64_t seed, struct tally *t) {
    char folder[SCRATCH_BYTES], alone[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], arguments[1024], name[32];
    char library[4096], host[64];
    const char *variables[] = {preload(library), host, NULL};
    struct rng r = rng_at(seed, STREAM_TEST, 0);
    pid_t pids[64];
    int left = writers;
    ck_assert_int_le(writers, 64);
    scratch_make(alone);
    scratch_make(folder);
    snprintf(arguments, sizeof arguments, BENCH, runs, alone);
    ck_assert_int_eq(run_words(alone, NULL, arguments), 0);
    snprintf(store, sizeof store, "%s/store", folder);
    snprintf(arguments, sizeof arguments, BENCH, runs, folder);
    for (int w = 0; w < writers; w++) {
        snprintf(host, sizeof host, "LRNN_HOST=machine%d", w);
        snprintf(name, sizeof name, "writer-%d", w);
        pids[w] = start(folder, name, variables, arguments);
    }
    for (int k = 0; left > 0; k++) {
        int w = (int)rng_below(&r, (uint64_t)writers), status;
        usleep((useconds_t)(5000 + rng_below(&r, 20000)));
        if (pids[w] && k < pauses) {
            snprintf(host, sizeof host, "machine%d ", w);
            kill(-pids[w], SIGSTOP);
            t->tried++;
            age_claims(store, host);
            usleep((useconds_t)rng_below(&r, 200000));
            kill(-pids[w], SIGCONT);
        }
        for (w = 0; w < writers; w++) {
            if (!pids[w] || waitpid(pids[w], &status, WNOHANG) != pids[w]) continue;
            if (status != 0) bad(t, "writer %d ends with status %d", w, status);
            pids[w] = 0;
            left--;
        }
    }
    char alone_store[SCRATCH_BYTES + 16];
    snprintf(alone_store, sizeof alone_store, "%s/store", alone);
    compare_stores(store, alone_store, runs, t);
    if (scratch_count(folder, ".corrupt")) bad(t, "a record is damaged");
    scratch_remove(folder);
    scratch_remove(alone);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static const char *const odd_values[] = {"null",
                                         "-1",
                                         "0",
                                         "1e308",
                                         "-1e308",
                                         "1e-320",
                                         "\"inf\"",
                                         "\"-inf\"",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "\"\"",
                                         "\"\\u001b[31m<b>&\\\"=cmd|x\\u202e\"",
                                         "[]",
                                         "true"};
enum { ODD_VALUES = sizeof odd_values / sizeof *odd_values };

/* %s: the folder. */
static const char *const readers[] = {"report --out %s",
                                      "report --out %s --format csv",
                                      "report --out %s --what each --format html",
                                      "report --out %s --what lengths --format latex",
                                      "status --out %s",
                                      "store check %s",
                                      "report --out %1$s --html %1$s/site"};
enum { READERS = sizeof readers / sizeof *readers };

/* Writes the record with the field's line changed and a checksum that holds. */
static void write_odd(const char *path, const char *record, const char *field, const char *value) {
    char key[80], sum[RUN_ID_HEX], *text;
    size_t size;
    snprintf(key, sizeof key, "\n \"%s\": ", field);
    const char *body = strchr(record, '\n') + 1, *line = strstr(record, key);
    ck_assert_msg(line != NULL, "no field %s", field);
    const char *from = line + strlen(key), *to = from + strcspn(from, "\n");
    FILE *f = open_memstream(&text, &size);
    fprintf(f, "%.*s%s%s%s", (int)(from - body), body, value, to[-1] == ',' ? "," : "", to);
    fclose(f);
    record_hash(text, sum);
    f = fopen(path, "w");
    fprintf(f, "{\"checksum\": \"%s\",\n%s", sum, text);
    fclose(f);
    free(text);
}

void value_exercise(int cases, double seconds, struct tally *t) {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], arguments[1024], path[PATH_BYTES];
    struct record_set set;
    struct error e = {0};
    size_t size;
    double begin = time_now_s();
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/store", folder);
    for (long seed = 1; seed <= 2; seed++) {
        snprintf(arguments, sizeof arguments, TRAIN, store, seed);
        ck_assert_int_eq(run_words(folder, NULL, arguments), 0);
    }
    ck_assert_msg(records_load(&set, store, &e) == ST_OK, "%s", e.text);
    record_path(store, set.list[0].run.run_id, path, sizeof path);
    records_free(&set);
    char *record = slurp(path, &size);
    long fields = 0;
    while (runs_table.fields[fields].name) fields++;
    long all = fields * ODD_VALUES * READERS, step = spread(all);
    t->all = all;
    for (long i = 0; i < all && i < cases && (seconds <= 0 || time_now_s() - begin < seconds); i++) {
        long n = i * step % all;
        const char *field = runs_table.fields[n % fields].name, *value = odd_values[n / fields % ODD_VALUES];
        write_odd(path, record, field, value);
        snprintf(arguments, sizeof arguments, readers[n / fields / ODD_VALUES], store); /* NOLINT: of the table above */
        int status = run_words(folder, NULL, arguments);
        char *out_text = said(folder, "out"), *err_text = said(folder, "err");
        t->tried++;
        t->failed += status != 0;
        if (status > 5) bad(t, "%s=%s, lrnn %s: status %d: %.300s", field, value, arguments, status, err_text);
        if (strchr(out_text, 27) || strchr(err_text, 27)) bad(t, "%s=%s, lrnn %s: ESC", field, value, arguments);
        free(out_text);
        free(err_text);
    }
    free(record);
    scratch_remove(folder);
}

/* --- surroundings ------------------------------------------------------------------------------------------------- */

#define SHORT "s3:length=3,n_train=40,n_val=8,n_test=8 lstm --dim 8 --steps 2 --quiet"

/* Shell lines in a folder of their own; $L is the program, $T a short training. */
static const char *const surroundings[] = {
    "env -u HOME $L $T --out a",
    "env -u TERM COLUMNS=0 $L report --out a",
    "COLUMNS=1 $L report --out a",
    "COLUMNS=99999999999 $L report --out a",
    "COLUMNS=-5 $L report --out a",
    "TMPDIR=/nonexistent $L $T --out b",
    "LC_ALL=none.UTF-8 $L $T --out c",
    "PATH= $L report --out a",
    "PATH= $L plot --out a --to p.svg; [ $? -le 5 ]",
    "$L $T --out 'a b'; $L report --out 'a b'; $L report --out 'a b' --html 'h b'",
    "$L $T --out \"q'q\"; $L report --out \"q'q\" --html \"h'h\"",
    "$L $T --out 'q\"q'; $L plot --out 'q\"q' --to 'q\"q/p.svg'",
    "$L $T --out \"$(printf 'n\\nl')\"; $L report --out \"$(printf 'n\\nl')\"",
    "$L $T --out '$(touch INJECTED)'; $L plot --out '$(touch INJECTED)' --to '`touch INJECTED`.svg'",
    "$L $T --out ./-x; $L report --out ./-x",
    "$L $T --out '%s%n'; $L plot --out '%s%n' --to '%s%n/p.svg'",
    "$L $T --out '<b>'; $L report --out '<b>' --html h; ! grep -q '<b>' h/*.html",
    "$L $T --out $(printf '%255s' | tr ' ' x); [ $? -le 5 ]",
    "! $L $T --out $(printf '%256s' | tr ' ' x)",
    "! $L $T --out $(printf '%9000s' | sed 's: :x/:g')",
    "touch file; ! $L $T --out file; ! $L $T --out file/x",
    "ln -s nowhere dangling; ! $L $T --out dangling",
    "ln -s loop loop; ! $L $T --out loop",
    "mkdir -p f/runs/ab; mkfifo f/runs/ab/abababababababababababababababab.json; ! $L report --out f; ! $L status "
    "--out f",
    "$L report --out a >&-; [ $? -le 5 ]",
    "$L report --out a 2>&-",
    "$L report --out a <&- >&- 2>&-; [ $? -le 5 ]",
    "! $L report --out a >/dev/full",
    "$L report --out a 2>/dev/full",
    "$L info lstm | true",
    "! $L info lstm >/dev/full",
    "$L $T --out d 2>/dev/full",
    "$L $T --out e >&-; [ $? -le 5 ]",
    "(ulimit -n 5; $L $T --out g); [ $? -le 6 ]",
    "(ulimit -n 8; $L $T --out g); [ $? -le 6 ]",
    "(ulimit -n 12; $L $T --out g); [ $? -le 6 ]",
    "(ulimit -f 0; $L $T --out i); [ $? -le 6 ]",
    "(ulimit -f 1; $L $T --out i); [ $? -le 6 ]",
    "(ulimit -f 16; $L $T --out i); [ $? -le 6 ]",
    "$L $T --out i; $L store check i",
    "mkdir -p i/sweeps; head -c 100 $L >i/sweeps/s3-00000000.tsv; ! $L store check i",
    "! PATH= $L bench s3 --models lstm --dim 8 --steps 2 --out j; ! [ -d j/runs ]",
};
enum { SURROUNDINGS = sizeof surroundings / sizeof *surroundings };

void surroundings_exercise(struct tally *t) {
    char folder[SCRATCH_BYTES], path[512];
    char *where = realpath(program(), NULL);
    ck_assert_ptr_nonnull(where);
    scratch_make(folder);
    for (int i = 0; i < SURROUNDINGS; i++) {
        char *command, *said_text;
        size_t size;
        FILE *f = open_memstream(&command, &size);
        fprintf(f, "cd %s && L=%s && T='train " SHORT "' && ( %s ) >last.out 2>last.err </dev/null", folder, where,
                surroundings[i]);
        fclose(f);
        int status = system(command); /* NOLINT(cert-env33-c): surroundings are the shell's */
        snprintf(path, sizeof path, "%s/last.err", folder);
        said_text = slurp(path, &size);
        t->tried++;
        if (status != 0) bad(t, "%s: status %d: %.300s", surroundings[i], status, said_text);
        if (size > 4000) bad(t, "%s: says %zu bytes: %.300s", surroundings[i], size, said_text);
        snprintf(path, sizeof path, "%s/INJECTED", folder);
        if (access(path, F_OK) == 0) bad(t, "%s: a name was a command", surroundings[i]);
        free(said_text);
        free(command);
    }
    free(where);
    scratch_remove(folder);
}

/* --- interrupts --------------------------------------------------------------------------------------------------- */

#define SLOW                                                                                                           \
    "train s3:length=10,n_train=256,n_val=20000,n_test=20000 bdlru:m=2,blocks=4 --dim 16 --layers 1 --mlp none "       \
    "--batch 8 --steps 8 --eval-every 2 --threads 1 --keep-weights all --quiet --out %s"

/* The result of a run: the hash of its best weights, and its curve without times. */
struct outcome {
    char weights[RUN_ID_HEX];
    int64_t n;
    double loss[64], metric;
};

static void outcome_read(const char *store, struct outcome *o) {
    struct record_set set;
    struct error e = {0};
    *o = (struct outcome){0};
    ck_assert_msg(records_load(&set, store, &e) == ST_OK && set.n == 1, "%s", e.text);
    const struct run_record *r = &set.list[0];
    snprintf(o->weights, sizeof o->weights, "%s", r->run.ckpt_xxh3);
    o->metric = r->run.metric_value;
    o->n = r->n_curve;
    for (int64_t i = 0; i < r->n_curve && i < 64; i++) o->loss[i] = r->curve[i].loss;
    records_free(&set);
}

static bool same_outcome(const struct outcome *a, const struct outcome *b) {
    return !strcmp(a->weights, b->weights) && a->n == b->n && a->metric == b->metric &&
           !memcmp(a->loss, b->loss, sizeof a->loss);
}

void interrupt_exercise(int interrupts, uint64_t seed, struct tally *t) {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], arguments[1024];
    struct outcome wanted, got;
    struct rng r = rng_at(seed, STREAM_TEST, 1);
    int status = 130;
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/whole", folder);
    snprintf(arguments, sizeof arguments, SLOW, store);
    ck_assert_int_eq(run_words(folder, NULL, arguments), 0);
    outcome_read(store, &wanted);
    snprintf(store, sizeof store, "%s/cut", folder);
    snprintf(arguments, sizeof arguments, SLOW, store);
    for (int i = 0; i < interrupts && status == 130; i++) {
        pid_t pid = start(folder, "last", NULL, arguments);
        usleep((useconds_t)(60000 + rng_below(&r, 500000)));
        double asked = time_now_s();
        kill(pid, SIGINT);
        status = wait_for(pid);
        double took = time_now_s() - asked;
        char *text = said(folder, "err");
        if (took > t->worst) t->worst = took;
        if (took > 5) bad(t, "%.1f s from Ctrl-C to the end", took);
        if (status != 130 && status != 0) bad(t, "exit %d: %.300s", status, text);
        t->failed += strstr(text, "stopped while ") != NULL; /* during a validation or the test */
        t->tried++;
        free(text);
    }
    if (status == 130) status = run_words(folder, NULL, arguments);
    if (status != 0) bad(t, "the run does not come to its end: %d", status);
    outcome_read(store, &got);
    if (!same_outcome(&wanted, &got)) bad(t, "the run that was interrupted %d times has other numbers", (int)t->tried);
    scratch_remove(folder);
}

/* --- an audit ----------------------------------------------------------------------------------------------------- */

/* Every command that `lrnn --help` lists, some in several forms; %1$s is the store, %2$s the id of the run in it. Of
 * the gate what takes no minutes. */
static const char *const audited[] = {
    ("bench s3:n_train=100,n_val=20,n_test=20,length=4 --profile smoke --models lstm --seeds 1 --jobs 1 --epochs 1 "
     "--no-speed --quiet --out %1$s"),
    ("train s3:n_train=64,n_val=16,n_test=16,length=4 lstm:hidden=4 --dim 8 --steps 4 --log-steps %1$s/steps.csv "
     "--quiet --out %1$s/train"),
    "sweep s3 --dry-run --quiet --out %1$s",
    "status %1$s",
    "report --out %1$s --format md --to %1$s/tables",
    "report --out %1$s --html %1$s/pages",
    "plot accuracy --out %1$s --to %1$s/plots",
    "show %2$s --out %1$s",
    "rerun %2$s --out %1$s",
    "eval %2$s --out %1$s",
    "compare %1$s %1$s",
    "export %2$s %1$s/net.safetensors --out %1$s",
    "import %1$s/net.safetensors",
    "store check %1$s",
    "store merge %1$s/train %1$s --out %1$s/merged",
    "verify tests/cases/18-lstm-hidden8.safetensors",
    "perf op linear --batch 1 --length 2 --dim 8 --seconds 0 --threads 1",
    "perf data s3 --seconds 0.01",
    "data show s5 --count 2",
    "data urls mnist",
    "data import mnist tests/data/mnist",
    "data verify mnist",
    "data list",
    "data path mnist",
    "data stats s5",
    "data check tests/data/own/own.jsonl",
    "data dump s5 %1$s/s5.npz --count 4",
    "list",
    "info lstm",
    "schema runs",
    "doctor --out %1$s",
    "gate --serve linear --seconds 0",
    "completion bash",
    "man",
    "help train",
};
#define N_AUDITED (sizeof audited / sizeof *audited)

/* A command that is not among those above is looked at by nothing. */
static void every_command_is_audited(struct tally *t) {
    for (const struct command *const *c = cli_commands(); *c; c++) {
        size_t n = strlen((*c)->name), i = 0;
        while (i < N_AUDITED && (strncmp(audited[i], (*c)->name, n) != 0 || !strchr(" ", audited[i][n]))) i++;
        if (i == N_AUDITED && !(*c)->hidden) bad(t, "lrnn %s is not audited", (*c)->name);
    }
}

/* The one run of the first command. */
static void find_run(const char *store, char id[RUN_ID_HEX]) {
    struct record_set set;
    struct error e = {0};
    ck_assert_msg(records_load(&set, store, &e) == ST_OK && set.n == 1, "%d runs. %s", set.n, e.text);
    memcpy(id, set.list[0].run.run_id, RUN_ID_HEX);
    records_free(&set);
}

void audit_exercise(struct tally *t) {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], log[SCRATCH_BYTES + 16], library[4096], wish[128];
    char arguments[1024], cache[SCRATCH_BYTES + 48], id[RUN_ID_HEX] = "";
    struct power_log power = {0};
    every_command_is_audited(t);
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/store", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    snprintf(wish, sizeof wish, "LRNN_FILE_LOG=%s", log);
    snprintf(cache, sizeof cache, "LRNN_CACHE=%s/cache", store);
    const char *variables[] = {preload(library), wish, cache, "LRNN_NO_SOCKET=1", NULL};
    for (size_t i = 0; i < N_AUDITED; i++) {
        if (i == 1) find_run(store, id);
        snprintf(arguments, sizeof arguments, audited[i], store, id); /* NOLINT: of the table above */
        int status = run_words(folder, variables, arguments);
        char *text = said(folder, "err");
        if (status != 0) bad(t, "lrnn %s: exit %d: %.300s", arguments, status, text);
        t->tried++;
        free(text);
    }
    power_read(&power, log, 0);
    const char *outside = power_outside(&power, store);
    if (outside) bad(t, "%s is changed, which is not in %s", outside, store);
    t->failed = power.n_events;
    power_free(&power);
    scratch_remove(folder);
}

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
#include "tests/faults/power.h"
#include "tests/faults/spawn.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

/* --- calls that fail ---------------------------------------------------------------------------------------------- */

const char *const fault_kinds[] = {"malloc", "mkdir", "rename", "link", "fsync", "open", "mmap", "write", NULL};

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

/* A case adds a record, and each case reads all records, so a store is left after so many cases. */
#define CASES_OF_A_GROUND 250

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

void fault_exercise(int command, const char *kind, enum fault fault, long most, double seconds, struct tally *t) {
    static const char *const marks[] = {"", "+", "!"};
    struct ground g;
    struct error e = {0};
    char arguments[1024], library[4096], wish[64], what[1200];
    const char *variables[] = {preload(library), wish, NULL};
    double begin = time_now_s();
    ground_make(&g, command);
    long calls = count_calls(&g, command, kind), step = spread_step(calls);
    g.records = whole_records(g.store, &e);
    t->all += calls;
    for (long i = 0; i < calls && i < most && (seconds <= 0 || i == 0 || time_now_s() - begin < seconds); i++) {
        if (i && i % CASES_OF_A_GROUND == 0) {
            ground_leave(&g);
            ground_make(&g, command);
            g.records = whole_records(g.store, &e);
        }
        snprintf(wish, sizeof wish, "LRNN_FAIL=%s:%ld%s", kind, 1 + i * step % calls, marks[fault]);
        words_of(&g, command, 3 + i, arguments);
        snprintf(what, sizeof what, "%s lrnn %s", wish, arguments);
        t->tried++;
        judge_fault(&g, command, 3 + i, what, run_words(g.folder, variables, arguments), fault == FAULT_KILL, t);
    }
    ground_leave(&g);
}

/* --- power -------------------------------------------------------------------------------------------------------- */

/* The store of programs that write down what they do to files. */
struct logged {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], log[SCRATCH_BYTES + 16], library[4096], wish[128];
    const char *variables[3];
};

static void logged_begin(struct logged *l) {
    scratch_make(l->folder);
    snprintf(l->store, sizeof l->store, "%s/store", l->folder);
    snprintf(l->log, sizeof l->log, "%s/log", l->folder);
    snprintf(l->wish, sizeof l->wish, "LRNN_FILE_LOG=%s", l->log);
    l->variables[0] = preload(l->library);
    l->variables[1] = l->wish;
    l->variables[2] = NULL;
}

void power_exercise(int choices, int forgetful, struct tally *t) {
    struct power_log power = {0};
    struct logged l;
    char arguments[1024];
    logged_begin(&l);
    for (long seed = 1; seed <= 3; seed++) {
        snprintf(arguments, sizeof arguments, TRAIN, l.store, seed);
        ck_assert_int_eq(run_words(l.folder, l.variables, arguments), 0);
        power_promise(&power, l.log, 1);
    }
    power_read(&power, l.log, forgetful);
    power_replay(&power, l.store, choices, 1, NULL, t);
    power_free(&power);
    scratch_remove(l.folder);
}

/* The store of a bench that ended, for bench_goes_on. */
static struct {
    char store[SCRATCH_BYTES + 16];
    int runs;
} whole_bench;

static void bench_goes_on(const char *folder, struct tally *t) {
    char arguments[1024], store[SCRATCH_BYTES + 16];
    snprintf(arguments, sizeof arguments, BENCH, whole_bench.runs, folder);
    snprintf(store, sizeof store, "%s/store", folder);
    int status = run_words(folder, NULL, arguments);
    char *text = said(folder, "err");
    if (status != 0) bad(t, "the bench that goes on after the power went ends with %d: %.300s", status, text);
    compare_stores(store, whole_bench.store, whole_bench.runs, t);
    snprintf(arguments, sizeof arguments, "store check %s", store);
    if (run_words(folder, NULL, arguments) != 0) bad(t, "its folder is not whole: lrnn %s fails", arguments);
    t->failed++;
    free(text);
}

void power_bench_exercise(int runs, int choices, int every, int forgetful, struct tally *t) {
    struct power_log power = {0};
    struct logged l;
    char arguments[1024];
    logged_begin(&l);
    snprintf(arguments, sizeof arguments, BENCH, runs, l.folder);
    ck_assert_int_eq(run_words(l.folder, l.variables, arguments), 0);
    power_promise(&power, l.log, runs);
    power_read(&power, l.log, forgetful);
    snprintf(whole_bench.store, sizeof whole_bench.store, "%s", l.store);
    whole_bench.runs = runs;
    power_replay(&power, l.store, choices, every, bench_goes_on, t);
    power_free(&power);
    scratch_remove(l.folder);
}

/* --- kills -------------------------------------------------------------------------------------------------------- */

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
    "top %1$s",
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
    "perf op linear --batch 1 --length 2 --dim 8 --seconds 0 --threads 1 --to %1$s/ops",
    "perf compare %1$s/ops %1$s/ops",
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
    char arguments[1024], cache[SCRATCH_BYTES + 48], id[RUN_ID_HEX] = "";
    struct power_log power = {0};
    struct logged l;
    every_command_is_audited(t);
    logged_begin(&l);
    snprintf(cache, sizeof cache, "LRNN_CACHE=%s/cache", l.store);
    const char *variables[] = {l.variables[0], l.wish, cache, "LRNN_NO_SOCKET=1", NULL};
    for (size_t i = 0; i < N_AUDITED; i++) {
        if (i == 1) find_run(l.store, id);
        snprintf(arguments, sizeof arguments, audited[i], l.store, id); /* NOLINT: of the table above */
        int status = run_words(l.folder, variables, arguments);
        char *text = said(l.folder, "err");
        if (status != 0) bad(t, "lrnn %s: exit %d: %.300s", arguments, status, text);
        t->tried++;
        free(text);
    }
    power_read(&power, l.log, 0);
    const char *outside = power_outside(&power, l.store);
    if (outside) bad(t, "%s is changed, which is not in %s", outside, l.store);
    t->failed = power.n_events;
    power_free(&power);
    scratch_remove(l.folder);
}

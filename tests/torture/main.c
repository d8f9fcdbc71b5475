/* main.c - `make torture`: what tests/faults/ does in its short forms, for an hour. Each exercise has its share of the
 * time and becomes a row of a CSV file, which is written anew after each; the counts of `make fuzz` and `make
 * fuzz-kernels` are added from what they print. Exit status 1 where anything was lost, crashed or silently wrong.
 *
 * A build with AddressSanitizer does the exercises that read files in their own process or emulate a device. The build
 * without does the others, and adds the rows of the sanitized one. */
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/option.h"
#include "harness/cli/cli.h"
#include "harness/store/clock.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/machine.h"
#include "harness/store/version.h"
#include "tests/faults/exercise.h"
#include "tests/lib/workers.h"
#include "tests/testing.h"

struct request {
    double seconds;
    int64_t cases;
    char only[OPTION_TEXT], to[OPTION_TEXT], sanitized[OPTION_TEXT], fuzz[OPTION_TEXT], kernels[OPTION_TEXT];
};

#define AT(field) offsetof(struct request, field)
static const struct option request_options[] = {
    {"time", OPT_TIME, AT(seconds), "40m", 1, 86400, NULL, "time for all exercises together", 0},
    {"cases", OPT_INT, AT(cases), "1000000", 1, 1e9, NULL, "most cases of each exercise", 0},
    {"only", OPT_TEXT_FIELD, AT(only), "", 0, 0, NULL,
     "only these exercises, with blanks between them; default: all but large-scale", 0},
    {"to", OPT_TEXT_FIELD, AT(to), "", 0, 0, NULL, "CSV file that gets the counts", 0},
    {"sanitized", OPT_TEXT_FIELD, AT(sanitized), "", 0, 0, NULL,
     "CSV file of the sanitized build, whose rows are added", 0},
    {"fuzz", OPT_TEXT_FIELD, AT(fuzz), "", 0, 0, NULL, "output of `make fuzz`, whose counts are added", 0},
    {"kernels", OPT_TEXT_FIELD, AT(kernels), "", 0, 0, NULL,
     "pipe from `make fuzz-kernels`, read to its end after the exercises; its counts are added", 0},
    {0}};

static const struct command command_torture = {
    .name = "torture",
    .usage = "torture [flags]",
    .summary = "failing calls, power loss, kills, flipped bits, several writers, interrupts: is anything lost?"};

static struct request request;

static int most(int cases) {
    return request.cases < cases ? (int)request.cases : cases;
}

/* --- exercises ---------------------------------------------------------------------------------------------------- */

#ifdef __SANITIZE_ADDRESS__
static void flips(double seconds, struct tally *t) {
    (void)seconds;
    flip_exercise(most(20000), 2, t);
}

#ifdef LRNN_CUDA_HOST
static void refusals(double seconds, struct tally *t) {
    refuse_exercise(1, seconds, t);
}
#endif
#else

/* Every kind of call in every command, in equal shares of the time that is left. What makes most calls comes last: a
 * training, which is command 0, and its writes. It gets the time that the others leave. */
static void every_fault(enum fault fault, const char *const *kinds, int commands, double seconds, struct tally *t) {
    double end = time_now_s() + seconds;
    int left = commands;
    for (int k = 1; kinds[k]; k++) left += commands;
    for (int k = 0; kinds[k]; k++)
        for (int c = commands - 1; c >= 0; c--)
            fault_exercise(c, kinds[k], fault, most(1000000), fmax((end - time_now_s()) / left--, 1e-3), t);
}

static void calls_once(double seconds, struct tally *t) {
    every_fault(FAULT_ONCE, fault_kinds + 1, fault_commands(), seconds, t);
}

static void memory_once(double seconds, struct tally *t) {
    static const char *const kinds[] = {"malloc", NULL};
    every_fault(FAULT_ONCE, kinds, fault_commands(), seconds, t);
}

static void for_ever(double seconds, struct tally *t) {
    every_fault(FAULT_FOR_EVER, fault_kinds, fault_commands(), seconds, t);
}

static void killed_at_calls(double seconds, struct tally *t) {
    static const char *const kinds[] = {"open", "fsync", "link", "rename", "mkdir", "write", NULL};
    every_fault(FAULT_KILL, kinds, 1, seconds, t);
}

static void kills(double seconds, struct tally *t) {
    kill_exercise(most(1000), 40, 2, seconds, t);
    t->all = 1000;
}

static void power(double seconds, struct tally *t) {
    (void)seconds;
    power_exercise(64, 0, t);
}

static void power_of_a_bench(double seconds, struct tally *t) {
    power_bench_exercise(6, seconds < 60 ? 8 : 64, 97, 0, t);
}

static void damage(double seconds, struct tally *t) {
    damage_exercise(most(20000), 3, seconds, t);
}

/* 16 writers of 200 runs each, or of as many as the time allows. */
static void writers(double seconds, struct tally *t) {
    double begin = time_now_s();
    for (int i = 0; i < 20 && t->tried < most(3200) && time_now_s() - begin < seconds; i++) writers_exercise(16, 10, t);
    t->all = 16 * 200;
}

static void pauses(double seconds, struct tally *t) {
    double begin = time_now_s();
    for (uint64_t i = 0; i < 20 && t->tried < most(800) && time_now_s() - begin < seconds; i++)
        pause_exercise(i % 2 ? 8 : 2, 12, 40, 3 + i, t);
}

static void values(double seconds, struct tally *t) {
    value_exercise(most(1000000), seconds, t);
}

static void surroundings(double seconds, struct tally *t) {
    (void)seconds;
    surroundings_exercise(t);
}

static void space(double seconds, struct tally *t) {
    (void)seconds;
    space_exercise(most(200), t);
}

static void scale(double seconds, struct tally *t) {
    (void)seconds;
    scale_exercise(10000, t);
}

static void large_scale(double seconds, struct tally *t) {
    (void)seconds;
    scale_exercise(100000, t);
}

static void interrupts(double seconds, struct tally *t) {
    double begin = time_now_s();
    for (uint64_t i = 0; t->tried < most(200) && time_now_s() - begin < seconds; i++) interrupt_exercise(10, 2 + i, t);
}

static void audit(double seconds, struct tally *t) {
    (void)seconds;
    audit_exercise(t);
}
#endif

static const struct exercise {
    const char *name, *promise, *what; /* promise: of docs/trust.md */
    void (*run)(double seconds, struct tally *t);
    double share; /* of the time of one of the processes; 0: done only if --only names it */
} exercises[] = {
#ifdef __SANITIZE_ADDRESS__
    {"flips", "P8", "a record, checkpoint, baseline, history or plan has one byte changed or is cut (ASan, UBSan)",
     flips, 1},
#ifdef LRNN_CUDA_HOST
    {"refusals", "P6", "one call of an emulated device's API fails (ASan, UBSan)", refusals, 1},
#endif
#else
    {"memory", "P5", "one memory allocation fails", memory_once, 0.70},
    {"kills", "P1", "a bench of 40 runs is killed at random moments and started again", kills, 0.50},
    {"calls", "P4", "one call of mmap, open, write, fsync, link, rename or mkdir fails", calls_once, 0.25},
    {"for-ever", "P4", "a call fails, and so do all later calls of its kind", for_ever, 0.20},
    {"killed-calls", "P1", "a training is killed at a call that changes files", killed_at_calls, 0.10},
    {"damage", "P8", "a file of ours (nine kinds) has one byte changed or its end cut off", damage, 0.20},
    {"writers", "P15", "16 processes train the same runs into one folder at once", writers, 0.10},
    {"pauses", "P15", "one of several benches is stopped until its locks on runs expire, then woken", pauses, 0.10},
    {"values", "P7", "a record with a correct checksum has an impossible value, such as null", values, 0.10},
    {"surroundings", "P4", "folders have odd names, streams are closed, limits are low", surroundings, 0.02},
    {"space", "P5", "the address space of a training has a limit (ulimit -v)", space, 0.05},
    {"scale", "P7", "a command reads 1 000 or 10 000 records; its time may grow twice as fast as they", scale, 0.02},
    {"large-scale", "P7", "the same with 10 000 or 100 000 records", large_scale, 0},
    {"interrupts", "P21", "Ctrl-C is pressed at random moments of validation", interrupts, 0.10},
    {"power", "P3", "the power fails after a call that changes files; each state of the disk is a case", power, 0.02},
    {"power-bench", "P3", "the power fails during a bench by two processes; each state of the disk is a case",
     power_of_a_bench, 0.05},
    {"audit", "P16, P18", "each command runs; it may open no socket and write only into its folder", audit, 0.01},
#endif
};
#define LONGEST_EXERCISE 2100.0 /* s; libcheck ends a test whose microseconds exceed 31 bits */
#define N_EXERCISES      (int)(sizeof exercises / sizeof *exercises)

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define MOST_FUZZ 64

struct row {
    bool done;
    double seconds;
    struct tally tally;
};

struct fuzz_row {
    char target[64];
    int64_t runs, seconds, lost;
};

/* The counts of fuzz-kernels; cases 0: it was not asked for, or has not come to its end. */
struct kernel_row {
    long long cases, failed, seconds;
    char what[160];
};

/* Memory that the processes share. */
struct shared {
    atomic_int next, lost;
    struct row rows[N_EXERCISES];
};

static struct shared *shared;
static struct fuzz_row fuzz_rows[MOST_FUZZ];
static int n_fuzz;
static struct kernel_row kernel_row;

/* "  FUZZ name (60 s)" and after it "stat::number_of_executed_units: 1234"; and "SUMMARY: ..." of each crash. */
static enum status read_fuzz(const char *path, struct error *e) {
    char *text, *rest = NULL;
    size_t size;
    TRY(file_read(path, (size_t)64 << 20, &text, &size, e));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct fuzz_row row = {0};
        long long runs, seconds;
        if (sscanf(line, "  FUZZ %63s (%lld s)", row.target, &seconds) == 2 && n_fuzz < MOST_FUZZ) {
            row.seconds = seconds;
            fuzz_rows[n_fuzz++] = row;
        } else if (n_fuzz && sscanf(line, "stat::number_of_executed_units: %lld", &runs) == 1) {
            fuzz_rows[n_fuzz - 1].runs = runs;
        } else if (n_fuzz && strstr(line, "SUMMARY: ")) {
            fuzz_rows[n_fuzz - 1].lost++;
        }
    }
    free(text);
    return ST_OK;
}

/* Shows what fuzz-kernels prints and keeps its last line, "seed 1, fp32: 10 cases of 3 ops, 4 kernels; 0 kernels
 * failed, 60 s". Without that line it has failed. */
static enum status read_kernels(const char *path, struct error *e) {
    char line[1024], precision[16];
    long long seed;
    int ops, kernels;
    FILE *f = fopen(path, "r");
    if (!f) return fail(e, ST_DATA, "%s: cannot be read", path);
    while (fgets(line, sizeof line, f)) {
        struct kernel_row r;
        printf("  %s", line);
        if (sscanf(line, "seed %lld, %15[^:]: %lld cases of %d ops, %d kernels; %lld kernels failed, %lld s", &seed,
                   precision, &r.cases, &ops, &kernels, &r.failed, &r.seconds) != 7)
            continue;
        snprintf(r.what, sizeof r.what,
                 "%d kernels of %d ops are compared with the references at random shapes (%s, seed %lld)", kernels, ops,
                 precision, seed);
        kernel_row = r;
    }
    fclose(f);
    if (kernel_row.cases > 0) return ST_OK;
    return fail(e, ST_DATA, "%s: fuzz-kernels has not come to its last line, or compared nothing", path);
}

static void print_counts(FILE *f, const struct machine *m, const char *when, const struct exercise *x,
                         const struct tally *t, double seconds) {
    csv_text(f, x->name);
    fputc(',', f);
    csv_text(f, x->what);
    fprintf(f, ",%lld,%lld,%lld,%lld,", (long long)t->tried, (long long)t->all, (long long)t->failed,
            (long long)t->bad);
    csv_real(f, t->worst > 0 ? t->worst : NAN);
    fprintf(f, ",%.0f,%s,%s,%s,", seconds, m->id, build_info()->commit, when);
    csv_text(f, x->promise);
    fputc('\n', f);
}

/* Adds the rows of the sanitized build. */
static enum status add_sanitized(FILE *f, struct error *e) {
    char *text;
    size_t size;
    if (!*request.sanitized) return ST_OK;
    TRY(file_read(request.sanitized, (size_t)1 << 20, &text, &size, e));
    fputs(text + strcspn(text, "\n") + 1, f);
    free(text);
    return ST_OK;
}

/* `all` 0: the cases cannot be counted. */
static enum status write_rows(struct error *e) {
    struct machine m;
    char when[32], *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return fail(e, ST_MEMORY, "no memory for %s", request.to);
    machine_read(&m);
    time_now_text(when, sizeof when);
    fprintf(f, "exercise,what,cases,all,said,lost,worst_s,wall_s,machine_id,commit,finished,promise\n");
    for (int i = 0; i < N_EXERCISES; i++) {
        const struct row *r = &shared->rows[i];
        if (r->done) print_counts(f, &m, when, &exercises[i], &r->tally, r->seconds);
    }
    for (int i = 0; i < n_fuzz; i++) {
        struct tally t = {.tried = fuzz_rows[i].runs, .bad = fuzz_rows[i].lost};
        char name[80];
        struct exercise fuzz = {.name = name, .promise = "P7", .what = "a fuzzer makes input files"};
        snprintf(name, sizeof name, "fuzz-%.63s", fuzz_rows[i].target);
        print_counts(f, &m, when, &fuzz, &t, (double)fuzz_rows[i].seconds);
    }
    if (kernel_row.cases > 0) {
        struct tally t = {.tried = kernel_row.cases, .bad = kernel_row.failed};
        struct exercise twins = {.name = "kernels", .promise = "P13", .what = kernel_row.what};
        print_counts(f, &m, when, &twins, &t, (double)kernel_row.seconds);
    }
    enum status status = add_sanitized(f, e);
    fclose(f);
    if (status == ST_OK) status = write_file_atomic(request.to, text, size, e);
    free(text);
    return status;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static int now; /* the exercise that this process does */

START_TEST(exercised) {
    (void)_i;
    const struct exercise *x = &exercises[now];
    struct row *r = &shared->rows[now];
    double begin = time_now_s();
    x->run(fmin(x->share * request.seconds, LONGEST_EXERCISE), &r->tally);
    r->seconds = time_now_s() - begin;
    ck_assert_msg(r->tally.bad == 0, "%s", r->tally.first);
    ck_assert_int_gt(r->tally.tried, 0);
}
END_TEST

static bool is_named(const struct exercise *x, const char *word) {
    return strcspn(word, " ") == strlen(x->name) && strncmp(word, x->name, strlen(x->name)) == 0;
}

/* Returns the word after `word` in --only. */
static const char *next_word(const char *word) {
    word += strcspn(word, " ");
    return word + strspn(word, " ");
}

static bool is_wanted(const struct exercise *x) {
    for (const char *word = request.only; *word; word = next_word(word))
        if (is_named(x, word)) return true;
    return !*request.only && x->share > 0;
}

/* ST_USAGE: a word of --only names no exercise of this build. */
static enum status check_only(struct error *e) {
    for (const char *word = request.only; *word; word = next_word(word)) {
        int i = 0;
        while (i < N_EXERCISES && !is_named(&exercises[i], word)) i++;
        if (i == N_EXERCISES)
            return fail(e, ST_USAGE, "--only %s: this build has no exercise '%.*s', expected names such as '%s'",
                        request.only, (int)strcspn(word, " "), word, exercises[0].name);
    }
    return ST_OK;
}

/* Takes one exercise after the other. */
static void work(int process, void *context) {
    (void)process, (void)context;
    struct error e = {0};
    while ((now = atomic_fetch_add(&shared->next, 1)) < N_EXERCISES) {
        if (!is_wanted(&exercises[now])) continue;
        Suite *suite = suite_create("torture");
        TCase *tests = tcase_create(exercises[now].name);
        tcase_set_timeout(tests, 0);
        tcase_add_test(tests, exercised);
        suite_add_tcase(suite, tests);
        SRunner *runner = srunner_create(suite);
        srunner_run_all(runner, CK_SILENT);
        const struct row *r = &shared->rows[now];
        printf("  %-13s %8lld cases, the program said so in %lld, lost %lld, %.0f s\n", exercises[now].name,
               (long long)r->tally.tried, (long long)r->tally.failed, (long long)r->tally.bad, r->seconds);
        if (srunner_ntests_failed(runner)) srunner_print(runner, CK_NORMAL);
        fflush(stdout);
        atomic_fetch_add(&shared->lost, srunner_ntests_failed(runner));
        shared->rows[now].done = true;
        srunner_free(runner);
        if (*request.to && write_rows(&e) != ST_OK) printf("torture: %s\n", e.text);
    }
}

int main(int argc, char **argv) {
    struct error e = {0};
    const struct flag_set sets[] = {{request_options, &request}};
    struct cli cli = {.command = &command_torture, .sets = sets, .n_sets = 1, .alone = true};
    enum status status = options_default(request_options, &request, &e);
    if (status == ST_OK) status = cli_parse(&cli, argc, argv, &e);
    if (status == ST_OK) status = check_only(&e);
    if (status == ST_OK && *request.fuzz) status = read_fuzz(request.fuzz, &e);
    if (status == ST_HELP) return 0;
    if (status != ST_OK) {
        fprintf(stderr, "torture: %s\n", e.text);
        return (int)status;
    }
    shared = workers_share(sizeof *shared);
    atomic_fetch_add(&shared->lost, workers_run(2, work, NULL));
    for (int i = 0; i < n_fuzz; i++) printf("  fuzz-%-20s %lld\n", fuzz_rows[i].target, (long long)fuzz_rows[i].runs);
    if (*request.kernels) {
        status = read_kernels(request.kernels, &e);
        if (status == ST_OK && *request.to) status = write_rows(&e);
        if (status != ST_OK) printf("torture: %s\n", e.text);
        atomic_fetch_add(&shared->lost, (int)kernel_row.failed + (status != ST_OK));
    }
    return shared->lost > 0;
}

/* cmd_gate.c - `lrnn gate`: whether this build is as accurate and as fast as a baseline, or a plan's runs as the plan
 * expects. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/file/name.h"
#include "harness/cli/cli.h"
#include "harness/gate/gate.h"
#include "harness/pool/runner.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/history.h"
#include "harness/store/version.h"
#include "kernels/lib/parallel.h"

struct gate_flags {
    char baseline[OPTION_TEXT], write[OPTION_TEXT], against[OPTION_TEXT], benches[OPTION_TEXT], serve[OPTION_TEXT],
        delays[OPTION_TEXT];
    char junit[OPTION_TEXT], markdown[OPTION_TEXT], badge[OPTION_TEXT], history[OPTION_TEXT], out[OPTION_TEXT];
    bool accuracy, throughput, self_test, force, update;
    int format;
    int64_t pairs, sittings, power, seed, jobs;
    double seconds, load, delay;
    const struct cli *cli; /* has read them */
};

#define AT(field) offsetof(struct gate_flags, field)
static const struct option options[] = {
    {"baseline", OPT_TEXT_FIELD, AT(baseline), "", 0, 0, NULL,
     "file to compare with, written by --write; default for a plan x.plan: x.baseline", OPT_FILLED},
    {"update", OPT_BOOL, AT(update), "no", 0, 0, NULL, "write a plan's baseline again, and say what changes", 0},
    {"accuracy", OPT_BOOL, AT(accuracy), "no", 0, 0, NULL, "check golden traces and results of seeds", 0},
    {"throughput", OPT_BOOL, AT(throughput), "no", 0, 0, NULL, "compare speeds with the program of --against", 0},
    {"against", OPT_TEXT_FIELD, AT(against), "", 0, 0, NULL, "program that wrote the baseline", OPT_FILLED},
    {"write", OPT_TEXT_FIELD, AT(write), "", 0, 0, NULL, "write a baseline of this build into this file", OPT_FILLED},
    {"self-test", OPT_BOOL, AT(self_test), "no", 0, 0, NULL,
     "compare this program with itself: false alarms, and power to find a delay; the floor goes into --baseline", 0},
    {"benches", OPT_TEXT_FIELD, AT(benches), "", 0, 0, NULL,
     "only these benches: 'scan_block linear'; 'step-*' = steps of all mixers, 'long-*' = long sequences", 0},
    {"pairs", OPT_INT, AT(pairs), "20", 1, GATE_MAX / 2.0, NULL, "pairs of times per bench", 0},
    {"seconds", OPT_TIME, AT(seconds), "0.01s", 0, GATE_SECONDS, NULL,
     "time for the calls of a measurement; at least 30 calls (5 slow ones), at most 2048", 0},
    {"load", OPT_REAL, AT(load), "0.75", 0, 1, NULL,
     "share of the cores that other processes may use; above it a bench is inconclusive", 0},
    {"sittings", OPT_INT, AT(sittings), "200", 1, 1e6, NULL, "comparisons of the self-test without a delay", 0},
    {"power", OPT_INT, AT(power), "50", 0, 1e6, NULL, "comparisons of the self-test with each of --delays", 0},
    {"delays", OPT_TEXT_FIELD, AT(delays), "5 10", 0, 0, NULL, "delays of the self-test, in percent", OPT_FILLED},
    {"seed", OPT_INT, AT(seed), "auto", 1, 9e18, NULL, "seed of the order of pairs; auto = from the clock", OPT_AUTO},
    {"force", OPT_BOOL, AT(force), "no", 0, 0, NULL,
     "compare even if the baseline has another machine, numerics, commit or flags", 0},
    {"format", OPT_CHOICE, AT(format), "term", 0, 0, SHEET_FORMAT_NAMES, "format of the tables on standard output", 0},
    {"markdown", OPT_TEXT_FIELD, AT(markdown), "", 0, 0, NULL, "also write the tables as Markdown into this file",
     OPT_FILLED},
    {"badge", OPT_TEXT_FIELD, AT(badge), "", 0, 0, NULL, "write the verdict as a small SVG into this file", OPT_FILLED},
    {"history", OPT_TEXT_FIELD, AT(history), "auto", 0, 0, NULL,
     "file to which every gate adds a line; auto = gate.jsonl in --out, which `lrnn report --html` draws", OPT_FILLED},
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL,
     "folder of results; a plan's runs go into its subfolder gate", OPT_FILLED},
    {"jobs", OPT_INT, AT(jobs), "auto", 1, RUNNER_MOST_JOBS, NULL,
     "runs of a plan that train at once; auto = one per core", OPT_AUTO},
    {"junit", OPT_TEXT_FIELD, AT(junit), "", 0, 0, NULL, "write the verdicts as JUnit XML into this file", OPT_FILLED},
    {"serve", OPT_TEXT_FIELD, AT(serve), "", 0, 0, NULL,
     "bench to serve, or path of a run's config file; `lrnn gate` starts its own processes with this flag", 0},
    {"delay", OPT_REAL, AT(delay), "0", 0, 10, NULL,
     "with --serve: share of its time by which each call is made longer", 0},
    {0}};

static struct compare_request request_of(const struct gate_flags *f, const char *against, const char *own) {
    return (struct compare_request){.a = against,
                                    .b = own,
                                    .seconds = f->seconds,
                                    .pairs = (int)f->pairs,
                                    .load = f->load,
                                    .seed = (uint64_t)(f->seed ? f->seed : time(NULL)),
                                    .force = f->force};
}

/* --- a baseline ------------------------------------------------------------------------------------------------- */

static enum status write_baseline(const struct gate_flags *f, struct baseline *b, struct error *e) {
    TRY(cli_refuse_others(f->cli, "gate --write", " write ", e));
    TRY(file_write_check(f->write, e));
    TRY(parallel_start(1, NULL, e));
    baseline_init(b);
    TRY(gate_measure(b, INT_MAX, GATE_BANK, e));
    TRY(baseline_write(b, f->write, e));
    printf("%s: %d golden traces", f->write, b->n_traces);
    for (int i = 0; i < b->n_banks; i++)
        printf("; %s: %d of %d seeds solved", b->banks[i].name, b->banks[i].solved, b->banks[i].n);
    printf("\n");
    return ST_OK;
}

/* Compares this program only with itself, because a difference between two programs is not noise. The noise floors of
 * the benches are written to the baseline, if there is one. */
static enum status self_test(const struct gate_flags *f, struct baseline *b, struct error *e) {
    char own[PATH_BYTES];
    struct sheets sheets = {0};
    TRY(cli_refuse_others(f->cli, "gate --self-test",
                          " self-test baseline benches pairs seconds load sittings power delays seed force format ",
                          e));
    TRY(own_program(own, e));
    if (*f->baseline) {
        TRY(baseline_read(b, f->baseline, e));
        TRY(baseline_check(b, f->baseline, f->force, e));
        TRY(file_write_check(f->baseline, e));
    }
    struct self_test_request q = {.sittings = (int)f->sittings,
                                  .power = (int)f->power,
                                  .delays = f->delays,
                                  .benches = *f->benches ? f->benches : gate_benches()->name,
                                  .compare = request_of(f, own, own)};
    enum status status = gate_self_test(&q, b, sheets_add(&sheets), e);
    if (status == ST_OK) status = sheets_write(&sheets, sheet_formats()[f->format], stdout, e);
    sheets_free(&sheets);
    return status == ST_OK && *f->baseline ? baseline_write(b, f->baseline, e) : status;
}

/* --- the gate ----------------------------------------------------------------------------------------------------- */

/* Says at once that a file could not be written, so that no file hides the verdict. Returns the first failure. */
static enum status told(enum status first, enum status status, struct error *e) {
    if (status == ST_OK) return first;
    fprintf(stderr, "lrnn: %s\n", e->text);
    e->text[0] = 0;
    return first == ST_OK ? status : first;
}

static enum status write_markdown(const struct gate_flags *f, const struct gate_result *r, enum verdict worst,
                                  struct error *e) {
    struct printed page;
    TRY(printed_begin(&page, f->markdown, e));
    return printed_write(&page, gate_summary(r, worst, page.f, e), f->markdown, e);
}

static enum status show(const struct gate_flags *f, const struct gate_result *r, enum verdict worst, struct error *e) {
    enum status first = r->n ? told(ST_OK, gate_print(r, sheet_formats()[f->format], stdout, e), e) : ST_OK;
    if (*f->junit) first = told(first, gate_junit(r, f->junit, e), e);
    return *f->markdown ? told(first, write_markdown(f, r, worst, e), e) : first;
}

static enum status history_path(const struct gate_flags *f, char path[PATH_BYTES], struct error *e) {
    bool named = strcmp(f->history, "auto") != 0;
    return path_format(path, PATH_BYTES, e, "%s%s%s", named ? f->history : f->out, named ? "" : "/",
                       named ? "" : HISTORY_FILE);
}

/* Returns the stream for messages: stdout after tables for people, standard error for other formats. */
static FILE *talk(const struct gate_flags *f) {
    return sheet_formats()[f->format] == &format_term ? stdout : stderr;
}

/* Shows the result, prints the verdict, and keeps it in the history under a name. A file that cannot be written is the
 * status where the verdict is a good one. */
static enum status tell(const struct gate_flags *f, const struct gate_result *r, const char *name, struct error *e) {
    enum verdict worst = VERDICT_SAME;
    char path[PATH_BYTES];
    struct error nothing;
    enum status status = gate_worst(r, &worst, &nothing), first = show(f, r, worst, e);
    if (status != ST_OK) return fail(e, status, "%s", nothing.text);
    TRY(history_path(f, path, e));
    fprintf(talk(f), "%sthe gate: %s\n", talk(f) == stdout ? "\n" : "", verdict_names[worst]);
    if (*f->badge) first = told(first, gate_badge(worst, f->badge, e), e);
    first = told(first, gate_history(r, name, worst, path, e), e);
    e->text[0] = 0; /* all is printed */
    return verdict_status(worst) == ST_OK ? first : verdict_status(worst);
}

/* Checks whether line_append would succeed. It makes missing folders, so the nearest one that is there counts. */
static enum status check_history(const struct gate_flags *f, struct error *e) {
    char path[PATH_BYTES], at[PATH_BYTES], above[PATH_BYTES];
    struct stat there;
    TRY(history_path(f, path, e));
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return fail(e, ST_FAIL, "cannot write the history %s: %s", path, strerror(EISDIR));
    TRY(path_format(at, sizeof at, e, "%s", path));
    while (access(at, W_OK) != 0) {
        if (errno != ENOENT || !strcmp(at, "."))
            return fail(e, ST_FAIL, "cannot write the history %s: %s", path, strerror(errno));
        path_folder(at, above, sizeof above);
        TRY(text_copy(above, at, sizeof at, e));
    }
    return ST_OK;
}

static enum status check_files(const struct gate_flags *f, struct error *e) {
    TRY(check_history(f, e));
    if (*f->junit) TRY(file_write_check(f->junit, e));
    if (*f->markdown) TRY(file_write_check(f->markdown, e));
    return *f->badge ? file_write_check(f->badge, e) : ST_OK;
}

/* Refuses, before anything is measured, flags that would keep an answer from being written. */
static enum status check_compare(const struct gate_flags *f, bool throughput, struct error *e) {
    if (!*f->baseline)
        return fail(e, ST_USAGE,
                    "gate needs a plan, or --baseline FILE; `lrnn gate --write FILE` of the other build makes one");
    TRY(cli_refuse_others(f->cli, throughput ? "gate" : "gate --accuracy",
                          throughput ? " baseline accuracy throughput against benches pairs seconds load seed force "
                                       "format markdown junit badge history out "
                                     : " baseline accuracy force format markdown junit badge history out ",
                          e));
    if (throughput && !*f->against)
        return fail(e, ST_USAGE, "--throughput needs --against PROGRAM, the other build; --accuracy alone needs none");
    return check_files(f, e);
}

/* Writes what the flags make a verdict easier by, or of fewer benches. */
static void say_chosen(const struct gate_flags *f, const struct baseline *b, char *text, size_t size) {
    struct machine m;
    struct gate_flags usual;
    size_t used = 0;
    text[0] = 0;
    machine_read(&m);
    (void)options_default(options, &usual, NULL);
    if (f->force) used += (size_t)snprintf(text, size, "--force ");
    if (f->force && *b->machine_id && strcmp(b->machine_id, m.id) != 0)
        used += (size_t)snprintf(text + used, size - used, "(the baseline is of machine %.8s, this is %.8s) ",
                                 b->machine_id, m.id);
    if (*f->benches) used += (size_t)snprintf(text + used, size - used, "--benches '%.200s' ", f->benches);
    if (f->load > usual.load) used += (size_t)snprintf(text + used, size - used, "--load %g ", f->load);
    if (f->pairs < usual.pairs) used += (size_t)snprintf(text + used, size - used, "--pairs %d ", (int)f->pairs);
    if (used) text[used - 1] = 0;
}

static enum status compare(const struct gate_flags *f, struct baseline *b, struct gate_result *r, struct error *e) {
    char own[PATH_BYTES];
    bool accuracy = f->accuracy || !f->throughput, throughput = f->throughput || !f->accuracy;
    TRY(check_compare(f, throughput, e));
    TRY(baseline_read(b, f->baseline, e));
    TRY(baseline_check(b, f->baseline, f->force, e));
    say_chosen(f, b, r->chosen, sizeof r->chosen);
    TRY(own_program(own, e));
    TRY(parallel_start(1, NULL, e));
    const struct compare_request q = request_of(f, f->against, own);
    enum status status = ST_OK;
    if (throughput) TRY(gate_throughput_check(&q, f->benches, e));
    if (accuracy) status = gate_accuracy(b, r, e);
    if (throughput && status == ST_OK) status = gate_throughput(b, &q, f->benches, r, e);
    if (status == ST_OK) return tell(f, r, "gate", e);
    struct error ignored; /* rows that came out before the error are shown; the error is still returned */
    enum verdict worst;
    if (r->n) show(f, r, gate_worst(r, &worst, &ignored) == ST_OK ? worst : VERDICT_INCONCLUSIVE, &ignored);
    return status;
}

/* --- the gate of a plan ------------------------------------------------------------------------------------------- */

/* Names a folder for the runs' records: OUT/gate/DATE-COMMIT. */
static enum status name_folder(const char *out, char path[PATH_BYTES], struct error *e) {
    char date[32], stamp[32];
    size_t n = 0;
    time_now_text(date, sizeof date);
    for (const char *c = date; *c; c++)
        if (*c != ':' && *c != '-') stamp[n++] = *c;
    stamp[n] = 0;
    return path_format(path, PATH_BYTES, e, "%s/gate/%s-%.8s", out, stamp, build_info()->commit);
}

/* Writes the baseline of a plan's rows, and says what changes. A speed beside too much load makes none. */
static enum status keep_baseline(const struct gate_flags *f, const struct gate_result *r, const struct baseline *before,
                                 const char *path, struct error *e) {
    struct sheets sheets = {0};
    const struct gate_row *busy = gate_busy(r);
    if (busy) {
        fprintf(talk(f), "%s: not written, since the speed of %s was taken beside other processes; run it again\n\n",
                path, busy->name);
        return ST_OK;
    }
    struct baseline *after = calloc(1, sizeof *after);
    if (!after) return fail(e, ST_MEMORY, "no memory for a baseline");
    baseline_init(after);
    enum status status = gate_plan_baseline(r, after, e);
    if (status == ST_OK) status = baseline_write(after, path, e);
    if (status == ST_OK && before->n_figures) {
        gate_plan_changes(before, after, sheets_add(&sheets));
        status = sheets_write(&sheets, &format_term, talk(f), e);
        fputc('\n', talk(f));
    }
    if (status == ST_OK) fprintf(talk(f), "%s: written, %d figures\n\n", path, after->n_figures);
    sheets_free(&sheets);
    free(after);
    return status;
}

static enum status gate_of_plan(const struct gate_flags *f, const char *plan, struct baseline *b, struct gate_result *r,
                                struct error *e) {
    char path[PATH_BYTES], out[PATH_BYTES], own[PATH_BYTES];
    size_t stem = strlen(plan) - (text_ends(plan, ".plan") ? strlen(".plan") : 0);
    struct error nothing;
    enum verdict worst;
    TRY(cli_refuse_others(f->cli, "gate PLAN",
                          " baseline update against pairs seconds load seed force format markdown junit badge history "
                          "out jobs ",
                          e));
    TRY(check_files(f, e));
    TRY(*f->baseline ? path_format(path, sizeof path, e, "%s", f->baseline)
                     : path_format(path, sizeof path, e, "%.*s.baseline", (int)stem, plan));
    bool there = access(path, F_OK) == 0;
    enum status status = there ? baseline_read(b, path, e) : ST_OK;
    if (status == ST_DATA && f->update)
        *b = (struct baseline){0}; /* what is damaged is replaced */
    else
        TRY(status);
    TRY(file_write_check(path, e));
    TRY(name_folder(f->out, out, e));
    TRY(own_program(own, e));
    const struct plan_gate q = {.plan = plan,
                                .out = out,
                                .baseline = there && !f->update ? b : NULL,
                                .jobs = (int)f->jobs,
                                .quiet = !isatty(STDERR_FILENO),
                                .compare = request_of(f, f->against, own)};
    say_chosen(f, b, r->chosen, sizeof r->chosen);
    TRY(gate_plan(&q, r, e));
    bool red = gate_worst(r, &worst, &nothing) == ST_OK && worst == VERDICT_REGRESSED;
    bool keep = f->update || (!there && !red);
    enum status kept = told(ST_OK, keep ? keep_baseline(f, r, b, path, e) : ST_OK, e);
    const char *slash = strrchr(plan, '/'), *name = slash ? slash + 1 : plan;
    char text[PLAN_NAME_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)(stem - (size_t)(name - plan)), name);
    status = tell(f, r, text, e);
    return status == ST_OK ? kept : status;
}

static enum status serve(const struct gate_flags *f, struct error *e) {
    const struct gate_bench *bench;
    TRY(cli_refuse_others(f->cli, "gate --serve", " serve seconds delay ", e));
    const struct gate_bench run = {.name = f->serve, .config = f->serve};
    if (strchr(f->serve, '/'))
        bench = &run;
    else
        TRY(gate_bench_find(f->serve, &bench, e));
    return gate_serve(bench, f->seconds, f->delay, stdin, stdout, e);
}

static enum status run(int argc, char **argv, struct error *e) {
    struct gate_flags f;
    const struct flag_set set = {options, &f};
    const char *plan = NULL;
    struct cli cli = {.command = &command_gate, .sets = &set, .n_sets = 1, .positional = &plan, .max_positional = 1};
    f.cli = &cli;
    TRY(options_default(options, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (*f.serve) return serve(&f, e);
    struct baseline *b = calloc(1, sizeof *b);
    struct gate_result *r = calloc(1, sizeof *r);
    enum status status = b && r ? ST_OK : fail(e, ST_MEMORY, "no memory for a baseline");
    if (status == ST_OK)
        status = plan          ? gate_of_plan(&f, plan, b, r, e)
                 : *f.write    ? write_baseline(&f, b, e)
                 : f.self_test ? self_test(&f, b, e)
                               : compare(&f, b, r, e);
    free(b);
    free(r);
    return status;
}

const struct command command_gate = {
    .name = "gate",
    .usage = "gate PLAN | --baseline FILE [--accuracy] [--throughput] [--against PROGRAM] [flags]",
    .summary =
        "check that a plan's runs, or this build, are as good and fast as expected; exit 3: regressed, 4: inconclusive",
    .run = run};

/* cmd_bench.c - lrnn bench TASK: train the models of a profile, measure their speed, print the table, draw the
 * plots. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/perf/limit.h"
#include "harness/perf/speed.h"
#include "harness/plan/plan.h"
#include "harness/report/load.h"
#include "harness/report/plot.h"
#include "harness/report/report.h"
#include "harness/report/summary.h"
#include "harness/run/runner.h"
#include "harness/run/signals.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/machine_log.h"
#include "harness/store/record_csv.h"
#include "harness/store/record_files.h"
#include "kernels/lib/gemm.h"

#define MAX_RATES 16

struct bench_flags {
    char models[OPTION_TEXT * 4], rates[OPTION_TEXT];
    int64_t seeds, jobs, confirm;
    int protocol;
    double timeout, limit;
    bool retry_failed, dry_run, no_plots, no_speed, variants;
};

/* A bench's own options; `models` is longer than an option text and is read apart. */
#define AT(field) offsetof(struct bench_flags, field)
static const struct option bench_options[] = {
    {"seeds", OPT_INT, AT(seeds), "auto", 1, 100000, NULL, "seeds 1..n of every model; auto = the profile's", OPT_AUTO},
    {"confirm-seeds", OPT_INT, AT(confirm), "0", 0, 100000, NULL,
     "so many further seeds at the rate that validation chose, which alone are reported on; 0 = none", 0},
    {"protocol", OPT_CHOICE, AT(protocol), "val-mean", 0, 0, PROTOCOL_NAMES, "how a row's number is made of its runs",
     0},
    {"jobs", OPT_INT, AT(jobs), "auto", 1, 256, NULL, "runs in parallel; auto = one a core, one on a device", OPT_AUTO},
    {"limit", OPT_TIME, AT(limit), "auto", 1e-3, 1e9, NULL,
     "of training in all: every run has an equal share, turned into steps before it starts (limits.csv); auto = none",
     OPT_AUTO},
    {"timeout", OPT_TIME, AT(timeout), "0s", 0, 1e9, NULL, "kill a run after this time and make it a row; 0 = never",
     0},
    {"retry-failed", OPT_BOOL, AT(retry_failed), "no", 0, 0, NULL, "do runs again that were killed or failed", 0},
    {"dry-run", OPT_BOOL, AT(dry_run), "no", 0, 0, NULL, "list the runs and stop", 0},
    {"variants", OPT_BOOL, AT(variants), "no", 0, 0, NULL,
     "besides the task its published one-at-a-time changes, and the mean over all of them", 0},
    {"no-speed", OPT_BOOL, AT(no_speed), "no", 0, 0, NULL,
     "do not measure how fast the models are, which takes some seconds each and wants the machine alone", 0},
    {"no-plots", OPT_BOOL, AT(no_plots), "no", 0, 0, NULL, "write tables only", 0},
    {0}};

static const struct option extra[] = {
    {"models", OPT_TEXT_FIELD, 0, "the profile's", 0, 0, NULL,
     "blank-separated, each with its options, behind an @ flags of its own: 'bdlru:m=5 lstm@dim=64'", 0},
    {"profile", OPT_CHOICE, 0, "quick", 0, 0, "smoke quick paper; of MAD's tasks also mad hlru-paper",
     "sizes, grid and budget", 0},
    {"lr", OPT_TEXT_FIELD, 0, "the profile's", 0, 0, NULL, "learning rates of the grid, comma-separated", 0},
    {"c", OPT_TEXT_FIELD, 0, "", 0, 0, NULL, "config file of key=value lines; flags stand over it", 0},
    {0}};

struct bench {
    struct bench_flags flags;
    struct args args;
    char profile_name[OPTION_TEXT];
    const struct profile *profile;
    double rates[MAX_RATES];
    int n_rates;
    struct plan_request request;
    struct plan plan;
};

static enum status on_flag(void *context, const char *name, const char *value, bool *done, struct error *e) {
    struct bench *b = context;
    if (!strcmp(name, "seed"))
        return fail(e, ST_USAGE, "bench runs seeds 1..n: use --seeds n, or `lrnn train --seed` for one run");
    *done = true;
    if (!strcmp(name, "models")) return text_copy(value, b->flags.models, sizeof b->flags.models, e);
    if (!strcmp(name, "lr")) return text_copy(value, b->flags.rates, sizeof b->flags.rates, e);
    if (!strcmp(name, "profile")) return text_copy(value, b->profile_name, sizeof b->profile_name, e);
    if (plan_is_list(name, value)) return label_add(&b->request.axes, name, value, e); /* every run with each of them */
    *done = false;
    return args_note(&b->args, name, value, done, e);
}

static enum status parse_rates(struct bench *b, const char *text, struct error *e) {
    for (; *text; text += *text == ',') {
        char number[64];
        TRY(text_part(&text, ",", number, sizeof number, e));
        if (b->n_rates == MAX_RATES) return fail(e, ST_USAGE, "--lr lists more than %d rates", MAX_RATES);
        if (!parse_double(number, &b->rates[b->n_rates]) || b->rates[b->n_rates] < 0)
            return fail(e, ST_USAGE, "--lr: '%s' is not a learning rate; write for example --lr 1e-3,3e-3", number);
        b->n_rates++;
    }
    return b->n_rates ? ST_OK : fail(e, ST_USAGE, "--lr lists no rate");
}

static bool gives_length(const struct bench *b) {
    static const char *const lengths[] = {"epochs", "steps", "budget", "stop-after"};
    for (int i = 0; i < 4; i++)
        if (label_get(&b->args.given, lengths[i]) || label_get(&b->request.axes, lengths[i])) return true;
    return b->flags.limit > 0;
}

static enum status make_plan(struct bench *b, struct error *e) {
    b->request.args = &b->args;
    b->request.profile = b->profile;
    b->request.task = b->args.task;
    b->request.models = *b->flags.models ? b->flags.models : b->profile->models;
    b->request.rates = b->rates;
    b->request.n_rates = b->n_rates;
    b->request.seeds = b->flags.seeds ? b->flags.seeds : b->profile->seeds;
    b->request.own_length = gives_length(b);
    if (b->request.own_length && !label_get(&b->args.given, "stop-after")) b->args.config.stop_after = 0;
    b->request.variants = b->flags.variants || b->profile->variants;
    return plan_make(&b->plan, &b->request, e);
}

static bool has_several_tasks(const struct plan *plan) {
    for (int i = 1; i < plan->n; i++)
        if (strcmp(plan->setups[i]->task.name, plan->setups[0]->task.name)) return true;
    return false;
}

/* --- what comes before and after the runs ------------------------------------------------------------------------- */

/* GFLOP/s of one core, from a short GEMM: enough to say minutes, hours or days. */
static double gemm_rate(void) {
    enum { N = 512 };
    real *m = calloc(3 * N * N, sizeof *m);
    if (!m) return 50;
    double best = 1e9;
    for (int i = 0; i < 6; i++) {
        double start = time_now_s();
        real_gemm(false, false, N, N, N, 1, m, N, m + N * N, N, 0, m + 2 * N * N, N);
        double spent = time_now_s() - start;
        if (spent < best) best = spent;
    }
    free(m);
    return 2e-9 * N * N * N / best;
}

static void announce(const struct bench *b, int jobs) {
    double flops = 0, rate = 0.6 * gemm_rate(); /* a step reaches about this share of the GEMM rate */
    for (int i = 0; i < b->plan.n; i++) flops += b->plan.setups[i]->flops;
    double seconds = flops / (rate * 1e9) / jobs;
    const char *unit = seconds < 90 ? "seconds" : seconds < 5400 ? "minutes" : seconds < 129600 ? "hours" : "days";
    double per = seconds < 90 ? 1 : seconds < 5400 ? 60 : seconds < 129600 ? 3600 : 86400;
    fprintf(
        stderr,
        "%s%s, profile %s: %d runs, %d at a time, at most about %.1f %s on this machine (less with early stopping)\n",
        b->plan.setups[0]->task.name, has_several_tasks(&b->plan) ? " and others" : "", b->profile->name, b->plan.n,
        jobs, seconds / per, unit);
    fprintf(stderr, "records in %s/runs; stop it any time, the same command goes on\n", b->args.config.out);
}

/* Several tasks: their tables, then what they were run together for. */
static enum status print_tables(const struct bench *b, const struct record_set *set, const struct report_filter *filter,
                                bool several, struct error *e) {
    const char *out = b->args.config.out;
    TRY(report_print(&report_tables, set, filter, &format_term, out, stdout, e));
    if (!several) return ST_OK;
    putchar('\n');
    const struct report *report = b->request.variants ? &report_settings : &report_layers;
    return report_print(report, set, filter, &format_term, out, stdout, e);
}

/* What would keep the table from being printed afterwards is said before anything runs. */
static enum status check_folder(const char *out, struct error *e) {
    struct record_set set;
    TRY(records_mend(out, e));
    TRY(report_load(&set, out, e));
    records_free(&set);
    return ST_OK;
}

/* The filter of the plan's runs; its list is the caller's to free. */
static enum status plan_filter(const struct bench *b, struct report_filter *filter, const char ***runs,
                               struct error *e) {
    *runs = calloc((size_t)b->plan.n, sizeof **runs);
    if (!*runs) return fail(e, ST_MEMORY, "no memory for the table");
    for (int i = 0; i < b->plan.n; i++) (*runs)[i] = b->plan.setups[i]->run_id;
    *filter = (struct report_filter){.runs = *runs,
                                     .n_runs = b->plan.n,
                                     .task = has_several_tasks(&b->plan) ? NULL : b->plan.setups[0]->task.name,
                                     .protocol = (enum report_protocol)b->flags.protocol};
    return ST_OK;
}

/* Adds further seeds of the cell that a row's validation chose. */
static enum status add_fresh_seeds(struct bench *b, const struct report_row *row, struct error *e) {
    const char *cell = row->chosen[0]->run.cell_id;
    int i = 0;
    while (i < b->plan.n && strcmp(b->plan.setups[i]->cell_id, cell) != 0) i++;
    for (int64_t k = 1; k <= b->flags.confirm && i < b->plan.n; k++)
        TRY(plan_add_seed(&b->plan, b->plan.setups[i], b->request.seeds + k, e));
    return ST_OK;
}

/* --confirm-seeds: a rate that was chosen by some seeds is reported on by others, which nothing has chosen. */
static enum status plan_confirmation(struct bench *b, struct error *e) {
    struct record_set set;
    struct report_tables tables;
    struct report_filter filter;
    const char **runs = NULL;
    const char *out = b->args.config.out;
    TRY(plan_filter(b, &filter, &runs, e));
    enum status status = report_load(&set, out, e);
    if (status == ST_OK) {
        status = report_tables_make(&tables, &set, &filter, out, e);
        for (int i = 0; status == ST_OK && i < tables.n; i++)
            for (int k = 0; status == ST_OK && k < tables.list[i].n_rows; k++)
                status = add_fresh_seeds(b, &tables.list[i].rows[k], e);
        report_tables_free(&tables);
        records_free(&set);
    }
    free(runs);
    return status;
}

static enum status publish(struct bench *b, struct error *e) {
    const char *out = b->args.config.out;
    struct record_set set;
    struct machine machine;
    struct report_filter filter;
    const char **runs = NULL;
    bool several = has_several_tasks(&b->plan);
    TRY(plan_filter(b, &filter, &runs, e));
    filter.confirm = b->flags.confirm;
    machine_read(&machine);
    enum status status = records_mend(out, e);
    if (status == ST_OK) status = report_load(&set, out, e);
    if (status == ST_OK) {
        status = records_export_csv(&set, out, e);
        if (status == ST_OK) status = summary_write(&set, out, out, e);
        if (status == ST_OK) status = machines_export(out, &machine, e);
        if (status == ST_OK) status = print_tables(b, &set, &filter, several, e);
        if (status == ST_OK && !b->flags.no_plots && !several) status = report_plot(&set, &filter, NULL, out, out, e);
        records_free(&set);
    }
    free(runs);
    return status;
}

/* Steps that a time is turned into are timed when the runs are done, not to list them. */
static void list_runs(const struct bench *b) {
    for (int i = 0; i < b->plan.n; i++) {
        const struct setup *s = b->plan.setups[i];
        bool timed = b->flags.limit > 0 || s->config.budget > 0;
        printf("%s %s %s lr %g seed %" PRId64 " steps %" PRId64 "%s\n", s->run_id, s->task.name, s->model_label,
               s->config.lr, s->config.seed, s->steps, timed ? " or those of its time" : "");
    }
}

static enum status run_plan(struct bench *b, struct error *e) {
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int jobs = strcmp(b->args.config.device, "cpu") ? 1 : cores; /* runs that share a device slow each other down */
    struct runner_options options = {.jobs = b->flags.jobs ? (int)b->flags.jobs : jobs,
                                     .timeout_s = b->flags.timeout,
                                     .quiet = b->args.config.quiet,
                                     .retry_failed = b->flags.retry_failed};
    int own_threads = b->args.config.threads ? (int)b->args.config.threads : 1;
    if (b->flags.dry_run) {
        list_runs(b);
        return ST_OK;
    }
    TRY(place_probe(b->args.config.device, e));
    signals_install();
    TRY(make_folder(b->args.config.out, e));
    TRY(check_folder(b->args.config.out, e));
    TRY(limits_apply(&b->plan, b->flags.limit, options.jobs, own_threads, options.quiet, e));
    if (!options.quiet) announce(b, options.jobs < b->plan.n ? options.jobs : b->plan.n);
    TRY(runner_do(&b->plan, &options, e));
    if (b->flags.confirm) {
        TRY(plan_confirmation(b, e));
        TRY(runner_do(&b->plan, &options, e));
    }
    if (!b->flags.no_speed && !has_several_tasks(&b->plan)) /* a sweep asks for accuracies */
        TRY(bench_measure_speed(&b->plan, b->args.config.threads ? (int)b->args.config.threads : cores, options.quiet,
                                e));
    if (signal_received())
        return fail(e, (enum status)(128 + signal_received()),
                    "stopped before every speed was measured; the same command goes on");
    return publish(b, e);
}

static enum status read_arguments(struct bench *b, int argc, char **argv, struct error *e) {
    const char *words[1] = {NULL};
    const struct flag_set sets[] = {
        {bench_options, &b->flags}, {backbone_options, &b->args.config}, {config_options, &b->args.config}};
    struct cli cli = {.command = &command_bench,
                      .sets = sets,
                      .n_sets = 3,
                      .positional = words,
                      .max_positional = 1,
                      .extra = extra,
                      .on_flag = on_flag,
                      .context = b};
    TRY(options_default(bench_options, &b->flags, e));
    TRY(config_default(&b->args.config, e));
    snprintf(b->profile_name, sizeof b->profile_name, "quick");
    TRY(cli_parse(&cli, argc, argv, e));
    if (!words[0])
        return fail(e, ST_USAGE, "bench needs a task, for example `lrnn bench s3`; `lrnn list tasks` names them");
    char first[LABEL_TEXT];
    struct label label;
    TRY(text_copy(words[0], b->args.task, sizeof b->args.task, e));
    TRY(plan_first_task(b->args.task, first, e));
    TRY(label_parse(&label, "task", first, e));
    struct task_choice *task = calloc(1, sizeof *task);
    enum status status = task ? task_parse(task, first, e) : fail(e, ST_MEMORY, "no memory");
    if (status == ST_OK) status = profile_find(label_name(&label), task->task->suite, b->profile_name, &b->profile, e);
    free(task);
    TRY(status);
    TRY(args_apply(&b->args, b->profile->flags, e));
    snprintf(b->args.config.profile, sizeof b->args.config.profile, "%s", b->profile_name);
    return parse_rates(b, *b->flags.rates ? b->flags.rates : b->profile->rates, e);
}

static enum status run(int argc, char **argv, struct error *e) {
    struct bench *b = calloc(1, sizeof *b);
    if (!b) return fail(e, ST_MEMORY, "no memory");
    enum status status = read_arguments(b, argc, argv, e);
    if (status == ST_OK) status = make_plan(b, e);
    if (status == ST_OK) status = run_plan(b, e);
    plan_free(&b->plan);
    free(b);
    return status;
}

const struct command command_bench = {
    .name = "bench",
    .usage = "bench TASK [--models 'M M ...'] [--profile smoke|quick|paper] [flags]",
    .summary = "train the models of a profile, measure their speed, print the table, draw the plots",
    .run = run};

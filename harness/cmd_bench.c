/* cmd_bench.c - lrnn bench TASK: train the models of a profile, measure their speed, print the table, draw the plots. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/args.h"
#include "harness/bench.h"
#include "harness/report.h"
#include "kernels/gemm.h"
#include "kernels/kernel.h"

#define MAX_RATES 16

struct bench_flags {
    char models[OPTION_TEXT * 4], rates[OPTION_TEXT];
    int64_t seeds, jobs;
    double timeout, limit;
    bool retry_failed, dry_run, no_plots;
};

/* A bench's own options; `models` is longer than an option text and is read apart. */
#define AT(field) offsetof(struct bench_flags, field)
static const struct option bench_options[] = {
    {"seeds", OPT_INT, AT(seeds), "auto", 0, 100000, NULL, "seeds 1..n of every model; auto = the profile's", OPT_AUTO},
    {"jobs", OPT_INT, AT(jobs), "auto", 0, 256, NULL, "runs in parallel; auto = one a core, one on a device", OPT_AUTO},
    {"limit", OPT_TIME, AT(limit), "auto", 0, 1e9, NULL,
     "of training in all: the longest run goes first, the rest shares what is left; auto = the profile's, or none "
     "where "
     "--epochs, --steps or --budget say how long a run is",
     OPT_AUTO},
    {"timeout", OPT_TIME, AT(timeout), "0s", 0, 1e9, NULL, "kill a run after this time and make it a row; 0 = never",
     0},
    {"retry-failed", OPT_BOOL, AT(retry_failed), "no", 0, 0, NULL, "do runs again that were killed or failed", 0},
    {"dry-run", OPT_BOOL, AT(dry_run), "no", 0, 0, NULL, "list the runs and stop", 0},
    {"no-plots", OPT_BOOL, AT(no_plots), "no", 0, 0, NULL, "write tables only", 0},
    {0}};

static const struct option extra[] = {
    {"models", OPT_TEXT_FIELD, 0, "the profile's", 0, 0, NULL,
     "blank-separated, each with its options: 'bdlru:m=5 lstm'", 0},
    {"profile", OPT_CHOICE, 0, "quick", 0, 0, "smoke quick paper", "sizes, grid and budget", 0},
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
    struct plan plan;
};

static enum status on_flag(void *context, const char *name, const char *value, bool *done, struct error *e) {
    struct bench *b = context;
    char *into = !strcmp(name, "models")    ? b->flags.models
                 : !strcmp(name, "lr")      ? b->flags.rates
                 : !strcmp(name, "profile") ? b->profile_name
                                            : NULL;
    size_t room = !strcmp(name, "models") ? sizeof b->flags.models : OPTION_TEXT;
    if (!strcmp(name, "seed"))
        return fail(e, ST_USAGE, "bench runs seeds 1..n: use --seeds n, or `lrnn train --seed` for one run");
    if (!into) return args_note(&b->args, name, value, done, e);
    if (strlen(value) >= room) return fail(e, ST_USAGE, "--%s is longer than %zu bytes", name, room - 1);
    snprintf(into, room, "%s", value);
    *done = true;
    return ST_OK;
}

static enum status parse_rates(struct bench *b, const char *text, struct error *e) {
    while (*text) {
        char number[64];
        size_t n = strcspn(text, ",");
        snprintf(number, sizeof number, "%.*s", (int)n, text);
        if (b->n_rates == MAX_RATES) return fail(e, ST_USAGE, "--lr lists more than %d rates", MAX_RATES);
        if (!parse_double(number, &b->rates[b->n_rates]) || b->rates[b->n_rates] < 0)
            return fail(e, ST_USAGE, "--lr: '%s' is not a learning rate; write for example --lr 1e-3,3e-3", number);
        b->n_rates++;
        text += n + (text[n] == ',');
    }
    return b->n_rates ? ST_OK : fail(e, ST_USAGE, "--lr lists no rate");
}

/* NAME:options with the defaults of the profile added where the text does not set them itself. `has` says whether the
 * thing has such an option. */
static void with_defaults(const char *text, const char *defaults, const struct option *table, char *out, size_t size) {
    size_t used = (size_t)snprintf(out, size, "%s", text);
    bool any = strchr(text, ':') != NULL;
    for (const char *at = defaults; *at && used < size;) {
        size_t n = strcspn(at, ","), name = strcspn(at, "=");
        char key[OPTION_TEXT], needle[2][OPTION_TEXT + 8];
        snprintf(key, sizeof key, "%.*s", (int)name, at);
        snprintf(needle[0], sizeof needle[0], ":%s=", key);
        snprintf(needle[1], sizeof needle[1], ",%s=", key);
        if (option_find(table, key) && !strstr(text, needle[0]) && !strstr(text, needle[1])) {
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", any ? "," : ":", (int)n, at);
            any = true;
        }
        at += n + (at[n] == ',');
    }
}

/* FLOPs of a whole run, from a recorded graph. */
static double run_flops(const struct setup *s) {
    struct params params;
    struct graph graph;
    struct net net;
    struct model_choice choice = s->parsed;
    struct error e;
    struct graph_options options = {.training = true, .kernels = kernel_list()};
    struct net_shape shape = setup_net_shape(s, SPLIT_TRAIN);
    double flops = 0;
    size_t bytes;
    if (params_create(&params, &e) != ST_OK) return 0;
    if (graph_create(&graph, &options, &params, &e) == ST_OK &&
        net_build(&net, &graph, &s->config.net, &choice, &shape, &e) == ST_OK &&
        graph_measure(&graph, &bytes, &e) == ST_OK)
        flops = graph_cost(&graph, PASS_FORWARD).flops + graph_cost(&graph, PASS_BACKWARD).flops;
    graph_free(&graph);
    params_free(&params);
    return flops * (double)s->steps;
}

/* A profile's limit stands for the length of its runs: who says another length does not want it. */
static double bench_limit(const struct bench *b) {
    static const char *const lengths[] = {"epochs", "steps", "budget"};
    if (b->flags.limit > 0) return b->flags.limit;
    for (int i = 0; i < b->args.n_given; i++)
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++)
            if (!strcmp(b->args.given_name[i], lengths[j])) return 0;
    return b->profile->limit_s;
}

/* The limit of the whole bench is a budget of each run, and thereby part of what the run is: a record that the limit ended
 * does not pass for one of a bench without it. */
static enum status add_run(struct bench *b, const char *task, const char *model, double rate, int64_t seed,
                           struct error *e) {
    struct config config = b->args.config;
    double limit = bench_limit(b);
    config.lr = rate;
    config.seed = seed;
    if (limit > 0 && (config.budget == 0 || config.budget > limit)) config.budget = limit;
    struct setup *s = setup_make(&config, task, model, e);
    if (!s) return e->status;
    s->flops = run_flops(s);
    b->plan.setups[b->plan.n++] = s;
    return ST_OK;
}

static int count_words(const char *text) {
    int n = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        n++;
        text += strcspn(text, " ");
    }
    return n;
}

/* Every model x rate x seed, resolved, so that a bad size is said before anything runs. */
static enum status make_plan(struct bench *b, struct error *e) {
    const char *models = *b->flags.models ? b->flags.models : b->profile->models;
    int64_t seeds = b->flags.seeds ? b->flags.seeds : b->profile->seeds;
    int n_models = count_words(models);
    if (!n_models) return fail(e, ST_USAGE, "--models names no model; write for example --models 'bdlru:m=5 lstm'");
    b->plan.setups = calloc((size_t)n_models * (size_t)b->n_rates * (size_t)seeds, sizeof *b->plan.setups);
    struct task_choice *task = calloc(1, sizeof *task);
    enum status status = b->plan.setups && task ? task_parse(task, b->args.task, e) : fail(e, ST_FAIL, "no memory");
    char task_text[CONFIG_TEXT], model_text[CONFIG_TEXT];
    if (status == ST_OK)
        with_defaults(b->args.task, b->profile->task_options, task->task->options, task_text, sizeof task_text);
    free(task);
    for (const char *at = models + strspn(models, " "); status == ST_OK && *at; at += strspn(at, " ")) {
        char word[OPTION_TEXT * 2];
        struct model_choice choice;
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        at += n;
        status = model_parse(&choice, word, e);
        if (status == ST_OK)
            with_defaults(word, b->profile->model_options, choice.model->options, model_text, sizeof model_text);
        for (int r = 0; status == ST_OK && r < b->n_rates; r++)
            for (int64_t seed = 1; status == ST_OK && seed <= seeds; seed++)
                status = add_run(b, task_text, model_text, b->rates[r], seed, e);
    }
    return status;
}

/* --- what comes before and after the runs -------------------------------------------------------------------------------- */

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
    double seconds = flops / (rate * 1e9) / jobs, limit = bench_limit(b);
    if (limit > 0 && seconds > limit) seconds = limit;
    const char *unit = seconds < 90 ? "seconds" : seconds < 5400 ? "minutes" : seconds < 129600 ? "hours" : "days";
    double per = seconds < 90 ? 1 : seconds < 5400 ? 60 : seconds < 129600 ? 3600 : 86400;
    fprintf(stderr,
            "%s, profile %s: %d runs, %d at a time, at most about %.1f %s on this machine (less with early stopping)\n",
            b->plan.setups[0]->task.name, b->profile->name, b->plan.n, jobs, seconds / per, unit);
    fprintf(stderr, "records in %s/runs; stop it any time, the same command goes on\n", b->args.config.out);
}

static enum status publish(struct bench *b, struct error *e) {
    const char *out = b->args.config.out;
    struct record_set set;
    struct machine machine;
    const char **cells = calloc((size_t)b->plan.n, sizeof *cells);
    if (!cells) return fail(e, ST_FAIL, "no memory for the table");
    int n_cells = 0;
    for (int i = 0; i < b->plan.n; i++) {
        bool seen = false;
        for (int j = 0; j < n_cells; j++) seen |= !strcmp(cells[j], b->plan.setups[i]->cell_id);
        if (!seen) cells[n_cells++] = b->plan.setups[i]->cell_id;
    }
    struct report_filter filter = {.cells = cells, .n_cells = n_cells, .task = b->plan.setups[0]->task.name};
    machine_read(&machine);
    enum status status = records_load(&set, out, e);
    if (status == ST_OK) {
        status = records_export_csv(&set, out, e);
        if (status == ST_OK) status = machines_export(out, &machine, e);
        if (status == ST_OK) status = report_print(&set, &filter, REPORT_TERM, out, stdout, e);
        if (status == ST_OK) printf("%s\n", b->profile->note);
        if (status == ST_OK && !b->flags.no_plots) status = report_plot(&set, &filter, NULL, out, e);
        records_free(&set);
    }
    free(cells);
    return status;
}

static enum status run_plan(struct bench *b, struct error *e) {
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN), failed = 0, left = 0;
    int jobs = strcmp(b->args.config.device, "cpu") ? 1 : cores; /* runs that share a device slow each other down */
    struct runner_options options = {.jobs = b->flags.jobs ? (int)b->flags.jobs : jobs,
                                     .timeout_s = b->flags.timeout,
                                     .limit_s = bench_limit(b),
                                     .quiet = b->args.config.quiet,
                                     .retry_failed = b->flags.retry_failed};
    if (b->flags.dry_run) {
        for (int i = 0; i < b->plan.n; i++) {
            const struct setup *s = b->plan.setups[i];
            printf("%s %s %s lr %g seed %" PRId64 " steps %" PRId64 "\n", s->run_id, s->task.name, s->model_label,
                   s->config.lr, s->config.seed, s->steps);
        }
        return ST_OK;
    }
    TRY(place_probe(b->args.config.device, e));
    signals_install();
    TRY(make_folder(b->args.config.out, e));
    if (!options.quiet) announce(b, options.jobs < b->plan.n ? options.jobs : b->plan.n);
    TRY(runner_do(&b->plan, &options, &failed, &left, e));
    if (left > 0)
        fprintf(stderr, "%d of %d runs did not start within the limit of %.0f s; the same command does them\n", left,
                b->plan.n, options.limit_s);
    TRY(bench_measure_speed(&b->plan, b->args.config.threads ? (int)b->args.config.threads : cores, options.quiet, e));
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
    if (words[0]) snprintf(b->args.task, sizeof b->args.task, "%s", words[0]);
    if (!words[0])
        return fail(e, ST_USAGE, "bench needs a task, for example `lrnn bench s3`; `lrnn list tasks` names them");
    struct task_choice *task = calloc(1, sizeof *task);
    enum status status = task ? task_parse(task, b->args.task, e) : fail(e, ST_FAIL, "no memory");
    if (status == ST_OK) status = profile_find(task->task->suite, b->profile_name, &b->profile, e);
    free(task);
    TRY(status);
    TRY(args_apply(&b->args, b->profile->flags, e));
    snprintf(b->args.config.profile, sizeof b->args.config.profile, "%s", b->profile_name);
    return parse_rates(b, *b->flags.rates ? b->flags.rates : b->profile->rates, e);
}

static enum status run(int argc, char **argv, struct error *e) {
    struct bench *b = calloc(1, sizeof *b);
    if (!b) return fail(e, ST_FAIL, "no memory");
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

/* sweep.c - see sweep.h. */
#include "harness/pool/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/perf/speed.h"
#include "harness/plot/plot.h"
#include "harness/table/report.h"
#include "harness/table/summary.h"
#include "harness/run/checkpoint.h"
#include "harness/run/signals.h"
#include "harness/pool/misfits.h"
#include "harness/pool/population.h"
#include "harness/pool/runner.h"
#include "harness/store/files.h"
#include "harness/store/logs.h"
#include "harness/store/record_files.h"
#include "harness/store/shell.h"
#include "harness/pool/announce.h"
#include "harness/table/paper.h"
#include "harness/pool/planned.h"
#include "harness/pool/slurm.h"
#include "harness/run/sweep_list.h"

#define SPEED_SECONDS 1.0  /* seconds per measurement, after its warm-up */
#define SMOKE_SECONDS 0.05 /* likewise in profile smoke, which only shows that measuring works */

struct sweep {
    struct request *request;
    const struct sweep_options *options;
    struct plan plan;
    struct resolved resolved;
    const char *out;
    char out_word[4 * OPTION_TEXT]; /* `out`, quoted for a shell command */
};

/* --- before the runs ---------------------------------------------------------------------------------------------- */

/* Decides how many runs are done at a time, and in how many processes. On a device several runs share one process,
 * because a small model leaves the device idle, and several processes would only take turns. On the CPU each run has
 * its own process and as many cores as threads. */
static void share_work(const struct sweep *w, struct runner_options *r) {
    const struct sweep_options *o = w->options;
    bool device = strcmp(w->resolved.config.device, "cpu") != 0, own_processes = o->jobs || o->timeout > 0;
    int threads = w->resolved.config.threads ? (int)w->resolved.config.threads : 1;
    int together = omp_get_num_procs() > threads ? omp_get_num_procs() / threads : 1;
    r->jobs = o->jobs ? (int)o->jobs : device ? 1 : together;
    r->members = o->population ? (int)o->population : device && !own_processes ? POPULATION_AUTO : 1;
}

/* Finds the devices. Populations use all devices that the sweep may use; otherwise all runs use one device. */
static enum status find_devices(const struct sweep *w, struct runner_options *r, struct error *e) {
    const char *device = w->resolved.config.device;
    return r->members > 1 ? place_probe_all(device, &r->devices, e) : place_probe(device, e);
}

static int most_at_a_time(const struct runner_options *r) {
    return r->members > 1 ? r->members * (r->devices > 1 ? r->devices : 1) : r->jobs;
}

/* Returns the number by which a time limit for all runs is multiplied: the number of runs at a time. For a population
 * it is 1, because it is unknown how much its members slow each other down. */
static int shares_of(const struct runner_options *r) {
    return r->members > 1 ? 1 : r->jobs;
}

static void announce(const struct sweep *w, const struct runner_options *r) {
    const struct request *request = w->request;
    announce_runs(&(struct announced){.plan = &w->plan,
                                      .resolved = &w->resolved,
                                      .name = request->file.lines.n ? request->name : NULL,
                                      .retry = w->options->retry_failed,
                                      .most_at_a_time = most_at_a_time(r),
                                      .limit_s = w->options->limit,
                                      .shares = shares_of(r)});
}

/* Returns the threads for measuring speeds, which measures one model at a time: all cores, unless --threads says
 * otherwise. */
static int speed_threads(const struct sweep *w) {
    return w->resolved.config.threads ? (int)w->resolved.config.threads : omp_get_num_procs();
}

static double speed_seconds(const struct sweep *w) {
    return !strcmp(w->resolved.profile, "smoke") ? SMOKE_SECONDS : SPEED_SECONDS;
}

static void tell_speeds(const struct sweep *w) {
    announce_speeds(&w->plan, w->request->name, w->resolved.profile, speed_threads(w), speed_seconds(w));
}

static enum status measure_speeds(const struct sweep *w, struct error *e) {
    bool quiet = w->resolved.config.quiet;
    if (!quiet) tell_speeds(w);
    return speed_measure_plan(&w->plan, speed_threads(w), speed_seconds(w), quiet, e);
}

/* Refuses a folder in which the tables could not be written, before any run is done. */
static enum status check_folder(const char *out, struct error *e) {
    struct record_set set;
    char path[PATH_BYTES];
    TRY(records_export_check(out, e));
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"summary", "perf", "limits", "machines"};
        TRY(path_format(path, sizeof path, e, "%s/%s.csv", out, names[i]));
        TRY(own_file_check(path, e));
    }
    TRY(records_mend(out, e));
    TRY(report_load(&set, out, e));
    records_free(&set);
    return ST_OK;
}

static bool draws_plots(const struct sweep *w) {
    return !w->options->no_plots && !plan_has_several_tasks(&w->plan) && w->options->shards <= 1;
}

/* Refuses a folder in which the figures could not be drawn, before any run is done. */
static enum status check_figures(const struct sweep *w, struct error *e) {
    struct report_tables tables = {.list = calloc((size_t)w->plan.n, sizeof *tables.list)};
    bool lengths = false;
    if (!tables.list) return fail(e, ST_MEMORY, "no memory for %d runs", w->plan.n);
    for (int i = 0; i < w->plan.n; i++) {
        const struct spec *s = &w->plan.setups[i]->spec;
        int k = 0;
        while (k < tables.n && strcmp(tables.list[k].profile, s->config.profile) != 0) k++;
        if (k == tables.n)
            tables.list[tables.n++] = (struct report_table){.task = s->task.name, .profile = s->config.profile};
        lengths = lengths || s->task.shape.unequal_test;
    }
    enum status status = report_plot_check(&tables, lengths, w->out, e);
    free(tables.list);
    return status;
}

/* --- after the runs ----------------------------------------------------------------------------------------------- */

/* Makes the filter for the plan's runs. The caller frees its list. */
static enum status plan_filter(const struct sweep *w, struct report_filter *filter, const char ***runs,
                               struct error *e) {
    *runs = calloc((size_t)w->plan.n, sizeof **runs);
    if (!*runs) return fail(e, ST_MEMORY, "no memory for the table");
    for (int i = 0; i < w->plan.n; i++) (*runs)[i] = w->plan.setups[i]->id.run_id;
    *filter =
        (struct report_filter){.runs = *runs,
                               .n_runs = w->plan.n,
                               .task = plan_has_several_tasks(&w->plan) ? NULL : w->plan.setups[0]->spec.task.name,
                               .protocol = (enum report_protocol)w->options->protocol,
                               .together = "", /* the runs of one request share a table */
                               .tell_builds = true};
    return ST_OK;
}

/* Whether at least two of the plan's settings are of the same task, with other options or lengths. */
static bool has_settings(const struct sweep *w) {
    struct label first, other;
    const char *name = w->plan.setups[0]->spec.task.name;
    if (label_parse(&first, "task", name, NULL) != ST_OK) return false;
    for (int i = 1; i < w->plan.n; i++) {
        const char *next = w->plan.setups[i]->spec.task.name;
        if (strcmp(next, name) != 0 && label_parse(&other, "task", next, NULL) == ST_OK &&
            !strcmp(label_name(&first), label_name(&other)))
            return true;
    }
    return false;
}

/* Whether the printed table is the plan's. It is not if a time limit shortened the runs, or if further seeds confirm
 * them. */
static bool prints_plan(const struct sweep *w) {
    bool timed = w->options->limit > 0 || w->resolved.config.budget > 0;
    return w->request->file.lines.n && !timed && !w->options->confirm;
}

/* Writes the list of the runs. If the table is a plan's, the list also stores the request. */
static enum status write_list(const struct sweep *w, struct sweep_list_new *new, struct error *e) {
    struct label call;
    bool noted = prints_plan(w) && request_call(w->request, w->resolved.profile, &call, NULL) == ST_OK;
    return sweep_list_write(&w->plan, w->out, w->request->name, noted ? &call : NULL, new, e);
}

/* Prints the table of each task. If there are several tasks, it then prints the table over all of them. */
static enum status print_tables(const struct sweep *w, const struct record_set *set, const struct report_filter *filter,
                                struct error *e) {
    const struct sheet_format *format = w->resolved.config.json ? &format_json : &format_term;
    if (prints_plan(w)) return paper_print_request(w->request, w->out, format, stdout, e);
    TRY(report_print(&report_tables, set, filter, NULL, format, w->out, stdout, e));
    if (!plan_has_several_tasks(&w->plan) || w->resolved.config.json) return ST_OK;
    const struct report *report = w->resolved.variants ? &report_settings
                                  : has_settings(w)    ? &report_layers
                                                       : &report_across;
    struct error why; /* the runs done so far may be too few for this table */
    putchar('\n');
    enum status status = report_print(report, set, filter, NULL, &format_term, w->out, stdout, &why);
    if (status == ST_USAGE && report == &report_settings) { /* this table cannot show numbers of confirming seeds */
        struct report_filter by_best = *filter;
        by_best.protocol = PROTOCOL_BEST_OF_GRID;
        by_best.confirm = 0;
        status = report_print(report, set, &by_best, NULL, &format_term, w->out, stdout, &why);
    }
    return status == ST_OK || status == ST_DATA ? ST_OK : fail(e, status, "%s", why.text);
}

/* Adds seeds after `last` for the rate that validation chose for a row. */
static enum status add_fresh_seeds(struct sweep *w, const struct report_row *row, int64_t last, struct error *e) {
    const char *cell = row->chosen[0]->run.cell_id;
    int i = 0;
    while (i < w->plan.n && strcmp(w->plan.setups[i]->id.cell_id, cell) != 0) i++;
    for (int64_t k = 1; k <= w->options->confirm && i < w->plan.n; k++)
        TRY(plan_add_seed(&w->plan, w->plan.setups[i], last + k, e));
    return ST_OK;
}

/* Plans the runs of --confirm-seeds. Some seeds choose the rate; the other seeds, which had no part in this choice, are
 * reported. */
static enum status plan_confirmation(struct sweep *w, struct error *e) {
    struct record_set set;
    struct report_tables tables;
    struct report_filter filter;
    const char **runs = NULL;
    int64_t last = 0;
    for (int i = 0; i < w->plan.n; i++)
        if (w->plan.setups[i]->spec.config.seed > last) last = w->plan.setups[i]->spec.config.seed;
    TRY(plan_filter(w, &filter, &runs, e));
    enum status status = report_load(&set, w->out, e);
    if (status == ST_OK) {
        status = report_tables_make(&tables, &set, &filter, w->out, e);
        for (int i = 0; status == ST_OK && i < tables.n; i++)
            for (int k = 0; status == ST_OK && k < tables.list[i].n_rows; k++)
                status = add_fresh_seeds(w, &tables.list[i].rows[k], last, e);
        report_tables_free(&tables);
        records_free(&set);
    }
    free(runs);
    return status;
}

/* Numbers of the plan's runs that have a record: all, those without a result, and those that met NaN or infinity. */
struct outcome {
    int n, failed, not_finite;
};

static int by_id(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status count_outcome(const struct sweep *w, const struct record_set *set, struct outcome *o,
                                 struct error *e) {
    const char **ids = calloc((size_t)w->plan.n, sizeof *ids);
    if (!ids) return fail(e, ST_MEMORY, "no memory for %d runs", w->plan.n);
    for (int i = 0; i < w->plan.n; i++) ids[i] = w->plan.setups[i]->id.run_id;
    qsort(ids, (size_t)w->plan.n, sizeof *ids, by_id);
    *o = (struct outcome){0};
    for (int i = 0; i < set->n; i++) {
        const struct run_record *r = &set->list[i];
        const char *id = r->run.run_id;
        if (r->set_aside || r->again || !bsearch(&id, ids, (size_t)w->plan.n, sizeof *ids, by_id)) continue;
        o->n++;
        o->failed += run_failed(&r->run);
        o->not_finite += run_not_finite(&r->run);
    }
    free(ids);
    return ST_OK;
}

/* Decides the status of the sweep: an error if every run failed, or with --strict if a value was not finite. */
static enum status judge(const struct sweep *w, const struct outcome *o, struct error *e) {
    if (o->failed == o->n)
        return fail(e, ST_FAIL, "every one of the %d runs failed; lrnn report --out %s says how", o->n, w->out_word);
    if (!w->options->strict || o->not_finite == 0) return ST_OK;
    return fail(e, ST_FAIL, "--strict: NaN or infinity in %d of %d runs; lrnn report --out %s says where it began",
                o->not_finite, o->n, w->out_word);
}

/* Says where the results are, and which command to use next. */
static void tell_end(const struct sweep *w, bool plots) {
    const struct sweep_options *o = w->options;
    if (w->resolved.config.quiet || w->resolved.config.json) return;
    announce_end(&(struct ended){
        .request = w->request,
        .resolved = &w->resolved,
        .out = w->out,
        .protocol = o->protocol ? protocol_of((enum report_protocol)o->protocol)->name : NULL,
        .confirm = o->confirm,
        .task = o->confirm && !plan_has_several_tasks(&w->plan) ? w->plan.setups[0]->spec.task.name : NULL,
        .plan_table = prints_plan(w),
        .plots = plots,
        .no_plots = o->no_plots});
}

/* Adds this machine to machines.csv, because rows of other tables name it. */
static enum status export_machine(const struct sweep *w, struct error *e) {
    struct machine machine;
    machine_read(&machine);
    return machines_export(w->out, &machine, e);
}

static enum status export_all(const struct sweep *w, const struct record_set *set, struct error *e) {
    char *summary;
    size_t size;
    TRY(records_export_csv(set, w->out, e));
    TRY(summary_format(set, NULL, w->out, &summary, &size, e));
    enum status status = summary_write(summary, size, w->out, e);
    free(summary);
    TRY(status);
    return export_machine(w, e);
}

static enum status draw_plots(const struct sweep *w, const struct record_set *set, const struct report_filter *filter,
                              struct error *e) {
    bool plan = w->request->file.lines.n > 0;
    const struct plot_view view = {.plan = plan ? w->request->name : NULL, .profile = w->resolved.profile};
    struct report_filter drawn = *filter;
    if (plan) TRY(paper_protocol(w->request, w->resolved.profile, &drawn.protocol, e));
    return report_plot_view(set, &drawn, NULL, &view, w->out, w->out, e);
}

/* Writes and prints the tables and figures. `partial`: the sweep was stopped, and only finished runs are shown. */
static enum status publish(struct sweep *w, bool partial, struct error *e) {
    struct record_set set;
    struct report_filter filter;
    const char **runs = NULL;
    bool plots = draws_plots(w) && !partial;
    TRY(plan_filter(w, &filter, &runs, e));
    filter.confirm = partial ? 0 : w->options->confirm;
    enum status status = partial ? ST_OK : records_mend(w->out, e);
    if (status == ST_OK) status = report_load(&set, w->out, e);
    if (status == ST_OK) {
        struct outcome o;
        status = count_outcome(w, &set, &o, e);
        if (status == ST_OK && !partial) status = export_all(w, &set, e);
        if (status == ST_OK && o.n) status = print_tables(w, &set, &filter, e);
        if (status == ST_OK && plots) status = draw_plots(w, &set, &filter, e);
        if (status == ST_OK && !partial) tell_end(w, plots);
        if (status == ST_OK && !partial) status = judge(w, &o, e);
        records_free(&set);
    }
    free(runs);
    return status;
}

/* --- from first to last ------------------------------------------------------------------------------------------- */

/* Does the runs of --confirm-seeds. --force and --retry-failed do not apply to runs that this sweep has already
 * done. */
static enum status run_confirmation(struct sweep *w, struct runner_options *options, struct error *e) {
    int done = w->plan.n;
    TRY(plan_confirmation(w, e));
    for (int i = 0; i < done; i++) w->plan.setups[i]->spec.config.force = false;
    options->retry_failed = false;
    TRY(sweep_list_write(&w->plan, w->out, w->request->name, NULL, NULL, e));
    return runner_do(&w->plan, options, e);
}

static enum status run_plan(struct sweep *w, struct runner_options *options, struct error *e) {
    enum status status = runner_do(&w->plan, options, e);
    if (status == ST_OK && w->options->confirm && w->options->shards <= 1) status = run_confirmation(w, options, e);
    if (status != ST_FAIL && status <= 128) return status;
    /* the sweep was stopped or cannot write its output; show the runs that are done, if possible */
    struct error why;
    if (w->options->shards <= 1 && publish(w, true, &why) != ST_OK) fprintf(stderr, "lrnn: %s\n", why.text);
    return status;
}

/* Gives the status of the runs of a shard, which prints no tables. */
static enum status judge_shard(const struct sweep *w, struct error *e) {
    struct record_set set;
    struct outcome o;
    TRY(report_load(&set, w->out, e));
    enum status status = count_outcome(w, &set, &o, e);
    records_free(&set);
    return status == ST_OK ? judge(w, &o, e) : status;
}

static enum status finish(struct sweep *w, struct error *e) {
    const struct config *c = &w->resolved.config;
    if (w->options->shards > 1) {
        /* each machine that does a shard adds itself; only one process writes the tables */
        TRY(export_machine(w, e));
        if (!c->quiet)
            fprintf(stderr, "shard %" PRId64 "/%" PRId64 " is done; %s status --out %s has the whole\n",
                    w->options->shard, w->options->shards, shell_program(), w->out_word);
        return judge_shard(w, e);
    }
    bool table = plan_has_several_tasks(&w->plan) || w->request->file.lines.n; /* a table of accuracies */
    if (!w->options->no_speed && !table) TRY(measure_speeds(w, e));
    if (!signal_received()) return publish(w, false, e);
    struct error why; /* all runs are done */
    if (publish(w, true, &why) != ST_OK) fprintf(stderr, "lrnn: %s\n", why.text);
    return fail(e, (enum status)(128 + signal_received()),
                "stopped before every speed was measured; the same command goes on");
}

/* Does a plan that only measures speed: times each model, then prints the table. */
static enum status do_speeds(struct sweep *w, struct error *e) {
    const struct config *c = &w->resolved.config;
    const struct sheet_format *format = c->json ? &format_json : &format_term;
    TRY(place_probe(c->device, e));
    signals_install();
    TRY(make_folder(w->out, e));
    TRY(check_folder(w->out, e));
    TRY(measure_speeds(w, e));
    if (signal_received())
        return fail(e, (enum status)(128 + signal_received()),
                    "stopped before every speed was measured; the same command goes on");
    TRY(paper_print_request(w->request, w->out, format, stdout, e));
    tell_end(w, false);
    return ST_OK;
}

static enum status do_runs(struct sweep *w, struct error *e) {
    const struct config *c = &w->resolved.config;
    struct runner_options options = {.timeout_s = w->options->timeout,
                                     .quiet = c->quiet,
                                     .retry_failed = w->options->retry_failed,
                                     .goes_on = runner_goes_on(c->force, w->options->retry_failed)};
    share_work(w, &options);
    TRY(find_devices(w, &options, e));
    signals_install();
    if (w->options->shards > 1) signals_be_patient();
    TRY(make_folder(w->out, e));
    TRY(check_folder(w->out, e));
    if (draws_plots(w)) TRY(check_figures(w, e));
    TRY(limits_apply(&w->plan, w->options->limit, shares_of(&options), c->threads ? (int)c->threads : 1, options.quiet,
                     e));
    TRY(write_list(w, NULL, e)); /* a shard also writes the list of all runs */
    if (w->options->shards > 1) TRY(plan_keep_shard(&w->plan, w->options->shard, w->options->shards, e));
    if (!options.quiet) {
        announce(w, &options);
        fprintf(stderr, "records in %s/runs; stop it any time, the same command %s\n", w->out, options.goes_on);
    }
    TRY(run_plan(w, &options, e));
    return finish(w, e);
}

static enum status show_runs(struct sweep *w, struct error *e) {
    struct runner_options options = {0};
    share_work(w, &options);
    if (w->options->shards > 1) TRY(plan_keep_shard(&w->plan, w->options->shard, w->options->shards, e));
    if (!w->resolved.config.quiet && w->resolved.speed) tell_speeds(w);
    if (!w->resolved.config.quiet && !w->resolved.speed) announce(w, &options);
    if (!w->resolved.config.quiet && w->options->confirm)
        fprintf(stderr,
                "then %" PRId64
                " seeds more of each row, at the rate that validation will have chosen, not counted above\n",
                w->options->confirm);
    bool timed = w->options->limit > 0, retry = w->options->retry_failed;
    if (!w->resolved.speed) runner_order(w->plan.setups, w->plan.n);
    return w->resolved.config.json ? run_list_json(&w->plan, timed, retry, e)
                                   : run_list_print(&w->plan, &w->request->said, timed, retry, e);
}

/* --- as a cluster job ---------------------------------------------------------------------------------------- */

static enum status submit(struct sweep *w, struct error *e) {
    const struct sweep_options *o = w->options;
    struct slurm_array array = {.name = w->request->name,
                                .out = w->out,
                                .command = o->command,
                                .words = o->words,
                                .sbatch = o->sbatch,
                                .gres = o->gres,
                                .tasks = o->slurm,
                                .threads = w->resolved.config.threads,
                                .jobs =
                                    o->jobs || o->population || strcmp(w->resolved.config.device, "cpu") != 0 ? 1 : 0};
    struct runner_options shares = {0};
    int64_t id;
    if (o->slurm > w->plan.n)
        return fail(e, ST_USAGE, "--slurm %" PRId64 ": there are %d runs, so that some of the tasks would have none",
                    o->slurm, w->plan.n);
    share_work(w, &shares); /* how many runs each task does at a time */
    if (o->dry_run) return slurm_script(&array, stdout, e);
    struct sweep_list_new new;
    TRY(write_list(w, &new, e)); /* without the list, `lrnn status` could not show the job */
    enum status status = slurm_submit(&array, &id, e);
    if (id < 0) sweep_list_withdraw(&w->plan, w->out, w->request->name, &new);
    if (id > 0) printf("%" PRId64 "\n", id);
    TRY(status);
    if (!w->resolved.config.quiet)
        fprintf(stderr,
                "submitted: job %" PRId64 ", %" PRId64
                " tasks, %d runs; its script and what its tasks say in %s/slurm\n"
                "%s status %s --watch shows how far it is; the same command without --slurm prints the tables\n",
                id, o->slurm, w->plan.n, w->out, shell_program(), w->out_word);
    return ST_OK;
}

/* Makes the checks that do not depend on this machine, so that a run, a dry run and a cluster job refuse the same
 * requests. */
static enum status check_sweep(const struct sweep *w, struct error *e) {
    const struct sweep_options *o = w->options;
    const struct request *r = w->request;
    const struct config *c = &w->resolved.config;
    const bool asked[ASKED] = {
        [A_PLAN] = r->file.lines.n > 0,     [A_SPEED] = w->resolved.speed,
        [A_PROTOCOL] = o->protocol != 0,    [A_BEST_OF_GRID] = o->protocol == PROTOCOL_BEST_OF_GRID,
        [A_CONFIRM] = o->confirm > 0,       [A_JOBS] = o->jobs > 0,
        [A_POPULATION] = o->population > 1, [A_TIMEOUT] = o->timeout > 0,
        [A_SHARD] = o->shards > 1,          [A_SLURM] = o->slurm > 0,
        [A_NO_SLURM] = o->slurm == 0,       [A_SBATCH] = *o->sbatch != 0,
        [A_GRES] = *o->gres != 0,           [A_FORCE] = c->force,
        [A_RETRY] = o->retry_failed,        [A_LIMIT] = o->limit > 0,
        [A_BUDGET] = c->budget > 0};
    TRY(misfits_check(asked, r->name, e));
    if (r->file.lines.n) TRY(paper_cells_check(r, &w->resolved, e));
    if (o->shards <= 1 || o->shard <= w->plan.n) return ST_OK;
    return fail(e, ST_USAGE, "shard %" PRId64 " of %" PRId64 " has no run, for there are %d; take fewer shards",
                o->shard, o->shards, w->plan.n);
}

enum status sweep_do(struct request *request, const struct sweep_options *options, struct error *e) {
    struct sweep *w = calloc(1, sizeof *w);
    if (!w) return fail(e, ST_MEMORY, "no memory for a sweep");
    w->request = request;
    w->options = options;
    request->limited = options->limit > 0;
    enum status status = request_plan(request, &w->plan, &w->resolved, e);
    w->out = w->resolved.config.out;
    shell_word(w->out, w->out_word, sizeof w->out_word);
    if (status == ST_OK) status = check_sweep(w, e);
    if (status == ST_OK)
        status = options->print_config ? run_print_config(&w->resolved.study, w->plan.setups, w->plan.n, e)
                 : options->slurm      ? submit(w, e)
                 : options->dry_run    ? show_runs(w, e)
                                       : (w->resolved.speed ? do_speeds : do_runs)(w, e);
    plan_free(&w->plan);
    free(w);
    return status;
}

enum status shard_parse(const char *text, int64_t *shard, int64_t *shards, struct error *e) {
    char first[32];
    const char *at = text;
    if (text_part(&at, "/", first, sizeof first, NULL) == ST_OK && *at == '/' && parse_int64(first, shard) &&
        parse_int64(at + 1, shards) && *shards >= 1 && *shards <= PLAN_MOST_RUNS && *shard >= 1 && *shard <= *shards)
        return ST_OK;
    return fail(e, ST_USAGE, "--shard %.60s: expected i/n with 1 <= i <= n, for example 2/8", text);
}

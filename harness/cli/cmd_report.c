/* cmd_report.c - lrnn report and lrnn plot: tables and figures from the run records of a folder. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/cli/cli.h"
#include "harness/plot/gnuplot.h"
#include "harness/plot/plot.h"
#include "harness/site/site.h"
#include "harness/table/report.h"
#include "harness/table/summary.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/table/paper.h"

struct report_flags {
    char out[OPTION_TEXT], task[OPTION_TEXT], profile[OPTION_TEXT], where[OPTION_TEXT], what[OPTION_TEXT];
    char to[OPTION_TEXT], paper[OPTION_TEXT], columns[OPTION_TEXT], sort[OPTION_TEXT];
    char formats[OPTION_TEXT], html[OPTION_TEXT], history[OPTION_TEXT];
    int format, protocol;
    int64_t confirm;
    struct plot_view view;
    const struct cli *cli; /* that has read them */
};

#define AT(field) offsetof(struct report_flags, field)
#define COMMON                                                                                                         \
    {                                                                                                                  \
        "out",     OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records; nothing in it changes",     \
        OPT_FILLED},                                                                                                   \
        {"task",   OPT_TEXT_FIELD,                                                                                     \
         AT(task), "",                                                                                                 \
         0,        0,                                                                                                  \
         NULL,     "show only these tasks, named as in tables: 's3 s5'; default: all",                                 \
         0},                                                                                                           \
        {"profile",                                                                                                    \
         OPT_TEXT_FIELD,                                                                                               \
         AT(profile),                                                                                                  \
         "",                                                                                                           \
         0,                                                                                                            \
         0,                                                                                                            \
         NULL,                                                                                                         \
         "show only runs of this profile; custom = runs without a profile; default: all",                              \
         0},                                                                                                           \
    {                                                                                                                  \
        "where", OPT_TEXT_FIELD, AT(where), "", 0, 0, NULL,                                                            \
            "show only runs with these options: 'dim=64 model.m=2|3 lr=0.001'; default: all", 0                        \
    }

static const struct option report_options[] = {
    COMMON,
    {"format", OPT_CHOICE, AT(format), "term", 0, 0, SHEET_FORMAT_NAMES, "format of the report", 0},
    {"protocol", OPT_CHOICE, AT(protocol), "val-mean", 0, 0, PROTOCOL_NAMES, PROTOCOL_HELP, 0},
    {"confirm-seeds", OPT_INT, AT(confirm), "0", 0, 1e6, NULL,
     "report only the last N seeds, and choose the learning rate by the other seeds; 0 = use all seeds for both", 0},
    {"paper", OPT_TEXT_FIELD, AT(paper), "", 0, 0, NULL,
     "print the table of this plan (`lrnn list papers` names the plans): the paper's numbers, ours, and a verdict on "
     "each",
     OPT_FILLED},
    {"columns", OPT_TEXT_FIELD, AT(columns), "", 0, 0, NULL,
     "columns to show, by their headings: 'model,acc,published'; '+run' adds the runs' ids to the usual columns; "
     "default: the usual columns",
     0},
    {"sort", OPT_TEXT_FIELD, AT(sort), "", 0, 0, NULL,
     "sort rows by this column: 'acc' = largest value first, '-acc' = smallest value first; default: the report's own "
     "order",
     0},
    {"what", OPT_TEXT_FIELD, AT(what), "tables", 0, 0, NULL, "report to print; all reports are listed below", 0},
    {"html", OPT_TEXT_FIELD, AT(html), "", 0, 0, NULL,
     "write pages for a browser into this folder: an overview, tasks, mixers, runs, papers, and the history of "
     "`lrnn gate`",
     OPT_FILLED},
    {"history", OPT_TEXT_FIELD, AT(history), "auto", 0, 0, NULL,
     "for --html: file with the results of `lrnn gate`; auto = gate.jsonl in the folder of the records", OPT_FILLED},
    {"to", OPT_TEXT_FIELD, AT(to), "", 0, 0, NULL,
     "also write runs.csv, curves.csv, evals.csv and summary.csv of all records into this folder", OPT_FILLED},
    {0}};
static const struct option plot_options[] = {
    COMMON,
    {"to", OPT_TEXT_FIELD, AT(to), "", 0, 0, NULL, "folder of the figures; default: the folder of the records",
     OPT_FILLED},
    {"paper", OPT_TEXT_FIELD, AT(paper), "", 0, 0, NULL,
     "draw only the runs of this plan (`lrnn list papers` names the plans); the plan then sets --profile and --task",
     OPT_FILLED},
    {"x", OPT_CHOICE, AT(view.x), "auto", 0, 0, PLOT_X_NAMES,
     "horizontal axis. accuracy: steps (auto), tokens, time or epochs; cost: params (auto), state or flops", 0},
    {"y", OPT_CHOICE, AT(view.y), "acc", 0, 0, PLOT_Y_NAMES,
     "for accuracy: the task's metric on validation, the loss, or the accuracy of the longest test examples "
     "(--test-each)",
     0},
    {"log-x", OPT_BOOL, AT(view.log_x), "no", 0, 0, NULL, "for accuracy: logarithmic horizontal axis", 0},
    {"log-y", OPT_BOOL, AT(view.log_y), "no", 0, 0, NULL, "for accuracy: logarithmic vertical axis", 0},
    {"format", OPT_TEXT_FIELD, AT(formats), "svg,png", 0, 0, NULL,
     "file formats of the figures, comma-separated (svg png pdf)", 0},
    {0}};

static struct report_filter filter_of(const struct report_flags *f) {
    return (struct report_filter){.task = *f->task ? f->task : NULL,
                                  .profile = *f->profile ? f->profile : NULL,
                                  .where = *f->where ? f->where : NULL,
                                  .protocol = (enum report_protocol)f->protocol,
                                  .protocol_given = cli_given(f->cli, "protocol"),
                                  .confirm = f->confirm};
}

static enum status parse(struct cli *cli, struct report_flags *f, int argc, char **argv, struct error *e) {
    TRY(options_default(cli->sets->table, f, e));
    f->cli = cli;
    return cli_parse(cli, argc, argv, e);
}

#define NO_RECORDS "no run records under %s/runs; `lrnn bench s3` makes some"

/* Loads the records; ST_DATA if there are none. */
static enum status load(struct record_set *set, const char *out, struct error *e) {
    TRY(report_load(set, out, e));
    if (set->n) return ST_OK;
    records_free(set);
    return fail(e, ST_DATA, NO_RECORDS, out);
}

static const char *report_name(const void *list, int i) {
    return ((const struct report *const *)list)[i]->name;
}

static enum status find_report(const char *name, const struct report **report, struct error *e) {
    const struct report *const *list = report_list();
    int n = 0, index;
    while (list[n]) n++;
    TRY(name_choose("report", name, n, report_name, list, &index, e));
    *report = list[index];
    return ST_OK;
}

/* Refuses flags without effect in the report. */
static enum status refuse_useless(const struct report_flags *f, const struct report *report, struct error *e) {
    static const char *const flags[] = {"protocol", "confirm-seeds"};
    for (int i = 0; i < 2 && report->has_no_use_for; i++) {
        char name[64];
        snprintf(name, sizeof name, " %s ", flags[i]);
        if (cli_given(f->cli, flags[i]) && strstr(report->has_no_use_for, name))
            return fail(e, ST_USAGE, "report --what %s has no use for --%s; leave it out", report->name, flags[i]);
    }
    return ST_OK;
}

static void print_reports(FILE *f) {
    fprintf(f, "\nreports\n");
    for (const struct report *const *r = report_list(); *r; r++)
        if (!(*r)->hidden) cli_print_pair(f, 11, (*r)->name, (*r)->help);
}

static struct paper_choice paper_of(const struct report_flags *f) {
    return (struct paper_choice){f->paper, f->task, f->profile, f->where};
}

/* Prints the table of a plan. Flags that choose runs or the protocol are refused, since the plan decides them. */
static enum status run_paper(const struct report_flags *f, struct error *e) {
    const struct sheet_view view = {f->columns, f->sort};
    const struct paper_choice choice = paper_of(f);
    TRY(cli_refuse_others(f->cli, "report --paper", " paper out profile task where columns sort format ", e));
    return paper_print(&choice, f->out, &view, sheet_formats()[f->format], stdout, e);
}

/* Loads the history of gates, with a line on each of its broken ones. Only one that is named must be there. */
static enum status load_history(const struct report_flags *f, struct history *h, struct printed *broken,
                                struct error *e) {
    char path[PATH_BYTES];
    bool named = strcmp(f->history, "auto") != 0;
    TRY(path_format(path, sizeof path, e, "%s%s%s", named ? f->history : f->out, named ? "" : "/",
                    named ? "" : HISTORY_FILE));
    if (named && access(path, F_OK) != 0)
        return fail(e, ST_DATA, "--history %s: %s; `lrnn gate` writes one", path, strerror(errno));
    TRY(printed_begin(broken, "a page", e));
    return printed_end(broken, history_read(h, path, broken->f, e), "a page", e);
}

/* A report of many pages. Damaged records and broken lines of the history are named there. */
static enum status run_html(const struct report_flags *f, struct error *e) {
    struct record_set set = {0};
    struct report_filter filter = filter_of(f);
    struct printed broken, broken_lines = {0};
    struct history history = {0};
    int files = 0;
    double bytes = 0;
    TRY(cli_refuse_others(f->cli, "report --html", " html history out profile task where protocol confirm-seeds ", e));
    TRY(printed_begin(&broken, "a page", e));
    enum status status = report_load_sound(&set, f->out, broken.f, e);
    TRY(printed_end(&broken, status, "a page", e));
    status = load_history(f, &history, &broken_lines, e);
    if (status == ST_OK) fprintf(stderr, "%s%s", broken.text, broken_lines.text);
    if (status == ST_OK && !set.n && !history.n) status = fail(e, ST_DATA, NO_RECORDS, f->out);
    struct site_request request = {&set, &filter, f->out, f->html, broken.text, &history, broken_lines.text};
    if (status == ST_OK) status = site_write(&request, &files, &bytes, e);
    records_free(&set);
    history_free(&history);
    free(broken_lines.text);
    free(broken.text);
    if (status == ST_OK) printf("%d files, %.1f MB; begin at %s/index.html\n", files, bytes / 1e6, f->html);
    return status;
}

/* Checks that the tables can be written, before anything is written. */
static enum status check_targets(const char *to, struct error *e) {
    if (!*to) return ST_OK;
    TRY(records_export_check(to, e));
    return summary_check(to, e);
}

/* Prints the report, and writes the tables of all records with the report's protocol. The tables are formatted first,
 * so that their errors come before any output. Rows with too few seeds for `confirm` are no error there. */
static enum status print_and_write(const struct report_flags *f, const struct report *report,
                                   const struct record_set *set, struct error *e) {
    const struct report_filter filter = filter_of(f), all = {.protocol = filter.protocol,
                                                             .confirm = filter.confirm,
                                                             .confirm_if_enough = true};
    const struct sheet_view view = {f->columns, f->sort};
    char *summary = NULL;
    size_t size = 0;
    if (*f->to) TRY(summary_format(set, &all, f->out, &summary, &size, e));
    enum status status = report_print(report, set, &filter, &view, sheet_formats()[f->format], f->out, stdout, e);
    if (status == ST_OK && *f->to) status = make_folder(f->to, e);
    if (status == ST_OK && *f->to) status = summary_write(summary, size, f->to, e);
    if (status == ST_OK && *f->to) status = records_export_csv(set, f->to, e);
    free(summary);
    return status;
}

static enum status run_report(int argc, char **argv, struct error *e) {
    struct report_flags flags = {0};
    struct record_set set;
    const struct report *report;
    const char *folder = NULL;
    const struct flag_set sets[] = {{report_options, &flags}};
    struct cli cli = {.command = &command_report,
                      .sets = sets,
                      .n_sets = 1,
                      .positional = &folder,
                      .max_positional = 1,
                      .more_help = print_reports};
    TRY(parse(&cli, &flags, argc, argv, e));
    TRY(cli_folder(&cli, &folder, flags.out, e));
    if (folder != flags.out) TRY(text_copy(folder, flags.out, sizeof flags.out, e));
    if (*flags.paper) return run_paper(&flags, e);
    if (*flags.html) return run_html(&flags, e);
    TRY(find_report(flags.what, &report, e));
    if (report->make_plan)
        return fail(e, ST_USAGE, "report --what %s: name the plan by --paper PLAN; `lrnn list papers` has them",
                    report->name);
    TRY(refuse_useless(&flags, report, e));
    TRY(check_targets(flags.to, e));
    TRY(load(&set, flags.out, e));
    enum status status = print_and_write(&flags, report, &set, e);
    records_free(&set);
    return status;
}

static enum status plot_paper(const struct report_flags *f, const char *kind, const char *to, struct error *e) {
    const struct paper_choice choice = paper_of(f);
    return paper_plot(&choice, f->out, to, kind, &f->view, e);
}

/* Draws plots of a folder. Plots of speeds need no records. */
static enum status plot_folder(const struct report_flags *f, const char *kind, const char *to, struct error *e) {
    struct record_set set;
    struct report_filter filter = filter_of(f);
    TRY(plot_is_of_speeds(kind) ? report_load(&set, f->out, e) : load(&set, f->out, e));
    enum status status = report_plot_view(&set, &filter, kind, &f->view, f->out, to, e);
    records_free(&set);
    return status;
}

/* Refuses flags that a kind of plot does not use. Plots of speeds without a plan always draw every row of perf.csv. An
 * unknown kind is refused later. */
static enum status check_plot_flags(const struct report_flags *f, const char *kind, struct error *e) {
    const char *axes = kind ? plot_axis_flags(kind) : NULL;
    char what[64], takes[128];
    if (!axes) return ST_OK;
    bool all_rows = plot_is_of_speeds(kind) && !*f->paper;
    snprintf(what, sizeof what, "plot %s", kind);
    snprintf(takes, sizeof takes, " out to format %spaper %s", all_rows ? "" : "task profile where ", axes);
    return cli_refuse_others(f->cli, what, takes, e);
}

static enum status run_plot(int argc, char **argv, struct error *e) {
    struct report_flags flags = {0};
    const char *kind = NULL;
    const struct flag_set sets[] = {{plot_options, &flags}};
    struct cli cli = {.command = &command_plot, .sets = sets, .n_sets = 1, .positional = &kind, .max_positional = 1};
    TRY(parse(&cli, &flags, argc, argv, e));
    TRY(check_plot_flags(&flags, kind, e));
    TRY(figure_formats_parse(flags.formats, &flags.view.formats, e));
    const char *to = *flags.to ? flags.to : flags.out;
    flags.view.told = stderr;
    return *flags.paper ? plot_paper(&flags, kind, to, e) : plot_folder(&flags, kind, to, e);
}

const struct command command_report = {.name = "report",
                                       .usage =
                                           "report [FOLDER] [--what REPORT | --paper PLAN] [--format FORMAT] [flags]",
                                       .summary = "print a report of the run records",
                                       .run = run_report};
const struct command command_plot = {
    .name = "plot",
    .usage = "plot [accuracy|table|length|position|position-map|cost|heat|throughput] [flags]",
    .summary = "draw curves, the table as bars, accuracy by length or against cost, all runs, throughput",
    .run = run_plot};

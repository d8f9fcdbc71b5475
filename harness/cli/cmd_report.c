/* cmd_report.c - lrnn report and lrnn plot: tables and figures from the run records of a folder. */
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/report/report.h"
#include "harness/store/record_csv.h"
#include "harness/store/record_files.h"

struct report_flags {
    char out[OPTION_TEXT], task[OPTION_TEXT], profile[OPTION_TEXT];
    int format, what;
};

#define AT(field) offsetof(struct report_flags, field)
#define COMMON                                                                                                         \
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records", 0},                               \
        {"task", OPT_TEXT_FIELD, AT(task), "", 0, 0, NULL, "only this task, as the table calls it", 0}, {              \
        "profile", OPT_TEXT_FIELD, AT(profile), "", 0, 0, NULL, "only runs of this profile", 0                         \
    }

static const struct option report_options[] = {
    COMMON,
    {"format", OPT_CHOICE, AT(format), "term", 0, 0, "term md latex csv", "of the table", 0},
    {"what", OPT_CHOICE, AT(what), "tables", 0, 0, "tables layers settings",
     "tables: one a task; layers: fewest layers that reach 0.9 at each length; settings: a task's changes and their "
     "mean",
     0},
    {0}};
static const struct option plot_options[] = {COMMON, {0}};

static struct report_filter filter_of(const struct report_flags *f) {
    return (struct report_filter){.task = *f->task ? f->task : NULL, .profile = *f->profile ? f->profile : NULL};
}

/* Parses, loads the records and says when there are none. */
static enum status load(const struct command *command, const struct option *table, struct report_flags *f, int argc,
                        char **argv, const char **word, struct record_set *set, struct error *e) {
    const struct flag_set sets[] = {{table, f}};
    struct cli cli = {
        .command = command, .sets = sets, .n_sets = 1, .positional = word, .max_positional = word ? 1 : 0};
    TRY(options_default(table, f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    TRY(records_load(set, f->out, e));
    if (set->n) return ST_OK;
    records_free(set);
    return fail(e, ST_DATA, "no run records under %s/runs; `lrnn bench s3` makes some", f->out);
}

static enum status run_report(int argc, char **argv, struct error *e) {
    struct report_flags flags = {0};
    struct record_set set;
    TRY(load(&command_report, report_options, &flags, argc, argv, NULL, &set, e));
    struct report_filter filter = filter_of(&flags);
    enum status status = records_export_csv(&set, flags.out, e);
    if (status == ST_OK)
        status = report_print_what(&set, &filter, (enum report_what)flags.what, (enum report_format)flags.format,
                                   flags.out, stdout, e);
    records_free(&set);
    return status;
}

static enum status run_plot(int argc, char **argv, struct error *e) {
    struct report_flags flags = {0};
    struct record_set set;
    const char *kind = NULL;
    TRY(load(&command_plot, plot_options, &flags, argc, argv, &kind, &set, e));
    struct report_filter filter = filter_of(&flags);
    enum status status = report_plot(&set, &filter, kind, flags.out, e);
    records_free(&set);
    return status;
}

const struct command command_report = {
    .name = "report",
    .usage = "report [--what tables|layers|settings] [--format term|md|latex|csv] [flags]",
    .summary = "print the table of the run records, export the CSV files",
    .run = run_report};
const struct command command_plot = {
    .name = "plot",
    .usage = "plot [accuracy|table|length] [flags]",
    .summary = "draw accuracy over steps, the table as bars, accuracy by length (SVG and PNG)",
    .run = run_plot};

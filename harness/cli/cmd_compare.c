/* cmd_compare.c - lrnn compare A B: compares two folders of records, the runs of a folder with two values of an option,
 * or two rows, paired by seed. */
#include <stdio.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/table/compare.h"

struct flags {
    char by[OPTION_TEXT]; /* "key=value,value"; "": folders are compared */
    char rows[OPTION_TEXT], task[OPTION_TEXT], profile[OPTION_TEXT], where[OPTION_TEXT], out[OPTION_TEXT];
    int format;
};

static const struct option options[] = {
    {"by", OPT_TEXT_FIELD, offsetof(struct flags, by), "", 0, 0, NULL,
     "compare runs that differ only in this option: precision=fp32,bf16 or model.m=1,2; from one folder or two", 0},
    {"rows", OPT_TEXT_FIELD, offsetof(struct flags, rows), "", 0, 0, NULL,
     "compare two rows of a table of --out, each at its learning rate: --rows 'bdlru:m=3' deltaproduct", 0},
    {"task", OPT_TEXT_FIELD, offsetof(struct flags, task), "", 0, 0, NULL, "for --rows: only these tasks", 0},
    {"profile", OPT_TEXT_FIELD, offsetof(struct flags, profile), "", 0, 0, NULL,
     "for --rows: only runs of this profile; custom = runs without a profile; default: all runs", 0},
    {"where", OPT_TEXT_FIELD, offsetof(struct flags, where), "", 0, 0, NULL,
     "for --rows: only runs with these options: 'dim=64 norm=layer'", 0},
    {"out", OPT_TEXT_FIELD, offsetof(struct flags, out), "results", 0, 0, NULL, "for --rows: folder of run records",
     OPT_FILLED},
    {"format", OPT_CHOICE, offsetof(struct flags, format), "term", 0, 0, SHEET_FORMAT_NAMES, "format of the table", 0},
    {0}};

/* Splits "key=value,value" in place into its three parts. ST_USAGE. */
static enum status read_option(char *text, struct comparison *of, struct error *e) {
    if (!*text) return ST_OK;
    char *value = strchr(text, '='), *other = value ? strchr(value, ',') : NULL;
    if (!other || value == text || other == value + 1 || !other[1] || strchr(other + 1, ','))
        return fail(e, ST_USAGE, "--by '%s': expected an option and two of its values, as precision=fp32,bf16", text);
    *value = *other = '\0';
    of->key = text, of->values[0] = value + 1, of->values[1] = other + 1;
    return ST_OK;
}

static enum status print(const struct comparison *of, int format, struct error *e) {
    struct sheets sheets = {0};
    enum status status = compare_runs(&sheets, of, e);
    if (status == ST_OK) status = sheets_write(&sheets, sheet_formats()[format], stdout, e);
    sheets_free(&sheets);
    return status;
}

/* Loads the records; ST_DATA if there are none. */
static enum status load(struct record_set *set, const char *folder, const char *side, struct error *e) {
    TRY(records_load(set, folder, e));
    if (set->n) return ST_OK;
    records_free(set);
    return fail(e, ST_DATA, "compare: no run records under %s/runs; the %s folder has to be the --out of runs", folder,
                side);
}

/* Compares two rows: the value of --rows and the next word, or both words in the value. */
static enum status run_rows(struct flags *f, const struct cli *cli, struct error *e) {
    char *blank = cli->n_positional ? NULL : strchr(f->rows, ' ');
    const char *words[2] = {f->rows, blank ? blank + strspn(blank, " ") : cli->n_positional ? cli->positional[0] : ""};
    if (blank) *blank = '\0';
    if (!*words[1] || (blank && strchr(words[1], ' ')) || cli->n_positional > 1)
        return fail(e, ST_USAGE,
                    "compare --rows takes two rows, for example --rows 'bdlru:m=3' deltaproduct; the folder is --out "
                    "FOLDER");
    TRY(cli_refuse_others(cli, "compare --rows", " rows task profile where out format ", e));
    struct record_set set;
    struct report_tables tables = {.n = 0};
    struct sheets sheets = {0};
    /* all profiles in one table, since each row has its own rate anyway */
    const struct report_filter filter = {.task = *f->task ? f->task : NULL,
                                         .where = *f->where ? f->where : NULL,
                                         .profile = *f->profile ? f->profile : NULL,
                                         .together = *f->profile ? NULL : ""};
    TRY(report_load(&set, f->out, e));
    enum status status = report_tables_make(&tables, &set, &filter, f->out, e);
    const struct sheet_format *format = sheet_formats()[f->format];
    if (status == ST_OK) {
        status = compare_rows(&sheets, &tables, words, format->for_programs, e);
        report_tables_free(&tables);
    }
    if (status == ST_OK) status = sheets_write(&sheets, format, stdout, e);
    sheets_free(&sheets);
    records_free(&set);
    return status;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct flags f;
    const char *names[2];
    char sides[2][2 * OPTION_TEXT];
    struct record_set sets[2];
    const struct flag_set flags[] = {{options, &f}};
    struct comparison of = {0};
    struct cli cli = {
        .command = &command_compare, .sets = flags, .n_sets = 1, .positional = names, .max_positional = 2};
    TRY(options_default(options, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (*f.rows) return run_rows(&f, &cli, e);
    TRY(cli_refuse_others(&cli, "compare without --rows", " by format ", e));
    of.for_programs = sheet_formats()[f.format]->for_programs;
    TRY(read_option(f.by, &of, e));
    if (cli.n_positional == 0 || (cli.n_positional == 1 && !of.key))
        return fail(e, ST_USAGE, "compare: say which two folders of run records, or one folder and --by OPTION");
    enum status status = ST_OK;
    int loaded = 0;
    for (; loaded < cli.n_positional && status == ST_OK; loaded++)
        status = load(&sets[loaded], names[loaded], loaded ? "second" : "first", e);
    if (status != ST_OK) loaded--;
    for (int i = 0; i < 2 && status == ST_OK; i++) {
        of.sets[i] = &sets[i < loaded ? i : 0];
        of.names[i] = loaded == 1 ? sides[i] : names[i];
        if (of.key) snprintf(sides[i], sizeof sides[i], "%s=%s", of.key, of.values[i]);
    }
    if (status == ST_OK) status = print(&of, f.format, e);
    while (loaded-- > 0) records_free(&sets[loaded]);
    return status;
}

const struct command command_compare = {.name = "compare",
                                        .usage = "compare FOLDER [FOLDER] [--by OPTION=A,B] | --rows A B [--task TASK]",
                                        .summary = "compare two folders of run records, two values of an option, or "
                                                   "two rows of a table, seed by seed; print differences "
                                                   "with intervals",
                                        .run = run};

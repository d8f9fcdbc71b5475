/* cmd_compare.c - lrnn compare A B: two folders of run records, paired seed by seed. */
#include "harness/cli/cli.h"
#include "harness/report/compare.h"

struct flags {
    int format;
};

/* " term md latex csv ..." */
static const char format_names[] =
#define FORMAT(name) " " #name
#include "harness/report/formats.def"
#undef FORMAT
    ;

static const struct option options[] = {
    {"format", OPT_CHOICE, offsetof(struct flags, format), "term", 0, 0, format_names + 1, "of the table", 0}, {0}};

static enum status print(const struct record_set sets[2], const char *const names[2], const struct flags *f,
                         struct error *e) {
    struct sheets sheets = {0};
    enum status status = compare_folders(&sheets, &sets[0], &sets[1], names, e);
    if (status == ST_OK) status = sheets_write(&sheets, sheet_formats()[f->format], stdout, e);
    sheets_free(&sheets);
    return status;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct flags f;
    const char *names[2];
    struct record_set sets[2];
    const struct flag_set flags[] = {{options, &f}};
    struct cli cli = {
        .command = &command_compare, .sets = flags, .n_sets = 1, .positional = names, .max_positional = 2};
    TRY(options_default(options, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (cli.n_positional < 2) return fail(e, ST_USAGE, "compare: say which two folders of run records");
    TRY(records_load(&sets[0], names[0], e));
    enum status status = records_load(&sets[1], names[1], e);
    if (status == ST_OK) {
        status = print(sets, names, &f, e);
        records_free(&sets[1]);
    }
    records_free(&sets[0]);
    return status;
}

const struct command command_compare = {
    .name = "compare",
    .usage = "compare FOLDER FOLDER [--format FORMAT]",
    .summary = "two folders of run records, paired seed by seed: differences with intervals",
    .run = run};

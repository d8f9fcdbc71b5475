/* cmd_man.c - lrnn man: the man page lrnn(1), made of the same tables as --help. `make install` installs it. */
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/store/version.h"

static const char before[] =
    ".SH NAME\n"
    "lrnn \\- trains and benchmarks structured linear recurrent networks on the tasks of their papers\n"
    ".SH SYNOPSIS\n"
    ".B lrnn\n"
    ".I COMMAND\n"
    "\\&...\n"
    ".SH DESCRIPTION\n"
    "Every training is a run with a record of its own, one JSON file below OUT/runs; tables and plots are made of the\n"
    "records. Data go to standard output, talk goes to standard error. A flag is written\n"
    ".B \\-\\-name value\n"
    "or\n"
    ".BR \\-\\-name=value ;\n"
    "one that is yes or no needs no value.\n"
    ".SH COMMANDS\n";

static const char behind[] =
    ".SH FILES\n"
    ".TP\n"
    ".I results\n"
    "The output folder unless \\-\\-out names another: runs/ has a record per run, weights/ and checkpoints/ what it\n"
    "leaves and goes on from; claims/ says who does a run, sweeps/ which runs a sweep has, slurm/ what its job is and\n"
    "says, rerun/ what \\-\\-keep has kept. Tables: runs.csv, curves.csv, evals.csv, summary.csv, perf.csv, "
    "limits.csv,\n"
    "machines.csv; and the plots.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n"
    ".B LRNN_CACHE\n"
    "The folder of imported data sets; else lrnn below XDG_CACHE_HOME, else below .cache of HOME.\n"
    ".TP\n"
    ".B NO_COLOR\n"
    "Where it is set and not empty, nothing is bold; TERM=dumb also keeps lines from being written over.\n"
    ".TP\n"
    ".B OMP_NUM_THREADS\n"
    "Threads of a run or a measurement that no \\-\\-threads gives a number; it changes no result.\n"
    ".SH EXIT STATUS\n";

static enum status run(int argc, char **argv, struct error *e) {
    struct cli cli = {.command = &command_man};
    TRY(cli_parse(&cli, argc, argv, e));
    printf(".TH LRNN 1 \"\" \"lrnn %s\"\n", build_info()->version);
    fputs(before, stdout);
    for (const struct command *const *c = cli_commands(); *c; c++) {
        char name[128], help[] = HELP_MAN_WORD;
        if ((*c)->hidden) continue;
        snprintf(name, sizeof name, "%s", (*c)->name);
        enum status status = (*c)->run(2, (char *[]){name, help, NULL}, e);
        if (status != ST_HELP && status != ST_OK) return status;
    }
    fputs(behind, stdout);
    for (const struct exit_code *c = cli_exit_codes; c->code; c++) printf(".TP\n.B %s\n%s\n", c->code, c->meaning);
    return ST_OK;
}

const struct command command_man = {
    .name = "man",
    .usage = "man",
    .summary = "print the man page: lrnn man >lrnn.1",
    .run = run,
};

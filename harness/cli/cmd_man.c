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
    "The output folder unless \\-\\-out names another: runs/, weights/, checkpoints/, claims/, sweeps/, runs.csv,\n"
    "curves.csv, evals.csv, summary.csv, perf.csv, plots.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n"
    ".B LRNN_CACHE\n"
    "The folder of imported data sets; else lrnn below XDG_CACHE_HOME, else below .cache of HOME.\n"
    ".SH EXIT STATUS\n"
    "0 done; 1 the run or the machine failed; 2 a usage error or impossible sizes; 3 the gate found a regression; 4 "
    "it\n"
    "could not decide; 5 data missing or corrupt; 6 a device is missing, or memory was not to be had; 130 and 143\n"
    "stopped, and the same command goes on.\n";

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
    return ST_OK;
}

const struct command command_man = {
    .name = "man",
    .usage = "man",
    .summary = "the man page, for man: lrnn man >lrnn.1",
    .run = run,
};

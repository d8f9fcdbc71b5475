/* cmd_status.c - lrnn status: how far the sweeps of a folder are, and who does what. */
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/run/signals.h"
#include "harness/sweep/status.h"

#define WATCH_EVERY 5 /* seconds */

struct flags {
    char out[OPTION_TEXT];
    bool watch;
};

#define AT(field) offsetof(struct flags, field)
static const struct option options[] = {
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records, which is only read", 0},
    {"watch", OPT_BOOL, AT(watch), "no", 0, 0, NULL, "print it again every 5 seconds, until all is done", 0},
    {0}};

static enum status run(int argc, char **argv, struct error *e) {
    struct flags flags;
    const char *folder = NULL;
    const struct flag_set sets[] = {{options, &flags}};
    struct cli cli = {
        .command = &command_status, .sets = sets, .n_sets = 1, .positional = &folder, .max_positional = 1};
    int left;
    TRY(options_default(options, &flags, e));
    TRY(cli_parse(&cli, argc, argv, e));
    const char *out = folder ? folder : flags.out;
    TRY(status_print(out, stdout, &left, e));
    if (!flags.watch) return ST_OK;
    signals_install();
    while (left && !signal_received()) {
        fflush(stdout);
        sleep(WATCH_EVERY);
        if (isatty(STDOUT_FILENO)) fputs("\033[H\033[2J", stdout);
        TRY(status_print(out, stdout, &left, e));
    }
    if (!left || !signal_received()) return ST_OK;
    return fail(e, (enum status)(128 + signal_received()), "stopped watching with %d runs left", left);
}

const struct command command_status = {.name = "status",
                                       .usage = "status [FOLDER] [--watch]",
                                       .summary = "how far the sweeps of a folder are, and who does which run",
                                       .run = run};

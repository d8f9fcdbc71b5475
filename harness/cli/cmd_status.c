/* cmd_status.c - lrnn status: how far the sweeps of a folder are, and who does what. */
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/cli/cli.h"
#include "harness/run/signals.h"
#include "harness/pool/planned.h"

#define WATCH_EVERY 5 /* seconds */

struct flags {
    char out[OPTION_TEXT];
    bool watch;
};

#define AT(field) offsetof(struct flags, field)
static const struct option options[] = {
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records, which is only read", OPT_FILLED},
    {"watch", OPT_BOOL, AT(watch), "no", 0, 0, NULL, "print it again every 5 seconds, until all runs are done", 0},
    {0}};

/* Until all is done, a signal comes or nobody reads it any more, which main says. */
static enum status watch(const char *out, int left, struct error *e) {
    signals_install();
    while (left && !signal_received() && fflush(stdout) == 0) {
        sleep(WATCH_EVERY);
        if (terminal_has_codes(stdout)) fputs("\033[H\033[2J", stdout);
        TRY(status_print(out, stdout, &left, e));
    }
    if (!left || !signal_received()) return ST_OK;
    return fail(e, (enum status)(128 + signal_received()), "stopped watching with %d run%s left", left,
                left == 1 ? "" : "s");
}

static enum status run(int argc, char **argv, struct error *e) {
    struct flags flags;
    const char *folder = NULL;
    const struct flag_set sets[] = {{options, &flags}};
    struct cli cli = {
        .command = &command_status, .sets = sets, .n_sets = 1, .positional = &folder, .max_positional = 1};
    int left;
    TRY(options_default(options, &flags, e));
    TRY(cli_parse(&cli, argc, argv, e));
    TRY(cli_folder(&cli, &folder, flags.out, e));
    TRY(status_print(folder, stdout, &left, e));
    return flags.watch ? watch(folder, left, e) : ST_OK;
}

const struct command command_status = {.name = "status",
                                       .usage = "status [FOLDER] [--watch]",
                                       .summary = "how far the sweeps of a folder are, and who does which run",
                                       .run = run};

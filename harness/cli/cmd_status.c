/* cmd_status.c - lrnn status and lrnn top: the progress of a folder's sweeps, the processes at work, and the progress
 * of their runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/cli/cli.h"
#include "harness/pool/planned.h"
#include "harness/run/signals.h"
#include "harness/sheet/sheet.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"

#define WATCH_EVERY 5.0  /* seconds, of status --watch */
#define READ_SHARE  0.05 /* most share of a core for re-reading a large folder */
#define PAGE_WIDTH  110  /* columns of the page */

struct flags {
    char out[OPTION_TEXT], html[OPTION_TEXT];
    bool watch;
    double every;
};

#define AT(field) offsetof(struct flags, field)
#define OUT                                                                                                            \
    {                                                                                                                  \
        "out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records; nothing in it changes",         \
            OPT_FILLED                                                                                                 \
    }
static const struct option status_options[] = {
    OUT,
    {"watch", OPT_BOOL, AT(watch), "no", 0, 0, NULL, "print again every 5 seconds until all runs are done", 0},
    {0}};

static const struct option top_options[] = {
    OUT,
    {"every", OPT_TIME, AT(every), "2s", 0.1, 3600, NULL, "time between two updates", 0},
    {"html", OPT_TEXT_FIELD, AT(html), "", 0, 0, NULL,
     "write an HTML page that reloads itself into this file; the terminal then shows nothing", OPT_FILLED},
    {0}};

/* Writes the lines as an HTML page that reloads itself, except the last page. */
static enum status write_page(const char *path, char *lines, double every, bool last, struct error *e) {
    struct printed page;
    char now[32];
    TRY(printed_begin(&page, path, e));
    time_now_text(now, sizeof now);
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
          page.f);
    if (!last) fprintf(page.f, "<meta http-equiv=\"refresh\" content=\"%.0f\">\n", fmax(1, ceil(every)));
    fputs("<title>lrnn top</title>\n<style>\n:root { color-scheme: light dark; }\n"
          "body { margin: 1rem; font: 15px/1.4 system-ui, sans-serif; }\n"
          "pre { font: 14px/1.4 ui-monospace, monospace; white-space: pre-wrap; }\n</style>\n</head>\n<body>\n<main>\n"
          "<h1>Runs in progress</h1>\n<pre tabindex=\"0\" aria-label=\"sweeps and runs\">\n",
          page.f);
    for (char *line = lines, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        print_html_text(page.f, line);
        fputc('\n', page.f);
    }
    fprintf(page.f, "</pre>\n<p>%s %s</p>\n</main>\n</body>\n</html>\n", last ? "Ended" : "As of", now);
    return printed_write(&page, ST_OK, path, e);
}

/* Shows the folder once. look NULL: as plain lines for programs. */
static enum status show(const struct flags *flags, const char *out, const struct run_look *look, bool again,
                        struct status_left *left, struct error *e) {
    struct printed lines;
    TRY(printed_begin(&lines, "the runs in progress", e));
    enum status status = printed_end(&lines, status_print(out, look, lines.f, left, e), "the runs in progress", e);
    if (status == ST_OK && *flags->html)
        status = write_page(flags->html, lines.text, flags->every, !left->runs && !left->working, e);
    if (status == ST_OK && !*flags->html) {
        if (again && terminal_has_codes(stdout)) fputs("\033[H\033[2J", stdout);
        fputs(lines.text, stdout);
    }
    free(lines.text);
    return status;
}

static void wait_for(double seconds) {
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(fmod(seconds, 1) * 1e9)};
    nanosleep(&t, NULL); /* a signal ends it */
}

/* Shows the folder repeatedly until all runs are done, a signal comes, or the output is closed, which main reports. The
 * terminal's size may change. */
static enum status watch(const struct flags *flags, const char *out, bool top, struct error *e) {
    struct status_left left;
    struct run_look look = {.width = PAGE_WIDTH, .utf8 = *flags->html || run_look_utf8()};
    signals_install();
    for (bool again = false;; again = true) {
        double begin = time_now_s();
        if (!*flags->html) look.width = terminal_width(stdout), look.height = terminal_height(stdout);
        TRY(show(flags, out, top ? &look : NULL, again || top, &left, e));
        bool one_look = top && !*flags->html && !isatty(fileno(stdout));
        if (one_look || (!left.runs && !left.working) || signal_received() || fflush(stdout) != 0) break;
        wait_for(fmax(flags->every, (time_now_s() - begin) / READ_SHARE));
        if (signal_received()) break;
    }
    if (!signal_received()) return ST_OK;
    return fail(e, (enum status)(128 + signal_received()), "stopped watching with %d run%s left", left.runs,
                left.runs == 1 ? "" : "s");
}

/* Reads the flags of one of the two commands, and the folder. */
static enum status read_line(const struct command *command, const struct option *table, struct flags *flags,
                             const char **folder, int argc, char **argv, struct error *e) {
    const struct flag_set set = {table, flags};
    struct cli cli = {.command = command, .sets = &set, .n_sets = 1, .positional = folder, .max_positional = 1};
    *flags = (struct flags){.every = WATCH_EVERY};
    TRY(options_default(table, flags, e));
    TRY(cli_parse(&cli, argc, argv, e));
    return cli_folder(&cli, folder, flags->out, e);
}

static enum status run_status(int argc, char **argv, struct error *e) {
    struct flags flags;
    const char *folder = NULL;
    struct status_left left;
    TRY(read_line(&command_status, status_options, &flags, &folder, argc, argv, e));
    return flags.watch ? watch(&flags, folder, false, e) : show(&flags, folder, NULL, false, &left, e);
}

static enum status run_top(int argc, char **argv, struct error *e) {
    struct flags flags;
    const char *folder = NULL;
    TRY(read_line(&command_top, top_options, &flags, &folder, argc, argv, e));
    return watch(&flags, folder, true, e);
}

const struct command command_status = {
    .name = "status",
    .usage = "status [FOLDER] [--watch]",
    .summary = "print how many runs of a folder's benches are done, and which process trains which run",
    .run = run_status};

const struct command command_top = {
    .name = "top",
    .usage = "top [FOLDER] [--html FILE]",
    .summary = "show the runs in progress with loss curve, learning rate and time left, updated all the time",
    .run = run_top};

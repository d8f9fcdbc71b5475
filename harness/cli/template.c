/* template.c - a command to copy: prints its word, or a greeting. To make a copy your own:
 *
 *  1. cp harness/cli/template.c harness/cli/cmd_NAME.c, replace "template" by NAME, take .hidden away, and add the line
 *     COMMAND(NAME) to harness/cli/commands.def. `lrnn --help` lists it and `lrnn NAME --help` prints its flags.
 *  2. .usage is one line, .summary says what it does; write this banner.
 *  3. Flags are a struct and its option table: name, type, default, bounds, help. The flags of a run are such tables
 *     too (harness/study/config.h); several tables can be read together.
 *  4. Data goes to stdout, messages to stderr. An error is one sentence in *e, with ST_USAGE, ST_DATA or ST_FAIL, which
 *     becomes the exit code. Nothing is half-written.
 *  5. The work itself belongs into the other rooms, where tests can call it. A command only turns words into calls. */
#include "harness/cli/cli.h"

#include <stdio.h>

struct template_flags {
    int64_t times;
};

static const struct option options[] = {
    {"times", OPT_INT, offsetof(struct template_flags, times), "1", 1, 1000, NULL, "how often it is said", 0}, {0}};

static enum status run(int argc, char **argv, struct error *e) {
    struct template_flags flags = {0};
    const char *word = "hello";
    const struct flag_set sets[] = {{options, &flags}};
    struct cli cli = {
        .command = &command_template, .sets = sets, .n_sets = 1, .positional = &word, .max_positional = 1};
    TRY(options_default(options, &flags, e));
    TRY(cli_parse(&cli, argc, argv, e));
    for (int64_t i = 0; i < flags.times; i++) printf("%s\n", word);
    return ST_OK;
}

const struct command command_template = {
    .name = "template",
    .usage = "template [WORD] [flags]",
    .summary = "print a word: a file to copy",
    .hidden = true,
    .run = run,
};

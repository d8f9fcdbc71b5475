/* cmd_help.c - lrnn help [COMMAND|NAME] [WHAT]: what `lrnn COMMAND --help` prints, or `lrnn info NAME`. */
#include <string.h>

#include "core/label.h"
#include "harness/cli/cli.h"

static enum status run(int argc, char **argv, struct error *e) {
    const char *names[2] = {NULL, NULL};
    struct cli cli = {.command = &command_help, .positional = names, .max_positional = 2};
    TRY(cli_parse(&cli, argc, argv, e));
    char program[] = "lrnn", help[] = "--help", words[2][LABEL_TEXT];
    if (cli.n_positional == 0) return cli_main(2, (char *[]){program, help, NULL}, e);
    for (int i = 0; i < cli.n_positional; i++) TRY(text_copy(names[i], words[i], sizeof words[i], e));
    const struct command *const *c = cli_commands();
    while (*c && strcmp((*c)->name, words[0]) != 0) c++;
    if (names[1] && !(*c && (*c)->subs))
        return fail(e, ST_USAGE, "help: '%.100s' is one word too many; usage: lrnn %s", names[1], command_help.usage);
    if (!*c) return command_info.run(2, (char *[]){words[0], words[0], NULL}, e);
    if (!names[1]) return (*c)->run(2, (char *[]){words[0], help, NULL}, e);
    return (*c)->run(3, (char *[]){words[0], words[1], help, NULL}, e);
}

const struct command command_help = {.name = "help",
                                     .usage = "help [COMMAND|NAME] [WHAT]",
                                     .summary = "explain a command, a model, a task, an op, a plan or a paper",
                                     .run = run};

/* cmd_help.c - lrnn help [COMMAND|NAME]: what `lrnn COMMAND --help` prints, or `lrnn info NAME`. */
#include <string.h>

#include "harness/cli/cli.h"

static enum status run(int argc, char **argv, struct error *e) {
    const char *names[2] = {NULL, NULL};
    struct cli cli = {.command = &command_help, .positional = names, .max_positional = 2};
    TRY(cli_parse(&cli, argc, argv, e));
    char program[] = "lrnn", help[] = "--help", words[2][128];
    if (cli.n_positional == 0) return cli_main(2, (char *[]){program, help, NULL}, e);
    for (int i = 0; i < cli.n_positional; i++) snprintf(words[i], sizeof words[i], "%.127s", names[i]);
    for (const struct command *const *c = cli_commands(); *c; c++) {
        if (strcmp((*c)->name, words[0]) != 0) continue;
        if (cli.n_positional == 1) return (*c)->run(2, (char *[]){words[0], help, NULL}, e);
        return (*c)->run(3, (char *[]){words[0], words[1], help, NULL}, e);
    }
    return command_info.run(2, (char *[]){words[0], words[0], NULL}, e);
}

const struct command command_help = {.name = "help",
                                     .usage = "help [COMMAND|NAME]",
                                     .summary = "what a command, a model, a task, an op or a plan is",
                                     .run = run};

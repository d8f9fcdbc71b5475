/* cli.h - the command line: subcommands in one table, flags read from option tables.
 *
 * Grammar: lrnn COMMAND POSITIONAL... --flag value | --flag=value; a yes/no flag needs no value ("--json"); -c FILE
 * reads key=value lines (harness/study/config.h). Data goes to stdout, talk to stderr. */
#ifndef LRNN_HARNESS_CLI_CLI_H
#define LRNN_HARNESS_CLI_CLI_H

#include <jansson.h>

#include "core/option.h"

struct command {
    const char *name;    /* "train" */
    const char *usage;   /* "train TASK MODEL [flags]" */
    const char *summary; /* one line */
    /* argv[0] = the command's name. The status is the process's exit code; an error with an empty text has already been
     * told on stderr. */
    enum status (*run)(int argc, char **argv, struct error *e);
    bool hidden;                /* the template: works like the others, but is not listed by help */
    const struct command *subs; /* of a group ("perf"), whose run calls command_group; ends with a run that is NULL */
};

/* One file a command: harness/cli/cmd_NAME.c defines `const struct command command_NAME`, listed in commands.def. */
#define COMMAND(name) extern const struct command command_##name;
#include "harness/cli/commands.def"
#undef COMMAND

const struct command *const *cli_commands(void); /* NULL-terminated */

/* Runs the command that argv[1] names, or prints what `lrnn`, `lrnn --help` and `lrnn --version` print. ST_USAGE: no
 * such command, with the nearest one. */
enum status cli_main(int argc, char **argv, struct error *e);

/* For a command that is a group: runs the sub-command that argv[1] names. Their names are of two words ("perf op"). */
enum status command_group(const struct command *group, int argc, char **argv, struct error *e);

/* Exit codes (core/status.h), in the words of help, of the man page and of docs/design.md. */
struct exit_code {
    const char *code, *meaning;
};
extern const struct exit_code cli_exit_codes[]; /* ends with a code that is NULL */

/* Prints "  NAME   what it is" as wide as the stream's terminal: the second column begins after `width` + 3. */
void cli_print_pair(FILE *f, int width, const char *name, const char *text);

/* Word that `lrnn man` calls a command with for its section of the man page; a reader says --help. */
#define HELP_MAN_WORD "--help=man"

struct flag_set {
    const struct option *table;
    void *object;
};

#define CLI_MOST_FLAGS 128 /* given on one command line */

/* Reads argv[1..argc) into the objects, whose defaults the caller has set. Positionals are handed to *positional (at
 * most max_positional). A flag may be given once; one of one letter may be written with one dash; "--" ends the flags.
 * Errors ST_USAGE: unknown flag (nearest name among all sets), missing value, bad value, too many words, an empty word.
 * --help prints usage, summary and the flags of the sets with default and range to stdout, HELP_MAN_WORD all of them
 * for troff: ST_HELP.
 * on_flag, if not NULL, sees every (name, value) of a known flag first and sets *done for those it has dealt with (-c,
 * lists). */
struct cli {
    const struct command *command;
    const struct flag_set *sets;
    int n_sets;
    const char **positional;
    int max_positional, n_positional; /* n_positional is set */
    const struct option *extra;       /* flags that on_flag takes, for their help; or NULL */
    const char *short_flag;           /* "jobs", a number: the flag that -j 2 and -j2 stand for; or NULL */
    /* Whether a profile says something of a flag, whose default help then does not call its own; or NULL: of none. */
    bool (*profile_sets)(const char *flag);
    const char *common;  /* " dim lr ": the flags that --help lists, of which `--help all` lists all; NULL: all */
    const char *without; /* " seed profile ": flags of the sets that on_flag refuses: no help; or NULL */
    enum status (*on_flag)(void *context, const char *name, const char *value, bool *done, struct error *e);
    void *context;
    const char *const *headings; /* in --help: one per set, NULL: it goes on with what is above; or NULL */
    void (*more_help)(FILE *f);  /* what --help prints after the flags; or NULL */
    bool alone;                  /* a program of its own: no "lrnn" before its usage */
    /* Is set: the flags that stand on the line. */
    const struct option *given[CLI_MOST_FLAGS];
    int n_given;
};
enum status cli_parse(struct cli *cli, int argc, char **argv, struct error *e);

/* Whether the flag of that name stood on the line. */
bool cli_given(const struct cli *cli, const char *name);

/* A flag that does nothing is not ignored. takes: " out task ", what `what` makes use of. ST_USAGE: another one stood
 * on the line. */
enum status cli_refuse_others(const struct cli *cli, const char *what, const char *takes, struct error *e);

/* Serves a command whose word FOLDER says what its flag --out says: *folder, NULL without the word, becomes `out`, the
 * flag's value. ST_USAGE: both are given. */
enum status cli_folder(const struct cli *cli, const char **folder, const char *out, struct error *e);

/* Prints the object in one line and releases it. ST_MEMORY: it is NULL, or there is none to print it; ST_FAIL: it
 * cannot be written. */
enum status cli_print_json(json_t *line, struct error *e);

/* Sets the number of OpenMP threads; 0 leaves OpenMP's own choice, one per core. Returns the number in use. */
int cli_threads(int64_t wanted);

#endif

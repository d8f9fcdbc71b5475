/* cli.h - the command line: subcommands in one table, flags read from option tables.
 *
 * Grammar: lrnn COMMAND POSITIONAL... --flag value | --flag=value; a yes/no flag needs no value ("--json"); -c FILE
 * reads key=value lines (harness/study/config.h). Data goes to stdout, messages to stderr. */
#ifndef LRNN_HARNESS_CLI_CLI_H
#define LRNN_HARNESS_CLI_CLI_H

#include <jansson.h>

#include "core/option.h"

struct command {
    const char *name;    /* "train" */
    const char *usage;   /* "train TASK MODEL [flags]" */
    const char *summary; /* one line */
    /* argv[0] is the command's name. The status becomes the exit code; an error with an empty text has already been
     * printed. */
    enum status (*run)(int argc, char **argv, struct error *e);
    bool hidden;                /* for the template: it works, but help does not list it */
    const struct command *subs; /* of a group ("perf"), whose run calls command_group; ends with run == NULL */
};

/* One file a command: harness/cli/cmd_NAME.c defines `const struct command command_NAME`, listed in commands.def. */
#define COMMAND(name) extern const struct command command_##name;
#include "harness/cli/commands.def"
#undef COMMAND

const struct command *const *cli_commands(void); /* NULL-terminated */

/* Runs the command that argv[1] names, or prints the output of `lrnn`, `lrnn --help` or `lrnn --version`. ST_USAGE: no
 * such command; suggests the nearest. */
enum status cli_main(int argc, char **argv, struct error *e);

/* Runs the sub-command that argv[1] names. Sub-commands have names of two words ("perf op"). */
enum status command_group(const struct command *group, int argc, char **argv, struct error *e);

/* Exit codes (core/status.h) as explained in help, the man page and docs/design.md. */
struct exit_code {
    const char *code, *meaning;
};
extern const struct exit_code cli_exit_codes[]; /* ends with code == NULL */

/* Prints "  NAME   what it is", wrapped at the terminal's width; the second column begins after `width` + 3. */
void cli_print_pair(FILE *f, int width, const char *name, const char *text);

/* Flag with which `lrnn man` asks a command for its section of the man page. */
#define HELP_MAN_WORD "--help=man"

struct flag_set {
    const struct option *table;
    void *object;
};

#define CLI_MOST_FLAGS 128 /* most flags on a command line */

/* cli_parse reads argv[1..argc) into the objects, whose defaults the caller has set. Positional words go to
 * `positional` (at most max_positional). A flag may be given once; a one-letter flag may have one dash; "--" ends the
 * flags. Errors ST_USAGE: unknown flag (suggests the nearest), missing or bad value, too many words, an empty word.
 * --help prints usage, summary and the flags with default and range to stdout; HELP_MAN_WORD prints all flags as troff:
 * both return ST_HELP. on_flag, if not NULL, gets every (name, value) of a known flag first, and sets *done for the
 * flags that it has handled (-c, lists). */
struct cli {
    const struct command *command;
    const struct flag_set *sets;
    int n_sets;
    const char **positional;
    int max_positional, n_positional; /* n_positional is set */
    const struct option *extra;       /* flags that on_flag handles, listed here for help; or NULL */
    const char *short_flag;           /* "jobs": the flag whose short form is -j 2 or -j2; or NULL */
    /* Whether profiles set a flag, for which help then does not claim a fixed default; NULL: no flag. */
    bool (*profile_sets)(const char *flag);
    const char *common;  /* " dim lr ": the flags that --help lists (`--help all` lists all); NULL: all */
    const char *without; /* " seed profile ": flags of the sets that on_flag refuses, hidden in help; or NULL */
    enum status (*on_flag)(void *context, const char *name, const char *value, bool *done, struct error *e);
    void *context;
    const char *const *headings; /* headings in --help, one per set (NULL: no new heading); or NULL */
    void (*more_help)(FILE *f);  /* prints more after the flags in --help; or NULL */
    bool alone;                  /* a separate program: no "lrnn" before its usage */
    /* Set by cli_parse: the flags on the command line. */
    const struct option *given[CLI_MOST_FLAGS];
    int n_given;
};
enum status cli_parse(struct cli *cli, int argc, char **argv, struct error *e);

/* Whether a flag was on the command line. */
bool cli_given(const struct cli *cli, const char *name);

/* Refuses flags without effect. takes: " out task ", the flags that `what` uses. ST_USAGE: another flag was on the
 * command line. */
enum status cli_refuse_others(const struct cli *cli, const char *what, const char *takes, struct error *e);

/* Sets *folder to `out`, the value of --out, if the command line has no word FOLDER. ST_USAGE: both were given. */
enum status cli_folder(const struct cli *cli, const char **folder, const char *out, struct error *e);

/* Prints the object on one line and releases it. ST_MEMORY: it is NULL, or no memory; ST_FAIL: it cannot be written. */
enum status cli_print_json(json_t *line, struct error *e);

#endif

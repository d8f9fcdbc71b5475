/* cli.c - the table of commands, the reading of flags, and help; see cli.h. */
#include "harness/cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"
#include "harness/store/files.h"
#include "harness/store/shell.h"
#include "harness/store/version.h"

/* --- commands ----------------------------------------------------------------------------------------------------- */

static const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "harness/cli/commands.def"
#undef COMMAND
    NULL,
};

const struct command *const *cli_commands(void) {
    return commands;
}

static const char *command_name(const void *list, int i) {
    return ((const struct command *const *)list)[i]->name;
}

static const struct command *find_command(const char *name) {
    for (const struct command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, name) == 0) return *c;
    return NULL;
}

static void print_version(void) {
    const struct build_info *b = build_info();
    printf("lrnn %s\n", b->version);
    printf("  commit    %s%s\n", b->commit, b->dirty ? " with local changes" : "");
    printf("  precision %s\n", b->real_name);
    printf("  compiler  %s\n", b->compiler);
    printf("  flags     %s\n", b->flags);
}

void cli_print_pair(FILE *f, int width, const char *name, const char *text) {
    int column = fprintf(f, "  %-*s ", width, name);
    paragraph_print(f, terminal_width(f), column, width + 3, text);
    fputc('\n', f);
}

const struct exit_code cli_exit_codes[] = {
    {"0", "done"},
    {"1", "the run or the machine failed"},
    {"2", "a usage error, impossible sizes, or a bad case file for verify"},
    {"3", "the gate found a regression"},
    {"4", "the gate could not decide"},
    {"5", "data missing or corrupt"},
    {"6", "a device is missing or failed, or memory ran out"},
    {"128 + N", "stopped by signal N (129, 130, 143); repeat the command to continue"},
    {NULL, NULL},
};

/* Prints the first commands that users need, in order. A line whose command is missing is left out. */
static void print_first_steps(void) {
    static const struct {
        const char *command, *line, *meaning;
    } steps[] = {
        {"bench", "bench s3", "train the default models on a task; print the table, draw the plots"},
        {"train", "train s5 bdlru:m=5", "one run"},
        {"list", "list", "the models, tasks, ops and kernels there are"},
        {"info", "info bdlru", "equation, options, parameters, cost and memory of one of them"},
        {"doctor", "doctor", "whether this machine has what is needed"},
    };
    printf("lrnn trains structured linear recurrent networks on the tasks of their papers.\n\n");
    const char *program = shell_program();
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char line[PATH_BYTES];
        snprintf(line, sizeof line, "%s %s", program, steps[i].line);
        if (find_command(steps[i].command)) cli_print_pair(stdout, 21 + (int)strlen(program), line, steps[i].meaning);
    }
    printf("\n`%s --help` lists every command, `%s COMMAND --help` its flags.\n", program, program);
}

static void print_commands(void) {
    printf("usage: lrnn COMMAND ...\n\n");
    for (const struct command *const *c = commands; *c; c++)
        if (!(*c)->hidden) cli_print_pair(stdout, 11, (*c)->name, (*c)->summary);
    putchar('\n');
    cli_print_pair(stdout, 11, "--version", "what this binary was built from");
    cli_print_pair(stdout, 11, "--help", "this list; `lrnn COMMAND --help` describes one command");
    printf("\nexit status\n");
    for (const struct exit_code *c = cli_exit_codes; c->code; c++) cli_print_pair(stdout, 11, c->code, c->meaning);
}

enum status cli_main(int argc, char **argv, struct error *e) {
    if (argc < 2) {
        print_first_steps();
        return ST_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_commands();
        return ST_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        print_version();
        return ST_OK;
    }
    const struct command *command = find_command(argv[1]);
    if (command) return command->run(argc - 1, argv + 1, e);
    if (argv[1][0] == '-') return fail(e, ST_USAGE, "unknown flag '%s'; `lrnn --help` lists the commands", argv[1]);
    int index, n = (int)(sizeof commands / sizeof commands[0]) - 1;
    return name_choose("command", argv[1], n, command_name, commands, &index, e);
}

/* Kinds of help: the usual flags, all flags, all flags for the man page. */
enum help_kind { HELP_NONE, HELP_COMMON, HELP_ALL, HELP_MAN };

/* Returns the kind of help that a word asks for: "-h", "--help", "--help all", "--help=all". `next`: the word after it,
 * or NULL. */
static enum help_kind help_asked(const char *word, const char *next) {
    if (strcmp(word, HELP_MAN_WORD) == 0) return HELP_MAN;
    if (strcmp(word, "--help=all") == 0) return HELP_ALL;
    if (strcmp(word, "--help") != 0 && strcmp(word, "-h") != 0) return HELP_NONE;
    return next && strcmp(next, "all") == 0 ? HELP_ALL : HELP_COMMON;
}

/* --- help: text --------------------------------------------------------------------------------------------------- */

static const char *before(const struct cli *cli) {
    return cli->alone ? "" : "lrnn ";
}

static bool is_extra(const struct cli *cli, const struct option *o) {
    return cli->extra && option_find(cli->extra, o->name) == o;
}

/* Writes the dashes before a flag's name: one dash for one-letter flags of `extra`, and "-j, --" for the flag that has
 * a letter as its short form. */
static void dashes(const struct cli *cli, const struct option *o, char *text, size_t size) {
    if (cli->short_flag && !strcmp(cli->short_flag, o->name))
        snprintf(text, size, "-%c, --", *o->name);
    else
        snprintf(text, size, "%s", is_extra(cli, o) && !o->name[1] ? "-" : "--");
}

static void print_option(const struct cli *cli, const struct option *o, FILE *f) {
    struct option line[2] = {*o, {.name = NULL}};
    char before_name[16], value[OPTION_TEXT + 32];
    if (!is_extra(cli, o) && cli->profile_sets && cli->profile_sets(o->name)) {
        snprintf(value, sizeof value, "from the profile, else %s", o->value);
        line->value = value;
    }
    dashes(cli, o, before_name, sizeof before_name);
    options_print_help(line, before_name, f);
}

/* --- help: troff, for the man page -------------------------------------------------------------------------------- */

/* Escapes text that troff would take for a command. */
static void man_text(const char *text) {
    bool start = true;
    for (const char *c = text; *c; c++) {
        if (start && (*c == '.' || *c == '\'')) fputs("\\&", stdout);
        if (*c == '\\')
            fputs("\\e", stdout);
        else if (*c == '-')
            fputs("\\-", stdout);
        else
            putchar(*c);
        start = *c == '\n';
    }
}

/* Finds the end of the name in a line of help: "--jobs", "-j, --jobs". */
static char *end_of_name(char *name) {
    char *end = name + strcspn(name, " ");
    return end > name && end[-1] == ',' ? end + 1 + strcspn(end + 1, " ") : end;
}

/* Prints "  --dim            model width D (1..65536); default: 128" as a paragraph under the flag's name. */
static void man_option(const struct cli *cli, const struct option *o) {
    struct printed line;
    if (printed_begin(&line, "a page", NULL) != ST_OK) return;
    print_option(cli, o, line.f);
    if (printed_end(&line, ST_OK, "a page", NULL) != ST_OK) return;
    char *name = line.text + strspn(line.text, " "), *end = end_of_name(name);
    const char *meaning = end + strspn(end, " ");
    *end = 0;
    fputs(".TP\n.B ", stdout);
    man_text(name);
    putchar('\n');
    man_text(meaning);
    free(line.text);
}

/* Prints lines without filling them. */
static void man_lines(void (*print)(FILE *f)) {
    struct printed lines;
    if (printed_begin(&lines, "a page", NULL) != ST_OK) return;
    print(lines.f);
    if (printed_end(&lines, ST_OK, "a page", NULL) != ST_OK) return;
    fputs(".PP\n.nf\n", stdout);
    man_text(lines.text + strspn(lines.text, "\n"));
    fputs(".fi\n", stdout);
    free(lines.text);
}

/* --- help: both --------------------------------------------------------------------------------------------------- */

static void print_heading(const char *text, enum help_kind kind) {
    if (kind != HELP_MAN) {
        printf("\n%s\n", text);
    } else {
        fputs(".PP\n.I ", stdout);
        man_text(text);
        putchar('\n');
    }
}

static bool is_refused(const struct cli *cli, const char *name) {
    char word[128];
    snprintf(word, sizeof word, " %s ", name);
    return cli->without && strstr(cli->without, word);
}

/* Whether help hides a flag of the sets, because the command has its own flag of that name, refuses it, or computes the
 * value itself. */
static bool is_hidden(const struct cli *cli, const struct option *o) {
    return (cli->extra && option_find(cli->extra, o->name)) || is_refused(cli, o->name) || o->flags & OPT_FOUND;
}

static bool is_common(const struct cli *cli, const struct option *o) {
    char word[128];
    snprintf(word, sizeof word, " %s ", o->name);
    return !cli->common || strstr(cli->common, word);
}

static void print_flag(const struct cli *cli, const struct option *o, enum help_kind kind) {
    if (kind == HELP_COMMON && !is_common(cli, o)) return;
    if (kind != HELP_MAN)
        print_option(cli, o, stdout);
    else
        man_option(cli, o);
}

/* Prints each flag once: the command's own flags, then the flags of the sets. */
static void print_flags(const struct cli *cli, enum help_kind kind) {
    if (cli->n_sets || cli->extra) print_heading("flags", kind);
    for (const struct option *o = cli->extra; o && o->name; o++) print_flag(cli, o, kind);
    for (int s = 0; s < cli->n_sets; s++) {
        bool whole = kind != HELP_COMMON || !cli->common; /* a few flags need no headings */
        if (whole && cli->headings && cli->headings[s]) print_heading(cli->headings[s], kind);
        for (const struct option *o = cli->sets[s].table; o->name; o++)
            if (!is_hidden(cli, o)) print_flag(cli, o, kind);
    }
}

static void help_print(const struct cli *cli, enum help_kind kind) {
    if (kind != HELP_MAN) {
        printf("usage: %s%s\n", before(cli), cli->command->usage);
        paragraph_print(stdout, terminal_width(stdout), 0, 0, cli->command->summary);
        putchar('\n');
    } else {
        printf(".SS ");
        man_text(before(cli));
        man_text(cli->command->usage);
        putchar('\n');
        man_text(cli->command->summary);
        putchar('\n');
    }
    print_flags(cli, kind);
    if (kind == HELP_COMMON && cli->common)
        printf("\n`%s%s --help all` lists all flags.\n", before(cli), cli->command->name);
    if (!cli->more_help) return;
    if (kind != HELP_MAN)
        cli->more_help(stdout);
    else
        man_lines(cli->more_help);
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static const char *sub_name(const void *list, int i) {
    return ((const struct command *)list)[i].name;
}

static void print_group(const struct command *group) {
    printf("usage: lrnn %s\n", group->usage);
    paragraph_print(stdout, terminal_width(stdout), 0, 0, group->summary);
    printf("\n\n");
    int width = 0;
    for (const struct command *sub = group->subs; sub->run; sub++)
        if ((int)strlen(sub->usage) > width) width = (int)strlen(sub->usage);
    for (const struct command *sub = group->subs; sub->run; sub++) {
        char usage[128];
        snprintf(usage, sizeof usage, "lrnn %s", sub->usage);
        cli_print_pair(stdout, width + 6, usage, sub->summary);
    }
    printf("\n`lrnn %s WHAT --help` lists the flags.\n", group->name);
}

/* Prints a section per sub-command. */
static enum status man_group(const struct command *subs, char *help, struct error *e) {
    for (; subs->run; subs++) {
        char name[128];
        snprintf(name, sizeof name, "%s", subs->name);
        enum status status = subs->run(2, (char *[]){name, help, NULL}, e);
        if (status != ST_HELP && status != ST_OK) return status;
    }
    return ST_OK;
}

enum status command_group(const struct command *group, int argc, char **argv, struct error *e) {
    const struct command *subs = group->subs;
    int n = 0;
    while (subs[n].run) n++;
    enum help_kind kind = argc >= 2 ? help_asked(argv[1], NULL) : HELP_NONE;
    if (kind == HELP_MAN) return man_group(subs, argv[1], e);
    if (kind != HELP_NONE) {
        print_group(group);
        return ST_OK;
    }
    if (argc < 2) return fail(e, ST_USAGE, "%s: say what; usage: lrnn %s", group->name, group->usage);
    char name[128];
    int index;
    snprintf(name, sizeof name, "%s %s", group->name, argv[1]);
    TRY(name_choose("command", name, n, sub_name, subs, &index, e));
    return subs[index].run(argc - 1, argv + 1, e);
}

/* --- flags -------------------------------------------------------------------------------------------------------- */

/* Finds a flag by name, and the object that it sets; NULL: no table has it. A flag of `extra` has no object. */
static const struct option *find_flag(const struct cli *cli, const char *name, void **object) {
    *object = NULL;
    const struct option *o = cli->extra ? option_find(cli->extra, name) : NULL;
    for (int i = 0; i < cli->n_sets && !o; i++) {
        o = option_find(cli->sets[i].table, name);
        if (o && o->flags & OPT_FOUND) o = NULL;
        if (o) *object = cli->sets[i].object;
    }
    return o;
}

/* Returns the i-th flag, over all tables, that is not refused; NULL past the end. */
static const struct option *flag_at(const struct cli *cli, int i) {
    for (int s = 0; s <= cli->n_sets; s++) {
        const struct option *o = s < cli->n_sets ? cli->sets[s].table : cli->extra;
        for (; o && o->name; o++)
            if (!is_refused(cli, o->name) && !(o->flags & OPT_FOUND) && i-- == 0) return o;
    }
    return NULL;
}

static const char *flag_name(const void *list, int i) {
    return flag_at(list, i)->name;
}

static enum status unknown_flag(const struct cli *cli, const char *text, const char *name, struct error *e) {
    int n = 0;
    while (flag_at(cli, n)) n++;
    const char *near = nearest_name(name, n, flag_name, cli);
    const char *command = cli->command->name;
    if (near) return fail(e, ST_USAGE, "%s: unknown flag '%s'; did you mean '--%s'?", command, text, near);
    return fail(e, ST_USAGE, "%s: unknown flag '%s'; `%s%s --help` lists the flags", command, text, before(cli),
                command);
}

/* Whether a word is a flag: it begins with a dash, and is neither a single dash nor a number. */
static bool is_flag(const char *word) {
    double number;
    return word[0] == '-' && word[1] && !parse_double(word, &number);
}

static bool is_yes_or_no(const char *word) {
    return strcmp(word, "yes") == 0 || strcmp(word, "no") == 0;
}

struct reading {
    struct cli *cli;
    int argc, at; /* at: the word being read */
    char **argv;
};

static enum status note_given(struct cli *cli, const struct option *o, const char *word, struct error *e) {
    for (int i = 0; i < cli->n_given; i++)
        if (cli->given[i] == o) return fail(e, ST_USAGE, "%s: flag '%s' is given twice", cli->command->name, word);
    if (cli->n_given < CLI_MOST_FLAGS) cli->given[cli->n_given++] = o;
    return ST_OK;
}

bool cli_given(const struct cli *cli, const char *name) {
    for (int i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i]->name, name) == 0) return true;
    return false;
}

enum status cli_refuse_others(const struct cli *cli, const char *what, const char *takes, struct error *e) {
    for (int i = 0; i < cli->n_given; i++) {
        char name[64];
        snprintf(name, sizeof name, " %s ", cli->given[i]->name);
        if (!strstr(takes, name))
            return fail(e, ST_USAGE, "%s has no use for --%s; it takes%.*s", what, cli->given[i]->name,
                        (int)strlen(takes) - 1, takes);
    }
    return ST_OK;
}

enum status cli_folder(const struct cli *cli, const char **folder, const char *out, struct error *e) {
    if (*folder && cli_given(cli, "out"))
        return fail(e, ST_USAGE, "%s: %.200s and --out both say which folder; leave one of them out",
                    cli->command->name, *folder);
    if (!*folder) *folder = out;
    return ST_OK;
}

/* Finds the value of the flag at r->at: after '=', or the next word, or "yes" for a yes/no flag without a value. */
static enum status flag_value(struct reading *r, const struct option *o, const char *word, const char *equals,
                              const char **value, struct error *e) {
    const char *next = r->at + 1 < r->argc ? r->argv[r->at + 1] : NULL;
    if (equals) {
        *value = equals + 1;
    } else if (o->type == OPT_BOOL && (!next || !is_yes_or_no(next))) {
        *value = "yes";
    } else if (next && strncmp(next, "--", 2) != 0) {
        *value = next;
        r->at++;
    } else {
        return fail(e, ST_USAGE, "%s: flag '%s' needs a value: %s", r->cli->command->name, word, o->help);
    }
    return ST_OK;
}

static enum status read_flag(struct reading *r, struct error *e) {
    struct cli *cli = r->cli;
    char word[128];
    const char *text = r->argv[r->at], *value = NULL;
    bool joined = cli->short_flag && text[1] == *cli->short_flag && isdigit((unsigned char)text[2]); /* make's -j2 */
    const char *equals = joined ? text + 1 : strchr(text, '='); /* the value comes after it */
    size_t length = joined ? 2 : equals ? (size_t)(equals - text) : strlen(text);
    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, text);
    const char *name = word + (word[1] == '-' ? 2 : 1);
    void *object;
    bool one_letter = word[1] != '-' && strlen(name) == 1, right_dashes = word[1] == '-' || one_letter; /* not -steps */
    if (one_letter && cli->short_flag && *name == *cli->short_flag) name = cli->short_flag;
    const struct option *o = right_dashes ? find_flag(cli, name, &object) : NULL;
    if (!o) return unknown_flag(cli, word, name, e);
    TRY(note_given(cli, o, word, e));
    TRY(flag_value(r, o, word, equals, &value, e));
    TRY(option_filled(o, cli->command->name, value, e));
    bool done = false;
    if (cli->on_flag) TRY(cli->on_flag(cli->context, name, value, &done, e));
    if (done || !object) return ST_OK;
    return options_set(o, object, "command line", name, value, e); /* `o` is a table from here on */
}

enum status cli_parse(struct cli *cli, int argc, char **argv, struct error *e) {
    struct reading r = {.cli = cli, .argc = argc, .argv = argv};
    bool flags_ended = false;
    cli->n_positional = cli->n_given = 0;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        enum help_kind kind = help_asked(argv[i], argv[i + 1]);
        if (kind == HELP_NONE) continue;
        help_print(cli, kind);
        return ST_HELP;
    }
    for (r.at = 1; r.at < argc; r.at++) {
        if (!flags_ended && strcmp(argv[r.at], "--") == 0) {
            flags_ended = true;
        } else if (!flags_ended && is_flag(argv[r.at])) {
            TRY(read_flag(&r, e));
        } else if (!*argv[r.at]) {
            return fail(e, ST_USAGE, "%s: a word is empty, as a shell's unset variable makes it; usage: %s%s",
                        cli->command->name, before(cli), cli->command->usage);
        } else if (cli->n_positional < cli->max_positional) {
            cli->positional[cli->n_positional++] = argv[r.at];
        } else {
            return fail(e, ST_USAGE, "%s: '%s' is one word too many; usage: %s%s", cli->command->name, argv[r.at],
                        before(cli), cli->command->usage);
        }
    }
    return ST_OK;
}

/* --- what commands share ------------------------------------------------------------------------------------------ */

enum status cli_print_json(json_t *line, struct error *e) {
    bool printed = line && json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) == 0;
    int reason = errno;
    json_decref(line);
    if (line && !printed && ferror(stdout))
        return fail(e, ST_FAIL, "cannot write to standard output: %s", strerror(reason));
    if (!printed) return fail(e, ST_MEMORY, "no memory for a line of JSON");
    putchar('\n');
    return ST_OK;
}

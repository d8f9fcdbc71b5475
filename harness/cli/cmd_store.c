/* cmd_store.c - lrnn store: checks, merges, packs or unpacks folders of run records. */
#include "harness/cli/cli.h"
#include "harness/store/leftovers.h"
#include "harness/store/logs.h"
#include "harness/store/merge.h"
#include "harness/store/pack/store_pack.h"
#include "harness/store/record_files.h"
#include "harness/study/study.h"
#include "harness/run/sweep_list.h"

#define MOST_FOLDERS 256

struct flags {
    char out[OPTION_TEXT];
};

static const struct option options[] = {{"out", OPT_TEXT_FIELD, offsetof(struct flags, out), "", 0, 0, NULL,
                                         "folder into which the records go; it may have records already", OPT_FILLED},
                                        {0}};

static enum status check(int argc, char **argv, struct error *e);
static enum status merge(int argc, char **argv, struct error *e);
static enum status pack(int argc, char **argv, struct error *e);
static enum status unpack(int argc, char **argv, struct error *e);

enum { CHECK, MERGE, PACK, UNPACK, SUBS };
static const struct command subs[SUBS + 1] = {
    [CHECK] = {.name = "store check",
               .usage = "store check FOLDER...",
               .summary = "read and check every record",
               .run = check},
    [MERGE] = {.name = "store merge",
               .usage = "store merge FOLDER... --out FOLDER",
               .summary =
                   "copy the records and weights of several folders into one, with their machines, limits and sweeps",
               .run = merge},
    [PACK] = {.name = "store pack",
              .usage = "store pack FOLDER...",
              .summary = "compress the records, one gzip file for each folder of runs/; every command reads these too",
              .run = pack},
    [UNPACK] = {.name = "store unpack",
                .usage = "store unpack FOLDER...",
                .summary = "give each packed record its own file again, with the same bytes",
                .run = unpack},
};

/* Returns the number of records with a configuration that this program cannot read, so that it can neither show the
 * run's command nor repeat the run. *why has the first one's reason. */
static int count_unreadable(const struct record_set *set, struct error *why) {
    int n = 0;
    for (int i = 0; i < set->n; i++) {
        struct config config;
        struct error e = {ST_OK, ""};
        char name[RUN_ID_HEX + 8], task[LABEL_TEXT], model[LABEL_TEXT];
        snprintf(name, sizeof name, "run %s", set->list[i].run.run_id);
        if (config_default(&config, &e) == ST_OK &&
            config_read_text(set->list[i].config, name, &config, task, model, &e) == ST_OK)
            continue;
        if (n++ == 0) *why = e;
    }
    return n;
}

/* Prints the result of a check. Records without their weights or their machine's row, or with a configuration of
 * another version of the program, are valid, but the user should know of them. */
static enum status tell(const char *folder, const struct store_count *count, struct error *e) {
    struct record_set set;
    struct error why;
    TRY(records_load(&set, folder, e));
    int unreadable = count_unreadable(&set, &why);
    records_free(&set);
    printf("%s: %d record%s, all whole", folder, count->records, count->records == 1 ? "" : "s");
    if (count->bare) printf("; the weights of %d are not there", count->bare);
    if (count->unknown) printf("; the machine of %d is not in machines.csv", count->unknown);
    if (unreadable) printf("; %d cannot be repeated, the first because %s", unreadable, why.text);
    putchar('\n');
    return ST_OK;
}

/* Prints what killed processes have left, even if a folder cannot be read. It damages no record, but takes room. */
static enum status tell_leftovers(const char *folder, struct error *e) {
    char first[PATH_BYTES];
    int n;
    enum status status = leftovers_count(folder, &n, first, e);
    if (n == 1) printf("%s: a killed process has left %s; it may be deleted\n", folder, first);
    if (n > 1)
        printf("%s: killed processes have left %d temporary files, one is %s; they may be deleted\n", folder, n, first);
    return status;
}

/* Checks the other files of the folder. */
static enum status check_beside(const char *folder, struct error *e) {
    TRY(logs_check(folder, e));
    return sweep_lists_check(folder, e);
}

static enum status check(int argc, char **argv, struct error *e) {
    const char *folders[MOST_FOLDERS];
    struct cli cli = {.command = &subs[CHECK], .positional = folders, .max_positional = MOST_FOLDERS};
    TRY(cli_parse(&cli, argc, argv, e));
    if (cli.n_positional == 0) return fail(e, ST_USAGE, "store check: say which folder");
    enum status status = ST_OK;
    for (int i = 0; i < cli.n_positional; i++) { /* check all folders; the first damaged one decides the exit status */
        struct error why;
        struct store_count count;
        bool whole = store_check(folders[i], &count, &why) == ST_OK && check_beside(folders[i], &why) == ST_OK &&
                     tell(folders[i], &count, &why) == ST_OK;
        if (tell_leftovers(folders[i], whole ? &why : NULL) == ST_OK && whole) continue;
        if (status == ST_OK)
            status = fail(e, why.status, "%s", why.text);
        else
            fprintf(stderr, "lrnn: %s\n", why.text);
    }
    return status;
}

static enum status merge_beside(const char *from, const char *out, struct error *e) {
    TRY(logs_merge(from, out, e));
    return sweep_lists_merge(from, out, e);
}

/* Merges folders. All are checked before the first is copied. */
static enum status merge(int argc, char **argv, struct error *e) {
    const char *folders[MOST_FOLDERS];
    struct flags flags;
    const struct flag_set sets[] = {{options, &flags}};
    struct cli cli = {
        .command = &subs[MERGE], .sets = sets, .n_sets = 1, .positional = folders, .max_positional = MOST_FOLDERS};
    TRY(options_default(options, &flags, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (cli.n_positional == 0) return fail(e, ST_USAGE, "store merge: say which folders to take over");
    if (!*flags.out) return fail(e, ST_USAGE, "store merge: say which folder takes them, --out FOLDER");
    TRY(check_beside(flags.out, e));
    for (int i = 0; i < cli.n_positional; i++) {
        struct store_count count;
        TRY(store_check(folders[i], &count, e));
        TRY(check_beside(folders[i], e));
    }
    for (int i = 0; i < cli.n_positional; i++) {
        struct merge_count count;
        TRY(store_merge(folders[i], flags.out, &count, e));
        TRY(merge_beside(folders[i], flags.out, e));
        printf("%s: %d records and %d files of weights taken over, %d records known already", folders[i], count.records,
               count.weights, count.known);
        if (count.other) printf(", %d of them from another training, which stay", count.other);
        putchar('\n');
    }
    return ST_OK;
}

static enum status pack_each(const struct command *command, int argc, char **argv, struct error *e) {
    const char *folders[MOST_FOLDERS];
    struct cli cli = {.command = command, .positional = folders, .max_positional = MOST_FOLDERS};
    TRY(cli_parse(&cli, argc, argv, e));
    if (cli.n_positional == 0) return fail(e, ST_USAGE, "%s: say which folder", command->name);
    for (int i = 0; i < cli.n_positional; i++) {
        struct pack_count count;
        bool packs = command == &subs[PACK];
        TRY(packs ? store_pack(folders[i], &count, e) : store_unpack(folders[i], NULL, &count, e));
        printf("%s: %d record%s %s %d file%s\n", folders[i], count.records, count.records == 1 ? "" : "s",
               packs ? "packed into" : "unpacked from", count.files, count.files == 1 ? "" : "s");
    }
    return ST_OK;
}

static enum status pack(int argc, char **argv, struct error *e) {
    return pack_each(&subs[PACK], argc, argv, e);
}

static enum status unpack(int argc, char **argv, struct error *e) {
    return pack_each(&subs[UNPACK], argc, argv, e);
}

static enum status run(int argc, char **argv, struct error *e) {
    return command_group(&command_store, argc, argv, e);
}

const struct command command_store = {.name = "store",
                                      .usage = "store check|merge|pack|unpack FOLDER...",
                                      .summary = "check, merge or pack folders of run records",
                                      .run = run,
                                      .subs = subs};

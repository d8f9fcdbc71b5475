/* data_sets.c - see data_sets.h. Nothing here opens a socket: people fetch files, or curl does
 * (data_fetch.c), and the program names and checks them. */
#include "harness/cli/data/data_sets.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/run/signals.h"
#include "harness/store/shell.h"
#include "tasks/data/datasets.h"

/* Reads up to `most` words; the first word, if any, names a data set. */
static enum status read_words(int which, int argc, char **argv, const char *words[2], int most, int *n,
                              const struct dataset **d, struct error *e) {
    struct cli cli = {.command = &data_commands[which], .positional = words, .max_positional = most};
    TRY(cli_parse(&cli, argc, argv, e));
    *n = cli.n_positional;
    *d = NULL;
    return *n > 0 ? dataset_find(words[0], d, e) : ST_OK;
}

enum status data_sets_list(int argc, char **argv, struct error *e) {
    struct cli cli = {.command = &data_commands[DATA_LIST]};
    TRY(cli_parse(&cli, argc, argv, e));
    for (const struct dataset *const *at = dataset_list(); *at; at++) {
        char path[CACHE_PATH], text[DATASET_TEXT];
        struct stat info;
        TRY(dataset_path(*at, path, e));
        printf("%s: %s\n  tasks     %s\n  imported  ", (*at)->name, (*at)->summary, (*at)->tasks);
        if (stat(path, &info) != 0) {
            printf("no; `%s data urls %s` says where its files are\n", shell_program(), (*at)->name);
            continue;
        }
        struct error why;
        if (dataset_describe(*at, text, &why) == ST_OK)
            printf("%s\n", text);
        else
            printf("not whole: %s\n", why.text);
    }
    return ST_OK;
}

static void print_urls(const struct dataset *d) {
    printf("%s: %s\n", d->name, d->summary);
    for (const struct dataset_file *f = d->files; f->name; f++) {
        printf("  %s\n    from    %s\n", f->name, f->url);
        if (f->bytes) printf("    bytes   %" PRId64 "\n", f->bytes);
        printf("    SHA-256 %s\n", f->sha256 ? f->sha256 : "nobody has published one");
    }
    printf("  then      %s data import %s FOLDER\n", shell_program(), d->name);
}

enum status data_sets_urls(int argc, char **argv, struct error *e) {
    const struct dataset *d;
    const char *words[2];
    int n;
    TRY(read_words(DATA_URLS, argc, argv, words, 1, &n, &d, e));
    if (d)
        print_urls(d);
    else
        for (const struct dataset *const *at = dataset_list(); *at; at++) print_urls(*at);
    return ST_OK;
}

static void say_read(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                     const struct dataset_file *released) {
    const char *verdict = "";
    (void)log;
    if (released->sha256)
        verdict = strcmp(sha256, released->sha256) == 0 ? " (as released)" : " (not the released file, or unpacked)";
    printf("  %s: %" PRId64 " bytes, SHA-256 %s%s\n", path, bytes, sha256, verdict);
}

enum status data_import(const struct dataset *d, const char *folder, struct error *e) {
    char path[CACHE_PATH], text[DATASET_TEXT];
    struct import_log log = {.read = say_read, .stop = signal_received};
    TRY(dataset_path(d, path, e));
    printf("%s, into %s\n", d->name, path);
    signals_install();
    TRY(dataset_import(d, folder, true, &log, e));
    TRY(dataset_describe(d, text, e));
    printf("  %s\n", text);
    if (*log.folder) printf("  read from %s\n", log.folder);
    if (log.count.passed_over)
        printf("  passed over %" PRId64 " files whose names are none of the released set\n", log.count.passed_over);
    if (d->examples && log.examples != d->examples)
        printf("  the released files hold %" PRId64 " examples, these %" PRId64
               ": numbers of a run on them stand beside no published ones\n",
               d->examples, log.examples);
    return ST_OK;
}

enum status data_sets_import(int argc, char **argv, struct error *e) {
    const struct dataset *d;
    const char *words[2];
    int n;
    TRY(read_words(DATA_IMPORT, argc, argv, words, 2, &n, &d, e));
    if (n == 2) return data_import(d, words[1], e);
    return fail(e, ST_USAGE, "data import: say which data and the folder of its files; `lrnn data urls` names both");
}

static enum status verify(const struct dataset *d, bool asked, struct error *e) {
    struct stat info;
    char path[CACHE_PATH], text[DATASET_TEXT];
    TRY(dataset_path(d, path, e));
    if (stat(path, &info) != 0 && !asked) {
        printf("%s: not imported\n", d->name);
        return ST_OK;
    }
    TRY(dataset_describe(d, text, e));
    printf("%s: whole, %s\n", d->name, text);
    return ST_OK;
}

enum status data_sets_verify(int argc, char **argv, struct error *e) {
    const struct dataset *d;
    const char *words[2];
    int n;
    TRY(read_words(DATA_VERIFY, argc, argv, words, 1, &n, &d, e));
    if (d) return verify(d, true, e);
    enum status first = ST_OK;
    for (const struct dataset *const *at = dataset_list(); *at; at++) {
        struct error why;
        enum status status = verify(*at, false, &why);
        if (status == ST_OK) continue;
        if (first != ST_OK) fprintf(stderr, "lrnn: %s\n", why.text);
        if (first == ST_OK) first = fail(e, status, "%s", why.text);
    }
    return first;
}

enum status data_sets_path(int argc, char **argv, struct error *e) {
    const struct dataset *d;
    const char *words[2];
    char path[CACHE_PATH];
    int n;
    TRY(read_words(DATA_PATH, argc, argv, words, 1, &n, &d, e));
    if (!d) return fail(e, ST_USAGE, "data path: say which data; `lrnn data list` names it");
    TRY(dataset_path(d, path, e));
    printf("%s\n", path);
    return ST_OK;
}

/* data_fetch.c - `lrnn data fetch NAME`: downloads the released files of a data set by curl, checks and unpacks them,
 * and imports them. The program itself opens no socket. An interrupted download continues where it stopped. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/sha256.h"
#include "core/label.h"
#include "harness/cli/data/data_sets.h"
#include "harness/store/files.h"
#include "harness/store/shell.h"
#include "tasks/data/datasets.h"

struct fetch_flags {
    char mirror[OPTION_TEXT], folder[OPTION_TEXT];
};

static const struct option fetch_flags[] = {
    {"mirror", OPT_TEXT_FIELD, offsetof(struct fetch_flags, mirror), "", 0, 0, NULL,
     "address of a folder with the same files, in place of those that `lrnn data urls` lists", OPT_FILLED},
    {"folder", OPT_TEXT_FIELD, offsetof(struct fetch_flags, folder), "", 0, 0, NULL,
     "where the files go; none: files/NAME in the cache folder", OPT_FILLED},
    {0},
};

/* Runs a program. *code: its exit status. An error: it cannot be run. */
static enum status call(const char *const *arguments, struct program_words *words, int *code, struct error *e) {
    enum status status = program_run(arguments, NULL, NULL, words, code, e);
    if (status != ST_DATA) return status;
    return fail(e, ST_FAIL, "data fetch: there is no program %s; install it (apt-get install %s)", arguments[0],
                arguments[0]);
}

/* Returns the bytes of a file; -1: there is no such file. */
static int64_t size_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (int64_t)info.st_size : -1;
}

/* Checks the content of a complete file. A wrong file is removed, since continuing its download would not repair it. */
static enum status check_file(const struct dataset_file *f, const char *path, const char *url, struct error *e) {
    char hex[SHA256_HEX], chunk[65536];
    struct sha256 sha;
    FILE *file = fopen(path, "rbe");
    if (!file) return fail(e, ST_FAIL, "data fetch: cannot read %s: %s", path, strerror(errno));
    sha256_start(&sha);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;) sha256_add(&sha, chunk, n);
    fclose(file);
    sha256_end(&sha, hex);
    int64_t bytes = size_of(path);
    bool whole = (!f->bytes || bytes == f->bytes) && (!f->sha256 || strcmp(hex, f->sha256) == 0);
    printf("  %s: %" PRId64 " bytes, SHA-256 %s%s\n", path, bytes, hex,
           !f->sha256 ? " (nobody has published one)"
           : whole    ? " (as released)"
                      : "");
    if (whole) return ST_OK;
    unlink(path);
    return fail(e, ST_DATA,
                "data fetch: %s has %" PRId64 " bytes with SHA-256 %s, expected %" PRId64 " with %s; the file was "
                "removed, and the same command fetches it anew",
                url, bytes, hex, f->bytes, f->sha256 ? f->sha256 : "any");
}

/* Downloads into PATH.part and renames it once it is whole. */
static enum status download(const struct dataset_file *f, const char *url, const char *path, const char *set,
                            struct error *e) {
    char part[CACHE_PATH];
    struct program_words words = {"", ""};
    int code = 0;
    TRY(path_format(part, sizeof part, e, "%s.part", path));
    const char *const curl[] = {"curl", "-fsSL", "--connect-timeout", "20", "-C", "-", "-o", part, url, NULL};
    int64_t before = size_of(part);
    printf("  %s%s\n", url, before > 0 ? ", goes on" : "");
    if (!(f->bytes && before == f->bytes)) TRY(call(curl, &words, &code, e));
    if (code && before > 0 && (code == 22 || code == 33)) { /* no bytes are left, or the server has no ranges */
        unlink(part);
        TRY(call(curl, &words, &code, e));
    }
    if (code == 6 || code == 7 || code == 28)
        return fail(
            e, ST_FAIL,
            "data fetch: no network, or no such server: %s; fetch the files elsewhere (`lrnn data urls %s`) and "
            "take them in by `lrnn data import %s FOLDER`",
            words.complained, set, set);
    if (code == 22)
        return fail(e, ST_FAIL, "data fetch: the server does not give %s: %s; --mirror names another place", url,
                    words.complained);
    if (code)
        return fail(e, ST_FAIL, "data fetch: %s broke off after %" PRId64 " bytes: %s; the same command goes on", url,
                    size_of(part) > 0 ? size_of(part) : 0, words.complained);
    TRY(check_file(f, part, url, e));
    if (rename(part, path) == 0) return ST_OK;
    return fail(e, ST_FAIL, "data fetch: cannot write %s: %s", path, strerror(errno));
}

/* Unpacks an archive into the folder, without the archive's folders unless the data set is a folder. */
static enum status unpack(const struct dataset *d, const char *path, const char *folder, struct error *e) {
    struct program_words words;
    int code;
    bool is_folder = !strchr(d->files[0].name, '.');
    const char *const zip[] = {"unzip", "-o", "-q", "-j", path, "-d", folder, NULL};
    const char *const tar[] = {"tar", "-xzf", path, "-C", folder, is_folder ? NULL : "--strip-components=1", NULL};
    TRY(call(text_ends(path, ".zip") ? zip : tar, &words, &code, e));
    return code ? fail(e, ST_DATA, "data fetch: cannot unpack %s: %s", path, words.complained) : ST_OK;
}

/* Fetches one file, or the archive that contains it, unless it is there. */
static enum status fetch_file(const struct dataset *d, const struct dataset_file *f, const struct fetch_flags *flags,
                              const char *folder, struct error *e) {
    char url[CACHE_PATH], path[CACHE_PATH];
    const char *base = strrchr(f->url, '/') + 1;
    bool archive = strcmp(base, f->name) != 0;
    if (archive && !text_ends(base, ".zip") && !text_ends(base, ".tar.gz"))
        return fail(e, ST_USAGE,
                    "data fetch: %s is part of %s, which holds far more; fetch and unpack it yourself, then `lrnn data "
                    "import %s FOLDER`",
                    d->name, f->url, d->name);
    size_t n = strlen(flags->mirror);
    bool slash = n && flags->mirror[n - 1] == '/';
    TRY(path_format(url, sizeof url, e, "%s%s%s", n ? flags->mirror : "", !n || slash ? "" : "/", n ? base : f->url));
    TRY(path_format(path, sizeof path, e, "%s/%s", folder, base));
    if (size_of(path) >= 0) return ST_OK;
    TRY(download(f, url, path, d->name, e));
    return archive ? unpack(d, path, folder, e) : ST_OK;
}

enum status data_fetch(int argc, char **argv, struct error *e) {
    const char *name = NULL;
    struct fetch_flags flags;
    struct flag_set set = {fetch_flags, &flags};
    struct cli cli = {
        .command = &data_commands[DATA_FETCH], .sets = &set, .n_sets = 1, .positional = &name, .max_positional = 1};
    const struct dataset *d;
    char path[CACHE_PATH], folder[CACHE_PATH];
    TRY(options_default(fetch_flags, &flags, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (!name) return fail(e, ST_USAGE, "data fetch: say which data; `lrnn data list` names it");
    TRY(dataset_find(name, &d, e));
    TRY(dataset_path(d, path, e));
    *strrchr(path, '/') = 0;
    if (*flags.folder)
        TRY(path_format(folder, sizeof folder, e, "%s", flags.folder));
    else
        TRY(path_format(folder, sizeof folder, e, "%s/files/%s", path, d->name));
    TRY(make_folder(folder, e));
    printf("%s, into %s\n", d->name, folder);
    for (const struct dataset_file *f = d->files; f->name; f++) TRY(fetch_file(d, f, &flags, folder, e));
    return data_import(d, folder, e);
}

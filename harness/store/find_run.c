/* find_run.c - see find_run.h. */
#include "harness/store/find_run.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file/name.h"

#define ID_DIGITS (RUN_ID_HEX - 1)

/* Ids in a folder that begin as asked for. */
struct matches {
    const char *prefix;
    char id[RUN_ID_HEX], other[RUN_ID_HEX];
    int n;
};

static bool all_hex(const char *text, size_t n) {
    return strspn(text, "0123456789abcdef") >= n;
}

/* Adds the files of a folder that are named by such an id and `suffix`. A folder that is not there has none. */
static void match_folder(const char *folder, const char *suffix, struct matches *m) {
    DIR *d = opendir(folder);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const char *name = entry->d_name;
        if (strlen(name) != ID_DIGITS + strlen(suffix) || !all_hex(name, ID_DIGITS)) continue;
        if (strcmp(name + ID_DIGITS, suffix) != 0 || strncmp(name, m->prefix, strlen(m->prefix)) != 0) continue;
        snprintf(m->n == 0 ? m->id : m->other, RUN_ID_HEX, "%.32s", name);
        m->n++;
    }
    if (d) closedir(d);
}

/* The same below OUT/runs/<ab>. */
static enum status match_runs(const char *out, struct matches *m, struct error *e) {
    char folder[PATH_BYTES];
    TRY(path_format(folder, sizeof folder, e, "%s/runs", out));
    DIR *d = opendir(folder);
    if (!d && errno != ENOENT) return fail(e, ST_FAIL, "cannot read the folder %s: %s", folder, strerror(errno));
    enum status status = ST_OK;
    for (struct dirent *entry; d && status == ST_OK && (entry = readdir(d));) {
        const char *name = entry->d_name;
        if (strlen(name) != 2 || !all_hex(name, 2)) continue;
        status = path_format(folder, sizeof folder, e, "%s/runs/%s", out, name);
        if (status == ST_OK) match_folder(folder, ".json", m);
    }
    if (d) closedir(d);
    return status;
}

static enum status find_by_id(const char *command, const char *out, const char *text, char id[RUN_ID_HEX],
                              struct error *e) {
    struct matches done = {.prefix = text}, running = {.prefix = text};
    char folder[PATH_BYTES];
    TRY(match_runs(out, &done, e));
    if (done.n > 1)
        return fail(e, ST_USAGE, "%s: %d runs in %s/runs begin with '%s', among them %s and %s; give more digits",
                    command, done.n, out, text, done.id, done.other);
    memcpy(id, done.id, RUN_ID_HEX);
    if (done.n == 1) return ST_OK;
    TRY(path_format(folder, sizeof folder, e, "%s/checkpoints", out));
    match_folder(folder, ".ckpt", &running);
    if (running.n)
        return fail(e, ST_DATA, "%s: run %s is not finished; the command that began it goes on from its checkpoint",
                    command, running.id);
    return fail(e, ST_DATA,
                "%s: no run on record in %s/runs begins with '%s'; `lrnn train` prints a run's record, and --out names "
                "another folder",
                command, out, text);
}

/* A path of a record OUT/runs/ab/ID.json or of what lies in OUT/weights and OUT/checkpoints: OUT and ID. */
static enum status find_by_path(const char *command, const char *path, char out[PATH_BYTES], char id[RUN_ID_HEX],
                                struct error *e) {
    char *full = realpath(path, NULL);
    if (!full) return fail(e, ST_DATA, "%s: cannot read %s: %s", command, path, strerror(errno));
    const char *name = strrchr(full, '/') + 1, *dot = strlen(name) > ID_DIGITS ? name + ID_DIGITS : "";
    bool named = *dot == '.' && all_hex(name, ID_DIGITS);
    if (named) snprintf(id, RUN_ID_HEX, "%.32s", name);
    if (named && !strncmp(dot, ".json.", 6)) {
        free(full);
        return fail(e, ST_USAGE,
                    "%s: %s is an attempt that was set aside; the run's record is %.32s.json beside it, if "
                    "it was done again",
                    command, path, id);
    }
    int up = named && !strcmp(dot, ".json") ? 3 : 2;
    for (int i = 0; i < up; i++) {
        path_folder(full, out, PATH_BYTES);
        if (strlen(out) < strlen(full)) memcpy(full, out, strlen(out) + 1);
    }
    free(full);
    if (named) return ST_OK;
    return fail(e, ST_USAGE, "%s: %s is not the path of a run: expected OUT/runs/ab/ID.json, ID of %d hex digits",
                command, path, ID_DIGITS);
}

enum status run_find(const char *command, const char *text, char out[PATH_BYTES], char id[RUN_ID_HEX],
                     struct error *e) {
    size_t n = strlen(text);
    if (n > 0 && n <= ID_DIGITS && all_hex(text, n)) return find_by_id(command, out, text, id, e);
    if (strchr(text, '/') || access(text, F_OK) == 0) return find_by_path(command, text, out, id, e);
    return fail(e, ST_USAGE, "%s: '%.100s' is neither a run id (its first hex digits will do) nor the path of a record",
                command, text);
}

enum status run_record_open(const char *command, const char *out, const char *id, struct open_record **open,
                            struct error *e) {
    char path[PATH_BYTES];
    TRY(path_format(path, sizeof path, e, "%s/runs/%.2s/%s.json", out, id, id));
    if (access(path, F_OK) != 0)
        return fail(e, ST_DATA, "%s: run %s is not finished: there is no record %s", command, id, path);
    return record_open(path, open, e);
}

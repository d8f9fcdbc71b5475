/* cmd_export.c - lrnn export RUN FILE: the best, the last or the first weights of a run as a safetensors file. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/plan/args.h"
#include "harness/run/trainer.h"
#include "harness/run/weights.h"
#include "harness/store/files.h"
#include "harness/store/record_json.h"

#define ID_DIGITS (RUN_ID_HEX - 1)

struct export_flags {
    char out[OPTION_TEXT];
    bool initial, last;
};

#define AT(field) offsetof(struct export_flags, field)
static const struct option flags[] = {
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records that RUN is looked for in", 0},
    {"initial", OPT_BOOL, AT(initial), "no", 0, 0, NULL, "the weights before the first step, drawn once more", 0},
    {"last", OPT_BOOL, AT(last), "no", 0, 0, NULL,
     "those after the last step, of a run made with --keep-weights all; without either: those that validation chose",
     0},
    {0}};

/* --- which run ---------------------------------------------------------------------------------------------------- */

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

static enum status find_by_id(const char *out, const char *text, char id[RUN_ID_HEX], struct error *e) {
    struct matches done = {.prefix = text}, running = {.prefix = text};
    char folder[PATH_BYTES];
    TRY(match_runs(out, &done, e));
    if (done.n > 1)
        return fail(e, ST_USAGE, "export: %d runs in %s/runs begin with '%s', among them %s and %s; give more digits",
                    done.n, out, text, done.id, done.other);
    memcpy(id, done.id, RUN_ID_HEX);
    if (done.n == 1) return ST_OK;
    TRY(path_format(folder, sizeof folder, e, "%s/checkpoints", out));
    match_folder(folder, ".ckpt", &running);
    if (running.n)
        return fail(e, ST_DATA, "export: run %s is not finished; the command that began it goes on from its checkpoint",
                    running.id);
    return fail(
        e, ST_DATA,
        "export: no run on record in %s/runs begins with '%s'; `lrnn train` prints a run's record, and --out names "
        "another folder",
        out, text);
}

/* A path of a record OUT/runs/ab/ID.json or of what lies in OUT/weights and OUT/checkpoints: OUT and ID. */
static enum status find_by_path(const char *path, char out[PATH_BYTES], char id[RUN_ID_HEX], struct error *e) {
    char *full = realpath(path, NULL);
    if (!full) return fail(e, ST_DATA, "export: cannot read %s: %s", path, strerror(errno));
    const char *name = strrchr(full, '/') + 1, *dot = strlen(name) > ID_DIGITS ? name + ID_DIGITS : "";
    bool named = *dot == '.' && all_hex(name, ID_DIGITS);
    int up = named && !strcmp(dot, ".json") ? 3 : 2;
    if (named) snprintf(id, RUN_ID_HEX, "%.32s", name);
    for (int i = 0; i < up; i++) {
        path_folder(full, out, PATH_BYTES);
        if (strlen(out) < strlen(full)) memcpy(full, out, strlen(out) + 1);
    }
    free(full);
    if (named) return ST_OK;
    return fail(e, ST_USAGE, "export: %s is not the path of a run: expected OUT/runs/ab/ID.json, ID of %d hex digits",
                path, ID_DIGITS);
}

/* `out` comes in as the flag and goes out as the folder that holds the run. */
static enum status find_run(const char *text, char out[PATH_BYTES], char id[RUN_ID_HEX], struct error *e) {
    size_t n = strlen(text);
    if (n > 0 && n <= ID_DIGITS && all_hex(text, n)) return find_by_id(out, text, id, e);
    if (strchr(text, '/') || access(text, F_OK) == 0) return find_by_path(text, out, id, e);
    return fail(e, ST_USAGE,
                "export: '%.100s' is neither a run id (its first hex digits will do) nor the path of a record", text);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static enum status read_record(const char *out, const char *id, struct run_record *record, struct arena *arena,
                               struct error *e) {
    char path[PATH_BYTES], *text;
    size_t size;
    TRY(path_format(path, sizeof path, e, "%s/runs/%.2s/%s.json", out, id, id));
    if (access(path, F_OK) != 0)
        return fail(e, ST_DATA, "export: run %s is not finished: there is no record %s", id, path);
    TRY(file_read(path, RECORD_MOST_BYTES, &text, &size, e));
    enum status status = arena_reserve(arena, record_arena_bytes(size), e);
    if (status == ST_OK) status = record_parse(text, size, path, id, record, arena, e);
    free(text);
    return status == ST_USAGE ? e->status = ST_DATA : status;
}

/* Draws them once more: they are a function of the configuration. Only a program that gives the run the same id, which
 * covers the versions of its task and of the numerics, can say that they are the run's. */
static enum status draw_initial(const struct run_record *record, const struct setup *s, const char *target,
                                struct weights_count *count, struct error *e) {
    if (strcmp(s->run_id, record->run.run_id) != 0)
        return fail(e, ST_DATA,
                    "export: the configuration of run %s is that of run %s in this program: its task or the numerics "
                    "have another version, so the initial weights may be others",
                    record->run.run_id, s->run_id);
    if (*s->config.from_xxh3)
        return fail(e, ST_DATA,
                    "export: run %s started from a file, of XXH3-128 %.40s: that file holds its initial "
                    "weights",
                    s->run_id, s->config.from_xxh3);
    struct trainer *t = calloc(1, sizeof *t);
    if (!t) return fail(e, ST_MEMORY, "no memory for a net");
    enum status status = trainer_create_initial(t, s, e);
    if (status == ST_OK) status = weights_export_initial(record, &t->params, target, count, e);
    trainer_free(t);
    free(t);
    return status;
}

static enum status export_initial(const struct run_record *record, const char *target, struct weights_count *count,
                                  struct error *e) {
    char name[RUN_ID_HEX + 8];
    if (REAL_IS_DOUBLE != !strcmp(record->run.dtype, "fp64"))
        return fail(e, ST_DATA, "export: run %s computed in %s, and this program in %s; %s draws its initial weights",
                    record->run.run_id, record->run.dtype, REAL_NAME, REAL_IS_DOUBLE ? "lrnn" : "lrnn-f64");
    snprintf(name, sizeof name, "run %s", record->run.run_id);
    struct setup *s = setup_stored(record->config, name, 0, e);
    if (!s) return e->status;
    enum status status = draw_initial(record, s, target, count, e);
    setup_free(s);
    free(s);
    return status;
}

static enum status export_run(const char *out, const char *id, enum weights_of which, const char *target,
                              struct error *e) {
    static const char *const names[] = {"best", "last", "initial"};
    struct arena arena = {0};
    struct weights_count count;
    struct run_record *record = calloc(1, sizeof *record);
    if (!record) return fail(e, ST_MEMORY, "no memory for a run record");
    enum status status = read_record(out, id, record, &arena, e);
    if (status == ST_OK)
        status = which == WEIGHTS_INITIAL ? export_initial(record, target, &count, e)
                                          : weights_export(record, which, out, target, &count, e);
    if (status == ST_OK)
        printf("exported run %s (%s, %s), %s weights: %d tensors, %" PRId64 " values, %s, to %s\n", id,
               record->run.task, record->run.layers, names[which], count.tensors, count.values, record->run.dtype,
               target);
    arena_free(&arena);
    free(record);
    return status;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct export_flags f;
    const char *words[2] = {NULL, NULL};
    const struct flag_set set = {flags, &f};
    struct cli cli = {.command = &command_export, .sets = &set, .n_sets = 1, .positional = words, .max_positional = 2};
    char out[PATH_BYTES], id[RUN_ID_HEX] = "";
    TRY(options_default(flags, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (!words[1]) return fail(e, ST_USAGE, "export: say which run and where to; usage: lrnn %s", command_export.usage);
    if (f.initial && f.last)
        return fail(e, ST_USAGE, "export: --initial and --last are two sets of weights; ask for one at a time");
    snprintf(out, sizeof out, "%s", f.out);
    TRY(find_run(words[0], out, id, e));
    enum weights_of which = f.initial ? WEIGHTS_INITIAL : f.last ? WEIGHTS_LAST : WEIGHTS_BEST;
    return export_run(out, id, which, words[1], e);
}

const struct command command_export = {
    .name = "export",
    .usage = "export RUN FILE [flags]",
    .summary = "weights of a finished run, the best unless told, as a safetensors file; RUN: an id, its first digits, "
               "a record's path",
    .run = run,
};

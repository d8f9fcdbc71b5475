/* record_files.c - the store of run records: OUT/runs/<ab>/<run_id>.json, written once, read often, by many processes.
 *
 * A record becomes visible by link(), which never replaces a file: a second writer finds the first record and keeps
 * it. */
#include "harness/store/record_files.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/name.h"
#include "core/label.h"
#include "harness/store/files.h"
#include "harness/store/pack/record_pack.h"
#include "harness/store/record_json.h"
#include "harness/store/schema.h"

void record_weights_name(const struct run *run, const char *kind, char name[RECORD_TEXT]) {
    char attempt[32] = "";
    if (run->attempt > 1) snprintf(attempt, sizeof attempt, ".%" PRId64, run->attempt);
    snprintf(name, RECORD_TEXT, WEIGHTS_FOLDER "/%s%s%s.safetensors", run->run_id, attempt, kind);
}

/* Whether the text is a run id, 32 hexadecimal digits. Ids become parts of paths, so nothing else is allowed. */
static bool is_run_id(const char *id) {
    size_t n = strspn(id, "0123456789abcdef");
    return n == RUN_ID_HEX - 1 && id[n] == 0;
}

static enum status checked_path(const char *out, const char *run_id, char *path, struct error *e) {
    if (!is_run_id(run_id)) return fail(e, ST_FAIL, "\"%.40s\" is not a run id of 32 hexadecimal digits", run_id);
    char longest[PATH_BYTES];
    TRY(path_format(longest, sizeof longest, e, "%s/runs/ab/%s.json.corrupt.9999", out, run_id));
    record_path(out, run_id, path, PATH_BYTES);
    return ST_OK;
}

/* --- damaged records ---------------------------------------------------------------------------------------------- */

enum status record_set_aside(const char *out, const char *run_id, const char *suffix, struct error *e) {
    char path[PATH_BYTES], target[PATH_BYTES];
    struct pack_count count;
    TRY(checked_path(out, run_id, path, e));
    if (access(path, F_OK) != 0 && record_is_there(path)) TRY(store_unpack(out, run_id, &count, e));
    if (file_move_aside(path, suffix, target) || errno == ENOENT) return ST_OK;
    return fail(e, ST_FAIL, "cannot rename %s to %s: %s", path, target, strerror(errno));
}

/* Checks a record or an attempt that was set aside. A damaged file is renamed, and the reason printed on stderr. */
static enum build_state check_file(const char *path, const char *run_id) {
    char *text;
    size_t size;
    struct error why;
    enum status status = record_text(path, NULL, &text, &size, &why);
    if (status == ST_DATA) return RECORD_ABSENT;
    if (status == ST_OK) status = record_parse(text, size, path, run_id, NULL, NULL, &why);
    free(text);
    if (status == ST_DATA) {
        char target[PATH_BYTES];
        if (file_move_aside(path, "corrupt", target))
            fprintf(stderr, "lrnn: a damaged run record was renamed to %s: %s\n", target, why.text);
        else if (errno != ENOENT)
            fprintf(stderr, "lrnn: a damaged run record could not be renamed (%s): %s\n", strerror(errno), why.text);
        else if (record_is_there(path)) /* if not, another process was faster and has said so */
            fprintf(stderr, "lrnn: a damaged run record stays in its pack: %s\n", why.text);
        return RECORD_WAS_CORRUPT;
    }
    if (status != ST_OK && status != ST_USAGE)
        fprintf(stderr, "lrnn: %s\n", why.text); /* exists but is unreadable now: keep it */
    return RECORD_DONE;
}

enum build_state record_check(const char *out, const char *run_id) {
    char path[PATH_BYTES];
    return checked_path(out, run_id, path, NULL) == ST_OK ? check_file(path, run_id) : RECORD_ABSENT;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

int64_t record_attempt(const char *out, const char *run_id) {
    char path[PATH_BYTES], folder[PATH_BYTES];
    struct folder_names names;
    int64_t attempt = 1;
    if (checked_path(out, run_id, path, NULL) != ST_OK) return attempt;
    path_folder(path, folder, sizeof folder);
    const char *name = path + strlen(folder) + 1;
    if (folder_names(&names, folder, NULL) != ST_OK) return attempt;
    for (int i = 0; i < names.n; i++)
        attempt +=
            strncmp(names.list[i]->d_name, name, strlen(name)) == 0 && names.list[i]->d_name[strlen(name)] == '.';
    folder_names_free(&names);
    return attempt;
}

/* Links the finished temporary file into place. An earlier whole record wins; a damaged one is first set aside. */
enum status record_write(const char *out, const struct run_record *r, bool *won, struct error *e) {
    char path[PATH_BYTES], folder[PATH_BYTES], temporary[PATH_BYTES], *text;
    size_t size;
    TRY(checked_path(out, r->run.run_id, path, e));
    path_folder(path, folder, sizeof folder);
    TRY(make_folder(folder, e));
    TRY(folder_sync(folder, e)); /* the entry of runs/<ab> in runs/ */
    TRY(record_format(r, &text, &size, e));
    enum status status = temporary_write(path, text, size, temporary, e);
    free(text);
    TRY(status);
    bool linked = false, there = record_is_there(path) && record_check(out, r->run.run_id) == RECORD_DONE;
    for (int attempt = 0; attempt < 3 && !linked && !there; attempt++) {
        linked = file_link(temporary, path);
        if (linked || errno != EEXIST) break;
        there = record_check(out, r->run.run_id) == RECORD_DONE;
        errno = EEXIST;
    }
    int reason = errno;
    unlink(temporary);
    if (!linked && !there) return file_link_refused(path, reason, e);
    if (won) *won = linked;
    return folder_sync(path, e);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Whether the end of a name after ".json" marks an attempt that was set aside: ".retried", ".retried.2",
 * ".replaced". */
static bool is_earlier_attempt(const char *suffix) {
    size_t word = strncmp(suffix, ".retried", 8) == 0 ? 8 : strncmp(suffix, ".replaced", 9) == 0 ? 9 : 0;
    const char *number = suffix + word;
    return word && (!*number || (*number == '.' && strspn(number + 1, "0123456789") == strlen(number + 1)));
}

/* Gives the id in a file's name, the part before ".json". False for other files. */
static bool id_of_name(const char *name, char id[RUN_ID_HEX], bool *set_aside) {
    size_t digits = RUN_ID_HEX - 1, whole = digits + strlen(".json");
    if (strlen(name) < whole || strncmp(name + digits, ".json", strlen(".json")) != 0) return false;
    *set_aside = is_earlier_attempt(name + whole);
    if (name[whole] && !*set_aside) return false;
    memcpy(id, name, digits);
    id[digits] = 0;
    return is_run_id(id);
}

/* Like record_read, but a record of another schema is ST_USAGE. */
static enum status read_one(const char *path, struct record_pack *last, struct run_record *r, struct arena *arena,
                            struct error *e) {
    char id[RUN_ID_HEX], *text;
    const char *slash = strrchr(path, '/');
    bool set_aside = false, named = id_of_name(slash ? slash + 1 : path, id, &set_aside);
    size_t size;
    TRY(record_text(path, last, &text, &size, e));
    enum status status = arena->base ? ST_OK : arena_reserve(arena, record_arena_bytes(size), e);
    if (status == ST_OK) status = record_parse(text, size, path, named ? id : NULL, r, arena, e);
    free(text);
    if (status == ST_OK) r->set_aside = set_aside;
    return status;
}

/* Makes another schema an error like damage. */
static enum status of_this_schema(enum status status, struct error *e) {
    if (status == ST_USAGE && e) e->status = ST_DATA;
    return status == ST_USAGE ? ST_DATA : status;
}

enum status record_read(const char *path, struct run_record *r, struct arena *arena, struct error *e) {
    return of_this_schema(read_one(path, NULL, r, arena, e), e);
}

enum status record_open(const char *path, struct open_record **open, struct error *e) {
    return record_open_next(path, NULL, open, e);
}

enum status record_open_next(const char *path, struct record_pack *last, struct open_record **open, struct error *e) {
    struct open_record *o = *open = calloc(1, sizeof *o);
    if (!o) return fail(e, ST_MEMORY, "no memory for a run record");
    enum status status = of_this_schema(read_one(path, last, &o->record, &o->arena, e), e);
    if (status == ST_OK) return ST_OK;
    record_close(o);
    *open = NULL;
    return status;
}

void record_close(struct open_record *open) {
    if (open) arena_free(&open->arena);
    free(open);
}

/* --- the files under OUT/runs ------------------------------------------------------------------------------------- */

static enum status list_add(struct record_list *files, const char *path, const char *id, bool set_aside, size_t packed,
                            struct error *e) {
    int n = files->n;
    if ((n & (n - 1)) == 0) { /* full: double the list */
        struct record_file *longer = realloc(files->list, (n ? 2 * (size_t)n : 1) * sizeof *longer);
        if (!longer) return fail(e, ST_MEMORY, "no memory for a list of records");
        files->list = longer;
    }
    struct record_file *file = &files->list[n];
    *file = (struct record_file){.path = strdup(path), .set_aside = set_aside, .packed = packed};
    if (!file->path) return fail(e, ST_MEMORY, "no memory for a list of records");
    memcpy(file->id, id, sizeof file->id);
    files->n++;
    return ST_OK;
}

/* Adds the records of a folder in OUT/runs whose ids begin with `ab`; "": records are not allowed in this folder. A
 * misplaced record would be found by no command, or count its run twice. */
static enum status list_folder(struct record_list *files, const char *folder, const char *ab, bool strict,
                               struct error *e) {
    char path[PATH_BYTES], id[RUN_ID_HEX];
    struct folder_names names;
    bool set_aside;
    TRY(folder_names(&names, folder, e));
    enum status status = ST_OK;
    for (int i = 0; i < names.n && status == ST_OK; i++) {
        const char *name = names.list[i]->d_name;
        bool named = id_of_name(name, id, &set_aside);
        if (!named && !(strict && *name != '.' && text_ends(name, ".json"))) continue;
        status = path_format(path, sizeof path, e, "%s/%s", folder, name);
        if (status != ST_OK) break;
        if (named && *ab && strncmp(ab, id, 2) == 0)
            status = list_add(files, path, id, set_aside, 0, e);
        else
            status = fail(e, ST_DATA,
                          "no command looks for a run in %s: a record is runs/AB/ID.json, AB the first digits of its "
                          "run's id; rename it, or move it away",
                          path);
    }
    folder_names_free(&names);
    return status;
}

/* Adds the records in a pack. */
static enum status list_pack(struct record_list *files, const char *out, const char *name, struct error *e) {
    char path[PATH_BYTES];
    struct record_pack pack;
    TRY(path_format(path, sizeof path, e, "%s/runs/%s", out, name));
    enum status status = pack_read(path, &pack, e);
    for (int i = 0; i < pack.n && status == ST_OK; i++) {
        record_path(out, pack.list[i].id, path, sizeof path);
        status = list_add(files, path, pack.list[i].id, false, pack.list[i].size, e);
    }
    pack_free(&pack);
    return status;
}

static int by_path(const void *left, const void *right) {
    const struct record_file *a = left, *b = right;
    int order = strcmp(a->path, b->path);
    return order ? order : (a->packed > 0) - (b->packed > 0);
}

/* Sorts the list, and drops packed records that are files too. */
static void settle_list(struct record_list *files) {
    int n = 0;
    if (files->n) qsort(files->list, (size_t)files->n, sizeof *files->list, by_path);
    for (int i = 0; i < files->n; i++) {
        if (n && strcmp(files->list[i].path, files->list[n - 1].path) == 0)
            free(files->list[i].path);
        else
            files->list[n++] = files->list[i];
    }
    files->n = n;
}

/* Lists packs before folders: a record that is unpacked meanwhile is in one of them, or in both. */
enum status records_list(struct record_list *files, const char *out, bool strict, struct error *e) {
    char folder[PATH_BYTES];
    struct folder_names names;
    *files = (struct record_list){0};
    TRY(path_format(folder, sizeof folder, e, "%s/runs", out));
    TRY(folder_names(&names, folder, e));
    enum status status = strict ? list_folder(files, folder, "", true, e) : ST_OK;
    for (int i = 0; i < names.n && status == ST_OK; i++)
        if (is_pack_name(names.list[i]->d_name)) status = list_pack(files, out, names.list[i]->d_name, e);
    for (int i = 0; i < names.n && status == ST_OK; i++) {
        const char *name = names.list[i]->d_name;
        bool is_ours = strlen(name) == 2 && isxdigit((unsigned char)name[0]) && isxdigit((unsigned char)name[1]);
        struct stat what;
        if (!is_ours && !strict) continue;
        status = path_format(folder, sizeof folder, e, "%s/runs/%s", out, name);
        if (status != ST_OK || (!is_ours && (stat(folder, &what) != 0 || !S_ISDIR(what.st_mode)))) continue;
        status = list_folder(files, folder, is_ours ? name : "", strict, e);
    }
    folder_names_free(&names);
    settle_list(files);
    if (status != ST_OK) records_list_free(files);
    return status;
}

void records_list_free(struct record_list *files) {
    for (int i = 0; i < files->n; i++) free(files->list[i].path);
    free(files->list);
    *files = (struct record_list){0};
}

enum status records_mend(const char *out, struct error *e) {
    struct record_list files;
    TRY(records_list(&files, out, false, e));
    for (int i = 0; i < files.n; i++) check_file(files.list[i].path, files.list[i].id);
    records_list_free(&files);
    return ST_OK;
}

/* --- all records -------------------------------------------------------------------------------------------------- */

static int by_start(const void *left, const void *right) {
    const struct run *a = &((const struct run_record *)left)->run, *b = &((const struct run_record *)right)->run;
    int order = strcmp(a->started, b->started);
    if (!order) order = strcmp(a->run_id, b->run_id);
    return order ? order : ((const struct run_record *)left)->set_aside - ((const struct run_record *)right)->set_aside;
}

static int by_id(const void *left, const void *right) {
    const struct run_record *a = left, *b = right;
    int order = strcmp(a->run.run_id, b->run.run_id);
    if (!order) order = a->set_aside - b->set_aside;
    return order ? order : strcmp(b->run.finished, a->run.finished);
}

/* Removes earlier results that were set aside from the list and counts them in their runs, because tables do not use
 * them. If a run has no new record yet, its latest earlier result stays. */
static void settle_set_aside(struct record_set *set) {
    struct run_record *list = set->list;
    int n = 0, end;
    qsort(list, (size_t)set->n, sizeof *list, by_id);
    for (int first = 0; first < set->n; first = end) {
        struct run_record *now = &list[n];
        for (end = first; end < set->n && !strcmp(list[end].run.run_id, list[first].run.run_id);) end++;
        list[n++] = list[first];
        now->again = now->set_aside;
        now->set_aside = false;
        for (int i = first + 1; i < end; i++) {
            if (list[i].run.status != RUN_OK)
                list[n++] = list[i];
            else
                now->replaced += !record_equal(now, &list[i]);
        }
    }
    set->n = n;
}

static enum status load_all(struct record_set *set, const struct record_list *files, struct record_pack *last,
                            FILE *broken, struct error *e) {
    size_t list = (size_t)files->n * sizeof *set->list, curves = ARENA_ALIGN;
    struct stat info;
    for (int i = 0; i < files->n; i++)
        if (files->list[i].packed || stat(files->list[i].path, &info) == 0)
            curves += record_arena_bytes(files->list[i].packed ? files->list[i].packed : (size_t)info.st_size);
    TRY(arena_reserve(&set->arena, list + curves, e));
    set->list = arena_alloc(&set->arena, list);
    for (int i = 0; i < files->n; i++) {
        const char *path = files->list[i].path;
        struct run_record *r = &set->list[set->n];
        struct error why;
        enum status status = read_one(path, last, r, &set->arena, &why);
        if (status == ST_OK && !isfinite(r->run.lr)) /* rows are grouped by rate, and NaN is not equal to itself */
            status = fail(&why, ST_DATA, "%s: the learning rate, lr in runs, is no number", path);
        if (status == ST_OK)
            set->n++;
        else if (status == ST_DATA && !files->list[i].packed && access(path, F_OK) != 0)
            continue; /* removed meanwhile */
        else if (broken && (status == ST_DATA || status == ST_USAGE))
            fprintf(broken, "%s\n", why.text);
        else if (status == ST_DATA)
            return fail(e, ST_DATA, "%.800s; move it away, or let `lrnn bench` set it aside and do its run again",
                        why.text);
        else if (status == ST_USAGE)
            return fail(e, ST_DATA, "%.800s; use the program that wrote it, or another folder", why.text);
        else
            return fail(e, status == ST_MEMORY ? status : ST_DATA, "%s", why.text);
    }
    settle_set_aside(set);
    qsort(set->list, (size_t)set->n, sizeof *set->list, by_start);
    /* An attempt that is being set aside has two names for a moment, or for ever if that was interrupted. It counts
     * once. */
    int n = 0;
    for (int i = 0; i < set->n; i++)
        if (n == 0 || !set->list[i].set_aside || !record_equal(&set->list[n - 1], &set->list[i]))
            set->list[n++] = set->list[i];
    set->n = n;
    return ST_OK;
}

enum status records_load_sound(struct record_set *set, const char *out, FILE *broken, struct error *e) {
    struct record_list files;
    *set = (struct record_set){0};
    struct record_pack last = {0};
    TRY(records_list(&files, out, false, e));
    enum status status = load_all(set, &files, &last, broken, e);
    pack_free(&last);
    records_list_free(&files);
    if (status != ST_OK) records_free(set);
    return status;
}

enum status records_load(struct record_set *set, const char *out, struct error *e) {
    return records_load_sound(set, out, NULL, e);
}

void records_free(struct record_set *set) {
    arena_free(&set->arena);
    *set = (struct record_set){0};
}

/* --- exports ------------------------------------------------------------------------------------------------------ */

static void print_runs(FILE *f, const struct record_set *set) {
    table_csv_header(&runs_table, f);
    for (int i = 0; i < set->n; i++) table_csv_row(&runs_table, &set->list[i].run, f);
}

/* Leaves out attempts that were set aside, because no column distinguishes attempts with one id. */
static void print_curves(FILE *f, const struct record_set *set) {
    table_csv_header(&curves_table, f);
    for (const struct run_record *r = set->list; r < set->list + set->n; r++)
        for (int64_t k = 0; k < r->n_curve && !r->set_aside; k++) {
            struct curve_row row = {.point = r->curve[k], .ppl = exp(r->curve[k].loss)};
            memcpy(row.run_id, r->run.run_id, sizeof row.run_id);
            table_csv_row(&curves_table, &row, f);
        }
}

static void print_evals(FILE *f, const struct record_set *set) {
    table_csv_header(&evals_table, f);
    for (const struct run_record *r = set->list; r < set->list + set->n; r++)
        for (int64_t k = 0; k < r->n_evals && !r->set_aside; k++) {
            struct eval_row row = {.point = r->evals[k]};
            memcpy(row.run_id, r->run.run_id, sizeof row.run_id);
            table_csv_row(&evals_table, &row, f);
        }
}

static const struct {
    const char *name;
    void (*print)(FILE *f, const struct record_set *set);
} exports[] = {{"runs.csv", print_runs}, {"curves.csv", print_curves}, {"evals.csv", print_evals}};
enum { EXPORTS = sizeof exports / sizeof *exports };

enum status records_export_check(const char *out, struct error *e) {
    char path[PATH_BYTES];
    for (int i = 0; i < EXPORTS; i++) {
        TRY(path_format(path, sizeof path, e, "%s/%s", out, exports[i].name));
        TRY(own_file_check(path, e));
    }
    return ST_OK;
}

enum status records_export_csv(const struct record_set *set, const char *out, struct error *e) {
    TRY(records_export_check(out, e));
    TRY(make_folder(out, e));
    for (int i = 0; i < EXPORTS; i++) {
        char path[PATH_BYTES];
        struct printed csv;
        TRY(path_format(path, sizeof path, e, "%s/%s", out, exports[i].name));
        TRY(printed_begin(&csv, path, e));
        exports[i].print(csv.f, set);
        TRY(printed_write(&csv, ST_OK, path, e));
    }
    return ST_OK;
}

/* --- the run that a user names ---------------------------------------------------------------------------------- */

#define ID_DIGITS (RUN_ID_HEX - 1)

static bool all_hex(const char *text, size_t n) {
    return strspn(text, "0123456789abcdef") >= n;
}

static enum status find_by_id(const char *command, const char *out, const char *text, char id[RUN_ID_HEX],
                              struct error *e) {
    char folder[PATH_BYTES], other[RUN_ID_HEX] = "";
    struct record_list files;
    struct folder_names names;
    int n = 0;
    TRY(records_list(&files, out, false, e));
    for (int i = 0; i < files.n; i++) {
        const struct record_file *file = &files.list[i];
        if (file->set_aside || strncmp(file->id, text, strlen(text)) != 0) continue;
        memcpy(n++ == 0 ? id : other, file->id, RUN_ID_HEX);
    }
    records_list_free(&files);
    if (n == 1) return ST_OK;
    if (n > 1)
        return fail(e, ST_USAGE, "%s: %d runs in %s/runs begin with '%s', among them %s and %s; give more digits",
                    command, n, out, text, id, other);
    TRY(path_format(folder, sizeof folder, e, "%s/checkpoints", out));
    TRY(folder_names(&names, folder, e));
    for (int i = 0; i < names.n; i++)
        if (text_ends(names.list[i]->d_name, ".ckpt") && strncmp(names.list[i]->d_name, text, strlen(text)) == 0)
            snprintf(other, sizeof other, "%.32s", names.list[i]->d_name);
    folder_names_free(&names);
    if (*other)
        return fail(e, ST_DATA, "%s: run %s is not finished; the command that began it goes on from its checkpoint",
                    command, other);
    return fail(e, ST_DATA,
                "%s: no run on record in %s/runs begins with '%s'; `lrnn train` prints a run's record, and --out names "
                "another folder",
                command, out, text);
}

/* Finds OUT and ID from the path of a file of a run: OUT/runs/ab/ID.json, or a file in OUT/weights or
 * OUT/checkpoints. */
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
    if (!record_is_there(path))
        return fail(e, ST_DATA, "%s: run %s is not finished: there is no record %s", command, id, path);
    return record_open(path, open, e);
}

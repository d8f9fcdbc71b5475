/* merge.c - see merge.h. Files are copied byte for byte: a record and its weights stay what they are. */
#include "harness/store/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file/safetensors.h"
#include "harness/store/files.h"
#include "harness/store/machine.h"
#include "harness/store/logs.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "harness/store/schema.h"

/* Records of a folder that are copied. */
struct merging {
    const char *from, *out; /* out NULL: they are only looked at */
    char **paths;
    int n;
    struct open_record *open; /* the one that is looked at */
    struct merge_count count;
    int bare, unknown; /* as store_count has them */
};

/* --- files -------------------------------------------------------------------------------------------------------- */

/* A file's name below `out` as it is below `from`. */
static const char *below(const char *path, const char *from) {
    return path + strlen(from) + 1;
}

/* Weights below `folder`, of the hash that `witness` has of them; *bytes NULL: they are not there, as in a folder of
 * records alone. ST_DATA: they are there and not those. */
static enum status read_kept(const char *folder, const char *name, const char *hash, const char *witness, char **bytes,
                             size_t *size, struct error *e) {
    char path[PATH_BYTES], found[HASH_HEX];
    *bytes = NULL;
    TRY(path_format(path, sizeof path, e, "%s/%s", folder, name));
    file_find_unnamed(path, hash, machine_memory_bytes() / 2);
    if (access(path, F_OK) != 0) return ST_OK;
    TRY(file_read_hashed(path, machine_memory_bytes() / 2, bytes, size, found, e));
    if (!strcmp(found, hash)) return ST_OK;
    free(*bytes);
    *bytes = NULL;
    return fail(e, ST_DATA, "%s is not what %s says: its XXH3-128 is %s, expected %.40s; copy it again", path, witness,
                found, hash);
}

/* Checks the weights that the run's record names. */
static enum status read_best(const char *folder, const struct run *run, char **bytes, size_t *size, struct error *e) {
    char witness[RUN_ID_HEX + 32];
    *bytes = NULL;
    *size = 0;
    if (!*run->ckpt || strncmp(run->ckpt, WEIGHTS_FOLDER "/", sizeof WEIGHTS_FOLDER) != 0 || strstr(run->ckpt, ".."))
        return ST_OK;
    snprintf(witness, sizeof witness, "the record of run %s", run->run_id);
    return read_kept(folder, run->ckpt, run->ckpt_xxh3, witness, bytes, size, e);
}

/* Checks the last weights, which `--keep-weights all` keeps; the file of the best has their hash. */
static enum status read_last(const char *folder, const struct run *run, const char *best, size_t best_size,
                             char **bytes, size_t *size, struct error *e) {
    struct safetensors st;
    char name[RECORD_TEXT];
    *bytes = NULL;
    if (!best || safetensors_parse(&st, best, best_size, run->ckpt, NULL) != ST_OK) return ST_OK;
    const char *hash = safetensors_metadata(&st, "last_xxh3");
    record_weights_name(run, ".last", name);
    enum status status = hash ? read_kept(folder, name, hash, run->ckpt, bytes, size, e) : ST_OK;
    safetensors_free(&st);
    return status;
}

/* --- a record ----------------------------------------------------------------------------------------------------- */

static enum status read_record(struct merging *m, int i, struct error *e) {
    record_close(m->open);
    return record_open(m->paths[i], &m->open, e);
}

/* The weights of a run below a folder, in memory; NULL: none are kept, or they are not there. */
struct weights {
    char *best, *last;
    size_t best_size, last_size;
};

static void free_weights(struct weights *w) {
    free(w->best);
    free(w->last);
}

static enum status read_weights(const char *folder, const struct run *run, struct weights *w, struct error *e) {
    *w = (struct weights){.best = NULL};
    TRY(read_best(folder, run, &w->best, &w->best_size, e));
    enum status status = read_last(folder, run, w->best, w->best_size, &w->last, &w->last_size, e);
    if (status != ST_OK) free_weights(w);
    return status;
}

/* *bare: it names weights, and they are not there. */
static enum status check_weights(const char *folder, const struct run *run, bool *bare, struct error *e) {
    struct weights w;
    TRY(read_weights(folder, run, &w, e));
    *bare = *run->ckpt && !w.best;
    free_weights(&w);
    return ST_OK;
}

/* Compares with what OUT has. A run that was trained twice may have other weights, and has another record. */
struct known {
    bool there, same_weights, same_record; /* without a record there the others are true */
    bool taken; /* the name of its weights is, by those of another training; of attempts that were set aside alone */
};

/* An attempt that was set aside in one folder may be another training than the run that the other has under the name of
 * its weights; both are whole. */
static bool is_taken(const struct merging *m, const struct known *known) {
    struct error why;
    char *bytes;
    size_t size;
    if (known->there || !m->open->record.set_aside) return false;
    enum status status = read_best(m->out, &m->open->record.run, &bytes, &size, &why);
    if (status == ST_OK) free(bytes);
    return status == ST_DATA;
}

/* ST_DATA: the record that is there is damaged. */
static enum status find_known(struct merging *m, int i, struct known *known, struct error *e) {
    char path[PATH_BYTES];
    struct open_record *there;
    const struct run *run = &m->open->record.run;
    TRY(path_format(path, sizeof path, e, "%s/%s", m->out, below(m->paths[i], m->from)));
    *known = (struct known){access(path, F_OK) == 0, true, true, false};
    known->taken = is_taken(m, known);
    if (!known->there) return ST_OK;
    TRY(record_open(path, &there, e));
    const struct run *other = &there->record.run;
    known->same_weights = !strcmp(other->ckpt, run->ckpt) && !strcmp(other->ckpt_xxh3, run->ckpt_xxh3);
    known->same_record = record_equal(&there->record, &m->open->record);
    record_close(there);
    return ST_OK;
}

static enum status check_one(struct merging *m, int i, struct error *e) {
    bool bare;
    struct known known;
    TRY(read_record(m, i, e));
    const struct run *run = &m->open->record.run;
    TRY(check_weights(m->from, run, &bare, e));
    m->bare += bare;
    m->unknown += !machines_have(m->from, run->machine_id, run->env_epoch);
    if (!m->out) return ST_OK;
    TRY(find_known(m, i, &known, e));
    return known.same_weights && !known.taken ? check_weights(m->out, run, &bare, e) : ST_OK;
}

/* Copies them unless OUT has them, which check_one has compared. */
static enum status put_weights(struct merging *m, const char *name, const char *bytes, size_t size, struct error *e) {
    char path[PATH_BYTES];
    bool new;
    TRY(path_format(path, sizeof path, e, "%s/%s", m->out, name));
    if (!bytes || access(path, F_OK) == 0) return ST_OK;
    TRY(file_put(path, bytes, size, &new, e));
    m->count.weights += new;
    return ST_OK;
}

/* The weights come before the record: where there is a record, they are there. */
static enum status copy_weights(struct merging *m, const struct run *run, struct error *e) {
    struct weights w;
    char name[RECORD_TEXT];
    record_weights_name(run, ".last", name);
    TRY(read_weights(m->from, run, &w, e));
    enum status status = put_weights(m, name, w.last, w.last_size, e);
    if (status == ST_OK) status = put_weights(m, run->ckpt, w.best, w.best_size, e);
    free_weights(&w);
    return status;
}

/* How fast the run's cell was, if only `from` knows. */
static enum status copy_speed(const struct merging *m, const struct run *run, struct error *e) {
    struct perf_row row, known;
    if (!perf_latest(m->from, run->cell_id, NULL, &row) || perf_latest(m->out, run->cell_id, NULL, &known))
        return ST_OK;
    return perf_append(m->out, &row, e);
}

static enum status copy_one(struct merging *m, int i, struct error *e) {
    char path[PATH_BYTES], *bytes;
    size_t size;
    bool new = false;
    struct known known;
    TRY(read_record(m, i, e));
    TRY(find_known(m, i, &known, e));
    if (known.taken) {
        m->count.known++;
        m->count.other++;
        return ST_OK;
    }
    if (known.same_weights) TRY(copy_weights(m, &m->open->record.run, e));
    if (!known.there) {
        TRY(path_format(path, sizeof path, e, "%s/%s", m->out, below(m->paths[i], m->from)));
        TRY(file_read(m->paths[i], RECORD_MOST_BYTES, &bytes, &size, e));
        enum status status = file_put(path, bytes, size, &new, e);
        free(bytes);
        TRY(status);
    }
    m->count.records += new;
    m->count.known += !new;
    m->count.other += !known.same_record;
    return copy_speed(m, &m->open->record.run, e);
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

/* Every record is looked at: the last that is not whole is the error, and those before it are said. */
static enum status check_all(struct merging *m, struct error *e) {
    enum status status = ST_OK;
    for (int i = 0; i < m->n; i++) {
        struct error why;
        enum status one = check_one(m, i, &why);
        if (one == ST_OK) continue;
        if (status != ST_OK) fprintf(stderr, "lrnn: %s\n", e->text);
        status = fail(e, one, "%s", why.text);
    }
    return status;
}

static enum status begin(struct merging *m, const char *from, const char *out, struct error *e) {
    *m = (struct merging){.from = from, .out = out};
    TRY(records_paths(from, &m->paths, &m->n, e));
    TRY(records_refuse_stray(from, e));
    if (m->n == 0) return fail(e, ST_DATA, "no run records under %s/runs", from);
    return check_all(m, e);
}

static void end(struct merging *m) {
    for (int i = 0; i < m->n; i++) free(m->paths[i]);
    free(m->paths);
    record_close(m->open);
}

enum status store_merge(const char *from, const char *out, struct merge_count *count, struct error *e) {
    struct merging m;
    enum status status = begin(&m, from, out, e);
    for (int i = 0; i < m.n && status == ST_OK; i++) status = copy_one(&m, i, e);
    *count = m.count;
    end(&m);
    return status;
}

enum status store_check(const char *from, struct store_count *count, struct error *e) {
    struct merging m;
    enum status status = begin(&m, from, NULL, e);
    *count = (struct store_count){m.n, m.bare, m.unknown};
    end(&m);
    return status;
}

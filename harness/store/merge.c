/* merge.c - see merge.h. Files are copied byte for byte: a record and its weights stay what they are. */
#include "harness/store/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file/safetensors.h"
#include "harness/store/files.h"
#include "harness/store/pack/record_pack.h"
#include "harness/store/machine.h"
#include "harness/store/logs.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"

/* Records of a folder that are copied. */
struct merging {
    const char *from, *out; /* out NULL: they are only checked */
    struct record_list files;
    struct open_record *open; /* the current record */
    struct record_pack pack;  /* the last one, see record_text */
    struct merge_count count;
    int bare, unknown; /* see struct store_count */
};

/* --- weights ------------------------------------------------------------------------------------------------------ */

/* A file of a run's weights, read into memory. bytes NULL: no weights were kept, or the file is missing, as in a folder
 * with records only. */
struct kept {
    char name[RECORD_TEXT];
    char *bytes;
    size_t size;
};

enum { BEST, LAST, KINDS }; /* LAST: the weights of the last step, from `--keep-weights all` */

static void free_weights(struct kept w[KINDS]) {
    for (int k = 0; k < KINDS; k++) free(w[k].bytes);
}

/* Reads a file and checks its hash. ST_DATA: the file has another hash than `witness` says. */
static enum status read_kept(const char *folder, struct kept *w, const char *hash, const char *witness,
                             struct error *e) {
    char path[PATH_BYTES], found[HASH_HEX];
    TRY(path_format(path, sizeof path, e, "%s/%s", folder, w->name));
    file_find_unnamed(path, hash, machine_memory_bytes() / 2);
    if (access(path, F_OK) != 0) return ST_OK;
    TRY(file_read_hashed(path, machine_memory_bytes() / 2, &w->bytes, &w->size, found, e));
    if (!strcmp(found, hash)) return ST_OK;
    return fail(e, ST_DATA, "%s is not what %s says: its XXH3-128 is %s, expected %.40s; copy it again", path, witness,
                found, hash);
}

/* Reads the weights that the run's record names, and with `all` those of the last step, whose hash is in the file of
 * the best. After an error `w` is empty. */
static enum status read_weights(const char *folder, const struct run *run, bool all, struct kept w[KINDS],
                                struct error *e) {
    char witness[RUN_ID_HEX + 32];
    struct safetensors st;
    w[BEST] = w[LAST] = (struct kept){.bytes = NULL};
    if (strncmp(run->ckpt, WEIGHTS_FOLDER "/", sizeof WEIGHTS_FOLDER) != 0 || strstr(run->ckpt, "..")) return ST_OK;
    memcpy(w[BEST].name, run->ckpt, sizeof run->ckpt);
    snprintf(witness, sizeof witness, "the record of run %s", run->run_id);
    enum status status = read_kept(folder, &w[BEST], run->ckpt_xxh3, witness, e);
    if (status == ST_OK && all && w[BEST].bytes &&
        safetensors_parse(&st, w[BEST].bytes, w[BEST].size, run->ckpt, NULL) == ST_OK) {
        const char *hash = safetensors_metadata(&st, "last_xxh3");
        record_weights_name(run, ".last", w[LAST].name);
        if (hash) status = read_kept(folder, &w[LAST], hash, run->ckpt, e);
        safetensors_free(&st);
    }
    if (status != ST_OK) free_weights(w);
    return status;
}

/* Checks a run's weights. *bare: the record names weights, but the file is missing. */
static enum status check_weights(const char *folder, const struct run *run, bool *bare, struct error *e) {
    struct kept w[KINDS];
    TRY(read_weights(folder, run, true, w, e));
    *bare = *run->ckpt && !w[BEST].bytes;
    free_weights(w);
    return ST_OK;
}

/* Copies a run's weights unless OUT has them; check_one has compared those. Weights are copied before the record, so
 * that a record never lacks them. */
static enum status copy_weights(struct merging *m, const struct run *run, struct error *e) {
    struct kept w[KINDS];
    char path[PATH_BYTES];
    enum status status = ST_OK;
    TRY(read_weights(m->from, run, true, w, e));
    for (int k = LAST; k >= BEST && status == ST_OK; k--) {
        bool is_new = false;
        if (!w[k].bytes) continue;
        status = path_format(path, sizeof path, e, "%s/%s", m->out, w[k].name);
        if (status == ST_OK && access(path, F_OK) != 0) status = file_put(path, w[k].bytes, w[k].size, &is_new, e);
        m->count.weights += is_new;
    }
    free_weights(w);
    return status;
}

/* --- a record ----------------------------------------------------------------------------------------------------- */

/* Reads record number i. `path` becomes its path below `out`, or below `from` if nothing is copied. */
static enum status read_record(struct merging *m, int i, char path[PATH_BYTES], struct error *e) {
    record_close(m->open);
    TRY(path_format(path, PATH_BYTES, e, "%s/%s", m->out ? m->out : m->from,
                    m->files.list[i].path + strlen(m->from) + 1));
    return record_open_next(m->files.list[i].path, &m->pack, &m->open, e);
}

/* The run's files in OUT, compared with those to copy. A run that was trained twice has two different records and may
 * have different weights. */
struct known {
    bool there, same_weights, same_record; /* if not `there`, the other two are true */
    bool taken; /* OUT has other weights under this name; possible only for an attempt that was set aside */
};

/* Compares a run with OUT. The weights of an attempt that was set aside may have the same name as weights of another
 * training in OUT; neither is damaged. ST_DATA: the record in OUT is damaged. */
static enum status find_known(struct merging *m, const char *path, struct known *known, struct error *e) {
    struct open_record *there;
    const struct run *run = &m->open->record.run;
    *known = (struct known){record_is_there(path), true, true, false};
    if (!known->there && m->open->record.set_aside) {
        struct kept w[KINDS];
        struct error why;
        enum status status = read_weights(m->out, run, false, w, &why);
        if (status == ST_OK) free_weights(w);
        known->taken = status == ST_DATA;
    }
    if (!known->there) return ST_OK;
    TRY(record_open(path, &there, e));
    const struct run *other = &there->record.run;
    known->same_weights = !strcmp(other->ckpt, run->ckpt) && !strcmp(other->ckpt_xxh3, run->ckpt_xxh3);
    known->same_record = record_equal(&there->record, &m->open->record);
    record_close(there);
    return ST_OK;
}

static enum status check_one(struct merging *m, int i, struct error *e) {
    char path[PATH_BYTES];
    bool bare;
    struct known known;
    TRY(read_record(m, i, path, e));
    const struct run *run = &m->open->record.run;
    TRY(check_weights(m->from, run, &bare, e));
    m->bare += bare;
    m->unknown += !machines_have(m->from, run->machine_id, run->env_epoch);
    if (!m->out) return ST_OK;
    TRY(find_known(m, path, &known, e));
    return known.same_weights && !known.taken ? check_weights(m->out, run, &bare, e) : ST_OK;
}

static enum status copy_one(struct merging *m, int i, struct error *e) {
    char path[PATH_BYTES], *bytes;
    size_t size;
    bool is_new = false;
    struct known known;
    struct perf_row speed, other;
    TRY(read_record(m, i, path, e));
    TRY(find_known(m, path, &known, e));
    const struct run *run = &m->open->record.run;
    if (known.taken) {
        m->count.known++;
        m->count.other++;
        return ST_OK;
    }
    if (known.same_weights) TRY(copy_weights(m, run, e));
    if (!known.there) {
        TRY(record_text(m->files.list[i].path, &m->pack, &bytes, &size, e));
        enum status status = file_put(path, bytes, size, &is_new, e);
        free(bytes);
        TRY(status);
    }
    m->count.records += is_new;
    m->count.known += !is_new;
    m->count.other += !known.same_record;
    /* Copies the speed of the run's cell if only `from` has it. */
    if (!perf_latest(m->from, run->cell_id, NULL, &speed) || perf_latest(m->out, run->cell_id, NULL, &other))
        return ST_OK;
    return perf_append(m->out, &speed, e);
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

/* Checks every record. The last damaged record is the error; earlier ones are reported on stderr. */
static enum status begin(struct merging *m, const char *from, const char *out, struct error *e) {
    *m = (struct merging){.from = from, .out = out};
    TRY(records_list(&m->files, from, true, e));
    if (m->files.n == 0) return fail(e, ST_DATA, "no run records under %s/runs", from);
    enum status status = ST_OK;
    for (int i = 0; i < m->files.n; i++) {
        struct error why;
        enum status one = check_one(m, i, &why);
        if (one == ST_OK) continue;
        if (status != ST_OK) fprintf(stderr, "lrnn: %s\n", e->text);
        status = fail(e, one, "%s", why.text);
    }
    return status;
}

static void end(struct merging *m) {
    records_list_free(&m->files);
    record_close(m->open);
    pack_free(&m->pack);
}

enum status store_merge(const char *from, const char *out, struct merge_count *count, struct error *e) {
    struct merging m;
    enum status status = begin(&m, from, out, e);
    for (int i = 0; i < m.files.n && status == ST_OK; i++) status = copy_one(&m, i, e);
    *count = m.count;
    end(&m);
    return status;
}

enum status store_check(const char *from, struct store_count *count, struct error *e) {
    struct merging m;
    enum status status = begin(&m, from, NULL, e);
    *count = (struct store_count){m.files.n, m.bare, m.unknown};
    end(&m);
    return status;
}

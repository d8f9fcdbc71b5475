/* weights.c - see weights.h. */
#include "harness/run/weights.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/file/name.h"
#include "core/option.h"
#include "harness/store/record_files.h"
#include "harness/store/shell.h"
#include "harness/study/study.h"
#include "tasks/task.h"

#define LISTED 3 /* most names of one kind in a message; the rest are only counted */

static enum status read_and_hash(const char *path, char **bytes, size_t *size, char hex[HASH_HEX], struct error *e) {
    return file_read_hashed(path, machine_memory_bytes() / 2, bytes, size, hex, e);
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

/* Writes `stored`, an array of parameters in the host's memory, to a file. */
static enum status write_block(const struct params *p, const real *stored, const char *path,
                               const struct st_pair *pairs, int n_pairs, struct error *e) {
    struct st_source *sources = calloc((size_t)p->n + 1, sizeof *sources);
    double *values = calloc((size_t)p->floats + 1, sizeof *values);
    enum status status = sources && values ? ST_OK : fail(e, ST_MEMORY, "no memory to write %s", path);
    for (int i = 0; i < p->n && status == ST_OK; i++) {
        const struct param *param = &p->list[i];
        param_to_contract(param, stored + param->offset, values + param->offset);
        sources[i] = (struct st_source){
            .name = param->name, .rank = param->spec.rank, .f64 = REAL_IS_DOUBLE, .values = values + param->offset};
        memcpy(sources[i].dims, param->spec.dims, sizeof sources[i].dims);
    }
    if (status == ST_OK) status = safetensors_write(path, sources, p->n, pairs, n_pairs, e);
    free(values);
    free(sources);
    return status;
}

/* Writes an array of parameters into the folder of OUT/NAME, under a temporary name that no other process uses. Gives
 * the file's hash. */
static enum status write_beside(const struct params *p, const real *stored, const char *out, const char *name,
                                const struct st_pair *pairs, int n_pairs, char place[PATH_BYTES],
                                char target[PATH_BYTES], char hash[HASH_HEX], struct error *e) {
    struct timespec now;
    char *bytes;
    size_t size;
    clock_gettime(CLOCK_REALTIME, &now);
    TRY(path_format(target, PATH_BYTES, e, "%s/%s", out, name));
    TRY(path_format(place, PATH_BYTES, e, "%s.%ld.%lx.tmp", target, (long)getpid(), (unsigned long)now.tv_nsec));
    TRY(write_block(p, stored, place, pairs, n_pairs, e));
    TRY(read_and_hash(place, &bytes, &size, hash, e));
    free(bytes);
    return ST_OK;
}

static enum status write_both(const struct params *params, const real *last, const char *out, struct run *row,
                              struct weights_kept *kept, struct error *e) {
    char name[RECORD_TEXT], last_hash[HASH_HEX];
    struct st_pair pairs[] = {{"lrnn_weights", WEIGHTS_VERSION}, {"run_id", row->run_id}, {"last_xxh3", last_hash}};
    record_weights_name(row, ".last", name);
    if (last) TRY(write_beside(params, last, out, name, pairs, 2, kept->last, kept->last_name, last_hash, e));
    record_weights_name(row, "", row->ckpt);
    const real *best = params_fetch(params, params->value);
    return write_beside(params, best, out, row->ckpt, pairs, last ? 3 : 2, kept->best, kept->best_name, row->ckpt_xxh3,
                        e);
}

enum status weights_write(const struct params *params, const real *last, const char *out, struct run *row,
                          struct weights_kept *kept, struct error *e) {
    char path[PATH_BYTES];
    *kept = (struct weights_kept){.best = ""};
    TRY(path_format(path, sizeof path, e, "%s/" WEIGHTS_FOLDER, out));
    TRY(make_folder(path, e));
    enum status status = write_both(params, last, out, row, kept, e);
    if (status != ST_OK) weights_settle(kept, false, NULL);
    return status;
}

static enum status settle(const char *place, const char *target, bool won, struct error *e) {
    if (!*place) return ST_OK;
    if (!won) unlink(place);
    if (!won || rename(place, target) == 0) return ST_OK;
    return fail(e, ST_FAIL, "cannot rename %s to %s: %s", place, target, strerror(errno));
}

enum status weights_settle(const struct weights_kept *kept, bool won, struct error *e) {
    TRY(settle(kept->last, kept->last_name, won, e));
    TRY(settle(kept->best, kept->best_name, won, e));
    return *kept->best && won ? folder_sync(kept->best_name, e) : ST_OK;
}

/* --- exporting ---------------------------------------------------------------------------------------------------- */

/* Metadata of an exported file. */
struct metadata {
    struct st_pair pairs[20];
    int n;
    char values_hash[HASH_HEX];
    char numbers[10][40];
    int n_numbers;
};

static void add_text(struct metadata *m, const char *key, const char *value) {
    m->pairs[m->n++] = (struct st_pair){key, value};
}

static void add_number(struct metadata *m, const char *key, double value) {
    char *text = m->numbers[m->n_numbers++];
    format_double(value, text, sizeof m->numbers[0]);
    add_text(m, key, text);
}

/* Adds the readout (enum readout), so that the file contains all that is needed to build the net. It is left out if the
 * task's data are not on this machine. */
static void add_readout(struct metadata *m, const struct run_record *r) {
    static const char *const names[] = {"positions", "sequence", "decoded"};
    struct error why;
    struct setup *s = setup_stored(r->config, r->run.run_id, 0, &why);
    if (s) add_text(m, "readout", names[setup_net_shape(&s->spec, SPLIT_TEST).readout]);
    setup_free(s);
}

static void describe(const struct run_record *r, enum weights_of which, struct metadata *m) {
    static const char *const names[] = {"best", "last", "initial"};
    const struct run *run = &r->run;
    const int64_t steps[] = {run->best_step, run->steps, 0};
    *m = (struct metadata){.n = 0};
    add_text(m, "lrnn_weights", WEIGHTS_VERSION);
    add_text(m, "run_id", run->run_id);
    add_text(m, "task", run->task);
    add_number(m, "task_version", (double)run->task_version);
    add_text(m, "model", run->layers);
    add_text(m, "config", r->config);
    add_text(m, "dtype", run->dtype);
    add_text(m, "numerics", run->numerics);
    add_readout(m, r);
    add_text(m, "weights", names[which]);
    add_number(m, "step", (double)steps[which]);
    if (which != WEIGHTS_BEST) return;
    add_number(m, "best_step", (double)run->best_step);
    add_number(m, "val_acc", run->val_acc);
    add_number(m, "val_loss", run->val_loss);
    add_number(m, "test_acc", run->test_acc);
    add_number(m, "test_loss", run->test_loss);
    if (run->metric != METRIC_MACRO_ACC) return;
    if (isfinite(run->val_metric)) add_number(m, "val_macro_acc", run->val_metric); /* older records do not have it */
    add_number(m, "test_macro_acc", run->test_macro_acc);
}

static int by_name(const void *left, const void *right) {
    return strcmp((*(const struct st_tensor *const *)left)->name, (*(const struct st_tensor *const *)right)->name);
}

enum status weights_hash(const struct safetensors *file, char hex[HASH_HEX], struct error *e) {
    const struct st_tensor **sorted = malloc((size_t)file->n * sizeof(void *) + 1);
    XXH3_state_t *hash = XXH3_createState();
    bool room = sorted && hash && XXH3_128bits_reset(hash) == XXH_OK;
    for (int i = 0; i < file->n && room; i++) sorted[i] = &file->tensors[i];
    if (room) qsort(sorted, (size_t)file->n, sizeof(void *), by_name);
    for (int i = 0; i < file->n && room; i++)
        for (int64_t j = 0; j < sorted[i]->count; j++) {
            double value = st_value(sorted[i], j);
            XXH3_128bits_update(hash, &value, sizeof value);
        }
    if (room) {
        XXH128_hash_t sum = XXH3_128bits_digest(hash);
        snprintf(hex, HASH_HEX, "%016llx%016llx", (unsigned long long)sum.high64, (unsigned long long)sum.low64);
    }
    XXH3_freeState(hash);
    free(sorted);
    return room ? ST_OK : fail(e, ST_MEMORY, "no memory for the hash of %d tensors", file->n);
}

/* Copies a stored file with other metadata, to which the hash of its values is added. */
static enum status write_copy(const struct safetensors *kept, const char *path, struct metadata *m,
                              struct weights_count *count, struct error *e) {
    TRY(weights_hash(kept, m->values_hash, e));
    add_text(m, "values_xxh3", m->values_hash);
    int64_t total = 0, done = 0;
    for (int i = 0; i < kept->n; i++) total += kept->tensors[i].count;
    struct st_source *sources = calloc((size_t)kept->n + 1, sizeof *sources);
    double *values = calloc((size_t)total + 1, sizeof *values);
    enum status status = sources && values ? ST_OK : fail(e, ST_MEMORY, "no memory to write %s", path);
    for (int i = 0; i < kept->n && status == ST_OK; i++) {
        const struct st_tensor *t = &kept->tensors[i];
        sources[i] = (struct st_source){.name = t->name, .rank = t->rank, .f64 = t->f64, .values = values + done};
        memcpy(sources[i].dims, t->dims, sizeof sources[i].dims);
        for (int64_t j = 0; j < t->count; j++) values[done++] = st_value(t, j);
    }
    if (status == ST_OK) status = safetensors_write(path, sources, kept->n, m->pairs, m->n, e);
    if (status == ST_OK && count) *count = (struct weights_count){kept->n, total};
    free(values);
    free(sources);
    return status;
}

/* Makes the error for a missing file. Folders are often copied without weights, so the message says how to train them
 * again. */
static enum status not_there(const struct run *run, const char *out, const char *name, const struct error *why,
                             struct error *e) {
    char word[4 * PATH_BYTES];
    if (why->status != ST_DATA || strcmp(name, run->ckpt) != 0) /* only the best weights can be made again */
        return fail(e, why->status, "the weights of run %s: %.900s", run->run_id, why->text);
    return fail(e, ST_DATA,
                "the weights of run %s: %.500s; `lrnn rerun %.8s --keep --out %.400s` makes them in %s/rerun",
                run->run_id, why->text, run->run_id, shell_word(out, word, sizeof word), out);
}

/* Reads a file of the run in OUT, and checks that it is complete and has this hash. */
static enum status read_kept(const struct run *run, const char *out, const char *name, const char *hash,
                             const char *witness, struct safetensors *kept, struct error *e) {
    char path[PATH_BYTES], found[HASH_HEX], *bytes;
    size_t size;
    struct error why;
    TRY(path_format(path, sizeof path, e, "%s/%s", out, name));
    file_find_unnamed(path, hash, machine_memory_bytes() / 2);
    enum status status = read_and_hash(path, &bytes, &size, found, &why);
    if (status != ST_OK) return not_there(run, out, name, &why, e);
    if (strcmp(found, hash) != 0)
        status = fail(e, ST_DATA, "%s, %zu bytes, is cut off or altered: its XXH3-128 is %s, %s says %.40s", path, size,
                      found, witness, hash);
    if (status == ST_OK) status = safetensors_parse(kept, bytes, size, path, e);
    free(bytes);
    return status;
}

/* Reads the weights of the last step. Their hash is in the file of the best weights, whose hash is in the record. */
static enum status read_last(const struct run *run, const char *out, const struct safetensors *best,
                             struct safetensors *last, struct error *e) {
    const char *hash = safetensors_metadata(best, "last_xxh3");
    char name[RECORD_TEXT];
    record_weights_name(run, ".last", name);
    if (hash) return read_kept(run, out, name, hash, "the file of its best weights", last, e);
    return fail(e, ST_DATA,
                "run %s kept no weights of its last step: it was made without --keep-weights all; train it again into "
                "another folder (--out FOLDER)",
                run->run_id);
}

enum status weights_export(const struct run_record *record, enum weights_of which, const char *out, const char *target,
                           struct weights_count *count, struct error *e) {
    const struct run *run = &record->run;
    struct safetensors best, last;
    struct metadata metadata;
    char expected[RECORD_TEXT];
    if (!*run->ckpt && run->status != RUN_OK && run->status >= 0 && run->status < RUN_STATUS_COUNT)
        return fail(e, ST_DATA, "run %s ended as '%s' and kept no weights", run->run_id, run_status_names[run->status]);
    if (!*run->ckpt)
        return fail(e, ST_DATA,
                    "run %s kept no weights: it was made with --keep-weights no, or before weights were kept; "
                    "train it again into another folder (--out FOLDER)",
                    run->run_id);
    record_weights_name(run, "", expected);
    if (strcmp(run->ckpt, expected) != 0) /* the record may be someone else's; it must not name a path outside OUT */
        return fail(e, ST_DATA,
                    "the record of run %s names '%s' as its weights; expected " WEIGHTS_FOLDER
                    "/%s.safetensors, or with the number of the attempt",
                    run->run_id, run->ckpt, run->run_id);
    TRY(read_kept(run, out, run->ckpt, run->ckpt_xxh3, "the run's record", &best, e));
    describe(record, which, &metadata);
    enum status status = ST_OK;
    if (which == WEIGHTS_BEST) status = write_copy(&best, target, &metadata, count, e);
    if (which == WEIGHTS_LAST) status = read_last(run, out, &best, &last, e);
    if (which == WEIGHTS_LAST && status == ST_OK) {
        status = write_copy(&last, target, &metadata, count, e);
        safetensors_free(&last);
    }
    safetensors_free(&best);
    return status;
}

enum status weights_export_initial(const struct run_record *record, const struct params *params, const char *target,
                                   struct weights_count *count, struct error *e) {
    struct metadata metadata;
    describe(record, WEIGHTS_INITIAL, &metadata);
    TRY(write_block(params, params_fetch(params, params->value), target, metadata.pairs, metadata.n, e));
    *count = (struct weights_count){.tensors = params->n};
    for (int i = 0; i < params->n; i++) count->values += params->list[i].count;
    return ST_OK;
}

/* --- loading ------------------------------------------------------------------------------------------------------ */

/* Ways in which a file does not fit a net. */
enum misfit { MISSING, EXTRA, WRONG, MISFITS };

/* Whether the parameter fails to fit in this way. `text` gets its name, and for WRONG also what is wrong. */
static bool is_misfit(const struct param *p, const struct st_tensor *t, enum misfit kind, char *text, size_t size) {
    char got[64], want[64];
    snprintf(text, size, "%.99s", p->name);
    if (!t || kind == MISSING) return !t && kind == MISSING;
    bool same = t->rank == p->spec.rank;
    for (int i = 0; same && i < t->rank; i++) same = t->dims[i] == p->spec.dims[i];
    st_shape_text(t->rank, t->dims, got, sizeof got);
    st_shape_text(p->spec.rank, p->spec.dims, want, sizeof want);
    if (!same)
        snprintf(text, size, "%.99s is %s, expected %s", p->name, got, want);
    else
        snprintf(text, size, "%.99s is F64, expected F32", p->name);
    return !same || (t->f64 && !REAL_IS_DOUBLE);
}

/* Checks that the file has every parameter and nothing else. The error lists some of each kind: "missing: a, b, c and 4
 * more; not of this net: d". */
static enum status check_tensors(const struct params *params, const struct safetensors *file, const char *path,
                                 struct error *e) {
    static const char *const kinds[MISFITS] = {"missing:", "not of this net:", "wrong:"};
    char list[sizeof e->text] = "", text[256];
    bool narrowed = false, whole = true; /* narrowed: values in double would be rounded to float */
    FILE *f = fmemopen(list, sizeof list, "w");
    if (!f) return fail(e, ST_MEMORY, "no memory to check %s", path);
    for (int i = 0; i < file->n; i++) narrowed = narrowed || (file->tensors[i].f64 && !REAL_IS_DOUBLE);
    for (int kind = 0; kind < MISFITS; kind++) {
        int n = 0, of = kind == EXTRA ? file->n : params->n;
        for (int i = 0; i < of; i++) {
            bool misfit;
            if (kind == EXTRA) {
                misfit = !params_find(params, file->tensors[i].name);
                snprintf(text, sizeof text, "%.99s", file->tensors[i].name);
            } else {
                const struct param *p = &params->list[i];
                misfit = is_misfit(p, safetensors_find(file, p->name), (enum misfit)kind, text, sizeof text);
            }
            if (!misfit || n++ >= LISTED) continue;
            fprintf(f, "%s%s %s", n > 1 ? "," : whole ? "" : "; ", n > 1 ? "" : kinds[kind], text);
            whole = false;
        }
        if (n > LISTED) fprintf(f, " and %d more", n - LISTED);
    }
    fclose(f);
    if (whole) return ST_OK;
    return fail(e, ST_DATA, "%.250s does not hold this net; %.640s%s", path, list,
                narrowed ? "; lrnn-f64 computes in F64, here they would be rounded" : "");
}

static enum status check_finite(const struct safetensors *file, const char *path, struct error *e) {
    for (int i = 0; i < file->n; i++) {
        const struct st_tensor *t = &file->tensors[i];
        for (int64_t j = 0; j < t->count; j++)
            if (!isfinite(st_value(t, j)))
                return fail(e, ST_DATA, "%s: element %" PRId64 " of tensor %.99s is %g, expected a finite number", path,
                            j, t->name, st_value(t, j));
    }
    return ST_OK;
}

enum status weights_load(struct params *params, const struct safetensors *file, const char *path, struct error *e) {
    TRY(check_tensors(params, file, path, e));
    TRY(check_finite(file, path, e));
    double *values = calloc((size_t)params->floats + 1, sizeof *values);
    if (!values) return fail(e, ST_MEMORY, "no memory to read %s", path);
    real *stored = params_fetch(params, params->value);
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->list[i];
        const struct st_tensor *t = safetensors_find(file, p->name);
        for (int64_t j = 0; j < p->count; j++) values[j] = st_value(t, j);
        param_from_contract(p, values, stored + p->offset);
    }
    params_store(params, params->value);
    free(values);
    return ST_OK;
}

enum status weights_start(struct params *params, const char *path, const char *hash, struct error *e) {
    char found[HASH_HEX], *bytes;
    size_t size;
    struct safetensors file;
    struct error why;
    if (!*path)
        return fail(e, ST_USAGE, "the run starts from the weights of XXH3-128 %.40s; name their file with --from",
                    hash);
    enum status status = read_and_hash(path, &bytes, &size, found, &why);
    if (status != ST_OK) return fail(e, ST_DATA, "--from: %.900s", why.text);
    if (strcmp(found, hash) != 0) status = fail(&why, ST_DATA, "%s changed while the run was set up", path);
    if (status == ST_OK) status = safetensors_parse(&file, bytes, size, path, &why);
    free(bytes);
    if (status != ST_OK) return fail(e, status, "--from: %.900s", why.text);
    status = weights_load(params, &file, path, &why);
    safetensors_free(&file);
    return status == ST_OK ? ST_OK : fail(e, status, "--from: %.1000s", why.text);
}

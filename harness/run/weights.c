/* weights.c - see weights.h. */
#include "harness/run/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/option.h"
#include "harness/store/files.h"

#define LISTED 3 /* names of one kind in a message; more are counted */

static void hash_bytes(const void *bytes, size_t size, char hex[RUN_ID_HEX]) {
    XXH128_hash_t hash = XXH3_128bits(bytes, size);
    snprintf(hex, RUN_ID_HEX, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

static enum status read_and_hash(const char *path, char **bytes, size_t *size, char hex[RUN_ID_HEX], struct error *e) {
    TRY(file_read(path, machine_memory_bytes() / 2, bytes, size, e));
    hash_bytes(*bytes, *size, hex);
    return ST_OK;
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

static enum status write_params(const struct params *p, const char *path, const struct st_pair *pairs, int n_pairs,
                                struct error *e) {
    struct st_source *sources = calloc((size_t)p->n + 1, sizeof *sources);
    double *values = calloc((size_t)p->floats + 1, sizeof *values);
    const real *stored = params_fetch(p, p->value);
    enum status status = sources && values ? ST_OK : fail(e, ST_FAIL, "no memory to write %s", path);
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

enum status weights_keep(const struct params *params, const char *out, struct run *row, struct error *e) {
    char path[PATH_BYTES], *bytes;
    size_t size;
    const struct st_pair pairs[] = {{"lrnn_weights", WEIGHTS_VERSION}, {"run_id", row->run_id}};
    TRY(path_format(path, sizeof path, e, "%s/" WEIGHTS_FOLDER, out));
    TRY(make_folder(path, e));
    snprintf(row->ckpt, sizeof row->ckpt, WEIGHTS_FOLDER "/%s.safetensors", row->run_id);
    TRY(path_format(path, sizeof path, e, "%s/%s", out, row->ckpt));
    TRY(write_params(params, path, pairs, 2, e));
    TRY(read_and_hash(path, &bytes, &size, row->ckpt_xxh3, e));
    free(bytes);
    return ST_OK;
}

/* --- exporting ---------------------------------------------------------------------------------------------------- */

/* A tensor's name in the file is the net's, so the kept file is copied as it is; its values are all in double. */
static enum status write_copy(const struct safetensors *kept, const char *path, const struct st_pair *pairs,
                              int n_pairs, struct weights_count *count, struct error *e) {
    int64_t total = 0, done = 0;
    for (int i = 0; i < kept->n; i++) total += kept->tensors[i].count;
    struct st_source *sources = calloc((size_t)kept->n + 1, sizeof *sources);
    double *values = calloc((size_t)total + 1, sizeof *values);
    enum status status = sources && values ? ST_OK : fail(e, ST_FAIL, "no memory to write %s", path);
    for (int i = 0; i < kept->n && status == ST_OK; i++) {
        const struct st_tensor *t = &kept->tensors[i];
        sources[i] = (struct st_source){.name = t->name, .rank = t->rank, .f64 = t->f64, .values = values + done};
        memcpy(sources[i].dims, t->dims, sizeof sources[i].dims);
        for (int64_t j = 0; j < t->count; j++) values[done++] = st_value(t, j);
    }
    if (status == ST_OK) status = safetensors_write(path, sources, kept->n, pairs, n_pairs, e);
    if (status == ST_OK && count) *count = (struct weights_count){kept->n, total};
    free(values);
    free(sources);
    return status;
}

static enum status write_export(const struct run_record *r, const struct safetensors *kept, const char *target,
                                struct weights_count *count, struct error *e) {
    char numbers[6][40];
    snprintf(numbers[0], sizeof numbers[0], "%" PRId64, r->run.task_version);
    snprintf(numbers[1], sizeof numbers[1], "%" PRId64, r->run.best_step);
    format_double(r->run.val_acc, numbers[2], sizeof numbers[2]);
    format_double(r->run.val_loss, numbers[3], sizeof numbers[3]);
    format_double(r->run.test_acc, numbers[4], sizeof numbers[4]);
    format_double(r->run.test_loss, numbers[5], sizeof numbers[5]);
    const struct st_pair pairs[] = {
        {"lrnn_weights", WEIGHTS_VERSION}, {"run_id", r->run.run_id},     {"task", r->run.task},
        {"task_version", numbers[0]},      {"model", r->run.layers},      {"config", r->config},
        {"dtype", r->run.dtype},           {"numerics", r->run.numerics}, {"best_step", numbers[1]},
        {"val_acc", numbers[2]},           {"val_loss", numbers[3]},      {"test_acc", numbers[4]},
        {"test_loss", numbers[5]},
    };
    return write_copy(kept, target, pairs, (int)(sizeof pairs / sizeof pairs[0]), count, e);
}

static enum status nothing_kept(const struct run *run, struct error *e) {
    if (run->status != RUN_OK && run->status >= 0 && run->status < RUN_STATUS_COUNT)
        return fail(e, ST_DATA, "run %s ended as '%s' and kept no weights", run->run_id, run_status_names[run->status]);
    return fail(e, ST_DATA,
                "run %s kept no weights: it was made with --keep-weights no, or before weights were kept; "
                "train it again into another folder (--out FOLDER)",
                run->run_id);
}

/* The path in a record is one that weights_keep wrote: a record from elsewhere cannot lead out of the folder. */
static bool is_kept_path(const struct run *run) {
    char expected[RECORD_TEXT];
    snprintf(expected, sizeof expected, WEIGHTS_FOLDER "/%s.safetensors", run->run_id);
    return strcmp(run->ckpt, expected) == 0;
}

enum status weights_export(const struct run_record *record, const char *out, const char *target,
                           struct weights_count *count, struct error *e) {
    const struct run *run = &record->run;
    char path[PATH_BYTES], hash[RUN_ID_HEX], *bytes;
    size_t size;
    struct safetensors kept;
    if (!*run->ckpt) return nothing_kept(run, e);
    if (!is_kept_path(run))
        return fail(e, ST_DATA,
                    "the record of run %s names '%s' as its weights; expected " WEIGHTS_FOLDER "/%s.safetensors",
                    run->run_id, run->ckpt, run->run_id);
    TRY(path_format(path, sizeof path, e, "%s/%s", out, run->ckpt));
    struct error why;
    enum status status = read_and_hash(path, &bytes, &size, hash, &why);
    if (status != ST_OK) return fail(e, status, "the weights of run %s: %.900s", run->run_id, why.text);
    if (strcmp(hash, run->ckpt_xxh3) != 0)
        status = fail(e, ST_DATA, "%s, %zu bytes, is cut off or altered: its XXH3-128 is %s, the run's record says %s",
                      path, size, hash, run->ckpt_xxh3);
    if (status == ST_OK) status = safetensors_parse(&kept, bytes, size, path, e);
    free(bytes);
    TRY(status);
    status = write_export(record, &kept, target, count, e);
    safetensors_free(&kept);
    return status;
}

/* --- loading ------------------------------------------------------------------------------------------------------ */

/* "a, b, c and 4 more" */
struct listing {
    char text[LISTED * (ST_SHOWN_NAME + 80)];
    int n;
};

static void list(struct listing *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void list(struct listing *l, const char *format, ...) {
    if (l->n++ >= LISTED) return;
    size_t used = strlen(l->text);
    used += (size_t)snprintf(l->text + used, sizeof l->text - used, "%s", used ? ", " : "");
    va_list args;
    va_start(args, format);
    vsnprintf(l->text + used, sizeof l->text - used, format, args);
    va_end(args);
}

static void append_listing(char *text, size_t size, const char *kind, const struct listing *l) {
    size_t used = strlen(text);
    if (l->n == 0) return;
    used += (size_t)snprintf(text + used, size - used, "%s%s %s", used ? "; " : "", kind, l->text);
    if (l->n > LISTED && used < size) snprintf(text + used, size - used, " and %d more", l->n - LISTED);
}

static void compare_tensor(const struct param *p, const struct safetensors *file, struct listing *missing,
                           struct listing *wrong) {
    char name[ST_SHOWN_NAME], got[64], want[64];
    const struct st_tensor *t = safetensors_find(file, p->name);
    if (!t) {
        list(missing, "%s", st_shown(p->name, name));
        return;
    }
    bool same = t->rank == p->spec.rank;
    for (int i = 0; same && i < t->rank; i++) same = t->dims[i] == p->spec.dims[i];
    st_shape_text(t->rank, t->dims, got, sizeof got);
    st_shape_text(p->spec.rank, p->spec.dims, want, sizeof want);
    if (!same)
        list(wrong, "%s is %s, expected %s", st_shown(p->name, name), got, want);
    else if (t->f64 != REAL_IS_DOUBLE)
        list(wrong, "%s is %s, expected %s", st_shown(p->name, name), t->f64 ? "F64" : "F32",
             REAL_IS_DOUBLE ? "F64" : "F32");
}

static enum status check_tensors(const struct params *params, const struct safetensors *file, const char *path,
                                 struct error *e) {
    struct listing missing = {.n = 0}, extra = {.n = 0}, wrong = {.n = 0};
    char name[ST_SHOWN_NAME], text[sizeof e->text] = "";
    for (int i = 0; i < params->n; i++) compare_tensor(&params->list[i], file, &missing, &wrong);
    for (int i = 0; i < file->n; i++)
        if (!params_find(params, file->tensors[i].name)) list(&extra, "%s", st_shown(file->tensors[i].name, name));
    if (!missing.n && !extra.n && !wrong.n) return ST_OK;
    append_listing(text, sizeof text, "missing:", &missing);
    append_listing(text, sizeof text, "not of this net:", &extra);
    append_listing(text, sizeof text, "wrong:", &wrong);
    return fail(e, ST_DATA, "%.300s does not hold the net of its configuration; %.700s", path, text);
}

static enum status check_finite(const struct safetensors *file, const char *path, struct error *e) {
    char name[ST_SHOWN_NAME];
    for (int i = 0; i < file->n; i++) {
        const struct st_tensor *t = &file->tensors[i];
        for (int64_t j = 0; j < t->count; j++)
            if (!isfinite(st_value(t, j)))
                return fail(e, ST_DATA, "%s: element %" PRId64 " of tensor %s is %g, expected a finite number", path, j,
                            st_shown(t->name, name), st_value(t, j));
    }
    return ST_OK;
}

enum status weights_load(struct params *params, const struct safetensors *file, const char *path, struct error *e) {
    TRY(check_tensors(params, file, path, e));
    TRY(check_finite(file, path, e));
    double *values = calloc((size_t)params->floats + 1, sizeof *values);
    if (!values) return fail(e, ST_FAIL, "no memory to read %s", path);
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->list[i];
        const struct st_tensor *t = safetensors_find(file, p->name);
        for (int64_t j = 0; j < p->count; j++) values[j] = st_value(t, j);
        param_from_contract(p, values, params->value + p->offset);
    }
    free(values);
    return ST_OK;
}

/* checkpoint.c - writes and reads a checkpoint, which is the whole state of a run in one file. A run that continues
 * from a checkpoint has the same bits as a run without a break.
 *
 * The file has: the header; the arrays values, moment1, moment2 and best (params.floats each); the points of the curve;
 * the XXH3-128 of all bytes before it. It is written under a temporary name, fsynced and renamed, so the previous
 * checkpoint stays until the new one is complete. The run id in the header is the hash of the configuration with its
 * precision and numerics version. A checkpoint from another build (sources, flags, compiler) is refused without
 * --force-resume; on the CPU, so is one whose matrix products came from other kernels. On a device, algorithms of
 * products are chosen as the run goes on: if they differ from the checkpoint's, the record says so (products.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "harness/run/checkpoint.h"
#include "harness/run/products.h"
#include "harness/store/files.h"
#include "harness/store/pack/record_pack.h"
#include "harness/store/record_files.h"
#include "harness/store/version.h"
#include "kernels/lib/gemm.h"

#define MAGIC "LRNNCKP7"

struct header {
    char magic[8], run_id[RUN_ID_HEX + 7], build[RUN_ID_HEX + 7];
    char numerics[NUMERICS_TEXT]; /* only for people; the run id already depends on it */
    uint64_t real_bytes, curve_point_bytes;
    int64_t floats;
    struct step_state state;
    int64_t best_step;
    struct scores best_val;
    double data_s, step_s, eval_s;
    struct run_progress progress; /* its curve is at the end of the file */
};

static void checkpoint_path(const char *out, const char *run_id, char *path, size_t size) {
    snprintf(path, size, "%s/checkpoints/%s.ckpt", out, run_id);
}

/* Reads the header. False: the file is missing or does not begin like a checkpoint. */
static bool read_header(const char *path, struct header *h) {
    FILE *file = file_open(path);
    bool whole = file && fread(h, sizeof *h, 1, file) == 1 && memcmp(h->magic, MAGIC, sizeof h->magic) == 0;
    if (file) fclose(file);
    return whole;
}

/* Whether the bytes end with the hash of all bytes before it. */
static bool ends_with_hash(const char *bytes, size_t size) {
    XXH128_hash_t stored;
    if (size <= sizeof stored) return false;
    memcpy(&stored, bytes + size - sizeof stored, sizeof stored);
    return XXH128_isEqual(XXH3_128bits(bytes, size - sizeof stored), stored);
}

static size_t file_bytes(const struct trainer *t, int64_t n_curve) {
    return sizeof(struct header) + 4 * (size_t)t->params.floats * sizeof(real) +
           (size_t)n_curve * sizeof(struct curve_point) + sizeof(XXH128_hash_t);
}

/* Hashes the build, and the kernels that its library of matrix products uses on this processor. The bits of a run
 * depend on these and on its configuration. */
static void build_hash(const struct spec *s, char hex[RUN_ID_HEX]) {
    const struct build_info *b = build_info();
    bool cpu = !strcmp(s->config.device, "cpu");
    char text[2 * RECORD_TEXT];
    snprintf(text, sizeof text, "%s %s %s %s", b->sources, b->compiler, b->flags, cpu ? gemm_library() : "");
    record_hash(text, hex);
}

/* Refuses (ST_USAGE) a checkpoint from another build, or from other kernels of matrix products, unless the run has
 * --force-resume. */
static enum status admit(const struct spec *s, const struct header *h, const char *path, bool *other, struct error *e) {
    char build[RUN_ID_HEX];
    build_hash(s, build);
    *other = strncmp(h->build, build, sizeof build) != 0;
    if (!*other || s->config.force_resume) return ST_OK;
    return fail(e, ST_USAGE,
                "checkpoint %s was written by another build of the program, or its matrices were multiplied by other "
                "kernels than here: a run that goes on from it has the bits of neither; --force-resume does so and "
                "marks its record, removing the file starts over",
                path);
}

/* Lists the four arrays in the order of the file. The last one is in the host's memory. */
static void arrays_of(const struct trainer *t, real *arrays[4]) {
    arrays[0] = t->params.value;
    arrays[1] = t->params.moment1;
    arrays[2] = t->params.moment2;
    arrays[3] = t->best;
}

enum status checkpoint_write(const struct trainer *t, const struct run_progress *p, struct error *e) {
    char folder[RECORD_TEXT], path[RECORD_TEXT * 2];
    snprintf(folder, sizeof folder, "%s/checkpoints", t->setup->spec.config.out);
    TRY(make_folder(folder, e));
    checkpoint_path(t->setup->spec.config.out, t->setup->id.run_id, path, sizeof path);
    size_t size = file_bytes(t, p->n_curve), array = (size_t)t->params.floats * sizeof(real);
    char *bytes = calloc(1, size), *at = bytes;
    if (!bytes) return fail(e, ST_MEMORY, "no memory for a checkpoint of %zu MB", size >> 20);
    struct header h = {.magic = MAGIC,
                       .real_bytes = sizeof(real),
                       .curve_point_bytes = sizeof(struct curve_point),
                       .floats = t->params.floats,
                       .state = t->state,
                       .best_step = t->best_step,
                       .best_val = t->best_val,
                       .data_s = t->data_s,
                       .step_s = t->step_s,
                       .eval_s = t->eval_s,
                       .progress = *p};
    h.progress.curve = NULL;
    products_name(&t->place, h.progress.products, sizeof h.progress.products);
    snprintf(h.run_id, sizeof h.run_id, "%s", t->setup->id.run_id);
    build_hash(&t->setup->spec, h.build);
    snprintf(h.numerics, sizeof h.numerics, "%s", t->setup->id.numerics);
    memcpy(at, &h, sizeof h);
    at += sizeof h;
    real *arrays[4];
    arrays_of(t, arrays);
    for (int i = 0; i < 4; i++, at += array) memcpy(at, i < 3 ? params_fetch(&t->params, arrays[i]) : arrays[i], array);
    /* if the device has failed, its bytes must not replace an earlier checkpoint */
    enum status status = place_wait(&t->place, e);
    if (status != ST_OK) {
        free(bytes);
        return status;
    }
    if (p->n_curve > 0) memcpy(at, p->curve, (size_t)p->n_curve * sizeof *p->curve);
    at += (size_t)p->n_curve * sizeof *p->curve;
    XXH128_hash_t sum = XXH3_128bits(bytes, (size_t)(at - bytes));
    memcpy(at, &sum, sizeof sum);
    status = write_file_atomic(path, bytes, size, e);
    free(bytes);
    return status;
}

/* Says why these bytes are no checkpoint of this run; NULL if they are one. */
static const char *defect(const struct trainer *t, const struct run_progress *p, const char *bytes, size_t size,
                          struct header *h) {
    if (size < file_bytes(t, 0)) return "it is too short";
    if (!ends_with_hash(bytes, size)) return "it is damaged, its checksum is wrong";
    memcpy(h, bytes, sizeof *h);
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0) return "it does not begin with " MAGIC;
    if (h->real_bytes != sizeof(real) || h->curve_point_bytes != sizeof(struct curve_point) ||
        h->floats != t->params.floats || strncmp(h->run_id, t->setup->id.run_id, sizeof h->run_id) != 0)
        return "it belongs to another run or build";
    int64_t n = h->progress.n_curve;
    return n < 0 || n > p->curve_capacity || size != file_bytes(t, n) ? "its length is wrong" : NULL;
}

static void restore(struct trainer *t, struct run_progress *p, const struct header *h, const char *bytes) {
    const char *at = bytes + sizeof *h;
    size_t array = (size_t)t->params.floats * sizeof(real);
    real *arrays[4];
    arrays_of(t, arrays);
    for (int i = 0; i < 3; i++, at += array) {
        memcpy(params_fetch(&t->params, arrays[i]), at, array);
        params_store(&t->params, arrays[i]);
    }
    memcpy(arrays[3], at, array);
    at += array;
    struct curve_point *curve = p->curve;
    int64_t capacity = p->curve_capacity;
    *p = h->progress;
    p->curve = curve;
    p->curve_capacity = capacity;
    p->resumed++;
    memcpy(curve, at, (size_t)p->n_curve * sizeof *curve);
    t->state = h->state;
    trainer_set_state(t);
    t->best_step = h->best_step;
    t->best_val = h->best_val;
    t->data_s = h->data_s;
    t->step_s = h->step_s;
    t->eval_s = h->eval_s;
}

enum status checkpoint_read(struct trainer *t, struct run_progress *p, bool *found, struct error *e) {
    char path[RECORD_TEXT * 2], *bytes;
    struct header h;
    size_t size;
    checkpoint_path(t->setup->spec.config.out, t->setup->id.run_id, path, sizeof path);
    *found = false;
    enum status status = file_read(path, SIZE_MAX, &bytes, &size, e);
    if (status == ST_DATA) return ST_OK; /* no checkpoint */
    if (status != ST_OK) return status;
    const char *why = defect(t, p, bytes, size, &h);
    if (why) { /* rename a damaged checkpoint, because the next one would overwrite it */
        char target[PATH_BYTES];
        free(bytes);
        if (!file_move_aside(path, "corrupt", target) && errno != ENOENT)
            return fail(e, ST_FAIL, "checkpoint %s is not usable: %s; it cannot be renamed to %s: %s", path, why,
                        target, strerror(errno));
        fprintf(stderr, "lrnn: checkpoint %s is not usable: %s; renamed to %s, the run starts over\n", path, why,
                target);
        return ST_OK;
    }
    bool other = false;
    status = admit(&t->setup->spec, &h, path, &other, e);
    if (status == ST_OK) {
        restore(t, p, &h, bytes);
        p->mixed_builds |= other;
        *found = true;
    }
    free(bytes);
    return status;
}

enum status checkpoint_admit(const struct spec *s, const char *run_id, struct error *e) {
    char path[RECORD_TEXT * 2], *bytes;
    struct header h;
    size_t size;
    bool other;
    checkpoint_path(s->config.out, run_id, path, sizeof path);
    if (!read_header(path, &h)) return ST_OK;
    enum status status = admit(s, &h, path, &other, e);
    if (status == ST_OK || file_read(path, SIZE_MAX, &bytes, &size, NULL) != ST_OK) return ST_OK;
    bool whole = ends_with_hash(bytes, size);
    free(bytes);
    return whole ? status : ST_OK; /* damage is reported when the run reads the file */
}

int64_t checkpoint_step(const char *out, const char *run_id) {
    char path[PATH_BYTES];
    struct header h;
    if (path_format(path, sizeof path, NULL, "%s/checkpoints/%s.ckpt", out, run_id) != ST_OK) return -1;
    return read_header(path, &h) ? h.state.step : -1;
}

void checkpoint_remove(const char *out, const char *run_id) {
    char path[RECORD_TEXT * 2];
    checkpoint_path(out, run_id, path, sizeof path);
    unlink(path);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static bool may_not_fail_again(int64_t status) {
    return status == RUN_KILLED || status == RUN_TIMEOUT || status == RUN_OOM || status == RUN_ERROR;
}

struct reuse reuse_find(const struct config *c, const char *run_id, bool retry) {
    struct reuse found = {.known = record_check(c->out, run_id) == RECORD_DONE};
    if (!found.known) return found;
    char path[RECORD_TEXT * 2];
    struct open_record *open;
    record_path(c->out, run_id, path, sizeof path);
    bool read = record_open(path, &open, NULL) == ST_OK;
    found.failed = read && may_not_fail_again(open->record.run.status);
    found.other = !read || !build_made(&open->record.run);
    found.again = c->force || (retry && found.failed);
    record_close(open);
    return found;
}

enum status reuse_release(const struct reuse *found, const struct config *c, const char *run_id, struct error *e) {
    if (!found->again) return ST_OK;
    if (c->force) checkpoint_remove(c->out, run_id);
    return record_set_aside(c->out, run_id, c->force ? "replaced" : "retried", e);
}

bool reuse_is_there(const struct config *c, const char *run_id, bool retry) {
    char path[RECORD_TEXT * 2];
    struct open_record *open;
    record_path(c->out, run_id, path, sizeof path);
    bool there = !c->force && record_is_there(path);
    if (!there || !retry || record_open(path, &open, NULL) != ST_OK) return there;
    bool failed = may_not_fail_again(open->record.run.status);
    record_close(open);
    return !failed;
}

void reuse_tell(int other, int total) {
    if (other == 0) return;
    fprintf(stderr, "lrnn: %d of %d runs %s on record by another build of the program; --force does %s again\n", other,
            total, other == 1 ? "is" : "are", other == 1 ? "it" : "them");
}

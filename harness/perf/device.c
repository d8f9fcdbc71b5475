/* device.c - `lrnn perf device`: the rates of a copy and of matrix products on a device, a training step walked and
 * replayed, and every kernel beside these rates (device.h). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/perf/device.h"
#include "harness/run/trainer.h"
#include "harness/store/files.h"
#include "harness/store/version.h"
#include "harness/study/study.h"

#define COPY_BYTES  ((size_t)512 << 20)
#define NOISE_BYTES ((size_t)16 << 20) /* random ones, again and again, are what is copied */
#define STEP_MODEL  "bdlru:m=5,blocks=64"

/* --- rates of the device ------------------------------------------------------------------------------------------ */

struct copy {
    const struct place *place;
    struct arena arena;
    size_t bytes;
};

static void copy_walk(void *context) {
    const struct copy *c = context;
    place_copy(c->place, c->arena.base + c->bytes, c->arena.base, c->bytes);
}

/* Fills the source with random bytes: zeros may be copied faster than what a training holds. */
static enum status fill_copy(const struct copy *c, struct error *e) {
    size_t n = c->bytes < NOISE_BYTES ? c->bytes : NOISE_BYTES;
    uint32_t *noise = malloc(n);
    if (!noise) return fail(e, ST_MEMORY, "no memory for what is copied");
    struct rng r = rng_at(1, STREAM_TEST, 0);
    for (size_t i = 0; i < n / sizeof *noise; i++) noise[i] = (uint32_t)rng_below(&r, UINT32_MAX);
    for (size_t at = 0; at < c->bytes; at += n) place_put(c->place, c->arena.base + at, noise, n);
    free(noise);
    return ST_OK;
}

static enum status measure_copy(struct device_run *d, struct error *e) {
    bool small = d->request->small;
    struct copy c = {.place = &d->place, .bytes = small ? 4096 : COPY_BYTES};
    void *context = &c;
    struct device_work w = {.work = copy_walk, .contexts = &context, .n = 1, .captured = true};
    struct samples *t = calloc(1, sizeof *t);
    if (!t) return fail(e, ST_MEMORY, "no memory for the samples");
    enum status status = place_reserve(&d->place, &c.arena, 2 * c.bytes, e);
    if (status == ST_OK) status = fill_copy(&c, e);
    if (status == ST_OK) status = device_sample(d, &w, t, e);
    if (status == ST_OK) {
        struct device_row row = {.name = "copy",
                                 .kernel = "copy_kernel",
                                 .shape = small ? "4 kB" : "512 MB",
                                 .pass = "forward",
                                 .precision = PRECISION_NONE,
                                 .error = NAN,
                                 .cost = {0, 2 * (double)c.bytes}};
        d->copy_rate = row.cost.bytes / samples_median(t);
        device_print_row(d, &row, t);
    }
    arena_free(&c.arena);
    free(t);
    return status;
}

/* Measures a product of 4096 x 4096 matrices, 100 % of the rows in its precision. */
static enum status measure_product(struct device_run *d, enum precision precision, struct error *e) {
    struct kernel_run *r = calloc(1, sizeof *r);
    struct op_sizes sizes;
    const char *why = NULL;
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    r->place = &d->place;
    r->precision = precision;
    void *context = r;
    struct device_work w = {.work = kernel_run_forward, .contexts = &context, .n = 1, .captured = true};
    enum status status = device_read_sizes("batch=1 length=4096 dim=4096 out=4096", d->request->small, &sizes, e);
    if (status == ST_OK) status = kernel_run_open(r, op_find("linear"), kernel_find("linear_cuda"), &sizes, &why, e);
    if (status == ST_OK) status = device_sample(d, &w, &r->time[0], e);
    if (status == ST_OK) {
        struct device_row row = {.name = "product",
                                 .kernel = "linear_cuda",
                                 .shape = r->shape,
                                 .pass = "forward",
                                 .precision = (int)precision,
                                 .cache = "warm",
                                 .error = NAN,
                                 .cost = r->cost[PASS_FORWARD]};
        d->product_rate[precision] = row.cost.flops / samples_median(&r->time[0]);
        device_print_row(d, &row, &r->time[0]);
    }
    kernel_run_close(r);
    free(r);
    return status;
}

/* --- a training step ---------------------------------------------------------------------------------------------- */

static void step_walked(void *context) {
    struct trainer *t = context;
    place_capture_free(&t->place, t->capture);
    t->capture = NULL;
    t->steps_queued = 0; /* the first step is walked, as every one here is */
    trainer_step(t);
}

static void step_replayed(void *context) {
    trainer_step(context);
}

/* Ways of doing a step, and what is turned off for each (docs/gpu.md): work that does not overlap has branches. A
 * device below capability 9.0 has no overlap, and there the second and the third are alike. */
static const struct step_way {
    const char *name;
    void (*work)(void *context);
    const char *off[2];
} step_ways[] = {{"walked", step_walked, {NULL}},
                 {"replayed", step_replayed, {NULL}},
                 {"replayed in branches", step_replayed, {"LRNN_CUDA_OVERLAP"}},
                 {"replayed in a row", step_replayed, {"LRNN_CUDA_OVERLAP", "LRNN_CUDA_BRANCHES"}}};

/* Prints a row of the trainer's step; times include the way of the batches. */
static enum status time_step(const struct device_run *d, const struct setup *s, struct trainer *t,
                             const struct step_way *way, struct error *e) {
    struct device_run own = *d;
    char shape[256];
    void *context = t;
    struct device_work w = {.work = way->work, .contexts = &context, .n = 1};
    struct samples *times = calloc(1, sizeof *times);
    if (!times) return fail(e, ST_MEMORY, "no memory for times");
    snprintf(shape, sizeof shape, "%.120s batch=%" PRId64 " parameters=%" PRId64, s->id.model_label,
             s->spec.config.batch, params_trained(&t->params));
    struct device_row row = {.name = "step",
                             .kernel = way->name,
                             .shape = shape,
                             .pass = "step",
                             .precision = s->spec.config.precision,
                             .error = NAN,
                             .cost = trainer_step_cost(t)};
    own.place = t->place;
    own.from = place_mark_create(&t->place);
    own.to = place_mark_create(&t->place);
    enum status status = device_sample(&own, &w, times, e);
    own.captured = t->capture;
    if (status == ST_OK) device_print_row(&own, &row, times);
    place_mark_free(&t->place, own.from);
    place_mark_free(&t->place, own.to);
    free(times);
    return status;
}

static enum status measure_way(const struct device_run *d, const struct setup *s, const struct step_way *way,
                               struct error *e) {
    for (int i = 0; i < 2 && way->off[i]; i++) setenv(way->off[i], "0", 1);
    struct trainer *t = trainer_open(trainer_create, s, e);
    for (int i = 0; i < 2 && way->off[i]; i++) unsetenv(way->off[i]);
    enum status status = t ? time_step(d, s, t, way, e) : e->status;
    trainer_close(t);
    return status;
}

/* Measures the step of an S5 model of about a million parameters, in each way. */
static enum status measure_step(const struct device_run *d, enum precision precision, struct error *e) {
    bool small = d->request->small;
    struct config c;
    TRY(config_default(&c, e));
    TRY(config_set(&c, "device", d->request->device, e));
    TRY(config_set(&c, "precision", precision_name(precision), e));
    TRY(config_set(&c, "epochs", "1000", e));
    c.net.dim = small ? 8 : 256;
    c.batch = small ? 4 : 128;
    c.quiet = true;
    struct setup *s = setup_make(&c, small ? "s3" : "s5", small ? "bdlru:m=2,blocks=2" : STEP_MODEL, e);
    if (!s) return e->status;
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof step_ways / sizeof *step_ways && status == ST_OK; i++)
        status = measure_way(d, s, &step_ways[i], e);
    setup_free(s);
    return status;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* Steps come before kernels, because a kernel that fails may take the device with it. Kernels compute in the first
 * precision, steps in all of them. */
static enum status measure_all(struct device_run *d, struct error *e) {
    int precisions = REAL_IS_DOUBLE ? 1 : PRECISION_COUNT;
    bool steps = !*d->request->only;
    TRY(place_describe(&d->place, &d->info, e));
    if (d->request->once) return device_measure_kernels(d, e);
    device_print_head(d);
    TRY(measure_copy(d, e));
    for (int p = PRECISION_FULL; p < (steps ? precisions : 1); p++) TRY(measure_product(d, (enum precision)p, e));
    for (int p = PRECISION_FULL; p < precisions && steps; p++) TRY(measure_step(d, (enum precision)p, e));
    return device_measure_kernels(d, e);
}

/* Chooses the file of the rows, "" for none. A file of that name is kept: its rows took minutes of a device, of this
 * one or of another, of all kernels or of one op's. */
static enum status choose_file(const struct perf_device_request *q, char path[PATH_BYTES], struct error *e) {
    *path = 0;
    if (!*q->out) return ST_OK;
    if (q->once) return fail(e, ST_USAGE, "perf device: --once prints no row that --out could keep");
    TRY(path_format(path, PATH_BYTES, e, "%s/device-%.12s.csv", q->out, build_info()->commit));
    if (access(path, F_OK) == 0)
        return fail(e, ST_USAGE, "perf device: %s is there already and is not replaced; choose another --out", path);
    return make_folder(q->out, e);
}

/* The file gets all rows or none: a measurement that is stopped, or loses its device, leaves no file that looks whole.
 * */
enum status perf_device(const struct perf_device_request *request, struct error *e) {
    struct device_run d = {.request = request};
    struct printed rows = {0};
    char path[PATH_BYTES];
    bool is_new = true;
    TRY(device_check_request(request, e));
    TRY(choose_file(request, path, e));
    TRY(device_open(&d, e));
    enum status status = ST_OK;
    if (d.place.device == DEVICE_CPU)
        status = fail(e, ST_USAGE, "perf device measures CUDA devices; `lrnn perf op` measures the CPU");
    if (status == ST_OK && *path) status = printed_begin(&rows, path, e);
    d.file = rows.f;
    if (status == ST_OK) status = measure_all(&d, e);
    if (rows.f) status = printed_end(&rows, status, path, e);
    if (status == ST_OK && *path) status = file_put(path, rows.text, rows.size, &is_new, e);
    if (status == ST_OK && !is_new) status = fail(e, ST_FAIL, "%s has come since the start and is not replaced", path);
    free(rows.text);
    if (status == ST_OK && d.failed + d.inexact > 0)
        status = fail(e, d.first.status,
                      "%d of the kernels and shapes failed, %d are too far from their references; first: %s", d.failed,
                      d.inexact, d.first.text);
    device_close(&d);
    return status;
}

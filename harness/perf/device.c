/* device.c - `lrnn perf device`: measures the rates of a copy and of matrix products on a device, then a training step,
 * its calls and every kernel, compared with these rates (device.h). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/perf/device.h"
#include "harness/store/files.h"
#include "harness/store/version.h"

#define COPY_BYTES  ((size_t)512 << 20)
#define NOISE_BYTES ((size_t)16 << 20) /* a block of random bytes, repeated to fill the source */

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

/* Fills the source with random bytes, because zeros may be copied faster than real data. */
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

/* Measures a product of 4096 x 4096 matrices, which is the 100 % of all rows in its precision. */
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

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* Measures everything that is wanted. Steps come first, because a failing kernel may make the device unusable. Kernels
 * are measured in the first precision, steps in all. */
static enum status measure_all(struct device_run *d, struct error *e) {
    const struct perf_device_request *q = d->request;
    int precisions = REAL_IS_DOUBLE ? 1 : PRECISION_COUNT;
    bool all = q->rows == DEVICE_ROWS_ALL && !*q->only;
    bool steps = all || q->rows == DEVICE_ROWS_STEPS, calls = all || q->rows == DEVICE_ROWS_CALLS;
    TRY(place_describe(&d->place, &d->info, e));
    if (q->once) return device_measure_kernels(d, e);
    device_print_head(d);
    TRY(measure_copy(d, e));
    for (int p = PRECISION_FULL; p < (steps ? precisions : 1); p++) TRY(measure_product(d, (enum precision)p, e));
    for (int p = PRECISION_FULL; p < precisions && steps; p++) TRY(device_measure_step(d, (enum precision)p, e));
    for (int p = PRECISION_FULL; p < precisions && calls; p++) TRY(device_measure_calls(d, (enum precision)p, e));
    return all || q->rows == DEVICE_ROWS_KERNELS || *q->only ? device_measure_kernels(d, e) : ST_OK;
}

/* Chooses the file for the rows, "" for none. ST_USAGE: the file exists. It is not replaced, since it may have other
 * rows, which took minutes on a device. */
static enum status choose_file(const struct perf_device_request *q, char path[PATH_BYTES], struct error *e) {
    *path = 0;
    if (!*q->out) return ST_OK;
    if (q->once) return fail(e, ST_USAGE, "perf device: --once prints no row that --out could keep");
    TRY(path_format(path, PATH_BYTES, e, "%s/device-%.12s.csv", q->out, build_info()->commit));
    if (access(path, F_OK) == 0)
        return fail(e, ST_USAGE, "perf device: %s is there already and is not replaced; choose another --out", path);
    return make_folder(q->out, e);
}

/* Writes the file only at the end, so that an interrupted measurement leaves no file that looks complete. */
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

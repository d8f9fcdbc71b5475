/* device.c - what a device does: kernels beside the rates of a copy and of matrix products that are measured in the
 * same run, and a training step walked and replayed. Times are the device's own, between events, behind a tenth of a
 * second of the same work, so that its clocks are up; the clock that it then has stands in the row. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/graph_walk.h"
#include "core/label.h"
#include "core/philox.h"
#include "harness/perf/device.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/version.h"

#define WALKS       20 /* of a sample, at least: what starts and ends it is small beside them */
#define MIN_COUNT   7
#define COPY_BYTES  ((size_t)512 << 20)
#define NOISE_BYTES ((size_t)16 << 20) /* random ones, again and again, are what is copied */
#define SPIN_S      0.1

/* --- rows --------------------------------------------------------------------------------------------------------- */

static double percent(double rate, double of) {
    return of > 0 ? 100 * rate / of : NAN;
}

static void print_to(FILE *f, const struct device_run *d, const struct device_row *r, const struct samples *t) {
    double time = samples_median(t), bytes = r->cost.bytes / time, flops = r->cost.flops / time;
    bool has_precision = r->precision != PRECISION_NONE;
    const char *precision = has_precision ? precision_name((enum precision)r->precision) : "";
    char error[32] = "";
    if (!isnan(r->error)) snprintf(error, sizeof error, "%.3g", r->error);
    fprintf(f, "%.12s%s,%s,%s,%.0f,%.0f,%.0f,", build_info()->commit, build_info()->dirty ? "+" : "", d->info.name,
            d->info.driver, d->clock_mhz, d->info.clock_mhz, d->info.memory_clock_mhz);
    fprintf(f, "%s,%s,%s,\"%s\",%s,%s,%s,%s,%s,%d,", r->name, r->kernel, r->taken, r->shape, r->pass, precision,
            r->cache, d->captured ? "yes" : "no", error, t->n);
    fprintf(f, "%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.4g,%.4g\n", time * 1e6, samples_mad(t) * 1e6, r->cost.bytes,
            r->cost.flops, bytes / 1e9, flops / 1e9, percent(bytes, d->copy_rate),
            percent(flops, has_precision ? d->product_rate[r->precision] : 0));
    fflush(f);
}

void device_print_row(const struct device_run *d, const struct device_row *r, const struct samples *t) {
    print_to(stdout, d, r, t);
    if (d->file) print_to(d->file, d, r, t);
}

static void device_print_head(FILE *f) {
    fprintf(f, "commit,device,driver,sm_mhz,sm_max_mhz,mem_max_mhz,op,kernel,taken,shape,pass,precision,cache,captured,"
               "error,samples,time_us,mad_us,bytes,flops,gb_per_s,gflop_per_s,pct_of_copy,pct_of_gemm\n");
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

/* Work, as often in a row as a sample takes. */
struct timed {
    const struct device_work *work;
    int walks;
    struct place_capture *capture; /* of all walks; or NULL */
};

static void walk_all(const struct timed *t) {
    for (int i = 0; i < t->walks; i++) t->work->work(t->work->contexts[i % t->work->n]);
}

static void capture_walks(const struct place *p, struct timed *t) {
    if (!place_capture_begin(p)) return;
    walk_all(t);
    t->capture = place_capture_end(p);
}

static void walk_or_replay(const struct place *p, const struct timed *t) {
    if (t->capture)
        place_replay(p, t->capture);
    else
        walk_all(t);
}

static enum status spin(const struct device_run *d, const struct timed *t, struct error *e) {
    double start = time_now_s(), seconds = d->request->small ? 0 : SPIN_S;
    do {
        walk_or_replay(&d->place, t);
        TRY(place_wait(&d->place, e));
    } while (time_now_s() - start < seconds);
    return ST_OK;
}

/* Between events, for the request's time. Replays begin behind one that is not timed, so that the host has queued what
 * is before the device comes to it, and its launch is not in the time. */
static enum status sample(struct device_run *d, const struct timed *t, struct samples *s, struct error *e) {
    int least = d->request->small ? 2 : MIN_COUNT;
    s->n = 0;
    double start = time_now_s();
    while (s->n < PERF_SAMPLES && (s->n < least || time_now_s() - start < d->request->seconds)) {
        if (t->capture) place_replay(&d->place, t->capture);
        place_mark_set(&d->place, d->from);
        walk_or_replay(&d->place, t);
        place_mark_set(&d->place, d->to);
        samples_add(s, place_mark_seconds(&d->place, d->from, d->to) / t->walks);
    }
    d->clock_mhz = place_clock_mhz(&d->place);
    return place_wait(&d->place, e);
}

/* Each context as often as the others, so that each is as far from its turn before, also across samples. The first call
 * loads the kernels. */
enum status device_sample(struct device_run *d, const struct device_work *w, struct samples *s, struct error *e) {
    struct timed t = {.work = w, .walks = w->n * (d->request->small ? 1 : (WALKS + w->n - 1) / w->n)};
    w->work(w->contexts[0]);
    TRY(place_wait(&d->place, e));
    if (w->captured) capture_walks(&d->place, &t);
    d->captured = t.capture;
    enum status status = spin(d, &t, e);
    if (status == ST_OK) status = sample(d, &t, s, e);
    place_capture_free(&d->place, t.capture);
    return status;
}

/* --- what the device can do --------------------------------------------------------------------------------------- */

enum status device_read_sizes(const char *text, bool small, struct op_sizes *sizes, struct error *e) {
    struct label sizes_given;
    TRY(label_parse_pairs(&sizes_given, "perf device", text, " ", e));
    TRY(options_default(op_sizes_options, sizes, e));
    TRY(label_apply(&sizes_given, op_sizes_options, sizes, "perf device", e));
    if (!small) return ST_OK;
    int64_t *all[] = {&sizes->batch, &sizes->length, &sizes->blocks, &sizes->dim,
                      &sizes->out,   &sizes->vocab,  &sizes->dk,     &sizes->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (*all[i] > 6) *all[i] = 6;
    if (sizes->heads > 2) sizes->heads = 2;
    return ST_OK;
}

struct copy {
    const struct place *place;
    struct arena arena;
    size_t bytes;
};

static void copy_walk(void *context) {
    const struct copy *c = context;
    place_copy(c->place, c->arena.base + c->bytes, c->arena.base, c->bytes);
}

/* Random bytes: zeros may be copied faster than what a training holds. */
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
    struct copy c = {.place = &d->place, .bytes = d->request->small ? 4096 : COPY_BYTES};
    struct samples *t = calloc(1, sizeof *t);
    if (!t) return fail(e, ST_MEMORY, "no memory for the samples");
    enum status status = place_reserve(&d->place, &c.arena, 2 * c.bytes, e);
    void *context = &c;
    struct device_work w = {.work = copy_walk, .contexts = &context, .n = 1, .captured = true};
    if (status == ST_OK) status = fill_copy(&c, e);
    if (status == ST_OK) status = device_sample(d, &w, t, e);
    if (status == ST_OK) {
        d->copy_rate = 2 * (double)c.bytes / samples_median(t);
        struct device_row row = {.name = "copy",
                                 .kernel = "copy_kernel",
                                 .shape = d->request->small ? "4 kB" : "512 MB",
                                 .pass = "forward",
                                 .taken = "",
                                 .precision = PRECISION_NONE,
                                 .cache = "",
                                 .error = NAN,
                                 .cost = {0, 2 * (double)c.bytes}};
        device_print_row(d, &row, t);
    }
    arena_free(&c.arena);
    free(t);
    return status;
}

/* A product of 4096 x 4096 matrices, the measure of the percentages in its precision. */
static enum status measure_product(struct device_run *d, enum precision precision, struct error *e) {
    struct kernel_run *r = calloc(1, sizeof *r);
    struct op_sizes sizes;
    const char *why = NULL;
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    r->place = &d->place;
    r->precision = precision;
    enum status status = device_read_sizes("batch=1 length=4096 dim=4096 out=4096", d->request->small, &sizes, e);
    if (status == ST_OK) status = kernel_run_open(r, op_find("linear"), kernel_find("linear_cuda"), &sizes, &why, e);
    void *context = r;
    struct device_work w = {.work = kernel_run_forward, .contexts = &context, .n = 1, .captured = true};
    if (status == ST_OK) status = device_sample(d, &w, &r->time[0], e);
    if (status == ST_OK) {
        d->product_rate[precision] = r->cost[PASS_FORWARD].flops / samples_median(&r->time[0]);
        struct device_row row = {.name = "product",
                                 .kernel = "linear_cuda",
                                 .shape = r->shape,
                                 .pass = "forward",
                                 .taken = "",
                                 .precision = (int)precision,
                                 .cache = "warm",
                                 .error = NAN,
                                 .cost = r->cost[PASS_FORWARD]};
        device_print_row(d, &row, &r->time[0]);
    }
    kernel_run_close(r);
    free(r);
    return status;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* The measures of the percentages: kernels compute in the first precision, steps in all of them. */
static enum status measure_rates(struct device_run *d, struct error *e) {
    int precisions = REAL_IS_DOUBLE || *d->request->only ? 1 : PRECISION_COUNT;
    TRY(measure_copy(d, e));
    for (int precision = PRECISION_FULL; precision < precisions; precision++)
        TRY(measure_product(d, (enum precision)precision, e));
    return ST_OK;
}

/* Steps come before kernels, of which one may take the device with it. */
static enum status measure_all(struct device_run *d, struct error *e) {
    TRY(place_describe(&d->place, &d->info, e));
    if (d->request->once) return device_measure_kernels(d, e);
    device_print_head(stdout);
    if (d->file) device_print_head(d->file);
    TRY(measure_rates(d, e));
    if (!*d->request->only) TRY(device_measure_steps(d, e));
    return device_measure_kernels(d, e);
}

/* The file of the rows, "" for none. What has its name are rows that took minutes of a device, of this one or of
 * another, of all kernels or of one op's: none of them make way for others. */
static enum status choose_file(const struct perf_device_request *q, char path[PATH_BYTES], struct error *e) {
    *path = 0;
    if (!*q->out) return ST_OK;
    if (q->once) return fail(e, ST_USAGE, "perf device: --once prints no row that --out could keep");
    TRY(path_format(path, PATH_BYTES, e, "%s/device-%.12s.csv", q->out, build_info()->commit));
    if (access(path, F_OK) == 0)
        return fail(e, ST_USAGE, "perf device: %s is there already and is not replaced; choose another --out", path);
    return make_folder(q->out, e);
}

/* Its rows are in the file as they are on stdout, all or none: what is stopped, or loses its device, leaves no file
 * that looks like a measurement. */
static enum status measure_to(struct device_run *d, const char *path, struct error *e) {
    char *text = NULL;
    size_t size = 0;
    bool whole = true, new = true;
    if (*path && !(d->file = open_memstream(&text, &size))) return fail(e, ST_MEMORY, "no memory for the rows");
    enum status status = measure_all(d, e);
    if (d->file) whole = fclose(d->file) == 0;
    if (status == ST_OK && !whole) status = fail(e, ST_MEMORY, "no memory for the rows of %s", path);
    if (status == ST_OK && *path) status = file_put(path, text, size, &new, e);
    if (status == ST_OK && !new) status = fail(e, ST_FAIL, "%s has come since the start and is not replaced", path);
    free(text);
    return status;
}

/* Where launches do not overlap: a kernel's, many in a row, would hide in each other, and their time be no time of
 * one. */
static enum status open_without_overlap(struct place *p, const char *device, struct error *e) {
    bool is_set = getenv("LRNN_CUDA_OVERLAP");
    setenv("LRNN_CUDA_OVERLAP", "0", 0);
    enum status status = place_open(p, device, e);
    if (!is_set) unsetenv("LRNN_CUDA_OVERLAP");
    return status;
}

enum status device_open(struct device_run *d, struct error *e) {
    TRY(open_without_overlap(&d->place, d->request->device, e));
    d->from = place_mark_create(&d->place);
    d->to = place_mark_create(&d->place);
    return ST_OK;
}

void device_close(struct device_run *d) {
    place_mark_free(&d->place, d->from);
    place_mark_free(&d->place, d->to);
    d->from = d->to = NULL;
    place_close(&d->place);
}

/* What was wrong with kernels beside which the others have their rows. */
static enum status verdict(const struct device_run *d, struct error *e) {
    int n = d->failed + d->inexact;
    if (n == 0) return ST_OK;
    return fail(e, d->first.status,
                "%d of the kernels and shapes failed, %d are too far from their references; first: %s", d->failed,
                d->inexact, d->first.text);
}

enum status perf_device(const struct perf_device_request *request, struct error *e) {
    struct device_run d = {.request = request};
    char path[PATH_BYTES];
    TRY(device_check_request(request, e));
    TRY(choose_file(request, path, e));
    TRY(device_open(&d, e));
    enum status status = ST_OK;
    if (d.place.device == DEVICE_CPU)
        status = fail(e, ST_USAGE, "perf device measures CUDA devices; `lrnn perf op` the CPU");
    if (status == ST_OK) status = measure_to(&d, path, e);
    if (status == ST_OK) status = verdict(&d, e);
    device_close(&d);
    return status;
}

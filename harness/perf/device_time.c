/* device_time.c - see device.h. */
#include "harness/perf/device.h"

#include <math.h>
#include <stdlib.h>

#include "core/label.h"
#include "harness/store/clock.h"
#include "harness/store/version.h"

#define WALKS     20 /* least walks per sample, so that its start and end do not matter */
#define MIN_COUNT 7
#define SPIN_S    0.1 /* seconds of work before the samples, to raise the device's clocks */

enum status device_open(struct device_run *d, struct error *e) {
    bool is_set = getenv("LRNN_CUDA_OVERLAP");
    setenv("LRNN_CUDA_OVERLAP", "0", 0);
    enum status status = place_open(&d->place, d->request->device, e);
    if (!is_set) unsetenv("LRNN_CUDA_OVERLAP");
    if (status != ST_OK) return status;
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

/* --- samples ------------------------------------------------------------------------------------------------------ */

/* A sample: the work repeated `walks` times. */
struct timed {
    const struct device_work *work;
    int walks;
    struct place_capture *capture; /* of all walks together; or NULL */
};

static void walk_all(const struct timed *t) {
    for (int i = 0; i < t->walks; i++) t->work->work(t->work->contexts[i % t->work->n]);
}

static void walk_or_replay(const struct place *p, const struct timed *t) {
    if (t->capture)
        place_replay(p, t->capture);
    else
        walk_all(t);
}

/* Takes samples for the request's time. An untimed replay precedes each timed one, so that the host has queued the
 * timed replay before the device begins it, and its launch is not measured. */
static enum status sample(struct device_run *d, const struct timed *t, struct samples *s, struct error *e) {
    bool small = d->request->small;
    double begin = time_now_s();
    do {
        walk_or_replay(&d->place, t);
        TRY(place_wait(&d->place, e));
    } while (!small && time_now_s() - begin < SPIN_S);
    s->n = 0;
    for (begin = time_now_s(); samples_due(s, small ? 2 : MIN_COUNT, begin, d->request->seconds);) {
        if (t->capture) place_replay(&d->place, t->capture);
        place_mark_set(&d->place, d->from);
        walk_or_replay(&d->place, t);
        place_mark_set(&d->place, d->to);
        samples_add(s, place_mark_seconds(&d->place, d->from, d->to) / t->walks);
    }
    d->clock_mhz = place_clock_mhz(&d->place);
    return place_wait(&d->place, e);
}

/* A sample walks each context equally often, so that all have the same distance between their turns, also across
 * samples. The first call loads the kernels. */
enum status device_sample(struct device_run *d, const struct device_work *w, struct samples *s, struct error *e) {
    struct timed t = {.work = w, .walks = w->n * (d->request->small ? 1 : (WALKS + w->n - 1) / w->n)};
    w->work(w->contexts[0]);
    TRY(place_wait(&d->place, e));
    if (w->captured && place_capture_begin(&d->place)) {
        walk_all(&t);
        t.capture = place_capture_end(&d->place);
    }
    d->captured = t.capture;
    enum status status = sample(d, &t, s, e);
    place_capture_free(&d->place, t.capture);
    return status;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

void device_print_head(const struct device_run *d) {
    static const char *const head =
        "commit,device,driver,sm_mhz,sm_max_mhz,mem_max_mhz,op,kernel,taken,shape,pass,precision,cache,captured,"
        "error,samples,time_us,mad_us,bytes,flops,gb_per_s,gflop_per_s,pct_of_copy,pct_of_gemm\n";
    fputs(head, stdout);
    if (d->file) fputs(head, d->file);
}

void device_print_row(const struct device_run *d, const struct device_row *r, const struct samples *t) {
    double time = samples_median(t), bytes = r->cost.bytes / time, flops = r->cost.flops / time;
    bool has_precision = r->precision != PRECISION_NONE;
    const char *precision = has_precision ? precision_name((enum precision)r->precision) : "";
    double copy = d->copy_rate, product = has_precision ? d->product_rate[r->precision] : 0;
    char error[32] = "";
    if (!isnan(r->error)) snprintf(error, sizeof error, "%.3g", r->error);
    for (FILE *f = stdout; f; f = f == stdout ? d->file : NULL) {
        fprintf(f, "%.12s%s,%s,%s,%.0f,%.0f,%.0f,", build_info()->commit, build_info()->dirty ? "+" : "", d->info.name,
                d->info.driver, d->clock_mhz, d->info.clock_mhz, d->info.memory_clock_mhz);
        fprintf(f, "%s,%s,%s,\"%s\",%s,%s,%s,%s,%s,%d,", r->name, r->kernel, r->taken ? r->taken : "", r->shape,
                r->pass, precision, r->cache ? r->cache : "", d->captured ? "yes" : "no", error, t->n);
        fprintf(f, "%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.4g,%.4g\n", time * 1e6, samples_mad(t) * 1e6, r->cost.bytes,
                r->cost.flops, bytes / 1e9, flops / 1e9, copy > 0 ? 100 * bytes / copy : NAN,
                product > 0 ? 100 * flops / product : NAN);
        fflush(f);
    }
}

enum status device_read_sizes(const char *text, bool small, struct op_sizes *sizes, struct error *e) {
    struct label given;
    TRY(label_parse_pairs(&given, "perf device", text, " ", e));
    TRY(options_default(op_sizes_options, sizes, e));
    TRY(label_apply(&given, op_sizes_options, sizes, "perf device", e));
    if (!small) return ST_OK;
    int64_t *all[] = {&sizes->batch, &sizes->length, &sizes->blocks, &sizes->dim,
                      &sizes->out,   &sizes->vocab,  &sizes->dk,     &sizes->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (*all[i] > 6) *all[i] = 6;
    if (sizes->heads > 2) sizes->heads = 2;
    return ST_OK;
}

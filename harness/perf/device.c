/* device.c - what a device does: kernels beside the rates of a copy and of matrix products that are measured in the
 * same run, and a training step walked and replayed. Times are the device's own, between events, behind a tenth of a
 * second of the same work, so that its clocks are up; the clock that it then has stands in the row. Kernels are
 * replayed, over the same buffers (warm: of small shapes that measures the cache) and over as many sets of them as the
 * cache cannot hold (cold). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "core/label.h"
#include "harness/perf/perf.h"
#include "harness/plan/args.h"
#include "harness/run/trainer.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/version.h"

#define WALKS      20 /* of a sample: what starts and ends it is small beside them */
#define MIN_COUNT  7
#define COPY_BYTES ((size_t)512 << 20)
#define SPIN_S     0.1
#define STEP_MODEL "bdlru:m=5,blocks=64"

/* Many short sequences, few long ones, blocks of several sizes; states, trees, grids and flows of our models' default
 * widths; and shapes of an S5 model of about a million parameters. */
static const struct {
    const char *op, *shape;
} cases[] = {
    {"scan_diag", "batch=128 length=1024 blocks=256"},
    {"scan_diag", "batch=128 length=16 blocks=256"},
    {"scan_diag", "batch=128 length=128 blocks=256"},
    {"scan_diag", "batch=8 length=2048 blocks=256"},
    {"scan_diag", "batch=1 length=65536 blocks=256"},
    {"scan_diag_complex", "batch=128 length=128 blocks=128"},
    {"scan_block", "batch=128 length=16 blocks=64 m=5"},
    {"scan_block", "batch=128 length=128 blocks=64 m=1"},
    {"scan_block", "batch=128 length=128 blocks=64 m=2"},
    {"scan_block", "batch=128 length=128 blocks=64 m=4"},
    {"scan_block", "batch=128 length=128 blocks=64 m=5"},
    {"scan_block", "batch=128 length=128 blocks=64 m=8"},
    {"scan_companion", "batch=128 length=128 blocks=256 m=2"},
    {"scan_companion", "batch=128 length=128 blocks=256 m=5"},
    {"scan_block", "batch=128 length=1024 blocks=64 m=5"},
    {"scan_block", "batch=4 length=4096 blocks=64 m=5"},
    {"scan_companion", "batch=4 length=4096 blocks=256 m=5"},
    {"scan_lstm", "batch=128 length=16 dim=256"},
    {"scan_lstm", "batch=128 length=128 dim=256"},
    {"scan_outer", "batch=128 length=128 heads=4 dk=64 dv=64"},
    {"scan_outer", "batch=8 length=2048 heads=4 dk=64 dv=64"},
    {"scan_delta", "batch=128 length=128 heads=4 dk=64 dv=64"},
    {"scan_delta", "batch=128 length=128 heads=4 dk=64 dv=64 substeps=2"},
    {"scan_plstm", "batch=128 length=128 heads=4 dk=64 dv=64 m=1"},
    {"grid_scan", "batch=32 length=256 heads=4 dk=32 dv=32"},
    {"dag_scan", "batch=32 length=64 heads=4 dk=32 dv=32"},
    {"softmax_attention", "batch=128 length=128 heads=4 dk=64"},
    {"softmax_attention", "batch=8 length=1024 heads=4 dk=64"},
    {"tree_solve", "batch=128 length=128 blocks=64"},
    {"tree_solve", "batch=8 length=1024 blocks=64"},
    {"scan_flow", "batch=128 length=16 blocks=64 m=4"},
    {"scan_flow", "batch=128 length=128 blocks=16 m=16"},
    {"scan_dplr", "batch=128 length=128 dim=128 m=2"},
    {"scan_hadamard", "batch=128 length=128 dim=128"},
    {"expm_skew", "batch=128 length=128 heads=8 m=8"},
    {"linear", "batch=128 length=16 dim=256 out=1920"},
    {"linear", "batch=128 length=16 dim=320 out=256"},
    {"rmsnorm", "batch=128 length=128 dim=256"},
    {"layernorm", "batch=128 length=128 dim=256"},
    {"add_norm", "batch=128 length=128 dim=256"},
    {"add", "batch=128 length=128 dim=256"},
    {"silu_mul", "batch=128 length=128 dim=688"},
    {"activate", "batch=128 length=128 dim=688"},
    {"dropout", "batch=128 length=128 dim=256"},
    {"embedding", "batch=128 length=128 dim=256 vocab=120"},
    {"cross_entropy", "batch=128 length=128 vocab=120"},
};

struct device_run {
    const struct perf_device_request *request;
    struct place place;
    struct place_info info;
    struct place_mark *from, *to;
    double copy_rate, product_rate; /* bytes a second, read and written both counted; FLOP/s of a large product */
    FILE *file;                     /* NULL: stdout alone */
    double clock_mhz;               /* behind the latest samples */
    bool captured;                  /* whether they were replayed */
};

struct device_row {
    const char *name, *kernel, *shape, *pass, *precision, *cache;
    double error; /* against the reference, relative to its largest magnitude; NAN: none */
    struct cost cost;
};

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void print_to(FILE *f, const struct device_run *d, const struct device_row *r, const struct samples *t) {
    double time = samples_median(t), bytes = r->cost.bytes / time, flops = r->cost.flops / time;
    char error[32] = "";
    if (!isnan(r->error)) snprintf(error, sizeof error, "%.3g", r->error);
    fprintf(f, "%.12s,%s,%s,%.0f,%.0f,%.0f,%s,%s,\"%s\",%s,%s,%s,%s,%s,%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.4g,%.4g\n",
            build_info()->commit, d->info.name, d->info.driver, d->clock_mhz, d->info.clock_mhz,
            d->info.memory_clock_mhz, r->name, r->kernel, r->shape, r->pass, r->precision, r->cache,
            d->captured ? "yes" : "no", error, t->n, time * 1e6, samples_mad(t) * 1e6, r->cost.bytes, r->cost.flops,
            bytes / 1e9, flops / 1e9, d->copy_rate > 0 ? 100 * bytes / d->copy_rate : NAN,
            d->product_rate > 0 ? 100 * flops / d->product_rate : NAN);
    fflush(f);
}

static void print_row(const struct device_run *d, const struct device_row *r, const struct samples *t) {
    print_to(stdout, d, r, t);
    if (d->file) print_to(d->file, d, r, t);
}

static void print_head(FILE *f) {
    fprintf(f, "commit,device,driver,sm_mhz,sm_max_mhz,mem_max_mhz,op,kernel,shape,pass,precision,cache,captured,error,"
               "samples,time_us,mad_us,bytes,flops,gb_per_s,gflop_per_s,pct_of_copy,pct_of_gemm\n");
}

/* A piece of work to be timed, as often in a row as a sample takes, in its n contexts by turns. */
struct timed {
    void (*work)(void *context);
    void *const *contexts;
    int n, walks;
    struct place_capture *capture; /* of all walks, so that launches from the host are not what is timed; or NULL */
};

static void walk_all(struct timed *w) {
    for (int i = 0; i < w->walks; i++) w->work(w->contexts[i % w->n]);
}

static void capture_walks(const struct place *p, struct timed *w) {
    if (!place_capture_begin(p)) return;
    walk_all(w);
    w->capture = place_capture_end(p);
}

static void walk_or_replay(const struct place *p, struct timed *w) {
    if (w->capture)
        place_replay(p, w->capture);
    else
        walk_all(w);
}

static enum status spin(const struct device_run *d, struct timed *w, struct error *e) {
    double start = time_now_s(), seconds = d->request->small ? 0 : SPIN_S;
    do {
        walk_or_replay(&d->place, w);
        TRY(place_wait(&d->place, e));
    } while (time_now_s() - start < seconds);
    return ST_OK;
}

/* Seconds of one walk, by events; sampled for the request's time. */
static enum status sample(struct device_run *d, struct timed *w, struct samples *t, struct error *e) {
    int least = d->request->small ? 2 : MIN_COUNT;
    t->n = 0;
    double start = time_now_s();
    while (t->n < PERF_SAMPLES && (t->n < least || time_now_s() - start < d->request->seconds)) {
        place_mark_set(&d->place, d->from);
        walk_or_replay(&d->place, w);
        place_mark_set(&d->place, d->to);
        samples_add(t, place_mark_seconds(&d->place, d->from, d->to) / w->walks);
    }
    d->clock_mhz = place_clock_mhz(&d->place);
    return place_wait(&d->place, e);
}

/* The first call loads the kernels. */
static enum status sample_in(struct device_run *d, bool captured, void (*work)(void *context), void *const *contexts,
                             int n, struct samples *t, struct error *e) {
    struct timed w = {.work = work, .contexts = contexts, .n = n, .walks = d->request->small ? n : WALKS};
    work(contexts[0]);
    TRY(place_wait(&d->place, e));
    if (captured) capture_walks(&d->place, &w);
    d->captured = w.capture;
    enum status status = spin(d, &w, e);
    if (status == ST_OK) status = sample(d, &w, t, e);
    place_capture_free(&d->place, w.capture);
    return status;
}

static enum status sample_work(struct device_run *d, bool captured, void (*work)(void *context), void *context,
                               struct samples *t, struct error *e) {
    return sample_in(d, captured, work, &context, 1, t, e);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static void walk_forward(void *context) {
    struct kernel_run *r = context;
    graph_forward(&r->graph, r->live);
}

static void walk_both(void *context) {
    struct kernel_run *r = context;
    graph_forward(&r->graph, r->live);
    if (r->graph.root) graph_backward(&r->graph, r->live);
}

/* max |got - want| / max |want| of n reals. */
static double relative_error(const real *got, const real *want, int64_t n) {
    double off = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        double difference = fabs((double)got[i] - (double)want[i]);
        if (!(difference <= off)) off = difference; /* NaN too */
        if (fabs((double)want[i]) > size) size = fabs((double)want[i]);
    }
    return size > 0 ? off / size : off;
}

/* Of the output and of every input's gradient, the largest. */
static double compare_runs(struct kernel_run *got, struct kernel_run *want, real *a) {
    const struct call *c = got->call, *reference = want->call;
    double worst = 0;
    for (int j = 0; j < c->n_out; j++) {
        if (c->out[j]->dtype != DT_REAL) continue;
        graph_get(&got->graph, c->out[j], a);
        worst = fmax(worst, relative_error(a, tensor_real(reference->out[j]), tensor_count(c->out[j])));
    }
    for (int i = 0; i < c->n_in && got->graph.root; i++) {
        if (!c->in[i] || !c->in[i]->grad) continue;
        graph_get_grad(&got->graph, c->in[i], a);
        worst = fmax(worst, relative_error(a, reference->in[i]->grad, tensor_count(c->in[i])));
    }
    return worst;
}

static enum status error_of(struct kernel_run *r, const struct op_sizes *sizes, double *error, struct error *e) {
    struct kernel_run *reference = calloc(1, sizeof *reference);
    const char *why;
    if (!reference) return fail(e, ST_MEMORY, "no memory for the reference");
    enum status status = kernel_run_open(reference, r->call->op, kernel_reference(r->call->op), sizes, &why, e);
    size_t bytes = 1;
    for (int i = 0; i < r->graph.n_tensors; i++)
        if (tensor_bytes(r->graph.tensors[i]) > bytes) bytes = tensor_bytes(r->graph.tensors[i]);
    real *room = status == ST_OK ? malloc(bytes) : NULL;
    if (status == ST_OK && !room) status = fail(e, ST_MEMORY, "no memory for the reference");
    if (status == ST_OK) {
        walk_both(reference);
        walk_both(r);
        status = place_wait(r->place, e);
        if (status == ST_OK) *error = compare_runs(r, reference, room);
    }
    free(room);
    kernel_run_close(reference);
    free(reference);
    return status;
}

/* Sets of buffers that are together twice as large as the device's cache; 1: one alone is. */
static int cold_sets(const struct device_run *d, const struct kernel_run *r) {
    double sets = ceil(2 * (double)d->info.cache / fmax(1, r->cost[PASS_BOTH].bytes)), most = WALKS;
    if (d->request->small) most = 2;
    return sets < 2 ? 1 : (int)fmin(sets, most);
}

/* Both passes over sets of buffers by turns; the first set is there. */
static enum status measure_sets(struct device_run *d, struct kernel_run **runs, int n, const struct op_sizes *sizes,
                                struct device_row *row, struct error *e) {
    const char *why = NULL;
    for (int i = 1; i < n; i++) {
        runs[i] = calloc(1, sizeof *runs[i]);
        if (!runs[i]) return fail(e, ST_MEMORY, "no memory for the samples");
        runs[i]->place = &d->place;
        TRY(kernel_run_open(runs[i], runs[0]->call->op, runs[0]->call->kernel, sizes, &why, e));
    }
    row->cache = n > 1 ? "cold" : "warm";
    row->pass = "forward";
    row->cost = runs[0]->cost[PASS_FORWARD];
    TRY(sample_in(d, true, walk_forward, (void *const *)runs, n, &runs[0]->time[0], e));
    print_row(d, row, &runs[0]->time[0]);
    if (!runs[0]->graph.root) return ST_OK;
    row->pass = "both";
    row->cost = runs[0]->cost[PASS_BOTH];
    TRY(sample_in(d, true, walk_both, (void *const *)runs, n, &runs[0]->time[0], e));
    print_row(d, row, &runs[0]->time[0]);
    return ST_OK;
}

static enum status measure_kernel(struct device_run *d, const struct kernel *k, const struct op_sizes *sizes,
                                  struct error *e) {
    struct kernel_run *runs[WALKS] = {calloc(1, sizeof *runs[0])}, *r = runs[0];
    const char *why = NULL;
    double error = NAN;
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    r->place = &d->place;
    enum status status = kernel_run_open(r, k->op, k, sizes, &why, e);
    bool measured = status == ST_OK && !why;
    if (measured && !d->request->no_error) status = error_of(r, sizes, &error, e);
    struct device_row row = {
        .name = k->op->name, .kernel = k->name, .shape = r->shape, .precision = REAL_NAME, .error = error};
    if (measured && status == ST_OK) status = measure_sets(d, runs, 1, sizes, &row, e);
    if (measured && status == ST_OK && cold_sets(d, r) > 1)
        status = measure_sets(d, runs, cold_sets(d, r), sizes, &row, e);
    for (int i = 0; i < WALKS && runs[i]; i++) {
        kernel_run_close(runs[i]);
        free(runs[i]);
    }
    return status;
}

/* "name=value name=value" over the defaults; small: nothing larger than a test can afford. */
static enum status read_sizes(const char *text, bool small, struct op_sizes *sizes, struct error *e) {
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

static enum status measure_kernels(struct device_run *d, struct error *e) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op_sizes sizes;
        if (*d->request->only && strcmp(d->request->only, cases[i].op) != 0) continue;
        TRY(read_sizes(cases[i].shape, d->request->small, &sizes, e));
        for (const struct kernel *const *k = kernel_list(); *k; k++)
            if ((*k)->device == DEVICE_CUDA && !strcmp((*k)->op->name, cases[i].op))
                TRY(measure_kernel(d, *k, &sizes, e));
    }
    return ST_OK;
}

/* --- what the device can do --------------------------------------------------------------------------------------- */

struct copy {
    const struct place *place;
    struct arena arena;
    size_t bytes;
};

static void copy_walk(void *context) {
    const struct copy *c = context;
    place_copy(c->place, c->arena.base + c->bytes, c->arena.base, c->bytes);
}

static enum status measure_copy(struct device_run *d, struct error *e) {
    struct copy c = {.place = &d->place, .bytes = d->request->small ? 4096 : COPY_BYTES};
    struct samples *t = calloc(1, sizeof *t);
    if (!t) return fail(e, ST_MEMORY, "no memory for the samples");
    enum status status = place_reserve(&d->place, &c.arena, 2 * c.bytes, e);
    if (status == ST_OK) status = sample_work(d, true, copy_walk, &c, t, e);
    if (status == ST_OK) {
        d->copy_rate = 2 * (double)c.bytes / samples_median(t);
        struct device_row row = {"copy", "memcpy", "512 MB", "forward", "", "", NAN, {0, 2 * (double)c.bytes}};
        print_row(d, &row, t);
    }
    arena_free(&c.arena);
    free(t);
    return status;
}

/* A product of 4096 x 4096 matrices; the fp32 one is the measure of the percentages. */
static enum status measure_product(struct device_run *d, enum precision precision, struct error *e) {
    struct kernel_run *r = calloc(1, sizeof *r);
    struct op_sizes sizes;
    const char *why = NULL;
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    r->place = &d->place;
    r->precision = precision;
    enum status status = read_sizes("batch=1 length=4096 dim=4096 out=4096", d->request->small, &sizes, e);
    if (status == ST_OK) status = kernel_run_open(r, op_find("linear"), kernel_find("linear_cuda"), &sizes, &why, e);
    if (status == ST_OK) status = sample_work(d, true, walk_forward, r, &r->time[0], e);
    if (status == ST_OK) {
        if (precision == PRECISION_FULL) d->product_rate = r->cost[PASS_FORWARD].flops / samples_median(&r->time[0]);
        struct device_row row = {.name = "product",
                                 .kernel = "linear_cuda",
                                 .shape = r->shape,
                                 .pass = "forward",
                                 .precision = precision_name(precision),
                                 .cache = "warm",
                                 .error = NAN,
                                 .cost = r->cost[PASS_FORWARD]};
        print_row(d, &row, &r->time[0]);
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

/* How a step is done, and what is turned off for it (docs/cuda.md). */
struct step_way {
    const char *name, *off;
    void (*work)(void *context);
};

static const struct step_way step_ways[] = {{"walked", NULL, step_walked},
                                            {"replayed", NULL, step_replayed},
                                            {"replayed without overlap", "LRNN_CUDA_OVERLAP", step_replayed},
                                            {"replayed on one stream", "LRNN_CUDA_BRANCHES", step_replayed}};

/* A row of the trainer's step; times include the way of the batches. */
static enum status time_step(const struct device_run *d, const char *precision, const struct setup *s,
                             struct trainer *t, const struct step_way *way, struct error *e) {
    struct device_run own = *d;
    char shape[256];
    struct cost forward = graph_cost(&t->train, PASS_FORWARD), backward = graph_cost(&t->train, PASS_BACKWARD);
    struct cost cost = {forward.flops + backward.flops, forward.bytes + backward.bytes};
    snprintf(shape, sizeof shape, "%.120s batch=%" PRId64 " parameters=%" PRId64, s->model_label, s->config.batch,
             params_trained(&t->params));
    struct device_row row = {"step", way->name, shape, "step", precision, "", NAN, cost};
    struct samples *times = calloc(1, sizeof *times);
    if (!times) return fail(e, ST_MEMORY, "no memory for times");
    own.place = t->place;
    own.from = place_mark_create(&t->place);
    own.to = place_mark_create(&t->place);
    enum status status = sample_work(&own, false, way->work, t, times, e);
    own.captured = t->capture;
    if (status == ST_OK) print_row(&own, &row, times);
    place_mark_free(&t->place, own.from);
    place_mark_free(&t->place, own.to);
    free(times);
    return status;
}

static enum status measure_way(const struct device_run *d, const char *precision, struct setup *s,
                               const struct step_way *way, struct error *e) {
    struct trainer *t = calloc(1, sizeof *t);
    if (!t) return fail(e, ST_MEMORY, "no memory for a trainer");
    if (way->off) setenv(way->off, "0", 1);
    enum status status = trainer_create(t, s, e);
    if (way->off) unsetenv(way->off);
    if (status == ST_OK) status = time_step(d, precision, s, t, way, e);
    trainer_free(t);
    free(t);
    return status;
}

/* The step of an S5 model of about a million parameters, in each way (G11). */
static enum status measure_steps(const struct device_run *d, const char *precision, struct error *e) {
    struct config c;
    TRY(config_default(&c, e));
    const char *const flags[][2] = {{"device", d->request->device},
                                    {"dim", d->request->small ? "8" : "256"},
                                    {"batch", d->request->small ? "4" : "128"},
                                    {"precision", precision},
                                    {"epochs", "1000"},
                                    {"quiet", "yes"}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) TRY(config_set(&c, flags[i][0], flags[i][1], e));
    struct setup *s =
        setup_make(&c, d->request->small ? "s3" : "s5", d->request->small ? "bdlru:m=2,blocks=2" : STEP_MODEL, e);
    if (!s) return e->status;
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof step_ways / sizeof *step_ways && status == ST_OK; i++)
        status = measure_way(d, precision, s, &step_ways[i], e);
    setup_free(s);
    free(s);
    return status;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static enum status measure_all(struct device_run *d, struct error *e) {
    TRY(place_describe(&d->place, &d->info, e));
    print_head(stdout);
    if (d->file) print_head(d->file);
    TRY(measure_copy(d, e));
    TRY(measure_product(d, PRECISION_FULL, e));
    if (!REAL_IS_DOUBLE) TRY(measure_product(d, PRECISION_TF32, e));
    if (!REAL_IS_DOUBLE) TRY(measure_product(d, PRECISION_BF16, e));
    TRY(measure_kernels(d, e));
    if (*d->request->only) return ST_OK;
    TRY(measure_steps(d, REAL_NAME, e));
    if (REAL_IS_DOUBLE) return ST_OK;
    TRY(measure_steps(d, "tf32", e));
    return measure_steps(d, "bf16", e);
}

static enum status open_file(struct device_run *d, struct error *e) {
    char path[PATH_BYTES];
    if (!*d->request->out) return ST_OK;
    TRY(make_folder(d->request->out, e));
    TRY(path_format(path, sizeof path, e, "%s/device-%.12s.csv", d->request->out, build_info()->commit));
    d->file = fopen(path, "w");
    return d->file ? ST_OK : fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(errno));
}

/* An op that is asked for must have a shape here and a kernel on devices. */
static enum status check_only(const char *only, struct error *e) {
    char known[1024] = "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!*only || !strcmp(only, cases[i].op)) return ST_OK;
        if (i && !strcmp(cases[i].op, cases[i - 1].op)) continue;
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", cases[i].op);
    }
    return fail(e, ST_USAGE, "--only %s: perf device measures %s", only, known);
}

/* Where launches do not overlap: a kernel's, many in a row, would hide in each other, and their time be no time of one.
 */
static enum status open_without_overlap(struct place *p, const char *device, struct error *e) {
    bool is_set = getenv("LRNN_CUDA_OVERLAP");
    setenv("LRNN_CUDA_OVERLAP", "0", 0);
    enum status status = place_open(p, device, e);
    if (!is_set) unsetenv("LRNN_CUDA_OVERLAP");
    return status;
}

enum status perf_device(const struct perf_device_request *request, struct error *e) {
    struct device_run d = {.request = request};
    TRY(check_only(request->only, e));
    TRY(open_without_overlap(&d.place, request->device, e));
    if (d.place.device == DEVICE_CPU)
        return fail(e, ST_USAGE, "perf device measures CUDA devices; `lrnn perf op` the CPU");
    enum status status = open_file(&d, e);
    d.from = place_mark_create(&d.place);
    d.to = place_mark_create(&d.place);
    if (status == ST_OK) status = measure_all(&d, e);
    if (d.file && fclose(d.file) != 0 && status == ST_OK)
        status = fail(e, ST_FAIL, "cannot write to %s: %s", request->out, strerror(errno));
    place_mark_free(&d.place, d.from);
    place_mark_free(&d.place, d.to);
    place_close(&d.place);
    return status;
}

/* op.c - `lrnn perf op` and `lrnn perf crossover`: compares kernels of one op on the CPU with their floors and with
 * each other.
 *
 * The floor is a lower bound for the time of an op, the larger of two: its bytes at the rate of a copy of the same
 * size, and its FLOPs at the rate of multiply-adds on registers. Both rates are measured between the samples, under the
 * same conditions. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"
#include "harness/perf/kernel_run.h"
#include "harness/perf/op_sheet.h"
#include "harness/perf/perf.h"
#include "harness/plot/gnuplot.h"
#include "harness/store/clock.h"

#define MIN_SAMPLES 5
#define MIN_COPY    ((size_t)4 << 20) /* bytes; smaller buffers would stay in the L1 or L2 cache */
#define MAX_COPY    ((size_t)256 << 20)
#define MAX_KERNELS 8
#define MAX_LENGTHS 32
#define MARGIN      1.05 /* ratios of best times below this count as equal */

static const char *const pass_names[3] = {"forward", "backward", "both"};

/* Rates of the machine, shared by the kernels of an op. */
struct rates {
    struct copy_bench copy; /* made for the first kernel, since all move the same bytes */
    struct floor_rates best;
    double foreign; /* share of the cores' time that other processes used while the latest kernel ran */
};

/* Samples the runs in turn, so that conditions are the same for all. Runs with a reason `why` are left out. The first
 * round is a warm-up and not kept. After each round the machine's rates are measured, if `rates`. */
static void sample_by_turns(struct kernel_run *runs, const char *const *why, int n, double seconds,
                            struct rates *rates) {
    struct samples rounds = {0};
    double start = time_now_s();
    for (bool warm = false; !warm || samples_due(&rounds, MIN_SAMPLES, start, seconds); warm = true) {
        for (int k = 0; k < n; k++) {
            if (why[k]) continue;
            kernel_run_sample(&runs[k]);
            for (int pass = 0; !warm && pass < 3; pass++) runs[k].time[pass].n = 0;
        }
        if (rates) floor_rates_sample(&rates->best, &rates->copy);
        if (warm) samples_add(&rounds, 0);
    }
}

/* --- a kernel and its floors --------------------------------------------------------------------------------- */

/* Describes one pass of a kernel as a row of perf.csv. */
static void fill_row(struct perf_row *row, const struct kernel_run *r, const struct rates *rates, const char *kernel,
                     int pass) {
    static const char *const passes[3] = {"fwd", "bwd", "fwd+bwd"};
    const struct samples *t = &r->time[pass];
    const struct cost cost = r->cost[pass];
    struct sitting s = {.warm_up = 1, .foreign = rates->foreign};
    struct machine m;
    machine_read(&m);
    sitting_describe(row, &m, omp_get_max_threads());
    snprintf(row->bench, sizeof row->bench, "%s", kernel);
    snprintf(row->shape, sizeof row->shape, "%s", r->shape);
    snprintf(row->pass, sizeof row->pass, "%s", passes[pass]);
    sitting_summarise(&s, t);
    sitting_fill(&s, NAN, row);
    row->best_ns = samples_best(t) * 1e9;
    row->floor_ns = fmax(cost.bytes / rates->best.bytes, cost.flops / rates->best.flops) * 1e9;
    row->flops = cost.flops;
    row->bytes = cost.bytes;
}

static void print_json(const struct op_time *m, int pass) {
    const struct perf_row *r = &m->row;
    printf("{");
    perf_print_origin();
    printf(",\"threads\":%" PRId64 ",\"kernel\":\"%s\",\"pass\":\"%s\",\"shape\":\"%s\",\"samples\":%" PRId64
           ",\"best_ms\":%.6g,\"median_ms\":%.6g,\"mad_ms\":%.6g,\"gflop_per_s\":%.6g,\"gb_per_s\":%.6g,"
           "\"floor_ms\":%.6g,\"bound\":\"%s\",\"ratio\":%.6g}\n",
           r->threads, r->bench, pass_names[pass], r->shape, r->samples, r->best_ns * 1e-6, r->time_ns * 1e-6,
           r->time_ns_mad * 1e-6, r->flops / r->best_ns, r->bytes / r->best_ns, r->floor_ns * 1e-6,
           m->by_bytes ? "bytes" : "flops", r->best_ns / r->floor_ns);
    fflush(stdout);
}

/* Adds a row to the list, which has room. */
static enum status keep_pass(struct op_times *all, const struct kernel_run *r, const struct rates *rates,
                             const struct kernel *k, int pass, const struct perf_op_request *q, struct error *e) {
    struct op_time *m = &all->list[all->n++];
    m->whole = pass == (r->graph.root ? PASS_BOTH : PASS_FORWARD);
    m->by_bytes = r->cost[pass].bytes / rates->best.bytes >= r->cost[pass].flops / rates->best.flops;
    fill_row(&m->row, r, rates, k->name, pass);
    if (q->json) print_json(m, pass);
    if (!*q->to) return ST_OK;
    struct machine machine;
    machine_read(&machine);
    return sitting_append(q->to, &m->row, &machine, e);
}

/* Measures a kernel at shape number `shape`, and adds its passes, or why it does not apply. */
static enum status run_kernel(struct op_times *all, const struct kernel *k, int shape, const struct perf_op_request *q,
                              struct rates *rates, struct error *e) {
    struct kernel_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    const char *why = NULL;
    struct noise noise;
    int before = all->n;
    enum status status = kernel_run_open(r, k->op, k, &all->shapes->list[shape], &why, e);
    if (status == ST_OK && why) {
        struct op_time *m = &all->list[all->n++];
        snprintf(m->row.bench, sizeof m->row.bench, "%s", k->name);
        m->row.threads = q->threads;
        m->why = why;
        if (q->json) printf("{\"kernel\":\"%s\",\"skipped\":\"%s\"}\n", k->name, why);
    }
    if (status == ST_OK && !why && !rates->copy.bytes) {
        size_t bytes = (size_t)(r->cost[PASS_BOTH].bytes / 2);
        status = copy_create(&rates->copy, bytes < MIN_COPY ? MIN_COPY : bytes > MAX_COPY ? MAX_COPY : bytes, e);
    }
    if (status == ST_OK && !why) {
        noise_begin(&noise);
        sample_by_turns(r, &why, 1, q->seconds, rates);
        rates->foreign = noise_end(&noise);
        for (int pass = PASS_FORWARD; pass <= (r->graph.root ? PASS_BOTH : PASS_FORWARD) && status == ST_OK; pass++)
            status = keep_pass(all, r, rates, k, pass, q, e);
    }
    for (int i = before; i < all->n; i++) all->list[i].shape = shape;
    kernel_run_close(r);
    free(r);
    return status;
}

/* Measures the kernels at one shape, with the machine's rates. If there are several shapes, the reference is left out
 * unless it is named. */
static enum status run_shape(struct op_times *all, const struct op *op, int shape, const struct perf_op_request *q,
                             struct error *e) {
    struct rates rates = {0};
    enum status status = ST_OK;
    for (const struct kernel *const *k = kernel_list(); *k && status == ST_OK; k++) {
        bool named = !strcmp(q->kernel, (*k)->name) || (!strcmp(q->kernel, "reference") && (*k)->reference);
        bool unasked = !q->kernel[0] && (all->shapes->n == 1 || !(*k)->reference);
        if ((*k)->op == op && (*k)->device == DEVICE_CPU && (named || unasked))
            status = run_kernel(all, *k, shape, q, &rates, e);
    }
    copy_free(&rates.copy);
    all->best.bytes = fmax(all->best.bytes, rates.best.bytes);
    all->best.flops = fmax(all->best.flops, rates.best.flops);
    if (rates.best.bytes > 0 && !(all->least.bytes < rates.best.bytes)) all->least = rates.best;
    return status;
}

static enum status show(const struct op_times *all, const struct perf_op_request *q, const struct perf_rows *old,
                        struct error *e) {
    struct sheets sheets = {0};
    op_sheet(sheets_add(&sheets), all, old);
    enum status status = sheets_view(&sheets, &q->view, e);
    if (status == ST_OK) status = sheets_write(&sheets, sheet_formats()[q->format], stdout, e);
    sheets_free(&sheets);
    return status;
}

static enum status measure_shapes(const struct op *op, const struct perf_op_request *q, const struct op_shapes *shapes,
                                  const struct perf_rows *old, struct error *e) {
    struct op_times all = {.op = op, .shapes = shapes, .least = {.bytes = INFINITY}};
    all.list = calloc((size_t)shapes->n * 3 * MAX_KERNELS, sizeof *all.list);
    enum status status = all.list ? ST_OK : fail(e, ST_MEMORY, "no memory for times at %d shapes", shapes->n);
    bool told = shapes->n > 1 && terminal_has_codes(stderr);
    for (int i = 0; i < shapes->n && status == ST_OK; i++) {
        if (told) fprintf(stderr, "\r\033[Kshape %d of %d", i + 1, shapes->n);
        status = run_shape(&all, op, i, q, e);
    }
    if (told) fputs("\r\033[K", stderr);
    if (status == ST_OK && all.n == 0 && !q->kernel[0])
        status =
            fail(e, ST_USAGE,
                 "perf op: %s has the reference alone, which several shapes leave out; --kernel reference measures it",
                 op->name);
    if (status == ST_OK && all.n == 0)
        status = fail(e, ST_USAGE, "perf op: %s has no kernel '%s'; `lrnn info %s` names them", op->name, q->kernel,
                      op->name);
    if (status == ST_OK && !q->json) status = show(&all, q, old, e);
    if (status == ST_OK && *q->plot) status = op_roofline(&all, q->plot, e);
    free(all.list);
    return status;
}

enum status perf_op(const struct op *op, const struct perf_op_request *q, struct error *e) {
    struct op_shapes shapes;
    struct perf_rows old = {0};
    if (*q->shapes && *q->sweep)
        return fail(e, ST_USAGE, "perf op: --shapes and --sweep both say which shapes; leave one of them out");
    if (*q->plot) TRY(gnuplot_find(e));
    TRY(op_shapes_make(&shapes, op, &q->sizes, q->shapes, q->sweep, e));
    enum status status = *q->against ? perf_rows_read(&old, q->against, e) : ST_OK;
    if (status == ST_OK) status = measure_shapes(op, q, &shapes, *q->against ? &old : NULL, e);
    free(old.list);
    free(shapes.list);
    return status;
}

/* --- kernels compared by length ------------------------------------------------------------------------- */

struct crossover {
    const struct op *op;
    const struct perf_crossover_request *q;
    int n_kernels, n_lengths;
    const struct kernel *kernels[MAX_KERNELS + 1]; /* the last is NULL: the default kernel */
    int64_t lengths[MAX_LENGTHS];
    double best[MAX_LENGTHS][MAX_KERNELS]; /* seconds; INFINITY: the kernel does not apply */
    const char *why[MAX_KERNELS + 1];      /* why the kernel did not apply at the latest length; NULL if it did */
};

static const struct samples *times(const struct kernel_run *r) {
    return &r->time[r->graph.root ? PASS_BOTH : PASS_FORWARD];
}

static void print_length(const struct crossover *x, int at, const struct kernel_run *runs) {
    const char *taken = runs[x->n_kernels].call->kernel->name;
    int64_t length = x->lengths[at];
    bool json = x->q->json;
    if (at == 0 && json) {
        printf("{");
        perf_print_origin();
        printf(",\"op\":\"%s\",\"shape\":\"%s\"}\n", x->op->name, runs[x->n_kernels].shape);
    } else if (at == 0) {
        printf("%s %s and longer, forward + backward, 1 thread, " REAL_NAME ", best ms\n%10s", x->op->name,
               runs[x->n_kernels].shape, "T");
        for (int k = 0; k < x->n_kernels; k++) printf(" %24s", x->kernels[k]->name);
        printf("  taken\n");
    }
    if (!json) printf("%10" PRId64, length);
    for (int k = 0; k < x->n_kernels; k++) {
        const struct samples *t = times(&runs[k]);
        const char *name = x->kernels[k]->name;
        if (json && x->why[k])
            printf("{\"length\":%" PRId64 ",\"kernel\":\"%s\",\"skipped\":\"%s\"}\n", length, name, x->why[k]);
        else if (json)
            printf("{\"length\":%" PRId64 ",\"kernel\":\"%s\",\"samples\":%d,\"best_ms\":%.6g,\"median_ms\":%.6g,"
                   "\"mad_ms\":%.6g,\"taken\":%s}\n",
                   length, name, t->n, samples_best(t) * 1e3, samples_median(t) * 1e3, samples_mad(t) * 1e3,
                   strcmp(taken, name) ? "false" : "true");
        else if (x->why[k])
            printf(" %24s", "skipped");
        else
            printf(" %24.4f", samples_best(t) * 1e3);
    }
    if (!json) printf("  %s\n", taken);
    fflush(stdout);
}

static enum status measure_length(struct crossover *x, int at, struct error *e) {
    struct op_sizes sizes = x->q->sizes;
    struct kernel_run *runs = calloc(MAX_KERNELS + 1, sizeof *runs);
    enum status status = runs ? ST_OK : fail(e, ST_MEMORY, "no memory for the samples");
    int opened = 0;
    sizes.length = x->lengths[at];
    for (; opened <= x->n_kernels && status == ST_OK; opened++)
        status = kernel_run_open(&runs[opened], x->op, x->kernels[opened], &sizes, &x->why[opened], e);
    if (status == ST_OK) {
        sample_by_turns(runs, x->why, x->n_kernels, x->q->seconds * x->n_kernels, NULL);
        for (int k = 0; k < x->n_kernels; k++) x->best[at][k] = x->why[k] ? INFINITY : samples_best(times(&runs[k]));
        print_length(x, at, runs);
    }
    for (int k = 0; k < opened; k++) kernel_run_close(&runs[k]);
    free(runs);
    return status;
}

static bool faster(const struct crossover *x, int at, int a, int b) {
    return isfinite(x->best[at][a]) && x->best[at][b] > MARGIN * x->best[at][a];
}

/* Prints at which lengths kernel a is faster than b: from a length on, up to a length, at some, or at none. */
static void print_verdict(const struct crossover *x, int a, int b) {
    const char *name = x->kernels[a]->name, *other = x->kernels[b]->name;
    int last = x->n_lengths - 1, from = -1, up_to = -1;
    bool ever = false;
    for (int at = last; at >= 0 && faster(x, at, a, b); at--) from = at;
    for (int at = 0; at <= last && faster(x, at, a, b); at++) up_to = at;
    for (int at = 0; at <= last; at++) ever = ever || faster(x, at, a, b);
    if (x->q->json) {
        char text[32] = "null";
        if (from >= 0) snprintf(text, sizeof text, "%" PRId64, x->lengths[from]);
        printf("{\"kernel\":\"%s\",\"than\":\"%s\",\"ever_faster\":%s,\"faster_from\":%s}\n", name, other,
               ever ? "true" : "false", text);
    } else if (from >= 0) {
        printf("%s is faster than %s from T=%" PRId64 " on, %.2f times at T=%" PRId64 "\n", name, other,
               x->lengths[from], x->best[last][b] / x->best[last][a], x->lengths[last]);
    } else if (up_to >= 0) {
        printf("%s is faster than %s up to T=%" PRId64 "\n", name, other, x->lengths[up_to]);
    } else {
        printf("%s is %s than %s\n", name, ever ? "at some lengths only faster" : "never faster", other);
    }
}

static bool measured(const struct crossover *x, int k) {
    for (int at = 0; at < x->n_lengths; at++)
        if (isfinite(x->best[at][k])) return true;
    return false;
}

enum status perf_crossover(const struct op *op, const struct perf_crossover_request *q, struct error *e) {
    struct crossover x = {.op = op, .q = q};
    for (const struct kernel *const *k = kernel_list(); *k && x.n_kernels < MAX_KERNELS; k++)
        if ((*k)->op == op && (*k)->device == DEVICE_CPU && !(*k)->reference) x.kernels[x.n_kernels++] = *k;
    if (x.n_kernels < 2)
        return fail(e, ST_USAGE,
                    "perf crossover: %s has %d CPU kernel%s beside the reference, expected two to compare; "
                    "`lrnn perf op %s` measures one",
                    op->name, x.n_kernels, x.n_kernels == 1 ? "" : "s", op->name);
    for (int64_t T = q->from; T <= q->to && x.n_lengths < MAX_LENGTHS; T *= 2) x.lengths[x.n_lengths++] = T;
    if (x.n_lengths == 0)
        return fail(e, ST_USAGE, "perf crossover: from=%" PRId64 " is longer than to=%" PRId64, q->from, q->to);
    for (int at = 0; at < x.n_lengths; at++) TRY(measure_length(&x, at, e));
    for (int a = 0; a < x.n_kernels; a++) {
        if (!measured(&x, a) && !q->json) printf("%s was skipped at every length: %s\n", x.kernels[a]->name, x.why[a]);
        for (int b = 0; b < x.n_kernels; b++)
            if (a != b && measured(&x, a) && measured(&x, b)) print_verdict(&x, a, b);
    }
    return ST_OK;
}

/* op.c - `lrnn perf op` and `lrnn perf crossover`: kernels of one op on the CPU, beside their floors and beside each
 * other.
 *
 * The floor of an op is the larger of two: its bytes at the rate of a copy that moves as many, and its FLOPs at the
 * rate of multiply-adds on registers. Both rates are measured between the samples, so that they see the same machine.
 * */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness/perf/kernel_run.h"
#include "harness/perf/perf.h"
#include "harness/store/clock.h"

#define MIN_SAMPLES 5
#define MIN_COPY    ((size_t)4 << 20) /* bytes; smaller buffers stay in the caches next to the core */
#define MAX_COPY    ((size_t)256 << 20)
#define MAX_KERNELS 8
#define MAX_LENGTHS 32
#define APART       1.2  /* times the best: a median above that is told */
#define MARGIN      1.05 /* a smaller ratio of best times is no difference */

static const char *const pass_names[3] = {"forward", "backward", "both"};

/* Rates of the machine, shared by the kernels of an op. */
struct rates {
    struct copy_bench copy; /* made for the first kernel: all move the same bytes */
    struct floor_rates best;
};

/* Samples the runs by turns, so that all see the same machine; those with a reason `why` not to run are left out, and
 * the first round, which warms up, is not kept. After each round the machine's rates are measured, if `rates`. */
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

/* --- one kernel beside its floors --------------------------------------------------------------------------------- */

static void print_pass(const struct kernel_run *r, const struct rates *rates, const struct kernel *k, int pass,
                       bool json) {
    const struct samples *t = &r->time[pass];
    const struct cost cost = r->cost[pass];
    double by_bytes = cost.bytes / rates->best.bytes, by_flops = cost.flops / rates->best.flops;
    double best = samples_best(t) * 1e3, floor = fmax(by_bytes, by_flops) * 1e3; /* ms */
    double gflops = cost.flops / best / 1e6, gbytes = cost.bytes / best / 1e6;
    double median = samples_median(t) * 1e3;
    const char *by = by_bytes >= by_flops ? "bytes" : "flops";
    if (json) {
        printf("{");
        perf_print_origin();
        printf(",\"threads\":%d,\"kernel\":\"%s\",\"pass\":\"%s\",\"shape\":\"%s\",\"samples\":%d,\"best_ms\":%.6g,"
               "\"median_ms\":%.6g,\"mad_ms\":%.6g,\"gflop_per_s\":%.6g,\"gb_per_s\":%.6g,\"floor_ms\":%.6g,"
               "\"bound\":\"%s\",\"ratio\":%.6g}\n",
               omp_get_max_threads(), k->name, pass_names[pass], r->shape, t->n, best, median, samples_mad(t) * 1e3,
               gflops, gbytes, floor, by, best / floor);
        return;
    }
    printf("%-26s %-8s %9.4f %9.4f %8.4f %8.2f %8.2f %9.4f %-5s %6.2f %8.2f\n", k->name, pass_names[pass], best, median,
           samples_mad(t) * 1e3, gflops, gbytes, floor, by, best / floor, floor / best);
    if (pass != (r->graph.root ? PASS_BOTH : PASS_FORWARD)) return;
    printf("  %s: time %.4f ms, floor %.4f ms, ratio %.2f; median %.4f ms\n", k->name, best, floor, best / floor,
           median);
    if (median > APART * best)
        printf("  the median is %.2f times the best: other work disturbed it; measure again, or give more --seconds\n",
               median / best);
    printf("  floor: %.1f MB at %.2f GB/s (copy, read and written both counted), %.1f MFLOP at %.1f GFLOP/s\n",
           cost.bytes / 1e6, rates->best.bytes / 1e9, cost.flops / 1e6, rates->best.flops / 1e9);
}

static enum status run_kernel(const struct kernel *k, const struct perf_op_request *q, struct rates *rates, bool head,
                              struct error *e) {
    struct kernel_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    const char *why = NULL;
    enum status status = kernel_run_open(r, k->op, k, &q->sizes, &why, e);
    if (status == ST_OK && head && !q->json)
        printf("%s %s, %" PRId64 " thread%s, " REAL_NAME "\n"
               "%-26s %-8s %9s %9s %8s %8s %8s %9s %-5s %6s %8s\n",
               k->op->name, r->shape, q->threads, q->threads == 1 ? "" : "s", "kernel", "pass", "best ms", "median",
               "mad", "GFLOP/s", "GB/s", "floor ms", "by", "ratio", "fraction");
    if (status == ST_OK && why)
        printf(q->json ? "{\"kernel\":\"%s\",\"skipped\":\"%s\"}\n" : "%-26s skipped: %s\n", k->name, why);
    if (status == ST_OK && !why && !rates->copy.bytes) {
        size_t bytes = (size_t)(r->cost[PASS_BOTH].bytes / 2);
        status = copy_create(&rates->copy, bytes < MIN_COPY ? MIN_COPY : bytes > MAX_COPY ? MAX_COPY : bytes, e);
    }
    if (status == ST_OK && !why) {
        sample_by_turns(r, &why, 1, q->seconds, rates);
        for (int pass = PASS_FORWARD; pass <= (r->graph.root ? PASS_BOTH : PASS_FORWARD); pass++)
            print_pass(r, rates, k, pass, q->json);
    }
    fflush(stdout);
    kernel_run_close(r);
    free(r);
    return status;
}

enum status perf_op(const struct op *op, const struct perf_op_request *q, struct error *e) {
    struct rates rates = {0};
    enum status status = ST_OK;
    int n = 0;
    for (const struct kernel *const *k = kernel_list(); *k && status == ST_OK; k++) {
        bool named =
            !q->kernel[0] || !strcmp(q->kernel, (*k)->name) || (!strcmp(q->kernel, "reference") && (*k)->reference);
        if ((*k)->op == op && (*k)->device == DEVICE_CPU && named) status = run_kernel(*k, q, &rates, n++ == 0, e);
    }
    copy_free(&rates.copy);
    if (n || status != ST_OK) return status;
    return fail(e, ST_USAGE, "perf op: %s has no kernel '%s'; `lrnn info %s` names them", op->name, q->kernel,
                op->name);
}

/* --- kernels beside each other, by length ------------------------------------------------------------------------- */

struct crossover {
    const struct op *op;
    const struct perf_crossover_request *q;
    int n_kernels, n_lengths;
    const struct kernel *kernels[MAX_KERNELS + 1]; /* the last one is NULL: the kernel that is taken unasked */
    int64_t lengths[MAX_LENGTHS];
    double best[MAX_LENGTHS][MAX_KERNELS]; /* seconds; INFINITY where the kernel does not apply */
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

/* Prints at which lengths kernel a is faster than b: from one on to the last, up to one, at some, or at none. */
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

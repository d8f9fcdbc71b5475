/* crossover.c - from which length on one kernel of an op is faster than another.
 *
 * At each length the kernels take turns, so that all see the same machine; the best of their times are compared. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/perf/kernel_run.h"
#include "harness/perf/perf.h"
#include "harness/store/clock.h"

#define MAX_KERNELS 8
#define MAX_LENGTHS 32
#define MIN_ROUNDS  5
#define MARGIN      1.05 /* a smaller ratio of best times is no difference */

struct crossover {
    const struct op *op;
    const struct perf_crossover_request *q;
    int n_kernels, n_lengths;
    const struct kernel *kernels[MAX_KERNELS];
    int64_t lengths[MAX_LENGTHS];
    double best[MAX_LENGTHS][MAX_KERNELS]; /* seconds; INFINITY where the kernel does not apply */
    const char *why[MAX_KERNELS];          /* why the kernel did not apply at the last length; NULL if it did */
};

/* One length: all kernels opened, then sampled in turn. */
struct round {
    struct kernel_run *runs; /* of each kernel, and behind them of the one taken unasked */
    const char *why[MAX_KERNELS + 1];
};

static enum status open_runs(const struct crossover *x, struct round *r, const struct op_sizes *sizes,
                             struct error *e) {
    for (int k = 0; k <= x->n_kernels; k++) {
        const struct kernel *kernel = k < x->n_kernels ? x->kernels[k] : NULL;
        TRY(kernel_run_open(&r->runs[k], x->op, kernel, sizes, &r->why[k], e));
    }
    return ST_OK;
}

static const struct samples *times(const struct kernel_run *r) {
    return &r->time[r->graph.root ? PASS_BOTH : PASS_FORWARD];
}

static void sample_runs(const struct crossover *x, struct round *r) {
    double start = time_now_s(), allowed = x->q->seconds * x->n_kernels;
    for (int i = 0; i <= PERF_SAMPLES && (i <= MIN_ROUNDS || time_now_s() - start < allowed); i++)
        for (int k = 0; k < x->n_kernels; k++) {
            if (r->why[k]) continue;
            kernel_run_sample(&r->runs[k]);
            for (int pass = 0; i == 0 && pass < 3; pass++) r->runs[k].time[pass].n = 0; /* the first warms up */
        }
}

static void print_head(const struct crossover *x, const struct kernel_run *r) {
    if (x->q->json) {
        printf("{");
        perf_print_origin();
        printf(",\"op\":\"%s\",\"shape\":\"%s\"}\n", x->op->name, r->shape);
        return;
    }
    printf("%s %s and longer, forward + backward, 1 thread, " REAL_NAME ", best ms\n%10s", x->op->name, r->shape, "T");
    for (int k = 0; k < x->n_kernels; k++) printf(" %24s", x->kernels[k]->name);
    printf("  taken\n");
}

static void print_length(const struct crossover *x, int at, const struct round *r) {
    const char *taken = r->runs[x->n_kernels].call->kernel->name;
    if (!x->q->json) printf("%10" PRId64, x->lengths[at]);
    for (int k = 0; k < x->n_kernels; k++) {
        const struct samples *t = times(&r->runs[k]);
        if (x->q->json && r->why[k])
            printf("{\"length\":%" PRId64 ",\"kernel\":\"%s\",\"skipped\":\"%s\"}\n", x->lengths[at],
                   x->kernels[k]->name, r->why[k]);
        else if (x->q->json)
            printf("{\"length\":%" PRId64 ",\"kernel\":\"%s\",\"samples\":%d,\"best_ms\":%.6g,\"median_ms\":%.6g,"
                   "\"mad_ms\":%.6g,\"taken\":%s}\n",
                   x->lengths[at], x->kernels[k]->name, t->n, samples_best(t) * 1e3, samples_median(t) * 1e3,
                   samples_mad(t) * 1e3, strcmp(taken, x->kernels[k]->name) ? "false" : "true");
        else if (r->why[k])
            printf(" %24s", "skipped");
        else
            printf(" %24.4f", samples_best(t) * 1e3);
    }
    if (!x->q->json) printf("  %s\n", taken);
    fflush(stdout);
}

static enum status measure_length(struct crossover *x, int at, struct error *e) {
    struct op_sizes sizes = x->q->sizes;
    struct round r = {.runs = calloc(MAX_KERNELS + 1, sizeof *r.runs)};
    if (!r.runs) return fail(e, ST_MEMORY, "no memory for the samples");
    sizes.length = x->lengths[at];
    enum status status = open_runs(x, &r, &sizes, e);
    if (status == ST_OK) {
        if (at == 0) print_head(x, &r.runs[x->n_kernels]);
        sample_runs(x, &r);
        for (int k = 0; k < x->n_kernels; k++) {
            x->best[at][k] = r.why[k] ? INFINITY : samples_best(times(&r.runs[k]));
            x->why[k] = r.why[k];
        }
        print_length(x, at, &r);
    }
    for (int k = 0; k <= x->n_kernels; k++) kernel_run_close(&r.runs[k]);
    free(r.runs);
    return status;
}

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

static bool faster(const struct crossover *x, int at, int a, int b) {
    return isfinite(x->best[at][a]) && x->best[at][b] > MARGIN * x->best[at][a];
}

/* Lengths at which kernel a is faster than b: from `from` on up to the last, or from the first up to up_to; -1: not
 * so. */
struct verdict {
    int from, up_to;
    bool ever;
};

static struct verdict verdict_of(const struct crossover *x, int a, int b) {
    struct verdict v = {-1, -1, false};
    for (int at = x->n_lengths - 1; at >= 0 && faster(x, at, a, b); at--) v.from = at;
    for (int at = 0; at < x->n_lengths && faster(x, at, a, b); at++) v.up_to = at;
    for (int at = 0; at < x->n_lengths; at++) v.ever = v.ever || faster(x, at, a, b);
    return v;
}

/* What is to be said of a over b. */
static void print_verdict(const struct crossover *x, int a, int b) {
    const char *name = x->kernels[a]->name, *other = x->kernels[b]->name;
    struct verdict v = verdict_of(x, a, b);
    int last = x->n_lengths - 1;
    if (x->q->json) {
        char from[32] = "null";
        if (v.from >= 0) snprintf(from, sizeof from, "%" PRId64, x->lengths[v.from]);
        printf("{\"kernel\":\"%s\",\"than\":\"%s\",\"ever_faster\":%s,\"faster_from\":%s}\n", name, other,
               v.ever ? "true" : "false", from);
    } else if (v.from >= 0) {
        printf("%s is faster than %s from T=%" PRId64 " on, %.2f times at T=%" PRId64 "\n", name, other,
               x->lengths[v.from], x->best[last][b] / x->best[last][a], x->lengths[last]);
    } else if (v.up_to >= 0) {
        printf("%s is faster than %s up to T=%" PRId64 "\n", name, other, x->lengths[v.up_to]);
    } else {
        printf("%s is %s than %s\n", name, v.ever ? "at some lengths only faster" : "never faster", other);
    }
}

static bool measured(const struct crossover *x, int k) {
    for (int at = 0; at < x->n_lengths; at++)
        if (isfinite(x->best[at][k])) return true;
    return false;
}

/* One line for each pair that was measured, and one for each kernel that was not. */
static void print_verdicts(const struct crossover *x) {
    for (int a = 0; a < x->n_kernels; a++) {
        if (!measured(x, a) && !x->q->json)
            printf("%s was skipped at every length: %s\n", x->kernels[a]->name, x->why[a]);
        for (int b = 0; b < x->n_kernels; b++)
            if (a != b && measured(x, a) && measured(x, b)) print_verdict(x, a, b);
    }
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
    print_verdicts(&x);
    return ST_OK;
}

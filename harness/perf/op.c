/* op.c - one op, every kernel of it, beside the larger of its byte floor and its FLOP floor.
 *
 * Floors: bytes of the op / the rate of a copy that moves as many bytes; FLOPs of the op / the rate of multiply-adds on
 * registers. Both rates are measured between the samples, so that they see the same machine. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness/perf/kernel_run.h"
#include "harness/perf/perf.h"
#include "harness/perf/rates.h"
#include "harness/store/clock.h"

#define MIN_SAMPLES 5
#define MIN_COPY    ((size_t)4 << 20) /* bytes; smaller buffers stay in the caches next to the core */
#define MAX_COPY    ((size_t)256 << 20)

/* Shared by the kernels of the op. */
struct rates {
    struct copy_bench copy; /* made for the first kernel: all move the same bytes */
    struct floor_rates best;
};

static const char *const pass_names[3] = {"forward", "backward", "both"};

static void sample(struct kernel_run *r, struct rates *rates) {
    kernel_run_sample(r);
    floor_rates_sample(&rates->best, &rates->copy);
}

/* Warms up once, then samples for about `seconds`. */
static enum status measure(struct kernel_run *r, struct rates *rates, double seconds, struct error *e) {
    size_t bytes = (size_t)(r->cost[PASS_BOTH].bytes / 2);
    if (bytes < MIN_COPY) bytes = MIN_COPY;
    if (bytes > MAX_COPY) bytes = MAX_COPY;
    if (!rates->copy.bytes) TRY(copy_create(&rates->copy, bytes, e));
    sample(r, rates);
    for (int i = 0; i < 3; i++) r->time[i].n = 0;
    double start = time_now_s();
    for (int i = 0; i < PERF_SAMPLES && (i < MIN_SAMPLES || time_now_s() - start < seconds); i++) sample(r, rates);
    return ST_OK;
}

/* Seconds that the cost needs at least; *bytes_bound says which floor is the larger. */
static double floor_of(const struct rates *rates, struct cost cost, bool *bytes_bound) {
    double by_bytes = cost.bytes / rates->best.bytes, by_flops = cost.flops / rates->best.flops;
    *bytes_bound = by_bytes >= by_flops;
    return *bytes_bound ? by_bytes : by_flops;
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

static void print_head(const struct kernel_run *r, const struct op *op, const struct perf_op_request *q) {
    printf("%s %s, %" PRId64 " thread%s, " REAL_NAME "\n", op->name, r->shape, q->threads, q->threads == 1 ? "" : "s");
    printf("%-26s %-8s %9s %9s %8s %8s %8s %9s %-5s %6s %8s\n", "kernel", "pass", "best ms", "median", "mad", "GFLOP/s",
           "GB/s", "floor ms", "by", "ratio", "fraction");
}

static void print_pass(const struct kernel_run *r, const struct rates *rates, const struct kernel *k, int pass,
                       bool json) {
    const struct samples *t = &r->time[pass];
    bool bytes_bound;
    double best = samples_best(t), floor = floor_of(rates, r->cost[pass], &bytes_bound);
    const char *by = bytes_bound ? "bytes" : "flops";
    double gflops = r->cost[pass].flops / best / 1e9, gbytes = r->cost[pass].bytes / best / 1e9;
    if (json) {
        printf("{");
        perf_print_origin();
        printf(",\"threads\":%d,\"kernel\":\"%s\",\"pass\":\"%s\",\"shape\":\"%s\",\"samples\":%d,\"best_ms\":%.6g,"
               "\"median_ms\":%.6g,"
               "\"mad_ms\":%.6g,\"gflop_per_s\":%.6g,\"gb_per_s\":%.6g,\"floor_ms\":%.6g,\"bound\":\"%s\",\"ratio\":%."
               "6g}\n",
               omp_get_max_threads(), k->name, pass_names[pass], r->shape, t->n, best * 1e3, samples_median(t) * 1e3,
               samples_mad(t) * 1e3, gflops, gbytes, floor * 1e3, by, best / floor);
    } else {
        printf("%-26s %-8s %9.4f %9.4f %8.4f %8.2f %8.2f %9.4f %-5s %6.2f %8.2f\n", k->name, pass_names[pass],
               best * 1e3, samples_median(t) * 1e3, samples_mad(t) * 1e3, gflops, gbytes, floor * 1e3, by, best / floor,
               floor / best);
    }
}

static void print_run(const struct kernel_run *r, const struct rates *rates, const struct kernel *k, bool json) {
    int last = r->graph.root ? PASS_BOTH : PASS_FORWARD;
    for (int pass = PASS_FORWARD; pass <= last; pass++) print_pass(r, rates, k, pass, json);
    if (json) return;
    bool bytes_bound;
    double best = samples_best(&r->time[last]), floor = floor_of(rates, r->cost[last], &bytes_bound);
    printf("  %s: time %.4f ms, floor %.4f ms, ratio %.2f\n", k->name, best * 1e3, floor * 1e3, best / floor);
    printf("  floor: %.1f MB at %.2f GB/s (copy, read and written both counted), %.1f MFLOP at %.1f GFLOP/s\n",
           r->cost[last].bytes / 1e6, rates->best.bytes / 1e9, r->cost[last].flops / 1e6, rates->best.flops / 1e9);
}

static enum status run_kernel(const struct kernel *k, const struct perf_op_request *q, struct rates *rates, bool head,
                              struct error *e) {
    struct kernel_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    const char *why = NULL;
    enum status status = kernel_run_open(r, k->op, k, &q->sizes, &why, e);
    if (status == ST_OK && head && !q->json) print_head(r, k->op, q);
    if (status == ST_OK && why && q->json)
        printf("{\"kernel\":\"%s\",\"skipped\":\"%s\"}\n", k->name, why);
    else if (status == ST_OK && why)
        printf("%-26s skipped: %s\n", k->name, why);
    else if (status == ST_OK)
        status = measure(r, rates, q->seconds, e);
    if (status == ST_OK && !why) print_run(r, rates, k, q->json);
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

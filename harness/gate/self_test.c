/* self_test.c - how often the gate cries wolf, and how often it finds what is there; see gate.h. */
#include <math.h>
#include <stdlib.h>

#include "harness/gate/gate.h"

struct tally {
    int n, verdicts[VERDICT_COUNT];
    double *medians;
};

/* Whole sittings as a gate makes them, the second measurement of what is inconclusive included. */
static enum status sit(const struct self_test_request *q, int n, double delay, struct tally *t, struct error *e) {
    struct compare_request request = q->compare;
    request.delay = delay;
    for (int i = 0; i < n; i++) {
        struct compare_row row = {.floor = gate_floor(NAN)};
        request.seed = q->compare.seed + (uint64_t)i;
        TRY(gate_bench_find(q->bench, &row.bench, e));
        TRY(compare_builds(&request, &row, 1, e));
        if (!row.measured) return fail(e, ST_FAIL, "%s", row.detail);
        t->verdicts[row.verdict]++;
        if (t->medians) t->medians[t->n] = fabs(row.pairs.median);
        t->n++;
    }
    return ST_OK;
}

static void print_tally(FILE *f, const struct tally *t, const char *what, int k, const char *rate_of) {
    struct interval i = stats_rate_interval(k, t->n, 0.95);
    fprintf(f,
            "%-12s %d sittings: %d regressed, %d improved, %d same, %d inconclusive; %s %.1f %% (exact 95 %%: %.1f to "
            "%.1f)\n",
            what, t->n, t->verdicts[VERDICT_REGRESSED], t->verdicts[VERDICT_IMPROVED], t->verdicts[VERDICT_SAME],
            t->verdicts[VERDICT_INCONCLUSIVE], rate_of, 100.0 * k / t->n, 100 * i.low, 100 * i.high);
    fflush(f);
}

enum status gate_self_test(const struct self_test_request *q, double *aa_p99, FILE *f, struct error *e) {
    static const double delays[] = {0.05, 0.10};
    struct tally aa = {.medians = calloc((size_t)q->sittings + 1, sizeof(double))};
    if (!aa.medians) return fail(e, ST_MEMORY, "no memory for %d sittings", q->sittings);
    enum status status = sit(q, q->sittings, 0, &aa, e);
    if (status == ST_OK) {
        int alarms = aa.verdicts[VERDICT_REGRESSED] + aa.verdicts[VERDICT_IMPROVED];
        *aa_p99 = expm1(stats_quantile(aa.medians, aa.n, 0.99));
        print_tally(f, &aa, "A/A", alarms, "false alarms");
        fprintf(f, "%-12s 99th percentile of the change %.2f %%: floor %.2f %%\n", "", 100 * *aa_p99,
                100 * gate_floor(*aa_p99));
    }
    free(aa.medians);
    for (int i = 0; i < 2 && status == ST_OK && q->power > 0; i++) {
        struct tally t = {0};
        char what[32];
        status = sit(q, q->power, delays[i], &t, e);
        snprintf(what, sizeof what, "A/A +%.0f %%", 100 * delays[i]);
        if (status == ST_OK) print_tally(f, &t, what, t.verdicts[VERDICT_REGRESSED], "found");
    }
    return status;
}

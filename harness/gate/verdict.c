/* verdict.c - see verdict.h. */
#include "harness/gate/verdict.h"

#include <math.h>

const char *const verdict_names[VERDICT_COUNT] = {"same", "improved", "inconclusive", "regressed"};

enum status verdict_status(enum verdict worst) {
    static const enum status statuses[VERDICT_COUNT] = {ST_OK, ST_OK, ST_INCONCLUSIVE, ST_REGRESSED};
    return statuses[worst];
}

/* --- throughput --------------------------------------------------------------------------------------------------- */

/* Two-sided sign test. P(X >= k) of X binomial (n, 1/2) is an incomplete beta function. */
static double sign_test(const double *x, int n) {
    int above = 0, below = 0;
    for (int i = 0; i < n; i++) {
        above += x[i] > 0;
        below += x[i] < 0;
    }
    int more = above > below ? above : below, all = above + below;
    return more == 0 ? 1 : fmin(1, 2 * stats_beta(more, all - more + 1, 0.5));
}

struct pairs pairs_evaluate(const double *log_ratio, int n) {
    return (struct pairs){.n = n,
                          .median = stats_median(log_ratio, n),
                          .interval = stats_median_interval(log_ratio, n, GATE_LEVEL),
                          .p = sign_test(log_ratio, n)};
}

/* Rejects a row where its p-value and all smaller ones are within alpha over the number of rows that are not smaller.
 * Ties share the strictest rank. */
void holm_reject(const double *p, int n, double alpha, bool *rejected) {
    for (int i = 0; i < n; i++) {
        rejected[i] = true;
        for (int j = 0; j < n; j++) {
            int smaller = 0;
            for (int k = 0; k < n; k++) smaller += p[k] < p[j];
            if (p[j] <= p[i] && p[j] > alpha / (n - smaller)) rejected[i] = false;
        }
    }
}

double gate_floor(double aa_p99) {
    return isfinite(aa_p99) ? fmax(GATE_FLOOR, 2 * aa_p99) : GATE_FLOOR;
}

enum verdict pairs_verdict(const struct pairs *p, double floor, bool rejected) {
    double bound = log1p(floor);
    const struct interval *i = &p->interval;
    if (!(i->level >= GATE_LEVEL) || i->kind == INTERVAL_NONE) return VERDICT_INCONCLUSIVE; /* too few pairs */
    if (rejected && i->low > 0 && p->median > bound) return VERDICT_REGRESSED;
    if (rejected && i->high < 0 && p->median < -bound) return VERDICT_IMPROVED;
    return i->low >= -bound && i->high <= bound ? VERDICT_SAME : VERDICT_INCONCLUSIVE;
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

const char *const sense_names[SENSES] = {">=", "<=", "="};

static bool keeps(double value, enum sense sense, double bound) {
    return sense == SENSE_LEAST ? value >= bound : sense == SENSE_MOST ? value <= bound : value == bound;
}

enum verdict bound_verdict(double value, const struct interval *i, enum sense sense, double bound) {
    if (keeps(value, sense, bound)) return VERDICT_SAME;
    if (i->kind == INTERVAL_NONE || sense == SENSE_EQUAL || isnan(value)) return VERDICT_REGRESSED;
    return keeps(sense == SENSE_LEAST ? i->high : i->low, sense, bound) ? VERDICT_INCONCLUSIVE : VERDICT_REGRESSED;
}

/* --- accuracy ----------------------------------------------------------------------------------------------------- */

enum verdict seeds_verdict(int solved, int n) {
    if (n == GATE_SEEDS && solved == n) return VERDICT_SAME;
    if (n == GATE_SEEDS) return solved <= 2 ? VERDICT_REGRESSED : VERDICT_INCONCLUSIVE;
    return n != 2 * GATE_SEEDS ? VERDICT_INCONCLUSIVE : solved <= 6 ? VERDICT_REGRESSED : VERDICT_SAME;
}

enum verdict metric_verdict(const double *difference, int n) {
    struct interval i = stats_t_interval(difference, n, 0.95);
    double mean = stats_mean(difference, n);
    if (i.kind == INTERVAL_NONE) return VERDICT_INCONCLUSIVE;
    if (i.high < 0 && mean < -GATE_POINT) return VERDICT_REGRESSED;
    return i.low > 0 && mean > GATE_POINT ? VERDICT_INCONCLUSIVE : VERDICT_SAME;
}

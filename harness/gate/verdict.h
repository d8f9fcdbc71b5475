/* verdict.h - verdicts on paired times and seeds (docs/ci.md). Every function is pure. */
#ifndef LRNN_HARNESS_GATE_VERDICT_H
#define LRNN_HARNESS_GATE_VERDICT_H

#include <stdbool.h>

#include "core/status.h"
#include "harness/rows/stats.h"

enum verdict { VERDICT_SAME, VERDICT_IMPROVED, VERDICT_INCONCLUSIVE, VERDICT_REGRESSED, VERDICT_COUNT };
extern const char *const verdict_names[VERDICT_COUNT]; /* "same" ... */

/* Status that the gate ends with at this worst verdict: ST_OK, ST_INCONCLUSIVE or ST_REGRESSED. */
enum status verdict_status(enum verdict worst);

/* --- throughput: log(B/A) of pairs of times, A the baseline ------------------------------------------------------- */

#define GATE_LEVEL                                                                                                     \
    0.99 /* of every interval; all rows together reject by chance with probability 1 - GATE_LEVEL at most */
#define GATE_FLOOR 0.03 /* the least change that counts */

struct pairs {
    int n;
    double median;            /* of log(B/A) */
    struct interval interval; /* of that median, by order statistics */
    double p;                 /* two-sided sign test of a median of 0; pairs that tie count for neither side */
};

/* Evaluates n >= 1 finite values. */
struct pairs pairs_evaluate(const double *log_ratio, int n);

/* Says by Holm's step-down which of n p-values are rejected, where all together may err with probability alpha. */
void holm_reject(const double *p, int n, double alpha, bool *rejected);

/* Gives the least relative change that counts in a bench whose A/A comparisons had this 99th percentile (NAN: unknown).
 * */
double gate_floor(double aa_p99);

/* `rejected`: by Holm, among all rows of the sitting. Regressed: the whole interval lies above 0 and the median above
 * log(1 + floor); improved: the mirror image; same: the interval lies within both; inconclusive: none of these, or
 * fewer than the 8 pairs that an interval of GATE_LEVEL takes. */
enum verdict pairs_verdict(const struct pairs *p, double floor, bool rejected);

/* --- bounds that a plan sets (expect.h) --------------------------------------------------------------------------- */

enum sense { SENSE_LEAST, SENSE_MOST, SENSE_EQUAL, SENSES };
extern const char *const sense_names[SENSES]; /* ">=" "<=" "=" */

/* Judges a figure beside its bound. Same: the value keeps it; regressed: the value misses it, and so does its whole
 * interval (INTERVAL_NONE: the value alone counts); inconclusive: the interval reaches the bound, and more seeds or a
 * quieter machine would decide. SENSE_EQUAL looks at the value alone. NaN misses every bound. */
enum verdict bound_verdict(double value, const struct interval *i, enum sense sense, double bound);

/* --- accuracy ----------------------------------------------------------------------------------------------------- */

#define GATE_BANK  20 /* baseline runs, which all solved the task */
#define GATE_SEEDS 5  /* runs of the program under test, and as many again if those do not decide */

/* Judges the solved runs among GATE_SEEDS or 2 GATE_SEEDS, beside a bank that solved all. Among five: five solved are
 * the same, two or fewer a regression (Fisher p = 0.004), three or four inconclusive, which asks for five more runs.
 * Among ten: six or fewer are a regression (p = 0.008). It catches collapse, not drift. */
enum verdict seeds_verdict(int solved, int n);

#define GATE_POINT 0.01 /* of a metric between 0 and 1 */

/* Judges metrics of paired seeds, new minus baseline: regressed where the 95 % interval leaves 0 out and the mean lost
 * more than a point; a gain of as much is inconclusive, for somebody has to look at a number that is too good before it
 * becomes the baseline. n < 2 says nothing. */
enum verdict metric_verdict(const double *difference, int n);

#endif

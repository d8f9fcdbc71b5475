/* stats.h - statistics for few seeds: location, spread, intervals. README.md says which of them are used.
 *
 * Every function is pure, and only stats_iqm_interval allocates. Samples are finite numbers in any order, and stay
 * unchanged. */
#ifndef LRNN_HARNESS_ROWS_STATS_H
#define LRNN_HARNESS_ROWS_STATS_H

enum interval_kind {
    INTERVAL_NONE,       /* too few values: low and high are nan; print the values themselves instead */
    INTERVAL_T,          /* Student's t */
    INTERVAL_BCA,        /* bias-corrected and accelerated bootstrap */
    INTERVAL_EXACT,      /* Clopper-Pearson */
    INTERVAL_ORDER,      /* order statistics */
    INTERVAL_PERCENTILE, /* percentiles of a bootstrap */
    INTERVAL_WILSON      /* Wilson's score interval of a rate */
};

struct interval {
    double low, high;
    double level; /* nominal coverage; for INTERVAL_ORDER, the exact coverage */
    enum interval_kind kind;
};

/* Returns the name of a kind in summary.csv: "none", "t", "bca", "exact", "order", "percentile", "wilson". */
const char *interval_kind_name(enum interval_kind kind);

/* --- location and spread. n >= 1, or the result is nan ------------------------------------------------------------ */

double stats_mean(const double *x, int n);

/* Returns the sample's standard deviation, with divisor n - 1; nan for n < 2. */
double stats_sd(const double *x, int n);

/* Returns the p-quantile, p in [0, 1], linear between order statistics (Hyndman and Fan 1996, type 7). */
double stats_quantile(const double *x, int n, double p);

double stats_median(const double *x, int n);

/* Returns the interquartile mean: the mean without the floor(n/4) smallest and the floor(n/4) largest values (Agarwal
 * et al. 2021, rliable). */
double stats_iqm(const double *x, int n);

/* --- intervals ---------------------------------------------------------------------------------------------------- */

/* Returns the interval for a mean by our rule: none for n < 5, Student's t for n = 5..9, BCa from n = 10 on. It is
 * clipped to [minimum, maximum], which is [0, 1] for accuracies. `level` is 0.95, 0.90... */
struct interval stats_interval(const double *x, int n, double level, double minimum, double maximum);

/* Returns mean +- t sd / sqrt(n). INTERVAL_NONE for n < 2. */
struct interval stats_t_interval(const double *x, int n, double level);

/* Returns the BCa bootstrap interval of the mean (Efron 1987), from 10 000 resamples at a fixed seed, so that the same
 * sample always gives the same interval. If all values are equal, the interval has width 0, which says nothing about
 * the mean; use the interval of the solve rate then. For few values the coverage is too low: the 95 % interval
 * contained the mean in 91.5 % of 6 000 normal samples of 12 values, and in 92.7 % of 6 000 exponential samples of 40
 * (check_stats.c draws 300 of each). INTERVAL_NONE for n < 2. */
struct interval stats_bca_interval(const double *x, int n, double level);

/* Returns the stratified bootstrap interval of the interquartile mean (rliable). x has the samples of n_strata strata
 * (for example tasks) one after another, with sizes[i] values each. Each of 10 000 resamples at a fixed seed draws
 * sizes[i] values from stratum i; the percentiles of the results give the interval. INTERVAL_NONE for fewer than 5
 * values. */
struct interval stats_iqm_interval(const double *x, const int *sizes, int n_strata, double level);

/* Returns the Clopper-Pearson interval of a rate with k successes in n trials. INTERVAL_NONE unless 0 <= k <= n, n >=
 * 1. */
struct interval stats_rate_interval(int k, int n, double level);

/* Returns Wilson's interval of a rate p in n trials. INTERVAL_NONE unless 0 <= p <= 1, n >= 1. */
struct interval stats_wilson_interval(double p, double n, double level);

/* Returns an interval of the median: from the k-th smallest to the k-th largest value, with the largest k whose
 * coverage is at least `level`; if n is too small, from the smallest to the largest value. The result's `level` is the
 * exact coverage (for 5 values 93.75 %). INTERVAL_NONE for n < 2. */
struct interval stats_median_interval(const double *x, int n, double level);

/* --- series ------------------------------------------------------------------------------------------------------- */

#define STATS_STEP 5 /* number of values on either side of a step */

/* Finds steps in a series: places i where the five values before x[i] are all below, or all above, the five values from
 * x[i] on. At a given place this happens by chance with probability 2/252. If such places are closer than five, only
 * the one whose medians differ most counts. Returns the number of steps; `at` has room for n. */
int stats_steps(const double *x, int n, int *at);

/* --- distributions ------------------------------------------------------------------------------------------------ */

/* stats_beta returns the regularised incomplete beta function I_x(a, b), a, b > 0. stats_beta_quantile returns the x at
 * which it is p. */
double stats_beta(double a, double b, double x);
double stats_beta_quantile(double a, double b, double p);

/* The standard normal distribution function, and its quantile for p in (0, 1). */
double stats_normal(double z);
double stats_normal_quantile(double p);

/* Returns the quantile of Student's t with `df` > 0 degrees of freedom, p in (0, 1). */
double stats_t_quantile(double p, double df);

/* Returns the mean of the largest of n standard normal draws (n = 15: 1.74, n = 25: 1.97). A note on best-of-grid
 * numbers needs it. */
double stats_normal_max_mean(int n);

#endif

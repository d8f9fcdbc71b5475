/* stats.h - honest numbers out of few seeds: location, spread, intervals (README.md says which).
 *
 * Every function is pure; none but stats_iqm_interval allocates. Samples are finite numbers in any order; they are not
 * changed. */
#ifndef LRNN_HARNESS_ROWS_STATS_H
#define LRNN_HARNESS_ROWS_STATS_H

enum interval_kind {
    INTERVAL_NONE,       /* too few values: low and high are nan; print the values themselves */
    INTERVAL_T,          /* Student's t */
    INTERVAL_BCA,        /* bias-corrected and accelerated bootstrap */
    INTERVAL_EXACT,      /* Clopper-Pearson */
    INTERVAL_ORDER,      /* order statistics */
    INTERVAL_PERCENTILE, /* percentiles of a bootstrap */
    INTERVAL_WILSON      /* Wilson's score interval of a rate */
};

struct interval {
    double low, high;
    double level; /* coverage aimed at; of INTERVAL_ORDER the coverage reached */
    enum interval_kind kind;
};

/* Name of a kind as it stands in summary.csv: "none", "t", "bca", "exact", "order", "percentile",
 * "wilson". */
const char *interval_kind_name(enum interval_kind kind);

/* --- location and spread. n >= 1, or the result is nan ------------------------------------------------------------ */

double stats_mean(const double *x, int n);

/* Sample standard deviation, divisor n - 1; nan for n < 2. */
double stats_sd(const double *x, int n);

/* p-quantile, linear between order statistics (Hyndman and Fan 1996, type 7); p in [0, 1]. */
double stats_quantile(const double *x, int n, double p);

double stats_median(const double *x, int n);

/* Interquartile mean: the mean without the floor(n/4) smallest and largest (Agarwal et al. 2021, rliable). */
double stats_iqm(const double *x, int n);

/* --- intervals ---------------------------------------------------------------------------------------------------- */

/* The interval rule for a mean: none for n < 5, t for n = 5..9, BCa from 10 on; clipped to [minimum, maximum], which is
 * [0, 1] for accuracies. `level` is 0.95, 0.90... */
struct interval stats_interval(const double *x, int n, double level, double minimum, double maximum);

/* mean +- t sd / sqrt(n). INTERVAL_NONE for n < 2. */
struct interval stats_t_interval(const double *x, int n, double level);

/* BCa bootstrap of the mean (Efron 1987), 10 000 resamples at a fixed seed: the same sample always gives the same
 * interval. When all values are equal it is that value, which says that the resamples agree and no more: read the
 * interval of the solve rate then. Few values are covered too rarely: at 95 % it held the mean of 91.5 % of 6 000
 * normal samples of 12, and of 92.7 % of 6 000 exponential ones of 40 (check_stats.c draws 300 of each). INTERVAL_NONE
 * for n < 2. */
struct interval stats_bca_interval(const double *x, int n, double level);

/* Stratified bootstrap of the interquartile mean (rliable): x holds the samples of n_strata strata, tasks for example,
 * one after the other, sizes[i] values each; each of 10 000 resamples at a fixed seed draws every stratum's number out
 * of that stratum, and the percentiles give the interval. INTERVAL_NONE for fewer than 5 values. */
struct interval stats_iqm_interval(const double *x, const int *sizes, int n_strata, double level);

/* Clopper-Pearson interval of a rate, k successes of n. INTERVAL_NONE unless 0 <= k <= n, n >= 1. */
struct interval stats_rate_interval(int k, int n, double level);

/* Wilson's interval of a rate p of n. INTERVAL_NONE unless 0 <= p <= 1, n >= 1. */
struct interval stats_wilson_interval(double p, double n, double level);

/* Interval of the median: the innermost pair of order statistics, the same number from either end, that covers it with
 * at least `level`; the outermost pair where n is too small for that. `level` of the result is the exact coverage
 * (5 values: [min, max], 93.75 %). INTERVAL_NONE for n < 2. */
struct interval stats_median_interval(const double *x, int n, double level);

/* --- series ------------------------------------------------------------------------------------------------------- */

#define STATS_STEP 5 /* values on either side of a step */

/* Finds where a series steps: all of the five values before x[i] lie on one side of all of the five from x[i] on, which
 * chance does with probability 2/252 at any one place. Of such places less than five apart the one with the most
 * distant medians counts. `at` has room for n; gives how many there are. */
int stats_steps(const double *x, int n, int *at);

/* --- distributions ------------------------------------------------------------------------------------------------ */

/* Regularised incomplete beta function I_x(a, b), a, b > 0, and the x at which it reaches p. */
double stats_beta(double a, double b, double x);
double stats_beta_quantile(double a, double b, double p);

/* Standard normal distribution and its quantile, p in (0, 1). */
double stats_normal(double z);
double stats_normal_quantile(double p);

/* Quantile of Student's t with `df` > 0 degrees of freedom, p in (0, 1). */
double stats_t_quantile(double p, double df);

/* The mean of the largest of n standard normal draws (n = 15: 1.74, n = 25: 1.97), for the note beside a best-of-grid
 * figure. */
double stats_normal_max_mean(int n);

#endif

/* stats.c - see stats.h. Quantiles are found by bisection on the distribution function. This takes microseconds, needs
 * no stored tables and no fitted coefficients, and is as exact as the distribution function. */
#include "harness/rows/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/philox.h"

#define RESAMPLES      10000
#define BOOTSTRAP_SEED 1

const char *interval_kind_name(enum interval_kind kind) {
    static const char *const names[] = {"none", "t", "bca", "exact", "order", "percentile", "wilson"};
    return names[kind];
}

/* --- location and spread ------------------------------------------------------------------------------------------ */

double stats_mean(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum / n;
}

double stats_sd(const double *x, int n) {
    double mean = stats_mean(x, n), sum = 0;
    for (int i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return n < 2 ? NAN : sqrt(sum / (n - 1));
}

/* Finds the ranks of x[i] in the sorted sample: from *first to *first + *ties - 1. */
static void rank_of(const double *x, int n, int i, int *first, int *ties) {
    *first = *ties = 0;
    for (int j = 0; j < n; j++) {
        *first += x[j] < x[i];
        *ties += x[j] == x[i];
    }
}

/* Returns the k-th smallest value, k = 0..n-1; nan if there is none. It counts instead of sorting, so the sample stays
 * unchanged. */
static double order_statistic(const double *x, int n, int k) {
    for (int i = 0; i < n; i++) {
        int first, ties;
        rank_of(x, n, i, &first, &ties);
        if (first <= k && k < first + ties) return x[i];
    }
    return NAN;
}

double stats_quantile(const double *x, int n, double p) {
    double rank = p * (n - 1);
    int below = (int)floor(rank);
    double low = order_statistic(x, n, below);
    if (below + 1 >= n) return low;
    return low + (rank - below) * (order_statistic(x, n, below + 1) - low);
}

double stats_median(const double *x, int n) {
    return stats_quantile(x, n, 0.5);
}

double stats_iqm(const double *x, int n) {
    int cut = n / 4;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        int first, ties;
        rank_of(x, n, i, &first, &ties);
        int from = first > cut ? first : cut, to = first + ties < n - cut ? first + ties : n - cut;
        if (to > from) sum += x[i] * (to - from) / ties; /* equal values share their ranks equally */
    }
    return sum / (n - 2 * cut);
}

/* --- series ------------------------------------------------------------------------------------------------------- */

/* Compares the STATS_STEP values before x[i] with the STATS_STEP values from x[i] on. Returns the distance of their
 * medians, or 0 if the ranges of the two groups overlap. */
static double step_at(const double *x, int i) {
    const double *before = x + i - STATS_STEP, *after = x + i;
    bool up = true, down = true;
    for (int a = 0; a < STATS_STEP; a++)
        for (int b = 0; b < STATS_STEP; b++) {
            up = up && before[a] < after[b];
            down = down && before[a] > after[b];
        }
    return up || down ? fabs(stats_median(after, STATS_STEP) - stats_median(before, STATS_STEP)) : 0;
}

int stats_steps(const double *x, int n, int *at) {
    int found = 0;
    double last = 0;
    for (int i = STATS_STEP; i + STATS_STEP <= n; i++) {
        double step = step_at(x, i);
        bool near = found && i - at[found - 1] < STATS_STEP;
        if (!(step > 0) || (near && step <= last)) continue;
        found += !near;
        at[found - 1] = i;
        last = step;
    }
    return found;
}

/* --- distributions ------------------------------------------------------------------------------------------------ */

/* Computes the continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method. */
static double beta_fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    if (fabs(d) < tiny) d = tiny;
    d = 1 / d;
    double value = d;
    for (int m = 1; m < 100000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), change = 1;
        for (int part = 0; part < 2; part++) {
            double term = part == 0 ? even : odd;
            d = 1 + term * d;
            c = 1 + term / c;
            if (fabs(d) < tiny) d = tiny;
            if (fabs(c) < tiny) c = tiny;
            d = 1 / d;
            change = c * d;
            value *= change;
        }
        if (fabs(change - 1) < 1e-16) break;
    }
    return value;
}

/* The continued fraction converges fast if x is below the mean. Above the mean, I_x(a,b) = 1 - I_{1-x}(b,a) is used. */
double stats_beta(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stats_beta_quantile(double a, double b, double p) {
    double low = 0, high = 1;
    for (;;) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high) return middle;
        if (stats_beta(a, b, middle) < p)
            low = middle;
        else
            high = middle;
    }
}

double stats_normal(double z) {
    return 0.5 * erfc(-z / sqrt(2.0));
}

/* Only the lower tail keeps its relative precision, so the upper tail is computed from the lower one. */
double stats_normal_quantile(double p) {
    if (p > 0.5) return -stats_normal_quantile(1 - p);
    double low = -40, high = 0;
    for (;;) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high) return middle;
        if (stats_normal(middle) < p)
            low = middle;
        else
            high = middle;
    }
}

/* If T has the t distribution, T^2 / (df + T^2) has the distribution Beta(1/2, df/2). The p-quantile t has P(|T| < t) =
 * 2 p - 1. */
double stats_t_quantile(double p, double df) {
    if (p < 0.5) return -stats_t_quantile(1 - p, df);
    double y = stats_beta_quantile(0.5, 0.5 * df, 2 * p - 1);
    return sqrt(df * y / (1 - y));
}

/* Integrates z n phi(z) Phi(z)^(n-1), the expected maximum of n normal values. The function is smooth and its tails
 * vanish, so the trapezoid rule is exact up to rounding. */
double stats_normal_max_mean(int n) {
    const double step = 1.0 / 64;
    const int end = 12 * 64;
    double sum = 0;
    for (int i = -end; i <= end; i++) {
        double z = i * step;
        double density = exp(-0.5 * z * z) / sqrt(2 * 3.14159265358979323846);
        sum += z * n * density * pow(stats_normal(z), n - 1);
    }
    return sum * step;
}

/* --- intervals ---------------------------------------------------------------------------------------------------- */

static struct interval no_interval(double level) {
    return (struct interval){NAN, NAN, level, INTERVAL_NONE};
}

struct interval stats_t_interval(const double *x, int n, double level) {
    if (n < 2) return no_interval(level);
    double mean = stats_mean(x, n);
    double half = stats_t_quantile(0.5 + 0.5 * level, n - 1) * stats_sd(x, n) / sqrt(n);
    return (struct interval){mean - half, mean + half, level, INTERVAL_T};
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Computes the means of RESAMPLES bootstrap samples, in ascending order. */
static void resample_means(const double *x, int n, double means[RESAMPLES]) {
    for (int k = 0; k < RESAMPLES; k++) {
        struct rng r = rng_at(BOOTSTRAP_SEED, STREAM_BOOTSTRAP, (uint64_t)k);
        double sum = 0;
        for (int i = 0; i < n; i++) sum += x[rng_below(&r, (uint64_t)n)];
        means[k] = sum / n;
    }
    qsort(means, RESAMPLES, sizeof means[0], compare_doubles);
}

/* Returns z0 of BCa: the normal quantile of the share of resampled means that are below the sample's mean. Equal means
 * count half. */
static double bias_correction(const double means[RESAMPLES], double mean) {
    double below = 0;
    for (int k = 0; k < RESAMPLES; k++) below += 0.5 * (means[k] < mean) + 0.5 * (means[k] <= mean);
    return stats_normal_quantile((below + 0.5) / (RESAMPLES + 1)); /* the share is never 0 or 1 */
}

/* Returns sum d^3 / (6 (sum d^2)^1.5), where the d are the jackknife's deviations. The statistic is the mean, so each d
 * is proportional to x_i - mean. */
static double acceleration(const double *x, int n, double mean) {
    double squares = 0, cubes = 0;
    for (int i = 0; i < n; i++) {
        double d = x[i] - mean;
        squares += d * d;
        cubes += d * d * d;
    }
    return squares > 0 ? cubes / (6 * squares * sqrt(squares)) : 0;
}

/* Returns one end of a BCa interval: the quantile Phi(z0 + (z0 + z) / (1 - a (z0 + z))) of the resampled means (Efron
 * 1987). */
static double bca_end(const double means[RESAMPLES], double z0, double a, double z) {
    double shifted = z0 + z, p;
    if (1 - a * shifted > 0)
        p = stats_normal(z0 + shifted / (1 - a * shifted));
    else
        p = shifted > 0;
    double rank = p * (RESAMPLES - 1);
    int below = (int)rank;
    if (below + 1 >= RESAMPLES) return means[RESAMPLES - 1];
    return means[below] + (rank - below) * (means[below + 1] - means[below]);
}

struct interval stats_bca_interval(const double *x, int n, double level) {
    double means[RESAMPLES];
    if (n < 2) return no_interval(level);
    double low = x[0], high = x[0];
    for (int i = 1; i < n; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    if (low < high) { /* if all values are equal, rounding must not make the interval wider than 0 */
        double mean = stats_mean(x, n);
        resample_means(x, n, means);
        double z0 = bias_correction(means, mean), a = acceleration(x, n, mean);
        double z = stats_normal_quantile(0.5 + 0.5 * level);
        low = bca_end(means, z0, a, -z);
        high = bca_end(means, z0, a, z);
    }
    return (struct interval){low, high, level, INTERVAL_BCA};
}

/* Returns the q-quantile of sorted values. */
static double sorted_quantile(const double *sorted, int n, double q) {
    double rank = q * (n - 1);
    int below = (int)rank;
    if (below + 1 >= n) return sorted[n - 1];
    return sorted[below] + (rank - below) * (sorted[below + 1] - sorted[below]);
}

/* Returns the interquartile mean, and sorts the values in place. */
static double iqm_in_place(double *x, int n) {
    int cut = n / 4;
    double sum = 0;
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    for (int i = cut; i < n - cut; i++) sum += x[i];
    return sum / (n - 2 * cut);
}

struct interval stats_iqm_interval(const double *x, const int *sizes, int n_strata, double level) {
    int n = 0;
    for (int s = 0; s < n_strata; s++) n += sizes[s];
    double *drawn = n >= 5 ? malloc((size_t)n * sizeof *drawn) : NULL;
    double *found = drawn ? malloc(RESAMPLES * sizeof *found) : NULL;
    struct interval interval = no_interval(level);
    for (int k = 0; k < RESAMPLES && found; k++) {
        struct rng r = rng_at(BOOTSTRAP_SEED, STREAM_BOOTSTRAP, (uint64_t)k);
        for (int s = 0, first = 0; s < n_strata; first += sizes[s++])
            for (int i = 0; i < sizes[s]; i++) drawn[first + i] = x[first + (int)rng_below(&r, (uint64_t)sizes[s])];
        found[k] = iqm_in_place(drawn, n);
    }
    if (found) {
        qsort(found, RESAMPLES, sizeof *found, compare_doubles);
        interval = (struct interval){sorted_quantile(found, RESAMPLES, 0.5 * (1 - level)),
                                     sorted_quantile(found, RESAMPLES, 0.5 * (1 + level)), level, INTERVAL_PERCENTILE};
    }
    free(found);
    free(drawn);
    return interval;
}

struct interval stats_interval(const double *x, int n, double level, double minimum, double maximum) {
    if (n < 5) return no_interval(level);
    struct interval i = n < 10 ? stats_t_interval(x, n, level) : stats_bca_interval(x, n, level);
    i.low = fmin(fmax(i.low, minimum), maximum);
    i.high = fmin(fmax(i.high, minimum), maximum);
    return i;
}

/* The ends of the interval solve P(X >= k | low) = P(X <= k | high) = (1 - level) / 2. Tails of the binomial
 * distribution are incomplete beta functions. */
struct interval stats_rate_interval(int k, int n, double level) {
    if (n < 1 || k < 0 || k > n) return no_interval(level);
    double tail = 0.5 * (1 - level);
    double low = k == 0 ? 0 : stats_beta_quantile(k, n - k + 1, tail);
    double high = k == n ? 1 : stats_beta_quantile(k + 1, n - k, 1 - tail);
    return (struct interval){low, high, level, INTERVAL_EXACT};
}

struct interval stats_wilson_interval(double p, double n, double level) {
    if (!(n >= 1 && p >= 0 && p <= 1)) return no_interval(level);
    double z = stats_normal_quantile(0.5 * (1 + level)), share = z * z / n;
    double middle = p + share / 2, half = sqrt(p * (1 - p) * share + share * share / 4);
    return (struct interval){fmax(0, (middle - half) / (1 + share)), fmin(1, (middle + half) / (1 + share)), level,
                             INTERVAL_WILSON};
}

/* The interval from the k-th smallest to the k-th largest value misses the median if fewer than k values lie on one
 * side of it. This has probability 2 P(Binomial(n, 1/2) <= k - 1). */
struct interval stats_median_interval(const double *x, int n, double level) {
    if (n < 2) return no_interval(level);
    int chosen = 1;
    double coverage = 1 - 2 * stats_beta(n, 1, 0.5);
    for (int k = 2; 2 * k <= n; k++) {
        double inner = 1 - 2 * stats_beta(n - k + 1, k, 0.5);
        if (inner < level) break;
        chosen = k;
        coverage = inner;
    }
    return (struct interval){order_statistic(x, n, chosen - 1), order_statistic(x, n, n - chosen), coverage,
                             INTERVAL_ORDER};
}

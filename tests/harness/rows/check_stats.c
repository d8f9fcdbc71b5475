/* check_stats.c - statistics against known values, identities and simulation. Seeds are fixed. */
#include <math.h>

#include "core/philox.h"
#include "harness/rows/stats.h"
#include "tests/testing.h"

#define ck_near(got, want, bound) ck_assert_double_eq_tol(got, want, bound)

START_TEST(location_and_spread_of_a_known_sample) {
    const double x[] = {4, 1, 7, 2, 9, 4, 100, 3}; /* sorted 1 2 3 4 4 7 9 100; without the last 1 2 4 4 7 9 100 */
    ck_near(stats_mean(x, 8), 16.25, 1e-12);
    ck_near(stats_sd(x, 8), 33.94007323840907, 1e-12);
    ck_near(stats_median(x, 8), 4, 0x1p-60);
    ck_near(stats_median(x, 7), 4, 0x1p-60);
    ck_near(stats_median(x, 2), 2.5, 0x1p-60);
    ck_near(stats_iqm(x, 8), 4.5, 1e-12);
    ck_near(stats_iqm(x, 7), 5.2, 1e-12);
    ck_near(stats_iqm(x, 3), 4, 1e-12);
    ck_near(stats_quantile(x, 8, 0.25), 2.75, 1e-12); /* as numpy.quantile and R */
    ck_near(stats_quantile(x, 8, 0), 1, 0x1p-60);
    ck_near(stats_quantile(x, 8, 1), 100, 0x1p-60);
    ck_assert_double_eq(x[6], 100); /* the sample is left alone */
}
END_TEST

START_TEST(location_of_one_value_and_of_equal_values) {
    const double x[] = {0.75, 0.75, 0.75, 0.75, 0.75, 0.75};
    for (int n = 1; n <= 6; n++) {
        ck_assert_double_eq(stats_mean(x, n), 0.75);
        ck_assert_double_eq(stats_median(x, n), 0.75);
        ck_near(stats_iqm(x, n), 0.75, 1e-15);
        if (n > 1) ck_assert_double_eq(stats_sd(x, n), 0);
    }
    ck_assert_double_nan(stats_sd(x, 1));
    ck_assert_double_nan(stats_mean(x, 0));
    ck_assert_double_nan(stats_median(x, 0));
    ck_assert_double_nan(stats_iqm(x, 0));
}
END_TEST

/* Two values of one stratum: both means of one value come up a quarter of the time. Strata of equal values do not vary,
 * however different they are. */
START_TEST(the_bootstrap_of_the_interquartile_mean_is_stratified) {
    const double two[] = {0, 0, 0, 1, 1, 1}, mixed[] = {0, 1, 0, 1, 0, 1};
    struct interval apart = stats_iqm_interval(two, (const int[]){3, 3}, 2, 0.95);
    ck_assert_int_eq(apart.kind, INTERVAL_PERCENTILE);
    ck_assert_double_eq(apart.low, 0.5); /* without one of each end: 0 0 1 1 */
    ck_assert_double_eq(apart.high, 0.5);
    struct interval together = stats_iqm_interval(mixed, (const int[]){6}, 1, 0.95);
    ck_assert_double_eq(together.low, 0); /* five or six zeros of six draws: 7/64 */
    ck_assert_double_eq(together.high, 1);
    struct interval half = stats_iqm_interval(mixed, (const int[]){2, 2, 2}, 3, 0.5);
    ck_assert_double_eq(half.low, 0.25); /* two ones of six, or fewer: 22/64; fewer than two: 7/64 */
    ck_assert_double_eq(half.high, 0.75);
    ck_assert_int_eq(stats_iqm_interval(mixed, (const int[]){4}, 1, 0.95).kind, INTERVAL_NONE);
    struct interval again = stats_iqm_interval(mixed, (const int[]){6}, 1, 0.95);
    ck_assert_double_eq(again.low, together.low); /* a fixed seed */
    ck_assert_double_eq(mixed[1], 1);             /* the sample is left alone */
}
END_TEST

START_TEST(beta_meets_its_closed_forms) {
    for (int i = 0; i < 15; i++) {
        double x = 0.01 + 0.07 * i;
        ck_near(stats_beta(1, 7.5, x), 1 - pow(1 - x, 7.5), 1e-14);
        ck_near(stats_beta(3.25, 1, x), pow(x, 3.25), 1e-14);
        ck_near(stats_beta(0.5, 0.5, x), 2 / 3.14159265358979323846 * asin(sqrt(x)), 1e-14);
        ck_near(stats_beta(4, 9, x) + stats_beta(9, 4, 1 - x), 1, 1e-14);
        ck_near(stats_beta_quantile(2.5, 0.7, stats_beta(2.5, 0.7, x)), x, 1e-12);
    }
    ck_near(stats_beta(500, 500, 0.5), 0.5, 1e-11); /* lgamma of 1000 costs three digits */
    ck_assert_double_eq(stats_beta(2, 3, 0), 0);
    ck_assert_double_eq(stats_beta(2, 3, 1), 1);
    /* P(Binomial(10, 0.3) >= 4) by its sum */
    double tail = 1, choose[] = {1, 10, 45, 120};
    for (int k = 0; k < 4; k++) tail -= choose[k] * pow(0.3, k) * pow(0.7, 10 - k);
    ck_near(stats_beta(4, 7, 0.3), tail, 1e-14);
}
END_TEST

START_TEST(normal_quantiles_are_known) {
    ck_near(stats_normal_quantile(0.975), 1.959963984540054, 1e-13);
    ck_near(stats_normal_quantile(0.995), 2.5758293035489004, 1e-13);
    ck_near(stats_normal_quantile(0.5), 0, 1e-15);
    for (int i = 0; i < 36; i++) {
        double z = -8 + 0.37 * i;
        ck_near(stats_normal_quantile(stats_normal(z)), z, 1e-9);
    }
}
END_TEST

START_TEST(t_quantiles_are_known) {
    /* From the closed forms of the distribution for whole degrees of freedom, in 40 digits. */
    ck_near(stats_t_quantile(0.975, 4), 2.77644510519779436, 1e-12);
    ck_near(stats_t_quantile(0.95, 9), 1.83311293265623717, 1e-12);
    ck_near(stats_t_quantile(0.975, 30), 2.04227245630123831, 1e-12);
    ck_near(stats_t_quantile(0.995, 10), 3.16927267261695123, 1e-12);
    for (int i = 0; i < 17; i++) {
        double p = 0.02 + 0.06 * i;
        double t1 = tan(3.14159265358979323846 * (p - 0.5)), t2 = (2 * p - 1) * sqrt(1 / (2 * p * (1 - p)));
        ck_near(stats_t_quantile(p, 1), t1, 1e-11 * (1 + fabs(t1)));
        ck_near(stats_t_quantile(p, 2), t2, 1e-11 * (1 + fabs(t2)));
        /* Expansion about the normal: t = z + (z + z^3) / (4 df) + O(df^-2) */
        double z = stats_normal_quantile(p);
        ck_near(stats_t_quantile(p, 1e4), z + (z + z * z * z) / 4e4, 1e-6);
    }
}
END_TEST

START_TEST(largest_of_many_normals) {
    ck_near(stats_normal_max_mean(1), 0, 1e-14);
    ck_near(stats_normal_max_mean(2), 1 / sqrt(3.14159265358979323846), 1e-13);
    ck_near(stats_normal_max_mean(3), 1.5 / sqrt(3.14159265358979323846), 1e-13);
    ck_near(stats_normal_max_mean(15), 1.736, 5e-4);
    ck_near(stats_normal_max_mean(25), 1.965, 5e-4);
}
END_TEST

START_TEST(rate_intervals_are_exact) {
    struct interval i = stats_rate_interval(5, 5, 0.95);
    ck_near(i.low, 0.478176, 1e-6); /* 0.025^(1/5) */
    ck_assert_double_eq(i.high, 1);
    ck_assert_int_eq(i.kind, INTERVAL_EXACT);
    ck_near(stats_rate_interval(10, 10, 0.95).low, 0.691503, 1e-6);
    ck_near(stats_rate_interval(20, 20, 0.95).low, 0.831566, 1e-6);
    i = stats_rate_interval(0, 10, 0.95);
    ck_assert_double_eq(i.low, 0);
    ck_near(i.high, 0.308497, 1e-6);
    i = stats_rate_interval(8, 10, 0.95);
    ck_near(i.low, 0.4439, 5e-5);
    ck_near(i.high, 0.9748, 5e-5);
    ck_assert_int_eq(stats_rate_interval(0, 0, 0.95).kind, INTERVAL_NONE);
    ck_assert_int_eq(stats_rate_interval(3, 2, 0.95).kind, INTERVAL_NONE);
    ck_assert_int_eq(stats_rate_interval(-1, 2, 0.95).kind, INTERVAL_NONE);
}
END_TEST

/* Summed over all outcomes of 12 trials, whatever the true rate: never below the level. */
/* Wilson 1927: the ends are the rates p whose own z-test at 95 % just does not reject the share that was seen. */
START_TEST(wilson_intervals_are_where_the_test_of_a_rate_turns) {
    static const struct { double p, n; } cases[] = {{0.5, 30}, {0, 10}, {1, 10}, {0.93, 2000}, {0.1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double p = cases[i].p, n = cases[i].n, z = stats_normal_quantile(0.975);
        struct interval w = stats_wilson_interval(p, n, 0.95);
        ck_assert(w.low <= p + 1e-15 && p - 1e-15 <= w.high && w.low >= 0 && w.high <= 1);
        if (p > 0) ck_near((p - w.low) * (p - w.low), z * z * w.low * (1 - w.low) / n, 1e-12);
        if (p < 1) ck_near((p - w.high) * (p - w.high), z * z * w.high * (1 - w.high) / n, 1e-12);
    }
    ck_near(stats_wilson_interval(0.5, 30, 0.95).low, 0.331541, 1e-5);
    ck_assert_int_eq(stats_wilson_interval(NAN, 30, 0.95).kind, INTERVAL_NONE);
    ck_assert_int_eq(stats_wilson_interval(0.5, -1, 0.95).kind, INTERVAL_NONE);
}
END_TEST

START_TEST(rate_intervals_cover) {
    for (int step = 0; step < 25; step++) {
        double p = 0.02 + 0.04 * step;
        double covered = 0, choose = 1;
        for (int k = 0; k <= 12; k++) {
            struct interval i = stats_rate_interval(k, 12, 0.95);
            if (i.low <= p && p <= i.high) covered += choose * pow(p, k) * pow(1 - p, 12 - k);
            choose = choose * (12 - k) / (k + 1);
        }
        ck_assert_double_ge(covered, 0.95 - 1e-12);
    }
}
END_TEST

START_TEST(median_interval_counts_order_statistics) {
    double x[20];
    for (int i = 0; i < 20; i++) x[i] = (i * 7) % 20 + 1; /* 1..20 shuffled */
    struct interval i = stats_median_interval(x, 20, 0.99);
    ck_assert_double_eq(i.low, 4);
    ck_assert_double_eq(i.high, 17);
    ck_near(i.level, 1 - 2 * 1351 / 1048576.0, 1e-12);
    const double five[] = {3, 1, 5, 4, 2}, ten[] = {3, 1, 5, 4, 2, 10, 9, 8, 7, 6};
    i = stats_median_interval(five, 5, 0.95);
    ck_assert_double_eq(i.low, 1);
    ck_assert_double_eq(i.high, 5);
    ck_near(i.level, 0.9375, 1e-12); /* all that five values can give */
    i = stats_median_interval(ten, 10, 0.95);
    ck_assert_double_eq(i.low, 2);
    ck_assert_double_eq(i.high, 9);
    ck_near(i.level, 1 - 22 / 1024.0, 1e-12);
    ck_assert_int_eq(i.kind, INTERVAL_ORDER);
    ck_assert_int_eq(stats_median_interval(five, 1, 0.95).kind, INTERVAL_NONE);
}
END_TEST

START_TEST(t_interval_of_a_known_sample) {
    const double x[] = {0.9, 0.8, 1.0, 0.7, 0.6}; /* mean 0.8, sd sqrt(0.025) */
    struct interval i = stats_t_interval(x, 5, 0.95);
    ck_near(i.high - 0.8, 2.77644510519779436 * sqrt(0.025 / 5), 1e-12);
    ck_near(i.high + i.low, 1.6, 1e-12);
    i = stats_t_interval(x, 5, 0.90);
    ck_near(i.high - 0.8, 2.13184678632665 * sqrt(0.025 / 5), 1e-12);
    ck_assert_int_eq(stats_t_interval(x, 1, 0.95).kind, INTERVAL_NONE);
}
END_TEST

static const double skewed[12] = {.12, .15, .31, .08, .22, .95, .11, .40, .19, .27, .13, .60};

/* Ends from another implementation (another generator, 400 000 resamples). An end read from 10 000 resamples has a
 * standard error of sqrt(p (1 - p) / 10000) / density: 0.001 at the lower and 0.003 at the upper end; 4 of them. */
START_TEST(bca_agrees_with_another_implementation) {
    struct interval i = stats_bca_interval(skewed, 12, 0.95);
    ck_near(i.low, 0.19333, 0.004);
    ck_near(i.high, 0.49583, 0.012);
    ck_assert_int_eq(i.kind, INTERVAL_BCA);
    i = stats_bca_interval(skewed, 12, 0.90);
    ck_near(i.low, 0.20583, 0.004);
    ck_near(i.high, 0.45750, 0.012);
}
END_TEST

START_TEST(bca_follows_scale_and_reflection) {
    double mirrored[12];
    for (int i = 0; i < 12; i++) mirrored[i] = 3 - 2 * skewed[i];
    struct interval a = stats_bca_interval(skewed, 12, 0.95), b = stats_bca_interval(mirrored, 12, 0.95);
    double grid = 2 * 0.01 / 12; /* resampled means lie on a grid, and rounding decides otherwise which of them tie */
    ck_near(b.low, 3 - 2 * a.high, grid);
    ck_near(b.high, 3 - 2 * a.low, grid);
    double mean = stats_mean(skewed, 12);
    ck_assert_double_gt(a.high - mean, 1.3 * (mean - a.low)); /* the longer tail gets the longer arm */
    struct interval again = stats_bca_interval(skewed, 12, 0.95);
    ck_assert_double_eq(a.low, again.low);
    ck_assert_double_eq(a.high, again.high);
}
END_TEST

START_TEST(bca_of_equal_values_is_that_value) {
    double x[12];
    for (int i = 0; i < 12; i++) x[i] = 0.1; /* sums of 0.1 round differently from 0.1 */
    struct interval i = stats_bca_interval(x, 12, 0.95);
    ck_assert_double_eq(i.low, 0.1);
    ck_assert_double_eq(i.high, 0.1);
    ck_assert_int_eq(stats_bca_interval(x, 1, 0.95).kind, INTERVAL_NONE);
    x[0] = 1; /* one outlier is the strongest acceleration there is */
    i = stats_bca_interval(x, 12, 0.99);
    ck_assert(i.low > 0.1 - 1e-12 && i.high < 1 && i.low < stats_mean(x, 12) && i.high > stats_mean(x, 12));
}
END_TEST

/* Share of 300 samples whose 95 % interval holds the true mean. The standard error of the share is 0.0126 at 0.95; for
 * normal samples of 12 theory puts BCa near 0.91 (z in place of t and the divisor n cost four points), and skewed ones
 * lose a little more. */
static double bca_coverage(int n, int skew) {
    int covered = 0, trials = 300;
    for (int trial = 0; trial < trials; trial++) {
        double x[40];
        struct rng r = rng_at(11, STREAM_TEST, (uint64_t)trial);
        for (int i = 0; i < n; i++)
            x[i] = skew ? -log(1 - rng_uniform(&r)) : rng_normal(&r) + 1; /* mean 1 either way */
        struct interval interval = stats_bca_interval(x, n, 0.95);
        covered += interval.low <= 1 && 1 <= interval.high;
    }
    return (double)covered / trials;
}

START_TEST(bca_covers_the_mean_of_normal_samples) {
    double coverage = bca_coverage(12, 0);
    ck_assert_msg(coverage > 0.88 && coverage < 0.97, "coverage %.3f", coverage);
}
END_TEST

START_TEST(bca_covers_the_mean_of_skewed_samples) {
    double coverage = bca_coverage(40, 1);
    ck_assert_msg(coverage > 0.89 && coverage < 0.975, "coverage %.3f", coverage);
}
END_TEST

START_TEST(the_rule_chooses_by_the_number_of_values) {
    for (int n = 0; n <= 12; n++) {
        struct interval i = stats_interval(skewed, n, 0.95, 0, 1);
        ck_assert_int_eq(i.kind, n < 5 ? INTERVAL_NONE : n < 10 ? INTERVAL_T : INTERVAL_BCA);
        ck_assert_int_eq(isnan(i.low) && isnan(i.high), n < 5);
        if (n >= 5) ck_assert(0 <= i.low && i.low <= stats_mean(skewed, n) && stats_mean(skewed, n) <= i.high);
    }
    const double high[] = {1, 1, 1, 1, 0.2}, one[] = {1, 1, 1, 1, 1};
    struct interval i = stats_interval(high, 5, 0.95, 0, 1); /* 0.84 +- 0.44 */
    ck_near(i.low, 0.3957688, 1e-7);
    ck_assert_double_eq(i.high, 1);
    i = stats_interval(one, 5, 0.95, 0, 1);
    ck_assert_double_eq(i.low, 1);
    ck_assert_double_eq(i.high, 1);
    ck_assert_str_eq(interval_kind_name(INTERVAL_NONE), "none");
    ck_assert_str_eq(interval_kind_name(INTERVAL_ORDER), "order");
}
END_TEST

/* Five values on either side that do not overlap; a slope has many such places and one step, where its medians are
 * farthest apart; noise has none. */
START_TEST(steps_of_a_series_are_found_where_they_are) {
    static const double step[] = {3, 1, 2, 3, 1, 2, 9, 8, 9, 7, 8, 9, 9}, slow[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const double noise[] = {1, 9, 2, 8, 3, 7, 4, 6, 5, 1, 9, 2}, few[] = {1, 1, 1, 1, 9, 9, 9, 9};
    double equal[20] = {0}, twice[25];
    int at[25];
    ck_assert_int_eq(stats_steps(step, 13, at), 1);
    ck_assert_int_eq(at[0], 6);
    ck_assert_int_eq(stats_steps(slow, 10, at), 1);
    ck_assert_int_eq(at[0], 5);
    ck_assert_int_eq(stats_steps(noise, 12, at), 0);
    ck_assert_int_eq(stats_steps(few, 8, at), 0);
    ck_assert_int_eq(stats_steps(equal, 20, at), 0);
    for (int i = 0; i < 25; i++) twice[i] = i < 8 ? 1 : i < 17 ? 0.5 : 0.75;
    ck_assert_int_eq(stats_steps(twice, 25, at), 2);
    ck_assert(at[0] == 8 && at[1] == 17);
}
END_TEST

Suite *check_stats(void) {
    Suite *suite = suite_create("stats");
    TCase *tests = tcase_create("stats");
    tcase_add_test(tests, location_and_spread_of_a_known_sample);
    tcase_add_test(tests, location_of_one_value_and_of_equal_values);
    tcase_add_test(tests, the_bootstrap_of_the_interquartile_mean_is_stratified);
    tcase_add_test(tests, beta_meets_its_closed_forms);
    tcase_add_test(tests, normal_quantiles_are_known);
    tcase_add_test(tests, t_quantiles_are_known);
    tcase_add_test(tests, largest_of_many_normals);
    tcase_add_test(tests, rate_intervals_are_exact);
    tcase_add_test(tests, rate_intervals_cover);
    tcase_add_test(tests, wilson_intervals_are_where_the_test_of_a_rate_turns);
    tcase_add_test(tests, median_interval_counts_order_statistics);
    tcase_add_test(tests, t_interval_of_a_known_sample);
    tcase_add_test(tests, bca_agrees_with_another_implementation);
    tcase_add_test(tests, bca_follows_scale_and_reflection);
    tcase_add_test(tests, bca_of_equal_values_is_that_value);
    tcase_add_test(tests, bca_covers_the_mean_of_normal_samples);
    tcase_add_test(tests, bca_covers_the_mean_of_skewed_samples);
    tcase_add_test(tests, the_rule_chooses_by_the_number_of_values);
    tcase_add_test(tests, steps_of_a_series_are_found_where_they_are);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_verdict.c - the statistics of the gate beside numbers worked out by hand. */
#include <math.h>
#include <string.h>

#include "harness/gate/compare.h"
#include "tests/testing.h"

/* 0.01 to 0.20: the 99 % interval of the median of 20 leaves out three on either side, since P(Bin(20, 1/2) <= 3) =
 * 1351 / 2^20 = 0.0013 and with a fourth it would be 0.0059. All above 0: p = 2 / 2^20. */
START_TEST(pairs_have_the_interval_of_order_statistics) {
    double x[20];
    for (int i = 0; i < 20; i++) x[i] = 0.01 * ((i * 7) % 20 + 1);
    struct pairs p = pairs_evaluate(x, 20);
    ck_assert_double_eq_tol(p.median, 0.105, 1e-12);
    ck_assert_double_eq_tol(p.interval.low, 0.04, 1e-12);
    ck_assert_double_eq_tol(p.interval.high, 0.17, 1e-12);
    ck_assert_double_eq_tol(p.interval.level, 1 - 2702.0 / 1048576, 1e-12);
    ck_assert_double_eq_tol(p.p, 2.0 / 1048576, 1e-15);
}
END_TEST

/* 15 of 20: 2 (15504 + 4845 + 1140 + 190 + 20 + 1) / 2^20; ties count for neither side; nothing but ties is no sign. */
START_TEST(signs_are_counted) {
    double x[22];
    for (int i = 0; i < 22; i++) x[i] = i < 15 ? 1 : i < 20 ? -1 : 0;
    ck_assert_double_eq_tol(pairs_evaluate(x, 22).p, 2 * 21700.0 / 1048576, 1e-12);
    for (int i = 0; i < 22; i++) x[i] = 0;
    ck_assert_double_eq(pairs_evaluate(x, 22).p, 1);
}
END_TEST

/* 0.005 <= 0.05/4 and 0.01 <= 0.05/3, but 0.03 > 0.05/2: that one and all after it stay. */
START_TEST(holm_steps_down) {
    const double p[4] = {0.01, 0.04, 0.03, 0.005};
    bool rejected[4];
    holm_reject(p, 4, 0.05, rejected);
    ck_assert(rejected[0] && !rejected[1] && !rejected[2] && rejected[3]);
    holm_reject((const double[]){0.011}, 1, 0.01, rejected);
    ck_assert(!rejected[0]);
    holm_reject((const double[]){0.005, 0.005}, 2, 0.01, rejected);
    ck_assert(rejected[0] && rejected[1]);
}
END_TEST

static struct pairs pairs_of(double low, double median, double high) {
    return (struct pairs){.n = 20, .median = median, .interval = {low, high, 0.99, INTERVAL_ORDER}, .p = 1e-6};
}

/* log(1.03) = 0.02956 */
START_TEST(verdicts_need_interval_median_and_holm) {
    static const struct {
        double low, median, high;
        bool rejected;
        enum verdict verdict;
    } cases[] = {
        {0.001, 0.0296, 0.2, true, VERDICT_REGRESSED},   {0.001, 0.0295, 0.2, true, VERDICT_INCONCLUSIVE},
        {-0.001, 0.05, 0.2, true, VERDICT_INCONCLUSIVE}, {0.001, 0.05, 0.2, false, VERDICT_INCONCLUSIVE},
        {-0.2, -0.0296, -0.001, true, VERDICT_IMPROVED}, {-0.0295, 0, 0.0295, true, VERDICT_SAME},
        {-0.0296, 0, 0.01, false, VERDICT_INCONCLUSIVE}, {0.001, 0.002, 0.003, true, VERDICT_SAME},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pairs p = pairs_of(cases[i].low, cases[i].median, cases[i].high);
        ck_assert_msg(pairs_verdict(&p, 0.03, cases[i].rejected) == cases[i].verdict, "case %zu", i);
    }
    struct pairs few = pairs_of(0.001, 0.05, 0.2);
    few.interval.level = 0.98;
    ck_assert_int_eq(pairs_verdict(&few, 0.03, true), VERDICT_INCONCLUSIVE);
    ck_assert_int_eq(pairs_verdict(&(struct pairs){.interval.kind = INTERVAL_NONE}, 0.03, true), VERDICT_INCONCLUSIVE);
}
END_TEST

START_TEST(a_floor_is_three_percent_or_twice_what_chance_does) {
    ck_assert_double_eq(gate_floor(NAN), 0.03);
    ck_assert_double_eq(gate_floor(0.01), 0.03);
    ck_assert_double_eq(gate_floor(0.02), 0.04);
}
END_TEST

START_TEST(seeds_follow_the_rule) {
    static const enum verdict of_five[] = {3, 3, 3, 2, 2, 0}, of_ten[] = {3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0};
    for (int k = 0; k <= 5; k++) ck_assert_int_eq(seeds_verdict(k, 5), of_five[k]);
    for (int k = 0; k <= 10; k++) ck_assert_int_eq(seeds_verdict(k, 10), of_ten[k]);
    ck_assert_int_eq(seeds_verdict(3, 3), VERDICT_INCONCLUSIVE);
}
END_TEST

/* Five values -0.02 +- 0.001 have a sample sd of 0.00079, t(0.975, 4) = 2.776: the interval is -0.02 +- 0.00098. */
START_TEST(metrics_of_paired_seeds_may_lose_a_point) {
    const double lost[] = {-0.02, -0.021, -0.019, -0.0205, -0.0195}, won[] = {0.02, 0.021, 0.019, 0.0205, 0.0195};
    const double little[] = {-0.009, -0.008, -0.009, -0.008, -0.009}, wide[] = {-0.3, 0.2, -0.2, 0.1, -0.1};
    ck_assert_int_eq(metric_verdict(lost, 5), VERDICT_REGRESSED);
    ck_assert_int_eq(metric_verdict(won, 5), VERDICT_INCONCLUSIVE);
    ck_assert_int_eq(metric_verdict(little, 5), VERDICT_SAME);
    ck_assert_int_eq(metric_verdict(wide, 5), VERDICT_SAME);
}
END_TEST

/* A value that keeps its bound passes however wide its interval is; one that misses it is red unless the interval
 * reaches the bound. */
START_TEST(bounds_are_judged_by_value_and_interval) {
    static const struct interval narrow = {0.80, 0.90, 0.95, INTERVAL_T}, none = {.kind = INTERVAL_NONE};
    ck_assert_int_eq(bound_verdict(0.85, &narrow, SENSE_LEAST, 0.85), VERDICT_SAME);
    ck_assert_int_eq(bound_verdict(0.85, &narrow, SENSE_LEAST, 0.90), VERDICT_INCONCLUSIVE);
    ck_assert_int_eq(bound_verdict(0.85, &narrow, SENSE_LEAST, 0.91), VERDICT_REGRESSED);
    ck_assert_int_eq(bound_verdict(0.85, &narrow, SENSE_MOST, 0.80), VERDICT_INCONCLUSIVE);
    ck_assert_int_eq(bound_verdict(0.85, &narrow, SENSE_MOST, 0.79), VERDICT_REGRESSED);
    ck_assert_int_eq(bound_verdict(0.85, &narrow, SENSE_EQUAL, 0.86), VERDICT_REGRESSED);
    ck_assert_int_eq(bound_verdict(0.85, &none, SENSE_LEAST, 0.86), VERDICT_REGRESSED);
    ck_assert_int_eq(bound_verdict(NAN, &narrow, SENSE_MOST, 1), VERDICT_REGRESSED);
    ck_assert_int_eq(bound_verdict(INFINITY, &none, SENSE_MOST, 40), VERDICT_REGRESSED);
}
END_TEST

START_TEST(exit_codes_are_those_of_the_worst) {
    ck_assert_int_eq(verdict_status(VERDICT_SAME), ST_OK);
    ck_assert_int_eq(verdict_status(VERDICT_IMPROVED), ST_OK);
    ck_assert_int_eq(verdict_status(VERDICT_INCONCLUSIVE), ST_INCONCLUSIVE);
    ck_assert_int_eq(verdict_status(VERDICT_REGRESSED), ST_REGRESSED);
}
END_TEST

START_TEST(a_busy_row_is_inconclusive_and_says_the_load) {
    struct compare_row rows[2] = {{.bench = gate_benches(), .floor = 0.03, .foreign = 0.8, .measured = true},
                                  {.bench = gate_benches(), .floor = 0.03, .foreign = 0.1, .measured = true}};
    rows[0].pairs = rows[1].pairs = pairs_of(0.04, 0.05, 0.06);
    compare_judge(rows, 2, 0.5);
    ck_assert_int_eq(rows[0].verdict, VERDICT_INCONCLUSIVE);
    ck_assert_ptr_nonnull(strstr(rows[0].detail, "busy: other processes used 80 % of the cores, more than 50 %"));
    ck_assert_int_eq(rows[1].verdict, VERDICT_REGRESSED);
}
END_TEST

START_TEST(a_load_that_nobody_knows_is_not_said) {
    struct compare_row row = {.bench = gate_benches(), .floor = 0.03, .foreign = NAN, .measured = true};
    row.pairs = pairs_of(-0.04, 0, 0.04);
    compare_judge(&row, 1, 0.5);
    ck_assert_int_eq(row.verdict, VERDICT_INCONCLUSIVE);
    ck_assert_str_eq(row.detail, "after 20 pairs");
}
END_TEST

Suite *check_verdict(void);
Suite *check_verdict(void) {
    const TTest *const tests[] = {pairs_have_the_interval_of_order_statistics,
                                  signs_are_counted,
                                  holm_steps_down,
                                  verdicts_need_interval_median_and_holm,
                                  a_floor_is_three_percent_or_twice_what_chance_does,
                                  seeds_follow_the_rule,
                                  metrics_of_paired_seeds_may_lose_a_point,
                                  bounds_are_judged_by_value_and_interval,
                                  exit_codes_are_those_of_the_worst,
                                  a_busy_row_is_inconclusive_and_says_the_load,
                                  a_load_that_nobody_knows_is_not_said};
    Suite *suite = suite_create("verdict");
    TCase *c = tcase_create("verdict");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(suite, c);
    return suite;
}

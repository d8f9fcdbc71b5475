/* check_spirals.c - series that turn: labels are the signs of signed areas, and the numbers they are drawn from are
 * spread as the task says. */
#include <math.h>

#include "tests/lib/chi_square.h"
#include "tests/tasks/task_examples.h"

/* 1/2 sum (x - x_0) dy - (y - y_0) dx of channels 2p and 2p+1. */
static double signed_area(const struct task_shape *s, const struct example *x, int64_t p) {
    double area = 0;
    const real *first = x->values + 2 * p;
    for (int64_t t = 0; t + 1 < x->length; t++) {
        const real *a = first + t * s->channels, *b = a + s->channels;
        area +=
            ((double)(a[0] - first[0]) * (double)(b[1] - a[1]) - (double)(a[1] - first[1]) * (double)(b[0] - a[0])) / 2;
    }
    return area;
}

static const char *const walked[] = {"spirals:noise=0", "spirals", "spirals:planes=4,walks=0,noise=0.1,max_turn=40",
                                     "spirals:planes=1,min_length=9,max_length=9,noise=0,max_turn=5"};

START_TEST(labels_are_the_signs_of_areas) {
    struct task_choice c;
    open_task(&c, walked[_i], 3);
    struct example x = new_example(&c.shape);
    int64_t labels[16] = {0}, n = 2000, wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        labels[x.targets[0]]++;
        for (int64_t p = 0; INT64_C(1) << p < c.shape.vocab_out; p++)
            wrong += (signed_area(&c.shape, &x, p) < 0) != (x.targets[0] >> p & 1);
    }
    double z = chi_square_z(labels, (int)c.shape.vocab_out, n);
    ck_assert_msg(z < 3, "%s: labels are unevenly spread, z %g", walked[_i], z);
    ck_assert_msg(wrong <= (_i == 1 ? 20 : 0), "%s: %lld of the areas have another sign", walked[_i], (long long)wrong);
    free_example(&x);
}
END_TEST

/* Displacements over 16 points say next to nothing of the direction: their own signed area has either sign about as
 * often. Of 4000 series .467 were measured, four sigma (.008) from half, for a slow turn is seen in a few of its
 * points; the bound is three times that distance, and the areas of neighbouring points, above, tell nearly all. */
START_TEST(displacements_do_not_tell) {
    struct task_choice c;
    open_task(&c, "spirals:noise=0,min_length=128", 3);
    struct example x = new_example(&c.shape);
    int64_t right = 0, n = 4000;
    for (int64_t i = 0; i < n; i++) {
        double area = 0;
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        const real *first = x.values;
        for (int64_t t = 0; t + 16 < x.length; t += 16) {
            const real *a = first + t * c.shape.channels, *b = a + 16 * c.shape.channels;
            area +=
                (double)(a[0] - first[0]) * (double)(b[1] - a[1]) - (double)(a[1] - first[1]) * (double)(b[0] - a[0]);
        }
        right += (area < 0) == (x.targets[0] & 1);
    }
    double share = (double)right / (double)n;
    ck_assert_msg(fabs(share - 0.5) < 0.1, "the areas of displacements have the sign of the turn in %g of the series",
                  share);
    free_example(&x);
}
END_TEST

START_TEST(lengths_and_walks_are_drawn_as_stated) {
    struct task_choice c;
    open_task(&c, "spirals:min_length=41,max_length=80", 3);
    struct example x = new_example(&c.shape);
    int64_t lengths[40] = {0}, n = 4000, steps = 0;
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        lengths[x.length - 41]++;
        for (int64_t t = 1; t < x.length; t++, steps++) {
            double d = (double)(x.values[t * 6 + 4] - x.values[(t - 1) * 6 + 4]);
            squares += d * d;
        }
        for (int64_t k = x.length * 6; k < c.shape.T * 6; k++)
            if (x.values[k] != 0) ck_abort_msg("series %d is not padded with zeros", (int)i);
    }
    ck_assert(fabs(chi_square_z(lengths, 40, n)) < 3);
    double sd = sqrt(2.0 / (double)steps); /* of the mean of squares over its value */
    ck_assert_msg(fabs(squares / (double)steps / 0.09 - 1) < 3 * sd, "a walk's variance is %g",
                  squares / (double)steps);
    free_example(&x);
}
END_TEST

/* increments=yes and time=yes give the same series another way. */
START_TEST(increments_sum_to_the_series) {
    struct task_choice plain, path;
    open_task(&plain, "spirals", 3);
    open_task(&path, "spirals:increments=yes,time=yes", 3);
    struct example a = new_example(&plain.shape), b = new_example(&path.shape);
    ck_assert_int_eq(path.shape.channels, plain.shape.channels + 1);
    for (int64_t i = 0; i < 20; i++) {
        double sum[7] = {0};
        fill_example(&plain, SPLIT_TEST, i, -7, &a);
        fill_example(&path, SPLIT_TEST, i, -9, &b);
        ck_assert_int_eq(a.length, b.length);
        ck_assert_int_eq(a.targets[0], b.targets[0]);
        for (int64_t t = 0; t < a.length; t++)
            for (int64_t k = 0; k < 7; k++) {
                sum[k] += (double)b.values[t * 7 + k];
                double want = k ? (double)a.values[t * 6 + k - 1] : (double)t / a.length;
                if (k == 0 && t) ck_assert(b.values[t * 7] == (real)(1.0 / a.length)); /* to the last bit */
                if (fabs(sum[k] - want) > 1e-4)
                    ck_abort_msg("point %d, channel %d: %g, %g", (int)t, (int)k, sum[k], want);
            }
    }
    free_example(&a);
    free_example(&b);
}
END_TEST

START_TEST(what_fits_no_series_is_refused) {
    check_task_refused("spirals:min_length=20,max_length=10", "spirals|min_length=20|max_length=10");
    check_task_refused("spirals:min_turn=9,max_turn=8", "spirals|min_turn=9|max_turn=8");
    check_task_refused("spirals:planes=9", "planes|8");
}
END_TEST

Suite *check_spirals(void) {
    Suite *suite = suite_create("spirals");
    TCase *tests = tcase_create("spirals");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_loop_test(tests, labels_are_the_signs_of_areas, 0, (int)(sizeof walked / sizeof *walked));
    tcase_add_test(tests, displacements_do_not_tell);
    tcase_add_test(tests, lengths_and_walks_are_drawn_as_stated);
    tcase_add_test(tests, increments_sum_to_the_series);
    tcase_add_test(tests, what_fits_no_series_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_progress.c - the line that says how far a sweep is: no wider than the terminal, the most important first. */
#include <math.h>
#include <string.h>

#include "harness/pool/progress_line.h"
#include "tests/testing.h"

static struct progress_view view(void) {
    return (struct progress_view){.done = 3,
                                  .total = 70,
                                  .share = 0.5,
                                  .best = 0.998,
                                  .left_s = 725,
                                  .model = "bdlru:m=5",
                                  .lr = 0.001,
                                  .loss = 1.25,
                                  .acc = 0.53,
                                  .tok_per_s = 98000,
                                  .seed = 1,
                                  .step = 100,
                                  .steps = 1500};
}

START_TEST(the_line_is_as_wide_as_the_terminal_at_most) {
    struct progress_view v = view();
    char text[512];
    size_t before = 0;
    for (int width = 1; width < 300; width++) {
        progress_line(&v, width, text, sizeof text);
        ck_assert_msg(strlen(text) <= (size_t)width, "%d: %s", width, text);
        ck_assert_ptr_null(strchr(text, '\n'));
        before = strlen(text);
    }
    ck_assert_int_gt((int)before, 80);
    progress_line(&v, 200, text, sizeof text);
    ck_assert_str_eq(text, "[###############...............] 3/70 12m05s left, best 0.998 | bdlru:m=5 lr 0.001 seed 1: "
                           "100/1500 loss 1.250 acc 0.530 98k tok/s");
    progress_line(&v, 30, text, sizeof text);
    ck_assert_str_eq(text, "3/70 | 100/1500 loss 1.250");
    v.model = "deltaproduct:steps=4,heads=4;gelu";
    progress_line(&v, 79, text, sizeof text); /* of a terminal of 80 columns */
    ck_assert_str_eq(text, "3/70 12m05s left | deltaproduct:steps=4,heads=4: 100/1500 loss 1.250 98k tok/s");
}
END_TEST

START_TEST(what_is_not_known_is_left_out) {
    struct progress_view v = view();
    char text[512];
    v.best = v.left_s = v.loss = v.acc = v.tok_per_s = NAN;
    v.share = 7; /* a count of FLOPs that was too low */
    progress_line(&v, 100, text, sizeof text);
    ck_assert_str_eq(text, "[####################] 3/70 | bdlru:m=5 lr 0.001 seed 1: 100/1500");
    v.model = NULL;
    progress_line(&v, 20, text, sizeof text);
    ck_assert_str_eq(text, "3/70");
}
END_TEST

/* Half of the work was done when the sweep began: what it has done itself says how long the rest takes. */
START_TEST(what_was_done_before_took_no_time_of_this_sweep) {
    struct time_left t = {.began = 100, .left_s = NAN};
    time_left_update(&t, 100.5, 1000, 500, 500);
    ck_assert(isnan(t.left_s));
    time_left_update(&t, 110, 1000, 600, 500);
    ck_assert_double_eq_tol(t.left_s, 40, 1e-9);
    time_left_update(&t, 120, 1000, 700, 500);
    ck_assert_double_eq_tol(t.left_s, 30, 1e-9);
    time_left_update(&t, 150, 1000, 1000, 500);
    ck_assert_double_eq_tol(t.left_s, 0, 1e-9);
}
END_TEST

START_TEST(times_have_two_units_at_most) {
    static const struct {
        double s;
        const char *text;
    } cases[] = {{0, "0s"}, {89, "89s"}, {90, "1m30s"}, {5399.9, "89m59s"}, {5400, "1h30m"}, {172800, "2d00h"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        time_format(cases[i].s, text, sizeof text);
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

Suite *check_progress(void) {
    Suite *suite = suite_create("progress");
    TCase *c = tcase_create("progress");
    tcase_add_test(c, the_line_is_as_wide_as_the_terminal_at_most);
    tcase_add_test(c, what_is_not_known_is_left_out);
    tcase_add_test(c, what_was_done_before_took_no_time_of_this_sweep);
    tcase_add_test(c, times_have_two_units_at_most);
    suite_add_tcase(suite, c);
    return suite;
}

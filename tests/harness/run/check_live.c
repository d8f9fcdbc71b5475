/* check_live.c - what a run in progress tells those who watch: few points however long it is, the latest among them;
 * and the time that is left of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/run/live.h"
#include "tests/lib/support.h"
#include "tests/testing.h"

#define ID "0123456789abcdef0123456789abcdef"

static struct claim take(void) {
    struct claim c;
    enum claim_state state;
    struct error e = {0};
    ck_assert_msg(claim_take(&c, own_folder, ID, "s3 lstm lr 0.1 seed 1", &state, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(state, CLAIM_MINE);
    return c;
}

static struct progress at(double wall_s, int64_t step) {
    return (struct progress){
        .step = step, .steps = 1000000, .loss = 1 / (1 + wall_s), .acc = NAN, .tok_per_s = 5000, .wall_s = wall_s};
}

/* A report five times a second, of 5 steps each, for an hour. */
START_TEST(points_stay_few_and_even) {
    struct claim c = take();
    struct live told = {0}, read;
    for (int i = 1; i <= 18000; i++) {
        struct progress p = at(0.2 * i, 5 * i);
        live_tell(&told, &p, &c);
        if (i % 2000 && i > 100) continue;
        bool any = live_read(&read, own_folder, ID);
        ck_assert(any && read.n == told.n && read.n <= LIVE_POINTS);
        ck_assert_double_ge(read.points[read.n - 1].wall_s, 0.2 * i - LIVE_EVERY - 0.2); /* the latest is recent */
    }
    ck_assert_int_gt(read.n, LIVE_POINTS / 4);
    ck_assert_double_eq_tol(read.points[0].wall_s, 0.2, 1e-9);
    for (int i = 1; i + 1 < read.n; i++) {
        double gap = read.points[i].wall_s - read.points[i - 1].wall_s;
        ck_assert_double_ge(gap, 3600.0 / LIVE_POINTS / 2);
        ck_assert_double_le(gap, 3600.0 / LIVE_POINTS * 4);
    }
    claim_done(&c, own_folder, ID);
    ck_assert(!live_read(&read, own_folder, ID));
}
END_TEST

START_TEST(the_time_left_is_that_of_the_pace) {
    struct live l = {.n = 9};
    for (int i = 0; i < 9; i++) l.points[i] = at(10 * i, 100000 * i);
    struct live_left left = live_left(&l); /* 800 000 of a million steps in 80 s */
    ck_assert_double_eq_tol(left.seconds, 20, 1e-9);
    ck_assert_double_eq_tol(left.half, 0, 1e-9);
    for (int i = 0; i < 4; i++) l.points[i].wall_s = -1000 + i; /* the earlier half counts for nothing */
    ck_assert_double_eq_tol(live_left(&l).seconds, 20, 1e-9);
    l.points[5].wall_s += 2, l.points[7].wall_s -= 2; /* 12, 8, 8, 12 s instead of 10 each */
    left = live_left(&l);
    ck_assert_double_eq_tol(left.seconds, 20, 1e-9);
    /* squares 4 * 2^2, times 4/3, root 4.619 over 400 000 steps; of 200 000 that are left, times 1.645 */
    ck_assert_double_eq_tol(left.half, 1.645 * sqrt(16.0 * 4 / 3) / 2, 1e-9);
    l.n = 2;
    ck_assert(isfinite(live_left(&l).seconds) && isnan(live_left(&l).half));
    l.n = 1;
    ck_assert(isnan(live_left(&l).seconds));
    l = (struct live){.n = 3, .points = {at(1, 5), at(2, 5), at(3, 5)}}; /* stands still */
    ck_assert(isnan(live_left(&l).seconds));
}
END_TEST

START_TEST(what_does_not_fit_ends_the_points) {
    static const struct {
        const char *text;
        int n;
    } texts[] = {{"", 0},
                 {"steps 10\n", 0},
                 {"steps 0\n1 1 1 1 1\n", 0},
                 {"step 10\n1 1 1 1 1\n", 0},
                 {"steps 10\n1 1 nan inf 5\n2 2 1 1 1\n", 2},
                 {"steps 10\n1 1 1 1 1\n0.5 2 1 1 1\n", 1}, /* back in time */
                 {"steps 10\n1 5 1 1 1\n2 4 1 1 1\n", 1},   /* back in steps */
                 {"steps 10\n1 5 1 1 1\n2 11 1 1 1\n", 1},  /* more than all */
                 {"steps 10\nnan 5 1 1 1\n", 0},
                 {"steps 10\n1 5 1 1 1\n2 6 1 1", 1}, /* cut off */
                 {"steps 10\n1 5 1 1 1\nabc\n3 7 1 1 1\n", 1}};
    struct claim c = take();
    struct live l;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        claim_tell(&c, texts[i].text, strlen(texts[i].text));
        ck_assert_msg(live_read(&l, own_folder, ID) == (texts[i].n > 0) && l.n == texts[i].n, "%s: %d", texts[i].text,
                      l.n);
    }
    static char many[200 * 32] = "steps 1000\n";
    for (int i = 0; i < 200; i++) sprintf(many + strlen(many), "%d %d 1 1 1\n", i, i);
    claim_tell(&c, many, strlen(many));
    ck_assert(live_read(&l, own_folder, ID) && l.n == LIVE_POINTS);
    claim_release(&c);
    ck_assert(!live_read(&l, own_folder, ID));
}
END_TEST

/* A run that somebody else does as well has no claim of its own, and tells nothing. */
START_TEST(who_has_no_claim_tells_nothing) {
    struct claim none = {.path = ""};
    struct live l = {0};
    struct progress p = at(5, 5);
    live_tell(&l, &p, &none);
    ck_assert(!live_read(&l, own_folder, ID));
}
END_TEST

Suite *check_live(void);
Suite *check_live(void) {
    Suite *s = suite_create("live");
    TCase *t = tcase_create("live");
    tcase_add_checked_fixture(t, own_folder_begin, own_folder_end);
    tcase_add_test(t, points_stay_few_and_even);
    tcase_add_test(t, the_time_left_is_that_of_the_pace);
    tcase_add_test(t, what_does_not_fit_ends_the_points);
    tcase_add_test(t, who_has_no_claim_tells_nothing);
    suite_add_tcase(s, t);
    return s;
}

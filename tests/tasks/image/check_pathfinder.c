/* check_pathfinder.c - drawn Pathfinder images: curves are what they should be, and what besides their course tells the
 * label is known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/image/pathfinder_scene.h"
#include "tests/lib/chi_square.h"
#include "tests/tasks/task_examples.h"

static const int sides[] = {12, 16, 21, 32, 128};
#define N_SIDES (int)(sizeof sides / sizeof *sides)

static double apart(struct pathfinder_point a, struct pathfinder_point b) {
    return sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y));
}

static void require(bool right, const char *what, int side, int image) {
    if (!right) ck_abort_msg("side %d, image %d: %s", side, image, what);
}

/* Whether dash j follows dash i on one curve. */
static bool follows(const struct pathfinder_sizes *w, const struct pathfinder_scene *s, int i, int j) {
    int64_t length = i < s->first[2] ? w->contour : w->distractor_length;
    int64_t place = i < s->first[2] ? i % w->contour : (i - s->first[2]) % w->distractor_length;
    return j == i + 1 && place + 1 < length;
}

/* Dashes are as long as they should be and follow each other at their gap without sharp bends; all others keep away;
 * the discs are at the ends that the label says. */
START_TEST(curves_are_whole_and_keep_apart) {
    int side = sides[_i];
    struct pathfinder_sizes w;
    static struct pathfinder_table table;
    static struct pathfinder_scene s;
    struct rng r = rng_at(5, STREAM_TEST, 0);
    pathfinder_table_make(&table);
    for (int image = 0; image < 20; image++) {
        w = pathfinder_standard(side);
        s.label = image % 2;
        pathfinder_choose(&w, &r);
        while (!pathfinder_try(&w, &table, &r, &s)) continue;
        require(s.first[0] == 0 && s.first[1] == w.contour && s.first[2] == 2 * w.contour, "dashes", side, image);
        require((s.n - s.first[2]) % w.distractor_length == 0, "a distractor is not whole", side, image);
        for (int i = 0; i < s.n; i++) {
            const struct pathfinder_dash *d = &s.dash[i];
            require(fabs(apart(d->from, d->to) - w.length) < 1e-9, "a dash has another length", side, image);
            require(d->from.x > 0 && d->from.y > 0 && d->to.x < side && d->to.y < side, "outside", side, image);
            for (int j = i + 1; j < s.n; j++) {
                const struct pathfinder_dash *other = &s.dash[j];
                if (follows(&w, &s, i, j)) {
                    struct pathfinder_point way = {d->to.x - d->from.x, d->to.y - d->from.y};
                    double turn = way.x * (other->to.x - other->from.x) + way.y * (other->to.y - other->from.y);
                    require(fabs(apart(d->to, other->from) - 2 * w.margin) < 1e-9, "a gap", side, image);
                    require(turn > 0, "a sharp bend", side, image);
                } else
                    require(pathfinder_distance(d, other) > pathfinder_clearance(&w) - 1e-9, "too near", side, image);
            }
        }
        int end = s.label ? s.first[1] - 1 : s.first[2] - 1;
        require(fabs(apart(s.dash[0].from, s.dash[s.first[1]].from) - w.apart) < 1e-9, "beginnings", side, image);
        require(apart(s.disc[0], s.dash[0].from) == 0 && apart(s.disc[1], s.dash[end].to) == 0, "discs", side, image);
    }
}
END_TEST

static const struct {
    int side;
    double margin, wide;
} margins[] = {{32, 1, 1}, {64, 1, 1}, {96, 1.5, 2.25}, {128, 2, 3}, {256, 3, 3}};

/* Path-X has the wider gaps in one image of two, within 4 sigma; with a single margin no number is drawn. */
START_TEST(each_image_has_one_of_its_side_s_margins) {
    enum { IMAGES = 4000 };
    struct rng r = rng_at(7, STREAM_TEST, 0), untouched = r;
    int narrow = 0, wide = 0;
    for (int image = 0; image < IMAGES; image++) {
        struct pathfinder_sizes w = pathfinder_standard(margins[_i].side);
        pathfinder_choose(&w, &r);
        narrow += w.margin == margins[_i].margin;
        wide += w.margin == margins[_i].wide;
        pathfinder_choose(&w, &r); /* a choice that was made stays */
        ck_assert(w.margin == margins[_i].margin || w.margin == margins[_i].wide);
    }
    if (margins[_i].margin == margins[_i].wide) {
        ck_assert_int_eq(narrow, IMAGES);
        ck_assert_uint_eq(rng_below(&r, 1000000), rng_below(&untouched, 1000000));
    } else {
        ck_assert_int_eq(narrow + wide, IMAGES);
        ck_assert_msg(abs(narrow - wide) < 4 * sqrt(IMAGES), "%d narrow, %d wide", narrow, wide);
    }
}
END_TEST

/* Only images whose margin is drawn have changed: the others' runs keep their identity. */
START_TEST(drawn_path_x_alone_has_another_version) {
    static const struct {
        const char *task;
        int version;
    } cases[] = {{"pathfinder", 1},
                 {"pathfinder:size=16", 1},
                 {"pathfinder:size=64", 1},
                 {"pathx", 2},
                 {"pathfinder:size=80", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task_choice c;
        open_task(&c, cases[i].task, 1);
        ck_assert_int_eq(task_version(&c), cases[i].version);
    }
}
END_TEST

/* Curves that may turn by any angle bend to either side as often: with a continuity below 1 left turns once went
 * further, and below 1/4 out of the table of directions. */
START_TEST(curves_bend_to_both_sides_alike) {
    static const double continuity[] = {0.1, 0.3, 0.7, 1};
    static struct pathfinder_table table;
    static struct pathfinder_scene s;
    struct pathfinder_sizes w = pathfinder_standard(64);
    struct rng r = rng_at(6, STREAM_TEST, 0);
    int left = 0, right = 0;
    w.continuity = continuity[_i];
    pathfinder_table_make(&table);
    for (int image = 0; image < 60; image++) {
        s.label = image % 2;
        while (!pathfinder_try(&w, &table, &r, &s)) continue;
        for (int i = 0; i + 1 < s.n; i++) {
            if (!follows(&w, &s, i, i + 1)) continue;
            struct pathfinder_point a = {s.dash[i].to.x - s.dash[i].from.x, s.dash[i].to.y - s.dash[i].from.y};
            struct pathfinder_point b = {s.dash[i + 1].to.x - s.dash[i + 1].from.x,
                                         s.dash[i + 1].to.y - s.dash[i + 1].from.y};
            double cross = a.x * b.y - a.y * b.x;
            left += cross < -1e-9;
            right += cross > 1e-9;
        }
    }
    ck_assert_int_gt(left + right, 500);
    ck_assert_msg(abs(left - right) < 4 * sqrt(left + right), "%d turns to the left, %d to the right", left, right);
}
END_TEST

/* Crossing, parallel and touching dashes by hand. */
START_TEST(distances_are_those_of_geometry) {
    const struct pathfinder_dash flat = {{0, 0}, {4, 0}}, cross = {{2, -1}, {2, 1}}, above = {{1, 3}, {9, 3}},
                                 beside = {{7, 4}, {7, 9}};
    ck_assert(pathfinder_distance(&flat, &cross) == 0 && pathfinder_distance(&flat, &above) == 3);
    ck_assert(pathfinder_distance(&flat, &beside) == 5 && pathfinder_distance(&beside, &flat) == 5);
    struct pathfinder_table t;
    pathfinder_table_make(&t);
    for (int i = 0; i < PATHFINDER_TURNS; i++) {
        double angle = i * 3.14159265358979323846 / 180;
        ck_assert(fabs(t.direction[i].x - cos(angle)) < 1e-12 && fabs(t.direction[i].y - sin(angle)) < 1e-12);
    }
}
END_TEST

/* Fair labels, and how bright an image is does not tell them: within 3 sigma. */
START_TEST(labels_are_fair_and_brightness_does_not_tell_them) {
    struct task_choice c;
    open_task(&c, "pathfinder:size=16", 3);
    struct example x = new_example(&c.shape);
    int64_t count[2] = {0}, n = 2000;
    double sum[2] = {0}, squares[2] = {0};
    for (int64_t i = 0; i < n; i++) {
        double bright = 0;
        fill_example(&c, SPLIT_TRAIN, i, 0, &x);
        for (int64_t t = 0; t < c.shape.T; t++) bright += (double)x.values[t];
        count[x.targets[0]]++;
        sum[x.targets[0]] += bright;
        squares[x.targets[0]] += bright * bright;
    }
    double z = chi_square_z(count, 2, n), spread = 0;
    ck_assert_msg(z < 3, "%lld of label 0, %lld of label 1", (long long)count[0], (long long)count[1]);
    for (int k = 0; k < 2; k++) {
        double mean = sum[k] / (double)count[k];
        spread += (squares[k] / (double)count[k] - mean * mean) / (double)count[k];
    }
    double difference = sum[0] / (double)count[0] - sum[1] / (double)count[1];
    ck_assert_msg(fabs(difference) < 3 * sqrt(spread), "brightness differs by %g, sigma %g", difference, sqrt(spread));
    free_example(&x);
}
END_TEST

static const struct {
    int side;
    double share;
} told[] = {{12, 0.713}, {16, 0.629}, {32, 0.515}};

/* The distance of the discs does tell something, the more the smaller the image: the second curve begins beside the
 * first and has not got as far from its disc. The shares of images that it tells, by which label was the more frequent
 * one at that distance among as many others, are known of 10 000 images; docs/data.md has them. */
START_TEST(the_distance_of_the_discs_tells_as_much_as_is_said) {
    enum { IMAGES = 3000, BINS = 20 };
    static struct pathfinder_table table;
    static struct pathfinder_scene s;
    struct pathfinder_sizes w = pathfinder_standard(told[_i].side);
    struct rng r = rng_at(5, STREAM_TEST, 0);
    int seen[2][BINS] = {{0}}, right = 0;
    pathfinder_table_make(&table);
    for (int image = 0; image < IMAGES; image++) {
        s.label = image % 2;
        while (!pathfinder_try(&w, &table, &r, &s)) continue;
        int bin = (int)(apart(s.disc[0], s.disc[1]) / told[_i].side * BINS);
        if (bin > BINS - 1) bin = BINS - 1;
        if (image < IMAGES / 2)
            seen[s.label][bin]++;
        else
            right += (seen[1][bin] > seen[0][bin]) == s.label;
    }
    double share = 2.0 * right / IMAGES, sigma = sqrt(told[_i].share * (1 - told[_i].share) / (IMAGES / 2.0));
    ck_assert_msg(fabs(share - told[_i].share) < 3 * sigma, "side %d: distance tells %.3f, expected %.3f +- %.3f",
                  told[_i].side, share, told[_i].share, 3 * sigma);
}
END_TEST

START_TEST(what_cannot_be_drawn_is_refused) {
    static const struct {
        const char *task, *says;
    } bad[] = {{"pathfinder:size=16,contour=32", "contour=32 dashes with continuity=1 into size=16 pixels"},
               {"pathfinder:file=x", "file= and content= are of released images; add released=yes"},
               {"pathfinder:released=yes,contour=9", "leave them out with released=yes"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct task_choice c;
        struct error e = {ST_OK, ""};
        ck_assert_msg(task_parse(&c, bad[i].task, &e) == ST_OK, "%s", e.text);
        ck_assert_int_eq(task_open(&c, 1, &task_host, &e), ST_USAGE);
        ck_assert_msg(strstr(e.text, bad[i].says), "%s", e.text);
    }
}
END_TEST

Suite *check_pathfinder(void) {
    Suite *suite = suite_create("pathfinder");
    TCase *tests = tcase_create("pathfinder");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_loop_test(tests, curves_are_whole_and_keep_apart, 0, N_SIDES);
    tcase_add_loop_test(tests, each_image_has_one_of_its_side_s_margins, 0, (int)(sizeof margins / sizeof *margins));
    tcase_add_test(tests, drawn_path_x_alone_has_another_version);
    tcase_add_loop_test(tests, curves_bend_to_both_sides_alike, 0, 4);
    tcase_add_test(tests, distances_are_those_of_geometry);
    tcase_add_test(tests, labels_are_fair_and_brightness_does_not_tell_them);
    tcase_add_loop_test(tests, the_distance_of_the_discs_tells_as_much_as_is_said, 0,
                        (int)(sizeof told / sizeof *told));
    tcase_add_test(tests, what_cannot_be_drawn_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_arrow.c - arrow pointing: geometry, shares and angles (ml-jku/arrow_pointing_dataset), and pictures that show
 * their scene. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plot/picture.h"
#include "tasks/image/arrow_scene.h"
#include "tests/lib/chi_square.h"
#include "tests/tasks/task_examples.h"

static const struct arrow_sizes paper = {.object = 15, .length = 15, .width = 2, .factor = 1.2};

/* The least distance of the disc's centre from the arrow's ray; INFINITY: the arrow points away. */
static double ray_distance(const struct arrow_scene *s) {
    double x = s->disc.x - s->arrow.x, y = s->disc.y - s->arrow.y;
    double along = x * s->way.x + y * s->way.y, across = x * s->way.y - y * s->way.x;
    return along > 0 ? fabs(across) : INFINITY;
}

static void require(bool right, const char *what, int64_t size, int image) {
    if (!right) ck_abort_msg("size %lld, image %d: %s", (long long)size, image, what);
}

/* Section 11, number 8. */
START_TEST(a_label_is_what_the_ray_says) {
    int64_t size = _i ? 384 : 192;
    struct rng r = rng_at(7, STREAM_TEST, 0);
    for (int i = 0; i < 20000; i++) {
        struct arrow_scene s;
        arrow_draw_scene(&paper, size, &r, &s);
        double x = fabs(s.disc.x - s.arrow.x), y = fabs(s.disc.y - s.arrow.y), far = ray_distance(&s);
        double low = 30, high = (double)size - 30;
        require(x >= 2 * s.radius - 1e-9 && y >= 2 * s.radius - 1e-9, "arrow and disc are near on an axis", size, i);
        require(s.label ? far < s.radius / 1.2 + 1e-9 : far > 1.2 * s.radius - 1e-9, "the ray", size, i);
        require(15 <= s.radius && s.radius < 30, "the radius", size, i);
        require(15 <= s.length && s.length <= 29 && s.length == floor(s.length), "the length", size, i);
        require(s.width == 2 || s.width == 3, "the width", size, i);
        require(fabs(s.way.x * s.way.x + s.way.y * s.way.y - 1) < 1e-12, "the direction is no unit vector", size, i);
        require(low <= s.arrow.x && s.arrow.x <= high && low <= s.arrow.y && s.arrow.y <= high, "the arrow", size, i);
        require(low <= s.disc.x && s.disc.x <= high && low <= s.disc.y && s.disc.y <= high, "the disc", size, i);
    }
}
END_TEST

/* Place of an angle in its label's range: phi0 - h + U 2h, or phi0 + h + U (2 pi - 2h). */
static double place_of_angle(const struct arrow_scene *s) {
    double pi = acos(-1.0), x = s->disc.x - s->arrow.x, y = s->disc.y - s->arrow.y;
    double h = asin((s->label ? s->radius / 1.2 : 1.2 * s->radius) / hypot(x, y));
    double turn = atan2(s->way.y, s->way.x) - atan2(y, x);
    if (s->label) return (remainder(turn, 2 * pi) + h) / (2 * h);
    return fmod(turn + 4 * pi - h, 2 * pi) / (2 * pi - 2 * h);
}

#define BINS 20

static int bin_of(double share) {
    return share <= 0 ? 0 : share >= 1 ? BINS - 1 : (int)(share * BINS);
}

static void check_uniform(const int64_t *count, int bins, int64_t n, const char *what) {
    double z = chi_square_z(count, bins, n);
    ck_assert_msg(fabs(z) < 3, "%s is %.1f sigma from uniform", what, z);
}

/* Labels, angles, lengths, widths, radii and places, within 3 sigma. */
START_TEST(what_is_drawn_is_uniform) {
    struct rng r = rng_at(11, STREAM_TEST, 0);
    int64_t n = 40000, labels[2] = {0}, angle[2][BINS] = {{0}}, length[15] = {0}, width[2] = {0}, radius[BINS] = {0};
    int64_t places[2][BINS] = {{0}};
    for (int64_t i = 0; i < n; i++) {
        struct arrow_scene s;
        arrow_draw_scene(&paper, 192, &r, &s);
        labels[s.label]++;
        angle[s.label][bin_of(place_of_angle(&s))]++;
        length[(int)s.length - 15]++;
        width[(int)s.width - 2]++;
        radius[bin_of((s.radius - 15) / 15)]++;
        places[0][bin_of((s.arrow.x - 30) / 132)]++;
        places[1][bin_of((s.disc.y - 30) / 132)]++;
    }
    check_uniform(labels, 2, n, "the label");
    check_uniform(angle[0], BINS, labels[0], "the angle of label 0");
    check_uniform(angle[1], BINS, labels[1], "the angle of label 1");
    check_uniform(length, 15, n, "the length");
    check_uniform(width, 2, n, "the width");
    check_uniform(radius, BINS, n, "the radius");
    check_uniform(places[0], BINS, n, "the arrow's place");
    check_uniform(places[1], BINS, n, "the disc's place");
}
END_TEST

/* Every pixel is black if it lies in the disc, white if it lies in neither object, and the shaft is black. */
START_TEST(a_picture_shows_its_scene) {
    enum { SIDE = 96 };
    struct arrow_sizes small = {.object = 7, .length = 8, .width = 2, .factor = 1.2, .smooth = _i == 1};
    static uint8_t pixels[SIDE * SIDE];
    struct rng r = rng_at(13, STREAM_TEST, 0);
    for (int i = 0; i < 100; i++) {
        struct arrow_scene s;
        arrow_draw_scene(&small, SIDE, &r, &s);
        arrow_draw(&small, &s, SIDE, pixels);
        double reach = floor(s.length / 2) + s.width / 2 + 1;
        for (int at = 0; at < SIDE * SIDE; at++) {
            int row = at / SIDE, column = at % SIDE;
            double x = column + 0.5, y = row + 0.5;
            double disc = hypot(x - s.disc.x, y - s.disc.y), arrow = hypot(x - s.arrow.x, y - s.arrow.y);
            if (disc < s.radius - 0.6) require(pixels[at] == 0, "a white pixel in the disc", SIDE, i);
            if (disc > s.radius + 0.6 && arrow > reach) require(pixels[at] == 255, "a black pixel outside", SIDE, i);
            if (!small.smooth) require(pixels[at] == 0 || pixels[at] == 255, "a grey pixel", SIDE, i);
        }
        int half = (int)floor(s.length / 2);
        for (int t = 1 - half; t < half; t++) {
            int column = (int)(s.arrow.x + t * s.way.x), row = (int)(s.arrow.y + t * s.way.y);
            require(pixels[row * SIDE + column] < 255, "a white pixel on the shaft", SIDE, i);
        }
    }
}
END_TEST

/* Test images alternate between both sizes, each filled to its own length; objects keep their size, so the larger
 * image has about as many black pixels. The area of a disc whose radius is anything from r to 2 r scatters by about
 * a third of an image's black pixels, so that the sums of two hundred differ by 3.2 % of them (a sigma): the bound
 * is more than four of those, 0.1 % was measured, and objects that grew with the image would have four times as
 * many. */
START_TEST(tests_have_images_of_both_sizes) {
    struct task_choice c;
    open_task(&c, "arrow:size=48,object=3.5,length=5,smooth=yes", 3);
    ck_assert(c.shape.T == 48 * 48 && c.shape.T_eval == 96 * 96 && c.shape.channels == 3);
    struct example x = new_example(&c.shape);
    double dark[2] = {0, 0}, white = (1 - 0.485) / 0.229, black = -0.485 / 0.229;
    int64_t labels[2] = {0};
    for (int64_t i = 0; i < 400; i++) {
        fill_example(&c, SPLIT_TEST, i, 0, &x);
        ck_assert_int_eq(x.length, i % 2 ? 96 * 96 : 48 * 48);
        for (int64_t t = 0; t < x.length; t++) dark[i % 2] += (white - (double)x.values[3 * t]) / (white - black);
        labels[x.targets[0]]++;
        fill_example(&c, SPLIT_VAL, i, 0, &x);
        ck_assert_int_eq(x.length, 48 * 48);
    }
    ck_assert_msg(fabs(dark[0] - dark[1]) < 0.15 * dark[0], "black pixels: %g and %g", dark[0], dark[1]);
    check_uniform(labels, 2, 400, "the label of test images");
    free_example(&x);
}
END_TEST

/* The picture of test images has room for the larger ones; the smaller lie at the upper left of theirs. */
START_TEST(pictures_have_room_for_both_sizes) {
    struct task_choice c;
    struct picture p;
    struct error e = {ST_OK, ""};
    open_task(&c, "arrow:size=24", 3);
    struct example x = new_example(&c.shape);
    ck_assert_msg(picture_make(&p, &c.shape, SPLIT_TEST, 2, &e) == ST_OK, "%s", e.text);
    ck_assert(p.rows == 48 && p.across == 48);
    for (int i = 0; i < 2; i++) {
        int side = i ? 48 : 24;
        fill_example(&c, SPLIT_TEST, i, 0, &x);
        picture_add(&p, i, &x);
        for (int t = 0; t < 48 * 48; t++) {
            float shown = p.values[(i * 48 * 48 + t) * 3];
            bool inside = t / 48 < side && t % 48 < side;
            if (inside != !isnan(shown) || (inside && shown != (float)x.values[(t / 48 * side + t % 48) * 3]))
                ck_abort_msg("image %d, pixel %d: %g", i, t, (double)shown);
        }
    }
    picture_free(&p);
    free_example(&x);
}
END_TEST

/* The value of channel c of a pixel of an image of `side` pixels that was cut into patches. */
static real in_patch(const struct example *x, int side, int patch, int row, int column, int c) {
    int t = row / patch * (side / patch) + column / patch, at = row % patch * patch + column % patch;
    return x->values[(t * patch * patch + at) * 3 + c];
}

/* An image in patches is the image, at both sizes, and so is its picture. */
START_TEST(patches_hold_the_pixels) {
    enum { SIDE = 24, PATCH = 6 };
    struct task_choice plain, cut;
    struct picture p, q;
    struct error e = {ST_OK, ""};
    open_task(&plain, "arrow:size=24", 3);
    open_task(&cut, "arrow:size=24,patch=6", 3);
    ck_assert(cut.shape.T == 16 && cut.shape.T_eval == 64 && cut.shape.channels == 108 && cut.shape.height == 4);
    struct example x = new_example(&plain.shape), y = new_example(&cut.shape);
    ck_assert_msg(picture_make(&p, &plain.shape, SPLIT_TEST, 4, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(picture_make(&q, &cut.shape, SPLIT_TEST, 4, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < 4; i++) {
        int side = i % 2 ? 2 * SIDE : SIDE;
        fill_example(&plain, SPLIT_TEST, i, 0, &x);
        fill_example(&cut, SPLIT_TEST, i, 0, &y);
        ck_assert_int_eq(y.length * PATCH * PATCH, x.length);
        for (int k = 0; k < side * side * 3; k++) {
            real want = x.values[k], got = in_patch(&y, side, PATCH, k / 3 / side, k / 3 % side, k % 3);
            if (!(got == want)) ck_abort_msg("image %d, value %d: %g, not %g", i, k, (double)got, (double)want);
        }
        for (int64_t k = y.length * 108; k < 64 * 108; k++) ck_assert(y.values[k] == 0);
        picture_add(&p, i, &x);
        picture_add(&q, i, &y);
    }
    ck_assert(p.rows == q.rows && p.across == q.across);
    for (int64_t k = 0; k < 4 * p.rows * p.across * 3; k++)
        if (!(p.values[k] == q.values[k]) && !(isnan(p.values[k]) && isnan(q.values[k])))
            ck_abort_msg("value %lld of the pictures: %g and %g", (long long)k, (double)p.values[k],
                         (double)q.values[k]);
    picture_free(&p);
    picture_free(&q);
    free_example(&x);
    free_example(&y);
}
END_TEST

START_TEST(what_cannot_be_drawn_is_refused) {
    check_task_refused("arrow:object=16", "object=16|32 pixels|size=192|a twelfth");
    check_task_refused("arrow:length=40", "length=40|object=15|2 to 26.3");
    check_task_refused("arrow:length=1", "length=1|2 to 26.3");
    check_task_refused("arrow:size=192,scale=3", "scale=3 is 576|room for 512");
    check_task_refused("arrow:order=snake", "scale=2|take scale=1");
    check_task_refused("arrow:size=24,patch=5", "patch=5|24 x 24 pixels|divides both");
    check_task_refused("arrow:patch=65", "patch|64");
    struct task_choice c;
    open_task(&c, "arrow:size=24,scale=1,order=hilbert", 1);
    ck_assert(c.shape.reading.visit && c.shape.T_eval == 0);
}
END_TEST

Suite *check_arrow(void) {
    Suite *suite = suite_create("arrow");
    TCase *tests = tcase_create("arrow");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_loop_test(tests, a_label_is_what_the_ray_says, 0, 2);
    tcase_add_test(tests, what_is_drawn_is_uniform);
    tcase_add_loop_test(tests, a_picture_shows_its_scene, 0, 2);
    tcase_add_test(tests, tests_have_images_of_both_sizes);
    tcase_add_test(tests, pictures_have_room_for_both_sizes);
    tcase_add_test(tests, patches_hold_the_pixels);
    tcase_add_test(tests, what_cannot_be_drawn_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_images.c - orders of visit by hand and by rule, generated images and their distributions, and the picture of
 * examples that `lrnn data show --png` writes. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "harness/plot/picture.h"
#include "tests/lib/chi_square.h"
#include "tests/lib/scratch.h"
#include "tests/tasks/task_examples.h"

/* --- orders ------------------------------------------------------------------------------------------------------- */

static const char *const orders[] = {"raster", "snake", "morton", "hilbert", "bitrev", "numpy"};
#define N_ORDERS (int)(sizeof orders / sizeof *orders)

static int32_t visited(const struct task_shape *s, int64_t t) {
    return s->reading.visit ? s->reading.visit[t] : (int32_t)t;
}

/* Each pixel once, and with pad=yes -1 wherever there is none. */
START_TEST(orders_are_permutations) {
    static const int sizes[] = {8, 13, 28, 32};
    for (int i = 0; i < 4 * 4; i++) {
        char text[100];
        struct task_choice c;
        int size = sizes[i / 4], pad = i % 4 / 2, seen[32 * 32] = {0}, outside = 0;
        snprintf(text, sizeof text, "digits:size=%d,order=%s,pad=%s,transpose=%s", size, orders[_i], pad ? "yes" : "no",
                 i % 2 ? "yes" : "no");
        open_task(&c, text, 1);
        for (int64_t t = 0; t < c.shape.T; t++) {
            int32_t at = visited(&c.shape, t);
            if (at < -1 || at >= size * size) ck_abort_msg("%s: pixel %d", text, at);
            if (at < 0)
                outside++;
            else
                seen[at]++;
        }
        for (int at = 0; at < size * size; at++)
            if (seen[at] != 1) ck_abort_msg("%s: pixel %d is visited %d times", text, at, seen[at]);
        int side = size <= 8 ? 8 : size <= 16 ? 16 : 32;
        ck_assert_int_eq(outside, pad ? side * side - size * size : 0);
        ck_assert(c.shape.height == size && c.shape.width == size);
    }
}
END_TEST

/* Beginnings worked out by hand; numpy's were printed by numpy.random.RandomState(92916).permutation(784). */
START_TEST(orders_begin_as_they_are_defined) {
    static const struct {
        const char *task;
        int first[12];
    } want[] = {{"digits:order=morton", {0, 1, 28, 29, 2, 3, 30, 31, 56, 57, 84, 85}},
                {"digits:order=morton,transpose=yes", {0, 28, 1, 29, 56, 84, 57, 85, 2, 30, 3, 31}},
                {"digits:order=snake,size=8", {0, 1, 2, 3, 4, 5, 6, 7, 15, 14, 13, 12}},
                {"digits:order=hilbert,size=8", {0, 8, 9, 1, 2, 3, 11, 10, 18, 19, 27, 26}},
                {"digits:order=bitrev", {0, 512, 256, 768, 128, 640, 384, 64, 576, 320, 192, 704}},
                {"digits:order=numpy", {319, 576, 323, 107, 355, 716, 197, 20, 625, 60, 443, 620}}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct task_choice c;
        open_task(&c, want[i].task, 1);
        for (int t = 0; t < 12; t++)
            if (visited(&c.shape, t) != want[i].first[t])
                ck_abort_msg("%s: pixel %d at place %d, not %d", want[i].task, visited(&c.shape, t), t,
                             want[i].first[t]);
    }
}
END_TEST

START_TEST(hilbert_goes_from_neighbour_to_neighbour) {
    struct task_choice c;
    open_task(&c, "digits:size=32,order=hilbert", 1);
    for (int64_t t = 1; t < c.shape.T; t++) {
        int a = visited(&c.shape, t - 1), b = visited(&c.shape, t);
        if (abs(a / 32 - b / 32) + abs(a % 32 - b % 32) != 1) ck_abort_msg("from %d to %d", a, b);
    }
}
END_TEST

/* Every order has the same pictures. */
START_TEST(an_order_moves_pixels_and_changes_none) {
    static const char *const tasks[] = {"digits:size=13", "shapes:size=13"};
    for (int i = 0; i < 2; i++) {
        char text[100];
        struct task_choice plain, other;
        snprintf(text, sizeof text, "%s,order=%s,pad=yes", tasks[i], orders[_i]);
        open_task(&plain, tasks[i], 7);
        open_task(&other, text, 7);
        struct example a = new_example(&plain.shape), b = new_example(&other.shape);
        int64_t C = plain.shape.channels;
        fill_example(&plain, SPLIT_TRAIN, 11, 0, &a);
        fill_example(&other, SPLIT_TRAIN, 11, 0, &b);
        ck_assert(a.targets[0] == b.targets[0] && b.length == 256);
        for (int64_t t = 0; t < other.shape.T * C; t++) {
            int32_t at = visited(&other.shape, t / C);
            double want = at < 0 ? 0 : (double)a.values[at * C + t % C];
            if ((double)b.values[t] != want) ck_abort_msg("%s: %g at %d", text, (double)b.values[t], (int)t);
        }
        free_example(&a);
        free_example(&b);
    }
}
END_TEST

/* --- distributions ------------------------------------------------------------------------------------------------ */

/* Sums over examples of a task. */
struct moments {
    int64_t labels[10], n;
    double sum, squares, left, right, top, bottom;
};

static void measure(const char *text, enum split split, int64_t n, struct moments *m) {
    struct task_choice c;
    open_task(&c, text, 3);
    struct example x = new_example(&c.shape);
    int64_t W = c.shape.width, H = c.shape.height, C = c.shape.channels;
    *m = (struct moments){.n = n};
    for (int64_t i = 0; i < n; i++) {
        double half[4] = {0, 0, 0, 0}, mean;
        fill_example(&c, split, i, 0, &x);
        m->labels[x.targets[0]]++;
        for (int64_t t = 0; t < H * W * C; t++) {
            half[t / C % W >= W / 2] += (double)x.values[t];
            half[2 + (t / C / W >= H / 2)] += (double)x.values[t];
        }
        mean = (half[0] + half[1]) / (double)(H * W * C);
        m->sum += mean;
        m->squares += mean * mean;
        m->left += half[0], m->right += half[1], m->top += half[2], m->bottom += half[3];
    }
    free_example(&x);
}

START_TEST(labels_are_uniform_in_every_split) {
    static const char *const tasks[] = {"digits:size=8", "shapes:size=12"};
    for (int i = 0; i < 2 * SPLIT_COUNT; i++) {
        struct moments m;
        measure(tasks[i / SPLIT_COUNT], (enum split)(i % SPLIT_COUNT), 3000, &m);
        double z = chi_square_z(m.labels, 10, m.n);
        ck_assert_msg(fabs(z) < 3, "%s, split %d: labels are %.1f sigma from uniform", tasks[i / SPLIT_COUNT],
                      i % SPLIT_COUNT, z);
    }
}
END_TEST

/* Ground and shape have independent colours, uniform in the cube of [-1, 1): the mean of all values is 0, and no half
 * of the picture is brighter. (Rounding to bytes and cutting at the ends are symmetric.) */
START_TEST(colours_of_shapes_are_uniform) {
    struct moments m;
    measure("shapes:size=16", SPLIT_TRAIN, 3000, &m);
    double mean = m.sum / (double)m.n, sd = sqrt(m.squares / (double)m.n - mean * mean);
    ck_assert_msg(fabs(mean) < 3 * sd / sqrt((double)m.n), "mean %g, sd of an image %g", mean, sd);
    ck_assert_msg(0.2 < sd && sd < 0.6, "sd of an image %g", sd);
    double half = 16 * 8 * 3 * (double)m.n, bound = 3 * 2 * sd / sqrt((double)m.n);
    ck_assert_msg(fabs(m.left - m.right) / half < bound, "left %g right %g", m.left / half, m.right / half);
    ck_assert_msg(fabs(m.top - m.bottom) / half < bound, "top %g bottom %g", m.top / half, m.bottom / half);
}
END_TEST

/* A pixel of the ground is max(0, noise z) of a z near normal: half of them are black, and the squares of the others
 * have the mean noise^2. */
START_TEST(the_noise_of_digits_is_what_it_says) {
    struct task_choice c;
    open_task(&c, "digits:noise=0.2,clutter=0", 3);
    struct example x = new_example(&c.shape);
    int64_t n = 0, black = 0;
    double squares = 0;
    for (int64_t i = 0; i < 2000; i++) {
        fill_example(&c, SPLIT_TRAIN, i, 0, &x);
        for (int corner = 0; corner < 4; corner++) { /* which no digit reaches */
            double v = (double)x.values[(corner / 2) * 27 * 28 + (corner % 2) * 27];
            n++;
            black += v == 0;
            squares += v * v;
        }
    }
    double sigma = sqrt((double)n) / 2;
    ck_assert_msg(fabs((double)black - (double)n / 2) < 3 * sigma, "%lld of %lld are black", (long long)black,
                  (long long)n);
    /* z^2 has variance 1.7 for the sum of four bytes, about 1.1 for its half */
    double want = 0.04 * (double)n / 2, spread = 0.04 * sqrt((double)n * 1.1);
    ck_assert_msg(fabs(squares - want) < 3 * spread, "sum of squares %g, expected %g", squares, want);
    free_example(&x);
}
END_TEST

/* Two thirds of the pictures are told apart by their distance from the mean picture of each digit, which is far above
 * chance, and a tenth at least is not. */
START_TEST(digits_are_legible_and_not_trivial) {
    struct task_choice c;
    open_task(&c, "digits:size=14", 3);
    struct example x = new_example(&c.shape);
    double mean[10][196] = {{0}};
    int64_t count[10] = {0}, right = 0, n = 2000, tests = 1000;
    for (int64_t i = 0; i < n; i++) {
        fill_example(&c, SPLIT_TRAIN, i, 0, &x);
        count[x.targets[0]]++;
        for (int t = 0; t < 196; t++) mean[x.targets[0]][t] += (double)x.values[t];
    }
    for (int64_t i = 0; i < tests; i++) {
        double best = INFINITY;
        int label = -1;
        fill_example(&c, SPLIT_TEST, i, 0, &x);
        for (int k = 0; k < 10; k++) {
            double d = 0;
            for (int t = 0; t < 196; t++) {
                double e = (double)x.values[t] - mean[k][t] / (double)count[k];
                d += e * e;
            }
            if (d < best) best = d, label = k;
        }
        right += label == x.targets[0];
    }
    ck_assert_msg(right > tests / 2 && right < tests * 9 / 10, "%lld of %lld", (long long)right, (long long)tests);
    free_example(&x);
}
END_TEST

/* In whichever order patches are visited, each holds the pixels of its square. */
START_TEST(patches_are_visited_in_every_order) {
    char text[80];
    struct task_choice plain, cut;
    snprintf(text, sizeof text, "shapes:size=12,patch=3,order=%s", orders[_i]);
    open_task(&plain, "shapes:size=12", 3);
    open_task(&cut, text, 3);
    ck_assert(cut.shape.T == 16 && cut.shape.channels == 27 && cut.shape.height == 4 && cut.shape.width == 4);
    ck_assert((cut.shape.reading.visit == NULL) == (_i == 0));
    struct example x = new_example(&plain.shape), y = new_example(&cut.shape);
    fill_example(&plain, SPLIT_TRAIN, 0, 0, &x);
    fill_example(&cut, SPLIT_TRAIN, 0, 0, &y);
    for (int k = 0; k < 16 * 27; k++) {
        int patch = visited(&cut.shape, k / 27), row = patch / 4 * 3 + k % 27 / 9, column = patch % 4 * 3 + k % 9 / 3;
        if (!(y.values[k] == x.values[(row * 12 + column) * 3 + k % 3])) ck_abort_msg("%s: value %d", text, k);
    }
    free_example(&x);
    free_example(&y);
}
END_TEST

/* --- pictures ----------------------------------------------------------------------------------------------------- */

/* In another order than row by row, a pixel of the picture is the pixel of the image. */
START_TEST(pictures_show_images_as_they_were) {
    char folder[SCRATCH_BYTES], path[SCRATCH_BYTES + 20];
    struct task_choice c;
    struct picture p;
    struct error e = {ST_OK, ""};
    open_task(&c, "digits:size=8,noise=0,order=hilbert", 3);
    struct example x = new_example(&c.shape);
    ck_assert_msg(picture_make(&p, &c.shape, SPLIT_TRAIN, 3, &e) == ST_OK, "%s", e.text);
    float most = 0;
    for (int i = 0; i < 3; i++) {
        fill_example(&c, SPLIT_TRAIN, i, 0, &x);
        picture_add(&p, i, &x);
        for (int t = 0; t < 64; t++) {
            ck_assert(p.values[i * 64 + c.shape.reading.visit[t]] == (float)x.values[t]);
            if ((float)x.values[t] > most) most = (float)x.values[t];
        }
    }
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/sheet.png", folder);
    ck_assert_msg(picture_write(&p, path, &e) == ST_OK, "%s", e.text);
    ck_assert(p.columns == 2 && p.zoom == 12);
    for (int y = 0; y < 8; y++) { /* the third image: second row, first column */
        int64_t at = ((4 + 8 * 12 + 12 + 4 + y * 12) * p.width + 4 + 5 * 12) * 3;
        ck_assert_int_eq(p.pixels[at], (int)(255 * (p.values[2 * 64 + y * 8 + 5] / most) + 0.5f));
    }
    ck_assert_int_eq(picture_write(&p, "no/such/folder/x.png", &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, "cannot write no/such/folder/x.png"), "%s", e.text);
    picture_free(&p);
    free_example(&x);
    open_task(&c, "parity", 3);
    ck_assert_int_eq(picture_make(&p, &c.shape, SPLIT_TRAIN, 3, &e), ST_USAGE);
    scratch_remove(folder);
}
END_TEST

/* No file may grow beyond `bytes`: writes fail as on a full disk. */
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

START_TEST(a_full_disk_leaves_the_earlier_picture) {
    char folder[SCRATCH_BYTES], path[SCRATCH_BYTES + 20];
    struct task_choice c;
    struct picture p;
    struct error e = {ST_OK, ""};
    size_t before, after;
    signal(SIGXFSZ, SIG_IGN);
    open_task(&c, "digits:size=8", 3);
    struct example x = new_example(&c.shape);
    ck_assert_msg(picture_make(&p, &c.shape, SPLIT_TRAIN, 1, &e) == ST_OK, "%s", e.text);
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/sheet.png", folder);
    fill_example(&c, SPLIT_TRAIN, 0, 0, &x);
    picture_add(&p, 0, &x);
    ck_assert_msg(picture_write(&p, path, &e) == ST_OK, "%s", e.text);
    char *earlier = slurp(path, &before);
    fill_example(&c, SPLIT_TRAIN, 1, 0, &x);
    picture_add(&p, 0, &x);
    limit_files(100); /* a part fits */
    enum status status = picture_write(&p, path, &e);
    limit_files(RLIM_INFINITY); /* before an assertion, of which libcheck writes into a file */
    ck_assert_int_eq(status, ST_FAIL);
    ck_assert_msg(strstr(e.text, "sheet.png: File too large"), "%s", e.text);
    char *now = slurp(path, &after);
    ck_assert_uint_eq(after, before);
    ck_assert_mem_eq(now, earlier, after);
    ck_assert_int_eq(scratch_count(folder, ".tmp"), 0);
    free(earlier);
    free(now);
    picture_free(&p);
    free_example(&x);
    scratch_remove(folder);
}
END_TEST

Suite *check_images(void) {
    Suite *suite = suite_create("images");
    TCase *tests = tcase_create("images");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_loop_test(tests, orders_are_permutations, 0, N_ORDERS);
    tcase_add_test(tests, orders_begin_as_they_are_defined);
    tcase_add_test(tests, hilbert_goes_from_neighbour_to_neighbour);
    tcase_add_loop_test(tests, an_order_moves_pixels_and_changes_none, 0, N_ORDERS);
    tcase_add_test(tests, labels_are_uniform_in_every_split);
    tcase_add_test(tests, colours_of_shapes_are_uniform);
    tcase_add_test(tests, the_noise_of_digits_is_what_it_says);
    tcase_add_test(tests, digits_are_legible_and_not_trivial);
    tcase_add_loop_test(tests, patches_are_visited_in_every_order, 0, (int)(sizeof orders / sizeof *orders));
    tcase_add_test(tests, pictures_show_images_as_they_were);
    tcase_add_test(tests, a_full_disk_leaves_the_earlier_picture);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_molecules.c - drawn molecules: valences hold, bonds join all atoms, labels say what they should, counting atoms
 * tells nothing, folds divide a fixed set. */
#include <math.h>
#include <string.h>

#include "tests/lib/chi_square.h"
#include "tests/tasks/task_examples.h"

enum { ATOMS = 64, ELEMENTS = 5, FAR = 1000 };

/* Shortest ways between all atoms, by Floyd and Warshall. */
static void measure(const struct task_shape *s, const struct example *x, int way[ATOMS][ATOMS], int degree[ATOMS]) {
    struct links_view l = {x->links, s->links, x->length, false};
    int32_t a, b;
    for (int i = 0; i < x->length; i++)
        for (int j = 0; j < x->length; j++) way[i][j] = i == j ? 0 : FAR;
    for (int i = 0; i < ATOMS; i++) degree[i] = 0;
    for (int64_t e = 0; e < s->links.edges; e++) {
        if (!links_edge(&l, e, &a, &b)) continue;
        if (a >= b || way[a][b] == 1) ck_abort_msg("bond %d-%d", a, b);
        way[a][b] = way[b][a] = 1;
        degree[a]++;
        degree[b]++;
    }
    for (int k = 0; k < x->length; k++)
        for (int i = 0; i < x->length; i++)
            for (int j = 0; j < x->length; j++)
                if (way[i][k] + way[k][j] < way[i][j]) way[i][j] = way[i][k] + way[k][j];
}

static const struct {
    const char *task;
    int distance, fewest, most;
} cases[] = {{"molecules", 2, 12, 24},
             {"molecules:distance=1", 1, 12, 24},
             {"molecules:distance=4,min_nodes=16,max_nodes=40", 4, 16, 40},
             {"molecules:min_nodes=8,max_nodes=8", 2, 8, 8}};

START_TEST(molecules_are_what_their_labels_say) {
    static const int valence[ELEMENTS] = {4, 3, 2, 1, 1};
    static int way[ATOMS][ATOMS], degree[ATOMS];
    struct task_choice c;
    open_task(&c, cases[_i].task, 3);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < 400; i++) {
        bool pair = false;
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        measure(&c.shape, &x, way, degree);
        if (x.length < cases[_i].fewest || x.length > cases[_i].most) ck_abort_msg("%d atoms", x.length);
        for (int a = 0; a < x.length; a++) {
            if (x.tokens[a] < 0 || x.tokens[a] >= ELEMENTS || degree[a] > valence[x.tokens[a]])
                ck_abort_msg("molecule %d: element %d has %d bonds", (int)i, x.tokens[a], degree[a]);
            for (int b = 0; b < x.length; b++) {
                if (way[a][b] == FAR) ck_abort_msg("molecule %d: atoms %d and %d are not joined", (int)i, a, b);
                pair |= x.tokens[a] == 1 && x.tokens[b] == 2 && way[a][b] == cases[_i].distance;
            }
        }
        if (pair != (x.targets[0] == 1)) ck_abort_msg("molecule %d of label %d", (int)i, x.targets[0]);
    }
    free_example(&x);
}
END_TEST

/* Labels are half and half; sizes, and of either label the elements, are spread alike: within 3 sigma. */
START_TEST(counting_tells_nothing) {
    struct task_choice c;
    open_task(&c, "molecules:graphs=5000", 3);
    struct example x = new_example(&c.shape);
    int64_t sizes[13] = {0}, labels[2] = {0}, rings[2] = {0}, n = c.shape.examples[SPLIT_TRAIN];
    double halogens[2] = {0}, atoms[2] = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t count[ELEMENTS] = {0}, bonds = 0;
        int32_t a, b;
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        struct links_view l = {x.links, c.shape.links, x.length, false};
        for (int64_t e = 0; e < l.size.edges; e++) bonds += links_edge(&l, e, &a, &b);
        for (int k = 0; k < x.length; k++) count[x.tokens[k]]++;
        if (count[1] != 2 || count[2] != 2 || count[3] + count[4] > 2) ck_abort_msg("other numbers of elements");
        sizes[x.length - 12]++;
        labels[x.targets[0]]++;
        rings[x.targets[0]] += bonds - (x.length - 1);
        halogens[x.targets[0]] += (double)(count[3] + count[4]);
        atoms[x.targets[0]] += x.length;
    }
    ck_assert_int_eq(labels[0], labels[1]);
    ck_assert(chi_square_z(sizes, 13, n) < 3);
    double half = (double)n / 2, sigma = sqrt(2 / half);
    ck_assert_double_le(fabs(halogens[0] - halogens[1]) / half, 3 * sigma * sqrt(2.0 / 3));
    ck_assert_double_le(fabs(atoms[0] - atoms[1]) / half, 3 * sigma * sqrt(14));
    ck_assert_double_le(fabs((double)(rings[0] - rings[1])) / half, 4 * sigma * sqrt(2.0 / 3));
    free_example(&x);
}
END_TEST

/* Hash of an example's atoms and bonds. */
static uint64_t print_of(const struct task_shape *s, const struct example *x) {
    uint64_t hash = 1469598103934665603u;
    for (int64_t i = 0; i < s->T; i++) hash = (hash ^ (uint64_t)(uint32_t)x->tokens[i]) * 1099511628211u;
    for (int64_t i = 0; i < links_words(s->links); i++)
        hash = (hash ^ (uint64_t)(uint32_t)x->links[i]) * 1099511628211u;
    return hash;
}

enum { SET = 200, FOLDS = 10 };

static int prints_of(int fold, enum split split, uint64_t *prints) {
    struct task_choice c;
    char text[100];
    snprintf(text, sizeof text, "molecules:graphs=%d,fold=%d", SET, fold);
    open_task(&c, text, (uint64_t)fold);
    struct example x = new_example(&c.shape);
    int n = (int)c.shape.examples[split], ones = 0;
    for (int i = 0; i < n; i++) {
        fill_example(&c, split, i, -7, &x);
        prints[i] = print_of(&c.shape, &x);
        ones += x.targets[0];
    }
    ck_assert_int_eq(2 * ones, n);
    free_example(&x);
    return n;
}

static int shared(const uint64_t *a, int n, const uint64_t *b, int m) {
    int both = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) both += a[i] == b[j];
    return both;
}

/* Stratified; every graph is in the test of one fold, in the validation of another one and in no two parts of one. */
START_TEST(folds_divide_a_fixed_set) {
    uint64_t test[FOLDS][SET], val[SET], train[SET], all[SET];
    int total = 0;
    for (int fold = 0; fold < FOLDS; fold++) {
        int n = prints_of(fold, SPLIT_TEST, test[fold]), m = prints_of(fold, SPLIT_VAL, val);
        int k = prints_of(fold, SPLIT_TRAIN, train);
        ck_assert_int_eq(n + m + k, SET);
        ck_assert_int_eq(shared(test[fold], n, val, m) + shared(test[fold], n, train, k) + shared(val, m, train, k), 0);
        ck_assert_int_eq(shared(all, total, test[fold], n), 0);
        memcpy(all + total, test[fold], (size_t)n * sizeof *all);
        total += n;
    }
    ck_assert_int_eq(total, SET);
    ck_assert_int_eq(shared(all, total, train, 160), 160);
}
END_TEST

START_TEST(what_does_not_fit_is_refused) {
    check_task_refused("molecules:graphs=1010", "1010|20");
    check_task_refused("molecules:min_nodes=30", "30|24");
    check_task_refused("molecules:fold=10", "fold|10");
    check_task_refused("molecules:max_nodes=65", "max_nodes|64");
}
END_TEST

Suite *check_molecules(void);
Suite *check_molecules(void) {
    Suite *suite = suite_create("molecules");
    TCase *tests = tcase_create("molecules");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_loop_test(tests, molecules_are_what_their_labels_say, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tests, counting_tells_nothing);
    tcase_add_test(tests, folds_divide_a_fixed_set);
    tcase_add_test(tests, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}

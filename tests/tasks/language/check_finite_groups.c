/* check_finite_groups.c - products of the groups of word problems. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "tests/tasks/task_examples.h"

START_TEST(impossible_groups_are_refused) {
    static const char *const names[] = {"s6",  "s0",    "a6",  "z0",  "z1001",
                                        "q4",  "s",     "s05", "s5x", "S5",
                                        "z-3", "z1e2",  "z1k", "z ",  "z99999999999999999999",
                                        "",    "d501",  "h11", "h1",  "q10",
                                        "xz2", "z2xxz2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[64], words[128];
        snprintf(text, sizeof text, "word-problem:group=%s", names[i]);
        snprintf(words, sizeof words,
                 "unknown group '%s'|s1..s5, a1..a5, z1..z1000, d1..d500, q8|a product such as z2xs3", names[i]);
        check_task_refused(text, words);
    }
}
END_TEST

START_TEST(s3_has_the_multiplication_table_of_the_specification) {
    static const char *const rows[6] = {"012345", "104523", "230154", "325401", "451032", "543210"};
    struct task_choice c;
    open_task(&c, "s3", 1);
    struct example x = new_example(&c.shape);
    int seen[6][6] = {{0}};
    for (int64_t i = 0; i < 200; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        ck_assert_int_eq(x.length, 16);
        ck_assert_int_eq(x.targets[0], x.tokens[0]);
        for (int t = 1; t < 16; t++) {
            ck_assert_int_eq(x.targets[t], rows[x.targets[t - 1]][x.tokens[t]] - '0');
            seen[x.targets[t - 1]][x.tokens[t]] = 1;
        }
    }
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++) ck_assert_int_eq(seen[a][b], 1);
    free_example(&x);
}
END_TEST

/* One-line tuples of S_n or A_n as decimal numbers, in ascending order: all numbers are tried. */
static int tuples(int degree, bool even_only, int list[120]) {
    int n = 0, limit = 1;
    for (int i = 0; i < degree; i++) limit *= 10;
    for (int number = 0; number < limit; number++) {
        int digit[5] = {0}, used = 0, inversions = 0;
        for (int i = degree - 1, rest = number; i >= 0; i--, rest /= 10) digit[i] = rest % 10;
        for (int i = 0; i < degree; i++) {
            if (digit[i] < degree) used |= 1 << digit[i];
            for (int j = 0; j < i; j++) inversions += digit[j] > digit[i];
        }
        if (used == (1 << degree) - 1 && (!even_only || inversions % 2 == 0)) list[n++] = number;
    }
    return n;
}

/* (a b)(i) = a(b(i)) on tuples written as numbers. */
static int compose(int a, int b, int degree) {
    int place[5] = {0}, result = 0;
    for (int i = degree - 1; i >= 0; i--, a /= 10) place[i] = a % 10;
    for (int i = degree - 1, unit = 1; i >= 0; i--, b /= 10, unit *= 10) result += unit * place[b % 10];
    return result;
}

static void check_permutation_group(const char *group, int degree, bool even_only) {
    int list[120], n = tuples(degree, even_only, list);
    int64_t count = examples_to_check(300), wrong = 0, wrong_order = 0;
    char text[96];
    struct task_choice c;
    snprintf(text, sizeof text, "word-problem:group=%s,length=20,n_train=%lld,n_val=1,n_test=1", group,
             (long long)count);
    open_task(&c, text, 1);
    ck_assert_int_eq(c.shape.vocab_in, n);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < count; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        int y = list[0];
        for (int t = 0; t < 20; t++) {
            int newest_last = compose(list[x.tokens[t]], y, degree);
            y = compose(y, list[x.tokens[t]], degree);
            wrong += list[x.targets[t]] != y;
            wrong_order += newest_last != y;
        }
    }
    ck_assert_msg(wrong == 0, "%s: %lld labels are wrong", group, (long long)wrong);
    if (n > 3)
        ck_assert_msg(wrong_order > count * 20 / 4, "%s: the order of composition does not show", group);
    else
        ck_assert_int_eq(wrong_order, 0); /* commutative */
    free_example(&x);
    labels_checked(group, count, 20 * count);
}

START_TEST(permutation_groups_compose_tuples) {
    check_permutation_group("s2", 2, false);
    check_permutation_group("s3", 3, false);
    check_permutation_group("s4", 4, false);
    check_permutation_group("s5", 5, false);
    check_permutation_group("a3", 3, true);
    check_permutation_group("a4", 4, true);
    check_permutation_group("a5", 5, true);
}
END_TEST

START_TEST(a5_has_sixty_elements_in_the_order_of_the_specification) {
    static const int first[4] = {1234, 1342, 1423, 2143}; /* 01234, 01342, 01423, 02143 */
    int list[120];
    ck_assert_int_eq(tuples(5, true, list), 60);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(list[i], first[i]);
    struct task_choice c;
    open_task(&c, "a5", 1);
    ck_assert_int_eq(c.shape.vocab_in, 60);
    ck_assert_int_eq(c.shape.vocab_out, 60);
}
END_TEST

START_TEST(cyclic_groups_add_residues) {
    static const int sizes[] = {2, 7, 60, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t count = examples_to_check(100);
        char text[96];
        struct task_choice c;
        snprintf(text, sizeof text, "word-problem:group=z%d,length=33,n_val=%lld", sizes[s], (long long)count);
        open_task(&c, text, 1);
        ck_assert_int_eq(c.shape.vocab_in, sizes[s]);
        struct example x = new_example(&c.shape);
        for (int64_t i = 0; i < count; i++) {
            int sum = 0, wrong = 0;
            fill_example(&c, SPLIT_VAL, i, -7, &x);
            for (int t = 0; t < 33; t++) wrong += x.targets[t] != (sum = (sum + x.tokens[t]) % sizes[s]);
            ck_assert_int_eq(wrong, 0);
        }
        free_example(&x);
        labels_checked(text, count, 33 * count);
    }
}
END_TEST

/* An element of a dihedral, dicyclic or Heisenberg group as a matrix: the first two have complex entries, the last one
 * whole numbers modulo n. */
struct matrix {
    double complex at[3][3];
};

static struct matrix matrix_of(char family, int n, int id) {
    struct matrix m = {{{0}}};
    if (family == 'h') {
        m.at[0][0] = m.at[1][1] = m.at[2][2] = 1;
        m.at[0][1] = id / (n * n);
        m.at[1][2] = id / n % n;
        m.at[0][2] = id % n;
        return m;
    }
    int turns = family == 'd' ? n : n / 2;
    double complex w = cexp(2 * M_PI * I * (id % turns) / turns);
    m.at[2][2] = 1;
    if (id < turns) {
        m.at[0][0] = w;
        m.at[1][1] = conj(w);
    } else { /* times s = (0 1, 1 0), or x = (0 -1, 1 0), whose square is -1 */
        m.at[0][1] = family == 'd' ? w : -w;
        m.at[1][0] = conj(w);
    }
    return m;
}

static struct matrix multiply(char family, int n, const struct matrix *a, const struct matrix *b) {
    struct matrix ab = {{{0}}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 3; k++) ab.at[i][j] += a->at[i][k] * b->at[k][j];
            if (family == 'h') ab.at[i][j] = (int)creal(ab.at[i][j]) % n;
        }
    return ab;
}

static bool same_matrix(const struct matrix *a, const struct matrix *b) {
    double apart = 0;
    for (int i = 0; i < 9; i++) apart += cabs(a->at[i / 3][i % 3] - b->at[i / 3][i % 3]);
    return apart < 1e-6;
}

static void check_matrix_group(const char *group, char family, int n, int order) {
    int64_t sequences = examples_to_check(1000);
    char text[96];
    struct task_choice c;
    snprintf(text, sizeof text, "word-problem:group=%s,length=20,n_train=%lld,n_val=1,n_test=1", group,
             (long long)sequences);
    open_task(&c, text, 1);
    ck_assert_int_eq(c.shape.vocab_in, order);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < sequences; i++) {
        struct matrix y = matrix_of(family, n, 0);
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        for (int t = 0; t < 20; t++) {
            struct matrix newest = matrix_of(family, n, x.tokens[t]), said = matrix_of(family, n, x.targets[t]);
            y = multiply(family, n, &y, &newest);
            if (!same_matrix(&y, &said)) ck_abort_msg("%s: sequence %d, position %d", group, (int)i, t);
        }
    }
    free_example(&x);
    labels_checked(group, sequences, 20 * sequences);
}

START_TEST(polygons_quaternions_and_heisenberg_groups_multiply_as_matrices) {
    check_matrix_group("d3", 'd', 3, 6);
    check_matrix_group("d7", 'd', 7, 14);
    check_matrix_group("q8", 'q', 8, 8);
    check_matrix_group("q20", 'q', 20, 20);
    check_matrix_group("h2", 'h', 2, 8);
    check_matrix_group("h3", 'h', 3, 27);
    check_matrix_group("h10", 'h', 10, 1000);
}
END_TEST

/* Each factor of a product goes its own way. */
START_TEST(a_product_of_groups_is_pairs) {
    int64_t count = examples_to_check(300);
    char text[96];
    struct task_choice c;
    snprintf(text, sizeof text, "word-problem:group=z4xs3xz2,length=20,n_train=%lld", (long long)count);
    open_task(&c, text, 1);
    ck_assert_int_eq(c.shape.vocab_in, 48);
    static const char *const rows[6] = {"012345", "104523", "230154", "325401", "451032", "543210"}; /* s3 */
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < count; i++) {
        int four = 0, three = 0, two = 0;
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        for (int t = 0; t < 20; t++) {
            four = (four + x.tokens[t] / 12) % 4;
            three = rows[three][x.tokens[t] / 2 % 6] - '0';
            two = (two + x.tokens[t]) % 2;
            if (x.targets[t] != 12 * four + 2 * three + two) ck_abort_msg("sequence %d, position %d", (int)i, t);
        }
    }
    free_example(&x);
    labels_checked("z4xs3xz2", count, 20 * count);
}
END_TEST

Suite *check_finite_groups(void) {
    Suite *suite = suite_create("finite_groups");
    TCase *tests = tcase_create("finite_groups");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_test(tests, impossible_groups_are_refused);
    tcase_add_test(tests, s3_has_the_multiplication_table_of_the_specification);
    tcase_add_test(tests, permutation_groups_compose_tuples);
    tcase_add_test(tests, a5_has_sixty_elements_in_the_order_of_the_specification);
    tcase_add_test(tests, cyclic_groups_add_residues);
    tcase_add_test(tests, polygons_quaternions_and_heisenberg_groups_multiply_as_matrices);
    tcase_add_test(tests, a_product_of_groups_is_pairs);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_brackets.c - texts of brackets are what their label says, by another way of looking: pairs are struck out until
 * none is left. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/chi_square.h"
#include "tests/tasks/task_examples.h"

/* Ids 2..9 are ( ) [ ] { } < >. Whether striking out neighbouring pairs leaves nothing; *deepest: how often at most a
 * pass over the text was needed. */
static bool balanced(const int32_t *tokens, int64_t length, int *deepest) {
    int32_t *left = malloc((size_t)(length + 1) * sizeof *left);
    int64_t n = 0, before = -1;
    for (int64_t t = 0; t < length; t++)
        if (tokens[t] >= 2 && tokens[t] < 10) left[n++] = tokens[t];
    for (*deepest = 0; n > 0 && n != before; ++*deepest) {
        int64_t kept = 0;
        before = n;
        for (int64_t i = 0; i < n; i++)
            if (i + 1 < n && left[i] % 2 == 0 && left[i + 1] == left[i] + 1)
                i++;
            else
                left[kept++] = left[i];
        n = kept;
    }
    free(left);
    return n == 0;
}

/* Brackets of each kind: opening less closing, 0 for all. */
static bool counts_agree(const int32_t *tokens, int64_t length) {
    int64_t count[4] = {0};
    for (int64_t t = 0; t < length; t++)
        if (tokens[t] >= 2 && tokens[t] < 10) count[(tokens[t] - 2) / 2] += tokens[t] % 2 ? -1 : 1;
    return !count[0] && !count[1] && !count[2] && !count[3];
}

/* Whether two closing brackets of different kinds stand side by side, letters aside. */
static bool has_swap(const int32_t *tokens, int64_t length) {
    int32_t before = 0;
    for (int64_t t = 0; t < length; t++) {
        if (tokens[t] < 2 || tokens[t] >= 10) continue;
        if (before % 2 && tokens[t] % 2 && before != tokens[t]) return true;
        before = tokens[t];
    }
    return false;
}

static const char *const labelled[] = {"brackets", "brackets:error=swap",
                                       "brackets:min_length=8,max_length=20,share=1,depth=3",
                                       "brackets:min_length=9,max_length=30,share=0.05,error=swap"};

START_TEST(labels_are_right) {
    struct task_choice c;
    open_task(&c, labelled[_i], 3);
    struct example x = new_example(&c.shape);
    int64_t labels[2] = {0}, n = _i < 2 ? 200 : 1000;
    int deepest, swaps = strstr(labelled[_i], "swap") != NULL;
    for (int64_t i = 0; i < n; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        labels[x.targets[0]]++;
        if (balanced(x.tokens, x.length, &deepest) != x.targets[0])
            ck_abort_msg("%s: text %d is not what its label says", labelled[_i], (int)i);
        if (x.targets[0] && deepest > (_i == 2 ? 3 : 16)) ck_abort_msg("text %d is %d deep", (int)i, deepest);
        if (counts_agree(x.tokens, x.length) != (swaps || x.targets[0])) ck_abort_msg("text %d: counts", (int)i);
        if (x.tokens[x.length - 1] != 1) ck_abort_msg("text %d has no end", (int)i);
    }
    double z = chi_square_z(labels, 2, n);
    ck_assert_msg(z < 3, "%lld of label 0, %lld of label 1", (long long)labels[0], (long long)labels[1]);
    free_example(&x);
}
END_TEST

/* Not even in the shortest texts does it tell the label whether there is something to exchange. */
START_TEST(texts_of_either_label_have_two_brackets_to_exchange) {
    struct task_choice c;
    open_task(&c, "brackets:min_length=8,max_length=12,share=1,depth=2,error=swap", 3);
    struct example x = new_example(&c.shape);
    ck_assert_int_eq(task_version(&c), 2);
    for (int64_t i = 0; i < 1000; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        if (!has_swap(x.tokens, x.length)) ck_abort_msg("text %d of label %d has none", (int)i, (int)x.targets[0]);
    }
    free_example(&x);
    open_task(&c, "brackets", 3);
    ck_assert_int_eq(task_version(&c), 1);
}
END_TEST

/* Lengths, letters and kinds of brackets are uniform, and a fifth of the characters are brackets. */
START_TEST(texts_are_drawn_evenly) {
    struct task_choice c;
    open_task(&c, "brackets:min_length=101,max_length=140", 3);
    struct example x = new_example(&c.shape);
    int64_t lengths[40] = {0}, letters[26] = {0}, kinds[4] = {0}, n_letters = 0, n_brackets = 0, n = 2000;
    for (int64_t i = 0; i < n; i++) {
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        lengths[x.length - 1 - 101]++;
        for (int64_t t = 0; t + 1 < x.length; t++) {
            if (x.tokens[t] >= 10) letters[x.tokens[t] - 10]++, n_letters++;
            if (x.tokens[t] < 10) n_brackets++;
            if (x.targets[0] && x.tokens[t] < 10 && x.tokens[t] % 2 == 0) kinds[(x.tokens[t] - 2) / 2]++;
        }
    }
    ck_assert(fabs(chi_square_z(lengths, 40, n)) < 3 && fabs(chi_square_z(letters, 26, n_letters)) < 3);
    ck_assert(chi_square_z(kinds, 4, kinds[0] + kinds[1] + kinds[2] + kinds[3]) < 3);
    double share = (double)n_brackets / (double)(n_brackets + n_letters);
    ck_assert_msg(fabs(share - 0.2) < 0.005, "%g of the characters are brackets", share);
    free_example(&x);
}
END_TEST

/* Judges by a bracket and the one before it: one that opens is closed by another kind, or an end is no end. */
static bool looks_balanced(const int32_t *tokens, int64_t length) {
    int32_t before = 0;
    for (int64_t t = 0; t < length; t++) {
        int32_t id = tokens[t];
        if (id < 2 || id >= 10) continue;
        if (id % 2 && (!before || (before % 2 == 0 && id != before + 1))) return false;
        before = id;
    }
    return before % 2;
}

/* Whoever remembers the last bracket alone is right as often as the floor says. */
START_TEST(the_floor_is_of_two_neighbours) {
    static const char *const settings[] = {"brackets:min_length=12,max_length=32,share=0.5",
                                           "brackets:min_length=12,max_length=32,share=0.5,error=swap",
                                           "brackets:max_length=1200", "brackets:max_length=1200,error=swap",
                                           "brackets:max_length=1200,error=swap,depth=2"};
    for (int k = 0; k < 5; k++) {
        struct task_choice c;
        int right = 0, n = 2000;
        open_task(&c, settings[k], 3);
        struct example x = new_example(&c.shape);
        for (int64_t i = 0; i < n; i++) {
            fill_example(&c, SPLIT_TRAIN, i, -7, &x);
            right += looks_balanced(x.tokens, x.length) == x.targets[0];
        }
        double share = (double)right / n;
        ck_assert_msg(fabs(share - c.shape.floor) < 0.03, "%s: %g, floor %g", settings[k], share, c.shape.floor);
        free_example(&x);
    }
}
END_TEST

Suite *check_brackets(void) {
    Suite *suite = suite_create("brackets");
    TCase *tests = tcase_create("brackets");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_loop_test(tests, labels_are_right, 0, (int)(sizeof labelled / sizeof *labelled));
    tcase_add_test(tests, texts_of_either_label_have_two_brackets_to_exchange);
    tcase_add_test(tests, texts_are_drawn_evenly);
    tcase_add_test(tests, the_floor_is_of_two_neighbours);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_regbench.c - strings of automata: each label is found again by an automaton that the test draws itself, and
 * from the string alone as far as that can be. $CHECK_EXAMPLES raises the number of examples from 400. */
#include <string.h>

#include "tasks/examples.h"
#include "tests/tasks/task_examples.h"

#define SYMBOLS 18 /* the task's defaults; the separator is the id after them */
#define STATES  12
#define IDS     512

/* An automaton as a table of next states, -1 where there is no edge. */
struct table {
    int next[STATES][SYMBOLS];
};

/* Draws an automaton by the recipe in the task's banner. The random numbers are all that it shares with the task. */
static struct table draw(struct rng *r) {
    struct table a;
    int order[SYMBOLS], n = 4 + (int)rng_below(r, 9);
    memset(a.next, -1, sizeof a.next);
    for (int i = 0; i < SYMBOLS; i++) order[i] = i;
    for (int state = -1; state < n; state++) { /* first the alphabet, then the symbols of each state's edges */
        int of = state < 0 ? SYMBOLS : n, count = state < 0 ? n : 1 + (int)rng_below(r, 4);
        for (int i = 0; i < count; i++) {
            int other = i + (int)rng_below(r, (uint64_t)(of - i)), symbol = order[other];
            order[other] = order[i];
            order[i] = symbol;
        }
        for (int i = 0; state >= 0 && i < count; i++) {
            int to = (int)rng_below(r, (uint64_t)n);
            if (count == 1) to = (state + 1 + (int)rng_below(r, (uint64_t)n - 1)) % n;
            a.next[state][order[i]] = to;
        }
    }
    return a;
}

/* The state before each id of a string. False: a word is no walk of the automaton. */
static bool walk(const struct table *a, const int32_t *string, int length, int *state) {
    for (int t = 0, now = 0; t < length; t++) {
        state[t] = now;
        now = string[t] == SYMBOLS ? 0 : a->next[now][string[t]];
        if (now < 0) return false;
    }
    return true;
}

static int edges(const struct table *a, int state) {
    int n = 0;
    for (int symbol = 0; symbol < SYMBOLS; symbol++) n += a->next[state][symbol] >= 0;
    return n;
}

/* Whether the id at t is the only one that may stand there, and an earlier id has left that state as well. */
static bool known(const struct table *a, const int32_t *string, const int *state, int t) {
    if (string[t] == SYMBOLS || edges(a, state[t]) != 1) return false;
    for (int k = 0; k < t; k++)
        if (state[k] == state[t] && string[k] != SYMBOLS) return true;
    return false;
}

/* Strings without an answer are drawn again, with another automaton: each took a random number for the length of its
 * first word, one for each symbol and one for the length of the word after each separator. */
START_TEST(scored_is_what_the_automaton_leaves_no_choice_of) {
    int64_t count = examples_to_check(400), wrong = 0, scored = 0;
    struct task_choice c;
    open_task(&c, "regbench:n_val=20k,n_test=20k", 7);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < count; i++) {
        enum split split = i % 2 ? SPLIT_VAL : SPLIT_TEST;
        fill_example(&c, split, i / 2, -7, &x);
        ck_assert_int_eq(x.length, IDS - 1);
        int state[IDS], string[IDS], length = x.targets[IDS - 2] == IGNORED ? IDS - 1 : IDS;
        memcpy(string, x.tokens, (IDS - 1) * sizeof *string);
        string[IDS - 1] = x.targets[IDS - 2]; /* the last id is a target alone */
        struct rng r = example_rng(7, split, i / 2);
        struct table a = draw(&r);
        for (int redrawn = 0; !walk(&a, string, length, state); redrawn++) {
            ck_assert_msg(redrawn < 100, "example %lld is no string of an automaton", (long long)i);
            for (int t = 0; t < 1 + IDS; t++) rng_u32(&r);
            a = draw(&r);
        }
        for (int t = 1; t < length; t++) {
            bool answer = known(&a, string, state, t);
            scored += answer;
            wrong += x.targets[t - 1] != (answer ? string[t] : IGNORED);
        }
    }
    free_example(&x);
    ck_assert_msg(wrong == 0 && scored >= count, "%lld labels of %lld examples are wrong, %lld are scored",
                  (long long)wrong, (long long)count, (long long)scored);
    labels_checked("regbench", count, scored);
}
END_TEST

/* From the string alone: a scored id is right in every word, so no word with the same beginning goes on with another.
 * The floor is the id that followed the newest one when it was last seen. */
START_TEST(what_must_come_next_is_all_that_ever_does) {
    struct task_choice c;
    open_task(&c, "regbench", 1);
    struct example x = new_example(&c.shape);
    int64_t scored = 0, right = 0;
    for (int64_t i = 0; i < 300; i++) {
        fill_example(&c, SPLIT_TEST, i, -7, &x);
        int separator = (int)c.shape.vocab_in - 1, start = 0;
        for (int t = 0; t < x.length; t++) {
            if (x.tokens[t] == separator) start = t + 1;
            if (x.targets[t] == IGNORED) continue;
            ck_assert_int_ne(x.targets[t], separator);
            if (t + 1 < x.length) ck_assert_int_eq(x.targets[t], x.tokens[t + 1]);
            scored++;
            /* every other word with the same beginning goes on alike, or ends */
            int m = t + 1 - start, last = -1;
            for (int k = 0; k + m < x.length; k++) {
                if ((k == 0 || x.tokens[k - 1] == separator) && k + m <= x.length &&
                    memcmp(x.tokens + k, x.tokens + start, (size_t)m * sizeof *x.tokens) == 0)
                    ck_assert(x.tokens[k + m] == x.targets[t] || x.tokens[k + m] == separator);
            }
            for (int k = t - 1; k >= 0 && last < 0; k--)
                if (x.tokens[k] == x.tokens[t]) last = x.tokens[k + 1];
            right += last == x.targets[t];
        }
    }
    ck_assert_double_eq_tol((double)right / (double)scored, c.shape.floor, 0.05);
    free_example(&x);
}
END_TEST

Suite *check_regbench(void);
Suite *check_regbench(void) {
    Suite *suite = suite_create("regbench");
    TCase *tests = tcase_create("regbench");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_test(tests, scored_is_what_the_automaton_leaves_no_choice_of);
    tcase_add_test(tests, what_must_come_next_is_all_that_ever_does);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_faults.c - the short forms of what `make torture` does for an hour. */
#include <string.h>

#include "tests/faults/exercise.h"
#include "tests/testing.h"

static void expect_nothing_lost(const struct tally *t) {
    ck_assert_msg(t->bad == 0, "%lld of %lld: %s", (long long)t->bad, (long long)t->tried, t->first);
    ck_assert_int_gt(t->tried, 0);
}

/* Training: every call of the kinds that are few, some of those that are many, once and for ever. */
START_TEST(a_call_that_fails_is_said_and_loses_nothing) {
    static const long few = 6;
    for (int k = 0; fault_kinds[k]; k++)
        for (int for_ever = 0; for_ever < 2; for_ever++) {
            struct tally t = {0};
            fault_exercise(0, fault_kinds[k], for_ever, 1, 0, for_ever ? 2 : few, 0, &t);
            ck_assert_msg(t.bad == 0, "%lld of %lld: %s", (long long)t.bad, (long long)t.tried, t.first);
            ck_assert_msg(for_ever || t.failed > 0, "%s: nothing failed", fault_kinds[k]);
        }
}
END_TEST

/* The other commands: memory. */
START_TEST(memory_that_is_refused_is_said) {
    for (int c = 1; c < fault_commands(); c++) {
        struct tally t = {0};
        fault_exercise(c, "malloc", 0, 1, 0, 8, 0, &t);
        expect_nothing_lost(&t);
        ck_assert_int_gt(t.failed, 0);
    }
}
END_TEST

START_TEST(power_that_goes_takes_no_finished_run) {
    struct tally t = {0};
    power_exercise(6, &t);
    expect_nothing_lost(&t);
    ck_assert_int_gt(t.tried, 100);
}
END_TEST

START_TEST(kills_take_no_finished_run) {
    struct tally t = {0};
    kill_exercise(6, 1, 0, &t);
    expect_nothing_lost(&t);
}
END_TEST

START_TEST(flipped_bits_are_found) {
    struct tally t = {0};
    flip_exercise(500, 1, &t);
    expect_nothing_lost(&t);
    ck_assert_int_eq(t.failed, t.tried);
}
END_TEST

START_TEST(writers_of_the_same_runs_and_weights_mix_nothing) {
    struct tally t = {0};
    writers_exercise(8, 2, &t);
    expect_nothing_lost(&t);
}
END_TEST

Suite *check_faults(void);
Suite *check_faults(void) {
    const TTest *const tests[] = {a_call_that_fails_is_said_and_loses_nothing,
                                  memory_that_is_refused_is_said,
                                  power_that_goes_takes_no_finished_run,
                                  kills_take_no_finished_run,
                                  flipped_bits_are_found,
                                  writers_of_the_same_runs_and_weights_mix_nothing};
    Suite *suite = suite_create("faults");
    TCase *c = tcase_create("faults");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(suite, c);
    return suite;
}

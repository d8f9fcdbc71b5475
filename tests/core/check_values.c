/* check_values.c - lists and ranges of values. */
#include <string.h>

#include "core/values.h"
#include "tests/testing.h"

#define FIRST "-9223372036854775808"
#define LAST  "9223372036854775807"

static const struct {
    const char *list, *first, *last;
    int n;
} good[] = {
    {"2", "2", "2", 1},
    {"1..4", "1", "4", 4},
    {"softmax,none", "softmax", "none", 2},
    {"0.5,3..4", "0.5", "4", 3},
    {"9223372036854775800.." LAST, "9223372036854775800", LAST, 8},
    {LAST ".." LAST, LAST, LAST, 1},
    {FIRST "..-9223372036854775806", FIRST, "-9223372036854775806", 3},
};

START_TEST(lists_and_ranges_have_their_values) {
    struct texts values = {0};
    struct error e = {0};
    ck_assert_msg(values_expand("x", good[_i].list, &values, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(values.n, good[_i].n);
    ck_assert_str_eq(values.list[0], good[_i].first);
    ck_assert_str_eq(values.list[values.n - 1], good[_i].last);
    ck_assert(values_hold(good[_i].list, good[_i].last));
    ck_assert(!values_hold(good[_i].list, "7"));
    texts_free(&values);
}
END_TEST

static const struct {
    const char *list, *message;
} bad[] = {
    {"4..1", "x: the range 4..1 has no value; the smaller number stands first"},
    {"1..1001", "x: the range 1..1001 has too many values"},
    {FIRST ".." LAST, "x: the range " FIRST ".." LAST " has too many values"},
    {"-1.." LAST, "has too many values"},
    {"1..1000,1", "'1' and others are more than 1000 values"},
};

START_TEST(a_range_without_a_value_or_with_too_many_is_refused) {
    struct texts values = {0};
    struct error e = {0};
    ck_assert_int_eq(values_expand("x", bad[_i].list, &values, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, bad[_i].message) != NULL, "'%s', expected '%s'", e.text, bad[_i].message);
    texts_free(&values);
}
END_TEST

Suite *check_values(void);
Suite *check_values(void) {
    Suite *suite = suite_create("values");
    TCase *c = tcase_create("values");
    tcase_add_loop_test(c, lists_and_ranges_have_their_values, 0, (int)(sizeof good / sizeof *good));
    tcase_add_loop_test(c, a_range_without_a_value_or_with_too_many_is_refused, 0, (int)(sizeof bad / sizeof *bad));
    suite_add_tcase(suite, c);
    return suite;
}

/* check_compare.c - two folders side by side: what their rows are called, what is marked, what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/compare.h"
#include "tests/harness/report/fixture.h"

static enum status compare_folders(struct sheets *sheets, const struct record_set *a, const struct record_set *b) {
    struct comparison of = {.sets = {a, b}, .names = {"before", "after"}};
    return compare_runs(sheets, &of, &fixture_problem);
}

/* The first n records against all of them, as text; the caller frees it. */
static char *compared(int n) {
    struct sheets sheets = {0};
    struct record_set some = fixture_set;
    char *text = NULL;
    size_t size;
    some.n = n;
    ck_ok(compare_folders(&sheets, &some, &fixture_set));
    FILE *f = open_memstream(&text, &size);
    ck_ok(sheets_write(&sheets, &format_term, f, &fixture_problem));
    fclose(f);
    sheets_free(&sheets);
    return text;
}

START_TEST(rows_say_in_what_they_differ_and_what_was_cut_off) {
    identify(add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.5), "dim", "64");
    identify(add_run("lstm;swiglu", 1e-3, 1, 0.25, 0.25), "dim", "32");
    identify(add_run("lstm;swiglu", 1e-3, 2, 0.125, 0.125), "dim", "32");
    char *text = compared(3);
    ck_holds(text, "after against before: 3 pairs of runs");
    ck_holds(text, "lstm dim=64  0.001      1  0.5000       0  0.5000       0     +0.0000");
    ck_holds(text, "lstm dim=32  0.001      2  0.1875       0  0.1875       0     +0.0000  +0.0000  +0.0000");
    ck_assert_ptr_null(strstr(text, CUT_OFF_MARK));
    free(text);
    cut_off(&fixture_records[0].run, 200);
    text = compared(3);
    ck_holds(text, "lstm dim=64  0.001      1  0.5000*       0  0.5000*       0    +0.0000*");
    ck_holds(text, "lstm dim=32  0.001      2   0.1875       0   0.1875       0     +0.0000 ");
    ck_holds(text, CUT_OFF_NOTE);
    free(text);
}
END_TEST

/* Of which the one would stand for the other, or both be counted. */
START_TEST(a_run_in_two_versions_of_the_numerics_is_refused) {
    struct sheets sheets = {0};
    identify(add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.5), "numerics", "1");
    identify(add_run("lstm;swiglu", 1e-3, 1, 0.25, 0.25), "numerics", "1+clip.2");
    struct record_set one = fixture_set;
    one.n = 1;
    ck_assert_int_eq(compare_folders(&sheets, &one, &fixture_set), ST_DATA);
    ck_holds(fixture_problem.text, " of after differ in the numerics alone ");
    ck_assert_int_eq(compare_folders(&sheets, &fixture_set, &one), ST_DATA);
    ck_holds(fixture_problem.text, " of before differ in the numerics alone ");
    ck_ok(compare_folders(&sheets, &one, &one));
    sheets_free(&sheets);
}
END_TEST

Suite *check_compare(void);
Suite *check_compare(void) {
    const TTest *const tests[] = {
        rows_say_in_what_they_differ_and_what_was_cut_off,
        a_run_in_two_versions_of_the_numerics_is_refused,
    };
    return fixture_suite("compare", tests, (int)(sizeof tests / sizeof tests[0]));
}

/* check_compare.c - two folders side by side: what their rows are called, what is marked, what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/table/compare.h"
#include "tests/harness/table/fixture.h"

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
    ck_assert_ptr_null(strstr(text, "partner"));
    free(text);
    spoil(&fixture_records[0].run, RUN_NAN, "");
    add_run("lru;swiglu", 1e-3, 1, 0.5, 0.5);
    text = compared(3);
    ck_holds(text, "lstm dim=64  0.001      1  0.0083#       0  0.0083#       0    +0.0000#");
    ck_holds(text, "#: 2 of 6 runs failed and count as chance.");
    ck_holds(text, "Without a partner, and in no number here: 0 of 3 runs of before, 1 of 4 of after.");
    free(text);
}
END_TEST

/* Seeds 1 and 2 have a pair each, seed 3 has none; each row's own rate is compared. */
START_TEST(two_rows_are_paired_seed_by_seed) {
    struct sheets sheets = {0};
    struct report_tables tables;
    char *text = NULL;
    size_t size;
    add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.25);
    add_run("lstm;swiglu", 1e-3, 2, 0.5, 0.5);
    add_run("lru;swiglu", 1e-2, 1, 0.75, 0.5);
    add_run("lru;swiglu", 1e-2, 2, 0.75, 1);
    add_run("lru;swiglu", 1e-2, 3, 0.75, 0);
    add_run("lru;swiglu", 1e-3, 1, 0.25, 0.125); /* by validation the worse rate */
    ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
    const char *const rows[2] = {"lstm", "lru"}, *const missing[2] = {"lstm", "bdlru"};
    ck_ok(compare_rows(&sheets, &tables, rows, false, &fixture_problem));
    FILE *f = open_memstream(&text, &size);
    ck_ok(sheets_write(&sheets, &format_term, f, &fixture_problem));
    fclose(f);
    sheets_free(&sheets);
    ck_holds(text, "lru against lstm: 2 pairs of runs");
    ck_holds(text, "lstm lr 0.001, lru lr 0.01      2  0.3750       0  0.7500       1     +0.3750  -1.2133  +1.9633");
    ck_holds(text, "Of a seed that the other row lacks, and in no number here: 1 runs.");
    free(text);
    ck_assert_int_eq(compare_rows(&sheets, &tables, missing, false, &fixture_problem), ST_DATA);
    ck_holds(fixture_problem.text, "no task has rows of lstm and of bdlru with a seed in common");
    sheets_free(&sheets);
    report_tables_free(&tables);
}
END_TEST

/* Compares two rows of all records as text, which the caller frees. */
static char *compared_rows(const char *first, const char *second, const char *label_of_last) {
    const char *const words[2] = {first, second};
    struct sheets sheets = {0};
    struct report_tables tables;
    char *text = NULL;
    size_t size;
    ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
    struct report_row *last = NULL; /* of the second mixer */
    for (int k = 0; k < tables.list[0].n_rows; k++)
        if (!strcmp(tables.list[0].rows[k].mixer, second)) last = &tables.list[0].rows[k];
    if (label_of_last) snprintf(last->label, sizeof last->label, "%s", label_of_last);
    ck_ok(compare_rows(&sheets, &tables, words, false, &fixture_problem));
    FILE *f = open_memstream(&text, &size);
    ck_ok(sheets_write(&sheets, &format_term, f, &fixture_problem));
    fclose(f);
    sheets_free(&sheets);
    report_tables_free(&tables);
    return text;
}

/* Seed 1 of lru has failed first; its later attempt alone has a partner. */
START_TEST(an_attempt_that_was_set_aside_is_in_no_pair) {
    for (uint64_t seed = 1; seed <= 2; seed++) add_run("lstm;swiglu", 1e-3, seed, 0.5, 0.25 * (double)seed);
    for (int attempt = 1; attempt <= 2; attempt++) add_run("lru;swiglu", 1e-3, 1, 0.5, 0.5)->attempt = attempt;
    add_run("lru;swiglu", 1e-3, 2, 0.5, 1);
    add_run("lru;swiglu", 1e-3, 3, 0.5, 1);
    spoil(&fixture_records[2].run, RUN_NAN, "loss");
    fixture_records[2].set_aside = true;
    for (int turned = 0; turned < 2; turned++) {
        char *text = compared_rows(turned ? "lru" : "lstm", turned ? "lstm" : "lru", NULL);
        ck_holds(text, ": 2 pairs of runs");
        ck_holds(text, turned ? " 0.7500       1  0.3750       0     -0.3750 "
                              : " 0.3750       0  0.7500       1     +0.3750 ");
        ck_holds(text, "Of a seed that the other row lacks, and in no number here: 1 runs.");
        ck_assert_ptr_null(strstr(text, FAILED_MARK));
        free(text);
    }
}
END_TEST

/* The word is the label of the last row, and the mixer of all. */
START_TEST(a_label_wins_over_the_mixers_of_other_rows) {
    static const char *const dims[] = {"32", "64", "256"};
    add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.125);
    for (int i = 0; i < 3; i++) {
        struct run *run = add_run("lru;swiglu", 1e-3, 1, 0.5, 0.25 * (i + 1));
        identify(run, "dim", dims[i]);
        run->params = 1000000 * (i + 1);
    }
    char *text = compared_rows("lstm", "lru", "lru");
    ck_holds(text, "lru lr 0.001      1  0.1250       0  0.7500       0     +0.6250");
    free(text);
}
END_TEST

/* One of the two would stand for the other, or both would be counted. */
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

/* Names for two folders, and for one with itself: a reader of a line of JSON keeps one value for a name, and knows the
 * name. */
START_TEST(programs_get_names_that_stay) {
    static const char *const names[][2] = {{"before", "after"}, {"a", "a"}, {"pairs", "lr"}};
    static const char *const wanted[] = {"mean_a", "solved_a", "mean_b", "solved_b"}, *const last[] = {
                                                                                          "n_cut_off_a", "n_failed_a",
                                                                                          "n_cut_off_b", "n_failed_b"};
    add_run("lstm;swiglu", 1e-3, 1, 0.5, 0.5);
    for (int i = 0; i < 3; i++) {
        struct sheets sheets = {0};
        struct comparison of = {
            .sets = {&fixture_set, &fixture_set}, .names = {names[i][0], names[i][1]}, .for_programs = true};
        ck_ok(compare_runs(&sheets, &of, &fixture_problem));
        const struct sheet *s = sheets.list[0];
        for (int c = 0; c < 4; c++) ck_assert_str_eq(s->columns[6 + c].heading, wanted[c]);
        for (int c = 0; c < 4; c++) ck_assert_str_eq(s->columns[s->n_columns - 4 + c].heading, last[c]);
        for (int c = 0; c < s->n_columns; c++)
            for (int k = 0; k < c; k++) ck_assert_str_ne(s->columns[c].heading, s->columns[k].heading);
        sheets_free(&sheets);
    }
}
END_TEST

START_TEST(runs_of_two_devices_are_pairs) {
    static const char *const devices[] = {"cpu", "cuda"};
    struct sheets sheets = {0};
    struct comparison of = {
        .sets = {&fixture_set, &fixture_set}, .names = {"cpu", "cuda"}, .key = "device", .values = {"cpu", "cuda"}};
    for (int i = 0; i < 4; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, (uint64_t)(i / 2), 0.5, 0.25 * (1 + i % 2));
        identify(run, "device", devices[i % 2]);
    }
    ck_ok(compare_runs(&sheets, &of, &fixture_problem));
    ck_assert_int_eq(sheets.list[0]->n_rows, 1);
    ck_assert_int_eq(sheets.list[0]->cells[3].whole, 2);
    ck_assert_str_eq(sheets.list[0]->cells[8].text, "+0.2500");
    sheets_free(&sheets);
}
END_TEST

START_TEST(rows_are_sorted_by_task_model_and_rate) {
    static const char *const layers[] = {"lstm;swiglu", "bdlru:m=2;swiglu", "lstm;swiglu", "lru;swiglu"},
                             *const tasks[] = {"s5", "s5", "s5", "s3"};
    static const double rates[] = {1e-2, 1e-3, 1e-3, 1e-3};
    for (int i = 0; i < 4; i++) strcpy(add_run(layers[i], rates[i], 1, 0.5, 0.5)->task, tasks[i]);
    char *text = compared(4), *at = text;
    static const char *const rows[] = {"\ns3    lru ", "\ns5    bdlru:m=2 ", "\ns5    lstm       0.001 ",
                                       "\ns5    lstm        0.01 "};
    for (int i = 0; i < 4; i++) {
        at = strstr(at, rows[i]);
        ck_assert_msg(at, "%s is not there, or before another: %s", rows[i], text);
    }
    free(text);
}
END_TEST

Suite *check_compare(void);
Suite *check_compare(void) {
    const TTest *const tests[] = {
        two_rows_are_paired_seed_by_seed,
        an_attempt_that_was_set_aside_is_in_no_pair,
        a_label_wins_over_the_mixers_of_other_rows,
        rows_say_in_what_they_differ_and_what_was_cut_off,
        a_run_in_two_versions_of_the_numerics_is_refused,
        programs_get_names_that_stay,
        runs_of_two_devices_are_pairs,
        rows_are_sorted_by_task_model_and_rate,
    };
    return fixture_suite("compare", tests, (int)(sizeof tests / sizeof tests[0]));
}

/* check_defaults.c - options have the defaults of tests/golden/defaults.txt. An identity leaves defaults out, so a
 * changed default raises a version. */
#include <stdlib.h>
#include <string.h>

#include "tests/golden/defaults.h"
#include "tests/lib/support.h"

START_TEST(no_default_has_changed_under_its_version) {
    struct error e = {0};
    ck_assert_msg(defaults_check(&e) == ST_OK, "%s", e.text);
}
END_TEST

START_TEST(a_changed_default_asks_for_a_raised_version) {
    static const struct {
        const char *before;
        bool same;
    } cases[] = {
        {"flag lr 1 0.001\nmodel.lstm hidden 1 8\n", true},  {"flag lr 1 0.002\nmodel.lstm hidden 1 8\n", false},
        {"flag lr 0 0.002\nmodel.lstm hidden 1 8\n", true},  {"flag lr 1 0.001\nmodel.lstm hidden 1 ''\n", false},
        {"flag lr-min 1 0.002\nmodel.lstm hid 1 9\n", true}, {"", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = {0};
        enum status status = defaults_compare("flag lr 1 0.001\nmodel.lstm hidden 1 8\n", cases[i].before, &e);
        ck_assert_msg(status == (cases[i].same ? ST_OK : ST_FAIL), "%zu: %s", i, e.text);
        ck_assert(cases[i].same || (strstr(e.text, "raise `version`") && strstr(e.text, "make defaults")));
    }
}
END_TEST

/* The file holds what an identity may have: every option that tells runs apart. */
START_TEST(the_list_has_options_of_all_kinds) {
    char *text = defaults_text();
    ck_assert_ptr_nonnull(text);
    static const char *const lines[] = {"flag lr 1 0.001\n", "flag precision 1 REAL\n", "flag dim 1 ",
                                        "model.bdlru m 1 ", "task.word-problem length 1 16\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) ck_assert_msg(strstr(text, lines[i]) != NULL, "%s", text);
    ck_assert_ptr_null(strstr(text, "flag out "));
    free(text);
}
END_TEST

Suite *check_defaults(void);
Suite *check_defaults(void) {
    Suite *suite = suite_create("defaults");
    TCase *tests = tcase_create("list");
    tcase_add_test(tests, no_default_has_changed_under_its_version);
    tcase_add_test(tests, a_changed_default_asks_for_a_raised_version);
    tcase_add_test(tests, the_list_has_options_of_all_kinds);
    suite_add_tcase(suite, tests);
    return suite;
}

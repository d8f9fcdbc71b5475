/* check_help.c - --help lists the flags that people use, --help all lists all; each text fits into a line. */
#include <stdlib.h>
#include <string.h>

#include "harness/study/config.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

static void show(const char *arguments) {
    expect_status(run_program(program_folder, named_program("LRNN", "./lrnn"), arguments), 0, arguments);
}

static int flags_listed(void) {
    int n = 0;
    for (const char *at = out; (at = strstr(at, "\n  -")); at++) n++;
    return n;
}

START_TEST(help_lists_about_fifteen_flags_and_all_of_them_where_asked) {
    static const char *const commands[] = {"train", "bench", "sweep", "report"};
    for (int i = 0; i < 4; i++) {
        char arguments[64];
        bool all = !strcmp(commands[i], "report"); /* which has no more */
        snprintf(arguments, sizeof arguments, "%s -h", commands[i]);
        show(arguments);
        int few = flags_listed();
        ck_assert_msg(few >= 12 && few <= 16, "%s lists %d", arguments, few);
        ck_assert(all || strstr(out, " --help all` lists all flags."));
        snprintf(arguments, sizeof arguments, "%s --help all", commands[i]);
        show(arguments);
        int many = flags_listed();
        char *text = strdup(out);
        ck_assert_msg(all ? many == few : many > 2 * few, "%s lists %d", arguments, many);
        ck_assert(all || strstr(out, "\nthe net\n"));
        snprintf(arguments, sizeof arguments, "%s --help=all", commands[i]);
        show(arguments);
        ck_assert_str_eq(out, text);
        free(text);
    }
}
END_TEST

/* The text of --schedule names every schedule. */
START_TEST(a_flags_text_has_at_most_a_hundred_columns) {
    const struct option *const tables[] = {backbone_options, config_options};
    for (int t = 0; t < 2; t++)
        for (const struct option *o = tables[t]; o->name; o++)
            if (strcmp(o->name, "schedule") != 0)
                ck_assert_msg(strlen(o->help) <= 100, "--%s: %zu columns", o->name, strlen(o->help));
}
END_TEST

Suite *check_help(void);
Suite *check_help(void) {
    Suite *s = suite_create("help");
    TCase *c = tcase_create("help");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, help_lists_about_fifteen_flags_and_all_of_them_where_asked);
    tcase_add_test(c, a_flags_text_has_at_most_a_hundred_columns);
    suite_add_tcase(s, c);
    return s;
}

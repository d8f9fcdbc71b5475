/* check_tables.c - tools/tables.sh: tables in pages come from the commands that stand in their marks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/program.h"
#include "tests/testing.h"

/* Runs the script on a page of that text, with an `lrnn` that prints its arguments; its messages go to `err`, the page
 * it leaves to `out`. */
static int fill(const char *text, const char *flag) {
    char page[128], arguments[256];
    size_t size;
    snprintf(page, sizeof page, "%s/page.md", program_folder);
    spill(page, text, strlen(text));
    snprintf(arguments, sizeof arguments, "%s %s", flag, page);
    ck_assert_int_eq(setenv("LRNN", "/bin/echo", 1), 0);
    int status = run_program(program_folder, "tools/tables.sh", arguments);
    free(out);
    out = slurp(page, &size);
    return status;
}

#define BEGIN(command) "<!-- table: " command " -->\n"
#define END            "<!-- end of table -->\n"

START_TEST(a_table_is_what_its_command_prints) {
    static const char text[] =
        "before\n" BEGIN("lrnn report --what lengths") "old\nolder\n" END "after, without an end";
    static const char want[] =
        "before\n" BEGIN("lrnn report --what lengths") "report --out results/baseline --format md --what lengths\n" END
                                                       "after, without an end\n";
    ck_assert_int_eq(fill(text, "--check"), 1);
    expect_text(err, "is not what its commands write", "--check");
    ck_assert_str_eq(out, text);
    ck_assert_int_eq(fill(text, ""), 0);
    ck_assert_str_eq(out, want);
    ck_assert_int_eq(fill(want, "--check"), 0);
}
END_TEST

START_TEST(a_page_with_bad_marks_stays_as_it_is) {
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"x\n" BEGIN("lrnn report") "old\n", "page.md:2: the table has no end"},
        {"x\n" END, "page.md:2: a table ends that did not begin"},
        {BEGIN("lrnn report") BEGIN("lrnn report") END, "page.md:2: a table begins within that of line 1"},
        {BEGIN("rm -rf /nowhere") END, "page.md:1: the command 'rm -rf /nowhere' begins neither with"},
        {BEGIN("awk -f tools/nothing.awk") END, "page.md:1: no table from: awk -f tools/nothing.awk"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(fill(cases[i].text, ""), 1);
        expect_text(err, cases[i].sentence, cases[i].text);
        ck_assert_str_eq(out, cases[i].text);
    }
    ck_assert_int_eq(run_program(program_folder, "tools/tables.sh", ""), 2);
    expect_text(err, "no page", "without a page");
}
END_TEST

Suite *check_tables(void) {
    const TTest *const tests[] = {a_table_is_what_its_command_prints, a_page_with_bad_marks_stays_as_it_is};
    Suite *s = suite_create("tables");
    TCase *c = tcase_create("tables");
    tcase_add_checked_fixture(c, program_begin, program_end);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}

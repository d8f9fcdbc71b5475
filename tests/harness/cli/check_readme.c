/* check_readme.c - what README.md shows is what its commands print of the committed records, byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/program.h"
#include "tests/testing.h"

#define PROMPT "$ ./lrnn "

/* The block of the page behind a command, up to the next one or the end of the block; *at moves there. */
static char *shown(const char **at) {
    const char *end = strstr(*at, "\n```");
    const char *next = strstr(*at, "\n" PROMPT);
    ck_assert_ptr_nonnull(end);
    if (next && next < end) end = next;
    char *text = strndup(*at, (size_t)(end + 1 - *at));
    *at = end;
    return text;
}

START_TEST(commands_of_the_readme_print_what_it_shows) {
    size_t size;
    char *page = slurp("README.md", &size);
    int commands = 0;
    for (const char *at = page; (at = strstr(at, "\n" PROMPT)) != NULL; commands++) {
        char arguments[512];
        at += strlen("\n" PROMPT);
        size_t length = strcspn(at, "\n");
        ck_assert_uint_lt(length, sizeof arguments);
        memcpy(arguments, at, length);
        arguments[length] = 0;
        at += length + 1;
        char *want = shown(&at);
        expect_status(run(arguments), 0, arguments);
        ck_assert_str_eq(out, want);
        free(want);
    }
    ck_assert_int_ge(commands, 1);
    free(page);
}
END_TEST

Suite *check_readme(void);
Suite *check_readme(void) {
    Suite *suite = suite_create("readme");
    TCase *c = tcase_create("readme");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, commands_of_the_readme_print_what_it_shows);
    suite_add_tcase(suite, c);
    return suite;
}

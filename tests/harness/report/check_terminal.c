/* check_terminal.c - tables on a terminal: the best in bold, where its reader wants it. */
#define _XOPEN_SOURCE 600 /* posix_openpt */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/program.h"
#include "tests/testing.h"

#define REPORT "report results/precision --what suites"

/* What the program writes to a terminal, in that environment. */
static char *shown(const char *environment, const char *arguments) {
    static char text[1 << 16];
    char command[1024];
    size_t used = 0;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_msg(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0, "no terminal");
    snprintf(command, sizeof command, "env -u NO_COLOR %s %s %s >%s", environment, named_program("LRNN", "./lrnn"),
             arguments, ptsname(terminal));
    FILE *program = popen(command, "r");
    ck_assert_ptr_nonnull(program);
    for (ssize_t n; used < sizeof text - 1 && (n = read(terminal, text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = 0;
    ck_assert_int_eq(pclose(program), 0);
    close(terminal);
    return text;
}

START_TEST(the_best_is_bold_on_a_terminal) {
    char *text = shown("TERM=xterm", REPORT);
    expect_text(text, "bdlru:m=3 precision=fp32      \033[1m1.000 / 1~\033[0m\r\n", REPORT);
    expect_text(text, "\r\nBold: the best of a task.\r\n", REPORT);
}
END_TEST

/* The same widths, but for what the terminal does not show. */
START_TEST(a_column_is_as_wide_in_bold) {
    char *bold = strdup(shown("TERM=xterm", REPORT));
    char *plain = shown("TERM=xterm", REPORT " --no-color"), *to = bold;
    for (const char *at = bold; *at;) {
        if (*at == '\033') at = strchr(at, 'm') + 1;
        *to++ = *at++;
    }
    *to = 0;
    char *legend = strstr(bold, "Bold: ");
    ck_assert_ptr_nonnull(legend);
    ck_assert_int_eq(strncmp(bold, plain, (size_t)(legend - bold)), 0);
    free(bold);
}
END_TEST

START_TEST(bold_goes_where_it_is_not_wanted) {
    static const char *const plain[][2] = {{"TERM=xterm NO_COLOR=1", REPORT},
                                           {"TERM=dumb", REPORT},
                                           {"-u TERM", REPORT},
                                           {"TERM=xterm", REPORT " --no-color"}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        char *text = shown(plain[i][0], plain[i][1]);
        expect_text(text, "precision=fp32      1.000 / 1~", plain[i][0]);
        ck_assert_msg(!strstr(text, "\033[") && !strstr(text, "Bold"), "%s %s: %s", plain[i][0], plain[i][1], text);
    }
}
END_TEST

Suite *check_terminal(void);
Suite *check_terminal(void) {
    Suite *s = suite_create("terminal");
    TCase *t = tcase_create("terminal");
    tcase_add_checked_fixture(t, program_begin, program_end);
    tcase_add_test(t, the_best_is_bold_on_a_terminal);
    tcase_add_test(t, a_column_is_as_wide_in_bold);
    tcase_add_test(t, bold_goes_where_it_is_not_wanted);
    suite_add_tcase(s, t);
    return s;
}

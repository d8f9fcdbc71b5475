/* check_terminal.c - what is written to a terminal: the best of a table in bold, where its reader wants it; lines no
 * wider than it; a line that is written again and again. */
#define _GNU_SOURCE /* posix_openpt, struct winsize */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/lib/program.h"
#include "tests/testing.h"

#define REPORT "report results/precision --what suites"

/* Returns what the program writes on an output (1, 2) to a terminal of so many columns (0: it does not say), in that
 * environment. */
static char *shown_on(int output, int columns, const char *environment, const char *arguments) {
    static char text[1 << 16];
    char command[1024];
    size_t used = 0;
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_msg(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0, "no terminal");
    ck_assert_int_eq(ioctl(terminal, TIOCSWINSZ, &size), 0);
    snprintf(command, sizeof command, "env -u NO_COLOR %s %s %s %d>%s %d>/dev/null", environment,
             named_program("LRNN", "./lrnn"), arguments, output, ptsname(terminal), 3 - output);
    FILE *program = popen(command, "r");
    ck_assert_ptr_nonnull(program);
    for (ssize_t n; used < sizeof text - 1 && (n = read(terminal, text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = 0;
    ck_assert_int_eq(pclose(program), 0);
    close(terminal);
    return text;
}

static char *shown(const char *environment, const char *arguments) {
    return shown_on(1, 0, environment, arguments);
}

START_TEST(the_best_is_bold_on_a_terminal) {
    char *text = shown("TERM=xterm", REPORT);
    expect_text(text, "bdlru:m=3 precision=fp32   \033[1m1.000 / 1.000\033[0m\r\n", REPORT);
    expect_text(text, "\r\nBold: the best of a task.\r\n", REPORT);
}
END_TEST

/* Widths are equal, except for bytes that the terminal does not show. */
START_TEST(a_column_is_as_wide_in_bold) {
    char *bold = strdup(shown("TERM=xterm", REPORT));
    char *plain = shown("TERM=xterm NO_COLOR=1", REPORT), *to = bold;
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
    static const char *const plain[] = {"TERM=xterm NO_COLOR=1", "TERM=dumb", "-u TERM"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        char *text = shown(plain[i], REPORT);
        expect_text(text, "precision=fp32   1.000 / 1.000", plain[i]);
        ck_assert_msg(!strstr(text, "\033[") && !strstr(text, "Bold"), "%s: %s", plain[i], text);
    }
}
END_TEST

/* Usages may be wider, because they are copied as one word. */
START_TEST(help_is_as_wide_as_the_terminal) {
    static const char *const commands[] = {"--help", "", "perf --help", "data --help", "store --help", "report --help"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char *text = shown_on(1, 78, "TERM=xterm", commands[i]);
        int lines = 0;
        for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n"), lines++)
            ck_assert_msg(!strncmp(line, "usage: ", 7) || strlen(line) <= 78, "lrnn %s: %s", commands[i], line);
        ck_assert_int_gt(lines, 5);
    }
}
END_TEST

/* Names that are wider than it go on in further lines, and no part of them is lost. */
START_TEST(tables_are_as_wide_as_the_terminal) {
    char *text =
        shown_on(1, 40, "TERM=xterm", "report results/baseline --task s3 --profile custom --columns model,acc");
    expect_text(text, "\r\nbdlru:m=1 dim=64 layers=1         0.4329\r\n  mlp=swiglu epochs=20 decay=0\r\n", "report");
    expect_text(text, "\r\n  clip=1 precision=fp32\r\n", "report");
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n"))
        ck_assert_msg(strlen(line) <= 40, "%s", line);
    text = shown_on(1, 200, "TERM=xterm", "report results/baseline --task s3 --profile custom --columns model,acc");
    expect_text(text, "\r\nbdlru:m=1 dim=64 layers=1 mlp=swiglu epochs=20 decay=0 clip=0 precision=fp32 ", "report");
}
END_TEST

#define TRAIN "train s3:n_train=200,n_val=20,n_test=20 lstm:hidden=4 --steps 40 --force --out "

/* After a line that says where the flags are from, one line is written again and again, and never longer than the
 * terminal, which would scroll. */
START_TEST(a_training_is_one_line_of_a_terminal) {
    char arguments[256];
    snprintf(arguments, sizeof arguments, TRAIN "%s/r", program_folder);
    char *text = shown_on(2, 50, "TERM=xterm", arguments);
    int lines = 0;
    expect_text(text, "no profile: flags that are not given have their defaults; `", arguments);
    expect_text(text, "lrnn bench s3` has the profiles ", arguments);
    text = strchr(text, '\n') + 1;
    ck_assert_msg(!strchr(text, '\n'), "%s", text);
    for (char *line = strstr(text, "\r\033[K"); line; line = strstr(line + 1, "\r\033[K"), lines++)
        ck_assert_msg(strcspn(line + 4, "\r") < 50, "%s", line);
    ck_assert_int_ge(lines, 2);
    expect_text(text, "0/1", arguments);
}
END_TEST

START_TEST(a_terminal_without_codes_gets_lines) {
    char arguments[256];
    snprintf(arguments, sizeof arguments, TRAIN "%s/r", program_folder);
    char *text = shown_on(2, 50, "TERM=dumb", arguments);
    expect_text(text, "step 40/40 loss ", arguments);
    ck_assert_msg(!strchr(text, '\033'), "%s", text);
    snprintf(arguments, sizeof arguments, "status %s/r --watch", program_folder);
    text = shown_on(1, 50, "TERM=dumb", arguments);
    ck_assert_msg(!strchr(text, '\033'), "%s", text);
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
    tcase_add_test(t, help_is_as_wide_as_the_terminal);
    tcase_add_test(t, tables_are_as_wide_as_the_terminal);
    tcase_add_test(t, a_training_is_one_line_of_a_terminal);
    tcase_add_test(t, a_terminal_without_codes_gets_lines);
    suite_add_tcase(s, t);
    return s;
}

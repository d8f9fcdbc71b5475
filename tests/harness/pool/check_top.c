/* check_top.c - `lrnn top`: runs in progress on terminals of any size and kind, on none, and as a page. The runs are
 * claims of the test's own, with what their processes would have told. */
#define _GNU_SOURCE /* posix_openpt, struct winsize */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/sheet/sheet.h"
#include "harness/store/claim.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define MOST_RUNS 32

static struct claim claims[MOST_RUNS];

/* Run number i, whose process is the test's, and half way after 60 s: its loss falls from 8 to 1. */
static void begin_run(int i, const char *what) {
    char id[RUN_ID_HEX], text[1024] = "steps 1400\n";
    enum claim_state state;
    struct error e = {0};
    snprintf(id, sizeof id, "%08x%024x", i, i);
    ck_assert_msg(claim_take(&claims[i], program_folder, id, what, &state, &e) == ST_OK, "%s", e.text);
    for (int k = 1; k <= 7; k++)
        sprintf(text + strlen(text), "%d %d %d %s 98000\n", 10 * k, 100 * k, 8 - k + (k < 4), k < 3 ? "nan" : "0.25");
    claim_tell(&claims[i], text, strlen(text));
}

/* Returns what the program writes to a terminal of that size within a second, in that environment. */
static char *shown_on(int columns, int rows, const char *environment) {
    static char text[1 << 16];
    char command[1024];
    size_t used = 0;
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_msg(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0, "no terminal");
    ck_assert_int_eq(ioctl(terminal, TIOCSWINSZ, &size), 0);
    snprintf(command, sizeof command, "env -u NO_COLOR -u LC_ALL -u LC_CTYPE %s timeout -s INT 1 %s top %s >%s 2>&1",
             environment, named_program("LRNN", "./lrnn"), program_folder, ptsname(terminal));
    FILE *program = popen(command, "r");
    ck_assert_ptr_nonnull(program);
    for (ssize_t n; used < sizeof text - 1 && (n = read(terminal, text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = 0;
    pclose(program);
    close(terminal);
    ck_assert_msg(strstr(text, "stopped watching with 0 runs left") != NULL, "%s", text);
    return text;
}

static void expect_page(const char *text, const char *wanted) {
    ck_assert_msg(strstr(text, wanted) != NULL, "%s in\n%s", wanted, text);
}

START_TEST(without_a_terminal_it_prints_once) {
    char arguments[256];
    begin_run(1, "s3 lstm lr 0.1 seed 1");
    snprintf(arguments, sizeof arguments, "top %s", program_folder);
    setenv("LC_ALL", "C", 1);
    expect_status(run(arguments), 0, arguments);
    char host[64], wanted[256];
    gethostname(host, sizeof host);
    snprintf(wanted, sizeof wanted,
             "00000001 s3 lstm lr 0.1 seed 1, %s %ld\n"
             "  700/1400 50 %% loss 1 acc 0.250 #*+~-._ 98k tok/s 70s +-0s left\n",
             host, (long)getpid());
    ck_assert_str_eq(out, wanted);
    setenv("LC_ALL", "en_US.UTF-8", 1);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, " \u2588\u2587\u2586\u2584\u2583\u2582\u2581 98k", arguments);
    ck_assert_ptr_null(strchr(out, '\033'));
}
END_TEST

/* No line is wider than the terminal, whatever names and sizes are; the step is there from 12 columns on. */
START_TEST(lines_are_as_wide_as_the_terminal) {
    static const int widths[] = {1, 2, 5, 12, 20, 40, 80, 200};
    begin_run(1, "s3:n_train=200,length=16 bdlru:m=5,blocks=64,gate=softmax,selective=yes lr 0.1 seed 1");
    begin_run(2, "s\u00fcd lstm lr 0.1 seed 2");
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char *text = shown_on(widths[i], 24, "TERM=xterm LANG=C.UTF-8");
        char *from = strstr(text, "\033[H\033[2J");
        ck_assert_ptr_nonnull(from);
        *strstr(text, "lrnn: stopped") = 0;
        if (widths[i] >= 12) expect_page(from, "700/1400");
        if (widths[i] >= 80) expect_page(from, " tok/s 70s +-0s left");
        if (widths[i] == 40) expect_page(from, "~\r\n");
        for (char *line = strtok(from + 7, "\r\n"); line; line = strtok(NULL, "\r\n"))
            ck_assert_msg(text_width(line) <= widths[i], "%d: %s", widths[i], line);
    }
}
END_TEST

/* It fits into the lines that there are, and counts the rest. */
START_TEST(a_small_terminal_shows_some_runs) {
    for (int i = 0; i < 20; i++) begin_run(i, "s3 lstm lr 0.1 seed 1");
    for (int rows = 4; rows < 60; rows += 7) {
        char *text = shown_on(80, rows, "TERM=xterm LANG=C");
        int lines = 0;
        *strstr(text, "lrnn: stopped") = 0;
        for (const char *c = text; (c = strchr(c, '\n')); c++) lines++;
        ck_assert_msg(lines < rows, "%d lines: %s", rows, text);
        ck_assert_msg((strstr(text, " more\r\n") != NULL) == (rows < 42), "%d lines: %s", rows, text);
    }
}
END_TEST

/* There are no colours anyway; without escape codes the lines stand below each other. */
START_TEST(a_plain_terminal_gets_plain_lines) {
    static const char *const plain[] = {"TERM=dumb", "-u TERM", "TERM="};
    begin_run(1, "s3 lstm lr 0.1 seed 1");
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        char *text = shown_on(80, 24, plain[i]);
        ck_assert_msg(!strchr(text, '\033'), "%s: %s", plain[i], text);
        expect_page(text, "  700/1400 ");
    }
    char *text = shown_on(80, 24, "TERM=xterm NO_COLOR=1");
    for (const char *c = text; (c = strchr(c, '\033')); c++)
        ck_assert_msg(!strncmp(c, "\033[H", 3) || !strncmp(c, "\033[2J", 4), "%s", c);
}
END_TEST

/* A folder is shared: names of others reach nobody's terminal as codes, and no page as tags. */
START_TEST(names_are_text) {
    char arguments[512], path[256];
    size_t size;
    begin_run(1, "s3\033[31m \a\xc2\x9b"
                 "2J <b>\"lstm\"</b> & \xff\xfe lr 0.1");
    snprintf(arguments, sizeof arguments, "mkdir -p %s/sweeps && : >'%s/sweeps/a\033[7mb.tsv'", program_folder,
             program_folder);
    ck_assert_int_eq(system(arguments), 0);
    snprintf(arguments, sizeof arguments, "top %s", program_folder);
    expect_status(run(arguments), 0, arguments);
    ck_assert_ptr_null(strpbrk(out, "\033\a"));
    ck_assert_ptr_null(strstr(out, "\xc2\x9b"));
    expect_text(out, " [31m   2J <b>\"lstm\"</b> & ?? lr 0.1, ", arguments);
    snprintf(path, sizeof path, "%s/top.html", program_folder);
    snprintf(arguments, sizeof arguments, "timeout -s INT 1 %s top %s --html %s --every 0.2s 2>/dev/null",
             named_program("LRNN", "./lrnn"), program_folder, path);
    ck_assert_int_ne(system(arguments), 0);
    char *page = slurp(path, &size);
    expect_page(page, "&lt;b&gt;&quot;lstm&quot;&lt;/b&gt; &amp; ");
    expect_page(page, "<meta http-equiv=\"refresh\" content=\"1\">");
    expect_page(page, "\n  700/1400 50 % loss 1 acc 0.250 \u2588");
    ck_assert_ptr_null(strchr(page, '\033'));
    free(page);
}
END_TEST

/* The page of a folder in which all is done is loaded no more. */
START_TEST(a_page_ends_with_the_runs) {
    char arguments[512], path[256];
    size_t size;
    snprintf(path, sizeof path, "%s/top.html", program_folder);
    snprintf(arguments, sizeof arguments, "top %s --html %s", program_folder, path);
    expect_status(run(arguments), 0, arguments);
    char *page = slurp(path, &size);
    expect_page(page, "\nno run is in progress in ");
    expect_page(page, "<p>Ended ");
    ck_assert_ptr_null(strstr(page, "refresh"));
    free(page);
    snprintf(arguments, sizeof arguments, "top %s --html %s/none/top.html", program_folder, program_folder);
    expect_status(run(arguments), ST_FAIL, arguments);
    expect_status(run("top nowhere"), ST_DATA, "top nowhere");
}
END_TEST

/* The program's own runs tell how they go while they go, and leave nothing. */
START_TEST(a_run_tells_how_it_goes) {
    char command[1024];
    size_t size;
    const char *program = named_program("LRNN", "./lrnn");
    snprintf(
        command, sizeof command,
        "%s train s3:n_train=2000,n_val=20,n_test=20 lstm:hidden=8 --steps 1000000 --checkpoint-every 0 --quiet "
        "--out %s/r 2>/dev/null & run=$!; for i in $(seq 100); do ls %s/r/claims/.*.live >/dev/null 2>&1 && break; "
        "sleep 0.1; done; %s top %s/r >%s/said; kill $run; wait $run; ls -A %s/r/claims >%s/left",
        program, program_folder, program_folder, program, program_folder, program_folder, program_folder,
        program_folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/said", program_folder);
    char *said = slurp(command, &size), *model = strstr(said, " lstm:hidden=8");
    ck_assert_msg(model && strstr(model, "/1000000 ") && strstr(model, " loss "), "%s", said);
    free(said);
    snprintf(command, sizeof command, "%s/left", program_folder);
    said = slurp(command, &size);
    ck_assert_msg(!strstr(said, ".live"), "%s", said);
    free(said);
}
END_TEST

Suite *check_top(void);
Suite *check_top(void) {
    Suite *s = suite_create("top");
    TCase *t = tcase_create("top");
    tcase_add_checked_fixture(t, program_begin, program_end);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, without_a_terminal_it_prints_once);
    tcase_add_test(t, lines_are_as_wide_as_the_terminal);
    tcase_add_test(t, a_small_terminal_shows_some_runs);
    tcase_add_test(t, a_plain_terminal_gets_plain_lines);
    tcase_add_test(t, names_are_text);
    tcase_add_test(t, a_page_ends_with_the_runs);
    tcase_add_test(t, a_run_tells_how_it_goes);
    suite_add_tcase(s, t);
    return s;
}

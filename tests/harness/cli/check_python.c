/* check_python.c - docs/python.md as its readers run it, where python3 is; what it exports is read back. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/program.h"
#include "tests/testing.h"

/* Without python3 there is nothing to run the page by: the program does not need it. */
START_TEST(the_page_runs_block_after_block) {
    char command[1024], text[512];
    size_t size;
    if (system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1") != 0) return;
    snprintf(command, sizeof command, "python3 tests/python/page.py docs/python.md %s %s tools >%s/said 2>&1",
             program_folder, named_program("LRNN", "./lrnn"), program_folder);
    int status = system(command);
    snprintf(text, sizeof text, "%s/said", program_folder);
    char *said = slurp(text, &size);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "docs/python.md:\n%.3000s", said);
    free(said);
}
END_TEST

START_TEST(dumps_are_refused_in_a_sentence) {
    expect_status(run("data dump s3"), 2, "data dump s3");
    expect_text(err, "say into which file", "data dump");
    expect_status(run("data dump s3 /nowhere/x.npz --count 3"), 1, "data dump");
    expect_status(run("data dump s3:length=4096,n_train=1M /tmp/never.npz"), 2, "data dump");
    expect_text(err, "--count takes fewer", "data dump");
}
END_TEST

Suite *check_python(void);
Suite *check_python(void) {
    Suite *suite = suite_create("python");
    TCase *c = tcase_create("python");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, the_page_runs_block_after_block);
    tcase_add_test(c, dumps_are_refused_in_a_sentence);
    suite_add_tcase(suite, c);
    return suite;
}

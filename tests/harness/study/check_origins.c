/* check_origins.c - a value that is none is told with its origin: a profile, a plan, a config file, each with the line,
 * or the command line. */
#include <string.h>

#include "harness/study/plan_file.h"
#include "tests/lib/program.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define GOT_ABC " expected a number from 0 to 1000000, got 'abc'"

START_TEST(a_plan_and_a_profile_name_the_line_of_a_bad_value) {
    static const struct {
        const char *line, *says; /* of a plan or a profile, both after two other lines */
    } lines[] = {
        {"lr=0.1,abc", "lr=abc (%s line 3):" GOT_ABC},
        {"quick.lr=abc", "lr=abc (%s line 3):" GOT_ABC},
        {"models=lstm\n bdlru:m=1..2 bdlru:m=abc",
         "m=abc (%s line 4): expected a whole number from 1 to 64, got 'abc'"},
        {"models=lstm@lr=abc", "lr=abc (%s line 3):" GOT_ABC},
        {"tasks=s3:length=0", "length=0 (%s line 3): expected a whole number from 1 to"},
        {"task.length=4..8,x", "length=x (%s line 3): expected a whole number from 1 to"},
        {"seeds=0", "seeds=0 (%s line 3): expected a whole number from 1 to 100000, auto, or a list"},
        {"variants=some", "variants=some (%s line 3): expected yes or no, got 'some'"},
        {"measure=time", "measure=time (%s line 3): expected accuracy or speed, got 'time'"},
    };
    static const char *const names[] = {"papers/x.plan", "profiles/x.plan"};
    char text[512], says[256];
    struct plan_file p;
    struct error e = {0};
    for (int i = 0; i < 2 * (int)(sizeof lines / sizeof *lines); i++) {
        const char *name = names[i % 2];
        snprintf(text, sizeof text, "# x\nepochs=3\n%s\n", lines[i / 2].line);
        snprintf(says, sizeof says, lines[i / 2].says, name);
        ck_assert_int_eq(plan_file_parse(&p, name, text, strlen(text), &e), ST_USAGE);
        ck_assert_msg(!strncmp(e.text, says, strlen(says)), "%s, expected %s", e.text, says);
    }
}
END_TEST

START_TEST(a_config_file_names_the_line_of_a_bad_value) {
    static const char *const commands[] = {"train s3 lstm -c %s", "bench s3 -c %s"};
    char path[SCRATCH_BYTES + 16], arguments[SCRATCH_BYTES + 64], says[SCRATCH_BYTES + 128];
    snprintf(path, sizeof path, "%s/own.cfg", program_folder);
    for (int i = 0; i < 4; i++) {
        const char *text = i < 2 ? "dim=16\nlr=abc\n" : "dim=16\ntask.length=abc\n";
        spill(path, text, strlen(text));
        snprintf(arguments, sizeof arguments, i % 2 ? commands[1] : commands[0], path);
        snprintf(says, sizeof says, "lrnn: %s=abc (%s line 2): expected a ", i < 2 ? "lr" : "length", path);
        expect_status(run_program(program_folder, named_program("LRNN", "./lrnn"), arguments), 2, arguments);
        expect_text(err, says, arguments);
    }
}
END_TEST

START_TEST(a_bad_value_of_the_command_line_is_told_as_such) {
    static const char *const commands[] = {"train s3 lstm --lr abc", "bench s3 --lr 0.1,abc",
                                           "bench s3 --models lstm@lr=abc"};
    for (int i = 0; i < 3; i++) {
        expect_status(run_program(program_folder, named_program("LRNN", "./lrnn"), commands[i]), 2, commands[i]);
        expect_text(err, "lrnn: lr=abc (command line):" GOT_ABC, commands[i]);
    }
}
END_TEST

START_TEST(a_profile_that_is_not_there_lists_those_that_are) {
    static const char *const commands[] = {"train s3 lstm --profile huge", "bench s3 --profile huge", "info s3/huge"};
    for (int i = 0; i < 3; i++) {
        expect_status(run_program(program_folder, named_program("LRNN", "./lrnn"), commands[i]), 2, commands[i]);
        expect_text(err, "unknown profile 'huge'; of s3 there are: quick paper smoke", commands[i]);
    }
}
END_TEST

Suite *check_origins(void);
Suite *check_origins(void) {
    Suite *s = suite_create("origins");
    TCase *c = tcase_create("origins");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, a_plan_and_a_profile_name_the_line_of_a_bad_value);
    tcase_add_test(c, a_config_file_names_the_line_of_a_bad_value);
    tcase_add_test(c, a_bad_value_of_the_command_line_is_told_as_such);
    tcase_add_test(c, a_profile_that_is_not_there_lists_those_that_are);
    suite_add_tcase(s, c);
    return s;
}

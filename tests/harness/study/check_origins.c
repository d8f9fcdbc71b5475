/* check_origins.c - where a value is from: which of profile, plan, config file and command line decides it, what
 * --print-config says of it, and how a value that is none is told with its origin. */
#include <stdlib.h>
#include <string.h>

#include "harness/study/plan_file.h"
#include "harness/study/study.h"
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

/* Expects that the configuration which was printed is the run that bench does. */
static void expect_printed(const char *bench_id) {
    char file[512], task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    struct config *c = calloc(1, sizeof *c);
    struct label flags;
    struct error e = {0};
    snprintf(file, sizeof file, "%s/printed.conf", program_folder);
    spill(file, out, strlen(out));
    ck_assert_int_eq(config_default(c, &e), ST_OK);
    ck_assert_msg(config_read(file, c, task, model, &flags, &e) == ST_OK, "%s", e.text);
    struct setup *s = setup_make(c, task, model, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    ck_assert_str_eq(s->id.run_id, bench_id);
    setup_free(s);
    free(c);
}

/* Copies the id of the first run that `bench --dry-run --json` has listed. */
static void copy_id(char id[64]) {
    const char *at = strstr(out, "\"run_id\":\"");
    ck_assert_ptr_nonnull(at);
    snprintf(id, 64, "%.32s", at + strlen("\"run_id\":\""));
}

/* One model of a profile alone is the run that bench makes of it; a file of what was printed is the same run. */
START_TEST(a_profile_trains_the_run_of_bench) {
    char arguments[1024], of_bench[64];
    expect_status(run("bench s5 --models bdlru:m=5 --dry-run --json"), 0, "bench");
    copy_id(of_bench);
    expect_status(run("train s5 bdlru:m=5 --profile quick --print-config"), 0, "train --profile");
    expect_text(out, "lr=0.002                         # profile word-problem/quick\n", "train --profile");
    expect_printed(of_bench);
    snprintf(arguments, sizeof arguments, "train s5 lstm --profile paper --out %s/r", program_folder);
    expect_status(run(arguments), ST_USAGE, arguments);
    expect_text(err, "profile paper has lr=0.001,0.0005,0.0001, and train does one run; add --lr", arguments);
    expect_status(run("train s5 lstm --profile mad"), ST_USAGE, "train --profile mad");
    expect_text(err, "unknown profile 'mad'; of s5 there are: smoke quick paper", "train --profile mad");
}
END_TEST

/* The profile's flags of one model, here --stop-after, are found by the model's word, whatever options a config file
 * adds to the model. */
START_TEST(a_profile_trains_the_run_of_bench_with_a_config_file) {
    char arguments[1024], file[512], of_bench[64];
    snprintf(file, sizeof file, "%s/gate.conf", program_folder);
    spill(file, "model.gate=none\n", strlen("model.gate=none\n"));
    snprintf(arguments, sizeof arguments, "bench s5 --models bdlru:m=5 --dry-run --json -c %s", file);
    expect_status(run(arguments), 0, arguments);
    copy_id(of_bench);
    snprintf(arguments, sizeof arguments, "train s5 bdlru:m=5 --profile quick --print-config -c %s", file);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "stop-after=5000                  # profile word-problem/quick\n", arguments);
    expect_printed(of_bench);
}
END_TEST

/* Each option of task and model has its origin, as flags have; so has what the name of a task stands for. */
START_TEST(a_printed_option_has_its_origin) {
    static const char *const of_train[] = {
        "task.group=s5                    # task s5\n",
        "task.length=9                    # command line\n",
        "model.m=5                        # command line\n",
        "model.gate=none                  # config file\n",
        "model.gate-init=5                # profile word-problem/quick\n",
        "task.n_val=2000\n",
    };
    static const char *const of_bench[] = {
        "model.m=2                        # command line\n",
        "model.gate=none                  # config file\n",
        "dim=64                           # command line\n",
        "decay=0.3                        # profile word-problem/quick\n",
        "# the 2 runs differ in: lr\n",
    };
    char arguments[1024], file[512];
    snprintf(file, sizeof file, "%s/gate.conf", program_folder);
    spill(file, "model.gate=none\n", strlen("model.gate=none\n"));
    snprintf(arguments, sizeof arguments, "train s5:length=9 bdlru:m=5 --profile quick --print-config -c %s", file);
    expect_status(run(arguments), 0, arguments);
    for (size_t i = 0; i < sizeof of_train / sizeof *of_train; i++) expect_text(out, of_train[i], arguments);
    snprintf(arguments, sizeof arguments, "bench s5 --models bdlru:m=2@dim=64 --lr 0.1,0.01 --print-config -c %s",
             file);
    expect_status(run(arguments), 0, arguments);
    for (size_t i = 0; i < sizeof of_bench / sizeof *of_bench; i++) expect_text(out, of_bench[i], arguments);
}
END_TEST

/* Expects that the command prints a line which begins with `start` and has this origin; "": it has none. */
static void expect_origin(const char *command, const char *start, const char *origin) {
    char begin[64], line[256], ending[64] = "";
    expect_status(run(command), 0, command);
    snprintf(begin, sizeof begin, "\n%s", start);
    const char *at = strstr(out, begin);
    ck_assert_msg(at != NULL, "%s: no line begins with '%s' in %s", command, start, out);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
    if (*origin) snprintf(ending, sizeof ending, "# %s", origin);
    ck_assert_msg(!strcmp(line + strcspn(line, "#"), ending), "%s: '%s', expected '%s'", command, line, ending);
}

START_TEST(a_size_that_match_chose_is_from_match) {
    static const char *const rows[][3] = {
        {"train s3 mamba2:state=64 --dim 128 --match state=64 --print-config", "model.state=1 ", "--match"},
        {"train s3 mamba2:state=64 --dim 128 --match state=64 --print-config", "dim=32 ", "--match"},
        {"train s3 mamba2 --dim 128 --match state=1024 --print-config", "model.state=4 ", "--match"},
        {"train s3 mamba2 --dim 128 --match state=1024 --print-config", "dim=128 ", "command line"},
        {"train s3 mamba2 --match state=1024 --print-config", "dim=128", ""},
        {"train s3 mamba2:state=64 --dim 64 --print-config", "model.state=64 ", "command line"},
        {"train s3 lstm --dim 20 --match params=20k --print-config", "dim=34 ", "--match"},
        {"train s3 lstm --dim 34 --match params=20k --print-config", "dim=34 ", "command line"},
        {"bench s3 --models lstm --dim 20,30 --match params=20k --print-config", "dim=35 ", "--match"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) expect_origin(rows[i][0], rows[i][1], rows[i][2]);
}
END_TEST

/* If the command line only names a task of a plan, its options are from the plan. */
START_TEST(the_options_of_a_task_are_from_the_place_that_wrote_them) {
    static const char *const rows[][3] = {
        {"bench state-tracking parity --models lstm --print-config", "task.test_length=40,128,256 ", "plan"},
        {"bench state-tracking parity:test_length=9 --models lstm --print-config", "task.test_length=9 ",
         "command line"},
        {"bench parity:test_length=9 --models lstm --print-config", "task.test_length=9 ", "command line"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) expect_origin(rows[i][0], rows[i][1], rows[i][2]);
}
END_TEST

#define OF_BDLRU " model.blocks model.m model.gate model.selective model.gate-init"

/* A key that only some of the runs have is named once, whichever run is the first. */
START_TEST(the_keys_in_which_runs_differ_are_named) {
    static const char *const rows[][2] = {
        {"lstm bdlru:m=5", "# the 2 runs differ in: model model.hidden" OF_BDLRU "\n"},
        {"bdlru:m=5 lstm", "# the 2 runs differ in: model" OF_BDLRU " model.hidden\n"},
        {"lstm lru bdlru lru:state=3", "# the 4 runs differ in: model model.hidden model.state" OF_BDLRU "\n"},
    };
    char arguments[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(arguments, sizeof arguments, "bench s3 --models '%s' --print-config", rows[i][0]);
        expect_status(run(arguments), 0, arguments);
        expect_text(out, rows[i][1], arguments);
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
    tcase_add_test(c, a_profile_trains_the_run_of_bench);
    tcase_add_test(c, a_profile_trains_the_run_of_bench_with_a_config_file);
    tcase_add_test(c, a_printed_option_has_its_origin);
    tcase_add_test(c, a_size_that_match_chose_is_from_match);
    tcase_add_test(c, the_options_of_a_task_are_from_the_place_that_wrote_them);
    tcase_add_test(c, the_keys_in_which_runs_differ_are_named);
    suite_add_tcase(s, c);
    return s;
}

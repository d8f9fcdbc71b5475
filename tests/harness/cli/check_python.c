/* check_python.c - docs/python.md as its readers run it, where python3 is; what it exports is read back. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/store/record.h"
#include "tests/lib/not_run.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

/* Without it there is nothing to run the page by: the program does not need it. */
static bool has_python(const char *test) {
    bool there = system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1") == 0;
    if (!there) not_run("python", test, "there is no python3, of 3.9 or later");
    return there;
}

START_TEST(the_page_runs_block_after_block) {
    char command[1024], text[512];
    size_t size;
    if (!has_python("the_page_runs_block_after_block")) return;
    snprintf(command, sizeof command, "python3 tests/python/page.py docs/python.md %s %s tools >%s/said 2>&1",
             program_folder, named_program("LRNN", "./lrnn"), program_folder);
    int status = system(command);
    snprintf(text, sizeof text, "%s/said", program_folder);
    char *said = slurp(text, &size);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "docs/python.md:\n%.3000s", said);
    free(said);
}
END_TEST

/* Without the weights of the first attempt, which are the same bits; also from packed records. */
START_TEST(weights_are_those_that_the_record_names) {
    static const char train[] = "train s3:length=4,n_train=64,n_val=16,n_test=16 lstm --dim 8 --layers 1 --batch 8 "
                                "--steps 2 --threads 1 --quiet --json --out %s/store%s --seed %d";
    char command[1024], said[512], id[3][40];
    if (!has_python("weights_are_those_that_the_record_names")) return;
    for (int i = 0; i < 3; i++) { /* twice the same run, and one that keeps nothing */
        snprintf(command, sizeof command, train, program_folder,
                 i == 1   ? " --force"
                 : i == 2 ? " --keep-weights no"
                          : "",
                 i / 2);
        expect_status(run(command), 0, command);
        ck_assert_int_eq(sscanf(out, "{\"run_id\":\"%32[0-9a-f]", id[i]), 1);
    }
    ck_assert_str_eq(id[0], id[1]);
    snprintf(command, sizeof command, "%s/store/weights/%s.safetensors", program_folder, id[0]);
    ck_assert_int_eq(unlink(command), 0);
    snprintf(command, sizeof command,
             "-c 'import sys; sys.path.insert(0, \"tools\"); import lrnn\n"
             "print(\"embed\" in \" \".join(lrnn.weights(\"%s/store\", \"%.8s\")))\n"
             "for id in \"\", \"%.8s\":\n"
             "    try: lrnn.weights(\"%s/store\", id)\n"
             "    except FileNotFoundError as e: print(e)'",
             program_folder, id[0], id[2], program_folder);
    expect_status(run_program(program_folder, "python3", command), 0, command);
    snprintf(said, sizeof said, "True\n2 runs in %s/store/runs begin with ''\nrun %s kept no weights\n", program_folder,
             id[2]);
    ck_assert_str_eq(out, said);
    char pack[256];
    snprintf(pack, sizeof pack, "store pack %s/store", program_folder);
    expect_status(run(pack), 0, pack);
    expect_status(run_program(program_folder, "python3", command), 0, command);
    ck_assert_str_eq(out, said);
}
END_TEST

START_TEST(records_of_a_later_schema_are_refused_from_python) {
    char command[1024], said[256];
    if (!has_python("records_of_a_later_schema_are_refused_from_python")) return;
    snprintf(command, sizeof command,
             "-c 'import sys; sys.path.insert(0, \"tools\"); import lrnn, pathlib\n"
             "folder = pathlib.Path(\"%s/later/runs/ab\"); folder.mkdir(parents=True)\n"
             "(folder / \"ab.json\").write_text(\"{\\\"run\\\": {\\\"schema\\\": %d}}\")\n"
             "try: lrnn.load(\"%s/later\")\n"
             "except ValueError as e: print(e)'",
             program_folder, RECORD_SCHEMA + 1, program_folder);
    expect_status(run_program(program_folder, "python3", command), 0, command);
    snprintf(said, sizeof said, "/ab.json is of schema %d; this file reads schema %d: ", RECORD_SCHEMA + 1,
             RECORD_SCHEMA);
    expect_text(out, said, "lrnn.load");
}
END_TEST

START_TEST(dumps_are_refused_in_a_sentence) {
    expect_status(run("data dump s3"), 2, "data dump s3");
    expect_text(err, "say into which file", "data dump");
    expect_status(run("data dump s3 /nowhere/x.npz --count 3"), 1, "data dump");
    expect_text(err, "cannot write /nowhere/x.npz: No such file or directory", "data dump");
    expect_status(run("data dump s3 /nowhere/x.csv --count 3"), 2, "data dump");
    expect_text(err, "/nowhere/x.csv ends with neither .npz nor .jsonl; name it so, or say --format", "data dump");
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
    tcase_add_test(c, weights_are_those_that_the_record_names);
    tcase_add_test(c, dumps_are_refused_in_a_sentence);
    tcase_add_test(c, records_of_a_later_schema_are_refused_from_python);
    suite_add_tcase(suite, c);
    return suite;
}

/* check_reproduce.c - tools/reproduce.sh: recorded runs are trained again and compared with their records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "harness/store/record_files.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

/* Runs the script with the records of folder r; second runs go to folder o, rows to rows.csv. */
static int reproduce(const char *arguments) {
    char words[512], path[128];
    snprintf(path, sizeof path, "%s/r", program_folder);
    ck_assert_int_eq(setenv("RECORDS", path, 1), 0);
    snprintf(path, sizeof path, "%s/o", program_folder);
    ck_assert_int_eq(setenv("OUT", path, 1), 0);
    snprintf(path, sizeof path, "%s/rows.csv", program_folder);
    ck_assert_int_eq(setenv("TO", path, 1), 0);
    snprintf(words, sizeof words, "%s %s", named_program("LRNN", "./lrnn"), arguments);
    return run_program(program_folder, "tools/reproduce.sh", words);
}

static void train(void) {
    char arguments[256];
    snprintf(arguments, sizeof arguments, "bench state-tracking s3 --models lstm --profile smoke --quiet --out %s/r",
             program_folder);
    expect_status(run(arguments), 0, arguments);
}

/* Changes the record: its configuration gets an option that the program lacks, or a loss other last digits. */
static void alter_record(bool option) {
    char command[256], path[256];
    size_t size;
    struct arena arena = {0};
    struct error e;
    struct run_record *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    snprintf(command, sizeof command, "find %s/r/runs -name '*.json' | tr -d '\\n' >%s/path", program_folder,
             program_folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(path, sizeof path, "%s/path", program_folder);
    char *record = slurp(path, &size);
    ck_assert_int_eq(arena_reserve(&arena, 1 << 24, &e), ST_OK);
    ck_assert_msg(record_read(record, r, &arena, &e) == ST_OK, "%s", e.text);
    if (option)
        strcat(r->config, "min-gain=0\n");
    else
        r->curve[0].loss *= 1 + 1e-15;
    snprintf(path, sizeof path, "%s/r", program_folder);
    ck_assert_int_eq(remove(record), 0);
    ck_assert_msg(record_write(path, r, NULL, &e) == ST_OK, "%s", e.text);
    free(record);
    arena_free(&arena);
    free(r);
}

START_TEST(a_cell_and_a_sample_agree_with_their_records) {
    static const char cell[] = "cell state-tracking s3 lstm smoke", sample[] = "sample 5 1 100";
    char pack[256];
    train();
    snprintf(pack, sizeof pack, "store pack %s/r", program_folder);
    expect_status(run(pack), 0, pack);
    expect_status(reproduce(cell), 0, cell);
    expect_text(out, "state-tracking, s3, lstm: 1 of 1 runs on record", cell);
    expect_text(out, "the bits agree: ", cell);
    expect_text(out, "1 runs: 1 with the same bits; 0 with other bits by the same products", cell);
    expect_text(out, " by the second runs: it agrees", cell);
    expect_status(reproduce(sample), 0, sample);
    expect_text(out, "5 of 1 runs that took at most 100 s (seed 1)", sample);
    expect_text(out, "1 with the same bits", sample);
    ck_assert(is_in_folder("rows.csv"));
}
END_TEST

START_TEST(other_bits_by_the_same_products_are_a_failure) {
    static const char sample[] = "sample 1 1 100";
    train();
    alter_record(false);
    expect_status(reproduce(sample), 1, sample);
    expect_text(out, " (the curves part at step ", sample);
    expect_text(out, "0 with the same bits; 1 with other bits by the same products", sample);
}
END_TEST

START_TEST(a_run_that_cannot_be_repeated_has_a_row) {
    static const char sample[] = "sample 1 1 100";
    char path[128];
    size_t size;
    train();
    alter_record(true);
    expect_status(reproduce(sample), 1, sample);
    expect_text(out, "  not repeated: run ", sample);
    expect_text(out, "0 with other bits by the same products; 1 not repeated", sample);
    snprintf(path, sizeof path, "%s/rows.csv", program_folder);
    char *rows = slurp(path, &size);
    expect_text(rows, " has no option 'min-gain'", sample);
    free(rows);
    snprintf(path, sizeof path, "store check %s/r", program_folder);
    expect_status(run(path), 0, path);
    expect_text(out, "/r: 1 record, all whole; 1 cannot be repeated, the first because run ", path);
}
END_TEST

START_TEST(what_is_not_on_record_is_said) {
    static const char cell[] = "cell state-tracking s3 rwkv7 smoke";
    train();
    expect_status(reproduce(cell), 2, cell);
    expect_text(err, "reproduce.sh: no such run is on record in ", cell);
    expect_status(reproduce("sample 1"), 2, "sample 1");
    expect_text(err, "sample COUNT SEED MOST", "sample 1");
    ck_assert(!is_in_folder("rows.csv"));
}
END_TEST

Suite *check_reproduce(void) {
    const TTest *const tests[] = {a_cell_and_a_sample_agree_with_their_records,
                                  other_bits_by_the_same_products_are_a_failure,
                                  a_run_that_cannot_be_repeated_has_a_row, what_is_not_on_record_is_said};
    Suite *s = suite_create("reproduce");
    TCase *c = tcase_create("reproduce");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_set_timeout(c, 120);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}

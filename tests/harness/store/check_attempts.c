/* check_attempts.c - attempts at a run that were set aside, and records where no run is looked for: each is counted
 * once, or said. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "tests/harness/store/record_samples.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

static char out[SCRATCH_BYTES];
static char id[RUN_ID_HEX], path[PATH_BYTES], aside[PATH_BYTES + 16];
static struct error problem;

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

/* A run that failed, on record. */
static void make_failed(void) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    scratch_make(out);
    sample_fill(&r, curve, evals, 1);
    r.run.attempt = 1;
    r.run.status = RUN_KILLED;
    ck_ok(record_write(out, &r, NULL, &problem));
    memcpy(id, r.run.run_id, sizeof id);
    record_path(out, id, path, sizeof path);
    snprintf(aside, sizeof aside, "%s.retried", path);
}

static void remove_out(void) {
    scratch_remove(out);
}

static int loaded(void) {
    struct record_set set;
    ck_ok(records_load(&set, out, &problem));
    int n = set.n;
    records_free(&set);
    return n;
}

/* Two sweeps at once, or a kill between the new name and the end of the old one. */
START_TEST(an_attempt_that_is_being_set_aside_is_one) {
    ck_assert_int_eq(link(path, aside), 0);
    ck_assert_int_eq(loaded(), 1);
    ck_ok(record_set_aside(out, id, "retried", &problem));
    ck_assert_int_eq(scratch_count(out, ".json"), 1);
    ck_assert_int_eq(access(aside, F_OK), 0);
    ck_assert_int_eq(loaded(), 1);
}
END_TEST

/* Left by a program that gave it a second one, or merged as two files. */
START_TEST(an_attempt_of_two_names_is_one) {
    char again[sizeof aside + 2];
    bool new;
    char *text;
    size_t size;
    ck_ok(record_set_aside(out, id, "retried", &problem));
    ck_ok(file_read(aside, RECORD_MOST_BYTES, &text, &size, &problem));
    snprintf(again, sizeof again, "%s.2", aside);
    ck_ok(file_put(again, text, size, &new, &problem));
    free(text);
    ck_assert_int_eq(scratch_count(out, ".json.retried"), 2);
    ck_assert_int_eq(loaded(), 1);
}
END_TEST

/* If another file has the name, the next name is taken. */
START_TEST(another_attempt_has_a_name_of_its_own) {
    spill(aside, "other", 5);
    ck_ok(record_set_aside(out, id, "retried", &problem));
    ck_assert_int_eq(scratch_count(out, ".json.retried.2"), 1);
}
END_TEST

START_TEST(a_record_in_the_folder_of_other_runs_is_no_second_run) {
    struct record_set set;
    char folder[PATH_BYTES], wrong[PATH_BYTES + 64];
    snprintf(folder, sizeof folder, "%s/runs/%s", out, strncmp(id, "00", 2) ? "00" : "01");
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    snprintf(wrong, sizeof wrong, "%s/%s.json", folder, id);
    ck_assert_int_eq(link(path, wrong), 0);
    ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
    ck_assert_msg(strstr(problem.text, "no command looks for a run in") && strstr(problem.text, wrong), "%s",
                  problem.text);
}
END_TEST

START_TEST(the_path_of_an_attempt_names_no_run) {
    char folder[PATH_BYTES] = "", found[RUN_ID_HEX], beside[RUN_ID_HEX + 32];
    ck_ok(run_find("show", path, folder, found, &problem));
    ck_assert_str_eq(folder, out);
    ck_assert_str_eq(found, id);
    ck_ok(record_set_aside(out, id, "retried", &problem));
    memset(found, 'x', sizeof found - 1); /* what it held before is no name */
    ck_assert_int_eq(run_find("show", aside, folder, found, &problem), ST_USAGE);
    ck_assert_msg(strstr(problem.text, "is an attempt that was set aside"), "%s", problem.text);
    snprintf(beside, sizeof beside, " record is %s.json beside it", id);
    ck_assert_msg(strstr(problem.text, beside) != NULL, "%s", problem.text);
}
END_TEST

/* --- what a folder shows of them ---------------------------------------------------------------------------------- */

static void make_out(void) {
    scratch_make(out);
}

/* A run that --force set aside and that was broken off: its earlier result stands until there is another. */
START_TEST(an_earlier_result_stands_until_there_is_a_new_one) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct record_set set;
    sample_fill(&r, curve, evals, 1);
    r.run.status = RUN_OK;
    for (int i = 0; i < 3; i++) {
        snprintf(r.run.finished, sizeof r.run.finished, "2026-01-0%dT00:00:00Z", i + 1);
        r.run.test_acc = 0.25 * i;
        ck_ok(record_write(out, &r, NULL, &problem));
        ck_ok(records_load(&set, out, &problem));
        ck_assert_int_eq(set.n, 1);
        ck_assert(!set.list[0].again && set.list[0].replaced == i && set.list[0].run.test_acc == 0.25 * i);
        records_free(&set);
        ck_ok(record_set_aside(out, r.run.run_id, "replaced", &problem));
        ck_ok(records_load(&set, out, &problem));
        ck_assert_int_eq(set.n, 1);
        ck_assert(set.list[0].again && !set.list[0].set_aside && set.list[0].run.test_acc == 0.25 * i);
        records_free(&set);
    }
}
END_TEST

/* Done again after it had failed, it has failed once; a record that was replaced for another reason has gone. */
START_TEST(failed_attempts_are_loaded_beside_the_run) {
    static const struct {
        enum run_status status;
        const char *suffix;
    } earlier[] = {{RUN_KILLED, "retried"}, {RUN_OOM, "retried"}, {RUN_NAN, "replaced"}, {RUN_OK, "replaced"}};
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct record_set set;
    sample_fill(&r, curve, evals, 1);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(record_attempt(out, r.run.run_id), i + 1);
        r.run.attempt = i + 1;
        r.run.status = i < 4 ? earlier[i].status : RUN_OK;
        ck_ok(record_write(out, &r, NULL, &problem));
        if (i < 4) ck_ok(record_set_aside(out, r.run.run_id, earlier[i].suffix, &problem));
    }
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, 4);
    int64_t attempts = 0;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(set.list[i].set_aside, set.list[i].run.status != RUN_OK);
        attempts += set.list[i].run.attempt;
    }
    ck_assert_int_eq(attempts, 1 + 2 + 3 + 5);
    ck_ok(records_export_csv(&set, out, &problem));
    for (int i = 0; i < 2; i++) {
        struct csv_table t;
        char table[PATH_BYTES];
        snprintf(table, sizeof table, "%s/%s.csv", out, i ? "curves" : "runs");
        ck_ok(csv_read(&t, table, &problem));
        ck_assert_int_eq(t.rows, i ? 2 : 4); /* a row per run; the points of the last attempt alone */
        csv_free(&t);
    }
    records_free(&set);
}
END_TEST

Suite *check_attempts(void);
Suite *check_attempts(void) {
    Suite *s = suite_create("attempts");
    TCase *c = tcase_create("attempts");
    tcase_add_checked_fixture(c, make_failed, remove_out);
    tcase_add_test(c, an_attempt_that_is_being_set_aside_is_one);
    tcase_add_test(c, an_attempt_of_two_names_is_one);
    tcase_add_test(c, another_attempt_has_a_name_of_its_own);
    tcase_add_test(c, a_record_in_the_folder_of_other_runs_is_no_second_run);
    tcase_add_test(c, the_path_of_an_attempt_names_no_run);
    suite_add_tcase(s, c);
    TCase *shown = tcase_create("shown");
    tcase_add_checked_fixture(shown, make_out, remove_out);
    tcase_add_test(shown, an_earlier_result_stands_until_there_is_a_new_one);
    tcase_add_test(shown, failed_attempts_are_loaded_beside_the_run);
    suite_add_tcase(s, shown);
    return s;
}

/* check_merge.c - folders taken together whose runs were done again, or whose process died before the weights had their
 * name; and a damaged attempt. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file/safetensors.h"
#include "harness/store/files.h"
#include "harness/store/logs.h"
#include "harness/store/merge.h"
#include "harness/store/record_files.h"
#include "tests/harness/store/record_samples.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define MACHINE "0123456789abcdef"
#define EPOCH   "fedcba9876543210"

static struct error problem;
static char here[SCRATCH_BYTES], there[SCRATCH_BYTES];

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

static void make(void) {
    scratch_make(here);
    scratch_make(there);
}

static void clear(void) {
    scratch_remove(here);
    scratch_remove(there);
}

/* The record of an attempt at run 1, and its weights, of that content, under their name and an ending. */
static void put_bytes(const char *folder, int attempt, const char *content, size_t size, const char *ending) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    char path[PATH_BYTES];
    bool new;
    sample_fill(&r, curve, evals, 1);
    r.run.attempt = attempt;
    r.run.status = RUN_OK;
    strcpy(r.run.machine_id, MACHINE);
    strcpy(r.run.env_epoch, EPOCH);
    record_weights_name(&r.run, "", r.run.ckpt);
    record_hash_bytes(content, size, r.run.ckpt_xxh3);
    ck_ok(record_write(folder, &r, NULL, &problem));
    snprintf(path, sizeof path, "%s/%s%s", folder, r.run.ckpt, ending);
    ck_ok(file_put(path, content, size, &new, &problem));
}

static void put(const char *folder, int attempt, const char *content, const char *ending) {
    put_bytes(folder, attempt, content, strlen(content), ending);
}

static void set_aside(const char *folder) {
    char id[RUN_ID_HEX];
    sample_id(1, id);
    ck_ok(record_set_aside(folder, id, "replaced", &problem));
}

/* The first attempt there is another training than the run here, under the same name of its weights: both folders are
 * whole, and what is here stays. */
START_TEST(a_run_that_was_done_again_elsewhere_is_no_damage) {
    struct merge_count merged;
    struct store_count count;
    put(here, 1, "ours", "");
    put(there, 1, "theirs", "");
    set_aside(there);
    put(there, 2, "again", "");
    ck_ok(store_merge(there, here, &merged, &problem));
    ck_assert_int_eq(merged.records, 0);
    ck_assert_int_eq(merged.known, 2);
    ck_assert_int_eq(merged.other, 2);
    ck_ok(store_check(here, &count, &problem));
    ck_assert(count.records == 1 && count.bare == 0);
    ck_assert_int_eq(scratch_count(here, ".safetensors"), 1);
}
END_TEST

/* If there is no such run yet, all of it is taken over, with the attempt that was set aside and its weights. */
START_TEST(an_attempt_that_was_set_aside_comes_along) {
    struct merge_count merged;
    put(there, 1, "theirs", "");
    set_aside(there);
    put(there, 2, "again", "");
    ck_ok(store_merge(there, here, &merged, &problem));
    ck_assert(merged.records == 2 && merged.weights == 2 && merged.other == 0);
}
END_TEST

START_TEST(weights_that_have_no_name_yet_are_known_by_their_hash) {
    struct merge_count merged;
    struct store_count count;
    put(there, 1, "theirs", ".7.abc.tmp");
    ck_ok(store_check(there, &count, &problem));
    ck_assert_int_eq(count.bare, 0);
    ck_ok(store_merge(there, here, &merged, &problem));
    ck_assert_int_eq(merged.weights, 1);
    ck_ok(store_check(here, &count, &problem));
    ck_assert_int_eq(count.bare, 0);
    ck_assert_int_eq(scratch_count(here, ".safetensors"), 1);
}
END_TEST

/* Sample records name machines that no folder has a row of; whole they are. */
START_TEST(records_of_untold_machines_are_counted) {
    struct store_count count;
    struct machine m = {.id = MACHINE, .env_epoch = EPOCH};
    put(here, 1, "ours", "");
    ck_ok(store_check(here, &count, &problem));
    ck_assert(count.records == 1 && count.unknown == 1);
    ck_ok(machines_export(here, &m, &problem));
    ck_ok(store_check(here, &count, &problem));
    ck_assert(count.records == 1 && count.unknown == 0);
}
END_TEST

/* Writes the two files of --keep-weights all: the best ones' file names the hash of the last. */
static void put_both(const char *folder, const char *last, const char *ending) {
    char path[PATH_BYTES], hash[RUN_ID_HEX], *best;
    size_t size;
    bool new;
    struct run run = {.attempt = 1};
    record_hash("last", hash);
    snprintf(path, sizeof path, "%s/best", folder);
    ck_ok(safetensors_write(path, NULL, 0, &(struct st_pair){"last_xxh3", hash}, 1, &problem));
    ck_ok(file_read(path, 1 << 20, &best, &size, &problem));
    unlink(path);
    put_bytes(folder, 1, best, size, "");
    free(best);
    sample_id(1, run.run_id);
    record_weights_name(&run, ".last", run.ckpt);
    snprintf(path, sizeof path, "%s/%s%s", folder, run.ckpt, ending);
    ck_ok(file_put(path, last, strlen(last), &new, &problem));
}

START_TEST(last_weights_come_along_by_their_hash_and_no_others) {
    struct merge_count merged;
    put_both(there, "last", ".7.abc.tmp");
    ck_ok(store_merge(there, here, &merged, &problem));
    ck_assert_int_eq(merged.weights, 2);
    ck_assert_int_eq(scratch_count(here, ".last.safetensors"), 1);
    ck_assert_int_eq(scratch_count(here, ".tmp"), 0);
    clear();
    make();
    put_both(there, "lost", "");
    ck_assert_int_eq(store_merge(there, here, &merged, &problem), ST_DATA);
    ck_assert_msg(strstr(problem.text, ".last.safetensors is not what weights/"), "%s", problem.text);
    ck_assert_int_eq(scratch_count(here, ""), 0);
}
END_TEST

/* The number of steps in a time is decided once, also by a folder that was merged; what is decided here stays. */
START_TEST(limits_come_along) {
    struct limit_row row = {.seconds = 60, .steps = 100}, found;
    char id[RUN_ID_HEX];
    for (int i = 1; i < 3; i++) {
        sample_id(i, row.run_id);
        ck_ok(limit_append(there, &row, &problem));
    }
    row.steps = 7;
    ck_ok(limit_append(here, &row, &problem));
    for (int i = 0; i < 2; i++) ck_ok(logs_merge(there, here, &problem));
    ck_assert(limit_find(here, row.run_id, 60, &found) && found.steps == 7);
    sample_id(1, id);
    ck_assert(limit_find(here, id, 60, &found) && found.steps == 100);
    size_t size, lines = 0;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/limits.csv", here);
    char *text = slurp(path, &size);
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    ck_assert_uint_eq(lines, 3); /* and the header is one of them */
    free(text);
}
END_TEST

/* Not even an attempt that no table uses may keep a folder from being read. */
START_TEST(a_damaged_attempt_is_moved_away) {
    struct record_set set;
    char id[RUN_ID_HEX], path[PATH_BYTES], aside[PATH_BYTES + 16];
    put(here, 1, "ours", "");
    set_aside(here);
    sample_id(1, id);
    record_path(here, id, path, sizeof path);
    snprintf(aside, sizeof aside, "%s.replaced", path);
    spill(aside, "half", 4);
    ck_assert_int_eq(records_load(&set, here, &problem), ST_DATA);
    ck_ok(records_mend(here, &problem));
    ck_ok(records_load(&set, here, &problem));
    ck_assert_int_eq(set.n, 0);
    records_free(&set);
    ck_assert_int_eq(scratch_count(here, ".replaced.corrupt"), 1);
    ck_assert_int_eq(record_attempt(here, id), 2);
}
END_TEST

Suite *check_merge(void);
Suite *check_merge(void) {
    Suite *s = suite_create("merge");
    TCase *c = tcase_create("merge");
    tcase_add_checked_fixture(c, make, clear);
    tcase_add_test(c, a_run_that_was_done_again_elsewhere_is_no_damage);
    tcase_add_test(c, an_attempt_that_was_set_aside_comes_along);
    tcase_add_test(c, weights_that_have_no_name_yet_are_known_by_their_hash);
    tcase_add_test(c, records_of_untold_machines_are_counted);
    tcase_add_test(c, last_weights_come_along_by_their_hash_and_no_others);
    tcase_add_test(c, limits_come_along);
    tcase_add_test(c, a_damaged_attempt_is_moved_away);
    suite_add_tcase(s, c);
    return s;
}

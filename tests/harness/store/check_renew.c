/* check_renew.c - records of schema 2 written anew: the same values in less space, or the file as it was. */
#include <stdlib.h>
#include <string.h>

#include "harness/store/files.h"
#include "harness/store/merge.h"
#include "harness/store/record_files.h"
#include "harness/store/renew.h"
#include "harness/store/schema.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define ID_1 "46553bcc8c8b3dbc0550f9532c2eee71"
#define ID_2 "5d1e2a709fa568d4e492be34e1f2c508"

static struct error problem;
static char old[SCRATCH_BYTES], new[SCRATCH_BYTES];

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

static void put(const char *folder, const char *id, const char *file) {
    char path[PATH_BYTES];
    size_t size;
    bool fresh;
    char *text = slurp(file, &size);
    record_path(folder, id, path, sizeof path);
    ck_ok(file_put(path, text, size, &fresh, &problem));
    free(text);
}

/* A record as it was written by schema 2, in two folders. */
static void make(void) {
    scratch_make(old);
    scratch_make(new);
    put(old, ID_2, "tests/harness/store/schema-2.json");
    put(new, ID_2, "tests/harness/store/schema-2.json");
}

static void clear(void) {
    scratch_remove(old);
    scratch_remove(new);
}

static struct open_record *open_of(const char *folder, const char *id) {
    char path[PATH_BYTES];
    struct open_record *open;
    record_path(folder, id, path, sizeof path);
    ck_ok(record_open(path, &open, &problem));
    return open;
}

static void expect_file(const char *folder, const char *id, const char *file) {
    char path[PATH_BYTES];
    size_t size, other_size;
    record_path(folder, id, path, sizeof path);
    char *text = slurp(path, &size), *other = slurp(file, &other_size);
    ck_assert_uint_eq(size, other_size);
    ck_assert_mem_eq(text, other, size);
    free(text);
    free(other);
}

START_TEST(records_of_schema_2_say_the_same_in_less_space) {
    struct renew_count count;
    put(new, ID_1, "tests/harness/store/schema-1.json");
    ck_ok(store_renew(new, &count, &problem));
    ck_assert_int_eq(count.records, 2);
    ck_assert_int_eq(count.renewed, 1);
    ck_assert_uint_lt(count.bytes, count.bytes_before);
    expect_file(new, ID_1, "tests/harness/store/schema-1.json");
    struct open_record *before = open_of(old, ID_2), *now = open_of(new, ID_2);
    ck_assert_int_eq(before->record.run.schema, 2);
    ck_assert_int_eq(now->record.run.schema, RECORD_SCHEMA);
    ck_assert_int_gt(before->record.n_curve, 3);
    ck_assert(record_equal(&before->record, &now->record));
    now->record.curve[3].loss *= 1 + 1e-15;
    ck_assert(!record_equal(&before->record, &now->record));
    record_close(before);
    record_close(now);
    size_t bytes = count.bytes;
    ck_ok(store_renew(new, &count, &problem));
    ck_assert_int_eq(count.renewed, 0);
    ck_assert_uint_eq(count.bytes, bytes);
    ck_assert_uint_eq(count.bytes_before, bytes);
    ck_assert_int_eq(scratch_count(new, ".tmp"), 0);
}
END_TEST

START_TEST(what_is_damaged_stays_and_is_named) {
    char path[PATH_BYTES];
    struct renew_count count;
    size_t size;
    record_path(new, ID_2, path, sizeof path);
    char *text = slurp(path, &size);
    text[size / 2] ^= 1;
    spill(path, text, size);
    ck_assert_int_eq(store_renew(new, &count, &problem), ST_DATA);
    ck_assert_msg(strstr(problem.text, path) && strstr(problem.text, "altered"), "%s", problem.text);
    ck_assert_int_eq(count.renewed, 0);
    size_t now;
    char *same = slurp(path, &now);
    ck_assert_uint_eq(now, size);
    ck_assert_mem_eq(same, text, size);
    free(same);
    free(text);
    snprintf(path, sizeof path, "%s/nothing", new);
    ck_assert_int_eq(store_renew(path, &count, &problem), ST_DATA);
    ck_assert_msg(strstr(problem.text, "no run records under") != NULL, "%s", problem.text);
}
END_TEST

/* What a lab's folder of the former program has is no other training. */
START_TEST(the_same_record_in_two_forms_is_one_record) {
    struct renew_count renewed;
    struct merge_count merged;
    ck_ok(store_renew(new, &renewed, &problem));
    ck_ok(store_merge(old, new, &merged, &problem));
    ck_assert_int_eq(merged.known, 1);
    ck_assert_int_eq(merged.other, 0);
    struct open_record *now = open_of(new, ID_2);
    ck_assert_int_eq(now->record.run.schema, RECORD_SCHEMA);
    record_close(now);
}
END_TEST

Suite *check_renew(void);
Suite *check_renew(void) {
    Suite *s = suite_create("renew");
    TCase *c = tcase_create("renew");
    tcase_add_checked_fixture(c, make, clear);
    tcase_add_test(c, records_of_schema_2_say_the_same_in_less_space);
    tcase_add_test(c, what_is_damaged_stays_and_is_named);
    tcase_add_test(c, the_same_record_in_two_forms_is_one_record);
    suite_add_tcase(s, c);
    return s;
}

/* check_record.c - the store of run records: what was written comes back, what was damaged is found, many writers do
 * not lose a run, a full disk or a kill leaves nothing half-visible. */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file/name.h"
#include "core/philox.h"
#include "harness/store/clock.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/logs.h"
#include "harness/store/record.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "harness/store/schema.h"
#include "tests/harness/store/record_samples.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

static char out[SCRATCH_BYTES]; /* a folder of the test's own */
static struct error problem;

static void make_out(void) {
    scratch_make(out);
}

static void remove_out(void) {
    scratch_remove(out);
}

/* Sends the store's messages on stderr to this file from here on. */
static const char *catch_stderr(void) {
    static char path[128];
    snprintf(path, sizeof path, "%s/stderr", out);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    return path;
}

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

/* In a process that a test forked only this one may be used: libcheck's messages are the test's own. */
static enum status try_write(int i) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    sample_fill(&r, curve, evals, i);
    return record_write(out, &r, NULL, &problem);
}

static void write_record(int i) {
    ck_ok(try_write(i));
}

static void id_path(int i, char path[PATH_BYTES]) {
    char id[RUN_ID_HEX];
    sample_id(i, id);
    record_path(out, id, path, PATH_BYTES);
}

static enum build_state check(int i) {
    char id[RUN_ID_HEX];
    sample_id(i, id);
    return record_check(out, id);
}

/* --- what was written comes back ---------------------------------------------------------------------------------- */

START_TEST(every_field_comes_back) {
    struct run_record r, got;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct arena arena = {0};
    char path[PATH_BYTES];
    sample_fill(&r, curve, evals, 7);
    ck_ok(record_write(out, &r, NULL, &problem));
    ck_ok(arena_reserve(&arena, 1 << 20, &problem));
    id_path(7, path);
    ck_ok(record_read(path, &got, &arena, &problem));
    expect_same_record(&r, &got);
    ck_assert_int_eq(check(7), RECORD_DONE);
    ck_assert_int_eq(check(8), RECORD_ABSENT);
    ck_assert_int_eq(scratch_count(out, ""), 1); /* no temporary file stays */
    arena_free(&arena);
}
END_TEST

START_TEST(a_record_without_values_comes_back) {
    struct run_record r, got;
    struct arena arena = {0};
    char path[PATH_BYTES];
    record_init(&r);
    sample_id(1, r.run.run_id);
    r.run.lr = 1e-3; /* a run always has a rate */
    ck_ok(record_write(out, &r, NULL, &problem));
    ck_ok(arena_reserve(&arena, 1 << 20, &problem));
    id_path(1, path);
    ck_ok(record_read(path, &got, &arena, &problem));
    expect_same_record(&r, &got);
    ck_assert_double_nan(got.run.test_acc);
    ck_assert_int_eq(got.run.params, -1);
    arena_free(&arena);
}
END_TEST

START_TEST(text_that_is_not_utf8_is_stored_with_question_marks) {
    struct run_record r;
    struct record_set set;
    record_init(&r);
    sample_id(1, r.run.run_id);
    r.run.lr = 1e-3; /* a run always has a rate */
    strcpy(r.run.task, "s5\xFF");
    ck_ok(record_write(out, &r, NULL, &problem));
    ck_ok(records_load(&set, out, &problem));
    ck_assert_str_eq(set.list[0].run.task, "s5?");
    records_free(&set);
}
END_TEST

START_TEST(records_are_loaded_by_start_then_id) {
    struct record_set set;
    ck_ok(records_load(&set, out, &problem)); /* no folder yet */
    ck_assert_int_eq(set.n, 0);
    records_free(&set);
    for (int i = 0; i < 30; i++) write_record((i * 7) % 30);
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, 30);
    for (int i = 0; i < 30; i++) {
        char id[RUN_ID_HEX];
        sample_id(i, id);
        ck_assert_str_eq(set.list[i].run.run_id, id);
        ck_assert_int_eq(set.list[i].n_curve, 2);
        ck_assert_double_eq(set.list[i].curve[0].acc, 0.9);
    }
    records_free(&set);
}
END_TEST

START_TEST(the_first_record_of_an_id_is_kept) {
    struct run_record r;
    struct record_set set;
    write_record(3);
    record_init(&r);
    sample_id(3, r.run.run_id);
    r.run.test_acc = 0.125;
    ck_ok(record_write(out, &r, NULL, &problem));
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, 1);
    ck_assert_double_ne(set.list[0].run.test_acc, 0.125);
    records_free(&set);
    ck_assert_int_eq(scratch_count(out, ""), 1);
}
END_TEST

START_TEST(an_id_that_is_no_id_is_refused) {
    const char *const bad[] = {"", "abc", "../../../../../../../../etc/pass", "ABCDEF0123456789ABCDEF0123456789"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct run_record r;
        record_init(&r);
        strcpy(r.run.run_id, bad[i]);
        ck_assert_int_eq(record_write(out, &r, NULL, &problem), ST_FAIL);
        ck_assert_int_eq(record_check(out, bad[i]), RECORD_ABSENT);
    }
    ck_assert_int_eq(scratch_count(out, ""), 0);
}
END_TEST

/* --- damage ------------------------------------------------------------------------------------------------------- */

START_TEST(every_truncation_is_found_and_set_aside) {
    char path[PATH_BYTES], aside[PATH_BYTES + 16];
    size_t size;
    write_record(0);
    id_path(0, path);
    snprintf(aside, sizeof aside, "%s.corrupt", path);
    char *whole = slurp(path, &size);
    catch_stderr();
    for (size_t n = 0; n < size; n++) {
        spill(path, whole, n);
        ck_assert_msg(check(0) == RECORD_WAS_CORRUPT, "cut to %zu of %zu bytes", n, size);
        ck_assert_msg(access(path, F_OK) != 0, "cut to %zu bytes: still in place", n);
        struct stat info;
        ck_assert_int_eq(stat(aside, &info), 0);
        ck_assert_uint_eq((size_t)info.st_size, n);
        ck_assert_int_eq(unlink(aside), 0);
    }
    spill(path, whole, size);
    ck_assert_int_eq(check(0), RECORD_DONE);
    free(whole);
}
END_TEST

START_TEST(every_flipped_bit_is_found) {
    struct run_record r, got;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct arena arena = {0};
    size_t size;
    char *text, path[] = "flipped";
    sample_fill(&r, curve, evals, 1);
    ck_ok(arena_reserve(&arena, 1 << 20, &problem));
    ck_ok(record_format(&r, &text, &size, &problem));
    for (int i = 0; i < 10000; i++) {
        struct rng rng = rng_at(1, STREAM_TEST, (uint64_t)i);
        size_t at = rng_below(&rng, size);
        char bit = (char)(1 << rng_below(&rng, 8));
        text[at] ^= bit;
        enum status status = record_parse(text, size, path, r.run.run_id, &got, &arena, &problem);
        ck_assert_msg(status == ST_DATA, "byte %zu, bit %d: status %d", at, bit, status);
        text[at] ^= bit;
    }
    ck_ok(record_parse(text, size, path, r.run.run_id, &got, &arena, &problem));
    expect_same_record(&r, &got);
    free(text);
    arena_free(&arena);
}
END_TEST

START_TEST(a_damaged_record_is_named_kept_and_done_again) {
    char path[PATH_BYTES], aside[PATH_BYTES + 16];
    const char *said = catch_stderr();
    size_t size;
    id_path(5, path);
    for (int i = 1; i <= 3; i++) {
        write_record(5);
        spill(path, "{}\n", (size_t)i);
        ck_assert_int_eq(check(5), RECORD_WAS_CORRUPT);
        ck_assert_int_eq(check(5), RECORD_ABSENT);
        snprintf(aside, sizeof aside, i == 1 ? "%s.corrupt" : "%s.corrupt.%d", path, i);
        char *kept = slurp(aside, &size);
        ck_assert_uint_eq(size, (size_t)i);
        free(kept);
        fflush(stderr);
        char *text = slurp(said, &size);
        ck_assert_ptr_nonnull(strstr(text, aside));
        free(text);
    }
    write_record(5); /* again */
    ck_assert_int_eq(check(5), RECORD_DONE);
}
END_TEST

START_TEST(a_write_over_a_damaged_record_replaces_it) {
    char path[PATH_BYTES];
    catch_stderr();
    write_record(5);
    id_path(5, path);
    spill(path, "damaged\n", 8);
    write_record(5);
    ck_assert_int_eq(check(5), RECORD_DONE);
    ck_assert_int_eq(scratch_count(out, ".corrupt"), 1);
}
END_TEST

START_TEST(a_record_under_another_name_is_damage) {
    char path[PATH_BYTES], other[PATH_BYTES], id[RUN_ID_HEX], folder[PATH_BYTES];
    struct record_set set;
    catch_stderr();
    write_record(1);
    id_path(1, path);
    sample_id(2, id);
    id_path(2, other);
    path_folder(other, folder, sizeof folder);
    ck_ok(make_folder(folder, &problem));
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
    ck_assert_ptr_nonnull(strstr(problem.text, "holds the record of run"));
    ck_assert_int_eq(scratch_count(out, ".corrupt"), 0); /* who reads renames nothing */
    ck_ok(records_mend(out, &problem));
    ck_assert_int_eq(scratch_count(out, ".corrupt"), 1);
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, 0);
    records_free(&set);
    ck_assert_int_eq(check(2), RECORD_ABSENT);
}
END_TEST

START_TEST(a_record_of_another_schema_is_left_alone) {
    struct run_record r;
    struct record_set set;
    struct arena arena = {0};
    char path[PATH_BYTES];
    catch_stderr();
    ck_ok(arena_reserve(&arena, 1 << 16, &problem));
    for (int i = 1; i <= 2; i++) { /* a later one, then an earlier one */
        record_init(&r);
        sample_id(i, r.run.run_id);
        r.run.schema = RECORD_SCHEMA + (i == 1 ? 1 : -1);
        ck_ok(record_write(out, &r, NULL, &problem));
        ck_assert_int_eq(check(i), RECORD_DONE);
        ck_ok(records_mend(out, &problem));
        ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
        ck_assert_ptr_nonnull(strstr(problem.text, "; this program reads schema"));
        id_path(i, path);
        ck_assert_int_eq(access(path, R_OK), 0);
        ck_assert_int_eq(record_read(path, &r, &arena, &problem), ST_DATA);
        ck_assert_int_eq(unlink(path), 0);
    }
    arena_free(&arena);
}
END_TEST

/* Whole bytes that this program did not make: record 1 with a line more, and a checksum that holds. */
static void write_altered(const char *line) {
    char path[PATH_BYTES], sum[RUN_ID_HEX];
    size_t size;
    write_record(1);
    id_path(1, path);
    char *text = slurp(path, &size), *body = malloc(size + 64), *whole = malloc(size + 128);
    sprintf(body, "%s,\n%s", line, strchr(text, '\n') + 1);
    record_hash(body, sum);
    int n = sprintf(whole, "{\"checksum\": \"%s\",\n%s", sum, body);
    spill(path, whole, (size_t)n);
    free(text);
    free(body);
    free(whole);
}

/* An error, not damage, and nothing is renamed. */
START_TEST(a_record_with_duplicate_keys_is_refused) {
    struct record_set set;
    write_altered("\"config\": \"\"");
    ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
    ck_assert_ptr_nonnull(strstr(problem.text, "duplicate"));
    ck_assert_int_eq(scratch_count(out, ".corrupt"), 0);
}
END_TEST

/* Damage, which is renamed as other damage is. */
START_TEST(a_record_with_a_number_too_large_is_damaged) {
    char id[RUN_ID_HEX];
    struct record_set set;
    write_altered("\"large\": 1e400");
    sample_id(1, id);
    ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
    ck_assert_ptr_nonnull(strstr(problem.text, "has a number that is too large"));
    ck_assert_int_eq(record_check(out, id), RECORD_WAS_CORRUPT);
    ck_assert_int_eq(scratch_count(out, ".corrupt"), 1);
    write_altered("\"schema\": 99, \"large\": 1e400"); /* a later program's, which reads it */
    ck_assert_int_eq(record_check(out, id), RECORD_DONE);
    ck_assert_int_eq(scratch_count(out, ".corrupt"), 1);
}
END_TEST

/* Rows are grouped by rate, so that a record without one is named before any is made. */
START_TEST(a_record_without_a_rate_is_refused) {
    struct run_record r;
    struct record_set set;
    record_init(&r);
    sample_id(1, r.run.run_id);
    ck_ok(record_write(out, &r, NULL, &problem));
    ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
    ck_assert_ptr_nonnull(strstr(problem.text, "the learning rate, lr in runs, is no number"));
}
END_TEST

START_TEST(a_pipe_in_place_of_a_record_is_refused_at_once) {
    struct record_set set;
    char path[PATH_BYTES];
    write_record(1);
    id_path(1, path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
    ck_assert_ptr_nonnull(strstr(problem.text, "it is not a file"));
}
END_TEST

/* --- hard times --------------------------------------------------------------------------------------------------- */

START_TEST(an_unwritable_folder_is_named) {
    struct run_record r;
    char blocked[PATH_BYTES], good[sizeof out];
    record_init(&r);
    sample_id(1, r.run.run_id);
    snprintf(blocked, sizeof blocked, "%s/file", out);
    spill(blocked, "", 0);
    ck_assert_int_eq(record_write(blocked, &r, NULL, &problem), ST_FAIL);
    ck_assert_ptr_nonnull(strstr(problem.text, blocked));
    ck_assert_int_eq(record_write("/proc/lrnn", &r, NULL, &problem), ST_FAIL);
    ck_assert_ptr_nonnull(strstr(problem.text, "/proc/lrnn"));
    strcpy(good, out);
    ck_assert_int_eq(make_folder(good, &problem), ST_OK);
}
END_TEST

/* No file may grow beyond `bytes`: writes fail as on a full disk. libcheck's own file is under it too, so the test
 * lifts it before it asserts anything. */
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

START_TEST(a_full_disk_loses_nothing_and_leaves_nothing_half_visible) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct record_set set;
    struct perf_row row = {.cell_id = "c", .tok_per_s = 5, .samples = 30};
    char path[PATH_BYTES];
    size_t before, after;
    signal(SIGXFSZ, SIG_IGN);
    write_record(0);
    ck_ok(perf_append(out, &row, &problem));
    ck_ok(records_load(&set, out, &problem));
    ck_ok(records_export_csv(&set, out, &problem));
    snprintf(path, sizeof path, "%s/perf.csv", out);
    free(slurp(path, &before));
    sample_fill(&r, curve, evals, 1);
    for (rlim_t bytes = 0; bytes < 1000; bytes += 37) {
        struct error why[2];
        limit_files(bytes);
        enum status written = record_write(out, &r, NULL, &why[0]), exported = records_export_csv(&set, out, &why[1]);
        limit_files(RLIM_INFINITY);
        ck_assert_int_eq(written, ST_FAIL);
        ck_assert_int_eq(exported, ST_FAIL);
        ck_assert_ptr_nonnull(strstr(why[0].text, out));
        ck_assert_ptr_nonnull(strstr(why[1].text, "runs.csv: File too large"));
        ck_assert_int_eq(scratch_count(out, ".tmp"), 0);
    }
    limit_files(before + 10); /* a part of the row fits */
    enum status appended = perf_append(out, &row, &problem);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(appended, ST_FAIL);
    free(slurp(path, &after));
    ck_assert_uint_eq(after, before);
    records_free(&set);
    ck_assert_int_eq(check(0), RECORD_DONE);
    ck_assert_int_eq(check(1), RECORD_ABSENT);
    ck_ok(record_write(out, &r, NULL, &problem));
    ck_assert_int_eq(check(1), RECORD_DONE);
}
END_TEST

#define WRITERS 16
#define RUNS    50
#define SHARED  5

START_TEST(sixteen_writers_lose_no_run) {
    for (int p = 0; p < WRITERS; p++)
        if (fork() == 0) {
            for (int i = 0; i < RUNS; i++) {
                if (try_write(SHARED + p * RUNS + i) != ST_OK) _exit(1);
                if (i % 10 == 0 && try_write(i / 10) != ST_OK) _exit(1); /* the same ones in every process */
            }
            _exit(0);
        }
    for (int p = 0; p < WRITERS; p++) {
        int state;
        ck_assert_int_gt(wait(&state), 0);
        ck_assert_int_eq(state, 0);
    }
    struct record_set set;
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, SHARED + WRITERS * RUNS);
    records_free(&set);
    for (int i = 0; i < SHARED + WRITERS * RUNS; i++) ck_assert_int_eq(check(i), RECORD_DONE);
    ck_assert_int_eq(scratch_count(out, ""), SHARED + WRITERS * RUNS);
}
END_TEST

START_TEST(kills_at_any_moment_lose_no_finished_run) {
    int next = 0, killed_inside = 0;
    for (int kill_number = 0; kill_number < 60; kill_number++) {
        int ends[2], first = next;
        ck_assert_int_eq(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            for (int i = first;; i++) {
                if (try_write(i) != ST_OK) _exit(1);
                if (write(ends[1], &i, sizeof i) != sizeof i) _exit(1); /* this one is reported done */
            }
        }
        struct rng rng = rng_at(2, STREAM_TEST, (uint64_t)kill_number);
        usleep((useconds_t)(500 + rng_below(&rng, 8000)));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(ends[1]);
        for (int i; read(ends[0], &i, sizeof i) == sizeof i;) next = i + 1;
        close(ends[0]);
        for (int i = first; i < next; i++) ck_assert_int_eq(check(i), RECORD_DONE);
        enum build_state state = check(next); /* the one under way: whole, or not there */
        ck_assert_int_ne(state, RECORD_WAS_CORRUPT);
        killed_inside += state == RECORD_ABSENT;
        next += state == RECORD_DONE;
    }
    struct record_set set;
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, next);
    records_free(&set);
    ck_assert_int_gt(next, 0);
    ck_assert_int_gt(killed_inside, 0);
}
END_TEST

START_TEST(times_are_rfc_3339_and_run_forward) {
    char text[32];
    int year, month, day, hour, minute, second, used = 0;
    time_now_text(text, sizeof text);
    ck_assert_int_eq(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute, &second, &used),
                     6);
    ck_assert_int_eq(used, 20);
    ck_assert_uint_eq(strlen(text), 20);
    ck_assert_int_ge(year, 2024);
    double before = time_now_s();
    usleep(2000);
    double passed = time_now_s() - before;
    ck_assert_double_ge(passed, 0.002);
    ck_assert_double_le(passed, 60);
}
END_TEST

START_TEST(the_hash_is_xxh3_128) {
    char hex[RUN_ID_HEX];
    record_hash("", hex); /* the empty input of the reference implementation's own table */
    ck_assert_str_eq(hex, "99aa06d3014798d86001c324468d497f");
}
END_TEST

Suite *check_record(void) {
    const TTest *const tests[] = {
        every_field_comes_back,
        a_record_without_values_comes_back,
        text_that_is_not_utf8_is_stored_with_question_marks,
        records_are_loaded_by_start_then_id,
        the_first_record_of_an_id_is_kept,
        an_id_that_is_no_id_is_refused,
        every_truncation_is_found_and_set_aside,
        every_flipped_bit_is_found,
        a_damaged_record_is_named_kept_and_done_again,
        a_write_over_a_damaged_record_replaces_it,
        a_record_under_another_name_is_damage,
        a_record_of_another_schema_is_left_alone,
        a_record_without_a_rate_is_refused,
        a_pipe_in_place_of_a_record_is_refused_at_once,
        a_record_with_duplicate_keys_is_refused,
        a_record_with_a_number_too_large_is_damaged,
        an_unwritable_folder_is_named,
        a_full_disk_loses_nothing_and_leaves_nothing_half_visible,
        sixteen_writers_lose_no_run,
        kills_at_any_moment_lose_no_finished_run,
        times_are_rfc_3339_and_run_forward,
        the_hash_is_xxh3_128,
    };
    Suite *s = suite_create("record");
    TCase *c = tcase_create("record");
    tcase_add_checked_fixture(c, make_out, remove_out);
    tcase_set_timeout(c, 120);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}

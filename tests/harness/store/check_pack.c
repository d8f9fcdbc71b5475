/* check_pack.c - packed records: every reader finds them, writers keep them, and damage to a pack is told. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "harness/store/claim.h"
#include "harness/store/merge.h"
#include "harness/store/pack/store_pack.h"
#include "harness/store/record_files.h"
#include "tests/harness/store/record_samples.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define RUNS 6 /* the sample ids begin with two pairs of digits */

static struct error problem;
static char out[SCRATCH_BYTES];
static char *texts[RUNS];

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

/* The id of run i: runs of equal i % 2 share a folder. */
static void id_of(int i, char id[RUN_ID_HEX]) {
    snprintf(id, RUN_ID_HEX, "%s%030d", i % 2 ? "ab" : "0f", i);
}

static void path_of(int i, char path[PATH_BYTES]) {
    char id[RUN_ID_HEX];
    id_of(i, id);
    record_path(out, id, path, PATH_BYTES);
}

static bool write_run(int i, double accuracy) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    bool won;
    sample_fill(&r, curve, evals, i);
    id_of(i, r.run.run_id);
    r.run.status = RUN_OK;
    r.run.test_acc = accuracy;
    ck_ok(record_write(out, &r, &won, &problem));
    return won;
}

static void make(void) {
    char path[PATH_BYTES];
    size_t size;
    scratch_make(out);
    for (int i = 0; i < RUNS; i++) {
        write_run(i, i / 8.0);
        path_of(i, path);
        texts[i] = slurp(path, &size);
    }
}

static void clear(void) {
    for (int i = 0; i < RUNS; i++) free(texts[i]);
    scratch_remove(out);
}

static void pack_all(void) {
    struct pack_count count;
    ck_ok(store_pack(out, &count, &problem));
    ck_assert_int_eq(count.records, RUNS);
    ck_assert_int_eq(count.files, 2);
    ck_assert_int_eq(scratch_count(out, ".json"), 0);
}

static void expect_loaded(int n, int changed, double accuracy) {
    struct record_set set;
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, n);
    for (int i = 0; i < n; i++) {
        int number = atoi(set.list[i].run.run_id + 2);
        ck_assert_double_eq(set.list[i].run.test_acc, number == changed ? accuracy : number / 8.0);
    }
    records_free(&set);
}

START_TEST(every_reader_finds_packed_records) {
    struct open_record *open;
    struct store_count count;
    struct merge_count merged;
    char path[PATH_BYTES], id[RUN_ID_HEX], found[RUN_ID_HEX], folder[PATH_BYTES], copy[SCRATCH_BYTES];
    pack_all();
    expect_loaded(RUNS, -1, 0);
    for (int i = 0; i < RUNS; i++) {
        path_of(i, path);
        id_of(i, id);
        ck_assert_int_eq(record_check(out, id), RECORD_DONE);
        ck_ok(run_record_open("show", out, id, &open, &problem));
        ck_assert_double_eq(open->record.run.test_acc, i / 8.0);
        record_close(open);
        snprintf(folder, sizeof folder, "%s", out);
        ck_ok(run_find("show", id, folder, found, &problem));
        ck_assert_str_eq(found, id);
    }
    ck_ok(store_check(out, &count, &problem));
    ck_assert_int_eq(count.records, RUNS);
    scratch_make(copy);
    ck_ok(store_merge(out, copy, &merged, &problem));
    ck_assert_int_eq(merged.records, RUNS);
    ck_ok(store_merge(out, copy, &merged, &problem));
    ck_assert_int_eq(merged.known, RUNS);
    scratch_remove(copy);
    id_of(RUNS, id); /* a run of the same folder that is not there */
    ck_assert_int_eq(record_check(out, id), RECORD_ABSENT);
    ck_assert_int_eq(run_record_open("show", out, id, &open, &problem), ST_DATA);
    ck_assert_ptr_nonnull(strstr(problem.text, "is not finished"));
}
END_TEST

START_TEST(unpacked_records_have_their_bytes_again) {
    struct pack_count count;
    char path[PATH_BYTES], *first, *second, *text;
    size_t size, first_size;
    snprintf(path, sizeof path, "%s/runs/ab.gz", out);
    pack_all();
    first = slurp(path, &first_size);
    ck_ok(store_unpack(out, NULL, &count, &problem));
    ck_assert_int_eq(count.records, RUNS);
    ck_assert_int_eq(count.files, 2);
    ck_assert_int_eq(scratch_count(out, ".gz"), 0);
    for (int i = 0; i < RUNS; i++) {
        char own[PATH_BYTES];
        path_of(i, own);
        text = slurp(own, &size);
        ck_assert_str_eq(text, texts[i]);
        free(text);
    }
    pack_all();
    second = slurp(path, &size);
    ck_assert(size == first_size && memcmp(first, second, size) == 0);
    free(first);
    free(second);
}
END_TEST

/* A second result of a packed run is not written; one that is asked for (--force) is. */
START_TEST(a_packed_record_is_kept_until_it_is_set_aside) {
    char id[RUN_ID_HEX];
    pack_all();
    ck_assert(!write_run(3, 0.9375));
    expect_loaded(RUNS, -1, 0);
    ck_assert_int_eq(scratch_count(out, ".json"), 0);
    id_of(3, id);
    ck_ok(record_set_aside(out, id, "replaced", &problem));
    ck_assert_int_eq(record_check(out, id), RECORD_ABSENT);
    ck_assert_int_eq(record_attempt(out, id), 2);
    ck_assert(write_run(3, 0.9375));
    expect_loaded(RUNS, 3, 0.9375);
    struct pack_count count;
    ck_ok(store_pack(out, &count, &problem)); /* the earlier result stays a file */
    ck_assert_int_eq(count.records, 3);
    ck_assert_int_eq(scratch_count(out, ".json.replaced"), 1);
    expect_loaded(RUNS, 3, 0.9375);
}
END_TEST

/* As after a process that was killed before it removed what it had packed, or unpacked. */
START_TEST(a_record_in_both_places_counts_once) {
    struct pack_count count;
    char path[PATH_BYTES];
    pack_all();
    for (int i = 0; i < RUNS; i += 2) {
        bool is_new;
        path_of(i, path);
        ck_ok(file_put(path, texts[i], strlen(texts[i]), &is_new, &problem));
    }
    expect_loaded(RUNS, -1, 0);
    ck_ok(store_pack(out, &count, &problem));
    ck_assert_int_eq(count.records, 3);
    ck_assert_int_eq(scratch_count(out, ".json"), 0);
    expect_loaded(RUNS, -1, 0);
    bool is_new; /* what is in the folder is taken, also if it is damaged */
    path_of(0, path);
    ck_ok(file_put(path, "damaged", 7, &is_new, &problem));
    struct record_set set;
    ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
}
END_TEST

START_TEST(new_records_join_their_pack) {
    struct pack_count count;
    pack_all();
    write_run(RUNS, RUNS / 8.0);
    expect_loaded(RUNS + 1, -1, 0);
    ck_ok(store_pack(out, &count, &problem));
    ck_assert_int_eq(count.records, 1);
    ck_assert_int_eq(count.files, 1);
    expect_loaded(RUNS + 1, -1, 0);
    ck_ok(store_pack(out, &count, &problem)); /* nothing is left to do */
    ck_assert_int_eq(count.records, 0);
}
END_TEST

/* Every byte of a pack in turn, and every length. What gzip does not protect is the name and the time in its header. */
START_TEST(damage_to_a_pack_is_told) {
    char path[PATH_BYTES], id[RUN_ID_HEX], *whole;
    size_t size, refused = 0;
    struct record_set set;
    pack_all();
    snprintf(path, sizeof path, "%s/runs/ab.gz", out);
    id_of(1, id);
    whole = slurp(path, &size);
    ck_assert_uint_gt(size, 0);
    for (size_t i = 0; i < 2 * size; i++) {
        char *damaged = malloc(size);
        ck_assert_ptr_nonnull(damaged);
        memcpy(damaged, whole, size);
        damaged[i % size] ^= (char)(1 << i % 8);
        spill(path, damaged, i < size ? size : i - size);
        free(damaged);
        enum status status = records_load(&set, out, &problem);
        if (status == ST_OK) {
            ck_assert_msg(i >= 4 && i < 10, "byte %zu of %zu", i, size);
            ck_assert_int_eq(set.n, RUNS);
            records_free(&set);
            continue;
        }
        refused++;
        ck_assert_int_eq(status, ST_DATA);
        ck_assert_ptr_nonnull(strstr(problem.text, "ab.gz"));
        ck_assert_ptr_nonnull(strstr(problem.text, "move it away"));
    }
    ck_assert_uint_ge(refused, 2 * size - 6);
    struct pack_count count; /* the last damage is still there: nothing is packed over it, nothing is lost */
    ck_assert_int_eq(store_pack(out, &count, &problem), ST_DATA);
    ck_assert_int_eq(store_unpack(out, NULL, &count, &problem), ST_DATA);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert(write_run(1, 1 / 8.0)); /* a result is not lost because a pack cannot be read */
    spill(path, whole, size);
    expect_loaded(RUNS, -1, 0);
    free(whole);
}
END_TEST

static void write_pack(const char *text, size_t size) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/runs/ab", out);
    scratch_remove(path);
    snprintf(path, sizeof path, "%s/runs/ab.gz", out);
    gzFile f = gzopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(gzwrite(f, text, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose(f), Z_OK);
}

/* gzip finds all of these whole. */
START_TEST(what_is_no_record_is_refused) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"no record", "expected a record, which begins with"},
        {"{\"checksum\": \"0\"}\n", "expected the record of a run"},
        {"{\"checksum\": \"0\",\n \"run_id\": \"0f000000000000000000000000000000\"}\n", "begins with 'ab'"},
        {"{\"checksum\": \"0\",\n \"run_id\": \"ab00000000000000000000000000000000\"}\n", "32 hexadecimal digits"},
        {"{\"checksum\": \"0\",\n \"run_id\": \"ab/../../../../../../../etc/passwd\"}\n", "32 hexadecimal digits"},
        {"{\"checksum\": \"00000000000000000000000000000000\",\n \"run_id\": \"ab000000000000000000000000000000\"}\n",
         "checksum"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct record_set set;
        write_pack(cases[i].text, strlen(cases[i].text));
        ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
        ck_assert_msg(strstr(problem.text, cases[i].says) != NULL, "case %zu: %s", i, problem.text);
    }
    struct record_set set;
    write_pack("{\"checksum\": \"\0", 15);
    ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
    ck_assert_ptr_nonnull(strstr(problem.text, "no such byte"));
}
END_TEST

/* 64 MB of zeros in 65 KB, whose end is changed: it says that it has 3 GB, or 16 bytes. */
START_TEST(a_pack_unfolds_to_what_it_says_and_no_more) {
    static const unsigned char sizes[][4] = {{0, 0, 0, 0xc0}, {16, 0, 0, 0}};
    static const char *const says[] = {"unfold to at most 6", "zlib"};
    size_t n = (size_t)64 << 20, size;
    char *zeros = calloc(n, 1), path[PATH_BYTES], *bytes;
    ck_assert_ptr_nonnull(zeros);
    write_pack(zeros, n);
    free(zeros);
    snprintf(path, sizeof path, "%s/runs/ab.gz", out);
    bytes = slurp(path, &size);
    for (int i = 0; i < 2; i++) {
        struct record_set set;
        memcpy(bytes + size - 4, sizes[i], 4);
        spill(path, bytes, size);
        ck_assert_int_eq(records_load(&set, out, &problem), ST_DATA);
        ck_assert_msg(strstr(problem.text, says[i]) != NULL, "%s", problem.text);
    }
    free(bytes);
}
END_TEST

START_TEST(a_folder_in_use_is_not_packed) {
    struct claim claim;
    enum claim_state state;
    struct pack_count count;
    char id[RUN_ID_HEX];
    id_of(RUNS, id);
    ck_ok(claim_take(&claim, out, id, "s3 lstm lr 0.001 seed 1", &state, &problem));
    ck_assert_int_eq(store_pack(out, &count, &problem), ST_FAIL);
    ck_assert_ptr_nonnull(strstr(problem.text, "wait for it, or stop it"));
    ck_assert_int_eq(scratch_count(out, ".json"), RUNS);
    claim_done(&claim, out, id);
    pack_all();
}
END_TEST

START_TEST(a_damaged_record_is_not_packed) {
    struct pack_count count;
    char path[PATH_BYTES];
    path_of(2, path);
    spill(path, "{\"checksum\": \"\"}\n", 17);
    ck_assert_int_eq(store_pack(out, &count, &problem), ST_DATA);
    ck_assert_int_eq(scratch_count(out, ".json") + 3 * scratch_count(out, ".gz"), RUNS);
}
END_TEST

/* As on a full disk. */
START_TEST(a_pack_that_cannot_be_written_leaves_the_records) {
    const struct rlimit none = {0, RLIM_INFINITY}, any = {RLIM_INFINITY, RLIM_INFINITY};
    struct pack_count count;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    ck_assert_int_eq(store_pack(out, &count, &problem), ST_FAIL);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &any), 0);
    ck_assert_ptr_nonnull(strstr(problem.text, "cannot write"));
    ck_assert_int_eq(scratch_count(out, ".json"), RUNS);
    ck_assert_int_eq(scratch_count(out, ""), RUNS);
    pack_all();
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    ck_assert_int_eq(store_unpack(out, NULL, &count, &problem), ST_FAIL);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &any), 0);
    ck_assert_int_eq(scratch_count(out, ""), 2);
    expect_loaded(RUNS, -1, 0);
}
END_TEST

Suite *check_pack(void);
Suite *check_pack(void) {
    Suite *s = suite_create("pack");
    TCase *c = tcase_create("pack");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, make, clear);
    tcase_add_test(c, every_reader_finds_packed_records);
    tcase_add_test(c, unpacked_records_have_their_bytes_again);
    tcase_add_test(c, a_packed_record_is_kept_until_it_is_set_aside);
    tcase_add_test(c, a_record_in_both_places_counts_once);
    tcase_add_test(c, new_records_join_their_pack);
    tcase_add_test(c, damage_to_a_pack_is_told);
    tcase_add_test(c, what_is_no_record_is_refused);
    tcase_add_test(c, a_pack_unfolds_to_what_it_says_and_no_more);
    tcase_add_test(c, a_folder_in_use_is_not_packed);
    tcase_add_test(c, a_damaged_record_is_not_packed);
    tcase_add_test(c, a_pack_that_cannot_be_written_leaves_the_records);
    suite_add_tcase(s, c);
    return s;
}

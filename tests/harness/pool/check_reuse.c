/* check_reuse.c - records and checkpoints of another build of the program: said, refused, set aside, marked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/checkpoint.h"
#include "harness/run/train.h"
#include "harness/run/trainer.h"
#include "harness/pool/runner.h"
#include "harness/store/record_files.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"

static struct setup *small(const char *flag, const char *value) {
    return small_run(own_folder, "swiglu", "lru:state=4", flag, value);
}

static void train(struct setup *s, struct run *row) {
    struct error e = {0};
    ck_assert_msg(train_run(s, NULL, row, &e) == ST_OK, "%s", e.text);
}

/* Reads the run's record, has it changed, and puts it in the place of the old one. */
static void change_record(const struct setup *s, void (*change)(struct run *run)) {
    char path[512];
    struct arena arena = {0};
    struct error e = {0};
    struct run_record *record = calloc(1, sizeof *record);
    ck_assert_ptr_nonnull(record);
    ck_assert_int_eq(arena_reserve(&arena, 1 << 24, &e), ST_OK);
    record_path(own_folder, s->id.run_id, path, sizeof path);
    ck_assert_msg(record_read(path, record, &arena, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(record_set_aside(own_folder, s->id.run_id, "old", &e) == ST_OK, "%s", e.text);
    change(&record->run);
    ck_assert_msg(record_write(own_folder, record, NULL, &e) == ST_OK, "%s", e.text);
    arena_free(&arena);
    free(record);
}

static void other_sources(struct run *run) {
    run->source_id[0] = run->source_id[0] == '0' ? '1' : '0';
}

static void no_sources(struct run *run) {
    run->source_id[0] = 0;
}

static void other_compiler(struct run *run) {
    run->compiler[0] = run->compiler[0] == 'x' ? 'y' : 'x';
}

static void (*const changes[])(struct run *run) = {other_sources, no_sources, other_compiler};

START_TEST(a_record_is_known_by_the_build_that_made_it) {
    struct setup *s = small(NULL, NULL);
    struct run row;
    struct reuse found = reuse_find(&s->spec.config, s->id.run_id, false);
    ck_assert(!found.known && !found.other && reuse_wanted(&found));
    train(s, &row);
    ck_assert_uint_eq(strlen(row.source_id), 16);
    ck_assert_int_eq(row.mixed_builds, 0);
    found = reuse_find(&s->spec.config, s->id.run_id, true);
    ck_assert(found.known && !found.other && !found.failed && !reuse_wanted(&found));
    change_record(s, changes[_i]);
    found = reuse_find(&s->spec.config, s->id.run_id, true);
    ck_assert(found.known && found.other && !reuse_wanted(&found));
    small_run_free(s);
}
END_TEST

/* Returns the text that reuse_tell writes to stderr. */
static char *told(int other, int total) {
    char *text = NULL;
    size_t size;
    FILE *was = stderr, *f = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(f);
    stderr = f;
    reuse_tell(other, total);
    stderr = was;
    fclose(f);
    return text;
}

static const char *const lines[] = {
    "", "lrnn: 1 of 3 runs is on record by another build of the program; --force does it again\n",
    "lrnn: 2 of 3 runs are on record by another build of the program; --force does them again\n"};

START_TEST(records_of_another_build_are_told_in_one_line) {
    char *text = told(_i, 3);
    ck_assert_str_eq(text, lines[_i]);
    free(text);
}
END_TEST

START_TEST(force_sets_the_record_aside_and_does_the_run_again) {
    struct setup *s = small(NULL, NULL), *forced = small("force", "yes");
    struct run first, second = {0};
    ck_assert_str_eq(s->id.run_id, forced->id.run_id);
    train(s, &first);
    train(forced, &second);
    ck_assert_str_eq(second.run_id, first.run_id);
    ck_assert(second.test_loss == first.test_loss);
    ck_assert_int_eq(scratch_count(own_folder, ".json.replaced"), 1);
    ck_assert_int_eq(first.attempt, 1);
    ck_assert_int_eq(second.attempt, 2);
    ck_assert_int_eq(scratch_count(own_folder, ".safetensors"), 2); /* each attempt has its own */
    ck_assert_str_ne(first.ckpt, second.ckpt);
    struct reuse found = reuse_find(&s->spec.config, s->id.run_id, false);
    ck_assert(found.known && !found.other);
    small_run_free(s);
    small_run_free(forced);
}
END_TEST

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

/* One step, then a checkpoint. */
static void write_checkpoint(const struct setup *s) {
    struct trainer t;
    struct error e = {0};
    struct run_progress p = {.curve = calloc(64, sizeof *p.curve), .curve_capacity = 64};
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    trainer_step(&t);
    ck_assert_msg(checkpoint_write(&t, &p, &e) == ST_OK, "%s", e.text);
    trainer_free(&t);
    free(p.curve);
}

/* Writes the record as another build would, under a right checksum. */
static void write_foreign(const struct setup *s) {
    char path[512], hex[RUN_ID_HEX];
    write_checkpoint(s);
    snprintf(path, sizeof path, "%s/checkpoints/%s.ckpt", own_folder, s->id.run_id);
    FILE *f = fopen(path, "r+b");
    static char bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, f),
           at = 48; /* after magic and run id: the build, then the numerics version */
    ck_assert_str_eq(bytes + at + 40, s->id.numerics);
    bytes[at] ^= 1;
    record_hash_bytes(bytes, size - 16, hex);
    uint64_t low = strtoull(hex + 16, NULL, 16);
    hex[16] = 0;
    uint64_t high = strtoull(hex, NULL, 16);
    memcpy(bytes + size - 16, &low, 8);
    memcpy(bytes + size - 8, &high, 8);
    rewind(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

START_TEST(a_checkpoint_of_another_build_is_refused_unless_forced) {
    struct setup *s = small(NULL, NULL), *forced = small("force-resume", "yes");
    struct run row = {0};
    struct error e = {0};
    write_foreign(s);
    ck_assert_int_eq(checkpoint_admit(&s->spec, s->id.run_id, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "another build") && strstr(e.text, "--force-resume"), "%s", e.text);
    e = (struct error){0};
    ck_assert_int_eq(train_run(s, NULL, &row, &e), ST_USAGE);
    ck_assert_int_eq(scratch_count(own_folder, ".ckpt"), 1); /* nothing was renamed or removed */
    ck_assert_int_eq(scratch_count(own_folder, ".json"), 0);
    train(forced, &row);
    ck_assert_int_eq(row.mixed_builds, 1);
    ck_assert_int_eq(row.resumed, 1);
    small_run_free(s);
    small_run_free(forced);
}
END_TEST

static void fail_on_record(const struct setup *s) {
    struct error e = {0};
    ck_assert_msg(record_failure(s, RUN_TIMEOUT, "too long", "2026-01-01T00:00:00Z", 1, &e) == ST_OK, "%s", e.text);
}

static enum status run_both(struct setup *a, struct setup *b, bool retry, struct error *e) {
    struct setup *both[] = {a, b};
    struct plan plan = {.setups = both, .n = b ? 2 : 1};
    struct runner_options options = {.jobs = 1, .members = 1, .quiet = true, .retry_failed = retry};
    return runner_do(&plan, &options, e);
}

/* Whether all can be done again is known before the first record is set aside. */
START_TEST(what_cannot_all_be_done_again_keeps_its_records) {
    struct setup *a = small("lr", "0.02"), *b = small(NULL, NULL);
    struct error e = {0};
    fail_on_record(a);
    fail_on_record(b);
    write_foreign(b);
    ck_assert_int_eq(run_both(a, b, true, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "another build") != NULL, "%s", e.text);
    ck_assert_int_eq(scratch_count(own_folder, ".json"), 2);
    ck_assert_int_eq(scratch_count(own_folder, ".retried"), 0);
    small_run_free(a);
    small_run_free(b);
}
END_TEST

static struct run row_of(const struct setup *s) {
    char path[512];
    struct open_record *open;
    struct error e = {0};
    record_path(own_folder, s->id.run_id, path, sizeof path);
    ck_assert_msg(record_open(path, &open, &e) == ST_OK, "%s", e.text);
    struct run row = open->record.run;
    record_close(open);
    return row;
}

/* --force begins anew, whoever wrote the checkpoint; --retry-failed goes on from it, though somebody looked at the row
 * in the meantime. */
START_TEST(force_begins_anew_and_retry_goes_on) {
    struct setup *s = small(NULL, NULL), *forced = small("force", "yes");
    struct error e = {0};
    struct run row = {0};
    fail_on_record(s);
    write_foreign(s);
    ck_assert_msg(run_both(forced, NULL, false, &e) == ST_OK, "%s", e.text);
    row = row_of(s);
    ck_assert(row.status == RUN_OK && row.resumed == 0 && row.attempt == 2);
    ck_assert_int_eq(scratch_count(own_folder, ".ckpt"), 0);
    ck_assert_msg(record_set_aside(own_folder, s->id.run_id, "old", &e) == ST_OK, "%s", e.text);
    fail_on_record(s);
    write_checkpoint(s);
    train(s, &row); /* on record */
    ck_assert_msg(run_both(s, NULL, false, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(scratch_count(own_folder, ".ckpt"), 1);
    ck_assert_msg(run_both(s, NULL, true, &e) == ST_OK, "%s", e.text);
    row = row_of(s);
    ck_assert(row.status == RUN_OK && row.resumed == 1);
    ck_assert_int_eq(scratch_count(own_folder, ".ckpt"), 0);
    small_run_free(s);
    small_run_free(forced);
}
END_TEST

Suite *check_reuse(void);
Suite *check_reuse(void) {
    Suite *suite = suite_create("reuse");
    TCase *c = tcase_create("reuse");
    tcase_add_checked_fixture(c, own_folder_begin, own_folder_end);
    tcase_add_loop_test(c, a_record_is_known_by_the_build_that_made_it, 0, (int)(sizeof changes / sizeof *changes));
    tcase_add_loop_test(c, records_of_another_build_are_told_in_one_line, 0, (int)(sizeof lines / sizeof *lines));
    tcase_add_test(c, force_sets_the_record_aside_and_does_the_run_again);
    tcase_add_test(c, a_checkpoint_of_another_build_is_refused_unless_forced);
    tcase_add_test(c, what_cannot_all_be_done_again_keeps_its_records);
    tcase_add_test(c, force_begins_anew_and_retry_goes_on);
    suite_add_tcase(suite, c);
    return suite;
}

/* check_step_log.c - the loss of every step as CSV: what it says, that it changes nothing, and a run that goes on. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/run/checkpoint.h"
#include "harness/run/train.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/alloc_count.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"

#define STEPS 30

static char folder[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];

static void set_up(void) {
    start_kernels();
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/steps.csv", folder);
}

static void tear_down(void) {
    scratch_remove(folder);
}

static struct setup *warm_run(void) {
    return small_run(folder, "gelu", "bdlru:m=2,blocks=3", "warmup", "7");
}

static enum status train(struct setup *s, const char *log, struct run *row, struct error *e) {
    return train_run(s, &(struct train_hooks){.log_steps = log}, row, e);
}

static void remove_record(const struct setup *s) {
    char name[512];
    snprintf(name, sizeof name, "%s/runs/%.2s/%s.json", folder, s->id.run_id, s->id.run_id);
    ck_assert_int_eq(unlink(name), 0);
}

/* The numbers of a line read back as what the trainer had. */
START_TEST(a_log_holds_every_step_to_the_last_bit) {
    struct setup *s = warm_run();
    struct trainer t;
    struct error e;
    ck_assert_msg(train(s, path, NULL, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    size_t size;
    char *text = slurp(path, &size), *state = NULL;
    ck_assert_str_eq(strtok_r(text, "\n", &state), "step,loss,grad_norm,lr");
    for (int step = 1; step <= STEPS; step++) {
        char *line = strtok_r(NULL, "\n", &state), *end = line;
        ck_assert_msg(line != NULL, "no line for step %d", step);
        trainer_step(&t);
        ck_assert_int_eq(strtoll(end, &end, 10), step);
        ck_assert(strtod(end + 1, &end) == t.state.loss);
        ck_assert(strtod(end + 1, &end) == t.state.grad_norm);
        ck_assert(strtod(end + 1, &end) == t.state.lr);
        ck_assert_int_eq(*end, 0);
    }
    ck_assert_ptr_null(strtok_r(NULL, "\n", &state));
    free(text);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

START_TEST(a_log_changes_no_bit_and_no_identity) {
    struct setup *s = warm_run();
    struct run with, without;
    struct error e;
    ck_assert_msg(train(s, path, &with, &e) == ST_OK, "%s", e.text);
    remove_record(s);
    ck_assert_msg(train(s, NULL, &without, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(with.run_id, without.run_id);
    ck_assert_str_eq(with.ckpt_xxh3, without.ckpt_xxh3);
    ck_assert(with.test_loss == without.test_loss);
    small_run_free(s);
}
END_TEST

START_TEST(a_logged_step_allocates_nothing) {
    struct step_log log = {0};
    struct step_state state = {.loss = 0.1, .grad_norm = 1.0 / 3, .lr = 1e-300};
    struct error e;
    ck_assert_int_eq(step_log_open(&log, path, 0, &e), ST_OK);
    ck_assert_int_eq(step_log_add(&log, &state, &e), ST_OK);
    uint64_t before = allocations();
    int failures = 0; /* libcheck allocates a message for every assertion */
    for (state.step = 1; state.step < 1000; state.step++) failures += step_log_add(&log, &state, &e) != ST_OK;
    uint64_t made = allocations() - before;
    ck_assert_uint_eq(made, 0);
    ck_assert_int_eq(failures, 0);
    ck_assert_int_eq(step_log_close(&log, &e), ST_OK);
}
END_TEST

/* A checkpoint at step 7, written while the log was ahead of it, its last line torn. */
static void interrupt(const struct setup *s, const char *log, size_t size) {
    struct run_progress p = {
        .curve = calloc(64, sizeof *p.curve), .curve_capacity = 64, .solved_step = -1, .gained = -1};
    struct trainer t;
    struct error e;
    remove_record(s);
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    while (t.state.step < 7) trainer_step(&t);
    ck_assert_msg(checkpoint_write(&t, &p, &e) == ST_OK, "%s", e.text);
    spill(path, log, size);
    trainer_free(&t);
    free(p.curve);
}

static void append(const char *name, const char *text) {
    FILE *file = fopen(name, "a");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 100; i++) fputs(text, file);
    fclose(file);
}

static size_t lines(const char *text, int n) {
    const char *at = text;
    while (n--) at = strchr(at, '\n') + 1;
    return (size_t)(at - text);
}

START_TEST(a_run_gone_on_with_goes_on_in_its_log) {
    static const int kept[] = {8, 10, 25}; /* lines, the header among them */
    struct setup *s = warm_run();
    struct error e;
    size_t size, again_size;
    ck_assert_msg(train(s, path, NULL, &e) == ST_OK, "%s", e.text);
    char *whole = slurp(path, &size);
    for (int i = 0; i < 3; i++) {
        interrupt(s, whole, lines(whole, kept[i]) + (i ? 5 : 0));
        if (i == 2) append(path, "\n40,1,1,1\n41,1,1,1\n");
        ck_assert_msg(train(s, path, NULL, &e) == ST_OK, "%s", e.text);
        char *again = slurp(path, &again_size);
        ck_assert_str_eq(again, whole);
        free(again);
    }
    free(whole);
    small_run_free(s);
}
END_TEST

/* A log is neither begun in the middle nor continued after a gap; the checkpoint stays. */
START_TEST(a_log_with_a_gap_is_refused) {
    struct setup *s = warm_run();
    struct error e;
    size_t size;
    ck_assert_msg(train(s, path, NULL, &e) == ST_OK, "%s", e.text);
    char *whole = slurp(path, &size);
    for (int i = 0; i < 4; i++) {
        interrupt(s, whole, i == 0 ? lines(whole, 7) : i == 1 ? lines(whole, 8) - 1 : size);
        if (i == 2) spill(path, "other,header\n1,2,3,4\n", 21);
        if (i == 3) unlink(path);
        ck_assert_int_eq(train(s, path, NULL, &e), ST_DATA);
        ck_assert_msg(strstr(e.text, "after step 7") && strstr(e.text, path), "%s", e.text);
        ck_assert_int_eq(scratch_count(folder, ".ckpt"), 1);
        ck_assert_msg(train(s, NULL, NULL, &e) == ST_OK, "%s", e.text);
    }
    free(whole);
    small_run_free(s);
}
END_TEST

START_TEST(a_finished_run_has_no_steps_to_log) {
    struct setup *s = warm_run();
    struct error e;
    ck_assert_msg(train(s, NULL, NULL, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(train(s, path, NULL, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, s->id.run_id) && strstr(e.text, "--out"), "%s", e.text);
    ck_assert_int_eq(access(path, F_OK), -1);
    small_run_free(s);
}
END_TEST

START_TEST(a_log_that_cannot_be_written_ends_the_run) {
    struct setup *s = warm_run();
    struct error e;
    ck_assert_int_eq(train(s, "/dev/full", NULL, &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, "cannot write /dev/full: No space left on device") != NULL, "%s", e.text);
    ck_assert_int_eq(train(s, folder, NULL, &e), ST_FAIL);
    ck_assert_int_eq(scratch_count(folder, ".json"), 0);
    small_run_free(s);
}
END_TEST

/* A run that is done again keeps its record until it begins. */
START_TEST(a_run_that_cannot_begin_again_keeps_its_record) {
    struct setup *s = warm_run();
    struct error e;
    ck_assert_msg(train(s, NULL, NULL, &e) == ST_OK, "%s", e.text);
    s->spec.config.force = true;
    ck_assert_int_eq(train(s, folder, NULL, &e), ST_FAIL);
    ck_assert_int_eq(scratch_count(folder, ".json"), 1);
    ck_assert_int_eq(scratch_count(folder, ".replaced"), 0);
    ck_assert_msg(train(s, path, NULL, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(scratch_count(folder, ".replaced"), 1);
    ck_assert_int_eq(scratch_count(folder, ".json"), 2);
    small_run_free(s);
}
END_TEST

Suite *check_step_log(void);
Suite *check_step_log(void) {
    Suite *suite = suite_create("step_log");
    TCase *c = tcase_create("step_log");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, a_log_holds_every_step_to_the_last_bit);
    tcase_add_test(c, a_log_changes_no_bit_and_no_identity);
    tcase_add_test(c, a_logged_step_allocates_nothing);
    tcase_add_test(c, a_run_gone_on_with_goes_on_in_its_log);
    tcase_add_test(c, a_log_with_a_gap_is_refused);
    tcase_add_test(c, a_finished_run_has_no_steps_to_log);
    tcase_add_test(c, a_log_that_cannot_be_written_ends_the_run);
    tcase_add_test(c, a_run_that_cannot_begin_again_keeps_its_record);
    suite_add_tcase(suite, c);
    return suite;
}

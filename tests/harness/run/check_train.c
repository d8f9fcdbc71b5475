/* check_train.c - the trainer: resuming, stopping, divergence, what is selected on, and that a step allocates
 * nothing. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/study/study.h"
#include "harness/run/checkpoint.h"
#include "harness/run/train.h"
#include "harness/run/trainer.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/alloc_count.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"

static void open_trainer(struct trainer *t, const struct setup *s) {
    struct error e;
    ck_assert_msg(trainer_create(t, s, &e) == ST_OK, "%s", e.text);
}

static void expect_same_trainers(const struct trainer *a, const struct trainer *b) {
    int64_t n = a->params.floats;
    expect_same_bits(a->params.value, b->params.value, n, "values");
    expect_same_bits(a->params.moment1, b->params.moment1, n, "first moments");
    expect_same_bits(a->params.moment2, b->params.moment2, n, "second moments");
    ck_assert_int_eq(a->state.step, b->state.step);
    ck_assert(a->state.loss == b->state.loss && a->state.loss_sum == b->state.loss_sum);
}

static const char *const resumed_models[] = {"bdlru:m=3,blocks=5", "hlru:m=2,channels=7,layout=observer", "lru:state=6",
                                             "lstm"};

START_TEST(resumed_equals_uninterrupted) {
    static const int cuts[] = {1, 4, 5, 6};
    struct setup *s = small_run(own_folder, "swiglu", resumed_models[_i], "dropout", "0.1");
    struct trainer whole;
    struct error e;
    open_trainer(&whole, s);
    for (int i = 0; i < 12; i++) trainer_step(&whole);
    for (int c = 0; c < 4; c++) {
        struct trainer first, second;
        struct run_progress p = {
            .curve = calloc(64, sizeof *p.curve), .curve_capacity = 64, .n_curve = 1, .solved_step = -1};
        p.curve[0].step = 77;
        open_trainer(&first, s);
        open_trainer(&second, s);
        for (int i = 0; i < cuts[c]; i++) trainer_step(&first);
        ck_assert_int_eq(checkpoint_step(own_folder, s->id.run_id), c ? cuts[c - 1] : -1);
        ck_assert_msg(checkpoint_write(&first, &p, &e) == ST_OK, "%s", e.text);
        ck_assert_int_eq(checkpoint_step(own_folder, s->id.run_id), cuts[c]);
        p.n_curve = 0;
        p.curve[0].step = 0;
        bool found;
        ck_assert_int_eq(checkpoint_read(&second, &p, &found, &e), ST_OK);
        ck_assert(found && p.n_curve == 1 && p.curve[0].step == 77 && p.resumed == 1);
        expect_same_trainers(&first, &second);
        for (int i = cuts[c]; i < 12; i++) trainer_step(&second);
        expect_same_trainers(&whole, &second);
        trainer_free(&first);
        trainer_free(&second);
        free(p.curve);
    }
    trainer_free(&whole);
    small_run_free(s);
}
END_TEST

START_TEST(every_damaged_checkpoint_is_set_aside) {
    struct setup *s = small_run(own_folder, "swiglu", "bdlru:m=2,blocks=3", NULL, NULL);
    struct trainer t;
    struct error e;
    char path[512], said[512];
    size_t said_bytes;
    snprintf(path, sizeof path, "%s/checkpoints/%s.ckpt", own_folder, s->id.run_id);
    snprintf(said, sizeof said, "%s/said", own_folder);
    ck_assert(freopen(said, "w", stderr) != NULL); /* each damage is named there */
    open_trainer(&t, s);
    trainer_step(&t);
    for (int damage = 0; damage < 40; damage++) {
        struct run_progress p = {.curve = calloc(64, sizeof *p.curve), .curve_capacity = 64};
        ck_assert_int_eq(checkpoint_write(&t, &p, &e), ST_OK);
        FILE *f = fopen(path, "r+b");
        ck_assert(f != NULL && fseek(f, 0, SEEK_END) == 0);
        long size = ftell(f), at = damage < 20 ? 4 * damage : (long)(((uint64_t)damage * 2654435761u) % (uint64_t)size);
        if (damage % 2)
            ck_assert_int_eq(ftruncate(fileno(f), at), 0);
        else {
            fseek(f, at, SEEK_SET);
            int byte = fgetc(f);
            fseek(f, at, SEEK_SET);
            fputc(byte ^ (1 << (damage / 2 % 8)), f);
        }
        fclose(f);
        bool found = true;
        ck_assert_int_eq(checkpoint_admit(&s->spec, s->id.run_id, &e),
                         ST_OK); /* damage is never said to be another build */
        ck_assert_int_eq(checkpoint_read(&t, &p, &found, &e), ST_OK);
        ck_assert_msg(!found, "damage %d at byte %ld of %ld went unseen", damage, at, size);
        ck_assert_int_eq(access(path, F_OK), -1);
        free(p.curve);
    }
    ck_assert_int_eq(scratch_count(own_folder, ".ckpt.corrupt"), 40);
    fflush(stderr);
    char *sentences = slurp(said, &said_bytes);
    int damaged = 0, cut = 0;
    for (const char *at = sentences; (at = strstr(at, ": it is damaged, its checksum is wrong; renamed")); at++)
        damaged++;
    for (const char *at = sentences; (at = strstr(at, ": it is too short; renamed")); at++) cut++;
    ck_assert_msg(damaged + cut == 40 && damaged >= 20, "%s", sentences); /* a flip is never another run's file */
    free(sentences);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* A disk that is away for a moment costs no work of hours. A folder opens, and no read of it succeeds. */
START_TEST(a_checkpoint_that_cannot_be_read_is_not_damaged) {
    struct setup *s = small_run(own_folder, "swiglu", "bdlru:m=2,blocks=3", NULL, NULL);
    struct trainer t;
    struct run_progress p = {.curve_capacity = 0};
    struct error e;
    char path[512];
    bool found;
    snprintf(path, sizeof path, "%s/checkpoints/%s.ckpt", own_folder, s->id.run_id);
    ck_assert_int_eq(make_folder(path, &e), ST_OK);
    open_trainer(&t, s);
    ck_assert_int_eq(checkpoint_read(&t, &p, &found, &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, path) != NULL, "%s", e.text);
    ck_assert_int_eq(checkpoint_step(own_folder, s->id.run_id), -1);
    ck_assert_int_eq(access(path, F_OK), 0);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

static struct run run_it(struct setup *s) {
    struct run row;
    struct error e;
    ck_assert_msg(train_run(s, NULL, &row, &e) == ST_OK, "%s", e.text);
    return row;
}

START_TEST(validation_selects_and_test_reports) {
    struct setup *s = small_run(own_folder, "swiglu", "bdlru:m=3,blocks=8", NULL, NULL);
    struct run row = run_it(s);
    struct run_record *record = calloc(1, sizeof *record);
    struct arena arena = {0};
    struct error e;
    char path[512];
    ck_assert_int_eq(arena_reserve(&arena, 1 << 24, &e), ST_OK);
    record_path(own_folder, s->id.run_id, path, sizeof path);
    ck_assert_msg(record_read(path, record, &arena, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(record->n_curve, 12); /* six validations, a training and a validation point each */
    double best = -1;
    int64_t best_step = -1;
    for (int64_t i = 0; i < record->n_curve; i++)
        if (record->curve[i].split == SPLIT_VAL && record->curve[i].acc > best) {
            best = record->curve[i].acc;
            best_step = record->curve[i].step;
        }
    ck_assert(row.val_acc == best && row.best_step == best_step);
    ck_assert_int_eq(row.status, RUN_OK);
    ck_assert_str_eq(row.stop_reason, "steps");
    ck_assert_int_eq(row.steps, 30);

    struct trainer t; /* the test figure belongs to the parameters of the best validation, not to the last ones */
    struct scores test;
    open_trainer(&t, s);
    while (t.state.step < best_step) trainer_step(&t);
    trainer_evaluate(&t, SPLIT_TEST, &test);
    ck_assert(test.acc == row.test_acc && test.seq_acc == row.test_seq_acc && test.last_acc == row.test_last_acc);
    trainer_free(&t);
    arena_free(&arena);
    free(record);
    small_run_free(s);
}
END_TEST

/* A point per length and a point per position, whose weighted means are the accuracy of the whole test set. */
START_TEST(a_record_has_accuracies_by_test_length_and_by_position) {
    struct setup *s = small_run_of("s3:n_train=300,n_val=50,n_test=60,length=8,test_length=8,24,100", own_folder,
                                   "swiglu", "lstm:hidden=8", NULL, NULL);
    struct run row = run_it(s);
    struct run_record *record = calloc(1, sizeof *record);
    struct arena arena = {0};
    struct error e;
    char path[512];
    double right[2] = {0}, n[2] = {0};
    int points[2] = {0};
    int64_t before = 0;
    ck_assert_int_eq(arena_reserve(&arena, 1 << 24, &e), ST_OK);
    record_path(own_folder, s->id.run_id, path, sizeof path);
    ck_assert_msg(record_read(path, record, &arena, &e) == ST_OK, "%s", e.text);
    ck_assert(row.len_train == 8 && row.len_test == 100 && row.n_test == 180);
    for (int64_t i = 1; i < record->n_evals; i++) {
        const struct eval_point *p = &record->evals[i];
        bool position = strcmp(p->difficulty, EVAL_BY_POSITION) == 0;
        double scored = (double)p->n * (position ? 1 : (double)p->length);
        ck_assert(position || p->n == 60);
        if (position) ck_assert_int_eq(p->length, before + 2); /* two positions a point */
        if (position) before = p->length;
        right[position] += scored * p->acc;
        n[position] += scored;
        points[position]++;
    }
    ck_assert(points[0] == 3 && points[1] == 50 && before == 100);
    for (int k = 0; k < 2; k++) {
        ck_assert(n[k] == 60.0 * (8 + 24 + 100));
        ck_assert_double_eq_tol(right[k] / n[k], row.test_acc, 1e-12);
    }
    arena_free(&arena);
    free(record);
    small_run_free(s);
}
END_TEST

START_TEST(a_run_stops_for_the_reason_it_records) {
    static const char *const cases[][3] = {
        {"stop-at", "0", "target"}, {"stop-after", "7", "budget"}, {"patience", "1", "patience"}};
    for (size_t i = 0; i < 3; i++) {
        struct setup *s = small_run(own_folder, "swiglu", "lstm", cases[i][0], cases[i][1]);
        if (i == 2) s->spec.config.lr = 0; /* there is no gain: the second validation ends it */
        struct run row = run_it(s);
        ck_assert_str_eq(row.stop_reason, cases[i][2]);
        ck_assert_int_lt(row.steps, 30);
        ck_assert_int_eq(row.max_steps, 30); /* over which the rate goes its way */
        ck_assert_int_eq(row.status, RUN_OK);
        ck_assert(isfinite(row.test_acc));
        small_run_free(s);
    }
}
END_TEST

START_TEST(divergence_is_a_row_that_names_step_and_tensor) {
    struct setup *s = small_run(own_folder, "swiglu", "bdlru:m=2,blocks=4,gate=none", NULL, NULL);
    s->spec.config.lr = 1e150; /* beyond what the option takes: doubles stand a million */
    struct run row = run_it(s);
    ck_assert_msg(row.status == RUN_NAN || row.status == RUN_DIVERGED, "status %" PRId64, row.status);
    ck_assert_msg(strstr(row.status_detail, "step ") && strstr(row.status_detail, " in "), "%s", row.status_detail);
    ck_assert(isnan(row.test_acc));
    ck_assert_int_eq(row.solved, 0);
    ck_assert_int_eq(scratch_count(own_folder, row.run_id), 1); /* the record; no checkpoint is left */
    small_run_free(s);
}
END_TEST

START_TEST(a_finished_run_is_not_done_again) {
    struct setup *s = small_run(own_folder, "swiglu", "lru:state=4", NULL, NULL);
    struct run first = run_it(s), untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    struct run second = untouched;
    struct error e;
    ck_assert_int_eq(train_run(s, NULL, &second, &e), ST_OK);
    ck_assert_mem_eq(&second, &untouched, sizeof second);         /* nothing ran */
    ck_assert_int_eq(scratch_count(own_folder, first.run_id), 2); /* record and weights */
    small_run_free(s);
}
END_TEST

START_TEST(identity_ignores_what_cannot_change_a_result) {
    struct setup *a = small_run(own_folder, "swiglu", "bdlru:m=2,blocks=4", NULL, NULL);
    struct setup *threads = small_run(own_folder, "swiglu", "bdlru:m=2,blocks=4", "threads", "2");
    struct setup *rate = small_run(own_folder, "swiglu", "bdlru:m=2,blocks=4", "lr", "0.02");
    struct setup *seed = small_run(own_folder, "swiglu", "bdlru:m=2,blocks=4", "seed", "2");
    struct setup *gate = small_run(own_folder, "swiglu", "bdlru:m=2,blocks=4,gate=relu", NULL, NULL);
    ck_assert_str_eq(a->id.run_id, threads->id.run_id);
    ck_assert_str_ne(a->id.run_id, rate->id.run_id);
    ck_assert_str_ne(a->id.run_id, gate->id.run_id);
    ck_assert_str_ne(a->id.run_id, seed->id.run_id);
    ck_assert_str_eq(a->id.cell_id, seed->id.cell_id);
    ck_assert_str_ne(a->id.cell_id, rate->id.cell_id);
    small_run_free(a);
    small_run_free(threads);
    small_run_free(rate);
    small_run_free(seed);
    small_run_free(gate);
}
END_TEST

START_TEST(every_option_is_part_of_the_identity) {
    struct setup *plain = small_run(own_folder, "swiglu", "slice:penalty=0", NULL, NULL);
    struct setup *set = small_run(own_folder, "swiglu", "slice:penalty=0.001", NULL, NULL);
    ck_assert_ptr_null(strstr(plain->id.text, "model.penalty="));
    ck_assert_ptr_nonnull(strstr(plain->id.config_text, "model.penalty=0\n"));
    ck_assert_ptr_nonnull(strstr(set->id.text, "model.penalty=0.001\n"));
    ck_assert_str_ne(plain->id.run_id, set->id.run_id);
    small_run_free(plain);
    small_run_free(set);
}
END_TEST

/* On one thread: OpenBLAS maps another packing buffer when more threads than ever before multiply at once. */
START_TEST(a_step_allocates_nothing) {
    struct setup *s = small_run(own_folder, "swiglu", resumed_models[_i], NULL, NULL);
    struct trainer t;
    struct scores scores;
    omp_set_num_threads(1);
    open_trainer(&t, s);
    trainer_step(&t);
    trainer_evaluate(&t, SPLIT_VAL, &scores);
    uint64_t before = allocations();
    for (int i = 0; i < 5; i++) trainer_step(&t);
    trainer_evaluate(&t, SPLIT_VAL, &scores);
    uint64_t made = allocations() - before;
    ck_assert_uint_eq(made, 0);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

Suite *check_train(void) {
    Suite *suite = suite_create("train");
    TCase *c = tcase_create("train");
    tcase_add_checked_fixture(c, own_folder_begin, own_folder_end);
    tcase_add_loop_test(c, resumed_equals_uninterrupted, 0, (int)(sizeof resumed_models / sizeof *resumed_models));
    tcase_add_test(c, every_damaged_checkpoint_is_set_aside);
    tcase_add_test(c, a_checkpoint_that_cannot_be_read_is_not_damaged);
    tcase_add_test(c, validation_selects_and_test_reports);
    tcase_add_test(c, a_record_has_accuracies_by_test_length_and_by_position);
    tcase_add_test(c, a_run_stops_for_the_reason_it_records);
    tcase_add_test(c, divergence_is_a_row_that_names_step_and_tensor);
    tcase_add_test(c, a_finished_run_is_not_done_again);
    tcase_add_test(c, identity_ignores_what_cannot_change_a_result);
    tcase_add_test(c, every_option_is_part_of_the_identity);
    tcase_add_loop_test(c, a_step_allocates_nothing, 0, (int)(sizeof resumed_models / sizeof *resumed_models));
    suite_add_tcase(suite, c);
    return suite;
}

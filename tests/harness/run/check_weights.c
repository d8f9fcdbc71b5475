/* check_weights.c - kept weights in memory: they come back bit for bit, and belong to the run whose record names
 * them. */
#include <stdlib.h>
#include <string.h>

#include "harness/study/study.h"
#include "harness/run/train.h"
#include "harness/run/trainer.h"
#include "harness/run/weights.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"

#define ANY_RUN "0123456789abcdef0123456789abcdef"

static void read_file(struct safetensors *file, const char *path) {
    struct error e;
    ck_assert_msg(safetensors_read(file, path, &e) == ST_OK, "%s", e.text);
}

/* The file's tensor of that name holds the parameter in contract order. */
static void expect_contract(const struct params *p, const struct param *param, const struct safetensors *file) {
    const struct st_tensor *t = safetensors_find(file, param->name);
    ck_assert_msg(t && t->count == param->count && t->rank == param->spec.rank, "%s", param->name);
    ck_assert_int_eq(t->f64, REAL_IS_DOUBLE);
    double *contract = malloc((size_t)param->count * sizeof *contract);
    param_to_contract(param, p->value + param->offset, contract);
    for (int64_t i = 0; i < param->count; i++)
        if (st_value(t, i) != contract[i]) ck_abort_msg("%s differs at %d", param->name, (int)i);
    free(contract);
}

static struct trial_shape shape_of(const char *model) {
    return (struct trial_shape){.model = model, .B = 2, .T = 6, .V = 11, .D = 12, .layers = 2, .mlp = MLP_SWIGLU};
}

/* Writes the weights and gives them their names. */
static void keep(const struct params *params, struct run *row) {
    struct weights_kept kept;
    struct error e;
    ck_assert_msg(weights_write(params, NULL, own_folder, row, &kept, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(weights_settle(&kept, true, &e) == ST_OK, "%s", e.text);
}

static void round_trip(const char *model) {
    struct trial_shape s = shape_of(model);
    struct trial a, b;
    struct run row = {.run_id = ANY_RUN, .attempt = 1};
    struct error e;
    struct safetensors file;
    char path[SCRATCH_BYTES + RECORD_TEXT];
    trial_open(&a, &s, 1);
    trial_open(&b, &s, 2);
    keep(&a.params, &row);
    ck_assert_str_eq(row.ckpt, "weights/" ANY_RUN ".safetensors");
    snprintf(path, sizeof path, "%s/%s", own_folder, row.ckpt);
    read_file(&file, path);
    ck_assert_int_eq(file.n, a.params.n);
    for (int i = 0; i < a.params.n; i++) expect_contract(&a.params, &a.params.list[i], &file);
    ck_assert_msg(weights_load(&b.params, &file, path, &e) == ST_OK, "%s", e.text);
    expect_same_bits(b.params.value, a.params.value, a.params.floats, model);
    safetensors_free(&file);
    trial_close(&a);
    trial_close(&b);
}

START_TEST(every_mixers_weights_come_back_bit_for_bit) {
    for (int i = 0; small_models()[i]; i++) round_trip(small_models()[i]);
    round_trip("slice:structure=sparse,keep=0.5"); /* its mask is a constant: kept as well */
}
END_TEST

/* Two processes that do the same run, their weights not the same: another build's are not. */
struct race {
    struct trial trial[2];
    struct run_record record[2];
    struct weights_kept kept[2];
    bool won[2];
};

static struct race *race_begin(void) {
    struct trial_shape s = shape_of("lstm");
    struct race *r = calloc(1, sizeof *r);
    struct error e;
    ck_assert_ptr_nonnull(r);
    for (int i = 0; i < 2; i++) {
        const struct params *p = &r->trial[i].params;
        struct run *run = &r->record[i].run;
        trial_open(&r->trial[i], &s, (uint64_t)i);
        record_init(&r->record[i]);
        strcpy(run->run_id, ANY_RUN);
        run->status = RUN_OK;
        run->metric = run->attempt = 1;
        ck_assert_msg(weights_write(p, p->value, own_folder, run, &r->kept[i], &e) == ST_OK, "%s", e.text);
        ck_assert_msg(record_write(own_folder, &r->record[i], &r->won[i], &e) == ST_OK, "%s", e.text);
    }
    ck_assert(r->won[0] && !r->won[1]);
    ck_assert_str_ne(r->record[0].run.ckpt_xxh3, r->record[1].run.ckpt_xxh3);
    return r;
}

/* The record on disk and the weights on disk are the winner's. */
static void race_end(struct race *r) {
    char path[SCRATCH_BYTES + 32];
    struct safetensors file;
    struct error e;
    snprintf(path, sizeof path, "%s/out.safetensors", own_folder);
    for (int which = WEIGHTS_BEST; which <= WEIGHTS_LAST; which++) {
        const struct params *p = &r->trial[0].params;
        ck_assert_msg(weights_export(&r->record[0], (enum weights_of)which, own_folder, path, NULL, &e) == ST_OK, "%s",
                      e.text);
        read_file(&file, path);
        for (int i = 0; i < p->n; i++) expect_contract(p, &p->list[i], &file);
        safetensors_free(&file);
    }
    for (int i = 0; i < 2; i++) trial_close(&r->trial[i]);
    free(r);
}

START_TEST(a_second_run_of_an_id_leaves_the_first_ones_weights) {
    struct race *r = race_begin();
    struct error e;
    for (int k = 0; k < 2; k++) { /* whoever is first */
        int i = _i ? 1 - k : k;
        ck_assert_msg(weights_settle(&r->kept[i], r->won[i], &e) == ST_OK, "%s", e.text);
    }
    ck_assert_int_eq(scratch_count(own_folder, ".safetensors"), 2);
    ck_assert_int_eq(scratch_count(own_folder, ".tmp"), 0);
    race_end(r);
}
END_TEST

/* The process is killed after the record and before the names. */
START_TEST(weights_that_have_no_name_yet_are_found) {
    race_end(race_begin());
}
END_TEST

/* Trains and reads the record back. */
static void run_it(struct setup *s, struct run_record *record, struct arena *arena) {
    struct error e;
    char path[512];
    ck_assert_msg(train_run(s, NULL, NULL, &e) == ST_OK, "%s", e.text);
    record_path(own_folder, s->id.run_id, path, sizeof path);
    ck_assert_int_eq(arena_reserve(arena, 1 << 24, &e), ST_OK);
    ck_assert_msg(record_read(path, record, arena, &e) == ST_OK, "%s", e.text);
}

static const char *const trained_models[] = {"bdlru:m=3,blocks=5", "slice:structure=dplr,rank=2", "lstm",
                                             "deltanet:heads=2"};
#define N_TRAINED ((int)(sizeof trained_models / sizeof trained_models[0]))

/* Everything comes from the file: configuration, task, net. */
START_TEST(imported_weights_score_what_the_run_scored) {
    struct setup *s = small_run(own_folder, "gelu", trained_models[_i], "dropout", "0.1");
    static struct run_record record;
    struct arena arena = {0};
    struct weights_count count;
    struct safetensors file;
    struct error e;
    char path[SCRATCH_BYTES + 32], task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    run_it(s, &record, &arena);
    snprintf(path, sizeof path, "%s/out.safetensors", own_folder);
    ck_assert_msg(weights_export(&record, WEIGHTS_BEST, own_folder, path, &count, &e) == ST_OK, "%s", e.text);
    read_file(&file, path);
    ck_assert_int_eq(count.tensors, file.n);
    ck_assert_str_eq(safetensors_metadata(&file, "run_id"), s->id.run_id);
    ck_assert_str_eq(safetensors_metadata(&file, "dtype"), REAL_NAME);
    ck_assert_str_eq(safetensors_metadata(&file, "config"), record.config);

    struct config config;
    struct trainer t;
    struct scores val, test;
    ck_assert_int_eq(config_default(&config, &e), ST_OK);
    const char *text = safetensors_metadata(&file, "config");
    ck_assert_msg(config_read_text(text, "config", &config, task, model, &e) == ST_OK, "%s", e.text);
    struct setup *again = setup_make(&config, task, model, &e);
    ck_assert_msg(again != NULL, "%s", e.text);
    ck_assert_str_eq(again->id.run_id, s->id.run_id);
    ck_assert_msg(trainer_create_evaluation(&t, again, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(weights_load(&t.params, &file, path, &e) == ST_OK, "%s", e.text);
    trainer_evaluate(&t, SPLIT_VAL, &val);
    trainer_evaluate(&t, SPLIT_TEST, &test);
    const struct run *row = &record.run;
    ck_assert(val.acc == row->val_acc && val.loss == row->val_loss);
    ck_assert(test.acc == row->test_acc && test.loss == row->test_loss && test.macro_acc == row->test_macro_acc);
    ck_assert(test.seq_acc == row->test_seq_acc && test.last_acc == row->test_last_acc);
    ck_assert(test.loss > 0);
    trainer_free(&t);
    small_run_free(again);
    safetensors_free(&file);
    arena_free(&arena);
    small_run_free(s);
}
END_TEST

START_TEST(a_run_that_is_told_to_keeps_no_weights) {
    struct setup *s = small_run(own_folder, "gelu", "lstm", "keep-weights", "no");
    struct setup *keeping = small_run(own_folder, "gelu", "lstm", NULL, NULL);
    static struct run_record record;
    struct arena arena = {0};
    struct error e;
    ck_assert_str_eq(s->id.run_id, keeping->id.run_id);
    run_it(s, &record, &arena);
    ck_assert_int_eq(scratch_count(own_folder, ".safetensors"), 0);
    ck_assert_int_eq(weights_export(&record, WEIGHTS_BEST, own_folder, "unused", NULL, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, s->id.run_id) && strstr(e.text, "--keep-weights no"), "%s", e.text);
    arena_free(&arena);
    small_run_free(keeping);
    small_run_free(s);
}
END_TEST

START_TEST(a_run_that_diverged_has_no_weights_to_export) {
    struct setup *s = small_run(own_folder, "gelu", "bdlru:m=2,blocks=4,gate=none", NULL, NULL);
    static struct run_record record;
    struct arena arena = {0};
    struct error e;
    s->spec.config.lr = 1e150;
    run_it(s, &record, &arena);
    ck_assert_int_ne(record.run.status, RUN_OK);
    ck_assert_int_eq(scratch_count(own_folder, ".safetensors"), 0);
    ck_assert_int_eq(weights_export(&record, WEIGHTS_BEST, own_folder, "unused", NULL, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "ended as '") && strstr(e.text, run_status_names[record.run.status]), "%s", e.text);
    arena_free(&arena);
    small_run_free(s);
}
END_TEST

START_TEST(a_record_cannot_name_a_file_elsewhere) {
    static struct run_record record;
    struct error e;
    record_init(&record);
    strcpy(record.run.run_id, ANY_RUN);
    strcpy(record.run.ckpt, "../../etc/passwd");
    ck_assert_int_eq(weights_export(&record, WEIGHTS_BEST, own_folder, "unused", NULL, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "names '../../etc/passwd'") != NULL, "%s", e.text);
}
END_TEST

Suite *check_weights(void);
Suite *check_weights(void) {
    Suite *suite = suite_create("weights");
    TCase *memory = tcase_create("memory");
    tcase_add_checked_fixture(memory, own_folder_begin, own_folder_end);
    tcase_add_test(memory, every_mixers_weights_come_back_bit_for_bit);
    tcase_add_loop_test(memory, a_second_run_of_an_id_leaves_the_first_ones_weights, 0, 2);
    tcase_add_test(memory, weights_that_have_no_name_yet_are_found);
    tcase_add_loop_test(memory, imported_weights_score_what_the_run_scored, 0, N_TRAINED);
    tcase_add_test(memory, a_run_that_is_told_to_keeps_no_weights);
    tcase_add_test(memory, a_run_that_diverged_has_no_weights_to_export);
    tcase_add_test(memory, a_record_cannot_name_a_file_elsewhere);
    suite_add_tcase(suite, memory);
    return suite;
}

/* check_columns.c - what a run writes into the columns of its record is what the schema says of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/train.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"

/* The row of a run that takes a blink. */
static struct run row_of(const char *task, const char *model, const char *flag, const char *value) {
    struct setup *s = small_run_of(task, own_folder, "swiglu", model, flag, value);
    struct run row;
    struct error e;
    ck_assert_msg(train_run(s, NULL, &row, &e) == ST_OK, "%s", e.text);
    small_run_free(s);
    return row;
}

/* The row of a run that died. */
static struct run row_of_failure(const char *task, const char *device) {
    static struct run_record record;
    struct setup *s = small_run_of(task, own_folder, "swiglu", "lru:state=4", NULL, NULL);
    struct arena arena = {0};
    struct error e;
    char path[512];
    snprintf(s->spec.config.device, sizeof s->spec.config.device, "%s", device);
    ck_assert_msg(record_failure(s, RUN_KILLED, "signal 9", "2026-01-01T00:00:00Z", 1, &e) == ST_OK, "%s", e.text);
    record_path(own_folder, s->id.run_id, path, sizeof path);
    ck_assert_int_eq(arena_reserve(&arena, 1 << 24, &e), ST_OK);
    ck_assert_msg(record_read(path, &record, &arena, &e) == ST_OK, "%s", e.text);
    arena_free(&arena);
    small_run_free(s);
    return record.run;
}

/* The net between the symbols is the same, however many of them there are. */
START_TEST(params_nonemb_leaves_out_embedding_and_head) {
    struct run few = row_of("s3:n_train=300,n_val=5,n_test=6,length=8", "lstm", NULL, NULL);
    struct run many = row_of("s4:n_train=300,n_val=5,n_test=6,length=8", "lstm", NULL, NULL);
    ck_assert_int_eq(few.params_nonemb, many.params_nonemb);
    ck_assert_int_eq(few.params - few.params_nonemb, 6 * 16 + 6 * 16 + 6); /* embedding, head's weight and bias */
    ck_assert_int_eq(many.params - many.params_nonemb, 24 * 16 + 24 * 16 + 24);
}
END_TEST

START_TEST(split_hash_names_the_test_examples) {
    struct run a = row_of("s3:n_train=300,n_val=5,n_test=6,length=8", "lstm", NULL, NULL);
    struct run seed = row_of("s3:n_train=300,n_val=5,n_test=6,length=8", "lru", "seed", "2");
    struct run more = row_of("s3:n_train=300,n_val=5,n_test=7,length=8", "lstm", NULL, NULL);
    struct run other = row_of("word-problem:group=z60,n_train=300,n_val=5,n_test=6,length=8", "lstm", NULL, NULL);
    ck_assert_uint_eq(strlen(a.split_hash), 32);
    ck_assert_str_eq(a.split_hash, seed.split_hash); /* the test set is fixed */
    ck_assert_str_ne(a.split_hash, more.split_hash);
    ck_assert_str_ne(a.split_hash, other.split_hash);
    ck_assert_str_eq(row_of_failure("s3:n_train=300,n_val=5,n_test=6,length=8", "cpu").split_hash, a.split_hash);
}
END_TEST

/* The hash from a run, and from a process without the run: symbols and values, of one length and of several, with
 * links, in two documents. */
START_TEST(a_run_and_its_failure_name_the_same_test_examples) {
    static const char *const tasks[] = {"s3:n_train=300,n_val=5,n_test=3000,length=8",
                                        "listops:min_length=4,max_length=12,n_train=130,n_val=20,n_test=20",
                                        "compression:length=12,n_train=170,n_val=120,n_test=50",
                                        "shapes:size=12,order=morton,n_train=170,n_val=120,n_test=50",
                                        "spirals:min_length=8,max_length=12,n_train=300,n_val=50,n_test=60",
                                        "molecules:graphs=200",
                                        "pairs:min_length=60,max_length=90,n_train=170,n_val=20,n_test=30"};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        struct setup *s = small_run_of(tasks[i], own_folder, "swiglu", "lru:state=4", NULL, NULL);
        struct place place;
        struct split_store store;
        struct test_split read, stored;
        struct error e = {0};
        ck_assert_int_eq(place_open(&place, "cpu", &e), ST_OK);
        ck_assert_msg(test_split_read(&s->spec.task, false, &read, &e) == ST_OK, "%s", e.text);
        for (int window = 0; window < 2; window++) {
            size_t room = window ? 0 : SIZE_MAX;
            ck_assert_msg(split_store_create(&store, &s->spec, SPLIT_TEST, room, &place, &e) == ST_OK, "%s", e.text);
            ck_assert_int_eq(store.window, window);
            ck_assert_msg(split_store_hash(&store, false, &stored, &e) == ST_OK, "%s", e.text);
            ck_assert_msg(!strcmp(stored.hash, read.hash), "%s: %s, %s", tasks[i], stored.hash, read.hash);
            ck_assert_double_eq(stored.seq_chance, read.seq_chance);
            split_store_free(&store);
        }
        place_close(&place);
        small_run_free(s);
    }
}
END_TEST

/* Copying two of four symbols; every one of eight products of S3. */
START_TEST(seq_chance_counts_scored_positions) {
    const char *copying = "selective-copying:vocab=6,length=16,n_train=256,n_val=8,n_test=8,copy=2";
    ck_assert_double_eq_tol(row_of(copying, "lstm", NULL, NULL).seq_chance, 1.0 / 16, 1e-15);
    ck_assert_double_eq_tol(row_of_failure(copying, "cpu").seq_chance, 1.0 / 16, 1e-15);
    ck_assert_double_eq_tol(row_of("s3:n_train=300,n_val=5,n_test=6,length=8", "lstm", NULL, NULL).seq_chance,
                            pow(1.0 / 6, 8), 1e-15);
}
END_TEST

START_TEST(val_metric_is_the_tasks_own) {
    struct run macro =
        row_of("selective-copying:vocab=6,length=16,n_train=256,n_val=64,n_test=8,copy=2", "lstm", NULL, NULL);
    struct run micro = row_of("s3:n_train=300,n_val=50,n_test=6,length=8", "lstm", NULL, NULL);
    ck_assert_int_eq(macro.metric, METRIC_MACRO_ACC);
    ck_assert(isfinite(macro.val_metric) && macro.val_metric != macro.val_acc);
    ck_assert_int_eq(micro.metric, METRIC_ACC);
    ck_assert(micro.val_metric == micro.val_acc);
    ck_assert_double_eq(micro.test_nonfinite, 0); /* a share is known; of logits that are not: check_predictions.c */
}
END_TEST

START_TEST(deterministic_is_promised_on_the_cpu_alone) {
    const char *task = "s3:n_train=300,n_val=5,n_test=6,length=8";
    ck_assert_int_eq(row_of(task, "lstm", NULL, NULL).deterministic, 1);
    struct run cuda = row_of_failure(task, "cuda");
    ck_assert_str_eq(cuda.backend, "cuda");
    ck_assert_int_eq(cuda.deterministic, 0);
}
END_TEST

static bool is_filled(const struct field *field, const void *row) {
    const char *value = (const char *)row + field->offset;
    switch (field->type) {
    case FIELD_INT:
        return *(const int64_t *)(const void *)value != -1;
    case FIELD_REAL:
        return !isnan(*(const double *)(const void *)value);
    case FIELD_TEXT:
        return *value != 0;
    default:
        return true;
    }
}

/* Finds columns that never have a value; only a device, a solved run, and a record with an earlier name fill the
 * remaining ones. */
START_TEST(every_column_is_filled_by_some_run) {
    static const char *const elsewhere[] = {"peak_dev_bytes", "driver", "solved_step", "former_id", "walked", "beside"};
    struct run rows[2] = {row_of(SMALL_TASK, "bdlru:m=2,blocks=3", NULL, NULL), row_of_failure(SMALL_TASK, "cpu")};
    for (const struct field *field = runs_table.fields; field->name; field++) {
        bool filled = is_filled(field, &rows[0]) || is_filled(field, &rows[1]);
        for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
            filled = filled || strcmp(field->name, elsewhere[i]) == 0;
        ck_assert_msg(filled, "%s is empty", field->name);
    }
}
END_TEST

/* Checks a run that ends well and one that fails. */
START_TEST(every_column_and_event_of_a_curve_is_filled_by_some_run) {
    struct record_set set;
    struct error e;
    int evals = 0, nans = 0;
    row_of(SMALL_TASK, "bdlru:m=2,blocks=3", NULL, NULL);
    row_of(SMALL_TASK, "bdlru:m=2,blocks=3,gate=none", "lr", "1e6");
    ck_assert_msg(records_load(&set, own_folder, &e) == ST_OK && set.n == 2, "%s", e.text);
    for (const struct field *field = curves_table.fields; field->name; field++) {
        bool filled = !field_within(field, sizeof(struct curve_point));
        for (int k = 0; k < set.n; k++)
            for (int64_t i = 0; i < set.list[k].n_curve; i++)
                filled = filled || is_filled(field, &set.list[k].curve[i]);
        ck_assert_msg(filled, "%s is empty", field->name);
    }
    for (int k = 0; k < set.n; k++)
        for (int64_t i = 0; i < set.list[k].n_curve; i++) {
            evals += !strcmp(set.list[k].curve[i].event, "eval");
            nans += !strcmp(set.list[k].curve[i].event, "nan");
            ck_assert_ptr_nonnull(strstr(table_field(&curves_table, "event")->unit, set.list[k].curve[i].event));
        }
    ck_assert(evals > 0 && nans == 1);
    ck_assert_str_eq(table_field(&curves_table, "event")->unit, "eval nan");
    records_free(&set);
}
END_TEST

Suite *check_columns(void);
Suite *check_columns(void) {
    Suite *suite = suite_create("columns");
    TCase *c = tcase_create("columns");
    tcase_add_checked_fixture(c, own_folder_begin, own_folder_end);
    tcase_add_test(c, params_nonemb_leaves_out_embedding_and_head);
    tcase_add_test(c, split_hash_names_the_test_examples);
    tcase_add_test(c, a_run_and_its_failure_name_the_same_test_examples);
    tcase_add_test(c, seq_chance_counts_scored_positions);
    tcase_add_test(c, val_metric_is_the_tasks_own);
    tcase_add_test(c, deterministic_is_promised_on_the_cpu_alone);
    tcase_add_test(c, every_column_is_filled_by_some_run);
    tcase_add_test(c, every_column_and_event_of_a_curve_is_filled_by_some_run);
    suite_add_tcase(suite, c);
    return suite;
}

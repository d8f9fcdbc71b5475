/* same_runs.c - see same_runs.h. */
#include "tests/harness/pool/same_runs.h"

#include <string.h>

#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/testing.h"

/* Columns of runs and of points of a curve that depend on the clock or on the runs beside; a process with several runs
 * has no memory figure. */
static const char *const of_the_moment[] = {"started",     "finished",        "wall_s",    "train_s",     "eval_s",
                                            "data_s",      "tflops",          "tok_per_s", "step_ms_med", "step_ms_mad",
                                            "step_ms_p95", "peak_host_bytes", "beside"};

static bool is_of_the_moment(const char *name) {
    for (size_t i = 0; i < sizeof of_the_moment / sizeof *of_the_moment; i++)
        if (!strcmp(name, of_the_moment[i])) return true;
    return false;
}

/* Compares the fields of two objects; columns that a row adds (an id, a schema) are no fields. */
static void expect_same_fields(const struct table *table, size_t bytes, const void *a, const void *b,
                               const char *run_id) {
    for (const struct field *field = table->fields; field->name; field++) {
        if (is_of_the_moment(field->name) || !field_within(field, bytes)) continue;
        const char *x = (const char *)a + field->offset, *y = (const char *)b + field->offset;
        bool same = field->type == FIELD_TEXT ? !strcmp(x, y) : !memcmp(x, y, field->size);
        ck_assert_msg(same, "run %s: %s.%s differs", run_id, table->name, field->name);
    }
}

static void expect_same_record(const struct run_record *a, const struct run_record *b) {
    const char *id = a->run.run_id;
    expect_same_fields(&runs_table, sizeof a->run, &a->run, &b->run, id);
    ck_assert_str_eq(a->identity, b->identity);
    ck_assert_str_ne(a->run.ckpt_xxh3, "");
    ck_assert_int_eq(a->n_curve, b->n_curve);
    ck_assert_int_eq(a->n_evals, b->n_evals);
    ck_assert_int_gt(a->n_curve, 0);
    for (int64_t i = 0; i < a->n_curve; i++)
        expect_same_fields(&curves_table, sizeof *a->curve, &a->curve[i], &b->curve[i], id);
    for (int64_t i = 0; i < a->n_evals; i++)
        expect_same_fields(&evals_table, sizeof *a->evals, &a->evals[i], &b->evals[i], id);
}

static void load(struct record_set *set, const char *folder, int n) {
    struct error e = {ST_OK, ""};
    ck_assert_msg(records_load(set, folder, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(set->n, n);
}

void expect_same_runs(const char *folder_a, const char *folder_b, int n) {
    struct record_set a, b;
    load(&a, folder_a, n);
    load(&b, folder_b, n);
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < n && strcmp(a.list[i].run.run_id, b.list[k].run.run_id) != 0) k++;
        ck_assert_msg(k < n, "%s has no run %s", folder_b, a.list[i].run.run_id);
        expect_same_record(&a.list[i], &b.list[k]);
    }
    records_free(&a);
    records_free(&b);
}

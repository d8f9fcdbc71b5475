/* record_samples.c - run records with a value of its own in every field. */
#include "tests/harness/store/record_samples.h"

#include <math.h>
#include <string.h>

#include "core/batch.h"
#include "harness/store/schema.h"
#include "tests/testing.h"

void sample_id(int i, char id[RUN_ID_HEX]) {
    char text[32];
    snprintf(text, sizeof text, "run %d", i);
    record_hash(text, id);
}

void sample_fill(struct run_record *r, struct curve_point curve[2], struct eval_point evals[1], int i) {
    int k = 0;
    record_init(r);
    for (const struct field *field = runs_table.fields; field->name; field++, k++) {
        void *value = (char *)&r->run + field->offset;
        if (field->type == FIELD_INT) *(int64_t *)value = 1000 * i + k;
        if (field->type == FIELD_U64) *(uint64_t *)value = UINT64_MAX - (uint64_t)k;
        if (field->type == FIELD_REAL) *(double *)value = 1.0 / (i + k + 3);
        if (field->type == FIELD_TEXT) snprintf(value, field->size, "\"%d\",\n\\\xC3\xA9%s", k, field->name);
    }
    sample_id(i, r->run.run_id);
    r->run.schema = RECORD_SCHEMA;
    r->run.status = RUN_TIMEOUT;
    r->run.n_val = -1;
    r->run.seq_chance = NAN;
    r->run.train_loss = INFINITY;
    r->run.val_loss = -INFINITY;
    r->run.test_loss = 4.9406564584124654e-324;
    r->run.wall_s = -0.0;
    snprintf(r->run.started, sizeof r->run.started, "2024-01-01T00:%02d:%02dZ", i / 60 % 60, i % 60);
    snprintf(r->config, sizeof r->config, "lr=0.001\ntask=s5\n");
    snprintf(r->identity, sizeof r->identity, "identity of %d", i);
    curve[0] = (struct curve_point){10, 1600, 0.5, SPLIT_VAL, 0.1, 0.9, NAN, 0.3, 0.7, 1e-3, 2.5, NAN, "eval", 0};
    curve[1] = (struct curve_point){20, 3200, 1.0, SPLIT_TEST, 1e-17, 1, 1, 1, 1, 1e-3, INFINITY, 1e6, "stop", 64};
    evals[0] = (struct eval_point){20, SPLIT_TEST, 32, 2000, "length", 0.25, 0.5, 0.5, 0.125, 0.75};
    r->curve = curve;
    r->n_curve = 2;
    r->evals = evals;
    r->n_evals = 1;
}

static void expect_same_object(const struct table *table, const void *a, const void *b, size_t size) {
    for (const struct field *field = table->fields; field->name; field++)
        if (field_within(field, size)) ck_assert_msg(field_equal(field, a, b), "field %s differs", field->name);
}

void expect_same_record(const struct run_record *a, const struct run_record *b) {
    expect_same_object(&runs_table, &a->run, &b->run, sizeof a->run);
    ck_assert_str_eq(a->config, b->config);
    ck_assert_str_eq(a->identity, b->identity);
    ck_assert_int_eq(a->n_curve, b->n_curve);
    ck_assert_int_eq(a->n_evals, b->n_evals);
    for (int64_t i = 0; i < a->n_curve; i++)
        expect_same_object(&curves_table, &a->curve[i], &b->curve[i], sizeof *a->curve);
    for (int64_t i = 0; i < a->n_evals; i++)
        expect_same_object(&evals_table, &a->evals[i], &b->evals[i], sizeof *a->evals);
}

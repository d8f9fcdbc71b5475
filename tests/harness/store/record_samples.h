/* record_samples.h - run records with a value of its own in every field. */
#ifndef LRNN_TESTS_HARNESS_STORE_RECORD_SAMPLES_H
#define LRNN_TESTS_HARNESS_STORE_RECORD_SAMPLES_H

#include "harness/store/record.h"

/* The id of the i-th sample. */
void sample_id(int i, char id[RUN_ID_HEX]);

/* The i-th sample: awkward values among its fields, two curve points and one evaluation, which it borrows. */
void sample_fill(struct run_record *r, struct curve_point curve[2], struct eval_point evals[1], int i);

/* Fails the test unless all fields, texts and points agree. */
void expect_same_record(const struct run_record *a, const struct run_record *b);

#endif

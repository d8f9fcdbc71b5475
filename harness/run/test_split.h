/* test_split.h - what a task's test examples are, and what guessing scores on them: known without a run. */
#ifndef LRNN_HARNESS_RUN_TEST_SPLIT_H
#define LRNN_HARNESS_RUN_TEST_SPLIT_H

#include "harness/run/batches/split_store.h"
#include "harness/store/record.h"

struct test_split {
    char hash[RUN_ID_HEX]; /* XXH3-128 of inputs, scored targets, links and lengths of all examples, in their order */
    double seq_chance;     /* sequences without an error when each scored position is right by the task's chance */
};

/* Makes every test example of an opened task once. ST_MEMORY; where `obeys`, 130 or 143 as a status when a signal asked
 * to stop meanwhile. */
enum status test_split_read(const struct task_choice *task, bool obeys, struct test_split *t, struct error *e);

/* The same of the examples that a run has of its test split. They are not made again, nor left for a signal, unless the
 * store is a window. */
enum status test_split_stored(const struct split_store *store, bool obeys, struct test_split *t, struct error *e);

#endif

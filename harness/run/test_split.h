/* test_split.h - what a task's test examples are, and what guessing scores on them: known without a run. */
#ifndef LRNN_HARNESS_RUN_TEST_SPLIT_H
#define LRNN_HARNESS_RUN_TEST_SPLIT_H

#include "harness/store/record.h"
#include "tasks/task.h"

struct test_split {
    char hash[RUN_ID_HEX]; /* XXH3-128 of inputs, scored targets, links and lengths of all examples, in their order */
    double seq_chance;     /* sequences without an error when each scored position is right by the task's chance */
};

/* Makes every test example of an opened task once. ST_MEMORY. */
enum status test_split_read(const struct task_choice *task, struct test_split *t, struct error *e);

#endif

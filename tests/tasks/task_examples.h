/* task_examples.h - what tests of tasks share: opening by name, examples with guards, refusals. */
#ifndef LRNN_TESTS_TASKS_TASK_EXAMPLES_H
#define LRNN_TESTS_TASKS_TASK_EXAMPLES_H

#include "tasks/task.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

/* The arena tasks are opened on; reserve and free are the fixture of a test case. */
extern struct arena task_host;
void reserve_task_host(void);
void free_task_host(void);

/* Imports tests/data, small files in the released formats that Python wrote (tests/data/make.py), into a cache folder
 * of the test's own, which $LRNN_CACHE then names; and removes it. For tcase_add_checked_fixture. */
extern char data_folder[SCRATCH_BYTES];
void import_data(void);
void drop_data(void);

/* The arena and the data, for tests that open every task. */
void tasks_begin(void);
void tasks_end(void);

/* Parses and opens; the test fails if the task does. */
void open_task(struct task_choice *choice, const char *text, uint64_t seed);

/* Parsing or opening fails with ST_USAGE and one sentence that holds each of the words (separated by '|'). */
void check_task_refused(const char *text, const char *words);

/* One example in memory of its own, with a guard after each row; free_example frees it. */
struct example new_example(const struct task_shape *s);
void free_example(struct example *x);

/* Fills rows that held `dirt`, so that what a task leaves unwritten shows as a difference between two dirts. */
void fill_example(const struct task_choice *c, enum split split, int64_t index, int32_t dirt, struct example *x);

bool same_example(const struct task_shape *s, enum split split, const struct example *a, const struct example *b);

/* Number of examples whose labels a test finds again by other means: $CHECK_EXAMPLES, else `usual`. */
int64_t examples_to_check(int64_t usual);

/* Prints how many examples and labels were checked, if $CHECK_EXAMPLES is set. */
void labels_checked(const char *task, int64_t examples, int64_t labels);

/* The k-th of `count` indices spread over a split, both ends included. */
int64_t spread(const struct task_shape *s, enum split split, int k, int count);

#endif

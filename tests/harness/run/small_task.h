/* small_task.h - every task at sizes at which a test can train on it. */
#ifndef LRNN_TESTS_HARNESS_RUN_SMALL_TASK_H
#define LRNN_TESTS_HARNESS_RUN_SMALL_TASK_H

#include "tasks/task.h"

#define SMALL_TASK_TEXT 512

/* The task's label with its sizes, and as few examples as it has options to say so; *model trains on it. */
void small_task(const struct task *task, char text[SMALL_TASK_TEXT], const char **model);

#endif

/* curriculum.h - training sequences that grow over a run: "8:16:32" is the longest length in each of three equal parts
 * of its steps. */
#ifndef LRNN_TASKS_CURRICULUM_H
#define LRNN_TASKS_CURRICULUM_H

#include "tasks/task.h"

/* Checks that the text is empty or a list of ascending lengths that an opened task takes. ST_USAGE: it is not. */
enum status curriculum_check(const struct task_choice *task, const char *text, struct error *e);

/* The longest length of a training sequence in a step of `steps`; 0, the task's own, for an empty text. */
int64_t curriculum_longest(const char *text, int64_t step, int64_t steps);

#endif

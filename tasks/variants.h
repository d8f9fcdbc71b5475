/* variants.h - the settings over which a published score is the mean: a task and its one-at-a-time changes. */
#ifndef LRNN_TASKS_VARIANTS_H
#define LRNN_TASKS_VARIANTS_H

/* Changes of the task or alias of that name, each "option=value", NULL-terminated; NULL if none are published. */
const char *const *task_variants(const char *name);

/* The i-th name that has changes; NULL past the last. */
const char *task_with_variants(int i);

#endif

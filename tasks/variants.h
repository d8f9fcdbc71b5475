/* variants.h - the settings that a published score is the mean of: a task and its one-at-a-time changes. */
#ifndef LRNN_TASKS_VARIANTS_H
#define LRNN_TASKS_VARIANTS_H

/* Changes of the task or alias of that name, each "option=value", NULL-terminated; NULL if nobody has published any. */
const char *const *task_variants(const char *name);

/* Name number i that has any; NULL past the last. */
const char *task_with_variants(int i);

#endif

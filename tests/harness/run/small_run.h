/* small_run.h - a run that takes a blink, for tests of the trainer and of what it leaves. */
#ifndef LRNN_TESTS_HARNESS_RUN_SMALL_RUN_H
#define LRNN_TESTS_HARNESS_RUN_SMALL_RUN_H

#include "harness/study/setup.h"

#define SMALL_TASK "s3:n_train=300,n_val=50,n_test=60,length=8"

/* 3 steps per epoch (the last of 44 rows), 30 steps, validation every 5; with one more flag, or NULL. */
struct setup *small_run(const char *folder, const char *mlp, const char *model, const char *flag, const char *value);

/* Like small_run, with a third as many rows: for devices, which tests may run on the host. The last step has 16. */
struct setup *smaller_run(const char *folder, const char *mlp, const char *model, const char *flag, const char *value);

/* Like small_run, for another task. */
struct setup *small_run_of(const char *task, const char *folder, const char *mlp, const char *model, const char *flag,
                           const char *value);
void small_run_free(struct setup *s);

#endif

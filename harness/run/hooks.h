/* hooks.h - what looks on at a run, or stands in for a part of it. */
#ifndef LRNN_HARNESS_RUN_HOOKS_H
#define LRNN_HARNESS_RUN_HOOKS_H

#include "harness/study/setup.h"

struct progress {
    int64_t step, steps;
    double loss, acc; /* latest training loss; latest validation metric (NAN before the first) */
    double tok_per_s, wall_s;
};

struct trainer; /* harness/run/trainer.h */

struct train_hooks {
    void (*progress)(void *context, const struct progress *p); /* about five times a second; or NULL */
    /* In the place of trainer_create, where runs share a process; or NULL. */
    enum status (*create)(void *context, struct trainer *t, const struct setup *s, struct error *e);
    void *context;
    const char *log_steps; /* file for a line a step (step_log.h); or NULL */
    bool *unwritten;       /* set where the run fails because its output cannot be written; or NULL */
};

#endif

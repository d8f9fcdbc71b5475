/* profile.h - what `bench` runs for a suite of tasks: models, grid and sizes of smoke, quick and paper. */
#ifndef LRNN_HARNESS_PROFILE_H
#define LRNN_HARNESS_PROFILE_H

#include <stdbool.h>

#include "core/status.h"

struct profile {
    const char *suite;  /* of the task: "word-problem" */
    const char *name;   /* "smoke", "quick", "paper" */
    const char *models; /* blank-separated */
    const char
        *model_options;       /* "gate-init=5": set in every model that has the option unless its text sets it; or "" */
    const char *task_options; /* "n_train=2000": likewise for the task; or "" */
    const char *flags;        /* "epochs=12 lr=0.002": defaults under the command line's */
    const char *rates;        /* learning rates of the grid, comma-separated */
    int seeds;                /* 1 .. seeds */
    double limit_s;           /* of the training of the whole bench; 0 = none */
    const char *note;         /* one sentence for the table's foot */
};

/* The profile of a suite; ST_USAGE naming the known ones. */
enum status profile_find(const char *suite, const char *name, const struct profile **profile, struct error *e);

extern const char *const profile_names; /* "smoke quick paper" */

#endif

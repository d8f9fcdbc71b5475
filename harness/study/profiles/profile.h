/* profile.h - what `bench` runs for a suite of tasks: models, grid and sizes of smoke, quick and paper. */
#ifndef LRNN_HARNESS_STUDY_PROFILES_PROFILE_H
#define LRNN_HARNESS_STUDY_PROFILES_PROFILE_H

#include <stdbool.h>

#include "core/status.h"

#define PROFILE_ANY_SUITE "*" /* of tasks whose suite has no profile */

struct profile {
    const char *suite;  /* of the task, or one task or alias: "word-problem", "s3" */
    const char *name;   /* "smoke", "quick", "paper"; MAD's have more */
    const char *models; /* blank-separated */
    const char
        *model_options;       /* "gate-init=5": set in every model that has the option unless its text sets it; or "" */
    const char *task_options; /* "n_train=2000": likewise for the task, integers may be ranges: "length=3..20"; or "" */
    const char *flags;        /* "epochs=12 lr=0.002": defaults under the command line's */
    const char *axes;         /* "layers=1..4 decay=0,0.1": flags with several values; or NULL */
    bool variants;            /* the task's one-at-a-time changes as well */
    const char *rates;        /* learning rates of the grid, comma-separated */
    int seeds;                /* 1 .. seeds */
    const char *note;         /* one sentence for the table's foot */
    bool as_published;        /* nets, data and schedule are the paper's, as those of the name paper are unless .. */
    bool adapted;             /* .. its published numbers are of other nets, or of a training that nobody states */
};

/* All of them, a suite's together; a profile with suite == NULL ends the list. */
const struct profile *profile_list(void);

/* Whether the runs of that profile have the nets, data and schedule of the paper, fewer rates or seeds or an earlier
 * end at most: then the published number is one to be compared with. */
bool profile_as_published(const char *task, const char *suite, const char *name);

/* Whether some task or suite has a profile of that name. */
bool profile_is_name(const char *name);

/* Whether some profile says something of that flag of a run, so that its default there is not the flag's own. */
bool profile_sets_flag(const char *flag);

/* The profile of a task or alias if it has one of that name, else of its suite; ST_USAGE naming the known ones. */
enum status profile_find(const char *task, const char *suite, const char *name, const struct profile **profile,
                         struct error *e);

#endif

/* profile.h - profiles are the default runs of `lrnn bench` for a task, in the sizes smoke, quick, paper and others.
 *
 * A profile is a part of a plan file, profiles/SUITE.plan (harness/study/plan_file.h), which is built into the program.
 * SUITE is a suite of tasks, or a task or short name that has its own profiles. Other tasks use profiles/default.plan.
 * A line such as profiles=smoke quick names the file's profiles. A key after "smoke." applies only to that profile. */
#ifndef LRNN_HARNESS_STUDY_PROFILE_H
#define LRNN_HARNESS_STUDY_PROFILE_H

#include "harness/study/row_key.h"

#define PROFILE_CUSTOM  "custom"  /* the profile of runs that no profile has */
#define PROFILE_DEFAULT "default" /* the suite of tasks without profiles */

struct profile {
    const char *suite, *name;
    const char *note;      /* one sentence below the table */
    struct label settings; /* models, lr, seeds, variants, task.OPTION, model.OPTION, and flags of a run */
};

/* Returns all profiles; a profile without a suite ends the list. */
const struct profile *profile_list(void);

/* Returns the value of a key; "": the profile does not set it. */
const char *profile_get(const struct profile *p, const char *key);

/* Lists the profile's flags that have a single value. */
enum status profile_flags(const struct profile *p, struct label *flags, struct error *e);

/* Whether some profile sets that flag; then the flag's default depends on the profile. */
bool profile_sets_flag(const char *flag);

/* Finds a profile by name, for a task or short name, else for its suite. ST_USAGE: there is none; it lists all. */
enum status profile_find(const char *task, const char *suite, const char *name, const struct profile **profile,
                         struct error *e);

/* Writes the names of a task's profiles, each after a blank. */
void profile_names(const char *task, const char *suite, char *names, size_t size);

/* Gives the profile's word for a model if the profile has flags for this model, such as "lstm@dim=1024" for "lstm". */
bool profile_word(const struct profile *p, const char *model, char word[LABEL_TEXT]);

/* Asks whether a profile has a run. Not compared are seeds, options with OPT_OPEN (where and how numbers are computed),
 * and mixers and task options that the profile does not name. If anything else differs, the run is PROFILE_CUSTOM. If
 * the profile has flags for the run's mixer, the run must have these. A name that no profile has was chosen by the
 * user, and stays. */
struct profile_question {
    const char *name;        /* name of the profile that the run names */
    const char *task;        /* the task's name in tables */
    const char *suite;       /* the task's suite */
    const struct label *key; /* row_key of the run */
    double lr;
    int64_t n_train; /* training examples; they give the steps of an epoch */
};
bool profile_holds(const struct profile_question *q);

#endif

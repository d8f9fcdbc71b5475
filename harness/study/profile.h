/* profile.h - profiles: what `lrnn bench` runs for a task by default, in the sizes smoke, quick, paper and others.
 *
 * A profile is a part of a plan file, profiles/SUITE.plan (harness/study/plan_file.h), which is built into the program.
 * SUITE is a suite of tasks, or a task or a short name that has profiles of its own; profiles/default.plan has those of
 * all other tasks. The line profiles=smoke quick names a file's profiles; a key after "smoke." holds under that one
 * alone. */
#ifndef LRNN_HARNESS_STUDY_PROFILE_H
#define LRNN_HARNESS_STUDY_PROFILE_H

#include "harness/study/row_key.h"

#define PROFILE_CUSTOM  "custom"  /* of a run that is none of its profile's */
#define PROFILE_DEFAULT "default" /* the suite of tasks without profiles */

struct profile {
    const char *suite, *name;
    const char *note;      /* one sentence for the table's foot */
    struct label settings; /* models, lr, seeds, variants, task.OPTION, model.OPTION and flags of a run */
};

/* All of them; a profile without a suite ends the list. */
const struct profile *profile_list(void);

/* Whether some task or suite has a profile of that name. */
bool profile_is_name(const char *name);

/* The value of a key, "" where the profile has none. */
const char *profile_get(const struct profile *p, const char *key);

/* Its flags of a run that have one value, without the rate. */
enum status profile_flags(const struct profile *p, struct label *flags, struct error *e);

/* Whether some profile says something of that flag of a run, so that its default there is not the flag's own. */
bool profile_sets_flag(const char *flag);

/* The profile of that name of a task or short name, else of its suite. ST_USAGE: there is none; the message lists the
 * existing ones. */
enum status profile_find(const char *task, const char *suite, const char *name, const struct profile **profile,
                         struct error *e);

/* The names of a task's profiles, each with a blank before it. */
void profile_names(const char *task, const char *suite, char *names, size_t size);

/* A word of the profile's models for that model with flags of its own: "lstm" trains as its "lstm@dim=1024". */
bool profile_word(const struct profile *p, const char *model, char word[LABEL_TEXT]);

/* Whether a run is one that its profile makes. A profile says nothing of the seed and of options with OPT_OPEN (where
 * and how numbers are computed), nor of mixers and options of the task that it does not name. Any other difference in a
 * flag or an option of the task makes the run PROFILE_CUSTOM, whatever it was called, and so do the flags of all models
 * where the profile has flags of that mixer's own. A name that no profile has is somebody's own, and stays. */
struct profile_question {
    const char *name;        /* of the profile that the run is said to be of */
    const char *task;        /* as tables call it */
    const char *suite;       /* of the task */
    const struct label *key; /* row_key of the run */
    double lr;
    int64_t n_train; /* training examples: an epoch's steps follow from them */
};
bool profile_holds(const struct profile_question *q);

#endif

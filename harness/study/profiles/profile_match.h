/* profile_match.h - whether a run is one that a profile makes: what a profile is called means its rates, steps and
 * sizes.
 *
 * A profile says nothing of the seed and of the options that carry OPT_OPEN (where and how numbers are computed), nor
 * of mixers and options of the task that it does not name. A run with another flag or another value of a task's option
 * than the profile's, with the flags of all models where the profile has flags of that mixer's own, or made by a
 * program whose profile of that name was another one, is "custom", whatever it was called. A name that no profile has
 * stays: somebody's own, of runs made by hand. */
#ifndef LRNN_HARNESS_STUDY_PROFILES_PROFILE_MATCH_H
#define LRNN_HARNESS_STUDY_PROFILES_PROFILE_MATCH_H

#include "harness/study/row_key.h"

#define PROFILE_CUSTOM "custom"

struct profile_question {
    const char *name; /* of the profile that the run is said to be of */
    const char *task; /* as tables call it; with it `suite` */
    const char *suite;
    const struct label *key; /* row_key of the run */
    double lr;
    int64_t n_train; /* training examples: an epoch's steps follow from them */
};

/* Whether the run is what its profile's name says; else it is of PROFILE_CUSTOM. */
bool profile_holds(const struct profile_question *q);

#endif

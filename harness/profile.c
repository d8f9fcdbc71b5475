/* profile.c - see profile.h. One block a suite. */
#include "harness/profile.h"

#include <string.h>

const char *const profile_names = "smoke quick paper";

#define WORD_PROBLEM_MODELS                                                                                            \
    "bdlru:m=1 bdlru:m=2 bdlru:m=3 bdlru:m=4 bdlru:m=5 hlru:m=1 hlru:m=2 hlru:m=3 hlru:m=4 hlru:m=5 lstm lru"

static const struct profile profiles[] = {
    {.suite = "word-problem",
     .name = "smoke",
     .models = "bdlru:m=1,blocks=8 bdlru:m=3,blocks=8 hlru:m=2,channels=8 lstm lru:state=8",
     .model_options = "",
     .task_options = "n_train=1000,n_val=100,n_test=100",
     .flags = "dim=16 epochs=2 batch=32",
     .rates = "0.002",
     .seeds = 1,
     .note = "smoke: tiny sizes, two epochs; shows that everything runs, not how good a model is"},
    {.suite = "word-problem",
     .name = "quick",
     .models = WORD_PROBLEM_MODELS,
     .model_options = "",
     .task_options = "",
     .flags = "epochs=200 schedule=cosine-epoch lr-min=1e-5",
     .rates = "0.001",
     .seeds = 1,
     .limit_s = 540,
     .note =
         "quick: the paper's training with one of its rates and one seed, all ended after 9 minutes: the largest model "
         "may use them up, the\nothers share what is left, so compare steps as well as accuracies"},
    {.suite = "word-problem",
     .name = "paper",
     .models = WORD_PROBLEM_MODELS,
     .model_options = "",
     .task_options = "",
     .flags = "epochs=200 schedule=cosine-epoch lr-min=1e-5",
     .rates = "0.001,0.0005,0.0001",
     .seeds = 5,
     .note = "paper: AdamW, 3 learning rates x 5 seeds, cosine to 1e-5 over 200 epochs"},
};

enum status profile_find(const char *suite, const char *name, const struct profile **profile, struct error *e) {
    bool suite_known = false;
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        if (strcmp(profiles[i].suite, suite)) continue;
        suite_known = true;
        *profile = &profiles[i];
        if (!strcmp(profiles[i].name, name)) return ST_OK;
    }
    if (!suite_known)
        return fail(e, ST_USAGE, "no bench profile exists for tasks of the suite %s; use `lrnn train`", suite);
    return fail(e, ST_USAGE, "unknown profile '%s'; there are: %s", name, profile_names);
}

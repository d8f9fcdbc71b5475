/* plan.h - which runs a bench makes: settings of the task x models x lists of flags x learning rates x seeds. */
#ifndef LRNN_HARNESS_PLAN_H
#define LRNN_HARNESS_PLAN_H

#include "harness/plan/args.h"
#include "harness/plan/profile.h"

struct plan {
    struct setup **setups; /* resolved, owned */
    int n;
};

struct plan_request {
    const struct args *args; /* configuration; what the command line gives stands over the profile's axes */
    const struct profile *profile;
    const char *task;   /* integer options may be ranges: "a5-slice:length=3..20" */
    const char *models; /* blank-separated; "lstm@dim=1024,layers=2" has flags of its own behind the '@' */
    const double *rates;
    int n_rates;
    int64_t seeds;
    bool own_length;   /* the command line says how long a run is: what the profile says of --stop-after is void */
    bool variants;     /* besides the task its one-at-a-time changes */
    struct label axes; /* flags with several values each: "layers" = "1..4", "decay" = "0,0.1" */
};

/* Every run once, resolved, so that a bad size is said before anything runs. plan_free, also after an error. */
enum status plan_make(struct plan *plan, const struct plan_request *r, struct error *e);
void plan_free(struct plan *plan);

/* Adds the run of the plan with another seed. `s` is a setup of the plan. Errors as plan_make. */
enum status plan_add_seed(struct plan *plan, const struct setup *s, int64_t seed, struct error *e);

/* Whether a value is a list or a range, and the flag is one that can have several. */
bool plan_is_list(const char *name, const char *value);

/* The first of the texts that a task's text with ranges stands for. ST_USAGE: unknown task. */
enum status plan_first_task(const char *text, char first[LABEL_TEXT], struct error *e);

#endif

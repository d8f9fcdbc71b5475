/* plan.h - which runs a bench makes: settings of the task x models x lists of flags x learning rates x seeds. */
#ifndef LRNN_HARNESS_STUDY_PLAN_H
#define LRNN_HARNESS_STUDY_PLAN_H

#include "harness/study/study.h"

struct plan {
    struct setup **setups; /* resolved, closed (setup_open), owned */
    int n;
    /* Where runs lie, by their ids: for plan_make alone, since others order runs and change ids. */
    struct plan_slot {
        int run;  /* index of its setup and 1 more; 0: nothing lies here */
        int word; /* the last one that uses it */
    } * slots;
    int n_slots; /* a power of 2, over twice as many as there are runs */
    /* Pairs of a task word and its run: two tasks of a small profile may share runs. */
    struct plan_use {
        int word; /* of the request's tasks, from 0 */
        int run;  /* index of its setup */
    } * uses;
    int n_uses;
};

struct plan_request {
    const struct study *study;
    /* Origin of `models` in the study, and so of the flags after an '@' of its words. */
    enum origin models_from;
    const char *models; /* blank-separated, integer options may be ranges: "bdlru:m=1..5 lstm@dim=1024,layers=2" */
    const int64_t *seeds;
    int n_seeds;
    int word;         /* which of several tasks it is */
    const char *task; /* integer options may be ranges: "a5-slice:length=3..20" */
    bool variants;    /* besides the task its one-at-a-time changes */
    /* Options with several values each: "task.length" = "8,16", "model.gate" = "softmax,none"; of every model and task
     * that has the option and does not set it. The profile's stand below. */
    struct label grid;
    bool *taken; /* of each pair of the grid, set where some task or model takes its values */
};

#define PLAN_MOST_RUNS 100000 /* in one plan */

/* Adds every run that the plan has not yet, resolved, so that a bad size is said before anything runs. plan_free, also
 * after an error. ST_USAGE: what does not fit, or more than PLAN_MOST_RUNS. */
enum status plan_make(struct plan *plan, const struct plan_request *r, struct error *e);
void plan_free(struct plan *plan);
bool plan_has_several_tasks(const struct plan *plan);

/* Keeps every shards-th run, from number `shard` (1 .. shards) on, counted seed after seed over all models: which ones
 * follows from the plan alone. ST_MEMORY. */
enum status plan_keep_shard(struct plan *plan, int64_t shard, int64_t shards, struct error *e);

/* Adds the run of the plan with another seed. `s` is a setup of the plan. Errors as plan_make. */
enum status plan_add_seed(struct plan *plan, const struct setup *s, int64_t seed, struct error *e);

/* The flags in which planned runs differ, as pairs without values; but the rate, the seed, the MLP, which is in labels,
 * and of what follows from the sizes (OPT_AUTO) all that is not among `asked`. ST_USAGE: too many for a label. */
enum status plan_differing_flags(const struct plan *plan, const struct label *asked, struct label *flags,
                                 struct error *e);

/* The first of the texts that a task's text with ranges stands for. ST_USAGE: unknown task. */
enum status plan_first_task(const char *text, char first[LABEL_TEXT], struct error *e);

#endif

/* plan.h - the runs of a bench: all combinations of task settings, models, values of flags, rates and seeds. */
#ifndef LRNN_HARNESS_STUDY_PLAN_H
#define LRNN_HARNESS_STUDY_PLAN_H

#include "harness/study/study.h"

struct plan {
    struct setup **setups; /* resolved and closed (setup_close); owned */
    int n;
    /* Hash table from run id to run, valid only inside plan_make: later functions reorder runs and change ids. */
    struct plan_slot {
        int run;  /* index of its setup plus 1; 0: empty */
        int word; /* index of the last task word that uses the run */
    } * slots;
    int n_slots; /* a power of 2, more than twice the number of runs */
    /* A use is a pair of a task word and one of its runs. Two tasks of a small profile may share runs. */
    struct plan_use {
        int word; /* index of the task in the request */
        int run;  /* index of its setup */
    } * uses;
    int n_uses;
};

struct plan_request {
    const struct study *study;
    /* The origin (study.h) of `models`, and so of the flags after '@' in its words. */
    enum origin models_from;
    /* separated by blanks; integer options may be ranges: "bdlru:m=1..5 lstm@dim=1024,layers=2" */
    const char *models;
    int word;         /* index of the task in the request */
    const char *task; /* integer options may be ranges: "a5-slice:length=3..20" */
    bool variants;    /* also plan the task's variants, in which one option has another published value */
    /* Options with several values: "task.length" = "8,16", "model.gate" = "softmax,none". They apply to every task or
     * model that has the option and does not set it itself. They overrule the profile's values. */
    struct label grid;
    bool *taken; /* for each pair of the grid: becomes true if some task or model uses its values */
};

#define PLAN_MOST_RUNS 100000 /* in one plan */

/* Adds the requested runs that the plan lacks. They are resolved at once, so that wrong sizes are reported before any
 * run starts. Call plan_free also after an error. ST_USAGE: sizes that do not fit, or more than PLAN_MOST_RUNS runs. */
enum status plan_make(struct plan *plan, const struct plan_request *r, struct error *e);
void plan_free(struct plan *plan);
bool plan_has_several_tasks(const struct plan *plan);

/* Keeps only the runs of shard number `shard` (1 .. shards): every shards-th run, counted by seed over all models. The
 * choice depends only on the plan. ST_MEMORY. */
enum status plan_keep_shard(struct plan *plan, int64_t shard, int64_t shards, struct error *e);

/* Adds a run that differs from `s`, a setup of the plan, only in the seed, for --confirm-seeds. Errors as
 * plan_make. ST_USAGE also if no run may have this seed. */
enum status plan_add_seed(struct plan *plan, const struct setup *s, int64_t seed, struct error *e);

/* Lists the flags in which planned runs differ, as pairs without values. It leaves out rate and seed, the MLP (labels
 * show it), and flags that follow from sizes (OPT_AUTO) unless they are in `asked`. ST_USAGE: too many for a label. */
enum status plan_differing_flags(const struct plan *plan, const struct label *asked, struct label *flags,
                                 struct error *e);

/* Gives the first of the tasks that a task's text with ranges means. ST_USAGE: unknown task. */
enum status plan_first_task(const char *text, char first[LABEL_TEXT], struct error *e);

#endif

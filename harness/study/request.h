/* request.h - turns the arguments of `lrnn bench` and `lrnn sweep` into runs: tasks, models, options and flags with
 * several values, rates, seeds. The command line overrules the plan file. */
#ifndef LRNN_HARNESS_STUDY_REQUEST_H
#define LRNN_HARNESS_STUDY_REQUEST_H

#include "harness/study/plan.h"
#include "harness/study/plan_file.h"

#define REQUEST_MOST_TASKS 64

struct request {
    char name[PLAN_NAME_BYTES]; /* name of the plan file, or of the tasks */
    struct plan_file file;      /* it has no lines if there is no plan file */
    const char *file_word;      /* name or path of the plan file on the command line (borrowed); NULL: none */
    char profile[OPTION_TEXT];  /* "": the plan's profile, or quick */
    char tasks[LABEL_TEXT];     /* separated by blanks; "": the plan's tasks */
    /* Settings from the command line: models, lr, seeds, variants, task.OPTION, model.OPTION and flags, each with a
     * value or a list. "seeds" = "5" means 1 to 5; "3,7" and "4..9" are lists. */
    struct label said;
    char config_file[OPTION_TEXT]; /* "": none */
    bool limited; /* the user limits the time of all runs together, which then determines the length of each run */
};

/* Sets a key to a value from the command line. It replaces an earlier value. ST_USAGE: too much text. */
enum status request_say(struct request *r, const char *key, const char *value, struct error *e);

/* Takes a flag of bench or sweep if it is about the runs: models, lr, seeds, profile, grid, variants, -c, or a flag of
 * a run with one or several values. *done: it was such a flag. ST_USAGE: a wrong value, or `seed`, which is called
 * `seeds` here. */
enum status request_flag(struct request *r, const char *name, const char *value, bool *done, struct error *e);

/* Takes the words of the command line: names of tasks, or the name of a plan and then names of some of its tasks.
 * ST_USAGE, ST_DATA: a word is neither a task nor a plan, or the plan is wrong. */
enum status request_words(struct request *r, const char *const *words, int n, struct error *e);

/* request_call stores a request as pairs: plan=NAME, tasks, profile, c, and the settings of the runs from the command
 * line. The request must use a plan file. request_recall restores the pairs in a request that has taken the plan's name
 * by request_words. ST_USAGE: too much text. */
enum status request_call(const struct request *r, const char *profile, struct label *call, struct error *e);
enum status request_recall(struct request *r, const struct label *call, struct error *e);

/* Results of request_plan, besides the plan. */
struct resolved {
    char profile[OPTION_TEXT]; /* the chosen profile */
    char tasks[LABEL_TEXT];    /* task words; plan_use.word is an index of them */
    const char *note;          /* note of the first task's profile */
    bool defaulted;            /* the chosen profile is from profiles/default.plan */
    bool variants;
    bool speed; /* the plan only measures the speed of training steps */
    /* the configuration of the first task; folder, threads, device and output are the same for all tasks */
    struct config config;
    struct study study; /* says where the values of the plan's first run are from */
};

/* Makes the runs. Call plan_free also after an error. Errors as plan_make. ST_USAGE also if a grid or a plan names an
 * option that no task or model has, or a profile that a task lacks. */
enum status request_plan(struct request *r, struct plan *plan, struct resolved *resolved, struct error *e);

#endif

/* request.h - what `lrnn bench` and `lrnn sweep` are asked for, and the runs that it comes to: tasks, models, options
 * and flags with several values, rates, seeds; from the command line and, below it, from a plan file. */
#ifndef LRNN_HARNESS_STUDY_REQUEST_H
#define LRNN_HARNESS_STUDY_REQUEST_H

#include "harness/study/plan.h"
#include "harness/study/plan_file.h"

#define REQUEST_MOST_TASKS 64

struct request {
    char name[PLAN_NAME_BYTES]; /* of the plan file, or of the tasks */
    struct plan_file file;      /* no lines: none */
    const char *file_word; /* how the command line calls it, by its name or path, which is the caller's; NULL: none */
    char profile[OPTION_TEXT]; /* "": the plan's, else quick */
    char tasks[LABEL_TEXT];    /* blank-separated; "" = the plan's */
    /* From the command line: models, lr, seeds, variants, task.OPTION, model.OPTION and flags, each with a value or a
     * list. "seeds" = "5": 1 to 5; "3,7" or "4..9": those. */
    struct label said;
    char config_file[OPTION_TEXT]; /* "": none */
    bool limited;                  /* a time for all runs says how long each is */
};

/* Sets a key's value of the command line, in place of an earlier one. ST_USAGE: too much text. */
enum status request_say(struct request *r, const char *key, const char *value, struct error *e);

/* Takes what a flag of bench or sweep says of the runs: models, lr, seeds, profile, grid, variants, a flag of a run
 * with one or several values, -c. *done: it has. ST_USAGE: a bad value; `seed`, which is `seeds` here. */
enum status request_flag(struct request *r, const char *name, const char *value, bool *done, struct error *e);

/* Takes the words of the command line: the names of tasks, or a plan's name and then the wanted names among its tasks.
 * ST_USAGE, ST_DATA: neither a task nor a plan has the name, or the plan is wrong. */
enum status request_words(struct request *r, const char *const *words, int n, struct error *e);

/* The request for a plan file, as pairs: plan=NAME, tasks, profile, c, and what the command line says of the runs.
 * request_recall gives a request that has that plan file's words the rest of them. ST_USAGE: too much text. */
enum status request_call(const struct request *r, const char *profile, struct label *call, struct error *e);
enum status request_recall(struct request *r, const struct label *call, struct error *e);

/* Decisions of request_plan. */
struct resolved {
    char profile[OPTION_TEXT]; /* in force */
    char tasks[LABEL_TEXT];    /* their words, which plan_use counts */
    const char *note;          /* of the first task's profile */
    bool defaulted;            /* that profile is the one of tasks that have none */
    int64_t last_seed;         /* the largest */
    bool variants;
    bool speed;           /* the plan measures how fast training steps are, and trains nothing */
    struct config config; /* of the first task; folder, threads, device and output hold for all */
};

/* The runs. plan_free, also after an error. Errors as plan_make; ST_USAGE: a grid or a plan names an option that no
 * task or model has, or a profile that a task lacks. */
enum status request_plan(struct request *r, struct plan *plan, struct resolved *resolved, struct error *e);

#endif

/* setting.h - the settings in which a run differs from the one that a paper's number belongs to. Both `report` and
 * `report --paper` ask here whether a number stands beside a paper's.
 *
 * The paper's setting is the runs of the built-in plans that have the table (papers/, without the line table=ours),
 * under each plan's own profile: every option has the value that it has there, also an option that nobody wrote. A
 * table that no built-in plan has is known from the plan at hand alone. */
#ifndef LRNN_HARNESS_ROWS_SETTING_H
#define LRNN_HARNESS_ROWS_SETTING_H

#include "harness/store/record.h"
#include "harness/study/request.h"

/* The place where a table tells the value of a pair of a row's key (row_key) in which runs are not as usual. */
enum setting_place {
    SETTING_NUMBER, /* at the number: it is of another setting, and has neither a difference nor a verdict */
    SETTING_FOOT,   /* below the table: where and how the numbers were computed (docs/results.md) */
    SETTING_MARKED  /* nowhere else: it follows from the other pairs, or has a mark or a column of its own */
};
enum setting_place setting_place(const char *key);

/* A run that a plan has for its paper's table. */
struct own_run {
    struct label key;       /* its pairs of SETTING_NUMBER */
    char group[RUN_ID_HEX]; /* of all that runs share whose tasks make one number: a base and its changes */
    bool differs;           /* the plan itself says in what it is not the paper's */
};

struct own_runs {
    struct own_run *list; /* owned */
    int n;
    int n_tasks;                /* words of the plans' tasks */
    char tasks[LABEL_TEXT];     /* those words */
    const char *rows, *columns; /* keys that tell rows and columns apart, or ""; borrowed */
};

/* Finds the own runs of a table of a paper, of the tasks whose name, up to a ':', is that of a word of `tasks`. Tasks
 * with data that must be imported first have none while these are missing. `at_hand`: the plan at hand (NULL: none).
 * `runs` has rows and columns set. Errors as request_plan. Free with own_runs_free, also after an error. */
enum status own_runs_find(struct own_runs *runs, const char *arxiv, const char *source, const char *tasks,
                          const struct plan_file *at_hand, struct error *e);
void own_runs_free(struct own_runs *runs);

/* Describes a setup as own runs are described; word: the number of its task in the plan. */
enum status own_run_describe(const struct own_runs *runs, const struct setup *s, int word, struct own_run *run,
                             struct error *e);

/* The own run of that task and model whose setting is the nearest to that of a key (row_key); NULL: there is none.
 * *text says in what it differs, "model.gate=none (softmax there); ...", "" in nothing. */
const struct own_run *own_runs_nearest(const struct own_runs *runs, const struct label *key, char text[RECORD_TEXT]);

/* Adds the parts of a text of differences that another one lacks, as many as fit. */
void unlike_add(char text[RECORD_TEXT], const char *more);

#endif

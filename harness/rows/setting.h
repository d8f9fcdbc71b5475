/* setting.h - compares the setting of a run with the setting of a paper's number. `report` and `report --paper` use it
 * to decide whether our number may be compared with the paper's.
 *
 * The paper's setting is given by our own runs for its table: the runs of the built-in plans for that table (papers/,
 * without the line table=ours), each under the plan's own profile. Every option has its value there, also an option
 * that the plan does not mention. For a table without a built-in plan, only the current plan is used. */
#ifndef LRNN_HARNESS_ROWS_SETTING_H
#define LRNN_HARNESS_ROWS_SETTING_H

#include "harness/store/record.h"
#include "harness/study/request.h"

/* The place where a table reports an unusual value in a row's key (row_key). */
enum setting_place {
    SETTING_NUMBER, /* at the number: the setting differs, so there is neither a difference nor a verdict */
    SETTING_FOOT,   /* below the table: where and how the numbers were computed (docs/results.md) */
    SETTING_MARKED  /* not in these places: it follows from other pairs, or has its own mark or column */
};
enum setting_place setting_place(const char *key);

/* An own run: a run that a plan has for its paper's table. */
struct own_run {
    struct label key;       /* its pairs of SETTING_NUMBER */
    char group[RUN_ID_HEX]; /* hash of all that runs of one number share: a base and its changes */
    bool differs;           /* the plan names a difference from the paper */
};

struct own_runs {
    struct own_run *list; /* owned */
    int n;
    int n_tasks;                /* number of task words in the plans */
    char tasks[LABEL_TEXT];     /* these words */
    const char *rows, *columns; /* keys that distinguish rows and columns, or ""; borrowed */
};

/* Finds the own runs for a paper's table, for the tasks whose name before ':' is the name of a word in `tasks`. Tasks
 * whose data must be imported first have no own runs while the data is missing. `at_hand`: the current plan (NULL:
 * none). The caller sets rows and columns of `runs`. Errors as request_plan. Free with own_runs_free, also after an
 * error. */
enum status own_runs_find(struct own_runs *runs, const char *arxiv, const char *source, const char *tasks,
                          const struct plan_file *at_hand, struct error *e);
void own_runs_free(struct own_runs *runs);

/* Describes a setup in the form of an own run; word: the index of its task in the plan. */
enum status own_run_describe(const struct own_runs *runs, const struct setup *s, int word, struct own_run *run,
                             struct error *e);

/* Finds the own run of the key's task and model with the fewest differences from the key (row_key); NULL: there is
 * none. `text` lists the differences, "model.gate=none (softmax there); ...", "" if there are none. */
const struct own_run *own_runs_nearest(const struct own_runs *runs, const struct label *key, char text[RECORD_TEXT]);

/* Appends the differences in `more` that `text` lacks, as many as fit. */
void unlike_add(char text[RECORD_TEXT], const char *more);

#endif

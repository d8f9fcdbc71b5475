/* setting.h - compares the setting of a run with the setting of a paper's number. `report` and `report --paper` use it
 * to decide whether our number may be compared with the paper's.
 *
 * The paper's setting is taken from the built-in plans for its table (papers/, without the line table=ours): from the
 * runs that each of them has under its own profile. These are called own runs. They have a value for every option, also
 * for options that the plan does not mention. If a table has no built-in plan, the current plan is used instead. */
#ifndef LRNN_HARNESS_ROWS_SETTING_H
#define LRNN_HARNESS_ROWS_SETTING_H

#include "harness/store/record.h"
#include "harness/study/request.h"

/* Where a table tells that a pair of a row's key (row_key) has an unusual value. */
enum setting_place {
    SETTING_NUMBER, /* at the number: the setting differs, so the number gets no difference and no verdict */
    SETTING_FOOT,   /* below the table, which says where and how the numbers were computed (docs/results.md) */
    SETTING_MARKED  /* nowhere of these: it follows from other pairs, or has its own mark or column */
};
enum setting_place setting_place(const char *key);

/* An own run: a run that a plan has for its paper's table. */
struct own_run {
    struct label key; /* the pairs of its key that are SETTING_NUMBER */
    /* the same for all runs whose mean is one number: a task and its variants (one option has another value) */
    char group[RUN_ID_HEX];
    bool differs; /* the plan names a difference between this run and the paper's */
};

struct own_runs {
    struct own_run *list; /* owned */
    int n;
    int n_tasks;                /* number of task words in the plans */
    char tasks[LABEL_TEXT];     /* these words */
    const char *rows, *columns; /* keys that distinguish rows and columns, or ""; borrowed */
};

/* Finds the own runs for a paper's table. `tasks` are words; a task counts if its name before ':' is the name of one of
 * the words. Tasks whose data must be imported have no own runs while the data are missing. `at_hand`: the current plan
 * (NULL: none). The caller sets rows and columns of `runs`. Errors as request_plan. Free with own_runs_free, also after
 * an error. */
enum status own_runs_find(struct own_runs *runs, const char *arxiv, const char *source, const char *tasks,
                          const struct plan_file *at_hand, struct error *e);
void own_runs_free(struct own_runs *runs);

/* Describes a setup as an own run. `word` is the index of its task in the plan. */
enum status own_run_describe(const struct own_runs *runs, const struct setup *s, int word, struct own_run *run,
                             struct error *e);

/* Finds the own run that has the task and model of the key (row_key) and otherwise differs least from it. NULL: there
 * is none. `text` lists the differences, such as "model.gate=none (softmax there); ...", or is "". */
const struct own_run *own_runs_nearest(const struct own_runs *runs, const struct label *key, char text[RECORD_TEXT]);

/* Appends to `text` those differences in `more` that it lacks, as many as fit. */
void unlike_add(char text[RECORD_TEXT], const char *more);

#endif

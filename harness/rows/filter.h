/* filter.h - chooses the run records of a report. */
#ifndef LRNN_HARNESS_ROWS_FILTER_H
#define LRNN_HARNESS_ROWS_FILTER_H

#include <stdbool.h>

#include "core/label.h"
#include "harness/rows/protocol.h"
#include "harness/store/record_files.h"

/* The user's choice of records, and the grouping of their rows into tables. NULL: all records, with a table for each
 * task and profile. The texts are borrowed. */
struct report_filter {
    const char *task;    /* labels ("s5 s3-250") in the order of tables; a label without a fold means all folds */
    bool exact;          /* a label without a fold means only the task without a fold */
    const char *profile; /* only rows of this profile (rows.h) */
    /* NULL: a table for each task and profile. Else a table for each task; this text replaces the profile's name. "":
     * the table's profile is the one that all its runs share, or custom. */
    const char *together;
    const char
        *where; /* "dim=64 model.heads=1|2 lr=0.001": values of the row key (harness/study/row_key.h), rate or seed */
    /* only the runs with these ids, in this order; NULL: all, ordered by the list of models, then by parameters */
    const char *const *runs;
    int n_runs;
    enum report_protocol protocol;
    bool protocol_given; /* the user has named the protocol */
    /* Number of seeds to report: the largest seeds of a row. The other seeds choose the rate. 0: all seeds do both. */
    int64_t confirm;
    /* in rows with too few seeds for `confirm`, all seeds do both; if false, such a row is an error */
    bool confirm_if_enough;
    bool tell_builds; /* tables mark rows that have runs from another build than this program */
};

#define FILTER_PAIRS 32

/* A parsed filter. */
struct filter {
    const struct report_filter *asked;
    struct run_rank {
        const char *id;
        int rank; /* position in the filter's list of runs */
    } * ranks;    /* sorted by id; owned */
    struct label where;
    bool met[FILTER_PAIRS];   /* for each pair: some run has an option of that name */
    bool found[FILTER_PAIRS]; /* for each pair: some run has the option with that value */
    struct error untaken; /* the error for a value that no option of its name accepts; status ST_OK: there is none */
};

/* Parses a filter; NULL lets everything pass. ST_USAGE: `where` is no list of pairs, or has more than FILTER_PAIRS; or
 * `confirm` is used with the protocol best-of-grid. */
enum status filter_read(struct filter *f, const struct report_filter *asked, struct error *e);
void filter_free(struct filter *f);

/* filter_passes checks the run's task and id, filter_matches the values in `where`. */
bool filter_passes(const struct filter *f, const struct run *run);
bool filter_matches(struct filter *f, const struct run *run, const struct label *key);

/* These return the position of the task or the run in the filter's lists; -1: it is not there. If there is no list of
 * tasks, the position is 0. */
int filter_task_rank(const struct filter *f, const char *task);
int filter_run_rank(const struct filter *f, const char *run_id);

/* ST_DATA: a task of the filter has no record in the set. The message names a recorded task with other options. */
enum status filter_check_tasks(const struct filter *f, const struct record_set *set, const char *out, struct error *e);

/* Makes the error for a filter that no record passes: it names the filter, the option that no run has, or a value that
 * an option does not accept. ST_DATA, ST_USAGE. */
enum status filter_found_nothing(const struct filter *f, const char *out, struct error *e);

#endif

/* filter.h - chooses the run records of a report. */
#ifndef LRNN_HARNESS_ROWS_FILTER_H
#define LRNN_HARNESS_ROWS_FILTER_H

#include <stdbool.h>

#include "core/label.h"
#include "harness/rows/protocol.h"
#include "harness/store/record_files.h"

/* How the user chooses records, and how their rows are grouped into tables. NULL: all records, with a table for each
 * task and profile. The texts are borrowed. */
struct report_filter {
    const char *task;    /* labels ("s5 s3-250") in the order of tables; a label without a fold: every fold */
    bool exact;          /* a label without a fold means only the task without a fold */
    const char *profile; /* of the rows (rows.h) */
    /* NULL: a table per task and profile. Else a table per task, with this name in place of the profile; "": with the
     * profile that all its runs share, or custom. */
    const char *together;
    const char
        *where; /* "dim=64 model.heads=1 lr=0.001": values of the row key (harness/study/row_key.h), rate or seed */
    const char *const *runs; /* only these run ids, in their order; or NULL = all, ordered by model list then params */
    int n_runs;
    enum report_protocol protocol;
    bool protocol_given; /* the user has named it */
    /* Number of seeds to report, the largest of a row; the other seeds choose the rate. 0: all seeds do both. */
    int64_t confirm;
    bool confirm_if_enough; /* in rows with too few seeds for that all seeds do both; otherwise an error */
    bool tell_builds;       /* tables mark rows with runs of another build than this program */
};

#define FILTER_PAIRS 32

/* A parsed filter. */
struct filter {
    const struct report_filter *asked;
    struct label where;
    bool met[FILTER_PAIRS];   /* per pair: some run has an option of that name */
    bool found[FILTER_PAIRS]; /* some run has it with that value */
    struct error untaken;     /* the error of a value that no option of its name accepts; status ST_OK: none */
};

/* Parses a filter; NULL: everything passes. ST_USAGE: `where` is no list of pairs, or has more than FILTER_PAIRS;
 * `confirm` with the protocol best-of-grid. */
enum status filter_read(struct filter *f, const struct report_filter *asked, struct error *e);

/* filter_passes checks the run's task and id, filter_matches the values in `where`. */
bool filter_passes(const struct filter *f, const struct run *run);
bool filter_matches(struct filter *f, const struct run *run, const struct label *key);

/* Return the position of the task or the run in the filter's lists; 0 for a task if there is no list; -1: not in the
 * list. */
int filter_task_rank(const struct filter *f, const char *task);
int filter_run_rank(const struct filter *f, const char *run_id);

/* ST_DATA: a task of the filter has no record in the set. The message names a recorded task with other options. */
enum status filter_check_tasks(const struct filter *f, const struct record_set *set, const char *out, struct error *e);

/* Makes the error for a filter that no record passes: it names the filter, the option that no run has, or a value that
 * an option does not accept. ST_DATA, ST_USAGE. */
enum status filter_found_nothing(const struct filter *f, const char *out, struct error *e);

#endif

/* filter.h - which run records a report is on. */
#ifndef LRNN_HARNESS_ROWS_FILTER_H
#define LRNN_HARNESS_ROWS_FILTER_H

#include <stdbool.h>

#include "core/label.h"
#include "harness/rows/protocol.h"
#include "harness/store/record_files.h"

/* Chooses records and states the key by which their rows come together in tables. NULL: all records, a table per task
 * and profile. The texts are borrowed. */
struct report_filter {
    const char *task;    /* labels ("s5 s3-250"), whose tables come in their order; without a fold: every fold */
    bool exact;          /* a name without a fold is of the task without folds alone */
    const char *profile; /* of the rows (rows.h) */
    /* NULL: a table is a task and a profile. Else a table is a task alone, and stands under this name in place of a
     * profile; "": under the profile that all its runs share, or custom. */
    const char *together;
    const char
        *where; /* "dim=64 model.heads=1 lr=0.001": values of its row key (harness/study/row_key.h), rate, seed */
    const char *const *runs; /* only these run ids, in their order; or NULL = all, ordered by model list then params */
    int n_runs;
    enum report_protocol protocol;
    bool protocol_given; /* the reader has named it */
    /* Reports on so many seeds, the largest of a row, and lets the others choose the rate; 0: all do both. */
    int64_t confirm;
    bool confirm_if_enough; /* rows that have too few seeds for that are of all of them, and no error */
    bool tell_builds;       /* a table says which rows have runs of another build than this program */
};

#define FILTER_PAIRS 32

/* A filter that has been read. */
struct filter {
    const struct report_filter *asked;
    struct label where;
    bool met[FILTER_PAIRS];   /* of each pair: some run has an option of that name */
    bool found[FILTER_PAIRS]; /* some run has it with that value */
    struct error untaken;     /* which value no option of its name takes; status ST_OK: none */
};

/* ST_USAGE: `where` is no list of pairs, or has more than FILTER_PAIRS; seeds to confirm by beside a protocol that
 * takes the best of all. NULL: everything passes. */
enum status filter_read(struct filter *f, const struct report_filter *asked, struct error *e);

/* Whether a run is of the task and the list; whether it and its row key have the values asked for. */
bool filter_passes(const struct filter *f, const struct run *run);
bool filter_matches(struct filter *f, const struct run *run, const struct label *key);

/* Rank of the task and of the run in the caller's lists; 0 of a task where the caller has none, -1: not in the
 * list. */
int filter_task_rank(const struct filter *f, const char *task);
int filter_run_rank(const struct filter *f, const char *run_id);

/* ST_DATA: a task that is asked for has no record in the set, and which there is of it with other options. */
enum status filter_check_tasks(const struct filter *f, const struct record_set *set, const char *out, struct error *e);

/* The error where nothing passed: what was asked for, the option that no run has, or a value that an option does not
 * take. ST_DATA, ST_USAGE. */
enum status filter_found_nothing(const struct filter *f, const char *out, struct error *e);

#endif

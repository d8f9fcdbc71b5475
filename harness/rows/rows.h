/* rows.h - groups run records into the rows of tables, and computes the numbers of each row.
 *
 * A table has the rows of a task and a profile. A row has all runs that differ only in learning rate and seed
 * (harness/study/row_key.h), one per rate and seed, and failed attempts of runs that were done again. A row has the
 * profile that makes all of its runs, else custom, so that its rate is chosen among all its runs. Validation chooses
 * the rate: the best mean over seeds of the task's primary metric, with ties decided by the smaller validation loss.
 * The protocol says which test number is reported. A run that did not end well always counts as chance, the primary
 * metric of uniform guessing. */
#ifndef LRNN_HARNESS_ROWS_ROWS_H
#define LRNN_HARNESS_ROWS_ROWS_H

#include <stdbool.h>

#include "core/arena.h"
#include "harness/rows/filter.h"
#include "harness/rows/protocol.h"
#include "harness/rows/published.h"
#include "harness/rows/stats.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"

#define REPORT_LEVEL 0.95 /* coverage of solve rates */

struct report_row {
    struct label key;              /* row_key of its runs */
    char id[RUN_ID_HEX];           /* hash of the key */
    bool outdated;                 /* made under another numerics version than this program's */
    char mixer[RECORD_TEXT];       /* short label; for outdated runs with the numerics version */
    char label[4 * RECORD_TEXT];   /* the mixer, then the options that distinguish the table's rows */
    int rank;                      /* of its task in the filter's list */
    const struct run *run;         /* a run for the facts that all share; one that ended well, if any */
    const char *profile;           /* the table's profile, see report_filter */
    const struct run_record **all; /* the grid, sorted by rate, then seed */
    int n_all, n_failed_all;
    int n_rates;
    bool uneven;                      /* rates have different numbers of seeds */
    int64_t confirm;                  /* number of seeds reported that had no part in the choice; 0: all do both */
    const struct run_record **chosen; /* the runs at the chosen rate: a part of `all` */
    int n, n_failed;
    double *value; /* [n] test metrics of `chosen` */
    double lr, mean, median, iqm, seq_acc;
    double estimate;          /* the protocol's number */
    struct interval interval; /* of it */
    int solved;
    struct interval solve_rate;
    double best;                       /* best-of-grid */
    int n_cut, n_cut_all;              /* runs that were cut off, at the chosen rate and in the grid */
    bool best_cut;                     /* the run that gives `best` was cut off */
    bool estimate_cut;                 /* a run that gives `estimate` was cut off */
    int n_estimate, n_estimate_failed; /* runs in `estimate`; failed runs among them, which count as chance */
    struct published_value published;
    bool unlike_published;    /* the published number has another setting */
    char unlike[RECORD_TEXT]; /* how: "model.gate=none (softmax there); ..." (setting.h) */
    /* Ours - published, with our best of the grid if the paper reports a best, else our mean at the chosen rate. NAN: a
     * run of the grid was cut off, or the settings differ. */
    double delta;
    double tok_per_s;                  /* NAN if not measured */
    bool disturbed;                    /* tok_per_s was not measured on a quiet machine */
    struct perf_row speed;             /* the measurement of tok_per_s */
    const struct report_filter *asked; /* the filter; borrowed, NULL: all */
};

struct report_table {
    const char *task, *profile;
    struct report_row *rows;
    int n_rows, n_runs;
};

struct report_tables {
    enum report_protocol protocol; /* this and the next three are as in report_filter */
    bool protocol_given;
    int64_t confirm;
    bool tell_builds;
    struct report_table *list;
    int n;
    struct published published;
    bool has_published;        /* the papers' numbers were found */
    struct paper_runs *papers; /* own runs (setting.h) of the tables with published numbers; owned */
    int n_papers;
    struct arena arena; /* owns the rows; the records are borrowed */
};

/* Loads the records of a folder for reports, read-only. Each run gets the profile that makes it now
 * (harness/study/profile.h), even if its record names another. Errors as records_load; ST_DATA: an identity that cannot
 * be read. report_load_sound treats damaged records as records_load_sound does. */
enum status report_load(struct record_set *set, const char *out, struct error *e);
enum status report_load_sound(struct record_set *set, const char *out, FILE *broken, struct error *e);

/* Makes the tables of the records. ST_USAGE: a filter that cannot be read. ST_DATA: no record passes it; a record's
 * identity cannot be read; two records have one row, rate and seed. */
enum status report_tables_make(struct report_tables *tables, const struct record_set *set,
                               const struct report_filter *filter, const char *out, struct error *e);
void report_tables_free(struct report_tables *tables);

/* Whether a run has no result and counts as chance. */
bool run_failed(const struct run *run);

/* Whether NaN or infinity ended a run or appeared in its test answers; --strict fails then. */
bool run_not_finite(const struct run *run);

/* Whether a run on a CPU used another library for matrix products than this program. The library's instruction set
 * depends on the processor and is not compared, and neither are runs of the other precision's program. */
bool run_has_other_products(const struct run *run);

double run_chance(const struct run *run);      /* the column `chance`; 0 if it is empty */
double run_test_metric(const struct run *run); /* chance for a failed run */

/* Returns epochs per step, with the last batch of an epoch possibly partial. NAN: the record does not say. */
double run_step_epochs(const struct run *run);

/* Means over seeds, by which a rate, or one of several rows of a setting, is chosen. A failed run has infinite loss,
 * and any rate without a failed run is better than one with. */
struct validation {
    double metric, loss;
    bool failed; /* one of the runs failed */
};
#define VALIDATION_NONE ((struct validation){-1, 0, true}) /* worse than any other */

/* Finds the next pair of runs of two rows with one seed, each at its row's chosen rate; only last attempts count, and
 * each run is in at most one pair. at: their indices in `chosen`, -1 and -1 before the first pair. False: no pair is
 * left. */
bool row_pair_next(const struct report_row *const rows[2], int at[2]);

/* Returns the validation means over the seeds that a row reports. */
struct validation row_validation(const struct report_row *row);

/* Whether v is better: it has no failed run and `than` has one; else by the larger metric; if equal (up to rounding) by
 * the smaller loss. */
bool validation_is_better(const struct validation *v, const struct validation *than);

/* Whether a limit ended the run before its schedule's steps were done. Ending well at the target, or by patience, does
 * not count. */
bool run_cut_off(const struct run *run);

/* Give the task's primary metric: its name in tables, and its value at a point of a curve. */
const char *run_metric_name(const struct run *run);
double run_point_metric(const struct run *run, const struct curve_point *p);
#define OUTDATED_NOTE                                                                                                  \
    "numerics=N: the program's numbers have changed since these runs, which cannot be repeated bit for bit"
#define OTHER_PRODUCTS_NOTE                                                                                            \
    "multiplied matrices by another library than this program's: they repeat to rounding, not bit for bit"
#define SETTINGS_MARK  "~" /* mark after a published number with another setting than ours */
#define SETTINGS_NOTE  SETTINGS_MARK " the paper's setting differs, so there is no diff"
#define DISTURBED_MARK "!" /* mark after a speed */
#define DISTURBED_NOTE                                                                                                 \
    "! disturbed measurement: another process used over 3 % of the cores, step times varied, or nobody checked"
#define CONFIRMED_NOTE                                                                                                 \
    "Each row reports its %lld largest seeds; the others chose the rate (--confirm-seeds)" /* report_tables.confirm */
#define FAILED_MARK "#" /* after each number that such a run has a part in */
#define FAILED_NOTE "# a run that failed counts as chance"
#define FAILED_COUNT_NOTE                                                                                              \
    FAILED_MARK ": %d of %d runs failed and count as chance" /* of the runs that give the numbers */
#define CUT_OFF_MARK "*"                                     /* after each number that such a run has a part in */
#define CUT_OFF_NOTE "* cut off: a limit of steps or time ended the run before its schedule did"

#endif

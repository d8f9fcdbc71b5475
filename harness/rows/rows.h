/* rows.h - groups run records into the rows of tables, and computes the numbers of each row.
 *
 * A table has the rows of one task and one profile. A row has all runs that differ only in learning rate and seed
 * (harness/study/row_key.h): one for each rate and seed, and also failed attempts at runs that were trained again. The
 * profile of a row is the profile that has all of its runs, or custom if there is none; so a row's rate is always
 * chosen among all its runs. The row's rate is the rate with the best validation: the largest mean over seeds of the
 * task's primary metric or, if means are equal, the smaller loss. The protocol says which test number is reported. A
 * failed run always counts as chance, which is the primary metric of uniform guessing. */
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

#define REPORT_LEVEL 0.95 /* coverage of the intervals of solve rates */

struct report_row {
    struct label key;            /* row_key of its runs */
    char id[RUN_ID_HEX];         /* hash of the key */
    bool outdated;               /* its runs were made under another numerics version than this program's */
    char mixer[RECORD_TEXT];     /* short label; an outdated row also has the numerics version */
    char label[4 * RECORD_TEXT]; /* the mixer, then the options that distinguish the table's rows */
    int rank;                    /* place of its task in the filter's list */
    /* a run whose fields give the facts that all runs of the row share; it did not fail, unless all runs failed */
    const struct run *run;
    const char *profile;           /* profile of the row's table (report_filter says how it is chosen) */
    const struct run_record **all; /* all runs of the row, sorted by rate, then by seed */
    int n_all, n_failed_all;
    int n_rates;
    bool uneven; /* not all rates have the same number of seeds */
    /* number of seeds that are reported and did not choose the rate; 0: all seeds choose and all are reported */
    int64_t confirm;
    const struct run_record **chosen; /* the runs at the chosen rate: a part of `all` */
    int n, n_failed;
    double *value; /* [n] test metrics of `chosen` */
    double lr, mean, median, iqm, seq_acc;
    double estimate;          /* the protocol's number */
    struct interval interval; /* interval of `estimate` */
    int solved;
    struct interval solve_rate;
    double best;          /* the largest test value over all rates and seeds */
    int n_cut, n_cut_all; /* number of runs that were cut off: among `chosen`, and among `all` */
    bool best_cut;        /* the run that gives `best` was cut off */
    bool estimate_cut;    /* one of the runs that give `estimate` was cut off */
    /* number of runs that give `estimate`, and number of failed runs among them, which count as chance */
    int n_estimate, n_estimate_failed;
    struct published_value published;
    bool unlike_published;    /* the setting of the published number differs from the row's */
    char unlike[RECORD_TEXT]; /* the differences: "model.gate=none (softmax there); ..." (setting.h) */
    /* Our number minus the published number. Ours is the best of the grid if the paper reports a best, else the mean at
     * the chosen rate. NAN: a run was cut off, or the settings differ. */
    double delta;
    double tok_per_s;                  /* NAN if not measured */
    bool disturbed;                    /* tok_per_s was not measured on a quiet machine */
    struct perf_row speed;             /* the measurement of tok_per_s */
    const struct report_filter *asked; /* borrowed; NULL: all records */
};

struct report_table {
    const char *task, *profile;
    struct report_row *rows;
    int n_rows, n_runs;
};

struct report_tables {
    enum report_protocol protocol; /* report_filter explains this field and the next three */
    bool protocol_given;
    int64_t confirm;
    bool tell_builds;
    struct report_table *list;
    int n;
    struct published published;
    bool has_published; /* the papers' numbers were found */
    /* for each paper's table with a published number, the runs that built-in plans have for it (setting.h); owned */
    struct paper_runs *papers;
    int n_papers;
    struct arena arena; /* owns the rows; the records are borrowed */
};

/* Loads the records of a folder for reports, and changes no file. Marks as custom the runs that the profile of their
 * name does not have in this program (harness/study/profile.h). Errors as records_load; ST_DATA also if an identity
 * cannot be read. report_load_sound treats damaged records like records_load_sound. */
enum status report_load(struct record_set *set, const char *out, struct error *e);
enum status report_load_sound(struct record_set *set, const char *out, FILE *broken, struct error *e);

/* Makes the tables of the records. ST_USAGE: the filter cannot be read. ST_DATA: no record passes the filter; a
 * record's identity cannot be read; or two records have the same row, rate and seed. */
enum status report_tables_make(struct report_tables *tables, const struct record_set *set,
                               const struct report_filter *filter, const char *out, struct error *e);
void report_tables_free(struct report_tables *tables);

/* Returns the profile by which reports group a run: the profile that its record names, or PROFILE_CUSTOM. */
const char *record_profile(const struct run_record *r);

/* Whether a run has no result and counts as chance. */
bool run_failed(const struct run *run);

/* Whether NaN or infinity ended a run, or appeared in its test answers. With --strict, the command then fails. */
bool run_not_finite(const struct run *run);

/* Whether a run on a CPU used another library for matrix products than this program. The library's instruction set is
 * not compared, because it depends on the processor. False if the run has another precision than this program. */
bool run_has_other_products(const struct run *run);

double run_chance(const struct run *run);      /* the column `chance`; 0 if it is empty */
double run_test_metric(const struct run *run); /* the primary metric on the test split; chance for a failed run */

/* Returns epochs per step; the last batch of an epoch may be partial. NAN: the record lacks the batch or set size. */
double run_step_epochs(const struct run *run);

/* Validation means over seeds; they choose a row's rate, and one of several rows of a setting. A failed run has
 * infinite loss, and any rate without a failed run is better than a rate with one. */
struct validation {
    double metric, loss;
    bool failed; /* one of the runs failed */
};
#define VALIDATION_NONE ((struct validation){-1, 0, true}) /* worse than the means of any runs */

/* Finds the next pair of runs, one from each row, that have the same seed and their row's chosen rate. Only the last
 * attempt at a run counts, and each run is in at most one pair. at: the indices of the pair in `chosen`; -1 and -1
 * before the first call. Returns false if there is no further pair. */
bool row_pair_next(const struct report_row *const rows[2], int at[2]);

/* Returns the validation means over the seeds that a row reports. */
struct validation row_validation(const struct report_row *row);

/* Whether v is better. If only one of the two has a failed run, the other is better; else the larger metric is better.
 * If the metrics are equal up to rounding, the smaller loss is better. */
bool validation_is_better(const struct validation *v, const struct validation *than);

/* Whether a limit ended the run before the steps of its schedule were done. A run that stopped because it reached its
 * target, or because its patience ran out, was not cut off. */
bool run_cut_off(const struct run *run);

/* These return the name of the task's primary metric in tables, and the metric's value at a point of a curve. */
const char *run_metric_name(const struct run *run);
double run_point_metric(const struct run *run, const struct curve_point *p);
#define OUTDATED_NOTE                                                                                                  \
    "numerics=N: the program's numbers have changed since these runs, which cannot be repeated bit for bit"
#define OTHER_PRODUCTS_NOTE                                                                                            \
    "multiplied matrices by another library than this program's: they repeat to rounding, not bit for bit"
#define SETTINGS_MARK  "~" /* mark after a published number whose setting differs from ours */
#define SETTINGS_NOTE  SETTINGS_MARK " the paper's setting differs, so there is no diff"
#define DISTURBED_MARK "!" /* mark after a speed */
#define DISTURBED_NOTE                                                                                                 \
    "! disturbed measurement: another process used over 3 % of the cores, step times varied, or nobody checked"
#define CONFIRMED_NOTE                                                                                                 \
    "Each row reports its %lld largest seeds; the others chose the rate (--confirm-seeds)" /* report_tables.confirm */
#define FAILED_MARK "#" /* mark after each number to which a failed run contributes */
#define FAILED_NOTE "# a run that failed counts as chance"
#define FAILED_COUNT_NOTE                                                                                              \
    FAILED_MARK ": %d of %d runs failed and count as chance" /* of the runs that give the numbers */
#define CUT_OFF_MARK "*" /* mark after each number to which a cut-off run contributes */
#define CUT_OFF_NOTE "* cut off: a limit of steps or time ended the run before its schedule did"

#endif

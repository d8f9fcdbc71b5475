/* rows.h - run records gathered into the rows of tables, and the numbers of each row.
 *
 * A table is a task and a profile; a row is what is equal in everything that identifies a run but learning rate and
 * seed (harness/study/row_key.h), and no two runs of it have one seed at one rate; of a run that was done again its
 * failed attempts stand beside it. A row is of a profile that makes all of its runs, else custom, so that its rate is
 * chosen over all rates that there are. That is done by validation: the best mean of the task's primary metric there
 * over the seeds (equal ones: the smaller validation loss); what is reported of it says the protocol. A run that did
 * not end well counts as chance, the primary metric of uniform guessing, everywhere. */
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
    struct label key;              /* what its runs have in common: row_key */
    char id[RUN_ID_HEX];           /* hash of the key */
    bool outdated;                 /* made under other numerics than the program has now */
    char mixer[RECORD_TEXT];       /* its label, short form; of outdated runs with their numerics */
    char label[4 * RECORD_TEXT];   /* the mixer, then what tells the table's rows apart */
    int rank;                      /* of its task in the list that was asked for */
    const struct run *run;         /* what its runs share, of one that ended well if any did */
    const char *profile;           /* its table's: see report_filter */
    const struct run_record **all; /* the grid, by rate, then seed */
    int n_all, n_failed_all;
    int n_rates;
    bool uneven;                      /* they have different numbers of seeds */
    int64_t confirm;                  /* so many seeds are reported on and chose nothing; 0: all do both */
    const struct run_record **chosen; /* the runs at the chosen rate: a part of `all` */
    int n, n_failed;
    double *value; /* [n] their test metric */
    double lr, mean, median, iqm, seq_acc;
    double estimate;          /* what the protocol reports */
    struct interval interval; /* of it */
    int solved;
    struct interval solve_rate;
    double best;                       /* best-of-grid */
    int n_cut, n_cut_all;              /* runs of the chosen rate, of the grid, that were cut off */
    bool best_cut;                     /* so was the one that gives `best` */
    bool estimate_cut;                 /* so was one of those that give `estimate` */
    int n_estimate, n_estimate_failed; /* runs that `estimate` is made of; the failed ones, which count as chance */
    struct published_value published;
    bool unlike_published;    /* there is one, and it is of another setting */
    char unlike[RECORD_TEXT]; /* in what: "model.gate=none (softmax there); ..." (setting.h) */
    /* Ours - published: the best of the grid where the paper reports that, else the mean at the chosen rate. NAN: a run
     * of the grid was cut off, or the number is of other settings. */
    double delta;
    double tok_per_s;                  /* NAN if not measured */
    bool disturbed;                    /* and not known to have been measured alone */
    struct perf_row speed;             /* where it was measured */
    const struct report_filter *asked; /* by which its table was chosen; borrowed, NULL: all */
};

struct report_table {
    const char *task, *profile;
    struct report_row *rows;
    int n_rows, n_runs;
};

struct report_tables {
    enum report_protocol protocol; /* of report_filter, as are the next three */
    bool protocol_given;
    int64_t confirm;
    bool tell_builds;
    struct report_table *list;
    int n;
    struct published published;
    bool has_published;        /* the papers' numbers were found */
    struct paper_runs *papers; /* the own runs of tables whose numbers stand beside rows; owned */
    int n_papers;
    struct arena arena; /* owns the rows; the records are borrowed */
};

/* Loads the records of a folder for reports, which read them and change nothing: each run has the profile that makes it
 * (harness/study/profile.h), whatever it was called when it was made. Errors as records_load; ST_DATA: an
 * identity that cannot be read. report_load_sound treats damaged records as records_load_sound does. */
enum status report_load(struct record_set *set, const char *out, struct error *e);
enum status report_load_sound(struct record_set *set, const char *out, FILE *broken, struct error *e);

/* Makes the tables of the records. ST_USAGE: a filter that cannot be read. ST_DATA: no record passes it; a record's
 * identity cannot be read; two records are of one row, rate and seed. */
enum status report_tables_make(struct report_tables *tables, const struct record_set *set,
                               const struct report_filter *filter, const char *out, struct error *e);
void report_tables_free(struct report_tables *tables);

/* Whether a run has no result of its own and counts as chance. */
bool run_failed(const struct run *run);

/* Whether NaN or infinity ended a run, or stood where its test looked for an answer: what --strict is about. */
bool run_not_finite(const struct run *run);

/* Whether another library than this program's multiplied the matrices of a run on a CPU. Which instructions the library
 * took depends on the processor and is not compared; runs of the other precision belong to the other program. */
bool run_has_other_products(const struct run *run);

double run_chance(const struct run *run);      /* the column `chance`; 0 where it is empty */
double run_test_metric(const struct run *run); /* chance for a failed run */

/* How much of an epoch a step of it is: an epoch ends with a batch that may not be full. NAN: its record does not
 * say. */
double run_step_epochs(const struct run *run);

/* Means over seeds, by which rates, and one of several rows of one setting, are chosen. A failed run's loss is
 * infinite, and its rate comes after every rate without one. */
struct validation {
    double metric, loss;
    bool failed; /* one of the runs did */
};
#define VALIDATION_NONE ((struct validation){-1, 0, true}) /* below all of them */

/* Goes on to the next pair of two rows: runs of one seed, each at its row's chosen rate, the last attempts alone. at:
 * their places in `chosen`, -1 and -1 before the first; each run is in one pair at most. False: there is none left. */
bool row_pair_next(const struct report_row *const rows[2], int at[2]);

/* The means over the seeds that a row reports on. */
struct validation row_validation(const struct report_row *row);

/* Whether it alone has no failed run, else the larger metric, or an equal one (but for rounding) and the smaller loss.
 */
bool validation_is_better(const struct validation *v, const struct validation *than);

/* Whether it ended well before its schedule's steps were done, neither at its target nor for want of gain: it was
 * trained for fewer steps than planned. */
bool run_cut_off(const struct run *run);

/* The task's primary metric: its name in tables, its value at a point of a curve. */
const char *run_metric_name(const struct run *run);
double run_point_metric(const struct run *run, const struct curve_point *p);
#define OUTDATED_NOTE                                                                                                  \
    "numerics=N: the program's numbers have changed since these runs, which cannot be repeated bit for bit"
#define OTHER_PRODUCTS_NOTE                                                                                            \
    "multiplied matrices by another library than this program's: they repeat to rounding, not bit for bit"
#define SETTINGS_MARK  "~" /* after a published number of other settings than ours */
#define SETTINGS_NOTE  SETTINGS_MARK " the paper's setting differs, so there is no diff"
#define DISTURBED_MARK "!" /* after a speed */
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

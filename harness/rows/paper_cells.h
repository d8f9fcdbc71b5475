/* paper_cells.h - the cells of a paper's table from a plan's runs: runs planned and done, our number by the paper's
 * protocol, the paper's number, and a verdict. (These cells are places in a table; the cell of cell_id is a run without
 * its seed.)
 *
 * A plan's `rows` and `columns` name the options that distinguish rows and columns: "model" (the mixer with its
 * options, default of rows), "task" (default of columns), "model.OPTION", "task.OPTION", or a flag. Other options with
 * several values are part of a cell's grid. A label has a task's options only if the plan has another of that name. A
 * task and its one-at-a-time changes share a cell, which has their mean. A row has the paper's name of its model. If a
 * cell would have several models of one name, each gets its own row, "NAME (MIXER)". A plan's `lengths` ("192,384") are
 * lengths of test sequences (for images, sides in pixels): each column is repeated for each length, with the accuracy
 * at that length beside the published "acc_192". A plan's `differs` and `differs.MODEL` say how its runs differ from
 * the paper's: such cells get no verdict. */
#ifndef LRNN_HARNESS_ROWS_PAPER_CELLS_H
#define LRNN_HARNESS_ROWS_PAPER_CELLS_H

#include "harness/rows/facts.h"
#include "harness/study/request.h"

enum paper_verdict {
    PAPER_NONE,       /* the paper has no number, or our setting differs */
    PAPER_NOT_RUN,    /* no run is on record */
    PAPER_CUT_OFF,    /* runs ended before the end of their schedule, and a higher number could change the verdict */
    PAPER_UNFINISHED, /* missing runs, planned or as many as the paper has per setting, could change it */
    PAPER_WITHIN,     /* the paper's interval or rounded number overlaps our interval, or ours +- PAPER_MARGIN */
    PAPER_ABOVE,
    PAPER_BELOW
};
extern const char *const paper_verdict_names[];

#define PAPER_MARGIN           0.02 /* if we have no interval: two bests of 15 seeds differ by about so much */
#define PAPER_MOST_LENGTHS     8
#define PAPER_MOST_DIFFERENCES 64 /* per plan and profile */

struct paper_cell {
    int row, column;
    int planned, done, failed; /* runs */
    int earlier;               /* failed attempts at planned runs that were set aside; they count as chance */
    int settings;              /* number of settings (task or change) over which the number is a mean */
    int other_builds;          /* done runs from another build of the program */
    int without;               /* runs that lack test sequences of the column's length */
    char *run_ids;             /* ids of the done runs, blank-separated; owned; NULL: none */
    int64_t least, most, of;   /* fewest and most steps done; steps of the longest schedule; -1: no run */
    double ours;               /* our number; NAN: some setting has none. Plans of speed: tokens per second */
    bool disturbed;            /* speed: the machine was not quiet during the measurement */
    struct perf_row speed;     /* speed: the measurement */
    bool sees_future;          /* a run of the cell could see later inputs (key_sees_future) */
    struct interval interval;  /* of our number, if it is of one setting */
    struct published_value published;
    bool cut_off;             /* a run that gives the number was cut off */
    bool any_cut_off;         /* a run of the cell was cut off */
    bool other;               /* its runs are of another setting than the paper's */
    char unlike[RECORD_TEXT]; /* how: "model.gate=none (softmax there); ..." (setting.h) */
    uint64_t differs;         /* bit i: difference i of plan_file_differs applies */
    enum paper_verdict verdict;
};

/* The mean of a row over all columns, ours and the paper's. */
struct paper_mean {
    double ours;
    struct published_value published;
};

struct paper_cells {
    struct request request;
    const struct record_set *set; /* the records of `out`; borrowed. NULL: they are loaded */
    const char *flags;            /* flags of the command line that replace the plan's, for the caption; borrowed */
    bool shortened;               /* these flags are from a listed sweep (study/sweep_list.h) */
    bool tell_builds;             /* the table marks cells with runs of another build */
    struct resolved resolved;
    struct plan plan;
    char (*rows)[RECORD_TEXT], (*columns)[RECORD_TEXT]; /* labels, in the plan's order */
    int n_rows, n_columns;
    bool short_tasks;                    /* a label has a task without the options that the plan gives it */
    int64_t lengths[PAPER_MOST_LENGTHS]; /* of the plan; only 0: all test sequences together */
    int n_lengths;                       /* at least 1 */
    struct paper_cell *cells;            /* n_rows * n_columns, row-major; empty places have planned == 0 */
    struct paper_mean *overall;          /* [n_rows]; NULL: the plan asks for none, or lacks a column of the paper's */
    bool whole;                          /* the columns are all tasks of the paper's table */
    bool own_numbers;                    /* the paper's numbers are from the folder's published.csv */
    struct facts facts;                  /* of all runs */
    enum report_protocol protocol;
    int n_planned, n_done;
    bool has_published;
    bool speed; /* the plan measures speed: a cell is done when perf.csv has it */
};

/* Fills *p from the records of `out`. The caller sets `request`, which has a plan file, `set`, `flags` and
 * `tell_builds`; all else is zero. Free with paper_cells_free, also after an error. ST_USAGE, ST_DATA: as request_plan
 * and report_load; an unknown option in rows or columns, bad lengths. */
enum status paper_cells_make(struct paper_cells *p, const char *out, struct error *e);
void paper_cells_free(struct paper_cells *p);

/* Checks the plan's lines for its table before runs are trained, for errors that paper_cells_make would find later. */
enum status paper_cells_check(const struct request *request, const struct resolved *resolved, struct error *e);

/* Finds the protocol by which the plan, under that profile, computes a cell's number. ST_USAGE: an unknown protocol. */
enum status paper_protocol(const struct request *request, const char *profile, enum report_protocol *protocol,
                           struct error *e);

struct paper_cell *paper_cell_at(const struct paper_cells *p, int row, int column);

/* Returns the value of a key of the plan under the chosen profile, else `fallback`. */
const char *paper_setting(const struct paper_cells *p, const char *key, const char *fallback);

/* Whether the cell's setting differs from the paper's, so that it has no verdict. */
bool paper_cell_is_other(const struct paper_cell *c);

/* Returns the text of difference number k if the set `differs` has it, and no smaller number with the same text; else
 * NULL. */
const char *paper_difference(const struct paper_cells *p, uint64_t differs, int k);

/* --- between the files paper_*.c ---------------------------------------------------------------------------------- */

/* A use of the plan (plan_use) at a length, with its place in the table. The list has all uses at the first length
 * first. */
struct paper_spot {
    int row, column, use;
    int64_t length; /* as in the plan; 0: all test sequences together */
};
int paper_count_spots(const struct paper_cells *p);
const struct setup *paper_setup(const struct paper_cells *p, const struct paper_spot *spot);

/* Reads the plan's lengths, and checks its rows and columns. ST_USAGE: bad lengths, lengths in a plan that measures
 * speed, an unknown option, or rate or seed. */
enum status paper_read_table(struct paper_cells *p, struct error *e);

/* Sets rows, columns and all spots. ST_USAGE: a name is too long; ST_MEMORY. */
enum status paper_place(struct paper_cells *p, const struct published *published, struct paper_spot *spots,
                        struct error *e);

/* Writes word number `word` of the chosen tasks. */
void paper_word(const struct paper_cells *p, int word, char *text, size_t size);

/* Makes the label of a run's mixer, with all its options. */
enum status paper_mixer(const struct setup *s, struct label *mixer, struct error *e);

/* Finds the paper's number for a task (NULL: any) and a run's model in the plan's table; *row: the paper's name of the
 * model. */
enum status paper_find_number(const struct paper_cells *p, const struct published *published, const struct setup *s,
                              const char *task, int64_t length, struct published_value *value, const char **row,
                              struct error *e);

/* Returns the verdict of a cell whose other fields are set. */
enum paper_verdict paper_judge(const struct paper_cell *c, enum report_protocol protocol);

/* Marks cells whose setting is not in the paper's table (setting.h), cells that lack a part of a task's settings, and
 * cells in rows for which the plan names a difference. Sets `whole`. Errors as request_plan; ST_USAGE: the plan names
 * more differences than a cell can have. */
enum status paper_mark_others(struct paper_cells *p, const struct paper_spot *spots, struct error *e);
enum status paper_check_differences(const struct paper_cells *p, struct error *e);

#endif

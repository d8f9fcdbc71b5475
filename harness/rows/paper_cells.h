/* paper_cells.h - the cells of a paper's table that a plan repeats: the runs planned and done, our number by the
 * paper's protocol, the paper's number, and a verdict. A cell here is a place in a table. (The cell of cell_id is
 * something else: all runs that differ only in the seed.)
 *
 * A plan's `rows` and `columns` name the options that distinguish rows and columns: "model" (the mixer with its
 * options; the default of rows), "task" (the default of columns), "model.OPTION", "task.OPTION", or a flag. If other
 * options have several values, they are a grid inside each cell. A label has a task's options only if the plan has
 * another task of that name. A task and its variants (one option has another published value) share a cell, which has
 * their mean. A row has the paper's name of its model. If a cell would have several models of one name, each model gets
 * its own row, "NAME (MIXER)". A plan's `lengths` ("192,384") are lengths of test sequences (for images, sides in
 * pixels): each column is repeated for each length, and compares the accuracy at that length with the published
 * "acc_192". A plan's `least` (".9") asks for the first row of each column that is above it, at the longest of the
 * lengths, and compares it with the published "least". A plan's `differs` and `differs.MODEL` say how its runs differ
 * from the paper's; such cells get no verdict. */
#ifndef LRNN_HARNESS_ROWS_PAPER_CELLS_H
#define LRNN_HARNESS_ROWS_PAPER_CELLS_H

#include "harness/rows/facts.h"
#include "harness/study/request.h"

enum paper_verdict {
    PAPER_NONE,    /* there is no verdict: the paper has no number, or our setting differs */
    PAPER_NOT_RUN, /* no run has a record */
    /* runs were cut off before the end of their schedule, and a higher number could change the verdict */
    PAPER_CUT_OFF,
    /* runs are missing and could change the verdict: planned ones, or as many as the paper has per setting */
    PAPER_UNFINISHED,
    /* the paper's interval, or its rounded number, overlaps our interval, or our number +- PAPER_MARGIN */
    PAPER_WITHIN,
    PAPER_ABOVE,
    PAPER_BELOW
};
extern const char *const paper_verdict_names[];

/* used if we have no interval; the bests of two times 15 seeds differ by about so much */
#define PAPER_MARGIN           0.02
#define PAPER_MOST_LENGTHS     8
#define PAPER_MOST_DIFFERENCES 64 /* per plan and profile */

struct paper_cell {
    int row, column;
    int planned, done, failed; /* numbers of runs */
    /* number of failed attempts that were set aside before the run was repeated; they count as chance */
    int earlier;
    int settings;     /* number of settings (the task and its variants) over which our number is the mean */
    int other_builds; /* number of done runs from another build of the program */
    int without;      /* number of runs that have no test sequences of the column's length */
    char *run_ids;    /* ids of the done runs, with blanks between them; owned; NULL: none */
    /* least, most: fewest and most steps done; of: steps of the longest schedule; -1: no run */
    int64_t least, most, of;
    double ours;              /* our number; NAN: a setting has none. In plans of speed: tokens per second */
    bool disturbed;           /* in plans of speed: the machine was not quiet during the measurement */
    struct perf_row speed;    /* in plans of speed: the measurement */
    bool sees_future;         /* a run of the cell could see later inputs (key_sees_future) */
    struct interval interval; /* of our number, if the cell has only one setting */
    struct published_value published;
    bool cut_off;             /* a run that gives the number was cut off */
    bool any_cut_off;         /* a run of the cell was cut off */
    bool other;               /* the setting of its runs differs from the paper's */
    char unlike[RECORD_TEXT]; /* how it differs: "model.gate=none (softmax there); ..." (setting.h) */
    uint64_t differs;         /* bit i: difference i of plan_file_differs applies */
    enum paper_verdict verdict;
};

/* The first row, in the plan's order, whose number in a column is above the plan's bound. */
struct paper_least {
    int column, row;                  /* row -1: none is above it */
    int not_run;                      /* rows before it, of all rows if none is above it, that have no number */
    struct published_value published; /* the paper's least value of what tells its rows apart */
};

/* The means of a row over all columns: ours and the paper's. */
struct paper_mean {
    double ours;
    struct published_value published;
};

struct paper_cells {
    struct request request;
    const struct record_set *set; /* the records of `out`; borrowed. NULL: they are loaded */
    const char *flags;            /* the flags on the command line that replace the plan's, for the caption; borrowed */
    bool shortened;               /* these flags are from a stored sweep (run/sweep_list.h) */
    bool tell_builds;             /* the table marks cells with runs of another build */
    struct resolved resolved;
    struct plan plan;
    char (*rows)[RECORD_TEXT], (*columns)[RECORD_TEXT]; /* labels, in the order of the plan */
    int n_rows, n_columns;
    bool short_tasks;                    /* some label names a task without the options that the plan gives it */
    int64_t lengths[PAPER_MOST_LENGTHS]; /* the plan's lengths; a single 0 means all test sequences together */
    int n_lengths;                       /* at least 1 */
    struct paper_cell *cells;            /* n_rows * n_columns, row after row; a place without runs has planned == 0 */
    /* [n_rows]; NULL: the plan asks for no means, or lacks a column of the paper's table */
    struct paper_mean *overall;
    double bound;               /* the plan's `least`; NAN: it has none */
    struct paper_least *least;  /* [n_least], the columns at the longest length */
    int n_least;                /* 0: the plan has no bound */
    bool whole;                 /* the columns are all the tasks of the paper's table */
    struct published published; /* all published numbers; the table of none if they cannot be read */
    struct facts facts;         /* about all runs */
    enum report_protocol protocol;
    int n_planned, n_done;
    bool has_published;
    bool speed; /* the plan measures speed; then a cell is done if perf.csv has its speed */
};

/* Fills *p from the records in `out`. The caller sets `request`, which has a plan file, and `set`, `flags` and
 * `tell_builds`; the rest is zero. Free with paper_cells_free, also after an error. ST_USAGE, ST_DATA: as request_plan
 * and report_load, or an option in rows or columns is unknown, or lengths are wrong. */
enum status paper_cells_make(struct paper_cells *p, const char *out, struct error *e);
void paper_cells_free(struct paper_cells *p);

/* Before runs are trained, checks the plan's lines for its table for the errors that paper_cells_make would find
 * later. */
enum status paper_cells_check(const struct request *request, const struct resolved *resolved, struct error *e);

/* Finds the protocol by which the plan, under that profile, computes a cell's number. ST_USAGE: an unknown protocol. */
enum status paper_protocol(const struct request *request, const char *profile, enum report_protocol *protocol,
                           struct error *e);

struct paper_cell *paper_cell_at(const struct paper_cells *p, int row, int column);

/* Returns the value of a key of the plan under the chosen profile, else `fallback`. */
const char *paper_setting(const struct paper_cells *p, const char *key, const char *fallback);

/* Whether the cell's setting differs from the paper's, so that it has no verdict. */
bool paper_cell_is_other(const struct paper_cell *c);

/* Returns the text of difference number k, if the set `differs` contains k and no smaller number has the same text;
 * else NULL. */
const char *paper_difference(const struct paper_cells *p, uint64_t differs, int k);

/* --- between the files paper_*.c ---------------------------------------------------------------------------------- */

/* A use of the plan (plan_use) at one length, with its place in the table. A list of spots has all uses at the first
 * length, then all uses at the second, and so on. */
struct paper_spot {
    int row, column, use;
    int64_t length; /* as in the plan; 0: all test sequences together */
};
int paper_count_spots(const struct paper_cells *p);
const struct setup *paper_setup(const struct paper_cells *p, const struct paper_spot *spot);

/* Reads the plan's lengths, and checks its rows and columns. ST_USAGE: wrong lengths, lengths in a plan that measures
 * speed, an unknown option, or rate or seed. */
enum status paper_read_table(struct paper_cells *p, struct error *e);

/* Sets the table's rows and columns, and the place of every spot. ST_USAGE: a name is too long; ST_MEMORY. */
enum status paper_place(struct paper_cells *p, struct paper_spot *spots, struct error *e);

/* Writes word number `word` of the plan's chosen tasks. */
void paper_word(const struct paper_cells *p, int word, char *text, size_t size);

/* Makes the label of a run's mixer, with all its options. */
enum status paper_mixer(const struct spec *s, struct label *mixer, struct error *e);

/* Finds the paper's number for a task (NULL: any) and a run's model in the plan's table: at a length, at none (0), or
 * its "least" (PAPER_LEAST). *row: the paper's name of the model. */
#define PAPER_LEAST (-1)
enum status paper_find_number(const struct paper_cells *p, const struct setup *s, const char *task, int64_t length,
                              struct published_value *value, const char **row, struct error *e);

/* Returns the verdict of a cell whose other fields are set. */
enum paper_verdict paper_judge(const struct paper_cell *c, enum report_protocol protocol);

/* Marks cells whose setting is not in the paper's table (setting.h), cells that lack a part of a task's settings, and
 * cells in rows for which the plan names a difference. Sets `whole`. Errors as request_plan; ST_USAGE also if the plan
 * names more differences than a cell can have. */
enum status paper_mark_others(struct paper_cells *p, const struct paper_spot *spots, struct error *e);
enum status paper_check_differences(const struct paper_cells *p, struct error *e);

#endif

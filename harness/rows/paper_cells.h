/* paper_cells.h - a plan's runs as the cells of its paper's table: what was planned, what is done of it, the number
 * that the paper's protocol makes of it, the paper's own number, and a verdict.
 *
 * A plan's `rows` and `columns` name the options that tell rows and columns apart: "model" (the mixer with its options,
 * default of rows), "task" (default of columns), "model.OPTION", "task.OPTION", or a flag. Options that neither line
 * names are part of a cell's grid. A task and its one-at-a-time changes are one cell, their mean. A row has the paper's
 * name of its model; several models of one name in a cell get a row each, "NAME (MIXER)". A plan's `lengths`
 * ("192,384") are lengths of test sequences, of images sides in pixels: each column becomes one for each length, with
 * the accuracy there, beside the published "acc_192". A plan's `differs` and `differs.MODEL` say in what its runs are
 * not the paper's: such cells get no verdict. */
#ifndef LRNN_HARNESS_ROWS_PAPER_CELLS_H
#define LRNN_HARNESS_ROWS_PAPER_CELLS_H

#include "harness/rows/facts.h"
#include "harness/study/request.h"

enum paper_verdict {
    PAPER_NONE,       /* the paper has no number, or ours is of another setting */
    PAPER_NOT_RUN,    /* no run is on record */
    PAPER_CUT_OFF,    /* runs ended before the end of their schedule, and a higher number could change the verdict */
    PAPER_UNFINISHED, /* runs are missing that could change it: planned ones, or as many as the paper's of a setting */
    PAPER_WITHIN,     /* the paper's interval, or its number as it is rounded, meets ours or PAPER_MARGIN about ours */
    PAPER_ABOVE,
    PAPER_BELOW
};
extern const char *const paper_verdict_names[];

#define PAPER_MARGIN           0.02 /* without an interval: two bests of 15 seeds each differ by so much */
#define PAPER_MOST_LENGTHS     8
#define PAPER_MOST_DIFFERENCES 64 /* of a plan under a profile */

struct paper_cell {
    int row, column;
    int planned, done, failed; /* runs */
    int earlier;               /* failed attempts at planned runs, which were set aside and count as chance */
    int settings;              /* tasks whose numbers its number is the mean of */
    int other_builds;          /* done runs of another build of the program */
    int without;               /* runs of its number that lack test sequences of the column's length */
    char *run_ids;             /* of the done runs, blank-separated; owned; NULL: none */
    int64_t least, most, of;   /* steps done, the fewest and the most; steps of the longest schedule; -1: none */
    double ours;               /* NAN: some setting has no number; of a plan that measures speed tokens per second */
    bool disturbed;            /* of speed: the machine was not quiet meanwhile */
    struct perf_row speed;     /* of a plan that measures speed: where it was measured */
    bool sees_future;          /* a run of the cell could see later inputs (key_sees_future) */
    struct interval interval;  /* of one setting's number */
    struct published_value published;
    bool cut_off;             /* a run that gives the number was cut off */
    bool any_cut_off;         /* a run of the cell was cut off */
    bool other;               /* its runs are of another setting than the paper's */
    char unlike[RECORD_TEXT]; /* in what: "model.gate=none (softmax there); ..." (setting.h) */
    uint64_t differs;         /* a bit for each number of plan_file_differs by which its setting is not the paper's */
    enum paper_verdict verdict;
};

/* The means of a row over all columns. */
struct paper_mean {
    double ours;
    struct published_value published;
};

struct paper_cells {
    struct request request;
    const struct record_set *set; /* the records of `out`; borrowed. NULL: they are loaded */
    const char *flags;            /* of the command line in place of the plan's, for the caption; borrowed */
    bool shortened;               /* a noted sweep has these flags (study/sweep_list.h) */
    bool tell_builds;             /* the table names cells with runs of another build */
    struct resolved resolved;
    struct plan plan;
    char (*rows)[RECORD_TEXT], (*columns)[RECORD_TEXT]; /* labels, in the plan's order */
    int n_rows, n_columns;
    int64_t lengths[PAPER_MOST_LENGTHS]; /* of the plan; 0 alone: columns are of all test sequences together */
    int n_lengths;                       /* at least 1 */
    struct paper_cell *cells;            /* n_rows * n_columns, row-major; one with nothing planned has planned == 0 */
    struct paper_mean *overall;          /* [n_rows]; NULL: the plan asks for none, or lacks a column of the paper's */
    bool whole;                          /* its columns are all tasks of the paper's table */
    bool own_numbers;                    /* the paper's numbers are of the folder's published.csv */
    struct facts facts;                  /* of all runs */
    enum report_protocol protocol;
    int n_planned, n_done;
    bool has_published;
    bool speed; /* the plan measures speed: a cell is done when perf.csv has it */
};

/* Fills cells, zeros but for `request`, which has a plan file, `set`, `flags` and `tell_builds`, from the records of
 * `out`.
 * Free with paper_cells_free, also after an error. ST_USAGE, ST_DATA: as request_plan and report_load; rows or columns
 * by an unknown option, bad lengths. */
enum status paper_cells_make(struct paper_cells *p, const char *out, struct error *e);
void paper_cells_free(struct paper_cells *p);

/* Checks the plan's lines on its table before runs are trained: errors that paper_cells_make has whatever records there
 * are. */
enum status paper_cells_check(const struct request *request, const struct resolved *resolved, struct error *e);

/* Finds how the plan makes a cell's number of its runs under that profile. ST_USAGE: an unknown protocol. */
enum status paper_protocol(const struct request *request, const char *profile, enum report_protocol *protocol,
                           struct error *e);

struct paper_cell *paper_cell_at(const struct paper_cells *p, int row, int column);

/* The value of a key of the plan under the profile in force, else `fallback`. */
const char *paper_setting(const struct paper_cells *p, const char *key, const char *fallback);

/* Whether its runs are of another setting than the paper's: it has no verdict. */
bool paper_cell_is_other(const struct paper_cell *c);

/* The text of difference number k if the set has it and has the same text under no smaller number; else NULL. */
const char *paper_difference(const struct paper_cells *p, uint64_t differs, int k);

/* --- between the files paper_*.c ---------------------------------------------------------------------------------- */

/* The place of each use of the plan, at each of the lengths: first all uses at the first of them. */
struct paper_spot {
    int row, column, use;
    int64_t length; /* as the plan says it; 0: all test sequences together */
};
int paper_count_spots(const struct paper_cells *p);
const struct setup *paper_setup(const struct paper_cells *p, const struct paper_spot *spot);

/* Reads the plan's lengths, and checks its rows and columns. ST_USAGE: bad lengths, lengths of a plan of speed, an
 * unknown option, or one that tells the runs of one cell apart. */
enum status paper_read_table(struct paper_cells *p, struct error *e);

/* Sets rows, columns and all spots. ST_USAGE: a name is too long; ST_MEMORY. */
enum status paper_place(struct paper_cells *p, const struct published *published, struct paper_spot *spots,
                        struct error *e);

/* Word number `word` of the tasks in force. */
void paper_word(const struct paper_cells *p, int word, char *text, size_t size);

/* The label of a run's mixer, with all its options. */
enum status paper_mixer(const struct setup *s, struct label *mixer, struct error *e);

/* Finds the number of a task (NULL: of any) and of a run's model in the plan's table; *row: the paper's name of it. */
enum status paper_find_number(const struct paper_cells *p, const struct published *published, const struct setup *s,
                              const char *task, int64_t length, struct published_value *value, const char **row,
                              struct error *e);

/* The verdict of a cell whose other fields are set. */
enum paper_verdict paper_judge(const struct paper_cell *c, enum report_protocol protocol);

/* Marks cells whose runs the paper's table does not have (setting.h), whatever made them others, cells that lack a part
 * of a task's settings, and cells of whose rows the plan says a difference; sets `whole`. Errors as request_plan;
 * ST_USAGE: the plan says more differences than a cell can have. */
enum status paper_mark_others(struct paper_cells *p, const struct paper_spot *spots, struct error *e);
enum status paper_check_differences(const struct paper_cells *p, struct error *e);

#endif

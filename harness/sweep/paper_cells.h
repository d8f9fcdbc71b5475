/* paper_cells.h - a plan's runs as the cells of its paper's table: what was planned, what is done of it, the number
 * that the paper's protocol makes of it, and the paper's own.  A plan's `rows` and `columns` say which options tell
 * rows and columns apart: "model" (the mixer with its options, default of rows), "task" (default of columns),
 * "model.OPTION", "task.OPTION", or a flag. What neither names is part of the grid. A task and its one-at-a-time
 * changes are one cell, their mean.  A plan's `lengths` ("192,384") are those of the test sequences, of images their
 * sides in pixels: each column becomes one for each of them, of the accuracy there, beside the published "acc_192".  A
 * plan's `differs` and `differs.MODEL` say in what its runs are not the paper's: such cells get no verdict. */
#ifndef LRNN_HARNESS_SWEEP_PAPER_CELLS_H
#define LRNN_HARNESS_SWEEP_PAPER_CELLS_H

#include "harness/plan/request.h"
#include "harness/rows/rows.h"

enum paper_verdict {
    PAPER_NONE,       /* the paper has no number, or ours is of another setting */
    PAPER_NOT_RUN,    /* no run is on record */
    PAPER_CUT_OFF,    /* runs ended before their schedule's end, and ours is below */
    PAPER_UNFINISHED, /* runs are missing that could change it, of ours or of as many as the paper has */
    PAPER_WITHIN,     /* the paper's interval or number and ours, or PAPER_MARGIN to either side of ours, overlap */
    PAPER_ABOVE,
    PAPER_BELOW
};
extern const char *const paper_verdict_names[];

#define PAPER_MOST_LENGTHS 8

#define PAPER_MARGIN 0.02 /* where there is no interval: what a best of 15 differs by between two sets of seeds */

struct paper_cell {
    int row, column;
    int planned, done, failed; /* runs */
    int other_builds;          /* of those that are done, of another build of the program */
    char *run_ids;             /* of those that are done, blank-separated; owned; NULL: none */
    int64_t least, most, of;   /* steps done, from the fewest to the most, of those that the schedules have; -1: none */
    double ours;               /* NAN: not all settings have a number; of speed tokens a second */
    bool disturbed;            /* of speed: the machine was not quiet meanwhile */
    struct interval interval;  /* of one setting's number */
    struct published_value published;
    bool cut_off;     /* a run that gives the number was */
    bool any_cut_off; /* a run of the cell was */
    bool other;       /* its runs are of another setting than the plan's own profile has */
    char *differs;    /* in what the plan's setting is not the paper's, "A; B"; owned; NULL: in nothing */
    enum paper_verdict verdict;
};

struct paper_cells {
    struct request request;
    struct resolved resolved;
    struct plan plan;
    char (*rows)[RECORD_TEXT], (*columns)[RECORD_TEXT]; /* labels, in the plan's order */
    int n_rows, n_columns;
    int64_t lengths[PAPER_MOST_LENGTHS]; /* of the plan; 0 alone: the columns are of all test sequences together */
    int n_lengths;                       /* at least 1 */
    struct paper_cell *cells;            /* n_rows * n_columns, row-major; one with nothing planned has planned == 0 */
    double *overall; /* [2 * n_rows]: of each row our mean over all columns, and the paper's; NULL: no such */
    enum report_protocol protocol;
    int n_planned, n_done;
    bool has_published;
    bool tell_builds; /* the table says of which cells runs are of another build */
    bool speed;       /* the plan measures speed: a cell is done when perf.csv has it */
};

/* Of zeros but for `request`, which has a plan file. Records are read from `out`. Free with paper_cells_free, also
 * after an error. ST_USAGE, ST_DATA: as request_plan and report_load; rows or columns by what is no option, lengths
 * that are none. */
enum status paper_cells_make(struct paper_cells *p, const char *out, struct error *e);
/* Whether a request's plan says of its table what can be made: the errors that paper_cells_make has of any records, so
 * that they are said before runs are trained. */
enum status paper_cells_check(const struct request *request, const struct resolved *resolved, struct error *e);
/* Whether its runs are of another setting than the paper's: it has no verdict. */
bool paper_cell_is_other(const struct paper_cell *c);
void paper_cells_free(struct paper_cells *p);

#endif

/* paper_table.h - the rows and columns of a plan's table: how they are called, and where each of the plan's runs
 * stands.  A plan's `rows` and `columns` say which options tell them apart: "model" (the mixer with its options,
 * default of rows), "task" (default of columns), "model.OPTION", "task.OPTION", or a flag. What neither names is part
 * of the grid. A task and its one-at-a-time changes are one cell, their mean. A row is called what the paper calls its
 * model; of several models of one name in a cell each has a row of its own, "NAME (MIXER)".  A plan's `lengths`
 * ("192,384") are those of the test sequences, of images their sides in pixels: each column becomes one for each of
 * them, of the accuracy there, beside the published "acc_192". */
#ifndef LRNN_HARNESS_TABLE_PAPER_TABLE_H
#define LRNN_HARNESS_TABLE_PAPER_TABLE_H

#include "harness/study/request.h"
#include "harness/rows/rows.h"

enum paper_verdict {
    PAPER_NONE,       /* the paper has no number, or ours is of another setting */
    PAPER_NOT_RUN,    /* no run is on record */
    PAPER_CUT_OFF,    /* runs ended before the end of their schedule, and a higher number could change it */
    PAPER_UNFINISHED, /* runs are missing that could change it, of ours or of as many as the paper has of a setting */
    PAPER_WITHIN,     /* the paper's interval, or its number as it is rounded, and ours or PAPER_MARGIN about it meet */
    PAPER_ABOVE,
    PAPER_BELOW
};

#define PAPER_MOST_LENGTHS     8
#define PAPER_MOST_DIFFERENCES 64 /* of a plan under a profile */

struct paper_cell {
    int row, column;
    int planned, done, failed; /* runs */
    int earlier;               /* failed attempts at planned runs, which were set aside and count as chance */
    int settings;              /* tasks whose numbers its number is the mean of */
    int other_builds;          /* of those that are done, of another build of the program */
    int without;               /* of those that would give its number, without a test sequence of the column's length */
    char *run_ids;             /* of those that are done, blank-separated; owned; NULL: none */
    int64_t least, most, of;   /* steps done, from the fewest to the most, of those that the schedules have; -1: none */
    double ours;               /* NAN: not all settings have a number; of speed tokens a second */
    bool disturbed;            /* of speed: the machine was not quiet meanwhile */
    struct interval interval;  /* of one setting's number */
    struct published_value published;
    bool cut_off;     /* a run that gives the number was */
    bool any_cut_off; /* a run of the cell was */
    bool other;       /* its runs are of another setting than the plan's own profile has */
    uint64_t differs; /* a bit for each number of plan_file_differs by which its setting is not the paper's */
    enum paper_verdict verdict;
};

/* Of a row, the means over all columns. */
struct paper_mean {
    double ours, published;
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
    struct paper_mean *overall;          /* [n_rows]; NULL: no such */
    enum report_protocol protocol;
    int n_planned, n_done;
    bool has_published;
    bool tell_builds; /* the table says of which cells runs are of another build */
    bool speed;       /* the plan measures speed: a cell is done when perf.csv has it */
};

/* Where each use of the plan stands, at each of the lengths: first all uses at the first of them. */
struct paper_spot {
    int row, column, use;
    int64_t length; /* as the plan says it; 0: all test sequences together */
};
int paper_count_spots(const struct paper_cells *p);
const struct setup *paper_setup(const struct paper_cells *p, const struct paper_spot *spot);
struct paper_cell *paper_cell_at(const struct paper_cells *p, int row, int column);

/* What the plan says of a key under the profile in force, else `fallback`. */
const char *paper_setting(const struct paper_cells *p, const char *key, const char *fallback);

/* How the plan makes a cell's number of its runs under that profile. ST_USAGE: by no protocol that there is. */
enum status paper_protocol(const struct request *request, const char *profile, enum report_protocol *protocol,
                           struct error *e);

/* The profile that holds unless the command line names another. */
const char *paper_own_profile(const struct paper_cells *p);

/* The lengths of the test sequences that tell columns apart. ST_USAGE: they are none, or the plan measures speed. */
enum status paper_read_lengths(struct paper_cells *p, struct error *e);

/* ST_USAGE: rows or columns by what is no option, or by one that tells the runs of one cell apart. */
enum status paper_check_keys(const struct paper_cells *p, struct error *e);

/* Sets rows, columns and all spots. ST_USAGE: a name is too long; ST_MEMORY. */
enum status paper_place(struct paper_cells *p, const struct published *published, struct paper_spot *spots,
                        struct error *e);

/* Task number `word` of those in force. */
void paper_word(const struct paper_cells *p, int word, char *text, size_t size);

/* The label of a run's mixer, with all its options. */
enum status paper_mixer(const struct setup *s, struct label *mixer, struct error *e);

/* The number of a task, of any where it is NULL, and of a run's model in the plan's table; *row as the paper says. */
enum status paper_find_number(const struct paper_cells *p, const struct published *published, const struct setup *s,
                              const char *task, int64_t length, struct published_value *value, const char **row,
                              struct error *e);

/* Adds an item to an owned list, which begins as NULL. */
enum status paper_add_item(char **list, const char *separator, const char *item, struct error *e);

#endif

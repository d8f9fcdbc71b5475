/* compare.h - compares two folders of run records, or the runs of one folder with two values of an option. Runs are
 * paired if they are equal in everything else, seed included, except the build and numerics of the program. Also
 * compares any two rows. */
#ifndef LRNN_HARNESS_TABLE_COMPARE_H
#define LRNN_HARNESS_TABLE_COMPARE_H

#include "harness/rows/rows.h"
#include "harness/sheet/sheet.h"
#include "harness/store/record_files.h"

/* The two sides: the runs of two folders, or with a key (such as `precision`) the runs whose row key
 * (harness/study/row_key.h) has that side's value. */
struct comparison {
    const struct record_set *sets[2];
    const char *names[2];
    const char *key; /* NULL: no option is compared */
    const char *values[2];
    bool for_programs; /* columns have fixed names: "mean_a", "solved_b" */
};

/* Adds a sheet with a row for each cell (task, model, flags and rate) that both sides have: the number of pairs, both
 * means, the mean difference (second - first) of the test metric with its interval, and how many runs of either side
 * reached the task's threshold. Labels have the options that distinguish the cells of a task, and numbers with cut-off
 * runs are marked. If a run was done again, only its last attempt is paired; a row (harness/rows/rows.h) counts failed
 * attempts too, as chance, so its mean may be lower. ST_USAGE: no run has the key, its values are invalid, or it is the
 * seed, the model or the task, over which runs cannot be paired. ST_DATA: no run has a value, the sides have no run in
 * common, a side has a run in two versions of the numerics, or an identity cannot be read. */
enum status compare_runs(struct sheets *sheets, const struct comparison *of, struct error *e);

/* Adds a sheet with a row for each table that has both rows ("bdlru:m=3", or a label from the table): their runs are
 * paired by seed, each at its row's chosen rate, with the numbers of compare_runs. ST_USAGE: a word names several rows
 * of a table; ST_DATA: no table has both, or they share no seed. */
enum status compare_rows(struct sheets *sheets, const struct report_tables *tables, const char *const words[2],
                         bool for_programs, struct error *e);

#endif

/* compare.h - two folders of run records side by side, or the runs of one folder by the value of an option: what is
 * equal in everything else but the build and the numerics of the program is paired seed by seed. And any two rows. */
#ifndef LRNN_HARNESS_TABLE_COMPARE_H
#define LRNN_HARNESS_TABLE_COMPARE_H

#include "harness/rows/rows.h"
#include "harness/sheet/sheet.h"
#include "harness/store/record_files.h"

/* The two sides: runs of two folders, or with a key those runs of each that have its value in their row key
 * (harness/study/row_key.h), `precision` and the like, in which the pairs then differ. */
struct comparison {
    const struct record_set *sets[2];
    const char *names[2];
    const char *key; /* NULL: none */
    const char *values[2];
    bool for_programs; /* columns keep their names whatever the sides are called: "mean_a", "solved_b" */
};

/* Adds a sheet: of each cell that both sides have, by task, model and rate, its pairs, both means, the mean
 * difference (second - first) of the test metric and its interval, and how many of either side reached the task's
 * threshold; the label says in what it differs from the task's other cells, and numbers of runs that were cut off are
 * marked. Of a run that was done again the last attempt alone is paired, where a row (harness/rows/rows.h) counts the
 * failed ones too, as chance, and may have a lower mean. ST_USAGE: no run has the key, its values are none, or it is
 * the seed, the model or the task, by which there are no pairs. ST_DATA: no run has a value, they have no run in
 * common, one of them has a run in two versions of the numerics, or an identity cannot be read. */
enum status compare_runs(struct sheets *sheets, const struct comparison *of, struct error *e);

/* Adds a sheet: of each table that has both rows ("bdlru:m=3", or a label as tables have it) the pairs of their runs of
 * one seed, each row at its own chosen rate, with the numbers of compare_runs. ST_USAGE: a word names several rows of a
 * table; ST_DATA: no table has both, or they share no seed. */
enum status compare_rows(struct sheets *sheets, const struct report_tables *tables, const char *const words[2],
                         bool for_programs, struct error *e);

#endif

/* compare.h - two folders of run records side by side: what is equal in everything but the build and the numerics of
 * the program is paired seed by seed. */
#ifndef LRNN_HARNESS_REPORT_COMPARE_H
#define LRNN_HARNESS_REPORT_COMPARE_H

#include "harness/report/sheet.h"
#include "harness/store/record_files.h"

/* Adds a sheet: of each cell that both have, in the order of `a`, its pairs, both means, the mean difference (b - a) of
 * the test metric and its interval; the label says in what it differs from the task's other cells, and numbers of runs
 * that were cut off are marked. `names`: what the folders are called. ST_DATA: they have no run in common, one of them
 * has a run in two versions of the numerics, or an identity cannot be read. */
enum status compare_folders(struct sheets *sheets, const struct record_set *a, const struct record_set *b,
                            const char *const names[2], struct error *e);

#endif

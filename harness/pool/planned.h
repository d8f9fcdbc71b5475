/* planned.h - the runs of a plan as lists: OUT/sweeps/NAME-HASH.tsv, a line a run, for those who look at a folder while
 * its sweeps run; on standard output, as --dry-run has them; and how far they are, by the records (done) and the claims
 * (being done). */
#ifndef LRNN_HARNESS_POOL_PLANNED_H
#define LRNN_HARNESS_POOL_PLANNED_H

#include <stdio.h>

#include "harness/study/plan.h"

/* Writes the list of a plan's runs; the same plan has the same file. ST_FAIL with path and reason. *new, unless it is
 * NULL: the files that were not there before, for planned_withdraw. */
struct planned_new {
    bool out, list;
};
enum status planned_write(const struct plan *plan, const char *out, const char *name, struct planned_new *new,
                          struct error *e);

/* Removes the files that the same call of planned_write has made, because nothing comes of the plan. */
void planned_withdraw(const struct plan *plan, const char *out, const char *name, const struct planned_new *new);

/* Copies the lists of `from` that `out` lacks. ST_DATA: one is damaged; ST_FAIL: it cannot be written. */
enum status planned_merge(const char *from, const char *out, struct error *e);

/* ST_DATA: a list of the folder is damaged. */
enum status planned_check(const char *out, struct error *e);

/* Prints the plan's runs in its order, a line each. axes: the flags that the command line gives several values; timed:
 * each run is as long as a time that all share; retry: failed runs are done again. ST_USAGE: the runs differ in too
 * many flags for a line. */
enum status run_list_print(const struct plan *plan, const struct label *axes, bool timed, bool retry, struct error *e);

/* Prints an object a line; "steps" null: the run has a time. ST_MEMORY. */
enum status run_list_json(const struct plan *plan, bool timed, bool retry, struct error *e);

/* Prints a line a sweep: runs done, failed, in work and left, its share of the work, whether nobody is at work on it;
 * then a line a run that is in work or was left. *left: runs of all sweeps that have no record, each once. ST_DATA: no
 * such folder, or something in it is damaged. */
enum status status_print(const char *out, FILE *f, int *left, struct error *e);

#endif

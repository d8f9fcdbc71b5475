/* planned.h - prints the runs of a plan for --dry-run; and how far the sweeps of a folder are, from their lists
 * (study/sweep_list.h), the records (done), the claims (being done) and the checkpoints. */
#ifndef LRNN_HARNESS_POOL_PLANNED_H
#define LRNN_HARNESS_POOL_PLANNED_H

#include <stdio.h>

#include "harness/pool/run_lines.h"
#include "harness/study/plan.h"

/* Prints the plan's runs in its order, one per line. axes: the flags with several values on the command line; timed: a
 * time limit decides the length of each run; retry: failed runs are done again. ST_USAGE: the runs differ in too many
 * flags for a line. */
enum status run_list_print(const struct plan *plan, const struct label *axes, bool timed, bool retry, struct error *e);

/* Prints one JSON object per line; "steps" is null if a time limit decides the length. ST_MEMORY. */
enum status run_list_json(const struct plan *plan, bool timed, bool retry, struct error *e);

/* Open runs of a folder: runs of its sweeps without a record, each once; runs that some process does now. */
struct status_left {
    int runs, working;
};

/* Prints a line per sweep: runs done, failed, in work and left, the share of work done, and whether no process works on
 * it; then a line per run in work or abandoned, or with `look` lines on its progress (run_lines.h). ST_DATA: no such
 * folder, or something in it is damaged. */
enum status status_print(const char *out, const struct run_look *look, FILE *f, struct status_left *left,
                         struct error *e);

#endif

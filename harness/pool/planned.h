/* planned.h - prints the runs of a plan for --dry-run. Also prints how much of each sweep in a folder is done: lists
 * say which runs there are (run/sweep_list.h), records which are done, claims (lock files) which are in progress, and
 * checkpoints how far these are. */
#ifndef LRNN_HARNESS_POOL_PLANNED_H
#define LRNN_HARNESS_POOL_PLANNED_H

#include <stdio.h>

#include "harness/pool/run_lines.h"
#include "harness/study/plan.h"

/* Prints the plan's runs in its order, one per line. axes: the flags that have several values on the command line.
 * timed: a time limit decides the length of each run. retry: failed runs are done again. ST_USAGE: the runs differ in
 * too many flags for a line. */
enum status run_list_print(const struct plan *plan, const struct label *axes, bool timed, bool retry, struct error *e);

/* Prints the runs as one JSON object per line; "steps" is null if a time limit decides the length. ST_MEMORY. */
enum status run_list_json(const struct plan *plan, bool timed, bool retry, struct error *e);

/* Prints the configuration of a run, as a config file. If there are several runs, prints the lines that they share, and
 * a comment that names the other keys. A value that something sets has its origin after a '#'; `study` is the study of
 * the first run. ST_USAGE: a configuration is too long. */
enum status run_print_config(const struct study *study, struct setup *const *setups, int n, struct error *e);

/* Numbers of runs of a folder: runs of its sweeps without a record, each counted once; runs that some process is
 * doing. */
struct status_left {
    int runs, working;
};

/* Prints a line for each sweep: the runs done, failed, in progress and left, the share of the work that is done, and
 * whether no process works on it. Then prints a line for each run in progress or abandoned; with `look`, it prints
 * lines with its progress instead (run_lines.h). ST_DATA: there is no such folder, or something in it is damaged. */
enum status status_print(const char *out, const struct run_look *look, FILE *f, struct status_left *left,
                         struct error *e);

#endif

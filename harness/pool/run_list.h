/* run_list.h - the runs of a plan on standard output, as --dry-run lists them: in the plan's order, a line a run. */
#ifndef LRNN_HARNESS_POOL_RUN_LIST_H
#define LRNN_HARNESS_POOL_RUN_LIST_H

#include <stdbool.h>

#include "harness/study/plan.h"

/* axes: the flags that the command line gives several values; timed: each run is as long as a time that all share;
 * retry: what failed is done again. ST_USAGE: the runs differ in too many flags for a line. */
enum status run_list_print(const struct plan *plan, const struct label *axes, bool timed, bool retry, struct error *e);

/* The same as an object a line. ST_MEMORY. */
enum status run_list_json(const struct plan *plan, bool timed, bool retry, struct error *e);

#endif

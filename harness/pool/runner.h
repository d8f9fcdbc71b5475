/* runner.h - does the runs of a plan in parallel processes, or in the threads of one process, and writes a record for
 * each. */
#ifndef LRNN_HARNESS_POOL_RUNNER_H
#define LRNN_HARNESS_POOL_RUNNER_H

#include <stdbool.h>

#include "harness/study/plan.h"

struct runner_options {
    int jobs;    /* runs at a time, each in its own process */
    int members; /* more than 1: runs at a time in one process per device (population.h); `jobs` has no effect then */
    int devices; /* with several members: a process on each, "cuda:0", ...; 0 and 1: as in the setups */
    double timeout_s; /* a run longer than this is killed and recorded; 0: no limit, as with several members */
    bool quiet;
    bool retry_failed;   /* repeat runs whose record says killed, timeout, oom or error */
    const char *goes_on; /* text of runner_goes_on; NULL: "goes on" */
};

#define RUNNER_MOST_JOBS 256 /* at a time */

/* Returns the end of the sentence "the same command ...", which says what repeating the command does: --force sets all
 * records aside, also those of this command, and --retry-failed the failed ones. */
const char *runner_goes_on(bool force, bool retry_failed);

/* Does all runs that have no record yet, seed by seed, within a seed the longest first. If the longest run would take
 * longer than all others together, it is done first, on all cores, with no other run beside it. Runs that another
 * process does in the same folder (harness/store/claim.h) are left to it, and waited for. A run that dies gets a record
 * (killed, oom, timeout, error), and the others continue. But runs lost by a dead population are first repeated, after
 * all others, each in its own process. Errors: 130 or 143 after a signal (running runs have saved checkpoints);
 * ST_FAIL: the output of a run cannot be written, which stops the others too, or a run's own process was told to stop
 * (returned after all other runs). */
enum status runner_do(const struct plan *plan, const struct runner_options *options, struct error *e);

/* Sorts setups into the order in which their runs are begun. */
void runner_order(struct setup **setups, int n);

#endif

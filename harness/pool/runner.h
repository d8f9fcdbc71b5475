/* runner.h - the runs of a plan, done by parallel processes or by the members of one, one record each. */
#ifndef LRNN_HARNESS_POOL_RUNNER_H
#define LRNN_HARNESS_POOL_RUNNER_H

#include <stdbool.h>

#include "harness/study/plan.h"

struct runner_options {
    int jobs;    /* runs at a time, each in its own process */
    int members; /* more than 1: runs at a time, in one process (population.h) a device; `jobs` has no effect then */
    int devices; /* with several members: a process on each, "cuda:0" and so on; 0 and 1: as setups say */
    double timeout_s; /* a run longer than this is killed and becomes a row; 0 = none, as with several members */
    bool quiet;
    bool retry_failed;   /* do runs again whose record says killed, timeout, oom or error */
    const char *goes_on; /* what the same command does after a stop, of runner_goes_on; NULL: goes on */
};

#define RUNNER_MOST_JOBS 256 /* at a time */

/* Words that follow "the same command": --force sets aside all that is on record, also by this very command, and
 * --retry-failed what has failed in it. */
const char *runner_goes_on(bool force, bool retry_failed);

/* Does all runs that have no record yet, seed after seed, of one seed the longest first; a first one that would take
 * longer than all others on the other processes goes alone and on all cores. Runs that another process does in the
 * same folder (harness/store/claim.h) are left to it, and waited for. A run that dies becomes a row (killed, oom,
 * timeout, error) and the others go on; runs that a population has left undone are done again first, after all
 * others, each alone in a process. Errors: 130 or 143 after a signal (running runs have saved checkpoints), ST_FAIL
 * when the output of a run cannot be written, which stops the others too, or, after all others, where a run's own
 * process was told to stop. */
enum status runner_do(const struct plan *plan, const struct runner_options *options, struct error *e);

/* Sorts setups into the order in which their runs are begun. */
void runner_order(struct setup **setups, int n);

#endif

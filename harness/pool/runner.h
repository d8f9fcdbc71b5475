/* runner.h - does the runs of a plan in parallel processes, or in the threads of one process, and writes a record for
 * each. */
#ifndef LRNN_HARNESS_POOL_RUNNER_H
#define LRNN_HARNESS_POOL_RUNNER_H

#include <stdbool.h>

#include "harness/study/plan.h"

struct runner_options {
    int jobs;    /* number of runs at a time, each in its own process */
    int members; /* if more than 1: number of runs at a time in each device's process (population.h), instead of jobs */
    int devices; /* with several members: number of devices "cuda:0", ...; 0 or 1: the device that the setups name */
    double timeout_s; /* a run that takes longer is killed and recorded; 0, or several members: no limit */
    bool quiet;
    bool retry_failed;   /* repeat runs whose record says killed, timeout, oom or error */
    const char *goes_on; /* result of runner_goes_on; NULL: "goes on" */
};

#define RUNNER_MOST_JOBS 256 /* largest number of runs at a time */

/* Returns the end of the sentence "the same command ...", which tells the user how to continue. A command with --force
 * would set all records aside, also those that it has just made; with --retry-failed, all records of failed runs. */
const char *runner_goes_on(bool force, bool retry_failed);

/* Does all runs that have no record yet, seed by seed, and within a seed from the longest to the shortest. If the
 * longest run would still be in progress when all others are done, it is done before them, on all cores. Runs that
 * another process is doing in the same folder (harness/store/claim.h) are left to that process, and waited for. A run
 * that dies gets a record (killed, oom, timeout, error), and the others continue. If a process with several runs dies,
 * its runs are repeated at the end, each in its own process. Errors: 130 or 143 after a signal, when the runs in
 * progress have saved checkpoints. ST_FAIL: the output of a run cannot be written, which also stops the other runs; or
 * a signal stopped only the process of one run, which is reported after all other runs. */
enum status runner_do(const struct plan *plan, const struct runner_options *options, struct error *e);

/* Sorts setups into the order in which their runs begin. */
void runner_order(struct setup **setups, int n);

#endif

/* runner.h - trains the runs of a plan in parallel processes, or in threads of one process per device, and writes a
 * record for each run. */
#ifndef LRNN_HARNESS_POOL_RUNNER_H
#define LRNN_HARNESS_POOL_RUNNER_H

#include <stdbool.h>

#include "harness/study/plan.h"

struct runner_options {
    int jobs;    /* number of runs at a time, each in its own process */
    int members; /* if above 1: one process per device trains so many runs at a time (population.h), jobs is unused */
    int devices; /* if above 1, with several members: uses "cuda:0", "cuda:1", ...; else the device in the setups */
    double timeout_s;    /* a run that takes longer is killed and gets a record; 0, or several members: no limit */
    bool quiet;          /* print no progress and no messages */
    bool retry_failed;   /* repeat runs whose record says killed, timeout, oom or error */
    const char *goes_on; /* result of runner_goes_on; NULL: "goes on" */
};

#define RUNNER_MOST_JOBS 256 /* largest number of runs at a time */

/* Returns the end of the sentence "the same command ...", which tells the user how to continue. The end depends on two
 * flags: the same command with --force would repeat all runs, also those that it has just trained; with --retry-failed
 * it would repeat all failed runs. */
const char *runner_goes_on(bool force, bool retry_failed);

/* Trains all runs that have no record yet, seed by seed, and within a seed from the longest to the shortest. If the
 * longest run would still be in progress when all others are done, it is trained before them, on all cores. If another
 * process is training a run in the same folder (harness/store/claim.h), this process waits for the run's record. A run
 * that dies gets a record (killed, oom, timeout, error), and the others continue. If a process with several runs dies,
 * its runs are repeated at the end, each in its own process. Errors: 130 or 143: a signal came, and the runs in
 * progress have saved checkpoints. ST_FAIL: the output of a run cannot be written, which also stops the other runs; or
 * a signal stopped only the process of one run, which is reported after all other runs have ended. */
enum status runner_do(const struct plan *plan, const struct runner_options *options, struct error *e);

/* Sorts setups into the order in which their runs begin. */
void runner_order(struct setup **setups, int n);

#endif

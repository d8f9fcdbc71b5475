/* misfits.c - see misfits.h. */
#include "harness/pool/misfits.h"

#include <stddef.h>

#include "harness/rows/protocol.h"

#define NO_ARRAY    "is of a job of Slurm"
#define FRESH_SEEDS "--confirm-seeds trains further seeds once all rates are compared; "
#define DECIDED                                                                                                        \
    "--slurm: tasks of an array do runs that the plan alone decides; --limit, --budget and --confirm-seeds are "       \
    "decided by what has been run or timed before"
#define STEPS "--stop-after N ends runs early"

/* Pairs that exclude each other: the two, why, and what to do. If the reason begins with a blank, the plan's name is
 * printed before it. */
static const struct {
    enum asked one, other;
    const char *why, *instead;
} misfits[] = {
    {A_PLAN, A_PROTOCOL, " says itself how a cell's number is made of its runs",
     "--protocol is of a task's own table (lrnn report)"},
    {A_CONFIRM, A_BEST_OF_GRID, PROTOCOL_KEEPS_NO_SEEDS, "leave one of the two out"},
    {A_CONFIRM, A_SPEED, FRESH_SEEDS "this plan trains nothing", "leave it out"},
    {A_CONFIRM, A_SHARD, FRESH_SEEDS "a shard compares none", "leave it out"},
    {A_POPULATION, A_JOBS, "--population trains runs in one process and --jobs each in its own",
     "leave one of them out"},
    {A_POPULATION, A_TIMEOUT, "--timeout kills a run with its process, which the runs of a population share",
     "--population 1 gives each its own"},
    {A_SHARD, A_SPEED, " measures speed, each model alone on one machine: it has no shards", "leave --shard out"},
    {A_SHARD, A_LIMIT,
     "--shard with --limit: the time is shared among as many runs as are done at once, which differs from machine to "
     "machine, so that shards would do other runs",
     "--budget gives each run its own"},
    {A_NO_SLURM, A_SBATCH, "--sbatch " NO_ARRAY, "give --slurm N, of so many tasks, or leave it out"},
    {A_NO_SLURM, A_GRES, "--gres " NO_ARRAY, "give --slurm N, of so many tasks, or leave it out"},
    {A_SLURM, A_SPEED, " measures speed, each model alone on one machine: there is nothing to share",
     "leave --slurm out"},
    {A_SLURM, A_SHARD, "--slurm gives each of its tasks a shard", "leave --shard out"},
    {A_SLURM, A_FORCE, "--slurm with --force: a task that is requeued would do again what it has done",
     "another --out has no records yet"},
    {A_SLURM, A_RETRY,
     "--slurm with --retry-failed: a task that is requeued would try again what has failed in it, and each attempt "
     "counts",
     "`lrnn sweep` with --retry-failed on one machine does them"},
    {A_SLURM, A_LIMIT, DECIDED, STEPS},
    {A_SLURM, A_BUDGET, DECIDED, STEPS},
    {A_SLURM, A_CONFIRM, DECIDED, STEPS},
};

enum status misfits_check(const bool asked[ASKED], const char *name, struct error *e) {
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        const char *why = misfits[i].why;
        if (asked[misfits[i].one] && asked[misfits[i].other])
            return fail(e, ST_USAGE, "%s%s; %s", *why == ' ' ? name : "", why, misfits[i].instead);
    }
    return ST_OK;
}

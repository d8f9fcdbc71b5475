/* misfits.h - flags of a bench that exclude each other. */
#ifndef LRNN_HARNESS_POOL_MISFITS_H
#define LRNN_HARNESS_POOL_MISFITS_H

#include <stdbool.h>

#include "core/status.h"

/* A request of a command: the flags in the table of misfits.c, and properties of its plan. */
enum asked {
    A_PLAN,  /* the runs are from a plan file */
    A_SPEED, /* the plan only measures speed */
    A_PROTOCOL,
    A_BEST_OF_GRID, /* --protocol best-of-grid */
    A_CONFIRM,
    A_JOBS,
    A_POPULATION, /* --population of more than 1 was given */
    A_TIMEOUT,
    A_SHARD,
    A_SLURM,
    A_NO_SLURM,
    A_SBATCH,
    A_GRES,
    A_FORCE,
    A_RETRY,
    A_LIMIT,
    A_BUDGET,
    ASKED
};

/* ST_USAGE: two of the things that the command asks for exclude each other. The message says why, and what to do.
 * `name` is the name of the plan. */
enum status misfits_check(const bool asked[ASKED], const char *name, struct error *e);

#endif

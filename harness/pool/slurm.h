/* slurm.h - a sweep as an array job of a Slurm cluster: each task of the array does one shard of the plan, all into one
 * shared folder. */
#ifndef LRNN_HARNESS_POOL_SLURM_H
#define LRNN_HARNESS_POOL_SLURM_H

#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

#define SLURM_MOST_TASKS 1000 /* what a cluster takes as one array unless it is told otherwise (MaxArraySize) */

struct slurm_array {
    const char *name;    /* of the sweep */
    const char *out;     /* folder of the records, as it was given */
    const char *command; /* "sweep" */
    const char *words;   /* that follow it, each quoted for a shell, without the choice of a shard; or "" */
    const char *sbatch;  /* further flags of sbatch: "--time=4:00:00 --mem=8G", or "" */
    const char *gres;    /* devices of a task: "gpu:1", or "" */
    int64_t tasks;
    int64_t jobs; /* 0: a task does as many runs at a time as it has cores for; else the words or the device decide */
    int64_t threads; /* of a run; 0: one */
};

/* Writes the script of the job, which can be submitted by hand as well. ST_USAGE: flags that are not on one line, or
 * devices that are not of one word. */
enum status slurm_script(const struct slurm_array *a, FILE *f, struct error *e);

/* Submits it; *id, also after an error: the job's number, 0: there may be one, -1: there is none. OUT and OUT/slurm are
 * made, the latter removed again where the job is refused. ST_DATA: no sbatch here; ST_USAGE: it refuses, with its own
 * words; ST_FAIL: its exit status says that it took the job, its answer is no number, or the script cannot be kept. */
enum status slurm_submit(const struct slurm_array *a, int64_t *id, struct error *e);

#endif

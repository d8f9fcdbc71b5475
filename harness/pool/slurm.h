/* slurm.h - submits a sweep as an array job to a Slurm cluster. Each task of the array does one shard of the plan. All
 * tasks write into the same shared folder. */
#ifndef LRNN_HARNESS_POOL_SLURM_H
#define LRNN_HARNESS_POOL_SLURM_H

#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

#define SLURM_MOST_TASKS 1000 /* Slurm's default limit for an array (MaxArraySize) */

struct slurm_array {
    const char *name;    /* name of the sweep */
    const char *out;     /* folder of the records, as on the command line */
    const char *command; /* "sweep" */
    const char *words;   /* the command's arguments, each quoted for a shell, without the shard; or "" */
    const char *sbatch;  /* further flags of sbatch: "--time=4:00:00 --mem=8G", or "" */
    const char *gres;    /* devices of a task: "gpu:1", or "" */
    int64_t tasks;
    int64_t jobs;    /* runs at a time in a task; 0: as many as its cores allow; else the words or the device decide */
    int64_t threads; /* per run; 0: one */
};

/* Writes the script of the job, which a user can also submit by hand. ST_USAGE: flags of more than one line, or devices
 * of more than one word. */
enum status slurm_script(const struct slurm_array *a, FILE *f, struct error *e);

/* Submits the job. *id is the job's number; 0: the job may be queued; -1: it is not. *id is set after errors too. Makes
 * OUT and OUT/slurm, and removes OUT/slurm again if the job is refused. ST_DATA: there is no sbatch; ST_USAGE: sbatch
 * refuses the job, with its message; ST_FAIL: sbatch succeeds but prints no number, or the script cannot be stored. */
enum status slurm_submit(const struct slurm_array *a, int64_t *id, struct error *e);

#endif

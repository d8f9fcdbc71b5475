/* sweep.h - the runs of a request from first to last: planned, announced, done, their speed measured, shown. `lrnn
 * bench` is a sweep over one task. */
#ifndef LRNN_HARNESS_POOL_SWEEP_H
#define LRNN_HARNESS_POOL_SWEEP_H

#include <stdbool.h>

#include "harness/study/request.h"

struct sweep_options {
    int64_t jobs;                /* runs at a time, each in a process; 0 = one per core, or a population on a device */
    int64_t population;          /* runs at a time in one process (harness/pool/population.h); 0 = as fits */
    int64_t confirm;             /* further seeds at the chosen rate, which alone are reported on; 0 = none */
    int protocol;                /* enum report_protocol */
    double timeout;              /* seconds after which a run is killed; 0 = never */
    double limit;                /* seconds of training in all; 0 = none */
    int64_t shard, shards;       /* of 1 .. shards; shards 0 or 1: all runs */
    int64_t slurm;               /* tasks of an array job of Slurm that does the runs; 0: this process does them */
    char sbatch[OPTION_TEXT];    /* further flags of sbatch */
    char gres[OPTION_TEXT];      /* its --gres */
    const char *command, *words; /* for Slurm: what this was called by (slurm.h) */
    bool retry_failed, dry_run, no_plots, no_speed;
    bool strict; /* a run that NaN or infinity ended is a failure, said after the last run */
};

/* Errors as request_plan; 130 and 143 after a signal, when the table of what is done has been printed; ST_FAIL: a
 * record could not be written, every run failed, or --strict and a value was not finite. */
enum status sweep_do(struct request *request, const struct sweep_options *options, struct error *e);

/* "2/8": this shard of so many. ST_USAGE. */
enum status shard_parse(const char *text, int64_t *shard, int64_t *shards, struct error *e);

#endif

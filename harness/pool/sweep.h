/* sweep.h - a whole sweep: plans, announces and does the runs of a request, measures their speed, and shows the
 * results. `lrnn bench` is a sweep over one task. */
#ifndef LRNN_HARNESS_POOL_SWEEP_H
#define LRNN_HARNESS_POOL_SWEEP_H

#include <stdbool.h>

#include "harness/study/request.h"

struct sweep_options {
    /* number of runs at a time, each in its own process; 0: one per core, or a population on a device */
    int64_t jobs;
    /* number of runs at a time in one process (harness/pool/population.h); 0: chosen automatically */
    int64_t population;
    int64_t confirm;          /* number of further seeds at the chosen rate; only these are reported; 0: none */
    int protocol;             /* enum report_protocol */
    double timeout;           /* seconds after which a run is killed; 0 = never */
    double limit;             /* seconds of training for all runs together; 0 = no limit */
    int64_t shard, shards;    /* shard in 1 .. shards; shards 0 or 1: all runs */
    int64_t slurm;            /* number of tasks of a Slurm array job that does the runs; 0: this process does them */
    char sbatch[OPTION_TEXT]; /* further flags of sbatch */
    char gres[OPTION_TEXT];   /* its --gres */
    const char *command, *words; /* for Slurm: the command and its arguments (slurm.h) */
    bool retry_failed, dry_run, print_config, no_plots, no_speed;
    bool strict; /* a run that met NaN or infinity makes the sweep fail, after the last run */
};

/* Does the sweep. Errors as request_plan; 130 and 143 after a signal, when the table of finished runs has been printed;
 * ST_FAIL: a record could not be written, every run failed, or with --strict a value was not finite. */
enum status sweep_do(struct request *request, const struct sweep_options *options, struct error *e);

/* Parses "2/8": shard 2 of 8. ST_USAGE. */
enum status shard_parse(const char *text, int64_t *shard, int64_t *shards, struct error *e);

#endif

/* run.h - one run, from its first step to its record. */
#ifndef LRNN_HARNESS_RUN_RUN_H
#define LRNN_HARNESS_RUN_RUN_H

#include "harness/plan/setup.h"

struct progress {
    int64_t step, steps;
    double loss, acc; /* latest training loss; latest validation metric (NAN before the first) */
    double tok_per_s, wall_s;
};

struct trainer; /* harness/run/trainer.h */

struct train_hooks {
    void (*progress)(void *context, const struct progress *p); /* about five times a second; or NULL */
    /* In the place of trainer_create, where runs share a process; or NULL. */
    enum status (*create)(void *context, struct trainer *t, const struct setup *s, struct error *e);
    void *context;
    const char *log_steps; /* file for a line a step (step_log.h); or NULL */
    bool *unwritten;       /* set where the run fails because its output cannot be written; or NULL */
};

/* Trains, validates, tests the best parameters, writes the record under config.out. A record already there is not done
 * again. Divergence is a record too. *row, if not NULL, receives the finished run's row, and stays as it is where the
 * run was on record. Errors: ST_FAIL (cannot write, which `unwritten` tells from other failures); ST_USAGE: steps were
 * to be logged of a run that is on record; ST_DATA: the weights to start from are not this net's; 130 or 143 as a
 * status when a signal asked to stop: a checkpoint has then been written and the same command goes on from it. */
enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e);

/* The record of a run that ended without writing one (its process was killed, ran out of memory or of time), and had
 * `threads`. */
enum status record_failure(const struct setup *s, enum run_status status, const char *detail, const char *started,
                           int threads, struct error *e);

#endif

/* run.h - one run, from its first step to its record. */
#ifndef LRNN_HARNESS_RUN_RUN_H
#define LRNN_HARNESS_RUN_RUN_H

#include "harness/run/hooks.h"

/* Trains, validates, tests the best parameters, writes the record under config.out. A record already there is not done
 * again. Divergence is a record too. *row, if not NULL, receives the finished run's row, and stays as it is where the
 * run was on record. Errors: ST_FAIL (cannot write, which `unwritten` tells from other failures); ST_USAGE: steps were
 * to be logged of a run that is on record; ST_DATA: the weights to start from are not this net's; 130 or 143 as a
 * status when a signal asked to stop: a checkpoint has then been written, unless no step had been done, and the same
 * command goes on from it. */
enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e);

#endif

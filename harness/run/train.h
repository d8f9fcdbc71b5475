/* train.h - one run, from its first step to its record. */
#ifndef LRNN_HARNESS_RUN_TRAIN_H
#define LRNN_HARNESS_RUN_TRAIN_H

#include "harness/run/running.h"

/* Trains, validates, tests the best parameters, writes the record under config.out. A run that has a record is not done
 * again. A diverged run gets a record too. *row, if not NULL, gets the row of the finished run; it is unchanged if the
 * run already had a record. Errors: ST_FAIL: cannot write, which `unwritten` distinguishes from other failures;
 * ST_USAGE: --log-steps for a run that already has a record; ST_DATA: the weights to start from do not fit the net; 130
 * or 143 as a status: a signal asked to stop. A checkpoint has then been written, unless no step was done, and the same
 * command continues from it. */
enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e);

#endif

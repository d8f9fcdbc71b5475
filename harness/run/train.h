/* train.h - one run, from its first step to its record. */
#ifndef LRNN_HARNESS_RUN_TRAIN_H
#define LRNN_HARNESS_RUN_TRAIN_H

#include "harness/run/running.h"

/* Trains, validates, tests the best parameters, writes the record under config.out. A run on record is not done again.
 * Divergence is a record too. *row, if not NULL, receives the row of the finished run, and stays as it is if the run
 * was on record. Errors: ST_FAIL: cannot write, which `unwritten` tells from other failures; ST_USAGE: steps were to
 * be logged of a run that is on record; ST_DATA: the weights to start from are not this net's; 130 or 143 as a status:
 * a signal asked to stop. A checkpoint has then been written, unless no step had been done, and the same command goes
 * on from it. */
enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e);

#endif

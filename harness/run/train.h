/* train.h - one run, from its first step to its record. */
#ifndef LRNN_HARNESS_RUN_TRAIN_H
#define LRNN_HARNESS_RUN_TRAIN_H

#include "harness/run/running.h"

/* Trains and validates the run, tests the best parameters, and writes the record in config.out. A run that diverges
 * gets a record too. If the run already has a record, this function does nothing and *row stays unchanged; else *row,
 * if it is not NULL, receives the record's fields. Errors: ST_FAIL: a file cannot be written (hooks->unwritten is then
 * set), or another failure. ST_USAGE: --log-steps for a run that already has a record. ST_DATA: the weights to start
 * from do not fit the net. 130 or 143: a signal came; a checkpoint has been written, unless no step was done, and the
 * same command continues from it. */
enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e);

#endif

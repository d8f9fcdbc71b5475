/* step_log.h - the loss of every step as CSV, for who compares a training step by step.
 *
 * Header "step,loss,grad_norm,lr", then a line a step, shortest numbers that read back the same. step: steps done, as
 * in curves.csv, so that the first line is step 1; loss: the task's, of that step's batch, before the update;
 * grad_norm: before clipping; lr: of that update. A line is handed to the system when its step is done. The numbers are
 * read, never changed: a run with a log computes the bits of one without. */
#ifndef LRNN_HARNESS_RUN_STEP_LOG_H
#define LRNN_HARNESS_RUN_STEP_LOG_H

#include <stdint.h>
#include <stdio.h>

#include "core/op.h"
#include "core/status.h"

/* All zeros: no log; step_log_add and step_log_close then do nothing. */
struct step_log {
    FILE *file;
    const char *path;
    char buffer[BUFSIZ]; /* of the file's: a step allocates nothing */
};

/* Begins the file for a run that has done `done` steps. The lines up to there, from an earlier sitting, are kept and
 * what is behind them is cut off, as a run that goes on from a checkpoint does those steps again; if they are not all
 * there, ST_DATA. With done = 0 the file is made anew. ST_FAIL: it cannot be written. */
enum status step_log_open(struct step_log *log, const char *path, int64_t done, struct error *e);

/* The line of the step that led to this state. ST_FAIL: it cannot be written. */
enum status step_log_add(struct step_log *log, const struct step_state *state, struct error *e);

enum status step_log_close(struct step_log *log, struct error *e);
void step_log_discard(struct step_log *log); /* closes it, whatever was lost */

#endif

/* checkpoint.h - the state of an interrupted run, from which the same command goes on:
 * OUT/checkpoints/<run_id>.ckpt. */
#ifndef LRNN_HARNESS_RUN_CHECKPOINT_H
#define LRNN_HARNESS_RUN_CHECKPOINT_H

#include "harness/run/running.h"

/* Writes it whole, in place of the previous one. ST_FAIL, ST_MEMORY, ST_DEVICE. */
enum status checkpoint_write(const struct trainer *t, const struct run_progress *p, struct error *e);

/* Restores trainer and progress; *found = false when there is none. A corrupt one is renamed to .corrupt, or .corrupt.2, .3 (never deleted), named on
 * stderr, and counts as none. ST_FAIL: it cannot be read, or not renamed; ST_USAGE: it was written by another
 * build, or under other kernels of matrix products, and the run has no --force-resume. */
enum status checkpoint_read(struct trainer *t, struct run_progress *p, bool *found, struct error *e);

/* Refuses like checkpoint_read, before a run starts; only the header of the file is read. */
enum status checkpoint_admit(const struct setup *setup, struct error *e);

/* The step up to which the run of that id in OUT has been saved; -1: it has no checkpoint that can be read. */
int64_t checkpoint_step(const char *out, const char *run_id);
void checkpoint_remove(const struct setup *setup);

#endif

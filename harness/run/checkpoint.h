/* checkpoint.h - files that earlier calls left of a run: its record, or the state from which the same command
 * continues, OUT/checkpoints/<run_id>.ckpt. */
#ifndef LRNN_HARNESS_RUN_CHECKPOINT_H
#define LRNN_HARNESS_RUN_CHECKPOINT_H

#include "harness/run/running.h"

/* Writes a checkpoint, replacing the previous one atomically. ST_FAIL, ST_MEMORY, ST_DEVICE. */
enum status checkpoint_write(const struct trainer *t, const struct run_progress *p, struct error *e);

/* Restores trainer and progress; *found = false if there is no checkpoint. A corrupt checkpoint is renamed to .corrupt,
 * or .corrupt.2, .3 (never deleted), reported on stderr, and then ignored. ST_FAIL: it cannot be read, or not renamed;
 * ST_USAGE: it was written by another build or with other kernels of matrix products, and the run has no
 * --force-resume. */
enum status checkpoint_read(struct trainer *t, struct run_progress *p, bool *found, struct error *e);

/* Makes the checks of checkpoint_read before a run starts, reading only the header of the file. */
enum status checkpoint_admit(const struct setup *setup, struct error *e);

/* Returns the step of the run's checkpoint in OUT; -1: it has no readable checkpoint. */
int64_t checkpoint_step(const char *out, const char *run_id);
void checkpoint_remove(const struct setup *setup);

/* --- records ------------------------------------------------------------------------------------------------------ */

/* Findings about the record of a run to be done. */
struct reuse {
    bool known;  /* there is a record */
    bool again;  /* the run is to be done again in spite of its record */
    bool failed; /* the record tells of a failure that may not happen again: time-out, kill, memory, error */
    bool other;  /* the record is from other sources, compiler or flags than this build's, or does not name them */
};

/* Looks for the record of the run in its folder; a damaged record is set aside as by record_check. Runs with --force
 * are to be done again, and with `retry` those that failed. */
struct reuse reuse_find(const struct setup *s, bool retry);

/* Tells whether the run is to be done. */
static inline bool reuse_wanted(const struct reuse *found) {
    return !found->known || found->again;
}

/* Sets the record of a run that is to be done again aside; with --force removes its checkpoint too. ST_FAIL: it could
 * not be renamed. */
enum status reuse_release(const struct setup *s, const struct reuse *found, struct error *e);

/* Tells whether the run has a record that a sweep would keep, only from the file's name; nothing is renamed. With
 * `retry` a record of a failure does not count. */
bool reuse_is_there(const struct setup *s, bool retry);

/* Writes one line to stderr if `other` of `total` runs have records from other builds. */
void reuse_tell(int other, int total);

#endif

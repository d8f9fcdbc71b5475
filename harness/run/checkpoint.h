/* checkpoint.h - the files that earlier commands have left for a run: its record, or its checkpoint. The checkpoint
 * OUT/checkpoints/<run_id>.ckpt is the state from which the same command continues. */
#ifndef LRNN_HARNESS_RUN_CHECKPOINT_H
#define LRNN_HARNESS_RUN_CHECKPOINT_H

#include "harness/run/running.h"

/* Writes a checkpoint, which atomically replaces the previous one. ST_FAIL, ST_MEMORY, ST_DEVICE. */
enum status checkpoint_write(const struct trainer *t, const struct run_progress *p, struct error *e);

/* Restores trainer and progress from the checkpoint; *found = false if there is none. A corrupt checkpoint is renamed
 * to .corrupt, or .corrupt.2, .corrupt.3 (never deleted), reported on stderr, and then ignored. ST_FAIL: it cannot be
 * read or cannot be renamed. ST_USAGE: another build wrote it, or its matrix products came from other kernels, and the
 * run has no --force-resume. */
enum status checkpoint_read(struct trainer *t, struct run_progress *p, bool *found, struct error *e);

/* Makes the checks of checkpoint_read before a run starts. It reads only the header of the file. */
enum status checkpoint_admit(const struct spec *s, const char *run_id, struct error *e);

/* Returns the step of the run's checkpoint in the folder `out`; -1: the run has no readable checkpoint. */
int64_t checkpoint_step(const char *out, const char *run_id);
void checkpoint_remove(const char *out, const char *run_id);

/* --- records ------------------------------------------------------------------------------------------------------ */

/* Facts about the record of a planned run. */
struct reuse {
    bool known;  /* the run has a record */
    bool again;  /* the run must be done again although it has a record */
    bool failed; /* the run failed in a way that may not happen again: time-out, kill, memory, error */
    bool other;  /* the record is from a build of other sources, compiler or flags, or does not say from which */
};

/* Looks for the record of the run in its folder. A damaged record is set aside, as in record_check. A run must be done
 * again if it has --force, or if `retry` is set and it failed. */
struct reuse reuse_find(const struct config *c, const char *run_id, bool retry);

/* Tells whether the run must be done. */
static inline bool reuse_wanted(const struct reuse *found) {
    return !found->known || found->again;
}

/* Sets aside the record of a run that must be done again. With --force, it also removes the checkpoint. ST_FAIL: the
 * record could not be renamed. */
enum status reuse_release(const struct reuse *found, const struct config *c, const char *run_id, struct error *e);

/* Tells whether the run has a record that a sweep would use. It only looks whether the file exists and renames nothing.
 * With `retry` it also reads the record, because a failed run then does not count. */
bool reuse_is_there(const struct config *c, const char *run_id, bool retry);

/* Writes one line to stderr if `other` of `total` runs have records from other builds. */
void reuse_tell(int other, int total);

#endif

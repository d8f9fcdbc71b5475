/* checkpoint.h - what earlier work left of a run: its record, or the state from which the same command goes on,
 * OUT/checkpoints/<run_id>.ckpt. */
#ifndef LRNN_HARNESS_RUN_CHECKPOINT_H
#define LRNN_HARNESS_RUN_CHECKPOINT_H

#include "harness/run/running.h"

/* Writes it whole, in place of the previous one. ST_FAIL, ST_MEMORY, ST_DEVICE. */
enum status checkpoint_write(const struct trainer *t, const struct run_progress *p, struct error *e);

/* Restores trainer and progress; *found = false if there is none. A corrupt one is renamed to .corrupt, or .corrupt.2,
 * .3 (never deleted), named on stderr, and counts as none. ST_FAIL: it cannot be read, or not renamed; ST_USAGE: it was
 * written by another build, or under other kernels of matrix products, and the run has no --force-resume. */
enum status checkpoint_read(struct trainer *t, struct run_progress *p, bool *found, struct error *e);

/* Refuses like checkpoint_read, before a run starts; only the header of the file is read. */
enum status checkpoint_admit(const struct setup *setup, struct error *e);

/* The step up to which the run of that id in OUT has been saved; -1: it has no checkpoint that can be read. */
int64_t checkpoint_step(const char *out, const char *run_id);
void checkpoint_remove(const struct setup *setup);

/* --- records ------------------------------------------------------------------------------------------------------ */

/* A record of a run that is to be done. */
struct reuse {
    bool known;  /* there is a record */
    bool again;  /* and the run is to be done again all the same */
    bool failed; /* that tells of a failure which may not happen again: time-out, kill, memory, error */
    bool other;  /* by other sources, compiler or flags than this build's, or by a build that did not say */
};

/* Looks for the record of the run under its folder; a damaged one is set aside as record_check says. Done again are
 * runs under --force, and with `retry` those that failed. */
struct reuse reuse_find(const struct setup *s, bool retry);

/* Tells whether the run is to be done. */
static inline bool reuse_wanted(const struct reuse *found) {
    return !found->known || found->again;
}

/* Sets a record aside whose run is to be done again; --force begins it anew, without its checkpoint. ST_FAIL: it could
 * not be renamed. */
enum status reuse_release(const struct setup *s, const struct reuse *found, struct error *e);

/* Tells by its name alone whether the run has a record that a sweep would keep; nothing is renamed. With `retry` a
 * record of a failure does not count. */
bool reuse_is_there(const struct setup *s, bool retry);

/* Writes one line to stderr if `other` of `total` runs are on record by other builds. */
void reuse_tell(int other, int total);

#endif

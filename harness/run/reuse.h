/* reuse.h - runs that are on record already: by this build, or by another one whose bits may differ. */
#ifndef LRNN_HARNESS_RUN_REUSE_H
#define LRNN_HARNESS_RUN_REUSE_H

#include <stdbool.h>

#include "harness/study/setup.h"

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

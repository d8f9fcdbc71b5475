/* reuse.h - runs that are on record already: by this build, or by another one whose bits may differ. */
#ifndef LRNN_HARNESS_REUSE_H
#define LRNN_HARNESS_REUSE_H

#include <stdbool.h>

#include "harness/plan/setup.h"

enum reuse {
    REUSE_NONE,       /* no record, or --force has set it aside: the run is to be done */
    REUSE_SAME_BUILD, /* on record by these sources, compiler and flags */
    REUSE_OTHER_BUILD /* on record by others, or by a build that did not say */
};

/* Looks for the record of the run under its folder; a damaged one is set aside as record_check says. ST_FAIL: --force
 * could not rename it. */
enum status reuse_find(const struct setup *s, enum reuse *found, struct error *e);

/* Whether the run has a record that a sweep would keep, by its name alone: nothing is read or renamed. */
bool reuse_is_there(const struct setup *s);

/* One line on stderr if `other` of `total` runs are on record by other builds. */
void reuse_tell(int other, int total);

#endif

/* numerics.h - which version of the program's numbers a run has, part of its identity.
 *
 * Golden traces (tests/golden/) hold the bits of small trainings. Whoever changes bits raises the version of the part of the
 * program that changed, so that the runs which use that part are done again and all others stay what they are. */
#ifndef LRNN_HARNESS_PLAN_NUMERICS_H
#define LRNN_HARNESS_PLAN_NUMERICS_H

#include "harness/plan/config.h"

/* Writes "1", or behind it the parts that the run uses and that have changed since: "1+delta.2". The setup's model, backbone and
 * flags are set. ST_FAIL: more parts than the text holds. */
enum status numerics_of(const struct setup *s, char *text, size_t size, struct error *e);

#endif

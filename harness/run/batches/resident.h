/* resident.h - training data that lies on a device whole: made and sent once, and each step's batch taken from it
 * there.
 *
 * The batches are those of the feeder, bit for bit. */
#ifndef LRNN_HARNESS_RUN_BATCHES_RESIDENT_H
#define LRNN_HARNESS_RUN_BATCHES_RESIDENT_H

#include "harness/study/graphs.h"
#include "harness/run/feeder.h"

struct resident {
    struct graph take; /* owns the split; walked before the nets' forward */
};

/* Bytes of a device that the training data takes; 0 where it is sent batch by batch (graphs_can_take). */
size_t resident_bytes(const struct setup *s);

/* Makes the split and sends it. What the graph takes goes into the inputs of the nets, which are planned and stay where
 * they are; second of zeros: the task has no strings of another length. Errors: ST_MEMORY, ST_DEVICE; 130 or 143 as a
 * status when a signal asked to stop meanwhile. */
enum status resident_create(struct resident *r, const struct setup *s, const struct place *place, const struct net *net,
                            const struct net *second, struct error *e);

/* One of zeros is no error. */
void resident_free(struct resident *r);

#endif

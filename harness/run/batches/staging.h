/* staging.h - the way of batches to a device: a ring of pinned slots, each free again once the device has read it. */
#ifndef LRNN_HARNESS_RUN_BATCHES_STAGING_H
#define LRNN_HARNESS_RUN_BATCHES_STAGING_H

#include "core/place.h"

#define STAGING_SLOTS 8 /* steps that the host may be ahead of the device */

struct staging {
    const struct place *place; /* outlives it */
    char *memory;              /* pinned; NULL on the CPU */
    size_t bytes, used;        /* of a slot */
    struct place_mark *read[STAGING_SLOTS];
    bool in_use[STAGING_SLOTS];
    int slot;
};

/* Slots of `bytes`; on the CPU nothing is reserved and staging_send copies at once. ST_MEMORY: no pinned memory. */
enum status staging_start(struct staging *s, const struct place *place, size_t bytes, struct error *e);
void staging_stop(struct staging *s);

/* Between begin and end: memory of the host to the place, queued; `from` may be written again at once. */
void staging_begin(struct staging *s);
void staging_send(struct staging *s, void *to, const void *from, size_t bytes);
void staging_end(struct staging *s);

#endif

/* staging.c - see staging.h. */
#include "harness/run/batches/staging.h"

#include <string.h>

enum status staging_start(struct staging *s, const struct place *place, size_t bytes, struct error *e) {
    *s = (struct staging){.place = place, .bytes = bytes};
    if (place->device == DEVICE_CPU) return ST_OK;
    s->memory = place_host_alloc(place, STAGING_SLOTS * bytes);
    if (!s->memory)
        return fail(e, ST_MEMORY, "no pinned memory for batches: %zu bytes were wanted", STAGING_SLOTS * bytes);
    for (int i = 0; i < STAGING_SLOTS; i++) s->read[i] = place_mark_create(place);
    return place_wait(place, e);
}

void staging_stop(struct staging *s) {
    for (int i = 0; i < STAGING_SLOTS; i++) place_mark_free(s->place, s->read[i]);
    if (s->memory) place_host_free(s->place, s->memory);
    *s = (struct staging){0};
}

void staging_begin(struct staging *s) {
    if (s->memory && s->in_use[s->slot]) place_mark_wait(s->place, s->read[s->slot]);
    s->used = 0;
}

void staging_send(struct staging *s, void *to, const void *from, size_t bytes) {
    if (!s->memory) {
        memcpy(to, from, bytes);
        return;
    }
    char *pinned = s->memory + (size_t)s->slot * s->bytes + s->used;
    memcpy(pinned, from, bytes);
    place_send(s->place, to, pinned, bytes);
    s->used += bytes;
}

void staging_end(struct staging *s) {
    if (!s->memory) return;
    place_mark_set(s->place, s->read[s->slot]);
    s->in_use[s->slot] = true;
    s->slot = (s->slot + 1) % STAGING_SLOTS;
}

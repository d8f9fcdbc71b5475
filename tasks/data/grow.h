/* grow.h - arrays that readers fill before they know the length. */
#ifndef LRNN_TASKS_DATA_GROW_H
#define LRNN_TASKS_DATA_GROW_H

#include <stdint.h>
#include <stdlib.h>

/* Returns the array with room for at least `want` elements of `bytes` each. *have counts the room; it doubles when the
 * array moves. NULL: no memory, and the old array is unchanged. The caller frees it. */
static inline void *grow(void *at, int64_t *have, int64_t want, int64_t bytes) {
    if (at && want <= *have) return at;
    int64_t next = 2 * *have > want ? 2 * *have : want < 64 ? 64 : want;
    void *more = realloc(at, (size_t)(next * bytes));
    if (more) *have = next;
    return more;
}

#endif

/* arena.h - allocates memory piece by piece from one reserved range.
 *
 * An arena owns its memory, and callers of arena_alloc borrow it. It never grows after arena_reserve, so pointers stay
 * valid until arena_free. Pieces are not freed one by one, so an early return is always safe. An arena that was never
 * reserved only measures: its allocations return NULL and count bytes. */
#ifndef LRNN_CORE_ARENA_H
#define LRNN_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ARENA_ALIGN 64 /* bytes; one cache line, one AVX-512 register */
#define ARENA_GUARD 64 /* with guards: bytes of the guard zone after each allocation */

struct arena {
    char *base;                               /* NULL while it measures */
    size_t size;                              /* bytes reserved */
    size_t used;                              /* bytes given out, guards included */
    size_t peak;                              /* largest `used` ever */
    bool guards;                              /* put a guard zone after each allocation; set before the first one */
    int fail_after;                           /* for tests: the n-th allocation from now fails; 0: none fails */
    void (*release)(char *base, size_t size); /* gives the range back to the system; NULL: munmap */
};

/* Reserves `bytes` of zeroed memory. Pages are committed when they are first touched, so reserving too much costs
 * nothing. ST_MEMORY names the size if the system refuses. */
enum status arena_reserve(struct arena *a, size_t bytes, struct error *e);

/* Asks the system for huge pages. A first touch then clears 2 MB, so this pays only if most of the memory will be
 * used. */
void arena_huge_pages(struct arena *a);

/* Returns `bytes` of memory, aligned to ARENA_ALIGN. It is zeroed when it is given out for the first time. While it
 * measures, it returns NULL and only counts in `used`. It also returns NULL if the arena is full, if fail_after
 * applies, or if the size overflows. The arena then does not change, except that `peak` counts the bytes asked for if
 * it was full. */
void *arena_alloc(struct arena *a, size_t bytes);

/* Copies the string into the arena. Returns NULL in the same cases as arena_alloc. */
char *arena_strdup(struct arena *a, const char *text);

/* arena_release takes back all allocations made after the mark. Their memory is not zeroed again. */
size_t arena_mark(const struct arena *a);
void arena_release(struct arena *a, size_t mark);

/* Whether every guard zone still has its pattern. True if guards are off. */
bool arena_guards_intact(const struct arena *a);

void arena_free(struct arena *a);

/* Returns the bytes of physical memory of the machine; 0 if unknown. */
size_t machine_memory_bytes(void);

#ifdef __cplusplus
}
#endif
#endif

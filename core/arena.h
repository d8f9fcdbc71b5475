/* arena.h - bump allocation out of one reserved range of memory.
 *
 * An arena owns its memory, and callers of arena_alloc borrow it. It never grows after arena_reserve, so pointers stay
 * valid until arena_free. Nothing is freed one by one, so an early return is always safe. An arena that was never
 * reserved measures: its allocations return NULL and only count bytes. */
#ifndef LRNN_CORE_ARENA_H
#define LRNN_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ARENA_ALIGN 64 /* bytes; one cache line, one AVX-512 register */
#define ARENA_GUARD 64 /* bytes of guard zone after each allocation when guards are on */

struct arena {
    char *base;                               /* NULL while measuring */
    size_t size;                              /* bytes reserved */
    size_t used;                              /* bytes handed out, guards included */
    size_t peak;                              /* largest `used` ever */
    bool guards;                              /* put a poisoned zone after each allocation; set before the first one */
    int fail_after;                           /* tests: the n-th allocation from now fails; 0 = never */
    void (*release)(char *base, size_t size); /* how the range is given back; NULL: munmap */
};

/* Reserves `bytes` of zeroed memory. Pages are committed when first touched, so a generous reservation costs nothing.
 * ST_MEMORY names the size when the system refuses. */
enum status arena_reserve(struct arena *a, size_t bytes, struct error *e);

/* Asks for huge pages. A first touch then clears 2 MB, so this pays where most of the memory will be used. */
void arena_huge_pages(struct arena *a);

/* Returns `bytes` of memory aligned to ARENA_ALIGN, zeroed the first time they are handed out. While measuring, returns
 * NULL and only counts in `used`. Returns NULL also if the arena is full, fail_after strikes or the size overflows;
 * then the arena does not change, except that `peak` counts the bytes asked for if it was full. */
void *arena_alloc(struct arena *a, size_t bytes);

/* Copies the string into the arena. NULL in the same cases as arena_alloc. */
char *arena_strdup(struct arena *a, const char *text);

/* arena_release gives back all allocations made after the mark; their memory is not zeroed again. */
size_t arena_mark(const struct arena *a);
void arena_release(struct arena *a, size_t mark);

/* Whether every guard zone still has its pattern. True if guards are off. */
bool arena_guards_intact(const struct arena *a);

void arena_free(struct arena *a);

/* Bytes of physical memory of the machine; 0 if unknown. */
size_t machine_memory_bytes(void);

#ifdef __cplusplus
}
#endif
#endif

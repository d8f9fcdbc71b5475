/* arena.c - bump allocation; see arena.h. Memory comes from mmap: it is zeroed and page-aligned, and a page is
 * committed when it is first touched. */
#include "core/arena.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD_BYTE 0xA5
#define HUGE_PAGE  (2u << 20)

/* With guards, each allocation is [header of ARENA_ALIGN bytes: the bytes asked for][those bytes][guard: the rest up to
 * a multiple of ARENA_ALIGN, and ARENA_GUARD bytes more]. */

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

enum status arena_reserve(struct arena *a, size_t bytes, struct error *e) {
    size_t size = round_up(bytes ? bytes : 1, (size_t)sysconf(_SC_PAGESIZE));
    if (size < bytes) return fail(e, ST_MEMORY, "cannot reserve %zu bytes of memory: the size overflows", bytes);
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return fail(e, ST_MEMORY, "cannot reserve %zu MB of memory: %s", size >> 20, strerror(errno));
    a->base = base;
    a->size = size;
    a->used = 0;
    return ST_OK;
}

void arena_huge_pages(struct arena *a) {
    /* only advice: if it is refused, only the speed changes */
    if (a->size >= HUGE_PAGE) madvise(a->base, a->size, MADV_HUGEPAGE);
}

static bool strikes(struct arena *a) {
    return a->fail_after > 0 && --a->fail_after == 0;
}

void *arena_alloc(struct arena *a, size_t bytes) {
    size_t payload = round_up(bytes ? bytes : 1, ARENA_ALIGN);
    size_t total = payload + (a->guards ? ARENA_ALIGN + ARENA_GUARD : 0);
    if (payload < bytes || total < payload || a->used + total < a->used || strikes(a)) return NULL;
    if (a->used + total > a->peak) a->peak = a->used + total;
    if (!a->base) {
        a->used += total; /* it only measures */
        return NULL;
    }
    if (a->used + total > a->size) return NULL;
    char *start = a->base + a->used;
    a->used += total;
    if (!a->guards) return start;
    memcpy(start, &bytes, sizeof bytes);
    memset(start + ARENA_ALIGN + bytes, GUARD_BYTE, payload - bytes + ARENA_GUARD);
    return start + ARENA_ALIGN;
}

char *arena_strdup(struct arena *a, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = arena_alloc(a, bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

size_t arena_mark(const struct arena *a) {
    return a->used;
}

void arena_release(struct arena *a, size_t mark) {
    a->used = mark;
}

bool arena_guards_intact(const struct arena *a) {
    if (!a->guards || !a->base) return true;
    for (size_t at = 0; at < a->used;) {
        size_t bytes;
        memcpy(&bytes, a->base + at, sizeof bytes);
        /* something has overwritten the header itself */
        if (bytes > a->used - at - ARENA_ALIGN - ARENA_GUARD) return false;
        size_t payload = round_up(bytes ? bytes : 1, ARENA_ALIGN);
        const unsigned char *guard = (const unsigned char *)a->base + at + ARENA_ALIGN + bytes;
        for (size_t i = 0; i < payload - bytes + ARENA_GUARD; i++)
            if (guard[i] != GUARD_BYTE) return false;
        at += ARENA_ALIGN + payload + ARENA_GUARD;
    }
    return true;
}

void arena_free(struct arena *a) {
    if (a->base && a->release)
        a->release(a->base, a->size);
    else if (a->base)
        munmap(a->base, a->size);
    *a = (struct arena){0};
}

size_t machine_memory_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
}

/* alloc_count.c - stands in front of the C library's allocator: the program's own definitions of malloc and its kin
 * take precedence over the library's for every shared library too. */
#define _GNU_SOURCE /* dladdr */
#include "tests/lib/alloc_count.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint64_t count;
static atomic_bool counting;

uint64_t allocations(void) {
    atomic_store(&counting, true);
    return atomic_load(&count);
}

#if ALLOCATIONS_COUNTED

/* The build hides names from shared libraries; these are for all of them. */
#pragma GCC visibility push(default)

/* glibc's own entry points. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

/* From <malloc.h>, which would name the whole family. */
void *memalign(size_t alignment, size_t bytes);

/* Counts one call that came from the code at `caller`, once somebody asks: to look that up takes longer than to
 * allocate. */
static void add(const void *caller) {
    Dl_info from;
    if (!atomic_load(&counting)) return;
    if (dladdr(caller, &from) && from.dli_fname &&
        (strstr(from.dli_fname, "/libgomp") || strstr(from.dli_fname, "/libomp") ||
         strstr(from.dli_fname, "/libdnnl") || strstr(from.dli_fname, "/libstdc++")))
        return;
    atomic_fetch_add(&count, 1);
}

void *malloc(size_t bytes) {
    add(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
    add(__builtin_return_address(0));
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes) {
    add(__builtin_return_address(0));
    return __libc_realloc(p, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    add(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    add(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **p, size_t alignment, size_t bytes) {
    add(__builtin_return_address(0));
    *p = __libc_memalign(alignment, bytes);
    return *p ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    add(__builtin_return_address(0));
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

#pragma GCC visibility pop
#endif

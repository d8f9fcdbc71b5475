/* alloc_count.c - stands in front of the C library's allocator. The program's own definitions of malloc and its kin take
 * precedence over the library's for every shared library too. AddressSanitizer does the same and offers a hook. */
#include "tests/alloc_count.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static _Atomic uint64_t count;

uint64_t allocations(void) {
    return atomic_load(&count);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#endif

#ifdef UNDER_ASAN

int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));

static void on_malloc(const volatile void *p, size_t bytes) {
    (void)p, (void)bytes;
    atomic_fetch_add(&count, 1);
}

static void on_free(const volatile void *p) {
    (void)p;
}

__attribute__((constructor)) static void install(void) {
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

#else

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own entry points. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
    atomic_fetch_add(&count, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
    atomic_fetch_add(&count, 1);
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes) {
    atomic_fetch_add(&count, 1);
    return __libc_realloc(p, bytes);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes) {
    atomic_fetch_add(&count, 1);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void **p, size_t alignment, size_t bytes) {
    *p = memalign(alignment, bytes);
    return *p ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    atomic_fetch_add(&count, 1);
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

#endif

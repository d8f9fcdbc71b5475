/* alloc_count.h - counts allocations of the whole test program, libraries included, to show that a step makes none. */
#ifndef LRNN_TESTS_LIB_ALLOC_COUNT_H
#define LRNN_TESTS_LIB_ALLOC_COUNT_H

#include <stdint.h>

/* AddressSanitizer takes the allocator's place, so under it nothing is counted and allocations() is 0. */
#if defined(__SANITIZE_ADDRESS__)
#define ALLOCATIONS_COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ALLOCATIONS_COUNTED 0
#endif
#endif
#ifndef ALLOCATIONS_COUNTED
#define ALLOCATIONS_COUNTED 1
#endif

/* Heap allocations (malloc, calloc, realloc, the aligned ones) and memory mappings by all threads since the first call.
 * The OpenMP run-time's own are left out: libgomp takes a block of 1.5 KB for each parallel region whose number of
 * threads differs from the last one's, and gives it back at the region's end. So are oneDNN's, made inside it and in
 * the C++ run-time: a list of some seven cells of a product's arguments and, where rows are not side by side or the CPU
 * has no AVX-512, room for packed factors, all given back at the product's end. An assertion of libcheck allocates:
 * take the difference first, then assert. */
uint64_t allocations(void);

#endif

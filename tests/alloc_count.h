/* alloc_count.h - counts allocations of the whole test program, libraries included, to show that a step makes none. */
#ifndef LRNN_TESTS_ALLOC_COUNT_H
#define LRNN_TESTS_ALLOC_COUNT_H

#include <stdint.h>

/* Heap allocations (malloc, calloc, realloc, the aligned ones) and memory mappings by all threads since the process
 * started. Under AddressSanitizer mappings are not counted. An assertion of libcheck allocates: take the difference
 * first, then assert. */
uint64_t allocations(void);

#endif

/* fetch.h - brings the data that a backward pass needs into the cache, in the order of rising addresses.
 *
 * Processors prefetch rising addresses far better than falling ones: on Zen 4, copying rows from the last to the first
 * takes three times as long, even with prefetch instructions. So every few steps a backward pass reads all data that
 * its next steps will read, from the first address to the last. It also reads the lines that they will write, because
 * the processor reads a line before it writes a part of it. The gradient of BD-LRU at m = 5, N = 64, B = 128, T = 16
 * takes 2.8 ms instead of 5.6 (`lrnn perf op scan_block --threads 1`); 0.8 ms of the gain come from the written lines.
 * If all data are in L2 (B = 4), it takes a quarter longer. */
#ifndef LRNN_KERNELS_LIB_FETCH_H
#define LRNN_KERNELS_LIB_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/real.h"

#define FETCH_NUMBERS 32768                        /* how many numbers are fetched at once: a fraction of L2 */
#define FETCH_LINE    (64 / (int64_t)sizeof(real)) /* numbers in a line of the cache */

/* Reads `rows` rows of `width` numbers, `stride` apart. */
static __attribute__((noinline, unused)) void fetch_rows(const real *from, int64_t rows, int64_t width,
                                                         int64_t stride) {
    volatile real seen = 0;
    real sum = 0;
    if (width == stride) width *= rows, rows = 1;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < width; k += FETCH_LINE) sum += from[r * stride + k];
    seen = sum;
    (void)seen;
}

/* Like fetch_rows, for rows that will be written. It does so only for whole rows, because for parts of rows it costs
 * more than it saves. */
LRNN_INLINE void fetch_written(const real *to, int64_t rows, int64_t width, int64_t stride) {
    if (width == stride) fetch_rows(to, rows, width, stride);
}

/* A backward pass over T steps reads `numbers` numbers per step. Returns true if it must fetch before it reads step t:
 * at its start, and then once for every FETCH_NUMBERS. It must then fetch steps *first to t. */
static inline bool fetch_is_due(int64_t t, int64_t T, int64_t numbers, int64_t *first) {
    int64_t steps = FETCH_NUMBERS / numbers + 1;
    *first = t / steps * steps;
    return t == T - 1 || t == *first + steps - 1;
}

#endif

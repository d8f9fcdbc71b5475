/* fetch.h - what a walk back in time reads and writes, brought into the cache in rising order.
 *
 * Processors follow rising addresses far better than falling ones: on Zen 4 a copy row by row from the end takes
 * three times as long, with prefetch instructions too. So such a walk reads every few steps, before it needs them,
 * all that the next ones will read, from the first address to the last, and the lines that they will write, which the
 * processor reads first as well. BD-LRU's gradient at m = 5, N = 64, B = 128, T = 16 takes 2.8 ms instead of 5.6
 * (`lrnn perf op scan_block --threads 1`), of which what is written has 0.8, and a quarter more than before where all
 * lies in L2 (B = 4). */
#ifndef LRNN_KERNELS_LIB_FETCH_H
#define LRNN_KERNELS_LIB_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/real.h"

#define FETCH_NUMBERS 32768                        /* that are fetched at once: a fraction of L2 */
#define FETCH_LINE    (64 / (int64_t)sizeof(real)) /* numbers of a line of the cache */

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

/* Likewise of rows that will be written. Where they are parts of longer ones it costs more than it saves. */
LRNN_INLINE void fetch_written(const real *to, int64_t rows, int64_t width, int64_t stride) {
    if (width == stride) fetch_rows(to, rows, width, stride);
}

/* True if a walk over T steps back in time that reads `numbers` a step must fetch before it reads step t: at its
 * begin, and then every FETCH_NUMBERS. *first: the step to fetch from, up to t. */
static inline bool fetch_is_due(int64_t t, int64_t T, int64_t numbers, int64_t *first) {
    int64_t steps = FETCH_NUMBERS / numbers + 1;
    *first = t / steps * steps;
    return t == T - 1 || t == *first + steps - 1;
}

#endif

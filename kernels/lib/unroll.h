/* unroll.h - rows in registers, for code inside loops over channels that compilers vectorise. A row is a local array of
 * UNROLLED_MAX elements, in a function that is inlined into the loop. n is a constant and every index a literal, so the
 * row is never in memory; memory would be shared between the lanes of an `omp simd` loop. */
#ifndef LRNN_KERNELS_LIB_UNROLL_H
#define LRNN_KERNELS_LIB_UNROLL_H

#include "core/real.h"

#define UNROLLED_MAX 9

/* Repeats the statement for j = 0 .. n - 1, where j is a literal in each copy. */
#define UNROLLED(n, statement)                                                                                         \
    do {                                                                                                               \
        UNROLLED_COPY(0, n, statement)                                                                                 \
        UNROLLED_COPY(1, n, statement)                                                                                 \
        UNROLLED_COPY(2, n, statement)                                                                                 \
        UNROLLED_COPY(3, n, statement)                                                                                 \
        UNROLLED_COPY(4, n, statement)                                                                                 \
        UNROLLED_COPY(5, n, statement)                                                                                 \
        UNROLLED_COPY(6, n, statement)                                                                                 \
        UNROLLED_COPY(7, n, statement)                                                                                 \
        UNROLLED_COPY(8, n, statement)                                                                                 \
    } while (0)
#define UNROLLED_COPY(literal, n, statement)                                                                           \
    {                                                                                                                  \
        enum { j = literal };                                                                                          \
        if (j < (n)) {                                                                                                 \
            statement;                                                                                                 \
        }                                                                                                              \
    }

#endif

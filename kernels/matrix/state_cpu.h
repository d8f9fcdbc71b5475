/* state_cpu.h - what the CPU kernels of the matrix-state recurrences share: padded rows. */
#ifndef LRNN_KERNELS_MATRIX_STATE_CPU_H
#define LRNN_KERNELS_MATRIX_STATE_CPU_H

#include <string.h>

#include "kernels/matrix/state.h"
#include "kernels/lib/parallel.h"

#define STATE_VECTOR 16 /* rows of the state are multiples of this many columns */
#define STATE_PARTS  16 /* most parts the heads of a batch are cut into; each has its own scratch */
#define STATE_BUNDLE 16 /* most heads that go through time side by side */

/* name(width, ...) calls step(width, ...) with the usual widths as constants: the loops over columns unroll and the
 * sums stay in registers. */
#define STATE_EACH_WIDTH(name, step, parameters, ...)                                                                  \
    static void name parameters {                                                                                      \
        switch (width) {                                                                                               \
        case 16:                                                                                                       \
            step(16, __VA_ARGS__);                                                                                     \
            break;                                                                                                     \
        case 32:                                                                                                       \
            step(32, __VA_ARGS__);                                                                                     \
            break;                                                                                                     \
        case 64:                                                                                                       \
            step(64, __VA_ARGS__);                                                                                     \
            break;                                                                                                     \
        default:                                                                                                       \
            step(width, __VA_ARGS__);                                                                                  \
            break;                                                                                                     \
        }                                                                                                              \
    }

LRNN_INLINE int64_t padded(int64_t n) {
    return (n + STATE_VECTOR - 1) / STATE_VECTOR * STATE_VECTOR;
}

LRNN_INLINE int64_t state_parts(int64_t pairs) {
    return pairs < STATE_PARTS ? pairs : STATE_PARTS;
}

/* How many heads go through time side by side, a chunk of each after the other, with states of `reals` each: a token's
 * rows of neighbouring heads lie side by side in memory, while rows of one head are far apart. The states stay in
 * L1. */
LRNN_INLINE int64_t heads_side_by_side(int64_t reals) {
    int64_t n = 32768 / (reals * (int64_t)sizeof(real));
    return n < 1 ? 1 : n < STATE_BUNDLE ? n : STATE_BUNDLE;
}

/* to[width] = from[n], then zeros. */
LRNN_INLINE void pad_row(int64_t n, int64_t width, const real *from, real *to) {
    memcpy(to, from, (size_t)n * sizeof *to);
    memset(to + n, 0, (size_t)(width - n) * sizeof *to);
}

/* to[n] = from[n]. A call of memcpy takes longer than the few vectors of a row. */
LRNN_INLINE void copy_row(int64_t n, const real *from, real *to) {
    int64_t i = 0;
    for (; i + STATE_VECTOR <= n; i += STATE_VECTOR) memcpy(to + i, from + i, STATE_VECTOR * sizeof *to);
    for (; i < n; i++) to[i] = from[i];
}

/* Asks for `count` rows n wide, ld apart, to be in L2 when they are read: rows of one head, whose distance the
 * processor's own prefetching does not follow. None where from is NULL. The empty statement keeps gcc from taking a
 * function that only prefetches for one without effect, whose calls it leaves out. */
LRNN_INLINE void prefetch_rows(int64_t count, int64_t n, const real *from, int64_t ld) {
    for (int64_t t = 0; from && t < count; t++)
        for (int64_t i = 0; i < n; i += 64 / (int64_t)sizeof(real)) {
            __builtin_prefetch(from + t * ld + i, 0, 2);
            __asm__ volatile("");
        }
}

/* `count` rows n wide, ld apart, padded to width; then zero rows up to a whole chunk. */
LRNN_INLINE void pad_rows(int64_t count, int64_t n, const real *from, int64_t ld, int64_t width, real *to) {
    for (int64_t t = 0; t < count; t++) {
        copy_row(n, from + t * ld, to + t * width);
        for (int64_t i = n; i < width; i++) to[t * width + i] = 0;
    }
    if (count < STATE_CHUNK) memset(to + count * width, 0, (size_t)((STATE_CHUNK - count) * width) * sizeof *to);
}

/* A state with padded rows to one without, and back. */
LRNN_INLINE void pack_rows(int64_t dk, int64_t dv, const real *state, int64_t width, real *kept) {
    if (dv == width) dv = width = dk * dv, dk = 1;
    for (int64_t i = 0; i < dk; i++) memcpy(kept + i * dv, state + i * width, (size_t)dv * sizeof *kept);
}

LRNN_INLINE void unpack_rows(int64_t dk, int64_t dv, const real *kept, int64_t width, real *state) {
    for (int64_t i = 0; i < dk; i++) pad_row(dv, width, kept + i * dv, state + i * width);
}

#endif

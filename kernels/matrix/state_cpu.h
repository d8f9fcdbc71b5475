/* state_cpu.h - parts that the CPU kernels of the matrix-state recurrences share: padded rows. */
#ifndef LRNN_KERNELS_MATRIX_STATE_CPU_H
#define LRNN_KERNELS_MATRIX_STATE_CPU_H

#include <string.h>

#include "kernels/matrix/state.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/simd.h"

#define STATE_VECTOR 16        /* rows of the state are multiples of this many columns */
#define STATE_PARTS  16        /* the heads of a batch are cut into at most so many parts; each has its own scratch */
#define STATE_BUNDLE 16        /* most heads that are walked through time together */
#define PAST_CACHES  (8 << 20) /* bytes of a call's kept states from which on the caches do not keep them */

/* Defines name(width, ...), which calls step(width, ...) with the usual widths as constants, so that the loops over
 * columns unroll and the sums stay in registers. */
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

/* Returns how many heads, with states of `reals` each, are computed together, chunk by chunk: their states stay in L1.
 * A token's rows of neighbouring heads are adjacent in memory, while rows of one head are far apart. */
LRNN_INLINE int64_t heads_side_by_side(int64_t reals) {
    int64_t n = 32768 / (reals * (int64_t)sizeof(real));
    return n < 1 ? 1 : n < STATE_BUNDLE ? n : STATE_BUNDLE;
}

/* Copies from[n] to to[width], and fills up with zeros. */
LRNN_INLINE void pad_row(int64_t n, int64_t width, const real *from, real *to) {
    memcpy(to, from, (size_t)n * sizeof *to);
    memset(to + n, 0, (size_t)(width - n) * sizeof *to);
}

/* Copies n values. For the few vectors of a row, a call of memcpy would take longer. */
LRNN_INLINE void copy_row(int64_t n, const real *from, real *to) {
    int64_t i = 0;
    for (; i + STATE_VECTOR <= n; i += STATE_VECTOR) memcpy(to + i, from + i, STATE_VECTOR * sizeof *to);
    for (; i < n; i++) to[i] = from[i];
}

/* Prefetches `count` rows n wide, ld apart, into L2; does nothing if from is NULL. The processor itself does not follow
 * rows of one head. Without the empty statement gcc would think that the function has no effect and drop its calls. */
LRNN_INLINE void prefetch_rows(int64_t count, int64_t n, const real *from, int64_t ld) {
    for (int64_t t = 0; from && t < count; t++)
        for (int64_t i = 0; i < n; i += 64 / (int64_t)sizeof(real)) {
            __builtin_prefetch(from + t * ld + i, 0, 2);
            __asm__ volatile("");
        }
}

/* Copies `count` rows n wide, ld apart, and pads them to `width`. Appends zero rows up to a whole chunk. */
LRNN_INLINE void pad_rows(int64_t count, int64_t n, const real *from, int64_t ld, int64_t width, real *to) {
    for (int64_t t = 0; t < count; t++) {
        copy_row(n, from + t * ld, to + t * width);
        for (int64_t i = n; i < width; i++) to[t * width + i] = 0;
    }
    if (count < STATE_CHUNK) memset(to + count * width, 0, (size_t)((STATE_CHUNK - count) * width) * sizeof *to);
}

/* These copy a state with padded rows to one without padding, and back. */
LRNN_INLINE void pack_rows(int64_t dk, int64_t dv, const real *state, int64_t width, real *kept) {
    if (dv == width) dv = width = dk * dv, dk = 1;
    for (int64_t i = 0; i < dk; i++) memcpy(kept + i * dv, state + i * width, (size_t)dv * sizeof *kept);
}

/* Stores a state before a chunk as pack_rows does. If the caches cannot hold all states of a call until backward reads
 * them, writes past the caches. */
LRNN_INLINE void keep_state(const struct state_shape *s, const real *state, int64_t width, real *kept) {
    int64_t n = s->dk * s->dv, states = s->B * s->chunks * s->heads;
    if (s->dv != width || n % LANES || (uintptr_t)kept % LANE_BYTES || states * n * (int64_t)sizeof *kept < PAST_CACHES)
        pack_rows(s->dk, s->dv, state, width, kept);
    else
        for (int64_t i = 0; i < n; i += LANES) lanes_past_caches(kept + i, lanes_at(state + i));
}

LRNN_INLINE void unpack_rows(int64_t dk, int64_t dv, const real *kept, int64_t width, real *state) {
    for (int64_t i = 0; i < dk; i++) pad_row(dv, width, kept + i * dv, state + i * width);
}

#endif

/* matrix_state_cpu.h - what the CPU kernels of the matrix-state recurrences share: padded rows and scratch by part. */
#ifndef LRNN_KERNELS_MATRIX_STATE_CPU_H
#define LRNN_KERNELS_MATRIX_STATE_CPU_H

#include <string.h>

#include "kernels/matrix_state.h"
#include "kernels/parallel.h"

#define STATE_VECTOR 16 /* rows of the state are multiples of this many columns */
#define STATE_PARTS  16 /* most parts the heads of a batch are cut into; each has its own scratch */
#define STATE_INLINE static inline __attribute__((always_inline))

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

LRNN_INLINE int64_t state_parts(int64_t tasks) {
    return tasks < STATE_PARTS ? tasks : STATE_PARTS;
}

/* Bytes of scratch for all parts: `states` padded states, `rows` padded rows of dv, `keys` padded rows of dk each. */
LRNN_INLINE size_t state_scratch_bytes(const struct state_shape *s, int64_t states, int64_t rows, int64_t keys,
                                       int64_t tasks) {
    int64_t width = padded(s->dv), floats = (states * s->dk + rows) * width + keys * padded(s->dk);
    return (size_t)(state_parts(tasks) * floats) * sizeof(real);
}

/* to[width] = from[n], then zeros. */
LRNN_INLINE void pad_row(int64_t n, int64_t width, const real *from, real *to) {
    memcpy(to, from, (size_t)n * sizeof *to);
    memset(to + n, 0, (size_t)(width - n) * sizeof *to);
}

/* `count` rows n wide, ld apart, padded to width; then zero rows up to a whole chunk. */
LRNN_INLINE void pad_rows(int64_t count, int64_t n, const real *from, int64_t ld, int64_t width, real *to) {
    for (int64_t t = 0; t < count; t++) pad_row(n, width, from + t * ld, to + t * width);
    memset(to + count * width, 0, (size_t)((STATE_CHUNK - count) * width) * sizeof *to);
}

/* A state with padded rows to one without, and back. */
LRNN_INLINE void pack_rows(int64_t dk, int64_t dv, const real *state, int64_t width, real *kept) {
    for (int64_t i = 0; i < dk; i++) memcpy(kept + i * dv, state + i * width, (size_t)dv * sizeof *kept);
}

LRNN_INLINE void unpack_rows(int64_t dk, int64_t dv, const real *kept, int64_t width, real *state) {
    for (int64_t i = 0; i < dk; i++) pad_row(dv, width, kept + i * dv, state + i * width);
}

#endif

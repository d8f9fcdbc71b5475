/* solve.h - triangular solves for a chunk, LANES columns at a time in registers. Only the elements c[s][r] with s < r
 * are read. */
#ifndef LRNN_KERNELS_MATRIX_DELTA_SOLVE_H
#define LRNN_KERNELS_MATRIX_DELTA_SOLVE_H

#include "kernels/matrix/chunk.h"

/* Computes x_r += c[s][r] x_s for all s < r, from the first row to the last. */
LRNN_INLINE void solve_down(const real *c, real *x, int64_t ld) {
    lanes v[STATE_CHUNK];
#pragma GCC unroll 16
    for (int r = 0; r < STATE_CHUNK; r++) v[r] = lanes_at(x + r * ld);
#pragma GCC unroll 16
    for (int s = 0; s < STATE_CHUNK; s++)
#pragma GCC unroll 16
        for (int r = 0; r < STATE_CHUNK; r++)
            if (r > s) v[r] = lanes_axpy(c[s * STATE_CHUNK + r], v[s], v[r]);
#pragma GCC unroll 16
    for (int r = 0; r < STATE_CHUNK; r++) lanes_to(x + r * ld, v[r]);
}

/* Computes x_s += c[s][r] x_r for all s < r, from the last row to the first. */
LRNN_INLINE void solve_up(const real *c, real *x, int64_t ld) {
    lanes v[STATE_CHUNK];
#pragma GCC unroll 16
    for (int r = 0; r < STATE_CHUNK; r++) v[r] = lanes_at(x + r * ld);
#pragma GCC unroll 16
    for (int i = 0; i < STATE_CHUNK; i++)
#pragma GCC unroll 16
        for (int s = 0; s < STATE_CHUNK; s++)
            if (s < STATE_CHUNK - 1 - i)
                v[s] = lanes_axpy(c[s * STATE_CHUNK + STATE_CHUNK - 1 - i], v[STATE_CHUNK - 1 - i], v[s]);
#pragma GCC unroll 16
    for (int r = 0; r < STATE_CHUNK; r++) lanes_to(x + r * ld, v[r]);
}

#endif

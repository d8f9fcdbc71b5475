/* outer_head.h - where one head of an outer-product state reads and writes, for outer_chunk.h and the gates of a
 * chunk. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_HEAD_H
#define LRNN_KERNELS_MATRIX_OUTER_HEAD_H

#include "core/op.h"

/* Row t of one head is at + t * step, its gradient d + t * step; d is NULL if no gradient is wanted. `add`: the
 * gradient is added to what is there. */
struct outer_rows {
    const real *at;
    real *d;
    int64_t step;
    bool add;
};

/* One head. Widths: q and k dk, v dv, transition J x J, source and mark J, direct 1. A missing source (at NULL) is 1.
 * For J = 1 mark and direct may both be missing: then the state is read after its update, as with mark = transition and
 * direct = source. */
struct outer_head {
    struct outer_rows q, k, v, transition, source, mark, direct;
    real *o;         /* forward: rows as v, o_step apart */
    const real *d_o; /* backward: its gradient */
    int64_t o_step;
    real *kept; /* the J states before each chunk, dk x dv, kept_step apart, from forward; NULL: recomputed */
    int64_t kept_step;
};

#endif

/* outer_head.h - where one head of an outer-product state reads and writes, for outer_chunk.h and the gates of a
 * chunk. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_HEAD_H
#define LRNN_KERNELS_MATRIX_OUTER_HEAD_H

#include "core/op.h"

/* Row t of one head: at + t * step. Its gradient, if wanted (d not NULL): d + t * step, added to what is there or
 * not. */
struct outer_rows {
    const real *at;
    real *d;
    int64_t step;
    bool add;
};

/* One head. q, k: dk wide, v: dv; gates: transition J x J, source and mark J, direct 1. source may be missing (at
 * NULL): 1; mark and direct may be missing together where J = 1: then the state is read after its update, mark =
 * transition, direct = source. */
struct outer_head {
    struct outer_rows q, k, v, transition, source, mark, direct;
    real *o;         /* forward: rows as v, o_step apart */
    const real *d_o; /* backward: its gradient */
    int64_t o_step;
    real *kept; /* the J states before each chunk, dk x dv, kept_step apart, from forward; NULL: computed again */
    int64_t kept_step;
};

#endif

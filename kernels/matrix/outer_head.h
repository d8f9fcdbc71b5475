/* outer_head.h - where one head of an outer-product state reads and writes. outer_chunk.h and chunk_gates.h use it. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_HEAD_H
#define LRNN_KERNELS_MATRIX_OUTER_HEAD_H

#include "core/op.h"

/* Rows of one head: row t is at + t * step, and its gradient d + t * step. d is NULL if no gradient is wanted. With
 * `add`, the gradient is added to earlier values. */
struct outer_rows {
    const real *at;
    real *d;
    int64_t step;
    bool add;
};

/* One head. Rows have these widths: q and k dk, v dv, transition J x J, source and mark J, direct 1. A missing source
 * (its `at` is NULL) means 1. For J = 1, mark and direct may both be missing. The state is then read after its update,
 * which is the case mark = transition, direct = source. */
struct outer_head {
    struct outer_rows q, k, v, transition, source, mark, direct;
    real *o;         /* forward: its rows lie o_step apart */
    const real *d_o; /* backward: gradient of o */
    int64_t o_step;
    /* the J states before each chunk, dk x dv, kept_step apart, which forward stored; NULL: computed again */
    real *kept;
    int64_t kept_step;
};

#endif

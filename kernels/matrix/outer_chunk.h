/* outer_chunk.h - outer-product states on the CPU, a chunk of tokens at a time: what the chunkwise kernels of
 * scan_outer and scan_plstm are instances of. A head keeps J states C[i], dk x dv, coupled by a J x J transition:
 *   o_t = scale (sum_i M_t[i] C_{t-1}[i]^T q_t + D_t (q_t . k_t) v_t)
 *   C_t[i] = sum_j T_t[i][j] C_{t-1}[j] + S_t[i] k_t v_t^T
 * scan_plstm is the whole of it, scan_outer the case J = 1, where several heads may share q and k. */
#ifndef LRNN_KERNELS_MATRIX_STATE_OUTER_H
#define LRNN_KERNELS_MATRIX_STATE_OUTER_H

#include "core/op.h"

/* Row t of one head: at + t * step. Its gradient, if wanted (d not NULL): d + t * step, added to what is there or not. */
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

struct outer_sizes {
    int64_t B, T, heads, share, J, dk, dv; /* share: neighbouring heads with the same q and k */
    real scale;
    bool keeps; /* heads have `kept` */
};

/* Head h of sequence b of a call. */
typedef struct outer_head outer_head_at(const struct call *c, int64_t b, int64_t h);

/* Bytes of scratch of one pass. */
size_t outer_chunks_bytes(const struct call *c, const struct outer_sizes *s, enum pass pass);

/* One pass over all heads of all sequences. */
void outer_chunks_run(const struct call *c, const struct outer_sizes *s, enum pass pass, outer_head_at *head_at);

#endif

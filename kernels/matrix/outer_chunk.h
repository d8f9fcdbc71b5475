/* outer_chunk.h - outer-product states on the CPU, a chunk of tokens at a time, for the chunkwise kernels of scan_outer
 * and scan_plstm. A head keeps J states C[i], dk x dv, coupled by a J x J transition:
 *   o_t = scale (sum_i M_t[i] C_{t-1}[i]^T q_t + D_t (q_t . k_t) v_t)
 *   C_t[i] = sum_j T_t[i][j] C_{t-1}[j] + S_t[i] k_t v_t^T
 * scan_plstm is the general case, scan_outer the case J = 1, where several heads may share q and k. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_CHUNK_H
#define LRNN_KERNELS_MATRIX_OUTER_CHUNK_H

#include "kernels/matrix/outer_head.h"

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

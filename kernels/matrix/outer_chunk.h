/* outer_chunk.h - outer-product states on the CPU, a chunk of tokens at a time. The chunkwise kernels of scan_outer and
 * scan_plstm use it. A head has J states C[i], dk x dv, which a J x J transition couples:
 *   o_t = scale (sum_i M_t[i] C_{t-1}[i]^T q_t + D_t (q_t . k_t) v_t)
 *   C_t[i] = sum_j T_t[i][j] C_{t-1}[j] + S_t[i] k_t v_t^T
 * scan_plstm is the general case. In scan_outer J = 1, and several heads may share q and k. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_CHUNK_H
#define LRNN_KERNELS_MATRIX_OUTER_CHUNK_H

#include "kernels/matrix/outer_head.h"

struct outer_sizes {
    int64_t B, T, heads, share, J, dk, dv; /* share: number of neighbouring heads that have the same q and k */
    real scale;
    bool keeps; /* forward stores states; heads then have `kept` */
};

/* Returns head h of sequence b of a call. */
typedef struct outer_head outer_head_at(const struct call *c, int64_t b, int64_t h);

/* Returns the bytes of scratch of one pass. */
size_t outer_chunks_bytes(const struct call *c, const struct outer_sizes *s, enum pass pass);

/* Computes one pass over all heads of all sequences. */
void outer_chunks_run(const struct call *c, const struct outer_sizes *s, enum pass pass, outer_head_at *head_at);

#endif

/* loaded_rows.cuh - loops over the rows of a state that is read and written. The compiler must assume that a row's
 * store changes the next row's load, so each row would wait for the one before. Here several are read, then written. */
#ifndef LRNN_KERNELS_MATRIX_LOADED_ROWS_CUH
#define LRNN_KERNELS_MATRIX_LOADED_ROWS_CUH

#include "core/cuda/cuda.cuh"

#define LOADED_ROWS 4 /* for rows in shared memory, or if many warps can wait at the same time */

template <int N> struct row_count { static constexpr int n = N; };

/* Calls rows(row_count<N>(), i) for rows `begin` to `end` of a state: MOST rows per call, the last ones singly. */
template <int MOST = LOADED_ROWS, class Index, class Rows>
__device__ __forceinline__ void each_rows(int64_t begin, Index end, Rows &&rows) {
    Index i = (Index)begin;
    for (; i + MOST <= end; i += MOST) rows(row_count<MOST>(), i);
    if constexpr (MOST > 1) each_rows<MOST / 4>(i, end, rows);
}

#endif

/* gemm.h - the one door to OpenBLAS: a single-threaded matrix product in the working type.
 *
 * Threads are ours: a kernel cuts its product into tiles as a function of the sizes alone and OpenMP threads take whole
 * tiles, so the bits do not depend on the number of threads. OpenBLAS itself must run on one thread: gemm_init. */
#ifndef LRNN_KERNELS_GEMM_H
#define LRNN_KERNELS_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/real.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes OpenBLAS single-threaded. To be called first thing in main (and in test programs), before any thread runs or
 * file is open: where OpenBLAS did not recognise the CPU and fell back to kernels without AVX, the process starts
 * itself again with OPENBLAS_CORETYPE naming kernels its CPU can run (several times faster). A user's setting is
 * respected. */
void gemm_init(void);

/* The kernels OpenBLAS uses, "SkylakeX"; part of every record because results differ between them in rounding. */
const char *gemm_core(void);

/* C = alpha op(A) op(B) + beta C, row-major: op(A) is M x K, op(B) is K x N, C is M x N with row stride ldc >= N; A and
 * B are stored as they are before op, with row strides lda and ldb. beta = 0 does not read C. M or N of 0 does nothing;
 * K >= 1. Runs on the calling thread; safe to call from several threads at once. */
void real_gemm(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, real alpha, const real *A,
               int64_t lda, const real *B, int64_t ldb, real beta, real *C, int64_t ldc);

#ifdef __cplusplus
}
#endif
#endif

/* gemm.h - the only interface to matrix products: oneDNN in float, OpenBLAS in double, on the calling thread.
 *
 * We do the threading: a kernel cuts its product into tiles by sizes only, and OpenMP threads take whole tiles, so the
 * bits do not depend on the number of threads. The library itself runs on one thread. */
#ifndef LRNN_KERNELS_LIB_GEMM_H
#define LRNN_KERNELS_LIB_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/real.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Must be called before the first product and before any thread runs; a second call does nothing. In the double build
 * it makes OpenBLAS single-threaded. libraries_init (libraries.h) calls it. */
void gemm_init(void);

/* The value for OPENBLAS_CORETYPE if OpenBLAS did not recognise the CPU and fell back to kernels without AVX, which are
 * several times slower; else NULL, and always NULL in float. */
const char *gemm_core(void);

/* The library and the kernels that it chose for this CPU, "oneDNN AVX512_CORE" or "OpenBLAS SkylakeX". It is part of
 * every record, because they differ in rounding. */
const char *gemm_library(void);

/* gemm_library() with the version and how it was built, for people. */
const char *gemm_about(void);

/* C (+)= alpha op(A) op(B), row-major: op(A) is M x K, op(B) is K x N, C is M x N with row stride ldc >= N; A and B are
 * stored without op, with row strides lda and ldb. Without `add` C is not read. M or N of 0 does nothing;
 * K >= 1. Safe to call from several threads at once. A thread allocates when it meets a shape for the first time. */
void real_gemm(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, real alpha, const real *A,
               int64_t lda, const real *B, int64_t ldb, bool add, real *C, int64_t ldc);

/* C (+)= op(A) op(B) + bias in each row, for factors in bf16 (kernels/lib/round.h); products are summed in `real`. bias
 * may be NULL. If the CPU has no instructions for bf16, the factors are first widened in temporary memory. */
void gemm_bf16(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, const uint16_t *A, int64_t lda,
               const uint16_t *B, int64_t ldb, const real *bias, bool add, real *C, int64_t ldc);

/* Like gemm_bf16, but always widens the factors. */
void gemm_widened(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, const uint16_t *A, int64_t lda,
                  const uint16_t *B, int64_t ldb, const real *bias, bool add, real *C, int64_t ldc);

/* True if gemm_bf16 is faster than real_gemm on this CPU. With AMX it is several times faster. With only AVX512_BF16, a
 * whole step is 1.6 times faster on AMD's Zen 4, but takes twice as long on Emerald Rapids. */
bool gemm_bf16_pays(void);

/* C = A B^T + bias in each row, a linear map: A M x K, B N x K, C M x N, without gaps between rows. bias NULL: none. */
void real_gemm_bias(int64_t M, int64_t N, int64_t K, const real *A, const real *B, const real *bias, real *C);

#ifdef __cplusplus
}
#endif
#endif

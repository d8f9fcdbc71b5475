/* gemm.h - the only interface to matrix products: oneDNN in float, OpenBLAS in double, on the calling thread.
 *
 * The program does the threading itself: a kernel cuts its product into tiles, which depend only on sizes, and OpenMP
 * threads compute whole tiles. So the bits do not depend on the number of threads. The library uses a single thread. */
#ifndef LRNN_KERNELS_LIB_GEMM_H
#define LRNN_KERNELS_LIB_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/real.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Call it before the first product and before any thread runs; a second call does nothing. In the double build it makes
 * OpenBLAS single-threaded. libraries_init (libraries.h) calls it. */
void gemm_init(void);

/* Returns the value for OPENBLAS_CORETYPE if OpenBLAS did not recognise the CPU and uses kernels without AVX, which are
 * several times slower; else NULL. In float it always returns NULL. */
const char *gemm_core(void);

/* Returns the library and the kernels that it uses on this CPU, such as "oneDNN AVX512_CORE" or "OpenBLAS SkylakeX".
 * Every record has this text, because libraries and kernels differ in rounding. */
const char *gemm_library(void);

/* Returns gemm_library() with the version and how the library was built, for people. */
const char *gemm_about(void);

/* Computes C (+)= alpha op(A) op(B), row-major: op(A) is M x K, op(B) is K x N, C is M x N with rows ldc >= N apart. A
 * and B are stored without op, with rows lda and ldb apart. Without `add`, C is not read. If M or N is 0, it does
 * nothing; K >= 1. Several threads may call it at once. A thread allocates memory when it meets a shape for the first
 * time. */
void real_gemm(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, real alpha, const real *A,
               int64_t lda, const real *B, int64_t ldb, bool add, real *C, int64_t ldc);

/* Computes C (+)= op(A) op(B) + bias in each row, for factors in bf16 (kernels/lib/round.h). Products are summed in
 * `real`. bias may be NULL. If the CPU has no instructions for bf16, the factors are first converted to `real` in
 * temporary memory. */
void gemm_bf16(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, const uint16_t *A, int64_t lda,
               const uint16_t *B, int64_t ldb, const real *bias, bool add, real *C, int64_t ldc);

/* Like gemm_bf16, but always converts the factors. */
void gemm_widened(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, const uint16_t *A, int64_t lda,
                  const uint16_t *B, int64_t ldb, const real *bias, bool add, real *C, int64_t ldc);

/* Whether gemm_bf16 is faster than real_gemm on this CPU. With AMX it is several times faster. With AVX512_BF16 but
 * without AMX, a whole step is 1.6 times faster on AMD's Zen 4, but takes twice as long on Emerald Rapids. */
bool gemm_bf16_pays(void);

/* Computes the linear map C = A B^T + bias in each row: A M x K, B N x K, C M x N, without gaps between rows. bias may
 * be NULL. */
void real_gemm_bias(int64_t M, int64_t N, int64_t K, const real *A, const real *B, const real *bias, real *C);

#ifdef __cplusplus
}
#endif
#endif

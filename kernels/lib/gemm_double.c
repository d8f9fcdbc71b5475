/* gemm_double.c - the products of the double build: OpenBLAS on one thread, with kernels that suit the CPU. See
 * gemm.h. */
#include "kernels/lib/gemm.h"

#if REAL_IS_DOUBLE

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gemm_library(void) {
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "OpenBLAS %s", openblas_get_corename());
    return text;
}

const char *gemm_about(void) {
    return openblas_get_config();
}

/* While it is loaded, OpenBLAS chooses its kernels from a table of CPU model numbers. If the model is newer than the
 * library, it chooses "Prescott", which has only SSE. This function finds the kernels that the CPU can really run from
 * its feature bits. */
const char *gemm_core(void) {
#if defined(__x86_64__)
    if (getenv("OPENBLAS_CORETYPE") || strcmp(openblas_get_corename(), "Prescott") != 0) return NULL;
    __builtin_cpu_init();
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (avx512) return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
    return NULL;
}

void gemm_init(void) {
    /* after a fork, this call would start the threads again */
    if (openblas_get_num_threads() != 1) openblas_set_num_threads(1);
}

void real_gemm(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, real alpha, const real *A,
               int64_t lda, const real *B, int64_t ldb, bool add, real *C, int64_t ldc) {
    if (M <= 0 || N <= 0) return;
    CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans, tb = transpose_b ? CblasTrans : CblasNoTrans;
    cblas_dgemm(CblasRowMajor, ta, tb, (int)M, (int)N, (int)K, alpha, A, (int)lda, B, (int)ldb, add, C, (int)ldc);
}

/* The bias is written to C first. This costs nothing, because OpenBLAS would otherwise write zeros there. */
void real_gemm_bias(int64_t M, int64_t N, int64_t K, const real *A, const real *B, const real *bias, real *C) {
    for (int64_t r = 0; r < M && bias; r++) memcpy(C + r * N, bias, (size_t)N * sizeof *C);
    real_gemm(false, true, M, N, K, 1, A, K, B, K, bias != NULL, C, N);
}

void gemm_bf16(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, const uint16_t *A, int64_t lda,
               const uint16_t *B, int64_t ldb, const real *bias, bool add, real *C, int64_t ldc) {
    gemm_widened(transpose_a, transpose_b, M, N, K, A, lda, B, ldb, bias, add, C, ldc);
}

bool gemm_bf16_pays(void) {
    return false;
}

#endif

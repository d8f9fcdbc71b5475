/* cuda_gemm.cuh - products of matrices by cuBLAS, row-major as everywhere here. */
#ifndef LRNN_KERNELS_CUDA_GEMM_CUH
#define LRNN_KERNELS_CUDA_GEMM_CUH

#include "kernels/lib/cuda.cuh"

#if REAL_IS_DOUBLE
#define cublas_gemm cublasDgemm
#else
#define cublas_gemm cublasSgemm
#endif

/* C (M x N) (+)= op(A) op(B) with K summed over; row-major, each ld a row's length in memory, so that rows may lie
 * apart. cuBLAS sees the transposes: C^T = op(B)^T op(A)^T. */
static inline void cuda_gemm(const struct exec *x, enum precision precision, bool transpose_a, bool transpose_b,
                             int64_t M, int64_t N, int64_t K, const real *A, int64_t lda, const real *B, int64_t ldb,
                             bool accumulate, real *C, int64_t ldc) {
    struct cuda_context *cuda = x->place->cuda;
    const real one = 1, before = accumulate ? 1 : 0;
    bool full = precision == PRECISION_FULL;
    CUBLAS_TRY(cuda, cublasSetMathMode(cuda->blas, full ? CUBLAS_DEFAULT_MATH : CUBLAS_TF32_TENSOR_OP_MATH));
    CUBLAS_TRY(cuda,
               cublas_gemm(cuda->blas, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                           (int)N, (int)M, (int)K, &one, B, (int)ldb, A, (int)lda, &before, C, (int)ldc));
}

#endif

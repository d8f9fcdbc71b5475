/* cuda_gemm.cuh - products of matrices by cuBLAS. Matrices are row-major, as everywhere in this program. */
#ifndef LRNN_KERNELS_LIB_CUDA_GEMM_CUH
#define LRNN_KERNELS_LIB_CUDA_GEMM_CUH

#include "kernels/lib/cuda.cuh"

#if REAL_IS_DOUBLE
#define cublas_gemm cublasDgemm
#else
#define cublas_gemm cublasSgemm
#endif

/* C (M x N) (+)= op(A) op(B), which sums over K. Matrices are row-major. Each ld is the distance of two rows in memory,
 * so rows may have gaps between them. A and B are rounded to the precision of the product, and have precision_bytes of
 * it per number; C has reals. */
struct product {
    bool transpose_a, transpose_b;
    int64_t M, N, K;
    const void *A;
    int64_t lda;
    const void *B;
    int64_t ldb;
    bool accumulate;
    real *C;
    int64_t ldc;
};

/* Additional work in the launch of a product: none; add bias[n] to column n of C; write the sum of row m of op(A) to
 * sums[m]. */
enum epilogue { EPILOGUE_NONE, EPILOGUE_BIAS, EPILOGUE_SUMS };

/* Computes the product and the additional work in one launch of cublasLt, by the algorithm that is fastest at these
 * sizes (cuda_epilogue.cu). `vector` is the bias or the sums. False: cublasLt has no such product at these sizes on
 * this device (for doubles it never has), and nothing was done. */
bool cuda_gemm_epilogue(const struct exec *x, enum precision precision, const struct product &p, enum epilogue epilogue,
                        real *vector);

/* Computes the product. cuBLAS sees the transposed matrices: C^T = op(B)^T op(A)^T. */
static inline void cuda_gemm(const struct exec *x, enum precision precision, const struct product &p) {
    struct cuda_context *cuda = x->place->cuda;
    const real one = 1, before = p.accumulate ? 1 : 0;
    cublasOperation_t op_b = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                      op_a = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (cuda_gemm_epilogue(x, precision, p, EPILOGUE_NONE, nullptr)) return;
    bool exact = precision != PRECISION_TF32;
    CUBLAS_TRY(cuda, cublasSetMathMode(cuda->now.blas, exact ? CUBLAS_DEFAULT_MATH : CUBLAS_TF32_TENSOR_OP_MATH));
    if (precision_bytes(precision) < sizeof(real))
        CUBLAS_TRY(cuda, cublasGemmEx(cuda->now.blas, op_b, op_a, (int)p.N, (int)p.M, (int)p.K, &one, p.B, CUDA_R_16BF,
                                      (int)p.ldb, p.A, CUDA_R_16BF, (int)p.lda, &before, p.C, CUDA_R_32F, (int)p.ldc,
                                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    else
        CUBLAS_TRY(cuda, cublas_gemm(cuda->now.blas, op_b, op_a, (int)p.N, (int)p.M, (int)p.K, &one, (const real *)p.B,
                                     (int)p.ldb, (const real *)p.A, (int)p.lda, &before, p.C, (int)p.ldc));
}

/* Computes the wanted gradients of y = x W^T + b: of W (O x I), input 1 of the call, from dy and x as the products read
 * them; and of b (O), input 2, from `exact`, which is dy before rounding. pitch: distance of dy's rows; it is O if
 * there is a bias. exact NULL: the gradient of b is already there. sums: scratch of cuda_column_sums. */
static inline void cuda_weight_gradients(const struct call *c, const struct exec *x, enum precision precision,
                                         int64_t rows, int64_t O, int64_t I, const void *dy, int64_t pitch,
                                         const void *in, const real *exact, real *sums) {
    const struct product p = {true, false, O, I, rows, dy, pitch, in, I, call_accumulates(c, 1), c->din[1], I};
    bool together = c->din[1] && c->din[2] && dy == exact && !call_accumulates(c, 2);
    if (together && cuda_gemm_epilogue(x, precision, p, EPILOGUE_SUMS, c->din[2])) return;
    if (c->din[1]) cuda_gemm(x, precision, p);
    if (c->din[2] && exact)
        cuda_column_sums(c, x, rows, O, matrix_term{exact}, c->din[2], call_accumulates(c, 2), sums);
}

#endif

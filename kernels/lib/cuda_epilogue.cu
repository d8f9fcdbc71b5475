/* cuda_epilogue.cu - products by cublasLt that also add a bias or sum a factor's rows in the same launch; see
 * cuda_gemm.cuh.
 *
 * The algorithm is the first that cublasLt names for the sizes, the device and the constraints below, so it is the same
 * in every run. Since the caller gives the workspace, bits do not depend on what other streams do (cuBLAS, "Results
 * reproducibility"). The algorithm may cut sums over K into parts, which a second launch then adds in order. It may not
 * let blocks add their parts to C in turn (CUBLASLT_REDUCTION_SCHEME_INPLACE). */
#include "kernels/lib/cuda_gemm.cuh"

#if REAL_IS_DOUBLE

bool cuda_gemm_epilogue(const struct exec *, enum precision, const struct product &, enum epilogue, real *) {
    return false;
}

#else

namespace {

/* cuBLAS stores matrices by columns, so it computes C^T = op(B)^T op(A)^T. Our bias of C's columns is then a bias of
 * rows, which CUBLASLT_EPILOGUE_BIAS adds; and our sums of op(A)'s rows are sums over K of cuBLAS's second factor,
 * CUBLASLT_EPILOGUE_BGRADB. The description is on the stack: nothing is allocated, also while a stream is captured. */
struct description {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t b, a, c;
    cublasLtMatmulPreferenceOpaque_t wishes;
};

bool describe_product(struct cuda_context *cuda, struct description *d, enum precision precision,
                      const struct product &p, enum epilogue epilogue, real *vector) {
    auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
        return CUBLAS_TRY(cuda, cublasLtMatmulDescSetAttribute(&d->product, attribute, &value, sizeof value));
    };
    int32_t op_b = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, op_a = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t beside = epilogue == EPILOGUE_BIAS ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_BGRADB;
    cublasComputeType_t compute = precision == PRECISION_FULL ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
    return CUBLAS_TRY(cuda, cublasLtMatmulDescInit(&d->product, compute, CUDA_R_32F)) &&
           set(CUBLASLT_MATMUL_DESC_TRANSA, op_b) && set(CUBLASLT_MATMUL_DESC_TRANSB, op_a) &&
           set(CUBLASLT_MATMUL_DESC_EPILOGUE, beside) && set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
}

bool describe_matrices(struct cuda_context *cuda, struct description *d, const struct product &p) {
    auto matrix = [&](cublasLtMatrixLayout_t layout, int64_t rows, int64_t cols, int64_t ld) {
        return CUBLAS_TRY(cuda, cublasLtMatrixLayoutInit(layout, CUDA_R_32F, (uint64_t)rows, (uint64_t)cols, ld));
    };
    return matrix(&d->b, p.transpose_b ? p.K : p.N, p.transpose_b ? p.N : p.K, p.ldb) &&
           matrix(&d->a, p.transpose_a ? p.M : p.K, p.transpose_a ? p.K : p.M, p.lda) && matrix(&d->c, p.N, p.M, p.ldc);
}

/* Returns the bytes that divide the address, at most a cache line. So the choice of the algorithm does not depend on
 * where memory happens to be. */
uint32_t alignment(const void *at) {
    uint32_t bytes = ARENA_ALIGN;
    while ((uintptr_t)at % bytes) bytes /= 2;
    return bytes;
}

bool describe_wishes(struct cuda_context *cuda, struct description *d, const struct product &p) {
    auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
        return CUBLAS_TRY(cuda, cublasLtMatmulPreferenceSetAttribute(&d->wishes, attribute, &value, sizeof value));
    };
    uint64_t most = CUDA_BLAS_WORKSPACE;
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    return CUBLAS_TRY(cuda, cublasLtMatmulPreferenceInit(&d->wishes)) &&
           set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most) &&
           set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions) &&
           set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p.B)) &&
           set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p.A)) &&
           set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.C)) &&
           set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p.C));
}

/* Whether the library has no such product. It says so before anything is queued. */
bool is_refusal(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
           status == CUBLAS_STATUS_INVALID_VALUE;
}

} // namespace

bool cuda_gemm_epilogue(const struct exec *x, enum precision precision, const struct product &p, enum epilogue epilogue,
                        real *vector) {
    struct cuda_context *cuda = x->place->cuda;
    cublasLtHandle_t lt =
        reinterpret_cast<cublasLtHandle_t>(cuda->now.blas); /* a handle of cuBLAS is also one of cublasLt */
    const float one = 1, before = p.accumulate ? 1 : 0;
    struct description d;
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    /* The place stores a failure, as for any launch, so nothing remains to be done here. */
    if (!describe_product(cuda, &d, precision, p, epilogue, vector) || !describe_matrices(cuda, &d, p) ||
        !describe_wishes(cuda, &d, p))
        return true;
    cublasStatus_t asked =
        cublasLtMatmulAlgoGetHeuristic(lt, &d.product, &d.b, &d.a, &d.c, &d.c, &d.wishes, 1, &found, &count);
    if (is_refusal(asked)) return false;
    if (!cublas_check(cuda, asked, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__)) return true;
    if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS) return false;
    cublasStatus_t done = cublasLtMatmul(lt, &d.product, &one, p.B, &d.b, p.A, &d.a, &before, p.C, &d.c, p.C, &d.c,
                                         &found.algo, cuda->now.blas_workspace, CUDA_BLAS_WORKSPACE, cuda->now.stream);
    if (is_refusal(done)) return false;
    cublas_check(cuda, done, "cublasLtMatmul", __FILE__, __LINE__);
    return true;
}

#endif

/* cuda_blas.cc - see cuda_host.h: the products of cuBLAS and cublasLt by real_gemm, in the order of the stream. */
#include "tests/cuda/host/cuda_host.h"

#include "kernels/lib/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

struct cuda_host_blas {
    cudaStream_t stream;
};

const char *cublasGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS         ? "success"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed to the function"
           : status == CUBLAS_STATUS_NOT_SUPPORTED ? "the requested functionality is not supported"
                                                   : "execution failed";
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
    *version = 120000;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    cuda_host_rest rest;
    cuda_host_wait_for_device();
    *handle = new cuda_host_blas();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    cuda_host_rest rest;
    cuda_host_wait_for_device();
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) {
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t product(cudaStream_t stream, std::function<void()> work) {
    cudaError_t result = cuda_host_enqueue(stream, work);
    return result == cudaSuccess                 ? CUBLAS_STATUS_SUCCESS
           : result == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                                 : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* A matrix that lies in columns, as real_gemm reads it: as it is, or a copy of its bf16 numbers as reals. */
struct matrix {
    std::vector<real> copy;
    const real *at;

    matrix(const void *from, cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld) {
        for (int64_t i = 0; type == CUDA_R_16BF && i < (cols - 1) * ld + rows; i++) {
            uint32_t bits = (uint32_t)((const uint16_t *)from)[i] << 16;
            float x;
            memcpy(&x, &bits, sizeof x);
            copy.push_back(x);
        }
        at = copy.empty() ? (const real *)from : copy.data();
    }
    matrix(const matrix &) = delete;
};

/* Columns side by side: what real_gemm sees by rows is C^T = op(B)^T op(A)^T. `type`: of A and B. */
static cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                               cudaDataType_t type, real alpha, const void *a, int lda, const void *b, int ldb,
                               real beta, real *c, int ldc) {
    bool turned_a = ta == CUBLAS_OP_T, turned_b = tb == CUBLAS_OP_T;
    bool fit = lda >= (turned_a ? k : m) && ldb >= (turned_b ? n : k) && ldc >= m;
    if (!fit || (beta != 0 && beta != 1)) return CUBLAS_STATUS_INVALID_VALUE;
    return product(handle->stream, [=] {
        matrix A(a, type, turned_a ? k : m, turned_a ? m : k, lda), B(b, type, turned_b ? n : k, turned_b ? k : n, ldb);
        real_gemm(turned_b, turned_a, n, m, k, alpha, B.at, ldb, A.at, lda, beta != 0, c, ldc);
    });
}

cublasStatus_t cuda_host_gemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                              const real *alpha, const real *a, int lda, const real *b, int ldb, const real *beta,
                              real *c, int ldc) {
    return multiply(handle, ta, tb, m, n, k, CUDA_R_32F, *alpha, a, lda, b, ldb, *beta, c, ldc);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType_t of_a, int lda, const void *b,
                            cudaDataType_t of_b, int ldb, const void *beta, void *c, cudaDataType_t of_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
    bool known = of_a == CUDA_R_16BF && of_b == CUDA_R_16BF && of_c == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F;
    if (!known || REAL_IS_DOUBLE) return CUBLAS_STATUS_NOT_SUPPORTED;
    return multiply(handle, ta, tb, m, n, k, of_a, *(const real *)alpha, a, lda, b, ldb, *(const real *)beta, (real *)c,
                    ldc);
}

/* --- cublasLt ----------------------------------------------------------------------------------------------------- */

#define WORKSPACE      ((uint64_t)1024) /* bytes that a product wants, where it may have them */
#define BIAS_ALIGNMENT 16u              /* bytes, the most that an algorithm needs: its loads are no longer */

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t product, cublasComputeType_t compute, cudaDataType_t scale) {
    *product = {compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
    return CUBLAS_STATUS_SUCCESS;
}

/* Into an attribute of that type, which has its size. */
template <class T> static cublasStatus_t take(T *attribute, const void *value, size_t size) {
    if (!value || size != sizeof *attribute) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(attribute, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size) {
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&product->op_a, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&product->op_b, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&product->epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&product->bias, value, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType_t type, uint64_t rows,
                                        uint64_t cols, int64_t ld) {
    *layout = {type, rows, cols, ld};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t wishes) {
    *wishes = {0, 7, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t wishes,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t size) {
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return take(&wishes->workspace, value, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return take(&wishes->reductions, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return take(&wishes->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* D (m x n) = op(A) (m x k) op(B) (k x n), in columns. */
struct sizes {
    int64_t m, n, k;
};

static bool column_major(const cublasLtMatrixLayoutOpaque_t *l, int32_t op, int64_t rows, int64_t cols) {
    bool turned = op == CUBLAS_OP_T;
    return (int64_t)l->rows == (turned ? cols : rows) && (int64_t)l->cols == (turned ? rows : cols) &&
           l->ld >= (int64_t)l->rows && l->rows <= INT32_MAX && l->cols <= INT32_MAX;
}

/* Checks that the matrices fit each other, and that there is such a product: one of the build's own floats, or of bf16
 * with a sum in floats; doubles have none with an epilogue. */
static cublasStatus_t examine(cublasLtMatmulDesc_t p, cublasLtMatrixLayout_t A, cublasLtMatrixLayout_t B,
                              cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D, struct sizes *s) {
    *s = {(int64_t)D->rows, (int64_t)D->cols, (int64_t)(p->op_a == CUBLAS_OP_T ? A->rows : A->cols)};
    bool fit = column_major(A, p->op_a, s->m, s->k) && column_major(B, p->op_b, s->k, s->n) &&
               column_major(C, CUBLAS_OP_N, s->m, s->n) && column_major(D, CUBLAS_OP_N, s->m, s->n);
    if (!fit || s->m < 1 || s->n < 1 || s->k < 1) return CUBLAS_STATUS_INVALID_VALUE;
    bool single = p->scale == CUDA_R_32F;
    cudaDataType_t type = single ? CUDA_R_32F : CUDA_R_64F;
    bool computed = single ? p->compute == CUBLAS_COMPUTE_32F || p->compute == CUBLAS_COMPUTE_32F_FAST_TF32
                           : p->compute == CUBLAS_COMPUTE_64F;
    bool halves = A->type == CUDA_R_16BF && B->type == CUDA_R_16BF && p->compute == CUBLAS_COMPUTE_32F;
    bool typed = halves || (A->type == type && B->type == type);
    if (!computed || !typed || C->type != type || D->type != type || single == REAL_IS_DOUBLE)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (p->epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
    if (p->epilogue != CUBLASLT_EPILOGUE_BIAS && p->epilogue != CUBLASLT_EPILOGUE_BGRADB)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!single || (halves && p->epilogue == CUBLASLT_EPILOGUE_BGRADB)) return CUBLAS_STATUS_NOT_SUPPORTED;
    return p->bias ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static uint32_t alignment_of(const void *at) {
    uint32_t bytes = 256;
    while ((uintptr_t)at % bytes) bytes /= 2;
    return bytes;
}

/* Returns how many algorithms there are, at most `most`, and gives the microseconds of each; -1: it is refused. */
static int algorithms(int most, double *us) {
    const char *words = getenv("LRNN_CUDA_HOST_ALGORITHMS");
    int n = 0;
    if (!words || !*words) return us[0] = 0, 1;
    for (char *end; n < most && *words; words = end, n++) {
        us[n] = strtod(words, &end);
        if (end == words) us[n] = -1, end = strchr(const_cast<char *>(words), '-') + 1;
        while (*end == ' ') end++;
    }
    return n;
}

#define ALGORITHMS 16

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t A, cublasLtMatrixLayout_t B,
                                              cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D,
                                              cublasLtMatmulPreference_t wishes, int wanted,
                                              cublasLtMatmulHeuristicResult_t *found, int *count) {
    const char *none = getenv("LRNN_CUDA_HOST_NO_EPILOGUES");
    struct sizes s;
    *count = 0;
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = examine(product, A, B, C, D, &s);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (none && *none != '3') return *none == '1' ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    cublasLtMatmulAlgo_t algo = {product->epilogue, {}, wishes->workspace < WORKSPACE ? (uint64_t)0 : WORKSPACE, 0};
    for (int i = 0; i < 4; i++) algo.alignment[i] = wishes->alignment[i];
    algo.alignment[4] = product->bias ? std::min(alignment_of(product->bias), BIAS_ALIGNMENT) : 1;
    double us[ALGORITHMS];
    *count = algorithms(wanted < ALGORITHMS ? wanted : ALGORITHMS, us);
    for (algo.index = 0; algo.index < (uint64_t)*count; algo.index++)
        found[algo.index] = {algo, algo.workspace, CUBLAS_STATUS_SUCCESS};
    return CUBLAS_STATUS_SUCCESS;
}

/* The sum of column j of op(B). */
static real column_sum(const real *B, int64_t ld, bool turned, int64_t k, int64_t j) {
    real sum = 0;
    for (int64_t i = 0; i < k; i++) sum += turned ? B[j + i * ld] : B[i + j * ld];
    return sum;
}

/* Destroys what lies in the workspace. D is read only with beta; BGRADB writes the bias, whatever beta is. */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t of_A, const void *B, cublasLtMatrixLayout_t of_B, const void *beta,
                              const void *C, cublasLtMatrixLayout_t of_C, void *D, cublasLtMatrixLayout_t of_D,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream) {
    struct sizes s;
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    cublasStatus_t status = examine(desc, of_A, of_B, of_C, of_D, &s);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (getenv("LRNN_CUDA_HOST_NO_EPILOGUES")) return CUBLAS_STATUS_INVALID_VALUE;
    real first = *(const real *)alpha, second = *(const real *)beta;
    if (!algorithm || algorithm->epilogue != desc->epilogue || C != D || of_C->ld != of_D->ld ||
        (second != 0 && second != 1))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    double us[ALGORITHMS];
    bool known = algorithm->index < (uint64_t)algorithms(ALGORITHMS, us);
    if (!known || us[algorithm->index] < 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    double takes = 1e-6 * us[algorithm->index];
    bool room = algorithm->workspace == 0 || (workspace && algorithm->workspace <= bytes);
    if (!room || alignment_of(workspace) < 256) return CUBLAS_STATUS_INVALID_VALUE;
    const void *pointers[] = {A, B, C, D, desc->bias, workspace};
    for (int i = 0; i < 6; i++) {
        cuda_host_check_argument("cublasLtMatmul", i, &pointers[i], sizeof pointers[i]);
        if (i < 5 && pointers[i] && alignment_of(pointers[i]) < algorithm->alignment[i])
            return CUBLAS_STATUS_INVALID_VALUE;
    }
    cublasLtMatmulDescOpaque_t p = *desc;
    bool turned_a = p.op_a == CUBLAS_OP_T, turned_b = p.op_b == CUBLAS_OP_T;
    cublasLtMatrixLayoutOpaque_t layout_a = *of_A, layout_b = *of_B;
    int64_t ldd = of_D->ld;
    size_t spoilt = algorithm->workspace;
    return product(stream, [=] {
        const matrix a(A, layout_a.type, (int64_t)layout_a.rows, (int64_t)layout_a.cols, layout_a.ld);
        const matrix b(B, layout_b.type, (int64_t)layout_b.rows, (int64_t)layout_b.cols, layout_b.ld);
        real *d = (real *)D, *bias = (real *)p.bias;
        memset(workspace, CUDA_HOST_POISON, spoilt);
        cuda_host_pass_time(takes);
        real_gemm(turned_b, turned_a, s.n, s.m, s.k, first, b.at, layout_b.ld, a.at, layout_a.ld, second != 0, d, ldd);
        for (int64_t j = 0; j < s.n; j++) {
            if (p.epilogue == CUBLASLT_EPILOGUE_BGRADB) bias[j] = column_sum(b.at, layout_b.ld, turned_b, s.k, j);
            for (int64_t i = 0; i < s.m && p.epilogue == CUBLASLT_EPILOGUE_BIAS; i++) d[i + j * ldd] += bias[i];
        }
    });
}

/* cublas_cuda.cu - loads cuBLAS when a device is opened. If cuBLAS were linked, each start of the program would load
 * and relocate its half gigabyte, which takes .4 s of processor time, even for commands that only print a table. So its
 * functions are defined here, with the names and types of its headers. They call the functions of these names in the
 * library, or in the library of cublasLt, on which cuBLAS depends. On a machine without these libraries, everything
 * runs on the CPU. */
#ifndef LRNN_CUDA_HOST
#include <cstdio>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

/* the reason why the library cannot be loaded, or the name of the function that it lacks */
static char missing[256];

static void *library(void) {
    static void *opened = dlopen("libcublas.so." TEXT(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
    return opened;
}

template <class F> static F *function(F *, const char *name) {
    void *found = library() ? dlsym(library(), name) : NULL;
    const char *why = found ? NULL : dlerror();
    if (why) snprintf(missing, sizeof missing, "cuBLAS cannot be loaded: %.200s", why);
    return reinterpret_cast<F *>(found);
}

/* Defines `name` as <cublas_v2.h> or <cublasLt.h> declares it. dlsym searches the library and its dependencies. */
#define FORWARD(name, parameters, arguments)                                                                           \
    extern "C" cublasStatus_t name parameters {                                                                        \
        static auto *const loaded = function(static_cast<cublasStatus_t(*) parameters>(name), #name);                  \
        return loaded ? loaded arguments : CUBLAS_STATUS_NOT_INITIALIZED;                                              \
    }
#define GEMM(name, type)                                                                                               \
    FORWARD(name,                                                                                                      \
            (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,                   \
             const type *alpha, const type *A, int lda, const type *B, int ldb, const type *beta, type *C, int ldc),   \
            (handle, ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc))

FORWARD(cublasCreate_v2, (cublasHandle_t * handle), (handle))
FORWARD(cublasGetVersion_v2, (cublasHandle_t handle, int *version), (handle, version))
FORWARD(cublasDestroy_v2, (cublasHandle_t handle), (handle))
FORWARD(cublasSetStream_v2, (cublasHandle_t handle, cudaStream_t stream), (handle, stream))
FORWARD(cublasSetWorkspace_v2, (cublasHandle_t handle, void *workspace, size_t bytes), (handle, workspace, bytes))
FORWARD(cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode), (handle, mode))
GEMM(cublasSgemm_v2, float)
GEMM(cublasDgemm_v2, double)
FORWARD(cublasGemmEx,
        (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
         const void *A, cudaDataType of_A, int lda, const void *B, cudaDataType of_B, int ldb, const void *beta,
         void *C, cudaDataType of_C, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm),
        (handle, ta, tb, m, n, k, alpha, A, of_A, lda, B, of_B, ldb, beta, C, of_C, ldc, compute, algorithm))
FORWARD(cublasLtMatmulDescInit_internal,
        (cublasLtMatmulDesc_t product, size_t size, cublasComputeType_t compute, cudaDataType_t scale),
        (product, size, compute, scale))
FORWARD(cublasLtMatmulDescSetAttribute,
        (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size),
        (product, attribute, value, size))
FORWARD(cublasLtMatrixLayoutInit_internal,
        (cublasLtMatrixLayout_t layout, size_t size, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld),
        (layout, size, type, rows, cols, ld))
FORWARD(cublasLtMatmulPreferenceInit_internal, (cublasLtMatmulPreference_t wishes, size_t size), (wishes, size))
FORWARD(cublasLtMatmulPreferenceSetAttribute,
        (cublasLtMatmulPreference_t wishes, cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
         size_t size),
        (wishes, attribute, value, size))
FORWARD(cublasLtMatmulAlgoGetHeuristic,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t A, cublasLtMatrixLayout_t B,
         cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D, cublasLtMatmulPreference_t wishes, int wanted,
         cublasLtMatmulHeuristicResult_t *found, int *count),
        (handle, product, A, B, C, D, wishes, wanted, found, count))
FORWARD(cublasLtMatmul,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *A,
         cublasLtMatrixLayout_t of_A, const void *B, cublasLtMatrixLayout_t of_B, const void *beta, const void *C,
         cublasLtMatrixLayout_t of_C, void *D, cublasLtMatrixLayout_t of_D, const cublasLtMatmulAlgo_t *algorithm,
         void *workspace, size_t bytes, cudaStream_t stream),
        (handle, product, alpha, A, of_A, B, of_B, beta, C, of_C, D, of_D, algorithm, workspace, bytes, stream))

extern "C" const char *cublasGetStatusString(cublasStatus_t status) {
    static auto *const loaded = function(cublasGetStatusString, "cublasGetStatusString");
    return *missing || !loaded ? missing : loaded(status);
}
#endif

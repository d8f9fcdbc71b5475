/* cublas_cuda.cu - cuBLAS, loaded when a device is opened. Linked to the program, its half gigabyte would be loaded and
 * relocated at each start, also of commands that print a table: .4 s of a processor. So its functions are defined here,
 * by the names and types of its header, and call what the library has under that name. A machine without the library
 * runs all that is not on a device. */
#ifndef LRNN_CUDA_HOST
#include <cstdio>

#include <cublas_v2.h>
#include <dlfcn.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static char missing[256]; /* why there is no library, or which function it lacks */

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

/* name as cublas_v2.h declares it. */
#define FORWARD(name, parameters, arguments)                                                                           \
    extern "C" cublasStatus_t name parameters {                                                                        \
        static auto *const loaded = function(name, #name);                                                             \
        return loaded ? loaded arguments : CUBLAS_STATUS_NOT_INITIALIZED;                                              \
    }
#define GEMM(name, type)                                                                                               \
    FORWARD(name,                                                                                                      \
            (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,                   \
             const type *alpha, const type *A, int lda, const type *B, int ldb, const type *beta, type *C, int ldc),   \
            (handle, ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc))

FORWARD(cublasCreate_v2, (cublasHandle_t * handle), (handle))
FORWARD(cublasDestroy_v2, (cublasHandle_t handle), (handle))
FORWARD(cublasSetStream_v2, (cublasHandle_t handle, cudaStream_t stream), (handle, stream))
FORWARD(cublasSetWorkspace_v2, (cublasHandle_t handle, void *workspace, size_t bytes), (handle, workspace, bytes))
FORWARD(cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode), (handle, mode))
GEMM(cublasSgemm_v2, float)
GEMM(cublasDgemm_v2, double)

extern "C" const char *cublasGetStatusString(cublasStatus_t status) {
    static auto *const loaded = function(cublasGetStatusString, "cublasGetStatusString");
    return *missing || !loaded ? missing : loaded(status);
}
#endif

/* cuda_epilogue.cu - products by cublasLt, which may also add a bias or sum a factor's rows in the same launch; see
 * cuda_gemm.cuh.
 *
 * cublasLt names up to CANDIDATES algorithms for the sizes, the device and the constraints below. When a product is met
 * for the first time, outside of a capture, each of them computes it several times, and the fastest is kept for all
 * later products of these sizes (algorithms.h). Without times (LRNN_CUDA_ALGORITHMS=0, in a capture, on a caller's
 * stream, or if there is only one) the first is kept. So a process, and all processes that read the same file, have
 * one choice; another machine may choose otherwise and then have other last bits.
 *
 * Since the caller gives the workspace, bits do not depend on what other streams do (cuBLAS, "Results
 * reproducibility"). An algorithm may cut sums over K into parts, which a second launch then adds in order. It may not
 * let blocks add their parts to C in turn (CUBLASLT_REDUCTION_SCHEME_INPLACE). */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <pthread.h>

#include "kernels/lib/algorithms.h"
#include "kernels/lib/cuda_gemm.cuh"

#if REAL_IS_DOUBLE

bool cuda_gemm_epilogue(const struct exec *, enum precision, const struct product &, enum epilogue, real *) {
    return false;
}

#else

#define CANDIDATES 8
#define ROUNDS     3 /* the least time of these counts */
#define LAUNCHES   8 /* of a round: a single launch is too short for events */
#define DEVICES    64

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
    uint32_t beside = epilogue == EPILOGUE_NONE   ? CUBLASLT_EPILOGUE_DEFAULT
                      : epilogue == EPILOGUE_BIAS ? CUBLASLT_EPILOGUE_BIAS
                                                  : CUBLASLT_EPILOGUE_BGRADB;
    cublasComputeType_t compute = precision == PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return CUBLAS_TRY(cuda, cublasLtMatmulDescInit(&d->product, compute, CUDA_R_32F)) &&
           set(CUBLASLT_MATMUL_DESC_TRANSA, op_b) && set(CUBLASLT_MATMUL_DESC_TRANSB, op_a) &&
           set(CUBLASLT_MATMUL_DESC_EPILOGUE, beside) &&
           (epilogue == EPILOGUE_NONE || set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector));
}

bool describe_matrices(struct cuda_context *cuda, struct description *d, enum precision precision,
                       const struct product &p) {
    auto matrix = [&](cublasLtMatrixLayout_t layout, cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld) {
        return CUBLAS_TRY(cuda, cublasLtMatrixLayoutInit(layout, type, (uint64_t)rows, (uint64_t)cols, ld));
    };
    cudaDataType_t factor = precision_bytes(precision) < sizeof(real) ? CUDA_R_16BF : CUDA_R_32F;
    return matrix(&d->b, factor, p.transpose_b ? p.K : p.N, p.transpose_b ? p.N : p.K, p.ldb) &&
           matrix(&d->a, factor, p.transpose_a ? p.M : p.K, p.transpose_a ? p.K : p.M, p.lda) &&
           matrix(&d->c, CUDA_R_32F, p.N, p.M, p.ldc);
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

/* One call of cuda_gemm_epilogue. */
struct request {
    struct cuda_context *cuda;
    const struct product &p;
    struct description d;
    char key[ALGORITHM_KEY];
};

/* Returns the device's name and the versions that decide how fast an algorithm is. The first call for a device asks
 * for them; "": it does not answer. */
const char *facts_of(struct cuda_context *cuda) {
    static char facts[DEVICES][320];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    cudaDeviceProp properties;
    int driver = 0, version = 0;
    char *text = facts[cuda->index % DEVICES];
    pthread_mutex_lock(&lock);
    if (!*text && CUDA_TRY(cuda, cudaGetDeviceProperties(&properties, cuda->index)) &&
        CUDA_TRY(cuda, cudaDriverGetVersion(&driver)) && CUBLAS_TRY(cuda, cublasGetVersion(cuda->now.blas, &version)))
        snprintf(text, sizeof facts[0], "%s, driver %d, cuBLAS %d", properties.name, driver, version);
    pthread_mutex_unlock(&lock);
    return text;
}

/* Sizes are those of C (M x N) and the sum (K); then the type of the factors, the distances of rows and the alignments
 * of A, B, C, vector. */
void name_product(struct request *r, enum precision precision, enum epilogue epilogue, const real *vector) {
    static const char *const with[] = {"", " bias", " sums"};
    const struct product &p = r->p;
    snprintf(r->key, sizeof r->key, "%s: %s%s %lldx%lldx%lld %s%s%s, rows %lld %lld %lld, aligned %u %u %u %u",
             facts_of(r->cuda), p.transpose_a ? "t" : "n", p.transpose_b ? "t" : "n", (long long)p.M, (long long)p.N,
             (long long)p.K, precision_name(precision), with[epilogue], p.accumulate ? " added" : "", (long long)p.lda,
             (long long)p.ldb, (long long)p.ldc, alignment(p.A), alignment(p.B), alignment(p.C), alignment(vector));
}

cublasStatus_t launch(const struct request *r, const cublasLtMatmulAlgo_t *algorithm, real *C) {
    struct cuda_context *cuda = r->cuda;
    const struct description *d = &r->d;
    const float one = 1, before = r->p.accumulate ? 1 : 0;
    auto *product = const_cast<cublasLtMatmulDescOpaque_t *>(&d->product);
    auto *b = const_cast<cublasLtMatrixLayoutOpaque_t *>(&d->b), *a = const_cast<cublasLtMatrixLayoutOpaque_t *>(&d->a);
    auto *c = const_cast<cublasLtMatrixLayoutOpaque_t *>(&d->c);
    return cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(cuda->now.blas), product, &one, r->p.B, b, r->p.A, a,
                          &before, C, c, C, c, algorithm, cuda->now.blas_workspace, CUDA_BLAS_WORKSPACE,
                          cuda->now.stream);
}

/* Returns where a product may be computed for its time alone. A sum that is to be added to cannot be computed twice, so
 * it gets the workspace of the other queue, if it fits; that queue has ended its work then. NULL: nowhere. */
real *place_of_trial(const struct request *r) {
    struct cuda_context *cuda = r->cuda;
    if (!r->p.accumulate) return r->p.C;
    if ((size_t)(r->p.M * r->p.ldc) * sizeof(real) > CUDA_BLAS_WORKSPACE) return nullptr;
    if (!CUDA_TRY(cuda, cudaStreamSynchronize(cuda->beside.stream))) return nullptr;
    return (real *)cuda->beside.blas_workspace;
}

bool may_time(const struct cuda_context *cuda) {
    const char *wanted = getenv("LRNN_CUDA_ALGORITHMS");
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
    if ((wanted && *wanted == '0') || cuda->now.borrowed || cuda->failed) return false;
    return cudaStreamIsCapturing(cuda->now.stream, &capture) == cudaSuccess && capture == cudaStreamCaptureStatusNone;
}

/* Returns the microseconds of a launch; INFINITY: the library refuses it, or the device has failed. */
double microseconds(const struct request *r, const cublasLtMatmulAlgo_t *algorithm, real *C, cudaEvent_t from,
                    cudaEvent_t to) {
    struct cuda_context *cuda = r->cuda;
    double least = INFINITY;
    if (launch(r, algorithm, C) != CUBLAS_STATUS_SUCCESS) return INFINITY; /* also loads the algorithm's kernel */
    for (int round = 0; round < ROUNDS; round++) {
        float ms = 0;
        bool good = CUDA_TRY(cuda, cudaEventRecord(from, cuda->now.stream));
        for (int i = 0; i < LAUNCHES && good; i++) good = launch(r, algorithm, C) == CUBLAS_STATUS_SUCCESS;
        if (!good || !CUDA_TRY(cuda, cudaEventRecord(to, cuda->now.stream)) ||
            !CUDA_TRY(cuda, cudaEventSynchronize(to)) || !CUDA_TRY(cuda, cudaEventElapsedTime(&ms, from, to)))
            return INFINITY;
        least = fmin(least, 1e3 * ms / LAUNCHES);
    }
    return least;
}

/* Returns the fastest of n algorithms and sets *us. -1: none was timed. */
int fastest(const struct request *r, const cublasLtMatmulHeuristicResult_t *found, int n, double *us) {
    struct cuda_context *cuda = r->cuda;
    cudaEvent_t from = nullptr, to = nullptr;
    real *C = place_of_trial(r);
    int best = -1;
    *us = INFINITY;
    bool good = C && CUDA_TRY(cuda, cudaEventCreateWithFlags(&from, cudaEventBlockingSync)) &&
                CUDA_TRY(cuda, cudaEventCreateWithFlags(&to, cudaEventBlockingSync));
    for (int i = 0; i < n && good; i++) {
        double time = found[i].state == CUBLAS_STATUS_SUCCESS ? microseconds(r, &found[i].algo, C, from, to) : INFINITY;
        if (time < *us) best = i, *us = time;
    }
    if (from) cudaEventDestroy(from);
    if (to) cudaEventDestroy(to);
    cuda->now.alone = true; /* an event is no launch */
    return best;
}

/* Chooses an algorithm. False: the library has no such product, or the place has failed, as *failed then says. */
bool choose(struct request *r, struct algorithm *a, bool *failed) {
    struct cuda_context *cuda = r->cuda;
    cublasLtMatmulHeuristicResult_t found[CANDIDATES] = {};
    int count = 0, best = 0;
    double us = 0;
    static_assert(sizeof found[0].algo <= ALGORITHM_BYTES, "an algorithm is remembered whole");
    cublasStatus_t asked =
        cublasLtMatmulAlgoGetHeuristic(reinterpret_cast<cublasLtHandle_t>(cuda->now.blas), &r->d.product, &r->d.b,
                                       &r->d.a, &r->d.c, &r->d.c, &r->d.wishes, CANDIDATES, found, &count);
    if (is_refusal(asked)) return false;
    *failed = !cublas_check(cuda, asked, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__);
    if (*failed || count == 0) return false;
    if (count > 1 && may_time(cuda)) {
        best = fastest(r, found, count, &us);
        *failed = cuda->failed;
        if (*failed) return false;
        if (best < 0) best = 0, us = 0;
    }
    if (found[best].state != CUBLAS_STATUS_SUCCESS) return false;
    *a = {};
    memcpy(a->code, &found[best].algo, sizeof found[best].algo);
    a->us = us;
    algorithms_keep(r->key, cuda, a);
    return true;
}

} // namespace

/* A remembered algorithm may be refused, for example after a change of the library that keeps its version. Then it is
 * forgotten, and another one is chosen. */
bool cuda_gemm_epilogue(const struct exec *x, enum precision precision, const struct product &p, enum epilogue epilogue,
                        real *vector) {
    struct cuda_context *cuda = x->place->cuda;
    struct request r = {cuda, p, {}, ""};
    /* The place stores a failure, as for any launch, so nothing remains to be done here. */
    if (!describe_product(cuda, &r.d, precision, p, epilogue, vector) || !describe_matrices(cuda, &r.d, precision, p) ||
        !describe_wishes(cuda, &r.d, p))
        return true;
    name_product(&r, precision, epilogue, vector);
    for (int attempt = 0; attempt < 2; attempt++) {
        struct algorithm a;
        cublasLtMatmulAlgo_t algorithm;
        bool failed = false;
        if (!algorithms_find(r.key, cuda, &a) && !choose(&r, &a, &failed)) return failed;
        memcpy(&algorithm, a.code, sizeof algorithm);
        cublasStatus_t done = launch(&r, &algorithm, p.C);
        if (!is_refusal(done)) {
            cublas_check(cuda, done, "cublasLtMatmul", __FILE__, __LINE__);
            return true;
        }
        algorithms_forget(r.key, &a);
    }
    return false;
}

#endif

/* cuda_host.h - CUDA on the host, for tests: .cu files are compiled as C++ for the CPU with this header in front of
 * them (LRNN_CUDA_HOST), and their kernels run here, so that they are checked where there is no GPU, and under
 * sanitizers.
 *
 * A kernel's threads are fibers. A block's fibers run one after the other, each until it ends or waits (barrier, warp
 * operation); blocks run one after the other. In which order is a setting: a kernel that misses a barrier computes
 * something else in another order. "Device" memory is poisoned; with LRNN_CUDA_HOST_PROTECT=1 it can be reached while a
 * kernel or a copy runs alone, and whatever else touches it ends the process. Shared memory, dynamic or not, holds NaNs
 * when a block begins; the dynamic one is exactly as large as the launch says. The blocks of a cluster run together,
 * and reach into each other's dynamic shared memory, but not before a block has begun nor when it has ended. A launch
 * that may overlap the one before it reaches "device" memory, where that is protected, once it has waited. Strict
 * where hardware is lenient: a thread that ends while others of its block or cluster wait at a barrier, lanes that name
 * each other in different masks, and fibers that all wait are failures; so are a thread that ends without having waited
 * for the launch before, where they may overlap, a kernel's argument that is an address of the host's, and memory that
 * is reserved or given back while a stream is captured.
 *
 * Queued work runs at once, or lazily, when something waits for it (LRNN_CUDA_HOST_LAZY=1): this finds a host that
 * reads or changes too early. Threads may use it at once, each its own streams: kernels and copies run one after
 * the other, whoever has queued them.
 *
 * Only what the project's kernels use is here; the names are CUDA's. Implementation: cuda_host.cc (threads and
 * grids), cuda_blas.cc (cuBLAS), cuda_runtime.cc (all else). */
#ifndef LRNN_TESTS_CUDA_HOST_CUDA_HOST_H
#define LRNN_TESTS_CUDA_HOST_CUDA_HOST_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "core/real.h"

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_HOST_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define CUDA_HOST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_HOST_ASAN 1
#elif __has_feature(thread_sanitizer)
#define CUDA_HOST_TSAN 1
#endif
#endif

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__      static __attribute__((section("cuda_shared")))
#define __launch_bounds__(...)
#define __grid_constant__

/* --- what a thread sees ------------------------------------------------------------------------------------------- */

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(16) double4 {
    double x, y, z, w;
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
#define warpSize 32

void *cuda_host_shared(void); /* of the running block */

void __syncthreads(void);

/* Waits for the launch before it on its stream to end, if the two may overlap. */
void cuda_host_await_previous(void);

/* The running cluster: the two halves of a barrier, where the second half waits for all its threads; and the place
 * where block `rank` has the dynamic shared memory that the running block has at `mine`. No thread asks for it between
 * the two halves. */
void cuda_host_cluster_arrive(void);
void cuda_host_cluster_wait(void);
void *cuda_host_cluster_shared(void *mine, unsigned rank);

namespace cooperative_groups {
struct cluster_group {
    static void barrier_arrive() {
        cuda_host_cluster_arrive();
    }
    static void barrier_wait() {
        cuda_host_cluster_wait();
    }
    template <class T> static T *map_shared_rank(T *mine, int rank) {
        return (T *)cuda_host_cluster_shared((void *)mine, (unsigned)rank);
    }
};
static inline cluster_group this_cluster() {
    return {};
}
} // namespace cooperative_groups

/* A value that a lane gives to its warp. Its size is fixed, so that the compiler copies it without a call. */
struct cuda_host_given {
    uint32_t words[8];
};
/* Gives the warp a value, whose first `bytes` count, and returns what lane `from` gave; from < 0: only waits. Every
 * lane of the mask must come. */
cuda_host_given cuda_host_exchange(unsigned mask, const cuda_host_given &value, size_t bytes, int from);
int cuda_host_lane(void);

static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    cuda_host_exchange(mask, {}, 1, -1);
}

template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    static_assert(sizeof value <= sizeof(cuda_host_given));
    int lane = cuda_host_lane();
    cuda_host_given given = {};
    memcpy(given.words, &value, sizeof value);
    given = cuda_host_exchange(mask, given, sizeof value, lane / width * width + (from & (width - 1)));
    memcpy(&value, given.words, sizeof value);
    return value;
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    int lane = cuda_host_lane(), from = lane ^ bits;
    return __shfl_sync(mask, value, from / width == lane / width ? from % width : lane % width, width);
}

template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = cuda_host_lane() % width;
    return __shfl_sync(mask, value, lane < (int)delta ? lane : lane - (int)delta, width);
}

template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = cuda_host_lane() % width;
    return __shfl_sync(mask, value, lane + (int)delta >= width ? lane : lane + (int)delta, width);
}

unsigned __ballot_sync(unsigned mask, int predicate);

/* mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: d += a b, by all 32 lanes, each holding the elements that the PTX
 * ISA gives it. Where hardware would ignore bits of a factor (the last 13) this ends the process. The sums are fp32's,
 * in ascending order; hardware sums in an order of its own. */
void cuda_host_mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
uint32_t cuda_host_tf32(float x);  /* cvt.rna.tf32.f32: to the nearest, ties away from zero */
bool cuda_host_tensor_cores(void); /* whether the device multiplies in tf32 */

/* cp.async of one value or 16 bytes: a copy is made when its thread waits for it, and no sooner. The process ends with
 * a message if a thread ends before it has waited for all its copies, or if an address is no multiple of the bytes. */
void cuda_host_copy_async_bytes(void *to, const void *from, size_t bytes);
static inline void cuda_host_copy_async(real *to, const real *from) {
    cuda_host_copy_async_bytes(to, from, sizeof *to);
}
static inline void cuda_host_copy_async_or_zero(real *to, const real *from, bool is) {
    static const real zero = 0;
    cuda_host_copy_async(to, is ? from : &zero);
}
static inline void cuda_host_copy_async_16(void *to, const void *from) {
    cuda_host_copy_async_bytes(to, from, 16);
}
void cuda_host_copy_async_commit(void);
void cuda_host_copy_async_settle(unsigned left); /* groups */
template <int LEFT> void cuda_host_copy_async_wait(void) {
    cuda_host_copy_async_settle(LEFT);
}

static inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}
static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}

/* Fibers are switched at waits alone, so a plain update is atomic. */
template <class T> T atomicAdd(T *at, T value) {
    T before = *at;
    *at = before + value;
    return before;
}
template <class T> T atomicMax(T *at, T value) {
    T before = *at;
    if (value > before) *at = value;
    return before;
}
static inline void __threadfence(void) {}
long long clock64(void); /* a device of 1 GHz */
uint64_t cuda_host_nanoseconds(void);
/* Makes the clock that times events later by that much: work that takes a known time. */
void cuda_host_pass_time(double seconds);
template <class T> T __ldg(const T *at) {
    return *at;
}
template <class T> T __ldcg(const T *at) {
    return *at;
}
static inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
static inline double rsqrt(double x) {
    return 1.0 / sqrt(x);
}

/* --- the run-time ------------------------------------------------------------------------------------------------- */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorIllegalAddress = 700,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorGraphExecUpdateFailure = 910
};

typedef struct cuda_host_stream *cudaStream_t;
#define cudaStreamPerThread ((cudaStream_t)(uintptr_t)2)
typedef struct cuda_host_event *cudaEvent_t;
typedef struct cuda_host_graph *cudaGraph_t;
typedef struct cuda_host_graph *cudaGraphExec_t;
struct cudaGraphExecUpdateResultInfo {};

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1 };
enum { cudaDeviceScheduleBlockingSync = 4, cudaInitDeviceFlagsAreValid = 1 };
enum { cudaStreamNonBlocking = 1, cudaHostAllocDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum cudaDeviceAttr {
    cudaDevAttrClockRate = 13,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
};

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaInitDevice(int index, unsigned schedule, unsigned flags);
cudaError_t cudaSetDevice(int index);
cudaError_t cudaGetDevice(int *index);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int index);

struct cudaFuncAttributes {
    int numRegs, ptxVersion;
};
template <class Kernel> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, Kernel *) {
    *attributes = {};
    attributes->ptxVersion = 90; /* what is compiled here is compiled for every device */
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int index);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void *nodes, size_t *count); /* nodes: nullptr */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
/* Refuses a graph of another number of nodes. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *why);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
cudaError_t cuda_host_raise_shared(const void *kernel, size_t bytes);
template <class Kernel> cudaError_t cudaFuncSetAttribute(Kernel *kernel, cudaFuncAttribute, int bytes) {
    return cuda_host_raise_shared((const void *)kernel, (size_t)bytes);
}

#define CUDA_HOST_POISON 0xFF /* what fresh memory is filled with: a NaN in both float types */

/* Ends the process, saying which thread of which block runs. */
[[noreturn]] void cuda_host_die(const char *what);

/* Ends the validity of all captures under way, of any thread, as the start and end of a cuBLAS handle may. */
void cuda_host_wait_for_device(void);

/* A call for which a device has to come to rest, while it lasts: a replay that begins meanwhile ends the process. */
struct cuda_host_rest {
    cuda_host_rest();
    ~cuda_host_rest();
};

/* Runs now, or on replay when the stream is being captured. Device memory is there for the work, or, if it opens that
 * itself, from cuda_host_open_memory on. */
cudaError_t cuda_host_enqueue(cudaStream_t stream, std::function<void()> work, bool opens = false);
void cuda_host_open_memory(void);

enum cudaLaunchAttributeID {
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        uint3 clusterDim;
        int programmaticStreamSerializationAllowed;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

/* A launch: its clusters lie along the grid's x, and are one block each where there are none. */
struct cuda_host_shape {
    dim3 grid, block;
    size_t shared;
    unsigned cluster;
    bool overlaps; /* the launch before it on the stream */
};

/* False: no device takes it, or not this one. */
bool cuda_host_shape_of(const void *kernel, const cudaLaunchConfig_t *config, struct cuda_host_shape *shape);
void cuda_host_grid(const struct cuda_host_shape &shape, const std::function<void()> &body);
int cuda_host_capability(void);     /* x 10 */
size_t cuda_host_shared_most(void); /* bytes of a block, when the kernel's limit is raised */

/* Ends the process if a word of the argument is an address of memory that the process has and no device. */
void cuda_host_check_argument(const char *name, int index, const void *argument, size_t bytes);

template <class P> void cuda_host_check(const char *name, int index, P argument) {
#ifndef __clang__
    __builtin_clear_padding(&argument);
    cuda_host_check_argument(name, index, &argument, sizeof argument);
#else
    (void)name, (void)index, (void)argument; /* what lies between members cannot be told from them */
#endif
}

template <class... P>
cudaError_t cuda_host_launch(const char *name, const cudaLaunchConfig_t *config, void (*kernel)(P...), P... arguments) {
    int index = 0;
    (void)name; /* of a kernel without arguments */
    struct cuda_host_shape shape;
    if (!cuda_host_shape_of((const void *)kernel, config, &shape)) return cudaErrorInvalidConfiguration;
    (cuda_host_check(name, index++, arguments), ...);
    return cuda_host_enqueue(
        config->stream, [=] { cuda_host_grid(shape, [=] { kernel(arguments...); }); }, shape.overlaps);
}

/* --- cuBLAS: the products the project uses, by real_gemm -------------------------------------------------------- */

enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
typedef struct cuda_host_blas *cublasHandle_t;

const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version);
cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cuda_host_gemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                              const real *alpha, const real *a, int lda, const real *b, int ldb, const real *beta,
                              real *c, int ldc);
#define cublasSgemm cuda_host_gemm /* of the build's own precision there is one alone */
#define cublasDgemm cuda_host_gemm

enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16BF = 14 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
/* The emulator multiplies only bf16 factors, and the product is a float. */
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType_t of_a, int lda, const void *b,
                            cudaDataType_t of_b, int ldb, const void *beta, void *c, cudaDataType_t of_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm);

/* --- cublasLt: products that are floats, of floats or bf16, also with epilogues ----------------------------------- */

enum cublasLtEpilogue_t {
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_BIAS = 4,
    CUBLASLT_EPILOGUE_BGRADA = 256,
    CUBLASLT_EPILOGUE_BGRADB = 512
};
enum cublasLtReductionScheme_t {
    CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
    CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4
};
enum cublasLtMatmulDescAttributes_t {
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8
};
enum cublasLtMatmulPreferenceAttributes_t {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};

typedef struct cublasLtContext *cublasLtHandle_t;
struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t op_a, op_b;
    uint32_t epilogue;
    void *bias;
};
struct cublasLtMatrixLayoutOpaque_t {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld;
};
struct cublasLtMatmulPreferenceOpaque_t {
    uint64_t workspace;
    uint32_t reductions, alignment[4]; /* of A, B, C, D */
};
struct cublasLtMatmulAlgo_t {
    uint32_t epilogue, alignment[5]; /* the fifth: of the bias */
    uint64_t workspace, index;       /* index: in the list that the heuristic gives */
};
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;
struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
};

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t product, cublasComputeType_t compute, cudaDataType_t scale);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size);
cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType_t type, uint64_t rows,
                                        uint64_t cols, int64_t ld);
cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t wishes);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t wishes,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t size);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t A, cublasLtMatrixLayout_t B,
                                              cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D,
                                              cublasLtMatmulPreference_t wishes, int wanted,
                                              cublasLtMatmulHeuristicResult_t *found, int *count);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t of_A, const void *B, cublasLtMatrixLayout_t of_B, const void *beta,
                              const void *C, cublasLtMatrixLayout_t of_C, void *D, cublasLtMatrixLayout_t of_D,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream);

/* --- settings of the tests ---------------------------------------------------------------------------------------- */

extern "C" {
/* Order of fibers in a block and of blocks in a grid: 0 ascending, 1 descending, 2 odd ones first. ORDER_WARPS: the
 * last warp first, each as far as it comes before the next, as it may on a device; of threads that are no whole warps,
 * and of blocks, as 1. */
#define ORDER_WARPS 3
void cuda_host_set_order(int order);
long cuda_host_launches(void); /* kernels run so far */
}

/* Read from the environment: LRNN_CUDA_HOST_DEVICES (default 1), LRNN_CUDA_HOST_KINDS=2 (all but the first are of
 * another kind), LRNN_CUDA_HOST_MEMORY (bytes a device has), LRNN_CUDA_HOST_CAPABILITY (x 10, default 90; clusters
 * and the shared memory of a block are that capability's), LRNN_CUDA_HOST_CORES (multiprocessors, default 132),
 * LRNN_CUDA_HOST_LAZY, LRNN_CUDA_HOST_PROTECT, LRNN_CUDA_HOST_NO_GRAPH (captures cannot be instantiated: 1, none; 2,
 * those with overlapping launches or branches; 3, each is invalid before its first branch),
 * LRNN_CUDA_HOST_NO_EPILOGUES (cublasLt knows no product: 1, it says so; 2, it names none; 3, it refuses those that it
 * has named), LRNN_CUDA_HOST_ALGORITHMS (a word for each algorithm that cublasLt knows of every product: the
 * microseconds that it takes, or - if its launches are refused; default: one that takes the host's time),
 * LRNN_CUDA_HOST_FAIL=n (a process's n-th kernel, or the next one if that is past, fails, and everything after it;
 * with LRNN_CUDA_HOST_FAIL_ONCE=FILE only in the first process that can remove the file), LRNN_CUDA_HOST_FULL=n (the
 * n-th launch alone finds no memory, with that file likewise), LRNN_CUDA_HOST_SLOW (device memory is given back late).
 */

#endif

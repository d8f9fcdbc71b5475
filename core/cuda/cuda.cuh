/* cuda.cuh - parts that all .cu files share: the context of a CUDA place, and the launch of kernels. Only for C++.
 *
 * nvcc compiles this source for devices. In tests the host's C++ compiler does (LRNN_CUDA_HOST), with
 * tests/cuda/host/cuda_host.h in place of the CUDA run-time. docs/gpu.md says how a kernel is written. */
#ifndef LRNN_CORE_CUDA_CUDA_CUH
#define LRNN_CORE_CUDA_CUDA_CUH

#ifndef LRNN_CUDA_HOST
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#endif

#include <pthread.h>

#include "core/op.h"
#include "core/place.h"

#define CUDA_COUNTERS       1024               /* per queue */
#define CUDA_BLAS_WORKSPACE ((size_t)32 << 20) /* bytes */

/* A stream, and memory that its launches use in turn. */
struct cuda_queue {
    cudaStream_t stream;
    bool borrowed; /* the stream is the caller's (core/place_stream.h) */
    /* CUDA_COUNTERS counters in device memory. All are 0 while no kernel runs. The thread blocks of a launch count
     * themselves there (last_block of kernels/lib/cuda.cuh). */
    unsigned *counters;
    cublasHandle_t blas;
    void *blas_workspace; /* CUDA_BLAS_WORKSPACE bytes */
    cudaEvent_t reached;  /* the point for which the other queue had to wait last */
    /* the next launch may not overlap the work before it, because that is no launch, or is two launches */
    bool alone;
};

struct cuda_context {
    int index;
    /* Facts for the choice of kernels. capability: compute capability x 10 of the device or of the compiled code,
     * whichever is smaller, because code for an older device lacks newer instructions. cores: number of
     * multiprocessors. shared: the most bytes of shared memory that a thread block may have. */
    int capability, cores;
    size_t shared;
    struct cuda_queue now, beside; /* now: launches go here; beside: the other queue of cuda_side_by_side */
    bool careful; /* LRNN_CUDA_SYNC: waits for each kernel and captures nothing, so that an error names its launch */
    bool walks;   /* nothing is captured, because of LRNN_CUDA_GRAPH=0 or `careful`, or because a capture failed */
    /* overlaps: launches begin while the ones before them end (await_previous); LRNN_CUDA_OVERLAP=0 turns this off.
     * branches: without overlaps, cuda_side_by_side uses two streams; LRNN_CUDA_BRANCHES=0 turns this off. A step with
     * both is slower than a step with one of them (docs/gpu.md). Both are off if `careful`, or after a capture with
     * them failed. */
    bool overlaps, branches;
    /* of a capture that was freed, here or by a closed place; the next capture takes it over; NULL: none */
    cudaGraphExec_t instance;
    bool parted;               /* the program is between cuda_part and cuda_meet, and cuda_part has not failed */
    bool failed, full;         /* full: the failure was lack of memory */
    char failure[512];         /* the first failure: call, file, line, CUDA's message */
    char capture_failure[512]; /* why a capture failed; "": none failed */
};

/* Stores the first failure; later failures are its consequences. Returns whether this call succeeded. */
bool cuda_check(struct cuda_context *cuda, cudaError_t result, const char *call, const char *file, int line);
bool cublas_check(struct cuda_context *cuda, cublasStatus_t result, const char *call, const char *file, int line);
#define CUDA_TRY(cuda, call)   cuda_check(cuda, call, #call, __FILE__, __LINE__)
#define CUBLAS_TRY(cuda, call) cublas_check(cuda, call, #call, __FILE__, __LINE__)

/* Launches kernel(arguments...) on the exec's stream. Its parameters are x, kernel (template kernels in parentheses),
 * grid, block, bytes of dynamic shared memory, arguments. The arguments are copied at once. */
#define LAUNCH(x, kernel, ...) cuda_launch((x)->place->cuda, #kernel, __FILE__, __LINE__, kernel, __VA_ARGS__)

/* Like LAUNCH, for a grid in which each `cluster` neighbouring blocks run at the same time (kernels/lib/cluster.cuh).
 * Its parameters are x, kernel, cluster, grid, block, shared, arguments. `cluster` is at most 8 and divides the grid's
 * x. If it is more than 1, it needs capability 9.0. */
#define LAUNCH_CLUSTERS(x, kernel, ...)                                                                                \
    cuda_launch_clusters((x)->place->cuda, #kernel, __FILE__, __LINE__, kernel, __VA_ARGS__)

/* The limit, in bytes, of a block's shared memory, unless the kernel's own limit is raised. */
#define CUDA_SHARED_UNASKED ((size_t)48 << 10)

#define CUDA_OVERLAP_CAPABILITY 90

/* Must be the first statement of every kernel. On capability 9.0 and newer, the blocks of a launch may begin before the
 * launch before it on the stream has ended, which hides the time of launching (CUDA C++ Programming Guide,
 * "Programmatic Dependent Launch"). Here a block first lets the blocks of the next launch begin. Then it waits until
 * the launch before it has ended and its stores are visible. That launch has waited in the same way, so all earlier
 * work has ended too. cuBLAS's launches either wait as usual or have the same wait in their kernels, as names of
 * attributes in its libraries suggest. */
static __device__ __forceinline__ void await_previous(void) {
#ifdef LRNN_CUDA_HOST
    cuda_host_await_previous();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

#ifdef LRNN_CUDA_HOST
#define cuda_launch_kernel(name, config, ...) cuda_host_launch(name, config, __VA_ARGS__)
#else
#define cuda_launch_kernel(name, config, ...) cudaLaunchKernelEx(config, __VA_ARGS__)
#endif

/* Raises the kernel's limit of shared memory to the device's maximum, because members of a population launch the same
 * kernel at the same time with different sizes. A kernel that needs more than the default must therefore not declare
 * __shared__ itself. */
template <class... P, class... A>
void cuda_launch_clusters(struct cuda_context *cuda, const char *name, const char *file, int line, void (*kernel)(P...),
                          unsigned cluster, dim3 grid, dim3 block, size_t shared, A... arguments) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    if (cluster > 1) {
        cudaLaunchAttribute *blocks = &attributes[config.numAttrs++];
        blocks->id = cudaLaunchAttributeClusterDimension;
        blocks->val.clusterDim.x = cluster;
        blocks->val.clusterDim.y = blocks->val.clusterDim.z = 1;
    }
    if (cuda->overlaps && !cuda->now.alone) {
        cudaLaunchAttribute *early = &attributes[config.numAttrs++];
        early->id = cudaLaunchAttributeProgrammaticStreamSerialization;
        early->val.programmaticStreamSerializationAllowed = 1;
    }
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = cuda->now.stream;
    config.attrs = attributes;
    if (shared > CUDA_SHARED_UNASKED)
        cuda_check(cuda, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)cuda->shared),
                   name, file, line);
    cuda_check(cuda, cuda_launch_kernel(name, &config, kernel, static_cast<P>(arguments)...), name, file, line);
    cuda->now.alone = false;
    if (cuda->careful) cuda_check(cuda, cudaStreamSynchronize(cuda->now.stream), name, file, line);
}

template <class... P, class... A>
void cuda_launch(struct cuda_context *cuda, const char *name, const char *file, int line, void (*kernel)(P...),
                 dim3 grid, dim3 block, size_t shared, A... arguments) {
    cuda_launch_clusters(cuda, name, file, line, kernel, 1, grid, block, shared, arguments...);
}

/* --- branches ----------------------------------------------------------------------------------------------------- */

/* Opens a queue on the context's device. False after a failure, which the context stores; cuda_queue_close also closes
 * a queue that is only half open. */
bool cuda_queue_open(struct cuda_context *cuda, struct cuda_queue *queue);
void cuda_queue_close(struct cuda_queue *queue);

/* The three parts of cuda_side_by_side. After cuda_part, launches go to the other queue, and wait for all work queued
 * before. After cuda_return, they go to this queue again. After cuda_meet, they wait for the work of both queues. */
void cuda_part(struct cuda_context *cuda);
void cuda_return(struct cuda_context *cuda);
void cuda_meet(struct cuda_context *cuda);

/* Lets the work that `beside` queues run at the same time as the work that `here` queues. Both wait for all work queued
 * before, and later work waits for both. Neither may write memory (also scratch) that the other reads or writes. Bits
 * do not depend on the overlap. */
template <class Beside, class Here> void cuda_side_by_side(struct cuda_context *cuda, Beside beside, Here here) {
    cuda_part(cuda);
    beside();
    cuda_return(cuda);
    here();
    cuda_meet(cuda);
}

/* --- the device of several runs ----------------------------------------------------------------------------------- */

/* The runs that one process trains at the same time share the device. Captures, from beginning to end, and replays hold
 * this lock as readers. Calls that allocate or free memory or handles of the device hold it as writers. Waiting writers
 * come before new readers. Such a call may wait until no thread has queued work: on an H200, with three or four runs
 * that queued their steps, one call returned only when a run had ended. It may also end the captures of other threads,
 * as cublasDestroy does (by cudaDeviceSynchronize). A graph's first walk loads kernels, which is such a call too.
 * Launches of later walks that are not captured, as in evaluations, do not take the lock. */
extern pthread_rwlock_t cuda_device_lock;

struct device_alone {
    device_alone() {
        pthread_rwlock_wrlock(&cuda_device_lock);
    }
    ~device_alone() {
        pthread_rwlock_unlock(&cuda_device_lock);
    }
    device_alone(const device_alone &) = delete;
    device_alone &operator=(const device_alone &) = delete;
};

/* A population's member opens a place for each of its runs. Streams, handles, workspaces, memory and instances of
 * graphs take longer to make than many steps, and each makes all runs wait. So closed places leave theirs for later
 * places of the process on their device.
 *
 * cuda_spare_take gives the context two queues and an instance, if there are any. cuda_spare_keep keeps those of a
 * context, after it has waited for their work; false: there are enough, or the context has failed or uses a caller's
 * stream. */
void cuda_spare_take(struct cuda_context *cuda);
bool cuda_spare_keep(const struct cuda_context *cuda);

/* cuda_block_take returns memory of exactly so many bytes that an arena has released; NULL: there is none.
 * cuda_block_note says that the context uses the memory, of cudaMalloc or of cuda_block_take. cuda_block_keep keeps it,
 * after it has waited for the context's work; false: the caller frees it. cuda_blocks_leave: the context is closed, and
 * memory that is in use will be freed. */
void *cuda_block_take(const struct cuda_context *cuda, size_t bytes);
void cuda_block_note(struct cuda_context *cuda, void *base, size_t bytes);
bool cuda_block_keep(void *base);
void cuda_blocks_leave(const struct cuda_context *cuda);

/* The bytes that cuda_spares_close would free: it frees all that is kept for a device, because memory is needed. */
size_t cuda_spare_bytes(int index);
void cuda_spares_close(int index);

/* Declares type *name, which points to the block's dynamic shared memory. */
#ifdef LRNN_CUDA_HOST
#define DYNAMIC_SHARED(type, name) type *name = (type *)cuda_host_shared()
#else
#define DYNAMIC_SHARED(type, name)                                                                                     \
    extern __shared__ __align__(16) unsigned char dynamic_shared_[];                                                   \
    type *name = reinterpret_cast<type *>(dynamic_shared_)
#endif

#endif

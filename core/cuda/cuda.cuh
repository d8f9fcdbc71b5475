/* cuda.cuh - what .cu files share: the context behind a place, and how a kernel is launched. C++ alone.
 *
 * The same source is compiled by nvcc for devices and, in tests, by the host's C++ compiler (LRNN_CUDA_HOST), where
 * tests/cuda/cuda_host.h stands for the CUDA run-time. docs/gpu.md says how a twin is written. */
#ifndef LRNN_CORE_CUDA_CUDA_CUH
#define LRNN_CORE_CUDA_CUDA_CUH

#ifndef LRNN_CUDA_HOST
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#endif

#include "core/op.h"
#include "core/place.h"

#define CUDA_COUNTERS       1024               /* of a context */
#define CUDA_BLAS_WORKSPACE ((size_t)32 << 20) /* bytes */

/* A stream, and what its launches, which follow each other, share. */
struct cuda_queue {
    cudaStream_t stream;
    /* Device memory, CUDA_COUNTERS zeros whenever no kernel runs: blocks of one launch count themselves there
     * (last_block of kernels/lib/cuda.cuh). */
    unsigned *counters;
    cublasHandle_t blas;
    void *blas_workspace; /* CUDA_BLAS_WORKSPACE bytes */
    cudaEvent_t reached;  /* how far it had come when the other queue was last to wait for it */
    bool alone; /* the next launch may not overlap what is before it: that is no launch, or there are two before it */
};

struct cuda_context {
    int index;
    /* What kernels choose by. Compute capability x 10, of the device or of the code compiled for it, whichever is less:
     * what is compiled for an older one has no instructions of the newer. Most bytes of shared memory that a block can
     * ask for; multiprocessors. */
    int capability, cores;
    size_t shared;
    struct cuda_queue now, beside; /* where launches go; the other one of cuda_side_by_side */
    bool careful; /* LRNN_CUDA_SYNC: each kernel is waited for, nothing is captured; a fault then names its launch */
    bool walks;   /* nothing is captured: LRNN_CUDA_GRAPH=0, careful, or a capture that failed */
    /* Unless careful, turned off, or a capture with them failed: launches begin while those before them end
     * (await_previous), LRNN_CUDA_OVERLAP=0; and where they do not, cuda_side_by_side has two streams,
     * LRNN_CUDA_BRANCHES=0: a step with both is slower than with either (docs/gpu.md). */
    bool overlaps, branches;
    bool parted;               /* between cuda_part and cuda_meet, unless it failed */
    bool failed, full;         /* full: for want of memory */
    char failure[512];         /* the first one: call, file, line, CUDA's message */
    char capture_failure[512]; /* likewise of the capture that failed; "": none did */
};

/* Keeps the first failure; later ones are its consequences. Returns whether this call went well. */
bool cuda_check(struct cuda_context *cuda, cudaError_t result, const char *call, const char *file, int line);
bool cublas_check(struct cuda_context *cuda, cublasStatus_t result, const char *call, const char *file, int line);
#define CUDA_TRY(cuda, call)   cuda_check(cuda, call, #call, __FILE__, __LINE__)
#define CUBLAS_TRY(cuda, call) cublas_check(cuda, call, #call, __FILE__, __LINE__)

/* Launches kernel(arguments...) on the exec's stream: x, kernel (template kernels in parentheses), grid, block, bytes
 * of dynamic shared memory, arguments. Arguments are copied now. */
#define LAUNCH(x, kernel, ...) cuda_launch((x)->place->cuda, #kernel, __FILE__, __LINE__, kernel, __VA_ARGS__)

/* Likewise of a grid whose blocks, `cluster` neighbours each, run at once (kernels/lib/cluster.cuh): x, kernel, cluster
 * <= 8, which divides the grid's x, grid, block, shared, arguments. More than 1 takes capability 9.0. */
#define LAUNCH_CLUSTERS(x, kernel, ...)                                                                                \
    cuda_launch_clusters((x)->place->cuda, #kernel, __FILE__, __LINE__, kernel, __VA_ARGS__)

/* Bytes of a block's shared memory, unless the kernel's limit is raised. */
#define CUDA_SHARED_UNASKED ((size_t)48 << 10)

#define CUDA_OVERLAP_CAPABILITY 90

/* What every kernel does first. On capability 9.0 and newer the blocks of a launch may begin while the launch before it
 * on the stream has not ended (CUDA C++ Programming Guide, "Programmatic Dependent Launch"), so that the time that a
 * launch takes is not added to the kernel's. Here a block lets those of the next launch begin in their turn, and waits
 * until the launch before this one has ended and all that it stored can be seen. That one has waited for the one before
 * it likewise, so nothing earlier is under way either: one of cuBLAS's, too, which is either launched to wait as ever
 * or, as its libraries' names of attributes suggest, has the same wait in its kernels. */
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

/* The limit is raised to all there is, so a kernel that asks for more declares no __shared__ of its own: members of a
 * population launch one kernel at once, with other sizes each. */
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

/* Opens a queue of the context's device; what fails is kept, and false. One that is only half open can be closed. */
bool cuda_queue_open(struct cuda_context *cuda, struct cuda_queue *queue);
void cuda_queue_close(struct cuda_queue *queue);

/* The three parts of cuda_side_by_side: launches go beside, behind all that is queued now; they go on here; and what
 * comes waits for both. */
void cuda_part(struct cuda_context *cuda);
void cuda_return(struct cuda_context *cuda);
void cuda_meet(struct cuda_context *cuda);

/* What `beside` queues may run while what `here` queues does, both behind all that is queued before; all that is queued
 * later waits for both. Neither may write, into scratch either, what the other reads or writes. The bits are those of
 * one after the other. */
template <class Beside, class Here> void cuda_side_by_side(struct cuda_context *cuda, Beside beside, Here here) {
    cuda_part(cuda);
    beside();
    cuda_return(cuda);
    here();
    cuda_meet(cuda);
}

/* type *name = the block's dynamic shared memory. */
#ifdef LRNN_CUDA_HOST
#define DYNAMIC_SHARED(type, name) type *name = (type *)cuda_host_shared()
#else
#define DYNAMIC_SHARED(type, name)                                                                                     \
    extern __shared__ __align__(16) unsigned char dynamic_shared_[];                                                   \
    type *name = reinterpret_cast<type *>(dynamic_shared_)
#endif

#endif

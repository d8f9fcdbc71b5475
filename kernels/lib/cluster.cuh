/* cluster.cuh - thread block clusters: blocks of a grid that run at the same time and can access each other's shared
 * memory (compute capability 9.0; CUDA C++ Programming Guide, "Thread Block Clusters"). LAUNCH_CLUSTERS launches them.
 * On devices without clusters, a cluster is a single block, and the same code works. */
#ifndef LRNN_KERNELS_LIB_CLUSTER_CUH
#define LRNN_KERNELS_LIB_CLUSTER_CUH

#include "kernels/lib/cuda.cuh"

#ifndef LRNN_CUDA_HOST
#include <cooperative_groups.h>
#endif

#define CLUSTER_CAPABILITY 90
#define CLUSTER_BLOCKS     8 /* every device with clusters allows as many blocks */

#if defined(LRNN_CUDA_HOST) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900)

/* A barrier in two halves. What any thread of the cluster has stored before cluster_arrive, also in the shared memory
 * of other blocks, is visible to all threads after cluster_wait. Between the two, a thread must not access other
 * blocks' shared memory, and no other thread may rely on what it stores there. */
__device__ __forceinline__ void cluster_arrive(void) {
    (void)cooperative_groups::this_cluster().barrier_arrive();
}

__device__ __forceinline__ void cluster_wait(void) {
    cooperative_groups::this_cluster().barrier_wait();
}

/* Returns the address, in block `rank` of the cluster, of the dynamic shared memory that this block has at `mine`. */
template <class T> __device__ __forceinline__ T *cluster_shared(T *mine, int rank) {
    return cooperative_groups::this_cluster().map_shared_rank(mine, rank);
}

#else

__device__ __forceinline__ void cluster_arrive(void) {}

__device__ __forceinline__ void cluster_wait(void) {
    __syncthreads();
}

template <class T> __device__ __forceinline__ T *cluster_shared(T *mine, int) {
    return mine;
}

#endif

/* Both halves of the barrier; all threads must call it. A block calls it before it accesses other blocks' shared memory
 * for the first time, and again before it ends, because other blocks may still access its own. */
__device__ __forceinline__ void cluster_sync(void) {
    cluster_arrive();
    cluster_wait();
}

#endif

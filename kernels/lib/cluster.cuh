/* cluster.cuh - blocks of a grid that run at once, and reach into each other's shared memory: the thread block clusters
 * of compute capability 9.0 (CUDA C++ Programming Guide, "Thread Block Clusters"), launched by LAUNCH_CLUSTERS. Where
 * there are none a cluster is one block, for which the same code does. */
#ifndef LRNN_KERNELS_LIB_CLUSTER_CUH
#define LRNN_KERNELS_LIB_CLUSTER_CUH

#include "kernels/lib/cuda.cuh"

#ifndef LRNN_CUDA_HOST
#include <cooperative_groups.h>
#endif

#define CLUSTER_CAPABILITY 90
#define CLUSTER_BLOCKS     8 /* that every device with clusters takes */

#if defined(LRNN_CUDA_HOST) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900)

/* A barrier in two halves: what all threads of the cluster stored before they arrive, in any block's shared memory too,
 * is there after the wait. What a thread does between the two is on its way while it waits, and no one else may count
 * on it: no other block's shared memory is reached there. */
__device__ __forceinline__ void cluster_arrive(void) {
    (void)cooperative_groups::this_cluster().barrier_arrive();
}

__device__ __forceinline__ void cluster_wait(void) {
    cooperative_groups::this_cluster().barrier_wait();
}

/* Address in block `rank` of the cluster of the dynamic shared memory that this block has at `mine`. */
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

/* Both halves: all threads of the cluster must come. Other blocks reach a block's shared memory after the first half,
 * and no block may end before the last reach. */
__device__ __forceinline__ void cluster_sync(void) {
    cluster_arrive();
    cluster_wait();
}

#endif

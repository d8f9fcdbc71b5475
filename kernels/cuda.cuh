/* cuda.cuh - what the CUDA twins share: grids, sums of a warp and of a block. docs/cuda.md says how a twin is written. */
#ifndef LRNN_KERNELS_CUDA_CUH
#define LRNN_KERNELS_CUDA_CUH

#include "core/cuda.h"
#include "kernels/dense.h"
#include "kernels/kernel.h"

#define CUDA_THREADS 256 /* of a block, where nothing else decides */
#define WARP         32
#define FULL_WARP    0xffffffffu

/* Blocks of `threads` that cover n elements, one a thread. */
static inline dim3 cuda_blocks(int64_t n, int threads) {
    return dim3((unsigned)((n + threads - 1) / threads));
}

/* This thread's index over a one-dimensional grid. */
__device__ __forceinline__ int64_t cuda_index(void) {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* The sum over the warp's lanes, in a fixed tree: the same bits in every lane and every run. All lanes must come. */
template <class T> __device__ __forceinline__ T warp_sum(T x) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(FULL_WARP, x, distance);
    return x;
}

/* The sum over a block of whole warps, in a fixed order, in every thread; partial: one T a warp of shared memory, free
 * again after the next barrier. All threads must come. */
template <class T> __device__ __forceinline__ T block_sum(T x, T *partial) {
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    x = warp_sum(x);
    __syncthreads();
    if (lane == 0) partial[warp] = x;
    __syncthreads();
    T sum = 0;
    for (int w = 0; w < warps; w++) sum += partial[w];
    return sum;
}

#endif

/* step_ring.cuh - loads the inputs of the next time steps of a recurrence into shared memory (copy_async), so that a
 * step does not wait for memory. Each thread reads only values that it loaded itself, so there is no barrier, and the
 * bits do not change. scan.cuh also has a ring; there the number of values of a step is a constant, here the call
 * decides it. */
#ifndef LRNN_KERNELS_FLOW_STEP_RING_CUH
#define LRNN_KERNELS_FLOW_STEP_RING_CUH

#include "kernels/lib/cuda.cuh"

#define STEP_RING 8 /* number of time steps; all but one are being loaded */

/* Returns the bytes of shared memory of a ring if a thread block reads `values` values at a step. */
static inline size_t step_ring_bytes(int64_t values) {
    return STEP_RING * (size_t)values * sizeof(real);
}

/* Whether a ring fits into shared memory beside `bytes` other bytes, the device has such copies, and there is a
 * step. */
static inline bool step_ring_pays(const struct exec *x, int64_t steps, int64_t values, size_t bytes) {
    const struct cuda_context *cuda = x->place->cuda;
    return cuda->capability >= COPY_ASYNC_CAPABILITY && steps > 0 && step_ring_bytes(values) + bytes <= cuda->shared;
}

/* Calls step(n, slots) for all steps; before each, ask(n, slots) has loaded its inputs. Without a ring it only calls
 * step(n, NULL). `ring` is the ring of the thread block. The version with a ring is empty for older devices, which have
 * no such copies. */
template <bool RINGS, class Ask, class Step>
__device__ __forceinline__ void ring_steps(int64_t steps, real *ring, int64_t values, Ask ask, Step step) {
    if constexpr (!RINGS) {
        for (int64_t n = 0; n < steps; n++) step(n, nullptr);
    } else {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 10 * COPY_ASYNC_CAPABILITY
        /* after the last step it requests nothing, but commits a group, because groups are counted */
        auto request = [&](int64_t n) {
            if (n < steps) ask(n, ring + n % STEP_RING * values);
            copy_async_commit();
        };
        for (int64_t n = 0; n < STEP_RING - 1; n++) request(n);
        for (int64_t n = 0; n < steps; n++) {
            request(n + STEP_RING - 1);
            copy_async_wait<STEP_RING - 1>();
            step(n, ring + n % STEP_RING * values);
        }
#endif
    }
}

/* Requests this thread's elements of a row of n: every blockDim-th element. */
__device__ __forceinline__ void ring_ask_row(int64_t n, real *slots, const real *from) {
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) copy_async(slots + i, from + i);
}

#endif

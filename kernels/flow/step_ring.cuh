/* step_ring.cuh - what the next time steps of a recurrence read, on its way into shared memory (copy_async), where a
 * thread reads values of its own at every step. A step that asked for its inputs when it needs them would wait as long
 * as memory takes. No thread reads what another one asked for: there is no barrier, and sums are the same. scan.cuh has
 * a ring as well, for lanes whose step is known when it is compiled; here as much is read as the call says. */
#ifndef LRNN_KERNELS_FLOW_STEP_RING_CUH
#define LRNN_KERNELS_FLOW_STEP_RING_CUH

#include "kernels/lib/cuda.cuh"

#define STEP_RING 8 /* time steps, of which all but one are on their way */

/* Shared memory of a ring, of `values` that a block reads at a step. */
static inline size_t step_ring_bytes(int64_t values) {
    return STEP_RING * (size_t)values * sizeof(real);
}

/* True if a ring fits beside `bytes` of a block, the device copies so, and there is a step to look ahead to. */
static inline bool step_ring_pays(const struct exec *x, int64_t steps, int64_t values, size_t bytes) {
    const struct cuda_context *cuda = x->place->cuda;
    return cuda->capability >= COPY_ASYNC_CAPABILITY && steps > 0 && step_ring_bytes(values) + bytes <= cuda->shared;
}

/* step(n, slots) for all steps, after ask(n, slots), which has copied what it reads; without a ring step(n, NULL)
 * alone. ring: of the block. With a ring nothing for older devices, to which none is given: they have no such copy. */
template <bool RINGS, class Ask, class Step>
__device__ __forceinline__ void ring_steps(int64_t steps, real *ring, int64_t values, Ask ask, Step step) {
    if constexpr (!RINGS) {
        for (int64_t n = 0; n < steps; n++) step(n, nullptr);
    } else {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 10 * COPY_ASYNC_CAPABILITY
        auto request = [&](int64_t n) { /* after the last step nothing, but counted too */
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

/* Asks for this thread's elements of a row of n, which are every blockDim-th. */
__device__ __forceinline__ void ring_ask_row(int64_t n, real *slots, const real *from) {
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) copy_async(slots + i, from + i);
}

#endif

/* scan_slices.cuh - scans of few channels in one launch: the threads of a thread block share the time steps of a lane.
 *
 * A walk of scan.cuh with few lanes leaves a multiprocessor with so few warps that it waits for memory most of the
 * time. Here time is cut into slices of STEPS time steps. A thread block has some neighbouring lanes, and for each of
 * them as many threads as slices are computed at once (a round). A thread reads its slice into registers, and computes
 * its map: the carried values after the slice as a function of those before it. The maps of a round go through shared
 * memory. Then each thread applies, in order, the maps of all slices before its own, which gives the values that enter
 * its slice, and computes the results from the inputs that it still has in registers.
 *
 * So inputs are read once, and all maps are applied in the order of time, whatever the number of threads. Bits do not
 * depend on the other sequences, nor on the size of a round; only sums over time that end() stores do.
 *
 * A walk here has one row, and beside the members of scan.cuh:
 *   map        a structure of reals with a type `value`, the carried values, and two functions: none() returns the map
 *              of no step, and apply(value) the values after the map's steps
 *   resume     reads what a slice needs of the results of its first step; begin() is called only before the first slice
 *   add_step   appends a time step to a map
 *   enter      sets the values that enter a slice */
#ifndef LRNN_KERNELS_GATED_SCAN_SLICES_CUH
#define LRNN_KERNELS_GATED_SCAN_SLICES_CUH

#include "kernels/lib/scan.cuh"

#define SCAN_SLICE_THREADS   256 /* most threads of a block */
#define SCAN_SLICE_LANES     8   /* least lanes of a block: neighbouring channels fill a sector of 32 bytes */
#define SCAN_SLICE_IN_FLIGHT 48  /* values that a thread requests at once */
/* Slices pay for sequences of at least SCAN_SLICED_LONG time steps, if one thread per row would be fewer than
 * SCAN_SLICED_THREADS threads, with which a large device reaches most of its bandwidth. With fewer than
 * SCAN_SLICED_LANES lanes, blocks would be too few, and chunks of several blocks are faster. */
#define SCAN_SLICED_LONG    64
#define SCAN_SLICED_THREADS 32768
#define SCAN_SLICED_LANES   1024

static inline bool scan_slices_pay(int64_t B, int64_t T, int64_t N, int64_t rows) {
    return T >= SCAN_SLICED_LONG && B * N >= SCAN_SLICED_LANES && B * N * rows < SCAN_SLICED_THREADS;
}

/* Returns how many lanes a block has: as many as a warp has threads, or fewer, if there would not be two blocks for
 * each of SCAN_CORES multiprocessors. */
static inline int scan_slice_lanes(const scan_shape &shape) {
    int lanes = WARP;
    while (lanes > SCAN_SLICE_LANES && shape.B * shape.N < (int64_t)lanes * 2 * SCAN_CORES) lanes /= 2;
    return lanes;
}

/* Returns the number of slices of a round: no more than the sequence has. */
template <class W> int scan_slices_of(const scan_shape &shape) {
    int most = SCAN_SLICE_THREADS / scan_slice_lanes(shape), needed = (shape.T + W::STEPS - 1) / W::STEPS;
    return needed < most ? needed : most;
}

/* The maps of a round in shared memory: value `v` of the map of a slice, for each lane of the block. */
template <class Map> struct scan_maps {
    static constexpr int VALUES = sizeof(Map) / sizeof(real);
    real *at;
    int lanes;

    __device__ __forceinline__ void store(int slice, int lane, const Map &map) const {
        real values[VALUES];
        memcpy(values, &map, sizeof map);
#pragma unroll
        for (int v = 0; v < VALUES; v++) at[(slice * VALUES + v) * lanes + lane] = values[v];
    }
    __device__ __forceinline__ Map load(int slice, int lane) const {
        real values[VALUES];
        Map map;
#pragma unroll
        for (int v = 0; v < VALUES; v++) values[v] = at[(slice * VALUES + v) * lanes + lane];
        memcpy(&map, values, sizeof map);
        return map;
    }
};

/* Block: (lanes, slices). Shared memory has the maps of two rounds, so that one barrier per round is enough. */
template <class W> __global__ void __launch_bounds__(SCAN_SLICE_THREADS, REAL_IS_DOUBLE ? 1 : 2) scan_walk_slices(W w) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    using map = typename W::map;
    int lanes = (int)blockDim.x, slices = (int)blockDim.y, slice = (int)threadIdx.y, T = w.shape.T;
    scan_lane lane = scan_lane_at(w.shape, lanes);
    lane.row = 0;
    lane.index += (lane.tokens / T * (slices - 1) + slice) * lane.N; /* a thread is a lane of its own to end() */
    scan_nothing_shared nothing;
    typename W::state state;
    typename W::input now[W::STEPS];
    typename map::value after = {}; /* the values after the last round */
    w.begin(lane, state, nothing);
    for (int from = 0, round = 0; from < T; from += slices * W::STEPS, round++) {
        int first = from + slice * W::STEPS;
        bool some = first < T;
        scan_maps<map> maps = {shared + round % 2 * (slices * lanes * scan_maps<map>::VALUES), lanes};
        if (some) {
            lane.count = T - first < W::STEPS ? T - first : W::STEPS;
            lane.first = W::REVERSE ? T - first - lane.count : first;
            scan_load(w, lane, 0, now);
            w.resume(lane, state);
            w.prepare(now);
            map own = map::none();
#pragma unroll
            for (int s = 0; s < W::STEPS; s++)
                if (s < lane.count) w.add_step(now[s], state, own);
            maps.store(slice, lane.x, own);
        }
        __syncthreads();
        int left = (T - from + W::STEPS - 1) / W::STEPS, end = left < slices ? left : slices;
        typename map::value before = after;
#pragma unroll 4
        for (int i = 0; i < end; i++) {
            if (i == slice) before = after;
            after = maps.load(i, lane.x).apply(after);
        }
        if (!some) continue;
        w.enter(state, before);
#pragma unroll
        for (int s = 0; s < W::STEPS; s++)
            if (s < lane.count) w.step(lane, scan_time<W>(lane, s), now[s], state, nothing);
    }
    w.end(lane, state, nothing);
}

template <class W> void scan_launch_slices(const struct call *c, const struct exec *x, const W &w) {
    int lanes = scan_slice_lanes(w.shape), slices = scan_slices_of<W>(w.shape);
    size_t shared = 2 * sizeof(typename W::map) * (size_t)(lanes * slices);
    cuda_launch(x->place->cuda, c->kernel->name, __FILE__, __LINE__, scan_walk_slices<W>,
                cuda_blocks(scan_lanes(w.shape), lanes), dim3((unsigned)lanes, (unsigned)slices), shared, w);
}

/* A map of m values, v -> product v + sum. */
template <int m> struct scan_affine {
    struct value {
        real of[m];
    };
    real product[m][m], sum[m];

    static __device__ __forceinline__ scan_affine none(void) {
        scan_affine map = {};
#pragma unroll
        for (int i = 0; i < m; i++) map.product[i][i] = 1;
        return map;
    }
    __device__ __forceinline__ value apply(const value &before) const {
        value after;
#pragma unroll
        for (int i = 0; i < m; i++) {
            after.of[i] = sum[i];
#pragma unroll
            for (int j = 0; j < m; j++) after.of[i] = real_fma(product[i][j], before.of[j], after.of[i]);
        }
        return after;
    }
};

#endif

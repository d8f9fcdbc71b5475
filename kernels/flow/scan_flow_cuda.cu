/* scan_flow_cuda.cu - scan_flow on CUDA. A thread block computes a block of the generator, with one thread per row of
 * the state, which is in shared memory. Small blocks share a thread block, so that neighbouring threads have
 * neighbouring blocks, whose elements are adjacent in memory. If blocks are small enough, a thread loads its row of the
 * generator (backward: its column) some steps ahead (step_ring.cuh). Equations: scan_flow.c. */
#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/flow/step_ring.cuh"

#define FLOW_ROWS    256  /* about the number of threads of a thread block */
#define FLOW_LARGEST 1024 /* largest m */

namespace {

/* elements of a row per load without a ring; with more, threads would have too few registers */
constexpr int FLOW_LOADS = REAL_IS_DOUBLE ? 2 : 8;

/* y is (B,T,N m). A thread block has `side` neighbouring blocks of one sequence; its threads are (block of the side,
 * row). */
struct flow_shape {
    int64_t B, T, N;
    int m, side;
    double clip;
};

struct flow_shape flow_shape_of(const struct call *c) {
    const struct flow_attr *a = flow_attr(c);
    struct flow_shape s = {c->in[0]->dims[0], c->in[0]->dims[1], a->N, (int)a->m, 1, a->clip};
    while (2 * s.side * s.m <= FLOW_ROWS && s.side < s.N) s.side *= 2;
    return s;
}

struct flow_thread {
    int64_t b, k; /* sequence; block, which exists (k < N) if `in` */
    int slot, i;  /* block of the side; row */
    bool in;
};

__device__ inline struct flow_thread flow_here(const struct flow_shape &s) {
    int64_t sides = (s.N + s.side - 1) / s.side;
    struct flow_thread t;
    t.b = blockIdx.x / sides;
    t.slot = (int)threadIdx.x % s.side;
    t.i = (int)threadIdx.x / s.side;
    t.k = blockIdx.x % sides * s.side + t.slot;
    t.in = t.k < s.N;
    return t;
}

} // namespace

/* Returns how many values a thread block reads at a step: a row or column, and `beside` more values, for each
 * thread. */
static __host__ __device__ inline int64_t flow_values(const struct flow_shape &s, int beside) {
    return (int64_t)(s.m + beside) * s.m * s.side;
}

template <bool RINGS>
static __global__ void __launch_bounds__(FLOW_LARGEST)
    flow_forward_kernel(struct flow_shape s, const real *a, const real *y0, real *y) {
    await_previous();
    DYNAMIC_SHARED(real, state); /* two states of m x side, used in turn; the ring */
    struct flow_thread at = flow_here(s);
    int64_t D = s.N * s.m, first = at.b * s.T * D + at.k * s.m + at.i;
    int threads = s.m * s.side, x = (int)threadIdx.x;
    real own = at.in ? y0[at.b * D + at.k * s.m + at.i] : 0;
    auto row = [&](int64_t n) { return a + ((at.b * s.T + n + 1) * s.m + at.i) * D + at.k; };
    auto ask = [&](int64_t n, real *slots) {
        for (int j = 0; j < s.m && at.in; j++) copy_async(slots + j * threads + x, row(n) + j * s.N);
    };
    auto step = [&](int64_t n, const real *slots) {
        real *now = state + n % 2 * threads, before = own;
        now[at.i * s.side + at.slot] = own;
        __syncthreads();
        if (!at.in) return;
        const real *A = RINGS ? slots + x : row(n);
        int64_t stride = RINGS ? threads : s.N;
#pragma unroll FLOW_LOADS
        for (int j = 0; j < s.m; j++) own = real_fma(A[j * stride], now[j * s.side + at.slot], own);
        own = (real)clipped(own, before, s.clip);
        y[first + (n + 1) * D] = own;
    };
    if (at.in) y[first] = own;
    ring_steps<RINGS>(s.T - 1, state + 2 * threads, flow_values(s, 0), ask, step);
}

/* Computes the gradients. da, dy0 NULL: not wanted. At each step a thread reads dy, the previous state, and its
 * column. */
template <bool RINGS>
static __global__ void __launch_bounds__(FLOW_LARGEST)
    flow_backward_kernel(struct flow_shape s, const real *a, const real *y, const real *dy, real *da, bool add_a,
                         real *dy0, bool add_y0) {
    await_previous();
    DYNAMIC_SHARED(real, shared); /* G and the state before, m x side each, two of each used in turn; the ring */
    struct flow_thread at = flow_here(s);
    int64_t D = s.N * s.m, own = at.k * s.m + at.i, last = at.b * s.T + s.T - 1;
    int threads = s.m * s.side, x = (int)threadIdx.x;
    real carried = 0, here = at.in ? y[last * D + own] : 0;
    auto column = [&](int64_t n) { return a + (last - n) * s.m * D + at.i * s.N + at.k; };
    auto ask = [&](int64_t n, real *slots) {
        if (!at.in) return;
        copy_async(slots + x, dy + (last - n) * D + own);
        copy_async(slots + threads + x, y + (last - n - 1) * D + own);
        for (int i = 0; i < s.m; i++) copy_async(slots + (2 + i) * threads + x, column(n) + i * D);
    };
    auto step = [&](int64_t n, const real *slots) {
        real *G = shared + n % 2 * 2 * threads, *states = G + threads, before = 0, moved = 0;
        if (at.in) {
            carried += RINGS ? slots[x] : dy[(last - n) * D + own];
            before = RINGS ? slots[threads + x] : y[(last - n - 1) * D + own];
            moved = carried * (real)clip_slope(here, before, s.clip);
        }
        G[at.i * s.side + at.slot] = moved;
        states[at.i * s.side + at.slot] = here = before;
        __syncthreads();
        if (!at.in) return;
        const real *A = RINGS ? slots + 2 * threads + x : column(n);
        int64_t stride = RINGS ? threads : D;
#pragma unroll FLOW_LOADS
        for (int i = 0; i < s.m; i++) carried = real_fma(A[i * stride], G[i * s.side + at.slot], carried);
        for (int j = 0; da && j < s.m; j++)
            put(da + ((last - n) * s.m + at.i) * D + j * s.N + at.k, add_a, moved * states[j * s.side + at.slot]);
    };
    ring_steps<RINGS>(s.T - 1, shared + 4 * threads, flow_values(s, 2), ask, step);
    if (!at.in) return;
    int64_t first = at.b * s.T;
    if (dy0) put(dy0 + at.b * D + own, add_y0, carried + dy[first * D + own]);
    for (int j = 0; da && !add_a && j < s.m; j++) da[(first * s.m + at.i) * D + j * s.N + at.k] = 0;
}

static bool scan_flow_cuda_applicable(const struct call *c, const char **why) {
    bool fits = flow_shape_of(c).m <= FLOW_LARGEST;
    if (!fits) *why = "blocks go up to 1024";
    return fits;
}

static dim3 flow_blocks(const struct flow_shape &s) {
    return dim3((unsigned)(s.B * ((s.N + s.side - 1) / s.side)));
}

static void scan_flow_cuda_forward(const struct call *c, const struct exec *x) {
    struct flow_shape s = flow_shape_of(c);
    int64_t values = flow_values(s, 0);
    size_t bytes = 2 * (size_t)(s.m * s.side) * sizeof(real);
    bool rings = step_ring_pays(x, s.T - 1, values, bytes);
    LAUNCH(x, (rings ? flow_forward_kernel<true> : flow_forward_kernel<false>), flow_blocks(s),
           dim3((unsigned)(s.m * s.side)), bytes + (rings ? step_ring_bytes(values) : 0), s, tensor_real(c->in[0]),
           tensor_real(c->in[1]), tensor_real(c->out[0]));
}

static void scan_flow_cuda_backward(const struct call *c, const struct exec *x) {
    struct flow_shape s = flow_shape_of(c);
    int64_t values = flow_values(s, 2);
    size_t bytes = 4 * (size_t)(s.m * s.side) * sizeof(real);
    bool rings = step_ring_pays(x, s.T - 1, values, bytes);
    LAUNCH(x, (rings ? flow_backward_kernel<true> : flow_backward_kernel<false>), flow_blocks(s),
           dim3((unsigned)(s.m * s.side)), bytes + (rings ? step_ring_bytes(values) : 0), s, tensor_real(c->in[0]),
           tensor_real(c->out[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0), c->din[1],
           call_accumulates(c, 1));
}

/* Tolerance: each step adds the rounding errors of m products, and older errors grow like the state itself. */
const struct kernel kernel_scan_flow_cuda = {
    .name = "scan_flow_cuda",
    .op = &op_scan_flow,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 128,
    .applicable = scan_flow_cuda_applicable,
    .forward = scan_flow_cuda_forward,
    .backward = scan_flow_cuda_backward,
};

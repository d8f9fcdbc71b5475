/* scan_flow_cuda.cu - scan_flow on CUDA, a block of threads a generator's block: a thread a row of the state, which all
 * of them have in shared memory. Small blocks share a thread block, so that neighbouring threads are neighbouring
 * generators, as their elements lie in memory. Equations: scan_flow.c. */
#include "kernels/flow/clip.h"
#include "kernels/flow/flow.h"
#include "kernels/lib/cuda.cuh"

#define FLOW_ROWS    256  /* threads of a thread block, about */
#define FLOW_LARGEST 1024 /* m */

namespace {

/* y (B,T,N m); a thread block has `side` neighbouring blocks of one sequence, threads (block of the side, row). */
struct flow_shape {
    int64_t B, T, N;
    int m, side;
    double clip;
};

struct flow_shape flow_shape_of(const struct call *c) {
    const struct flow_attr *a = (const struct flow_attr *)c->attr;
    struct flow_shape s = {c->in[0]->dims[0], c->in[0]->dims[1], a->N, (int)a->m, 1, a->clip};
    while (2 * s.side * s.m <= FLOW_ROWS && s.side < s.N) s.side *= 2;
    return s;
}

struct flow_thread {
    int64_t b, k; /* sequence; block, below N where `in` */
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

static __global__ void __launch_bounds__(FLOW_LARGEST)
    flow_forward_kernel(struct flow_shape s, const real *a, const real *y0, real *y) {
    await_previous();
    DYNAMIC_SHARED(real, state); /* m x side, twice by turns */
    struct flow_thread at = flow_here(s);
    int64_t D = s.N * s.m;
    real own = at.in ? y0[at.b * D + at.k * s.m + at.i] : 0;
    for (int64_t t = 0; t < s.T; t++) {
        real *now = state + t % 2 * s.m * s.side;
        if (t > 0) {
            now[at.i * s.side + at.slot] = own;
            __syncthreads();
            const real *row = a + ((at.b * s.T + t) * s.m + at.i) * D + at.k;
            real before = own;
            for (int j = 0; j < s.m && at.in; j++) own = real_fma(row[j * s.N], now[j * s.side + at.slot], own);
            own = (real)clipped(own, before, s.clip);
        }
        if (at.in) y[(at.b * s.T + t) * D + at.k * s.m + at.i] = own;
    }
}

/* da, dy0 NULL: not wanted. */
static __global__ void __launch_bounds__(FLOW_LARGEST)
    flow_backward_kernel(struct flow_shape s, const real *a, const real *y, const real *dy, real *da, bool add_a,
                         real *dy0, bool add_y0) {
    await_previous();
    DYNAMIC_SHARED(real, shared); /* G and the state before, m x side each, twice by turns */
    struct flow_thread at = flow_here(s);
    int64_t D = s.N * s.m;
    real carried = 0;
    for (int64_t t = s.T - 1; t >= 0; t--) {
        int64_t row = at.b * s.T + t;
        real *G = shared + t % 2 * 2 * s.m * s.side, *before = G + s.m * s.side;
        real own = carried + (at.in ? dy[row * D + at.k * s.m + at.i] : 0);
        if (t == 0) {
            if (dy0 && at.in) put(dy0 + at.b * D + at.k * s.m + at.i, add_y0, own);
            for (int j = 0; da && at.in && !add_a && j < s.m; j++) da[(row * s.m + at.i) * D + j * s.N + at.k] = 0;
            return;
        }
        const real *here = y + row * D + at.k * s.m + at.i;
        real moved = at.in ? own * (real)clip_slope(here[0], here[-D], s.clip) : 0;
        G[at.i * s.side + at.slot] = moved;
        before[at.i * s.side + at.slot] = at.in ? here[-D] : 0;
        __syncthreads();
        carried = own;
        for (int i = 0; i < s.m && at.in; i++) /* this thread's row is a column of A here */
            carried = real_fma(a[(row * s.m + i) * D + at.i * s.N + at.k], G[i * s.side + at.slot], carried);
        for (int j = 0; da && at.in && j < s.m; j++)
            put(da + (row * s.m + at.i) * D + j * s.N + at.k, add_a, moved * before[j * s.side + at.slot]);
    }
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
    LAUNCH(x, flow_forward_kernel, flow_blocks(s), dim3((unsigned)(s.m * s.side)),
           2 * (size_t)(s.m * s.side) * sizeof(real), s, tensor_real(c->in[0]), tensor_real(c->in[1]),
           tensor_real(c->out[0]));
}

static void scan_flow_cuda_backward(const struct call *c, const struct exec *x) {
    struct flow_shape s = flow_shape_of(c);
    LAUNCH(x, flow_backward_kernel, flow_blocks(s), dim3((unsigned)(s.m * s.side)),
           4 * (size_t)(s.m * s.side) * sizeof(real), s, tensor_real(c->in[0]), tensor_real(c->out[0]), call_dout(c, 0),
           c->din[0], call_accumulates(c, 0), c->din[1], call_accumulates(c, 1));
}

/* Tolerance: as scan_flow_cpu. */
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

/* scan_companion_cuda.cu - H-LRU on CUDA, both layouts: a thread a channel, its m states in registers, by the engine of
 * scan.cuh. Backward recomputes the gates and reads one state a time step: the companion's are a window over the first one,
 *   s_{t-1}[j] = s_t[j+1],
 * of which a step back in time brings in the oldest alone; the observer's gates meet s_{t-1}[0] alone. */
#include "kernels/scan.cuh"

namespace {

#define SCAN_COMPANION_IN_FLIGHT 48 /* values a thread asks for at once */

struct companion_walk {
    static constexpr int ROWS = 1, LANES = 64;
    using shared = scan_nothing_shared;
    scan_shape shape;
    enum gate gate;
    const real *z, *v;
};

template <int m, enum companion_layout LAYOUT>
struct companion_forward : companion_walk {
    static constexpr int STEPS = scan_steps(m + 2, SCAN_COMPANION_IN_FLIGHT); static constexpr bool REVERSE = false;
    struct input{scan_gates<m> gates; real v;};
struct state {
    real s[m];
};
real *h;

__device__ __forceinline__ void begin(const scan_lane &, state &at, shared &) const {
    at = {};
}
__device__ __forceinline__ input load(const scan_lane &lane, int t) const {
    input in = {};
    in.gates.load(z + lane.at(t, m + 1), lane.N);
    in.v = v[lane.at(t)];
    return in;
}
__device__ __forceinline__ void prepare(input &in) const {
    in.gates.normalise(gate);
}
__device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &at, shared &) const {
    real next[m], sum = in.gates.p[m] * in.v, first = at.s[0] * in.gates.scale;
    if constexpr (LAYOUT == LAYOUT_COMPANION) {
#pragma unroll
        for (int j = 0; j < m; j++) sum = real_fma(in.gates.p[j], at.s[j], sum);
        next[0] = sum * in.gates.scale;
#pragma unroll
        for (int j = 1; j < m; j++) next[j] = at.s[j - 1];
    } else {
#pragma unroll
        for (int j = 0; j < m; j++) next[j] = real_fma(in.gates.p[j], first, j + 1 < m ? at.s[(j + 1) % m] : 0);
        next[0] = real_fma(sum, in.gates.scale, next[0]);
    }
    real *row = h + lane.at(t, m);
#pragma unroll
    for (int j = 0; j < m; j++) {
        at.s[j] = next[j];
        if (lane.stores) row[j * lane.N] = next[j];
    }
}
__device__ __forceinline__ void end(const scan_lane &, const state &) const {}
}; // namespace

template <int m, enum companion_layout LAYOUT>
struct companion_adjoint : companion_walk {
    static constexpr bool WINDOW = LAYOUT == LAYOUT_COMPANION;
    static constexpr int STEPS = scan_steps(2 * m + 3, SCAN_COMPANION_IN_FLIGHT); static constexpr bool REVERSE = true;
    struct input{
        scan_gates<m> gates; real v, ds[m], s; /* s: with a window s_{t-2}[m-1], without s_{t-1}[0] */
    };
struct state {
    real carry[m];               /* A_{t+1}^T G_{t+1} */
    real s;                      /* with a window s_t[0] */
    real before[WINDOW ? m : 1]; /* s_{t-1} */
};
const real *h, *ds;
real *dz, *dv;
bool add_dz, add_dv;

__device__ __forceinline__ real state_at(const scan_lane &lane, int t, int j) const {
    return t < 0 ? 0 : h[lane.at(t, m) + j * lane.N];
}
__device__ __forceinline__ void begin(const scan_lane &lane, state &at, shared &) const {
    at = {};
    if constexpr (WINDOW) {
        at.s = state_at(lane, shape.T - 1, 0);
#pragma unroll
        for (int j = 0; j < m; j++) at.before[j] = state_at(lane, shape.T - 2, j);
    }
}
__device__ __forceinline__ input load(const scan_lane &lane, int t) const {
    input in = {};
    in.gates.load(z + lane.at(t, m + 1), lane.N);
    in.v = v[lane.at(t)];
#pragma unroll
    for (int j = 0; j < m; j++) in.ds[j] = ds[lane.at(t, m) + j * lane.N];
    in.s = WINDOW ? state_at(lane, t - 2, m - 1) : state_at(lane, t - 1, 0);
    return in;
}
__device__ __forceinline__ void prepare(input &in) const {
    in.gates.normalise(gate);
}

/* dz of gate j, da its gradient: w_j (da - sum_l a_l da_l). */
__device__ __forceinline__ void store_dz(const scan_lane &lane, int t, int j, const input &in,
                                         real da_less_mean) const {
    if (dz && lane.stores) put(&dz[lane.at(t, m + 1) + j * lane.N], add_dz, in.gates.slope(gate, j) * da_less_mean);
}

/* Only row 0 has gates: sum_l a_l da_l = G[0] s_t[0]. */
__device__ __forceinline__ void step_window(const scan_lane &lane, int t, const input &in, const real *G,
                                            state &at) const {
    real mean = gate_divides(gate) ? at.s : 0, G_scale = G[0] * in.gates.scale;
#pragma unroll
    for (int j = 0; j < m; j++) {
        at.carry[j] = real_fma(in.gates.p[j], G_scale, j + 1 < m ? G[(j + 1) % m] : 0);
        store_dz(lane, t, j, in, G[0] * (at.before[j] - mean));
    }
    store_dz(lane, t, m, in, G[0] * (in.v - mean));
    at.s = at.before[0];
#pragma unroll
    for (int j = 0; j + 1 < m; j++) at.before[j] = at.before[j + 1];
    at.before[m - 1] = in.s;
}

__device__ __forceinline__ void step_observer(const scan_lane &lane, int t, const input &in, const real *G, real dv_t,
                                              state &at) const {
    real back = 0; /* sum_i a_i G[i] */
#pragma unroll
    for (int j = 0; j < m; j++) back = real_fma(in.gates.p[j] * in.gates.scale, G[j], back);
    real mean = gate_divides(gate) ? real_fma(back, in.s, dv_t * in.v) : 0;
#pragma unroll
    for (int j = 0; j < m; j++) {
        at.carry[j] = j == 0 ? back : G[(j + m - 1) % m];
        store_dz(lane, t, j, in, G[j] * in.s - mean);
    }
    store_dz(lane, t, m, in, G[0] * in.v - mean);
}

__device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &at, shared &) const {
    real G[m];
#pragma unroll
    for (int j = 0; j < m; j++) G[j] = in.ds[j] + at.carry[j];
    real dv_t = in.gates.p[m] * (G[0] * in.gates.scale);
    if (dv && lane.stores) put(&dv[lane.at(t)], add_dv, dv_t);
    if constexpr (WINDOW)
        step_window(lane, t, in, G, at);
    else
        step_observer(lane, t, in, G, dv_t, at);
}
__device__ __forceinline__ void end(const scan_lane &, const state &) const {}
}
;

/* --- calls -------------------------------------------------------------------------------------------------------------- */

companion_walk walk_of(const struct call *c) {
    const int64_t *dims = c->in[1]->dims;
    return {scan_whole(dims[0], dims[1], dims[2]), ((const struct scan_attr *)c->attr)->gate, tensor_real(c->in[0]),
            tensor_real(c->in[1])};
}

template <enum companion_layout LAYOUT> void run_forward(const struct call *c, const struct exec *x) {
    scan_with((const struct scan_attr *)c->attr, [=]<int m>() {
        scan_launch(c, x, companion_forward<m, LAYOUT>{walk_of(c), tensor_real(c->out[0])});
    });
}

template <enum companion_layout LAYOUT> void run_backward(const struct call *c, const struct exec *x) {
    scan_with((const struct scan_attr *)c->attr, [=]<int m>() {
        scan_launch(c, x,
                    companion_adjoint<m, LAYOUT>{walk_of(c), tensor_real(c->out[0]), call_dout(c, 0), c->din[0],
                                                 c->din[1], call_accumulates(c, 0), call_accumulates(c, 1)});
    });
}

bool is_companion(const struct call *c) {
    return ((const struct scan_attr *)c->attr)->layout == LAYOUT_COMPANION;
}

void scan_companion_cuda_forward(const struct call *c, const struct exec *x) {
    is_companion(c) ? run_forward<LAYOUT_COMPANION>(c, x) : run_forward<LAYOUT_OBSERVER>(c, x);
}

void scan_companion_cuda_backward(const struct call *c, const struct exec *x) {
    is_companion(c) ? run_backward<LAYOUT_COMPANION>(c, x) : run_backward<LAYOUT_OBSERVER>(c, x);
}

} // namespace

/* Rounding as scan_companion_cpu's, which says why. */
const struct kernel kernel_scan_companion_cuda = {
    .name = "scan_companion_cuda",
    .op = &op_scan_companion,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 128,
    .applicable = scan_cpu_applicable,
    .forward = scan_companion_cuda_forward,
    .backward = scan_companion_cuda_backward,
};

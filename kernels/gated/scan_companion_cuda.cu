/* scan_companion_cuda.cu - H-LRU (scan_companion.c) on CUDA, both layouts, with the scan engine of scan.cuh. One thread
 * per channel has the channel's m states in registers. Backward recomputes the gates and reads only one state per time
 * step. In the companion layout the states are a window over time,
 *   s_{t-1}[j] = s_t[j+1],
 * so a step back in time needs to read only the oldest state. In the observer layout all gates multiply s_{t-1}[0], so
 * only this state is needed. */
#include "kernels/gated/scan_gates.cuh"

namespace {

#define SCAN_COMPANION_IN_FLIGHT 48 /* values that a thread requests at once */

struct companion_walk {
    static constexpr int ROWS = 1, LANES = 64;
    using shared = scan_nothing_shared;
    scan_shape shape;
    enum gate gate;
    const real *z, *v;
};

/* Computes s = A s + a_m v e_0. The gates in `row` and `a_m_v` are not yet multiplied by the scale 1 / S. A is the
 * companion matrix, or its transpose for the observer layout. */
template <int m, companion_layout LAYOUT>
__device__ __forceinline__ void companion_apply(const scan_gates<m> &gates, real a_m_v, real *s) {
    real first = s[0] * gates.scale;
    if constexpr (LAYOUT == LAYOUT_COMPANION) {
#pragma unroll
        for (int j = 0; j < m; j++) a_m_v = real_fma(gates.p[j], s[j], a_m_v);
#pragma unroll
        for (int j = m - 1; j > 0; j--) s[j] = s[j - 1];
        s[0] = a_m_v * gates.scale;
    } else {
#pragma unroll
        for (int j = 0; j < m; j++) s[j] = real_fma(gates.p[j], first, j + 1 < m ? s[(j + 1) % m] : 0);
        s[0] = real_fma(a_m_v, gates.scale, s[0]);
    }
}

template <int m, companion_layout LAYOUT> struct companion_forward : companion_walk {
    static constexpr int VALUES = m + 2, STEPS = scan_steps(VALUES, SCAN_COMPANION_IN_FLIGHT);
    static constexpr bool REVERSE = false;
    struct input {
        scan_gates<m> gates;
        real v;
    };
    struct state {
        real s[m];
    };
    const real *carry; /* the state before each lane's first step; NULL means zeros */
    real *h;

    __device__ __forceinline__ void begin(const scan_lane &lane, state &at, shared &) const {
#pragma unroll
        for (int j = 0; j < m; j++) at.s[j] = scan_first(carry, shape, lane, j);
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        input in = {};
        in.gates.load(z + lane.at(t, m + 1), lane.N, read);
        in.v = read(v + lane.at(t));
        return in;
    }
    __device__ __forceinline__ void prepare(input *in) const {
        scan_normalise<m, STEPS>(gate, in);
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &at, shared &) const {
        companion_apply<m, LAYOUT>(in.gates, in.gates.p[m] * in.v, at.s);
        real *row = h + lane.at(t, m);
#pragma unroll
        for (int j = 0; j < m; j++)
            if (lane.stores) row[j * lane.N] = at.s[j];
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, shared &) const {}
};

/* Computes the summary of a chunk: its transition product, column by column, and the state after it if the state before
 * it is zero. For the adjoint: the product, and the carry that leaves the chunk if no carry enters. The adjoint's
 * transition has the form of the other layout. */
template <int m, companion_layout LAYOUT, bool ADJOINT> struct companion_summary : companion_walk {
    static constexpr companion_layout APPLIED =
        ADJOINT == (LAYOUT == LAYOUT_OBSERVER) ? LAYOUT_COMPANION : LAYOUT_OBSERVER;
    static constexpr int VALUES = ADJOINT ? 2 * m + 1 : m + 2, STEPS = scan_steps(VALUES, SCAN_COMPANION_IN_FLIGHT);
    static constexpr bool REVERSE = ADJOINT;
    struct input {
        scan_gates<m> gates;
        real x[ADJOINT ? m : 1];
    };
    struct state {
        real column[m][m], sum[m];
    };
    const real *x; /* v, or ds for the adjoint */
    real *summary;

    __device__ __forceinline__ void begin(const scan_lane &, state &at, shared &) const {
        at = {};
#pragma unroll
        for (int j = 0; j < m; j++) at.column[j][j] = 1;
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        input in = {};
        in.gates.load(z + lane.at(t, m + 1), lane.N, read);
#pragma unroll
        for (int j = 0; j < (ADJOINT ? m : 1); j++) in.x[j] = read(x + lane.at(t, ADJOINT ? m : 1) + j * lane.N);
        return in;
    }
    __device__ __forceinline__ void prepare(input *in) const {
        scan_normalise<m, STEPS>(gate, in);
    }
    __device__ __forceinline__ void step(const scan_lane &, int, const input &in, state &at, shared &) const {
#pragma unroll
        for (int j = 0; j < m; j++) {
            companion_apply<m, APPLIED>(in.gates, 0, at.column[j]);
            if constexpr (ADJOINT) at.sum[j] += in.x[j];
        }
        companion_apply<m, APPLIED>(in.gates, ADJOINT ? 0 : in.gates.p[m] * in.x[0], at.sum);
    }
    __device__ __forceinline__ void end(const scan_lane &lane, const state &at, shared &) const {
        real *to = summary + lane.index;
        int64_t plane = scan_lanes(shape);
        if (!lane.stores) return;
#pragma unroll
        for (int i = 0; i < m; i++) {
#pragma unroll
            for (int j = 0; j < m; j++) to[(i * m + j) * plane] = at.column[j][i];
            to[(m * m + i) * plane] = at.sum[i];
        }
    }
};

template <int m, companion_layout LAYOUT> struct companion_adjoint : companion_walk {
    static constexpr bool WINDOW = LAYOUT == LAYOUT_COMPANION;
    static constexpr int VALUES = 2 * m + 3, STEPS = scan_steps(VALUES, SCAN_COMPANION_IN_FLIGHT);
    static constexpr bool REVERSE = true;
    struct input {
        scan_gates<m> gates;
        real v, ds[m], s; /* s: in the companion layout s_{t-2}[m-1], in the observer layout s_{t-1}[0] */
    };
    struct state {
        real carry[m];               /* A_{t+1}^T G_{t+1} */
        real s;                      /* only in the companion layout: s_t[0] */
        real before[WINDOW ? m : 1]; /* only in the companion layout: s_{t-1} */
    };
    const real *h, *ds, *carry; /* carry: A_{t+1}^T G_{t+1} for each lane's last step t; NULL means zeros */
    real *dz, *dv;
    bool add_dz, add_dv;

    template <class Read>
    __device__ __forceinline__ real state_at(const scan_lane &lane, int t, int j, Read read) const {
        return t < 0 ? 0 : read(h + lane.at(t, m) + j * lane.N);
    }
    __device__ __forceinline__ void begin(const scan_lane &lane, state &at, shared &) const {
        at = {};
#pragma unroll
        for (int j = 0; j < m; j++) at.carry[j] = scan_first(carry, shape, lane, j);
        resume(lane, at);
    }
    /* Reads the states at and before the lane's last step. */
    __device__ __forceinline__ void resume(const scan_lane &lane, state &at) const {
        if constexpr (WINDOW) {
#pragma unroll
            for (int j = 0; j < m; j++) at.before[j] = state_at(lane, lane.last() - 1, j, scan_at_once());
            at.s = state_at(lane, lane.last(), 0, scan_at_once());
        }
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        input in = {};
        in.gates.load(z + lane.at(t, m + 1), lane.N, read);
        in.v = read(v + lane.at(t));
#pragma unroll
        for (int j = 0; j < m; j++) in.ds[j] = read(ds + lane.at(t, m) + j * lane.N);
        in.s = WINDOW ? state_at(lane, t - 2, m - 1, read) : state_at(lane, t - 1, 0, read);
        return in;
    }
    __device__ __forceinline__ void prepare(input *in) const {
        scan_normalise<m, STEPS>(gate, in);
    }

    /* Stores dz of gate j = w_j da_less_mean, where da_less_mean = da_j - sum_l a_l da_l. */
    __device__ __forceinline__ void store_dz(const scan_lane &lane, int t, int j, const input &in,
                                             real da_less_mean) const {
        if (dz && lane.stores) put(&dz[lane.at(t, m + 1) + j * lane.N], add_dz, in.gates.slope(gate, j) * da_less_mean);
    }

    /* Computes the gradients of a step in the companion layout. Only row 0 of A has gates, so sum_l a_l da_l = G[0]
     * s_t[0]. */
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

    __device__ __forceinline__ void step_observer(const scan_lane &lane, int t, const input &in, const real *G,
                                                  real dv_t, state &at) const {
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
    __device__ __forceinline__ void end(const scan_lane &, const state &, shared &) const {}
};

/* --- slices ------------------------------------------------------------------------------------------------------- */

/* Appends a step of layout APPLIED to a map: to each column of its product, and to its sum, to which a_m v is added. */
template <int m, companion_layout APPLIED>
__device__ __forceinline__ void companion_add_step(const scan_gates<m> &gates, real a_m_v, scan_affine<m> &map) {
#pragma unroll
    for (int j = 0; j < m; j++) {
        real column[m];
#pragma unroll
        for (int i = 0; i < m; i++) column[i] = map.product[i][j];
        companion_apply<m, APPLIED>(gates, 0, column);
#pragma unroll
        for (int i = 0; i < m; i++) map.product[i][j] = column[i];
    }
    companion_apply<m, APPLIED>(gates, a_m_v, map.sum);
}

template <int m, companion_layout LAYOUT> struct companion_slice_forward : companion_forward<m, LAYOUT> {
    using walk = companion_forward<m, LAYOUT>;
    using map = scan_affine<m>;
    __device__ __forceinline__ void resume(const scan_lane &, typename walk::state &) const {}
    __device__ __forceinline__ void add_step(const typename walk::input &in, const typename walk::state &,
                                             map &steps) const {
        companion_add_step<m, LAYOUT>(in.gates, in.gates.p[m] * in.v, steps);
    }
    __device__ __forceinline__ void enter(typename walk::state &at, const typename map::value &before) const {
#pragma unroll
        for (int j = 0; j < m; j++) at.s[j] = before.of[j];
    }
};

template <int m, companion_layout LAYOUT> struct companion_slice_adjoint : companion_adjoint<m, LAYOUT> {
    using walk = companion_adjoint<m, LAYOUT>;
    using map = scan_affine<m>;
    __device__ __forceinline__ void add_step(const typename walk::input &in, const typename walk::state &,
                                             map &steps) const {
#pragma unroll
        for (int j = 0; j < m; j++) steps.sum[j] += in.ds[j];
        companion_add_step<m, companion_summary<m, LAYOUT, true>::APPLIED>(in.gates, 0, steps);
    }
    __device__ __forceinline__ void enter(typename walk::state &at, const typename map::value &before) const {
#pragma unroll
        for (int j = 0; j < m; j++) at.carry[j] = before.of[j];
    }
};

/* --- calls -------------------------------------------------------------------------------------------------------- */

template <bool CHUNKED> scan_shape shape_of(const struct call *c) {
    const int64_t *dims = c->in[1]->dims;
    return CHUNKED ? scan_chunked(dims[0], dims[1], dims[2], 1) : scan_whole(dims[0], dims[1], dims[2]);
}

companion_walk walk_of(const struct call *c, const scan_shape &shape) {
    return {shape, scan_attr(c)->gate, tensor_real(c->in[0]), tensor_real(c->in[1])};
}

/* Returns the state before each chunk; for the adjoint, the carry that enters each chunk from later ones. x is v, or ds
 * for the adjoint. */
template <int m, companion_layout LAYOUT, bool ADJOINT>
const real *chunk_states(const struct call *c, const struct exec *e, const scan_shape &shape, const real *x) {
    real *summary = (real *)c->scratch[ADJOINT ? PASS_BACKWARD : PASS_FORWARD];
    scan_launch(c, e, companion_summary<m, LAYOUT, ADJOINT>{walk_of(c, shape), x, summary});
    return scan_carry_over<m, ADJOINT, false>(c, e, shape, summary);
}

template <companion_layout LAYOUT, bool CHUNKED> void run_forward(const struct call *c, const struct exec *e) {
    scan_with(scan_attr(c), [=]<int m>() {
        scan_shape shape = shape_of<CHUNKED>(c);
        const real *carry = nullptr;
        if constexpr (CHUNKED) carry = chunk_states<m, LAYOUT, false>(c, e, shape, tensor_real(c->in[1]));
        scan_launch_long(c, e, companion_forward<m, LAYOUT>{walk_of(c, shape), carry, tensor_real(c->out[0])});
    });
}

template <companion_layout LAYOUT, bool CHUNKED> void run_backward(const struct call *c, const struct exec *e) {
    scan_with(scan_attr(c), [=]<int m>() {
        scan_shape shape = shape_of<CHUNKED>(c);
        const real *carry = nullptr;
        if constexpr (CHUNKED) carry = chunk_states<m, LAYOUT, true>(c, e, shape, call_dout(c, 0));
        scan_launch_long(c, e,
                         companion_adjoint<m, LAYOUT>{walk_of(c, shape), tensor_real(c->out[0]), call_dout(c, 0), carry,
                                                      c->din[0], c->din[1], call_accumulates(c, 0),
                                                      call_accumulates(c, 1)});
    });
}

template <companion_layout LAYOUT> void run_slices_forward(const struct call *c, const struct exec *e) {
    scan_with_sliced(scan_attr(c), [=]<int m>() {
        scan_launch_slices(
            c, e,
            companion_slice_forward<m, LAYOUT>{{walk_of(c, shape_of<false>(c)), nullptr, tensor_real(c->out[0])}});
    });
}

template <companion_layout LAYOUT> void run_slices_backward(const struct call *c, const struct exec *e) {
    scan_with_sliced(scan_attr(c), [=]<int m>() {
        scan_launch_slices(c, e,
                           companion_slice_adjoint<m, LAYOUT>{{walk_of(c, shape_of<false>(c)), tensor_real(c->out[0]),
                                                               call_dout(c, 0), nullptr, c->din[0], c->din[1],
                                                               call_accumulates(c, 0), call_accumulates(c, 1)}});
    });
}

bool is_companion(const struct call *c) {
    return scan_attr(c)->layout == LAYOUT_COMPANION;
}

template <bool CHUNKED> void companion_cuda_forward(const struct call *c, const struct exec *e) {
    is_companion(c) ? run_forward<LAYOUT_COMPANION, CHUNKED>(c, e) : run_forward<LAYOUT_OBSERVER, CHUNKED>(c, e);
}

template <bool CHUNKED> void companion_cuda_backward(const struct call *c, const struct exec *e) {
    is_companion(c) ? run_backward<LAYOUT_COMPANION, CHUNKED>(c, e) : run_backward<LAYOUT_OBSERVER, CHUNKED>(c, e);
}

void slices_forward(const struct call *c, const struct exec *e) {
    is_companion(c) ? run_slices_forward<LAYOUT_COMPANION>(c, e) : run_slices_forward<LAYOUT_OBSERVER>(c, e);
}

void slices_backward(const struct call *c, const struct exec *e) {
    is_companion(c) ? run_slices_backward<LAYOUT_COMPANION>(c, e) : run_slices_backward<LAYOUT_OBSERVER>(c, e);
}

bool slices_preferred(const struct call *c) {
    return scan_gated_slices_pay(c, 1);
}

size_t chunk_workspace(const struct call *c, enum pass) {
    int64_t m = scan_attr(c)->m;
    return (size_t)scan_chunk_values(shape_of<true>(c), m, false) * sizeof(real);
}

bool chunks_preferred(const struct call *c) {
    int64_t m = scan_attr(c)->m;
    return scan_gated_chunks_pay(c, m + 2);
}

} // namespace

/* Tolerance: each step adds about one rounding unit, and the reference sums in double. In the companion layout the
 * gates sum to 1, so old errors do not grow; in the observer layout they may grow with T. In chunks and slices, the
 * products and their results also round once per time step. */
const struct kernel kernel_scan_companion_cuda = {
    .name = "scan_companion_cuda",
    .op = &op_scan_companion,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 128,
    .applicable = scan_gates_fit,
    .forward = companion_cuda_forward<false>,
    .backward = companion_cuda_backward<false>,
};

const struct kernel kernel_scan_companion_chunk_cuda = {
    .name = "scan_companion_chunk_cuda",
    .op = &op_scan_companion,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 128,
    .applicable = scan_gates_fit,
    .preferred = chunks_preferred,
    .workspace = chunk_workspace,
    .forward = companion_cuda_forward<true>,
    .backward = companion_cuda_backward<true>,
};

const struct kernel kernel_scan_companion_slice_cuda = {
    .name = "scan_companion_slice_cuda",
    .op = &op_scan_companion,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 128,
    .applicable = scan_slices_fit,
    .preferred = slices_preferred,
    .forward = slices_forward,
    .backward = slices_backward,
};

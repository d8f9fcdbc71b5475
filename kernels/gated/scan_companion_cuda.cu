/* scan_companion_cuda.cu - H-LRU on CUDA, both layouts, by the engine of scan.cuh: a thread per channel has its m
 * states in registers. Backward recomputes the gates and reads only one state per time step. In the companion layout
 * the states are a window over time,
 *   s_{t-1}[j] = s_t[j+1],
 * so a step back needs only the oldest one. In the observer layout all gates multiply s_{t-1}[0]. */
#include "kernels/gated/scan_gates.cuh"

namespace {

#define SCAN_COMPANION_IN_FLIGHT 48 /* values that a thread loads at the same time */

struct companion_walk {
    static constexpr int ROWS = 1, LANES = 64;
    using shared = scan_nothing_shared;
    scan_shape shape;
    enum gate gate;
    const real *z, *v;
};

/* s = A s + a_m v e_0. The row's gates and a_m_v are not scaled yet. A is the companion matrix or the observer's, its
 * transpose. */
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
    const real *carry; /* the first state of each lane; NULL means zeros */
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

/* A chunk's transition product, column by column, and its last state from a zero state; for the adjoint, the last
 * carry, whose transition is the other layout's. */
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
    const real *x; /* forward v, backward ds */
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
        real v, ds[m], s; /* s: with a window s_{t-2}[m-1], without s_{t-1}[0] */
    };
    struct state {
        real carry[m];               /* A_{t+1}^T G_{t+1} */
        real s;                      /* with a window s_t[0] */
        real before[WINDOW ? m : 1]; /* s_{t-1} */
    };
    const real *h, *ds, *carry; /* carry: A_{t+1}^T G_{t+1} of each lane's last step t; NULL is zero */
    real *dz, *dv;
    bool add_dz, add_dv;

    template <class Read>
    __device__ __forceinline__ real state_at(const scan_lane &lane, int t, int j, Read read) const {
        return t < 0 ? 0 : read(h + lane.at(t, m) + j * lane.N);
    }
    __device__ __forceinline__ void begin(const scan_lane &lane, state &at, shared &) const {
        at = {};
#pragma unroll
        for (int j = 0; j < m; j++) {
            at.carry[j] = scan_first(carry, shape, lane, j);
            if constexpr (WINDOW) at.before[j] = state_at(lane, lane.last() - 1, j, scan_at_once());
        }
        if constexpr (WINDOW) at.s = state_at(lane, lane.last(), 0, scan_at_once());
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

/* --- calls -------------------------------------------------------------------------------------------------------- */

template <bool CHUNKED> scan_shape shape_of(const struct call *c) {
    const int64_t *dims = c->in[1]->dims;
    return CHUNKED ? scan_chunked(dims[0], dims[1], dims[2], 1) : scan_whole(dims[0], dims[1], dims[2]);
}

companion_walk walk_of(const struct call *c, const scan_shape &shape) {
    return {shape, scan_attr(c)->gate, tensor_real(c->in[0]), tensor_real(c->in[1])};
}

/* The first states of chunks, or carries into them; x: v or ds. */
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

bool is_companion(const struct call *c) {
    return scan_attr(c)->layout == LAYOUT_COMPANION;
}

template <bool CHUNKED> void companion_cuda_forward(const struct call *c, const struct exec *e) {
    is_companion(c) ? run_forward<LAYOUT_COMPANION, CHUNKED>(c, e) : run_forward<LAYOUT_OBSERVER, CHUNKED>(c, e);
}

template <bool CHUNKED> void companion_cuda_backward(const struct call *c, const struct exec *e) {
    is_companion(c) ? run_backward<LAYOUT_COMPANION, CHUNKED>(c, e) : run_backward<LAYOUT_OBSERVER, CHUNKED>(c, e);
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

/* Tolerance: as scan_companion_cpu, for the same reasons. In chunks, the products and their results also round once per
 * time step. */
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

/* stable_cuda.cu - stable_gates and stable_readout on CUDA; stable_gates.c and stable_readout.c have the equations.
 *
 * stable_gates takes three launches: logarithms with one value per thread, a walk along time (scan.cuh) with one thread
 * per head of a sequence, and exponentials with one value per thread. The walk has few threads and is sequential, so it
 * only adds and compares: a logarithm or exponential would take hundreds of cycles per time step. stable_readout has
 * one thread per head of a token. */
#include "kernels/lib/scan.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/stable/stable.h"

namespace {

/* --- stable_gates forward; all arrays are (B,T,H) ----------------------------------------------------------------- */

struct log_sigmoid {
    const real *f;
    double *to;
    __device__ void operator()(int64_t e) const {
        double x = (double)f[e];
        to[e] = (x < 0 ? x : 0) - log1p(exp(-fabs(x)));
    }
};

/* Computes the maxima m. The walk reads doubles from scratch memory directly, without `read`, so scan_launch_long
 * cannot run it. */
struct maximum_walk {
    static constexpr int ROWS = 1, LANES = WARP, VALUES = 3, STEPS = scan_steps(VALUES, 48);
    static constexpr bool REVERSE = false;
    using shared = scan_nothing_shared;
    struct input {
        double forget;
        real input;
    };
    struct state {
        double m;
    };
    scan_shape shape;
    const double *forget; /* log sigmoid of f */
    const real *i;
    double *m;
    double start;

    __device__ __forceinline__ void begin(const scan_lane &, state &s, shared &) const {
        s.m = start;
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read) const {
        return {forget[lane.at(t)], i[lane.at(t)]};
    }
    __device__ __forceinline__ void prepare(input *) const {}
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &) const {
        double a = in.forget + s.m, from_input = (double)in.input;
        s.m = a < from_input ? from_input : a;
        if (lane.stores) m[lane.at(t)] = s.m;
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, shared &) const {}
};

struct gates_from_maxima {
    const double *forget, *top;
    const real *i;
    real *decay, *source, *m;
    int64_t T, H;
    double start;
    __device__ void operator()(int64_t e) const {
        bool first = divide(divide(e, H).whole, T).rest == 0;
        double a = forget[e] + (first ? start : top[e - H]);
        decay[e] = (real)exp(a - top[e]);
        source[e] = (real)exp((double)i[e] - top[e]);
        m[e] = (real)top[e];
    }
};

/* --- stable_gates backward ---------------------------------------------------------------------------------------- */

/* The parts of a gradient that come from each output. */
struct arrival {
    double by_decay, by_source, by_m;
    bool is_input; /* the maximum m was the raw input gate i */

    /* Returns the whole gradient of m; `later` is the part from the next time step. */
    __device__ __forceinline__ double at_maximum(double later) const {
        return by_m + later - by_decay - by_source;
    }
};

/* If ddecay, dsource or dm is NULL, this gradient is 0. */
struct gate_flow {
    const real *i, *decay, *source, *m, *ddecay, *dsource, *dm;
    struct values {
        real i, decay, source, m, ddecay, dsource, dm;
    };

    __device__ __forceinline__ values load(int64_t e) const {
        return {i[e], decay[e], source[e], m[e], ddecay ? ddecay[e] : 0, dsource ? dsource[e] : 0, dm ? dm[e] : 0};
    }
    __device__ __forceinline__ static arrival of(const values &v) {
        return {(double)v.ddecay * (double)v.decay, (double)v.dsource * (double)v.source, (double)v.dm, v.m == v.i};
    }
};

/* Computes da_t, the gradient of a_t (stable_gates.c), from the last step to the first. da_t is also a part of the
 * gradient of m_{t-1}. */
struct arrival_walk {
    static constexpr int ROWS = 1, LANES = WARP, VALUES = 7, STEPS = scan_steps(VALUES, 56);
    static constexpr bool REVERSE = true;
    using shared = scan_nothing_shared;
    struct input {
        gate_flow::values values;
        arrival by;
    };
    struct state {
        double later;
    };
    scan_shape shape;
    gate_flow flow;
    double *da;

    __device__ __forceinline__ void begin(const scan_lane &, state &s, shared &) const {
        s.later = 0;
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read) const {
        return {flow.load(lane.at(t)), {}};
    }
    __device__ __forceinline__ void prepare(input *in) const {
#pragma unroll
        for (int s = 0; s < STEPS; s++) in[s].by = gate_flow::of(in[s].values);
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &) const {
        s.later = in.by.by_decay + (in.by.is_input ? 0 : in.by.at_maximum(s.later));
        if (lane.stores) da[lane.at(t)] = s.later;
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, shared &) const {}
};

/* Computes di and df. A gradient that is NULL is not wanted. */
struct gate_gradients {
    gate_flow flow;
    const real *f;
    const double *da;
    real *di, *df;
    int64_t T, H;
    bool add_i, add_f;
    __device__ void operator()(int64_t e) const {
        bool last = divide(divide(e, H).whole, T).rest == T - 1;
        arrival by = gate_flow::of(flow.load(e));
        double through = by.is_input ? by.at_maximum(last ? 0 : da[e + H]) : 0;
        if (di) put(di + e, add_i, (real)(by.by_source + through));
        if (df) put(df + e, add_f, (real)(da[e] / (1 + exp((double)f[e]))));
    }
};

/* Scratch arrays. Forward: `forget` has log sig(f), and m the maxima. Backward: da. */
struct gate_room {
    double *forget, *m, *da;
};

struct gate_room room_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t n = tensor_count(c->in[STABLE_I]);
    struct gate_room r = {};
    if (pass == PASS_FORWARD) {
        r.forget = scratch_doubles(s, n);
        r.m = scratch_doubles(s, n);
    } else {
        r.da = scratch_doubles(s, n);
    }
    return r;
}

/* --- stable_readout ----------------------------------------------------------------------------------------------- */

/* Returns max(|den|, least). A NaN in den stays NaN, while fmax would drop it. */
__device__ double readout_size(double den, double least) {
    double size = fabs(den);
    return size >= least || size != size ? size : least;
}

struct readout {
    const real *o, *m;
    real *h;
    int64_t dv;
    double eps;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, dv);
        const real *row = o + at.whole * (1 + dv);
        double divisor = readout_size(row[0], exp(-(double)m[at.whole])) + eps;
        h[i] = (real)((double)row[1 + at.rest] / divisor);
    }
};

/* Computes the gradients of one row per thread, because dv is small. */
struct readout_gradient {
    const real *o, *m, *dh;
    real *d_o, *dm;
    int64_t dv;
    double eps;
    bool add_o, add_m;
    __device__ void operator()(int64_t r) const {
        const real *row = o + r * (1 + dv), *d = dh + r * dv;
        real *to = d_o ? d_o + r * (1 + dv) : nullptr;
        double least = exp(-(double)m[r]), divisor = readout_size(row[0], least) + eps, along = 0;
        bool floor = fabs((double)row[0]) < least;
        for (int64_t j = 0; j < dv; j++) {
            along += (double)d[j] * ((double)row[1 + j] / divisor);
            if (to) put(to + 1 + j, add_o, (real)((double)d[j] / divisor));
        }
        if (to) put(to, add_o, (real)(floor ? 0 : row[0] < 0 ? along / divisor : -along / divisor));
        if (dm) put(dm + r, add_m, (real)(floor ? (1 - eps / divisor) * along : 0));
    }
};

} // namespace

static size_t stable_gates_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    room_of(c, pass, &s);
    return s.used;
}

static void stable_gates_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = c->in[0]->dims[2];
    double start = stable_gates_attr(c)->start;
    const real *i = tensor_real(c->in[STABLE_I]);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct gate_room room = room_of(c, PASS_FORWARD, &s);
    each_value(c, x, B * T * H, log_sigmoid{tensor_real(c->in[STABLE_F]), room.forget});
    scan_launch(c, x, maximum_walk{scan_whole(B, T, H), room.forget, i, room.m, start});
    each_value(c, x, B * T * H,
               gates_from_maxima{room.forget, room.m, i, tensor_real(c->out[STABLE_DECAY]),
                                 tensor_real(c->out[STABLE_SOURCE]), tensor_real(c->out[STABLE_M]), T, H, start});
}

static void stable_gates_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = c->in[0]->dims[2];
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct gate_room room = room_of(c, PASS_BACKWARD, &s);
    gate_flow flow = {
        tensor_real(c->in[STABLE_I]),  tensor_real(c->out[STABLE_DECAY]), tensor_real(c->out[STABLE_SOURCE]),
        tensor_real(c->out[STABLE_M]), call_dout(c, STABLE_DECAY),        call_dout(c, STABLE_SOURCE),
        call_dout(c, STABLE_M)};
    scan_launch(c, x, arrival_walk{scan_whole(B, T, H), flow, room.da});
    each_value(c, x, B * T * H,
               gate_gradients{flow, tensor_real(c->in[STABLE_F]), room.da, c->din[STABLE_I], c->din[STABLE_F], T, H,
                              call_accumulates(c, STABLE_I), call_accumulates(c, STABLE_F)});
}

static void stable_readout_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_count(c->in[1]), n = tensor_count(c->out[0]);
    each_value(c, x, n,
               readout{tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0]), n / rows,
                       stable_readout_attr(c)->eps});
}

static void stable_readout_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_count(c->in[1]);
    each_value(c, x, rows,
               readout_gradient{tensor_real(c->in[0]), tensor_real(c->in[1]), call_dout(c, 0), c->din[0], c->din[1],
                                tensor_count(c->out[0]) / rows, stable_readout_attr(c)->eps, call_accumulates(c, 0),
                                call_accumulates(c, 1)});
}

/* Tolerance: sums are in double, as in the references. Exponentials of the device's library differ in the last digits.
 */
const struct kernel kernel_stable_gates_cuda = {
    .name = "stable_gates_cuda",
    .op = &op_stable_gates,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 256,
    .workspace = stable_gates_cuda_workspace,
    .forward = stable_gates_cuda_forward,
    .backward = stable_gates_cuda_backward,
};

const struct kernel kernel_stable_readout_cuda = {
    .name = "stable_readout_cuda",
    .op = &op_stable_readout,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .forward = stable_readout_cuda_forward,
    .backward = stable_readout_cuda_backward,
};

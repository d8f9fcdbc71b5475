/* stable_cuda.cu - stable_gates on CUDA, a thread a head of a sequence, from one time step to the next;
 * stable_readout, a thread a head of a token. Equations: stable_gates.c, stable_readout.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/stable/stable.h"

namespace {

/* (B,T,H) each. */
struct gate_walk {
    const real *i, *f;
    real *decay, *source, *m;
    int64_t T, H;
    double start;
    __device__ void operator()(int64_t lane) const {
        struct quotient at = divide(lane, H);
        double top = start;
        for (int64_t t = 0; t < T; t++) {
            int64_t e = (at.whole * T + t) * H + at.rest;
            double x = (double)f[e], a = (x < 0 ? x : 0) - log1p(exp(-fabs(x))) + top, input = (double)i[e];
            top = a < input ? input : a;
            decay[e] = (real)exp(a - top);
            source[e] = (real)exp(input - top);
            m[e] = (real)top;
        }
    }
};

/* NULL: no gradient flows in, or none is wanted. */
struct gate_walk_gradient {
    const real *i, *f, *decay, *source, *m, *ddecay, *dsource, *dm;
    real *di, *df;
    int64_t T, H;
    bool add_i, add_f;
    __device__ static double flow(const real *d, int64_t e) {
        return d ? (double)d[e] : 0;
    }
    __device__ void operator()(int64_t lane) const {
        struct quotient at = divide(lane, H);
        double later = 0;
        for (int64_t t = T - 1; t >= 0; t--) {
            int64_t e = (at.whole * T + t) * H + at.rest;
            double from_decay = flow(ddecay, e) * (double)decay[e], from_source = flow(dsource, e) * (double)source[e];
            double top = flow(dm, e) + later - from_decay - from_source;
            bool input = m[e] == i[e];
            later = from_decay + (input ? 0 : top);
            if (di) put(di + e, add_i, (real)(from_source + (input ? top : 0)));
            if (df) put(df + e, add_f, (real)(later / (1 + exp((double)f[e]))));
        }
    }
};

struct readout {
    const real *o, *m;
    real *h;
    int64_t dv;
    double eps;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, dv);
        const real *row = o + at.whole * (1 + dv);
        double divisor = fmax(fabs((double)row[0]), exp(-(double)m[at.whole])) + eps;
        h[i] = (real)((double)row[1 + at.rest] / divisor);
    }
};

/* A row a thread: dv values are few. */
struct readout_gradient {
    const real *o, *m, *dh;
    real *d_o, *dm;
    int64_t dv;
    double eps;
    bool add_o, add_m;
    __device__ void operator()(int64_t r) const {
        const real *row = o + r * (1 + dv), *d = dh + r * dv;
        real *to = d_o ? d_o + r * (1 + dv) : nullptr;
        double least = exp(-(double)m[r]), divisor = fmax(fabs((double)row[0]), least) + eps, along = 0;
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

static void stable_gates_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = c->in[0]->dims[2];
    each_value(c, x, B * H,
               gate_walk{tensor_real(c->in[STABLE_I]), tensor_real(c->in[STABLE_F]), tensor_real(c->out[STABLE_DECAY]),
                         tensor_real(c->out[STABLE_SOURCE]), tensor_real(c->out[STABLE_M]), T, H,
                         ((const struct stable_gates_attr *)c->attr)->start});
}

static void stable_gates_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = c->in[0]->dims[2];
    each_value(c, x, B * H,
               gate_walk_gradient{
                   tensor_real(c->in[STABLE_I]), tensor_real(c->in[STABLE_F]), tensor_real(c->out[STABLE_DECAY]),
                   tensor_real(c->out[STABLE_SOURCE]), tensor_real(c->out[STABLE_M]), call_dout(c, STABLE_DECAY),
                   call_dout(c, STABLE_SOURCE), call_dout(c, STABLE_M), c->din[STABLE_I], c->din[STABLE_F], T, H,
                   call_accumulates(c, STABLE_I), call_accumulates(c, STABLE_F)});
}

static void stable_readout_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_count(c->in[1]), n = tensor_count(c->out[0]);
    each_value(c, x, n,
               readout{tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0]), n / rows,
                       ((const struct stable_readout_attr *)c->attr)->eps});
}

static void stable_readout_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_count(c->in[1]);
    each_value(c, x, rows,
               readout_gradient{tensor_real(c->in[0]), tensor_real(c->in[1]), call_dout(c, 0), c->din[0], c->din[1],
                                tensor_count(c->out[0]) / rows, ((const struct stable_readout_attr *)c->attr)->eps,
                                call_accumulates(c, 0), call_accumulates(c, 1)});
}

/* Tolerance: in double as the references; exponentials of the device's library differ in their last digits. */
const struct kernel kernel_stable_gates_cuda = {
    .name = "stable_gates_cuda",
    .op = &op_stable_gates,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 256,
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

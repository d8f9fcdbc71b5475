/* token_cuda.cu - conv_depthwise and rope on CUDA, one value per thread; neighbouring threads have neighbouring
 * columns. A tap's gradient is a column sum. Equations: conv_depthwise.c, rope.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/token/rope.h"

namespace {

/* Taps w (m rows of C, the latest tap last); x, y (B,T,C). */
struct convolution {
    const real *x, *w, *b; /* b: or NULL */
    real *y;
    int64_t T, C, m;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, C);
        int64_t t = divide(at.whole, T).rest;
        real sum = b ? b[at.rest] : 0;
        for (int64_t back = 0; back < m && back <= t; back++)
            sum = real_fma(w[(m - 1 - back) * C + at.rest], x[i - back * C], sum);
        y[i] = sum;
    }
};

struct convolution_dx {
    const real *dy, *w;
    real *dx;
    int64_t T, C, m;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, C);
        int64_t t = divide(at.whole, T).rest;
        real sum = 0;
        for (int64_t later = 0; later < m && t + later < T; later++)
            sum = real_fma(w[(m - 1 - later) * C + at.rest], dy[i + later * C], sum);
        put(dx + i, accumulate, sum);
    }
};

/* A term of the gradient of the tap that reads `back` steps back. */
struct tap_term {
    const real *x, *dy;
    int64_t T, C, back;
    __device__ real operator()(int64_t r, int64_t i) const {
        return divide(r, T).rest >= back ? dy[i] * x[i - back * C] : 0;
    }
};

/* Sine and cosine of an angle; in double, because angles grow with the position. */
struct sine_cosine {
    double sine, cosine;
};

/* All angles (T, dk/2), computed once for all heads and sequences: a power, a sine and a cosine in double are hundreds
 * of instructions, and on some devices an instruction in double takes 32 times as long as one in float. */
struct angles {
    struct rope_attr a;
    struct sine_cosine *to;
    __device__ void operator()(int64_t e) const {
        struct quotient at = divide(e, a.dk / 2);
        double angle = rope_angle(&a, at.whole, at.rest);
        to[e] = {sin(angle), cos(angle)};
    }
};

/* Turns the pairs; direction 1 is forward, -1 back. */
struct turn {
    struct rope_attr a;
    const struct sine_cosine *angles;
    const real *x;
    real *y;
    int64_t T, C;
    double direction;
    bool accumulate;
    __device__ void operator()(int64_t at) const {
        struct quotient row = divide(at, C);
        if (row.rest >= a.heads * a.dk) {
            put(y + at, accumulate, x[at]);
            return;
        }
        int64_t half = a.dk / 2, i = divide(row.rest, a.dk).rest, pair = i < half ? i : i - half;
        struct sine_cosine by = angles[divide(row.whole, T).rest * half + pair];
        double s = direction * by.sine, k = by.cosine;
        double turned =
            i < half ? (double)x[at] * k - (double)x[at + half] * s : (double)x[at - half] * s + (double)x[at] * k;
        put(y + at, accumulate, (real)turned);
    }
};

} // namespace

static void conv_depthwise_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]),
               convolution{tensor_real(c->in[0]), tensor_real(c->in[1]), c->n_in == 3 ? tensor_real(c->in[2]) : nullptr,
                           tensor_real(c->out[0]), c->in[0]->dims[1], c->in[0]->dims[2], tensor_cols(c->in[1])});
}

static size_t conv_depthwise_cuda_workspace(const struct call *c, enum pass pass) {
    return pass == PASS_FORWARD ? 0 : cuda_column_sums_bytes(tensor_rows(c->in[0]), tensor_cols(c->in[0]));
}

static void conv_depthwise_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), T = c->in[0]->dims[1], C = c->in[0]->dims[2], m = tensor_cols(c->in[1]);
    real *scratch = (real *)c->scratch[PASS_BACKWARD];
    if (c->din[0])
        each_value(c, x, rows * C,
                   convolution_dx{call_dout(c, 0), tensor_real(c->in[1]), c->din[0], T, C, m, call_accumulates(c, 0)});
    for (int64_t back = 0; c->din[1] && back < m; back++)
        cuda_column_sums(c, x, rows, C, tap_term{tensor_real(c->in[0]), call_dout(c, 0), T, C, back},
                         c->din[1] + (m - 1 - back) * C, call_accumulates(c, 1), scratch);
    if (c->n_in == 3 && c->din[2])
        cuda_column_sums(c, x, rows, C, matrix_term{call_dout(c, 0)}, c->din[2], call_accumulates(c, 2), scratch);
}

static int64_t angles_of(const struct call *c) {
    return c->in[0]->dims[1] * (rope_attr(c)->dk / 2);
}

static size_t rope_cuda_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    return scratch_single(c, (size_t)angles_of(c) * sizeof(struct sine_cosine));
}

static void rope_cuda(const struct call *c, const struct exec *x, enum pass pass, const real *from, real *to) {
    const struct rope_attr *a = rope_attr(c);
    struct sine_cosine *all = (struct sine_cosine *)c->scratch[pass];
    bool back = pass == PASS_BACKWARD;
    each_value(c, x, angles_of(c), angles{*a, all});
    each_value(c, x, tensor_count(c->in[0]),
               turn{*a, all, from, to, c->in[0]->dims[1], c->in[0]->dims[2], back ? -1.0 : 1.0,
                    back && call_accumulates(c, 0)});
}

static void rope_cuda_forward(const struct call *c, const struct exec *x) {
    rope_cuda(c, x, PASS_FORWARD, tensor_real(c->in[0]), tensor_real(c->out[0]));
}

static void rope_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0]) rope_cuda(c, x, PASS_BACKWARD, call_dout(c, 0), c->din[0]);
}

/* Tolerance: sums over taps and rows in working precision. */
const struct kernel kernel_conv_depthwise_cuda = {
    .name = "conv_depthwise_cuda",
    .op = &op_conv_depthwise,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = conv_depthwise_cuda_workspace,
    .forward = conv_depthwise_cuda_forward,
    .backward = conv_depthwise_cuda_backward,
};

/* Tolerance: sine, cosine and power of the device's library differ in their last digits, at angles up to the length. */
const struct kernel kernel_rope_cuda = {
    .name = "rope_cuda",
    .op = &op_rope,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = REAL_IS_DOUBLE ? 1024 : 8,
    .workspace = rope_cuda_workspace,
    .forward = rope_cuda_forward,
    .backward = rope_cuda_backward,
};

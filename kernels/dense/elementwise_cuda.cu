/* elementwise_cuda.cu - add, sub, mul, silu_mul, scale_by, activate and dropout on CUDA. A thread computes four
 * elements, and one pass computes all gradients of an op. Equations: elementwise.c, scale_by.c, dropout.c. */
#include "kernels/dense/dense.h"
#include "kernels/dense/dropout.h"
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/round.h"

#include <utility>

#include "core/real_math.h"

/* --- two inputs --------------------------------------------------------------------------------------------------- */

namespace {

enum binary_rule { BINARY_ADD, BINARY_SUB, BINARY_MUL, BINARY_SILU_MUL };

/* Rows of C elements, `pitch` apart. pitch 0: they have no gaps. */
struct spaced_rows {
    int64_t C, pitch;

    /* Returns where element i of the tensor is. */
    __device__ __forceinline__ int64_t at(int64_t i) const {
        if (pitch == 0) return i;
        struct quotient row = divide(i, C);
        return row.whole * pitch + row.rest;
    }
};

template <binary_rule RULE> struct binary_value {
    const real *a, *b;
    struct spaced_rows rows; /* of a and b, if the rule is SILU_MUL */
    void *y;
    enum precision p; /* precision in which y is stored */

    template <int W> __device__ void run(int64_t i) const {
        int64_t at = RULE == BINARY_SILU_MUL ? rows.at(i) : i;
        lanes<W> u = load_lanes<W>(a + at), v = load_lanes<W>(b + at);
        for (int k = 0; k < W; k++) {
            if constexpr (RULE == BINARY_ADD) u.v[k] += v.v[k];
            if constexpr (RULE == BINARY_SUB) u.v[k] -= v.v[k];
            if constexpr (RULE == BINARY_MUL) u.v[k] *= v.v[k];
            if constexpr (RULE == BINARY_SILU_MUL) u.v[k] = u.v[k] * real_sigmoid(u.v[k]) * v.v[k];
        }
        store_rounded<W>(y, i, p, u);
    }
};

/* Computes the gradients da and db; NULL: not wanted. It reads a and b only where the rule needs their values. */
template <binary_rule RULE> struct binary_gradient {
    const real *a, *b;
    struct spaced_rows rows; /* of a, b, da and db, if the rule is SILU_MUL */
    const real *dy;
    void *da, *db;
    bool add_a, add_b;
    enum precision a_in, b_in; /* precisions in which da and db are stored */

    template <int W> __device__ void run(int64_t i) const {
        int64_t at = RULE == BINARY_SILU_MUL ? rows.at(i) : i;
        lanes<W> d = load_lanes<W>(dy + i), by_a = d, by_b = d;
        if constexpr (RULE == BINARY_SUB)
            for (int k = 0; k < W; k++) by_b.v[k] = -d.v[k];
        if constexpr (RULE == BINARY_MUL || RULE == BINARY_SILU_MUL) {
            lanes<W> u = load_lanes<W>(a + at), v = load_lanes<W>(b + at);
            for (int k = 0; k < W; k++) {
                real s = RULE == BINARY_MUL ? 1 : real_sigmoid(u.v[k]), us = u.v[k] * s;
                by_a.v[k] = d.v[k] * v.v[k];
                if constexpr (RULE == BINARY_SILU_MUL) by_a.v[k] *= real_fma(us, 1 - s, s);
                by_b.v[k] = d.v[k] * us;
            }
        }
        if (da) put_rounded<W>(da, at, add_a, a_in, by_a);
        if (db) put_rounded<W>(db, at, add_b, b_in, by_b);
    }
};

struct spaced_rows rows_of(const struct call *c) {
    return {tensor_cols(c->in[0]), c->in[0]->pitch};
}

} // namespace

template <binary_rule RULE> static void binary_cuda_forward(const struct call *c, const struct exec *x) {
    each(c, x, tensor_count(c->out[0]),
         binary_value<RULE>{tensor_real(c->in[0]), tensor_real(c->in[1]), rows_of(c), c->out[0]->data,
                            out_precision(c, 0)});
}

template <binary_rule RULE> static void binary_cuda_backward(const struct call *c, const struct exec *x) {
    each(c, x, tensor_count(c->out[0]),
         binary_gradient<RULE>{tensor_real(c->in[0]), tensor_real(c->in[1]), rows_of(c), call_dout(c, 0), c->din[0],
                               c->din[1], call_accumulates(c, 0), call_accumulates(c, 1), din_precision(c, 0),
                               din_precision(c, 1)});
}

/* --- one input ---------------------------------------------------------------------------------------------------- */

namespace {

/* Computes to (+)= factor * from + offset, which is the value and the gradient of scale_by. */
struct scaled {
    const real *from;
    real *to, factor, offset;
    bool accumulate;

    template <int W> __device__ void run(int64_t i) const {
        lanes<W> v = load_lanes<W>(from + i);
        for (int k = 0; k < W; k++) v.v[k] = real_fma(factor, v.v[k], offset);
        put_lanes<W>(to + i, accumulate, v);
    }
};

} // namespace

static void scale_by_cuda_forward(const struct call *c, const struct exec *x) {
    const struct scale_by_attr *attr = scale_by_attr(c);
    each(c, x, tensor_count(c->out[0]),
         scaled{tensor_real(c->in[0]), tensor_real(c->out[0]), (real)attr->factor, (real)attr->offset, false});
}

static void scale_by_cuda_backward(const struct call *c, const struct exec *x) {
    const struct scale_by_attr *attr = scale_by_attr(c);
    if (!c->din[0]) return;
    each(c, x, tensor_count(c->out[0]),
         scaled{call_dout(c, 0), c->din[0], (real)attr->factor, (real)-0.0, call_accumulates(c, 0)});
}

#define SQRT_2_OVER_PI ((real)0.79788456080286535588)
#define SQRT_HALF      ((real)0.70710678118654752440)
#define GELU_CUBIC     ((real)0.044715)
#define GELU_MOST      ((real)1e30)
#define REST_LEAST     ((real)0.0005) /* for smaller roots the slope is limited to 1000 */

#if REAL_IS_DOUBLE
#define real_sin  sin
#define real_cos  cos
#define real_erfc erfc
#else
#define real_sin  sinf
#define real_cos  cosf
#define real_erfc erfcf
#endif

/* Returns (1 + tanh u) / 2 of the tanh form, which is sigmoid(2 u). */
__device__ __forceinline__ real gelu_sigmoid(real x) {
    return real_sigmoid(2 * SQRT_2_OVER_PI * x * real_fma(GELU_CUBIC * x, x, 1));
}

/* Returns sqrt(1 - e^-|x|); rest_root in elementwise_cpu.c says how. */
__device__ __forceinline__ real rest_root(real x) {
    real t = real_tanh((real)0.5 * real_abs(x));
    return real_sqrt(2 * t / (1 + t));
}

__device__ __forceinline__ real rest_slope(real x) {
    real root = rest_root(x), half = root > REST_LEAST ? (real)0.5 / root : (real)0.5 / REST_LEAST;
    return (x > 0 ? half : x < 0 ? -half : 0) * real_exp(-real_abs(x));
}

template <activation F> __device__ __forceinline__ real value_of(real x) {
    if constexpr (F == ACT_RELU) return x <= 0 ? 0 : x; /* NaN stays NaN */
    if constexpr (F == ACT_SIGMOID) return real_sigmoid(x);
    if constexpr (F == ACT_TANH) return real_tanh(x);
    if constexpr (F == ACT_SILU) return x * real_sigmoid(x);
    if constexpr (F == ACT_GELU_TANH) return x * gelu_sigmoid(x);
    if constexpr (F == ACT_GELU_ERF) return (real)0.5 * x * real_erfc(-x * SQRT_HALF);
    if constexpr (F == ACT_SOFTPLUS) return real_softplus(x);
    if constexpr (F == ACT_EXP) return real_exp(x);
    if constexpr (F == ACT_NEG) return -x;
    if constexpr (F == ACT_SIN) return real_sin(x);
    if constexpr (F == ACT_COS) return real_cos(x);
    if constexpr (F == ACT_POSITIVE) return x >= 0 ? x + (real)0.5 : real_sigmoid(x);
    if constexpr (F == ACT_HEAVY) return x >= 0 ? 1 + x : 1 / (1 - x);
    if constexpr (F == ACT_REST) return rest_root(x);
}

template <activation F> __device__ __forceinline__ real slope_of(real x) {
    if constexpr (F == ACT_RELU) return x > 0 ? 1 : 0;
    if constexpr (F == ACT_SIGMOID) {
        real s = real_sigmoid(x);
        return s * (1 - s);
    }
    if constexpr (F == ACT_TANH) {
        real t = real_tanh(x);
        return real_fma(-t, t, 1);
    }
    if constexpr (F == ACT_SILU) {
        real s = real_sigmoid(x);
        return real_fma(x * s, 1 - s, s);
    }
    if constexpr (F == ACT_GELU_TANH) {
        real s = gelu_sigmoid(x);
        real growth = 2 * SQRT_2_OVER_PI * real_fma(3 * GELU_CUBIC * x, x, 1);
        /* limited as in gelu_growth of elementwise_cpu.c */
        return real_fma(x * s * (1 - s), growth > GELU_MOST ? GELU_MOST : growth, s);
    }
    if constexpr (F == ACT_GELU_ERF)
        return (real)0.5 * (real_erfc(-x * SQRT_HALF) + SQRT_2_OVER_PI * x * real_exp((real)-0.5 * x * x));
    if constexpr (F == ACT_SOFTPLUS) return real_sigmoid(x);
    if constexpr (F == ACT_EXP) return real_exp(x);
    if constexpr (F == ACT_NEG) return -1;
    if constexpr (F == ACT_SIN) return real_cos(x);
    if constexpr (F == ACT_COS) return -real_sin(x);
    if constexpr (F == ACT_POSITIVE) {
        real s = real_sigmoid(x);
        return x >= 0 ? 1 : s * (1 - s);
    }
    if constexpr (F == ACT_HEAVY) return x >= 0 ? 1 : 1 / ((1 - x) * (1 - x));
    if constexpr (F == ACT_REST) return rest_slope(x);
}

namespace {

template <activation F> struct activation_value {
    const real *x;
    void *y;
    enum precision p; /* precision in which y is stored */

    template <int W> __device__ void run(int64_t i) const {
        lanes<W> v = load_lanes<W>(x + i);
        for (int k = 0; k < W; k++) v.v[k] = value_of<F>(v.v[k]);
        store_rounded<W>(y, i, p, v);
    }
};

template <activation F> struct activation_gradient {
    const real *x, *dy;
    void *dx;
    bool accumulate;
    enum precision p; /* precision in which dx is stored */

    template <int W> __device__ void run(int64_t i) const {
        lanes<W> v = load_lanes<W>(x + i), d = load_lanes<W>(dy + i);
        for (int k = 0; k < W; k++) v.v[k] = d.v[k] * slope_of<F>(v.v[k]);
        put_rounded<W>(dx, i, accumulate, p, v);
    }
};

} // namespace

template <activation F> static void activation_pass(const struct call *c, const struct exec *x, enum pass pass) {
    int64_t n = tensor_count(c->out[0]);
    if (pass == PASS_FORWARD)
        each(c, x, n, activation_value<F>{tensor_real(c->in[0]), c->out[0]->data, out_precision(c, 0)});
    else
        each(c, x, n,
             activation_gradient<F>{tensor_real(c->in[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0),
                                    din_precision(c, 0)});
}

/* Calls the function that is compiled for the call's activation. */
template <int... F>
static void choose_activation(const struct call *c, const struct exec *x, enum pass pass,
                              std::integer_sequence<int, F...>) {
    static void (*const passes[])(const struct call *, const struct exec *,
                                  enum pass) = {activation_pass<(enum activation)F>...};
    passes[activate_attr(c)->f](c, x, pass);
}

static void activate_cuda_forward(const struct call *c, const struct exec *x) {
    choose_activation(c, x, PASS_FORWARD, std::make_integer_sequence<int, ACT_COUNT>());
}

static void activate_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0]) choose_activation(c, x, PASS_BACKWARD, std::make_integer_sequence<int, ACT_COUNT>());
}

/* --- dropout ------------------------------------------------------------------------------------------------------ */

namespace {

/* Computes to (+)= from keep / (1 - p). A thread's four elements share one Philox block (dropout_words_at). */
struct dropped {
    const real *from;
    real *to, factor;
    bool accumulate;
    int stream; /* stream of the call */
    uint32_t threshold;
    const struct step_state *state;

    template <int W> __device__ void run(int64_t i) const {
        struct philox_block words = dropout_words_at(stream, state, i / 4);
        lanes<W> v = load_lanes<W>(from + i);
        for (int k = 0; k < W; k++) {
            uint32_t word = words.word[0]; /* word (i + k) % 4, chosen without indexing registers */
            for (int j = 1; j < 4; j++)
                if ((i + k) % 4 == j) word = words.word[j];
            v.v[k] = word >= threshold ? v.v[k] * factor : 0;
        }
        put_lanes<W>(to + i, accumulate, v);
    }
};

} // namespace

static void drop(const struct call *c, const struct exec *x, const real *from, real *to, bool accumulate) {
    double p = dropout_attr(c)->p;
    each(c, x, tensor_count(c->out[0]),
         dropped{from, to, (real)(1 / (1 - p)), accumulate, c->stream, dropout_threshold(p), x->state});
}

static void dropout_cuda_forward(const struct call *c, const struct exec *x) {
    drop(c, x, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void dropout_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0]) drop(c, x, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

const struct kernel kernel_add_cuda = {
    .name = "add_cuda",
    .op = &op_add,
    .device = DEVICE_CUDA,
    .rounds_out = 1,
    .rounds_din = 3,
    .forward = binary_cuda_forward<BINARY_ADD>,
    .backward = binary_cuda_backward<BINARY_ADD>,
};

const struct kernel kernel_sub_cuda = {
    .name = "sub_cuda",
    .op = &op_sub,
    .device = DEVICE_CUDA,
    .rounds_out = 1,
    .rounds_din = 3,
    .forward = binary_cuda_forward<BINARY_SUB>,
    .backward = binary_cuda_backward<BINARY_SUB>,
};

const struct kernel kernel_mul_cuda = {
    .name = "mul_cuda",
    .op = &op_mul,
    .device = DEVICE_CUDA,
    .rounds_out = 1,
    .rounds_din = 3,
    .forward = binary_cuda_forward<BINARY_MUL>,
    .backward = binary_cuda_backward<BINARY_MUL>,
};

/* Tolerance: an exponential has an error of a few units in the last place; five roundings follow. */
const struct kernel kernel_silu_mul_cuda = {
    .name = "silu_mul_cuda",
    .op = &op_silu_mul,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 16,
    .rounds_out = 1,
    .rounds_din = 3,
    .takes_joined = true,
    .forward = binary_cuda_forward<BINARY_SILU_MUL>,
    .backward = binary_cuda_backward<BINARY_SILU_MUL>,
};

const struct kernel kernel_scale_by_cuda = {
    .name = "scale_by_cuda",
    .op = &op_scale_by,
    .device = DEVICE_CUDA,
    .forward = scale_by_cuda_forward,
    .backward = scale_by_cuda_backward,
};

/* Tolerance: as for silu_mul. The slopes of the sigmoids cancel once, in 1 - s. */
const struct kernel kernel_activate_cuda = {
    .name = "activate_cuda",
    .op = &op_activate,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 16,
    .rounds_out = 1,
    .rounds_din = 1,
    .forward = activate_cuda_forward,
    .backward = activate_cuda_backward,
};

const struct kernel kernel_dropout_cuda = {
    .name = "dropout_cuda",
    .op = &op_dropout,
    .device = DEVICE_CUDA,
    .forward = dropout_cuda_forward,
    .backward = dropout_cuda_backward,
};

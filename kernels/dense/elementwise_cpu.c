/* elementwise_cpu.c - add, sub, mul, silu_mul and activate (elementwise.c) on the CPU, with spans of elements on
 * threads and vectors inside a span. */
#include "core/real_math.h"
#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"

/* Compilers vectorise a loop only if `accumulate` and the function are constants in it. So these loops are in functions
 * that are always inlined, and are called once for each value of these arguments. */

/* --- two inputs ------------------------------------------------------------------------------------------------- */

static void binary_span(const struct op *op, struct range span, const real *restrict a, const real *restrict b,
                        real *restrict y) {
    if (op == &op_add) {
#pragma omp simd
        for (int64_t i = span.begin; i < span.end; i++) y[i] = a[i] + b[i];
    } else if (op == &op_sub) {
#pragma omp simd
        for (int64_t i = span.begin; i < span.end; i++) y[i] = a[i] - b[i];
    } else if (op == &op_mul) {
#pragma omp simd
        for (int64_t i = span.begin; i < span.end; i++) y[i] = a[i] * b[i];
    } else {
#pragma omp simd
        for (int64_t i = span.begin; i < span.end; i++) y[i] = a[i] * real_sigmoid(a[i]) * b[i];
    }
}

static void binary_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t n = tensor_count(c->out[0]);
    const real *a = tensor_real(c->in[0]), *b = tensor_real(c->in[1]);
    real *y = tensor_real(c->out[0]);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) binary_span(c->op, span_at(n, s), a, b, y);
}

/* Computes d (+)= sign * dy. */
static void copy_span(struct range span, const real *restrict dy, real sign, real *restrict d, bool accumulate) {
#pragma omp simd
    for (int64_t i = span.begin; i < span.end; i++) put(&d[i], accumulate, sign * dy[i]);
}

/* Computes d (+)= dy * other. */
static void product_span(struct range span, const real *restrict dy, const real *restrict other, real *restrict d,
                         bool accumulate) {
#pragma omp simd
    for (int64_t i = span.begin; i < span.end; i++) put(&d[i], accumulate, dy[i] * other[i]);
}

/* Computes da (+)= dy b s (1 + a (1 - s)). */
FORCE_INLINE void silu_da_loop(struct range span, const real *restrict dy, const real *restrict a,
                               const real *restrict b, real *restrict da, bool accumulate) {
#pragma omp simd
    for (int64_t i = span.begin; i < span.end; i++) {
        real s = real_sigmoid(a[i]);
        put(&da[i], accumulate, dy[i] * b[i] * real_fma(a[i] * s, 1 - s, s));
    }
}

/* Computes db (+)= dy a s. */
FORCE_INLINE void silu_db_loop(struct range span, const real *restrict dy, const real *restrict a, real *restrict db,
                               bool accumulate) {
#pragma omp simd
    for (int64_t i = span.begin; i < span.end; i++) put(&db[i], accumulate, dy[i] * (a[i] * real_sigmoid(a[i])));
}

static void silu_mul_span(const struct call *c, struct range span, const real *restrict dy) {
    const real *restrict a = tensor_real(c->in[0]), *restrict b = tensor_real(c->in[1]);
    real *restrict da = c->din[0], *restrict db = c->din[1];
    bool add_a = call_accumulates(c, 0), add_b = call_accumulates(c, 1);
    if (da && db && !add_a && !add_b) { /* the usual case: one pass, with one exponential per element */
#pragma omp simd
        for (int64_t i = span.begin; i < span.end; i++) {
            real s = real_sigmoid(a[i]), as = a[i] * s;
            da[i] = dy[i] * b[i] * real_fma(as, 1 - s, s);
            db[i] = dy[i] * as;
        }
        return;
    }
    if (da && add_a) silu_da_loop(span, dy, a, b, da, true);
    if (da && !add_a) silu_da_loop(span, dy, a, b, da, false);
    if (db && add_b) silu_db_loop(span, dy, a, db, true);
    if (db && !add_b) silu_db_loop(span, dy, a, db, false);
}

static void binary_backward_span(const struct call *c, struct range span, const real *dy) {
    if (c->op == &op_silu_mul) {
        silu_mul_span(c, span, dy);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (!c->din[i]) continue;
        if (c->op == &op_mul)
            product_span(span, dy, tensor_real(c->in[1 - i]), c->din[i], call_accumulates(c, i));
        else
            copy_span(span, dy, c->op == &op_sub && i == 1 ? -1 : 1, c->din[i], call_accumulates(c, i));
    }
}

static void binary_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t n = tensor_count(c->out[0]);
    const real *dy = call_dout(c, 0);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) binary_backward_span(c, span_at(n, s), dy);
}

/* --- one input ---------------------------------------------------------------------------------------------------- */

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
#define real_sin sinf
#define real_cos cosf

/* Returns 1 - erf(x) = t exp(-x^2 + P(t)), t = 1 / (1 + x/2), for x >= 0. The relative error is below 1.2e-7 before
 * rounding (the Chebyshev fit of Numerical Recipes, section 6.2, erfcc). */
static inline real real_erfc(real x) {
    real a = real_abs(x), t = 1 / real_fma(0.5f, a, 1);
    real p = real_fma(0.17087277f, t, -0.82215223f);
    p = real_fma(p, t, 1.48851587f);
    p = real_fma(p, t, -1.13520398f);
    p = real_fma(p, t, 0.27886807f);
    p = real_fma(p, t, -0.18628806f);
    p = real_fma(p, t, 0.09678418f);
    p = real_fma(p, t, 0.37409196f);
    p = real_fma(p, t, 1.00002368f);
    real y = t * real_exp(real_fma(p, t, real_fma(-a, a, -1.26551223f)));
    return x < 0 ? 2 - y : y;
}
#endif

/* Returns twice the derivative of u in GELU's (1 + tanh u) / 2. It is limited where the other factor is 0, because
 * infinity times 0 would be NaN. */
FORCE_INLINE real gelu_growth(real x) {
    real growth = 2 * SQRT_2_OVER_PI * real_fma(3 * GELU_CUBIC * x, x, 1);
    return growth > GELU_MOST ? GELU_MOST : growth;
}

/* Returns sqrt(1 - e^-|x|), by 1 - e^-2u = 2 t / (1 + t) with t = tanh u, which loses no digits where u is small. */
FORCE_INLINE real rest_root(real x) {
    real t = real_tanh((real)0.5 * real_abs(x));
    return real_sqrt(2 * t / (1 + t));
}

FORCE_INLINE real rest_slope(real x) {
    real root = rest_root(x), half = root > REST_LEAST ? (real)0.5 / root : (real)0.5 / REST_LEAST;
    return (x > 0 ? half : x < 0 ? -half : 0) * real_exp(-real_abs(x));
}

/* These two are inlined into vector loops, where f is a constant. So the compiler removes the switch before it makes
 * vectors. */
FORCE_INLINE real value_of(enum activation f, real x) {
    switch (f) {
    case ACT_RELU:
        return x <= 0 ? 0 : x; /* NaN stays NaN */
    case ACT_SIGMOID:
        return real_sigmoid(x);
    case ACT_TANH:
        return real_tanh(x);
    case ACT_SILU:
        return x * real_sigmoid(x);
    case ACT_GELU_TANH: /* (1 + tanh u) / 2 = sigmoid(2 u) */
        return x * real_sigmoid(2 * SQRT_2_OVER_PI * x * real_fma(GELU_CUBIC * x, x, 1));
    case ACT_GELU_ERF:
        return (real)0.5 * x * real_erfc(-x * SQRT_HALF);
    case ACT_SOFTPLUS:
        return real_softplus(x);
    case ACT_EXP:
        return real_exp(x);
    case ACT_NEG:
        return -x;
    case ACT_SIN:
        return real_sin(x);
    case ACT_COS:
        return real_cos(x);
    case ACT_POSITIVE:
        return x >= 0 ? x + (real)0.5 : real_sigmoid(x);
    case ACT_HEAVY:
        return x >= 0 ? 1 + x : 1 / (1 - x);
    case ACT_REST:
        return rest_root(x);
    case ACT_COUNT:
        break;
    }
    return x;
}

FORCE_INLINE real slope_of(enum activation f, real x) {
    real s = real_sigmoid(f == ACT_GELU_TANH ? 2 * SQRT_2_OVER_PI * x * real_fma(GELU_CUBIC * x, x, 1) : x);
    switch (f) {
    case ACT_RELU:
        return x > 0 ? 1 : 0;
    case ACT_SIGMOID:
        return s * (1 - s);
    case ACT_TANH: {
        real t = real_tanh(x);
        return real_fma(-t, t, 1);
    }
    case ACT_SILU:
        return real_fma(x * s, 1 - s, s);
    case ACT_GELU_TANH:
        return real_fma(x * s * (1 - s), gelu_growth(x), s);
    case ACT_GELU_ERF:
        return (real)0.5 * (real_erfc(-x * SQRT_HALF) + SQRT_2_OVER_PI * x * real_exp((real)-0.5 * x * x));
    case ACT_SOFTPLUS:
        return s;
    case ACT_EXP:
        return real_exp(x);
    case ACT_NEG:
        return -1;
    case ACT_SIN:
        return real_cos(x);
    case ACT_COS:
        return -real_sin(x);
    case ACT_POSITIVE:
        return x >= 0 ? 1 : s * (1 - s);
    case ACT_HEAVY:
        return x >= 0 ? 1 : 1 / ((1 - x) * (1 - x));
    case ACT_REST:
        return rest_slope(x);
    case ACT_COUNT:
        break;
    }
    return 1;
}

/* In double, each element calls libm, so nothing can be vectorised. */
FORCE_INLINE void value_loop(enum activation f, struct range span, const real *restrict x, real *restrict y) {
#if !REAL_IS_DOUBLE
#pragma omp simd
#endif
    for (int64_t i = span.begin; i < span.end; i++) y[i] = value_of(f, x[i]);
}

FORCE_INLINE void slope_loop(enum activation f, struct range span, const real *restrict x, const real *restrict dy,
                             real *restrict dx, bool accumulate) {
#if !REAL_IS_DOUBLE
#pragma omp simd
#endif
    for (int64_t i = span.begin; i < span.end; i++) put(&dx[i], accumulate, dy[i] * slope_of(f, x[i]));
}

FORCE_INLINE void slope_loops(enum activation f, struct range span, const real *x, const real *dy, real *dx,
                              bool accumulate) {
    if (accumulate)
        slope_loop(f, span, x, dy, dx, true);
    else
        slope_loop(f, span, x, dy, dx, false);
}

static void value_span(enum activation f, struct range span, const real *x, real *y) {
    switch (f) {
    case ACT_RELU:
        value_loop(ACT_RELU, span, x, y);
        break;
    case ACT_SIGMOID:
        value_loop(ACT_SIGMOID, span, x, y);
        break;
    case ACT_TANH:
        value_loop(ACT_TANH, span, x, y);
        break;
    case ACT_SILU:
        value_loop(ACT_SILU, span, x, y);
        break;
    case ACT_GELU_TANH:
        value_loop(ACT_GELU_TANH, span, x, y);
        break;
    case ACT_GELU_ERF:
        value_loop(ACT_GELU_ERF, span, x, y);
        break;
    case ACT_SOFTPLUS:
        value_loop(ACT_SOFTPLUS, span, x, y);
        break;
    case ACT_EXP:
        value_loop(ACT_EXP, span, x, y);
        break;
    case ACT_NEG:
        value_loop(ACT_NEG, span, x, y);
        break;
    case ACT_POSITIVE:
        value_loop(ACT_POSITIVE, span, x, y);
        break;
    case ACT_HEAVY:
        value_loop(ACT_HEAVY, span, x, y);
        break;
    case ACT_REST:
        value_loop(ACT_REST, span, x, y);
        break;
    default: /* sine and cosine call libm */
        for (int64_t i = span.begin; i < span.end; i++) y[i] = value_of(f, x[i]);
    }
}

static void slope_span(enum activation f, struct range span, const real *x, const real *dy, real *dx, bool add_to) {
    switch (f) {
    case ACT_RELU:
        slope_loops(ACT_RELU, span, x, dy, dx, add_to);
        break;
    case ACT_SIGMOID:
        slope_loops(ACT_SIGMOID, span, x, dy, dx, add_to);
        break;
    case ACT_TANH:
        slope_loops(ACT_TANH, span, x, dy, dx, add_to);
        break;
    case ACT_SILU:
        slope_loops(ACT_SILU, span, x, dy, dx, add_to);
        break;
    case ACT_GELU_TANH:
        slope_loops(ACT_GELU_TANH, span, x, dy, dx, add_to);
        break;
    case ACT_GELU_ERF:
        slope_loops(ACT_GELU_ERF, span, x, dy, dx, add_to);
        break;
    case ACT_SOFTPLUS:
        slope_loops(ACT_SOFTPLUS, span, x, dy, dx, add_to);
        break;
    case ACT_EXP:
        slope_loops(ACT_EXP, span, x, dy, dx, add_to);
        break;
    case ACT_NEG:
        slope_loops(ACT_NEG, span, x, dy, dx, add_to);
        break;
    case ACT_POSITIVE:
        slope_loops(ACT_POSITIVE, span, x, dy, dx, add_to);
        break;
    case ACT_HEAVY:
        slope_loops(ACT_HEAVY, span, x, dy, dx, add_to);
        break;
    case ACT_REST:
        slope_loops(ACT_REST, span, x, dy, dx, add_to);
        break;
    default: /* sine and cosine call libm */
        for (int64_t i = span.begin; i < span.end; i++) put(&dx[i], add_to, dy[i] * slope_of(f, x[i]));
    }
}

static void activate_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct activate_attr *attr = activate_attr(c);
    int64_t n = tensor_count(c->out[0]);
    const real *x = tensor_real(c->in[0]);
    real *y = tensor_real(c->out[0]);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) value_span(attr->f, span_at(n, s), x, y);
}

static void activate_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct activate_attr *attr = activate_attr(c);
    int64_t n = tensor_count(c->out[0]);
    const real *x = tensor_real(c->in[0]), *dy = call_dout(c, 0);
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++)
        slope_span(attr->f, span_at(n, s), x, dy, c->din[0], call_accumulates(c, 0));
}

const struct kernel kernel_add_cpu = {
    .name = "add_cpu",
    .op = &op_add,
    .device = DEVICE_CPU,
    .forward = binary_cpu_forward,
    .backward = binary_cpu_backward,
};

const struct kernel kernel_sub_cpu = {
    .name = "sub_cpu",
    .op = &op_sub,
    .device = DEVICE_CPU,
    .forward = binary_cpu_forward,
    .backward = binary_cpu_backward,
};

const struct kernel kernel_mul_cpu = {
    .name = "mul_cpu",
    .op = &op_mul,
    .device = DEVICE_CPU,
    .forward = binary_cpu_forward,
    .backward = binary_cpu_backward,
};

/* Tolerance: an exponential has an error of a few units in the last place; five roundings follow. */
const struct kernel kernel_silu_mul_cpu = {
    .name = "silu_mul_cpu",
    .op = &op_silu_mul,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 16,
    .forward = binary_cpu_forward,
    .backward = binary_cpu_backward,
};

/* Tolerance: as for silu_mul. The slope of a sigmoid cancels once, in 1 - s, with an error of half a unit of 1. GELU
 * multiplies this error by 1.6 x (1 + 0.134 x^2): by 33 at x = 4.9, where s rounds to 1 in float, and by 85 at x = 7,
 * where it does in double. In double, the reference itself loses half as much in 1 - tanh^2. */
const struct kernel kernel_activate_cpu = {
    .name = "activate_cpu",
    .op = &op_activate,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .forward = activate_cpu_forward,
    .backward = activate_cpu_backward,
};

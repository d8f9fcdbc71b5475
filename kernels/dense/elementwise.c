/* elementwise.c - add, sub, mul, silu_mul and activate: the ops and their references, which compute in double.
 *
 *   add       y = a + b              da = dy;                      db = dy
 *   sub       y = a - b              da = dy;                      db = -dy
 *   mul       y = a b                da = dy b;                    db = dy a
 *   silu_mul  y = a s(a) b           da = dy b s(a)(1 + a - a s(a));  db = dy a s(a)      s = 1 / (1 + e^-a)
 *   activate  y = f(x)               dx = dy f'(x)
 * The function `rest` is sqrt(1 - e^-|x|). Its gradient limits the slope of the square root to 1000, as in
 * google-deepmind/recurrentgemma. GELU: Hendrycks & Gimpel 2016 (arXiv 1606.08415), exact and tanh form. SwiGLU:
 * Shazeer 2020 (arXiv 2002.05202). */
#include <inttypes.h>
#include <math.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"

const char *const activation_names[ACT_COUNT] = {"relu", "sigmoid", "tanh", "silu", "gelu-tanh", "gelu-erf", "softplus",
                                                 "exp",  "neg",     "sin",  "cos",  "positive",  "heavy",    "rest"};

struct tensor *add(struct graph *g, struct tensor *a, struct tensor *b) {
    return call1(g, &op_add, NULL, 0, (struct tensor *[]){a, b}, 2);
}

struct tensor *sub(struct graph *g, struct tensor *a, struct tensor *b) {
    return call1(g, &op_sub, NULL, 0, (struct tensor *[]){a, b}, 2);
}

struct tensor *mul(struct graph *g, struct tensor *a, struct tensor *b) {
    return call1(g, &op_mul, NULL, 0, (struct tensor *[]){a, b}, 2);
}

struct tensor *silu_mul(struct graph *g, struct tensor *a, struct tensor *b) {
    return call1(g, &op_silu_mul, NULL, 0, (struct tensor *[]){a, b}, 2);
}

struct tensor *activate(struct graph *g, struct tensor *x, enum activation f) {
    struct activate_attr attr = {.f = f};
    return call1(g, &op_activate, &attr, sizeof attr, (struct tensor *[]){x}, 1);
}

static void binary_infer(struct graph *g, struct call *c) {
    if (infer_present(g, c, 2) && infer_same_shape(g, c, 0, 1))
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static void activate_infer(struct graph *g, struct call *c) {
    const struct activate_attr *a = activate_attr(c);
    if (!infer_present(g, c, 1)) return;
    if ((int)a->f < 0 || a->f >= ACT_COUNT)
        graph_fail(g, ST_FAIL, "activate: there is no activation number %d", (int)a->f);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

/* The gradients of add and sub do not read a and b. An exponential counts 10 FLOPs. */
static struct cost binary_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->out[0]);
    double flops = c->op == &op_silu_mul ? 13 : 1;
    if (pass == PASS_FORWARD) return (struct cost){flops * n, sizeof(real) * 3 * n};
    bool values = c->op == &op_mul || c->op == &op_silu_mul;
    return (struct cost){(c->op == &op_silu_mul ? 18 : 2) * n, sizeof(real) * (values ? 5.0 : 3.0) * n};
}

static struct cost activate_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->out[0]);
    return (struct cost){(pass == PASS_FORWARD ? 12 : 16) * n, sizeof(real) * (pass == PASS_FORWARD ? 2.0 : 3.0) * n};
}

/* In variant 0 both inputs need gradients, in variant 1 only b, in variant 2 only a. */
static bool binary_build(struct graph *g, const struct op_sizes *s, const struct op *op) {
    if (s->variant > 2) return false;
    struct tensor *a = input_tokens(g, s, "a", s->dim), *b = input_tokens(g, s, "b", s->dim);
    if (s->variant > 0) input_constant(s->variant == 1 ? a : b);
    call1(g, op, NULL, 0, (struct tensor *[]){a, b}, 2);
    return true;
}

static bool add_build(struct graph *g, const struct op_sizes *s) {
    return binary_build(g, s, &op_add);
}

static bool sub_build(struct graph *g, const struct op_sizes *s) {
    return binary_build(g, s, &op_sub);
}

static bool mul_build(struct graph *g, const struct op_sizes *s) {
    return binary_build(g, s, &op_mul);
}

static bool silu_mul_build(struct graph *g, const struct op_sizes *s) {
    return binary_build(g, s, &op_silu_mul);
}

/* Each variant is a function. SiLU comes first, because most mixers use it. */
static bool activate_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant >= ACT_COUNT) return false;
    activate(g, input_tokens(g, s, "x", s->dim), (enum activation)((ACT_SILU + s->variant) % ACT_COUNT));
    return true;
}

const struct op op_add = {
    .name = "add",
    .maths = "y = a + b",
    .source = "",
    .infer = binary_infer,
    .cost = binary_cost,
    .sizes = "batch length dim",
    .build = add_build,
};

const struct op op_sub = {
    .name = "sub",
    .maths = "y = a - b",
    .source = "",
    .infer = binary_infer,
    .cost = binary_cost,
    .sizes = "batch length dim",
    .build = sub_build,
};

const struct op op_mul = {
    .name = "mul",
    .maths = "y = a * b",
    .source = "",
    .needs_in = 3,
    .infer = binary_infer,
    .cost = binary_cost,
    .sizes = "batch length dim",
    .build = mul_build,
};

const struct op op_silu_mul = {
    .name = "silu_mul",
    .maths = "y = a / (1 + exp(-a)) * b",
    .source = "Shazeer 2020, GLU Variants Improve Transformer, section 2",
    .needs_in = 3,
    .infer = binary_infer,
    .cost = binary_cost,
    .sizes = "batch length dim",
    .build = silu_mul_build,
};

const struct op op_activate = {
    .name = "activate",
    .maths = "y = f(x)",
    .source = "",
    .needs_in = 1,
    .infer = activate_infer,
    .cost = activate_cost,
    .sizes = "batch length dim",
    .build = activate_build,
};

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void binary_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t n = tensor_count(c->out[0]);
    const real *a = tensor_real(c->in[0]), *b = tensor_real(c->in[1]);
    real *y = tensor_real(c->out[0]);
    for (int64_t i = 0; i < n; i++) {
        if (c->op == &op_add) y[i] = a[i] + b[i];
        if (c->op == &op_sub) y[i] = a[i] - b[i];
        if (c->op == &op_mul) y[i] = a[i] * b[i];
        if (c->op == &op_silu_mul) y[i] = (real)(a[i] * sigmoid(a[i]) * b[i]);
    }
}

static void binary_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t n = tensor_count(c->out[0]);
    const real *a = tensor_real(c->in[0]), *b = tensor_real(c->in[1]); /* add and sub read neither: they may be gone */
    const real *dy = call_dout(c, 0);
    for (int64_t i = 0; i < n; i++) {
        double by_a = 1, by_b = c->op == &op_sub ? -1 : 1;
        if (c->op == &op_mul) {
            by_a = b[i];
            by_b = a[i];
        } else if (c->op == &op_silu_mul) {
            double s = sigmoid(a[i]);
            by_a = b[i] * s * (1 + a[i] * (1 - s));
            by_b = a[i] * s;
        }
        if (c->din[0]) put(&c->din[0][i], call_accumulates(c, 0), (real)(dy[i] * by_a));
        if (c->din[1]) put(&c->din[1][i], call_accumulates(c, 1), (real)(dy[i] * by_b));
    }
}

#define SQRT_2_OVER_PI 0.79788456080286535588
#define SQRT_HALF      0.70710678118654752440
#define REST_STEEPEST  1000.0

/* Returns f(x), and sets *slope to f'(x). */
static double activation(enum activation f, double x, double *slope) {
    double s = sigmoid(x), t = tanh(x);
    double inner = SQRT_2_OVER_PI * (x + 0.044715 * x * x * x), u = tanh(inner), normal = 0.5 * erfc(-x * SQRT_HALF);
    switch (f) {
    case ACT_RELU:
        *slope = x > 0;
        return x <= 0 ? 0 : x; /* NaN stays NaN */
    case ACT_SIGMOID:
        *slope = s * (1 - s);
        return s;
    case ACT_TANH:
        *slope = 1 - t * t;
        return t;
    case ACT_SILU:
        *slope = s * (1 + x * (1 - s));
        return x * s;
    case ACT_GELU_TANH:
        *slope = 0.5 * (1 + u); /* if u is 1 or -1, the second term would be 0 times infinity */
        if (fabs(u) < 1) *slope += 0.5 * x * (1 - u * u) * SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x);
        return 0.5 * x * (1 + u);
    case ACT_GELU_ERF:
        *slope = normal + x * exp(-0.5 * x * x) * 0.5 * SQRT_2_OVER_PI;
        return x * normal;
    case ACT_SOFTPLUS:
        *slope = s;
        return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
    case ACT_EXP:
        return *slope = exp(x);
    case ACT_NEG:
        *slope = -1;
        return -x;
    case ACT_SIN:
        *slope = cos(x);
        return sin(x);
    case ACT_COS:
        *slope = -sin(x);
        return cos(x);
    case ACT_POSITIVE:
        *slope = x >= 0 ? 1 : s * (1 - s);
        return x >= 0 ? x + 0.5 : s;
    case ACT_HEAVY:
        *slope = x >= 0 ? 1 : 1 / ((1 - x) * (1 - x));
        return x >= 0 ? 1 + x : 1 / (1 - x);
    case ACT_REST: {
        double root = sqrt(-expm1(-fabs(x)));
        *slope = ((x > 0) - (x < 0)) * exp(-fabs(x)) * fmin(0.5 / root, REST_STEEPEST);
        return root;
    }
    case ACT_COUNT:
        break;
    }
    return *slope = 0;
}

static void activate_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct activate_attr *attr = activate_attr(c);
    const real *x = tensor_real(c->in[0]);
    real *y = tensor_real(c->out[0]);
    double slope;
    for (int64_t i = 0; i < tensor_count(c->out[0]); i++) y[i] = (real)activation(attr->f, x[i], &slope);
}

static void activate_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct activate_attr *attr = activate_attr(c);
    const real *x = tensor_real(c->in[0]), *dy = call_dout(c, 0);
    for (int64_t i = 0; i < tensor_count(c->out[0]) && c->din[0]; i++) {
        double slope;
        activation(attr->f, x[i], &slope);
        put(&c->din[0][i], call_accumulates(c, 0), (real)(dy[i] * slope));
    }
}

const struct kernel kernel_add_ref = {
    .name = "add_ref",
    .op = &op_add,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = binary_ref_forward,
    .backward = binary_ref_backward,
};

const struct kernel kernel_sub_ref = {
    .name = "sub_ref",
    .op = &op_sub,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = binary_ref_forward,
    .backward = binary_ref_backward,
};

const struct kernel kernel_mul_ref = {
    .name = "mul_ref",
    .op = &op_mul,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = binary_ref_forward,
    .backward = binary_ref_backward,
};

const struct kernel kernel_silu_mul_ref = {
    .name = "silu_mul_ref",
    .op = &op_silu_mul,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = binary_ref_forward,
    .backward = binary_ref_backward,
};

const struct kernel kernel_activate_ref = {
    .name = "activate_ref",
    .op = &op_activate,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = activate_ref_forward,
    .backward = activate_ref_backward,
};

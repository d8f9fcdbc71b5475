/* scan_diag.c - the diagonal recurrence, real and complex: the ops and their references.
 *
 *   h_t = a_t * h_{t-1} + x_t elementwise, h_{-1} = 0;  a per token (B,T,N) or constant [N]
 * Adjoint, o_t the incoming gradient (conjugates in the complex case):
 *   G_t = o_t + conj(a_{t+1}) G_{t+1};  dx_t = G_t
 *   da_t = conj(h_{t-1}) G_t, summed over batch and time if a is constant
 * Complex tensors are two real planes; the gradient of z is stored as dL/dre + i dL/dim. */
#include <inttypes.h>
#include <math.h>

#include "kernels/gated/gated.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"

struct tensor *scan_diag(struct graph *g, struct tensor *a, struct tensor *x) {
    struct call *c = graph_call(g, &op_scan_diag, NULL, 0, (struct tensor *[]){a, x}, 2);
    return c ? c->out[0] : NULL;
}

struct tensor *scan_diag_complex(struct graph *g, struct tensor *a_re, struct tensor *a_im, struct tensor *x_re,
                                 struct tensor *x_im, struct tensor **h_im) {
    struct call *c = graph_call(g, &op_scan_diag_complex, NULL, 0, (struct tensor *[]){a_re, a_im, x_re, x_im}, 4);
    if (h_im) *h_im = c ? c->out[1] : NULL;
    return c ? c->out[0] : NULL;
}

/* Checks that `a` has the shape of x (B,T,N), or is [N]. */
static bool transition_fits(struct graph *g, const struct op *op, const struct tensor *a, const struct tensor *x) {
    if (x->rank != 3) {
        graph_fail(g, ST_USAGE, "%s: x has rank %d, expected 3 (B,T,N)", op->name, x->rank);
    } else if (a->rank != 1 && a->rank != 3) {
        graph_fail(g, ST_USAGE, "%s: a has rank %d, expected 3 (B,T,N) or 1 (N)", op->name, a->rank);
    } else if (tensor_cols(a) != x->dims[2]) {
        graph_fail(g, ST_USAGE, "%s: a has %" PRId64 " channels and x %" PRId64 "; they must agree", op->name,
                   tensor_cols(a), x->dims[2]);
    } else if (a->rank == 3 && (a->dims[0] != x->dims[0] || a->dims[1] != x->dims[1])) {
        graph_fail(g, ST_USAGE,
                   "%s: a is (%" PRId64 ",%" PRId64 ") and x (%" PRId64 ",%" PRId64
                   ") in batch and length; they must agree",
                   op->name, a->dims[0], a->dims[1], x->dims[0], x->dims[1]);
    } else {
        return true;
    }
    return false;
}

static void scan_diag_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2) || !transition_fits(g, c->op, c->in[0], c->in[1])) return;
    graph_output(g, c, DT_REAL, 3, c->in[1]->dims);
}

static void scan_diag_complex_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 4)) return;
    for (int i = 0; i < 4; i++)
        if (!transition_fits(g, c->op, c->in[i & 1], c->in[2 + i / 2])) return;
    if (c->in[0]->rank != c->in[1]->rank) {
        graph_fail(g, ST_USAGE, "scan_diag_complex: the planes of a have rank %d and %d; they must agree",
                   c->in[0]->rank, c->in[1]->rank);
        return;
    }
    if (tensor_count(c->in[2]) != tensor_count(c->in[3]) || c->in[2]->dims[1] != c->in[3]->dims[1]) {
        graph_fail(g, ST_USAGE,
                   "scan_diag_complex: the planes of x hold %" PRId64 " and %" PRId64 " elements; they must agree",
                   tensor_count(c->in[2]), tensor_count(c->in[3]));
        return;
    }
    graph_output(g, c, DT_REAL, 3, c->in[2]->dims);
    graph_output(g, c, DT_REAL, 3, c->in[2]->dims);
}

/* planes: 1 for real numbers, 2 for complex ones. Forward reads a and x, and writes h; backward reads a, h and dh, and
 * writes da and dx. */
static struct cost diag_cost(const struct call *c, enum pass pass, int planes) {
    double element = planes * (double)sizeof(real);
    double tokens = (double)tensor_count(c->in[planes]), a = (double)tensor_count(c->in[0]);
    double multiply_add = planes == 1 ? 2 : 8;
    if (pass == PASS_FORWARD) return (struct cost){multiply_add * tokens, element * (a + 2 * tokens)};
    return (struct cost){2 * multiply_add * tokens, element * (2 * a + 3 * tokens)};
}

static struct cost scan_diag_cost(const struct call *c, enum pass pass) {
    return diag_cost(c, pass, 1);
}

static struct cost scan_diag_complex_cost(const struct call *c, enum pass pass) {
    return diag_cost(c, pass, 2);
}

/* Creates the transition `a`. In variant 0 each token has its own, in variant 1 all tokens share one. */
static struct tensor *transition_input(struct graph *g, const struct op_sizes *s, const char *name) {
    return s->variant ? input_vector(g, name, s->blocks) : input_tokens(g, s, name, s->blocks);
}

static bool scan_diag_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    struct tensor *a = transition_input(g, s, "a");
    scan_diag(g, a, input_tokens(g, s, "x", s->blocks));
    return true;
}

static bool scan_diag_complex_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    struct tensor *a_re = transition_input(g, s, "a_re"), *a_im = transition_input(g, s, "a_im");
    struct tensor *x_re = input_tokens(g, s, "x_re", s->blocks), *x_im = input_tokens(g, s, "x_im", s->blocks);
    scan_diag_complex(g, a_re, a_im, x_re, x_im, NULL);
    return true;
}

static struct heads scan_diag_heads(const struct call *c) {
    return (struct heads){tensor_cols(c->out[0]), {1, 1, 1, 1}, {1, 1}};
}

static double scan_diag_terms(const struct call *c, enum pass pass, int j);
static double scan_diag_complex_terms(const struct call *c, enum pass pass, int j);

const struct op op_scan_diag = {
    .name = "scan_diag",
    .maths = "h_t = a_t * h_{t-1} + x_t",
    .source = "",
    .needs_in = 1,
    .needs_out = 1,
    .infer = scan_diag_infer,
    .cost = scan_diag_cost,
    .heads = scan_diag_heads,
    .terms = scan_diag_terms,
    .sizes = "batch length blocks",
    .build = scan_diag_build,
};

const struct op op_scan_diag_complex = {
    .name = "scan_diag_complex",
    .maths = "h_t = a_t * h_{t-1} + x_t over complex numbers",
    .source = "LRU (Orvieto et al. 2023); NicolasZucchet/minimal-LRU, lru/model.py",
    .needs_in = 3,
    .needs_out = 3,
    .infer = scan_diag_complex_infer,
    .cost = scan_diag_complex_cost,
    .heads = scan_diag_heads,
    .terms = scan_diag_complex_terms,
    .sizes = "batch length blocks",
    .build = scan_diag_complex_build,
};

/* --- references: one channel after the other, the state in double ------------------------------------------------ */

static void put_gradient(const struct call *c, int input, int64_t i, double value) {
    if (c->din[input]) put(c->din[input] + i, call_accumulates(c, input), (real)value);
}

static void scan_diag_ref_forward(const struct call *c, const struct exec *e) {
    (void)e;
    int64_t B = c->in[1]->dims[0], T = c->in[1]->dims[1], N = c->in[1]->dims[2];
    bool constant = c->in[0]->rank == 1;
    const real *a = tensor_real(c->in[0]), *x = tensor_real(c->in[1]);
    real *h = tensor_real(c->out[0]);
    for (int64_t b = 0; b < B; b++)
        for (int64_t k = 0; k < N; k++) {
            double state = 0;
            for (int64_t t = 0; t < T; t++) {
                int64_t i = (b * T + t) * N + k;
                state = a[constant ? k : i] * state + x[i];
                h[i] = (real)state;
            }
        }
}

/* Computes the gradients. If `terms` is given, it writes none; instead it sets *terms to the largest sum of magnitudes
 * that the gradient of a constant transition has. */
static void real_backward(const struct call *c, double *terms) {
    int64_t B = c->in[1]->dims[0], T = c->in[1]->dims[1], N = c->in[1]->dims[2];
    bool constant = c->in[0]->rank == 1;
    const real *a = tensor_real(c->in[0]), *h = tensor_real(c->out[0]), *dh = call_dout(c, 0);
    for (int64_t k = 0; k < N; k++) {
        double da_sum = 0, size = 0;
        for (int64_t b = 0; b < B; b++) {
            double carry = 0;
            for (int64_t t = T - 1; t >= 0; t--) {
                int64_t i = (b * T + t) * N + k;
                double G = dh[i] + carry, da = t > 0 ? G * h[i - N] : 0;
                carry = a[constant ? k : i] * G;
                da_sum += da;
                size += fabs(da);
                if (!terms) put_gradient(c, 1, i, G);
                if (!terms && !constant) put_gradient(c, 0, i, da);
            }
        }
        if (terms) *terms = fmax(*terms, constant ? size : 0);
        if (!terms && constant) put_gradient(c, 0, k, da_sum);
    }
}

static void scan_diag_ref_backward(const struct call *c, const struct exec *e) {
    (void)e;
    real_backward(c, NULL);
}

/* Returns the scale of rounding errors in the gradient of a constant transition, a sum over all tokens that may cancel.
 * Other gradients need no scale of their own. */
static double scan_diag_terms(const struct call *c, enum pass pass, int j) {
    double terms = 0;
    if (pass == PASS_BACKWARD && j == 0) real_backward(c, &terms);
    return terms;
}

static void scan_diag_complex_ref_forward(const struct call *c, const struct exec *e) {
    (void)e;
    int64_t B = c->in[2]->dims[0], T = c->in[2]->dims[1], N = c->in[2]->dims[2];
    bool constant = c->in[0]->rank == 1;
    const real *a_re = tensor_real(c->in[0]), *a_im = tensor_real(c->in[1]);
    for (int64_t b = 0; b < B; b++)
        for (int64_t k = 0; k < N; k++) {
            double re = 0, im = 0;
            for (int64_t t = 0; t < T; t++) {
                int64_t i = (b * T + t) * N + k, j = constant ? k : i;
                double re_next = a_re[j] * re - a_im[j] * im + tensor_real(c->in[2])[i];
                im = a_re[j] * im + a_im[j] * re + tensor_real(c->in[3])[i];
                re = re_next;
                tensor_real(c->out[0])[i] = (real)re;
                tensor_real(c->out[1])[i] = (real)im;
            }
        }
}

/* Does the same as real_backward with both planes. */
static void complex_backward(const struct call *c, double *terms) {
    int64_t B = c->in[2]->dims[0], T = c->in[2]->dims[1], N = c->in[2]->dims[2];
    bool constant = c->in[0]->rank == 1;
    const real *a_re = tensor_real(c->in[0]), *a_im = tensor_real(c->in[1]);
    const real *h_re = tensor_real(c->out[0]), *h_im = tensor_real(c->out[1]);
    for (int64_t k = 0; k < N; k++) {
        double sum_re = 0, sum_im = 0, size = 0;
        for (int64_t b = 0; b < B; b++) {
            double carry_re = 0, carry_im = 0;
            for (int64_t t = T - 1; t >= 0; t--) {
                int64_t i = (b * T + t) * N + k, j = constant ? k : i;
                double G_re = call_dout(c, 0)[i] + carry_re;
                double G_im = (call_dout(c, 1) ? call_dout(c, 1)[i] : 0) + carry_im;
                double da_re = t > 0 ? h_re[i - N] * G_re + h_im[i - N] * G_im : 0;
                double da_im = t > 0 ? h_re[i - N] * G_im - h_im[i - N] * G_re : 0;
                carry_re = a_re[j] * G_re + a_im[j] * G_im;
                carry_im = a_re[j] * G_im - a_im[j] * G_re;
                sum_re += da_re;
                sum_im += da_im;
                size += t > 0 ? hypot(h_re[i - N], h_im[i - N]) * hypot(G_re, G_im) : 0;
                if (terms) continue;
                put_gradient(c, 2, i, G_re);
                put_gradient(c, 3, i, G_im);
                if (!constant) put_gradient(c, 0, i, da_re);
                if (!constant) put_gradient(c, 1, i, da_im);
            }
        }
        if (terms) *terms = fmax(*terms, constant ? size : 0);
        if (!terms && constant) put_gradient(c, 0, k, sum_re);
        if (!terms && constant) put_gradient(c, 1, k, sum_im);
    }
}

static void scan_diag_complex_ref_backward(const struct call *c, const struct exec *e) {
    (void)e;
    complex_backward(c, NULL);
}

/* Returns the same scale for both planes. */
static double scan_diag_complex_terms(const struct call *c, enum pass pass, int j) {
    double terms = 0;
    if (pass == PASS_BACKWARD && j < 2) complex_backward(c, &terms);
    return terms;
}

const struct kernel kernel_scan_diag_ref = {
    .name = "scan_diag_ref",
    .op = &op_scan_diag,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = scan_diag_ref_forward,
    .backward = scan_diag_ref_backward,
};

const struct kernel kernel_scan_diag_complex_ref = {
    .name = "scan_diag_complex_ref",
    .op = &op_scan_diag_complex,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = scan_diag_complex_ref_forward,
    .backward = scan_diag_complex_ref_backward,
};

/* expm_skew.c - small orthogonal matrices: U = expm(A - A^T), and the product U diag(e) W; ops and references.
 *
 * The exponential by scaling and squaring (spec/plstm-myosotis.md A4): K = A - A^T, q squarings so that X = K / 2^q has
 * ||X||_F <= 1/2, Taylor's series to order EXPM_ORDER in Horner's form, P <- P P q times. The series' remainder is below
 * (1/2)^15 / 15! = 2.4e-17. Adjoint of exactly these steps, run backwards:
 *   P_{i+1} = P_i P_i:          dP_i = dP P_i^T + P_i^T dP
 *   S_{i-1} = I + X S_i / i:    dX += dS_{i-1} S_i^T / i,   dS_i = X^T dS_{i-1} / i
 *   X = (A - A^T) / 2^q:        dA = (dX - dX^T) / 2^q
 * Sandwich T = U diag(e) W: de_l = (U^T dT W^T)[l][l],  dU = dT W^T diag(e),  dW = diag(e) U^T dT. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/expm.h"

struct tensor *expm_skew(struct graph *g, struct tensor *a, int64_t J) {
    struct expm_attr attr = {.J = J};
    return record1(g, &op_expm_skew, &attr, sizeof attr, (struct tensor *[]){a}, 1);
}

struct tensor *sandwich(struct graph *g, struct tensor *u, struct tensor *e, struct tensor *w, int64_t J) {
    struct expm_attr attr = {.J = J};
    return record1(g, &op_sandwich, &attr, sizeof attr, (struct tensor *[]){u, e, w}, 3);
}

/* The last axis of input i must be a multiple of `unit`. */
static bool infer_matrices(struct graph *g, const struct call *c, int64_t J) {
    if (!infer_present(g, c, c->n_in)) return false;
    if (J < 1 || J > EXPM_MAX) {
        graph_fail(g, ST_USAGE, "%s: matrices of size %" PRId64 ", expected 1 to %d", c->op->name, J, EXPM_MAX);
        return false;
    }
    if (tensor_cols(c->in[0]) % (J * J) == 0) return true;
    graph_fail(g, ST_USAGE, "%s: %s has %" PRId64 " columns, not a multiple of J*J = %" PRId64, c->op->name,
               c->in[0]->name, tensor_cols(c->in[0]), J * J);
    return false;
}

static void expm_skew_infer(struct graph *g, struct call *c) {
    if (infer_matrices(g, c, ((const struct expm_attr *)c->attr)->J))
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static void sandwich_infer(struct graph *g, struct call *c) {
    int64_t J = ((const struct expm_attr *)c->attr)->J;
    if (!infer_matrices(g, c, J) || !infer_same_shape(g, c, 0, 2)) return;
    if (tensor_count(c->in[1]) * J != tensor_count(c->in[0]))
        graph_fail(g, ST_USAGE,
                   "sandwich: e has %" PRId64 " elements, expected %" PRId64 " (J = %" PRId64 " for each matrix)",
                   tensor_count(c->in[1]), tensor_count(c->in[0]) / J, J);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

/* A product of J x J matrices is 2 J^3. Squarings depend on the values: three (norms up to 4) are taken as usual. */
static struct cost expm_skew_cost(const struct call *c, enum pass pass) {
    double J = (double)((const struct expm_attr *)c->attr)->J, n = (double)tensor_count(c->out[0]);
    double products = EXPM_ORDER - 1 + 3;
    return (struct cost){2 * J * n * products * (pass == PASS_FORWARD ? 1 : 3),
                         (pass == PASS_FORWARD ? 2 : 3) * n * sizeof(real)};
}

static struct cost sandwich_cost(const struct call *c, enum pass pass) {
    double J = (double)((const struct expm_attr *)c->attr)->J, n = (double)tensor_count(c->out[0]);
    double e = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){(2 * J + 1) * n, (3 * n + e) * sizeof(real)};
    return (struct cost){(4 * J + 4) * n, (5 * n + 2 * e) * sizeof(real)};
}

static bool expm_skew_example(struct graph *g, int64_t n, int variant) {
    static const int64_t sizes[] = {3, 2, 4, 1, 5, EXPM_MAX};
    if (variant >= (int)(sizeof sizes / sizeof sizes[0])) return false;
    int64_t J = sizes[variant];
    expm_skew(g, graph_input(g, "a", 3, (int64_t[]){2, J < 8 ? n : 1, J < 8 ? 2 * J * J : J * J}, true), J);
    return true;
}

static bool sandwich_example(struct graph *g, int64_t n, int variant) {
    static const int64_t sizes[] = {3, 2, 4, 1, 5, EXPM_MAX};
    if (variant >= (int)(sizeof sizes / sizeof sizes[0])) return false;
    int64_t J = sizes[variant], T = J < 8 ? n : 2;
    struct tensor *u = graph_input(g, "u", 3, (int64_t[]){2, T, 2 * J * J}, true);
    struct tensor *e = graph_input(g, "e", 3, (int64_t[]){2, T, 2 * J}, true);
    sandwich(g, u, e, graph_input(g, "w", 3, (int64_t[]){2, T, 2 * J * J}, true), J);
    return true;
}

const struct op op_expm_skew = {
    .name = "expm_skew",
    .maths = "U = expm(A - A^T) for each J x J matrix A: scaling and squaring",
    .source = "pLSTM, D.6, spec/plstm-myosotis.md A4",
    .needs_in = 1,
    .infer = expm_skew_infer,
    .cost = expm_skew_cost,
    .example = expm_skew_example,
};

const struct op op_sandwich = {
    .name = "sandwich",
    .maths = "T = U diag(e) W for each J x J matrix",
    .source = "pLSTM, D.6, spec/plstm-myosotis.md A4",
    .needs_in = 7,
    .infer = sandwich_infer,
    .cost = sandwich_cost,
    .example = sandwich_example,
};

/* --- reference --------------------------------------------------------------------------------------------------------- */

/* out (+)= factor * op(a) op(b), J x J. */
static void product(int64_t J, double factor, const double *a, bool at, const double *b, bool bt, bool add,
                    double *out) {
    for (int64_t i = 0; i < J; i++)
        for (int64_t j = 0; j < J; j++) {
            double sum = 0;
            for (int64_t l = 0; l < J; l++)
                sum += (at ? a[l * J + i] : a[i * J + l]) * (bt ? b[j * J + l] : b[l * J + j]);
            out[i * J + j] = factor * sum + (add ? out[i * J + j] : 0);
        }
}

static void identity(int64_t J, double *out) {
    for (int64_t i = 0; i < J * J; i++) out[i] = i / J == i % J;
}

/* Work of one exponential: X, then S_0 .. S_ORDER of the series, then P_0 = S_0 .. P_q, and three for the gradient. */
struct work {
    double *X, *S, *P, *d[3];
};

static size_t expm_ref_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    int64_t J = ((const struct expm_attr *)c->attr)->J;
    return (size_t)(1 + EXPM_ORDER + 1 + EXPM_SQUARINGS + 1 + 3) * (size_t)(J * J) * sizeof(double);
}

static struct work work_of(const struct call *c, enum pass pass) {
    int64_t n = ((const struct expm_attr *)c->attr)->J;
    n *= n;
    double *at = c->scratch[pass];
    struct work w = {at, at + n, at + (EXPM_ORDER + 2) * n, {0}};
    for (int i = 0; i < 3; i++) w.d[i] = w.P + (EXPM_SQUARINGS + 1 + i) * n;
    return w;
}

/* Fills the work; returns q, the result is P + q J^2. */
static int ref_expm(struct work w, int64_t J, const real *a) {
    double norm = 0;
    for (int64_t i = 0; i < J; i++)
        for (int64_t j = 0; j < J; j++) {
            w.X[i * J + j] = (double)a[i * J + j] - a[j * J + i];
            norm += w.X[i * J + j] * w.X[i * J + j];
        }
    int q = expm_squarings(sqrt(norm));
    for (int64_t i = 0; i < J * J; i++) w.X[i] = ldexp(w.X[i], -q);
    identity(J, w.S + EXPM_ORDER * J * J);
    for (int i = EXPM_ORDER; i > 0; i--) {
        double *s = w.S + (i - 1) * J * J;
        identity(J, s);
        product(J, 1.0 / i, w.X, false, w.S + i * J * J, false, true, s);
    }
    memcpy(w.P, w.S, (size_t)(J * J) * sizeof *w.P);
    for (int i = 0; i < q; i++)
        product(J, 1, w.P + i * J * J, false, w.P + i * J * J, false, false, w.P + (i + 1) * J * J);
    return q;
}

static void expm_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t J = ((const struct expm_attr *)c->attr)->J, count = tensor_count(c->in[0]) / (J * J);
    struct work w = work_of(c, PASS_FORWARD);
    for (int64_t m = 0; m < count; m++) {
        int q = ref_expm(w, J, tensor_real(c->in[0]) + m * J * J);
        for (int64_t i = 0; i < J * J; i++) tensor_real(c->out[0])[m * J * J + i] = (real)w.P[q * J * J + i];
    }
}

static void expm_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t J = ((const struct expm_attr *)c->attr)->J, n = J * J, count = tensor_count(c->in[0]) / n;
    struct work w = work_of(c, PASS_BACKWARD);
    for (int64_t m = 0; m < count && c->din[0]; m++) {
        int q = ref_expm(w, J, tensor_real(c->in[0]) + m * n);
        double *d = w.d[0], *next = w.d[1], *dX = w.d[2];
        for (int64_t i = 0; i < n; i++) d[i] = call_dout(c, 0)[m * n + i];
        for (int i = q - 1; i >= 0; i--) {
            product(J, 1, d, false, w.P + i * n, true, false, next);
            product(J, 1, w.P + i * n, true, d, false, true, next);
            memcpy(d, next, (size_t)n * sizeof *d);
        }
        memset(dX, 0, (size_t)n * sizeof *dX);
        for (int i = 1; i <= EXPM_ORDER; i++) {
            product(J, 1.0 / i, d, false, w.S + i * n, true, true, dX);
            product(J, 1.0 / i, w.X, true, d, false, false, next);
            memcpy(d, next, (size_t)n * sizeof *d);
        }
        for (int64_t i = 0; i < n; i++)
            put(c->din[0] + m * n + i, call_accumulates(c, 0), (real)ldexp(dX[i] - dX[i % J * J + i / J], -q));
    }
}

static void sandwich_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t J = ((const struct expm_attr *)c->attr)->J, n = J * J, count = tensor_count(c->in[0]) / n;
    for (int64_t m = 0; m < count; m++)
        for (int64_t i = 0; i < n; i++) {
            const real *u = tensor_real(c->in[0]) + m * n, *e = tensor_real(c->in[1]) + m * J;
            const real *w = tensor_real(c->in[2]) + m * n;
            double sum = 0;
            for (int64_t l = 0; l < J; l++) sum += (double)u[i / J * J + l] * e[l] * w[l * J + i % J];
            tensor_real(c->out[0])[m * n + i] = (real)sum;
        }
}

static void sandwich_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t J = ((const struct expm_attr *)c->attr)->J, n = J * J, count = tensor_count(c->in[0]) / n;
    for (int64_t m = 0; m < count; m++) {
        const real *u = tensor_real(c->in[0]) + m * n, *e = tensor_real(c->in[1]) + m * J;
        const real *w = tensor_real(c->in[2]) + m * n, *dT = call_dout(c, 0) + m * n;
        for (int64_t l = 0; l < J; l++) {
            double de = 0;
            for (int64_t i = 0; i < J; i++) {
                double row = 0, column = 0; /* (dT W^T)[i][l] and (U^T dT)[l][i] */
                for (int64_t j = 0; j < J; j++) {
                    row += (double)dT[i * J + j] * w[l * J + j];
                    column += (double)u[j * J + l] * dT[j * J + i];
                }
                de += u[i * J + l] * row;
                if (c->din[0]) put(c->din[0] + m * n + i * J + l, call_accumulates(c, 0), (real)(row * e[l]));
                if (c->din[2]) put(c->din[2] + m * n + l * J + i, call_accumulates(c, 2), (real)(column * e[l]));
            }
            if (c->din[1]) put(c->din[1] + m * J + l, call_accumulates(c, 1), (real)de);
        }
    }
}

const struct kernel kernel_expm_skew_ref = {
    .name = "expm_skew_ref",
    .op = &op_expm_skew,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = expm_ref_workspace,
    .forward = expm_ref_forward,
    .backward = expm_ref_backward,
};

const struct kernel kernel_sandwich_ref = {
    .name = "sandwich_ref",
    .op = &op_sandwich,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = sandwich_ref_forward,
    .backward = sandwich_ref_backward,
};

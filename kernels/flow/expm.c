/* expm.c - three ops on small matrices, with their references: expm_skew, U = expm(A - A^T), which is orthogonal;
 * sandwich, T = U diag(e) W; and expm_flow, E = expm(L) - I, the increment of a linear flow.
 *
 * expm_skew computes the exponential by scaling and squaring:
 *   1. X = (A - A^T) / 2^q, with the smallest q for which ||X||_F <= 1/2
 *   2. Taylor's series to order EXPM_ORDER in Horner's form: S_ORDER = I, then S_{i-1} = I + X S_i / i, down to S_0
 *   3. P_0 = S_0, then P_{i+1} = P_i P_i, q times; U = P_q
 * The remainder of the series is below (1/2)^15 / 15! = 2.4e-17. (pLSTM's code takes 16 terms of the series without
 * scaling. Its result is not orthogonal for large A.) The gradient is that of these steps, from the last to the first:
 *   3. dP_i = dP_{i+1} P_i^T + P_i^T dP_{i+1}
 *   2. dX += dS_{i-1} S_i^T / i,   dS_i = X^T dS_{i-1} / i
 *   1. dA = (dX - dX^T) / 2^q
 * expm_flow starts with X = L / 2^q and leaves the identity out, so that small increments keep their digits:
 *   S_0 = X S_1,   P_{i+1} = 2 P_i + P_i P_i,   dP_i = 2 dP_{i+1} + dP_{i+1} P_i^T + P_i^T dP_{i+1},   dL = dX / 2^q
 * For a 1 x 1 matrix, it computes E = expm1(L) and dL = e^L dE.
 * sandwich: de_l = (U^T dT W^T)[l][l],  dU = dT W^T diag(e),  dW = diag(e) U^T dT. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/flow/expm.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"

struct tensor *expm_skew(struct graph *g, struct tensor *a, int64_t J) {
    struct expm_attr attr = {.J = J, .N = 1};
    return call1(g, &op_expm_skew, &attr, sizeof attr, (struct tensor *[]){a}, 1);
}

struct tensor *expm_flow(struct graph *g, struct tensor *l, int64_t N, int64_t m) {
    struct expm_attr attr = {.J = m, .N = N, .flow = true};
    return call1(g, &op_expm_flow, &attr, sizeof attr, (struct tensor *[]){l}, 1);
}

struct tensor *sandwich(struct graph *g, struct tensor *u, struct tensor *e, struct tensor *w, int64_t J) {
    struct expm_attr attr = {.J = J, .N = 1};
    return call1(g, &op_sandwich, &attr, sizeof attr, (struct tensor *[]){u, e, w}, 3);
}

/* Checks that all inputs are present, that 1 <= J <= EXPM_MAX, and that input 0 has a multiple of J*J columns. */
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
    if (infer_matrices(g, c, expm_attr(c)->J)) graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static void expm_flow_infer(struct graph *g, struct call *c) {
    const struct expm_attr *a = expm_attr(c);
    if (!infer_present(g, c, 1)) return;
    if (a->N < 1 || a->J < 1)
        graph_fail(g, ST_USAGE, "expm_flow: blocks=%" PRId64 " and m=%" PRId64 " must both be at least 1", a->N, a->J);
    else if (tensor_cols(c->in[0]) != a->J * a->J * a->N)
        graph_fail(g, ST_USAGE, "expm_flow: l has %" PRId64 " columns, expected m*m*blocks = %" PRId64,
                   tensor_cols(c->in[0]), a->J * a->J * a->N);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static void sandwich_infer(struct graph *g, struct call *c) {
    int64_t J = expm_attr(c)->J;
    if (!infer_matrices(g, c, J) || !infer_same_shape(g, c, 0, 2)) return;
    if (tensor_count(c->in[1]) * J != tensor_count(c->in[0]))
        graph_fail(g, ST_USAGE,
                   "sandwich: e has %" PRId64 " elements, expected %" PRId64 " (J = %" PRId64 " for each matrix)",
                   tensor_count(c->in[1]), tensor_count(c->in[0]) / J, J);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

/* A product of J x J matrices counts 2 J^3 FLOPs. The number of squarings depends on the values. We count three for
 * expm_skew (norms up to 4) and none for expm_flow, whose steps are small (norms up to 1/2). For 1 x 1 matrices, expm1
 * counts 12 FLOPs forward and 16 backward. */
static struct cost expm_cost(const struct call *c, enum pass pass) {
    const struct expm_attr *a = expm_attr(c);
    double n = (double)tensor_count(c->out[0]), bytes = (pass == PASS_FORWARD ? 2 : 3) * n * sizeof(real);
    double products = EXPM_ORDER - 1 + (a->flow ? 0 : 3);
    if (expm_of_number(a)) return (struct cost){(pass == PASS_FORWARD ? 12 : 16) * n, bytes};
    return (struct cost){2 * (double)a->J * n * products * (pass == PASS_FORWARD ? 1 : 3), bytes};
}

static struct cost sandwich_cost(const struct call *c, enum pass pass) {
    double J = (double)expm_attr(c)->J, n = (double)tensor_count(c->out[0]);
    double e = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){(2 * J + 1) * n, (3 * n + e) * sizeof(real)};
    return (struct cost){(4 * J + 4) * n, (5 * n + 2 * e) * sizeof(real)};
}

/* Returns the size of the matrices: m, but at most EXPM_MAX. */
static int64_t matrix_size(const struct op_sizes *s) {
    return s->m < EXPM_MAX ? s->m : EXPM_MAX;
}

static bool expm_skew_build(struct graph *g, const struct op_sizes *s) {
    int64_t J = matrix_size(s);
    if (s->variant > 0) return false;
    expm_skew(g, input_tokens(g, s, "a", s->heads * J * J), J);
    return true;
}

static bool expm_flow_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    expm_flow(g, input_tokens(g, s, "l", s->m * s->m * s->blocks), s->blocks, s->m);
    return true;
}

static bool sandwich_build(struct graph *g, const struct op_sizes *s) {
    int64_t J = matrix_size(s);
    if (s->variant > 0) return false;
    struct tensor *u = input_tokens(g, s, "u", s->heads * J * J), *e = input_tokens(g, s, "e", s->heads * J);
    sandwich(g, u, e, input_tokens(g, s, "w", s->heads * J * J), J);
    return true;
}

static struct heads matrices_heads(const struct call *c) {
    int64_t J = expm_attr(c)->J, n = tensor_cols(c->in[0]) / (J * J);
    return (struct heads){n, {J * J, J, J * J}, {J * J}};
}

const struct op op_expm_skew = {
    .name = "expm_skew",
    .maths = "U = expm(A - A^T) for each J x J matrix A: scaling and squaring",
    .source = "pLSTM (workshop version), App. D.7; ml-jku/plstm, 1D layer",
    .needs_in = 1,
    .infer = expm_skew_infer,
    .cost = expm_cost,
    .heads = matrices_heads,
    .sizes = "batch length heads m",
    .build = expm_skew_build,
};

static struct heads expm_flow_heads(const struct call *c) {
    return (struct heads){expm_attr(c)->N, {1}, {1}};
}

const struct op op_expm_flow = {
    .name = "expm_flow",
    .maths = "E = expm(L) - I for each block L: scaling and squaring without the identity",
    .source = "SLiCE (arXiv 2505.17761), Log-ODE appendix",
    .needs_in = 1,
    .infer = expm_flow_infer,
    .cost = expm_cost,
    .heads = expm_flow_heads,
    .sizes = "batch length blocks m",
    .build = expm_flow_build,
};

const struct op op_sandwich = {
    .name = "sandwich",
    .maths = "T = U diag(e) W for each J x J matrix",
    .source = "pLSTM (workshop version), App. D.7; ml-jku/plstm, 1D layer",
    .needs_in = 7,
    .infer = sandwich_infer,
    .cost = sandwich_cost,
    .heads = matrices_heads,
    .sizes = "batch length heads m",
    .build = sandwich_build,
};

/* --- reference ---------------------------------------------------------------------------------------------------- */

static void product(int64_t J, double factor, const double *a, bool at, const double *b, bool bt, bool add, double *out,
                    double *spare) {
    (void)spare;
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

struct expm_work expm_work_of(struct scratch *s, int64_t n, expm_product *multiply) {
    struct expm_work w = {.X = scratch_doubles(s, n), .product = multiply};
    for (int i = 0; i <= EXPM_ORDER; i++) w.S[i] = scratch_doubles(s, n);
    for (int i = 0; i <= EXPM_SQUARINGS; i++) w.P[i] = scratch_doubles(s, n);
    for (int i = 0; i < 3; i++) w.d[i] = scratch_doubles(s, n);
    w.spare = scratch_doubles(s, n);
    return w;
}

/* Computes X and returns q (step 1). */
static int scale_down(const struct expm_work *w, const struct expm_attr *a, const real *from) {
    int64_t J = a->J, N = a->N;
    double norm = 0;
    for (int64_t i = 0; i < J; i++)
        for (int64_t j = 0; j < J; j++) {
            double x = (double)from[(i * J + j) * N];
            if (!a->flow) x -= from[(j * J + i) * N];
            w->X[i * J + j] = x;
            norm += x * x;
        }
    int q = expm_squarings(sqrt(norm));
    for (int64_t i = 0; i < J * J; i++) w->X[i] = ldexp(w->X[i], -q);
    return q;
}

static void double_of(int64_t n, const double *from, double *to) {
    for (int64_t i = 0; i < n; i++) to[i] = 2 * from[i];
}

/* Computes X, all S_i and all P_i, and returns q. The result is P_q. */
static int exponentiate(const struct expm_work *w, const struct expm_attr *a, const real *from) {
    int64_t J = a->J, n = J * J;
    int q = scale_down(w, a, from);
    identity(J, w->S[EXPM_ORDER]);
    for (int i = EXPM_ORDER; i > 0; i--) {
        double *s = w->S[i - 1];
        bool plus_one = i > 1 || !a->flow;
        if (plus_one) identity(J, s);
        w->product(J, 1.0 / i, w->X, false, w->S[i], false, plus_one, s, w->spare);
    }
    memcpy(w->P[0], w->S[0], (size_t)n * sizeof(double));
    for (int i = 0; i < q; i++) {
        const double *p = w->P[i];
        if (a->flow) double_of(n, p, w->P[i + 1]);
        w->product(J, 1, p, false, p, false, a->flow, w->P[i + 1], w->spare);
    }
    return q;
}

void expm_one(const struct expm_work *w, const struct expm_attr *a, int64_t q, const real *from, real *to) {
    int64_t n = a->J * a->J, at = expm_at(n, a->N, q);
    if (expm_of_number(a)) {
        to[at] = (real)expm1((double)from[at]);
        return;
    }
    const double *P = w->P[exponentiate(w, a, from + at)];
    for (int64_t i = 0; i < n; i++) to[at + i * a->N] = (real)P[i];
}

void expm_one_gradient(const struct expm_work *w, const struct expm_attr *a, int64_t q, const real *from,
                       const real *dU, real *dA, bool accumulate) {
    int64_t J = a->J, n = J * J, at = expm_at(n, a->N, q);
    if (expm_of_number(a)) {
        put(&dA[at], accumulate, (real)(exp((double)from[at]) * dU[at]));
        return;
    }
    int squarings = exponentiate(w, a, from + at);
    double *d = w->d[0], *next = w->d[1], *dX = w->d[2];
    for (int64_t i = 0; i < n; i++) d[i] = dU[at + i * a->N];
    for (int i = squarings - 1; i >= 0; i--) {
        if (a->flow) double_of(n, d, next);
        w->product(J, 1, d, false, w->P[i], true, a->flow, next, w->spare);
        w->product(J, 1, w->P[i], true, d, false, true, next, w->spare);
        memcpy(d, next, (size_t)n * sizeof *d);
    }
    memset(dX, 0, (size_t)n * sizeof *dX);
    for (int i = 1; i <= EXPM_ORDER; i++) {
        w->product(J, 1.0 / i, d, false, w->S[i], true, true, dX, w->spare);
        w->product(J, 1.0 / i, w->X, true, d, false, false, next, w->spare);
        memcpy(d, next, (size_t)n * sizeof *d);
    }
    for (int64_t i = 0; i < n; i++) {
        double x = a->flow ? dX[i] : dX[i] - dX[i % J * J + i / J];
        put(dA + at + i * a->N, accumulate, (real)ldexp(x, -squarings));
    }
}

static size_t expm_ref_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    int64_t J = expm_attr(c)->J;
    expm_work_of(&s, J * J, product);
    return s.used;
}

static void expm_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct expm_attr *a = expm_attr(c);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct expm_work w = expm_work_of(&s, a->J * a->J, product);
    for (int64_t q = 0; q < tensor_count(c->in[0]) / (a->J * a->J); q++)
        expm_one(&w, a, q, tensor_real(c->in[0]), tensor_real(c->out[0]));
}

static void expm_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct expm_attr *a = expm_attr(c);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct expm_work w = expm_work_of(&s, a->J * a->J, product);
    for (int64_t q = 0; q < tensor_count(c->in[0]) / (a->J * a->J) && c->din[0]; q++)
        expm_one_gradient(&w, a, q, tensor_real(c->in[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

static void sandwich_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t J = expm_attr(c)->J, n = J * J, count = tensor_count(c->in[0]) / n;
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
    int64_t J = expm_attr(c)->J, n = J * J, count = tensor_count(c->in[0]) / n;
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

const struct kernel kernel_expm_flow_ref = {
    .name = "expm_flow_ref",
    .op = &op_expm_flow,
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

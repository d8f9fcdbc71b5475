/* dense_generators.c - turns generators of low rank into dense matrices, letter by letter (log-ODE SLiCE): the op, its
 * reference and its CPU kernel.
 *
 *   A_c = diag(d_c) + U_c V_c^T
 * Gradients, with Q_c the gradient of A_c:  dd_c = diag(Q_c),  dU_c = Q_c V_c,  dV_c = Q_c^T U_c The recurrence needs a
 * sum over letters, which may have full rank, so keeping the factors would save nothing. */
#include <inttypes.h>
#include <string.h>

#include "core/real_math.h"
#include "kernels/flow/flow.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/parallel.h"

struct tensor *dense_generators(struct graph *g, struct tensor *d, struct tensor *u, struct tensor *v) {
    return call1(g, &op_dense_generators, NULL, 0, (struct tensor *[]){d, u, v}, 3);
}

static void dense_generators_infer(struct graph *g, struct call *c) {
    const struct tensor *d = c->in[0], *u = c->in[1];
    if (!infer_present(g, c, 3) || !infer_same_shape(g, c, 1, 2)) return;
    if (d->rank != 2 || u->rank != 2 || u->dims[0] % d->dims[0] || u->dims[1] != d->dims[1])
        graph_fail(g, ST_USAGE,
                   "dense_generators: d has rank %d and %" PRId64 " elements, u and v rank %d and %" PRId64
                   ", expected (D,C) and (r*D,C)",
                   d->rank, tensor_count(d), u->rank, tensor_count(u));
    else
        graph_output(g, c, DT_REAL, 2, (int64_t[]){d->dims[0] * d->dims[0], d->dims[1]});
}

/* Counts a sum of r products per element forward, and two of them backward. */
static struct cost dense_generators_cost(const struct call *c, enum pass pass) {
    double in = (double)tensor_count(c->in[0]) + 2 * (double)tensor_count(c->in[1]),
           a = (double)tensor_count(c->out[0]);
    double rank = (double)c->in[1]->dims[0] / (double)c->in[0]->dims[0];
    if (pass == PASS_FORWARD) return (struct cost){2 * rank * a, sizeof(real) * (in + a)};
    return (struct cost){4 * rank * a, sizeof(real) * (2 * in + a)};
}

/* Creates inputs for `vocab` letters of rank m. */
static bool dense_generators_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    struct tensor *d = input_matrix(g, "d", s->dim, s->vocab), *u = input_matrix(g, "u", s->m * s->dim, s->vocab);
    dense_generators(g, d, u, input_matrix(g, "v", s->m * s->dim, s->vocab));
    return true;
}

const struct op op_dense_generators = {
    .name = "dense_generators",
    .maths = "A_c = diag(d_c) + U_c V_c^T for each letter c",
    .source = "SLiCE (arXiv 2505.17761), Log-ODE appendix; log-neural-cdes, models/LinearNeuralCDEs.py",
    .needs_in = 6,
    .infer = dense_generators_infer,
    .cost = dense_generators_cost,
    .sizes = "dim m vocab",
    .build = dense_generators_build,
};

/* D, C and r of a call. */
struct sizes {
    int64_t D, C, r;
};

static struct sizes sizes_of(const struct call *c) {
    int64_t D = c->in[0]->dims[0];
    return (struct sizes){D, c->in[0]->dims[1], c->in[1]->dims[0] / D};
}

/* --- reference: one number after the other, sums in double -------------------------------------------------------- */

static void dense_generators_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    struct sizes z = sizes_of(c);
    const real *d = tensor_real(c->in[0]), *u = tensor_real(c->in[1]), *v = tensor_real(c->in[2]);
    for (int64_t e = 0; e < z.D * z.D * z.C; e++) {
        int64_t k = e % z.C, j = e / z.C % z.D, i = e / z.C / z.D;
        double sum = i == j ? d[i * z.C + k] : 0;
        for (int64_t q = 0; q < z.r; q++) sum += (double)u[(q * z.D + i) * z.C + k] * v[(q * z.D + j) * z.C + k];
        tensor_real(c->out[0])[e] = (real)sum;
    }
}

static void dense_generators_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct sizes z = sizes_of(c);
    const real *u = tensor_real(c->in[1]), *v = tensor_real(c->in[2]), *Q = call_dout(c, 0);
    for (int64_t e = 0; c->din[0] && e < z.D * z.C; e++)
        put(c->din[0] + e, call_accumulates(c, 0), Q[(e / z.C * z.D + e / z.C) * z.C + e % z.C]);
    for (int64_t e = 0; e < z.r * z.D * z.C; e++) {
        int64_t k = e % z.C, i = e / z.C % z.D, q = e / z.C / z.D;
        double du = 0, dv = 0;
        for (int64_t j = 0; j < z.D; j++) {
            du += (double)Q[(i * z.D + j) * z.C + k] * v[(q * z.D + j) * z.C + k];
            dv += (double)Q[(j * z.D + i) * z.C + k] * u[(q * z.D + j) * z.C + k];
        }
        if (c->din[1]) put(c->din[1] + e, call_accumulates(c, 1), (real)du);
        if (c->din[2]) put(c->din[2] + e, call_accumulates(c, 2), (real)dv);
    }
}

const struct kernel kernel_dense_generators_ref = {
    .name = "dense_generators_ref",
    .op = &op_dense_generators,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = dense_generators_ref_forward,
    .backward = dense_generators_ref_backward,
};

/* --- CPU: rows of the matrices on threads, letters in vectors ----------------------------------------------------- */

/* Computes y += a b. */
static void add_product(int64_t n, const real *a, const real *b, real *y) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) y[k] = real_fma(a[k], b[k], y[k]);
}

static void dense_generators_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    struct sizes z = sizes_of(c);
    const real *u = tensor_real(c->in[1]), *v = tensor_real(c->in[2]);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t e = 0; e < z.D * z.D; e++) {
        int64_t i = e / z.D, j = e % z.D;
        real *a = tensor_real(c->out[0]) + e * z.C;
        if (i == j)
            memcpy(a, tensor_real(c->in[0]) + i * z.C, (size_t)z.C * sizeof *a);
        else
            memset(a, 0, (size_t)z.C * sizeof *a);
        for (int64_t q = 0; q < z.r; q++) add_product(z.C, u + (q * z.D + i) * z.C, v + (q * z.D + j) * z.C, a);
    }
}

/* Computes a row of dU (input 1) or dV (input 2), which sums over row i, or column i, of Q. */
static void factor_gradient(const struct call *c, struct sizes z, int input, int64_t row) {
    int64_t i = row % z.D, q = row / z.D, stride = input == 1 ? 1 : z.D, first = input == 1 ? i * z.D : i;
    const real *other = tensor_real(c->in[3 - input]) + q * z.D * z.C, *Q = call_dout(c, 0);
    real *to = c->din[input] + row * z.C;
    if (!call_accumulates(c, input)) memset(to, 0, (size_t)z.C * sizeof *to);
    for (int64_t j = 0; j < z.D; j++) add_product(z.C, Q + (first + j * stride) * z.C, other + j * z.C, to);
}

static void dense_generators_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct sizes z = sizes_of(c);
    for (int64_t e = 0; c->din[0] && e < z.D * z.C; e++)
        put(c->din[0] + e, call_accumulates(c, 0), call_dout(c, 0)[(e / z.C * z.D + e / z.C) * z.C + e % z.C]);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t n = 0; n < 2 * z.r * z.D; n++) {
        int input = 1 + (int)(n % 2);
        if (c->din[input]) factor_gradient(c, z, input, n / 2);
    }
}

/* Tolerance: sums of r products (in the gradient of D) are in `real`; the reference sums in double. */
const struct kernel kernel_dense_generators_cpu = {
    .name = "dense_generators_cpu",
    .op = &op_dense_generators,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 128,
    .forward = dense_generators_cpu_forward,
    .backward = dense_generators_cpu_backward,
};

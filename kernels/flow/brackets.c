/* brackets.c - makes the generators for a log-signature of depth 2 from the generators A_i of its letters: the op and
 * its reference.
 *
 *   A_[i,j] = A_j A_i - A_i A_j for i < j, block by block; the result has the A_i, then the A_[i,j]
 * Gradients, with Q the gradient of A_[i,j]:  dA_i += A_j^T Q - Q A_j^T,   dA_j += Q A_i^T - A_i^T Q. The second has
 * the form of the first for A_[j,i] = -A_[i,j], whose gradient is -Q. */
#include <inttypes.h>

#include "kernels/lib/sizes.h"
#include "kernels/flow/log_signature.h"

struct tensor *brackets(struct graph *g, struct tensor *a, int64_t N, int64_t m) {
    struct brackets_attr attr = {.N = N, .m = m};
    return call1(g, &op_brackets, &attr, sizeof attr, (struct tensor *[]){a}, 1);
}

static void brackets_infer(struct graph *g, struct call *c) {
    const struct brackets_attr *at = brackets_attr(c);
    const struct tensor *a = c->in[0];
    if (!infer_present(g, c, 1)) return;
    if (at->N < 1 || at->m < 1)
        graph_fail(g, ST_USAGE, "brackets: blocks=%" PRId64 " and m=%" PRId64 " must both be at least 1", at->N, at->m);
    else if (a->rank != 2 || a->dims[0] != at->m * at->m * at->N)
        graph_fail(g, ST_USAGE,
                   "brackets: a has rank %d and %" PRId64 " rows, expected rank 2 and m*m*blocks = %" PRId64 " rows",
                   a->rank, a->dims[0], at->m * at->m * at->N);
    else
        graph_output(g, c, DT_REAL, 2, (int64_t[]){a->dims[0], log_signature_size(a->dims[1], 2)});
}

/* Counts two products of blocks per pair forward, and four backward. */
static struct cost brackets_cost(const struct call *c, enum pass pass) {
    double m = (double)brackets_attr(c)->m;
    double a = (double)tensor_count(c->in[0]), all = (double)tensor_count(c->out[0]);
    if (pass == PASS_FORWARD) return (struct cost){4 * m * (all - a), sizeof(real) * (a + all)};
    return (struct cost){8 * m * (all - a), sizeof(real) * (2 * a + all)};
}

/* Creates inputs for `dim` generators. */
static bool brackets_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    brackets(g, input_matrix(g, "a", s->m * s->m * s->blocks, s->dim), s->blocks, s->m);
    return true;
}

static struct heads brackets_heads(const struct call *c) {
    int64_t N = brackets_attr(c)->N;
    return (struct heads){N, {tensor_cols(c->in[0])}, {tensor_cols(c->out[0])}};
}

const struct op op_brackets = {
    .name = "brackets",
    .maths = "(A_i, A_[i,j]), A_[i,j] = A_j A_i - A_i A_j for i < j, per block",
    .source = "SLiCE (arXiv 2505.17761), Log-ODE appendix; log-neural-cdes, models/LinearNeuralCDEs.py",
    .needs_in = 1,
    .infer = brackets_infer,
    .cost = brackets_cost,
    .heads = brackets_heads,
    .sizes = "blocks m dim",
    .build = brackets_build,
};

/* --- reference ---------------------------------------------------------------------------------------------------- */

/* Returns the row of element (i,j) of block k. */
static int64_t row_of(const struct brackets_attr *at, int64_t i, int64_t j, int64_t k) {
    return (i * at->m + j) * at->N + k;
}

/* Returns (A_v A_u)[i][j] of block k. */
static double product_at(const struct call *c, int64_t v, int64_t u, int64_t i, int64_t j, int64_t k) {
    const struct brackets_attr *at = brackets_attr(c);
    const real *a = tensor_real(c->in[0]);
    int64_t C = c->in[0]->dims[1];
    double sum = 0;
    for (int64_t l = 0; l < at->m; l++) sum += (double)a[row_of(at, i, l, k) * C + v] * a[row_of(at, l, j, k) * C + u];
    return sum;
}

static void brackets_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct brackets_attr *at = brackets_attr(c);
    int64_t C = c->in[0]->dims[1], S = c->out[0]->dims[1];
    for (int64_t r = 0; r < c->in[0]->dims[0]; r++) {
        int64_t k = r % at->N, j = r / at->N % at->m, i = r / at->N / at->m;
        real *out = tensor_real(c->out[0]) + r * S;
        for (int64_t u = 0; u < C; u++) out[u] = tensor_real(c->in[0])[r * C + u];
        for (int64_t u = 0; u < C; u++)
            for (int64_t v = u + 1; v < C; v++)
                out[C + pair_at(C, u, v)] = (real)(product_at(c, v, u, i, j, k) - product_at(c, u, v, i, j, k));
    }
}

/* Returns (A_v^T Q - Q A_v^T)[i][j] of block k, where Q is the gradient of A_[u,v]. */
static double gradient_at(const struct call *c, int64_t u, int64_t v, int64_t i, int64_t j, int64_t k) {
    const struct brackets_attr *at = brackets_attr(c);
    const real *a = tensor_real(c->in[0]), *Q = call_dout(c, 0);
    int64_t C = c->in[0]->dims[1], S = c->out[0]->dims[1];
    double sum = 0;
    for (int64_t l = 0; l < at->m; l++) {
        const real *under = Q + row_of(at, l, j, k) * S + C, *beside = Q + row_of(at, i, l, k) * S + C;
        sum += (double)a[row_of(at, l, i, k) * C + v] * antisymmetric_at(C, under, u, v);
        sum -= (double)a[row_of(at, j, l, k) * C + v] * antisymmetric_at(C, beside, u, v);
    }
    return sum;
}

static void brackets_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct brackets_attr *at = brackets_attr(c);
    int64_t C = c->in[0]->dims[1], S = c->out[0]->dims[1];
    for (int64_t r = 0; r < c->in[0]->dims[0] && c->din[0]; r++) {
        int64_t k = r % at->N, j = r / at->N % at->m, i = r / at->N / at->m;
        for (int64_t u = 0; u < C; u++) {
            double sum = call_dout(c, 0)[r * S + u];
            for (int64_t v = 0; v < C; v++)
                if (v != u) sum += gradient_at(c, u, v, i, j, k);
            put(c->din[0] + r * C + u, call_accumulates(c, 0), (real)sum);
        }
    }
}

const struct kernel kernel_brackets_ref = {
    .name = "brackets_ref",
    .op = &op_brackets,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = brackets_ref_forward,
    .backward = brackets_ref_backward,
};

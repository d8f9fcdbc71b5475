/* brackets_cpu.c - brackets of generators (brackets.c) on the CPU. Threads compute rows or columns of blocks; vector
 * lanes compute the pairs (u, v) with the same u.
 *
 * All pairs of one matrix element (i,j) are adjacent in memory. So the element's brackets are sums over l of
 * antisymmetric outer products of the letters at (i,l) and (l,j), and its gradient is a sum of products with
 * antisymmetric matrices. The gradient has two terms. Each has its own pass, because then the matrices that
 * neighbouring elements share stay in the cache. */
#include <string.h>

#include "kernels/flow/log_signature.h"

/* Computes out_uv += left_v right_u - left_u right_v for u < v. */
static void add_outer(int64_t C, const real *left, const real *right, real *out) {
    for (int64_t u = 0; u + 1 < C; u++) {
        real *row = out + pairs_before(C, u), l = left[u], r = right[u];
        const real *left_v = left + u + 1, *right_v = right + u + 1;
#pragma omp simd
        for (int64_t v = 0; v < C - 1 - u; v++) row[v] = real_fma(left_v[v], r, real_fma(-l, right_v[v], row[v]));
    }
}

static void brackets_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct brackets_attr *at = brackets_attr(c);
    int64_t N = at->N, m = at->m, C = c->in[0]->dims[1], S = c->out[0]->dims[1], rows = c->in[0]->dims[0];
    const real *a = tensor_real(c->in[0]);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t r = 0; r < rows; r++) {
        int64_t k = r % N, j = r / N % m, i = r / N / m;
        real *out = tensor_real(c->out[0]) + r * S;
        memcpy(out, a + r * C, (size_t)C * sizeof *out);
        memset(out + C, 0, (size_t)(S - C) * sizeof *out);
        for (int64_t l = 0; l < m; l++)
            add_outer(C, a + ((i * m + l) * N + k) * C, a + ((l * m + j) * N + k) * C, out + C);
    }
}

/* Computes column j of block k of all dA: the gradient of the letters, and the term A_v^T Q. */
static void column_gradient(const struct call *c, int64_t j, int64_t k) {
    const struct brackets_attr *at = brackets_attr(c);
    int64_t N = at->N, m = at->m, C = c->in[0]->dims[1], S = c->out[0]->dims[1];
    const real *a = tensor_real(c->in[0]), *Q = call_dout(c, 0);
    for (int64_t i = 0; i < m; i++) {
        int64_t r = (i * m + j) * N + k;
        real *da = c->din[0] + r * C;
#pragma omp simd
        for (int64_t u = 0; u < C; u++) put(&da[u], call_accumulates(c, 0), Q[r * S + u]);
        for (int64_t l = 0; l < m; l++)
            add_antisymmetric(C, 1, Q + ((l * m + j) * N + k) * S + C, a + ((l * m + i) * N + k) * C, da);
    }
}

/* Computes row i of block k of all dA: the term - Q A_v^T. */
static void row_gradient(const struct call *c, int64_t i, int64_t k) {
    const struct brackets_attr *at = brackets_attr(c);
    int64_t N = at->N, m = at->m, C = c->in[0]->dims[1], S = c->out[0]->dims[1];
    for (int64_t j = 0; j < m; j++)
        for (int64_t l = 0; l < m; l++)
            add_antisymmetric(C, -1, call_dout(c, 0) + ((i * m + l) * N + k) * S + C,
                              tensor_real(c->in[0]) + ((j * m + l) * N + k) * C, c->din[0] + ((i * m + j) * N + k) * C);
}

static void each_line(const struct call *c, void (*gradient)(const struct call *c, int64_t line, int64_t k)) {
    const struct brackets_attr *at = brackets_attr(c);
    int64_t lines = at->m * at->N;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t n = 0; n < lines; n++) gradient(c, n / at->N, n % at->N);
}

static void brackets_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (!c->din[0]) return;
    each_line(c, column_gradient);
    each_line(c, row_gradient);
}

/* Tolerance: sums of 2 m products are in `real`; in the gradient they have 2 m C products, and much cancels. The
 * reference sums in double. */
const struct kernel kernel_brackets_cpu = {
    .name = "brackets_cpu",
    .op = &op_brackets,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .forward = brackets_cpu_forward,
    .backward = brackets_cpu_backward,
};

/* log_signature_cuda.cu - log-signatures of intervals and brackets of generators on CUDA, one number per thread, in
 * double and in the references' order. The pairs of letters are the threads of a C x C square; threads below the
 * diagonal do nothing. Equations: log_signature.c, brackets.c. */
#include "kernels/flow/log_signature.h"
#include "kernels/lib/cuda.cuh"

namespace {

/* --- log_signature: w (B,T,C) -> (B,rows,S) ----------------------------------------------------------------------- */

struct intervals {
    int64_t T, C, rows, S, length;
    bool areas; /* depth 2 */

    /* Returns the steps of row k of a result. */
    __device__ struct range steps(int64_t k) const {
        struct range none = {0, 0};
        return k > 0 ? interval_at(T, length, k) : none;
    }
};

/* Computes the letters on the diagonal of the square, and the areas above it. At depth 1 there are only letters. */
struct signature {
    struct intervals k;
    const real *w;
    real *s;

    __device__ double letter(const real *d, int64_t n, int64_t i) const {
        double sum = 0;
        for (int64_t t = 0; t < n; t++) sum += (double)d[t * k.C + i];
        return sum;
    }
    __device__ double area(const real *d, int64_t n, int64_t i, int64_t j) const {
        double pi = 0, pj = 0, sum = 0;
        for (int64_t t = 0; t < n; t++) {
            double di = (double)d[t * k.C + i], dj = (double)d[t * k.C + j];
            sum += pi * dj - pj * di;
            pi += di;
            pj += dj;
        }
        return sum / 2;
    }
    __device__ void operator()(int64_t e) const {
        struct quotient column = divide(e, k.C), line = divide(column.whole, k.areas ? k.C : 1);
        struct quotient at = divide(line.whole, k.rows);
        int64_t j = column.rest, i = k.areas ? line.rest : j;
        struct range steps = k.steps(at.rest);
        const real *d = w + (at.whole * k.T + steps.begin) * k.C;
        real *to = s + line.whole * k.S;
        if (i == j) to[i] = (real)letter(d, steps.end - steps.begin, i);
        if (i < j) to[k.C + pair_at(k.C, i, j)] = (real)area(d, steps.end - steps.begin, i, j);
    }
};

/* Computes r_n - p_n = l - d_n - 2 p_n for the steps of one interval and one letter: z (B,T,C). */
struct moments {
    struct intervals k;
    const real *w;
    double *z;
    __device__ void operator()(int64_t e) const {
        struct quotient letter = divide(e, k.C), at = divide(letter.whole, k.rows);
        struct range steps = k.steps(at.rest);
        int64_t first = at.whole * k.T * k.C + letter.rest;
        double l = 0, p = 0;
        for (int64_t t = steps.begin; t < steps.end; t++) l += (double)w[first + t * k.C];
        for (int64_t t = steps.begin; t < steps.end; t++) {
            double d = (double)w[first + t * k.C];
            z[first + t * k.C] = l - d - 2 * p;
            p += d;
        }
    }
};

struct step_gradient {
    struct intervals k;
    const real *ds;
    const double *z;
    real *dw;
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        struct quotient letter = divide(e, k.C), at = divide(letter.whole, k.T);
        int64_t row = at.rest > 0 ? 1 + (at.rest - 1) / k.length : 0;
        const real *d = ds + (at.whole * k.rows + row) * k.S;
        double sum = row > 0 ? (double)d[letter.rest] : 0;
        for (int64_t j = 0; k.areas && row > 0 && j < k.C; j++)
            sum += (double)antisymmetric_at(k.C, d + k.C, letter.rest, j) * z[letter.whole * k.C + j] / 2;
        put(dw + e, accumulate, (real)sum);
    }
};

struct intervals intervals_of(const struct call *c) {
    const struct log_signature_attr *a = log_signature_attr(c);
    struct intervals k = {c->in[0]->dims[1],  c->in[0]->dims[2], c->out[0]->dims[1],
                          c->out[0]->dims[2], a->interval,       a->depth == 2};
    return k;
}

/* --- brackets: a (m*m*N,C) -> (m*m*N,S) --------------------------------------------------------------------------- */

struct blocks {
    int64_t N, m, C, S;

    /* Row r of the generators is element (i,j) of block k. */
    struct element {
        int64_t i, j, k;
    };
    __device__ struct element element_at(int64_t r) const {
        struct quotient block = divide(r, N), line = divide(block.whole, m);
        struct element at = {line.whole, line.rest, block.rest};
        return at;
    }
    __device__ int64_t row(int64_t i, int64_t j, int64_t k) const {
        return (i * m + j) * N + k;
    }
};

struct bracket {
    struct blocks z;
    const real *a;
    real *out;

    /* Returns (A_v A_u)[i][j] of block k. */
    __device__ double product(int64_t v, int64_t u, struct blocks::element at) const {
        double sum = 0;
        for (int64_t l = 0; l < z.m; l++)
            sum += (double)a[z.row(at.i, l, at.k) * z.C + v] * (double)a[z.row(l, at.j, at.k) * z.C + u];
        return sum;
    }
    __device__ void operator()(int64_t e) const {
        struct quotient column = divide(e, z.C), line = divide(column.whole, z.C);
        int64_t u = line.rest, v = column.rest;
        real *to = out + line.whole * z.S;
        struct blocks::element at = z.element_at(line.whole);
        if (u == v) to[u] = a[line.whole * z.C + u];
        if (u < v) to[z.C + pair_at(z.C, u, v)] = (real)(product(v, u, at) - product(u, v, at));
    }
};

struct bracket_gradient {
    struct blocks z;
    const real *a, *Q;
    real *da;
    bool accumulate;

    /* Returns (A_v^T Q - Q A_v^T)[i][j] of block k, where Q is the gradient of A_[u,v]. */
    __device__ double of_pair(int64_t u, int64_t v, struct blocks::element at) const {
        double sum = 0;
        for (int64_t l = 0; l < z.m; l++) {
            const real *under = Q + z.row(l, at.j, at.k) * z.S + z.C, *beside = Q + z.row(at.i, l, at.k) * z.S + z.C;
            sum += (double)a[z.row(l, at.i, at.k) * z.C + v] * (double)antisymmetric_at(z.C, under, u, v);
            sum -= (double)a[z.row(at.j, l, at.k) * z.C + v] * (double)antisymmetric_at(z.C, beside, u, v);
        }
        return sum;
    }
    __device__ void operator()(int64_t e) const {
        struct quotient letter = divide(e, z.C);
        struct blocks::element at = z.element_at(letter.whole);
        double sum = (double)Q[letter.whole * z.S + letter.rest];
        for (int64_t v = 0; v < z.C; v++)
            if (v != letter.rest) sum += of_pair(letter.rest, v, at);
        put(da + e, accumulate, (real)sum);
    }
};

struct blocks blocks_of(const struct call *c) {
    const struct brackets_attr *a = brackets_attr(c);
    struct blocks z = {a->N, a->m, c->in[0]->dims[1], c->out[0]->dims[1]};
    return z;
}

} // namespace

static void log_signature_cuda_forward(const struct call *c, const struct exec *x) {
    struct intervals k = intervals_of(c);
    each_value(c, x, c->in[0]->dims[0] * k.rows * k.C * (k.areas ? k.C : 1),
               signature{k, tensor_real(c->in[0]), tensor_real(c->out[0])});
}

static size_t log_signature_cuda_workspace(const struct call *c, enum pass pass) {
    bool moments = pass == PASS_BACKWARD && intervals_of(c).areas;
    return scratch_single(c, moments ? (size_t)tensor_count(c->in[0]) * sizeof(double) : 0);
}

static void log_signature_cuda_backward(const struct call *c, const struct exec *x) {
    struct intervals k = intervals_of(c);
    double *z = (double *)c->scratch[PASS_BACKWARD];
    if (!c->din[0]) return;
    if (k.areas) each_value(c, x, c->in[0]->dims[0] * k.rows * k.C, moments{k, tensor_real(c->in[0]), z});
    each_value(c, x, tensor_count(c->in[0]), step_gradient{k, call_dout(c, 0), z, c->din[0], call_accumulates(c, 0)});
}

static void brackets_cuda_forward(const struct call *c, const struct exec *x) {
    struct blocks z = blocks_of(c);
    each_value(c, x, tensor_count(c->in[0]) * z.C, bracket{z, tensor_real(c->in[0]), tensor_real(c->out[0])});
}

static void brackets_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0])
        each_value(
            c, x, tensor_count(c->in[0]),
            bracket_gradient{blocks_of(c), tensor_real(c->in[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
}

const struct kernel kernel_log_signature_cuda = {
    .name = "log_signature_cuda",
    .op = &op_log_signature,
    .device = DEVICE_CUDA,
    .workspace = log_signature_cuda_workspace,
    .forward = log_signature_cuda_forward,
    .backward = log_signature_cuda_backward,
};

const struct kernel kernel_brackets_cuda = {
    .name = "brackets_cuda",
    .op = &op_brackets,
    .device = DEVICE_CUDA,
    .forward = brackets_cuda_forward,
    .backward = brackets_cuda_backward,
};

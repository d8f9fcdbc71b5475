/* expm_cpu.c - expm_skew and sandwich on the CPU: eight matrices at a time in vector lanes, groups of them on threads.
 *
 * The arithmetic is the reference's, in double and in its order, so the bits are too; each lane squares as often as its own
 * norm asks for. The equations are in expm_skew.c. */
#include <string.h>

#include "kernels/expm.h"
#include "kernels/gate.h"
#include "kernels/parallel.h"

#define LANES   8  /* matrices at a time: element e of lane k is number e*LANES + k */
#define TERMS   4  /* of a sum that one pass over the lanes adds */
#define PORTION 16 /* most parts that all matrices are cut into */

static const double zeros[LANES];

static int64_t size_of(const struct call *c) {
    return ((const struct expm_attr *)c->attr)->J;
}

/* Blocks of LANES matrices, and parts of neighbouring blocks that share scratch. */
static int64_t blocks_of(const struct call *c) {
    int64_t n = size_of(c) * size_of(c);
    return (tensor_count(c->in[0]) / n + LANES - 1) / LANES;
}

static int64_t parts_of(const struct call *c) {
    int64_t blocks = blocks_of(c);
    return blocks < PORTION ? blocks : PORTION;
}

/* --- lanes ----------------------------------------------------------------------------------------------------------- */

/* n numbers of each of `lanes` neighbours at `from`; 0 in the lanes left over. */
static void load(int64_t n, int64_t lanes, const real *from, double *to) {
    for (int64_t e = 0; e < n; e++)
        for (int64_t k = 0; k < LANES; k++) to[e * LANES + k] = k < lanes ? (double)from[k * n + e] : 0;
}

static void store(int64_t n, int64_t lanes, const double *from, real *to, bool accumulate) {
    for (int64_t k = 0; k < lanes; k++)
        for (int64_t e = 0; e < n; e++) put(&to[k * n + e], accumulate, (real)from[e * LANES + k]);
}

/* out = before + sum over `terms` of a b, the elements `a_step` and `b_step` lanes' rows apart. */
GATE_INLINE void add_terms(int terms, const double *a, int64_t a_step, const double *b, int64_t b_step,
                           const double *before, double *out) {
#pragma omp simd
    for (int64_t k = 0; k < LANES; k++) {
        double sum = before[k];
        GATE_EACH(terms, sum += a[j * a_step * LANES + k] * b[j * b_step * LANES + k]);
        out[k] = sum;
    }
}

/* out = sum over l < J of a_l b_l, in order. */
static void dot_lanes(int64_t J, const double *a, int64_t a_step, const double *b, int64_t b_step, double *out) {
    const double *before = zeros;
    for (int64_t l = 0; l < J; l += TERMS, before = out) {
        const double *x = a + l * a_step * LANES, *y = b + l * b_step * LANES;
        if (J - l >= TERMS)
            add_terms(TERMS, x, a_step, y, b_step, before, out);
        else if (J - l == 3)
            add_terms(3, x, a_step, y, b_step, before, out);
        else if (J - l == 2)
            add_terms(2, x, a_step, y, b_step, before, out);
        else
            add_terms(1, x, a_step, y, b_step, before, out);
    }
}

/* out (+)= factor * op(a) op(b), J x J; out is neither a nor b. */
static void product(int64_t J, double factor, const double *a, bool at, const double *b, bool bt, bool add,
                    double *out) {
    double sum[LANES];
    for (int64_t i = 0; i < J; i++)
        for (int64_t j = 0; j < J; j++) {
            double *to = out + (i * J + j) * LANES;
            const double *before = add ? to : zeros, *from = sum;
            dot_lanes(J, a + (at ? i : i * J) * LANES, at ? J : 1, b + (bt ? j * J : j) * LANES, bt ? 1 : J, sum);
#pragma omp simd
            for (int64_t k = 0; k < LANES; k++) to[k] = factor * from[k] + before[k];
        }
}

static void identity(int64_t J, double *out) {
    for (int64_t e = 0; e < J * J; e++)
        for (int64_t k = 0; k < LANES; k++) out[e * LANES + k] = e / J == e % J;
}

/* --- the exponential --------------------------------------------------------------------------------------------------- */

/* Work of a block: X, then S_0 .. S_ORDER of the series, then P_0 = S_0 .. P_q, and three for the gradient. */
struct work {
    double *X, *S, *P, *d[3];
    int q[LANES], most; /* squarings */
};

#define WORK_MATRICES (1 + EXPM_ORDER + 1 + EXPM_SQUARINGS + 1 + 3)

static size_t expm_skew_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    int64_t n = size_of(c) * size_of(c);
    return (size_t)(parts_of(c) * WORK_MATRICES * n * LANES) * sizeof(double);
}

static struct work work_of(const struct call *c, enum pass pass, int64_t part) {
    int64_t n = size_of(c) * size_of(c) * LANES;
    double *at = (double *)c->scratch[pass] + part * WORK_MATRICES * n;
    struct work w = {.X = at, .S = at + n, .P = at + (EXPM_ORDER + 2) * n};
    for (int i = 0; i < 3; i++) w.d[i] = w.P + (EXPM_SQUARINGS + 1 + i) * n;
    return w;
}

/* X = A - A^T, scaled by each lane's own power of two; `A` is work. */
static void scale_down(struct work *w, int64_t J, const double *A) {
    w->most = 0;
    for (int64_t k = 0; k < LANES; k++) {
        double norm = 0;
        for (int64_t e = 0; e < J * J; e++) {
            double x = A[e * LANES + k] - A[(e % J * J + e / J) * LANES + k];
            w->X[e * LANES + k] = x;
            norm += x * x;
        }
        w->q[k] = expm_squarings(sqrt(norm));
        if (w->q[k] > w->most) w->most = w->q[k];
        double factor = ldexp(1, -w->q[k]);
        for (int64_t e = 0; e < J * J; e++) w->X[e * LANES + k] *= factor;
    }
}

/* What differs for lanes that square no more: there `to` becomes `from`. */
static void keep_done(const struct work *w, int step, int64_t n, const double *from, double *to) {
    for (int64_t k = 0; k < LANES; k++)
        for (int64_t e = 0; step >= w->q[k] && e < n; e++) to[e * LANES + k] = from[e * LANES + k];
}

/* Fills the work of a block; the result is P + most * J^2 * LANES. */
static void exponentiate(struct work *w, int64_t J, int64_t lanes, const real *a) {
    int64_t n = J * J * LANES;
    load(J * J, lanes, a, w->d[0]);
    scale_down(w, J, w->d[0]);
    identity(J, w->S + EXPM_ORDER * n);
    for (int i = EXPM_ORDER; i > 0; i--) {
        double *s = w->S + (i - 1) * n;
        identity(J, s);
        product(J, 1.0 / i, w->X, false, w->S + i * n, false, true, s);
    }
    memcpy(w->P, w->S, (size_t)n * sizeof *w->P);
    for (int i = 0; i < w->most; i++) {
        double *from = w->P + i * n;
        product(J, 1, from, false, from, false, false, from + n);
        keep_done(w, i, J * J, from, from + n);
    }
}

/* Matrices of block `block`: the first, and how many. */
static struct range block_at(const struct call *c, int64_t block) {
    int64_t n = size_of(c) * size_of(c), count = tensor_count(c->in[0]) / n, first = block * LANES;
    return (struct range){first, first + LANES < count ? first + LANES : count};
}

static void expm_skew_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t J = size_of(c), n = J * J, parts = parts_of(c);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * J > PARALLEL_MIN / 16)
    for (int64_t part = 0; part < parts; part++) {
        struct work w = work_of(c, PASS_FORWARD, part);
        struct range blocks = part_at(blocks_of(c), parts, part);
        for (int64_t block = blocks.begin; block < blocks.end; block++) {
            struct range m = block_at(c, block);
            exponentiate(&w, J, m.end - m.begin, tensor_real(c->in[0]) + m.begin * n);
            store(n, m.end - m.begin, w.P + w.most * n * LANES, tensor_real(c->out[0]) + m.begin * n, false);
        }
    }
}

/* dA of a block into d[0]. */
static void block_gradient(struct work *w, int64_t J, int64_t lanes, const real *dU) {
    int64_t n = J * J * LANES;
    double *d = w->d[0], *next = w->d[1], *dX = w->d[2];
    load(J * J, lanes, dU, d);
    for (int i = w->most - 1; i >= 0; i--) {
        product(J, 1, d, false, w->P + i * n, true, false, next);
        product(J, 1, w->P + i * n, true, d, false, true, next);
        keep_done(w, i, J * J, d, next);
        memcpy(d, next, (size_t)n * sizeof *d);
    }
    memset(dX, 0, (size_t)n * sizeof *dX);
    for (int i = 1; i <= EXPM_ORDER; i++) {
        product(J, 1.0 / i, d, false, w->S + i * n, true, true, dX);
        product(J, 1.0 / i, w->X, true, d, false, false, next);
        memcpy(d, next, (size_t)n * sizeof *d);
    }
    for (int64_t k = 0; k < LANES; k++)
        for (int64_t e = 0; e < J * J; e++)
            d[e * LANES + k] = ldexp(dX[e * LANES + k] - dX[(e % J * J + e / J) * LANES + k], -w->q[k]);
}

static void expm_skew_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t J = size_of(c), n = J * J, parts = parts_of(c);
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * J > PARALLEL_MIN / 16)
    for (int64_t part = 0; part < parts; part++) {
        struct work w = work_of(c, PASS_BACKWARD, part);
        struct range blocks = part_at(blocks_of(c), parts, part);
        for (int64_t block = blocks.begin; block < blocks.end; block++) {
            struct range m = block_at(c, block);
            exponentiate(&w, J, m.end - m.begin, tensor_real(c->in[0]) + m.begin * n);
            block_gradient(&w, J, m.end - m.begin, call_dout(c, 0) + m.begin * n);
            store(n, m.end - m.begin, w.d[0], c->din[0] + m.begin * n, call_accumulates(c, 0));
        }
    }
}

/* --- the sandwich ------------------------------------------------------------------------------------------------------ */

/* U, e, W, dT and two matrices to work on, of a block. */
struct slices {
    double *u, *e, *w, *dT, *a, *b;
};

static size_t sandwich_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    int64_t J = size_of(c);
    return (size_t)(parts_of(c) * (5 * J * J + J) * LANES) * sizeof(double);
}

static struct slices slices_of(const struct call *c, enum pass pass, int64_t part) {
    int64_t J = size_of(c), n = J * J * LANES;
    double *at = (double *)c->scratch[pass] + part * (5 * n + J * LANES);
    return (struct slices){at, at + 5 * n, at + n, at + 2 * n, at + 3 * n, at + 4 * n};
}

static void load_slices(const struct call *c, struct range m, struct slices s) {
    int64_t J = size_of(c), n = J * J, lanes = m.end - m.begin;
    load(n, lanes, tensor_real(c->in[0]) + m.begin * n, s.u);
    load(J, lanes, tensor_real(c->in[1]) + m.begin * J, s.e);
    load(n, lanes, tensor_real(c->in[2]) + m.begin * n, s.w);
}

/* to[i][l] = x[i][l] e[l], or x[i][l] e[i] `by_row`. */
static void scale_diagonal(int64_t J, bool by_row, const double *x, const double *e, double *to) {
    for (int64_t i = 0; i < J * J; i++) {
        const double *factor = e + (by_row ? i / J : i % J) * LANES;
#pragma omp simd
        for (int64_t k = 0; k < LANES; k++) to[i * LANES + k] = x[i * LANES + k] * factor[k];
    }
}

static void sandwich_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t J = size_of(c), n = J * J, parts = parts_of(c);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t part = 0; part < parts; part++) {
        struct slices s = slices_of(c, PASS_FORWARD, part);
        struct range blocks = part_at(blocks_of(c), parts, part);
        for (int64_t block = blocks.begin; block < blocks.end; block++) {
            struct range m = block_at(c, block);
            load_slices(c, m, s);
            scale_diagonal(J, false, s.u, s.e, s.a);
            product(J, 1, s.a, false, s.w, false, false, s.b);
            store(n, m.end - m.begin, s.b, tensor_real(c->out[0]) + m.begin * n, false);
        }
    }
}

static void sandwich_block_gradient(const struct call *c, struct range m, struct slices s) {
    int64_t J = size_of(c), n = J * J, lanes = m.end - m.begin;
    load_slices(c, m, s);
    load(n, lanes, call_dout(c, 0) + m.begin * n, s.dT);
    product(J, 1, s.u, true, s.dT, false, false, s.a);
    scale_diagonal(J, true, s.a, s.e, s.b);
    if (c->din[2]) store(n, lanes, s.b, c->din[2] + m.begin * n, call_accumulates(c, 2));
    product(J, 1, s.dT, false, s.w, true, false, s.a);
    scale_diagonal(J, false, s.a, s.e, s.b);
    if (c->din[0]) store(n, lanes, s.b, c->din[0] + m.begin * n, call_accumulates(c, 0));
    for (int64_t l = 0; l < J; l++) dot_lanes(J, s.u + l * LANES, J, s.a + l * LANES, J, s.e + l * LANES);
    if (c->din[1]) store(J, lanes, s.e, c->din[1] + m.begin * J, call_accumulates(c, 1));
}

static void sandwich_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t parts = parts_of(c);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t part = 0; part < parts; part++) {
        struct slices s = slices_of(c, PASS_BACKWARD, part);
        struct range blocks = part_at(blocks_of(c), parts, part);
        for (int64_t block = blocks.begin; block < blocks.end; block++)
            sandwich_block_gradient(c, block_at(c, block), s);
    }
}

const struct kernel kernel_expm_skew_cpu = {
    .name = "expm_skew_cpu",
    .op = &op_expm_skew,
    .device = DEVICE_CPU,
    .workspace = expm_skew_cpu_workspace,
    .forward = expm_skew_cpu_forward,
    .backward = expm_skew_cpu_backward,
};

const struct kernel kernel_sandwich_cpu = {
    .name = "sandwich_cpu",
    .op = &op_sandwich,
    .device = DEVICE_CPU,
    .workspace = sandwich_cpu_workspace,
    .forward = sandwich_cpu_forward,
    .backward = sandwich_cpu_backward,
};

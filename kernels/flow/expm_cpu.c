/* expm_cpu.c - expm_skew, expm_flow and sandwich on the CPU. Each SIMD lane computes one small matrix, so a block has
 * LANES matrices; threads take blocks. Matrices of expm_flow above EXPM_MAX are computed one at a time: the lanes run
 * along the columns of such a matrix. Matrices of one number are computed one at a time too.
 *
 * The operations are in double and in the order of the reference, so the bits are equal. Each lane squares as often as
 * the norm of its matrix needs. The equations are in expm.c. */
#include <string.h>

#include "kernels/flow/expm.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/unroll.h"

#define LANES   8  /* matrices of a block: element e of the matrix in lane k has the index e*LANES + k */
#define TERMS   4  /* most terms of a sum that are added in one pass over the lanes */
#define PORTION 16 /* most parts; a part is a range of blocks, with its own scratch memory */

static const double zeros[LANES];

static int64_t size_of(const struct call *c) {
    return expm_attr(c)->J;
}

static int64_t lanes_of(const struct call *c) {
    const struct expm_attr *a = expm_attr(c);
    return a->J <= EXPM_MAX && !expm_of_number(a) ? LANES : 1;
}

/* The number of blocks. A block is one matrix if matrices are computed one at a time. */
static int64_t blocks_of(const struct call *c) {
    int64_t n = size_of(c) * size_of(c);
    return (tensor_count(c->in[0]) / n + lanes_of(c) - 1) / lanes_of(c);
}

static int64_t parts_of(const struct call *c) {
    int64_t blocks = blocks_of(c);
    return blocks < PORTION ? blocks : PORTION;
}

/* --- lanes -------------------------------------------------------------------------------------------------------- */

/* Loads n numbers of each matrix in the range m, one matrix per lane. Lanes without a matrix get 0. In `from`, N
 * neighbouring matrices are interleaved: element e of all of them, then element e + 1. */
static void load(int64_t n, int64_t N, struct range m, const real *from, double *to) {
    for (int64_t k = 0; k < LANES; k++) {
        int64_t at = expm_at(n, N, m.begin + k);
        bool used = m.begin + k < m.end;
        for (int64_t e = 0; e < n; e++) to[e * LANES + k] = used ? (double)from[at + e * N] : 0;
    }
}

static void store(int64_t n, int64_t N, struct range m, const double *from, real *to, bool accumulate) {
    for (int64_t q = m.begin; q < m.end; q++)
        for (int64_t e = 0; e < n; e++)
            put(&to[expm_at(n, N, q) + e * N], accumulate, (real)from[e * LANES + q - m.begin]);
}

/* Computes out = before + sum over `terms` of a b. The elements are `a_step` and `b_step` rows of lanes apart. */
FORCE_INLINE void add_terms(int terms, const double *a, int64_t a_step, const double *b, int64_t b_step,
                            const double *before, double *out) {
#pragma omp simd
    for (int64_t k = 0; k < LANES; k++) {
        double sum = before[k];
        UNROLLED(terms, sum += a[j * a_step * LANES + k] * b[j * b_step * LANES + k]);
        out[k] = sum;
    }
}

/* Computes out = sum over l < J of a_l b_l, in order. */
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

/* Computes out (+)= factor * op(a) op(b), J x J; `out` is neither a nor b. */
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

/* --- the exponential ---------------------------------------------------------------------------------------------- */

/* The arrays of a block. q[k] is the number of squarings of lane k, `most` the largest of these numbers. */
struct work {
    struct expm_work m;
    int q[LANES], most;
};

/* Computes X, q and `most`. Each lane is scaled by its own power of two. */
static void scale_down(struct work *w, int64_t J, bool flow, const double *A) {
    w->most = 0;
    for (int64_t k = 0; k < LANES; k++) {
        double norm = 0;
        for (int64_t e = 0; e < J * J; e++) {
            double x = A[e * LANES + k];
            if (!flow) x -= A[(e % J * J + e / J) * LANES + k];
            w->m.X[e * LANES + k] = x;
            norm += x * x;
        }
        w->q[k] = expm_squarings(sqrt(norm));
        if (w->q[k] > w->most) w->most = w->q[k];
        double factor = ldexp(1, -w->q[k]);
        for (int64_t e = 0; e < J * J; e++) w->m.X[e * LANES + k] *= factor;
    }
}

/* Copies `from` to `to` in lanes that need no more squarings. */
static void keep_done(const struct work *w, int step, int64_t n, const double *from, double *to) {
    for (int64_t k = 0; k < LANES; k++)
        for (int64_t e = 0; step >= w->q[k] && e < n; e++) to[e * LANES + k] = from[e * LANES + k];
}

static void double_of(int64_t n, const double *from, double *to) {
    for (int64_t i = 0; i < n; i++) to[i] = 2 * from[i];
}

/* Computes X, the series S and the powers P of a block. The result is P[most]. */
static void exponentiate(struct work *w, const struct expm_attr *a, struct range m, const real *from) {
    int64_t J = a->J, n = J * J * LANES;
    load(J * J, a->N, m, from, w->m.d[0]);
    scale_down(w, J, a->flow, w->m.d[0]);
    identity(J, w->m.S[EXPM_ORDER]);
    for (int i = EXPM_ORDER; i > 0; i--) {
        double *s = w->m.S[i - 1];
        bool plus_one = i > 1 || !a->flow;
        if (plus_one) identity(J, s);
        product(J, 1.0 / i, w->m.X, false, w->m.S[i], false, plus_one, s);
    }
    memcpy(w->m.P[0], w->m.S[0], (size_t)n * sizeof(double));
    for (int i = 0; i < w->most; i++) {
        const double *p = w->m.P[i];
        double *next = w->m.P[i + 1];
        if (a->flow) double_of(n, p, next);
        product(J, 1, p, false, p, false, a->flow, next);
        keep_done(w, i, J * J, p, next);
    }
}

/* Replaces d[0], which has the gradient of a block's results, by the gradient of its inputs. */
static void block_gradient(struct work *w, int64_t J, bool flow) {
    int64_t n = J * J * LANES;
    double *d = w->m.d[0], *next = w->m.d[1], *dX = w->m.d[2];
    for (int i = w->most - 1; i >= 0; i--) {
        if (flow) double_of(n, d, next);
        product(J, 1, d, false, w->m.P[i], true, flow, next);
        product(J, 1, w->m.P[i], true, d, false, true, next);
        keep_done(w, i, J * J, d, next);
        memcpy(d, next, (size_t)n * sizeof *d);
    }
    memset(dX, 0, (size_t)n * sizeof *dX);
    for (int i = 1; i <= EXPM_ORDER; i++) {
        product(J, 1.0 / i, d, false, w->m.S[i], true, true, dX);
        product(J, 1.0 / i, w->m.X, true, d, false, false, next);
        memcpy(d, next, (size_t)n * sizeof *d);
    }
    for (int64_t k = 0; k < LANES; k++)
        for (int64_t e = 0; e < J * J; e++) {
            double x = dX[e * LANES + k];
            if (!flow) x -= dX[(e % J * J + e / J) * LANES + k];
            d[e * LANES + k] = ldexp(x, -w->q[k]);
        }
}

/* --- one large matrix at a time ----------------------------------------------------------------------------------- */

#define TILE 16 /* columns whose sums stay in registers */

/* Computes sum[k] = sum over l < J of a_l b_l[k], in order. */
FORCE_INLINE void tile_sums(int64_t lanes, int64_t J, const double *a, int64_t a_step, const double *b, double *sum) {
    for (int64_t l = 0; l < J; l++) {
        double x = a[l * a_step];
#pragma omp simd
        for (int64_t k = 0; k < lanes; k++) sum[k] += x * b[l * J + k];
    }
}

static void tile(int64_t lanes, int64_t J, double factor, const double *a, int64_t a_step, const double *b, bool add,
                 double *out) {
    double sum[TILE] = {0};
    if (lanes == TILE)
        tile_sums(TILE, J, a, a_step, b, sum);
    else
        tile_sums(lanes, J, a, a_step, b, sum);
    for (int64_t k = 0; k < lanes; k++) out[k] = factor * sum[k] + (add ? out[k] : 0);
}

/* Like product, for one matrix; b^T is built in `spare`. */
static void large_product(int64_t J, double factor, const double *a, bool at, const double *b, bool bt, bool add,
                          double *out, double *spare) {
    for (int64_t i = 0; bt && i < J; i++)
        for (int64_t j = 0; j < J; j++) spare[i * J + j] = b[j * J + i];
    if (bt) b = spare;
    for (int64_t j = 0; j < J; j += TILE)
        for (int64_t i = 0; i < J; i++)
            tile(J - j < TILE ? J - j : TILE, J, factor, a + (at ? i : i * J), at ? J : 1, b + j, add, out + i * J + j);
}

/* --- small and large matrices ------------------------------------------------------------------------------------- */

static struct expm_work work_of(const struct call *c, struct scratch *s) {
    return expm_work_of(s, size_of(c) * size_of(c) * lanes_of(c), large_product);
}

static size_t expm_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    for (int64_t part = 0; part < parts_of(c); part++) work_of(c, &s);
    return s.used;
}

/* Returns the range of matrices that block `block` has. */
static struct range block_at(const struct call *c, int64_t block) {
    int64_t n = size_of(c) * size_of(c), count = tensor_count(c->in[0]) / n, lanes = lanes_of(c), first = block * lanes;
    return (struct range){first, first + lanes < count ? first + lanes : count};
}

static void part_forward(const struct call *c, struct scratch own, struct range blocks) {
    const struct expm_attr *a = expm_attr(c);
    int64_t J = a->J, n = J * J;
    const real *from = tensor_real(c->in[0]);
    real *to = tensor_real(c->out[0]);
    struct work w = {.m = work_of(c, &own)};
    for (int64_t block = blocks.begin; block < blocks.end; block++) {
        if (lanes_of(c) == 1) {
            expm_one(&w.m, a, block, from, to);
            continue;
        }
        exponentiate(&w, a, block_at(c, block), from);
        store(n, a->N, block_at(c, block), w.m.P[w.most], to, false);
    }
}

static void expm_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t parts = parts_of(c);
    struct scratch s = scratch_of(c, PASS_FORWARD);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * size_of(c) > PARALLEL_MIN / 16)
    for (int64_t part = 0; part < parts; part++)
        part_forward(c, scratch_part(&s, part, parts), part_at(blocks_of(c), parts, part));
}

static void part_backward(const struct call *c, struct scratch own, struct range blocks) {
    const struct expm_attr *a = expm_attr(c);
    int64_t J = a->J, n = J * J;
    const real *from = tensor_real(c->in[0]), *dU = call_dout(c, 0);
    struct work w = {.m = work_of(c, &own)};
    for (int64_t block = blocks.begin; block < blocks.end; block++) {
        struct range m = block_at(c, block);
        if (lanes_of(c) == 1) {
            expm_one_gradient(&w.m, a, block, from, dU, c->din[0], call_accumulates(c, 0));
            continue;
        }
        exponentiate(&w, a, m, from);
        load(n, a->N, m, dU, w.m.d[0]);
        block_gradient(&w, J, a->flow);
        store(n, a->N, m, w.m.d[0], c->din[0], call_accumulates(c, 0));
    }
}

static void expm_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t parts = parts_of(c);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * size_of(c) > PARALLEL_MIN / 16)
    for (int64_t part = 0; part < parts; part++)
        part_backward(c, scratch_part(&s, part, parts), part_at(blocks_of(c), parts, part));
}

/* --- the sandwich ------------------------------------------------------------------------------------------------- */

/* The arrays of a block for T = U diag(e) W: U, e, W, dT and two spare matrices. */
struct slices {
    double *u, *e, *w, *dT, *a, *b;
};

static struct slices slices_of(const struct call *c, struct scratch *own) {
    int64_t J = size_of(c), n = J * J * LANES;
    struct slices s = {.u = scratch_doubles(own, n)};
    s.e = scratch_doubles(own, J * LANES);
    s.w = scratch_doubles(own, n);
    s.dT = scratch_doubles(own, n);
    s.a = scratch_doubles(own, n);
    s.b = scratch_doubles(own, n);
    return s;
}

static size_t sandwich_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    for (int64_t part = 0; part < parts_of(c); part++) slices_of(c, &s);
    return s.used;
}

static void load_slices(const struct call *c, struct range m, struct slices s) {
    int64_t J = size_of(c), n = J * J;
    load(n, 1, m, tensor_real(c->in[0]), s.u);
    load(J, 1, m, tensor_real(c->in[1]), s.e);
    load(n, 1, m, tensor_real(c->in[2]), s.w);
}

/* Computes to[i][l] = x[i][l] e[l]; with `by_row`, x[i][l] e[i]. */
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
    struct scratch all = scratch_of(c, PASS_FORWARD);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t part = 0; part < parts; part++) {
        struct scratch own = scratch_part(&all, part, parts);
        struct slices s = slices_of(c, &own);
        struct range blocks = part_at(blocks_of(c), parts, part);
        for (int64_t block = blocks.begin; block < blocks.end; block++) {
            struct range m = block_at(c, block);
            load_slices(c, m, s);
            scale_diagonal(J, false, s.u, s.e, s.a);
            product(J, 1, s.a, false, s.w, false, false, s.b);
            store(n, 1, m, s.b, tensor_real(c->out[0]), false);
        }
    }
}

static void sandwich_block_gradient(const struct call *c, struct range m, struct slices s) {
    int64_t J = size_of(c), n = J * J;
    load_slices(c, m, s);
    load(n, 1, m, call_dout(c, 0), s.dT);
    product(J, 1, s.u, true, s.dT, false, false, s.a);
    scale_diagonal(J, true, s.a, s.e, s.b);
    if (c->din[2]) store(n, 1, m, s.b, c->din[2], call_accumulates(c, 2));
    product(J, 1, s.dT, false, s.w, true, false, s.a);
    scale_diagonal(J, false, s.a, s.e, s.b);
    if (c->din[0]) store(n, 1, m, s.b, c->din[0], call_accumulates(c, 0));
    for (int64_t l = 0; l < J; l++) dot_lanes(J, s.u + l * LANES, J, s.a + l * LANES, J, s.e + l * LANES);
    if (c->din[1]) store(J, 1, m, s.e, c->din[1], call_accumulates(c, 1));
}

static void sandwich_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t parts = parts_of(c);
    struct scratch all = scratch_of(c, PASS_BACKWARD);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t part = 0; part < parts; part++) {
        struct scratch own = scratch_part(&all, part, parts);
        struct slices s = slices_of(c, &own);
        struct range blocks = part_at(blocks_of(c), parts, part);
        for (int64_t block = blocks.begin; block < blocks.end; block++)
            sandwich_block_gradient(c, block_at(c, block), s);
    }
}

const struct kernel kernel_expm_skew_cpu = {
    .name = "expm_skew_cpu",
    .op = &op_expm_skew,
    .device = DEVICE_CPU,
    .workspace = expm_cpu_workspace,
    .forward = expm_cpu_forward,
    .backward = expm_cpu_backward,
};

const struct kernel kernel_expm_flow_cpu = {
    .name = "expm_flow_cpu",
    .op = &op_expm_flow,
    .device = DEVICE_CPU,
    .workspace = expm_cpu_workspace,
    .forward = expm_cpu_forward,
    .backward = expm_cpu_backward,
};

const struct kernel kernel_sandwich_cpu = {
    .name = "sandwich_cpu",
    .op = &op_sandwich,
    .device = DEVICE_CPU,
    .workspace = sandwich_cpu_workspace,
    .forward = sandwich_cpu_forward,
    .backward = sandwich_cpu_backward,
};

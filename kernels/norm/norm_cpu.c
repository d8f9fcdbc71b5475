/* norm_cpu.c - RMSNorm and LayerNorm, also of a residual sum (norm.c), on the CPU, with chunks of rows on threads and
 * the columns of a row in vectors. Each chunk has partial sums of the parameters' gradients, which are added in
 * order. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/norm/norm.h"

struct statistics {
    real mean, q;
};

static struct statistics row_statistics(int64_t D, const real *x, bool layer, real eps) {
    struct statistics s = {0, 0};
    real sum = 0, squares = 0;
    if (layer) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < D; i++) sum += x[i];
        s.mean = sum / (real)D;
    }
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < D; i++) {
        real d = x[i] - s.mean;
        squares += d * d;
    }
    s.q = 1 / real_sqrt(squares / (real)D + eps);
    return s;
}

/* Returns row r to be normalised. For add_norm it first computes the row's sum, which then is in the cache. */
static const real *forward_row(const struct call *c, int64_t r) {
    int64_t D = tensor_cols(c->in[0]);
    if (!c->in[3]) return tensor_real(c->in[0]) + r * D;
    const real *x = tensor_real(c->in[0]) + r * D, *branch = tensor_real(c->in[3]) + r * D;
    real *sum = tensor_real(c->out[1]) + r * D;
#pragma omp simd
    for (int64_t i = 0; i < D; i++) sum[i] = x[i] + branch[i];
    return sum;
}

static void norm_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct norm_attr *attr = norm_attr(c);
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]), chunks = row_chunks(rows);
    const real *w = tensor_real(c->in[1]), *b = c->in[2] ? tensor_real(c->in[2]) : NULL;
    real *y = tensor_real(c->out[0]);
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            const real *xr = forward_row(c, r);
            real *yr = y + r * D;
            struct statistics s = row_statistics(D, xr, b != NULL, (real)attr->eps);
            if (b) {
#pragma omp simd
                for (int64_t i = 0; i < D; i++) yr[i] = real_fma((xr[i] - s.mean) * s.q, w[i], b[i]);
            } else {
#pragma omp simd
                for (int64_t i = 0; i < D; i++) yr[i] = xr[i] * s.q * w[i];
            }
        }
    }
}

/* Computes dx of one row, and adds it to `before` (which may be dx) unless `before` is NULL. rmsnorm has no mean_e. */
static void row_dx(int64_t D, const real *x, const real *w, const real *dy, struct statistics s, bool layer,
                   const real *before, real *dx) {
    real mean_e = 0, mean_en = 0;
#pragma omp simd reduction(+ : mean_e, mean_en)
    for (int64_t i = 0; i < D; i++) {
        real e = dy[i] * w[i];
        mean_e += e;
        mean_en += e * ((x[i] - s.mean) * s.q);
    }
    mean_e = layer ? mean_e / (real)D : 0;
    mean_en /= (real)D;
#pragma omp simd
    for (int64_t i = 0; i < D; i++) {
        real d = s.q * (real_fma(dy[i], w[i], -mean_e) - (x[i] - s.mean) * s.q * mean_en);
        dx[i] = before ? before[i] + d : d;
    }
}

/* Writes row r of the gradient of x or of the branch. */
static void put_row(const struct call *c, int j, int64_t r, const real *d) {
    int64_t D = tensor_cols(c->in[0]);
    if (!c->din[j]) return;
    real *to = c->din[j] + r * D;
    bool accumulate = call_accumulates(c, j);
#pragma omp simd
    for (int64_t i = 0; i < D; i++) put(&to[i], accumulate, d[i]);
}

/* Writes row r of the gradient of x and, for add_norm, of the branch. d is scratch for D numbers. */
static void summand_rows(const struct call *c, int64_t r, const real *x, const real *dy, struct statistics s, real *d) {
    int64_t D = tensor_cols(c->in[0]);
    const real *w = tensor_real(c->in[1]), *ds = sum_dout(c);
    bool layer = c->in[2] != NULL;
    if (!c->in[3]) {
        real *dx = c->din[0] + r * D;
        row_dx(D, x, w, dy, s, layer, call_accumulates(c, 0) ? dx : NULL, dx);
    } else {
        row_dx(D, x, w, dy, s, layer, ds ? ds + r * D : NULL, d);
        put_row(c, 0, r, d);
        put_row(c, 3, r, d);
    }
}

/* Arrays of each chunk of rows: the sums dw and, with a bias, db; for add_norm also d, the gradient of one row of the
 * sum. */
struct partials {
    struct scratch_rows dw, db, d;
};

static struct partials partials_of(const struct call *c, struct scratch *s) {
    int64_t chunks = row_chunks(tensor_rows(c->in[0])), D = tensor_cols(c->in[0]);
    struct partials p = {.dw = scratch_rows(s, chunks, D)};
    if (c->in[2]) p.db = scratch_rows(s, chunks, D);
    if (c->in[3]) p.d = scratch_rows(s, chunks, D);
    return p;
}

static size_t norm_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) partials_of(c, &s);
    return s.used;
}

/* Computes for one chunk of rows the gradients of x and the branch, and the chunk's sums of dy n in dw. */
static void backward_chunk(const struct call *c, struct range part, real *dw, real *d) {
    const struct norm_attr *attr = norm_attr(c);
    int64_t D = tensor_cols(c->in[0]);
    memset(dw, 0, (size_t)D * sizeof *dw);
    for (int64_t r = part.begin; r < part.end; r++) {
        const real *x = normed_rows(c) + r * D, *dy = call_dout(c, 0) + r * D;
        struct statistics s = row_statistics(D, x, c->in[2] != NULL, (real)attr->eps);
#pragma omp simd
        for (int64_t i = 0; i < D; i++) dw[i] = real_fma(dy[i], (x[i] - s.mean) * s.q, dw[i]);
        if (c->din[0] || c->din[3]) summand_rows(c, r, x, dy, s, d);
    }
}

static void norm_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]), chunks = row_chunks(rows);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct partials p = partials_of(c, &s);
    bool bias = c->din[2] != NULL;
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        backward_chunk(c, part, p.dw.at + k * p.dw.stride, c->in[3] ? p.d.at + k * p.d.stride : NULL);
        if (bias) chunk_sums(part, D, call_dout(c, 0), NULL, p.db.at + k * p.db.stride);
    }
    if (c->din[1]) sum_partials(D, chunks, p.dw.at, p.dw.stride, c->din[1], call_accumulates(c, 1));
    if (bias) sum_partials(D, chunks, p.db.at, p.db.stride, c->din[2], call_accumulates(c, 2));
}

/* Tolerance: sums over D columns and R rows are in working precision, with errors of about sqrt(D) and sqrt(R) units,
 * and the two means of dx cancel against e. */
const struct kernel kernel_rmsnorm_cpu = {
    .name = "rmsnorm_cpu",
    .op = &op_rmsnorm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cpu_workspace,
    .forward = norm_cpu_forward,
    .backward = norm_cpu_backward,
};

const struct kernel kernel_layernorm_cpu = {
    .name = "layernorm_cpu",
    .op = &op_layernorm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cpu_workspace,
    .forward = norm_cpu_forward,
    .backward = norm_cpu_backward,
};

/* Tolerance: as for the norms. The sum is bit-equal. */
const struct kernel kernel_add_norm_cpu = {
    .name = "add_norm_cpu",
    .op = &op_add_norm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cpu_workspace,
    .forward = norm_cpu_forward,
    .backward = norm_cpu_backward,
};

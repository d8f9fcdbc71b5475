/* batch_norm_cpu.c - batch normalisation (batch_norm.c) on the CPU, with chunks of rows on threads and columns in
 * vectors.
 *
 * A chunk reads its rows twice: first for its own means, then, while the rows are in L2, for sums about these means.
 * Then the sums of all chunks are moved to the common mean mu, in order. If chunk k has n_k rows in use, mean mu_k, and
 * sum of squares M_k about mu_k:
 *   M = sum M_k + n_k (mu_k - mu)^2        sum dy (x - mu) = sum_k [ sum dy (x - mu_k) + (mu_k - mu) sum dy ] */
#include <math.h>
#include <string.h>

#include "kernels/lib/scratch.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/lib/parallel.h"

enum { X = BATCH_NORM_X, WEIGHT, BIAS, MEAN, VARIANCE, LENGTHS };

/* The sums of a chunk, with D columns each. Forward has only the first two. */
enum { SUM_MEAN, SUM_SQUARES, SUM_DY, SUM_DYX, SUM_ROWS };

/* The statistics of all rows: mean, 1/sqrt(var + eps), and in backward the sums of dy and of dy n. */
enum { ALL_MEAN, ALL_Q, ALL_DY, ALL_DYN, ALL_ROWS };

/* Scratch: for each chunk the number of rows in use and SUM_ROWS sums, then the statistics of all rows. */
struct work {
    int64_t chunks, D;
    double *used;
    struct scratch_rows sums;
    real *all[ALL_ROWS];
};

static struct work work_of(const struct call *c, struct scratch *s) {
    struct work w = {.chunks = row_chunks(tensor_rows(c->in[X])), .D = tensor_cols(c->in[X])};
    w.used = scratch_doubles(s, w.chunks);
    w.sums = scratch_rows(s, w.chunks * SUM_ROWS, w.D);
    for (int i = 0; i < ALL_ROWS; i++) w.all[i] = scratch_reals(s, w.D);
    return w;
}

static size_t batch_norm_cpu_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    work_of(c, &s);
    return s.used;
}

static real *sum_of(const struct work *w, int64_t chunk, int which) {
    return w->sums.at + (chunk * SUM_ROWS + which) * w->sums.stride;
}

static void add_squares(int64_t D, const real *x, const real *mean, real *squares) {
#pragma omp simd
    for (int64_t d = 0; d < D; d++) squares[d] = real_fma(x[d] - mean[d], x[d] - mean[d], squares[d]);
}

static void add_gradient(int64_t D, const real *x, const real *mean, const real *dy, real *dy_sum, real *dyx_sum) {
#pragma omp simd
    for (int64_t d = 0; d < D; d++) {
        dy_sum[d] += dy[d];
        dyx_sum[d] = real_fma(dy[d], x[d] - mean[d], dyx_sum[d]);
    }
}

/* Computes the sums of one chunk of rows, and returns the number of rows in use. dy NULL: only sums of x. */
static double chunk_statistics(const struct call *c, const struct work *w, int64_t chunk, const real *dy) {
    int64_t D = w->D, used = 0;
    struct range part = part_at(tensor_rows(c->in[X]), w->chunks, chunk);
    const real *x = tensor_real(c->in[X]);
    real *mean = sum_of(w, chunk, SUM_MEAN), *square = sum_of(w, chunk, SUM_SQUARES);
    real *dy_sum = sum_of(w, chunk, SUM_DY), *dyx_sum = sum_of(w, chunk, SUM_DYX);
    for (int i = 0; i < SUM_ROWS; i++) memset(sum_of(w, chunk, i), 0, (size_t)D * sizeof(real));
    for (int64_t r = part.begin; r < part.end; r++) {
        if (!batch_norm_in_use(c, r)) continue;
        used++;
#pragma omp simd
        for (int64_t d = 0; d < D; d++) mean[d] += x[r * D + d];
    }
    for (int64_t d = 0; used && d < D; d++) mean[d] /= (real)used;
    for (int64_t r = part.begin; r < part.end; r++) {
        if (batch_norm_in_use(c, r)) add_squares(D, x + r * D, mean, square);
        if (dy) add_gradient(D, x + r * D, mean, dy + r * D, dy_sum, dyx_sum);
    }
    return (double)used;
}

/* Computes the statistics of all rows from those of the chunks, with the biased variance in the place of q. Returns the
 * number of rows in use. */
static double gather_statistics(struct work w) {
    double used = 0;
    for (int64_t k = 0; k < w.chunks; k++) used += w.used[k];
    for (int64_t d = 0; d < w.D; d++) {
        double mean = 0, squares = 0;
        for (int64_t k = 0; k < w.chunks; k++) mean += w.used[k] * sum_of(&w, k, SUM_MEAN)[d];
        if (used > 0) mean /= used;
        for (int64_t k = 0; k < w.chunks; k++) {
            double off = sum_of(&w, k, SUM_MEAN)[d] - mean;
            squares += sum_of(&w, k, SUM_SQUARES)[d] + w.used[k] * off * off;
        }
        w.all[ALL_MEAN][d] = (real)mean;
        w.all[ALL_Q][d] = (real)(used > 0 ? squares / used : 1);
    }
    return used;
}

static void gather_gradient(struct work w) {
    for (int64_t d = 0; d < w.D; d++) {
        double dy = 0, dyx = 0;
        for (int64_t k = 0; k < w.chunks; k++) {
            real its_dy = sum_of(&w, k, SUM_DY)[d];
            dy += its_dy;
            dyx += sum_of(&w, k, SUM_DYX)[d] + ((double)sum_of(&w, k, SUM_MEAN)[d] - w.all[ALL_MEAN][d]) * its_dy;
        }
        w.all[ALL_DY][d] = (real)dy;
        w.all[ALL_DYN][d] = (real)(dyx * w.all[ALL_Q][d]);
    }
}

/* Computes the statistics of the batch, and returns the number of rows in use. */
static double batch_statistics(const struct call *c, struct work w, const real *dy) {
    int64_t rows = tensor_rows(c->in[X]);
#pragma omp parallel for schedule(static) if (rows * w.D > PARALLEL_MIN)
    for (int64_t k = 0; k < w.chunks; k++) w.used[k] = chunk_statistics(c, &w, k, dy);
    return gather_statistics(w);
}

/* Replaces the variance by q. */
static void invert_deviation(const struct call *c, struct work w) {
    double eps = batch_norm_attr(c)->eps;
    for (int64_t d = 0; d < w.D; d++) w.all[ALL_Q][d] = (real)(1 / sqrt(w.all[ALL_Q][d] + eps));
}

static void update_running(const struct call *c, struct work w) {
    double m = batch_norm_attr(c)->momentum;
    real *mean = tensor_real(c->in[MEAN]), *variance = tensor_real(c->in[VARIANCE]);
    for (int64_t d = 0; d < w.D; d++) {
        mean[d] = (real)(m * mean[d] + (1 - m) * w.all[ALL_MEAN][d]);
        variance[d] = (real)(m * variance[d] + (1 - m) * w.all[ALL_Q][d]);
    }
}

static void batch_norm_cpu_forward(const struct call *c, const struct exec *exec) {
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct work w = work_of(c, &s);
    int64_t rows = tensor_rows(c->in[X]), D = w.D;
    if (exec->training) {
        if (batch_statistics(c, w, NULL) > 0) update_running(c, w);
    } else {
        memcpy(w.all[ALL_MEAN], c->in[MEAN]->data, (size_t)D * sizeof(real));
        memcpy(w.all[ALL_Q], c->in[VARIANCE]->data, (size_t)D * sizeof(real));
    }
    invert_deviation(c, w);
    const real *mean = w.all[ALL_MEAN], *q = w.all[ALL_Q];
    const real *weight = tensor_real(c->in[WEIGHT]), *b = tensor_real(c->in[BIAS]);
#pragma omp parallel for schedule(static) if (rows * D > PARALLEL_MIN)
    for (int64_t k = 0; k < w.chunks; k++) {
        struct range part = part_at(rows, w.chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            const real *x = tensor_real(c->in[X]) + r * D;
            real *y = tensor_real(c->out[0]) + r * D;
#pragma omp simd
            for (int64_t d = 0; d < D; d++) y[d] = real_fma((x[d] - mean[d]) * q[d], weight[d], b[d]);
        }
    }
}

/* Computes dx of row r; share is 1/N if the row is in use, else 0. */
static void row_dx(const struct call *c, struct work w, int64_t r, real share) {
    int64_t D = w.D;
    const real *x = tensor_real(c->in[X]) + r * D, *dy = call_dout(c, 0) + r * D, *weight = tensor_real(c->in[WEIGHT]);
    const real *mean = w.all[ALL_MEAN], *q = w.all[ALL_Q], *dy_sum = w.all[ALL_DY], *dyn_sum = w.all[ALL_DYN];
    real *dx = c->din[X] + r * D;
    bool accumulate = call_accumulates(c, X);
#pragma omp simd
    for (int64_t d = 0; d < D; d++) {
        real through = share * real_fma((x[d] - mean[d]) * q[d], dyn_sum[d], dy_sum[d]);
        put(&dx[d], accumulate, q[d] * weight[d] * (dy[d] - through));
    }
}

static void batch_norm_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct work w = work_of(c, &s);
    int64_t rows = tensor_rows(c->in[X]);
    double used = batch_statistics(c, w, call_dout(c, 0));
    invert_deviation(c, w);
    gather_gradient(w);
    for (int64_t d = 0; d < w.D; d++) {
        if (c->din[WEIGHT]) put(c->din[WEIGHT] + d, call_accumulates(c, WEIGHT), w.all[ALL_DYN][d]);
        if (c->din[BIAS]) put(c->din[BIAS] + d, call_accumulates(c, BIAS), w.all[ALL_DY][d]);
    }
    if (!c->din[X]) return;
#pragma omp parallel for schedule(static) if (rows * w.D > PARALLEL_MIN)
    for (int64_t k = 0; k < w.chunks; k++) {
        struct range part = part_at(rows, w.chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) row_dx(c, w, r, batch_norm_in_use(c, r) ? (real)(1 / used) : 0);
    }
}

/* Tolerance: sums over a chunk's rows are in working precision, with errors of about the square root of their number. x
 * - mu loses digits if mu is larger than the spread, and sum(e n) cancels against e. */
const struct kernel kernel_batch_norm_cpu = {
    .name = "batch_norm_cpu",
    .op = &op_batch_norm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = batch_norm_cpu_workspace,
    .forward = batch_norm_cpu_forward,
    .backward = batch_norm_cpu_backward,
};

/* log_signature_cpu.c - log-signatures (log_signature.c) on the CPU. Threads compute intervals, vector lanes the pairs
 * (i, j) with the same i. Until an interval is done, the letters of the output contain the sums so far. */
#include <string.h>

#include "kernels/flow/log_signature.h"
#include "kernels/lib/scratch.h"

#define PARTS 64 /* parts of the work on all intervals; each has its own scratch */

/* Computes a_ij += 1/2 (p_i d_j - p_j d_i), then p += d. */
static void add_step(int64_t C, bool areas, const real *d, real *restrict p, real *restrict pairs) {
    for (int64_t i = 0; areas && i + 1 < C; i++) {
        real half_p = p[i] / 2, half_d = d[i] / 2, *row = pairs + pairs_before(C, i);
        const real *dj = d + i + 1, *pj = p + i + 1;
#pragma omp simd
        for (int64_t j = 0; j < C - 1 - i; j++) row[j] = real_fma(half_p, dj[j], real_fma(-half_d, pj[j], row[j]));
    }
#pragma omp simd
    for (int64_t i = 0; i < C; i++) p[i] += d[i];
}

/* Computes row r of the output, counted over all sequences. */
static void row_forward(const struct call *c, int64_t r) {
    const struct log_signature_attr *a = log_signature_attr(c);
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], rows = c->out[0]->dims[1], S = c->out[0]->dims[2];
    real *s = tensor_real(c->out[0]) + r * S;
    memset(s, 0, (size_t)S * sizeof *s);
    if (r % rows == 0) return;
    struct range steps = interval_at(T, a->interval, r % rows);
    const real *d = tensor_real(c->in[0]) + r / rows * T * C;
    memcpy(s, d + steps.begin * C, (size_t)C * sizeof *s); /* the first step has no area */
    for (int64_t t = steps.begin + 1; t < steps.end; t++) add_step(C, a->depth == 2, d + t * C, s, s + C);
}

static void log_signature_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = c->out[0]->dims[0] * c->out[0]->dims[1];
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t r = 0; r < rows; r++) row_forward(c, r);
}

/* Scratch of a part: l/2 - p; z of the step; the gradient of the step. */
struct rows {
    real *middle, *z, *dd;
};

static struct rows rows_of(const struct call *c, struct scratch *s) {
    int64_t C = tensor_cols(c->in[0]);
    struct rows r = {.middle = scratch_reals(s, C)};
    r.z = scratch_reals(s, C);
    r.dd = scratch_reals(s, C);
    return r;
}

static size_t log_signature_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int part = 0; part < PARTS && pass == PASS_BACKWARD; part++) rows_of(c, &s);
    return s.used;
}

static void add_rows(int64_t C, const real *x, bool accumulate, real *to) {
#pragma omp simd
    for (int64_t i = 0; i < C; i++) put(&to[i], accumulate, x[i]);
}

/* Computes the gradients of the steps of row r, with z = l/2 - p - d/2. */
static void row_backward(const struct call *c, int64_t r, struct rows row) {
    const struct log_signature_attr *a = log_signature_attr(c);
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], rows = c->out[0]->dims[1];
    const real *ds = call_dout(c, 0) + r * c->out[0]->dims[2], *w = tensor_real(c->in[0]) + r / rows * T * C;
    struct range steps = r % rows ? interval_at(T, a->interval, r % rows) : (struct range){0, 1};
    real *middle = row.middle, *z = row.z, *dd = row.dd, *dw = c->din[0] + r / rows * T * C;
    memset(middle, 0, (size_t)C * sizeof *middle);
    memset(dd, 0, (size_t)C * sizeof *dd);
    for (int64_t t = steps.begin; t < steps.end; t++)
        for (int64_t i = 0; i < C; i++) middle[i] += w[t * C + i] / 2;
    for (int64_t t = steps.begin; t < steps.end; t++) {
        const real *d = w + t * C;
        if (r % rows) memcpy(dd, ds, (size_t)C * sizeof *dd); /* row 0 has no gradient */
        for (int64_t i = 0; i < C; i++) {
            z[i] = middle[i] - d[i] / 2;
            middle[i] -= d[i];
        }
        if (a->depth == 2 && r % rows) add_antisymmetric(C, 1, ds + C, z, dd);
        add_rows(C, dd, call_accumulates(c, 0), dw + t * C);
    }
}

static void log_signature_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = c->out[0]->dims[0] * c->out[0]->dims[1];
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t part = 0; part < PARTS; part++) {
        struct range some = part_at(rows, PARTS, part);
        struct scratch own = scratch_part(&s, part, PARTS);
        struct rows row = rows_of(c, &own);
        for (int64_t r = some.begin; r < some.end; r++) row_backward(c, r, row);
    }
}

/* Tolerance: sums over the steps of an interval, and over the C letters in the gradient, are in `real`; the reference
 * sums in double. */
const struct kernel kernel_log_signature_cpu = {
    .name = "log_signature_cpu",
    .op = &op_log_signature,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 128,
    .workspace = log_signature_cpu_workspace,
    .forward = log_signature_cpu_forward,
    .backward = log_signature_cpu_backward,
};

/* scan_diag_cpu.c - the diagonal recurrence h_t = a_t h_{t-1} + x_t on the CPU, real and complex. The outer loop runs
 * over time, the inner loop over channels in vector lanes. The previous state is read from the output h.
 *
 * With G_t the gradient of h_t from all later steps: G_t = dh_t + a_{t+1} G_{t+1}, dx_t = G_t, da_t = G_t h_{t-1}. If
 * `a` is constant, its gradient is summed over time for each batch element, then over the batch elements in order. */
#include <string.h>

#include "kernels/gated/scan_cpu.h"
#include "kernels/lib/scratch.h"

/* One batch element b and a strip of its channels, from k to k + width - 1. Arrays are (B, T, N). */
struct piece {
    int64_t b, k, width, T, N;
};

static struct piece piece_at(struct scan_strips strips, const int64_t dims[3], int64_t part) {
    int64_t N = dims[2], k = part % strips.count * strips.width;
    return (struct piece){part / strips.count, k, N - k < strips.width ? N - k : strips.width, dims[1], N};
}

/* Index of the strip's first channel at step t. */
static int64_t at(const struct piece *p, int64_t t) {
    return (p->b * p->T + t) * p->N + p->k;
}

/* Returns where to write a row of an input's gradient: into the gradient itself, or into `buffer` if the row must be
 * added to earlier values or the gradient is not wanted. */
static real *row_of(const struct call *c, int input, int64_t offset, real *buffer) {
    return c->din[input] && !call_accumulates(c, input) ? c->din[input] + offset : buffer;
}

static void add_row(const struct call *c, int input, int64_t offset, const real *buffer, int64_t width) {
    if (c->din[input] && call_accumulates(c, input)) scan_add(c->din[input] + offset, buffer, width);
}

/* Takes scratch for the gradient of a constant `a`: one row per batch element. Returns no rows if each token has its
 * own `a`. */
static struct scratch_rows constant_gradients(const struct call *c, struct scratch *s) {
    struct tensor *h = c->out[0];
    return c->in[0]->rank == 1 ? scratch_rows(s, h->dims[0], h->dims[2]) : (struct scratch_rows){NULL, 0};
}

/* Brings steps first..t of an array into the cache before a backward pass reads them (kernels/lib/fetch.h). Skips
 * NULL. */
static void fetch(const real *array, const struct piece *p, int64_t first, int64_t t) {
    if (array) fetch_rows(array + at(p, first), t + 1 - first, p->width, p->N);
}

/* Does the same for an array that the backward pass writes. */
static void fetch_gradient(const real *gradient, const struct piece *p, int64_t first, int64_t t) {
    if (gradient) fetch_written(gradient + at(p, first), t + 1 - first, p->width, p->N);
}

/* --- real --------------------------------------------------------------------------------------------------------- */

static void scan_diag_cpu_forward(const struct call *c, const struct exec *e) {
    (void)e;
    const int64_t *dims = c->in[1]->dims;
    int64_t T = dims[1], N = dims[2];
    bool constant = c->in[0]->rank == 1;
    struct scan_strips strips = scan_strips(dims[0], N);
#pragma omp parallel for schedule(static) if (dims[0] * T * N > PARALLEL_MIN)
    for (int64_t part = 0; part < strips.parts; part++) {
        struct piece p = piece_at(strips, dims, part);
        for (int64_t t = 0; t < T; t++) {
            int64_t i = at(&p, t);
            const real *a = tensor_real(c->in[0]) + (constant ? p.k : i), *x = tensor_real(c->in[1]) + i;
            real *h = tensor_real(c->out[0]) + i;
            const real *before = t ? h - N : scan_zeros;
#pragma omp simd
            for (int64_t k = 0; k < p.width; k++) h[k] = real_fma(a[k], before[k], x[k]);
        }
    }
}

static size_t scan_diag_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) constant_gradients(c, &s);
    return s.used;
}

/* Computes the gradients of a piece. `carry` is a_{t+1} G_{t+1}. `da_sum` sums the gradient of a constant `a` over
 * time; it is NULL if each token has its own `a`. */
static void scan_diag_backward_piece(const struct call *c, struct scratch_rows sums, const struct piece *p) {
    real carry[SCAN_WIDTH], da_row[SCAN_WIDTH], dx_row[SCAN_WIDTH];
    int64_t T = p->T, N = p->N, width = p->width;
    real *da_sum = sums.at ? sums.at + p->b * sums.stride + p->k : NULL;
    memset(carry, 0, (size_t)width * sizeof *carry);
    if (da_sum) memset(da_sum, 0, (size_t)width * sizeof *da_sum);
    for (int64_t t = T - 1, first; t >= 0; t--) {
        if (fetch_is_due(t, T, width, &first)) {
            fetch(tensor_real(c->out[0]), p, first, t);
            fetch(call_dout(c, 0), p, first, t);
            fetch(da_sum ? NULL : tensor_real(c->in[0]), p, first, t);
            fetch_gradient(da_sum ? NULL : c->din[0], p, first, t);
            fetch_gradient(c->din[1], p, first, t);
        }
        int64_t i = at(p, t);
        const real *a = tensor_real(c->in[0]) + (da_sum ? p->k : i), *dh = call_dout(c, 0) + i;
        const real *before = t ? tensor_real(c->out[0]) + i - N : scan_zeros;
        real *da = da_sum ? da_sum : row_of(c, 0, i, da_row), *dx = row_of(c, 1, i, dx_row);
        if (da_sum) {
#pragma omp simd
            for (int64_t k = 0; k < width; k++) {
                real G = dh[k] + carry[k];
                da[k] = real_fma(G, before[k], da[k]);
                carry[k] = a[k] * G;
                dx[k] = G;
            }
        } else {
#pragma omp simd
            for (int64_t k = 0; k < width; k++) {
                real G = dh[k] + carry[k];
                da[k] = G * before[k];
                carry[k] = a[k] * G;
                dx[k] = G;
            }
        }
        if (!da_sum) add_row(c, 0, i, da_row, width);
        add_row(c, 1, i, dx_row, width);
    }
}

static void scan_diag_cpu_backward(const struct call *c, const struct exec *e) {
    (void)e;
    const int64_t *dims = c->in[1]->dims;
    int64_t B = dims[0], N = dims[2];
    struct scan_strips strips = scan_strips(B, N);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct scratch_rows sums = constant_gradients(c, &s);
#pragma omp parallel for schedule(static) if (B * dims[1] * N > PARALLEL_MIN)
    for (int64_t part = 0; part < strips.parts; part++) {
        struct piece p = piece_at(strips, dims, part);
        scan_diag_backward_piece(c, sums, &p);
    }
    if (c->din[0] && sums.at) sum_partials(N, B, sums.at, sums.stride, c->din[0], call_accumulates(c, 0));
}

/* --- complex: inputs a_re, a_im, x_re, x_im; outputs h_re, h_im --------------------------------------------------- */

static void scan_diag_complex_cpu_forward(const struct call *c, const struct exec *e) {
    (void)e;
    const int64_t *dims = c->in[2]->dims;
    int64_t T = dims[1], N = dims[2];
    bool constant = c->in[0]->rank == 1;
    struct scan_strips strips = scan_strips(dims[0], N);
#pragma omp parallel for schedule(static) if (dims[0] * T * N > PARALLEL_MIN)
    for (int64_t part = 0; part < strips.parts; part++) {
        struct piece p = piece_at(strips, dims, part);
        for (int64_t t = 0; t < T; t++) {
            int64_t i = at(&p, t), j = constant ? p.k : i;
            const real *a_re = tensor_real(c->in[0]) + j, *a_im = tensor_real(c->in[1]) + j;
            const real *x_re = tensor_real(c->in[2]) + i, *x_im = tensor_real(c->in[3]) + i;
            real *h_re = tensor_real(c->out[0]) + i, *h_im = tensor_real(c->out[1]) + i;
            const real *before_re = t ? h_re - N : scan_zeros, *before_im = t ? h_im - N : scan_zeros;
#pragma omp simd
            for (int64_t k = 0; k < p.width; k++) {
                real re = before_re[k], im = before_im[k];
                h_re[k] = real_fma(a_re[k], re, real_fma(-a_im[k], im, x_re[k]));
                h_im[k] = real_fma(a_re[k], im, real_fma(a_im[k], re, x_im[k]));
            }
        }
    }
}

/* Rows of one time step. `before` is h_{t-1}. `carry` is conj(a_{t+1}) G_{t+1}. */
struct planes {
    const real *a_re, *a_im, *before_re, *before_im, *dh_re, *dh_im;
    real *carry_re, *carry_im, *da_re, *da_im, *dx_re, *dx_im;
};

/* Computes the gradients of one time step and the next carry. `sum` says that `a` is constant, so that da is a running
 * sum. */
FORCE_INLINE void complex_row(bool sum, int64_t width, struct planes p) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real G_re = p.dh_re[k] + p.carry_re[k], G_im = p.dh_im[k] + p.carry_im[k];
        real h_re = p.before_re[k], h_im = p.before_im[k], a_re = p.a_re[k], a_im = p.a_im[k];
        p.da_re[k] = real_fma(h_im, G_im, real_fma(h_re, G_re, sum ? p.da_re[k] : 0));
        p.da_im[k] = real_fma(-h_im, G_re, real_fma(h_re, G_im, sum ? p.da_im[k] : 0));
        p.carry_re[k] = real_fma(a_im, G_im, a_re * G_re);
        p.carry_im[k] = real_fma(-a_im, G_re, a_re * G_im);
        p.dx_re[k] = G_re;
        p.dx_im[k] = G_im;
    }
}

static size_t scan_diag_complex_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int plane = 0; plane < 2 && pass == PASS_BACKWARD; plane++) constant_gradients(c, &s);
    return s.used;
}

static void complex_backward_piece(const struct call *c, const struct scratch_rows sums[2], const struct piece *p) {
    real carry[2][SCAN_WIDTH], rows[4][SCAN_WIDTH];
    int64_t T = p->T, N = p->N, width = p->width;
    bool constant = c->in[0]->rank == 1;
    real *sum_re = constant ? sums[0].at + p->b * sums[0].stride + p->k : NULL;
    real *sum_im = constant ? sums[1].at + p->b * sums[1].stride + p->k : NULL;
    for (int64_t k = 0; k < width; k++) {
        carry[0][k] = carry[1][k] = 0;
        if (constant) sum_re[k] = sum_im[k] = 0;
    }
    for (int64_t t = T - 1, first; t >= 0; t--) {
        int64_t i = at(p, t), j = constant ? p->k : i;
        for (int plane = 0; plane < 2 && fetch_is_due(t, T, 2 * width, &first); plane++) {
            fetch(tensor_real(c->out[plane]), p, first, t);
            fetch(call_dout(c, plane), p, first, t);
            fetch(constant ? NULL : tensor_real(c->in[plane]), p, first, t);
            fetch_gradient(constant ? NULL : c->din[plane], p, first, t);
            fetch_gradient(c->din[2 + plane], p, first, t);
        }
        struct planes r = {
            .a_re = tensor_real(c->in[0]) + j,
            .a_im = tensor_real(c->in[1]) + j,
            .before_re = t ? tensor_real(c->out[0]) + i - N : scan_zeros,
            .before_im = t ? tensor_real(c->out[1]) + i - N : scan_zeros,
            .dh_re = call_dout(c, 0) + i,
            .dh_im = call_dout(c, 1) ? call_dout(c, 1) + i : scan_zeros,
            .carry_re = carry[0],
            .carry_im = carry[1],
            .da_re = constant ? sum_re : row_of(c, 0, i, rows[0]),
            .da_im = constant ? sum_im : row_of(c, 1, i, rows[1]),
            .dx_re = row_of(c, 2, i, rows[2]),
            .dx_im = row_of(c, 3, i, rows[3]),
        };
        if (constant) complex_row(true, width, r);
        if (!constant) complex_row(false, width, r);
        for (int input = constant ? 2 : 0; input < 4; input++) add_row(c, input, i, rows[input], width);
    }
}

static void scan_diag_complex_cpu_backward(const struct call *c, const struct exec *e) {
    (void)e;
    const int64_t *dims = c->in[2]->dims;
    int64_t B = dims[0], N = dims[2];
    struct scan_strips strips = scan_strips(B, N);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct scratch_rows sums[2];
    for (int plane = 0; plane < 2; plane++) sums[plane] = constant_gradients(c, &s);
#pragma omp parallel for schedule(static) if (B * dims[1] * N > PARALLEL_MIN)
    for (int64_t part = 0; part < strips.parts; part++) {
        struct piece p = piece_at(strips, dims, part);
        complex_backward_piece(c, sums, &p);
    }
    for (int plane = 0; plane < 2; plane++)
        if (c->din[plane] && sums[plane].at)
            sum_partials(N, B, sums[plane].at, sums[plane].stride, c->din[plane], call_accumulates(c, plane));
}

/* Tolerance: the reference computes the state in double. Here every step rounds. If `a` is constant, each of the B * T
 * terms of its gradient rounds too, and their sizes are its scale (op->terms). The error grows like the square root of
 * the number of roundings if |a| <= 1, and as fast as the state if |a| > 1. */
const struct kernel kernel_scan_diag_cpu = {
    .name = "scan_diag_cpu",
    .op = &op_scan_diag,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = scan_diag_cpu_workspace,
    .forward = scan_diag_cpu_forward,
    .backward = scan_diag_cpu_backward,
};

const struct kernel kernel_scan_diag_complex_cpu = {
    .name = "scan_diag_complex_cpu",
    .op = &op_scan_diag_complex,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = scan_diag_complex_cpu_workspace,
    .forward = scan_diag_complex_cpu_forward,
    .backward = scan_diag_complex_cpu_backward,
};

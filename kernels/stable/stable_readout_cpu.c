/* stable_readout_cpu.c - stable_readout on the CPU. A row is one head of one token. Each thread computes a chunk of
 * rows; SIMD vectors run along the values of a row. The equations are in stable_readout.c. */
#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/stable/stable.h"

/* The number of rows, of values per row, and of chunks. */
struct readout_shape {
    int64_t rows, dv, chunks;
};

static struct readout_shape shape_of(const struct call *c) {
    int64_t rows = tensor_count(c->in[1]);
    return (struct readout_shape){rows, tensor_count(c->out[0]) / rows, row_chunks(rows)};
}

/* Returns 1 / D; *floor tells whether exp(-m) is larger than |den|. A NaN in den stays NaN. */
static real inverse_divisor(real den, real m, real eps, bool *floor) {
    real size = real_abs(den), least = real_exp(-m);
    *floor = !(size >= least) && size == size;
    return 1 / ((*floor ? least : size) + eps);
}

static void stable_readout_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct readout_shape s = shape_of(c);
    real eps = (real)stable_readout_attr(c)->eps;
#pragma omp parallel for schedule(static) if (s.rows * s.dv > PARALLEL_MIN)
    for (int64_t k = 0; k < s.chunks; k++) {
        struct range part = part_at(s.rows, s.chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            bool floor;
            const real *o = tensor_real(c->in[0]) + r * (1 + s.dv);
            real *h = tensor_real(c->out[0]) + r * s.dv;
            real inverse = inverse_divisor(o[0], tensor_real(c->in[1])[r], eps, &floor);
#pragma omp simd
            for (int64_t j = 0; j < s.dv; j++) h[j] = o[1 + j] * inverse;
        }
    }
}

static void backward_row(const struct call *c, int64_t r, int64_t dv, real eps) {
    bool floor, add = call_accumulates(c, 0);
    const real *o = tensor_real(c->in[0]) + r * (1 + dv), *dh = call_dout(c, 0) + r * dv;
    real inverse = inverse_divisor(o[0], tensor_real(c->in[1])[r], eps, &floor), along = 0;
#pragma omp simd reduction(+ : along)
    for (int64_t j = 0; j < dv; j++) along += dh[j] * (o[1 + j] * inverse);
    if (c->din[1]) put(c->din[1] + r, call_accumulates(c, 1), floor ? (1 - eps * inverse) * along : 0);
    if (!c->din[0]) return;
    real *d_o = c->din[0] + r * (1 + dv);
    put(d_o, add, floor ? 0 : o[0] < 0 ? along * inverse : -along * inverse);
#pragma omp simd
    for (int64_t j = 0; j < dv; j++) put(&d_o[1 + j], add, dh[j] * inverse);
}

static void stable_readout_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct readout_shape s = shape_of(c);
    real eps = (real)stable_readout_attr(c)->eps;
#pragma omp parallel for schedule(static) if (s.rows * s.dv > PARALLEL_MIN)
    for (int64_t k = 0; k < s.chunks; k++) {
        struct range part = part_at(s.rows, s.chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) backward_row(c, r, s.dv, eps);
    }
}

/* Tolerance: the results contain an exponential and a sum of dv products in working precision. */
const struct kernel kernel_stable_readout_cpu = {
    .name = "stable_readout_cpu",
    .op = &op_stable_readout,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .forward = stable_readout_cpu_forward,
    .backward = stable_readout_cpu_backward,
};

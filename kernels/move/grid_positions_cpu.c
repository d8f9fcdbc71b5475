/* grid_positions_cpu.c - grid_positions on the CPU. Forward has sequences on threads; backward has entries of the table
 * on threads, and each sums over the sequences in order. The equations are in grid_positions.c. */
#include "kernels/move/grid_positions.h"

#include <string.h>

#include "kernels/lib/parallel.h"

static const struct grid *table_grid(const struct call *c) {
    return &grid_positions_attr(c)->trained;
}

static void add_row(int64_t D, real weight, const real *x, real *y) {
#pragma omp simd
    for (int64_t d = 0; d < D; d++) y[d] = real_fma(weight, x[d], y[d]);
}

/* y += the resized table's vector at `row` and `column`. */
static void add_between(const struct call *c, const struct cubic *row, const struct cubic *column, real *y) {
    const struct grid *of_table = table_grid(c);
    int64_t D = c->in[0]->dims[2];
    for (int k = 0; k < CUBIC_TAPS; k++)
        for (int l = 0; l < CUBIC_TAPS; l++) {
            double weight = row->weight[k] * column->weight[l];
            int64_t j = (row->first + k) * of_table->width + column->first + l;
            if (weight < 0 || weight > 0) add_row(D, (real)weight, tensor_real(c->in[1]) + j * D, y);
        }
}

static void forward_sequence(const struct call *c, int64_t b) {
    const struct grid *of_table = table_grid(c);
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct token_grid g = token_grid_of(c, b);
    real *y = tensor_real(c->out[0]) + b * T * D;
    memcpy(y, tensor_real(c->in[0]) + b * T * D, (size_t)(T * D) * sizeof *y);
    if (token_grid_is(&g, of_table)) {
        add_row(g.n * D, 1, tensor_real(c->in[1]), y);
        return;
    }
    for (int64_t t = 0; t < g.n; t++) {
        struct cubic row = cubic_at(t / g.width, g.height, of_table->height);
        struct cubic column = cubic_at(t % g.width, g.width, of_table->width);
        add_between(c, &row, &column, y + t * D);
    }
}

static void grid_positions_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) forward_sequence(c, b);
}

/* dp += the gradient of entry j from sequence b. */
static void entry_of_sequence(const struct call *c, int64_t j, int64_t b, real *dp) {
    const struct grid *of_table = table_grid(c);
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct token_grid g = token_grid_of(c, b);
    const real *dy = call_dout(c, 0) + b * T * D;
    if (token_grid_is(&g, of_table)) {
        if (j < g.n) add_row(D, 1, dy + j * D, dp);
        return;
    }
    for (int64_t r = 0; r < g.height; r++) {
        struct cubic row = cubic_at(r, g.height, of_table->height);
        double of_row = cubic_weight(&row, j / of_table->width);
        for (int64_t s = 0; s < g.width && (of_row < 0 || of_row > 0); s++) {
            struct cubic column = cubic_at(s, g.width, of_table->width);
            double weight = of_row * cubic_weight(&column, j % of_table->width);
            int64_t t = r * g.width + s;
            if (t < g.n && (weight < 0 || weight > 0)) add_row(D, (real)weight, dy + t * D, dp);
        }
    }
}

static void grid_positions_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], D = c->in[0]->dims[2], n = tensor_count(c->in[0]);
    if (c->din[0]) sum_partials(n, 1, call_dout(c, 0), 0, c->din[0], call_accumulates(c, 0));
    if (!c->din[1]) return;
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t j = 0; j < c->in[1]->dims[0]; j++) {
        real *dp = c->din[1] + j * D;
        if (!call_accumulates(c, 1)) memset(dp, 0, (size_t)D * sizeof *dp);
        for (int64_t b = 0; b < B; b++) entry_of_sequence(c, j, b, dp);
    }
}

/* Tolerance: an entry's gradient sums over the tokens of all sequences in `real`, the reference in double. Errors grow
 * like the square root of the number of tokens. */
const struct kernel kernel_grid_positions_cpu = {
    .name = "grid_positions_cpu",
    .op = &op_grid_positions,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .forward = grid_positions_cpu_forward,
    .backward = grid_positions_cpu_backward,
};

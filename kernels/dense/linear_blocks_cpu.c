/* linear_blocks_cpu.c - block-diagonal linear map (linear_blocks.c) on the CPU, with chunks of rows on threads. The
 * outputs of a block are in vector lanes; if blocks have size 4 (as in mLSTM), a vector has as many neighbouring blocks
 * as fit. Each chunk has a partial sum of the weight's gradient, and these are added in order. */
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/simd.h"

/* --- groups: LANES channels of whole blocks of 4 ------------------------------------------------------------------ */

#define BLOCK             4
#define IN_BLOCK(lane, j) ((lane) / BLOCK * BLOCK + (j))
/* in each lane, number j of the lane's block */
#define OF_BLOCK(v, j) __builtin_shufflevector(v, v, EACH_LANE(IN_BLOCK, j))

/* Returns the number of channels in groups. The other channels are computed block by block. */
static int64_t grouped_channels(const struct call *c) {
    return tensor_cols(c->in[1]) == BLOCK && LANES % BLOCK == 0 ? tensor_cols(c->in[0]) / LANES * LANES : 0;
}

/* Returns the index in grouped order of weight w[c * 4 + i] of input channel c. In grouped order, a vector of weights
 * multiplies input number c % 4 of each block or, if `turned`, number i. */
FORCE_INLINE int64_t place(int64_t c, int64_t i, bool turned) {
    int64_t lane = c % LANES, group = (c - lane) * BLOCK;
    return turned ? group + i * LANES + lane : group + c % BLOCK * LANES + lane - c % BLOCK + i;
}

static void group_weights(const struct call *c, bool turned, real *to) {
    const real *w = tensor_real(c->in[1]);
    for (int64_t e = 0; e < grouped_channels(c) * BLOCK; e++) to[place(e / BLOCK, e % BLOCK, turned)] = w[e];
}

/* Returns one group of a row: sums of weights in grouped order times x. */
FORCE_INLINE lanes group_product(const real *w, lanes x) {
    lanes sum = lanes_at(w) * OF_BLOCK(x, 0);
    sum = lanes_fma(lanes_at(w + LANES), OF_BLOCK(x, 1), sum);
    sum = lanes_fma(lanes_at(w + 2 * LANES), OF_BLOCK(x, 2), sum);
    return lanes_fma(lanes_at(w + 3 * LANES), OF_BLOCK(x, 3), sum);
}

/* Adds dy x of one group of a row to dw, which is in grouped order. */
FORCE_INLINE void group_dw(lanes x, lanes dy, real *dw) {
    lanes_to(dw, lanes_fma(dy, OF_BLOCK(x, 0), lanes_at(dw)));
    lanes_to(dw + LANES, lanes_fma(dy, OF_BLOCK(x, 1), lanes_at(dw + LANES)));
    lanes_to(dw + 2 * LANES, lanes_fma(dy, OF_BLOCK(x, 2), lanes_at(dw + 2 * LANES)));
    lanes_to(dw + 3 * LANES, lanes_fma(dy, OF_BLOCK(x, 3), lanes_at(dw + 3 * LANES)));
}

/* Brings dw of all groups from grouped order into the weight's order. */
static void ungroup(int64_t channels, real *dw) {
    real group[BLOCK * LANES];
    for (int64_t c = 0; c < channels; c++) {
        if (c % LANES == 0) memcpy(group, dw + c * BLOCK, sizeof group);
        for (int64_t i = 0; i < BLOCK; i++) dw[c * BLOCK + i] = group[place(c % LANES, i, false)];
    }
}

/* --- block by block ----------------------------------------------------------------------------------------------- */

/* Computes y[i] = sum_j w[j][i] x[j]. */
FORCE_INLINE void block_product(int64_t m, const real *w, const real *x, real *y) {
#pragma omp simd
    for (int64_t i = 0; i < m; i++) y[i] = w[i] * x[0];
    for (int64_t j = 1; j < m; j++)
#pragma omp simd
        for (int64_t i = 0; i < m; i++) y[i] = real_fma(w[j * m + i], x[j], y[i]);
}

/* Computes dx[j] (+)= sum_i w[j][i] dy[i]. */
FORCE_INLINE void block_dx(int64_t m, const real *w, const real *dy, real *dx, bool accumulate) {
    for (int64_t j = 0; j < m; j++) {
        real sum = 0;
        for (int64_t i = 0; i < m; i++) sum = real_fma(w[j * m + i], dy[i], sum);
        put(dx + j, accumulate, sum);
    }
}

/* Computes dw[j][i] += dy[i] x[j]. */
FORCE_INLINE void block_dw(int64_t m, const real *x, const real *dy, real *dw) {
    for (int64_t j = 0; j < m; j++)
#pragma omp simd
        for (int64_t i = 0; i < m; i++) dw[j * m + i] = real_fma(dy[i], x[j], dw[j * m + i]);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Computes the outputs of a chunk of rows. `grouped` has the weights in grouped order. */
static void forward_rows(const struct call *c, struct range part, const real *grouped) {
    int64_t C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]), whole = grouped_channels(c);
    const real *w = tensor_real(c->in[1]);
    for (int64_t r = part.begin; r < part.end; r++) {
        const real *x = tensor_real(c->in[0]) + r * C;
        real *y = tensor_real(c->out[0]) + r * C;
        for (int64_t i = 0; i < whole; i += LANES) lanes_to(y + i, group_product(grouped + i * BLOCK, lanes_at(x + i)));
        for (int64_t i = whole; i < C; i += m) block_product(m, w + i * m, x + i, y + i);
    }
}

/* Scratch. Forward: the weights in grouped order. Backward: the same, turned, and the sums for dw of each chunk. */
struct arrays {
    real *grouped;
    struct scratch_rows dw;
};

static struct arrays arrays_of(const struct call *c, enum pass pass, struct scratch *s) {
    struct arrays a = {.grouped = scratch_reals(s, tensor_count(c->in[1]))};
    if (pass == PASS_BACKWARD) a.dw = scratch_rows(s, row_chunks(tensor_rows(c->in[0])), tensor_count(c->in[1]));
    return a;
}

static size_t linear_blocks_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    arrays_of(c, pass, &s);
    return s.used;
}

static void linear_blocks_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), m = tensor_cols(c->in[1]), chunks = row_chunks(rows);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct arrays a = arrays_of(c, PASS_FORWARD, &s);
    group_weights(c, false, a.grouped);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * m > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) forward_rows(c, part_at(rows, chunks, k), a.grouped);
}

static void add_dw(const struct call *c, const real *x, const real *dy, real *dw) {
    int64_t C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]), whole = grouped_channels(c);
    for (int64_t i = 0; i < whole; i += LANES) group_dw(lanes_at(x + i), lanes_at(dy + i), dw + i * BLOCK);
    for (int64_t i = whole; i < C; i += m) block_dw(m, x + i, dy + i, dw + i * m);
}

static void put_dx(const struct call *c, const real *grouped, const real *dy, real *dx) {
    int64_t C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]), whole = grouped_channels(c);
    bool add = call_accumulates(c, 0);
    for (int64_t i = 0; i < whole; i += LANES) {
        lanes sum = group_product(grouped + i * BLOCK, lanes_at(dy + i));
        lanes_to(dx + i, add ? lanes_at(dx + i) + sum : sum);
    }
    for (int64_t i = whole; i < C; i += m) block_dx(m, tensor_real(c->in[1]) + i * m, dy + i, dx + i, add);
}

/* Computes dx of one chunk of rows, and the chunk's sums for dw. */
static void backward_rows(const struct call *c, struct range part, const real *grouped, real *dw) {
    int64_t C = tensor_cols(c->in[0]);
    memset(dw, 0, (size_t)tensor_count(c->in[1]) * sizeof *dw);
    for (int64_t r = part.begin; r < part.end; r++) {
        const real *dy = call_dout(c, 0) + r * C;
        if (c->din[1]) add_dw(c, tensor_real(c->in[0]) + r * C, dy, dw);
        if (c->din[0]) put_dx(c, grouped, dy, c->din[0] + r * C);
    }
    ungroup(grouped_channels(c), dw);
}

static void linear_blocks_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), n = tensor_count(c->in[1]), m = tensor_cols(c->in[1]);
    int64_t chunks = row_chunks(rows);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct arrays a = arrays_of(c, PASS_BACKWARD, &s);
    group_weights(c, true, a.grouped);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * m > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++)
        backward_rows(c, part_at(rows, chunks, k), a.grouped, a.dw.at + k * a.dw.stride);
    if (c->din[1]) sum_partials(n, chunks, a.dw.at, a.dw.stride, c->din[1], call_accumulates(c, 1));
}

/* Tolerance: sums of m products, and sums over R rows in chunks of at least 128, are in working precision. */
const struct kernel kernel_linear_blocks_cpu = {
    .name = "linear_blocks_cpu",
    .op = &op_linear_blocks,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = linear_blocks_cpu_workspace,
    .forward = linear_blocks_cpu_forward,
    .backward = linear_blocks_cpu_backward,
};

/* linear_blocks_gemm_cpu.c - block-diagonal linear map (linear_blocks.c) of large blocks, as in sLSTM and RG-LRU, on
 * the CPU. Threads compute chunks of rows, and each block of a chunk is one product of the library. Each chunk has a
 * partial sum of the weight's gradient, and these are added in order. */
#include "kernels/dense/dense.h"
#include "kernels/lib/gemm.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

#define LARGE_BLOCK 16 /* for smaller blocks, a call of the library costs more than it saves */

static bool linear_blocks_gemm_cpu_preferred(const struct call *c) {
    return tensor_cols(c->in[1]) >= LARGE_BLOCK;
}

static bool worth_threads(const struct call *c) {
    return tensor_count(c->in[0]) * tensor_cols(c->in[1]) > PARALLEL_MIN;
}

static void linear_blocks_gemm_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]);
    int64_t chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (worth_threads(c))
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        const real *x = tensor_real(c->in[0]) + part.begin * C;
        real *y = tensor_real(c->out[0]) + part.begin * C;
        for (int64_t i = 0; i < C; i += m)
            real_gemm(false, false, part.end - part.begin, m, m, 1, x + i, C, tensor_real(c->in[1]) + i * m, m, false,
                      y + i, C);
    }
}

/* Scratch: the sums for dw of all chunks except the first, whose sums go directly to dw. */
static struct scratch_rows partials_of(const struct call *c, struct scratch *s) {
    return scratch_rows(s, row_chunks(tensor_rows(c->in[0])) - 1, tensor_count(c->in[1]));
}

static size_t linear_blocks_gemm_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) partials_of(c, &s);
    return s.used;
}

static void linear_blocks_gemm_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), C = tensor_cols(c->in[0]), m = tensor_cols(c->in[1]);
    int64_t chunks = row_chunks(rows);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct scratch_rows partials = partials_of(c, &s);
#pragma omp parallel for schedule(static) if (worth_threads(c))
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        int64_t first = part.begin * C, n = part.end - part.begin;
        const real *x = tensor_real(c->in[0]) + first, *dy = call_dout(c, 0) + first;
        real *dw = k == 0 ? c->din[1] : partials.at + (k - 1) * partials.stride;
        for (int64_t i = 0; i < C; i += m) {
            if (c->din[0])
                real_gemm(false, true, n, m, m, 1, dy + i, C, tensor_real(c->in[1]) + i * m, m, call_accumulates(c, 0),
                          c->din[0] + first + i, C);
            if (c->din[1])
                real_gemm(true, false, m, m, n, 1, x + i, C, dy + i, C, k == 0 && call_accumulates(c, 1), dw + i * m,
                          m);
        }
    }
    if (c->din[1] && chunks > 1)
        sum_partials(tensor_count(c->in[1]), chunks - 1, partials.at, partials.stride, c->din[1], true);
}

/* Tolerance: a sum of K products has an error of about sqrt(K) units of its terms. */
const struct kernel kernel_linear_blocks_gemm_cpu = {
    .name = "linear_blocks_gemm_cpu",
    .op = &op_linear_blocks,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .tiles = "the library takes other tiles for other numbers of rows",
    .preferred = linear_blocks_gemm_cpu_preferred,
    .workspace = linear_blocks_gemm_cpu_workspace,
    .forward = linear_blocks_gemm_cpu_forward,
    .backward = linear_blocks_gemm_cpu_backward,
};

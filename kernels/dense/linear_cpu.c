/* linear_cpu.c - y = x W^T + b by the library of products.
 *
 * All three products are cut along the rows (tokens) into at most 8 tiles; a tile of the weight gradient is a partial
 * sum over its tokens, and partial sums are added in order. OpenBLAS packs the weights anew for each tile, so tiles are
 * large: of (rows 2048; inputs, outputs 64..256, 64..1920) four tiles of 512 lose at most 5 % to a single call on one
 * thread, tiles of 256 lose 4 to 10 %, cutting outputs instead of rows 10 to 50 %. */
#include "kernels/lib/infer.h"
#include "kernels/lib/gemm.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"

#define MAX_TILES 8
#define FLOPS_MIN 500000 /* of a product; below, threads cost more than they gain */

/* Tiles of 512 rows, or of 256 while that gives no more than four. */
static int64_t tile_count(int64_t rows) {
    int64_t n = rows / 256 < 4 ? rows / 256 : 4;
    if (rows / 512 > n) n = rows / 512;
    return n < 1 ? 1 : n > MAX_TILES ? MAX_TILES : n;
}

static bool worth_threads(int64_t rows, int64_t I, int64_t O) {
    return 2.0 * (double)rows * (double)I * (double)O > FLOPS_MIN;
}

static void linear_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0], tiles = tile_count(rows);
    const real *x = tensor_real(c->in[0]), *w = tensor_real(c->in[1]), *b = c->in[2] ? tensor_real(c->in[2]) : NULL;
    real *y = tensor_real(c->out[0]);
#pragma omp parallel for schedule(dynamic, 1) if (worth_threads(rows, I, O))
    for (int64_t t = 0; t < tiles; t++) {
        struct range tile = part_at(rows, tiles, t);
        real_gemm_bias(tile.end - tile.begin, O, I, x + tile.begin * I, w, b, y + tile.begin * O);
    }
}

/* Gradients of the weight from tiles 1.. (tile 0 writes the gradient itself), of the bias from all. */
struct partials {
    struct scratch_rows dw, db;
};

static struct partials partials_of(const struct call *c, struct scratch *s) {
    int64_t tiles = tile_count(tensor_rows(c->in[0]));
    struct partials p = {{NULL, 0}, {NULL, 0}};
    if (tiles > 1) p.dw = scratch_rows(s, tiles - 1, tensor_count(c->in[1]));
    if (c->in[2]) p.db = scratch_rows(s, tiles, c->in[1]->dims[0]);
    return p;
}

static size_t linear_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) partials_of(c, &s);
    return s.used;
}

static void backward_tile(const struct call *c, struct range tile, real *dw, bool add_dw, real *db) {
    int64_t I = tensor_cols(c->in[0]), O = c->in[1]->dims[0], rows = tile.end - tile.begin;
    const real *x = tensor_real(c->in[0]) + tile.begin * I, *w = tensor_real(c->in[1]), *dy = call_dout(c, 0);
    const real *dy_tile = dy + tile.begin * O;
    if (c->din[1]) real_gemm(true, false, O, I, rows, 1, dy_tile, O, x, I, add_dw, dw, I);
    if (c->din[0])
        real_gemm(false, false, rows, I, O, 1, dy_tile, O, w, I, call_accumulates(c, 0), c->din[0] + tile.begin * I, I);
    if (c->din[2]) chunk_sums(tile, O, dy, NULL, db);
}

static void linear_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0], tiles = tile_count(rows);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct partials p = partials_of(c, &s);
#pragma omp parallel for schedule(dynamic, 1) if (worth_threads(rows, I, O))
    for (int64_t t = 0; t < tiles; t++) {
        real *dw = t == 0 ? c->din[1] : p.dw.at + (t - 1) * p.dw.stride;
        real *db = c->din[2] ? p.db.at + t * p.db.stride : NULL;
        backward_tile(c, part_at(rows, tiles, t), dw, t == 0 && call_accumulates(c, 1), db);
    }
    if (c->din[1] && tiles > 1) sum_partials(O * I, tiles - 1, p.dw.at, p.dw.stride, c->din[1], true);
    if (c->din[2]) sum_partials(O, tiles, p.db.at, p.db.stride, c->din[2], call_accumulates(c, 2));
}

/* Tolerance: a sum of K products in working precision, K up to thousands, errs by about sqrt(K) units, of the terms and
 * not of the sum (op->terms): one output of 405 inputs, or the bias of 460 rows, may be all but 0. */
const struct kernel kernel_linear_cpu = {
    .name = "linear_cpu",
    .op = &op_linear,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .tiles = "the library takes other tiles for other numbers of rows, and adds the columns of one in another order",
    .workspace = linear_cpu_workspace,
    .forward = linear_cpu_forward,
    .backward = linear_cpu_backward,
};

/* linear_cpu.c - y = x W^T + b (linear.c) on the CPU, by the library of products. In bf16 and tf32 the factors are
 * rounded first.
 *
 * All three products are cut along the rows (tokens) into at most 8 tiles. A tile of the weight gradient is a partial
 * sum over its tokens, and partial sums are added in order. These sums, and the start of each call, cost time, so tiles
 * should be large. On one thread of Zen 4 (rows 2048; inputs 64..256; outputs 64..1920; all three products), compared
 * with a single call: four tiles of 512 take 1 % longer in fp32 and 2 % in bf16; tiles of 256 take 2 and 4 %; tiles of
 * 128 take 6 and 11 %. Cutting into four by outputs needs no partial sums: the weight gradient gains 6 % in fp32, but
 * loses 9 % in bf16, and the other two products lose 5 to 26 %. Letting oneDNN reorder the weights once for all tiles
 * gains 1 %. */
#include "kernels/lib/infer.h"
#include "kernels/lib/gemm.h"
#include "kernels/dense/dense.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/round.h"
#include "kernels/lib/scratch.h"

#define MAX_TILES 8
#define FLOPS_MIN 500000 /* least FLOPs of a product; for fewer, threads cost more than they gain */

/* Returns the number of tiles: tiles have 512 rows, or 256 rows if there are at most four of these. */
static int64_t tile_count(int64_t rows) {
    int64_t n = rows / 256 < 4 ? rows / 256 : 4;
    if (rows / 512 > n) n = rows / 512;
    return n < 1 ? 1 : n > MAX_TILES ? MAX_TILES : n;
}

static bool worth_threads(int64_t rows, int64_t I, int64_t O) {
    return 2.0 * (double)rows * (double)I * (double)O > FLOPS_MIN;
}

/* --- factors ------------------------------------------------------------------------------------------------------ */

/* x, w and dy as the products read them: unchanged, or rounded in scratch. (linear_bf16_cpu rounds to 16 bits.) */
struct factors {
    const void *x, *w, *dy;
};

static bool in_halves(const struct call *c) {
    return c->kernel == &kernel_linear_bf16_cpu;
}

static const void *factor(const struct call *c, struct scratch *s, int64_t n, const real *from) {
    if (c->precision == PRECISION_FULL) return from;
    void *to = scratch_bytes(s, (size_t)n * (in_halves(c) ? sizeof(uint16_t) : sizeof(real)));
    if (!to) return NULL; /* scratch is only being measured */
    if (in_halves(c))
        round_to_bf16(n, from, to);
    else
        round_reals(c->precision, n, from, to);
    return to;
}

/* Returns the factors of a pass; in backward only the factors for wanted gradients. */
static struct factors factors_of(const struct call *c, enum pass pass, struct scratch *s) {
    const struct tensor *x = c->in[0], *w = c->in[1], *y = c->out[0];
    bool backward = pass == PASS_BACKWARD;
    struct factors f = {NULL, NULL, NULL};
    if (!backward || w->needs_grad) f.x = factor(c, s, tensor_count(x), tensor_real(x));
    if (!backward || x->needs_grad) f.w = factor(c, s, tensor_count(w), tensor_real(w));
    if (backward && (w->needs_grad || x->needs_grad)) f.dy = factor(c, s, tensor_count(y), call_dout(c, 0));
    return f;
}

static const void *number_at(const struct call *c, const void *base, int64_t i) {
    return (const char *)base + (size_t)i * (in_halves(c) ? sizeof(uint16_t) : sizeof(real));
}

/* Computes C (+)= op(A) B. The matrices have no gaps between rows. */
static void product(const struct call *c, bool transpose_a, int64_t M, int64_t N, int64_t K, const void *A,
                    const void *B, bool add_to, real *C) {
    int64_t lda = transpose_a ? M : K;
    if (in_halves(c))
        gemm_bf16(transpose_a, false, M, N, K, A, lda, B, N, NULL, add_to, C, N);
    else
        real_gemm(transpose_a, false, M, N, K, 1, A, lda, B, N, add_to, C, N);
}

/* Computes C = A B^T, and adds the bias to each row. */
static void product_bias(const struct call *c, int64_t M, int64_t N, int64_t K, const void *A, const void *B,
                         const real *bias, real *C) {
    if (in_halves(c))
        gemm_bf16(false, true, M, N, K, A, K, B, K, bias, false, C, N);
    else
        real_gemm_bias(M, N, K, A, B, bias, C);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void linear_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0], tiles = tile_count(rows);
    const real *b = c->in[2] ? tensor_real(c->in[2]) : NULL;
    real *y = tensor_real(c->out[0]);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct factors f = factors_of(c, PASS_FORWARD, &s);
#pragma omp parallel for schedule(dynamic, 1) if (worth_threads(rows, I, O))
    for (int64_t t = 0; t < tiles; t++) {
        struct range tile = part_at(rows, tiles, t);
        product_bias(c, tile.end - tile.begin, O, I, number_at(c, f.x, tile.begin * I), f.w, b, y + tile.begin * O);
    }
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Partial sums: of the weight's gradient for tiles 1 and up (tile 0 writes to the gradient itself), and of the bias's
 * gradient for all tiles. */
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
    factors_of(c, pass, &s);
    return s.used;
}

/* Computes the gradients of a tile. The gradient of the bias sums dy without rounding, because it is not a product. */
static void backward_tile(const struct call *c, struct factors f, struct range tile, real *dw, bool add_dw, real *db) {
    int64_t I = tensor_cols(c->in[0]), O = c->in[1]->dims[0], rows = tile.end - tile.begin;
    const void *dy = number_at(c, f.dy, tile.begin * O);
    if (c->din[1]) product(c, true, O, I, rows, dy, number_at(c, f.x, tile.begin * I), add_dw, dw);
    if (c->din[0]) product(c, false, rows, I, O, dy, f.w, call_accumulates(c, 0), c->din[0] + tile.begin * I);
    if (c->din[2]) chunk_sums(tile, O, call_dout(c, 0), NULL, db);
}

static void linear_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0], tiles = tile_count(rows);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct partials p = partials_of(c, &s);
    struct factors f = factors_of(c, PASS_BACKWARD, &s);
#pragma omp parallel for schedule(dynamic, 1) if (worth_threads(rows, I, O))
    for (int64_t t = 0; t < tiles; t++) {
        real *dw = t == 0 ? c->din[1] : p.dw.at + (t - 1) * p.dw.stride;
        real *db = c->din[2] ? p.db.at + t * p.db.stride : NULL;
        backward_tile(c, f, part_at(rows, tiles, t), dw, t == 0 && call_accumulates(c, 1), db);
    }
    if (c->din[1] && tiles > 1) sum_partials(O * I, tiles - 1, p.dw.at, p.dw.stride, c->din[1], true);
    if (c->din[2]) sum_partials(O, tiles, p.db.at, p.db.stride, c->din[2], call_accumulates(c, 2));
}

/* --- the kernels -------------------------------------------------------------------------------------------------- */

static bool linear_bf16_cpu_applicable(const struct call *c, const char **why) {
    *why = "its products are in bf16; --precision bf16 has such";
    return c->precision == PRECISION_BF16;
}

static bool linear_bf16_cpu_preferred(const struct call *c) {
    (void)c;
    return gemm_bf16_pays();
}

#define TILES "the library takes other tiles for other numbers of rows, and adds the columns of one in another order"

/* Tolerance: a sum of K products, with K up to thousands, has an error of about sqrt(K) units of its terms (op->terms).
 * The sum itself is no measure, because it may be almost 0. */
const struct kernel kernel_linear_cpu = {
    .name = "linear_cpu",
    .op = &op_linear,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .tiles = TILES,
    .workspace = linear_cpu_workspace,
    .forward = linear_cpu_forward,
    .backward = linear_cpu_backward,
};

/* Tolerance: as for linear_cpu. The factors are rounded as in the reference, and their products are exact in float. */
const struct kernel kernel_linear_bf16_cpu = {
    .name = "linear_bf16_cpu",
    .op = &op_linear,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .tiles = TILES,
    .applicable = linear_bf16_cpu_applicable,
    .preferred = linear_bf16_cpu_preferred,
    .workspace = linear_cpu_workspace,
    .forward = linear_cpu_forward,
    .backward = linear_cpu_backward,
};

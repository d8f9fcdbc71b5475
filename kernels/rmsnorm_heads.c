/* rmsnorm_heads.c - RMSNorm of each head by itself, with a weight a head: the op and its reference.
 *
 *   q = (mean_c x[h][c]^2 + eps)^-1/2,   y[h][c] = x[h][c] q w[h][c]      (spec/plstm-myosotis.md A1.2)
 *   dx = q (e - n mean(e n)) with e = dy w, n = x q;   dw[h][c] = sum over rows of dy n */
#include <inttypes.h>
#include <math.h>

#include "kernels/dense.h"

struct tensor *rmsnorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps) {
    struct norm_attr attr = {.eps = eps};
    return record1(g, &op_rmsnorm_heads, &attr, sizeof attr, (struct tensor *[]){x, w}, 2);
}

static void rmsnorm_heads_infer(struct graph *g, struct call *c) {
    const struct norm_attr *a = c->attr;
    if (!infer_present(g, c, 2)) return;
    if (c->in[1]->rank != 2)
        graph_fail(g, ST_USAGE, "rmsnorm_heads: the weight has rank %d, expected 2 (heads,width)", c->in[1]->rank);
    else if (tensor_count(c->in[1]) != tensor_cols(c->in[0]))
        graph_fail(g, ST_USAGE, "rmsnorm_heads: x has %" PRId64 " columns but the weight %" PRId64 " elements",
                   tensor_cols(c->in[0]), tensor_count(c->in[1]));
    else if (!(a->eps >= 0))
        graph_fail(g, ST_USAGE, "rmsnorm_heads: eps is %g, expected a number that is not negative", a->eps);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static struct cost rmsnorm_heads_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->out[0]), w = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){4 * n, sizeof(real) * (2 * n + w)};
    return (struct cost){12 * n, sizeof(real) * (3 * n + 2 * w)};
}

static bool rmsnorm_heads_example(struct graph *g, int64_t n, int variant) {
    if (variant > 3) return false;
    int64_t H = variant == 2 ? n : 3, width = variant == 1 ? n + 3 : variant == 3 ? 16 : 5;
    struct tensor *x = graph_input(g, "x", 3, (int64_t[]){2, variant == 0 || variant == 3 ? n : 3, H * width}, true);
    rmsnorm_heads(g, x, graph_input(g, "w", 2, (int64_t[]){H, width}, variant != 1), variant == 0 ? 0.1 : 1e-5);
    return true;
}

const struct op op_rmsnorm_heads = {
    .name = "rmsnorm_heads",
    .maths = "y[h] = x[h] * rsqrt(mean(x[h]^2) + eps) * w[h] for each head h",
    .source = "Zhang & Sennrich 2019, arXiv 1910.07467, Eq. 4, over the width of a head",
    .needs_in = 3,
    .infer = rmsnorm_heads_infer,
    .cost = rmsnorm_heads_cost,
    .example = rmsnorm_heads_example,
};

static double ref_factor(const struct call *c, const real *x, int64_t width) {
    double squares = 0;
    for (int64_t i = 0; i < width; i++) squares += (double)x[i] * x[i];
    return 1 / sqrt(squares / (double)width + ((const struct norm_attr *)c->attr)->eps);
}

static void rmsnorm_heads_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), H = c->in[1]->dims[0], width = c->in[1]->dims[1];
    for (int64_t r = 0; r < rows * H; r++) {
        const real *x = tensor_real(c->in[0]) + r * width, *w = tensor_real(c->in[1]) + r % H * width;
        double q = ref_factor(c, x, width);
        for (int64_t i = 0; i < width; i++) tensor_real(c->out[0])[r * width + i] = (real)(x[i] * q * w[i]);
    }
}

static size_t rmsnorm_heads_ref_workspace(const struct call *c, enum pass pass) {
    return pass == PASS_FORWARD ? 0 : (size_t)tensor_count(c->in[1]) * sizeof(double);
}

static void rmsnorm_heads_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), H = c->in[1]->dims[0], width = c->in[1]->dims[1];
    double *dw = c->scratch[PASS_BACKWARD];
    for (int64_t i = 0; i < H * width; i++) dw[i] = 0;
    for (int64_t r = 0; r < rows * H; r++) {
        const real *x = tensor_real(c->in[0]) + r * width, *w = tensor_real(c->in[1]) + r % H * width;
        const real *dy = call_dout(c, 0) + r * width;
        double q = ref_factor(c, x, width), mean = 0;
        for (int64_t i = 0; i < width; i++) {
            mean += (double)dy[i] * w[i] * x[i] * q / (double)width;
            dw[r % H * width + i] += dy[i] * x[i] * q;
        }
        for (int64_t i = 0; i < width && c->din[0]; i++)
            put(c->din[0] + r * width + i, call_accumulates(c, 0),
                (real)(q * ((double)dy[i] * w[i] - x[i] * q * mean)));
    }
    for (int64_t i = 0; i < H * width && c->din[1]; i++) put(c->din[1] + i, call_accumulates(c, 1), (real)dw[i]);
}

const struct kernel kernel_rmsnorm_heads_ref = {
    .name = "rmsnorm_heads_ref",
    .op = &op_rmsnorm_heads,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = rmsnorm_heads_ref_workspace,
    .forward = rmsnorm_heads_ref_forward,
    .backward = rmsnorm_heads_ref_backward,
};

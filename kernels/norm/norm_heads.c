/* norm_heads.c - RMSNorm and LayerNorm of each head, with a weight per head: the ops and their references.
 *
 *   rmsnorm_heads     q = (mean_c x[h][c]^2 + eps)^-1/2,   n = x q,   y = n w        (pLSTM, App. E.1)
 *   layernorm_heads   q = (var_c x[h][c] + eps)^-1/2,   n = (x - mean_c x) q,   y = n (1 + w)
 * Gradients: with e = dy w, rmsnorm_heads has dx = q (e - n mean(e n)); with e = dy (1 + w), layernorm_heads has dx = q
 * (e - mean(e) - n mean(e n)); in both, dw[h][c] = sum over rows of dy n. */
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"
#include "kernels/norm/norm.h"

struct tensor *rmsnorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps) {
    struct norm_attr attr = {.eps = eps};
    return call1(g, &op_rmsnorm_heads, &attr, sizeof attr, (struct tensor *[]){x, w}, 2);
}

struct tensor *layernorm_heads(struct graph *g, struct tensor *x, struct tensor *w, double eps) {
    struct norm_attr attr = {.eps = eps};
    return call1(g, &op_layernorm_heads, &attr, sizeof attr, (struct tensor *[]){x, w}, 2);
}

static void norm_heads_infer(struct graph *g, struct call *c) {
    const struct norm_attr *a = norm_attr(c);
    if (!infer_present(g, c, 2)) return;
    if (c->in[1]->rank != 2)
        graph_fail(g, ST_USAGE, "%s: the weight has rank %d, expected 2 (heads,width)", c->op->name, c->in[1]->rank);
    else if (tensor_count(c->in[1]) != tensor_cols(c->in[0]))
        graph_fail(g, ST_USAGE, "%s: x has %" PRId64 " columns but the weight %" PRId64 " elements", c->op->name,
                   tensor_cols(c->in[0]), tensor_count(c->in[1]));
    else if (!(a->eps >= 0))
        graph_fail(g, ST_USAGE, "%s: eps is %g, expected a number that is not negative", c->op->name, a->eps);
    else
        graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static struct cost norm_heads_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->out[0]), w = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){4 * n, sizeof(real) * (2 * n + w)};
    return (struct cost){12 * n, sizeof(real) * (3 * n + 2 * w)};
}

/* n = (x - mean) q of a head. The weight is added to `one`, which is 0 or 1. */
struct ref_statistics {
    double mean, q, one;
};

static struct ref_statistics ref_statistics_of(const struct call *c, const real *x, int64_t width) {
    bool layer = c->op == &op_layernorm_heads;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < width; i++) sum += x[i];
    double mean = layer ? sum / (double)width : 0;
    for (int64_t i = 0; i < width; i++) squares += (x[i] - mean) * (x[i] - mean);
    double q = 1 / sqrt(squares / (double)width + norm_attr(c)->eps);
    return (struct ref_statistics){mean, q, layer};
}

/* Returns the largest terms of dw, which are sums over the rows. */
static double weight_terms(const struct call *c) {
    int64_t rows = tensor_rows(c->in[0]), H = c->in[1]->dims[0], width = c->in[1]->dims[1];
    double most = 0;
    for (int64_t e = 0; e < H * width; e++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) {
            const real *x = tensor_real(c->in[0]) + (r * H + e / width) * width;
            struct ref_statistics s = ref_statistics_of(c, x, width);
            sum += fabs(call_dout(c, 0)[r * H * width + e]) * (fabs(x[e % width]) + fabs(s.mean)) * s.q;
        }
        most = fmax(most, sum);
    }
    return most;
}

/* Returns the largest terms. n = (x - mean) q rounds like x and mean, so their magnitudes are added. In
 * layernorm_heads, dx is 0 if a head has one column; if it has two, it is 0 except for a small part due to eps. */
static double norm_heads_terms(const struct call *c, enum pass pass, int j) {
    int64_t rows = tensor_rows(c->in[0]), H = c->in[1]->dims[0], width = c->in[1]->dims[1];
    double most = 0;
    if (j > 0) return weight_terms(c);
    for (int64_t r = 0; r < rows * H; r++) {
        const real *x = tensor_real(c->in[0]) + r * width, *w = tensor_real(c->in[1]) + r % H * width;
        const real *dy = pass == PASS_BACKWARD ? call_dout(c, 0) + r * width : NULL;
        struct ref_statistics s = ref_statistics_of(c, x, width);
        double sum_e = 0, sum_en = 0;
        for (int64_t i = 0; i < width && dy; i++) {
            sum_e += fabs(dy[i] * (s.one + w[i]));
            sum_en += fabs(dy[i] * (s.one + w[i])) * (fabs(x[i]) + fabs(s.mean)) * s.q;
        }
        for (int64_t i = 0; i < width; i++) {
            double n = (fabs(x[i]) + fabs(s.mean)) * s.q, w_i = fabs(s.one + w[i]);
            most = fmax(most, dy ? s.q * (fabs(dy[i]) * w_i + (s.one * sum_e + n * sum_en) / (double)width) : n * w_i);
        }
    }
    return most;
}

/* Variant 0 has a small eps, variant 1 a large one. In variant 2 the weights need no gradient. */
static bool norm_heads_build(struct graph *g, const struct op_sizes *s, bool layer) {
    if (s->variant > 2) return false;
    struct tensor *x = input_tokens(g, s, "x", s->heads * s->dv), *w = input_matrix(g, "w", s->heads, s->dv);
    double eps = s->variant == 1 ? 0.1 : 1e-5;
    if (s->variant == 2) input_constant(w);
    if (layer)
        layernorm_heads(g, x, w, eps);
    else
        rmsnorm_heads(g, x, w, eps);
    return true;
}

static bool rmsnorm_heads_build(struct graph *g, const struct op_sizes *s) {
    return norm_heads_build(g, s, false);
}

static bool layernorm_heads_build(struct graph *g, const struct op_sizes *s) {
    return norm_heads_build(g, s, true);
}

static struct heads norm_heads(const struct call *c) {
    int64_t width = c->in[1]->dims[1];
    return (struct heads){c->in[1]->dims[0], {width, width}, {width}};
}

const struct op op_rmsnorm_heads = {
    .name = "rmsnorm_heads",
    .maths = "y[h] = x[h] * rsqrt(mean(x[h]^2) + eps) * w[h] for each head h",
    .source = "Zhang & Sennrich 2019, arXiv 1910.07467, Eq. 4, over the width of a head",
    .needs_in = 3,
    .infer = norm_heads_infer,
    .cost = norm_heads_cost,
    .terms = norm_heads_terms,
    .heads = norm_heads,
    .sizes = "batch length heads dv",
    .build = rmsnorm_heads_build,
};

const struct op op_layernorm_heads = {
    .name = "layernorm_heads",
    .maths = "y[h] = (x[h] - mean(x[h])) * rsqrt(var(x[h]) + eps) * (1 + w[h]) for each head h",
    .source = "Ba, Kiros & Hinton 2016, arXiv 1607.06450, Eq. 4, over the width of a head",
    .needs_in = 3,
    .infer = norm_heads_infer,
    .cost = norm_heads_cost,
    .terms = norm_heads_terms,
    .heads = norm_heads,
    .sizes = "batch length heads dv",
    .build = layernorm_heads_build,
};

static void norm_heads_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), H = c->in[1]->dims[0], width = c->in[1]->dims[1];
    for (int64_t r = 0; r < rows * H; r++) {
        const real *x = tensor_real(c->in[0]) + r * width, *w = tensor_real(c->in[1]) + r % H * width;
        struct ref_statistics s = ref_statistics_of(c, x, width);
        for (int64_t i = 0; i < width; i++)
            tensor_real(c->out[0])[r * width + i] = (real)((x[i] - s.mean) * s.q * (s.one + w[i]));
    }
}

static size_t norm_heads_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)tensor_count(c->in[1]) * sizeof(double));
}

static void norm_heads_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), H = c->in[1]->dims[0], width = c->in[1]->dims[1];
    double *dw = c->scratch[PASS_BACKWARD];
    for (int64_t i = 0; i < H * width; i++) dw[i] = 0;
    for (int64_t r = 0; r < rows * H; r++) {
        const real *x = tensor_real(c->in[0]) + r * width, *w = tensor_real(c->in[1]) + r % H * width;
        const real *dy = call_dout(c, 0) + r * width;
        struct ref_statistics s = ref_statistics_of(c, x, width);
        double mean_e = 0, mean_en = 0;
        for (int64_t i = 0; i < width; i++) {
            double n = (x[i] - s.mean) * s.q, e = dy[i] * (s.one + w[i]);
            mean_e += e / (double)width;
            mean_en += e * n / (double)width;
            dw[r % H * width + i] += dy[i] * n;
        }
        for (int64_t i = 0; i < width && c->din[0]; i++) {
            double n = (x[i] - s.mean) * s.q, e = dy[i] * (s.one + w[i]);
            put(c->din[0] + r * width + i, call_accumulates(c, 0), (real)(s.q * (e - s.one * mean_e - n * mean_en)));
        }
    }
    for (int64_t i = 0; i < H * width && c->din[1]; i++) put(c->din[1] + i, call_accumulates(c, 1), (real)dw[i]);
}

const struct kernel kernel_rmsnorm_heads_ref = {
    .name = "rmsnorm_heads_ref",
    .op = &op_rmsnorm_heads,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = norm_heads_ref_workspace,
    .forward = norm_heads_ref_forward,
    .backward = norm_heads_ref_backward,
};

const struct kernel kernel_layernorm_heads_ref = {
    .name = "layernorm_heads_ref",
    .op = &op_layernorm_heads,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = norm_heads_ref_workspace,
    .forward = norm_heads_ref_forward,
    .backward = norm_heads_ref_backward,
};

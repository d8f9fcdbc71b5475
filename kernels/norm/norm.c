/* norm.c - RMSNorm and LayerNorm of each row (the D values of the last axis), and the norm of a residual sum: the ops
 * and their references, which compute in double.
 *
 *   rmsnorm    q = (mean(x^2) + eps)^-1/2              n = x q              y = n w        (Zhang & Sennrich 2019)
 *   layernorm  q = (mean((x - mean x)^2) + eps)^-1/2   n = (x - mean x) q   y = n w + b    (Ba et al. 2016)
 *   add_norm   s = x + branch, and y = rmsnorm(s) or layernorm(s)
 * Gradients, with e = dy w:
 *   rmsnorm    dx = q (e - n mean(e n))
 *   layernorm  dx = q (e - mean(e) - n mean(e n))
 *   both       dw = sum over rows of dy n,   db = sum over rows of dy
 *   add_norm   dx = dbranch = ds + (the dx above, computed from s), where ds is the gradient of the output s
 * Backward recomputes q and the mean from x. */
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"
#include "kernels/norm/norm.h"

struct tensor *rmsnorm(struct graph *g, struct tensor *x, struct tensor *w, double eps) {
    struct norm_attr attr = {.eps = eps};
    return call1(g, &op_rmsnorm, &attr, sizeof attr, (struct tensor *[]){x, w}, 2);
}

struct tensor *layernorm(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b, double eps) {
    struct norm_attr attr = {.eps = eps};
    return call1(g, &op_layernorm, &attr, sizeof attr, (struct tensor *[]){x, w, b}, 3);
}

struct tensor *add_norm(struct graph *g, struct tensor *x, struct tensor *branch, struct tensor *w, struct tensor *b,
                        double eps, struct tensor **sum) {
    struct norm_attr attr = {.eps = eps};
    struct call *c = graph_call(g, &op_add_norm, &attr, sizeof attr, (struct tensor *[]){x, w, b, branch}, 4);
    *sum = c ? c->out[1] : NULL;
    return c ? c->out[0] : NULL;
}

static void norm_infer(struct graph *g, struct call *c) {
    const struct norm_attr *a = norm_attr(c);
    int required = c->in[3] ? 2 : c->n_in; /* add_norm's bias is optional */
    if (!infer_present(g, c, required) || !infer_vector(g, c, c->in[0], c->in[1], "the weight")) return;
    if (c->in[2] && !infer_vector(g, c, c->in[0], c->in[2], "the bias")) return;
    if (c->in[3] && !infer_same_shape(g, c, 0, 3)) return;
    if (!(a->eps >= 0)) {
        graph_fail(g, ST_USAGE, "%s: eps is %g, expected a number that is not negative", c->op->name, a->eps);
        return;
    }
    graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
    if (c->in[3]) graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static struct cost norm_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->out[0]), D = (double)tensor_cols(c->out[0]);
    double vectors = D * (c->in[2] ? 2 : 1), sums = c->in[3] ? 1 : 0; /* sums: FLOPs per element of x + branch */
    if (pass == PASS_FORWARD) return (struct cost){(4 + sums) * n, sizeof(real) * ((2 + 2 * sums) * n + vectors)};
    return (struct cost){(12 + 2 * sums) * n, sizeof(real) * ((3 + 2 * sums) * n + 2 * vectors)};
}

/* Computes the mean (0 for rmsnorm) and q of one row. */
static void statistics(const struct call *c, const real *x, double *mean, double *q) {
    const struct norm_attr *attr = norm_attr(c);
    int64_t D = tensor_cols(c->in[0]);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < D; i++) sum += x[i];
    *mean = c->in[2] ? sum / (double)D : 0;
    for (int64_t i = 0; i < D; i++) squares += (x[i] - *mean) * (x[i] - *mean);
    *q = 1 / sqrt(squares / (double)D + attr->eps);
}

/* The part of norm_terms (below) for dw (j = 1) and db (j = 2). Each element of dw and db is a sum over the rows. */
static double vector_terms(const struct call *c, int j) {
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    double most = 0;
    for (int64_t i = 0; i < D; i++) {
        double sum = 0, mean, q;
        for (int64_t r = 0; r < rows; r++) {
            const real *x = normed_rows(c) + r * D;
            statistics(c, x, &mean, &q);
            sum += fabs(call_dout(c, 0)[r * D + i]) * (j == 1 ? (fabs(x[i]) + fabs(mean)) * q : 1);
        }
        most = fmax(most, sum);
    }
    return most;
}

/* Implements `terms` of struct op (core/op.h): the size with which tests compare rounding errors. An element of a
 * result is a sum of terms. The function adds the magnitudes of these terms, and returns the largest sum. The result
 * itself would be too small, because terms may cancel: dx of layernorm is 0 if D = 1, and close to 0 if D = 2. For the
 * same reason the function uses |x| + |mean| in place of |x - mean|. In the forward pass, j = 0 is y and j = 1 is s = x
 * + branch. In backward, j is the input whose gradient is computed: 0 is x, 1 is w, 2 is b, 3 is branch. */
static double norm_terms(const struct call *c, enum pass pass, int j) {
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    const real *w = tensor_real(c->in[1]), *ds = sum_dout(c);
    double most = 0;
    if (pass == PASS_FORWARD && j == 1) return 0; /* s is a single addition, so it must be exact */
    if (j == 1 || j == 2) return vector_terms(c, j);
    for (int64_t r = 0; r < rows; r++) {
        const real *x = normed_rows(c) + r * D, *dy = pass == PASS_BACKWARD ? call_dout(c, 0) + r * D : NULL;
        double mean, q, sum_e = 0, sum_en = 0;
        statistics(c, x, &mean, &q);
        for (int64_t i = 0; i < D && dy; i++) {
            sum_e += fabs((double)dy[i] * w[i]);
            sum_en += fabs((double)dy[i] * w[i]) * (fabs(x[i]) + fabs(mean)) * q;
        }
        for (int64_t i = 0; i < D; i++) {
            double n = (fabs(x[i]) + fabs(mean)) * q;
            double y = n * fabs(w[i]) + (c->in[2] ? fabs(tensor_real(c->in[2])[i]) : 0);
            double mean_e = c->in[2] ? sum_e / (double)D : 0, beside = dy && ds ? fabs(ds[r * D + i]) : 0;
            most = fmax(most, dy ? q * (fabs((double)dy[i] * w[i]) + mean_e + n * sum_en / (double)D) + beside : y);
        }
    }
    return most;
}

/* Builds a call of a norm for the tests. Variant 0 has a small eps, variant 1 a large one. In variant 2 x needs no
 * gradient, in variant 3 w and b need none. */
static bool norm_build(struct graph *g, const struct op_sizes *s, bool layer) {
    if (s->variant > 3) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim), *w = input_vector(g, "w", s->dim);
    struct tensor *b = layer ? input_vector(g, "b", s->dim) : NULL;
    double eps = s->variant == 1 ? 0.1 : 1e-5;
    if (s->variant == 2) input_constant(x);
    if (s->variant == 3) input_constant(w), input_constant(b);
    if (layer)
        layernorm(g, x, w, b, eps);
    else
        rmsnorm(g, x, w, eps);
    return true;
}

/* Builds a call of add_norm for the tests. Even variants use RMSNorm, odd ones LayerNorm. All inputs need gradients,
 * with these exceptions: x in variants 2 and 4, branch in variants 3 and 4, w and b in variant 5. Variants 4 and 5 have
 * a large eps. */
static bool add_norm_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 5) return false;
    bool layer = s->variant % 2 == 1;
    struct tensor *x = input_tokens(g, s, "x", s->dim), *branch = input_tokens(g, s, "branch", s->dim), *sum;
    struct tensor *w = input_vector(g, "w", s->dim), *b = layer ? input_vector(g, "b", s->dim) : NULL;
    if (s->variant == 2 || s->variant == 4) input_constant(x);
    if (s->variant == 3 || s->variant == 4) input_constant(branch);
    if (s->variant == 5) input_constant(w), input_constant(b);
    add_norm(g, x, branch, w, b, s->variant > 3 ? 0.1 : 1e-5, &sum);
    return true;
}

static bool rmsnorm_build(struct graph *g, const struct op_sizes *s) {
    return norm_build(g, s, false);
}

static bool layernorm_build(struct graph *g, const struct op_sizes *s) {
    return norm_build(g, s, true);
}

const struct op op_rmsnorm = {
    .name = "rmsnorm",
    .maths = "y = x * rsqrt(mean(x^2) + eps) * w",
    .source = "Zhang & Sennrich 2019, arXiv 1910.07467, Eq. 4",
    .needs_in = 3,
    .infer = norm_infer,
    .cost = norm_cost,
    .terms = norm_terms,
    .sizes = "batch length dim",
    .build = rmsnorm_build,
};

const struct op op_layernorm = {
    .name = "layernorm",
    .maths = "y = (x - mean(x)) * rsqrt(var(x) + eps) * w + b",
    .source = "Ba, Kiros & Hinton 2016, arXiv 1607.06450, Eq. 4",
    .needs_in = 3,
    .infer = norm_infer,
    .cost = norm_cost,
    .terms = norm_terms,
    .sizes = "batch length dim",
    .build = layernorm_build,
};

const struct op op_add_norm = {
    .name = "add_norm",
    .maths = "s = x + branch, y = rmsnorm(s) or layernorm(s)",
    .source = "",
    .needs_in = 2,
    .needs_out = 2,
    .fuses = 1,
    .infer = norm_infer,
    .cost = norm_cost,
    .terms = norm_terms,
    .sizes = "batch length dim",
    .build = add_norm_build,
};

/* Computes s = x + branch. Only add_norm has a branch. */
static void sum_ref(const struct call *c) {
    if (!c->in[3]) return;
    const real *x = tensor_real(c->in[0]), *branch = tensor_real(c->in[3]);
    real *sum = tensor_real(c->out[1]);
    for (int64_t i = 0; i < tensor_count(c->in[0]); i++) sum[i] = x[i] + branch[i];
}

static void norm_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    const real *w = tensor_real(c->in[1]), *b = c->in[2] ? tensor_real(c->in[2]) : NULL;
    sum_ref(c);
    for (int64_t r = 0; r < rows; r++) {
        const real *x = normed_rows(c) + r * D;
        real *y = tensor_real(c->out[0]) + r * D;
        double mean, q;
        statistics(c, x, &mean, &q);
        for (int64_t i = 0; i < D; i++) y[i] = (real)((x[i] - mean) * q * w[i] + (b ? b[i] : 0));
    }
}

/* Computes row r of dx. In add_norm the branch has the same gradient as x. */
static void norm_ref_dx(const struct call *c, int64_t r, const real *x, const real *dy) {
    int64_t D = tensor_cols(c->in[0]);
    const real *w = tensor_real(c->in[1]), *ds = sum_dout(c);
    double mean, q, mean_e = 0, mean_en = 0;
    statistics(c, x, &mean, &q);
    for (int64_t i = 0; i < D; i++) {
        mean_e += (double)dy[i] * w[i] / (double)D;
        mean_en += (double)dy[i] * w[i] * (x[i] - mean) * q / (double)D;
    }
    if (!c->in[2]) mean_e = 0;
    for (int64_t i = 0; i < D; i++) {
        real d = (real)(q * ((double)dy[i] * w[i] - mean_e - (x[i] - mean) * q * mean_en));
        if (ds) d = ds[r * D + i] + d;
        if (c->din[0]) put(&c->din[0][r * D + i], call_accumulates(c, 0), d);
        if (c->din[3]) put(&c->din[3][r * D + i], call_accumulates(c, 3), d);
    }
}

/* dw and db, summed over the rows in double. */
struct sums {
    double *dw, *db;
};

static struct sums sums_of(const struct call *c, struct scratch *s) {
    int64_t D = tensor_cols(c->in[0]);
    double *dw = scratch_doubles(s, D);
    return (struct sums){dw, scratch_doubles(s, D)};
}

static size_t norm_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) sums_of(c, &s);
    return s.used;
}

static void norm_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct sums sum = sums_of(c, &s);
    for (int64_t i = 0; i < D; i++) sum.dw[i] = sum.db[i] = 0;
    for (int64_t r = 0; r < rows; r++) {
        const real *x = normed_rows(c) + r * D, *dy = call_dout(c, 0) + r * D;
        double mean, q;
        statistics(c, x, &mean, &q);
        for (int64_t i = 0; i < D; i++) {
            sum.dw[i] += dy[i] * (x[i] - mean) * q;
            sum.db[i] += dy[i];
        }
        norm_ref_dx(c, r, x, dy);
    }
    for (int64_t i = 0; i < D && c->din[1]; i++) put(&c->din[1][i], call_accumulates(c, 1), (real)sum.dw[i]);
    for (int64_t i = 0; i < D && c->din[2]; i++) put(&c->din[2][i], call_accumulates(c, 2), (real)sum.db[i]);
}

const struct kernel kernel_rmsnorm_ref = {
    .name = "rmsnorm_ref",
    .op = &op_rmsnorm,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = norm_ref_workspace,
    .forward = norm_ref_forward,
    .backward = norm_ref_backward,
};

const struct kernel kernel_layernorm_ref = {
    .name = "layernorm_ref",
    .op = &op_layernorm,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = norm_ref_workspace,
    .forward = norm_ref_forward,
    .backward = norm_ref_backward,
};

const struct kernel kernel_add_norm_ref = {
    .name = "add_norm_ref",
    .op = &op_add_norm,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = norm_ref_workspace,
    .forward = norm_ref_forward,
    .backward = norm_ref_backward,
};

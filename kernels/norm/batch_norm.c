/* batch_norm.c - batch normalisation over the rows of a batch that are in use: the op and its reference.
 *
 *   training:    mu, v = mean and biased variance of x over the N rows in use;  running <- m running + (1 - m) batch
 *   evaluation:  mu, v = the running mean and variance
 *   q = (v + eps)^-1/2   n = (x - mu) q   y = n w + b                       (Ioffe & Szegedy 2015, Alg. 1 and 2)
 * Gradients, with e = dy w and sums over all rows: dw = sum dy n;  db = sum dy;  dx = q (e - in_use / N (sum e + n
 * sum(e n))), where in_use is 1 for rows in use, else 0. If no row is in use, the batch has mean 0 and variance 1, and
 * the running values do not change. */
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/norm/batch_norm.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { X = BATCH_NORM_X, WEIGHT, BIAS, MEAN, VARIANCE, LENGTHS, INPUTS };

struct tensor *batch_norm(struct graph *g, struct tensor *x, const struct batch_norm *p) {
    struct batch_norm_attr attr = {.eps = p->eps, .momentum = p->momentum, .first = p->first};
    struct tensor *in[INPUTS] = {x, p->weight, p->bias, p->mean, p->variance, p->lengths};
    return call1(g, &op_batch_norm, &attr, sizeof attr, in, INPUTS);
}

static void batch_norm_infer(struct graph *g, struct call *c) {
    const struct batch_norm_attr *a = batch_norm_attr(c);
    const struct tensor *x = c->in[X], *n = c->in[LENGTHS];
    static const char *const names[] = {"x", "the weight", "the bias", "the mean", "the variance"};
    if (!infer_present(g, c, LENGTHS)) return;
    for (int i = WEIGHT; i < LENGTHS; i++)
        if (!infer_vector(g, c, x, c->in[i], names[i])) return;
    if (x->rank != 3)
        graph_fail(g, ST_USAGE, "batch_norm: x has rank %d, expected 3 (B,T,D)", x->rank);
    else if (n && (n->rank != 1 || n->dims[0] != x->dims[0]))
        graph_fail(g, ST_USAGE, "batch_norm: %" PRId64 " lengths do not fit %" PRId64 " sequences", tensor_count(n),
                   x->dims[0]);
    else if (!(a->eps >= 0) || !(a->momentum >= 0 && a->momentum <= 1))
        graph_fail(g, ST_USAGE, "batch_norm: eps is %g and momentum %g, expected at least 0, and 0 to 1", a->eps,
                   a->momentum);
    else
        graph_output(g, c, DT_REAL, 3, x->dims);
}

static int64_t batch_norm_table(const struct call *c, int32_t *to) {
    const struct batch_norm_attr *a = batch_norm_attr(c);
    int64_t T = c->in[X]->dims[1];
    if (a->first && to) memcpy(to, a->first, (size_t)T * sizeof *to);
    return a->first ? T : 0;
}

static struct cost batch_norm_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->out[0]), D = (double)tensor_cols(c->out[0]);
    if (pass == PASS_FORWARD) return (struct cost){6 * n, sizeof(real) * (2 * n + 4 * D)};
    return (struct cost){14 * n, sizeof(real) * (3 * n + 4 * D)};
}

/* Creates inputs. In variant 0 all rows are in use, in variant 1 the rows up to the lengths, in variant 2 rows by a
 * table `first`. */
static bool batch_norm_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 2) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim);
    struct batch_norm p = {.eps = 0.1, .momentum = 0.9};
    p.weight = input_vector(g, "w", s->dim);
    p.bias = input_vector(g, "b", s->dim);
    p.mean = input_constant(input_vector(g, "mean", s->dim));
    p.variance = input_constant(input_vector(g, "variance", s->dim));
    if (s->variant) p.lengths = input_lengths(g, s);
    if (s->variant == 2) {
        int32_t *first = input_table(g, s->length);
        for (int64_t t = 0; first && t < s->length; t++) first[t] = (int32_t)(t * t % s->length);
        p.first = first;
    }
    batch_norm(g, x, &p);
    return true;
}

/* Computes mean[D] and variance[D] of the rows in use, and returns the number of these rows. The sums have more digits
 * than double, because the reference must not round over thousands of rows. */
static int64_t batch_statistics(const struct call *c, double *mean, double *variance) {
    int64_t rows = tensor_rows(c->in[X]), D = tensor_cols(c->in[X]), n = 0;
    const real *x = tensor_real(c->in[X]);
    for (int64_t r = 0; r < rows; r++) n += batch_norm_in_use(c, r);
    for (int64_t d = 0; d < D; d++) {
        long double sum = 0, squares = 0;
        for (int64_t r = 0; r < rows; r++)
            if (batch_norm_in_use(c, r)) sum += x[r * D + d];
        long double mu = n ? sum / n : 0;
        for (int64_t r = 0; r < rows; r++)
            if (batch_norm_in_use(c, r)) squares += (x[r * D + d] - mu) * (x[r * D + d] - mu);
        mean[d] = (double)mu;
        variance[d] = n ? (double)(squares / n) : 1;
    }
    return n;
}

/* Magnitudes of the terms of one column: (|x| + |mean|) q, because the difference x - mean rounds like its two parts;
 * and the sums of |dy| and |dy n|. */
struct column_terms {
    double mean, q, dy, dyn;
};

static double normal_terms(struct column_terms k, real x) {
    return (fabs((double)x) + fabs(k.mean)) * k.q;
}

static struct column_terms column_terms(const struct call *c, int64_t d, double mean, double variance) {
    double eps = batch_norm_attr(c)->eps;
    int64_t rows = tensor_rows(c->in[X]), D = tensor_cols(c->in[X]);
    struct column_terms k = {.mean = mean, .q = 1 / sqrt(variance + eps)};
    for (int64_t r = 0; r < rows; r++) {
        double dy = fabs((double)call_dout(c, 0)[r * D + d]);
        k.dy += dy;
        k.dyn += dy * normal_terms(k, tensor_real(c->in[X])[r * D + d]);
    }
    return k;
}

/* Returns the largest terms of the gradients of x, weight and bias. */
static double batch_norm_terms(const struct call *c, enum pass pass, int j) {
    if (pass == PASS_FORWARD || j > BIAS) return 0;
    int64_t rows = tensor_rows(c->in[X]), D = tensor_cols(c->in[X]);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    double *mean = scratch_doubles(&s, D), *variance = scratch_doubles(&s, D), most = 0;
    double used = fmax(1, (double)batch_statistics(c, mean, variance));
    for (int64_t d = 0; d < D; d++) {
        struct column_terms k = column_terms(c, d, mean[d], variance[d]);
        if (j != X) most = fmax(most, j == WEIGHT ? k.dyn : k.dy);
        for (int64_t r = 0; j == X && r < rows; r++) {
            double dy = fabs((double)call_dout(c, 0)[r * D + d]);
            double through = (k.dy + normal_terms(k, tensor_real(c->in[X])[r * D + d]) * k.dyn) / used;
            most = fmax(most, k.q * fabs((double)tensor_real(c->in[WEIGHT])[d]) * (dy + through));
        }
    }
    return most;
}

const struct op op_batch_norm = {
    .name = "batch_norm",
    .maths = "y = (x - mean) * rsqrt(var + eps) * w + b over the rows in use of the batch",
    .source = "Ioffe & Szegedy 2015, arXiv 1502.03167, Alg. 1 and 2",
    .needs_in = 1 << X | 1 << WEIGHT | 1 << LENGTHS,
    .mutates = 1 << MEAN | 1 << VARIANCE,
    .table = batch_norm_table,
    .infer = batch_norm_infer,
    .cost = batch_norm_cost,
    .terms = batch_norm_terms,
    .sizes = "batch length dim",
    .build = batch_norm_build,
};

static void update_running(const struct call *c, const double *mean, const double *variance) {
    double m = batch_norm_attr(c)->momentum;
    real *run_mean = tensor_real(c->in[MEAN]), *run_variance = tensor_real(c->in[VARIANCE]);
    for (int64_t d = 0; d < tensor_count(c->in[MEAN]); d++) {
        run_mean[d] = (real)(m * run_mean[d] + (1 - m) * mean[d]);
        run_variance[d] = (real)(m * run_variance[d] + (1 - m) * variance[d]);
    }
}

/* Scratch for each column. Only backward has the sums over rows. */
struct columns {
    double *mean, *variance, *dy_sum, *dyn_sum;
};

static struct columns columns_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t D = tensor_cols(c->in[X]);
    struct columns k = {.mean = scratch_doubles(s, D)};
    k.variance = scratch_doubles(s, D);
    if (pass == PASS_FORWARD) return k;
    k.dy_sum = scratch_doubles(s, D);
    k.dyn_sum = scratch_doubles(s, D);
    return k;
}

static size_t batch_norm_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    columns_of(c, pass, &s);
    return s.used;
}

static void batch_norm_ref_forward(const struct call *c, const struct exec *exec) {
    const struct batch_norm_attr *a = batch_norm_attr(c);
    int64_t n = tensor_count(c->in[X]), D = tensor_cols(c->in[X]);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct columns k = columns_of(c, PASS_FORWARD, &s);
    double *mean = k.mean, *variance = k.variance;
    if (!exec->training) {
        for (int64_t d = 0; d < D; d++) {
            mean[d] = tensor_real(c->in[MEAN])[d];
            variance[d] = tensor_real(c->in[VARIANCE])[d];
        }
    } else if (batch_statistics(c, mean, variance) > 0) {
        update_running(c, mean, variance);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t d = i % D;
        double normal = (tensor_real(c->in[X])[i] - mean[d]) / sqrt(variance[d] + a->eps);
        tensor_real(c->out[0])[i] = (real)(normal * tensor_real(c->in[WEIGHT])[d] + tensor_real(c->in[BIAS])[d]);
    }
}

static void batch_norm_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    double eps = batch_norm_attr(c)->eps;
    int64_t n = tensor_count(c->in[X]), D = tensor_cols(c->in[X]);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct columns k = columns_of(c, PASS_BACKWARD, &s);
    double *mean = k.mean, *variance = k.variance, *dy_sum = k.dy_sum, *dyn_sum = k.dyn_sum;
    const real *x = tensor_real(c->in[X]), *w = tensor_real(c->in[WEIGHT]), *dy = call_dout(c, 0);
    int64_t N = batch_statistics(c, mean, variance);
    for (int64_t d = 0; d < D; d++) {
        long double sum = 0, sum_n = 0;
        for (int64_t i = d; i < n; i += D) {
            sum += dy[i];
            sum_n += (long double)dy[i] * (x[i] - mean[d]) / sqrt(variance[d] + eps);
        }
        dy_sum[d] = (double)sum;
        dyn_sum[d] = (double)sum_n;
    }
    for (int64_t d = 0; d < D; d++) {
        if (c->din[WEIGHT]) put(c->din[WEIGHT] + d, call_accumulates(c, WEIGHT), (real)dyn_sum[d]);
        if (c->din[BIAS]) put(c->din[BIAS] + d, call_accumulates(c, BIAS), (real)dy_sum[d]);
    }
    for (int64_t i = 0; c->din[X] && i < n; i++) {
        int64_t d = i % D;
        double q = 1 / sqrt(variance[d] + eps), normal = (x[i] - mean[d]) * q;
        double through = batch_norm_in_use(c, i / D) ? (dy_sum[d] + normal * dyn_sum[d]) / (double)N : 0;
        put(c->din[X] + i, call_accumulates(c, X), (real)(q * w[d] * (dy[i] - through)));
    }
}

const struct kernel kernel_batch_norm_ref = {
    .name = "batch_norm_ref",
    .op = &op_batch_norm,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = batch_norm_ref_workspace,
    .forward = batch_norm_ref_forward,
    .backward = batch_norm_ref_backward,
};

/* log_signature.c - log-signatures of intervals of a path, to depth 2 (log-ODE SLiCE): the op and its reference.
 *
 *   l = sum of d_n,   a_ij = 1/2 sum over n of (p_n,i d_n,j - p_n,j d_n,i)
 * with d_n the increments and p_n the sum of the increments before n.
 * Adjoint, Q the antisymmetric matrix with the gradient of a_ij at i < j: a's share of the loss is 1/2 sum over m < n
 * of d_m^T Q d_n, so that with r_n the sum of the increments after n
 *   dd_n = dl + 1/2 Q (r_n - p_n),   r_n - p_n = l - d_n - 2 p_n
 * The order of the a_ij is Hall's. */
#include "kernels/flow/log_signature.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"

#include <inttypes.h>

int64_t log_signature_size(int64_t C, int depth) {
    return depth == 1 ? C : C + C * (C - 1) / 2;
}

int64_t log_signature_intervals(int64_t T, int64_t interval) {
    return (T - 1 + interval - 1) / interval;
}

struct tensor *log_signature(struct graph *g, struct tensor *w, int64_t interval, int depth) {
    struct log_signature_attr attr = {.interval = interval, .depth = depth};
    return call1(g, &op_log_signature, &attr, sizeof attr, (struct tensor *[]){w}, 1);
}

static void log_signature_infer(struct graph *g, struct call *c) {
    const struct log_signature_attr *a = log_signature_attr(c);
    const struct tensor *w = c->in[0];
    if (!infer_present(g, c, 1)) return;
    if (w->rank != 3)
        graph_fail(g, ST_USAGE, "log_signature: w has rank %d, expected 3 (B,T,C)", w->rank);
    else if (a->interval < 1 || a->depth < 1 || a->depth > 2)
        graph_fail(g, ST_USAGE,
                   "log_signature: interval=%" PRId64 " and depth=%d, expected at least 1 step and depth 1 or 2",
                   a->interval, a->depth);
    else
        graph_output(g, c, DT_REAL, 3,
                     (int64_t[]){w->dims[0], 1 + log_signature_intervals(w->dims[1], a->interval),
                                 log_signature_size(w->dims[2], a->depth)});
}

/* Counts four operations per pair and step in both passes. The first step of an interval has no area. */
static struct cost log_signature_cost(const struct call *c, enum pass pass) {
    const struct log_signature_attr *a = log_signature_attr(c);
    double C = (double)c->in[0]->dims[2], B = (double)c->in[0]->dims[0], w = (double)tensor_count(c->in[0]);
    double s = (double)tensor_count(c->out[0]), steps = (double)c->in[0]->dims[1] - 1;
    double pairs = a->depth == 1 ? 0 : C * (C - 1) / 2, firsts = (double)c->out[0]->dims[1] - 1;
    if (pass == PASS_FORWARD) return (struct cost){B * (steps - firsts) * (C + 4 * pairs), sizeof(real) * (w + s)};
    double letters = a->depth == 1 ? 0 : 6 * C;
    return (struct cost){B * steps * (letters + 4 * pairs), sizeof(real) * (a->depth * w + s)};
}

/* In variant 0 the depth is 1, in variant 1 it is 2. */
static bool log_signature_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    log_signature(g, input_tokens(g, s, "w", s->dim), s->interval, s->variant ? 1 : 2);
    return true;
}

const struct op op_log_signature = {
    .name = "log_signature",
    .maths = "l = sum d_n, a_ij = 1/2 sum (p_n,i d_n,j - p_n,j d_n,i) over each interval of a path",
    .source = "SLiCE (arXiv 2505.17761), Log-ODE appendix; log-neural-cdes, data_dir/generate_paths.py",
    .needs_in = 1,
    .infer = log_signature_infer,
    .cost = log_signature_cost,
    .sizes = "batch length dim interval",
    .build = log_signature_build,
};

/* --- reference: one number after the other, sums in double -------------------------------------------------------- */

/* These return letter l_i and area a_ij of n increments d. */
static double letter(const real *d, int64_t C, int64_t n, int64_t i) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += d[k * C + i];
    return sum;
}

static double area(const real *d, int64_t C, int64_t n, int64_t i, int64_t j) {
    double pi = 0, pj = 0, sum = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += pi * d[k * C + j] - pj * d[k * C + i];
        pi += d[k * C + i];
        pj += d[k * C + j];
    }
    return sum / 2;
}

static void log_signature_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct log_signature_attr *a = log_signature_attr(c);
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], rows = c->out[0]->dims[1], S = c->out[0]->dims[2];
    for (int64_t r = 0; r < c->in[0]->dims[0] * rows; r++) {
        real *s = tensor_real(c->out[0]) + r * S, *pair = s + C;
        struct range steps = r % rows ? interval_at(T, a->interval, r % rows) : (struct range){0, 0};
        const real *d = tensor_real(c->in[0]) + (r / rows * T + steps.begin) * C;
        int64_t n = steps.end - steps.begin;
        for (int64_t i = 0; i < C; i++) s[i] = (real)letter(d, C, n, i);
        for (int64_t i = 0; a->depth == 2 && i < C; i++)
            for (int64_t j = i + 1; j < C; j++) *pair++ = (real)area(d, C, n, i, j);
    }
}

/* Scratch: l, and p_n of the current step. */
static size_t log_signature_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int i = 0; i < 2 && pass == PASS_BACKWARD; i++) scratch_doubles(&s, tensor_cols(c->in[0]));
    return s.used;
}

/* Computes the gradients of the steps of interval k of sequence b from ds. */
static void ref_interval_gradient(const struct call *c, int64_t b, int64_t k, double *l, double *p) {
    const struct log_signature_attr *a = log_signature_attr(c);
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2];
    const real *ds = call_dout(c, 0) + (b * c->out[0]->dims[1] + k) * c->out[0]->dims[2];
    struct range steps = interval_at(T, a->interval, k);
    for (int64_t i = 0; i < C; i++) {
        l[i] = letter(tensor_real(c->in[0]) + (b * T + steps.begin) * C, C, steps.end - steps.begin, i);
        p[i] = 0;
    }
    for (int64_t t = steps.begin; t < steps.end; t++) {
        const real *d = tensor_real(c->in[0]) + (b * T + t) * C;
        for (int64_t i = 0; i < C; i++) {
            double sum = ds[i];
            for (int64_t j = 0; a->depth == 2 && j < C; j++)
                sum += antisymmetric_at(C, ds + C, i, j) * (l[j] - d[j] - 2 * p[j]) / 2;
            put(c->din[0] + (b * T + t) * C + i, call_accumulates(c, 0), (real)sum);
        }
        for (int64_t i = 0; i < C; i++) p[i] += d[i];
    }
}

static void log_signature_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], rows = c->out[0]->dims[1];
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    double *l = scratch_doubles(&s, C), *p = scratch_doubles(&s, C);
    for (int64_t b = 0; b < c->in[0]->dims[0] && c->din[0]; b++) {
        for (int64_t i = 0; i < C; i++) put(c->din[0] + b * T * C + i, call_accumulates(c, 0), 0);
        for (int64_t k = 1; k < rows; k++) ref_interval_gradient(c, b, k, l, p);
    }
}

const struct kernel kernel_log_signature_ref = {
    .name = "log_signature_ref",
    .op = &op_log_signature,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = log_signature_ref_workspace,
    .forward = log_signature_ref_forward,
    .backward = log_signature_ref_backward,
};

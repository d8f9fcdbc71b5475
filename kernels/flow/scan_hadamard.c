/* scan_hadamard.c - the homogeneous recurrence with a Walsh-Hadamard generator (SLiCE): the op and its reference.
 *
 *   y_t = y_{t-1} + H (d_t * y_{t-1}),   H[i][j] = (-1)^popcount(i & j) / sqrt(D) = H^T = H^-1,   y_0 given
 * With `clip`, a step's move s becomes c tanh(s / c) (clip.h); the G in H G is then the gradient of s. Gradients, with
 * o_t the incoming gradient of y_t:
 *   G_t = o_t + G_{t+1} + d_{t+1} * (H G_{t+1});   dd_t = (H G_t) * y_{t-1} for t > 0, dd_0 = 0;   dy0 = G_0 */
#include "kernels/flow/clip.h"
#include "kernels/flow/flow_output.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct tensor *scan_hadamard(struct graph *g, struct tensor *d, struct tensor *y0, double clip) {
    struct flow_attr attr = {.clip = clip};
    return call1(g, &op_scan_hadamard, &attr, sizeof attr, (struct tensor *[]){d, y0}, 2);
}

static void scan_hadamard_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    int64_t D = tensor_cols(c->in[0]);
    if (D & (D - 1))
        graph_fail(g, ST_USAGE, "scan_hadamard: d has %" PRId64 " columns, expected a power of two", D);
    else
        flow_output(g, c, (int64_t[]){D}, 1, c->in[1], D);
}

static struct cost scan_hadamard_cost(const struct call *c, enum pass pass) {
    double y = (double)tensor_count(c->out[0]), levels = log2((double)tensor_cols(c->in[0]));
    if (pass == PASS_FORWARD) return (struct cost){(3 + levels) * y, sizeof(real) * 2 * y};
    return (struct cost){(5 + levels) * y, sizeof(real) * 4 * y};
}

/* Creates inputs whose width is the largest power of two up to dim. Variant 1 has short sequences and a bound that some
 * steps exceed. */
static bool scan_hadamard_build(struct graph *g, const struct op_sizes *s) {
    int64_t D = 1;
    struct op_sizes bounded = flow_trial_sizes(s);
    if (s->variant > 1) return false;
    if (s->variant == 1) s = &bounded;
    while (2 * D <= s->dim) D *= 2;
    struct tensor *d = input_tokens(g, s, "d", D);
    scan_hadamard(g, d, input_matrix(g, "y0", s->batch, D), s->variant ? FLOW_TRIAL_CLIP : 0);
    return true;
}

const struct op op_scan_hadamard = {
    .name = "scan_hadamard",
    .maths = "y_t = y_{t-1} + H (d_t * y_{t-1}), H Sylvester-Hadamard / sqrt(D), y_0 given",
    .source = "SLiCE (Walker et al. 2025, arXiv 2505.17761); structured-linear-cdes, models/slcde.py",
    .needs_in = 1,
    .needs_out = 1,
    .infer = scan_hadamard_infer,
    .cost = scan_hadamard_cost,
    .terms = flow_terms,
    .sizes = "batch length dim",
    .build = scan_hadamard_build,
};

/* --- reference: H element by element, sums in double -------------------------------------------------------------- */

/* Returns row i of H times x. */
static double hadamard_row(int64_t D, int64_t i, const double *x) {
    double sum = 0;
    for (int64_t j = 0; j < D; j++) sum += __builtin_parityll((unsigned long long)(i & j)) ? -x[j] : x[j];
    return sum / sqrt((double)D);
}

static double clip_of(const struct call *c) {
    return flow_attr(c)->clip;
}

static size_t scan_hadamard_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int i = 0; i < (pass == PASS_FORWARD ? 1 : 3); i++) scratch_doubles(&s, tensor_cols(c->in[0]));
    return s.used;
}

static void scan_hadamard_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    double *product = c->scratch[PASS_FORWARD];
    for (int64_t token = 0; token < B * T; token++) {
        const real *d = tensor_real(c->in[0]) + token * D;
        real *y = tensor_real(c->out[0]) + token * D;
        bool first = token % T == 0;
        const real *before = first ? tensor_real(c->in[1]) + token / T * D : y - D;
        for (int64_t i = 0; i < D; i++) product[i] = (double)d[i] * before[i];
        for (int64_t i = 0; i < D; i++)
            y[i] = first ? before[i] : (real)clipped(before[i] + hadamard_row(D, i, product), before[i], clip_of(c));
    }
}

static void scan_hadamard_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    double *G = scratch_doubles(&s, D), *next = scratch_doubles(&s, D), *moved = scratch_doubles(&s, D);
    for (int64_t b = 0; b < B; b++) {
        memset(next, 0, (size_t)D * sizeof *next);
        for (int64_t t = T - 1; t >= 0; t--) {
            int64_t at = (b * T + t) * D;
            const real *y = tensor_real(c->out[0]) + at;
            for (int64_t i = 0; i < D; i++) G[i] = next[i] + call_dout(c, 0)[at + i];
            for (int64_t i = 0; i < D; i++) moved[i] = t > 0 ? G[i] * clip_slope(y[i], y[i - D], clip_of(c)) : 0;
            for (int64_t i = 0; i < D; i++) {
                double p = t > 0 ? hadamard_row(D, i, moved) : 0;
                next[i] = G[i] + tensor_real(c->in[0])[at + i] * p;
                double dd = t > 0 ? p * y[i - D] : 0;
                if (c->din[0]) put(c->din[0] + at + i, call_accumulates(c, 0), (real)dd);
            }
        }
        for (int64_t i = 0; c->din[1] && i < D; i++) put(c->din[1] + b * D + i, call_accumulates(c, 1), (real)G[i]);
    }
}

const struct kernel kernel_scan_hadamard_ref = {
    .name = "scan_hadamard_ref",
    .op = &op_scan_hadamard,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_hadamard_ref_workspace,
    .forward = scan_hadamard_ref_forward,
    .backward = scan_hadamard_ref_backward,
};

/* scan_dplr.c - the homogeneous recurrence with a diagonal-plus-low-rank generator (SLiCE): the op and its reference.
 *
 *   z = V_t^T y_{t-1};   y_t = y_{t-1} + d_t * y_{t-1} + U_t z,   y_0 given
 * With `clip`, a step's move s becomes c tanh(s / c) (clip.h); the G that multiplies d, U and V is then the gradient of
 * s. Gradients, with o_t the incoming gradient of y_t and p = U_t^T G_t:
 *   dd_t = G_t * y_{t-1};   dU_t = G_t z^T;   dV_t = y_{t-1} p^T for t > 0, all 0 at t = 0;   dy0 = G_0
 *   G_{t-1} = o_{t-1} + G_t + d_t * G_t + V_t p,   G_{T-1} = o_{T-1} */
#include "kernels/flow/clip.h"
#include "kernels/flow/flow_output.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"

#include <inttypes.h>
#include <string.h>

struct tensor *scan_dplr(struct graph *g, struct tensor *d, struct tensor *u, struct tensor *v, struct tensor *y0,
                         double clip) {
    struct flow_attr attr = {.clip = clip};
    return call1(g, &op_scan_dplr, &attr, sizeof attr, (struct tensor *[]){d, u, v, y0}, 4);
}

static void scan_dplr_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 4)) return;
    int64_t D = tensor_cols(c->in[0]), rD = tensor_cols(c->in[1]);
    if (rD % D != 0)
        graph_fail(g, ST_USAGE, "scan_dplr: u has %" PRId64 " columns, expected a multiple of the %" PRId64 " of d", rD,
                   D);
    else
        flow_output(g, c, (int64_t[]){D, rD, rD}, 3, c->in[3], D);
}

static struct cost scan_dplr_cost(const struct call *c, enum pass pass) {
    double d = (double)tensor_count(c->in[0]), u = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){3 * d + 4 * u, sizeof(real) * (2 * d + 2 * u)};
    return (struct cost){4 * d + 8 * u, sizeof(real) * (4 * d + 4 * u)};
}

/* Creates inputs of rank m. Variant 1 has short sequences and a bound that some steps exceed. */
static bool scan_dplr_build(struct graph *g, const struct op_sizes *s) {
    struct op_sizes bounded = flow_trial_sizes(s);
    if (s->variant > 1) return false;
    if (s->variant == 1) s = &bounded;
    struct tensor *d = input_tokens(g, s, "d", s->dim), *u = input_tokens(g, s, "u", s->m * s->dim);
    struct tensor *v = input_tokens(g, s, "v", s->m * s->dim);
    scan_dplr(g, d, u, v, input_matrix(g, "y0", s->batch, s->dim), s->variant ? FLOW_TRIAL_CLIP : 0);
    return true;
}

const struct op op_scan_dplr = {
    .name = "scan_dplr",
    .maths = "y_t = y_{t-1} + d_t * y_{t-1} + U_t V_t^T y_{t-1}, y_0 given",
    .source = "SLiCE (Walker et al. 2025, arXiv 2505.17761); structured-linear-cdes, models/slcde.py",
    .needs_in = 7,
    .needs_out = 1,
    .infer = scan_dplr_infer,
    .cost = scan_dplr_cost,
    .terms = flow_terms,
    .sizes = "batch length dim m",
    .build = scan_dplr_build,
};

/* --- reference: one sequence after the other, sums in double ------------------------------------------------------ */

static double dot_product(int64_t n, const real *a, const double *b) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double clip_of(const struct call *c) {
    return flow_attr(c)->clip;
}

/* Scratch: two vectors of D numbers, in backward three. */
static size_t scan_dplr_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int i = 0; i < (pass == PASS_FORWARD ? 2 : 3); i++) scratch_doubles(&s, tensor_cols(c->in[0]));
    return s.used;
}

static void scan_dplr_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], r = c->in[1]->dims[2] / D;
    struct scratch s = scratch_of(c, PASS_FORWARD);
    double *before = scratch_doubles(&s, D), *after = scratch_doubles(&s, D);
    for (int64_t token = 0; token < B * T; token++) {
        const real *d = tensor_real(c->in[0]) + token * D, *u = tensor_real(c->in[1]) + token * r * D;
        const real *v = tensor_real(c->in[2]) + token * r * D;
        real *y = tensor_real(c->out[0]) + token * D;
        bool first = token % T == 0;
        const real *last = first ? tensor_real(c->in[3]) + token / T * D : y - D;
        for (int64_t i = 0; i < D; i++) before[i] = after[i] = last[i];
        for (int64_t i = 0; i < D && !first; i++) after[i] += d[i] * before[i];
        for (int64_t q = 0; q < r && !first; q++) {
            double z = dot_product(D, v + q * D, before);
            for (int64_t i = 0; i < D; i++) after[i] += u[q * D + i] * z;
        }
        for (int64_t i = 0; i < D; i++) y[i] = (real)(first ? after[i] : clipped(after[i], before[i], clip_of(c)));
    }
}

static void put_at(const struct call *c, int input, int64_t at, double value) {
    if (c->din[input]) put(c->din[input] + at, call_accumulates(c, input), (real)value);
}

/* Computes one step t > 0: writes the gradients of d, u, v at `token`, and writes the gradient that flows to the
 * previous state to `next`. `moved` is scratch for the gradient of the step's move. */
static void ref_backward_step(const struct call *c, int64_t token, const double *G, double *moved, double *next) {
    int64_t D = c->in[0]->dims[2], r = c->in[1]->dims[2] / D;
    const real *d = tensor_real(c->in[0]) + token * D, *before = tensor_real(c->out[0]) + (token - 1) * D;
    for (int64_t i = 0; i < D; i++) {
        moved[i] = G[i] * clip_slope(before[D + i], before[i], clip_of(c));
        next[i] = G[i] + d[i] * moved[i];
        put_at(c, 0, token * D + i, moved[i] * before[i]);
    }
    for (int64_t q = 0; q < r; q++) {
        int64_t row = token * r * D + q * D;
        const real *v = tensor_real(c->in[2]) + row;
        double p = dot_product(D, tensor_real(c->in[1]) + row, moved), z = 0;
        for (int64_t i = 0; i < D; i++) z += (double)v[i] * before[i];
        for (int64_t i = 0; i < D; i++) {
            next[i] += v[i] * p;
            put_at(c, 1, row + i, moved[i] * z);
            put_at(c, 2, row + i, before[i] * p);
        }
    }
}

static void scan_dplr_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2], r = c->in[1]->dims[2] / D;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    double *G = scratch_doubles(&s, D), *next = scratch_doubles(&s, D), *moved = scratch_doubles(&s, D);
    for (int64_t b = 0; b < B; b++) {
        memset(next, 0, (size_t)D * sizeof *next);
        for (int64_t t = T - 1; t >= 0; t--) {
            for (int64_t i = 0; i < D; i++) G[i] = next[i] + call_dout(c, 0)[(b * T + t) * D + i];
            if (t > 0) ref_backward_step(c, b * T + t, G, moved, next);
        }
        for (int64_t i = 0; i < D; i++) {
            put_at(c, 0, b * T * D + i, 0);
            put_at(c, 3, b * D + i, G[i]);
        }
        for (int64_t i = 0; i < r * D; i++) {
            put_at(c, 1, b * T * r * D + i, 0);
            put_at(c, 2, b * T * r * D + i, 0);
        }
    }
}

const struct kernel kernel_scan_dplr_ref = {
    .name = "scan_dplr_ref",
    .op = &op_scan_dplr,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_dplr_ref_workspace,
    .forward = scan_dplr_ref_forward,
    .backward = scan_dplr_ref_backward,
};

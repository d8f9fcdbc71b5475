/* scan_flow.c - the homogeneous recurrence with a block-diagonal generator (SLiCE): the op and its reference.
 *
 *   y_t[k] = y_{t-1}[k] + A_t[k] y_{t-1}[k] for each block k of m states,   y_0 given
 * With `clip`, a step's move s becomes c tanh(s / c) (clip.h); the G that multiplies A and y is then the gradient of s.
 * Gradients, with o_t the incoming gradient of y_t:
 *   G_t = o_t + (I + A_{t+1})^T G_{t+1};   dA_t[i][j] = G_t[i] y_{t-1}[j] for t > 0, dA_0 = 0;   dy0 = G_0
 * The matrix of step t is I + A_t, not A_t, so that small increments keep their digits next to the 1. */
#include "kernels/flow/clip.h"
#include "kernels/flow/flow_output.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"

#include <inttypes.h>
#include <string.h>

struct tensor *scan_flow(struct graph *g, struct tensor *a, struct tensor *y0, int64_t N, int64_t m, double clip) {
    struct flow_attr attr = {N, m, clip};
    return call1(g, &op_scan_flow, &attr, sizeof attr, (struct tensor *[]){a, y0}, 2);
}

void flow_output(struct graph *g, struct call *c, const int64_t *columns, int n, const struct tensor *y0, int64_t D) {
    const struct tensor *first = c->in[0];
    if (y0->rank != 2 || tensor_cols(y0) != D) {
        graph_fail(g, ST_USAGE, "%s: y0 has %d axes and %" PRId64 " columns, expected 2 and %" PRId64, c->op->name,
                   y0->rank, tensor_cols(y0), D);
        return;
    }
    for (int i = 0; i < n; i++) {
        const struct tensor *t = c->in[i];
        if (t->rank != 3 || t->dims[2] != columns[i])
            graph_fail(g, ST_USAGE, "%s: input %d has %d axes and %" PRId64 " columns, expected 3 and %" PRId64,
                       c->op->name, i, t->rank, tensor_cols(t), columns[i]);
        else if (t->dims[0] != y0->dims[0] || t->dims[1] != first->dims[1])
            graph_fail(g, ST_USAGE,
                       "%s: input %d is (%" PRId64 ",%" PRId64 ") in batch and length, expected (%" PRId64 ",%" PRId64
                       ")",
                       c->op->name, i, t->dims[0], t->dims[1], y0->dims[0], first->dims[1]);
        else
            continue;
        return;
    }
    graph_output(g, c, DT_REAL, 3, (int64_t[]){first->dims[0], first->dims[1], D});
}

static void scan_flow_infer(struct graph *g, struct call *c) {
    const struct flow_attr *a = flow_attr(c);
    if (!infer_present(g, c, 2)) return;
    if (a->N < 1 || a->m < 1)
        graph_fail(g, ST_USAGE, "scan_flow: blocks=%" PRId64 " and m=%" PRId64 " must both be at least 1", a->N, a->m);
    else
        flow_output(g, c, (int64_t[]){a->m * a->m * a->N}, 1, c->in[1], a->m * a->N);
}

static struct cost scan_flow_cost(const struct call *c, enum pass pass) {
    double a = (double)tensor_count(c->in[0]), y = (double)tensor_count(c->out[0]);
    if (pass == PASS_FORWARD) return (struct cost){2 * a + y, sizeof(real) * (a + y)};
    return (struct cost){3 * a + 2 * y, sizeof(real) * (2 * a + 2 * y)};
}

/* Creates inputs. Variant 1 has short sequences and a bound that some steps exceed. */
static bool scan_flow_build(struct graph *g, const struct op_sizes *s) {
    int64_t N = s->blocks, m = s->m;
    struct op_sizes bounded = flow_trial_sizes(s);
    if (s->variant > 1) return false;
    if (s->variant == 1) s = &bounded;
    struct tensor *a = input_tokens(g, s, "a", m * m * N);
    scan_flow(g, a, input_matrix(g, "y0", s->batch, m * N), N, m, s->variant ? FLOW_TRIAL_CLIP : 0);
    return true;
}

static struct heads scan_flow_heads(const struct call *c) {
    const struct flow_attr *a = flow_attr(c);
    return (struct heads){a->N, {1, a->m}, {a->m}};
}

const struct op op_scan_flow = {
    .name = "scan_flow",
    .maths = "y_t = y_{t-1} + A_t y_{t-1} per block, y_0 given",
    .source = "SLiCE (Walker et al. 2025, arXiv 2505.17761); structured-linear-cdes, models/slcde.py",
    .needs_in = 1,
    .needs_out = 1,
    .infer = scan_flow_infer,
    .cost = scan_flow_cost,
    .heads = scan_flow_heads,
    .terms = flow_terms,
    .sizes = "batch length blocks m",
    .build = scan_flow_build,
};

/* --- reference: one block after the other, sums in double --------------------------------------------------------- */

static void scan_flow_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct flow_attr *at = flow_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], N = at->N, m = at->m, D = N * m;
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++)
            for (int64_t k = 0; k < N; k++) {
                const real *a = tensor_real(c->in[0]) + (b * T + t) * m * D + k;
                real *y = tensor_real(c->out[0]) + (b * T + t) * D + k * m;
                const real *before = t ? y - D : tensor_real(c->in[1]) + b * D + k * m;
                for (int64_t i = 0; i < m; i++) {
                    double sum = before[i];
                    for (int64_t j = 0; j < m && t > 0; j++) sum += (double)a[(i * m + j) * N] * before[j];
                    y[i] = (real)clipped(sum, before[i], at->clip);
                }
            }
}

/* Scratch: G_t of one block, and the sum that becomes G_{t-1}. */
static size_t scan_flow_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    for (int i = 0; i < 2 && pass == PASS_BACKWARD; i++) scratch_doubles(&s, flow_attr(c)->m);
    return s.used;
}

/* Computes one block at one step t > 0: writes da_t, and writes (I + A_t)^T G to `next`. */
static void ref_backward_step(const struct call *c, int64_t token, int64_t k, const double *G, double *next) {
    const struct flow_attr *at = flow_attr(c);
    int64_t N = at->N, m = at->m, D = N * m;
    const real *a = tensor_real(c->in[0]) + token * m * D + k;
    const real *before = tensor_real(c->out[0]) + (token - 1) * D + k * m;
    for (int64_t j = 0; j < m; j++) next[j] = G[j];
    for (int64_t i = 0; i < m; i++) {
        double moved = G[i] * clip_slope(before[D + i], before[i], at->clip);
        for (int64_t j = 0; j < m; j++) {
            next[j] += a[(i * m + j) * N] * moved;
            if (c->din[0])
                put(c->din[0] + (token * m * m + i * m + j) * N + k, call_accumulates(c, 0), (real)(moved * before[j]));
        }
    }
}

static void scan_flow_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct flow_attr *at = flow_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], N = at->N, m = at->m, D = N * m;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    double *G = scratch_doubles(&s, m), *next = scratch_doubles(&s, m);
    for (int64_t b = 0; b < B; b++) {
        for (int64_t k = 0; k < N; k++) {
            memset(next, 0, (size_t)m * sizeof *next);
            for (int64_t t = T - 1; t >= 0; t--) {
                for (int64_t i = 0; i < m; i++) G[i] = next[i] + call_dout(c, 0)[(b * T + t) * D + k * m + i];
                if (t > 0) ref_backward_step(c, b * T + t, k, G, next);
            }
            for (int64_t i = 0; c->din[1] && i < m; i++)
                put(c->din[1] + b * D + k * m + i, call_accumulates(c, 1), (real)G[i]);
        }
        for (int64_t i = 0; c->din[0] && !call_accumulates(c, 0) && i < m * D; i++) c->din[0][b * T * m * D + i] = 0;
    }
}

const struct kernel kernel_scan_flow_ref = {
    .name = "scan_flow_ref",
    .op = &op_scan_flow,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_flow_ref_workspace,
    .forward = scan_flow_ref_forward,
    .backward = scan_flow_ref_backward,
};

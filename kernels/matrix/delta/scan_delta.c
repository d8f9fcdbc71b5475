/* scan_delta.c - the delta rule with steps and decay (DeltaNet, Gated DeltaNet, DeltaProduct): the op and its
 * reference.
 *
 *   S' = decay_t S_{t-1};   steps j:  e = v_j - S'^T k_j,  S' <- S' + k_j (b e)^T,  b = rate beta_j
 *   S_t = S';   o_t = scale S_t^T q_t
 * Adjoint, G the gradient of the state, w = scale do_t:
 *   dq = scale S_t do;  G += q w^T;  steps in reverse, S' the state before the step:
 *     u = G^T k,  dbeta = rate u.e,  dv = b u,  dk = b G e - S' dv,  G <- G - k dv^T
 *   ddecay = <G, S_{t-1}>;  G <- decay G */
#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/state.h"

struct tensor *scan_delta(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *beta,
                          struct tensor *decay, const struct delta_attr *attr) {
    struct tensor *in[DELTA_INPUTS] = {q, k, v, beta, decay};
    return call1(g, &op_scan_delta, attr, sizeof *attr, in, DELTA_INPUTS);
}

static void scan_delta_infer(struct graph *g, struct call *c) {
    const struct delta_attr *a = delta_attr(c);
    if (!infer_present(g, c, DELTA_DECAY)) return;
    int64_t H = a->heads, n = a->steps, q = token_width(c->in[DELTA_Q]), v = token_width(c->in[DELTA_V]);
    if (H < 1 || n < 1)
        graph_fail(g, ST_USAGE, "scan_delta: heads=%" PRId64 " and steps=%" PRId64 " must both be at least 1", H, n);
    else if (q % H != 0)
        graph_fail(g, ST_USAGE, "scan_delta: q is %" PRId64 " wide, not divisible by heads=%" PRId64, q, H);
    else if (v % (n * H) != 0)
        graph_fail(g, ST_USAGE, "scan_delta: v is %" PRId64 " wide, not divisible by steps*heads = %" PRId64, v, n * H);
    else if (infer_token_width(g, c, DELTA_K, n * q, "steps times the width of q") &&
             infer_token_width(g, c, DELTA_V, v, "itself") &&
             infer_token_width(g, c, DELTA_BETA, n * H, "steps*heads") &&
             infer_token_width(g, c, DELTA_DECAY, H, "heads")) {
        struct state_shape s = delta_shape(c);
        infer_state_outputs(g, c, &s);
    }
}

/* A head and step: 4 FLOPs an element of the state forward (S^T k and the update), 12 backward (both again, u, dk
 * twice, G); a token: 2 and 4 for the readout, and 1 and 4 for the decay. */
static struct cost scan_delta_cost(const struct call *c, enum pass pass) {
    struct state_shape s = delta_shape(c);
    double state = (double)(s.B * s.T) * (double)(s.heads * s.dk * s.dv), inputs = 0, steps = (double)s.steps;
    for (int i = 0; i < DELTA_INPUTS; i++) inputs += c->in[i] ? (double)tensor_count(c->in[i]) : 0;
    double o = (double)tensor_count(c->out[0]), kept = (double)tensor_count(c->out[1]);
    bool decays = c->in[DELTA_DECAY];
    if (pass == PASS_FORWARD)
        return (struct cost){(4 * steps + 2 + (decays ? 1 : 0)) * state, sizeof(real) * (inputs + o + kept)};
    return (struct cost){(12 * steps + 4 + (decays ? 4 : 0)) * state, sizeof(real) * (2 * inputs + o + kept)};
}

/* Keys in [-0.7,0.7), as `lrnn perf` makes them, are about sqrt(dk / 6) long: the rate keeps I - rate beta k k^T from
 * growing the state. Variants: with decay; without it; rate 1, of which whole numbers come. */
static bool scan_delta_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 2) return false;
    struct op_sizes steps = *s;
    steps.heads = s->substeps * s->heads;
    struct delta_attr attr = {s->heads, s->substeps, 1 / sqrt((double)s->dk), 1 / (double)s->dk};
    if (s->variant == 2) attr.scale = attr.rate = 1;
    struct tensor *q = input_heads(g, s, "q", s->dk), *k = input_heads(g, &steps, "k", s->dk);
    struct tensor *v = input_heads(g, &steps, "v", s->dv), *beta = input_heads(g, &steps, "beta", 1);
    scan_delta(g, q, k, v, beta, s->variant == 0 ? input_heads(g, s, "decay", 1) : NULL, &attr);
    return true;
}

static struct heads scan_delta_heads(const struct call *c) {
    struct state_shape s = delta_shape(c);
    return (struct heads){s.heads, {s.dk, s.dk, s.dv, 1, 1}, {s.dv, s.dk * s.dv}};
}

const struct op op_scan_delta = {
    .name = "scan_delta",
    .maths = "S <- decay S; steps: S <- S + k (rate beta (v - S^T k))^T; o_t = scale S^T q",
    .source = "DeltaNet (Yang et al. 2024), DeltaProduct (Siems et al. 2025); fla-org/flash-linear-attention",
    .needs_in = 31,
    .needs_out = 2,
    .infer = scan_delta_infer,
    .cost = scan_delta_cost,
    .heads = scan_delta_heads,
    .sizes = "batch length heads dk dv substeps",
    .build = scan_delta_build,
};

/* --- reference: one head after the other, states in double, all of them kept in backward -------------------------- */

static double rate_of(const struct call *c) {
    return delta_attr(c)->rate;
}

static double decay_at(const struct call *c, int64_t token, int64_t h) {
    return c->in[DELTA_DECAY] ? *value_row(c, DELTA_DECAY, token, h, 1) : 1;
}

/* after = f before; e = v - after^T k; after += k (b e)^T. after may be before. */
static void ref_step(const struct call *c, const struct state_shape *s, int64_t token, int64_t row, double f,
                     const double *before, double *after, double *e) {
    const real *k = value_row(c, DELTA_K, token, row, s->dk), *v = value_row(c, DELTA_V, token, row, s->dv);
    double b = rate_of(c) * *value_row(c, DELTA_BETA, token, row, 1);
    for (int64_t j = 0; j < s->dv; j++) {
        e[j] = v[j];
        for (int64_t i = 0; i < s->dk; i++) e[j] -= f * before[i * s->dv + j] * k[i];
        for (int64_t i = 0; i < s->dk; i++) after[i * s->dv + j] = f * before[i * s->dv + j] + k[i] * b * e[j];
    }
}

/* Forward the state and the error of a step; backward states and errors of all steps, the state after the last too, the
 * state's gradient and a row. */
struct ref_states {
    double *S, *e, *G, *u;
};

static struct ref_states ref_states_of(const struct call *c, enum pass pass, struct scratch *scratch) {
    struct state_shape s = delta_shape(c);
    int64_t steps = pass == PASS_FORWARD ? 1 : s.T * s.steps, n = s.dk * s.dv;
    struct ref_states r = {.S = scratch_doubles(scratch, (pass == PASS_FORWARD ? 1 : steps + 1) * n)};
    r.e = scratch_doubles(scratch, steps * s.dv);
    if (pass == PASS_FORWARD) return r;
    r.G = scratch_doubles(scratch, n);
    r.u = scratch_doubles(scratch, s.dv);
    return r;
}

static size_t scan_delta_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    ref_states_of(c, pass, &s);
    return s.used;
}

static void scan_delta_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct delta_attr *a = delta_attr(c);
    struct state_shape s = delta_shape(c);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct ref_states r = ref_states_of(c, PASS_FORWARD, &scratch);
    double *S = r.S, *e = r.e;
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t h = 0; h < s.heads; h++) {
            memset(S, 0, (size_t)(s.dk * s.dv) * sizeof *S);
            for (int64_t t = 0; t < s.T; t++) {
                int64_t token = b * s.T + t;
                real *kept = kept_state(c, &s, b, t / STATE_CHUNK, h);
                for (int64_t i = 0; t % STATE_CHUNK == 0 && i < s.dk * s.dv; i++) kept[i] = (real)S[i];
                for (int64_t j = 0; j < s.steps; j++)
                    ref_step(c, &s, token, j * s.heads + h, j ? 1 : decay_at(c, token, h), S, S, e);
                const real *q = value_row(c, DELTA_Q, token, h, s.dk);
                for (int64_t j = 0; j < s.dv; j++) {
                    double sum = 0;
                    for (int64_t i = 0; i < s.dk; i++) sum += q[i] * S[i * s.dv + j];
                    tensor_real(c->out[0])[(token * s.heads + h) * s.dv + j] = (real)(a->scale * sum);
                }
            }
        }
}

/* One step in reverse: S the state before it, f the decay before it, e its error. u: dv reals of scratch. */
static void ref_backward_step(const struct call *c, const struct state_shape *s, int64_t token, int64_t row, double f,
                              const double *S, const double *e, double *G, double *u) {
    int64_t dk = s->dk, dv = s->dv;
    const real *k = value_row(c, DELTA_K, token, row, dk);
    real *dkey = gradient_row(c, DELTA_K, token, row, dk), *dvalue = gradient_row(c, DELTA_V, token, row, dv);
    real *dbeta = gradient_row(c, DELTA_BETA, token, row, 1);
    double b = rate_of(c) * *value_row(c, DELTA_BETA, token, row, 1), ue = 0;
    for (int64_t j = 0; j < dv; j++) {
        u[j] = 0;
        for (int64_t i = 0; i < dk; i++) u[j] += G[i * dv + j] * k[i];
        ue += u[j] * e[j];
        if (dvalue) put(dvalue + j, call_accumulates(c, DELTA_V), (real)(b * u[j]));
    }
    if (dbeta) put(dbeta, call_accumulates(c, DELTA_BETA), (real)(rate_of(c) * ue));
    for (int64_t i = 0; i < dk; i++) {
        double sum = 0;
        for (int64_t j = 0; j < dv; j++) sum += b * (G[i * dv + j] * e[j] - f * S[i * dv + j] * u[j]);
        if (dkey) put(dkey + i, call_accumulates(c, DELTA_K), (real)sum);
    }
    for (int64_t i = 0; i < dk; i++)
        for (int64_t j = 0; j < dv; j++) G[i * dv + j] -= k[i] * b * u[j];
}

/* One token in reverse; S[j], e[j] state before and error of its step j, S[steps] the state after it. */
static void ref_backward_token(const struct call *c, const struct state_shape *s, int64_t token, int64_t h,
                               const double *S, const double *e, double *G, double *u) {
    const struct delta_attr *a = delta_attr(c);
    int64_t dk = s->dk, dv = s->dv, n = dk * dv;
    const real *q = value_row(c, DELTA_Q, token, h, dk), *d_o = call_dout(c, 0) + (token * s->heads + h) * dv;
    real *dq = gradient_row(c, DELTA_Q, token, h, dk), *ddecay = gradient_row(c, DELTA_DECAY, token, h, 1);
    double f = decay_at(c, token, h), along = 0;
    for (int64_t i = 0; i < dk; i++) {
        double sum = 0;
        for (int64_t j = 0; j < dv; j++) {
            sum += a->scale * S[s->steps * n + i * dv + j] * d_o[j];
            G[i * dv + j] += a->scale * q[i] * d_o[j];
        }
        if (dq) put(dq + i, call_accumulates(c, DELTA_Q), (real)sum);
    }
    for (int64_t j = s->steps - 1; j >= 0; j--)
        ref_backward_step(c, s, token, j * s->heads + h, j ? 1 : f, S + j * n, e + j * dv, G, u);
    for (int64_t i = 0; i < n; i++) {
        along += G[i] * S[i];
        G[i] *= f;
    }
    if (ddecay) put(ddecay, call_accumulates(c, DELTA_DECAY), (real)along);
}

static void scan_delta_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct state_shape s = delta_shape(c);
    int64_t n = s.dk * s.dv, steps = s.steps;
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref_states r = ref_states_of(c, PASS_BACKWARD, &scratch);
    double *G = r.G, *S = r.S, *u = r.u, *e = r.e;
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t h = 0; h < s.heads; h++) {
            memset(G, 0, (size_t)n * sizeof *G);
            memset(S, 0, (size_t)n * sizeof *S);
            for (int64_t i = 0; i < s.T * steps; i++) {
                int64_t token = b * s.T + i / steps, row = i % steps * s.heads + h;
                ref_step(c, &s, token, row, i % steps ? 1 : decay_at(c, token, h), S + i * n, S + (i + 1) * n,
                         e + i * s.dv);
            }
            for (int64_t t = s.T - 1; t >= 0; t--)
                ref_backward_token(c, &s, b * s.T + t, h, S + t * steps * n, e + t * steps * s.dv, G, u);
        }
}

const struct kernel kernel_scan_delta_ref = {
    .name = "scan_delta_ref",
    .op = &op_scan_delta,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_delta_ref_workspace,
    .forward = scan_delta_ref_forward,
    .backward = scan_delta_ref_backward,
};

/* scan_delta.c - the delta rules (DeltaNet, Gated DeltaNet, DeltaProduct, KDA, GDN-2, RWKV-7, GLA): the op and its
 * reference. Yang et al. 2024; Siems et al. 2025.
 *
 * A token first decays the state, then takes one or more steps. Step j reads r with the vector d_j, writes v_j with
 * k_j, and erases r with e_j:
 *   S' = Diag(decay_t) S_{t-1};   in each step:  r = a S'^T d_j,  S' <- S' + k_j (m v_j)^T - e_j r^T
 *   S_t = S' after all steps;   o_t = scale S_t^T q_t
 *   with the input beta:         d = e = k,  a = m = rate beta
 *   with the input read:         d = read,  a = rate,  m = 1,  e = the input erase, or k if there is none
 *   with neither:                r = 0,  m = 1
 * Gradients, with G the gradient of the state and w = scale do_t:
 *   dq = scale S_t do;  G += q w^T;  then for each step, from the last to the first, with S' the state before the step:
 *     u = G^T k,  p = -a G^T e,  dv = m u,  dk = m G v,  de = -G r,  dd = S' p,  G <- G + d p^T
 *     dbeta = rate u . (v - S'^T k)
 *   ddecay = rowsum(G * S_{t-1}), element by element;  G <- Diag(decay) G
 * The form with read and erase is DPLR of flash-linear-attention. There d reads the state before the decay, so our d is
 * theirs divided by the decay. */
#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/state.h"

struct tensor *scan_delta(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v,
                          const struct delta_gates *gates, const struct delta_attr *attr) {
    struct tensor *in[DELTA_INPUTS] = {q, k, v, gates->beta, gates->decay, gates->read, gates->erase};
    return call1(g, &op_scan_delta, attr, sizeof *attr, in, DELTA_INPUTS);
}

static void scan_delta_infer(struct graph *g, struct call *c) {
    const struct delta_attr *a = delta_attr(c);
    if (!infer_present(g, c, DELTA_BETA)) return;
    int64_t H = a->heads, n = a->steps, q = token_width(c->in[DELTA_Q]), v = token_width(c->in[DELTA_V]);
    const struct tensor *decay = c->in[DELTA_DECAY];
    bool channels = decay && token_width(decay) == q;
    if (H < 1 || n < 1)
        graph_fail(g, ST_USAGE, "scan_delta: heads=%" PRId64 " and steps=%" PRId64 " must both be at least 1", H, n);
    else if (q % H != 0)
        graph_fail(g, ST_USAGE, "scan_delta: q is %" PRId64 " wide, not divisible by heads=%" PRId64, q, H);
    else if (v % (n * H) != 0)
        graph_fail(g, ST_USAGE, "scan_delta: v is %" PRId64 " wide, not divisible by steps*heads = %" PRId64, v, n * H);
    else if (c->in[DELTA_BETA] && c->in[DELTA_READ])
        graph_fail(g, ST_USAGE, "scan_delta: beta and read are both given, expected at most one of them");
    else if (c->in[DELTA_ERASE] && !c->in[DELTA_READ])
        graph_fail(g, ST_USAGE, "scan_delta: erase is given without read, expected both");
    else if (infer_token_width(g, c, DELTA_K, n * q, "steps times the width of q") &&
             infer_token_width(g, c, DELTA_V, v, "itself") &&
             infer_token_width(g, c, DELTA_BETA, n * H, "steps*heads") &&
             infer_token_width(g, c, DELTA_DECAY, channels ? q : H, channels ? "the width of q" : "heads") &&
             infer_token_width(g, c, DELTA_READ, n * q, "steps times the width of q") &&
             infer_token_width(g, c, DELTA_ERASE, n * q, "steps times the width of q")) {
        struct state_shape s = delta_shape(c);
        infer_state_outputs(g, c, &s);
    }
}

/* FLOPs per element of the state. A step takes 2 for each product: S^T d, k v^T and, with erase, a second rank-one
 * update. Backward takes three times as many: the same products, the gradients of their factors, and G. A token takes 2
 * forward and 4 backward for the readout; 1 and 4 for the decay. */
static struct cost scan_delta_cost(const struct call *c, enum pass pass) {
    struct state_shape s = delta_shape(c);
    double state = (double)(s.B * s.T) * (double)(s.heads * s.dk * s.dv), inputs = 0, steps = (double)s.steps;
    for (int i = 0; i < DELTA_INPUTS; i++) inputs += c->in[i] ? (double)tensor_count(c->in[i]) : 0;
    double o = (double)tensor_count(c->out[0]), kept = (double)tensor_count(c->out[1]);
    double each = 2 + (c->in[DELTA_BETA] || c->in[DELTA_READ] ? 2 : 0) + (c->in[DELTA_ERASE] ? 2 : 0);
    bool decays = c->in[DELTA_DECAY];
    if (pass == PASS_FORWARD)
        return (struct cost){(each * steps + 2 + (decays ? 1 : 0)) * state, sizeof(real) * (inputs + o + kept)};
    return (struct cost){(3 * each * steps + 4 + (decays ? 4 : 0)) * state, sizeof(real) * (2 * inputs + o + kept)};
}

/* Keys in [-0.7,0.7), as `lrnn perf` makes them, have a length of about sqrt(dk / 6). The rate is so small that I -
 * rate beta k k^T does not make the state grow. Variant 0 has one decay per head, variant 1 has none. Variant 2 has
 * rate 1: with whole numbers as inputs, all results are whole numbers. Variants 3 to 6 have a decay per channel, with
 * beta (3), read (4), read and erase (5), or none of these (6). */
static bool scan_delta_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 6) return false;
    struct op_sizes steps = *s;
    steps.heads = s->substeps * s->heads;
    struct delta_attr attr = {s->heads, s->substeps, 1 / sqrt((double)s->dk), 1 / (double)s->dk};
    if (s->variant == 2) attr.scale = attr.rate = 1;
    struct tensor *q = input_heads(g, s, "q", s->dk), *k = input_heads(g, &steps, "k", s->dk);
    struct tensor *v = input_heads(g, &steps, "v", s->dv);
    struct delta_gates gates = {0};
    if (s->variant <= 3) gates.beta = input_heads(g, &steps, "beta", 1);
    if (s->variant == 0) gates.decay = input_heads(g, s, "decay", 1);
    if (s->variant >= 3) gates.decay = input_heads(g, s, "decay", s->dk);
    if (s->variant == 4 || s->variant == 5) gates.read = input_heads(g, &steps, "read", s->dk);
    if (s->variant == 5) gates.erase = input_heads(g, &steps, "erase", s->dk);
    scan_delta(g, q, k, v, &gates, &attr);
    return true;
}

static struct heads scan_delta_heads(const struct call *c) {
    struct state_shape s = delta_shape(c);
    return (struct heads){s.heads, {s.dk, s.dk, s.dv, 1, delta_decays(c), s.dk, s.dk}, {s.dv, s.dk * s.dv}};
}

const struct op op_scan_delta = {
    .name = "scan_delta",
    .maths = "S <- Diag(decay) S; steps: S <- S + k (rate beta (v - S^T k))^T, or S + k v^T - erase (rate S^T read)^T; "
             "o_t = scale S^T q",
    .source = "DeltaNet (Yang et al. 2024), DeltaProduct (Siems et al. 2025); fla-org/flash-linear-attention",
    .needs_in = 127,
    .needs_out = 2,
    .infer = scan_delta_infer,
    .cost = scan_delta_cost,
    .heads = scan_delta_heads,
    .sizes = "batch length heads dk dv substeps",
    .build = scan_delta_build,
};

/* --- reference: one head after the other, states in double, all of them kept in backward -------------------------- */

/* The vectors and the place of one step. `read` is d of the equations, which is the key if beta is given. */
struct ref_row {
    const real *k, *v, *read, *erase, *decay; /* NULL if the call has none; without decay, it is 1 */
    double m, a;
    int64_t token, row, dk, dv;
    bool channels; /* each channel has its own decay */
};

static struct ref_row ref_row_of(const struct call *c, const struct state_shape *s, int64_t token, int64_t h,
                                 int64_t j) {
    int64_t row = j * s->heads + h;
    const real *beta = value_row(c, DELTA_BETA, token, row, 1);
    struct ref_row r = {.m = 1, .a = delta_attr(c)->rate, .token = token, .row = row, .dk = s->dk, .dv = s->dv};
    r.k = value_row(c, DELTA_K, token, row, s->dk);
    r.v = value_row(c, DELTA_V, token, row, s->dv);
    r.read = beta ? r.k : value_row(c, DELTA_READ, token, row, s->dk);
    r.erase = value_row(c, DELTA_ERASE, token, row, s->dk);
    r.decay = j == 0 ? value_row(c, DELTA_DECAY, token, h, delta_decays(c)) : NULL;
    r.channels = delta_decays(c) == s->dk;
    if (beta) r.m = r.a *= *beta;
    return r;
}

static double ref_decay(const struct ref_row *r, int64_t i) {
    return r->decay ? r->decay[r->channels ? i : 0] : 1;
}

/* Computes along = S'^T d, where S' is the decayed state, and after = S' + k (m v)^T - e (a along)^T. `after` and
 * `before` may be the same array. */
static void ref_step(const struct ref_row *r, const double *before, double *after, double *along) {
    for (int64_t j = 0; j < r->dv; j++) {
        along[j] = 0;
        for (int64_t i = 0; r->read && i < r->dk; i++) along[j] += ref_decay(r, i) * before[i * r->dv + j] * r->read[i];
        for (int64_t i = 0; i < r->dk; i++) {
            double x = ref_decay(r, i) * before[i * r->dv + j] + r->k[i] * r->m * r->v[j];
            after[i * r->dv + j] = x - (r->erase ? r->erase : r->k)[i] * r->a * along[j];
        }
    }
}

/* Scratch of the reference. Forward: the state, and what a step reads. Backward: both for all steps, the state after
 * the last step, the state's gradient, and the rows u and p. */
struct ref_states {
    double *S, *along, *G, *u, *p;
};

static struct ref_states ref_states_of(const struct call *c, enum pass pass, struct scratch *scratch) {
    struct state_shape s = delta_shape(c);
    int64_t steps = pass == PASS_FORWARD ? 1 : s.T * s.steps, n = s.dk * s.dv;
    struct ref_states r = {.S = scratch_doubles(scratch, (pass == PASS_FORWARD ? 1 : steps + 1) * n)};
    r.along = scratch_doubles(scratch, steps * s.dv);
    if (pass == PASS_FORWARD) return r;
    r.G = scratch_doubles(scratch, n);
    r.u = scratch_doubles(scratch, s.dv);
    r.p = scratch_doubles(scratch, s.dv);
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
    double *S = r.S;
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t h = 0; h < s.heads; h++) {
            memset(S, 0, (size_t)(s.dk * s.dv) * sizeof *S);
            for (int64_t t = 0; t < s.T; t++) {
                int64_t token = b * s.T + t;
                real *kept = kept_state(c, &s, b, t / STATE_CHUNK, h);
                for (int64_t i = 0; t % STATE_CHUNK == 0 && i < s.dk * s.dv; i++) kept[i] = (real)S[i];
                for (int64_t j = 0; j < s.steps; j++) {
                    struct ref_row row = ref_row_of(c, &s, token, h, j);
                    ref_step(&row, S, S, r.along);
                }
                const real *q = value_row(c, DELTA_Q, token, h, s.dk);
                for (int64_t j = 0; j < s.dv; j++) {
                    double sum = 0;
                    for (int64_t i = 0; i < s.dk; i++) sum += q[i] * S[i * s.dv + j];
                    tensor_real(c->out[0])[(token * s.heads + h) * s.dv + j] = (real)(a->scale * sum);
                }
            }
        }
}

static void ref_put(const struct call *c, int i, const struct ref_row *r, int64_t width, int64_t at, double x) {
    real *to = gradient_row(c, i, r->token, r->row, width);
    if (to) put(to + at, call_accumulates(c, i), (real)x);
}

/* Computes the gradients of one step. S is the state before its decay, and `along` is what it read. */
static void ref_backward_step(const struct call *c, const struct ref_row *r, const double *S, const double *along,
                              const struct ref_states *of) {
    int64_t dk = r->dk, dv = r->dv;
    const real *erase = r->erase ? r->erase : r->k;
    double *G = of->G, *u = of->u, *p = of->p, d_beta = 0;
    for (int64_t j = 0; j < dv; j++) {
        u[j] = p[j] = 0;
        for (int64_t i = 0; i < dk; i++) u[j] += G[i * dv + j] * r->k[i];
        for (int64_t i = 0; i < dk; i++) p[j] -= r->a * G[i * dv + j] * erase[i];
        ref_put(c, DELTA_V, r, dv, j, r->m * u[j]);
        d_beta += delta_attr(c)->rate * u[j] * (r->v[j] - along[j]);
    }
    ref_put(c, DELTA_BETA, r, 1, 0, d_beta);
    for (int64_t i = 0; i < dk; i++) {
        double k = 0, e = 0, d = 0;
        for (int64_t j = 0; j < dv; j++) {
            k += G[i * dv + j] * r->m * r->v[j];
            e -= G[i * dv + j] * r->a * along[j];
            d += ref_decay(r, i) * S[i * dv + j] * p[j];
        }
        ref_put(c, DELTA_K, r, dk, i, k + (r->erase ? 0 : e) + (c->in[DELTA_BETA] ? d : 0));
        ref_put(c, DELTA_READ, r, dk, i, d);
        ref_put(c, DELTA_ERASE, r, dk, i, e);
    }
    for (int64_t i = 0; r->read && i < dk; i++)
        for (int64_t j = 0; j < dv; j++) G[i * dv + j] += r->read[i] * p[j];
}

/* Computes the gradients of one token. S[j] and along[j] are the state before its step j and what this step read.
 * S[steps] is the state after the token. */
static void ref_backward_token(const struct call *c, const struct state_shape *s, int64_t token, int64_t h,
                               const double *S, const double *along, const struct ref_states *of) {
    const struct delta_attr *a = delta_attr(c);
    int64_t dk = s->dk, dv = s->dv, n = dk * dv, width = delta_decays(c);
    const real *q = value_row(c, DELTA_Q, token, h, dk), *d_o = call_dout(c, 0) + (token * s->heads + h) * dv;
    real *dq = gradient_row(c, DELTA_Q, token, h, dk), *ddecay = gradient_row(c, DELTA_DECAY, token, h, width);
    double *G = of->G, all = 0;
    for (int64_t i = 0; i < dk; i++) {
        double sum = 0;
        for (int64_t j = 0; j < dv; j++) {
            sum += a->scale * S[s->steps * n + i * dv + j] * d_o[j];
            G[i * dv + j] += a->scale * q[i] * d_o[j];
        }
        if (dq) put(dq + i, call_accumulates(c, DELTA_Q), (real)sum);
    }
    struct ref_row first = ref_row_of(c, s, token, h, 0);
    for (int64_t j = s->steps - 1; j >= 0; j--) {
        struct ref_row row = ref_row_of(c, s, token, h, j);
        ref_backward_step(c, &row, S + j * n, along + j * dv, of);
    }
    for (int64_t i = 0; i < dk; i++) {
        double sum = 0;
        for (int64_t j = 0; j < dv; j++) {
            sum += G[i * dv + j] * S[i * dv + j];
            G[i * dv + j] *= ref_decay(&first, i);
        }
        all += sum;
        if (ddecay && first.channels) put(ddecay + i, call_accumulates(c, DELTA_DECAY), (real)sum);
    }
    if (ddecay && !first.channels) put(ddecay, call_accumulates(c, DELTA_DECAY), (real)all);
}

static void scan_delta_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct state_shape s = delta_shape(c);
    int64_t n = s.dk * s.dv, steps = s.steps;
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref_states r = ref_states_of(c, PASS_BACKWARD, &scratch);
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t h = 0; h < s.heads; h++) {
            memset(r.G, 0, (size_t)n * sizeof *r.G);
            memset(r.S, 0, (size_t)n * sizeof *r.S);
            for (int64_t i = 0; i < s.T * steps; i++) {
                struct ref_row row = ref_row_of(c, &s, b * s.T + i / steps, h, i % steps);
                ref_step(&row, r.S + i * n, r.S + (i + 1) * n, r.along + i * s.dv);
            }
            for (int64_t t = s.T - 1; t >= 0; t--)
                ref_backward_token(c, &s, b * s.T + t, h, r.S + t * steps * n, r.along + t * steps * s.dv, &r);
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

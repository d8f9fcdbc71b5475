/* scan_outer.c - outer-product state with a scalar decay (pLSTM 1D, Mamba2, linear attention): the op and its
 * reference.
 *
 *   o_n = scale (M_n C_{n-1}^T q_n + D_n (q_n . k_n) v_n);   C_n = T_n C_{n-1} + S_n k_n v_n^T;   C_{-1} = 0
 * A token has a query q, a key k, a value v and four numbers: T and S for the update, M and D for the output. Without M
 * and D, the state is read after the update: M = T, D = S. Gradients, with E the gradient of C_n from later
 * tokens, w = scale do_n, P = C_{n-1}, from the last token to the first:
 *   dS = k^T E v      dT = <E, P>      dM = q^T P w      dD = (q.k)(v.w)
 *   dq = M P w + D (v.w) k     dk = S E v + D (v.w) q     dv = S E^T k + D (q.k) w     E <- T E + M q w^T */
#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/state.h"

struct tensor *scan_outer(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v,
                          const struct outer_gates *gates, int64_t heads, int64_t groups, double scale) {
    struct outer_attr attr = {.heads = heads, .groups = groups, .scale = scale};
    struct tensor *in[OUTER_INPUTS] = {q, k, v, gates->decay, gates->source, gates->mark, gates->direct};
    return call1(g, &op_scan_outer, &attr, sizeof attr, in, OUTER_INPUTS);
}

static void scan_outer_infer(struct graph *g, struct call *c) {
    const struct outer_attr *a = outer_attr(c);
    if (!infer_present(g, c, OUTER_SOURCE)) return;
    int64_t H = a->heads, G = a->groups, q = token_width(c->in[OUTER_Q]), v = token_width(c->in[OUTER_V]);
    if (H < 1 || G < 1 || H % G != 0)
        graph_fail(g, ST_USAGE, "scan_outer: heads=%" PRId64 " is not a multiple of groups=%" PRId64, H, G);
    else if (q % G != 0)
        graph_fail(g, ST_USAGE, "scan_outer: q is %" PRId64 " wide, not divisible by groups=%" PRId64, q, G);
    else if (v % H != 0)
        graph_fail(g, ST_USAGE, "scan_outer: v is %" PRId64 " wide, not divisible by heads=%" PRId64, v, H);
    else if (!c->in[OUTER_MARK] != !c->in[OUTER_DIRECT])
        graph_fail(g, ST_FAIL, "scan_outer: mark and direct are given together or not at all");
    else if (infer_token_width(g, c, OUTER_K, q, "the width of q") && infer_token_width(g, c, OUTER_V, v, "itself")) {
        for (int i = OUTER_DECAY; i < OUTER_INPUTS; i++)
            if (!infer_token_width(g, c, i, H, "heads")) return;
        struct state_shape s = outer_shape(c);
        infer_state_outputs(g, c, &s);
    }
}

/* FLOPs per element of the state, for a head and token: forward 2 to read and 3 to update; backward 3 to update again,
 * 4 for E, and 8 for three products of E or P with a vector and for <E, P>. Traffic: the inputs, the
 * output and, per token, 1 / STATE_CHUNK of a stored state. */
static struct cost scan_outer_cost(const struct call *c, enum pass pass) {
    struct state_shape s = outer_shape(c);
    double tokens = (double)(s.B * s.T), state = tokens * (double)(s.heads * s.dk * s.dv), inputs = 0;
    for (int i = 0; i < OUTER_INPUTS; i++) inputs += c->in[i] ? (double)tensor_count(c->in[i]) : 0;
    double o = (double)tensor_count(c->out[0]), kept = (double)tensor_count(c->out[1]);
    if (pass == PASS_FORWARD) return (struct cost){5 * state, sizeof(real) * (inputs + o + kept)};
    return (struct cost){15 * state, sizeof(real) * (2 * inputs + o + kept)};
}

/* In variant 0 there are all gates, and each head has its own q and k (pLSTM). In variant 1 there is a source, and all
 * heads share q and k (Mamba-2). In variant 2 there is only a decay. In variant 3 there is no source, and pairs of
 * heads share q and k if the number of heads is even. */
static bool scan_outer_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 3) return false;
    int64_t H = s->heads, G = s->variant == 1 ? 1 : s->variant == 3 && H % 2 == 0 ? H / 2 : H;
    struct op_sizes groups = *s;
    groups.heads = G;
    struct outer_gates gates = {.decay = input_heads(g, s, "decay", 1)};
    if (s->variant < 2) gates.source = input_heads(g, s, "source", 1);
    if (s->variant % 3 == 0) {
        gates.mark = input_heads(g, s, "mark", 1);
        gates.direct = input_heads(g, s, "direct", 1);
    }
    struct tensor *q = input_heads(g, &groups, "q", s->dk), *k = input_heads(g, &groups, "k", s->dk);
    scan_outer(g, q, k, input_heads(g, s, "v", s->dv), &gates, H, G, 1 / sqrt((double)s->dk));
    return true;
}

static struct heads scan_outer_heads(const struct call *c) {
    struct state_shape s = outer_shape(c);
    int64_t share = s.heads / s.groups;
    return (struct heads){
        s.groups, {s.dk, s.dk, share * s.dv, share, share, share, share}, {share * s.dv, share * s.dk * s.dv}};
}

const struct op op_scan_outer = {
    .name = "scan_outer",
    .maths = "o_t = scale (mark C_{t-1}^T q + direct (q.k) v); C_t = decay C_{t-1} + source k v^T",
    .source = "pLSTM (workshop version), Eq. 1 and 2; Mamba2 (Dao & Gu 2024)",
    .needs_in = 127,
    .needs_out = 2,
    .infer = scan_outer_infer,
    .cost = scan_outer_cost,
    .heads = scan_outer_heads,
    .sizes = "batch length heads dk dv",
    .build = scan_outer_build,
};

/* --- reference: one head after the other, states in double, all of them kept in backward -------------------------- */

/* The gates of one head at one token, or the sums that become their gradients. */
struct double_gates {
    double T, S, M, D;
};

static struct double_gates double_gates_at(const struct call *c, int64_t token, int64_t h) {
    struct outer_token_gates a = outer_gates_at(c, token, h);
    return (struct double_gates){a.T, a.S, a.M, a.D};
}

static double dot_product(int64_t n, const real *a, const real *b) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

/* Computes after = T before + S k v^T. */
static void ref_update(const struct state_shape *s, struct double_gates a, const real *k, const real *v,
                       const double *before, double *after) {
    for (int64_t i = 0; i < s->dk; i++)
        for (int64_t j = 0; j < s->dv; j++) after[i * s->dv + j] = a.T * before[i * s->dv + j] + a.S * k[i] * v[j];
}

/* Scratch of the reference. Forward: the state. Backward: its gradient, the states before each token and after the last
 * token, and sums of dq and dk [T][2][dk]. */
struct ref_states {
    double *C, *E, *P, *keys;
};

static struct ref_states ref_states_of(const struct call *c, enum pass pass, struct scratch *scratch) {
    struct state_shape s = outer_shape(c);
    int64_t n = s.dk * s.dv;
    if (pass == PASS_FORWARD) return (struct ref_states){.C = scratch_doubles(scratch, n)};
    struct ref_states r = {.E = scratch_doubles(scratch, n)};
    r.P = scratch_doubles(scratch, (s.T + 1) * n);
    r.keys = scratch_doubles(scratch, 2 * s.T * s.dk);
    return r;
}

static size_t scan_outer_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    ref_states_of(c, pass, &s);
    return s.used;
}

static void scan_outer_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct outer_attr *at = outer_attr(c);
    struct state_shape s = outer_shape(c);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    double *C = ref_states_of(c, PASS_FORWARD, &scratch).C;
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t h = 0; h < s.heads; h++) {
            memset(C, 0, (size_t)(s.dk * s.dv) * sizeof *C);
            for (int64_t t = 0; t < s.T; t++) {
                int64_t token = b * s.T + t, group = h / (s.heads / s.groups);
                const real *q = value_row(c, OUTER_Q, token, group, s.dk),
                           *k = value_row(c, OUTER_K, token, group, s.dk);
                const real *v = value_row(c, OUTER_V, token, h, s.dv);
                real *kept = kept_state(c, &s, b, t / STATE_CHUNK, h);
                for (int64_t e = 0; t % STATE_CHUNK == 0 && e < s.dk * s.dv; e++) kept[e] = (real)C[e];
                struct double_gates a = double_gates_at(c, token, h);
                double qk = dot_product(s.dk, q, k);
                for (int64_t j = 0; j < s.dv; j++) {
                    double sum = 0;
                    for (int64_t i = 0; i < s.dk; i++) sum += q[i] * C[i * s.dv + j];
                    tensor_real(c->out[0])[(token * s.heads + h) * s.dv + j] =
                        (real)(at->scale * (a.M * sum + a.D * qk * v[j]));
                }
                ref_update(&s, a, k, v, C, C);
            }
        }
}

/* Writes the gradients of one token of one head, and turns E into the gradient for the previous token. P is the state
 * before the token. dq and dk are added to `keys`, because the heads of a group share q and k. */
static void ref_backward_token(const struct call *c, const struct state_shape *s, int64_t token, int64_t h,
                               const double *P, double *E, double *keys) {
    int64_t dk = s->dk, dv = s->dv, group = h / (s->heads / s->groups);
    const real *q = value_row(c, OUTER_Q, token, group, dk), *k = value_row(c, OUTER_K, token, group, dk);
    const real *v = value_row(c, OUTER_V, token, h, dv), *d_o = call_dout(c, 0) + (token * s->heads + h) * dv;
    real *dvalue = gradient_row(c, OUTER_V, token, h, dv);
    struct double_gates a = double_gates_at(c, token, h), d = {0};
    double scale = outer_attr(c)->scale;
    double qk = dot_product(dk, q, k), vw = scale * dot_product(dv, v, d_o);
    d.D = qk * vw;
    for (int64_t i = 0; i < dk; i++) {
        double Ev = 0, Pw = 0;
        for (int64_t j = 0; j < dv; j++) {
            Ev += E[i * dv + j] * v[j];
            Pw += P[i * dv + j] * scale * d_o[j];
            d.T += E[i * dv + j] * P[i * dv + j];
        }
        d.S += k[i] * Ev;
        d.M += q[i] * Pw;
        keys[i] += a.M * Pw + a.D * vw * k[i];
        keys[dk + i] += a.S * Ev + a.D * vw * q[i];
    }
    for (int64_t j = 0; j < dv; j++) {
        double Ek = 0;
        for (int64_t i = 0; i < dk; i++) {
            Ek += E[i * dv + j] * k[i];
            E[i * dv + j] = a.T * E[i * dv + j] + a.M * q[i] * scale * d_o[j];
        }
        if (dvalue) put(dvalue + j, call_accumulates(c, OUTER_V), (real)(a.S * Ek + a.D * qk * scale * d_o[j]));
    }
    bool after = !c->in[OUTER_MARK];
    double dgates[4] = {d.T + (after ? d.M : 0), d.S + (after ? d.D : 0), d.M, d.D};
    for (int i = OUTER_DECAY; i < OUTER_INPUTS; i++) {
        real *to = gradient_row(c, i, token, h, 1);
        if (to) put(to, call_accumulates(c, i), (real)dgates[i - OUTER_DECAY]);
    }
}

/* Writes dq and dk of one group of one sequence from their sums, [T][2][dk]. */
static void ref_write_keys(const struct call *c, const struct state_shape *s, int64_t b, int64_t group,
                           const double *keys) {
    for (int64_t t = 0; t < s->T; t++)
        for (int part = 0; part < 2; part++) {
            real *to = gradient_row(c, part ? OUTER_K : OUTER_Q, b * s->T + t, group, s->dk);
            for (int64_t i = 0; to && i < s->dk; i++)
                put(to + i, call_accumulates(c, part ? OUTER_K : OUTER_Q), (real)keys[(2 * t + part) * s->dk + i]);
        }
}

static void scan_outer_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    struct state_shape s = outer_shape(c);
    int64_t n = s.dk * s.dv;
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref_states r = ref_states_of(c, PASS_BACKWARD, &scratch);
    double *E = r.E, *P = r.P, *keys = r.keys;
    for (int64_t b = 0; b < s.B; b++)
        for (int64_t h = 0; h < s.heads; h++) {
            int64_t share = s.heads / s.groups;
            memset(E, 0, (size_t)n * sizeof *E);
            memset(P, 0, (size_t)n * sizeof *P);
            if (h % share == 0) memset(keys, 0, (size_t)(2 * s.T * s.dk) * sizeof *keys);
            for (int64_t t = 0; t < s.T; t++) {
                const real *k = value_row(c, OUTER_K, b * s.T + t, h / share, s.dk);
                const real *v = value_row(c, OUTER_V, b * s.T + t, h, s.dv);
                ref_update(&s, double_gates_at(c, b * s.T + t, h), k, v, P + t * n, P + (t + 1) * n);
            }
            for (int64_t t = s.T - 1; t >= 0; t--)
                ref_backward_token(c, &s, b * s.T + t, h, P + t * n, E, keys + 2 * t * s.dk);
            if (h % share == share - 1) ref_write_keys(c, &s, b, h / share, keys);
        }
}

const struct kernel kernel_scan_outer_ref = {
    .name = "scan_outer_ref",
    .op = &op_scan_outer,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_outer_ref_workspace,
    .forward = scan_outer_ref_forward,
    .backward = scan_outer_ref_backward,
};

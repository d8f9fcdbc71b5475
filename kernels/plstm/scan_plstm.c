/* scan_plstm.c - pLSTM on a sequence, with J states coupled by a J x J transition: the op and its reference.
 *
 * Each head has vectors q_t, k_t (dk) and v_t (dv), gates S_t (source, J), T_t (transition, J x J), M_t (mark, J) and
 * D_t (direct, a number), and J states C[i], which are matrices dk x dv (pLSTM, Eq. 1, 2 and App. D.6). C_{-1} = 0.
 *   y_t = scale * ( sum_j M_t[j] C_{t-1}[j]^T q_t + D_t (q_t . k_t) v_t )    C_{t-1} does not contain token t
 *   C_t[i] = sum_j T_t[i][j] C_{t-1}[j] + S_t[i] k_t v_t^T
 * Gradients, where E is the gradient of C_t and w = scale dy_t. A symbol without index belongs to token t:
 *   dS[i] = k^T E[i] v   dT[i][j] = <E[i], C_{t-1}[j]>   dM[j] = q^T C_{t-1}[j] w   dD = (q.k)(v.w)
 *   dk = sum_i S[i] E[i] v + D (v.w) q   dv = sum_i S[i] E[i]^T k + D (q.k) w
 *   dq = sum_j M[j] C_{t-1}[j] w + D (v.w) k
 *   E_{t-1}[j] = sum_i T[i][j] E_t[i] + M[j] q w^T */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/plstm/dag_state.h"

struct tensor *scan_plstm(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *source,
                          struct tensor *transition, struct tensor *mark, struct tensor *direct, int64_t H, int64_t J,
                          double scale_of_qk) {
    struct scan_plstm_attr attr = {.H = H, .J = J, .scale = scale_of_qk};
    return call1(g, &op_scan_plstm, &attr, sizeof attr, (struct tensor *[]){q, k, v, source, transition, mark, direct},
                 7);
}

static void scan_plstm_infer(struct graph *g, struct call *c) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    if (!infer_dag_state(g, c, a->H)) return;
    int64_t T = c->in[0]->dims[1], H = a->H, J = a->J;
    if (J < 1 || J > SCAN_PLSTM_TRACK_MAX) {
        graph_fail(g, ST_USAGE, "scan_plstm: track=%" PRId64 ", expected 1 to %d", J, SCAN_PLSTM_TRACK_MAX);
        return;
    }
    if (infer_gate(g, c, 3, T, H * J, "the source gate") && infer_gate(g, c, 4, T, H * J * J, "the transition") &&
        infer_gate(g, c, 5, T, H * J, "the mark gate") && infer_gate(g, c, 6, T, H, "the direct gate"))
        graph_output(g, c, DT_REAL, 3, c->in[2]->dims);
}

/* Counts FLOPs per token and head, for each of the J dk dv elements of the states:
 *   forward   2 to read, 2J + 1 to compute the next state
 *   backward  2J + 1 to compute the states again, 2J for E_{t-1} from E_t, 2J for dT, and 2 for each of four products:
 *             E v, E^T k, C w and M q w^T */
static struct cost scan_plstm_cost(const struct call *c, enum pass pass) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    double J = (double)a->J, state = (double)(z.dk * z.dv) * J, heads = (double)(z.B * z.T * z.H);
    double bytes = 0;
    for (int i = 0; i < 7; i++) bytes += (double)tensor_bytes(c->in[i]);
    if (pass == PASS_FORWARD)
        return (struct cost){heads * state * (2 * J + 3), bytes + (double)tensor_bytes(c->out[0])};
    return (struct cost){heads * state * (6 * J + 9), 2 * bytes + (double)tensor_bytes(c->out[0])};
}

/* Builds a call for the tests. Each head has m states, but at most SCAN_PLSTM_TRACK_MAX. */
static bool scan_plstm_build(struct graph *g, const struct op_sizes *s) {
    static const char *const names[7] = {"q", "k", "v", "source", "transition", "mark", "direct"};
    if (s->variant > 0) return false;
    int64_t H = s->heads, J = s->m < SCAN_PLSTM_TRACK_MAX ? s->m : SCAN_PLSTM_TRACK_MAX;
    int64_t widths[7] = {H * s->dk, H * s->dk, H * s->dv, H * J, H * J * J, H * J, H};
    struct tensor *in[7];
    for (int i = 0; i < 7; i++) in[i] = input_tokens(g, s, names[i], widths[i]);
    scan_plstm(g, in[0], in[1], in[2], in[3], in[4], in[5], in[6], H, J, 1 / sqrt((double)s->dk));
    return true;
}

static struct heads scan_plstm_heads(const struct call *c) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes s = dag_sizes_of(c, a->H);
    return (struct heads){a->H, {s.dk, s.dk, s.dv, a->J, a->J * a->J, a->J, 1}, {s.dv}};
}

const struct op op_scan_plstm = {
    .name = "scan_plstm",
    .maths = "y_t = c (sum_j M_t[j] C_{t-1}[j]^T q_t + D_t (q_t.k_t) v_t); C_t[i] = sum_j T_t[i][j] C_{t-1}[j] + "
             "S_t[i] k_t v_t^T",
    .source = "pLSTM (workshop version), Eq. 1, Eq. 2 and App. D.6",
    .needs_in = 127,
    .infer = scan_plstm_infer,
    .cost = scan_plstm_cost,
    .heads = scan_plstm_heads,
    .sizes = "batch length heads dk dv m",
    .build = scan_plstm_build,
};

/* --- reference: one head at a time, in double --------------------------------------------------------------------- */

/* The inputs of one head at one token, named as in the equations. */
struct token {
    const real *q, *k, *v, *S, *T, *M;
    double D;
};

static struct token token_at(const struct call *c, int64_t row, int64_t h) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t J = a->J;
    return (struct token){head_in(c, 0, row, h, z.dk), head_in(c, 1, row, h, z.dk),  head_in(c, 2, row, h, z.dv),
                          head_in(c, 3, row, h, J),    head_in(c, 4, row, h, J * J), head_in(c, 5, row, h, J),
                          *head_in(c, 6, row, h, 1)};
}

/* Computes the next states: after[j] = sum_l T[j][l] before[l] + S[j] k v^T. Arrays of states are [J][dk][dv]. */
static void ref_update(struct token t, struct dag_sizes z, int64_t J, const real *before, real *after) {
    int64_t n = z.dk * z.dv;
    for (int64_t j = 0; j < J; j++)
        for (int64_t i = 0; i < n; i++) {
            double sum = (double)t.S[j] * t.k[i / z.dv] * t.v[i % z.dv];
            for (int64_t l = 0; l < J; l++) sum += (double)t.T[j * J + l] * before[l * n + i];
            after[j * n + i] = (real)sum;
        }
}

static double ref_dot(int64_t n, const real *a, const real *b) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static size_t state_reals(const struct call *c) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    return (size_t)(a->J * z.dk * z.dv);
}

/* Forward uses C (the states before a token) and `next` (those after it). Backward uses C (the states before all tokens
 * of one head), E (the gradient of the states after a token) and `before` (the gradient of the states before it). */
struct ref_states {
    real *C, *next, *E, *before;
};

static struct ref_states ref_states_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t n = (int64_t)state_reals(c);
    struct ref_states r = {.C = scratch_reals(s, pass == PASS_FORWARD ? n : (c->in[0]->dims[1] + 1) * n)};
    if (pass == PASS_FORWARD) r.next = scratch_reals(s, n);
    if (pass == PASS_BACKWARD) r.E = scratch_reals(s, n);
    if (pass == PASS_BACKWARD) r.before = scratch_reals(s, n);
    return r;
}

static size_t scan_plstm_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    ref_states_of(c, pass, &s);
    return s.used;
}

static void ref_readout(struct token t, struct dag_sizes z, int64_t J, double scale_of_qk, const real *C, real *y) {
    double direct = t.D * ref_dot(z.dk, t.q, t.k);
    for (int64_t e = 0; e < z.dv; e++) {
        double sum = direct * t.v[e];
        for (int64_t j = 0; j < J; j++)
            for (int64_t i = 0; i < z.dk; i++) sum += (double)t.M[j] * t.q[i] * C[(j * z.dk + i) * z.dv + e];
        y[e] = (real)(scale_of_qk * sum);
    }
}

static void scan_plstm_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    size_t n = state_reals(c);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct ref_states r = ref_states_of(c, PASS_FORWARD, &scratch);
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t h = 0; h < z.H; h++) {
            real *C = r.C, *next = r.next;
            memset(C, 0, n * sizeof *C);
            for (int64_t row = b * z.T; row < (b + 1) * z.T; row++) {
                struct token t = token_at(c, row, h);
                ref_readout(t, z, a->J, a->scale, C, tensor_real(c->out[0]) + (row * z.H + h) * z.dv);
                ref_update(t, z, a->J, C, next);
                real *swap = C;
                C = next;
                next = swap;
            }
        }
}

/* Computes the gradients of the gates of one head at one token. C: the states before the token; E: the gradient of the
 * states after it. */
static void ref_gate_gradients(const struct call *c, int64_t row, int64_t h, const real *C, const real *E) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct token t = token_at(c, row, h);
    const real *dy = call_dout(c, 0) + (row * z.H + h) * z.dv;
    int64_t J = a->J, n = z.dk * z.dv;
    for (int64_t j = 0; j < J; j++) {
        double dS = 0, dM = 0;
        for (int64_t i = 0; i < z.dk; i++)
            for (int64_t e = 0; e < z.dv; e++) {
                dS += (double)t.k[i] * E[j * n + i * z.dv + e] * t.v[e];
                dM += (double)t.q[i] * C[j * n + i * z.dv + e] * a->scale * dy[e];
            }
        put_wanted(c, 3, head_din(c, 3, row, h, J), j, (real)dS);
        put_wanted(c, 5, head_din(c, 5, row, h, J), j, (real)dM);
        for (int64_t l = 0; l < J; l++)
            put_wanted(c, 4, head_din(c, 4, row, h, J * J), j * J + l, (real)ref_dot(n, E + j * n, C + l * n));
    }
    put_wanted(c, 6, head_din(c, 6, row, h, 1), 0, (real)(ref_dot(z.dk, t.q, t.k) * a->scale * ref_dot(z.dv, t.v, dy)));
}

static void ref_vector_gradients(const struct call *c, int64_t row, int64_t h, const real *C, const real *E) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct token t = token_at(c, row, h);
    const real *dy = call_dout(c, 0) + (row * z.H + h) * z.dv;
    int64_t n = z.dk * z.dv;
    double qk = ref_dot(z.dk, t.q, t.k), vw = a->scale * ref_dot(z.dv, t.v, dy);
    for (int64_t i = 0; i < z.dk; i++) {
        double dq = t.D * vw * t.k[i], dk = t.D * vw * t.q[i];
        for (int64_t j = 0; j < a->J; j++) {
            dq += t.M[j] * a->scale * ref_dot(z.dv, C + j * n + i * z.dv, dy);
            dk += t.S[j] * ref_dot(z.dv, E + j * n + i * z.dv, t.v);
        }
        put_wanted(c, 0, head_din(c, 0, row, h, z.dk), i, (real)dq);
        put_wanted(c, 1, head_din(c, 1, row, h, z.dk), i, (real)dk);
    }
    for (int64_t e = 0; e < z.dv; e++) {
        double dv = t.D * qk * a->scale * dy[e];
        for (int64_t j = 0; j < a->J; j++)
            for (int64_t i = 0; i < z.dk; i++) dv += (double)t.S[j] * E[j * n + i * z.dv + e] * t.k[i];
        put_wanted(c, 2, head_din(c, 2, row, h, z.dv), e, (real)dv);
    }
}

/* Computes the gradient of the states before a token: before[j] = sum_i T[i][j] E[i] + M[j] q w^T. */
static void ref_carry(const struct call *c, int64_t row, int64_t h, const real *E, real *before) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    struct token t = token_at(c, row, h);
    const real *dy = call_dout(c, 0) + (row * z.H + h) * z.dv;
    int64_t n = z.dk * z.dv, J = a->J;
    for (int64_t j = 0; j < J; j++)
        for (int64_t i = 0; i < n; i++) {
            double sum = (double)t.M[j] * t.q[i / z.dv] * a->scale * dy[i % z.dv];
            for (int64_t l = 0; l < J; l++) sum += (double)t.T[l * J + j] * E[l * n + i];
            before[j * n + i] = (real)sum;
        }
}

static void scan_plstm_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t n = (int64_t)state_reals(c);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct ref_states r = ref_states_of(c, PASS_BACKWARD, &scratch);
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t h = 0; h < z.H; h++) {
            real *C = r.C, *E = r.E, *before = r.before;
            memset(C, 0, (size_t)n * sizeof *C);
            memset(E, 0, (size_t)n * sizeof *E);
            for (int64_t t = 0; t < z.T; t++)
                ref_update(token_at(c, b * z.T + t, h), z, a->J, C + t * n, C + (t + 1) * n);
            for (int64_t t = z.T - 1; t >= 0; t--) {
                ref_gate_gradients(c, b * z.T + t, h, C + t * n, E);
                ref_vector_gradients(c, b * z.T + t, h, C + t * n, E);
                ref_carry(c, b * z.T + t, h, E, before);
                real *swap = E;
                E = before;
                before = swap;
            }
        }
}

const struct kernel kernel_scan_plstm_ref = {
    .name = "scan_plstm_ref",
    .op = &op_scan_plstm,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_plstm_ref_workspace,
    .forward = scan_plstm_ref_forward,
    .backward = scan_plstm_ref_backward,
};

/* scan_route.c - a scan in which each state chooses another state at each token: the op and its reference.
 *
 * Token t has complex factors d_t and inputs x_t (N numbers each) and weights s_t (K). The parameter dict has N x N x K
 * numbers. j(i) is the candidate that state i chooses, and h_t are the N complex states:
 *   M_t[m][n] = sum over k of dict[m][n][k] s_t[k]
 *   row      j(m) = argmax over n of M_t[m][n];   h_t[m] = d_t[m] h_{t-1}[j(m)] + x_t[m]
 *   column   j(n) = argmax over m of M_t[m][n];   h_t[m] = sum over all n with j(n) = m of d_t[n] h_{t-1}[n] + x_t[m]
 * P_t is the matrix of the choices: P_t[m][j(m)] = 1 or P_t[j(n)][n] = 1, else 0.
 *
 * Backward: o_t is the gradient that arrives at output h_t. G_t = dL/dRe h_t + i dL/dIm h_t is the whole gradient of
 * the loss L. p is the softmax of M along the axis of the argmax. The gradient of M is that of p in place of P
 * (straight-through):
 *   row      G_t = o_t + P_{t+1}^T conj(d_{t+1}) G_{t+1};   dd_t[m] = conj(h_{t-1}[j(m)]) G_t[m]
 *   column   G_t = o_t + conj(d_{t+1}) P_{t+1}^T G_{t+1};   dd_t[n] = conj(h_{t-1}[n]) G_t[j(n)]
 *   dx_t = G_t;   dP_t[m][n] = Re(conj(G_t[m]) d h_{t-1}[n]), where d is d_t[m] in form row and d_t[n] in form column
 *   dM = p (dP - sum of p dP), where the sum runs over the candidates of a state
 *   ddict[m][n][k] = sum over tokens of s[k] dM[m][n];   ds[k] = sum over m, n of dict[m][n][k] dM[m][n]
 * So dP = Re(u v), where u depends only on the state that chooses, and v only on the candidate:
 *   row      u = conj(G_t[m]) d_t[m], v = h_{t-1}[n]
 *   column   u = d_t[n] h_{t-1}[n],   v = conj(G_t[m])
 * M and p are not stored; backward computes them again.
 *
 * Terzic et al. 2025 (PD-SSM, arXiv 2509.22284); IBM/expressive-sparse-state-space-model. */
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/route/route.h"

struct tensor *scan_route(struct graph *g, enum route_form form, struct tensor *const d[2], struct tensor *const x[2],
                          struct tensor *dict, struct tensor *s, struct tensor **h_im) {
    struct scan_route_attr attr = {form};
    struct tensor *in[] = {d[0], d[1], x[0], x[1], dict, s};
    struct call *c = graph_call(g, &op_scan_route, &attr, sizeof attr, in, 6);
    if (h_im) *h_im = c ? c->out[ROUTE_H + 1] : NULL;
    return c ? c->out[ROUTE_H] : NULL;
}

static void scan_route_infer(struct graph *g, struct call *c) {
    const struct tensor *d = c->in[ROUTE_D], *dict = c->in[ROUTE_DICT], *s = c->in[ROUTE_S];
    if (!infer_present(g, c, 4)) return;
    for (int i = 1; i < ROUTE_DICT; i++)
        if (!infer_same_shape(g, c, 0, i)) return;
    if (d->rank != 3) {
        graph_fail(g, ST_USAGE, "scan_route: d has rank %d, expected 3 (B,T,N)", d->rank);
        return;
    }
    int64_t N = d->dims[2];
    if (!dict != !s) {
        graph_fail(g, ST_USAGE, "scan_route: %s is missing; give both dict and s, or neither if no state moves",
                   dict ? "s" : "dict");
    } else if (dict && (dict->rank != 3 || dict->dims[0] != N || dict->dims[1] != N)) {
        graph_fail(g, ST_USAGE,
                   "scan_route: dict has rank %d and begins with %" PRId64 ", expected (N,N,K), N = %" PRId64,
                   dict->rank, dict->dims[0], N);
    } else if (dict &&
               (s->rank != 3 || s->dims[0] != d->dims[0] || s->dims[1] != d->dims[1] || s->dims[2] != dict->dims[2])) {
        graph_fail(g, ST_USAGE,
                   "scan_route: s has rank %d and ends with %" PRId64 ", expected (B,T,K), K = %" PRId64 " of dict",
                   s->rank, tensor_cols(s), dict->dims[2]);
    } else {
        for (int plane = 0; plane < 2; plane++) graph_output(g, c, DT_REAL, 3, d->dims);
        struct tensor *choice = dict ? graph_output(g, c, DT_I32, 3, d->dims) : NULL;
        struct tensor *top = dict ? graph_output(g, c, DT_REAL, 3, d->dims) : NULL;
        if (choice) choice->limit = (int32_t)N;
        if (top) top->needs_grad = false;
    }
}

/* An exponential counts as 10 FLOPs. */
static struct cost scan_route_cost(const struct call *c, enum pass pass) {
    double states = (double)tensor_count(c->in[0]), N = (double)tensor_cols(c->in[0]), dict = 0, s = 0, K = 0;
    if (c->in[ROUTE_DICT]) {
        dict = (double)tensor_count(c->in[ROUTE_DICT]);
        s = (double)tensor_count(c->in[ROUTE_S]);
        K = (double)tensor_cols(c->in[ROUTE_S]);
    }
    double kept = K > 0 ? 2 : 0;
    if (pass == PASS_FORWARD)
        return (struct cost){states * (8 + (K > 0 ? 2 * K + 1 : 0) * N),
                             sizeof(real) * ((6 + kept) * states + dict + s)};
    return (struct cost){states * (16 + (K > 0 ? 6 * K + 20 : 0) * N),
                         sizeof(real) * ((10 + kept) * states + 2 * dict + 2 * s)};
}

/* Variants 0 and 1 have no dictionary, 2 and 3 have one. Even variants have form row, odd ones column. */
static bool scan_route_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 3) return false;
    int64_t N = s->blocks, K = s->m;
    struct tensor *d[] = {input_tokens(g, s, "d_re", N), input_tokens(g, s, "d_im", N)};
    struct tensor *x[] = {input_tokens(g, s, "x_re", N), input_tokens(g, s, "x_im", N)}, *dict = NULL, *weights = NULL;
    if (s->variant > 1) {
        dict = graph_input(g, "dict", 3, (int64_t[]){N, N, K}, true);
        weights = input_tokens(g, s, "s", K);
    }
    scan_route(g, s->variant % 2 ? ROUTE_COLUMN : ROUTE_ROW, d, x, dict, weights, NULL);
    return true;
}

const struct op op_scan_route = {
    .name = "scan_route",
    .maths = "h_t = P_t d_t h_{t-1} + x_t over complex numbers; each row (or column) of P_t has a single 1, at the "
             "largest entry of sum_k dict_k s_t[k]",
    .source = "PD-SSM (Terzic et al. 2025), Eq. 2 to 6",
    .needs_in = 3U << ROUTE_D | 3U << ROUTE_DICT,
    .needs_out = 15,
    .infer = scan_route_infer,
    .cost = scan_route_cost,
    .sizes = "batch length blocks m",
    .build = scan_route_build,
};

/* --- reference: one sequence at a time, with states in double ----------------------------------------------------- */

/* re, im: in forward h of two steps (2,N), in backward G of one sequence (T,N). The other arrays are for backward:
 * ddict is the gradient of dict, ds that of s at one token; p and dp have p and dP of one state's N candidates. */
struct work {
    double *re, *im, *ddict, *ds, *p, *dp;
};

static struct work work_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t T = c->in[0]->dims[1], N = c->in[0]->dims[2];
    struct work w = {0};
    w.re = scratch_doubles(s, pass == PASS_FORWARD ? 2 * N : T * N);
    w.im = scratch_doubles(s, pass == PASS_FORWARD ? 2 * N : T * N);
    if (pass == PASS_FORWARD || !c->in[ROUTE_DICT]) return w;
    w.ddict = scratch_doubles(s, tensor_count(c->in[ROUTE_DICT]));
    w.ds = scratch_doubles(s, tensor_cols(c->in[ROUTE_S]));
    w.p = scratch_doubles(s, N);
    w.dp = scratch_doubles(s, N);
    return w;
}

static size_t scan_route_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    work_of(c, pass, &s);
    return s.used;
}

/* Returns the score M of `state` and the candidate `from`. */
static real score(const struct call *c, int64_t token, int64_t from, int64_t state) {
    int64_t N = c->in[0]->dims[2], K = tensor_cols(c->in[ROUTE_S]);
    const real *dict = tensor_real(c->in[ROUTE_DICT]), *s = tensor_real(c->in[ROUTE_S]) + token * K;
    real M = 0;
    for (int64_t k = 0; k < K; k++) M = route_score(dict[(from * K + k) * N + state], s[k], M);
    return M;
}

/* Returns the candidate that state i chooses at the token. Without a dictionary it is i. */
static int64_t chosen(const struct call *c, int64_t token, int64_t i) {
    return c->in[ROUTE_DICT] ? tensor_i32(c->out[ROUTE_CHOICE])[token * c->in[0]->dims[2] + i] : i;
}

static void choose(const struct call *c, int64_t token) {
    int64_t N = c->in[0]->dims[2];
    for (int64_t i = 0; i < N; i++) {
        real top = score(c, token, 0, i);
        int32_t choice = 0;
        for (int64_t from = 1; from < N; from++) {
            real M = score(c, token, from, i);
            if (M > top) top = M, choice = (int32_t)from;
        }
        tensor_i32(c->out[ROUTE_CHOICE])[token * N + i] = choice;
        tensor_real(c->out[ROUTE_TOP])[token * N + i] = top;
    }
}

static void scan_route_ref_forward(const struct call *c, const struct exec *e) {
    (void)e;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], N = c->in[0]->dims[2];
    bool column = scan_route_attr(c)->form == ROUTE_COLUMN;
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct work w = work_of(c, PASS_FORWARD, &s);
    for (int64_t token = 0; c->in[ROUTE_DICT] && token < B * T; token++) choose(c, token);
    for (int64_t token = 0; token < B * T; token++) {
        double *re = w.re + token % 2 * N, *im = w.im + token % 2 * N;
        double *old_re = w.re + (token + 1) % 2 * N, *old_im = w.im + (token + 1) % 2 * N;
        const real *d_re = tensor_real(c->in[ROUTE_D]) + token * N, *d_im = tensor_real(c->in[ROUTE_D + 1]) + token * N;
        for (int64_t i = 0; i < N && token % T == 0; i++) old_re[i] = i == 0 && !column, old_im[i] = 0;
        for (int64_t i = 0; i < N; i++) {
            re[i] = tensor_real(c->in[ROUTE_X])[token * N + i];
            im[i] = tensor_real(c->in[ROUTE_X + 1])[token * N + i];
        }
        for (int64_t i = 0; i < N; i++) {
            int64_t j = chosen(c, token, i), from = column ? i : j, to = column ? j : i;
            re[to] += d_re[i] * old_re[from] - d_im[i] * old_im[from];
            im[to] += d_re[i] * old_im[from] + d_im[i] * old_re[from];
        }
        for (int64_t i = 0; i < N; i++) {
            tensor_real(c->out[ROUTE_H])[token * N + i] = (real)re[i];
            tensor_real(c->out[ROUTE_H + 1])[token * N + i] = (real)im[i];
        }
    }
}

static void put_gradient(const struct call *c, int input, int64_t i, double value) {
    if (c->din[input]) put(c->din[input] + i, call_accumulates(c, input), (real)value);
}

/* Sets h to h_{t-1}[i]. The sequence begins at token `first`. */
static void state_before(const struct call *c, int64_t first, int64_t t, int64_t i, double h[2]) {
    int64_t N = c->in[0]->dims[2];
    h[0] = i == 0 && scan_route_attr(c)->form == ROUTE_ROW;
    h[1] = 0;
    for (int plane = 0; t > 0 && plane < 2; plane++)
        h[plane] = tensor_real(c->out[ROUTE_H + plane])[(first + t - 1) * N + i];
}

/* Computes G, dx and dd of one sequence. */
static void ref_backward_scan(const struct call *c, struct work w, int64_t first) {
    int64_t T = c->in[0]->dims[1], N = c->in[0]->dims[2];
    bool column = scan_route_attr(c)->form == ROUTE_COLUMN;
    for (int64_t e = 0; e < T * N; e++) {
        w.re[e] = call_dout(c, ROUTE_H)[first * N + e];
        w.im[e] = call_dout(c, ROUTE_H + 1) ? call_dout(c, ROUTE_H + 1)[first * N + e] : 0;
    }
    for (int64_t t = T - 1; t >= 0; t--)
        for (int64_t i = 0; i < N; i++) {
            int64_t e = (first + t) * N + i, j = chosen(c, first + t, i), from = column ? i : j, to = column ? j : i;
            double h[2], G_re = w.re[t * N + to], G_im = w.im[t * N + to];
            double d_re = tensor_real(c->in[ROUTE_D])[e], d_im = tensor_real(c->in[ROUTE_D + 1])[e];
            state_before(c, first, t, from, h);
            put_gradient(c, ROUTE_D, e, h[0] * G_re + h[1] * G_im);
            put_gradient(c, ROUTE_D + 1, e, h[0] * G_im - h[1] * G_re);
            put_gradient(c, ROUTE_X, e, w.re[t * N + i]);
            put_gradient(c, ROUTE_X + 1, e, w.im[t * N + i]);
            if (t == 0) continue;
            w.re[(t - 1) * N + from] += d_re * G_re + d_im * G_im;
            w.im[(t - 1) * N + from] += d_re * G_im - d_im * G_re;
        }
}

/* Adds to ddict and ds what all candidates of state i contribute at one token. */
static void ref_backward_choice(const struct call *c, struct work w, int64_t first, int64_t t, int64_t i) {
    int64_t N = c->in[0]->dims[2], K = tensor_cols(c->in[ROUTE_S]), token = first + t;
    bool column = scan_route_attr(c)->form == ROUTE_COLUMN;
    double d_re = tensor_real(c->in[ROUTE_D])[token * N + i], d_im = tensor_real(c->in[ROUTE_D + 1])[token * N + i];
    double sum = 0, mean = 0;
    for (int64_t j = 0; j < N; j++) {
        int64_t from = column ? i : j, to = column ? j : i;
        double h[2], G_re = w.re[t * N + to], G_im = w.im[t * N + to];
        state_before(c, first, t, from, h);
        w.dp[j] = G_re * (d_re * h[0] - d_im * h[1]) + G_im * (d_re * h[1] + d_im * h[0]);
    }
    /* Subtracting one number from all dP leaves dM unchanged. If one choice is nearly certain, the
     * sum of p dP is nearly dP of the chosen candidate, and subtracting this dP first avoids cancellation. */
    double top = w.dp[chosen(c, token, i)];
    for (int64_t j = 0; j < N; j++) {
        w.dp[j] -= top;
        w.p[j] = exp((double)score(c, token, j, i) - tensor_real(c->out[ROUTE_TOP])[token * N + i]);
        sum += w.p[j];
        mean += w.p[j] * w.dp[j];
    }
    for (int64_t j = 0; j < N; j++) {
        double dM = w.p[j] / sum * (w.dp[j] - mean / sum);
        for (int64_t k = 0; k < K; k++) {
            int64_t e = (j * K + k) * N + i;
            w.ddict[e] += dM * tensor_real(c->in[ROUTE_S])[token * K + k];
            w.ds[k] += dM * tensor_real(c->in[ROUTE_DICT])[e];
        }
    }
}

static void scan_route_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], N = c->in[0]->dims[2];
    int64_t K = c->in[ROUTE_S] ? tensor_cols(c->in[ROUTE_S]) : 0;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct work w = work_of(c, PASS_BACKWARD, &s);
    for (int64_t e = 0; e < N * N * K; e++) w.ddict[e] = 0;
    for (int64_t first = 0; first < B * T; first += T) {
        ref_backward_scan(c, w, first);
        for (int64_t t = 0; t < T && K > 0; t++) {
            for (int64_t k = 0; k < K; k++) w.ds[k] = 0;
            for (int64_t i = 0; i < N; i++) ref_backward_choice(c, w, first, t, i);
            for (int64_t k = 0; k < K; k++) put_gradient(c, ROUTE_S, (first + t) * K + k, w.ds[k]);
        }
    }
    for (int64_t e = 0; e < N * N * K; e++) put_gradient(c, ROUTE_DICT, e, w.ddict[e]);
}

const struct kernel kernel_scan_route_ref = {
    .name = "scan_route_ref",
    .op = &op_scan_route,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_route_ref_workspace,
    .forward = scan_route_ref_forward,
    .backward = scan_route_ref_backward,
};

/* turn.c - rotary positions that depend on the input: the ops running_turn and turn_heads, and their references.
 * token.h has the equations.
 *
 * Gradients of running_turn, from the last token to the first, where G_t is the gradient of the angle s_t:
 *   G_t = G_{t+1} + pi (cos dsine - sin dcosine);   ddelta[h] = sum_r G rate[r];   drate[r] = sum_h G delta[h]
 * Gradients of turn_heads, where (p, q) is a pair of u = x + b, and (dp, dq) is its gradient, a pair of du:
 *   dp = dy_0 cos + dy_1 sin;   dq = dy_1 cos - dy_0 sin;   dcosine = dy_0 p + dy_1 q;   dsine = dy_1 p - dy_0 q
 *   dx = sum over heads of du;   db = sum over tokens of du */
#include "kernels/token/turn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"

/* --- running_turn ------------------------------------------------------------------------------------------------- */

struct tensor *running_turn(struct graph *g, struct tensor *delta, struct tensor *rate, struct tensor **sine) {
    struct call *c = graph_call(g, &op_running_turn, NULL, 0, (struct tensor *[]){delta, rate}, 2);
    *sine = c ? c->out[TURN_SINE] : NULL;
    return c ? c->out[TURN_COSINE] : NULL;
}

static void running_turn_infer(struct graph *g, struct call *c) {
    const struct tensor *delta = c->in[TURN_DELTA], *rate = c->in[TURN_RATE];
    if (!infer_present(g, c, 2)) return;
    if (delta->rank != 3 || rate->rank != 3) {
        graph_fail(g, ST_USAGE, "running_turn: delta and rate have rank %d and %d, expected 3 (B,T,width)", delta->rank,
                   rate->rank);
    } else if (delta->dims[0] != rate->dims[0] || delta->dims[1] != rate->dims[1]) {
        graph_fail(g, ST_USAGE,
                   "running_turn: delta is (%" PRId64 ",%" PRId64 ") and rate (%" PRId64 ",%" PRId64
                   ") in batch and length; they must agree",
                   delta->dims[0], delta->dims[1], rate->dims[0], rate->dims[1]);
    } else {
        struct turn_size s = running_turn_size(c);
        for (int i = 0; i < 2; i++) graph_output(g, c, DT_REAL, 3, (int64_t[]){s.B, s.T, s.H * s.R});
    }
}

/* A cosine or sine counts as 10 FLOPs. */
static struct cost running_turn_cost(const struct call *c, enum pass pass) {
    double in = (double)(tensor_count(c->in[0]) + tensor_count(c->in[1])), out = (double)tensor_count(c->out[0]);
    if (pass == PASS_FORWARD) return (struct cost){24 * out, sizeof(real) * (in + 2 * out)};
    return (struct cost){9 * out, sizeof(real) * (2 * in + 4 * out)};
}

static bool running_turn_build(struct graph *g, const struct op_sizes *s) {
    struct tensor *sine;
    if (s->variant > 0) return false;
    struct tensor *delta = input_tokens(g, s, "delta", s->heads);
    running_turn(g, delta, input_tokens(g, s, "rate", s->m), &sine);
    return true;
}

/* Returns the largest value, over all pairs, of one of two sums over tokens: the length of the angle's path, which is
 * pi times the sum of |delta rate|, or the sum of the magnitudes of the angle's gradients. */
static double longest_path(const struct call *c, bool of_gradients) {
    struct turn_size s = running_turn_size(c);
    double longest = 0;
    for (int64_t i = 0; i < s.B * s.H * s.R; i++) {
        int64_t b = i / (s.H * s.R), h = i / s.R % s.H, r = i % s.R;
        double sum = 0;
        for (int64_t token = b * s.T; token < (b + 1) * s.T; token++)
            if (!of_gradients)
                sum += fabs((double)tensor_real(c->in[TURN_DELTA])[token * s.H + h] *
                            tensor_real(c->in[TURN_RATE])[token * s.R + r]);
            else
                for (int j = 0; j < 2; j++)
                    sum += call_dout(c, j) ? fabs((double)call_dout(c, j)[(token * s.H + h) * s.R + r]) : 0;
        longest = fmax(longest, TURN_PI * sum);
    }
    return longest;
}

/* The error of an angle grows with the length of its path, although whole turns are subtracted from the angle. So do
 * the errors of its cosine and sine, and of their gradients. */
static double running_turn_terms(const struct call *c, enum pass pass, int j) {
    double path = 1 + longest_path(c, false), most = 0;
    if (pass == PASS_FORWARD) return path;
    const struct tensor *other = c->in[1 - j];
    for (int64_t row = 0; row < tensor_rows(other); row++) {
        double sum = 0;
        for (int64_t k = 0; k < tensor_cols(other); k++)
            sum += fabs((double)tensor_real(other)[row * tensor_cols(other) + k]);
        most = fmax(most, sum);
    }
    return path * longest_path(c, true) * most;
}

const struct op op_running_turn = {
    .name = "running_turn",
    .maths = "s_t[h][r] = s_{t-1}[h][r] + delta_t[h] rate_t[r] modulo 2; y = cos(pi s), sin(pi s)",
    .source = "Mamba-3 (Lahoti et al. 2026)",
    .needs_in = 3,
    .needs_out = 3,
    .infer = running_turn_infer,
    .cost = running_turn_cost,
    .terms = running_turn_terms,
    .sizes = "batch length heads m",
    .build = running_turn_build,
};

static void running_turn_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turn_size s = running_turn_size(c);
    for (int64_t i = 0; i < s.B * s.H * s.R; i++) {
        int64_t b = i / (s.H * s.R), h = i / s.R % s.H, r = i % s.R;
        double angle = 0;
        for (int64_t token = b * s.T; token < (b + 1) * s.T; token++) {
            angle += (double)tensor_real(c->in[TURN_DELTA])[token * s.H + h] *
                     tensor_real(c->in[TURN_RATE])[token * s.R + r];
            angle -= 2 * rint(angle / 2);
            tensor_real(c->out[TURN_COSINE])[(token * s.H + h) * s.R + r] = (real)cos(TURN_PI * angle);
            tensor_real(c->out[TURN_SINE])[(token * s.H + h) * s.R + r] = (real)sin(TURN_PI * angle);
        }
    }
}

/* Scratch arrays: G of all pairs of a sequence, and the gradients of a token's inputs. */
static size_t running_turn_ref_workspace(const struct call *c, enum pass pass) {
    struct turn_size s = running_turn_size(c);
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)(s.H * s.R + s.H + s.R) * sizeof(double));
}

static void running_turn_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turn_size s = running_turn_size(c);
    double *G = c->scratch[PASS_BACKWARD], *ddelta = G + s.H * s.R, *drate = ddelta + s.H;
    for (int64_t token = s.B * s.T - 1; token >= 0; token--) {
        if (token % s.T == s.T - 1) memset(G, 0, (size_t)(s.H * s.R) * sizeof *G);
        memset(ddelta, 0, (size_t)(s.H + s.R) * sizeof *ddelta);
        for (int64_t i = 0; i < s.H * s.R; i++) {
            int64_t e = token * s.H * s.R + i, h = i / s.R, r = i % s.R;
            double dcosine = call_dout(c, TURN_COSINE) ? call_dout(c, TURN_COSINE)[e] : 0;
            double dsine = call_dout(c, TURN_SINE) ? call_dout(c, TURN_SINE)[e] : 0;
            G[i] +=
                TURN_PI * (tensor_real(c->out[TURN_COSINE])[e] * dsine - tensor_real(c->out[TURN_SINE])[e] * dcosine);
            ddelta[h] += G[i] * tensor_real(c->in[TURN_RATE])[token * s.R + r];
            drate[r] += G[i] * tensor_real(c->in[TURN_DELTA])[token * s.H + h];
        }
        for (int64_t h = 0; h < s.H && c->din[TURN_DELTA]; h++)
            put(c->din[TURN_DELTA] + token * s.H + h, call_accumulates(c, TURN_DELTA), (real)ddelta[h]);
        for (int64_t r = 0; r < s.R && c->din[TURN_RATE]; r++)
            put(c->din[TURN_RATE] + token * s.R + r, call_accumulates(c, TURN_RATE), (real)drate[r]);
    }
}

const struct kernel kernel_running_turn_ref = {
    .name = "running_turn_ref",
    .op = &op_running_turn,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = running_turn_ref_workspace,
    .forward = running_turn_ref_forward,
    .backward = running_turn_ref_backward,
};

/* --- turn_heads --------------------------------------------------------------------------------------------------- */

struct tensor *turn_heads(struct graph *g, struct tensor *x, struct tensor *b, struct tensor *cosine,
                          struct tensor *sine) {
    return call1(g, &op_turn_heads, NULL, 0, (struct tensor *[]){x, b, cosine, sine}, 4);
}

static void turn_heads_infer(struct graph *g, struct call *c) {
    const struct tensor *x = c->in[HEADS_X], *b = c->in[HEADS_BIAS], *cosine = c->in[HEADS_COSINE];
    if (!infer_present(g, c, 4) || !infer_same_shape(g, c, HEADS_COSINE, HEADS_SINE)) return;
    if (x->rank != 3 || b->rank != 2 || cosine->rank != 3) {
        graph_fail(g, ST_USAGE, "turn_heads: x, bias and cosine have rank %d, %d, %d, expected 3, 2, 3", x->rank,
                   b->rank, cosine->rank);
    } else if (b->dims[1] != x->dims[2]) {
        graph_fail(g, ST_USAGE, "turn_heads: x is %" PRId64 " wide and the bias %" PRId64 "; they must agree",
                   x->dims[2], b->dims[1]);
    } else if (cosine->dims[0] != x->dims[0] || cosine->dims[1] != x->dims[1]) {
        graph_fail(g, ST_USAGE,
                   "turn_heads: x is (%" PRId64 ",%" PRId64 ") and the cosine (%" PRId64 ",%" PRId64
                   ") in batch and length; they must agree",
                   x->dims[0], x->dims[1], cosine->dims[0], cosine->dims[1]);
    } else if (cosine->dims[2] % b->dims[0] != 0 || 2 * cosine->dims[2] > b->dims[0] * x->dims[2]) {
        graph_fail(g, ST_USAGE,
                   "turn_heads: %" PRId64 " angles are not up to %" PRId64 " pairs for each of %" PRId64 " heads",
                   cosine->dims[2], x->dims[2] / 2, b->dims[0]);
    } else {
        struct turn_size s = turn_heads_size(c);
        graph_output(g, c, DT_REAL, 3, (int64_t[]){s.B, s.T, s.H * s.S});
    }
}

static struct cost turn_heads_cost(const struct call *c, enum pass pass) {
    struct turn_size s = turn_heads_size(c);
    double tokens = (double)(s.B * s.T), y = tokens * (double)(s.H * s.S), pairs = tokens * (double)(s.H * s.R);
    double moved = y + tokens * (double)s.S + 2 * pairs;
    if (pass == PASS_FORWARD) return (struct cost){y + 6 * pairs, sizeof(real) * moved};
    return (struct cost){3 * y + 12 * pairs, sizeof(real) * (2 * moved - y)};
}

/* In variant 0 all channels are turned, in variant 1 three are not. */
static bool turn_heads_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    int64_t S = 2 * s->m + 3 * s->variant;
    struct tensor *x = input_tokens(g, s, "x", S), *b = input_matrix(g, "b", s->heads, S);
    struct tensor *cosine = input_tokens(g, s, "cosine", s->heads * s->m);
    turn_heads(g, x, b, cosine, input_tokens(g, s, "sine", s->heads * s->m));
    return true;
}

const struct op op_turn_heads = {
    .name = "turn_heads",
    .maths = "(y_0, y_1) = ((x + b)_0 cos - (x + b)_1 sin, (x + b)_0 sin + (x + b)_1 cos) for the pairs of each head",
    .source = "Mamba-3 (Lahoti et al. 2026); Su et al. 2021",
    .needs_in = 15,
    .infer = turn_heads_infer,
    .cost = turn_heads_cost,
    .sizes = "batch length heads m",
    .build = turn_heads_build,
};

/* Returns x + b of channel j of a head at a token. */
static double biased(const struct call *c, struct turn_size s, int64_t token, int64_t h, int64_t j) {
    return (double)tensor_real(c->in[HEADS_X])[token * s.S + j] + tensor_real(c->in[HEADS_BIAS])[h * s.S + j];
}

static void turn_heads_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turn_size s = turn_heads_size(c);
    for (int64_t i = 0; i < s.B * s.T * s.H; i++) {
        int64_t token = i / s.H, h = i % s.H;
        const real *cosine = tensor_real(c->in[HEADS_COSINE]) + i * s.R,
                   *sine = tensor_real(c->in[HEADS_SINE]) + i * s.R;
        real *y = tensor_real(c->out[0]) + i * s.S;
        for (int64_t r = 0; r < s.R; r++) {
            double a = biased(c, s, token, h, 2 * r), b = biased(c, s, token, h, 2 * r + 1);
            y[2 * r] = (real)(a * cosine[r] - b * sine[r]);
            y[2 * r + 1] = (real)(a * sine[r] + b * cosine[r]);
        }
        for (int64_t j = 2 * s.R; j < s.S; j++) y[j] = (real)biased(c, s, token, h, j);
    }
}

/* Scratch arrays: the sums for the gradients of a token's x, and for the gradient of the bias. */
static size_t turn_heads_ref_workspace(const struct call *c, enum pass pass) {
    struct turn_size s = turn_heads_size(c);
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)((1 + s.H) * s.S) * sizeof(double));
}

static void turn_heads_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turn_size s = turn_heads_size(c);
    double *dx = c->scratch[PASS_BACKWARD], *db = dx + s.S;
    memset(db, 0, (size_t)(s.H * s.S) * sizeof *db);
    for (int64_t i = 0; i < s.B * s.T * s.H; i++) {
        int64_t token = i / s.H, h = i % s.H;
        const real *cosine = tensor_real(c->in[HEADS_COSINE]) + i * s.R,
                   *sine = tensor_real(c->in[HEADS_SINE]) + i * s.R;
        const real *dy = call_dout(c, 0) + i * s.S;
        if (h == 0) memset(dx, 0, (size_t)s.S * sizeof *dx);
        for (int64_t j = 0; j < s.S; j++) {
            bool second = j % 2 == 1;
            int64_t r = j / 2;
            double d = dy[j];
            if (j < 2 * s.R)
                d = second ? (double)dy[j] * cosine[r] - (double)dy[j - 1] * sine[r]
                           : (double)dy[j] * cosine[r] + (double)dy[j + 1] * sine[r];
            dx[j] += d;
            db[h * s.S + j] += d;
        }
        for (int64_t r = 0; r < s.R; r++) {
            double a = biased(c, s, token, h, 2 * r), b = biased(c, s, token, h, 2 * r + 1);
            double dcosine = dy[2 * r] * a + dy[2 * r + 1] * b, dsine = dy[2 * r + 1] * a - dy[2 * r] * b;
            if (c->din[HEADS_COSINE])
                put(c->din[HEADS_COSINE] + i * s.R + r, call_accumulates(c, HEADS_COSINE), (real)dcosine);
            if (c->din[HEADS_SINE]) put(c->din[HEADS_SINE] + i * s.R + r, call_accumulates(c, HEADS_SINE), (real)dsine);
        }
        for (int64_t j = 0; j < s.S && h == s.H - 1 && c->din[HEADS_X]; j++)
            put(c->din[HEADS_X] + token * s.S + j, call_accumulates(c, HEADS_X), (real)dx[j]);
    }
    for (int64_t e = 0; e < s.H * s.S && c->din[HEADS_BIAS]; e++)
        put(c->din[HEADS_BIAS] + e, call_accumulates(c, HEADS_BIAS), (real)db[e]);
}

const struct kernel kernel_turn_heads_ref = {
    .name = "turn_heads_ref",
    .op = &op_turn_heads,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = turn_heads_ref_workspace,
    .forward = turn_heads_ref_forward,
    .backward = turn_heads_ref_backward,
};

/* scan_turned.c - complex states that the input turns by angles, without any decay: the op and its reference.
 *
 * Channel i of a token has the input x and N states h[j]. The vector u of the token sets the angles theta; W and b are
 * parameters. The parameters K_j weight the states in the output y:
 *   theta = W u + b   p = e^(i theta) h_{t-1}   h_t = p + x   y = Re sum_j K_j h_t[j]
 * Backward, from the last token to the first. G = dL/dRe h + i dL/dIm h is the gradient of h and starts with 0:
 *   G += conj(K) dy   dK += dy conj(h)   dx = sum_j Re G   dtheta = Re p Im G - Im p Re G   G <- e^(-i theta) G
 *   du = W^T dtheta   dW += dtheta u^T   db += dtheta
 * Forward stores h after every 64 tokens, and no other state or angle. Backward computes the angles and states of 64
 * tokens again, from the h before them. Instead it could turn states back, h_{t-1} = e^(-i theta) (h_t - x). But then
 * rounding errors of tokens after the end of a sequence would reach the gradients of the sequence's tokens. */
#include "kernels/token/scan_turned.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"

struct tensor *scan_turned(struct graph *g, struct tensor *x, struct tensor *u, struct tensor *w, struct tensor *b,
                           struct tensor *k_re, struct tensor *k_im) {
    return call1(g, &op_scan_turned, NULL, 0, (struct tensor *[]){x, u, w, b, k_re, k_im}, TURNED_INPUTS);
}

static void scan_turned_infer(struct graph *g, struct call *c) {
    const struct tensor *x = c->in[TURNED_X], *u = c->in[TURNED_U], *w = c->in[TURNED_W], *k = c->in[TURNED_K_RE];
    if (!infer_present(g, c, TURNED_INPUTS) || !infer_same_shape(g, c, TURNED_K_RE, TURNED_K_IM)) return;
    if (x->rank != 3 || u->rank != 3 || w->rank != 2 || c->in[TURNED_B]->rank != 1 || k->rank != 1) {
        graph_fail(g, ST_USAGE, "scan_turned: x, u, w, b and K have rank %d, %d, %d, %d, %d, expected 3, 3, 2, 1, 1",
                   x->rank, u->rank, w->rank, c->in[TURNED_B]->rank, k->rank);
    } else if (x->dims[0] != u->dims[0] || x->dims[1] != u->dims[1]) {
        graph_fail(g, ST_USAGE,
                   "scan_turned: x is (%" PRId64 ",%" PRId64 ") and u (%" PRId64 ",%" PRId64
                   ") in batch and length; they must agree",
                   x->dims[0], x->dims[1], u->dims[0], u->dims[1]);
    } else if (w->dims[1] != u->dims[2]) {
        graph_fail(g, ST_USAGE, "scan_turned: u has %" PRId64 " columns but w has %" PRId64 "; they must agree",
                   u->dims[2], w->dims[1]);
    } else if (w->dims[0] != x->dims[2] * k->dims[0] || c->in[TURNED_B]->dims[0] != w->dims[0]) {
        graph_fail(g, ST_USAGE,
                   "scan_turned: w has %" PRId64 " rows and b %" PRId64 " elements, expected %" PRId64
                   " states x %" PRId64 " channels",
                   w->dims[0], c->in[TURNED_B]->dims[0], k->dims[0], x->dims[2]);
    } else {
        struct turned_size s = turned_size_of(c);
        graph_output(g, c, DT_REAL, 3, x->dims);
        struct tensor *kept = graph_output(g, c, DT_REAL, 3, (int64_t[]){s.B, s.chunks, 2 * s.channels});
        if (kept) kept->needs_grad = false;
    }
}

/* A sine or cosine counts as 10 FLOPs. Backward computes the angles and states again. */
static struct cost scan_turned_cost(const struct call *c, enum pass pass) {
    struct turned_size s = turned_size_of(c);
    double tokens = (double)(s.B * s.T), states = tokens * (double)s.channels, product = 2 * states * (double)s.I;
    double weights = (double)s.channels * (double)(s.I + 1), rows = tokens * (double)(s.D + s.I);
    double kept = (double)tensor_count(c->out[TURNED_KEPT]), y = tokens * (double)s.D;
    if (pass == PASS_FORWARD) return (struct cost){product + 32 * states, sizeof(real) * (weights + rows + y + kept)};
    return (struct cost){3 * product + 54 * states, sizeof(real) * (2 * weights + 2 * rows + y + kept)};
}

static bool scan_turned_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    int64_t I = s->m, channels = s->blocks * s->dim;
    struct tensor *x = input_tokens(g, s, "x", s->dim), *u = input_tokens(g, s, "u", I);
    struct tensor *w = input_matrix(g, "w", channels, I), *b = input_vector(g, "b", channels);
    struct tensor *k_re = input_vector(g, "k_re", s->blocks);
    scan_turned(g, x, u, w, b, k_re, input_vector(g, "k_im", s->blocks));
    return true;
}

const struct op op_scan_turned = {
    .name = "scan_turned",
    .maths = "h_t[j][i] = e^(i (W u_t + b)[j][i]) h_{t-1}[j][i] + x_t[i];  y_t[i] = Re sum_j K_j h_t[j][i]",
    .source = "AUSSM (Karuvally et al. 2025)",
    .needs_in = 63,
    .needs_out = 2,
    .infer = scan_turned_infer,
    .cost = scan_turned_cost,
    .sizes = "batch length blocks dim m",
    .build = scan_turned_build,
};

/* --- reference: one state of a channel at a time, in double ------------------------------------------------------- */

static double angle_at(const struct call *c, int64_t I, int64_t token, int64_t channel) {
    const real *u = tensor_real(c->in[TURNED_U]) + token * I, *w = tensor_real(c->in[TURNED_W]) + channel * I;
    double sum = tensor_real(c->in[TURNED_B])[channel];
    for (int64_t k = 0; k < I; k++) sum += (double)w[k] * u[k];
    return sum;
}

/* Scratch arrays: y of a sequence, in double. Backward also has theta and h (re, im) of one state at all tokens, and
 * the sums of all gradients. */
struct reference {
    double *y, *theta, *h, *gradients[TURNED_INPUTS];
};

static struct reference reference_of(const struct call *c, enum pass pass, struct scratch *scratch) {
    struct turned_size s = turned_size_of(c);
    struct reference r = {0};
    if (pass == PASS_FORWARD) {
        r.y = scratch_doubles(scratch, s.T * s.D);
        return r;
    }
    r.theta = scratch_doubles(scratch, s.T);
    r.h = scratch_doubles(scratch, 2 * s.T);
    for (int i = 0; i < TURNED_INPUTS; i++) r.gradients[i] = scratch_doubles(scratch, tensor_count(c->in[i]));
    return r;
}

static size_t scan_turned_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    reference_of(c, pass, &s);
    return s.used;
}

static void scan_turned_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turned_size s = turned_size_of(c);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    double *y = reference_of(c, PASS_FORWARD, &scratch).y;
    for (int64_t b = 0; b < s.B; b++) {
        memset(y, 0, (size_t)(s.T * s.D) * sizeof *y);
        for (int64_t e = 0; e < s.channels; e++) {
            double re = 0, im = 0;
            for (int64_t t = 0; t < s.T; t++) {
                double theta = angle_at(c, s.I, b * s.T + t, e), turned = cos(theta) * re - sin(theta) * im;
                im = sin(theta) * re + cos(theta) * im;
                re = turned + tensor_real(c->in[TURNED_X])[(b * s.T + t) * s.D + e % s.D];
                y[t * s.D + e % s.D] +=
                    tensor_real(c->in[TURNED_K_RE])[e / s.D] * re - tensor_real(c->in[TURNED_K_IM])[e / s.D] * im;
                if (turned_keeps(&s, t)) {
                    real *kept = tensor_real(c->out[TURNED_KEPT]) + turned_kept_at(&s, b, t);
                    kept[e] = (real)re;
                    kept[s.channels + e] = (real)im;
                }
            }
        }
        for (int64_t i = 0; i < s.T * s.D; i++) tensor_real(c->out[TURNED_Y])[b * s.T * s.D + i] = (real)y[i];
    }
}

/* Computes the gradients that come from state e of sequence b. */
static void reference_state_back(const struct call *c, const struct turned_size *s, const struct reference *r,
                                 int64_t b, int64_t e) {
    double k_re = tensor_real(c->in[TURNED_K_RE])[e / s->D], k_im = tensor_real(c->in[TURNED_K_IM])[e / s->D];
    double re = 0, im = 0, G_re = 0, G_im = 0;
    for (int64_t t = 0; t < s->T; t++) {
        double theta = angle_at(c, s->I, b * s->T + t, e), turned = cos(theta) * re - sin(theta) * im;
        im = sin(theta) * re + cos(theta) * im;
        re = turned + tensor_real(c->in[TURNED_X])[(b * s->T + t) * s->D + e % s->D];
        r->theta[t] = theta;
        r->h[2 * t] = re;
        r->h[2 * t + 1] = im;
    }
    for (int64_t t = s->T - 1; t >= 0; t--) {
        int64_t token = b * s->T + t, at = token * s->D + e % s->D;
        double dy = call_dout(c, TURNED_Y)[at], p_re = r->h[2 * t] - tensor_real(c->in[TURNED_X])[at];
        double p_im = r->h[2 * t + 1], cosine = cos(r->theta[t]), sine = sin(r->theta[t]);
        G_re += k_re * dy;
        G_im -= k_im * dy;
        r->gradients[TURNED_K_RE][e / s->D] += dy * r->h[2 * t];
        r->gradients[TURNED_K_IM][e / s->D] -= dy * r->h[2 * t + 1];
        r->gradients[TURNED_X][at] += G_re;
        double dtheta = p_re * G_im - p_im * G_re, turned = cosine * G_re + sine * G_im;
        G_im = cosine * G_im - sine * G_re;
        G_re = turned;
        r->gradients[TURNED_B][e] += dtheta;
        for (int64_t k = 0; k < s->I; k++) {
            r->gradients[TURNED_W][e * s->I + k] += dtheta * tensor_real(c->in[TURNED_U])[token * s->I + k];
            r->gradients[TURNED_U][token * s->I + k] += dtheta * tensor_real(c->in[TURNED_W])[e * s->I + k];
        }
    }
}

static void scan_turned_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turned_size s = turned_size_of(c);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct reference r = reference_of(c, PASS_BACKWARD, &scratch);
    for (int i = 0; i < TURNED_INPUTS; i++) memset(r.gradients[i], 0, (size_t)tensor_count(c->in[i]) * sizeof(double));
    for (int64_t i = 0; i < s.B * s.channels; i++) reference_state_back(c, &s, &r, i / s.channels, i % s.channels);
    for (int i = 0; i < TURNED_INPUTS; i++)
        for (int64_t e = 0; e < tensor_count(c->in[i]) && c->din[i]; e++)
            put(c->din[i] + e, call_accumulates(c, i), (real)r.gradients[i][e]);
}

const struct kernel kernel_scan_turned_ref = {
    .name = "scan_turned_ref",
    .op = &op_scan_turned,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = scan_turned_ref_workspace,
    .forward = scan_turned_ref_forward,
    .backward = scan_turned_ref_backward,
};

/* turn_cuda.cu - running_turn and turn_heads on CUDA. For the sums of angles a thread has a pair of a head and walks
 * time. Cosines, sines and sums over heads and pairs have one value per thread. Equations: turn.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/token/turn.h"

namespace {

/* --- running_turn: thread i has pair i % HR of sequence i / HR ---------------------------------------------------- */

struct turn_angles {
    struct turn_size s;
    const real *delta, *rate;
    real *angles;
    __device__ void operator()(int64_t i) const {
        struct quotient pair = divide(i, s.H * s.R), head = divide(pair.rest, s.R);
        real angle = 0;
        for (int64_t token = pair.whole * s.T; token < (pair.whole + 1) * s.T; token++) {
            angle = real_fma(delta[token * s.H + head.whole], rate[token * s.R + head.rest], angle);
            angle -= 2 * (real)rint((double)angle / 2);
            angles[token * s.H * s.R + pair.rest] = angle;
        }
    }
};

/* `sine` contains the angles before, and the sines afterwards. */
struct turn_values {
    real *cosine, *sine;
    __device__ void operator()(int64_t i) const {
        double angle = TURN_PI * (double)sine[i];
        cosine[i] = (real)cos(angle);
        sine[i] = (real)sin(angle);
    }
};

/* G (B,T,H*R): gradients of the angles. dcosine, dsine NULL: a gradient of 0. */
struct turn_arrivals {
    struct turn_size s;
    const real *cosine, *sine, *dcosine, *dsine;
    real *G;
    __device__ void operator()(int64_t i) const {
        struct quotient pair = divide(i, s.H * s.R);
        real sum = 0;
        for (int64_t token = (pair.whole + 1) * s.T - 1; token >= pair.whole * s.T; token--) {
            int64_t e = token * s.H * s.R + pair.rest;
            if (dsine) sum = real_fma((real)TURN_PI * cosine[e], dsine[e], sum);
            if (dcosine) sum = real_fma((real)-TURN_PI * sine[e], dcosine[e], sum);
            G[e] = sum;
        }
    }
};

struct turn_ddelta {
    struct turn_size s;
    const real *G, *rate;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        int64_t token = divide(i, s.H).whole;
        real sum = 0;
        for (int64_t r = 0; r < s.R; r++) sum = real_fma(G[i * s.R + r], rate[token * s.R + r], sum);
        put(to + i, accumulate, sum);
    }
};

struct turn_drate {
    struct turn_size s;
    const real *G, *delta;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, s.R);
        real sum = 0;
        for (int64_t h = 0; h < s.H; h++) {
            int64_t head = at.whole * s.H + h;
            sum = real_fma(G[head * s.R + at.rest], delta[head], sum);
        }
        put(to + i, accumulate, sum);
    }
};

/* --- turn_heads --------------------------------------------------------------------------------------------------- */

/* Channel j of head `head` of all tokens' heads, from a function of the channel: direction 1 turns forward, -1 back. */
struct turner {
    const real *cosine, *sine;
    int64_t R;
    template <class Value>
    __device__ __forceinline__ real turned(int64_t head, int64_t j, real direction, Value value) const {
        int64_t r = head * R + j / 2;
        if (j >= 2 * R) return value(j);
        return j % 2 ? value(j) * cosine[r] + direction * value(j - 1) * sine[r]
                     : value(j) * cosine[r] - direction * value(j + 1) * sine[r];
    }
};

struct heads_forward {
    struct turn_size s;
    struct turner by;
    const real *x, *b;
    real *y;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, s.S), token = divide(at.whole, s.H);
        const real *row = x + token.whole * s.S, *bias = b + token.rest * s.S;
        y[i] = by.turned(at.whole, at.rest, 1, [&](int64_t j) { return row[j] + bias[j]; });
    }
};

/* Gradient of x + b at element i of y; also a term of the sums over rows. */
struct heads_back {
    struct turn_size s;
    struct turner by;
    const real *dy;
    __device__ real operator()(int64_t, int64_t i) const {
        struct quotient at = divide(i, s.S);
        const real *row = dy + at.whole * s.S;
        return by.turned(at.whole, at.rest, -1, [&](int64_t j) { return row[j]; });
    }
};

struct heads_dx {
    struct heads_back back;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, back.s.S);
        real sum = 0;
        for (int64_t h = 0; h < back.s.H; h++) sum += back(0, (at.whole * back.s.H + h) * back.s.S + at.rest);
        put(to + i, accumulate, sum);
    }
};

/* dcosine, dsine NULL: not wanted. */
struct heads_dangle {
    struct turn_size s;
    const real *x, *b, *dy;
    real *dcosine, *dsine;
    bool add_cosine, add_sine;
    __device__ void operator()(int64_t i) const {
        struct quotient head = divide(i, s.R), token = divide(head.whole, s.H);
        const real *row = x + token.whole * s.S + 2 * head.rest, *bias = b + token.rest * s.S + 2 * head.rest;
        const real *d = dy + head.whole * s.S + 2 * head.rest;
        real first = row[0] + bias[0], second = row[1] + bias[1];
        if (dcosine) put(dcosine + i, add_cosine, d[0] * first + d[1] * second);
        if (dsine) put(dsine + i, add_sine, d[1] * first - d[0] * second);
    }
};

} // namespace

static void running_turn_cuda_forward(const struct call *c, const struct exec *x) {
    struct turn_size s = running_turn_size(c);
    real *cosine = tensor_real(c->out[TURN_COSINE]), *sine = tensor_real(c->out[TURN_SINE]);
    each_value(c, x, s.B * s.H * s.R,
               turn_angles{s, tensor_real(c->in[TURN_DELTA]), tensor_real(c->in[TURN_RATE]), sine});
    each_value(c, x, tensor_count(c->out[0]), turn_values{cosine, sine});
}

static size_t running_turn_cuda_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)tensor_count(c->out[0]) * sizeof(real));
}

static void running_turn_cuda_backward(const struct call *c, const struct exec *x) {
    struct turn_size s = running_turn_size(c);
    real *G = (real *)c->scratch[PASS_BACKWARD];
    each_value(c, x, s.B * s.H * s.R,
               turn_arrivals{s, tensor_real(c->out[TURN_COSINE]), tensor_real(c->out[TURN_SINE]),
                             call_dout(c, TURN_COSINE), call_dout(c, TURN_SINE), G});
    if (c->din[TURN_DELTA])
        each_value(
            c, x, s.B * s.T * s.H,
            turn_ddelta{s, G, tensor_real(c->in[TURN_RATE]), c->din[TURN_DELTA], call_accumulates(c, TURN_DELTA)});
    if (c->din[TURN_RATE])
        each_value(c, x, s.B * s.T * s.R,
                   turn_drate{s, G, tensor_real(c->in[TURN_DELTA]), c->din[TURN_RATE], call_accumulates(c, TURN_RATE)});
}

static struct turner turner_of(const struct call *c, const struct turn_size &s) {
    return {tensor_real(c->in[HEADS_COSINE]), tensor_real(c->in[HEADS_SINE]), s.R};
}

static void turn_heads_cuda_forward(const struct call *c, const struct exec *x) {
    struct turn_size s = turn_heads_size(c);
    each_value(c, x, s.B * s.T * s.H * s.S,
               heads_forward{s, turner_of(c, s), tensor_real(c->in[HEADS_X]), tensor_real(c->in[HEADS_BIAS]),
                             tensor_real(c->out[0])});
}

static size_t turn_heads_cuda_workspace(const struct call *c, enum pass pass) {
    struct turn_size s = turn_heads_size(c);
    return pass == PASS_FORWARD ? 0 : cuda_column_sums_bytes(s.B * s.T, s.H * s.S);
}

static void turn_heads_cuda_backward(const struct call *c, const struct exec *x) {
    struct turn_size s = turn_heads_size(c);
    const real *in = tensor_real(c->in[HEADS_X]), *b = tensor_real(c->in[HEADS_BIAS]), *dy = call_dout(c, 0);
    struct heads_back back = {s, turner_of(c, s), dy};
    if (c->din[HEADS_X])
        each_value(c, x, s.B * s.T * s.S, heads_dx{back, c->din[HEADS_X], call_accumulates(c, HEADS_X)});
    if (c->din[HEADS_COSINE] || c->din[HEADS_SINE])
        each_value(c, x, s.B * s.T * s.H * s.R,
                   heads_dangle{s, in, b, dy, c->din[HEADS_COSINE], c->din[HEADS_SINE],
                                call_accumulates(c, HEADS_COSINE), call_accumulates(c, HEADS_SINE)});
    if (c->din[HEADS_BIAS])
        cuda_column_sums(c, x, s.B * s.T, s.H * s.S, back, c->din[HEADS_BIAS], call_accumulates(c, HEADS_BIAS),
                         (real *)c->scratch[PASS_BACKWARD]);
}

/* Tolerance: as running_turn_cpu. */
const struct kernel kernel_running_turn_cuda = {
    .name = "running_turn_cuda",
    .op = &op_running_turn,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 32,
    .workspace = running_turn_cuda_workspace,
    .forward = running_turn_cuda_forward,
    .backward = running_turn_cuda_backward,
};

/* Tolerance: as turn_heads_cpu. */
const struct kernel kernel_turn_heads_cuda = {
    .name = "turn_heads_cuda",
    .op = &op_turn_heads,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = turn_heads_cuda_workspace,
    .forward = turn_heads_cuda_forward,
    .backward = turn_heads_cuda_backward,
};

/* scan_turned_cuda.cu - states that only turn, on CUDA, block after block of tokens: cuBLAS gives their angles, a
 * thread walks time for one state of a channel and puts its share of y in the place of its angles; backward it walks
 * there and back, and puts their gradients there, and its share of dx in the place of its states; sums over states are
 * one a thread. Equations: scan_turned.c. */
#include "kernels/lib/cuda_gemm.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/token/scan_turned.h"

#define TURNED_ROOM (1 << 21) /* angles of a block, about */

namespace {

int64_t turned_rows(const struct turned_size &s) {
    int64_t rows = TURNED_ROOM / s.channels;
    return rows < TURNED_CHUNK ? TURNED_CHUNK : rows;
}

/* A state of a channel of a sequence of the block, by thread. */
struct turned_state {
    int64_t b, e, row, kept;
    __device__ turned_state(const struct turned_size &s, const struct turned_block &k, int64_t i) {
        struct quotient q = divide(i, s.channels);
        b = k.b + q.whole;
        e = q.rest;
        row = q.whole * k.length; /* of the block's angles, where the sequence's begin */
        kept = b * s.chunks * 2 * s.channels + e;
    }
};

__device__ __forceinline__ void turned_sine_cosine(real angle, real *sine, real *cosine) {
#if REAL_IS_DOUBLE
    *sine = sin(angle), *cosine = cos(angle);
#else
    *sine = sinf(angle), *cosine = cosf(angle);
#endif
}

struct turned_forward {
    struct turned_size s;
    struct turned_block k;
    const real *x, *bias, *k_re, *k_im;
    real *theta, *kept;
    __device__ void operator()(int64_t i) const {
        struct turned_state at(s, k, i);
        int64_t state = at.e / s.D, channel = at.e % s.D;
        real re = 0, im = 0, sine, cosine;
        if (k.t > 0) {
            int64_t before = at.kept + (k.t / TURNED_CHUNK - 1) * 2 * s.channels;
            re = kept[before], im = kept[before + s.channels];
        }
        for (int64_t r = 0; r < k.length; r++) {
            int64_t t = k.t + r;
            real *angle = theta + (at.row + r) * s.channels + at.e;
            turned_sine_cosine(*angle + bias[at.e], &sine, &cosine);
            real turned = real_fma(cosine, re, real_fma(-sine, im, x[(at.b * s.T + t) * s.D + channel]));
            im = real_fma(sine, re, cosine * im);
            re = turned;
            *angle = real_fma(k_re[state], re, -k_im[state] * im);
            if (turned_keeps(&s, t)) {
                int64_t to = at.kept + t / TURNED_CHUNK * 2 * s.channels;
                kept[to] = re;
                kept[to + s.channels] = im;
            }
        }
    }
};

/* to[token][i] (+)= sum over the states of from[row][j][i], row 0 being token `first`. */
struct turned_sum {
    int64_t D, N, first;
    const real *from;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient q = divide(i, D);
        real sum = 0;
        for (int64_t j = 0; j < N; j++) sum += from[(q.whole * N + j) * D + q.rest];
        put(to + first * D + i, accumulate, sum);
    }
};

/* theta becomes its gradient. p: the turned states; shares, re of p, becomes Re G. G and dK (B,2,N*D) go on from block
 * to block. */
struct turned_backward {
    struct turned_size s;
    struct turned_block k;
    const real *x, *bias, *k_re, *k_im, *kept, *dy;
    real *theta, *shares, *p_im, *G, *dK;
    __device__ void operator()(int64_t i) const {
        struct turned_state at(s, k, i);
        int64_t state = at.e / s.D, channel = at.e % s.D, carry = at.b * 2 * s.channels + at.e;
        bool last = k.t + k.length == s.T;
        real G_re = last ? 0 : G[carry], G_im = last ? 0 : G[carry + s.channels];
        real dk_re = last ? 0 : dK[carry], dk_im = last ? 0 : dK[carry + s.channels];
        real re = 0, im = 0, sine, cosine;
        if (k.t > 0) {
            int64_t before = at.kept + (k.t / TURNED_CHUNK - 1) * 2 * s.channels;
            re = kept[before], im = kept[before + s.channels];
        }
        for (int64_t r = 0; r < k.length; r++) {
            int64_t to = (at.row + r) * s.channels + at.e;
            turned_sine_cosine(theta[to] + bias[at.e], &sine, &cosine);
            shares[to] = real_fma(cosine, re, -sine * im);
            p_im[to] = im = real_fma(sine, re, cosine * im);
            re = shares[to] + x[(at.b * s.T + k.t + r) * s.D + channel];
        }
        for (int64_t r = k.length - 1; r >= 0; r--) {
            int64_t token = (at.b * s.T + k.t + r) * s.D + channel, from = (at.row + r) * s.channels + at.e;
            real d = dy[token], p_re = shares[from];
            turned_sine_cosine(theta[from] + bias[at.e], &sine, &cosine);
            G_re = real_fma(k_re[state], d, G_re);
            G_im = real_fma(-k_im[state], d, G_im);
            dk_re = real_fma(d, p_re + x[token], dk_re);
            dk_im = real_fma(-d, p_im[from], dk_im);
            shares[from] = G_re;
            theta[from] = real_fma(p_re, G_im, -p_im[from] * G_re);
            real turned = real_fma(cosine, G_re, sine * G_im);
            G_im = real_fma(cosine, G_im, -sine * G_re);
            G_re = turned;
        }
        G[carry] = G_re, G[carry + s.channels] = G_im;
        dK[carry] = dk_re, dK[carry + s.channels] = dk_im;
    }
};

/* Rows are the channels of all sequences, columns the states. */
struct turned_read_out {
    struct turned_size s;
    const real *dK; /* of one plane */
    __device__ real operator()(int64_t r, int64_t i) const {
        struct quotient q = divide(r, s.D);
        return dK[q.whole * 2 * s.channels + (i - r * s.N) * s.D + q.rest];
    }
};

/* Forward has the angles alone. */
struct turned_scratch {
    real *theta, *shares, *p_im, *G, *dK, *sums;
};

struct turned_scratch turned_scratch_of(const struct call *c, enum pass pass, struct scratch *scratch) {
    struct turned_size s = turned_size_of(c);
    int64_t most = s.B * s.T < turned_rows(s) ? s.B * s.T : turned_rows(s);
    struct turned_scratch w = {};
    w.theta = scratch_reals(scratch, most * s.channels);
    if (pass == PASS_FORWARD) return w;
    w.shares = scratch_reals(scratch, most * s.channels);
    w.p_im = scratch_reals(scratch, most * s.channels);
    w.G = scratch_reals(scratch, 2 * s.B * s.channels);
    w.dK = scratch_reals(scratch, 2 * s.B * s.channels);
    size_t of_bias = cuda_column_sums_bytes(most, s.channels), of_K = cuda_column_sums_bytes(s.B * s.D, s.N);
    w.sums = (real *)scratch_bytes(scratch, of_bias > of_K ? of_bias : of_K);
    return w;
}

void turned_angles(const struct call *c, const struct exec *x, const struct turned_size &s,
                   const struct turned_block &k, real *theta) {
    cuda_gemm(x, PRECISION_FULL,
              {false, true, k.n * k.length, s.channels, s.I, tensor_real(c->in[TURNED_U]) + (k.b * s.T + k.t) * s.I,
               s.I, tensor_real(c->in[TURNED_W]), s.I, false, theta, s.channels});
}

} // namespace

static size_t scan_turned_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    turned_scratch_of(c, pass, &s);
    return s.used;
}

static void scan_turned_cuda_forward(const struct call *c, const struct exec *x) {
    struct turned_size s = turned_size_of(c);
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct turned_scratch w = turned_scratch_of(c, PASS_FORWARD, &scratch);
    for (int64_t i = 0; i < turned_blocks(&s, s.B, turned_rows(s)); i++) {
        struct turned_block k = turned_block_at(&s, 0, s.B, turned_rows(s), i);
        turned_angles(c, x, s, k, w.theta);
        each_value(c, x, k.n * s.channels,
                   turned_forward{s, k, tensor_real(c->in[TURNED_X]), tensor_real(c->in[TURNED_B]),
                                  tensor_real(c->in[TURNED_K_RE]), tensor_real(c->in[TURNED_K_IM]), w.theta,
                                  tensor_real(c->out[TURNED_KEPT])});
        each_value(c, x, k.n * k.length * s.D,
                   turned_sum{s.D, s.N, k.b * s.T + k.t, w.theta, tensor_real(c->out[TURNED_Y]), false});
    }
}

/* Gradients of u, W and b, from those of a block's angles. */
static void turned_parameters(const struct call *c, const struct exec *x, const struct turned_size &s,
                              const struct turned_block &k, bool first, const struct turned_scratch &w) {
    int64_t rows = k.n * k.length, before = k.b * s.T + k.t;
    if (c->din[TURNED_U])
        cuda_gemm(x, PRECISION_FULL,
                  {false, false, rows, s.I, s.channels, w.theta, s.channels, tensor_real(c->in[TURNED_W]), s.I,
                   call_accumulates(c, TURNED_U), c->din[TURNED_U] + before * s.I, s.I});
    if (c->din[TURNED_W])
        cuda_gemm(x, PRECISION_FULL,
                  {true, false, s.channels, s.I, rows, w.theta, s.channels, tensor_real(c->in[TURNED_U]) + before * s.I,
                   s.I, !first || call_accumulates(c, TURNED_W), c->din[TURNED_W], s.I});
    if (c->din[TURNED_B])
        cuda_column_sums(c, x, rows, s.channels, matrix_term{w.theta}, c->din[TURNED_B],
                         !first || call_accumulates(c, TURNED_B), w.sums);
}

static void scan_turned_cuda_backward(const struct call *c, const struct exec *x) {
    struct turned_size s = turned_size_of(c);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct turned_scratch w = turned_scratch_of(c, PASS_BACKWARD, &scratch);
    int64_t blocks = turned_blocks(&s, s.B, turned_rows(s));
    for (int64_t i = blocks - 1; i >= 0; i--) {
        struct turned_block k = turned_block_at(&s, 0, s.B, turned_rows(s), i);
        turned_angles(c, x, s, k, w.theta);
        each_value(c, x, k.n * s.channels,
                   turned_backward{s, k, tensor_real(c->in[TURNED_X]), tensor_real(c->in[TURNED_B]),
                                   tensor_real(c->in[TURNED_K_RE]), tensor_real(c->in[TURNED_K_IM]),
                                   tensor_real(c->out[TURNED_KEPT]), call_dout(c, TURNED_Y), w.theta, w.shares, w.p_im,
                                   w.G, w.dK});
        if (c->din[TURNED_X])
            each_value(
                c, x, k.n * k.length * s.D,
                turned_sum{s.D, s.N, k.b * s.T + k.t, w.shares, c->din[TURNED_X], call_accumulates(c, TURNED_X)});
        turned_parameters(c, x, s, k, i == blocks - 1, w);
    }
    for (int plane = 0; plane < 2; plane++)
        if (c->din[TURNED_K_RE + plane])
            cuda_column_sums(c, x, s.B * s.D, s.N, turned_read_out{s, w.dK + plane * s.channels},
                             c->din[TURNED_K_RE + plane], call_accumulates(c, TURNED_K_RE + plane), w.sums);
}

/* cuBLAS counts in int. */
static bool scan_turned_cuda_applicable(const struct call *c, const char **why) {
    struct turned_size s = turned_size_of(c);
    *why = "a block of 64 tokens has up to 2147483647 angles, and so many weights";
    return s.channels <= INT32_MAX / TURNED_CHUNK && s.channels * s.I <= INT32_MAX;
}

/* Tolerance: as scan_turned_cpu. */
const struct kernel kernel_scan_turned_cuda = {
    .name = "scan_turned_cuda",
    .op = &op_scan_turned,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 512,
    .tiles = "cuBLAS takes other tiles for other numbers of rows",
    .applicable = scan_turned_cuda_applicable,
    .workspace = scan_turned_cuda_workspace,
    .forward = scan_turned_cuda_forward,
    .backward = scan_turned_cuda_backward,
};

/* scan_lstm_cuda.cu - scan_lstm on CUDA, for the widths at which scan_lstm_cluster_cuda is not preferred. At each time
 * step, cuBLAS computes one product for all sequences, and an element-wise kernel computes the gates. The gradient of
 * the weights is one product over all tokens. Equations: scan_lstm.c. */
#include "kernels/gated/lstm/lstm.cuh"

namespace {

/* Computes p = u + bh for all tokens. The products with wh are then added to p. */
struct lstm_input {
    const real *u, *bh;
    real *p;
    int64_t width;
    __device__ void operator()(int64_t i) const {
        p[i] = u[i] + bh[divide(i, width).rest];
    }
};

/* Computes one step for channel i % H of sequence i / H. `gates` has the pre-activations, which become the activated
 * gates. */
struct lstm_step {
    real *gates, *cell, *h;
    const real *first; /* c0 (B,H); NULL: zeros */
    int64_t T, H, t;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, H);
        int64_t row = at.whole * T + t, e = row * H + at.rest;
        real *of = gates + row * 4 * H + at.rest, p[4] = {of[0], of[H], of[2 * H], of[3 * H]};
        struct lstm_channel x;
        x.before = t > 0 ? cell[e - H] : first ? first[i] : 0;
        h[e] = lstm_channel_forward(p, &x);
        cell[e] = x.cell;
        for (int i = 0; i < 4; i++) of[i * H] = x.gate[i];
    }
};

/* Computes the gradients of one step. dh and dc (B,H) are gradients from time t + 1; dc becomes the gradient for time t
 * - 1. dp (B,T,4H) receives the gradients of the pre-activations. */
struct lstm_step_gradient {
    const real *gates, *cell, *first, *dout, *d_cell, *dh; /* first: c0; d_cell: gradient of c; NULL: zeros */
    real *dc, *dp;
    int64_t T, H, t;
    __device__ void operator()(int64_t at_) const {
        struct quotient at = divide(at_, H);
        int64_t row = at.whole * T + t, e = row * H + at.rest;
        const real *of = gates + row * 4 * H + at.rest;
        real *to = dp + row * 4 * H + at.rest;
        struct lstm_channel x = {{of[0], of[H], of[2 * H], of[3 * H]},
                                 cell[e],
                                 t > 0   ? cell[e - H]
                                 : first ? first[at_]
                                         : 0};
        bool last = t == T - 1;
        real d = dout[e] + (last ? 0 : dh[at_]), carried = (last ? 0 : dc[at_]) + (d_cell ? d_cell[e] : 0), p[4];
        lstm_channel_backward(&x, d, &carried, p);
        for (int i = 0; i < 4; i++) to[i * H] = p[i];
        dc[at_] = carried;
    }
};

/* Copies h of the previous time step to `to`, with h0 (first), or zeros, at the first step. */
struct lstm_before {
    const real *h, *first;
    real *to;
    int64_t T, H;
    __device__ void operator()(int64_t i) const {
        struct quotient token = divide(i, H), at = divide(token.whole, T);
        to[i] = at.rest > 0 ? h[i - H] : first ? first[at.whole * H + token.rest] : 0;
    }
};

struct lstm_scratch {
    real *dp, *dh, *dc, *before, *sums;
};

struct lstm_scratch lstm_scratch_of(const struct call *c, struct scratch *s) {
    int64_t B = c->in[0]->dims[0], rows = tensor_rows(c->in[0]), H = tensor_cols(c->in[1]);
    struct lstm_scratch r;
    r.dp = scratch_reals(s, rows * 4 * H);
    r.dh = scratch_reals(s, B * H);
    r.dc = scratch_reals(s, B * H);
    r.before = scratch_reals(s, rows * H);
    r.sums = (real *)scratch_bytes(s, cuda_column_sums_bytes(rows, 4 * H));
    return r;
}

} // namespace

static void scan_lstm_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = tensor_cols(c->in[1]);
    real *h = tensor_real(c->out[0]), *cell = tensor_real(c->out[1]), *gates = tensor_real(c->out[2]);
    const real *h0 = lstm_row(c, 0, 0);
    each_value(c, x, B * T * 4 * H, lstm_input{tensor_real(c->in[0]), tensor_real(c->in[2]), gates, 4 * H});
    for (int64_t t = 0; t < T; t++) {
        if (t > 0 || h0)
            cuda_gemm(x, PRECISION_FULL,
                      {false, true, B, 4 * H, H, t > 0 ? h + (t - 1) * H : h0, t > 0 ? T * H : H, tensor_real(c->in[1]),
                       H, true, gates + t * 4 * H, T * 4 * H});
        each_value(c, x, B * H, lstm_step{gates, cell, h, lstm_row(c, 1, 0), T, H, t});
    }
}

static size_t scan_lstm_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) lstm_scratch_of(c, &s);
    return s.used;
}

static void scan_lstm_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = tensor_cols(c->in[1]), rows = B * T;
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct lstm_scratch r = lstm_scratch_of(c, &s);
    const real *wh = tensor_real(c->in[1]);
    for (int64_t t = T - 1; t >= 0; t--) {
        if (t < T - 1)
            cuda_gemm(x, PRECISION_FULL,
                      {false, false, B, H, 4 * H, r.dp + (t + 1) * 4 * H, T * 4 * H, wh, H, false, r.dh, H});
        each_value(c, x, B * H,
                   lstm_step_gradient{tensor_real(c->out[2]), tensor_real(c->out[1]), lstm_row(c, 1, 0),
                                      call_dout(c, 0), call_dout(c, 1), r.dh, r.dc, r.dp, T, H, t});
    }
    if (c->n_in > 3 && c->din[3])
        cuda_gemm(x, PRECISION_FULL,
                  {false, false, B, H, 4 * H, r.dp, T * 4 * H, wh, H, call_accumulates(c, 3), c->din[3], H});
    if (c->n_in > 3 && c->din[4]) each(c, x, B * H, passed_on{r.dc, c->din[4], call_accumulates(c, 4)});
    if (c->din[0]) each(c, x, rows * 4 * H, passed_on{r.dp, c->din[0], call_accumulates(c, 0)});
    if (c->din[1]) each_value(c, x, rows * H, lstm_before{tensor_real(c->out[0]), lstm_row(c, 0, 0), r.before, T, H});
    lstm_weight_gradients(c, x, r.dp, r.before, r.sums);
}

/* Tolerance: scan_lstm_cpu.c explains it. */
const struct kernel kernel_scan_lstm_cuda = {
    .name = "scan_lstm_cuda",
    .op = &op_scan_lstm,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 1024,
    .tiles = "cuBLAS takes other tiles for other numbers of rows",
    .together = "the product of the weight's gradient sums the bias's",
    .applicable = lstm_products_fit,
    .workspace = scan_lstm_cuda_workspace,
    .forward = scan_lstm_cuda_forward,
    .backward = scan_lstm_cuda_backward,
};

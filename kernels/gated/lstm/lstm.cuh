/* lstm.cuh - parts that the CUDA kernels of scan_lstm share: a channel's step and its gradient, and the gradients of
 * the weights, which are sums over all tokens. Equations: scan_lstm.c. */
#ifndef LRNN_KERNELS_GATED_LSTM_LSTM_CUH
#define LRNN_KERNELS_GATED_LSTM_LSTM_CUH

#include "core/real_math.h"
#include "kernels/gated/gated.h"
#include "kernels/lib/cuda_gemm.cuh"
#include "kernels/lib/scratch.h"

/* The largest width for which scan_lstm_cluster_cuda is preferred. Wider nets take scan_lstm_tile_cuda. */
#define LSTM_NARROW 128

static __device__ __forceinline__ real lstm_sigmoid(real x) {
    return 1 / (1 + real_exp(-x));
}

/* Values of a channel at one time step: gates i, f, g, o, cell c_t and previous cell c_{t-1}. */
struct lstm_channel {
    real gate[4], cell, before;
};

/* Computes one step from the channel's four pre-activations. Stores the gates and the cell in x, and returns h. */
static __device__ __forceinline__ real lstm_channel_forward(const real p[4], struct lstm_channel *x) {
    x->gate[0] = lstm_sigmoid(p[0]);
    x->gate[1] = lstm_sigmoid(p[1]);
    x->gate[2] = real_tanh(p[2]);
    x->gate[3] = lstm_sigmoid(p[3]);
    x->cell = real_fma(x->gate[1], x->before, x->gate[0] * x->gate[2]);
    return x->gate[3] * real_tanh(x->cell);
}

/* Computes the gradients of one step. d is the gradient of h. *dc is the cell's gradient from time t + 1, and becomes
 * the gradient for time t - 1. dp receives the gradients of the four pre-activations. */
static __device__ __forceinline__ void lstm_channel_backward(const struct lstm_channel *x, real d, real *dc,
                                                             real dp[4]) {
    real i = x->gate[0], f = x->gate[1], g = x->gate[2], o = x->gate[3], tanh_c = real_tanh(x->cell);
    real d_cell = *dc + d * o * (1 - tanh_c * tanh_c);
    dp[0] = d_cell * g * i * (1 - i);
    dp[1] = d_cell * x->before * f * (1 - f);
    dp[2] = d_cell * i * (1 - g * g);
    dp[3] = d * tanh_c * o * (1 - o);
    *dc = d_cell * f;
}

/* Writes or adds the gradients of wh and bh. dp (B,T,4H) is the gradient of the pre-activations; `before` (B,T,H) is h
 * of the previous time step, with zeros at the first step. `sums` is scratch of cuda_column_sums_bytes. */
static inline void lstm_weight_gradients(const struct call *c, const struct exec *x, const real *dp, const real *before,
                                         real *sums) {
    int64_t rows = tensor_rows(c->in[0]), H = tensor_cols(c->in[1]);
    cuda_weight_gradients(c, x, PRECISION_FULL, rows, 4 * H, H, dp, 4 * H, before, dp, sums);
}

/* Scratch of a backward pass whose kernel computes all time steps in one launch. */
struct lstm_scratch_of_all_steps {
    real *dp, *before, *sums;
};

static inline struct lstm_scratch_of_all_steps lstm_scratch_of_all(const struct call *c, struct scratch *s) {
    int64_t rows = tensor_rows(c->in[0]), H = tensor_cols(c->in[1]);
    struct lstm_scratch_of_all_steps r;
    r.dp = scratch_reals(s, rows * 4 * H);
    r.before = scratch_reals(s, rows * H);
    r.sums = (real *)scratch_bytes(s, cuda_column_sums_bytes(rows, 4 * H));
    return r;
}

static inline size_t lstm_workspace_of_all_steps(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD) lstm_scratch_of_all(c, &s);
    return s.used;
}

/* Computes all gradients. launch(dp, before) queues the kernel that writes dp and, unless it is NULL, `before` (see
 * lstm_weight_gradients). dp is din[0] itself, unless it must be added to din[0]. */
template <class Launch>
static inline void lstm_backward_of_all_steps(const struct call *c, const struct exec *x, Launch launch) {
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct lstm_scratch_of_all_steps r = lstm_scratch_of_all(c, &s);
    bool adds = c->din[0] && call_accumulates(c, 0);
    real *dp = c->din[0] && !adds ? c->din[0] : r.dp;
    launch(dp, c->din[1] ? r.before : nullptr);
    if (adds) each(c, x, tensor_count(c->in[0]), passed_on{dp, c->din[0], true});
    lstm_weight_gradients(c, x, dp, r.before, r.sums);
}

/* cuBLAS takes sizes as int. */
static inline bool lstm_products_fit(const struct call *c, const char **why) {
    bool fits = tensor_rows(c->in[0]) <= INT32_MAX && c->in[0]->dims[1] * tensor_cols(c->in[0]) <= INT32_MAX;
    if (!fits) *why = "a sequence's gates go up to 2147483647";
    return fits;
}

#endif

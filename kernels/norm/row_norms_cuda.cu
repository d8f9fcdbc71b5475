/* row_norms_cuda.cu - l2norm, softmax, and RMSNorm and LayerNorm of each head, on CUDA. A warp computes a row (of one
 * head), and backward computes its statistics again. The gradient of a head's weight is a column sum over the tokens.
 * frobenius has a single thread block. Equations: l2norm.c, softmax.c, norm_heads.c, frobenius.c. */
#include "core/real_math.h"
#include "kernels/lib/cuda.cuh"
#include "kernels/norm/norm.h"

#define BLOCK_ROWS  (CUDA_THREADS / WARP)
#define SUM_THREADS 1024

/* --- l2norm ------------------------------------------------------------------------------------------------------- */

static __device__ real row_scale(int64_t D, const real *x, real eps, int lane) {
    real squares = 0;
    for (int64_t i = lane; i < D; i += WARP) squares += x[i] * x[i];
    return 1 / real_sqrt(warp_sum(squares) + eps);
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    l2norm_forward_kernel(int64_t rows, int64_t D, real eps, const real *x, real *y) {
    await_previous();
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    real q = row_scale(D, x + r * D, eps, lane);
    for (int64_t i = lane; i < D; i += WARP) y[r * D + i] = q * x[r * D + i];
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    l2norm_backward_kernel(int64_t rows, int64_t D, real eps, const real *x, const real *dy, real *dx,
                           bool accumulate) {
    await_previous();
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    x += r * D;
    dy += r * D;
    real q = row_scale(D, x, eps, lane), along = 0;
    for (int64_t i = lane; i < D; i += WARP) along += q * x[i] * dy[i];
    along = warp_sum(along);
    for (int64_t i = lane; i < D; i += WARP) put(dx + r * D + i, accumulate, q * (dy[i] - q * x[i] * along));
}

static real eps_of(const struct call *c) {
    return (real)norm_attr(c)->eps;
}

static void l2norm_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]);
    LAUNCH(x, l2norm_forward_kernel, cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows, tensor_cols(c->in[0]),
           eps_of(c), tensor_real(c->in[0]), tensor_real(c->out[0]));
}

static void l2norm_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]);
    if (!c->din[0]) return;
    LAUNCH(x, l2norm_backward_kernel, cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows, tensor_cols(c->in[0]),
           eps_of(c), tensor_real(c->in[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

/* --- softmax ------------------------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(CUDA_THREADS)
    softmax_forward_kernel(int64_t rows, int64_t D, const real *x, real *y) {
    await_previous();
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    x += r * D;
    y += r * D;
    real top = x[0], sum = 0;
    for (int64_t i = lane; i < D; i += WARP) top = x[i] > top ? x[i] : top;
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        real other = __shfl_xor_sync(FULL_WARP, top, distance);
        top = other > top ? other : top;
    }
    for (int64_t i = lane; i < D; i += WARP) sum += real_exp(x[i] - top);
    sum = warp_sum(sum);
    for (int64_t i = lane; i < D; i += WARP) y[i] = real_exp(x[i] - top) / sum;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    softmax_backward_kernel(int64_t rows, int64_t D, const real *y, const real *dy, real *dx, bool accumulate) {
    await_previous();
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    y += r * D;
    dy += r * D;
    real along = 0;
    for (int64_t i = lane; i < D; i += WARP) along += y[i] * dy[i];
    along = warp_sum(along);
    for (int64_t i = lane; i < D; i += WARP) put(dx + r * D + i, accumulate, y[i] * (dy[i] - along));
}

static void softmax_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]);
    LAUNCH(x, softmax_forward_kernel, cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows, tensor_cols(c->in[0]),
           tensor_real(c->in[0]), tensor_real(c->out[0]));
}

static void softmax_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]);
    if (!c->din[0]) return;
    LAUNCH(x, softmax_backward_kernel, cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows,
           tensor_cols(c->in[0]), tensor_real(c->out[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

/* --- norms of heads ----------------------------------------------------------------------------------------------- */

namespace {

struct statistics {
    real mean, q;
};

/* The term of dw: dy n. A row is a token of all heads. Columns are divided as 32-bit numbers, because a division of 64
 * bits is a call that needs registers. */
struct head_weight_term {
    const real *x, *dy;
    const struct statistics *s;
    int heads, width;
    __device__ real operator()(int64_t r, int64_t i) const {
        struct statistics of = s[r * heads + (unsigned)(i - r * heads * width) / (unsigned)width];
        return dy[i] * ((x[i] - of.mean) * of.q);
    }
};

} // namespace

template <bool LAYER>
static __device__ struct statistics head_statistics(int64_t D, const real *x, real eps, int lane) {
    struct statistics s = {0, 0};
    real sum = 0, squares = 0;
    if constexpr (LAYER) {
        for (int64_t i = lane; i < D; i += WARP) sum += x[i];
        s.mean = warp_sum(sum) / (real)D;
    }
    for (int64_t i = lane; i < D; i += WARP) squares += (x[i] - s.mean) * (x[i] - s.mean);
    s.q = 1 / real_sqrt(warp_sum(squares) / (real)D + eps);
    return s;
}

/* In layernorm_heads, 1 is added to the weight. */
template <bool LAYER>
static __global__ void __launch_bounds__(CUDA_THREADS)
    heads_forward_kernel(int64_t rows, int64_t H, int64_t D, real eps, const real *x, const real *w, real *y) {
    await_previous();
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    const real *weight = w + r % H * D;
    x += r * D;
    struct statistics s = head_statistics<LAYER>(D, x, eps, lane);
    for (int64_t i = lane; i < D; i += WARP) y[r * D + i] = (x[i] - s.mean) * s.q * (LAYER ? 1 + weight[i] : weight[i]);
}

template <bool LAYER>
static __global__ void __launch_bounds__(CUDA_THREADS)
    heads_dx_kernel(int64_t rows, int64_t H, int64_t D, real eps, const real *x, const real *w, const real *dy,
                    real *dx, bool accumulate, struct statistics *kept) {
    await_previous();
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    const real *weight = w + r % H * D;
    x += r * D;
    dy += r * D;
    struct statistics s = head_statistics<LAYER>(D, x, eps, lane);
    if (lane == 0) kept[r] = s;
    if (!dx) return;
    real mean_e = 0, mean_en = 0;
    for (int64_t i = lane; i < D; i += WARP) {
        real e = dy[i] * (LAYER ? 1 + weight[i] : weight[i]);
        mean_e += e;
        mean_en += e * ((x[i] - s.mean) * s.q);
    }
    mean_e = LAYER ? warp_sum(mean_e) / (real)D : 0;
    mean_en = warp_sum(mean_en) / (real)D;
    for (int64_t i = lane; i < D; i += WARP) {
        real e = dy[i] * (LAYER ? 1 + weight[i] : weight[i]);
        put(dx + r * D + i, accumulate, s.q * (e - mean_e - (x[i] - s.mean) * s.q * mean_en));
    }
}

template <bool LAYER> static void heads_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t H = c->in[1]->dims[0], rows = tensor_rows(c->in[0]) * H;
    LAUNCH(x, heads_forward_kernel<LAYER>, cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows, H,
           c->in[1]->dims[1], eps_of(c), tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0]));
}

static size_t heads_cuda_workspace(const struct call *c, enum pass pass) {
    int64_t rows = tensor_rows(c->in[0]);
    if (pass == PASS_FORWARD) return 0;
    return (size_t)(rows * c->in[1]->dims[0]) * sizeof(struct statistics) +
           cuda_column_sums_bytes(rows, tensor_cols(c->in[0]));
}

template <bool LAYER> static void heads_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t H = c->in[1]->dims[0], width = c->in[1]->dims[1], tokens = tensor_rows(c->in[0]), rows = tokens * H;
    struct statistics *kept = (struct statistics *)c->scratch[PASS_BACKWARD];
    LAUNCH(x, heads_dx_kernel<LAYER>, cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows, H, width, eps_of(c),
           tensor_real(c->in[0]), tensor_real(c->in[1]), call_dout(c, 0), c->din[0], call_accumulates(c, 0), kept);
    if (c->din[1])
        cuda_column_sums(c, x, tokens, H * width,
                         head_weight_term{tensor_real(c->in[0]), call_dout(c, 0), kept, (int)H, (int)width}, c->din[1],
                         call_accumulates(c, 1), (real *)(kept + rows));
}

/* --- frobenius: parameters, a few thousand values ----------------------------------------------------------------- */

namespace {

struct frobenius_gradient {
    const real *x, *y, *dy;
    real *dx;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        real factor = *y > 0 ? *dy / *y : 0;
        put(dx + i, accumulate, factor * x[i]);
    }
};

} // namespace

static __global__ void __launch_bounds__(SUM_THREADS)
    frobenius_kernel(int64_t n, const real *x, int64_t m, const real *z, real *y) {
    await_previous();
    __shared__ double partial[SUM_THREADS / WARP];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += SUM_THREADS) sum += (double)x[i] * (double)x[i];
    for (int64_t i = threadIdx.x; i < m; i += SUM_THREADS) sum += (double)z[i] * (double)z[i];
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) *y = (real)sqrt(sum);
}

static void frobenius_cuda_forward(const struct call *c, const struct exec *x) {
    const struct tensor *z = c->in[1];
    LAUNCH(x, frobenius_kernel, dim3(1), dim3(SUM_THREADS), 0, tensor_count(c->in[0]), tensor_real(c->in[0]),
           z ? tensor_count(z) : 0, z ? tensor_real(z) : nullptr, tensor_real(c->out[0]));
}

static void frobenius_cuda_backward(const struct call *c, const struct exec *x) {
    for (int k = 0; k < 2; k++)
        if (c->in[k] && c->din[k])
            each_value(c, x, tensor_count(c->in[k]),
                       frobenius_gradient{tensor_real(c->in[k]), tensor_real(c->out[0]), call_dout(c, 0), c->din[k],
                                          call_accumulates(c, k)});
}

/* Tolerance: sums over the columns are in working precision, and the part of dy along y cancels. */
const struct kernel kernel_l2norm_cuda = {
    .name = "l2norm_cuda",
    .op = &op_l2norm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .forward = l2norm_cuda_forward,
    .backward = l2norm_cuda_backward,
};

/* Tolerance: exponentials and sums over the columns are in working precision, and dy cancels against its mean. */
const struct kernel kernel_softmax_cuda = {
    .name = "softmax_cuda",
    .op = &op_softmax,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .forward = softmax_cuda_forward,
    .backward = softmax_cuda_backward,
};

/* Tolerance: sums are in working precision, and the means of dx cancel against e. */
const struct kernel kernel_rmsnorm_heads_cuda = {
    .name = "rmsnorm_heads_cuda",
    .op = &op_rmsnorm_heads,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = heads_cuda_workspace,
    .forward = heads_cuda_forward<false>,
    .backward = heads_cuda_backward<false>,
};

const struct kernel kernel_layernorm_heads_cuda = {
    .name = "layernorm_heads_cuda",
    .op = &op_layernorm_heads,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = heads_cuda_workspace,
    .forward = heads_cuda_forward<true>,
    .backward = heads_cuda_backward<true>,
};

/* Tolerance: sums are in double, as on the CPU. */
const struct kernel kernel_frobenius_cuda = {
    .name = "frobenius_cuda",
    .op = &op_frobenius,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = REAL_IS_DOUBLE ? 32 : 4,
    .forward = frobenius_cuda_forward,
    .backward = frobenius_cuda_backward,
};

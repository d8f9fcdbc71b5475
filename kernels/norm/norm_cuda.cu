/* norm_cuda.cu - RMSNorm and LayerNorm on CUDA: a warp a row, the statistics again in the backward pass and kept for
 * the parameter gradients, which are column sums in two stages. The equations are in norm.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/norm/norm.h"

#include "core/real_math.h"

#define BLOCK_ROWS (CUDA_THREADS / WARP)

namespace {

struct statistics {
    real mean, q;
};

/* Terms of dw: dy n. */
struct weight_term {
    const real *x, *dy;
    const struct statistics *s;
    __device__ real operator()(int64_t r, int64_t i) const {
        return dy[i] * ((x[i] - s[r].mean) * s[r].q);
    }
};

} // namespace

/* Of a row of D columns, W at a time, in every lane of the warp; mean 0 for rmsnorm. */
template <bool LAYER, int W>
__device__ __forceinline__ struct statistics row_statistics(int64_t D, const real *x, real eps, int lane) {
    struct statistics s = {0, 0};
    real sum = 0, squares = 0;
    if constexpr (LAYER) {
        for (int64_t i = W * lane; i < D; i += W * WARP) {
            lanes<W> u = load_lanes<W>(x + i);
            for (int k = 0; k < W; k++) sum += u.v[k];
        }
        s.mean = warp_sum(sum) / (real)D;
    }
    for (int64_t i = W * lane; i < D; i += W * WARP) {
        lanes<W> u = load_lanes<W>(x + i);
        for (int k = 0; k < W; k++) squares += (u.v[k] - s.mean) * (u.v[k] - s.mean);
    }
    s.q = 1 / real_sqrt(warp_sum(squares) / (real)D + eps);
    return s;
}

template <bool LAYER, int W>
static __global__ void __launch_bounds__(CUDA_THREADS)
    norm_forward_kernel(int64_t rows, int64_t D, real eps, const real *x, const real *w, const real *b, real *y) {
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    struct statistics s = row_statistics<LAYER, W>(D, x + r * D, eps, lane);
    for (int64_t i = W * lane; i < D; i += W * WARP) {
        lanes<W> u = load_lanes<W>(x + r * D + i), v = load_lanes<W>(w + i), shift = {};
        if constexpr (LAYER) shift = load_lanes<W>(b + i);
        for (int k = 0; k < W; k++) {
            if constexpr (LAYER)
                u.v[k] = real_fma((u.v[k] - s.mean) * s.q, v.v[k], shift.v[k]);
            else
                u.v[k] = u.v[k] * s.q * v.v[k];
        }
        store_lanes<W>(y + r * D + i, u);
    }
}

/* dx (NULL: not wanted) of a row, and its statistics. */
template <bool LAYER, int W>
static __global__ void __launch_bounds__(CUDA_THREADS)
    norm_dx_kernel(int64_t rows, int64_t D, real eps, const real *x, const real *w, const real *dy, real *dx,
                   bool accumulate, struct statistics *kept) {
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    x += r * D;
    dy += r * D;
    struct statistics s = row_statistics<LAYER, W>(D, x, eps, lane);
    if (lane == 0) kept[r] = s;
    if (!dx) return;
    real mean_e = 0, mean_en = 0;
    for (int64_t i = W * lane; i < D; i += W * WARP) {
        lanes<W> u = load_lanes<W>(x + i), v = load_lanes<W>(w + i), d = load_lanes<W>(dy + i);
        for (int k = 0; k < W; k++) {
            real e = d.v[k] * v.v[k];
            if constexpr (LAYER) mean_e += e;
            mean_en += e * ((u.v[k] - s.mean) * s.q);
        }
    }
    if constexpr (LAYER) mean_e = warp_sum(mean_e) / (real)D;
    mean_en = warp_sum(mean_en) / (real)D;
    for (int64_t i = W * lane; i < D; i += W * WARP) {
        lanes<W> u = load_lanes<W>(x + i), v = load_lanes<W>(w + i), d = load_lanes<W>(dy + i);
        for (int k = 0; k < W; k++)
            d.v[k] = s.q * (real_fma(d.v[k], v.v[k], -mean_e) - (u.v[k] - s.mean) * s.q * mean_en);
        put_lanes<W>(dx + r * D + i, accumulate, d);
    }
}

template <bool LAYER, int W> static void launch_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]);
    LAUNCH(x, (norm_forward_kernel<LAYER, W>), cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows,
           tensor_cols(c->in[0]), (real)((const struct norm_attr *)c->attr)->eps, tensor_real(c->in[0]),
           tensor_real(c->in[1]), LAYER ? tensor_real(c->in[2]) : nullptr, tensor_real(c->out[0]));
}

/* Rows of a multiple of 4 columns begin where 4 values can be moved at once. */
template <bool LAYER> static void norm_cuda_forward(const struct call *c, const struct exec *x) {
    if (tensor_cols(c->in[0]) % 4 == 0)
        launch_forward<LAYER, 4>(c, x);
    else
        launch_forward<LAYER, 1>(c, x);
}

static size_t norm_cuda_workspace(const struct call *c, enum pass pass) {
    int64_t rows = tensor_rows(c->in[0]);
    if (pass == PASS_FORWARD) return 0;
    return (size_t)rows * sizeof(struct statistics) + cuda_column_sums_bytes(rows, tensor_cols(c->in[0]));
}

template <bool LAYER, int W>
static void launch_dx(const struct call *c, const struct exec *x, struct statistics *kept) {
    int64_t rows = tensor_rows(c->in[0]);
    LAUNCH(x, (norm_dx_kernel<LAYER, W>), cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows,
           tensor_cols(c->in[0]), (real)((const struct norm_attr *)c->attr)->eps, tensor_real(c->in[0]),
           tensor_real(c->in[1]), call_dout(c, 0), c->din[0], call_accumulates(c, 0), kept);
}

template <bool LAYER> static void norm_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    struct statistics *kept = (struct statistics *)c->scratch[PASS_BACKWARD];
    real *scratch = (real *)(kept + rows);
    if (D % 4 == 0)
        launch_dx<LAYER, 4>(c, x, kept);
    else
        launch_dx<LAYER, 1>(c, x, kept);
    if (c->din[1])
        cuda_column_sums(c, x, rows, D, weight_term{tensor_real(c->in[0]), call_dout(c, 0), kept}, c->din[1],
                         call_accumulates(c, 1), scratch);
    if (LAYER && c->din[2])
        cuda_column_sums(c, x, rows, D, matrix_term{call_dout(c, 0)}, c->din[2], call_accumulates(c, 2), scratch);
}

/* Tolerance: sums over the D columns and R rows in working precision err by about sqrt(D) and sqrt(R) units, and the
 * two means of dx cancel against e. */
const struct kernel kernel_rmsnorm_cuda = {
    .name = "rmsnorm_cuda",
    .op = &op_rmsnorm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cuda_workspace,
    .forward = norm_cuda_forward<false>,
    .backward = norm_cuda_backward<false>,
};

const struct kernel kernel_layernorm_cuda = {
    .name = "layernorm_cuda",
    .op = &op_layernorm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cuda_workspace,
    .forward = norm_cuda_forward<true>,
    .backward = norm_cuda_backward<true>,
};

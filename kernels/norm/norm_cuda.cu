/* norm_cuda.cu - RMSNorm and LayerNorm on CUDA, of a residual sum as well: a warp per row, the statistics again in the
 * backward pass and kept for the parameter gradients, which are column sums in two stages. The equations are in
 * norm.c. */
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

/* Destinations of the gradient of the normed value: x, and for a sum also the branch, with the sum's own added. NULL:
 * there is none, or it is not wanted. */
struct summands {
    const real *ds;
    real *dx, *dbranch;
    bool add_x, add_branch;
};

} // namespace

/* Statistics of a row of D columns, W at a time, in every lane of the warp; mean 0 for rmsnorm. */
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

/* y = norm(x); or with a branch y = norm(sum), sum = x + branch, of which each lane reads what it has stored itself. */
template <bool LAYER, int W>
static __global__ void __launch_bounds__(CUDA_THREADS)
    norm_forward_kernel(int64_t rows, int64_t D, real eps, const real *x, const real *branch, const real *w,
                        const real *b, real *sum, real *y) {
    await_previous();
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    x += r * D;
    if (branch) {
        branch += r * D;
        sum += r * D;
        for (int64_t i = W * lane; i < D; i += W * WARP) {
            lanes<W> u = load_lanes<W>(x + i), v = load_lanes<W>(branch + i);
            for (int k = 0; k < W; k++) u.v[k] += v.v[k];
            store_lanes<W>(sum + i, u);
        }
        x = sum;
    }
    struct statistics s = row_statistics<LAYER, W>(D, x, eps, lane);
    for (int64_t i = W * lane; i < D; i += W * WARP) {
        lanes<W> u = load_lanes<W>(x + i), v = load_lanes<W>(w + i), shift = {};
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

/* Gradients of the summands of a row x, and its statistics. */
template <bool LAYER, int W>
static __global__ void __launch_bounds__(CUDA_THREADS)
    norm_dx_kernel(int64_t rows, int64_t D, real eps, const real *x, const real *w, const real *dy, struct summands to,
                   struct statistics *kept) {
    await_previous();
    int64_t r = cuda_index() / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (r >= rows) return;
    x += r * D;
    dy += r * D;
    struct statistics s = row_statistics<LAYER, W>(D, x, eps, lane);
    if (lane == 0) kept[r] = s;
    if (!to.dx && !to.dbranch) return;
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
        if (to.ds) {
            lanes<W> ds = load_lanes<W>(to.ds + r * D + i);
            for (int k = 0; k < W; k++) d.v[k] = ds.v[k] + d.v[k];
        }
        if (to.dx) put_lanes<W>(to.dx + r * D + i, to.add_x, d);
        if (to.dbranch) put_lanes<W>(to.dbranch + r * D + i, to.add_branch, d);
    }
}

template <bool LAYER, int W> static void launch_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]);
    LAUNCH(x, (norm_forward_kernel<LAYER, W>), cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows,
           tensor_cols(c->in[0]), (real)norm_attr(c)->eps, tensor_real(c->in[0]),
           c->in[3] ? tensor_real(c->in[3]) : nullptr, tensor_real(c->in[1]), LAYER ? tensor_real(c->in[2]) : nullptr,
           c->in[3] ? tensor_real(c->out[1]) : nullptr, tensor_real(c->out[0]));
}

/* Rows of a multiple of 4 columns begin where 4 values can be moved at once. */
static void norm_cuda_forward(const struct call *c, const struct exec *x) {
    bool fours = tensor_cols(c->in[0]) % 4 == 0;
    if (c->in[2])
        fours ? launch_forward<true, 4>(c, x) : launch_forward<true, 1>(c, x);
    else
        fours ? launch_forward<false, 4>(c, x) : launch_forward<false, 1>(c, x);
}

static size_t norm_cuda_workspace(const struct call *c, enum pass pass) {
    int64_t rows = tensor_rows(c->in[0]);
    if (pass == PASS_FORWARD) return 0;
    return (size_t)rows * sizeof(struct statistics) + cuda_column_sums_bytes(rows, tensor_cols(c->in[0]));
}

template <bool LAYER, int W>
static void launch_dx(const struct call *c, const struct exec *x, struct statistics *kept) {
    int64_t rows = tensor_rows(c->in[0]);
    struct summands to = {sum_dout(c), c->din[0], c->din[3], call_accumulates(c, 0), call_accumulates(c, 3)};
    LAUNCH(x, (norm_dx_kernel<LAYER, W>), cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows,
           tensor_cols(c->in[0]), (real)norm_attr(c)->eps, normed_rows(c), tensor_real(c->in[1]), call_dout(c, 0), to,
           kept);
}

static void norm_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    struct statistics *kept = (struct statistics *)c->scratch[PASS_BACKWARD];
    real *scratch = (real *)(kept + rows);
    bool fours = D % 4 == 0;
    if (c->in[2])
        fours ? launch_dx<true, 4>(c, x, kept) : launch_dx<true, 1>(c, x, kept);
    else
        fours ? launch_dx<false, 4>(c, x, kept) : launch_dx<false, 1>(c, x, kept);
    if (c->din[1])
        cuda_column_sums(c, x, rows, D, weight_term{normed_rows(c), call_dout(c, 0), kept}, c->din[1],
                         call_accumulates(c, 1), scratch);
    if (c->din[2])
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
    .forward = norm_cuda_forward,
    .backward = norm_cuda_backward,
};

const struct kernel kernel_layernorm_cuda = {
    .name = "layernorm_cuda",
    .op = &op_layernorm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cuda_workspace,
    .forward = norm_cuda_forward,
    .backward = norm_cuda_backward,
};

/* Tolerance: as the norms; the sum is the same bits. */
const struct kernel kernel_add_norm_cuda = {
    .name = "add_norm_cuda",
    .op = &op_add_norm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cuda_workspace,
    .forward = norm_cuda_forward,
    .backward = norm_cuda_backward,
};

/* norm_cuda.cu - RMSNorm and LayerNorm, also of a residual sum (norm.c), on CUDA, with one warp per row. Backward
 * computes the statistics again, and is a single launch. A thread block adds the terms of the parameters' gradients
 * over its own rows, which it has just read. The last block of a group of blocks adds the sums of the group, and the
 * last group adds the sums of all groups. */
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/round.h"
#include "kernels/norm/norm.h"

#include "core/real_math.h"

#define BLOCK_ROWS  (CUDA_THREADS / WARP) /* rows that a thread block computes at the same time */
#define BLOCKS_MOST 512                   /* most thread blocks of backward */
#define GROUP       16                    /* number of thread blocks whose sums are added first */

namespace {

struct statistics {
    real mean, q;
};

/* Where the gradient of the normalised value is written: x and, for add_norm, the branch. `ds` is added to it. NULL:
 * there is no such gradient, or it is not wanted. */
struct summands {
    const real *ds;
    void *dx, *dbranch;
    bool add_x, add_branch;
    enum precision x_in, branch_in; /* precisions in which dx and dbranch are stored */
};

/* Where the gradients dw = sum dy n and db = sum dy over the rows are written; NULL: there is none, or it is not
 * wanted. partial: for each thread block D sums of dw and, in LayerNorm, D of db; then as many for each group. */
struct parameter_sums {
    real *dw, *db;
    bool add_w, add_b;
    real *partial;
    unsigned *counters; /* one for each group, and one for all groups */
};

} // namespace

/* Division of the rows, which depends only on their number: a thread block has `each` rows. */
struct norm_cut {
    int64_t each;
    unsigned blocks, groups;
};

static struct norm_cut cut_of(int64_t rows) {
    int64_t times = (rows + (int64_t)BLOCK_ROWS * BLOCKS_MOST - 1) / ((int64_t)BLOCK_ROWS * BLOCKS_MOST);
    int64_t each = BLOCK_ROWS * times, blocks = (rows + each - 1) / each;
    return {each, (unsigned)blocks, (unsigned)((blocks + GROUP - 1) / GROUP)};
}
static_assert(BLOCKS_MOST / GROUP + 1 <= CUDA_COUNTERS, "a counter for each group, and one");

/* Returns the statistics of a row of D columns, in every lane of the warp. It reads W columns at a time. The mean is 0
 * for rmsnorm. */
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

/* Computes y = norm(x), or with a branch sum = x + branch, y = norm(sum). Each lane reads only sums that it stored
 * itself. */
template <bool LAYER, int W>
static __global__ void __launch_bounds__(CUDA_THREADS)
    norm_forward_kernel(int64_t rows, int64_t D, real eps, const real *x, const real *branch, const real *w,
                        const real *b, real *sum, void *y, enum precision p) {
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
        store_rounded<W>(y, r * D + i, p, u);
    }
}

/* Writes the gradients of x and branch in row r, and returns the row's statistics. */
template <bool LAYER, int W>
static __device__ __forceinline__ struct statistics row_gradients(int64_t r, int64_t D, real eps, const real *x,
                                                                  const real *w, const real *dy,
                                                                  const struct summands &to, int lane) {
    x += r * D;
    dy += r * D;
    struct statistics s = row_statistics<LAYER, W>(D, x, eps, lane);
    if (!to.dx && !to.dbranch) return s;
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
        if (to.dx) put_rounded<W>(to.dx, r * D + i, to.add_x, to.x_in, d);
        if (to.dbranch) put_rounded<W>(to.dbranch, r * D + i, to.add_branch, to.branch_in, d);
    }
    return s;
}

/* Returns the sum of column i over n rows of C values, which other thread blocks of the launch have stored. */
static __device__ __forceinline__ real sum_of_rows(unsigned n, int64_t C, const real *rows, int64_t i) {
    real sum = 0;
#pragma unroll 4
    for (unsigned k = 0; k < n; k++) sum += later_load(rows + k * C + i);
    return sum;
}

/* Computes BLOCK_ROWS rows of a thread block at a time, one per warp. Then each thread adds the sums of its own
 * columns. */
template <bool LAYER, int W>
static __global__ void __launch_bounds__(CUDA_THREADS)
    norm_backward_kernel(int64_t rows, int64_t D, real eps, struct norm_cut cut, const real *x, const real *w,
                         const real *dy, struct summands to, struct parameter_sums sums) {
    await_previous();
    __shared__ struct statistics of_row[BLOCK_ROWS];
    int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    int64_t begin = blockIdx.x * cut.each, end = begin + cut.each < rows ? begin + cut.each : rows;
    const int64_t C = LAYER ? 2 * D : D; /* number of sums of a thread block */
    bool wanted = sums.dw || sums.db;
    real *own = sums.partial + blockIdx.x * C;
    for (int64_t first = begin; first < end; first += BLOCK_ROWS) {
        int n = (int)(end - first < BLOCK_ROWS ? end - first : BLOCK_ROWS);
        struct statistics s = {0, 0};
        if (warp < n) s = row_gradients<LAYER, W>(first + warp, D, eps, x, w, dy, to, lane);
        if (!wanted) continue;
        __syncthreads(); /* all threads have read the statistics of the earlier rows */
        if (lane == 0) of_row[warp] = s;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < D; i += CUDA_THREADS) {
            real weight = first > begin ? own[i] : 0, bias = LAYER && first > begin ? own[D + i] : 0;
#pragma unroll 2
            for (int k = 0; k < n; k++) {
                int64_t at = (first + k) * D + i;
                weight = real_fma(dy[at], (x[at] - of_row[k].mean) * of_row[k].q, weight);
                if constexpr (LAYER) bias += dy[at];
            }
            own[i] = weight;
            if constexpr (LAYER) own[D + i] = bias;
        }
    }
    if (!wanted) return;
    unsigned group = blockIdx.x / GROUP, blocks = cut.blocks - group * GROUP;
    if (blocks > GROUP) blocks = GROUP;
    if (!last_block(sums.counters + group, blocks)) return;
    real *grouped = sums.partial + cut.blocks * C;
    for (int64_t i = threadIdx.x; i < C; i += CUDA_THREADS)
        grouped[group * C + i] = sum_of_rows(blocks, C, sums.partial + group * GROUP * C, i);
    if (!last_block(sums.counters + cut.groups, cut.groups)) return;
    for (int64_t i = threadIdx.x; i < C; i += CUDA_THREADS) {
        real *out = i < D ? sums.dw : sums.db;
        if (out) put(out + i % D, i < D ? sums.add_w : sums.add_b, sum_of_rows(cut.groups, C, grouped, i));
    }
}

template <bool LAYER, int W> static void launch_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]);
    LAUNCH(x, (norm_forward_kernel<LAYER, W>), cuda_blocks(rows, BLOCK_ROWS), dim3(CUDA_THREADS), 0, rows,
           tensor_cols(c->in[0]), (real)norm_attr(c)->eps, tensor_real(c->in[0]),
           c->in[3] ? tensor_real(c->in[3]) : nullptr, tensor_real(c->in[1]), LAYER ? tensor_real(c->in[2]) : nullptr,
           c->in[3] ? tensor_real(c->out[1]) : nullptr, c->out[0]->data, out_precision(c, 0));
}

/* If the number of columns is a multiple of 4, all rows begin where 4 values can be moved at once. */
static void norm_cuda_forward(const struct call *c, const struct exec *x) {
    bool fours = tensor_cols(c->in[0]) % 4 == 0;
    if (c->in[2])
        fours ? launch_forward<true, 4>(c, x) : launch_forward<true, 1>(c, x);
    else
        fours ? launch_forward<false, 4>(c, x) : launch_forward<false, 1>(c, x);
}

static size_t norm_cuda_workspace(const struct call *c, enum pass pass) {
    struct norm_cut cut = cut_of(tensor_rows(c->in[0]));
    if (pass == PASS_FORWARD) return 0;
    return (size_t)((cut.blocks + cut.groups) * (c->in[2] ? 2 : 1) * tensor_cols(c->in[0])) * sizeof(real);
}

template <bool LAYER, int W> static void launch_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]);
    struct norm_cut cut = cut_of(rows);
    struct summands to = {
        sum_dout(c),         c->din[0],          c->din[3], call_accumulates(c, 0), call_accumulates(c, 3),
        din_precision(c, 0), din_precision(c, 3)};
    struct parameter_sums sums = {c->din[1],
                                  c->din[2],
                                  call_accumulates(c, 1),
                                  call_accumulates(c, 2),
                                  (real *)c->scratch[PASS_BACKWARD],
                                  x->place->cuda->now.counters};
    LAUNCH(x, (norm_backward_kernel<LAYER, W>), dim3(cut.blocks), dim3(CUDA_THREADS), 0, rows, tensor_cols(c->in[0]),
           (real)norm_attr(c)->eps, cut, normed_rows(c), tensor_real(c->in[1]), call_dout(c, 0), to, sums);
}

static void norm_cuda_backward(const struct call *c, const struct exec *x) {
    bool fours = tensor_cols(c->in[0]) % 4 == 0;
    if (c->in[2])
        fours ? launch_backward<true, 4>(c, x) : launch_backward<true, 1>(c, x);
    else
        fours ? launch_backward<false, 4>(c, x) : launch_backward<false, 1>(c, x);
}

/* Tolerance: sums over D columns and R rows are in working precision, with errors of about sqrt(D) and sqrt(R) units,
 * and the two means of dx cancel against e. */
const struct kernel kernel_rmsnorm_cuda = {
    .name = "rmsnorm_cuda",
    .op = &op_rmsnorm,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cuda_workspace,
    .rounds_out = 1,
    .rounds_din = 1 | 1 << 3,
    .forward = norm_cuda_forward,
    .backward = norm_cuda_backward,
};

const struct kernel kernel_layernorm_cuda = {
    .name = "layernorm_cuda",
    .op = &op_layernorm,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cuda_workspace,
    .rounds_out = 1,
    .rounds_din = 1 | 1 << 3,
    .forward = norm_cuda_forward,
    .backward = norm_cuda_backward,
};

/* Tolerance: as for the norms. The sum is bit-equal. */
const struct kernel kernel_add_norm_cuda = {
    .name = "add_norm_cuda",
    .op = &op_add_norm,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 64,
    .workspace = norm_cuda_workspace,
    .rounds_out = 1,
    .rounds_din = 1 | 1 << 3,
    .forward = norm_cuda_forward,
    .backward = norm_cuda_backward,
};

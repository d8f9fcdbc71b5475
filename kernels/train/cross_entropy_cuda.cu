/* cross_entropy_cuda.cu - mean cross-entropy over the scored rows on CUDA: a row by a warp, or by as few of its lanes
 * as cover the columns; sums over rows in double, of a block and then of the blocks. The equations are in
 * cross_entropy.c. */
#include "kernels/train/train.h"
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/round.h"

#include "core/batch.h"
#include "core/real_math.h"

#define MAX_BLOCKS  1024
#define COUNT_CHUNK 4096 /* targets that one block counts, and so many that every block may do it again */

namespace {

struct partial_loss {
    double loss;
    int64_t scored;
};

/* The greatest logit of a row and the least column it stands in. */
struct summit {
    real value;
    int column;
};

/* A thread's place: which rows it works on, as which lane of how many. */
struct row_team {
    int64_t row, step; /* the first row and how far the next one is */
    int lane, size;
};

} // namespace

/* Lanes of a row: a power of two. */
static int team_size(int64_t V) {
    int size = 1;
    while (size < WARP && size < V) size *= 2;
    return size;
}

static unsigned team_blocks(int64_t rows, int64_t V) {
    int64_t in_block = CUDA_THREADS / team_size(V), blocks = (rows + in_block - 1) / in_block;
    return (unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS);
}

static __device__ __forceinline__ struct row_team team_of_thread(int size) {
    struct row_team t;
    t.size = size;
    t.lane = (int)threadIdx.x % size;
    t.row = cuda_index() / size;
    t.step = (int64_t)gridDim.x * (CUDA_THREADS / size);
    return t;
}

/* Rows a warp walks together: while any of its teams has one; lanes without a row take the last. */
static __device__ __forceinline__ bool team_goes_on(int64_t row, int64_t rows) {
    return __any_sync(FULL_WARP, row < rows);
}

static __device__ __forceinline__ struct summit team_summit(const real *l, int64_t V, struct row_team t) {
    struct summit top = {l[0], 0};
    for (int64_t v = t.lane; v < V; v += t.size)
        if (l[v] > top.value) top = {l[v], (int)v};
    for (int distance = t.size / 2; distance > 0; distance /= 2) {
        real value = __shfl_xor_sync(FULL_WARP, top.value, distance);
        int column = __shfl_xor_sync(FULL_WARP, top.column, distance);
        if (value > top.value || (value == top.value && column < top.column)) top = {value, column};
    }
    return top;
}

/* 0 times a number that is not finite is NaN, which stays in the sum. */
static __device__ __forceinline__ bool team_all_finite(const real *l, int64_t V, struct row_team t) {
    real sum = 0;
    for (int64_t v = t.lane; v < V; v += t.size) sum += 0 * l[v];
    for (int distance = t.size / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, distance);
    return sum == 0;
}

static __device__ __forceinline__ real team_sum_exp(const real *l, int64_t V, real top, struct row_team t) {
    real sum = 0;
    for (int64_t v = t.lane; v < V; v += t.size) sum += real_exp(l[v] - top);
    for (int distance = t.size / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, distance);
    return sum;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* The mean of n partial losses, in thread 0. */
static __device__ real mean_loss(int n, const struct partial_loss *partial, double *losses, int64_t *counts) {
    double loss = 0;
    int64_t scored = 0;
    for (int i = (int)threadIdx.x; i < n; i += CUDA_THREADS) {
        loss += later_load(&partial[i].loss);
        scored += later_load(&partial[i].scored);
    }
    loss = block_sum(loss, losses);
    scored = block_sum(scored, counts);
    return scored ? (real)(loss / (double)scored) : 0;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    losses_kernel(int64_t rows, int64_t V, int size, const real *logits, const int32_t *targets, int32_t *predictions,
                  struct partial_loss *partial, unsigned *counter, real *out) {
    await_previous();
    __shared__ double losses[CUDA_THREADS / WARP];
    __shared__ int64_t counts[CUDA_THREADS / WARP];
    struct row_team t = team_of_thread(size);
    double loss = 0;
    int scored = 0; /* of this thread */
    for (; team_goes_on(t.row, rows); t.row += t.step) {
        int64_t r = t.row < rows ? t.row : rows - 1;
        const real *l = logits + r * V;
        struct summit top = team_summit(l, V, t);
        real sum = team_sum_exp(l, V, top.value, t);
        bool finite = team_all_finite(l, V, t);
        if (t.lane != 0 || t.row >= rows) continue;
        predictions[r] = finite ? top.column : NO_CLASS;
        if (targets[r] == IGNORED) continue;
        loss += log((double)sum) + ((double)top.value - l[targets[r]]);
        scored++;
    }
    loss = block_sum(loss, losses);
    int64_t of_block = block_sum((int64_t)scored, counts);
    if (threadIdx.x == 0) partial[blockIdx.x] = {loss, of_block};
    if (!last_block(counter, gridDim.x)) return;
    real mean = mean_loss((int)gridDim.x, partial, losses, counts);
    if (threadIdx.x == 0) *out = mean;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Counts this thread's share of the scored targets from begin to end. */
static __device__ int scored_targets(int64_t begin, int64_t end, const int32_t *targets) {
    int scored = 0;
    for (int64_t r = begin + threadIdx.x; r < end; r += CUDA_THREADS) scored += targets[r] != IGNORED;
    return scored;
}

static __global__ void __launch_bounds__(CUDA_THREADS) count_kernel(int64_t rows, const int32_t *targets, int *counts) {
    await_previous();
    __shared__ int warps[CUDA_THREADS / WARP];
    int64_t begin = (int64_t)blockIdx.x * COUNT_CHUNK, end = begin + COUNT_CHUNK < rows ? begin + COUNT_CHUNK : rows;
    int scored = block_sum(scored_targets(begin, end, targets), warps);
    if (threadIdx.x == 0) counts[blockIdx.x] = scored;
}

/* Computes dlogits. counts NULL: rows are few, so each block counts them. dlogits_factor: dlogits rounded to
 * `products`; NULL: not wanted. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    softmax_kernel(int64_t rows, int64_t V, int size, const real *logits, const int32_t *targets, int n_counts,
                   const int *counts, const real *dloss, real *dlogits, bool accumulate, void *dlogits_factor,
                   enum precision products) {
    await_previous();
    __shared__ int64_t warps[CUDA_THREADS / WARP];
    struct row_team t = team_of_thread(size);
    int64_t scored = counts ? 0 : scored_targets(0, rows, targets);
    for (int i = (int)threadIdx.x; counts && i < n_counts; i += CUDA_THREADS) scored += counts[i];
    scored = block_sum(scored, warps);
    real factor = *dloss / (real)(scored ? scored : 1);
    for (; team_goes_on(t.row, rows); t.row += t.step) {
        int64_t r = t.row < rows ? t.row : rows - 1;
        const real *l = logits + r * V;
        int32_t target = targets[r];
        real top = team_summit(l, V, t).value, scaled = factor / team_sum_exp(l, V, top, t);
        for (int64_t v = t.lane; v < V && t.row < rows; v += t.size) {
            real d = target == IGNORED ? 0 : scaled * real_exp(l[v] - top) - (v == target ? factor : 0);
            put(dlogits + r * V + v, accumulate, d);
            if (dlogits_factor) store_rounded<1>(dlogits_factor, r * V + v, products, {d});
        }
    }
}

/* Blocks that count before the others begin; 0: those count themselves. */
static int64_t count_blocks(int64_t rows) {
    return rows > COUNT_CHUNK ? (rows + COUNT_CHUNK - 1) / COUNT_CHUNK : 0;
}

static size_t cross_entropy_cuda_workspace(const struct call *c, enum pass pass) {
    int64_t rows = tensor_rows(c->in[0]);
    if (pass == PASS_BACKWARD) return (size_t)count_blocks(rows) * sizeof(int);
    return team_blocks(rows, tensor_cols(c->in[0])) * sizeof(struct partial_loss);
}

static void cross_entropy_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), V = tensor_cols(c->in[0]);
    unsigned blocks = team_blocks(rows, V);
    struct partial_loss *partial = (struct partial_loss *)c->scratch[PASS_FORWARD];
    LAUNCH(x, losses_kernel, dim3(blocks), dim3(CUDA_THREADS), 0, rows, V, team_size(V), tensor_real(c->in[0]),
           tensor_i32(c->in[1]), tensor_i32(c->out[1]), partial, x->place->cuda->now.counters, tensor_real(c->out[0]));
}

static void cross_entropy_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), V = tensor_cols(c->in[0]), counters = count_blocks(rows);
    int *counts = (int *)c->scratch[PASS_BACKWARD];
    if (!c->din[0]) return;
    if (counters > 0)
        LAUNCH(x, count_kernel, dim3((unsigned)counters), dim3(CUDA_THREADS), 0, rows, tensor_i32(c->in[1]), counts);
    LAUNCH(x, softmax_kernel, dim3(team_blocks(rows, V)), dim3(CUDA_THREADS), 0, rows, V, team_size(V),
           tensor_real(c->in[0]), tensor_i32(c->in[1]), (int)counters, counts, call_dout(c, 0), c->din[0],
           call_accumulates(c, 0), c->in[0]->grad_factor, c->precision);
}

/* Tolerance: sums of V exponentials in working precision, each good to a few units. */
const struct kernel kernel_cross_entropy_cuda = {
    .name = "cross_entropy_cuda",
    .op = &op_cross_entropy,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 32,
    .workspace = cross_entropy_cuda_workspace,
    .copies_din = 1,
    .forward = cross_entropy_cuda_forward,
    .backward = cross_entropy_cuda_backward,
};

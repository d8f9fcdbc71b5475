/* batch_norm_cuda.cu - batch_norm on CUDA: a block a strip of columns for the statistics and for the two sums of the
 * gradient, rows dealt out among its threads, all in double as the reference's; then a value a thread. Equations:
 * batch_norm.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/norm/batch_norm.h"

#define COLUMNS 8 /* of a block */
#define DEALT   (CUDA_THREADS / COLUMNS)

namespace {

/* x (B,T,D). */
struct batch {
    int64_t rows, T, D;
    const int32_t *lengths, *first; /* or NULL */
    double eps;

    __device__ bool in_use(int64_t r) const {
        struct quotient at = divide(r, T);
        return !lengths || (first ? first[at.rest] : at.rest) < lengths[at.whole];
    }
};

/* Of each column, and how many rows are in use; the sums in backward alone. */
struct columns {
    double *mean, *variance, *count, *dy_sum, *dyn_sum;
};

struct columns columns_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t D = tensor_cols(c->in[BATCH_NORM_X]);
    struct columns k = {};
    k.mean = scratch_doubles(s, D);
    k.variance = scratch_doubles(s, D);
    k.count = scratch_doubles(s, D);
    if (pass == PASS_FORWARD) return k;
    k.dy_sum = scratch_doubles(s, D);
    k.dyn_sum = scratch_doubles(s, D);
    return k;
}

struct batch batch_of(const struct call *c) {
    const struct tensor *x = c->in[BATCH_NORM_X], *lengths = c->in[BATCH_NORM_LENGTHS];
    return {tensor_rows(x), x->dims[1],
            x->dims[2],     lengths ? tensor_i32(lengths) : nullptr,
            c->table,       ((const struct batch_norm_attr *)c->attr)->eps};
}

struct apply {
    struct batch b;
    struct columns k;
    const real *x, *weight, *bias;
    real *y;
    __device__ void operator()(int64_t i) const {
        int64_t d = divide(i, b.D).rest;
        double normal = ((double)x[i] - k.mean[d]) / sqrt(k.variance[d] + b.eps);
        y[i] = (real)(normal * (double)weight[d] + (double)bias[d]);
    }
};

struct batch_dx {
    struct batch b;
    struct columns k;
    const real *x, *weight, *dy;
    real *dx;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, b.D);
        int64_t d = at.rest;
        double q = 1 / sqrt(k.variance[d] + b.eps), normal = ((double)x[i] - k.mean[d]) * q;
        double through = b.in_use(at.whole) ? (k.dy_sum[d] + normal * k.dyn_sum[d]) / k.count[d] : 0;
        put(dx + i, accumulate, (real)(q * (double)weight[d] * ((double)dy[i] - through)));
    }
};

} // namespace

/* The sum over the block's threads of one column, in each of them. */
static __device__ double column_sum(double x, double *shared) {
    int self = (int)threadIdx.x;
    __syncthreads();
    shared[self] = x;
    for (int half = DEALT / 2; half > 0; half /= 2) {
        __syncthreads();
        if (self / COLUMNS < half) shared[self] += shared[self + half * COLUMNS];
    }
    __syncthreads();
    return shared[self % COLUMNS];
}

/* run_mean NULL: the running ones stay. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    statistics_kernel(struct batch b, struct columns k, const real *x, double momentum, real *run_mean,
                      real *run_variance) {
    await_previous();
    DYNAMIC_SHARED(double, shared);
    int64_t d = (int64_t)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    bool there = d < b.D;
    double sum = 0, squares = 0, n = 0;
    for (int64_t r = threadIdx.x / COLUMNS; there && r < b.rows; r += DEALT)
        if (b.in_use(r)) {
            sum += (double)x[r * b.D + d];
            n += 1;
        }
    n = column_sum(n, shared);
    double mean = column_sum(sum, shared) / (n > 0 ? n : 1);
    for (int64_t r = threadIdx.x / COLUMNS; there && r < b.rows; r += DEALT)
        if (b.in_use(r)) squares += ((double)x[r * b.D + d] - mean) * ((double)x[r * b.D + d] - mean);
    double variance = column_sum(squares, shared) / (n > 0 ? n : 1);
    if (!there || threadIdx.x >= COLUMNS) return;
    k.mean[d] = mean;
    k.variance[d] = n > 0 ? variance : 1;
    k.count[d] = n;
    if (!run_mean || n <= 0) return;
    run_mean[d] = (real)(momentum * (double)run_mean[d] + (1 - momentum) * mean);
    run_variance[d] = (real)(momentum * (double)run_variance[d] + (1 - momentum) * variance);
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    running_kernel(struct batch b, struct columns k, const real *run_mean, const real *run_variance) {
    await_previous();
    int64_t d = cuda_index();
    if (d >= b.D) return;
    k.mean[d] = (double)run_mean[d];
    k.variance[d] = (double)run_variance[d];
}

/* dweight, dbias NULL: not wanted. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    sums_kernel(struct batch b, struct columns k, const real *x, const real *dy, real *dweight, bool add_weight,
                real *dbias, bool add_bias) {
    await_previous();
    DYNAMIC_SHARED(double, shared);
    int64_t d = (int64_t)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    bool there = d < b.D;
    double sum = 0, with_n = 0, q = there ? sqrt(k.variance[d] + b.eps) : 1;
    for (int64_t r = threadIdx.x / COLUMNS; there && r < b.rows; r += DEALT) {
        int64_t i = r * b.D + d;
        sum += (double)dy[i];
        with_n += (double)dy[i] * ((double)x[i] - k.mean[d]) / q;
    }
    sum = column_sum(sum, shared);
    with_n = column_sum(with_n, shared);
    if (!there || threadIdx.x >= COLUMNS) return;
    k.dy_sum[d] = sum;
    k.dyn_sum[d] = with_n;
    if (dweight) put(dweight + d, add_weight, (real)with_n);
    if (dbias) put(dbias + d, add_bias, (real)sum);
}

static size_t batch_norm_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    columns_of(c, pass, &s);
    return s.used;
}

static void launch_statistics(const struct call *c, const struct exec *x, struct columns k, bool running) {
    struct batch b = batch_of(c);
    LAUNCH(x, statistics_kernel, cuda_blocks(b.D, COLUMNS), dim3(CUDA_THREADS), CUDA_THREADS * sizeof(double), b, k,
           tensor_real(c->in[BATCH_NORM_X]), ((const struct batch_norm_attr *)c->attr)->momentum,
           running ? tensor_real(c->in[BATCH_NORM_MEAN]) : nullptr,
           running ? tensor_real(c->in[BATCH_NORM_VARIANCE]) : nullptr);
}

static void batch_norm_cuda_forward(const struct call *c, const struct exec *x) {
    struct batch b = batch_of(c);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct columns k = columns_of(c, PASS_FORWARD, &s);
    if (x->training)
        launch_statistics(c, x, k, true);
    else
        LAUNCH(x, running_kernel, cuda_blocks(b.D, CUDA_THREADS), dim3(CUDA_THREADS), 0, b, k,
               tensor_real(c->in[BATCH_NORM_MEAN]), tensor_real(c->in[BATCH_NORM_VARIANCE]));
    each_value(c, x, tensor_count(c->out[0]),
               apply{b, k, tensor_real(c->in[BATCH_NORM_X]), tensor_real(c->in[BATCH_NORM_WEIGHT]),
                     tensor_real(c->in[BATCH_NORM_BIAS]), tensor_real(c->out[0])});
}

static void batch_norm_cuda_backward(const struct call *c, const struct exec *x) {
    struct batch b = batch_of(c);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct columns k = columns_of(c, PASS_BACKWARD, &s);
    const real *in = tensor_real(c->in[BATCH_NORM_X]);
    launch_statistics(c, x, k, false);
    LAUNCH(x, sums_kernel, cuda_blocks(b.D, COLUMNS), dim3(CUDA_THREADS), CUDA_THREADS * sizeof(double), b, k, in,
           call_dout(c, 0), c->din[BATCH_NORM_WEIGHT], call_accumulates(c, BATCH_NORM_WEIGHT), c->din[BATCH_NORM_BIAS],
           call_accumulates(c, BATCH_NORM_BIAS));
    if (c->din[BATCH_NORM_X])
        each_value(c, x, tensor_count(c->in[BATCH_NORM_X]),
                   batch_dx{b, k, in, tensor_real(c->in[BATCH_NORM_WEIGHT]), call_dout(c, 0), c->din[BATCH_NORM_X],
                            call_accumulates(c, BATCH_NORM_X)});
}

/* Tolerance: sums in double in another order than the reference's; x - mean cancels. */
const struct kernel kernel_batch_norm_cuda = {
    .name = "batch_norm_cuda",
    .op = &op_batch_norm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = batch_norm_cuda_workspace,
    .forward = batch_norm_cuda_forward,
    .backward = batch_norm_cuda_backward,
};

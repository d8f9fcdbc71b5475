/* batch_norm_cuda.cu - batch_norm on CUDA. For the statistics, and for the two sums of the gradient, a thread block has
 * a chunk of rows and a strip of columns; all sums are in double, as in the reference. The other kernels have one value
 * per thread. Equations: batch_norm.c.
 *
 * A chunk computes its own mean, then squares about this mean. The last thread block of a strip moves the squares of
 * all chunks to the common mean, as in batch_norm_cpu.c. So rows are read twice, the second time from a cache, and
 * nothing cancels. */
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/norm/batch_norm.h"

namespace {

/* x is (B,T,D). */
struct batch {
    int64_t rows, T, D;
    const int32_t *lengths, *first; /* may be NULL */
    double eps;

    __device__ bool in_use(int64_t r) const {
        if (!lengths) return true;
        struct quotient at = divide_narrow(r, T);
        return (first ? first[at.rest] : at.rest) < lengths[at.whole];
    }
};

/* The number of rows in use, and the sum of their values. */
typedef numbers<double, 2> tally;

__device__ __forceinline__ double mean_of(const tally &t) {
    return t.v[1] / (t.v[0] > 0 ? t.v[0] : 1);
}

/* The sums of dy and of dy (x - mean). */
typedef numbers<double, 2> flows;

/* For each column: its mean, (variance + eps)^-1/2, and the number of rows in use; in backward also the sums of dy and
 * of dy n. For each chunk and column: the sums that the last thread block gathers. */
struct columns {
    double *mean, *q, *count, *dy_sum, *dyn_sum;
    tally *tallies;
    double *squares;
    flows *partial;
};

struct column_cut cut_of(const struct tensor *x) {
    int64_t rows = tensor_rows(x), D = tensor_cols(x);
    return column_cut_of(rows, D, sum_chunks(rows, column_sums_tiles(D)));
}

struct columns columns_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t rows = tensor_rows(c->in[BATCH_NORM_X]), D = tensor_cols(c->in[BATCH_NORM_X]);
    struct columns k = {};
    k.mean = scratch_doubles(s, D);
    k.q = scratch_doubles(s, D);
    k.count = scratch_doubles(s, D);
    k.tallies = (tally *)scratch_bytes(s, cuda_column_sums_bytes(rows, D, sizeof(tally)));
    k.squares = (double *)scratch_bytes(s, cuda_column_sums_bytes(rows, D, sizeof(double)));
    if (pass == PASS_FORWARD) return k;
    k.dy_sum = scratch_doubles(s, D);
    k.dyn_sum = scratch_doubles(s, D);
    k.partial = (flows *)scratch_bytes(s, cuda_column_sums_bytes(rows, D, sizeof(flows)));
    return k;
}

struct batch batch_of(const struct call *c) {
    const struct tensor *x = c->in[BATCH_NORM_X], *lengths = c->in[BATCH_NORM_LENGTHS];
    return {tensor_rows(x),         x->dims[1], x->dims[2], lengths ? tensor_i32(lengths) : nullptr, c->table,
            batch_norm_attr(c)->eps};
}

/* Terms of a tally. All values are read, also those that are not in use, so that reading need not wait for the
 * lengths. */
struct tally_term {
    struct batch b;
    const real *x;
    __device__ tally operator()(int64_t r, int64_t i) const {
        double value = (double)x[i];
        bool counts = b.in_use(r);
        return {{counts ? 1.0 : 0.0, counts ? value : 0.0}};
    }
};

struct square_term {
    struct batch b;
    const real *x;
    double mean;
    __device__ double operator()(int64_t r, int64_t i) const {
        double off = (double)x[i] - mean;
        return b.in_use(r) ? off * off : 0;
    }
};

/* Moves a chunk's squares about its own mean to the mean of all rows. */
struct moved_square_term {
    const tally *tallies;
    const double *squares;
    double mean;
    __device__ double operator()(int64_t, int64_t i) const {
        tally t = later_load(tallies + i);
        double off = mean_of(t) - mean;
        return later_load(squares + i) + t.v[0] * off * off;
    }
};

struct flow_term {
    struct columns k;
    const real *x, *dy;
    int64_t D;
    __device__ flows operator()(int64_t r, int64_t i) const {
        double flow = (double)dy[i];
        return {{flow, flow * ((double)x[i] - k.mean[i - r * D])}};
    }
};

/* Computes the gradients of a column. dweight, dbias NULL: not wanted. */
struct flow_out {
    struct columns k;
    real *dweight, *dbias;
    bool add_weight, add_bias;
    __device__ void operator()(int64_t d, const flows &sum) const {
        double along = sum.v[1] * k.q[d];
        k.dy_sum[d] = sum.v[0];
        k.dyn_sum[d] = along;
        if (dweight) put(dweight + d, add_weight, (real)along);
        if (dbias) put(dbias + d, add_bias, (real)sum.v[0]);
    }
};

struct apply {
    struct batch b;
    struct columns k;
    const real *x, *weight, *bias;
    real *y;
    __device__ void operator()(int64_t i) const {
        int64_t d = divide(i, b.D).rest;
        double normal = ((double)x[i] - k.mean[d]) * k.q[d];
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
        double q = k.q[d], normal = ((double)x[i] - k.mean[d]) * q;
        double through = b.in_use(at.whole) ? (k.dy_sum[d] + normal * k.dyn_sum[d]) / k.count[d] : 0;
        put(dx + i, accumulate, (real)(q * (double)weight[d] * ((double)dy[i] - through)));
    }
};

/* The running statistics, which the batch's statistics change; mean NULL: there are none. */
struct running {
    real *mean, *variance;
    double momentum;

    __device__ void update(int64_t d, double batch_mean, double batch_variance) const {
        mean[d] = (real)(momentum * (double)mean[d] + (1 - momentum) * batch_mean);
        variance[d] = (real)(momentum * (double)variance[d] + (1 - momentum) * batch_variance);
    }
};

} // namespace

/* Returns the tally of the column's rows in all its threads. */
template <class Term>
static __device__ tally column_tally(const struct column_cut &cut, int64_t begin, int64_t end, int64_t column,
                                     const Term &term, tally *shared) {
    rows_sum(cut, begin, end, column, term, shared);
    tally t = shared[(int)threadIdx.x % cut.width];
    __syncthreads(); /* all threads must have read it before it is written again */
    return t;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    statistics_kernel(struct column_cut cut, struct batch b, struct columns k, const real *x, unsigned *counters,
                      struct running run) {
    await_previous();
    DYNAMIC_SHARED(tally, shared); /* CUDA_THREADS */
    double *shared_squares = reinterpret_cast<double *>(shared);
    struct column_place at = column_place_of(cut, blockIdx.x);
    tally t = column_tally(cut, at.begin, at.end, at.column, tally_term{b, x}, shared);
    double squares = rows_sum(cut, at.begin, at.end, at.column, square_term{b, x, mean_of(t)}, shared_squares);
    if (cut.chunks > 1) {
        if (at.stores) k.tallies[at.chunk * cut.C + at.column] = t;
        if (at.stores) k.squares[at.chunk * cut.C + at.column] = squares;
        if (!last_block(counters + at.tile, (unsigned)cut.chunks)) return;
        t = column_tally(cut, 0, cut.chunks, at.column, partial_term<tally>{k.tallies}, shared);
        squares = rows_sum(cut, 0, cut.chunks, at.column, moved_square_term{k.tallies, k.squares, mean_of(t)},
                           shared_squares);
    }
    if (!at.stores) return;
    double n = t.v[0], mean = mean_of(t), variance = n > 0 ? squares / n : 1;
    k.mean[at.column] = mean;
    k.q[at.column] = 1 / sqrt(variance + b.eps);
    k.count[at.column] = n;
    if (run.mean && n > 0) run.update(at.column, mean, variance);
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    running_kernel(struct batch b, struct columns k, const real *run_mean, const real *run_variance) {
    await_previous();
    int64_t d = cuda_index();
    if (d >= b.D) return;
    k.mean[d] = (double)run_mean[d];
    k.q[d] = 1 / sqrt((double)run_variance[d] + b.eps);
}

/* Rows are divided as 32-bit numbers. */
static bool batch_norm_cuda_applicable(const struct call *c, const char **why) {
    bool fits = tensor_rows(c->in[BATCH_NORM_X]) <= UINT32_MAX;
    if (!fits) *why = "rows go up to 4294967295";
    return fits;
}

static size_t batch_norm_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    columns_of(c, pass, &s);
    return s.used;
}

static void launch_statistics(const struct call *c, const struct exec *x, struct columns k, bool running) {
    struct running run = {running ? tensor_real(c->in[BATCH_NORM_MEAN]) : nullptr,
                          running ? tensor_real(c->in[BATCH_NORM_VARIANCE]) : nullptr, batch_norm_attr(c)->momentum};
    struct column_cut cut = cut_of(c->in[BATCH_NORM_X]);
    LAUNCH(x, statistics_kernel, dim3((unsigned)(cut.chunks * cut.tiles)), dim3(CUDA_THREADS),
           CUDA_THREADS * sizeof(tally), cut, batch_of(c), k, tensor_real(c->in[BATCH_NORM_X]),
           x->place->cuda->now.counters, run);
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
    cuda_column_sums_to(c, x, cut_of(c->in[BATCH_NORM_X]), flow_term{k, in, call_dout(c, 0), b.D},
                        flow_out{k, c->din[BATCH_NORM_WEIGHT], c->din[BATCH_NORM_BIAS],
                                 call_accumulates(c, BATCH_NORM_WEIGHT), call_accumulates(c, BATCH_NORM_BIAS)},
                        k.partial);
    if (c->din[BATCH_NORM_X])
        each_value(c, x, tensor_count(c->in[BATCH_NORM_X]),
                   batch_dx{b, k, in, tensor_real(c->in[BATCH_NORM_WEIGHT]), call_dout(c, 0), c->din[BATCH_NORM_X],
                            call_accumulates(c, BATCH_NORM_X)});
}

/* Tolerance: sums are in double, but in another order than in the reference; x - mean cancels. */
const struct kernel kernel_batch_norm_cuda = {
    .name = "batch_norm_cuda",
    .op = &op_batch_norm,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .applicable = batch_norm_cuda_applicable,
    .workspace = batch_norm_cuda_workspace,
    .forward = batch_norm_cuda_forward,
    .backward = batch_norm_cuda_backward,
};

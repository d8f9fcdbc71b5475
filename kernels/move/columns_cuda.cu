/* columns_cuda.cu - split and join_columns on CUDA: both are moves between a matrix and up to four parts of its
 * columns, with one value per thread, or four if all widths allow it; prepend_one and repeat_each, one value per
 * thread. Equations: columns.c. The bits are the reference's. */
#include "kernels/move/move.h"
#include "kernels/lib/cuda.cuh"

namespace {

/* The parts follow each other from column `from` on. All widths, also the matrix's, are in units of W values. */
struct parts {
    int n;
    int64_t C, from, widths[OP_MAX_OUT];
    real *of[OP_MAX_OUT]; /* NULL: no such part */
    bool accumulate[OP_MAX_OUT];
};

/* Address of a column of row r in the part that has it; NULL: no part has it. */
struct place_in_parts {
    real *at;
    bool accumulate;
};

struct prepend {
    const real *x;
    real *y, factor;
    int64_t C;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, C + 1);
        y[i] = at.rest ? factor * x[at.whole * C + at.rest - 1] : factor;
    }
};

struct prepend_gradient {
    const real *dy;
    real *dx, factor;
    int64_t C;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        put(dx + i, accumulate, factor * dy[i + divide(i, C).whole + 1]);
    }
};

struct repetition {
    const real *p;
    real *y;
    int64_t n;
    __device__ void operator()(int64_t i) const {
        y[i] = p[divide(i, n).whole];
    }
};

struct repetition_gradient {
    const real *dy;
    real *dp;
    int64_t n;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) sum += (double)dy[i * n + k];
        put(dp + i, accumulate, (real)sum);
    }
};

} // namespace

static __device__ __forceinline__ struct place_in_parts find_part(const struct parts &p, int64_t r, int64_t column,
                                                                  int W) {
    struct place_in_parts found = {nullptr, false};
    int64_t first = p.from;
#pragma unroll
    for (int k = 0; k < OP_MAX_OUT; k++) {
        if (k < p.n && p.of[k] && column >= first && column < first + p.widths[k])
            found = {p.of[k] + (r * p.widths[k] + column - first) * W, p.accumulate[k]};
        first += p.widths[k];
    }
    return found;
}

/* Copies the matrix's columns to the parts. */
template <int W>
static __global__ void __launch_bounds__(CUDA_THREADS) take_kernel(int64_t units, struct parts p, const real *matrix) {
    await_previous();
    int64_t i = cuda_index();
    if (i >= units) return;
    struct quotient at = divide(i, p.C);
    struct place_in_parts to = find_part(p, at.whole, at.rest, W);
    if (to.at) put_lanes<W>(to.at, to.accumulate, load_lanes<W>(matrix + i * W));
}

/* Copies the parts into the matrix; columns that no part has become zero. */
template <int W>
static __global__ void __launch_bounds__(CUDA_THREADS)
    give_kernel(int64_t units, struct parts p, real *matrix, bool accumulate) {
    await_previous();
    int64_t i = cuda_index();
    if (i >= units) return;
    struct quotient at = divide(i, p.C);
    struct place_in_parts from = find_part(p, at.whole, at.rest, W);
    lanes<W> v = {};
    if (from.at) v = load_lanes<W>(from.at);
    put_lanes<W>(matrix + i * W, accumulate, v);
}

static bool by_four(const struct parts *p) {
    bool four = p->C % 4 == 0 && p->from % 4 == 0;
    for (int k = 0; k < p->n; k++) four = four && p->widths[k] % 4 == 0;
    return four;
}

static struct parts in_units(struct parts p, int W) {
    p.C /= W;
    p.from /= W;
    for (int k = 0; k < p.n; k++) p.widths[k] /= W;
    return p;
}

template <int W> static void launch_take(const struct exec *x, int64_t rows, struct parts p, const real *matrix) {
    int64_t units = rows * p.C / W;
    LAUNCH(x, take_kernel<W>, cuda_blocks(units, CUDA_THREADS), dim3(CUDA_THREADS), 0, units, in_units(p, W), matrix);
}

template <int W>
static void launch_give(const struct exec *x, int64_t rows, struct parts p, real *matrix, bool accumulate) {
    int64_t units = rows * p.C / W;
    LAUNCH(x, give_kernel<W>, cuda_blocks(units, CUDA_THREADS), dim3(CUDA_THREADS), 0, units, in_units(p, W), matrix,
           accumulate);
}

static void take(const struct exec *x, int64_t rows, const struct parts *p, const real *matrix) {
    if (by_four(p))
        launch_take<4>(x, rows, *p, matrix);
    else
        launch_take<1>(x, rows, *p, matrix);
}

static void give(const struct exec *x, int64_t rows, const struct parts *p, real *matrix, bool accumulate) {
    if (by_four(p))
        launch_give<4>(x, rows, *p, matrix, accumulate);
    else
        launch_give<1>(x, rows, *p, matrix, accumulate);
}

/* --- split -------------------------------------------------------------------------------------------------------- */

static struct parts split_parts(const struct call *c) {
    const struct split_attr *a = split_attr(c);
    struct parts p = {};
    p.n = a->parts;
    p.C = tensor_cols(c->in[0]);
    p.from = a->from;
    for (int k = 0; k < p.n; k++) p.widths[k] = a->widths[k];
    return p;
}

static void split_cuda_forward(const struct call *c, const struct exec *x) {
    struct parts p = split_parts(c);
    for (int k = 0; k < p.n; k++) p.of[k] = tensor_real(c->out[k]);
    take(x, tensor_rows(c->in[0]), &p, tensor_real(c->in[0]));
}

/* give() only reads the parts. */
static void split_cuda_backward(const struct call *c, const struct exec *x) {
    struct parts p = split_parts(c);
    for (int k = 0; k < p.n; k++) p.of[k] = c->out[k]->grad;
    if (c->din[0]) give(x, tensor_rows(c->in[0]), &p, c->din[0], call_accumulates(c, 0));
}

/* --- join_columns ------------------------------------------------------------------------------------------------- */

static struct parts join_parts(const struct call *c) {
    struct parts p = {};
    p.n = 2;
    p.C = tensor_cols(c->out[0]);
    for (int k = 0; k < 2; k++) p.widths[k] = tensor_cols(c->in[k]);
    return p;
}

static void join_columns_cuda_forward(const struct call *c, const struct exec *x) {
    struct parts p = join_parts(c);
    for (int k = 0; k < 2; k++) p.of[k] = tensor_real(c->in[k]);
    give(x, tensor_rows(c->out[0]), &p, tensor_real(c->out[0]), false);
}

static void join_columns_cuda_backward(const struct call *c, const struct exec *x) {
    struct parts p = join_parts(c);
    for (int k = 0; k < 2; k++) {
        p.of[k] = c->din[k];
        p.accumulate[k] = call_accumulates(c, k);
    }
    take(x, tensor_rows(c->out[0]), &p, call_dout(c, 0));
}

/* --- prepend_one, repeat_each ------------------------------------------------------------------------------------- */

static void prepend_one_cuda_forward(const struct call *c, const struct exec *x) {
    real factor = (real)prepend_one_attr(c)->factor;
    each_value(c, x, tensor_count(c->out[0]),
               prepend{tensor_real(c->in[0]), tensor_real(c->out[0]), factor, tensor_cols(c->in[0])});
}

static void prepend_one_cuda_backward(const struct call *c, const struct exec *x) {
    real factor = (real)prepend_one_attr(c)->factor;
    if (c->din[0])
        each_value(c, x, tensor_count(c->in[0]),
                   prepend_gradient{call_dout(c, 0), c->din[0], factor, tensor_cols(c->in[0]), call_accumulates(c, 0)});
}

static void repeat_each_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t n = repeat_each_attr(c)->n;
    each_value(c, x, tensor_count(c->out[0]), repetition{tensor_real(c->in[0]), tensor_real(c->out[0]), n});
}

static void repeat_each_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t n = repeat_each_attr(c)->n;
    if (c->din[0])
        each_value(c, x, tensor_count(c->in[0]),
                   repetition_gradient{call_dout(c, 0), c->din[0], n, call_accumulates(c, 0)});
}

const struct kernel kernel_prepend_one_cuda = {
    .name = "prepend_one_cuda",
    .op = &op_prepend_one,
    .device = DEVICE_CUDA,
    .forward = prepend_one_cuda_forward,
    .backward = prepend_one_cuda_backward,
};

const struct kernel kernel_repeat_each_cuda = {
    .name = "repeat_each_cuda",
    .op = &op_repeat_each,
    .device = DEVICE_CUDA,
    .forward = repeat_each_cuda_forward,
    .backward = repeat_each_cuda_backward,
};

const struct kernel kernel_split_cuda = {
    .name = "split_cuda",
    .op = &op_split,
    .device = DEVICE_CUDA,
    .forward = split_cuda_forward,
    .backward = split_cuda_backward,
};

const struct kernel kernel_join_columns_cuda = {
    .name = "join_columns_cuda",
    .op = &op_join_columns,
    .device = DEVICE_CUDA,
    .forward = join_columns_cuda_forward,
    .backward = join_columns_cuda_backward,
};

/* row_sums.cuh - strips of the columns of matrix states on graphs, on CUDA. A warp computes W columns of one head of
 * one sequence, node after node, with one lane per column. Columns are independent in the recurrence: a lane reads only
 * values that it wrote, or that the lane of the same column in another warp of its thread block wrote. Sums over
 * columns, for gradients, use a table in shared memory with one line for each sum. */
#ifndef LRNN_KERNELS_MATRIX_ROW_SUMS_CUH
#define LRNN_KERNELS_MATRIX_ROW_SUMS_CUH

#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"

/* The sizes of a call, taken from its inputs q and v. */
struct row_sizes {
    int64_t B, T, H, dk, dv;
};

static inline struct row_sizes row_sizes_of(const struct call *c, int64_t H) {
    const struct tensor *q = c->in[0], *v = c->in[2];
    struct row_sizes z = {q->dims[0], q->dims[1], H, q->dims[2] / H, v->dims[2] / H};
    return z;
}

/* The strips of a call, with W columns each. lines: the number of sums that a node needs at the same time. */
struct column_strips {
    struct row_sizes z;
    int W, strips, lines;
};

static inline struct column_strips column_strips_of(struct row_sizes z, int64_t lines) {
    struct column_strips s = {z, WARP, 1, (int)lines};
    while (s.W > 1 && ((size_t)(lines * (s.W + 1)) * sizeof(real) > CUDA_SHARED_UNASKED || s.W / 2 >= z.dv)) s.W /= 2;
    s.strips = (int)((z.dv + s.W - 1) / s.W);
    return s;
}

static inline size_t column_strips_shared(const struct column_strips &s) {
    return (size_t)(s.lines * (s.W + 1)) * sizeof(real);
}

static inline bool column_strips_fit(const struct column_strips &s, const char **why) {
    bool fits = column_strips_shared(s) <= CUDA_SHARED_UNASKED;
    if (!fits) *why = "a column of the state is larger than a block's shared memory";
    return fits;
}

/* The column j of a head that a lane computes; it has none if `in` is false. */
struct column {
    int lane;
    int64_t strip, j;
    bool in;
};

static __device__ __forceinline__ struct column column_here(const struct column_strips &s, int64_t strip) {
    int lane = (int)threadIdx.x % WARP;
    struct column at = {lane, strip, strip * s.W + lane, false};
    at.in = at.lane < s.W && at.j < s.z.dv;
    return at;
}

/* Returns the address of element i of this lane's column in state number n of the array `states`. */
static __device__ __forceinline__ real *column_at(const struct column_strips &s, const struct column &at, real *states,
                                                  int64_t n, int64_t i) {
    return states + (n * s.z.dk + i) * s.W + at.lane;
}

/* Stores the lane's term of line r. */
static __device__ __forceinline__ void row_share(const struct column_strips &s, const struct column &at, real *table,
                                                 int r, real x) {
    if (at.lane < s.W) table[r * (s.W + 1) + at.lane] = x;
}

/* Returns the sum of line r over the columns in order. Call it after a barrier. */
static __device__ __forceinline__ real row_sum(const struct column_strips &s, const real *table, int r) {
    real sum = 0;
    for (int j = 0; j < s.W; j++) sum += table[r * (s.W + 1) + j];
    return sum;
}

/* Returns a . b for n values. */
static __device__ __forceinline__ real row_product(int64_t n, const real *a, const real *b) {
    real sum = 0;
    for (int64_t i = 0; i < n; i++) sum = real_fma(a[i], b[i], sum);
    return sum;
}

/* --- the terms of a node outside the recurrence, and the sums over strips ----------------------------------------- */

/* q, k, v, direct and dy of a call. Below, `shares` has the partial sums of `parts` strips, each (B,T,H,width). */
struct outside {
    struct row_sizes z;
    const real *q, *k, *v, *direct, *dy;
    real scale;

    __device__ const real *head(const real *x, int64_t row, int64_t width) const { /* row: index in (B,T,H) */
        return x + row * width;
    }
    __device__ real qk(int64_t row) const {
        return row_product(z.dk, head(q, row, z.dk), head(k, row, z.dk));
    }
    __device__ real vw(int64_t row) const {
        return scale * row_product(z.dv, head(v, row, z.dv), head(dy, row, z.dv));
    }
};

/* Returns the sum of element i over the parts, in order. */
static __device__ __forceinline__ real sum_of_parts(const real *shares, int64_t stride, int64_t parts, int64_t i) {
    real sum = 0;
    for (int64_t p = 0; p < parts; p++) sum += shares[p * stride + i];
    return sum;
}

struct outside_y {
    struct outside k;
    const real *shares;
    int64_t stride, parts;
    real *y;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, k.z.dv);
        real sum = sum_of_parts(shares, stride, parts, i);
        y[i] = k.scale * real_fma(k.direct[at.whole] * k.qk(at.whole), k.v[i], sum);
    }
};

/* Computes dq or dk; `other` is k or q. It is the direct term and the sums of the shares. */
struct outside_dqk {
    struct outside k;
    const real *other, *shares;
    int64_t stride, parts;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        int64_t row = divide(i, k.z.dk).whole;
        real sum = sum_of_parts(shares, stride, parts, i);
        put(to + i, accumulate, real_fma(k.direct[row] * k.vw(row), other[i], sum));
    }
};

struct outside_dv {
    struct outside k;
    const real *shares;
    int64_t stride, parts;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        int64_t row = divide(i, k.z.dv).whole;
        real sum = sum_of_parts(shares, stride, parts, i);
        put(to + i, accumulate, real_fma(k.direct[row] * k.qk(row), k.scale * k.dy[i], sum));
    }
};

struct outside_direct {
    struct outside k;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t row) const {
        put(to + row, accumulate, k.qk(row) * k.vw(row));
    }
};

/* Computes gradients of gates, which are only sums of shares. */
struct sum_shares {
    const real *shares;
    int64_t stride, parts;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        put(to + i, accumulate, sum_of_parts(shares, stride, parts, i));
    }
};

/* Returns the pointers of a call whose inputs 0 to 2 are q, k, v. dy is NULL in forward. */
static inline struct outside outside_of(const struct call *c, struct row_sizes z, double scale, int direct,
                                        const real *dy) {
    struct outside k = {
        z,          tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->in[2]), tensor_real(c->in[direct]), dy,
        (real)scale};
    return k;
}

/* Computes the gradients of q, k, v (inputs 0 to 2) and of `direct`, from the shares of dq, dk and dv. */
static inline void outside_gradients(const struct call *c, const struct exec *x, const struct outside &k, int direct,
                                     const real *dq, const real *dk, int64_t parts_qk, const real *dv,
                                     int64_t parts_v) {
    int64_t rows = k.z.B * k.z.T * k.z.H, n = rows * k.z.dk, m = rows * k.z.dv;
    if (c->din[0]) each_value(c, x, n, outside_dqk{k, k.k, dq, n, parts_qk, c->din[0], call_accumulates(c, 0)});
    if (c->din[1]) each_value(c, x, n, outside_dqk{k, k.q, dk, n, parts_qk, c->din[1], call_accumulates(c, 1)});
    if (c->din[2]) each_value(c, x, m, outside_dv{k, dv, m, parts_v, c->din[2], call_accumulates(c, 2)});
    if (c->din[direct]) each_value(c, x, rows, outside_direct{k, c->din[direct], call_accumulates(c, direct)});
}

#endif

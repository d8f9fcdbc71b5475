/* grid_positions_cuda.cu - grid_positions on CUDA, one value per thread, in double and in the reference's order. The
 * equations are in grid_positions.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/move/grid_positions.h"

namespace {

/* Sequences of T tokens, D columns. */
struct positions {
    struct grid_positions_attr attr;
    const int32_t *lengths; /* or NULL */
    int64_t T, D;

    __device__ struct token_grid grid(int64_t b) const {
        return token_grid_in(&attr.own, lengths ? lengths[b] : T);
    }
    __device__ struct cubic row(const struct token_grid &g, int64_t i) const {
        return cubic_at(i, g.height, attr.trained.height);
    }
    __device__ struct cubic column(const struct token_grid &g, int64_t i) const {
        return cubic_at(i, g.width, attr.trained.width);
    }
};

/* y = x + the weighted entries of the table around each token's position. */
struct add_positions {
    struct positions k;
    const real *x, *table;
    real *y;

    /* Value of the table at token t in the column that begins at p. */
    __device__ double between(const struct token_grid &g, int64_t t, const real *p) const {
        struct cubic row = k.row(g, t / g.width), column = k.column(g, t % g.width);
        double sum = 0;
        for (int i = 0; i < CUBIC_TAPS; i++)
            for (int j = 0; j < CUBIC_TAPS; j++) {
                double weight = row.weight[i] * column.weight[j];
                int64_t entry = (row.first + i) * k.attr.trained.width + column.first + j;
                if (weight < 0 || weight > 0) sum += weight * (double)p[entry * k.D];
            }
        return sum;
    }
    __device__ void operator()(int64_t i) const {
        struct quotient token = divide(i, k.D), at = divide(token.whole, k.T);
        struct token_grid g = k.grid(at.whole);
        const real *p = table + token.rest;
        double position = 0;
        if (at.rest < g.n) position = token_grid_is(&g, &k.attr.trained) ? p[at.rest * k.D] : between(g, at.rest, p);
        y[i] = (real)((double)x[i] + position);
    }
};

/* Gradient of one column of an entry, summed over the sequences and their tokens in order. */
struct entry_gradient {
    struct positions k;
    const real *dy;
    real *dp;
    int64_t B;
    bool accumulate;

    /* sum + the gradient of entry j from a sequence whose column begins at d. */
    __device__ double sequence(double sum, const struct token_grid &g, int64_t j, const real *d) const {
        for (int64_t r = 0; r < g.height; r++) {
            struct cubic row = k.row(g, r);
            double of_row = cubic_weight(&row, j / k.attr.trained.width);
            for (int64_t s = 0; s < g.width && r * g.width + s < g.n && (of_row < 0 || of_row > 0); s++) {
                struct cubic column = k.column(g, s);
                double weight = of_row * cubic_weight(&column, j % k.attr.trained.width);
                sum += weight * (double)d[(r * g.width + s) * k.D];
            }
        }
        return sum;
    }
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, k.D);
        double sum = 0;
        for (int64_t b = 0; b < B; b++) {
            struct token_grid g = k.grid(b);
            const real *d = dy + b * k.T * k.D + at.rest;
            if (!token_grid_is(&g, &k.attr.trained))
                sum = sequence(sum, g, at.whole, d);
            else if (at.whole < g.n)
                sum += (double)d[at.whole * k.D];
        }
        put(dp + i, accumulate, (real)sum);
    }
};

struct positions positions_of(const struct call *c) {
    struct positions k = {*grid_positions_attr(c), c->in[2] ? tensor_i32(c->in[2]) : nullptr, c->in[0]->dims[1],
                          c->in[0]->dims[2]};
    return k;
}

} // namespace

static void grid_positions_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]),
               add_positions{positions_of(c), tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0])});
}

static void grid_positions_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0]) each(c, x, tensor_count(c->in[0]), passed_on{call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
    if (c->din[1])
        each_value(
            c, x, tensor_count(c->in[1]),
            entry_gradient{positions_of(c), call_dout(c, 0), c->din[1], c->in[0]->dims[0], call_accumulates(c, 1)});
}

const struct kernel kernel_grid_positions_cuda = {
    .name = "grid_positions_cuda",
    .op = &op_grid_positions,
    .device = DEVICE_CUDA,
    .forward = grid_positions_cuda_forward,
    .backward = grid_positions_cuda_backward,
};

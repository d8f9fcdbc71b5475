/* dense_generators_cuda.cu - dense_generators on CUDA, one number per thread; neighbouring threads have neighbouring
 * letters. Sums are in double and in the reference's order. Equations: dense_generators.c. */
#include "kernels/flow/flow.h"
#include "kernels/lib/cuda.cuh"

namespace {

/* Computes the matrices. d (D,C), u and v (r*D,C), Q and a (D*D,C). */
struct low_rank {
    int64_t D, C, r;
};

struct generators {
    struct low_rank z;
    const real *d, *u, *v;
    real *a;
    __device__ void operator()(int64_t e) const {
        struct quotient at = divide(e, z.C), element = divide(at.whole, z.D);
        int64_t i = element.whole, j = element.rest, k = at.rest;
        double sum = i == j ? (double)d[i * z.C + k] : 0;
        for (int64_t q = 0; q < z.r; q++)
            sum += (double)u[(q * z.D + i) * z.C + k] * (double)v[(q * z.D + j) * z.C + k];
        a[e] = (real)sum;
    }
};

struct diagonal_gradient {
    struct low_rank z;
    const real *Q;
    real *dd;
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        struct quotient at = divide(e, z.C);
        put(dd + e, accumulate, Q[(at.whole * z.D + at.whole) * z.C + at.rest]);
    }
};

/* Computes the gradient of U, which sums over a row of Q (`along` 1), or of V, which sums over a column (`along` D).
 * `other` is the other factor. */
struct factor_gradient {
    struct low_rank z;
    const real *Q, *other;
    real *to;
    int64_t along;
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        struct quotient at = divide(e, z.C), row = divide(at.whole, z.D);
        int64_t first = along == 1 ? row.rest * z.D : row.rest;
        double sum = 0;
        for (int64_t j = 0; j < z.D; j++)
            sum +=
                (double)Q[(first + j * along) * z.C + at.rest] * (double)other[(row.whole * z.D + j) * z.C + at.rest];
        put(to + e, accumulate, (real)sum);
    }
};

struct low_rank sizes_of(const struct call *c) {
    int64_t D = c->in[0]->dims[0];
    struct low_rank z = {D, c->in[0]->dims[1], c->in[1]->dims[0] / D};
    return z;
}

} // namespace

static void dense_generators_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]),
               generators{sizes_of(c), tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->in[2]),
                          tensor_real(c->out[0])});
}

static void dense_generators_cuda_backward(const struct call *c, const struct exec *x) {
    struct low_rank z = sizes_of(c);
    if (c->din[0])
        each_value(c, x, tensor_count(c->in[0]),
                   diagonal_gradient{z, call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
    for (int input = 1; input <= 2; input++)
        if (c->din[input])
            each_value(c, x, tensor_count(c->in[input]),
                       factor_gradient{z, call_dout(c, 0), tensor_real(c->in[3 - input]), c->din[input],
                                       input == 1 ? 1 : z.D, call_accumulates(c, input)});
}

const struct kernel kernel_dense_generators_cuda = {
    .name = "dense_generators_cuda",
    .op = &op_dense_generators,
    .device = DEVICE_CUDA,
    .forward = dense_generators_cuda_forward,
    .backward = dense_generators_cuda_backward,
};

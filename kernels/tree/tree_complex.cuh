/* tree_complex.cuh - complex numbers on the device. Products are spelt out, so that both CUDA twins of the tree ops
 * round alike. */
#ifndef LRNN_KERNELS_TREE_TREE_COMPLEX_CUH
#define LRNN_KERNELS_TREE_TREE_COMPLEX_CUH

#include "kernels/lib/cuda.cuh"

namespace {

struct complex_real {
    real re, im;
};

__device__ __forceinline__ struct complex_real operator*(struct complex_real a, struct complex_real b) {
    struct complex_real y = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return y;
}

__device__ __forceinline__ struct complex_real operator-(struct complex_real a, struct complex_real b) {
    struct complex_real y = {a.re - b.re, a.im - b.im};
    return y;
}

__device__ __forceinline__ struct complex_real conjugate(struct complex_real a) {
    struct complex_real y = {a.re, -a.im};
    return y;
}

__device__ __forceinline__ struct complex_real reciprocal(struct complex_real a) {
    real size = a.re * a.re + a.im * a.im;
    struct complex_real y = {a.re / size, -a.im / size};
    return y;
}

/* The two planes of a tensor. Both NULL: no tensor; im NULL: imaginary parts are 0. */
struct planes {
    const real *re, *im;
    __device__ struct complex_real at(int64_t i) const {
        struct complex_real y = {re[i], im ? im[i] : 0};
        return y;
    }
};

struct planes planes_of(const struct tensor *re, const struct tensor *im) {
    struct planes p = {re ? tensor_real(re) : nullptr, im ? tensor_real(im) : nullptr};
    return p;
}

} // namespace

#endif

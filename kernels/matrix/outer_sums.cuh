/* outer_sums.cuh - gradients of outer-product states on CUDA, J matrices per head, that are sums over columns. A strip
 * (strip.cuh) is some columns of a head's states. Each strip stores its partial sums, and a second kernel adds them. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_SUMS_CUH
#define LRNN_KERNELS_MATRIX_OUTER_SUMS_CUH

#include "kernels/matrix/outer_inputs.cuh"
#include "kernels/matrix/strip.cuh"

namespace {

/* Returns how many values a strip stores for a token: dq, dk, then the gates' gradients. */
__host__ __device__ inline int64_t outer_partial(int64_t dk, int64_t J) {
    return 2 * dk + J * J + 2 * J + 1;
}

/* Adds the strips' values of a token to dq and dk of a group. The heads of a group are added too. */
struct outer_key_sums {
    struct strip_shape s;
    const real *partial;
    real *to;
    int64_t H, G, from; /* from: 0 for dq, dk for the gradient dk */
    int dk, J;
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        struct quotient vector = divide(e, dk), at = divide(vector.whole, G), token = divide(at.whole, s.T);
        int64_t width = outer_partial(dk, J), share = H / G;
        const real *first = partial + ((token.whole * H + at.rest * share) * s.strips * s.T + token.rest) * width;
        put(to + e, accumulate, strip_sum(first + from + vector.rest, s.T * width, share * s.strips));
    }
};

/* Adds the strips' values of n gates per head, from `from` on, and those from `beside` on unless it is negative. */
struct outer_gate_sums {
    struct strip_shape s;
    const real *partial;
    real *to;
    int64_t H, n, from, beside;
    int dk, J;
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        struct quotient gate = divide(e, n), at = divide(gate.whole, H), token = divide(at.whole, s.T);
        int64_t width = outer_partial(dk, J);
        const real *first = partial + ((token.whole * H + at.rest) * s.strips * s.T + token.rest) * width + 2 * dk;
        real sum = strip_sum(first + from + gate.rest, s.T * width, s.strips);
        if (beside >= 0) sum += strip_sum(first + beside + gate.rest, s.T * width, s.strips);
        put(to + e, accumulate, sum);
    }
};

/* Computes the gradients of all inputs except v from the strips' values (B,H,strips,T,outer_partial). */
inline void outer_gradient_sums(const struct call *c, const struct exec *x, const struct outer_inputs &in,
                                const struct strip_shape &s, const real *partial, const struct outer_gradients &d) {
    int64_t B = s.B, T = s.T;
    int64_t J = in.J, direct = 2 * J + J * J;
    bool after = !in.mark;
    if (d.q)
        each_value(c, x, B * T * in.G * in.dk, outer_key_sums{s, partial, d.q, in.H, in.G, 0, in.dk, in.J, d.add_q});
    if (d.k)
        each_value(c, x, B * T * in.G * in.dk,
                   outer_key_sums{s, partial, d.k, in.H, in.G, in.dk, in.dk, in.J, d.add_k});
    if (d.source)
        each_value(c, x, B * T * in.H * J,
                   outer_gate_sums{s, partial, d.source, in.H, J, 0, after ? direct : -1, in.dk, in.J, d.add_source});
    if (d.transition)
        each_value(c, x, B * T * in.H * J * J,
                   outer_gate_sums{s, partial, d.transition, in.H, J * J, 2 * J, after ? J : -1, in.dk, in.J,
                                   d.add_transition});
    if (d.mark)
        each_value(c, x, B * T * in.H * J,
                   outer_gate_sums{s, partial, d.mark, in.H, J, J, -1, in.dk, in.J, d.add_mark});
    if (d.direct)
        each_value(c, x, B * T * in.H,
                   outer_gate_sums{s, partial, d.direct, in.H, 1, direct, -1, in.dk, in.J, d.add_direct});
}

} // namespace

#endif

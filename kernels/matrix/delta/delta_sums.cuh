/* delta_sums.cuh - the delta rule on CUDA: inputs, and how what strips of columns (strip.cuh) leave of a token becomes
 * gradients. */
#ifndef LRNN_KERNELS_MATRIX_DELTA_DELTA_SUMS_CUH
#define LRNN_KERNELS_MATRIX_DELTA_DELTA_SUMS_CUH

#include "kernels/matrix/state.h"
#include "kernels/matrix/strip.cuh"

namespace {

struct delta_inputs {
    const real *q, *k, *v, *beta, *decay; /* decay: or NULL, 1 */
    int64_t H;
    int dk, steps;
    real scale, rate;
};

/* Values of a token that a strip leaves: dq, ddecay, then dk and dbeta of each step. */
__host__ __device__ inline int64_t delta_partial(int64_t dk, int64_t steps) {
    return (dk + 1) * (1 + steps);
}

inline struct delta_inputs delta_inputs_of(const struct call *c) {
    const struct delta_attr *a = delta_attr(c);
    struct delta_inputs in = {tensor_real(c->in[DELTA_Q]),
                              tensor_real(c->in[DELTA_K]),
                              tensor_real(c->in[DELTA_V]),
                              tensor_real(c->in[DELTA_BETA]),
                              c->in[DELTA_DECAY] ? tensor_real(c->in[DELTA_DECAY]) : nullptr,
                              a->heads,
                              (int)delta_shape(c).dk,
                              (int)a->steps,
                              (real)a->scale,
                              (real)a->rate};
    return in;
}

/* From what the strips left: n values of each head, of one step of a token or of the token itself. */
struct delta_sums {
    struct strip_shape s;
    const real *partial;
    real *to;
    int64_t H, n, steps, from, width, step_width; /* element (token, step, head, n); from: in what a step has left */
    bool accumulate;
    __device__ void operator()(int64_t e) const {
        struct quotient value = divide(e, n), head = divide(value.whole, H), step = divide(head.whole, steps);
        struct quotient token = divide(step.whole, s.T);
        const real *first = partial + ((token.whole * H + head.rest) * s.strips * s.T + token.rest) * width;
        put(to + e, accumulate, strip_sum(first + step.rest * step_width + from + value.rest, s.T * width, s.strips));
    }
};

/* Gradients of all inputs but v from what the strips have left of each token: partial, (B,H,strips,T,delta_partial). */
inline void delta_gradient_sums(const struct call *c, const struct exec *x, const struct delta_inputs &in,
                                const struct strip_shape &s, const real *partial) {
    int64_t one = in.dk + 1, width = delta_partial(in.dk, in.steps), tokens = s.B * s.T;
    const struct {
        int input;
        int64_t n, steps, from;
    } sums[] = {{DELTA_Q, in.dk, 1, 0},
                {DELTA_DECAY, 1, 1, in.dk},
                {DELTA_K, in.dk, in.steps, one},
                {DELTA_BETA, 1, in.steps, one + in.dk}};
    for (const auto &of : sums)
        if (c->din[of.input])
            each_value(c, x, tokens * of.steps * s.H * of.n,
                       delta_sums{s, partial, c->din[of.input], s.H, of.n, of.steps, of.from, width, one,
                                  call_accumulates(c, of.input)});
}

} // namespace

#endif

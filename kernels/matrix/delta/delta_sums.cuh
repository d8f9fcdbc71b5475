/* delta_sums.cuh - the inputs of the delta rule on CUDA, and the gradients that are sums over columns. A strip
 * (strip.cuh) is some columns of a head's state. Each strip stores its partial sums, and a second kernel adds them. */
#ifndef LRNN_KERNELS_MATRIX_DELTA_DELTA_SUMS_CUH
#define LRNN_KERNELS_MATRIX_DELTA_DELTA_SUMS_CUH

#include "kernels/matrix/state.h"
#include "kernels/matrix/strip.cuh"

namespace {

struct delta_inputs {
    const real *q, *k, *v, *beta, *decay, *read, *erase; /* beta, decay, read and erase may be NULL */
    int64_t H;
    int dk, steps, decays; /* decays: number per head and token, at least 1 */
    /* how many of read and erase are given; it is stored, because all pointers are NULL while sizes are measured */
    int vectors;
    real scale, rate;
};

/* The number of values that a strip stores for a token: dq, ddecay, then for each step dk, dbeta and, if given, dread
 * and derase. */
__host__ __device__ inline int64_t delta_step_partial(const struct delta_inputs &in) {
    return in.dk + 1 + in.vectors * in.dk;
}

__host__ __device__ inline int64_t delta_partial(const struct delta_inputs &in) {
    return in.dk + in.decays + in.steps * delta_step_partial(in);
}

inline const real *optional_real(const struct call *c, int i) {
    return c->in[i] ? tensor_real(c->in[i]) : nullptr;
}

inline struct delta_inputs delta_inputs_of(const struct call *c) {
    const struct delta_attr *a = delta_attr(c);
    struct delta_inputs in = {tensor_real(c->in[DELTA_Q]),
                              tensor_real(c->in[DELTA_K]),
                              tensor_real(c->in[DELTA_V]),
                              optional_real(c, DELTA_BETA),
                              optional_real(c, DELTA_DECAY),
                              optional_real(c, DELTA_READ),
                              optional_real(c, DELTA_ERASE),
                              a->heads,
                              (int)delta_shape(c).dk,
                              (int)a->steps,
                              delta_decays(c) > 1 ? (int)delta_decays(c) : 1,
                              (c->in[DELTA_READ] ? 1 : 0) + (c->in[DELTA_ERASE] ? 1 : 0),
                              (real)a->scale,
                              (real)a->rate};
    return in;
}

/* Adds the strips' partial sums: n values of each head, for each step of a token or for the token itself. */
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

/* Computes the gradients of all inputs except v, from the values `partial` (B,H,strips,T,delta_partial) that the strips
 * stored for each token. */
inline void delta_gradient_sums(const struct call *c, const struct exec *x, const struct delta_inputs &in,
                                const struct strip_shape &s, const real *partial) {
    int64_t one = in.dk + in.decays, width = delta_partial(in), tokens = s.B * s.T, step = delta_step_partial(in);
    const struct {
        int input;
        int64_t n, steps, from;
    } sums[] = {{DELTA_Q, in.dk, 1, 0},
                {DELTA_DECAY, in.decays, 1, in.dk},
                {DELTA_K, in.dk, in.steps, one},
                {DELTA_BETA, 1, in.steps, one + in.dk},
                {DELTA_READ, in.dk, in.steps, one + in.dk + 1},
                {DELTA_ERASE, in.dk, in.steps, one + 2 * in.dk + 1}};
    for (const auto &of : sums)
        if (c->din[of.input])
            each_value(c, x, tokens * of.steps * s.H * of.n,
                       delta_sums{s, partial, c->din[of.input], s.H, of.n, of.steps, of.from, width, step,
                                  call_accumulates(c, of.input)});
}

} // namespace

#endif

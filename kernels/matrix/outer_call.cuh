/* outer_call.cuh - the inputs and gradients of a call of scan_outer in the form that its CUDA kernels need. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_CALL_CUH
#define LRNN_KERNELS_MATRIX_OUTER_CALL_CUH

#include "kernels/matrix/outer_sums.cuh"
#include "kernels/matrix/state.h"

namespace {

inline const real *outer_values(const struct call *c, int i) {
    return c->in[i] ? tensor_real(c->in[i]) : nullptr;
}

inline struct outer_inputs outer_inputs_of(const struct call *c) {
    const struct outer_attr *a = outer_attr(c);
    struct state_shape s = outer_shape(c);
    struct outer_inputs in = {outer_values(c, OUTER_Q),
                              outer_values(c, OUTER_K),
                              outer_values(c, OUTER_V),
                              outer_values(c, OUTER_SOURCE),
                              outer_values(c, OUTER_DECAY),
                              outer_values(c, OUTER_MARK),
                              outer_values(c, OUTER_DIRECT),
                              s.heads,
                              s.groups,
                              (int)s.dk,
                              1,
                              (real)a->scale};
    return in;
}

inline struct outer_gradients outer_gradients_of(const struct call *c) {
    struct outer_gradients d = {c->din[OUTER_Q],
                                c->din[OUTER_K],
                                c->din[OUTER_V],
                                c->din[OUTER_SOURCE],
                                c->din[OUTER_DECAY],
                                c->din[OUTER_MARK],
                                c->din[OUTER_DIRECT],
                                call_accumulates(c, OUTER_Q),
                                call_accumulates(c, OUTER_K),
                                call_accumulates(c, OUTER_V),
                                call_accumulates(c, OUTER_SOURCE),
                                call_accumulates(c, OUTER_DECAY),
                                call_accumulates(c, OUTER_MARK),
                                call_accumulates(c, OUTER_DIRECT)};
    return d;
}

} // namespace

#endif

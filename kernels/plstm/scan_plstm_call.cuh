/* scan_plstm_call.cuh - inputs and gradients of a call of scan_plstm, as its CUDA twins take them. */
#ifndef LRNN_KERNELS_PLSTM_SCAN_PLSTM_CALL_CUH
#define LRNN_KERNELS_PLSTM_SCAN_PLSTM_CALL_CUH

#include "kernels/matrix/outer_sums.cuh"
#include "kernels/plstm/dag_state.h"

namespace {

enum { PLSTM_Q, PLSTM_K, PLSTM_V, PLSTM_SOURCE, PLSTM_TRANSITION, PLSTM_MARK, PLSTM_DIRECT };

inline struct dag_sizes plstm_sizes(const struct call *c) {
    return dag_sizes_of(c, scan_plstm_attr(c)->H);
}

inline struct outer_inputs plstm_inputs(const struct call *c) {
    const struct scan_plstm_attr *a = scan_plstm_attr(c);
    struct dag_sizes z = plstm_sizes(c);
    struct outer_inputs in = {tensor_real(c->in[PLSTM_Q]),
                              tensor_real(c->in[PLSTM_K]),
                              tensor_real(c->in[PLSTM_V]),
                              tensor_real(c->in[PLSTM_SOURCE]),
                              tensor_real(c->in[PLSTM_TRANSITION]),
                              tensor_real(c->in[PLSTM_MARK]),
                              tensor_real(c->in[PLSTM_DIRECT]),
                              z.H,
                              z.H,
                              (int)z.dk,
                              (int)a->J,
                              (real)a->scale};
    return in;
}

inline struct outer_gradients plstm_gradients(const struct call *c) {
    struct outer_gradients d = {c->din[PLSTM_Q],
                                c->din[PLSTM_K],
                                c->din[PLSTM_V],
                                c->din[PLSTM_SOURCE],
                                c->din[PLSTM_TRANSITION],
                                c->din[PLSTM_MARK],
                                c->din[PLSTM_DIRECT],
                                call_accumulates(c, PLSTM_Q),
                                call_accumulates(c, PLSTM_K),
                                call_accumulates(c, PLSTM_V),
                                call_accumulates(c, PLSTM_SOURCE),
                                call_accumulates(c, PLSTM_TRANSITION),
                                call_accumulates(c, PLSTM_MARK),
                                call_accumulates(c, PLSTM_DIRECT)};
    return d;
}

} // namespace

#endif

/* outer_inputs.cuh - inputs and gradients of outer-product states on CUDA, J matrices per head. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_INPUTS_CUH
#define LRNN_KERNELS_MATRIX_OUTER_INPUTS_CUH

#include "kernels/kernel.h"

namespace {

/* Inputs (B,T,...): q and k of G groups; v and the gates of H heads. source NULL means 1. If mark and direct are NULL,
 * they are equal to transition and source; the state is then read after its update. */
struct outer_inputs {
    const real *q, *k, *v, *source, *transition, *mark, *direct;
    int64_t H, G;
    int dk, J;
    real scale;
};

/* Where the gradients are written; NULL: that gradient is not wanted. */
struct outer_gradients {
    real *q, *k, *v, *source, *transition, *mark, *direct;
    bool add_q, add_k, add_v, add_source, add_transition, add_mark, add_direct;
};

} // namespace

#endif

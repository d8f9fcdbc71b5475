/* stable.h - attributes, inputs and outputs of stable_gates and stable_readout, shared by their twins. */
#ifndef LRNN_KERNELS_STABLE_H
#define LRNN_KERNELS_STABLE_H

#include "kernels/lib/infer.h"

struct stable_gates_attr {
    double start; /* m before the first token */
};

enum stable_input { STABLE_I, STABLE_F };
enum stable_output { STABLE_DECAY, STABLE_SOURCE, STABLE_M, STABLE_OUTPUTS };

struct stable_readout_attr {
    double eps;
};

#endif

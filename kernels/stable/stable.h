/* stable.h - inputs and outputs of stable_gates and stable_readout, shared by their twins. */
#ifndef LRNN_KERNELS_STABLE_H
#define LRNN_KERNELS_STABLE_H

#include "kernels/matrix/matrix.h"

enum stable_input { STABLE_I, STABLE_F };
enum stable_output { STABLE_DECAY, STABLE_SOURCE, STABLE_M, STABLE_OUTPUTS };

#endif

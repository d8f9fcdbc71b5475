/* twins.h - tells which ops can run on a device, in builds with and without CUDA. */
#ifndef LRNN_KERNELS_TWINS_H
#define LRNN_KERNELS_TWINS_H

#include "kernels/kernel.h"

/* True if list.def has a CUDA kernel of the op. */
bool op_has_cuda_twin(const struct op *op);

#endif

/* cuda_weights.cuh - the gradients of the weights and biases of all linear maps y = x W^T + b of a walk in one launch
 * (cuda_weights.cu): the three functions of a kernel that defers them (core/op.h). */
#ifndef LRNN_KERNELS_LIB_CUDA_WEIGHTS_CUH
#define LRNN_KERNELS_LIB_CUDA_WEIGHTS_CUH

#include "kernels/lib/cuda.cuh"

bool cuda_weights_takes(const struct call *c);
size_t cuda_weights_workspace(const struct deferred *d);
void cuda_weights_finish(const struct deferred *d, const struct exec *x);

#endif

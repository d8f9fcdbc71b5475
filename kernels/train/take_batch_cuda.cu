/* take_batch_cuda.cu - a batch out of the split on the device, a block per row. The equations are in take_batch.c. */
#include "kernels/train/take_batch.h"

#include "kernels/lib/cuda.cuh"

namespace {

/* Columns of each array, 0 = absent. */
struct arrays {
    const int32_t *split[TAKE_ARRAYS];
    int32_t *batch[TAKE_ARRAYS];
    int64_t columns[TAKE_ARRAYS];
};

} // namespace

static __global__ void __launch_bounds__(CUDA_THREADS)
    take_batch_kernel(struct arrays a, struct take_batch_attr attr, int64_t n, const struct step_state *state) {
    await_previous();
    __shared__ int64_t example;
    int64_t row = blockIdx.x;
    if (threadIdx.x == 0) example = take_batch_example(&attr, state->step, gridDim.x, row, n);
    __syncthreads();
    for (int i = 0; i < TAKE_ARRAYS; i++) {
        int64_t columns = a.columns[i];
        for (int64_t k = threadIdx.x; k < columns; k += CUDA_THREADS)
            a.batch[i][row * columns + k] = example < 0 ? take_batch_empty(i) : a.split[i][example * columns + k];
    }
}

static void take_batch_cuda_forward(const struct call *c, const struct exec *x) {
    struct arrays a = {};
    int64_t n = c->in[0]->dims[0], B = c->in[TAKE_ARRAYS]->dims[0];
    for (int i = 0; i < TAKE_ARRAYS; i++) {
        if (!c->in[i]) continue;
        a.split[i] = tensor_i32(c->in[i]);
        a.batch[i] = tensor_i32(c->in[TAKE_ARRAYS + i]);
        a.columns[i] = take_batch_words(c->in[i]);
    }
    LAUNCH(x, take_batch_kernel, dim3((unsigned)B), dim3(CUDA_THREADS), 0, a, *take_batch_attr(c), n, x->state);
}

const struct kernel kernel_take_batch_cuda = {
    .name = "take_batch_cuda",
    .op = &op_take_batch,
    .device = DEVICE_CUDA,
    .forward = take_batch_cuda_forward,
};

/* elementwise_cuda.cu - add: the CUDA twin. */
#include "kernels/cuda.cuh"

static __global__ void add_kernel(int64_t n, const real *a, const real *b, real *y) {
    int64_t i = cuda_index();
    if (i < n) y[i] = a[i] + b[i];
}

static __global__ void pass_kernel(int64_t n, const real *dy, real *d, bool accumulate) {
    int64_t i = cuda_index();
    if (i < n) put(&d[i], accumulate, dy[i]);
}

static void add_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t n = tensor_count(c->out[0]);
    LAUNCH(x, add_kernel, cuda_blocks(n, CUDA_THREADS), dim3(CUDA_THREADS), 0, n, tensor_real(c->in[0]),
           tensor_real(c->in[1]), tensor_real(c->out[0]));
}

static void add_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t n = tensor_count(c->out[0]);
    for (int i = 0; i < 2; i++)
        if (c->din[i])
            LAUNCH(x, pass_kernel, cuda_blocks(n, CUDA_THREADS), dim3(CUDA_THREADS), 0, n, call_dout(c, 0), c->din[i],
                   call_accumulates(c, i));
}

const struct kernel kernel_add_cuda = {
    .name = "add_cuda",
    .op = &op_add,
    .device = DEVICE_CUDA,
    .forward = add_cuda_forward,
    .backward = add_cuda_backward,
};

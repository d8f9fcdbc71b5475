/* launch.h - what the tests of the shim share: a stream, launches on it, and device memory. */
#ifndef LRNN_TESTS_CUDA_HOST_LAUNCH_H
#define LRNN_TESTS_CUDA_HOST_LAUNCH_H

#include <csignal>
#include <vector>

#include "tests/cuda/host/cuda_host.h" /* first: what it stands for is not included by what follows */

#include "tests/testing.h"

/* Each test file has its own, and so its own stream. */
namespace {

cudaStream_t stream;

void begin(void) {
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
}

void end(void) {
    cuda_host_set_order(0);
    cudaStreamDestroy(stream);
}

/* A launch that may begin before the one before it has ended. */
template <class... P, class... A>
cudaError_t try_overlap(cudaStream_t on, void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
    cudaLaunchAttribute attribute = {cudaLaunchAttributeProgrammaticStreamSerialization, {{}, 1}};
    cudaLaunchConfig_t config = {grid, block, 0, on, &attribute, 1};
    return cuda_host_launch("test", &config, kernel, static_cast<P>(arguments)...);
}

template <class... P, class... A>
cudaError_t try_launch(unsigned cluster, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A... arguments) {
    cudaLaunchAttribute attribute = {cudaLaunchAttributeClusterDimension, {{cluster, 1, 1}, 0}};
    cudaLaunchConfig_t config = {grid, block, shared, stream, &attribute, cluster != 1};
    return cuda_host_launch("test", &config, kernel, static_cast<P>(arguments)...);
}

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A... arguments) {
    ck_assert_int_eq(try_launch(1, kernel, grid, block, shared, arguments...), cudaSuccess);
}

template <class... P, class... A>
void launch_clusters(unsigned cluster, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A... arguments) {
    ck_assert_int_eq(try_launch(cluster, kernel, grid, block, shared, arguments...), cudaSuccess);
}

/* n values of device memory. */
template <class T> struct device_array {
    T *at = nullptr;
    size_t n;
    explicit device_array(size_t n_) : n(n_) {
        ck_assert_int_eq(cudaMalloc((void **)&at, n * sizeof(T)), cudaSuccess);
        cudaMemsetAsync(at, 0, n * sizeof(T), stream);
    }
    device_array(const device_array &) = delete;
    ~device_array() {
        cudaFree(at);
    }
    std::vector<T> values() const {
        std::vector<T> v(n);
        cudaMemcpyAsync(v.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost, stream);
        cudaStreamSynchronize(stream);
        return v;
    }
};

/* Returns the n values of device memory that a run leaves. */
template <class Run> std::vector<float> result_of(size_t n, Run run) {
    device_array<float> out(n);
    run(out.at);
    return out.values();
}

/* Runs in each order; whether the results were the same in all. */
template <class Run> bool same_in_every_order(size_t n, Run run) {
    std::vector<float> first = result_of(n, run);
    for (int order = 1; order <= ORDER_WARPS; order++) {
        cuda_host_set_order(order);
        std::vector<float> other = result_of(n, run);
        cuda_host_set_order(0);
        if (memcmp(first.data(), other.data(), n * sizeof(float))) return false;
    }
    return true;
}

/* The sanitizer would take the signal. */
inline void end_of_the_process(int) {
    abort();
}

} // namespace

#endif

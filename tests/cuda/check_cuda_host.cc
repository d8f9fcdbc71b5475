/* check_cuda_host.cc - the shim itself: it must compute what a device computes, and find what would be wrong there. */
#include <csignal>
#include <vector>

#include "tests/cuda/cuda_host.h"
#include "tests/testing.h"

static const unsigned ALL = 0xffffffffu;
static cudaStream_t stream;

static void begin(void) {
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
}

static void end(void) {
    cuda_host_set_order(0);
    cudaStreamDestroy(stream);
}

template <class... P, class... A>
static void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A... arguments) {
    ck_assert_int_eq(cuda_host_launch("test", stream, kernel, grid, block, shared, static_cast<P>(arguments)...),
                     cudaSuccess);
}

/* Runs in each order; whether the results were the same in all. */
template <class Run> static bool same_in_every_order(size_t n, Run run) {
    std::vector<float> first(n), other(n);
    run(first.data());
    for (int order = 1; order < 3; order++) {
        cuda_host_set_order(order);
        run(other.data());
        cuda_host_set_order(0);
        if (memcmp(first.data(), other.data(), n * sizeof(float))) return false;
    }
    return true;
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

static __global__ void reverse_kernel(float *out, bool barrier) {
    float *shared = (float *)cuda_host_shared();
    shared[threadIdx.x] = (float)threadIdx.x + 100 * (float)blockIdx.x;
    if (barrier) __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

START_TEST(a_missing_barrier_is_found) {
    auto with = [](float *out) { launch(reverse_kernel, dim3(3), dim3(70), 70 * sizeof(float), out, true); };
    auto without = [](float *out) { launch(reverse_kernel, dim3(3), dim3(70), 70 * sizeof(float), out, false); };
    ck_assert(same_in_every_order(210, with));
    ck_assert(!same_in_every_order(210, without));
    float out[210];
    with(out);
    for (int i = 0; i < 210; i++) ck_assert_float_eq(out[i], (float)(100 * (i / 70) + 69 - i % 70));
    without(out);
    ck_assert(std::isnan(out[0])); /* shared memory that nobody has written yet */
}
END_TEST

static __global__ void leave_kernel(float *out) {
    if (threadIdx.x == 3) return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

START_TEST(a_thread_that_leaves_before_a_barrier_is_found) {
    float out[8];
    launch(leave_kernel, dim3(1), dim3(8), 0, out);
}
END_TEST

static __global__ void half_warp_kernel(float *out) {
    float x = 1;
    if (threadIdx.x < 16) x = __shfl_xor_sync(ALL, x, 1); /* the others never come */
    out[threadIdx.x] = x;
}

START_TEST(lanes_that_never_come_are_found) {
    float out[32];
    launch(half_warp_kernel, dim3(1), dim3(32), 0, out);
}
END_TEST

static __global__ void overrun_kernel(float *out) {
    float *shared = (float *)cuda_host_shared();
    out[0] = shared[4 * blockDim.x];
}

START_TEST(what_a_launch_may_not_ask_for_is_refused) {
    float out[1];
    dim3 one(1);
    ck_assert_int_eq(cuda_host_launch("test", stream, overrun_kernel, one, dim3(1025), 0, out),
                     cudaErrorInvalidConfiguration);
    ck_assert_int_eq(cuda_host_launch("test", stream, overrun_kernel, dim3(0), one, 0, out),
                     cudaErrorInvalidConfiguration);
    ck_assert_int_eq(cuda_host_launch("test", stream, overrun_kernel, dim3(1, 70000), one, 0, out),
                     cudaErrorInvalidConfiguration);
    ck_assert_int_eq(cuda_host_launch("test", stream, overrun_kernel, one, one, (size_t)1 << 20, out),
                     cudaErrorInvalidConfiguration);
}
END_TEST

/* --- warps -------------------------------------------------------------------------------------------------------- */

static __global__ void shuffle_kernel(float *out) {
    unsigned i = threadIdx.x;
    float x = (float)i;
    out[8 * i] = __shfl_sync(ALL, x, 5);
    out[8 * i + 1] = __shfl_xor_sync(ALL, x, 3);
    out[8 * i + 2] = __shfl_up_sync(ALL, x, 2);
    out[8 * i + 3] = __shfl_down_sync(ALL, x, 2);
    out[8 * i + 4] = __shfl_sync(ALL, x, 1, 8);
    out[8 * i + 5] = (float)__popc(__ballot_sync(ALL, i % 3 == 0));
    out[8 * i + 6] = (float)__any_sync(ALL, i == 33);
    out[8 * i + 7] = (float)__all_sync(ALL, i < 32);
}

/* 64 threads: two whole warps. */
START_TEST(warp_operations_are_those_of_a_device) {
    ck_assert(same_in_every_order(512, [](float *out) { launch(shuffle_kernel, dim3(1), dim3(64), 0, out); }));
    float out[512];
    launch(shuffle_kernel, dim3(1), dim3(64), 0, out);
    for (int i = 0; i < 64; i++) {
        int warp = i / 32 * 32, lane = i % 32, thirds = 0;
        for (int j = warp; j < warp + 32; j++) thirds += j % 3 == 0;
        ck_assert_float_eq(out[8 * i], (float)(warp + 5));
        ck_assert_float_eq(out[8 * i + 1], (float)(i ^ 3));
        ck_assert_float_eq(out[8 * i + 2], (float)(lane < 2 ? i : i - 2));
        ck_assert_float_eq(out[8 * i + 3], (float)(lane > 29 ? i : i + 2));
        ck_assert_float_eq(out[8 * i + 4], (float)(i / 8 * 8 + 1));
        ck_assert_float_eq(out[8 * i + 5], (float)thirds);
        ck_assert_float_eq(out[8 * i + 6], (float)(warp == 32));
        ck_assert_float_eq(out[8 * i + 7], (float)(warp == 0));
    }
}
END_TEST

/* --- grids -------------------------------------------------------------------------------------------------------- */

static __global__ void count_kernel(int *count, int *total) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    count[block * 24 + thread] += 1;
    atomicAdd(total, 1);
}

START_TEST(every_thread_of_every_block_runs_once) {
    for (int order = 0; order < 3; order++) {
        std::vector<int> count(30 * 24);
        int total = 0;
        cuda_host_set_order(order);
        launch(count_kernel, dim3(2, 5, 3), dim3(4, 3, 2), 0, count.data(), &total);
        for (int c : count) ck_assert_int_eq(c, 1);
        ck_assert_int_eq(total, 30 * 24);
    }
}
END_TEST

/* --- the run-time ------------------------------------------------------------------------------------------------- */

static __global__ void add_kernel(float *x, float value) {
    x[threadIdx.x] += value;
}

START_TEST(a_capture_runs_nothing_and_a_replay_everything) {
    float x[4] = {0, 0, 0, 0}, from[4] = {1, 2, 3, 4}, value = 10;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaMemcpyAsync(x, from, sizeof x, cudaMemcpyHostToDevice, stream);
    launch(add_kernel, dim3(1), dim3(4), 0, x, value);
    value = 1000; /* arguments are those of the capture */
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    ck_assert_float_eq(x[3], 0);
    for (int replay = 0; replay < 2; replay++) {
        from[3] = (float)(4 + replay);
        cudaGraphLaunch(exec, stream);
        ck_assert_float_eq(x[3], 14 + (float)replay);
    }
    cudaGraphExecDestroy(exec);
}
END_TEST

START_TEST(device_memory_begins_as_nans_and_ends) {
    void *memory = nullptr, *more = nullptr;
    size_t left, total;
    setenv("LRNN_CUDA_HOST_MEMORY", "1000", 1);
    ck_assert_int_eq(cudaMalloc(&memory, 800), cudaSuccess);
    ck_assert(std::isnan(((float *)memory)[199]));
    ck_assert_int_eq(cudaMalloc(&more, 201), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMemGetInfo(&left, &total), cudaSuccess);
    ck_assert_uint_eq(left, 200);
    cudaFree(memory);
    ck_assert_int_eq(cudaMalloc(&more, 1000), cudaSuccess);
    cudaFree(more);
}
END_TEST

START_TEST(a_failure_stays) {
    float x[4] = {0, 0, 0, 0};
    setenv("LRNN_CUDA_HOST_FAIL", "2", 1);
    launch(add_kernel, dim3(1), dim3(4), 0, x, 1.0f);
    ck_assert_int_eq(cuda_host_launch("test", stream, add_kernel, dim3(1), dim3(4), 0, x, 1.0f),
                     cudaErrorIllegalAddress);
    ck_assert_int_eq(cuda_host_launch("test", stream, add_kernel, dim3(1), dim3(4), 0, x, 1.0f),
                     cudaErrorIllegalAddress);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    ck_assert_float_eq(x[0], 1);
}
END_TEST

extern "C" Suite *check_cuda_host(void);
Suite *check_cuda_host(void) {
    Suite *suite = suite_create("cuda_host");
    TCase *tests = tcase_create("cuda_host");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_missing_barrier_is_found);
    tcase_add_test_raise_signal(tests, a_thread_that_leaves_before_a_barrier_is_found, SIGABRT);
    tcase_add_test_raise_signal(tests, lanes_that_never_come_are_found, SIGABRT);
    tcase_add_test(tests, what_a_launch_may_not_ask_for_is_refused);
    tcase_add_test(tests, warp_operations_are_those_of_a_device);
    tcase_add_test(tests, every_thread_of_every_block_runs_once);
    tcase_add_test(tests, a_capture_runs_nothing_and_a_replay_everything);
    tcase_add_test(tests, device_memory_begins_as_nans_and_ends);
    tcase_add_test(tests, a_failure_stays);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_cuda_host.cc - the shim itself: it must compute what a device computes, and find what would be wrong there. */
#include <csignal>

#include "tests/cuda/host/launch.h" /* first */

#include "kernels/lib/cuda.cuh"

static const unsigned ALL = 0xffffffffu;

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
    std::vector<float> out = result_of(210, with);
    for (int i = 0; i < 210; i++) ck_assert_float_eq(out[i], (float)(100 * (i / 70) + 69 - i % 70));
    out = result_of(210, without);
    ck_assert(std::isnan(out[0])); /* shared memory that nobody has written yet */
}
END_TEST

static __global__ void leave_kernel(float *out) {
    if (threadIdx.x == 3) return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

START_TEST(a_thread_that_leaves_before_a_barrier_is_found) {
    device_array<float> out(8);
    launch(leave_kernel, dim3(1), dim3(8), 0, out.at);
}
END_TEST

static __global__ void half_warp_kernel(float *out) {
    float x = 1;
    if (threadIdx.x < 16) x = __shfl_xor_sync(ALL, x, 1); /* the others never come */
    out[threadIdx.x] = x;
}

START_TEST(lanes_that_never_come_are_found) {
    device_array<float> out(32);
    launch(half_warp_kernel, dim3(1), dim3(32), 0, out.at);
}
END_TEST

static __global__ void overrun_kernel(float *out) {
    float *shared = (float *)cuda_host_shared();
    out[0] = shared[4 * blockDim.x];
}

START_TEST(what_a_launch_may_not_ask_for_is_refused) {
    device_array<float> out(1);
    dim3 one(1);
    auto attempt = [&](dim3 grid, dim3 block, size_t shared) {
        return try_launch(1, overrun_kernel, grid, block, shared, out.at);
    };
    ck_assert_int_eq(attempt(one, dim3(1025), 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(attempt(dim3(0), one, 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(attempt(dim3(1, 70000), one, 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(attempt(one, one, 48 * 1024 + 1), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(attempt(one, one, 48 * 1024), cudaSuccess);
    ck_assert_int_eq(cudaFuncSetAttribute(overrun_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000),
                     cudaSuccess);
    ck_assert_int_eq(attempt(one, one, 100000), cudaSuccess);
    ck_assert_int_eq(attempt(one, one, 100001), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(cudaFuncSetAttribute(overrun_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
                     cudaErrorInvalidValue);
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
    std::vector<float> out = result_of(512, [](float *to) { launch(shuffle_kernel, dim3(1), dim3(64), 0, to); });
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

/* --- tensor cores ------------------------------------------------------------------------------------------------- */

/* c += a b of 16 x 8 and 8 x 8 in row-major memory, each lane taking the elements that the PTX ISA gives it. */
static __global__ void mma_kernel(const float *a, const float *b, float *c) {
    unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
    auto bits = [](float x) {
        uint32_t word;
        memcpy(&word, &x, sizeof word);
        return word;
    };
    uint32_t of_a[4] = {bits(a[g * 8 + t]), bits(a[(g + 8) * 8 + t]), bits(a[g * 8 + t + 4]),
                        bits(a[(g + 8) * 8 + t + 4])};
    uint32_t of_b[2] = {bits(b[t * 8 + g]), bits(b[(t + 4) * 8 + g])};
    float *at[4] = {c + g * 8 + 2 * t, c + g * 8 + 2 * t + 1, c + (g + 8) * 8 + 2 * t, c + (g + 8) * 8 + 2 * t + 1};
    float d[4] = {*at[0], *at[1], *at[2], *at[3]};
    cuda_host_mma_tf32(d, of_a, of_b);
    for (int e = 0; e < 4; e++) *at[e] = d[e];
}

/* Runs it on whole numbers that tell all elements apart, plus `more` in one of them; the sums are added to 1. */
static std::vector<float> product_of(float more) {
    device_array<float> a(128), b(64), c(128);
    std::vector<float> from_a(128), from_b(64), ones(128, 1);
    for (int i = 0; i < 128; i++) from_a[i] = (float)(i * 7 % 127);
    for (int i = 0; i < 64; i++) from_b[i] = (float)(i * 5 % 61 - 20);
    from_a[77] += more;
    cudaMemcpyAsync(a.at, from_a.data(), 128 * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(b.at, from_b.data(), 64 * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(c.at, ones.data(), 128 * sizeof(float), cudaMemcpyHostToDevice, stream);
    launch(mma_kernel, dim3(1), dim3(32), 0, (const float *)a.at, (const float *)b.at, c.at);
    return c.values();
}

START_TEST(tensor_cores_multiply_what_lanes_hold) {
    std::vector<float> got = product_of(0);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            int sum = 1;
            for (int k = 0; k < 8; k++) sum += (i * 8 + k) * 7 % 127 * ((k * 8 + j) * 5 % 61 - 20);
            ck_assert_float_eq(got[i * 8 + j], (float)sum);
        }
}
END_TEST

START_TEST(a_factor_that_is_not_rounded_is_found) {
    product_of(0x1p-10f);
}
END_TEST

START_TEST(tf32_is_the_nearest_number_of_eleven_bits) {
    static const float nearest[][2] = {{1, 1},
                                       {1 + 0x1p-12f, 1},
                                       {1 + 0x1p-11f, 1 + 0x1p-10f}, /* a tie: away from zero */
                                       {-1 - 0x1p-11f, -1 - 0x1p-10f},
                                       {1 + 0x1.8p-10f, 1 + 0x1p-9f},
                                       {INFINITY, INFINITY}};
    float got;
    for (auto &pair : nearest) {
        uint32_t bits = cuda_host_tf32(pair[0]);
        memcpy(&got, &bits, sizeof got);
        ck_assert_float_eq(got, pair[1]);
    }
    uint32_t bits = cuda_host_tf32(NAN);
    memcpy(&got, &bits, sizeof got);
    ck_assert(std::isnan(got));
}
END_TEST

/* --- copies on their way ------------------------------------------------------------------------------------------ */

/* Two groups of a copy each: what the slots hold once all but `left` groups have come, and when both have. */
template <int left> static __global__ void copies_kernel(float *seen) {
    real *slots = (real *)cuda_host_shared(), from[2] = {10, 20};
    for (int i = 0; i < 2; i++) {
        copy_async(&slots[i], &from[i]);
        copy_async_commit();
    }
    copy_async_wait<left>();
    for (int i = 0; i < 2; i++) seen[i] = (float)slots[i];
    copy_async_wait<0>();
    for (int i = 0; i < 2; i++) seen[2 + i] = (float)slots[i];
}

template <int left> static std::vector<float> copied(void) {
    return result_of(4, [](float *out) { launch(copies_kernel<left>, dim3(1), dim3(1), 2 * sizeof(real), out); });
}

START_TEST(a_copy_is_there_when_it_was_waited_for_and_no_sooner) {
    std::vector<float> none = copied<2>(), one = copied<1>(), both = copied<0>();
    ck_assert(std::isnan(none[0]) && std::isnan(none[1]));
    ck_assert(one[0] == 10 && std::isnan(one[1]));
    ck_assert(both[0] == 10 && both[1] == 20);
    for (const std::vector<float> &seen : {none, one, both}) ck_assert(seen[2] == 10 && seen[3] == 20);
}
END_TEST

static __global__ void copy_or_zero_kernel(float *seen) {
    real *slots = (real *)cuda_host_shared(), from = 5;
    copy_async_or_zero(&slots[0], &from, true);
    copy_async_or_zero(&slots[1], nullptr, false);
    copy_async_commit();
    copy_async_wait<0>();
    for (int i = 0; i < 2; i++) seen[i] = (float)slots[i];
}

START_TEST(a_copy_of_nothing_is_zero) {
    std::vector<float> seen =
        result_of(2, [](float *out) { launch(copy_or_zero_kernel, dim3(1), dim3(1), 2 * sizeof(real), out); });
    ck_assert(seen[0] == 5 && seen[1] == 0);
}
END_TEST

/* Copies that no commit has closed belong to no group, and are not waited for. */
static __global__ void open_group_kernel(void) {
    real *slots = (real *)cuda_host_shared(), from = 1;
    copy_async(&slots[0], &from);
    copy_async_wait<0>();
}

START_TEST(a_thread_that_ends_before_its_copies_is_found) {
    launch(open_group_kernel, dim3(1), dim3(1), sizeof(real));
}
END_TEST

/* Every warp reads what the other one writes after two operations. In rounds, all lanes have read before one writes. */
template <bool BARRIER> static __global__ void overwriting_kernel(float *out) {
    float *of = (float *)cuda_host_shared();
    int i = (int)threadIdx.x;
    of[i] = (float)i;
    __syncthreads();
    float x = of[i ^ 32];
    for (int distance = 1; distance <= 2; distance++) x += __shfl_xor_sync(0xffffffffu, x, distance);
    if (BARRIER) __syncthreads();
    of[i] = -1;
    out[i] = x;
}

START_TEST(a_barrier_for_which_a_warp_must_run_ahead_is_missed) {
    auto with = [](float *out) { launch(overwriting_kernel<true>, dim3(1), dim3(64), 64 * sizeof(float), out); };
    auto without = [](float *out) { launch(overwriting_kernel<false>, dim3(1), dim3(64), 64 * sizeof(float), out); };
    ck_assert(same_in_every_order(64, with));
    ck_assert(!same_in_every_order(64, without));
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
    for (int order = 0; order <= ORDER_WARPS; order++) {
        device_array<int> count(30 * 24), total(1);
        cuda_host_set_order(order);
        launch(count_kernel, dim3(2, 5, 3), dim3(4, 3, 2), 0, count.at, total.at);
        for (int c : count.values()) ck_assert_int_eq(c, 1);
        ck_assert_int_eq(total.values()[0], 30 * 24);
    }
}
END_TEST

/* --- the last block ----------------------------------------------------------------------------------------------- */

/* out[0]: the sum over blocks of their index + 1, out[1]: how many blocks took themselves for the last. */
static __global__ void last_block_kernel(float *partial, unsigned *counter, float *out) {
    if (threadIdx.x == 0) partial[blockIdx.x] = (float)blockIdx.x + 1;
    if (!last_block(counter, gridDim.x) || threadIdx.x != 0) return;
    for (unsigned b = 0; b < gridDim.x; b++) out[0] += later_load(partial + b);
    out[1] += 1;
}

/* Launch after launch: each leaves the counter as the next one needs it. */
START_TEST(one_block_is_the_last_and_sees_what_all_have_stored) {
    for (int order = 0; order <= ORDER_WARPS; order++) {
        device_array<float> partial(9), out(2);
        device_array<unsigned> counter(1);
        cuda_host_set_order(order);
        for (unsigned n = 1; n <= 3; n++) {
            launch(last_block_kernel, dim3(3 * n), dim3(40), 0, partial.at, counter.at, out.at);
            ck_assert_uint_eq(counter.values()[0], 0);
        }
        ck_assert_float_eq(out.values()[0], 6 + 21 + 45);
        ck_assert_float_eq(out.values()[1], 3);
    }
}
END_TEST

/* Members of a population have a place each, whose launches may run at once. */
START_TEST(each_place_has_counters_of_its_own) {
    struct place a = {}, b = {};
    struct error e = {};
    ck_assert_msg(place_open(&a, "cuda", &e) == ST_OK && place_open(&b, "cuda", &e) == ST_OK, "%s", e.text);
    unsigned *of_a = a.cuda->now.counters, *of_b = b.cuda->now.counters;
    ck_assert(of_a >= of_b + CUDA_COUNTERS || of_b >= of_a + CUDA_COUNTERS);
    place_close(&a);
    place_close(&b);
}
END_TEST

/* --- the run-time ------------------------------------------------------------------------------------------------- */

static __global__ void add_kernel(float *x, float value) {
    x[threadIdx.x] += value;
}

START_TEST(a_capture_runs_nothing_and_a_replay_everything) {
    device_array<float> x(4);
    float *from, value = 10;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ck_assert_int_eq(cudaHostAlloc((void **)&from, 4 * sizeof *from, cudaHostAllocDefault), cudaSuccess);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaMemcpyAsync(x.at, from, 4 * sizeof *from, cudaMemcpyHostToDevice, stream);
    launch(add_kernel, dim3(1), dim3(4), 0, x.at, value);
    value = 1000; /* arguments stay as captured */
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    ck_assert_float_eq(x.values()[3], 0);
    for (int replay = 0; replay < 2; replay++) {
        for (int i = 0; i < 4; i++) from[i] = (float)(i + 1 + replay);
        cudaGraphLaunch(exec, stream);
        ck_assert_float_eq(x.values()[3], 14 + (float)replay);
    }
    cudaGraphExecDestroy(exec);
    cudaFreeHost(from);
}
END_TEST

START_TEST(device_memory_begins_as_nans_and_ends) {
    void *memory = nullptr, *more = nullptr;
    float last;
    size_t left, total;
    setenv("LRNN_CUDA_HOST_MEMORY", "1000", 1);
    ck_assert_int_eq(cudaMalloc(&memory, 800), cudaSuccess);
    cudaMemcpyAsync(&last, (float *)memory + 199, sizeof last, cudaMemcpyDeviceToHost, stream);
    ck_assert(std::isnan(last));
    ck_assert_int_eq(cudaMalloc(&more, 201), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMemGetInfo(&left, &total), cudaSuccess);
    ck_assert_uint_eq(left, 200);
    cudaFree(memory);
    ck_assert_int_eq(cudaMalloc(&more, 1000), cudaSuccess);
    cudaFree(more);
}
END_TEST

START_TEST(a_failure_stays) {
    device_array<float> x(4);
    setenv("LRNN_CUDA_HOST_FAIL", "2", 1);
    launch(add_kernel, dim3(1), dim3(4), 0, x.at, 1.0f);
    ck_assert_float_eq(x.values()[0], 1);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(try_launch(1, add_kernel, dim3(1), dim3(4), 0, x.at, 1.0f), cudaErrorIllegalAddress);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
}
END_TEST

/* --- what a device does not forgive ------------------------------------------------------------------------------- */

START_TEST(a_host_that_reads_device_memory_is_found) {
    setenv("LRNN_CUDA_HOST_PROTECT", "1", 1);
    device_array<float> x(4);
    signal(SIGSEGV, end_of_the_process);
    volatile float value = x.at[1];
    (void)value;
}
END_TEST

struct holder {
    char small;
    const float *at;
};
static __global__ void holder_kernel(struct holder) {}

START_TEST(an_address_of_the_host_among_arguments_is_found) {
    device_array<float> x(4);
    std::vector<float> here(4);
    launch(holder_kernel, dim3(1), dim3(1), 0, holder{1, x.at + 3});
    launch(holder_kernel, dim3(1), dim3(1), 0, holder{1, here.data() + 3});
}
END_TEST

START_TEST(memory_is_not_reserved_while_capturing) {
    void *memory;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaMalloc(&memory, 8);
}
END_TEST

START_TEST(memory_is_not_given_back_while_capturing) {
    void *memory;
    cudaMalloc(&memory, 8);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaFree(memory);
}
END_TEST

START_TEST(a_stream_is_not_waited_for_while_capturing) {
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaStreamSynchronize(stream);
}
END_TEST

static __global__ void kept_kernel(float *out) {
    __shared__ float kept;
    out[blockIdx.x] = kept;
    kept = 1;
}

START_TEST(declared_shared_memory_begins_as_nans_in_every_block) {
    for (float x : result_of(3, [](float *out) { launch(kept_kernel, dim3(3), dim3(1), 0, out); }))
        ck_assert(std::isnan(x));
}
END_TEST

/* Kernels run when somebody waits; what pinned memory holds then is what they see, other memory was read at once. */
START_TEST(a_lazy_device_runs_when_it_is_waited_for) {
    device_array<float> x(2);
    float *from, here = 1;
    setenv("LRNN_CUDA_HOST_LAZY", "1", 1);
    long before = cuda_host_launches();
    ck_assert_int_eq(cudaHostAlloc((void **)&from, sizeof *from, cudaHostAllocDefault), cudaSuccess);
    *from = 1;
    cudaMemcpyAsync(x.at, from, sizeof *from, cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(x.at + 1, &here, sizeof here, cudaMemcpyHostToDevice, stream);
    launch(add_kernel, dim3(1), dim3(2), 0, x.at, 10.0f);
    *from = here = 2;
    ck_assert_int_eq(cuda_host_launches(), before);
    cudaStreamSynchronize(stream);
    ck_assert_int_eq(cuda_host_launches(), before + 1);
    std::vector<float> got = x.values();
    ck_assert(got[0] == 12 && got[1] == 11);
    cudaFreeHost(from);
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
    tcase_add_test(tests, tensor_cores_multiply_what_lanes_hold);
    tcase_add_test_raise_signal(tests, a_factor_that_is_not_rounded_is_found, SIGABRT);
    tcase_add_test(tests, tf32_is_the_nearest_number_of_eleven_bits);
    tcase_add_test(tests, a_copy_is_there_when_it_was_waited_for_and_no_sooner);
    tcase_add_test(tests, a_copy_of_nothing_is_zero);
    tcase_add_test_raise_signal(tests, a_thread_that_ends_before_its_copies_is_found, SIGABRT);
    tcase_add_test(tests, a_barrier_for_which_a_warp_must_run_ahead_is_missed);
    tcase_add_test(tests, every_thread_of_every_block_runs_once);
    tcase_add_test(tests, one_block_is_the_last_and_sees_what_all_have_stored);
    tcase_add_test(tests, each_place_has_counters_of_its_own);
    tcase_add_test(tests, a_capture_runs_nothing_and_a_replay_everything);
    tcase_add_test(tests, device_memory_begins_as_nans_and_ends);
    tcase_add_test(tests, a_failure_stays);
    tcase_add_test_raise_signal(tests, a_host_that_reads_device_memory_is_found, SIGABRT);
#ifndef __clang__
    tcase_add_test_raise_signal(tests, an_address_of_the_host_among_arguments_is_found, SIGABRT);
#endif
    tcase_add_test_raise_signal(tests, memory_is_not_reserved_while_capturing, SIGABRT);
    tcase_add_test_raise_signal(tests, memory_is_not_given_back_while_capturing, SIGABRT);
    tcase_add_test_raise_signal(tests, a_stream_is_not_waited_for_while_capturing, SIGABRT);
    tcase_add_test(tests, declared_shared_memory_begins_as_nans_in_every_block);
    tcase_add_test(tests, a_lazy_device_runs_when_it_is_waited_for);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_cuda_host_streams.cc - the shim's streams: launches that overlap the one before, branches that part and meet.
 */
#include <csignal>

#include "tests/cuda/host/launch.h" /* first */

#include "core/cuda/cuda.cuh"

/* --- overlapping launches ----------------------------------------------------------------------------------------- */

static __global__ void waiting_kernel(float *x) {
    await_previous();
    x[threadIdx.x] += 1;
}

static __global__ void hasty_kernel(float *x) {
    float before = x[threadIdx.x];
    await_previous();
    x[threadIdx.x] = before + 1;
}

static __global__ void forgetful_kernel(float *x) {
    if (threadIdx.x < 3) await_previous();
    x[threadIdx.x] += 1;
}

static std::vector<float> overlapped(void (*kernel)(float *)) {
    setenv("LRNN_CUDA_HOST_PROTECT", "1", 1);
    return result_of(4, [=](float *out) {
        for (int i = 0; i < 2; i++) ck_assert_int_eq(try_overlap(stream, kernel, dim3(1), dim3(4), out), cudaSuccess);
    });
}

START_TEST(a_kernel_that_waits_may_overlap) {
    for (float x : overlapped(waiting_kernel)) ck_assert_float_eq(x, 2);
}
END_TEST

START_TEST(a_kernel_that_reads_before_it_waits_is_found) {
    signal(SIGSEGV, end_of_the_process);
    overlapped(hasty_kernel);
}
END_TEST

START_TEST(a_thread_that_does_not_wait_is_found) {
    overlapped(forgetful_kernel);
}
END_TEST

START_TEST(an_older_device_overlaps_nothing) {
    device_array<float> x(4);
    setenv("LRNN_CUDA_HOST_CAPABILITY", "80", 1);
    ck_assert_int_eq(try_overlap(stream, waiting_kernel, dim3(1), dim3(4), x.at), cudaErrorInvalidConfiguration);
}
END_TEST

/* --- branches ----------------------------------------------------------------------------------------------------- */

/* x = 10 x + digit: what x ends as says in which order it was written. */
static __global__ void digit_kernel(float *x, float digit) {
    *x = 10 * *x + digit;
}

struct branch {
    cudaStream_t stream;
    cudaEvent_t parted, met;
    branch() {
        ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
        cudaEventCreateWithFlags(&parted, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&met, cudaEventDisableTiming);
    }
    branch(const branch &) = delete;
    ~branch() {
        cudaEventDestroy(parted);
        cudaEventDestroy(met);
        cudaStreamDestroy(stream);
    }
};

static void digit(cudaStream_t on, float *x, float value) {
    cudaLaunchConfig_t config = {dim3(1), dim3(1), 0, on, nullptr, 0};
    ck_assert_int_eq(cuda_host_launch("digit", &config, digit_kernel, x, value), cudaSuccess);
}

/* 1, then 2 beside 3, then 4, if the branches meet. */
static void part_and_meet(branch &b, float *x, bool meet) {
    digit(stream, x, 1);
    cudaEventRecord(b.parted, stream);
    cudaStreamWaitEvent(b.stream, b.parted, 0);
    digit(b.stream, x, 2);
    cudaEventRecord(b.met, b.stream);
    digit(stream, x, 3);
    if (meet) cudaStreamWaitEvent(stream, b.met, 0);
    digit(stream, x, 4);
}

static float replayed(int replays, size_t *nodes) {
    branch b;
    device_array<float> x(1);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    part_and_meet(b, x.at, true);
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphGetNodes(graph, nullptr, nodes);
    cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < replays; i++) cudaGraphLaunch(exec, stream);
    float value = x.values()[0];
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    return value;
}

static float walked(bool meet) {
    device_array<float> x(1); /* the branch ends before it */
    branch b;
    part_and_meet(b, x.at, meet);
    return x.values()[0];
}

/* Runs a branch as early as it is queued, or as late as it is waited for, which finds what depends on the time. */
START_TEST(a_branch_runs_early_or_late) {
    size_t nodes;
    ck_assert_float_eq(walked(true), 1234);
    ck_assert_float_eq(replayed(1, &nodes), 1324);
    ck_assert_uint_eq(nodes, 4);
    ck_assert_float_eq(replayed(2, &nodes), 13241324);
    setenv("LRNN_CUDA_HOST_LAZY", "1", 1);
    ck_assert_float_eq(walked(true), 1324);
    ck_assert_float_eq(walked(false), 134);
}
END_TEST

START_TEST(a_capture_whose_branches_do_not_meet_fails) {
    branch b;
    device_array<float> x(1);
    cudaGraph_t graph;
    for (int meet = 0; meet < 2; meet++) {
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        part_and_meet(b, x.at, meet);
        ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), meet ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
        cudaGraphDestroy(graph);
    }
}
END_TEST

START_TEST(a_capture_waits_for_nothing_outside_of_it) {
    branch b;
    cudaEventRecord(b.met, b.stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaStreamWaitEvent(stream, b.met, 0);
}
END_TEST

extern "C" Suite *check_cuda_host_streams(void);
Suite *check_cuda_host_streams(void) {
    Suite *suite = suite_create("cuda_host_streams");
    TCase *tests = tcase_create("cuda_host_streams");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_kernel_that_waits_may_overlap);
    tcase_add_test_raise_signal(tests, a_kernel_that_reads_before_it_waits_is_found, SIGABRT);
    tcase_add_test_raise_signal(tests, a_thread_that_does_not_wait_is_found, SIGABRT);
    tcase_add_test(tests, an_older_device_overlaps_nothing);
    tcase_add_test(tests, a_branch_runs_early_or_late);
    tcase_add_test(tests, a_capture_whose_branches_do_not_meet_fails);
    tcase_add_test_raise_signal(tests, a_capture_waits_for_nothing_outside_of_it, SIGABRT);
    suite_add_tcase(suite, tests);
    return suite;
}

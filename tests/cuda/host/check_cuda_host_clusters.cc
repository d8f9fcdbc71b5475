/* check_cuda_host_clusters.cc - the shim's clusters: what their blocks see of each other, and what is refused. */
#include <csignal>

#include "tests/cuda/host/launch.h" /* first */

#include "kernels/lib/cluster.cuh"

enum { BEFORE = 1, BETWEEN = 2, BEHIND = 4 }; /* which barriers a kernel has */

/* The block on the right, in a ring of `cluster` blocks. */
static int right_of(unsigned cluster) {
    return (int)((blockIdx.x + 1) % cluster);
}

/* Each block stores what it has in the block on its right, backwards, and writes out what it has got. */
static __global__ void store_kernel(float *out, unsigned cluster, int barriers) {
    DYNAMIC_SHARED(float, got);
    if (barriers & BEFORE) cluster_sync();
    cluster_shared(got, right_of(cluster))[blockDim.x - 1 - threadIdx.x] = (float)(100 * blockIdx.x + threadIdx.x);
    if (barriers & BETWEEN) cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = got[threadIdx.x];
    if (barriers & BEHIND) cluster_sync();
}

/* Six blocks of 40 threads. */
static void run_ring(float *out, unsigned cluster, int barriers) {
    launch_clusters(cluster, store_kernel, dim3(6), dim3(40), 40 * sizeof(float), out, cluster, barriers);
}

START_TEST(blocks_of_a_cluster_reach_each_others_memory) {
    for (unsigned cluster : {1u, 2u, 3u, 6u}) {
        auto run = [=](float *out) { run_ring(out, cluster, BEFORE + BETWEEN); };
        ck_assert(same_in_every_order(240, run));
        std::vector<float> out = result_of(240, run);
        for (unsigned i = 0; i < 240; i++) {
            unsigned block = i / 40, first = block / cluster * cluster, left = first + (block + cluster - 1) % cluster;
            ck_assert_float_eq(out[i], (float)(100 * left + 39 - i % 40));
        }
    }
}
END_TEST

START_TEST(a_missing_barrier_of_a_cluster_is_found) {
    ck_assert(!same_in_every_order(240, [](float *out) { run_ring(out, 3, BEFORE + BEHIND); }));
}
END_TEST

START_TEST(a_reach_into_a_block_that_may_not_have_begun_is_found) {
    result_of(240, [](float *out) { run_ring(out, 3, BETWEEN); });
}
END_TEST

/* Reads what the block on its right has. Without the barrier after it one block has ended when its neighbour comes. */
static __global__ void load_kernel(float *out, int barriers) {
    DYNAMIC_SHARED(float, mine);
    mine[threadIdx.x] = (float)blockIdx.x;
    if (barriers & BEFORE) cluster_sync();
    const float *theirs = cluster_shared(mine, right_of(4));
    if (barriers & BETWEEN) cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = theirs[threadIdx.x];
    if (barriers & BEHIND) cluster_sync();
}

static std::vector<float> loaded(int barriers) {
    return result_of(256, [=](float *out) {
        launch_clusters(4, load_kernel, dim3(8), dim3(32), 32 * sizeof(float), out, barriers);
    });
}

START_TEST(a_block_that_waits_for_its_neighbours_can_be_read) {
    std::vector<float> out = loaded(BEFORE + BEHIND);
    for (int i = 0; i < 256; i++) ck_assert_float_eq(out[i], (float)(i / 128 * 4 + (i / 32 + 1) % 4));
}
END_TEST

START_TEST(a_reach_into_a_block_that_has_ended_is_found) {
    loaded(BEFORE);
}
END_TEST

/* By an address that was asked for while the block was there. */
START_TEST(a_late_reach_by_an_early_address_is_found) {
    signal(SIGSEGV, end_of_the_process);
    loaded(BEFORE + BETWEEN);
}
END_TEST

static __global__ void leave_cluster_kernel(void) {
    if (blockIdx.x == 1) return;
    cluster_sync();
}

START_TEST(a_block_that_leaves_before_a_barrier_of_its_cluster_is_found) {
    launch_clusters(2, leave_cluster_kernel, dim3(2), dim3(8), 0);
}
END_TEST

/* A thread of halves of a barrier: arrives and waits, or does one of them alone, or reaches out between them. */
static __global__ void halves_kernel(float *out, bool arrives, bool reaches, bool waits) {
    DYNAMIC_SHARED(float, mine);
    mine[threadIdx.x] = 1;
    cluster_sync();
    if (arrives) cluster_arrive();
    if (reaches) *cluster_shared(mine, 0) = 2;
    if (waits) cluster_wait();
    out[blockIdx.x] = mine[0];
}

static void run_halves(bool arrives, bool reaches, bool waits) {
    std::vector<float> out = result_of(2, [=](float *at) {
        launch_clusters(2, halves_kernel, dim3(2), dim3(8), 8 * sizeof(float), at, arrives, reaches, waits);
    });
    ck_assert(out[0] == 1 && out[1] == 1);
}

START_TEST(a_barrier_of_a_cluster_has_two_halves) {
    run_halves(true, false, true);
}
END_TEST

START_TEST(a_wait_without_an_arrival_is_found) {
    run_halves(false, false, true);
}
END_TEST

START_TEST(an_arrival_without_a_wait_is_found) {
    run_halves(true, false, false);
}
END_TEST

START_TEST(a_reach_between_the_halves_of_a_barrier_is_found) {
    run_halves(true, true, true);
}
END_TEST

static __global__ void apart_kernel(float *out) {
    __shared__ float kept;
    if (threadIdx.x == 0) kept = (float)blockIdx.x;
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = kept;
}

START_TEST(blocks_of_a_cluster_have_declared_shared_memory_each) {
    auto run = [](float *out) { launch_clusters(4, apart_kernel, dim3(8), dim3(5), 0, out); };
    ck_assert(same_in_every_order(40, run));
    std::vector<float> out = result_of(40, run);
    for (int i = 0; i < 40; i++) ck_assert_float_eq(out[i], (float)(i / 5));
}
END_TEST

START_TEST(clusters_that_no_device_takes_are_refused) {
    device_array<float> out(16);
    auto attempt = [&](unsigned cluster, unsigned blocks) {
        return try_launch(cluster, apart_kernel, dim3(blocks), dim3(1), 0, out.at);
    };
    ck_assert_int_eq(attempt(8, 16), cudaSuccess);
    ck_assert_int_eq(attempt(3, 16), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(attempt(16, 16), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(attempt(0, 16), cudaErrorInvalidConfiguration);
    setenv("LRNN_CUDA_HOST_CAPABILITY", "89", 1);
    ck_assert_int_eq(attempt(2, 16), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(attempt(1, 16), cudaSuccess);
}
END_TEST

START_TEST(a_block_has_the_shared_memory_of_its_capability) {
    static const struct {
        const char *capability;
        int kb;
    } known[] = {{"75", 64}, {"80", 163}, {"86", 99}, {"89", 99}, {"90", 227}};
    for (auto [capability, kb] : known) {
        int most;
        setenv("LRNN_CUDA_HOST_CAPABILITY", capability, 1);
        ck_assert_int_eq(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), cudaSuccess);
        ck_assert_int_eq(most, kb * 1024);
        for (int more = 0; more < 2; more++)
            ck_assert_int_eq(
                cudaFuncSetAttribute(apart_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most + more),
                more ? cudaErrorInvalidValue : cudaSuccess);
    }
}
END_TEST

extern "C" Suite *check_cuda_host_clusters(void);
Suite *check_cuda_host_clusters(void) {
    Suite *suite = suite_create("cuda_host_clusters");
    TCase *tests = tcase_create("cuda_host_clusters");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, blocks_of_a_cluster_reach_each_others_memory);
    tcase_add_test(tests, a_missing_barrier_of_a_cluster_is_found);
    tcase_add_test_raise_signal(tests, a_reach_into_a_block_that_may_not_have_begun_is_found, SIGABRT);
    tcase_add_test(tests, a_block_that_waits_for_its_neighbours_can_be_read);
    tcase_add_test_raise_signal(tests, a_reach_into_a_block_that_has_ended_is_found, SIGABRT);
    tcase_add_test_raise_signal(tests, a_late_reach_by_an_early_address_is_found, SIGABRT);
    tcase_add_test_raise_signal(tests, a_block_that_leaves_before_a_barrier_of_its_cluster_is_found, SIGABRT);
    tcase_add_test(tests, a_barrier_of_a_cluster_has_two_halves);
    tcase_add_test_raise_signal(tests, a_wait_without_an_arrival_is_found, SIGABRT);
    tcase_add_test_raise_signal(tests, an_arrival_without_a_wait_is_found, SIGABRT);
    tcase_add_test_raise_signal(tests, a_reach_between_the_halves_of_a_barrier_is_found, SIGABRT);
    tcase_add_test(tests, blocks_of_a_cluster_have_declared_shared_memory_each);
    tcase_add_test(tests, clusters_that_no_device_takes_are_refused);
    tcase_add_test(tests, a_block_has_the_shared_memory_of_its_capability);
    suite_add_tcase(suite, tests);
    return suite;
}

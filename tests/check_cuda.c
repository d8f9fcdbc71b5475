/* check_cuda.c - every CUDA kernel against its reference: all examples of its op, hard lengths, on a device or on the host
 * (cuda_host.h). On the host also with the fibers of each block, and the blocks, in other orders: a kernel that misses a
 * barrier computes something else then. On a device a second run stands for that. */
#include <string.h>

#include "tests/cuda_cases.h"
#include "tests/op_run.h"

#ifdef LRNN_CUDA_HOST
#define N_ORDERS 3
void cuda_host_set_order(int order);
#else
#define N_ORDERS 2
static void cuda_host_set_order(int order) {
    (void)order;
}
#endif

static struct place place;

static void begin(void) {
    struct error e = {0};
    start_kernels();
    ck_assert_msg(place_open(&place, "cuda", &e) == ST_OK, "%s", e.text);
}

static void end(void) {
    place_close(&place);
}

/* The n-th CUDA kernel, or NULL behind the last. */
static const struct kernel *cuda_kernel(int n) {
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if ((*k)->device == DEVICE_CUDA && n-- == 0) return *k;
    return NULL;
}

static int cuda_kernel_count(void) {
    int n = 0;
    while (cuda_kernel(n)) n++;
    return n;
}

START_TEST(kernels_agree_with_the_reference) {
    for (int fill = FILL_SMALL; fill <= FILL_WHOLE; fill++)
        each_example(cuda_kernel(_i), (enum fill)fill, &place, compare_twin);
}
END_TEST

START_TEST(gradients_accumulate) {
    if (differentiable(cuda_kernel(_i)->op)) each_example(cuda_kernel(_i), FILL_SMALL, &place, compare_accumulated);
}
END_TEST

START_TEST(unwanted_gradients_are_left_out) {
    if (differentiable(cuda_kernel(_i)->op)) each_example(cuda_kernel(_i), FILL_SMALL, &place, compare_unwanted);
}
END_TEST

static void compare_orders(const struct kernel *k, const struct trial_op *what) {
    (void)k;
    struct run first, other;
    ck_assert(run_open(&first, what));
    run_walk(&first);
    for (int order = 1; order < N_ORDERS; order++) {
        ck_assert(run_open(&other, what));
        cuda_host_set_order(order);
        run_walk(&other);
        cuda_host_set_order(0);
        expect_same_outputs(&other, &first, 0);
        if (differentiable(what->op))
            expect_same_gradients(&other, &first, 0, -1);
        else
            expect_same_effects(&other, &first, 0);
        run_close(&other);
    }
    run_close(&first);
}

START_TEST(bits_do_not_depend_on_the_order_of_threads) {
    each_example(cuda_kernel(_i), FILL_SMALL, &place, compare_orders);
}
END_TEST

/* One walk of each kernel at one length: what compute-sanitizer can afford. */
START_TEST(every_kernel_runs) {
    const struct kernel *k = cuda_kernel(_i);
    struct run r;
    int ran = 0;
    for (int variant = 0;; variant++) {
        struct trial_op what = {k->op, k->name, 33, variant, 1, false, false, FILL_SMALL, &place};
        enum verdict verdict = kernel_verdict(k, &what);
        if (verdict == NO_SUCH_VARIANT) break;
        if (verdict == DOES_NOT_APPLY) continue;
        ck_assert(run_open(&r, &what));
        run_walk(&r);
        run_close(&r);
        ran++;
    }
    ck_assert_int_gt(ran, 0);
}
END_TEST

int cuda_cases(void) {
    return 5 * cuda_kernel_count() + cuda_run_cases();
}

static Suite *kernel_suite(const char *name, const TTest *const *tests, int n_tests) {
    Suite *suite = suite_create(name);
    TCase *kernels = tcase_create(name);
    int n = cuda_kernel_count();
    tcase_add_checked_fixture(kernels, begin, end);
    for (int i = 0; i < n_tests; i++) tcase_add_loop_test(kernels, tests[i], 0, n);
    suite_add_tcase(suite, kernels);
    return suite;
}

Suite *check_cuda(void);
Suite *check_cuda(void) {
    const TTest *const tests[] = {kernels_agree_with_the_reference, gradients_accumulate};
    return kernel_suite("cuda", tests, 2);
}

Suite *check_cuda_order(void);
Suite *check_cuda_order(void) {
    const TTest *const tests[] = {bits_do_not_depend_on_the_order_of_threads, unwanted_gradients_are_left_out};
    return kernel_suite("cuda_order", tests, 2);
}

Suite *check_cuda_short(void);
Suite *check_cuda_short(void) {
    const TTest *const tests[] = {every_kernel_runs};
    return kernel_suite("cuda_short", tests, 1);
}

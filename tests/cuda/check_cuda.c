/* check_cuda.c - every CUDA kernel against its reference: all examples of its op, hard lengths, on a device or on the host
 * (cuda_host.h). On the host also with the fibers of each block, and the blocks, in other orders: a kernel that misses a
 * barrier computes something else then. On a device a second run stands for that. */
#include <string.h>

#include "kernels/gated/gated.h"
#include "tests/cuda/cuda_cases.h"
#include "tests/lib/op_apart.h"

#ifdef LRNN_CUDA_HOST
#define N_ORDERS 3
void cuda_host_set_order(int order);
long cuda_host_launches(void);
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

START_TEST(sequences_and_heads_do_not_depend_on_others) {
    const struct kernel *k = cuda_kernel(_i);
    const char *why;
    if (sequences_are_apart(k->op, &why)) ck_assert_int_gt(each_example_apart(k, &place, compare_alone), 0);
    if (k->op->heads) ck_assert_int_gt(each_example_apart(k, &place, compare_beside_others), 0);
}
END_TEST

/* One walk of each kernel at one length: what compute-sanitizer can afford. */
START_TEST(every_kernel_runs) {
    const struct kernel *k = cuda_kernel(_i);
    struct run r;
    int ran = 0;
    for (int variant = 0;; variant++) {
        struct trial_op what = {
            .op = k->op, .kernel = k->name, .n = 33, .variant = variant, .outputs = 1, .place = &place};
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

/* --- sums in two stages, with more partial sums than the examples' sizes give ----------------------------------------- */

/* Sequences enough that the gradient of a constant a is summed over several chunks of them. */
static void many_sequences(struct graph *g, int64_t n, struct tensor **a, struct tensor **x, int planes) {
    for (int p = 0; p < planes; p++) {
        a[p] = graph_input(g, "a", 1, (int64_t[]){5}, true);
        x[p] = graph_input(g, "x", 3, (int64_t[]){n, 3, 5}, true);
    }
}

static bool scan_diag_of_many(struct graph *g, int64_t n, int variant) {
    struct tensor *a[1], *x[1];
    if (variant > 0) return false;
    many_sequences(g, n, a, x, 1);
    scan_diag(g, a[0], x[0]);
    return true;
}

static bool scan_diag_complex_of_many(struct graph *g, int64_t n, int variant) {
    struct tensor *a[2], *x[2];
    if (variant > 0) return false;
    many_sequences(g, n, a, x, 2);
    scan_diag_complex(g, a[0], a[1], x[0], x[1], NULL);
    return true;
}

static const struct {
    const char *kernel;
    int64_t n;
    int variant;
    bool another_launch; /* of a second stage, which is left out where there is one partial sum */
    bool (*example)(struct graph *g, int64_t n, int variant);
} two_stages[] = {
    {"linear_cuda", 200, 0, true, NULL},
    {"bias_cuda", 200, 0, true, NULL},
    {"scale_cuda", 200, 0, true, NULL},
    {"repeat_rows_cuda", 200, 0, true, NULL},
    {"rmsnorm_cuda", 200, 0, true, NULL},
    {"layernorm_cuda", 200, 0, true, NULL},
    {"embedding_cuda", 200, 0, true, NULL},
    {"scan_diag_cuda", 300, 0, true, scan_diag_of_many},
    {"scan_diag_chunk_cuda", 300, 0, true, scan_diag_of_many},
    {"scan_diag_complex_cuda", 300, 0, true, scan_diag_complex_of_many},
    {"scan_diag_complex_chunk_cuda", 300, 0, true, scan_diag_complex_of_many},
    {"cross_entropy_cuda", 1500, 2, false, NULL},
    {"cross_entropy_cuda", 700, 4, false, NULL}, /* more partial losses than the second stage has threads */
    {"step_begin_cuda", 5000, 0, false, NULL},
    {"step_begin_cuda", 1100000, 0, false, NULL}, /* likewise */
};
#define N_TWO_STAGES (int)(sizeof two_stages / sizeof *two_stages)

/* Otherwise the test would prove nothing. */
static void expect_partial_sums(const struct kernel *k, const struct trial_op *what, bool another_launch) {
    struct trial_op small = *what;
    struct run run_large, run_small;
    small.n = 1;
    ck_assert(run_open(&run_large, what) && run_open(&run_small, &small));
#ifdef LRNN_CUDA_HOST
    long before = cuda_host_launches();
    run_walk(&run_small);
    long between = cuda_host_launches();
    run_walk(&run_large);
    ck_assert_int_eq(cuda_host_launches() - between > between - before, another_launch);
#endif
    bool more = another_launch;
    for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD && !more; pass++)
        more = k->workspace(run_large.call, pass) > k->workspace(run_small.call, pass);
    ck_assert(more);
    run_close(&run_large);
    run_close(&run_small);
}

START_TEST(second_stages_add_all_partial_sums) {
    const struct kernel *k = kernel_find(two_stages[_i].kernel);
    struct trial_op what = {.op = k->op,
                            .kernel = k->name,
                            .n = two_stages[_i].n,
                            .variant = two_stages[_i].variant,
                            .outputs = 1,
                            .guards = true,
                            .place = &place,
                            .example = two_stages[_i].example};
    compare_orders(k, &what);
    compare_twin(k, &what);
    if (two_stages[_i].another_launch) { /* of these whole numbers are exact in any order */
        what.fill = FILL_WHOLE;
        compare_twin(k, &what);
    }
    expect_partial_sums(k, &what, two_stages[_i].another_launch);
}
END_TEST

/* --- scans in chunks: every m, of which the examples are long for a few alone, and chunks longer than the least -------------- */

#define N_GATED 3

/* Of order variant + 1. */
static bool gated_scan(struct graph *g, int64_t n, int variant, const char *scan, enum companion_layout layout) {
    int64_t B = 2, N = 5, m = variant + 1;
    bool block = strcmp(scan, "block") == 0;
    if (m > 8) return false;
    struct tensor *z = graph_input(g, "z", 3, (int64_t[]){B, n, (block ? m : 1) * (m + 1) * N}, true);
    struct tensor *v = graph_input(g, "v", 3, (int64_t[]){B, n, (block ? m : 1) * N}, true);
    if (block)
        scan_block(g, z, v, N, m, GATE_SOFTMAX);
    else
        scan_companion(g, z, v, N, m, GATE_SOFTMAX, layout);
    return true;
}

static bool block_example(struct graph *g, int64_t n, int variant) {
    return gated_scan(g, n, variant, "block", LAYOUT_COMPANION);
}

static bool companion_example(struct graph *g, int64_t n, int variant) {
    return gated_scan(g, n, variant, "companion", LAYOUT_COMPANION);
}

static bool observer_example(struct graph *g, int64_t n, int variant) {
    return gated_scan(g, n, variant, "companion", LAYOUT_OBSERVER);
}

/* Three chunks, the last of them short. */
START_TEST(chunks_agree_with_the_reference_for_every_m) {
    static bool (*const examples[N_GATED])(struct graph *, int64_t, int) = {block_example, companion_example,
                                                                            observer_example};
    const struct kernel *k = kernel_find(_i == 0 ? "scan_block_chunk_cuda" : "scan_companion_chunk_cuda");
    for (int variant = 0; variant < 8; variant++) {
        struct trial_op what = {.op = k->op,
                                .kernel = k->name,
                                .n = 43,
                                .variant = variant,
                                .outputs = 1,
                                .guards = true,
                                .place = &place,
                                .example = examples[_i]};
        compare_twin(k, &what);
    }
}
END_TEST

/* So many channels that chunks are cut at 32 time steps, not 16. */
static bool wide_example(struct graph *g, int64_t n, int variant) {
    if (variant > 0) return false;
    struct tensor *a = graph_input(g, "a", 1, (int64_t[]){n}, true);
    scan_diag(g, a, graph_input(g, "x", 3, (int64_t[]){1, 70, n}, true));
    return true;
}

START_TEST(longer_chunks_agree_with_the_reference) {
    const struct kernel *k = kernel_find("scan_diag_chunk_cuda");
    struct trial_op what = {.op = k->op,
                            .kernel = k->name,
                            .n = 16000,
                            .outputs = 1,
                            .guards = true,
                            .place = &place,
                            .example = wide_example};
    struct run r;
    ck_assert(run_open(&r, &what));
    size_t lanes = k->workspace(r.call, PASS_FORWARD) / (2 * sizeof(real));
    ck_assert_uint_eq(lanes, 3 * 16000);
    run_close(&r);
    compare_twin(k, &what);
}
END_TEST

int cuda_cases(void) {
    return 6 * cuda_kernel_count() + N_TWO_STAGES + N_GATED + 1 + cuda_run_cases();
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
    Suite *suite = kernel_suite("cuda", tests, 2);
    TCase *larger = tcase_create("larger");
    tcase_add_checked_fixture(larger, begin, end);
    tcase_add_loop_test(larger, second_stages_add_all_partial_sums, 0, N_TWO_STAGES);
    tcase_add_loop_test(larger, chunks_agree_with_the_reference_for_every_m, 0, N_GATED);
    tcase_add_test(larger, longer_chunks_agree_with_the_reference);
    suite_add_tcase(suite, larger);
    return suite;
}

Suite *check_cuda_order(void);
Suite *check_cuda_order(void) {
    const TTest *const tests[] = {bits_do_not_depend_on_the_order_of_threads, unwanted_gradients_are_left_out,
                                  sequences_and_heads_do_not_depend_on_others};
    return kernel_suite("cuda_order", tests, 3);
}

Suite *check_cuda_short(void);
Suite *check_cuda_short(void) {
    const TTest *const tests[] = {every_kernel_runs};
    return kernel_suite("cuda_short", tests, 1);
}

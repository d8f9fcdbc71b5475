/* check_apart.c - for every op that maps sequences or heads each by itself: the result of one, forward and gradient,
 * does not depend on which others ran beside it. */
#include "kernels/gated/gated.h"
#include "tests/lib/op_apart.h"

START_TEST(a_sequence_has_the_same_result_alone) {
    const struct op *op = op_list()[_i];
    const char *why;
    if (!sequences_are_apart(op, &why)) return;
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if ((*k)->op == op && (*k)->device == DEVICE_CPU)
            ck_assert_msg(each_example_apart(*k, WALK_REAL, NULL, compare_alone) > 0,
                          "nothing that %s makes has two sequences", op->name);
}
END_TEST

START_TEST(a_head_has_the_same_result_beside_others) {
    const struct op *op = op_list()[_i];
    if (!op->heads) return;
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if ((*k)->op == op && (*k)->device == DEVICE_CPU)
            ck_assert_msg(each_example_apart(*k, WALK_REAL, NULL, compare_beside_others) > 0,
                          "nothing that %s makes has two heads", op->name);
}
END_TEST

/* Ops that have no sequence alone are told apart by shapes, so a new op that is in no list is either tested or red. */
START_TEST(sequences_are_found_by_shapes) {
    struct op_run r;
    struct trial_op diagonal = {
        .op = &op_scan_diag, .kernel = "reference", .sizes = sizes_at("batch=3 blocks=3"), .outputs = 1};
    ck_assert(run_open(&r, &diagonal)); /* a (B,T,N) */
    ck_assert_uint_eq(sequence_inputs(r.call), 3);
    run_close(&r);
    diagonal.sizes.variant = 1; /* a [N], with N as large as B */
    ck_assert(run_open(&r, &diagonal));
    ck_assert_int_eq(r.call->in[0]->dims[0], r.call->in[1]->dims[0]);
    ck_assert_uint_eq(sequence_inputs(r.call), 2);
    run_close(&r);
    struct trial_op mean = {.op = &op_cross_entropy, .kernel = "reference", .sizes = sizes_at(""), .outputs = 1};
    ck_assert(run_open(&r, &mean));
    ck_assert_uint_eq(sequence_inputs(r.call), 0);
    run_close(&r);
}
END_TEST

Suite *check_apart(void);
Suite *check_apart(void) {
    Suite *suite = suite_create("apart");
    TCase *tests = tcase_create("apart");
    int n = op_count();
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, a_sequence_has_the_same_result_alone, 0, n);
    tcase_add_loop_test(tests, a_head_has_the_same_result_beside_others, 0, n);
    tcase_add_test(tests, sequences_are_found_by_shapes);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_gradients.c - what a gradient kernel does besides its sums: adds to what is there, and leaves out what nobody
 * asks for. */
#include "tests/lib/op_compare.h"

START_TEST(gradients_accumulate) {
    if (!differentiable(op_list()[_i])) return;
    each_cpu_kernel(op_list()[_i], WALK_EDGES, FILL_SMALL, compare_accumulated);
    each_cpu_kernel(op_list()[_i], WALK_REAL, FILL_NET, compare_accumulated);
}
END_TEST

START_TEST(unwanted_gradients_are_left_out) {
    if (!differentiable(op_list()[_i])) return;
    each_cpu_kernel(op_list()[_i], WALK_EDGES, FILL_SMALL, compare_unwanted);
    each_cpu_kernel(op_list()[_i], WALK_REAL, FILL_NET, compare_unwanted);
}
END_TEST

Suite *check_gradients(void);
Suite *check_gradients(void) {
    Suite *suite = suite_create("gradients");
    TCase *tests = tcase_create("gradients");
    int n = op_count();
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, gradients_accumulate, 0, n);
    tcase_add_loop_test(tests, unwanted_gradients_are_left_out, 0, n);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_devices.c - every op runs on a CUDA device: in any build, for the lists of ops say so. */
#include "kernels/twins.h"
#include "tests/testing.h"

START_TEST(every_op_has_a_cuda_twin) {
    for (const struct op *const *op = op_list(); *op; op++)
        ck_assert_msg((*op)->hidden || op_has_cuda_twin(*op),
                      "op %s has no CUDA twin: docs/cuda.md says how one is written and listed", (*op)->name);
}
END_TEST

/* Otherwise the test above would see nothing. */
START_TEST(an_op_without_a_cuda_twin_is_seen) {
    const struct op *op = op_find("template");
    ck_assert(op && op->hidden && !op_has_cuda_twin(op));
}
END_TEST

Suite *check_devices(void);
Suite *check_devices(void) {
    Suite *suite = suite_create("devices");
    TCase *tests = tcase_create("devices");
    tcase_add_test(tests, every_op_has_a_cuda_twin);
    tcase_add_test(tests, an_op_without_a_cuda_twin_is_seen);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_devices.c - which ops have no CUDA twin: fewer with each twin that is written, and none is lost. */
#include <string.h>

#include "kernels/twins.h"
#include "tests/testing.h"

/* To be taken out when its twin is there. */
static const char *const without_twin[] = {
    "scan_dplr", "scan_hadamard", "expm_skew", "expm_flow", "log_signature", "dense_generators", "brackets",
    "sandwich",  "grid_gates",    "grid_scan", "dag_scan",  "tree_solve",    "tree_add",
};
#define N_WITHOUT (int)(sizeof without_twin / sizeof *without_twin)
#define WITH_TWIN 54 /* at least */

START_TEST(ops_without_a_cuda_twin_are_known) {
    for (int i = 0; i < N_WITHOUT; i++) {
        const struct op *op = op_find(without_twin[i]);
        ck_assert_msg(op != NULL, "there is no op %s", without_twin[i]);
        ck_assert_msg(!op_has_cuda_twin(op), "op %s has a CUDA twin by now: take it out of this list", op->name);
    }
}
END_TEST

START_TEST(twins_are_not_lost) {
    int n = 0;
    for (const struct op *const *op = op_list(); *op; op++) n += op_has_cuda_twin(*op);
    ck_assert_int_ge(n, WITH_TWIN);
    ck_assert(op_has_cuda_twin(&op_scan_block) && op_has_cuda_twin(&op_linear) && !op_has_cuda_twin(&op_template));
}
END_TEST

Suite *check_devices(void);
Suite *check_devices(void) {
    Suite *suite = suite_create("devices");
    TCase *tests = tcase_create("devices");
    tcase_add_test(tests, ops_without_a_cuda_twin_are_known);
    tcase_add_test(tests, twins_are_not_lost);
    suite_add_tcase(suite, tests);
    return suite;
}

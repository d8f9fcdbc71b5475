/* check_batch_norm.c - batch_norm of an evaluation, by every kernel: the running statistics, in which the rows have no
 * part, and which it does not move. What a training does is compared with the other ops (check_ops.c). */
#include <math.h>
#include <stdlib.h>

#include "core/graph_walk.h"
#include "kernels/norm/norm.h"
#include "tests/lib/support.h"

enum { SEQUENCES = 5, LENGTH = 67, WIDTH = 33 };

static const char *const kernels[] = {"reference", ""};

START_TEST(an_evaluation_takes_the_running_statistics) {
    struct graph g;
    struct step_state state = first_state();
    struct batch_norm p = {.eps = 0.1, .momentum = 0.9};
    open_graph(&g, NULL, false, true, kernels[_i]);
    struct tensor *x = input3(&g, "x", SEQUENCES, LENGTH, WIDTH, false);
    p.weight = input3(&g, "w", WIDTH, 0, 0, false);
    p.bias = input3(&g, "b", WIDTH, 0, 0, false);
    p.mean = input3(&g, "mean", WIDTH, 0, 0, false);
    p.variance = input3(&g, "variance", WIDTH, 0, 0, false);
    struct tensor *y = batch_norm(&g, x, &p);
    tensor_keep(y);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int d = 0; d < WIDTH; d++) tensor_real(p.variance)[d] = (real)(0.25 + d);
    real *mean = copy_reals(tensor_real(p.mean), WIDTH), *variance = copy_reals(tensor_real(p.variance), WIDTH);
    graph_forward(&g, &state);
    for (int64_t i = 0; i < tensor_count(y); i++) {
        int64_t d = i % WIDTH;
        double normal = ((double)tensor_real(x)[i] - (double)mean[d]) / sqrt((double)variance[d] + p.eps);
        double want = normal * (double)tensor_real(p.weight)[d] + (double)tensor_real(p.bias)[d];
        ck_assert_double_eq_tol(tensor_real(y)[i], want, 8 * REAL_EPSILON * (1 + fabs(want)));
    }
    expect_same_bits(tensor_real(p.mean), mean, WIDTH, "running mean");
    expect_same_bits(tensor_real(p.variance), variance, WIDTH, "running variance");
    ck_assert_int_eq(g.plan->first_guard_failure, -1);
    free(mean);
    free(variance);
    graph_free(&g);
}
END_TEST

Suite *check_batch_norm(void);
Suite *check_batch_norm(void) {
    Suite *s = suite_create("batch_norm");
    TCase *c = tcase_create("batch_norm");
    tcase_add_loop_test(c, an_evaluation_takes_the_running_statistics, 0, sizeof kernels / sizeof *kernels);
    suite_add_tcase(s, c);
    return s;
}

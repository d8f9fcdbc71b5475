/* check_orders.c - which kernel the gated scans have at each order m. */
#include <string.h>

#include "kernels/gated/gated.h"
#include "tests/lib/support.h"

#define N 3 /* blocks or channels */

static const int64_t orders[] = {1, 8, 9, 16, 64};
#define N_ORDERS (int)(sizeof orders / sizeof *orders)

static void expect_kernel(struct graph *g, struct tensor *h, const char *name) {
    graph_set_root(g, dot(g, h, input3(g, "w", 1, 2, tensor_cols(h), false), NULL));
    plan_graph(g);
    ck_assert_str_eq(g->calls[0].kernel->name, name);
    graph_free(g);
}

/* Whatever order a mixer takes (1 to 64), a training does not fall back on the reference. */
START_TEST(every_order_has_its_kernel) {
    int64_t m = orders[_i];
    struct graph g;
    open_graph(&g, NULL, true, false, "");
    expect_kernel(&g,
                  scan_block(&g, input3(&g, "z", 1, 2, m * (m + 1) * N, true), input3(&g, "v", 1, 2, m * N, true), N, m,
                             GATE_SOFTMAX),
                  "scan_block_cpu");
    for (int layout = LAYOUT_COMPANION; layout <= LAYOUT_OBSERVER; layout++) {
        open_graph(&g, NULL, true, false, "");
        expect_kernel(&g,
                      scan_companion(&g, input3(&g, "z", 1, 2, (m + 1) * N, true), input3(&g, "v", 1, 2, N, true), N, m,
                                     GATE_SOFTMAX, (enum companion_layout)layout),
                      "scan_companion_cpu");
    }
}
END_TEST

Suite *check_orders(void);
Suite *check_orders(void) {
    Suite *suite = suite_create("orders");
    TCase *tests = tcase_create("orders");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, every_order_has_its_kernel, 0, N_ORDERS);
    suite_add_tcase(suite, tests);
    return suite;
}

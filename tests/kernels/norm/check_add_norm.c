/* check_add_norm.c - add_norm against add and the norm apart: nets that were trained by the two keep their bits. */
#include "core/graph_walk.h"
#include "kernels/dense/dense.h"
#include "kernels/norm/norm.h"
#include "tests/lib/support.h"

#define ROWS 300 /* several chunks of rows */
#define EPS  1e-5

enum { LAYER = 1, SUM_IS_READ = 2, X_IS_READ = 4, REFERENCES = 8, CHOICES = 16 };

struct sum_and_norm {
    struct graph g;
    struct tensor *x, *branch, *w, *b, *sum, *y, *dropped;
};

/* Gradients from other readers of the sum, or of x, come before the norm's, as they do in a net. */
static void walk(struct sum_and_norm *s, int choice, int64_t D, bool fused) {
    struct step_state state = first_state();
    struct graph *g = &s->g;
    open_graph(g, NULL, true, true, choice & REFERENCES ? "reference" : "");
    s->x = input3(g, "x", ROWS, D, 0, true);
    s->branch = input3(g, "branch", ROWS, D, 0, true);
    s->w = input3(g, "w", D, 0, 0, true);
    s->b = choice & LAYER ? input3(g, "b", D, 0, 0, true) : NULL;
    struct tensor *of_y = input3(g, "of_y", ROWS, D, 0, false), *of_sum = input3(g, "of_sum", ROWS, D, 0, false);
    if (fused) {
        s->y = add_norm(g, s->x, s->branch, s->w, s->b, EPS, &s->sum);
    } else {
        s->sum = add(g, s->x, s->branch);
        s->y = s->b ? layernorm(g, s->sum, s->w, s->b, EPS) : rmsnorm(g, s->sum, s->w, EPS);
    }
    tensor_keep(s->sum);
    s->dropped = dropout(g, s->y, 0.3);
    tensor_keep(s->dropped);
    struct tensor *loss = dot(g, s->dropped, of_y, NULL);
    if (choice & SUM_IS_READ) loss = dot(g, s->sum, of_sum, loss);
    if (choice & X_IS_READ) loss = dot(g, s->x, of_sum, loss);
    graph_set_root(g, loss);
    plan_graph(g);
    fill_inputs(g, FILL_SMALL, false);
    graph_forward(g, &state);
    graph_backward(g, &state);
    ck_assert_int_eq(g->plan->first_guard_failure, -1);
}

START_TEST(a_fused_sum_has_the_bits_of_the_two_ops) {
    static const int64_t widths[] = {1, 5, 16, 67, 128};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int64_t D = widths[i];
        struct sum_and_norm fused, apart;
        walk(&fused, _i, D, true);
        walk(&apart, _i, D, false);
        expect_same_bits(fused.sum->data, apart.sum->data, ROWS * D, "sum");
        expect_same_bits(fused.dropped->data, apart.dropped->data, ROWS * D, "what dropout leaves of y");
        expect_same_bits(fused.x->grad, apart.x->grad, ROWS * D, "gradient of x");
        expect_same_bits(fused.branch->grad, apart.branch->grad, ROWS * D, "gradient of the branch");
        expect_same_bits(fused.w->grad, apart.w->grad, D, "gradient of w");
        if (fused.b) expect_same_bits(fused.b->grad, apart.b->grad, D, "gradient of b");
        struct cost a = graph_cost(&fused.g, PASS_BACKWARD), b = graph_cost(&apart.g, PASS_BACKWARD);
        ck_assert(a.flops == b.flops && a.bytes < b.bytes);
        graph_free(&fused.g);
        graph_free(&apart.g);
    }
}
END_TEST

START_TEST(shapes_that_misfit_are_named) {
    struct graph g;
    struct error e = {0};
    struct tensor *sum;
    open_graph(&g, NULL, true, false, "");
    struct tensor *x = input3(&g, "left", 3, 4, 0, true), *branch = input3(&g, "right", 3, 5, 0, true);
    ck_assert_ptr_null(add_norm(&g, x, branch, input3(&g, "w", 4, 0, 0, true), NULL, EPS, &sum));
    ck_assert_ptr_null(sum);
    ck_assert_int_eq(graph_plan(&g, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "left has shape (3,4) but right has (3,5)") != NULL, "%s", e.text);
    graph_free(&g);
}
END_TEST

Suite *check_add_norm(void);
Suite *check_add_norm(void) {
    Suite *suite = suite_create("add_norm");
    TCase *c = tcase_create("add_norm");
    tcase_add_checked_fixture(c, start_kernels, NULL);
    tcase_add_loop_test(c, a_fused_sum_has_the_bits_of_the_two_ops, 0, CHOICES);
    tcase_add_test(c, shapes_that_misfit_are_named);
    suite_add_tcase(suite, c);
    return suite;
}

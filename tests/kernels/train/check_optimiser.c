/* check_optimiser.c - step_begin and adamw against their equations, written once more here in double. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/train/train.h"
#include "tests/lib/support.h"

enum { N = 40, GAP = 7 }; /* elements; the first GAP belong to no segment */

static const char *const kernels[] = {"reference", ""};

struct optimiser {
    struct graph g;
    real loss[1], grad[N], value[N], moment1[N], moment2[N];
    struct step_state state;
};

static const struct adamw_segment segments[] = {{GAP, 20, 0.1, 1}, {GAP + 20, N - GAP - 20, 0.3, 0.25}};

static struct tensor *outside(struct optimiser *o, const char *name, real *data, int64_t n) {
    struct tensor *t = input3(&o->g, name, n, 0, 0, false);
    t->data = data;
    return t;
}

static void optimiser_open(struct optimiser *o, const char *kernel, double clip, const struct schedule *schedule) {
    memset(o, 0, sizeof *o);
    open_graph(&o->g, NULL, false, false, kernel);
    struct adamw_attr attr = {
        .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .clip = clip, .n_segments = 2, .segments = segments};
    struct tensor *grad = outside(o, "grad", o->grad, N);
    step_begin(&o->g, outside(o, "loss", o->loss, 1), grad, &(struct step_attr){*schedule, clip});
    adamw(&o->g, outside(o, "value", o->value, N), grad, outside(o, "moment1", o->moment1, N),
          outside(o, "moment2", o->moment2, N), &attr);
    plan_graph(&o->g);
    for (int i = 0; i < N; i++) o->value[i] = (real)sin(1.0 + i);
}

static void draw_gradient(struct optimiser *o, int step) {
    struct rng r = rng_at(1, STREAM_TEST, (uint64_t)step);
    for (int i = 0; i < N; i++) o->grad[i] = (real)rng_normal(&r);
    o->loss[0] = (real)(2 + rng_uniform(&r));
}

static void set_norm(struct optimiser *o, double wanted) {
    double norm = 0;
    for (int i = 0; i < N; i++) norm += (double)o->grad[i] * o->grad[i];
    for (int i = 0; i < N; i++) o->grad[i] = (real)(o->grad[i] * wanted / sqrt(norm));
}

/* Loshchilov & Hutter 2019, algorithm 2 with decoupled decay, one element. */
static void adamw_element(double *w, double g, double *m1, double *m2, double lr, double decay, int t) {
    *m1 = 0.9 * *m1 + 0.1 * g;
    *m2 = 0.99 * *m2 + 0.01 * g * g;
    double first = *m1 / (1 - pow(0.9, t)), second = *m2 / (1 - pow(0.99, t));
    *w = *w - lr * decay * *w - lr * first / (sqrt(second) + 1e-6);
}

START_TEST(adamw_follows_its_equations) {
    struct schedule schedule = {.kind = SCHEDULE_COSINE, .lr = 0.05, .lr_min = 0.001, .warmup = 3, .total = 20};
    for (int clipped = 0; clipped < 2; clipped++) {
        struct optimiser o;
        double clip = clipped ? 0.5 : 0, w[N], m1[N] = {0}, m2[N] = {0}, loss_sum = 0;
        optimiser_open(&o, kernels[_i], clip, &schedule);
        for (int i = 0; i < N; i++) w[i] = o.value[i];
        for (int step = 0; step < 12; step++) {
            draw_gradient(&o, step);
            if (step == 5) memset(o.grad, 0, sizeof o.grad); /* norm 0: nothing to clip, nothing to divide by */
            if (step == 7) set_norm(&o, 0.5 - 5e-7);         /* below the clip, and scaled all the same */
            double norm = 0;
            for (int i = 0; i < N; i++) norm += (double)o.grad[i] * o.grad[i];
            norm = sqrt(norm);
            double factor = clipped ? fmin(1, clip / (norm + 1e-6)) : 1; /* torch.nn.utils.clip_grad_norm_ */
            for (int i = GAP; i < N; i++)
                adamw_element(&w[i], factor * o.grad[i], &m1[i], &m2[i],
                              schedule_rate(&schedule, step) * (i < GAP + 20 ? 1 : 0.25), i < GAP + 20 ? 0.1 : 0.3,
                              step + 1);
            loss_sum += o.loss[0];
            graph_forward(&o.g, &o.state);
            /* 12 updates of a few roundings each, of values up to 1 */
            for (int i = 0; i < N; i++) ck_assert_double_eq_tol(o.value[i], w[i], 64 * REAL_EPSILON);
            for (int i = 0; i < N; i++) ck_assert_double_eq_tol(o.moment1[i], m1[i], 64 * REAL_EPSILON);
            for (int i = 0; i < N; i++) ck_assert_double_eq_tol(o.moment2[i], m2[i], 64 * REAL_EPSILON);
            ck_assert_int_eq(o.state.step, step + 1);
            ck_assert_int_eq(o.state.loss_steps, step + 1);
            ck_assert_double_eq(o.state.loss, o.loss[0]);
            ck_assert_double_eq_tol(o.state.loss_sum, loss_sum, 1e-12);
            ck_assert_double_eq_tol(o.state.grad_norm, norm, 1e-12 * N);
            ck_assert_double_eq_tol(o.state.lr, schedule_rate(&schedule, step), 1e-15);
        }
        for (int i = 0; i < GAP; i++) ck_assert(o.value[i] == (real)sin(1.0 + i)); /* outside the segments */
        graph_free(&o.g);
    }
}
END_TEST

/* A loss or a gradient that is not finite freezes everything for good, whatever comes later. */
START_TEST(a_step_that_is_not_finite_freezes_the_rest) {
    struct schedule schedule = {.kind = SCHEDULE_CONSTANT, .lr = 0.05};
    static const double poison[] = {NAN, INFINITY, -INFINITY};
    for (int what = 0; what < 6; what++) {
        struct optimiser o, before;
        optimiser_open(&o, kernels[_i], 1, &schedule);
        for (int step = 0; step < 6; step++) {
            draw_gradient(&o, step);
            if (step == 2) {
                real bad = (real)poison[what % 3];
                if (what < 3)
                    o.loss[0] = bad;
                else
                    o.grad[N - 1] = bad;
                before = o;
            }
            graph_forward(&o.g, &o.state);
            ck_assert_int_eq(o.state.frozen, step >= 2);
        }
        ck_assert_int_eq(o.state.frozen_step, 2);
        ck_assert_int_eq(o.state.step, 6); /* counted all the same */
        expect_same_bits(o.value, before.value, N, "values");
        expect_same_bits(o.moment1, before.moment1, N, "first moments");
        expect_same_bits(o.moment2, before.moment2, N, "second moments");
        graph_free(&o.g);
    }
}
END_TEST

/* A finite gradient that no second moment can hold freezes as well, unless the clip takes it into range. */
START_TEST(a_gradient_without_a_square_freezes_unless_it_is_clipped) {
    struct schedule schedule = {.kind = SCHEDULE_CONSTANT, .lr = 0.05};
    for (int clipped = 0; clipped < 2; clipped++) {
        struct optimiser o, before;
        optimiser_open(&o, kernels[_i], clipped, &schedule);
        draw_gradient(&o, 0);
        graph_forward(&o.g, &o.state);
        before = o;
        o.grad[N - 1] = (real)(REAL_IS_DOUBLE ? 1e155 : 1e21);
        graph_forward(&o.g, &o.state);
        ck_assert_int_eq(o.state.frozen, !clipped || REAL_IS_DOUBLE); /* no double holds the norm's square either */
        if (o.state.frozen) {
            expect_same_bits(o.value, before.value, N, "values");
            expect_same_bits(o.moment1, before.moment1, N, "first moments");
            expect_same_bits(o.moment2, before.moment2, N, "second moments");
        }
        for (int i = 0; i < N; i++) ck_assert(isfinite(o.moment2[i]) && isfinite(o.value[i]));
        graph_free(&o.g);
    }
}
END_TEST

START_TEST(segments_out_of_order_are_refused) {
    static const struct adamw_segment bad[][2] = {
        {{0, 20, 0, 1}, {19, 2, 0, 1}}, {{0, 4, 0, 1}, {30, 11, 0, 1}}, {{0, -1, 0, 1}, {0, 1, 0, 1}}};
    for (int i = 0; i < 3; i++) {
        struct graph g;
        struct error e = {0};
        struct adamw_attr attr = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .n_segments = 2, .segments = bad[i]};
        struct tensor *in[4];
        open_graph(&g, NULL, false, false, "");
        for (int j = 0; j < 4; j++) in[j] = input3(&g, "block", N, 0, 0, false);
        adamw(&g, in[0], in[1], in[2], in[3], &attr);
        ck_assert_int_ne(graph_plan(&g, &e), ST_OK);
        ck_assert_msg(strstr(e.text, "segment") != NULL, "%s", e.text);
        graph_free(&g);
    }
}
END_TEST

Suite *check_optimiser(void);
Suite *check_optimiser(void) {
    Suite *suite = suite_create("optimiser");
    TCase *tests = tcase_create("optimiser");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, adamw_follows_its_equations, 0, (int)(sizeof kernels / sizeof *kernels));
    tcase_add_loop_test(tests, a_step_that_is_not_finite_freezes_the_rest, 0, (int)(sizeof kernels / sizeof *kernels));
    tcase_add_loop_test(tests, a_gradient_without_a_square_freezes_unless_it_is_clipped, 0,
                        (int)(sizeof kernels / sizeof *kernels));
    tcase_add_test(tests, segments_out_of_order_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}

/* check_causality.c - what holds of every recurrence, gated or not: the past does not depend on the future, nor one
 * sequence on another, nor the beginning of a sequence on its length; bit for bit. And the equations of the recurrences
 * that have no gate normaliser, written once more in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/gated/gated.h"
#include "kernels/matrix/matrix.h"
#include "kernels/stable/stable.h"
#include "tests/lib/support.h"

static const char *const kernels[] = {"reference", ""};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

enum { B = 3, N = 21, M = 3, OUTPUTS = 2 };

/* A recurrence over inputs (B,T,.) and weights without time axis. L = <out[0], w> + <out[1], w>. */
struct recurrence {
    struct graph g;
    struct tensor *out[OUTPUTS], *w[OUTPUTS];
    struct step_state state;
    int64_t T;
};

static struct tensor *over_time(struct recurrence *r, const char *name, int64_t width) {
    return input3(&r->g, name, B, r->T, width, true);
}

static void build_block(struct recurrence *r) {
    r->out[0] = scan_block(&r->g, over_time(r, "z", M * (M + 1) * N), over_time(r, "v", M * N), N, M, GATE_SOFTMAX);
}

static void build_companion(struct recurrence *r) {
    r->out[0] = scan_companion(&r->g, over_time(r, "z", (M + 1) * N), over_time(r, "v", N), N, M, GATE_SIGMOID,
                               LAYOUT_COMPANION);
}

static void build_observer(struct recurrence *r) {
    r->out[0] = scan_companion(&r->g, over_time(r, "z", (M + 1) * N), over_time(r, "v", N), N, M, GATE_SOFTMAX,
                               LAYOUT_OBSERVER);
}

static void build_diag(struct recurrence *r) {
    r->out[0] = scan_diag(&r->g, over_time(r, "a", N), over_time(r, "x", N));
}

static void build_diag_constant(struct recurrence *r) {
    r->out[0] = scan_diag(&r->g, input3(&r->g, "a", N, 0, 0, true), over_time(r, "x", N));
}

static void build_complex(struct recurrence *r) {
    struct tensor *re = over_time(r, "a_re", N), *im = over_time(r, "a_im", N), *x = over_time(r, "x_re", N);
    r->out[0] = scan_diag_complex(&r->g, re, im, x, over_time(r, "x_im", N), &r->out[1]);
}

static void build_complex_constant(struct recurrence *r) {
    struct tensor *re = input3(&r->g, "a_re", N, 0, 0, true), *im = input3(&r->g, "a_im", N, 0, 0, true);
    struct tensor *x = over_time(r, "x_re", N);
    r->out[0] = scan_diag_complex(&r->g, re, im, x, over_time(r, "x_im", N), &r->out[1]);
}

static void build_lstm(struct recurrence *r) {
    struct tensor *u = over_time(r, "u", 4 * N), *wh = input3(&r->g, "wh", 4 * N, N, 0, true);
    r->out[0] = scan_lstm(&r->g, u, wh, input3(&r->g, "bh", 4 * N, 0, 0, true));
}

/* The running maximum of exponential gates. */
static void build_stable_gates(struct recurrence *r) {
    struct tensor *i = over_time(r, "i", N), *source;
    r->out[0] = stable_gates(&r->g, i, over_time(r, "f", N), 0, &source, &r->out[1]);
}

static void (*const builders[])(struct recurrence *r) = {
    build_block,   build_companion,        build_observer, build_diag,        build_diag_constant,
    build_complex, build_complex_constant, build_lstm,     build_stable_gates};
#define N_BUILDERS (int)(sizeof builders / sizeof *builders)
enum { DIAG = 3, DIAG_CONSTANT, COMPLEX, COMPLEX_CONSTANT, LSTM };

/* Loop tests run over recurrence times kernel. */
static void open_recurrence(struct recurrence *r, int which, const char *kernel, int64_t T) {
    *r = (struct recurrence){.T = T, .state = first_state()};
    struct tensor *loss = NULL;
    open_graph(&r->g, NULL, true, false, kernel);
    builders[which](r);
    for (int j = 0; j < OUTPUTS && r->out[j]; j++) {
        tensor_keep(r->out[j]);
        r->w[j] = graph_input(&r->g, "w", 3, r->out[j]->dims, false);
        loss = dot(&r->g, r->out[j], r->w[j], loss);
    }
    graph_set_root(&r->g, loss);
    plan_graph(&r->g);
    fill_inputs(&r->g, FILL_SMALL, false);
}

static bool is_over_time(const struct recurrence *r, const struct tensor *t) {
    return t->producer < 0 && t->needs_grad && t->rank == 3 && t->dims[1] == r->T;
}

/* Other values in all inputs of sequence b from time t on. */
static void change_from(struct recurrence *r, int64_t b, int64_t t) {
    for (int i = 0; i < r->g.n_tensors; i++) {
        struct tensor *x = r->g.tensors[i];
        if (!is_over_time(r, x)) continue;
        int64_t width = x->dims[2];
        for (int64_t e = (b * r->T + t) * width; e < (b + 1) * r->T * width; e++) tensor_real(x)[e] *= (real)-0.75;
    }
}

START_TEST(the_future_and_other_sequences_change_nothing) {
    struct recurrence a, b;
    int64_t T = 37, cut = 23;
    open_recurrence(&a, _i / 2, kernels[_i % 2], T);
    open_recurrence(&b, _i / 2, kernels[_i % 2], T);
    change_from(&b, 1, cut);
    graph_forward(&a.g, &a.state);
    graph_forward(&b.g, &b.state);
    graph_backward(&a.g, &a.state);
    graph_backward(&b.g, &b.state);
    for (int j = 0; j < OUTPUTS && a.out[j]; j++) {
        int64_t width = a.out[j]->dims[2], changed = (T + cut) * width, next = 2 * T * width;
        const real *x = a.out[j]->data, *y = b.out[j]->data;
        expect_same_bits(y, x, changed, "outputs before the change");
        expect_same_bits(y + next, x + next, T * width, "outputs of the next sequence");
        ck_assert_int_ne(memcmp(x + changed, y + changed, sizeof(real) * (size_t)width), 0); /* it does matter later */
    }
    for (int i = 0; i < a.g.n_tensors; i++) { /* gradients stay within a sequence too */
        struct tensor *x = a.g.tensors[i], *y = b.g.tensors[i];
        if (!is_over_time(&a, x)) continue;
        int64_t n = T * x->dims[2];
        expect_same_bits(y->grad, x->grad, n, "gradients of the sequence before");
        expect_same_bits(y->grad + 2 * n, x->grad + 2 * n, n, "gradients of the next sequence");
    }
    graph_free(&a.g);
    graph_free(&b.g);
}
END_TEST

START_TEST(a_prefix_does_not_know_what_follows) {
    static const int64_t lengths[] = {1, 2, 16, 33, 64};
    struct recurrence whole, part;
    open_recurrence(&whole, _i / 2, kernels[_i % 2], 67);
    graph_forward(&whole.g, &whole.state);
    for (int l = 0; l < 5; l++) {
        open_recurrence(&part, _i / 2, kernels[_i % 2], lengths[l]);
        for (int i = 0; i < part.g.n_tensors; i++) {
            struct tensor *x = part.g.tensors[i], *y = whole.g.tensors[i];
            if (!is_over_time(&part, x)) continue;
            for (int b = 0; b < B; b++)
                memcpy(tensor_real(x) + b * lengths[l] * x->dims[2], tensor_real(y) + b * 67 * x->dims[2],
                       sizeof(real) * (size_t)(lengths[l] * x->dims[2]));
        }
        graph_forward(&part.g, &part.state);
        for (int j = 0; j < OUTPUTS && part.out[j]; j++)
            for (int b = 0; b < B; b++) {
                int64_t width = part.out[j]->dims[2];
                expect_same_bits(tensor_real(part.out[j]) + b * lengths[l] * width,
                                 tensor_real(whole.out[j]) + b * 67 * width, lengths[l] * width,
                                 "outputs of the prefix");
            }
        graph_free(&part.g);
    }
    graph_free(&whole.g);
}
END_TEST

/* --- equations --------------------------------------------------------------------------------------------------- */

static double at(const struct tensor *t, int64_t T, int64_t b, int64_t time, int64_t k) {
    return t->rank == 1 ? tensor_real(t)[k] : tensor_real(t)[(b * T + time) * t->dims[2] + k];
}

START_TEST(diagonal_scans_follow_their_equations) {
    for (int which = DIAG; which <= COMPLEX_CONSTANT; which++) {
        struct recurrence r;
        int64_t T = 33;
        open_recurrence(&r, which, kernels[_i], T);
        graph_forward(&r.g, &r.state);
        struct call *c = &r.g.calls[0];
        bool complex = which >= COMPLEX;
        for (int b = 0; b < B; b++)
            for (int k = 0; k < N; k++) {
                double re = 0, im = 0;
                for (int64_t t = 0; t < T; t++) {
                    double a = at(c->in[0], T, b, t, k), bi = complex ? at(c->in[1], T, b, t, k) : 0;
                    double next = a * re - bi * im + at(c->in[complex ? 2 : 1], T, b, t, k);
                    im = complex ? a * im + bi * re + at(c->in[3], T, b, t, k) : 0;
                    re = next;
                    double bound = 32 * REAL_EPSILON * (1 + fabs(re) + fabs(im));
                    expect_near(at(r.out[0], T, b, t, k), re, bound, "real part");
                    if (complex) expect_near(at(r.out[1], T, b, t, k), im, bound, "imaginary part");
                }
            }
        graph_free(&r.g);
    }
}
END_TEST

/* h is linear in x, so <h, w> = <x, dx>, over both planes of complex numbers. */
START_TEST(diagonal_scans_keep_the_adjoint_identity) {
    for (int which = DIAG; which <= COMPLEX_CONSTANT; which++) {
        struct recurrence r;
        open_recurrence(&r, which, kernels[_i], 65);
        graph_forward(&r.g, &r.state);
        graph_backward(&r.g, &r.state);
        double left = 0, right = 0, size = 0;
        for (int j = 0; j < OUTPUTS && r.out[j]; j++)
            for (int64_t i = 0; i < tensor_count(r.out[j]); i++)
                left += (double)tensor_real(r.out[j])[i] * tensor_real(r.w[j])[i];
        struct call *c = &r.g.calls[0];
        for (int j = which >= COMPLEX ? 2 : 1; j < c->n_in; j++)
            for (int64_t i = 0; i < tensor_count(c->in[j]); i++) {
                double term = (double)tensor_real(c->in[j])[i] * c->in[j]->grad[i];
                right += term;
                size += fabs(term);
            }
        ck_assert_double_eq_tol(left, right, 16 * REAL_EPSILON * size);
        graph_free(&r.g);
    }
}
END_TEST

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

START_TEST(lstm_follows_its_equations) {
    struct recurrence r;
    int64_t T = 12;
    open_recurrence(&r, LSTM, kernels[_i], T);
    graph_forward(&r.g, &r.state);
    struct call *call = &r.g.calls[0];
    const real *wh = call->in[1]->data, *bh = call->in[2]->data;
    for (int b = 0; b < B; b++) {
        double h[N] = {0}, c[N] = {0}, p[4 * N];
        for (int64_t t = 0; t < T; t++) {
            for (int o = 0; o < 4 * N; o++) {
                p[o] = at(call->in[0], T, b, t, o) + bh[o];
                for (int k = 0; k < N; k++) p[o] += wh[o * N + k] * h[k];
            }
            for (int k = 0; k < N; k++) {
                c[k] = sigmoid(p[N + k]) * c[k] + sigmoid(p[k]) * tanh(p[2 * N + k]);
                h[k] = sigmoid(p[3 * N + k]) * tanh(c[k]);
                /* weights of up to 0.9 let a rounding grow several-fold a step */
                expect_near(at(r.out[0], T, b, t, k), h[k], 2000 * REAL_EPSILON, "h");
                expect_at_most(fabs(at(r.out[0], T, b, t, k)), 1, "|h|");
            }
        }
    }
    graph_free(&r.g);
}
END_TEST

Suite *check_causality(void);
Suite *check_causality(void) {
    Suite *suite = suite_create("causality");
    TCase *tests = tcase_create("causality");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, the_future_and_other_sequences_change_nothing, 0, 2 * N_BUILDERS);
    tcase_add_loop_test(tests, a_prefix_does_not_know_what_follows, 0, 2 * N_BUILDERS);
    tcase_add_loop_test(tests, diagonal_scans_follow_their_equations, 0, N_KERNELS);
    tcase_add_loop_test(tests, diagonal_scans_keep_the_adjoint_identity, 0, N_KERNELS);
    tcase_add_loop_test(tests, lstm_follows_its_equations, 0, N_KERNELS);
    suite_add_tcase(suite, tests);
    return suite;
}

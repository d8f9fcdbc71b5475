/* check_diagonal.c - properties of the mixers with a diagonal state (mingru, rglru, s5, linoss, aussm), and of Mamba2
 * whose decay has a sign: what weights set by hand compute, and what each paper says of its recurrence. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/token/token.h"
#include "tests/lib/layer.h"

/* --- Mamba2 with a signed decay ----------------------------------------------------------------------------------- */

/* Bits as one-hot vectors. A bit 0 has no step, so that the state stays; a bit 1 has one of 40, whose decay is -1, so
 * that the state goes back and forth between 0 and what is written. */
static void parity_open(struct layer *l, const char *model, int64_t T) {
    layer_open(l, model, T, 2);
    uint32_t noise = 12345;
    layer_set_all(l, "in.weight", 1);
    layer_set_all(l, "conv.weight", 0);
    for (int c = 0; c < 6; c++) layer_values(l, "conv.weight")[3 * 6 + c] = 1; /* stored tap by tap */
    layer_values(l, "in.weight")[10 * 2] = -40;
    layer_values(l, "in.weight")[10 * 2 + 1] = 40;
    static const char *const zeros[] = {"conv.bias", "dt.bias", "A.log", "skip", "out.weight"};
    for (int i = 0; i < 5; i++) layer_set_all(l, zeros[i], 0);
    layer_set_all(l, "norm.weight", 1);
    for (int i = 0; i < 4; i++) layer_values(l, "out.weight")[i] = 1;
    for (int64_t t = 0; t < 2 * T; t++) {
        noise = noise * 1664525u + 1013904223u;
        tensor_real(l->x)[2 * t] = (real)(noise >> 31 ? 0 : 1);
        tensor_real(l->x)[2 * t + 1] = (real)(noise >> 31 ? 1 : 0);
    }
    layer_run(l);
}

/* The largest spread of the outputs of one parity, as a part of the distance between the parities, which is
 * negative or infinite where the outputs of odd counts are not all above those of even ones. */
static double spread(const struct layer *l, int64_t T) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int64_t b = 0; b < 2; b++)
        for (int64_t t = 0, odd = 0; t < T; t++) {
            odd ^= tensor_real(l->x)[2 * (b * T + t) + 1] > 0;
            low[odd] = fmin(low[odd], (double)tensor_real(l->y)[2 * (b * T + t)]);
            high[odd] = fmax(high[odd], (double)tensor_real(l->y)[2 * (b * T + t)]);
        }
    return fmax(high[0] - low[0], high[1] - low[1]) / (low[1] - high[0]);
}

/* A bit 0 writes exp(-40) of what a bit 1 writes, so 2000 of them stay below the rounding of a double. */
START_TEST(signed_decay_solves_parity_at_any_length) {
    const int64_t T = 2000;
    struct layer l;
    parity_open(&l, "mamba2:state=1,headdim=4,range=signed", T);
    double part = spread(&l, T);
    ck_assert_msg(part >= 0 && part < 64 * REAL_EPSILON, "spread %g", part);
    layer_close(&l);
    parity_open(&l, "mamba2:state=1,headdim=4", T);
    part = spread(&l, T);
    ck_assert_msg(part < 0 || part > 1, "spread %g", part); /* a positive decay forgets instead */
    layer_close(&l);
}
END_TEST

/* --- minGRU ------------------------------------------------------------------------------------------------------- */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Row i of W x + b at one token, D = 5. */
static double affine_at(struct layer *l, const char *weight, const char *bias, const real *x, int64_t i) {
    double sum = layer_values(l, bias)[i];
    for (int64_t j = 0; j < 5; j++) sum += (double)layer_values(l, weight)[i * 5 + j] * x[j];
    return sum;
}

START_TEST(mingru_is_a_running_mean) {
    static const char *const forms[] = {"mingru", "mingru:form=plain"};
    const int64_t T = 23;
    for (int form = 0; form < 2; form++) {
        struct layer l;
        layer_open(&l, forms[form], T, 5);
        layer_run(&l);
        for (int64_t b = 0; b < 2; b++)
            for (int64_t i = 0; i < 5; i++) {
                double h = 0, most = 0;
                for (int64_t t = 0; t < T; t++) {
                    const real *x = tensor_real(l.x) + (b * T + t) * 5;
                    double z = sigmoid(affine_at(&l, "z.weight", "z.bias", x, i));
                    double v = affine_at(&l, "h.weight", "h.bias", x, i);
                    if (form == 0) v = v >= 0 ? v + 0.5 : sigmoid(v);
                    h = (1 - z) * h + z * v;
                    most = fmax(most, v);
                    double y = tensor_real(l.y)[(b * T + t) * 5 + i];
                    expect_near(y, h, 64 * REAL_EPSILON, "h");
                    if (form == 0) ck_assert_msg(y > 0 && y < most, "h = %g outside 0 and %g", y, most);
                }
            }
        layer_close(&l);
    }
}
END_TEST

/* --- RG-LRU ------------------------------------------------------------------------------------------------------- */

/* a^2 + root^2 = 1, and the root keeps its digits where a is near 1. The document's first token enters whole. */
START_TEST(rglru_keeps_the_size_of_its_state) {
    static const double rates[] = {1e-12, 1e-7, 1e-3, 0.4, 3, 40};
    struct graph g;
    open_graph(&g, NULL, false, true, "");
    struct tensor *x = input3(&g, "x", 6, 0, 0, false), *root = activate(&g, x, ACT_REST);
    tensor_keep(root);
    plan_graph(&g);
    for (int i = 0; i < 6; i++) tensor_real(x)[i] = (real)(2 * rates[i]);
    struct step_state state = first_state();
    graph_forward(&g, &state);
    for (int i = 0; i < 6; i++)
        expect_near(tensor_real(root)[i] / sqrt(-expm1(-2 * rates[i])), 1, 8 * REAL_EPSILON, "root");
    graph_free(&g);
}
END_TEST

/* --- S5 ----------------------------------------------------------------------------------------------------------- */

START_TEST(s5_pairs_are_states_and_their_conjugates) {
    static const char *const steps[] = {"zoh", "bilinear"};
    static const struct {
        const char *name;
        int64_t rows, columns; /* of the kept states: the other axis is the width 4, or none */
        bool flips;
    } params[] = {{"lambda.re", 3, 1, false}, {"lambda.im", 3, 1, true}, {"step.log", 3, 1, false},
                  {"B.re", 3, 4, false},      {"B.im", 3, 4, true},      {"C.re", 4, 3, false},
                  {"C.im", 4, 3, true}};
    for (int step = 0; step < 2; step++) {
        struct layer pairs, all;
        char text[2][64];
        snprintf(text[0], sizeof text[0], "s5:state=3,step=%s", steps[step]);
        snprintf(text[1], sizeof text[1], "s5:state=6,conj=no,step=%s", steps[step]);
        layer_open(&pairs, text[0], 31, 4);
        layer_open(&all, text[1], 31, 4);
        for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
            const real *from = layer_values(&pairs, params[i].name);
            real *to = layer_values(&all, params[i].name), sign = params[i].flips ? -1 : 1;
            for (int64_t r = 0; r < params[i].rows; r++)
                for (int64_t c = 0; c < params[i].columns; c++) {
                    int64_t n = params[i].columns, at = r * n + c;
                    if (n == 3) { /* C: states are columns */
                        to[r * 6 + c] = from[at];
                        to[r * 6 + 3 + c] = sign * from[at];
                    } else {
                        to[at] = from[at];
                        to[3 * n + at] = sign * from[at];
                    }
                }
        }
        memcpy(layer_values(&all, "skip"), layer_values(&pairs, "skip"), 4 * sizeof(real));
        layer_run(&pairs);
        layer_run(&all);
        expect_close(tensor_real(all.y), tensor_real(pairs.y), tensor_count(pairs.y), 64 * REAL_EPSILON, steps[step]);
        layer_close(&pairs);
        layer_close(&all);
    }
}
END_TEST

/* At lambda = 0 the quotient has its limit, and on both sides of |z| = 1/2, where its form changes, the same value. */
START_TEST(discretisation_is_smooth) {
    static const double lambdas[] = {0, 0.499999, 0.500001};
    struct graph g;
    struct tensor *out[DISCRETISE_OUTPUTS];
    open_graph(&g, NULL, false, true, "");
    struct tensor *in[3] = {input3(&g, "re", 3, 0, 0, false), input3(&g, "im", 3, 0, 0, false),
                            input3(&g, "step", 3, 0, 0, false)};
    discretise(&g, in[0], in[1], in[2], &(struct discretise_attr){DISCRETISE_ZOH, false}, out);
    for (int i = 0; i < DISCRETISE_OUTPUTS; i++) tensor_keep(out[i]);
    plan_graph(&g);
    for (int i = 0; i < 3; i++) {
        tensor_real(in[0])[i] = 0;
        tensor_real(in[1])[i] = (real)(2 * lambdas[i]);
        tensor_real(in[2])[i] = (real)0.5;
    }
    struct step_state state = first_state();
    graph_forward(&g, &state);
    double got[3][4];
    for (int i = 0; i < 3; i++)
        for (int o = 0; o < 4; o++) got[i][o] = tensor_real(out[o])[i];
    expect_near(got[0][0], 1, 0, "a");
    expect_near(got[0][1], 0, 0, "a");
    expect_near(got[0][2], 0.5, 0, "b");
    expect_near(got[0][3], 0, 0, "b");
    for (int i = 1; i < 3; i++) { /* purely imaginary z: b = step (sin y + i (1 - cos y)) / y */
        double y = (double)tensor_real(in[1])[i] * 0.5;
        expect_near(got[i][2], 0.5 * sin(y) / y, 4 * REAL_EPSILON, "b.re");
        expect_near(got[i][3], 0.5 * (1 - cos(y)) / y, 4 * REAL_EPSILON, "b.im");
    }
    graph_free(&g);
}
END_TEST

/* --- LinOSS ------------------------------------------------------------------------------------------------------- */

/* One oscillator of one channel, as position and velocity: the mixer runs the recurrence of the position alone. */
START_TEST(linoss_is_an_oscillator) {
    static const char *const steps[] = {"linoss:state=1", "linoss:state=1,step=imex"};
    for (int imex = 0; imex < 2; imex++) {
        struct layer l;
        layer_open(&l, steps[imex], 40, 1);
        layer_run(&l);
        double A = fmax(layer_values(&l, "A")[0], 0), d = sigmoid(layer_values(&l, "step")[0]);
        double B[2] = {layer_values(&l, "B.re")[0], layer_values(&l, "B.im")[0]};
        double C[2] = {layer_values(&l, "C.re")[0], layer_values(&l, "C.im")[0]};
        for (int64_t b = 0; b < 2; b++) {
            double z[2] = {0}, w[2] = {0};
            for (int64_t t = 0; t < 40; t++) {
                double x = tensor_real(l.x)[b * 40 + t], y = layer_values(&l, "skip")[0] * x;
                for (int part = 0; part < 2; part++) {
                    z[part] = (z[part] + d * (B[part] * x - A * w[part])) / (imex ? 1 : 1 + d * d * A);
                    w[part] += d * z[part];
                    y += (part ? -1 : 1) * C[part] * w[part];
                }
                expect_near(tensor_real(l.y)[b * 40 + t], y, 1024 * REAL_EPSILON, steps[imex]);
            }
        }
        layer_close(&l);
    }
}
END_TEST

/* A position w that starts at 1 and is left alone: w_t^2 - w_{t-1} w_{t+1} is multiplied at each step by the product of
 * the two eigenvalues, |eigenvalue|^2, which is 1 / (1 + dt^2 A) for im, and 1 for imex while dt^2 A <= 4. */
START_TEST(linoss_eigenvalues_are_as_its_paper_says) {
    static const char *const steps[] = {"linoss:state=1", "linoss:state=1,step=imex"};
    for (int imex = 0; imex < 2; imex++) {
        struct layer l;
        layer_open(&l, steps[imex], 12, 1);
        layer_set_all(&l, "A", 1.5);
        layer_set_all(&l, "step", 0.3);
        for (int i = 0; i < 5; i++)
            layer_set_all(&l, (const char *[]){"B.re", "C.re", "B.im", "C.im", "skip"}[i], i < 2 ? 1 : 0);
        for (int64_t t = 0; t < 24; t++) tensor_real(l.x)[t] = t % 12 == 0;
        layer_run(&l);
        const real *w = tensor_real(l.y);
        double d = sigmoid(0.3), want = imex ? 1 : 1 / (1 + d * d * 1.5);
        for (int64_t t = 1; t < 10; t++) {
            double before = (double)w[t] * w[t] - (double)w[t - 1] * w[t + 1];
            double after = (double)w[t + 1] * w[t + 1] - (double)w[t] * w[t + 2];
            expect_near(after / before, want, 512 * REAL_EPSILON, steps[imex]);
        }
        layer_close(&l);
    }
}
END_TEST

/* --- AUSSM -------------------------------------------------------------------------------------------------------- */

/* A state that nothing enters after its first token keeps its length, and its angle is the sum of the turns. */
START_TEST(aussm_states_keep_their_length) {
    static const char *const kernels[] = {"reference", ""};
    enum { T = 3000, D = 3 };
    struct graph g;
    struct step_state state = first_state();
    open_graph(&g, NULL, false, true, kernels[_i]);
    struct tensor *x = input3(&g, "x", 1, T, D, false), *u = input3(&g, "u", 1, T, 2, false);
    struct tensor *w = input3(&g, "w", D, 2, 0, false), *b = input3(&g, "b", D, 0, 0, false), *k[4], *y[2];
    for (int i = 0; i < 4; i++) k[i] = input3(&g, (const char *[]){"k0", "k1", "k2", "k3"}[i], 1, 0, 0, false);
    for (int i = 0; i < 2; i++) tensor_keep(y[i] = scan_turned(&g, x, u, w, b, k[2 * i], k[2 * i + 1]));
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int64_t e = 0; e < T * D; e++) tensor_real(x)[e] = e < D;
    for (int i = 0; i < 4; i++) tensor_real(k[i])[0] = (const real[]){1, 0, 0, -1}[i]; /* Re h, Im h */
    graph_forward(&g, &state);
    for (int64_t i = 0; i < D; i++) {
        double angle = 0;
        for (int64_t t = 0; t < T; t++) {
            double re = tensor_real(y[0])[t * D + i], im = tensor_real(y[1])[t * D + i];
            for (int64_t j = 0; j < 2 && t > 0; j++)
                angle += (double)tensor_real(w)[i * 2 + j] * tensor_real(u)[t * 2 + j];
            if (t > 0) angle += tensor_real(b)[i];
            expect_near(re * re + im * im, 1, 256 * REAL_EPSILON, "squared length");
            expect_near(re, cos(angle), 2048 * REAL_EPSILON, "real part");
            expect_near(im, sin(angle), 2048 * REAL_EPSILON, "imaginary part");
        }
    }
    graph_free(&g);
}
END_TEST

START_TEST(misfits_name_their_numbers) {
    expect_layer_refused("rglru:heads=5", 12, "heads=5", "12");
    expect_layer_refused("s5:state=9,blocks=2", 12, "blocks=2", "state=9");
    expect_layer_refused("s5:state=2000", 12, "state=2000", "1024");
}
END_TEST

Suite *check_diagonal(void);
Suite *check_diagonal(void) {
    Suite *suite = suite_create("diagonal");
    TCase *tests = tcase_create("diagonal");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_test(tests, signed_decay_solves_parity_at_any_length);
    tcase_add_test(tests, mingru_is_a_running_mean);
    tcase_add_test(tests, rglru_keeps_the_size_of_its_state);
    tcase_add_test(tests, s5_pairs_are_states_and_their_conjugates);
    tcase_add_test(tests, discretisation_is_smooth);
    tcase_add_test(tests, linoss_is_an_oscillator);
    tcase_add_test(tests, linoss_eigenvalues_are_as_its_paper_says);
    tcase_add_loop_test(tests, aussm_states_keep_their_length, 0, 2);
    tcase_add_test(tests, misfits_name_their_numbers);
    suite_add_tcase(suite, tests);
    return suite;
}

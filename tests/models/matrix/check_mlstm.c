/* check_mlstm.c - properties of mLSTM: what the running maximum of its gates changes and what it does not, of every
 * kernel; and the mixer's parameters, initial values and messages. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "kernels/stable/stable.h"
#include "tests/lib/support.h"

static const char *const kernels[] = {"reference", ""};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

/* The mixer's core as it builds it: gates, (1, v), recurrence, read-out. */
struct memory {
    struct graph g;
    int64_t B, T, H, dk;
    struct tensor *q, *k, *v, *i, *f, *decay, *source, *m, *read, *h;
};

static void memory_open(struct memory *x, const char *kernel, int64_t T, double start, double eps) {
    int64_t B = 2, H = 3, dk = 5, rows[4] = {B, T, H, dk};
    *x = (struct memory){.B = B, .T = T, .H = H, .dk = dk};
    open_graph(&x->g, NULL, true, true, kernel);
    x->q = graph_input(&x->g, "q", 4, rows, true);
    x->k = graph_input(&x->g, "k", 4, rows, true);
    x->v = graph_input(&x->g, "v", 4, rows, true);
    x->i = input3(&x->g, "i", B, T, H, true);
    x->f = input3(&x->g, "f", B, T, H, true);
    x->decay = stable_gates(&x->g, x->i, x->f, start, &x->source, &x->m);
    struct outer_gates gates = {.decay = x->decay, .source = x->source};
    x->read = scan_outer(&x->g, x->q, x->k, prepend_one(&x->g, x->v, 1), &gates, H, H, 1 / sqrt((double)dk));
    x->h = stable_readout(&x->g, x->read, x->m, eps);
    tensor_keep(x->decay);
    tensor_keep(x->source);
    tensor_keep(x->m);
    tensor_keep(x->read);
    graph_set_root(&x->g, x->h);
    plan_graph(&x->g);
    fill_inputs(&x->g, FILL_SMALL, false);
}

static void walk(struct memory *x) {
    struct step_state state = first_state();
    graph_forward(&x->g, &state);
}

static void multiply(struct tensor *t, double factor) {
    for (int64_t e = 0; e < tensor_count(t); e++) tensor_real(t)[e] *= (real)factor;
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* --- the equations without the running maximum -------------------------------------------------------------------- */

/* Head h of token t of sequence b, m = 0: C = sig(f) C + exp(i) k v^T / sqrt(dk), n likewise, h = C^T q / (max(|n.q|,
 * 1) + eps). C [dk][1 + dk], n its first column. */
static void plain_token(const struct memory *x, int64_t b, int64_t t, int64_t h, double eps, double *C, real *out) {
    int64_t row = (b * x->T + t) * x->H + h, dk = x->dk, width = 1 + dk;
    const real *q = tensor_real(x->q) + row * dk, *k = tensor_real(x->k) + row * dk, *v = tensor_real(x->v) + row * dk;
    double F = sigmoid(tensor_real(x->f)[row]), I = exp(tensor_real(x->i)[row]), sums[16] = {0};
    for (int64_t a = 0; a < dk; a++)
        for (int64_t j = 0; j < width; j++) {
            C[a * width + j] = F * C[a * width + j] + I * k[a] / sqrt((double)dk) * (j ? v[j - 1] : 1);
            sums[j] += C[a * width + j] * q[a];
        }
    for (int64_t j = 0; j < dk; j++) out[j] = (real)(sums[1 + j] / (fmax(fabs(sums[0]), 1) + eps));
}

/* exp(m) is at most e^0.9 here: eps = 1e-6 in the place of eps exp(m) is no more than 1.5e-6 off. Queries are long, so
 * that |n.q| is the larger of the two in some places and 1 in others. */
START_TEST(the_running_maximum_changes_nothing_but_the_range) {
    static const double eps[] = {0, 1e-6};
    for (int e = 0; e < 2; e++) {
        struct memory x;
        memory_open(&x, kernels[_i], 43, 0, eps[e]);
        multiply(x.q, 3);
        walk(&x);
        int64_t floors = 0, rows = x.B * x.T * x.H;
        for (int64_t b = 0; b < x.B; b++)
            for (int64_t h = 0; h < x.H; h++) {
                double C[5 * 6] = {0};
                for (int64_t t = 0; t < x.T; t++) {
                    real want[5];
                    int64_t row = (b * x.T + t) * x.H + h;
                    plain_token(&x, b, t, h, eps[e], C, want);
                    floors += fabs((double)tensor_real(x.read)[row * 6]) < exp(-(double)tensor_real(x.m)[row]);
                    expect_close(tensor_real(x.h) + row * 5, want, 5, 256 * REAL_EPSILON + 2 * eps[e], "h");
                }
            }
        ck_assert_msg(floors > rows / 8 && floors < rows * 7 / 8, "%lld of %lld read-outs are not divided by |n.q|",
                      (long long)floors, (long long)rows);
        graph_free(&x.g);
    }
}
END_TEST

/* A shift of i and of the first m shifts every m and leaves the gates; h follows where exp(-m) is the divisor. */
START_TEST(offsets_of_m_cancel) {
    const double shift = 0.75;
    struct memory x, y;
    memory_open(&x, kernels[_i], 43, 0, 1e-6);
    memory_open(&y, kernels[_i], 43, shift, 1e-6);
    multiply(x.q, 3);
    multiply(y.q, 3);
    for (int64_t e = 0; e < tensor_count(y.i); e++) tensor_real(y.i)[e] += (real)shift;
    walk(&x);
    walk(&y);
    int64_t rows = tensor_count(x.m), free_of_m = 0, bound_to_m = 0;
    expect_close(y.decay->data, x.decay->data, rows, 16 * REAL_EPSILON, "decay");
    expect_close(y.source->data, x.source->data, rows, 16 * REAL_EPSILON, "source");
    for (int64_t r = 0; r < rows; r++) {
        double den = fabs((double)tensor_real(x.read)[r * 6]), m = tensor_real(x.m)[r];
        const real *before = tensor_real(x.h) + r * 5, *after = tensor_real(y.h) + r * 5;
        expect_near(tensor_real(y.m)[r], m + shift, 64 * REAL_EPSILON, "m");
        if (den > exp(-m)) {
            expect_close(after, before, 5, 256 * REAL_EPSILON, "h");
            free_of_m++;
        } else if (den < exp(-m - shift)) {
            for (int j = 0; j < 5; j++)
                expect_near(after[j], before[j] * (exp(-m) + 1e-6) / (exp(-m - shift) + 1e-6), 1024 * REAL_EPSILON,
                            "h over exp(-m)");
            bound_to_m++;
        }
    }
    ck_assert_int_gt(free_of_m, rows / 8);
    ck_assert_int_gt(bound_to_m, rows / 8);
    graph_free(&x.g);
    graph_free(&y.g);
}
END_TEST

/* --- range -------------------------------------------------------------------------------------------------------- */

/* Raw gates in [-20, 20]: none underflows. One of the two is 1 at each token. */
START_TEST(gates_lie_in_0_1) {
    struct memory x;
    memory_open(&x, kernels[_i], 1009, 0, 1e-6);
    multiply(x.i, 20 / 0.9);
    multiply(x.f, 20 / 0.9);
    walk(&x);
    for (int64_t e = 0; e < tensor_count(x.m); e++) {
        double F = tensor_real(x.decay)[e], I = tensor_real(x.source)[e];
        ck_assert_msg(F > 0 && I > 0 && fmax(F, I) == 1, "element %lld: decay %g, source %g", (long long)e, F, I);
    }
    graph_free(&x.g);
}
END_TEST

static void expect_finite(const real *x, int64_t n, const char *what, int pattern) {
    for (int64_t e = 0; e < n; e++)
        if (!isfinite(x[e])) ck_abort_msg("pattern %d: %s[%lld] is %g", pattern, what, (long long)e, (double)x[e]);
}

/* Raw gates (i, f) of +-50 over 2000 tokens, at random and all alike, and i so low that exp(-m) is beyond every number:
 * h, the state read and all gradients stay finite. */
START_TEST(large_gates_stay_finite) {
    static const double patterns[][2] = {{0, 0}, {-50, -50}, {50, 50}, {50, -50}, {-50, 50}, {-2000, -50}};
    for (int p = 0; p < 6; p++) {
        struct memory x;
        struct step_state state = first_state();
        memory_open(&x, kernels[_i], 2000, 0, 1e-6);
        for (int64_t e = 0; e < tensor_count(x.i); e++) {
            real *i = tensor_real(x.i) + e, *f = tensor_real(x.f) + e;
            *i = p ? (real)patterns[p][0] : *i < 0 ? -50 : 50;
            *f = p ? (real)patterns[p][1] : *f < 0 ? -50 : 50;
        }
        graph_forward(&x.g, &state);
        for (int64_t e = 0; e < tensor_count(x.h); e++) x.h->grad[e] = (real)(e % 5) - (real)1.5;
        graph_backward(&x.g, &state);
        expect_finite(x.h->data, tensor_count(x.h), "h", p);
        expect_finite(x.read->data, tensor_count(x.read), "C^T q", p);
        struct tensor *inputs[] = {x.q, x.k, x.v, x.i, x.f};
        for (int j = 0; j < 5; j++) expect_finite(inputs[j]->grad, tensor_count(inputs[j]), inputs[j]->name, p);
        bool silent = p == 5, any = false;
        for (int64_t e = 0; e < tensor_count(x.h); e++) any |= tensor_real(x.h)[e] != 0;
        ck_assert_msg(any == !silent, "pattern %d: h is %s", p, any ? "not 0" : "0 everywhere");
        graph_free(&x.g);
    }
}
END_TEST

/* C = I k v^T / sqrt(dk): the first value is read back, by as much as the score allows. */
START_TEST(one_token) {
    struct memory x;
    memory_open(&x, kernels[_i], 1, 0, 1e-6);
    walk(&x);
    for (int64_t r = 0; r < x.B * x.H; r++) {
        double i = tensor_real(x.i)[r], m = fmax(log(sigmoid(tensor_real(x.f)[r])), i), score = 0;
        real want[5];
        for (int j = 0; j < 5; j++)
            score += (double)tensor_real(x.q)[r * 5 + j] * tensor_real(x.k)[r * 5 + j] * exp(i - m) / sqrt(5);
        for (int j = 0; j < 5; j++)
            want[j] = (real)(tensor_real(x.v)[r * 5 + j] * score / (fmax(fabs(score), exp(-m)) + 1e-6));
        expect_near(tensor_real(x.m)[r], m, 8 * REAL_EPSILON, "m");
        expect_close(tensor_real(x.h) + r * 5, want, 5, 64 * REAL_EPSILON, "h");
    }
    graph_free(&x.g);
}
END_TEST

/* --- pieces ------------------------------------------------------------------------------------------------------- */

/* Blocks as wide as the whole are the dense map with the weight the other way round; blocks of 1 a scale. */
START_TEST(block_maps_lie_between_scale_and_linear) {
    struct graph g;
    open_graph(&g, NULL, false, true, kernels[_i]);
    struct tensor *x = input3(&g, "x", 3, 7, 6, true), *w = input3(&g, "w", 6, 6, 0, true);
    struct tensor *turned = input3(&g, "turned", 6, 6, 0, true), *each = input3(&g, "each", 6, 1, 0, true);
    struct tensor *y[] = {linear_blocks(&g, x, w), linear(&g, x, turned, NULL), linear_blocks(&g, x, each),
                          scale(&g, x, graph_reshape(&g, each, 1, (int64_t[]){6}))};
    for (int i = 0; i < 4; i++) tensor_keep(y[i]);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) tensor_real(turned)[i * 6 + j] = tensor_real(w)[j * 6 + i];
    struct step_state state = first_state();
    graph_forward(&g, &state);
    expect_close(y[0]->data, y[1]->data, tensor_count(y[0]), 16 * REAL_EPSILON, "one block");
    expect_close(y[2]->data, y[3]->data, tensor_count(y[2]), 0, "blocks of 1");
    graph_free(&g);
}
END_TEST

/* With one head, LayerNorm of heads is LayerNorm with the weight 1 + w. */
START_TEST(head_norm_of_one_head_is_layernorm) {
    struct graph g;
    open_graph(&g, NULL, false, true, kernels[_i]);
    struct tensor *x = input3(&g, "x", 3, 7, 10, true), *w = input3(&g, "w", 1, 10, 0, true);
    struct tensor *whole = input3(&g, "whole", 10, 0, 0, true), *zero = input3(&g, "zero", 10, 0, 0, true);
    struct tensor *y = layernorm_heads(&g, x, w, 1e-5), *z = layernorm(&g, x, whole, zero, 1e-5);
    tensor_keep(y);
    tensor_keep(z);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int i = 0; i < 10; i++) {
        tensor_real(whole)[i] = 1 + tensor_real(w)[i];
        tensor_real(zero)[i] = 0;
    }
    struct step_state state = first_state();
    graph_forward(&g, &state);
    expect_close(y->data, z->data, tensor_count(y), 32 * REAL_EPSILON, "y");
    graph_free(&g);
}
END_TEST

/* --- the mixer ---------------------------------------------------------------------------------------------------- */

static const real *values_of(const struct trial *t, const char *name) {
    const struct param *p = params_find(&t->params, name);
    ck_assert_msg(p != NULL, "there is no parameter %s", name);
    return t->params.value + p->offset;
}

/* up 4 D^2, convolution 2 D (conv + 1), three times 2 D * 4, gates 2 H (6 D + 1), norm and skip 2 D each, down 2
 * D^2. */
START_TEST(parameters_by_hand) {
    static const struct {
        const char *model;
        int64_t D, H, conv, want; /* want: counted once more, without the formula */
    } cases[] = {{"mlstm", 128, 4, 4, 65536 + 1280 + 3072 + 6152 + 512 + 32768},
                 {"mlstm:heads=2,conv=3", 64, 2, 3, 16384 + 512 + 1536 + 1540 + 256 + 8192}};
    for (int i = 0; i < 2; i++) {
        struct trial t;
        int64_t D = cases[i].D, V = 6, rest = V * D + 2 * D + V * D + V; /* embedding, two norms, head */
        struct trial_shape s = {.model = cases[i].model, .B = 1, .T = 2, .V = V, .D = D, .layers = 1};
        trial_open(&t, &s, 1);
        int64_t mixer = 6 * D * D + 2 * D * (cases[i].conv + 1) + 24 * D + 2 * cases[i].H * (6 * D + 1) + 4 * D;
        ck_assert_int_eq(mixer, cases[i].want);
        ck_assert_int_eq(params_trained(&t.params), rest + mixer);
        trial_close(&t);
    }
}
END_TEST

START_TEST(gates_start_open_to_the_past) {
    struct trial t;
    struct trial_shape s = {.model = "mlstm:heads=64", .B = 1, .T = 2, .V = 5, .D = 64, .layers = 1};
    trial_open(&t, &s, 7);
    const real *w = values_of(&t, "layers.0.mixer.gates.weight"), *b = values_of(&t, "layers.0.mixer.gates.bias");
    const real *norm = values_of(&t, "layers.0.mixer.norm.weight"), *skip = values_of(&t, "layers.0.mixer.skip");
    double sum = 0, squares = 0;
    for (int64_t e = 0; e < 128 * 384; e++) expect_near(w[e], 0, 0, "gates.weight");
    for (int h = 0; h < 64; h++) {
        sum += b[h] / 64;
        squares += (double)b[h] * b[h] / 64;
        expect_near(b[64 + h], 3 + 3 * h / 63.0, 4 * REAL_EPSILON, "bias of f");
    }
    /* The mean of 64 numbers of N(0, 0.1^2) scatters by 0.1 / 8 and the root mean square by 0.1 / sqrt(128): a little
     * more than three sigma of each. The seed is fixed: the mean is -.005, the root mean square .093. */
    ck_assert_msg(fabs(sum) < 0.04 && fabs(sqrt(squares) - 0.1) < 0.03, "biases of i: mean %g, root mean square %g",
                  sum, sqrt(squares));
    for (int64_t e = 0; e < 128; e++) {
        expect_near(norm[e], 0, 0, "norm.weight, less 1");
        expect_near(skip[e], 1, 0, "skip");
    }
    trial_close(&t);
}
END_TEST

/* Outer maps and block maps start by the width of the net, the branch's last by its layers as well. */
START_TEST(maps_start_as_those_of_the_release) {
    for (int layers = 1; layers <= 3; layers += 2) {
        const struct {
            const char *name;
            double sd;
        } maps[] = {{"layers.0.mixer.up.weight", sqrt(0.4 / 64)},
                    {"layers.0.mixer.q.weight", sqrt(0.4 / 64)},
                    {"layers.0.mixer.k.weight", sqrt(0.4 / 64)},
                    {"layers.0.mixer.v.weight", sqrt(0.4 / 64)},
                    {"layers.0.mixer.down.weight", 0.25 / layers}};
        struct trial t;
        struct trial_shape s = {.model = "mlstm", .B = 1, .T = 2, .V = 5, .D = 64, .layers = layers};
        trial_open(&t, &s, 7);
        for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
            const real *w = values_of(&t, maps[i].name);
            int64_t n = params_find(&t.params, maps[i].name)->count;
            double squares = 0, fourth = 0;
            for (int64_t e = 0; e < n; e++) {
                squares += (double)w[e] * w[e] / (double)n;
                fourth += pow((double)w[e], 4) / (double)n;
            }
            expect_near(sqrt(squares) / maps[i].sd, 1, 0.1, maps[i].name);
            expect_near(fourth / (squares * squares), 3, 0.9, maps[i].name); /* a normal's; a uniform's is 1.8 */
        }
        trial_close(&t);
    }
}
END_TEST

START_TEST(misfits_name_their_numbers) {
    static const struct {
        const char *model;
        int64_t D;
        const char *text;
    } bad[] = {{"mlstm:heads=5", 12, "mlstm: heads=5 does not divide the inner width 2 * 12 = 24"},
               {"mlstm", 6, NULL},
               {"mlstm:heads=3", 9, "mlstm: the inner width 2 * 9 = 18 is not made of blocks of 4 channels"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model_choice choice;
        struct error e = {0};
        struct dims d = {.B = 2, .T = 6, .D = bad[i].D};
        ck_assert_int_eq(model_parse(&choice, bad[i].model, &e), ST_OK);
        ck_assert_int_eq(choice.model->check(choice.inst, &d, &e), bad[i].text ? ST_USAGE : ST_OK);
        ck_assert_msg(!bad[i].text || strstr(e.text, bad[i].text), "%s", e.text);
    }
}
END_TEST

Suite *check_mlstm(void);
Suite *check_mlstm(void) {
    Suite *suite = suite_create("mlstm");
    TCase *tests = tcase_create("mlstm");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, the_running_maximum_changes_nothing_but_the_range, 0, N_KERNELS);
    tcase_add_loop_test(tests, offsets_of_m_cancel, 0, N_KERNELS);
    tcase_add_loop_test(tests, gates_lie_in_0_1, 0, N_KERNELS);
    tcase_add_loop_test(tests, large_gates_stay_finite, 0, N_KERNELS);
    tcase_add_loop_test(tests, one_token, 0, N_KERNELS);
    tcase_add_loop_test(tests, block_maps_lie_between_scale_and_linear, 0, N_KERNELS);
    tcase_add_loop_test(tests, head_norm_of_one_head_is_layernorm, 0, N_KERNELS);
    tcase_add_test(tests, parameters_by_hand);
    tcase_add_test(tests, gates_start_open_to_the_past);
    tcase_add_test(tests, maps_start_as_those_of_the_release);
    tcase_add_test(tests, misfits_name_their_numbers);
    suite_add_tcase(suite, tests);
    return suite;
}

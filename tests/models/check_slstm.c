/* check_slstm.c - properties of sLSTM's recurrence, of every kernel: its form without a running maximum, its range, and
 * what does not reach h; and of the nets that have mLSTM and sLSTM in turn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/stable/stable.h"
#include "tests/lib/support.h"

static const char *const kernels[] = {"reference", ""};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

enum { B = 2, T = 43, H = 3, DH = 5, D = H * DH };

struct cell {
    struct graph g;
    struct tensor *raw[SLSTM_GATES], *R, *b, *h;
};

static void cell_open(struct cell *x, const char *kernel, int64_t tokens) {
    static const char *const names[] = {"i", "f", "z", "o"};
    open_graph(&x->g, NULL, true, true, kernel);
    for (int i = 0; i < SLSTM_GATES; i++) x->raw[i] = input3(&x->g, names[i], B, tokens, D, true);
    x->R = input3(&x->g, "R", 4 * D, DH, 0, true);
    x->b = input3(&x->g, "b", 4 * D, 0, 0, true);
    x->h = scan_slstm(&x->g, x->raw, x->R, x->b);
    graph_set_root(&x->g, x->h);
    plan_graph(&x->g);
    fill_inputs(&x->g, FILL_SMALL, false);
}

static void walk(struct cell *x) {
    struct step_state state = first_state();
    graph_forward(&x->g, &state);
    for (int64_t e = 0; e < tensor_count(x->h); e++) x->h->grad[e] = (real)(e % 5) - (real)1.5;
    graph_backward(&x->g, &state);
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* --- the recurrence ----------------------------------------------------------------------------------------------- */

/* c_t = sig(f) c_{t-1} + exp(i) tanh(z), n_t likewise: small gates need no maximum. */
START_TEST(the_running_maximum_changes_nothing_but_the_range) {
    struct cell x;
    cell_open(&x, kernels[_i], T);
    walk(&x);
    for (int64_t head = 0; head < B * H; head++) {
        int64_t b = head / H, k = head % H;
        double h[DH] = {0}, c[DH] = {0}, n[DH] = {0}, next[DH];
        for (int64_t t = 0; t < T; t++) {
            for (int64_t j = 0; j < DH; j++) {
                double p[SLSTM_GATES];
                for (int g = 0; g < SLSTM_GATES; g++) {
                    int64_t row = (k * 4 + g) * DH + j; /* as the weights are stored */
                    p[g] = (double)tensor_real(x.raw[g])[(b * T + t) * D + k * DH + j] + tensor_real(x.b)[row];
                    for (int i = 0; i < DH; i++) p[g] += (double)tensor_real(x.R)[row * DH + i] * h[i];
                }
                c[j] = sigmoid(p[SLSTM_F]) * c[j] + exp(p[SLSTM_I]) * tanh(p[SLSTM_Z]);
                n[j] = sigmoid(p[SLSTM_F]) * n[j] + exp(p[SLSTM_I]);
                next[j] = sigmoid(p[SLSTM_O]) * c[j] / n[j];
            }
            memcpy(h, next, sizeof h);
            for (int64_t j = 0; j < DH; j++)
                expect_near(tensor_real(x.h)[(b * T + t) * D + k * DH + j], h[j], 512 * REAL_EPSILON, "h");
        }
    }
    graph_free(&x.g);
}
END_TEST

/* Raw gates of +-800 over 300 tokens, at random and all alike: |h| < 1, and all gradients stay finite. */
START_TEST(large_gates_stay_finite) {
    static const double patterns[][2] = {{0, 0}, {800, 800}, {-800, 800}, {800, -800}, {-800, -800}};
    for (int p = 0; p < 5; p++) {
        struct cell x;
        cell_open(&x, kernels[_i], 300);
        for (int gate = SLSTM_I; gate <= SLSTM_F; gate++)
            for (int64_t e = 0; e < tensor_count(x.h); e++) {
                real *at = tensor_real(x.raw[gate]) + e;
                *at = p ? (real)patterns[p][gate] : *at < 0 ? -800 : 800;
            }
        walk(&x);
        for (int64_t e = 0; e < tensor_count(x.h); e++)
            ck_assert_msg(fabs((double)tensor_real(x.h)[e]) < 1, "pattern %d: |h| = %g", p,
                          (double)tensor_real(x.h)[e]);
        struct tensor *inputs[] = {x.raw[0], x.raw[1], x.raw[2], x.raw[3], x.R, x.b};
        for (int i = 0; i < 6; i++)
            for (int64_t e = 0; e < tensor_count(inputs[i]); e++)
                ck_assert_msg(isfinite(inputs[i]->grad[e]), "pattern %d: gradient of %s", p, inputs[i]->name);
        graph_free(&x.g);
    }
}
END_TEST

/* c and n scale alike with the bias of i: h does not change, and the bias has no gradient. */
START_TEST(the_bias_of_i_is_inert) {
    struct cell x;
    cell_open(&x, kernels[_i], T);
    walk(&x);
    real *before = copy_reals(x.h->data, tensor_count(x.h));
    double most = 0, of_i = 0;
    for (int64_t e = 0; e < 4 * D; e++) {
        double d = fabs((double)x.b->grad[e]);
        if (e / DH % 4 == SLSTM_I) of_i = fmax(of_i, d);
        if (e / DH % 4 == SLSTM_F) most = fmax(most, d);
    }
    expect_at_most(of_i / most, 64 * REAL_EPSILON, "gradient of the bias of i");
    for (int64_t e = 0; e < 4 * D; e++)
        if (e / DH % 4 == SLSTM_I) tensor_real(x.b)[e] += (real)1.25;
    walk(&x);
    expect_close(x.h->data, before, tensor_count(x.h), 256 * REAL_EPSILON, "h");
    free(before);
    graph_free(&x.g);
}
END_TEST

/* --- the mixers --------------------------------------------------------------------------------------------------- */

static const struct trial_shape small = {.B = 2, .T = 6, .V = 5, .D = 12, .layers = 3, .mlp = MLP_NONE};

static const struct param *param_of(const struct trial *t, int layer, const char *name) {
    char full[80];
    snprintf(full, sizeof full, "layers.%d.%s", layer, name);
    return params_find(&t->params, full);
}

/* The bias of channel j of a head is 5 - 12 (j / (dh - 1))^(0.3 + 1.3 layer / (layers - 1)); other biases are 0. */
START_TEST(forget_gates_start_by_a_power_law) {
    struct trial t;
    struct trial_shape s = small;
    s.model = "slstm:heads=3";
    trial_open(&t, &s, 7);
    for (int layer = 0; layer < 3; layer++) {
        const struct param *p = param_of(&t, layer, "mixer.bias");
        ck_assert(p && p->count == 48);
        for (int64_t e = 0; e < 48; e++) {
            double want = 5 - 12 * pow((double)(e % 4) / 3, 0.3 + 1.3 * layer / 2);
            expect_near(t.params.value[p->offset + e], e / 4 % 4 == SLSTM_F ? want : 0, 8 * REAL_EPSILON, "bias");
        }
    }
    trial_close(&t);
}
END_TEST

/* m layers of mLSTM, s of sLSTM, and so on; an MLP after sLSTM alone; the state is that of the layers together. */
START_TEST(layers_take_their_turns) {
    static const struct {
        const char *model, *turns;
    } cases[] = {{"xlstm:heads=3", "msm"},     {"xlstm:heads=3,s=2", "mss"}, {"xlstm:heads=3,m=2", "mms"},
                 {"xlstm:heads=3,m=0", "sss"}, {"xlstm:heads=3,s=0", "mmm"}, {"slstm:heads=3", "sss"},
                 {"mlstm:heads=3", "mmm"}};
    const int64_t of_m = 3 * (8 * 8 + 8 + 1), of_s = 4 * 12;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trial t;
        struct trial_shape s = small;
        struct backbone b = {.dim = 12, .layers = 3, .ssm_lr_factor = 1};
        struct model_choice choice;
        struct error e = {0};
        int64_t floats = 0;
        s.model = cases[i].model;
        s.kind = i % 2 ? BACKBONE_XLSTM : BACKBONE_SLICE_PAPER;
        trial_open(&t, &s, 7);
        for (int layer = 0; layer < 3; layer++) {
            bool is_m = cases[i].turns[layer] == 'm';
            ck_assert_msg(is_m == (param_of(&t, layer, "mixer.up.weight") != NULL), "%s", s.model);
            ck_assert_msg(is_m == !param_of(&t, layer, "mixer.recurrent.weight"), "%s", s.model);
            const struct param *mlp = param_of(&t, layer, "mlp.w1.weight");
            ck_assert_msg(is_m == !mlp && (is_m || mlp->spec.dims[0] == 128), "%s: MLP of layer %d", s.model, layer);
            floats += is_m ? of_m : of_s;
        }
        ck_assert_int_eq(model_parse(&choice, s.model, &e), ST_OK);
        ck_assert_int_eq(model_fit(&choice, &(struct dims){.B = 2, .T = 6, .D = 12}, &e), ST_OK);
        ck_assert_int_eq(net_state_floats(&b, &choice), floats);
        trial_close(&t);
    }
}
END_TEST

/* A net of one kind is that mixer's, bit by bit. */
START_TEST(one_kind_alone_is_that_mixer) {
    static const char *const pairs[][2] = {{"xlstm:heads=3,m=0", "slstm:heads=3"},
                                           {"xlstm:heads=3,s=0", "mlstm:heads=3"}};
    for (int i = 0; i < 2; i++) {
        struct trial t[2];
        for (int k = 0; k < 2; k++) {
            struct trial_shape s = small;
            s.model = pairs[i][k];
            s.kind = BACKBONE_XLSTM;
            trial_open(&t[k], &s, 7);
            graph_forward(&t[k].graph, &t[k].state);
        }
        expect_same_bits(t[0].net.logits->data, t[1].net.logits->data, tensor_count(t[0].net.logits), pairs[i][0]);
        trial_close(&t[0]);
        trial_close(&t[1]);
    }
}
END_TEST

START_TEST(misfits_name_their_numbers) {
    static const struct {
        const char *model, *says;
    } bad[] = {{"slstm:heads=5", "slstm: heads=5"},
               {"xlstm:m=0,s=0", "xlstm: m=0 and s=0 leave every layer without a mixer"},
               {"xlstm:heads=8", "slstm: heads=8"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model_choice choice;
        struct error e = {0};
        ck_assert_int_eq(model_parse(&choice, bad[i].model, &e), ST_OK);
        ck_assert_int_eq(model_fit(&choice, &(struct dims){.B = 2, .T = 6, .D = 12}, &e), ST_USAGE);
        ck_assert_msg(strstr(e.text, bad[i].says) != NULL, "%s", e.text);
    }
}
END_TEST

Suite *check_slstm(void);
Suite *check_slstm(void) {
    Suite *suite = suite_create("slstm");
    TCase *tests = tcase_create("slstm");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, the_running_maximum_changes_nothing_but_the_range, 0, N_KERNELS);
    tcase_add_loop_test(tests, large_gates_stay_finite, 0, N_KERNELS);
    tcase_add_loop_test(tests, the_bias_of_i_is_inert, 0, N_KERNELS);
    tcase_add_test(tests, forget_gates_start_by_a_power_law);
    tcase_add_test(tests, layers_take_their_turns);
    tcase_add_test(tests, one_kind_alone_is_that_mixer);
    tcase_add_test(tests, misfits_name_their_numbers);
    suite_add_tcase(suite, tests);
    return suite;
}

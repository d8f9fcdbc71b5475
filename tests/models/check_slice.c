/* check_slice.c - properties of the SLiCE structures, of attention and of the short convolution, and what their options
 * refuse. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/flow/flow.h"
#include "kernels/token/token.h"
#include "tests/lib/layer.h"

static void expect_same_layers(const char *a_text, const char *b_text, int64_t D, const char *zeroed_in_b) {
    struct layer a, b;
    layer_open(&a, a_text, 9, D);
    layer_open(&b, b_text, 9, D);
    if (zeroed_in_b) multiply(&b, zeroed_in_b, 0);
    layer_run(&a);
    layer_run(&b);
    expect_close(tensor_real(b.y), tensor_real(a.y), tensor_count(a.y), 64 * REAL_EPSILON, b_text);
    layer_close(&a);
    layer_close(&b);
}

/* Norm of a parameter, computed here. */
static double norm_of(const struct params *p, const char *name, const char *mask) {
    const struct param *of = params_find(p, name), *kept = mask ? params_find(p, mask) : NULL;
    double sum = 0;
    ck_assert_msg(of != NULL, "there is no parameter %s", name);
    for (int64_t i = 0; i < of->count; i++) {
        double x = p->value[of->offset + i] * (kept ? p->value[kept->offset + i] : 1);
        sum += x * x;
    }
    return sqrt(sum);
}

static const struct trial_shape two_layers = {.B = 3, .T = 5, .V = 6, .D = 16, .layers = 2, .kind = BACKBONE_SLICE};

START_TEST(the_loss_term_is_the_norm_of_the_transition_parameters_of_each_layer) {
    struct trial t;
    struct trial_shape shape = two_layers;
    shape.model = "slice:structure=block,block=4,penalty=0.125";
    trial_open(&t, &shape, 3);
    trial_step(&t, 3);
    trial_fill(&t, 3, 1);
    graph_forward(&t.graph, &t.state);
    double terms = norm_of(&t.params, "layers.0.mixer.A", NULL) + norm_of(&t.params, "layers.1.mixer.A", NULL);
    double loss = tensor_real(t.net.loss)[0], all = tensor_real(t.graph.root)[0];
    expect_near(all - loss, 0.125 * terms, 64 * REAL_EPSILON * all, "loss term");
    ck_assert(t.graph.root != t.net.loss && terms > 1);
    trial_close(&t);
}
END_TEST

START_TEST(evaluation_and_no_penalty_leave_the_loss_alone) {
    struct trial t;
    struct trial_shape shape = two_layers;
    shape.model = "slice:penalty=0.125";
    shape.evaluation = true;
    trial_open(&t, &shape, 3);
    ck_assert(t.graph.root == t.net.loss);
    trial_close(&t);
    shape.model = "slice";
    shape.evaluation = false;
    trial_open(&t, &shape, 3);
    ck_assert(t.graph.root == t.net.loss);
    trial_close(&t);
}
END_TEST

/* Two layers of a structure, one step's logits and gradients: with generators looked up and computed at each step, of
 * all steps or of those in use. */
START_TEST(generators_from_a_table_are_those_of_each_step) {
    static const char *const models[] = {"slice:structure=diagonal",
                                         "slice:structure=block,block=4,penalty=0.1",
                                         "slice:structure=dense",
                                         "slice:structure=dplr,rank=2",
                                         "slice:structure=hadamard",
                                         "slice:structure=sparse,keep=0.3",
                                         "slice:structure=diagonal-dense,block=5",
                                         "slice:structure=block,block=4,clip=0",
                                         "slice:structure=dplr,rank=2,clip=0",
                                         "slice:structure=block,block=4,time-letter=no"};
    static const int32_t lengths[] = {5, 1, 3};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct trial plain, table;
        struct trial_shape shape = two_layers, looked_up = two_layers;
        char text[128];
        snprintf(text, sizeof text, "%s,table=yes", models[i]);
        shape.model = models[i];
        looked_up.model = text;
        trial_open(&plain, &shape, 3);
        trial_open(&table, &looked_up, 3);
        trial_fill(&plain, 3, 1);
        trial_fill(&table, 3, 1);
        memcpy(tensor_i32(plain.net.lengths), lengths, sizeof lengths);
        memcpy(tensor_i32(table.net.lengths), lengths, sizeof lengths);
        ck_assert_int_gt(table.graph.n_calls, plain.graph.n_calls);
        graph_forward(&plain.graph, &plain.state);
        graph_forward(&table.graph, &table.state);
        graph_backward(&plain.graph, &plain.state);
        graph_backward(&table.graph, &table.state);
        expect_close(tensor_real(table.net.logits), tensor_real(plain.net.logits), tensor_count(plain.net.logits),
                     64 * REAL_EPSILON, text);
        ck_assert_int_eq(table.params.floats, plain.params.floats);
        expect_close(table.params.grad, plain.params.grad, plain.params.floats, 64 * REAL_EPSILON, text);
        trial_close(&plain);
        trial_close(&table);
    }
}
END_TEST

/* Whether a net of two layers can be built with a table of the generators. */
static void expect_table(int kind, bool tokens, bool bidirectional, enum status status) {
    const struct backbone b = {.dim = 8, .layers = 2, .kind = kind, .bidirectional = bidirectional, .ssm_lr_factor = 1};
    const struct net_shape shape = {.B = 2,
                                    .T = 6,
                                    .vocab_in = tokens ? 5 : 0,
                                    .channels = tokens ? 0 : 3,
                                    .vocab_out = 5,
                                    .readout = READOUT_POSITIONS};
    struct model_choice choice;
    struct params params;
    struct graph graph;
    struct net net;
    struct error e = {0};
    ck_assert_int_eq(model_parse(&choice, "slice:table=yes", &e), ST_OK);
    ck_assert_int_eq(model_fit(&choice, &(struct dims){.B = 2, .T = 6, .D = 8}, &e), ST_OK);
    ck_assert_int_eq(params_create(&params, &e), ST_OK);
    open_graph(&graph, &params, true, false, "");
    ck_assert_int_eq(net_build(&net, &graph, &b, &choice, &shape, &e), status);
    if (status != ST_OK) ck_assert_msg(strstr(e.text, "table=yes") && strstr(e.text, "--backbone slice"), "%s", e.text);
    graph_free(&graph);
    params_free(&params);
}

START_TEST(a_table_that_could_not_act_is_refused) {
    static const int reads_embedding[] = {BACKBONE_SLICE, BACKBONE_SLICE_GLU, BACKBONE_STACKED, BACKBONE_SLICE_PAPER};
    static const int reads_norm[] = {BACKBONE_MAD_LM, BACKBONE_S5, BACKBONE_VISION, BACKBONE_SLICE_XLSTM,
                                     BACKBONE_SLICE_TRANSFORMER};
    for (size_t i = 0; i < sizeof reads_embedding / sizeof *reads_embedding; i++) {
        expect_table(reads_embedding[i], true, false, ST_OK);
        expect_table(reads_embedding[i], true, true, ST_OK);
        expect_table(reads_embedding[i], false, false, ST_USAGE);
    }
    for (size_t i = 0; i < sizeof reads_norm / sizeof *reads_norm; i++)
        expect_table(reads_norm[i], true, false, ST_USAGE);
    expect_layer_refused("slice:table=yes,interval=2", 12, "interval=2", "table=no");
}
END_TEST

/* With `table` the gradient against differences (double). */
START_TEST(a_table_has_the_gradient_of_its_loss) {
    struct trial t;
    struct trial_shape shape = two_layers;
    shape.model = "slice:structure=dplr,rank=2,table=yes,penalty=0.1";
    if (!REAL_IS_DOUBLE) return;
    trial_open(&t, &shape, 3);
    trial_fill(&t, 3, 1);
    expect_gradients(&t, 5);
    trial_close(&t);
}
END_TEST

/* Every structure, both directions: the gradient of loss and terms against differences (double), and which tensors the
 * terms are of. */
START_TEST(every_structure_has_its_loss_term) {
    static const struct {
        const char *model, *norms[2], *mask;
    } cases[] = {
        {"slice:structure=diagonal,penalty=0.1", {"A"}, NULL},
        {"slice:structure=block,block=4,penalty=0.1", {"A"}, NULL},
        {"slice:structure=dense,penalty=0.1", {"A"}, NULL},
        {"slice:structure=dplr,rank=2,penalty=0.1", {"A"}, NULL},
        {"slice:structure=hadamard,penalty=0.1", {"A"}, NULL},
        {"slice:structure=sparse,keep=0.3,penalty=0.1", {"A"}, "mask"},
        {"slice:structure=diagonal-dense,block=5,penalty=0.1", {"A.diagonal", "A.dense"}, NULL},
    };
    struct trial t;
    struct trial_shape shape = two_layers;
    double terms = 0;
    shape.model = cases[_i].model;
    shape.bidirectional = true;
    trial_open(&t, &shape, 5);
    graph_forward(&t.graph, &t.state);
    for (int layer = 0; layer < 2; layer++)
        for (int way = 0; way < 2; way++) {
            char name[2][64], mask[64];
            double norm[2] = {0, 0};
            for (int k = 0; k < 2 && cases[_i].norms[k]; k++) {
                const char *scope = way ? "mixer_back" : "mixer";
                snprintf(name[k], sizeof name[k], "layers.%d.%s.%s", layer, scope, cases[_i].norms[k]);
                snprintf(mask, sizeof mask, "layers.%d.%s.mask", layer, scope);
                norm[k] = norm_of(&t.params, name[k], cases[_i].mask ? mask : NULL);
            }
            terms += hypot(norm[0], norm[1]);
        }
    double all = tensor_real(t.graph.root)[0];
    expect_near(all - (double)tensor_real(t.net.loss)[0], 0.1 * terms, 64 * REAL_EPSILON * all, cases[_i].model);
    if (REAL_IS_DOUBLE) expect_gradients(&t, 9);
    trial_close(&t);
}
END_TEST

START_TEST(structures_meet_in_their_limits) {
    expect_same_layers("slice:structure=diagonal", "slice:structure=block,block=1", 12, NULL);
    expect_same_layers("slice:structure=dense", "slice:structure=block,block=12", 12, NULL);
    expect_same_layers("slice:structure=diagonal", "slice:structure=dplr,rank=3", 12, "U");
    expect_same_layers("slice:structure=dense", "slice:structure=sparse,keep=1", 12, NULL);
}
END_TEST

static const char *const structures[] = {
    "slice:structure=diagonal",
    "slice:structure=block,block=4",
    "slice:structure=dense",
    "slice:structure=dplr,rank=2",
    "slice:structure=hadamard",
    "slice:structure=sparse,keep=0.3",
    "slice:structure=diagonal-dense,block=5",
};
#define N_STRUCTURES (int)(sizeof structures / sizeof *structures)

/* Twice the initial state is twice every output, to the bit: nothing is added on the way. */
START_TEST(outputs_are_homogeneous_in_the_initial_state) {
    struct layer a, b;
    layer_open(&a, structures[_i], 31, 16);
    layer_open(&b, structures[_i], 31, 16);
    multiply(&b, "init.weight", 2);
    multiply(&b, "init.bias", 2);
    layer_run(&a);
    layer_run(&b);
    int64_t n = tensor_count(a.y);
    for (int64_t i = 0; i < n; i++) tensor_real(a.y)[i] *= 2;
    expect_same_bits(tensor_real(b.y), tensor_real(a.y), n, structures[_i]);
    layer_close(&a);
    layer_close(&b);
}
END_TEST

START_TEST(a_zero_generator_keeps_the_initial_state) {
    static const char *const generators[] = {"A", "U", "V", "A.diagonal", "A.dense"};
    struct layer l;
    layer_open(&l, structures[_i], 13, 16);
    for (int i = 0; i < 5; i++)
        if (params_find(&l.params, generators[i])) multiply(&l, generators[i], 0);
    layer_run(&l);
    const real *y = tensor_real(l.y);
    double size = 0;
    for (int64_t b = 0; b < 2; b++)
        for (int64_t i = 0; i < 13 * 16; i++) {
            ck_assert_double_eq(y[b * 13 * 16 + i], y[b * 13 * 16 + i % 16]);
            size += fabs((double)y[b * 13 * 16 + i]);
        }
    ck_assert_double_gt(size, 0);
    layer_close(&l);
}
END_TEST

/* Nor does anything move it where the path stands still and has no letter of time. */
START_TEST(without_a_letter_of_time_a_constant_path_keeps_the_initial_state) {
    static const char *const more[] = {"", ",interval=3"};
    enum { T = 13, D = 16 };
    for (int i = 0; i < 2; i++)
        for (int letter = 0; letter < 2; letter++) {
            struct layer l;
            char text[128];
            snprintf(text, sizeof text, "%s%s,time-letter=%s", structures[_i], more[i], letter ? "yes" : "no");
            layer_open(&l, text, T, D);
            for (int64_t k = 0; k < 2 * T * D; k++)
                if (k / D % T > 0) tensor_real(l.x)[k] = 0;
            layer_run(&l);
            bool same = true;
            for (int64_t k = 0; k < 2 * T * D; k++)
                same = same && tensor_real(l.y)[k] == tensor_real(l.y)[k / (T * D) * T * D + k % D];
            ck_assert_msg(same == !letter, "%s", text);
            layer_close(&l);
        }
}
END_TEST

/* |y_t| <= (1 + |A_t|) |y_{t-1}|, and the step is no identity. The norm of A_t from its own entries (Frobenius). */
START_TEST(a_flow_grows_no_faster_than_its_generator_allows) {
    enum { T = 9, N = 3, M = 4, D = N * M };
    struct graph g;
    open_graph(&g, NULL, false, false, "");
    struct tensor *a = input3(&g, "a", 1, T, M * D, false), *y0 = input3(&g, "y0", 1, D, 0, false);
    struct tensor *y = scan_flow(&g, a, y0, N, M, 0);
    tensor_keep(y);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    struct step_state state = first_state();
    graph_forward(&g, &state);
    for (int64_t t = 1; t < T; t++) {
        double norm_a = 0, before = 0, after = 0, change = 0;
        for (int64_t i = 0; i < M * D; i++) norm_a += pow((double)tensor_real(a)[t * M * D + i], 2);
        for (int64_t i = 0; i < D; i++) {
            double now = tensor_real(y)[t * D + i], last = tensor_real(y)[(t - 1) * D + i];
            before += last * last;
            after += now * now;
            change += fabs(now - last);
        }
        ck_assert_double_le(sqrt(after), (1 + sqrt(norm_a)) * sqrt(before) * (1 + 64 * REAL_EPSILON));
        ck_assert_double_gt(change, 0);
    }
    graph_free(&g);
}
END_TEST

/* Inputs a million times larger make the state grow at every step: without a bound it overflows, with c = 1e6 no
 * element moves further than that in a step. Moves that are small beside c keep their bits. */
START_TEST(a_bound_keeps_growing_states_finite) {
    enum { T = 90, D = 16 };
    static const char *const bounds[] = {"0", "1e6", "1e11"};
    struct layer l[3][2];
    for (int i = 0; i < 3; i++)
        for (int large = 0; large < 2; large++) {
            char text[128];
            snprintf(text, sizeof text, "%s,clip=%s", structures[_i], bounds[i]);
            layer_open(&l[i][large], text, T, D);
            for (int64_t k = D; k < 2 * T * D && large; k++) /* but y_0, which comes of x_0 */
                if (k % (T * D) >= D) tensor_real(l[i][large].x)[k] *= (real)1e6;
            layer_run(&l[i][large]);
        }
    size_t bytes = 2 * T * D * sizeof(real);
    ck_assert_msg(!memcmp(l[0][0].y->data, l[2][0].y->data, bytes), "%s: small moves", structures[_i]);
    ck_assert_msg(memcmp(l[0][1].y->data, l[2][1].y->data, bytes), "%s: large moves", structures[_i]);
    bool overflows = false;
    for (int64_t k = 0; k < 2 * T * D; k++) {
        const real *y = tensor_real(l[1][1].y) + k;
        overflows = overflows || !isfinite(tensor_real(l[0][1].y)[k]);
        ck_assert_msg(isfinite(tensor_real(l[2][1].y)[k]), "%s: element %d", structures[_i], (int)k);
        if (k % (T * D) >= D) ck_assert_double_le(fabs((double)y[0] - (double)y[-D]), 1e6 * (1 + 512 * REAL_EPSILON));
    }
    ck_assert_msg(overflows, "%s: no overflow without a bound", structures[_i]);
    for (int i = 0; i < 6; i++) layer_close(&l[i / 2][i % 2]);
}
END_TEST

/* H y0 = y_1 - y_0 with d = 1: applied twice it is the identity, and it keeps the norm. */
START_TEST(the_hadamard_transform_is_its_own_inverse) {
    enum { D = 64 };
    struct graph g;
    real first[D], once[D];
    open_graph(&g, NULL, false, false, "");
    struct tensor *d = input3(&g, "d", 1, 2, D, false), *y0 = input3(&g, "y0", 1, D, 0, false);
    struct tensor *y = scan_hadamard(&g, d, y0, 0);
    tensor_keep(y);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int i = 0; i < 2 * D; i++) tensor_real(d)[i] = 1;
    memcpy(first, y0->data, sizeof first);
    struct step_state state = first_state();
    double norm[2] = {0, 0};
    for (int pass = 0; pass < 2; pass++) {
        graph_forward(&g, &state);
        for (int i = 0; i < D; i++) once[i] = tensor_real(y)[D + i] - tensor_real(y)[i];
        for (int i = 0; i < D; i++) norm[pass] += (double)once[i] * once[i];
        memcpy(y0->data, once, sizeof once);
    }
    expect_close(once, first, D, 64 * REAL_EPSILON, "H H y");
    ck_assert_double_le(fabs(norm[0] - norm[1]), 256 * REAL_EPSILON * norm[1]);
    graph_free(&g);
}
END_TEST

/* With equal values at every position attention returns that value; a window sees m tokens and no more. */
START_TEST(attention_averages_and_a_window_is_finite) {
    enum { T = 70, D = 6 };
    struct graph g;
    open_graph(&g, NULL, false, false, "");
    struct tensor *qkv = input3(&g, "qkv", 1, T, 3 * D, false), *y = softmax_attention(&g, qkv, 3);
    tensor_keep(y);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int64_t i = 0; i < T * D; i++) tensor_real(qkv)[i / D * 3 * D + 2 * D + i % D] = (real)(i % D + 1);
    struct step_state state = first_state();
    graph_forward(&g, &state);
    for (int64_t i = 0; i < T * D; i++)
        ck_assert_double_le(fabs((double)tensor_real(y)[i] - (double)(i % D + 1)), 256 * REAL_EPSILON);
    graph_free(&g);

    struct layer l;
    real before[2 * T * D];
    layer_open(&l, "conv:channels=5,m=4", T, D);
    layer_run(&l);
    memcpy(before, l.y->data, sizeof before);
    tensor_real(l.x)[10 * D] += 1; /* token 10 of the first sequence is seen by outputs 10..13 */
    layer_run(&l);
    for (int64_t t = 0; t < 2 * T; t++)
        ck_assert_msg(!memcmp(before + t * D, tensor_real(l.y) + t * D, D * sizeof *before) == (t < 10 || t > 13),
                      "token %lld", (long long)t);
    layer_close(&l);
}
END_TEST

/* An option that could not act would be asked for in vain, and be another run. */
START_TEST(options_that_could_not_act_are_refused) {
    expect_layer_refused("bdlru:m=2,blocks=4,selective=no,gate-init=5", 12, "bdlru: gate-init=5", "selective=no");
    expect_layer_refused("hlru:m=2,channels=4,selective=no,gate-init=0.5", 12, "hlru: gate-init=0.5", "selective=no");
    expect_layer_refused("slice:depth=2", 12, "depth=2", "interval=1");
    expect_layer_refused("slice:rank=4", 12, "rank=4", "structure=block");
    expect_layer_refused("slice:structure=dense,keep=0.7", 12, "keep=0.7", "structure=dense");
    expect_layer_refused("plstm:heads=2,track-init=0.5", 12, "track-init=0.5", "track=1");
    expect_layer_refused("plstm2d:heads=2,chirality=R", 12, "chirality=R", "mode=P");
    expect_layer_refused("plstm-graph:heads=2,mode=D,pnorm=in,edges=0-1+0-2", 12, "pnorm=in", "mode=D");
    expect_layer_refused("myosotis:heads=2,arity=1,form=skew,rho=0.5", 12, "rho=0.5", "form=skew");
}
END_TEST

START_TEST(misfits_are_refused_with_both_numbers) {
    expect_layer_refused("slice:structure=block,block=5", 12, "block=5", "D=12");
    expect_layer_refused("slice:structure=diagonal-dense,block=12", 12, "block=12", "D=12");
    expect_layer_refused("slice:structure=hadamard", 12, "power of two", "D=12");
}
END_TEST

Suite *check_slice(void) {
    Suite *s = suite_create("slice");
    TCase *c = tcase_create("slice");
    tcase_add_test(c, the_loss_term_is_the_norm_of_the_transition_parameters_of_each_layer);
    tcase_add_test(c, evaluation_and_no_penalty_leave_the_loss_alone);
    tcase_add_test(c, generators_from_a_table_are_those_of_each_step);
    tcase_add_test(c, a_table_that_could_not_act_is_refused);
    tcase_add_test(c, a_table_has_the_gradient_of_its_loss);
    tcase_add_loop_test(c, every_structure_has_its_loss_term, 0, N_STRUCTURES);
    tcase_add_test(c, structures_meet_in_their_limits);
    tcase_add_loop_test(c, outputs_are_homogeneous_in_the_initial_state, 0, N_STRUCTURES);
    tcase_add_loop_test(c, a_zero_generator_keeps_the_initial_state, 0, N_STRUCTURES);
    tcase_add_loop_test(c, without_a_letter_of_time_a_constant_path_keeps_the_initial_state, 0, N_STRUCTURES);
    tcase_add_test(c, a_flow_grows_no_faster_than_its_generator_allows);
    tcase_add_loop_test(c, a_bound_keeps_growing_states_finite, 0, N_STRUCTURES);
    tcase_add_test(c, the_hadamard_transform_is_its_own_inverse);
    tcase_add_test(c, attention_averages_and_a_window_is_finite);
    tcase_add_test(c, misfits_are_refused_with_both_numbers);
    tcase_add_test(c, options_that_could_not_act_are_refused);
    suite_add_tcase(s, c);
    return s;
}
